"""What a fitted scaler keeps of each column: it changes nothing of the user's, and files of earlier versions load."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenly import Column, EvenlyWarning, LipschitzScaler, Schema, TableError
from evenly._support import ScaleWarning

SAVED = Path(__file__).parent / "saved_scaler.json"
"""A fitted scaler in the format of today. When the format changes, keep it under the name of its format, write it anew
by `LipschitzScaler.from_plain(content, (), path).save(SAVED)`, and see the test of files in an older format."""
FORMAT_1 = Path(__file__).parent / "saved_scaler_format_1.json"
"""The same as version 0.1.0.dev0 first wrote it, without a checksum."""


def test_a_file_of_an_earlier_version_loads_and_is_saved_as_it_was(tmp_path):
    scaler = LipschitzScaler.load(SAVED)
    row = pd.DataFrame({"height": [0.0, 1.75], "income": [1.0, 1200.5], "children": [0, 1], "town": ["Ulm", "Bonn"]})
    row["since"] = pd.Timestamp("2020-01-01")
    scaled = scaler.transform(row)
    assert list(scaled.columns) == ["height", "income", "children", "town=Bonn", "town=Köln", "town=Ulm", "since"]
    expected = [10.746365133930706, 10468.158691474104, 28.845813219626905]
    expected += [42.7712576217605, 21.084581639361687, 18.122300906538477]
    np.testing.assert_allclose(scaled.iloc[1, :6].astype(float), expected, rtol=1e-12)
    back = scaler.inverse_transform(scaled)[["children", "town"]]
    texts = {"town": object}  # before pandas 3, the type of texts that was saved is not the usual one
    pd.testing.assert_frame_equal(back.astype(texts), row[["children", "town"]].astype(texts))
    scaler.save(tmp_path)
    again, before = (json.loads(path.read_text()) for path in (tmp_path / "scaler.json", SAVED))
    assert again["settings"].items() >= before["settings"].items()  # new settings have their defaults
    apart = dict.fromkeys(("evenly", "checksum", "settings"))
    assert again | apart == before | apart


def test_a_file_in_an_older_format_is_refused_in_one_sentence_that_says_what_to_do():
    with pytest.raises(TableError, match=r"saved in format 1 by .* reads format 2\. Hint: fit and save again\.$"):
        LipschitzScaler.load(FORMAT_1)


@pytest.mark.parametrize("n_rows", [40, 100_000], ids=["one thread", "several threads"])
@pytest.mark.parametrize("kind", ["binary", "categorical"])
def test_a_given_schema_stays_as_it_is_when_new_classes_appear(kind, n_rows):
    """A class that the schema does not know is one of the fitted column, not of the user's."""
    schema = Schema(columns=[Column(name=name, kind=kind, classes=["a", "b"]) for name in ("c", "d")])
    before = schema.model_copy(deep=True)
    table = pd.DataFrame({"c": ["a", "b", "z", "a"], "d": ["b", "a", "a", "b"]}).iloc[np.arange(n_rows) % 4]
    scaler = LipschitzScaler("lip-none", schema=schema).fit(table)
    assert schema == before
    assert [one.column.classes for one in scaler.columns_] == [["a", "b", "z"], ["a", "b"]]
    assert [one.column.kind for one in scaler.columns_] == ["categorical", kind]
    assert scaler.columns_[0].frequencies.tolist() == [0.5, 0.25, 0.25]


def test_a_part_with_a_new_class_changes_no_column_that_was_fitted_before():
    parts = LipschitzScaler(random_state=0).partial_fit(pd.DataFrame({"c": ["a", "b"] * 10}))
    (before,), schema = parts.columns_, parts.schema_
    parts.partial_fit(pd.DataFrame({"c": ["z"] * 20}))
    assert before.column.classes == schema["c"].classes == ["a", "b"]
    assert (parts.columns_[0].column.kind, parts.schema_["c"].classes) == ("categorical", ["a", "b", "z"])


def test_a_scale_that_was_not_as_asked_for_is_warned_of_apart_from_columns_left_as_they_are():
    with pytest.warns(ScaleWarning, match="below_floor: 'a'"):
        LipschitzScaler(likelihoods={"a": "gamma"}, target=1e-3).fit(pd.DataFrame({"a": [1.0, 2.5, 3.0]}))
    with pytest.warns(EvenlyWarning, match="constant: 'a'") as caught:
        LipschitzScaler().fit(pd.DataFrame({"a": [1.5, 1.5]}))
    assert not any(issubclass(one.category, ScaleWarning) for one in caught)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_warnings_name_the_line_of_the_caller(call):
    constant = pd.DataFrame({"a": [1.5, 1.5], "b": [-1.0, 2.0]})
    with pytest.warns(EvenlyWarning, match="constant: 'a'") as caught:
        getattr(LipschitzScaler("std-none"), call)(constant)
    assert caught[0].filename == __file__
