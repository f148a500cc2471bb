"""Values as strict JSON holds them: nothing but texts, finite numbers, lists and dictionaries."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly._support import align, to_plain


@dataclass(frozen=True)
class Found:
    column: str
    shares: Any


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (np.float32("inf"), None),
        ((1, -math.inf, True), [1, None, True]),
        (np.array([[1.5, np.nan]]), [[1.5, None]]),
        (np.int64(7), 7),
        (np.True_, True),
        (Found("a", {2: np.float64(0.25)}), {"column": "a", "shares": {"2": 0.25}}),
        (None, None),
    ],
)
def test_values_that_json_does_not_know_become_ones_that_it_knows(value, expected):
    plain = to_plain(value)
    assert plain == expected
    assert json.loads(json.dumps(plain, allow_nan=False)) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_all_their_digits_unless_fewer_are_asked_for(number):
    assert math.copysign(1.0, to_plain(number)) == math.copysign(1.0, number)
    assert to_plain(number) == number
    assert to_plain(number, digits=6) == pytest.approx(number, rel=1e-5)


def test_texts_are_changed_but_not_keys():
    assert to_plain({"a": ["b", "c"]}, text=str.upper) == {"a": ["B", "C"]}


def test_columns_are_as_wide_as_their_widest_cell_and_lines_end_in_no_space():
    assert align([("a", "bb", ""), ("ccc", "d", "")]) == ["a    bb", "ccc  d"]
    assert align([("a", "bb"), ("ccc", "d")], 1) == ["a    bb", "ccc   d"]
    assert align([]) == []
