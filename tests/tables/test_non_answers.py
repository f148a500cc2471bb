"""Texts for no answer: missing among numbers, dates and words in an order, classes elsewhere, and always said so."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenly import EvenlyWarning, Imputer, LipschitzScaler, infer_schema, inspect_table

AGES = [str(20 + i % 40) for i in range(60)]
ANSWERS = ["low", "medium", "high"] * 20
STAYS = {
    "classes": ["A", "B", "-"] * 20,
    "signs": ["+", "-"] * 30,
    "severity": ["none", "mild", "moderate", "severe"] * 15,
    "many": [*AGES[:40], *["-"] * 20],
    "other words": [*AGES, "plenty"],
    "two texts": ["12"] * 9 + ["refused"],
}
READ = {
    "numbers": ([*AGES, "-", ".", "Prefer not to say "], "count", 3),
    "money": ([*(f"${age}.00" for age in AGES), "n.a."], "positive", 1),
    "dates": ([*(f"2024-01-{1 + i % 28:02}" for i in range(60)), "unknown"], "date", 1),
    "words": ([*ANSWERS, "999", "don\u2019t know"], "ordinal", 2),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_texts_for_no_answer_are_missing_among_values(make, name):
    texts, kind, n = READ[name]
    table = make({"a": texts})
    column = infer_schema(table)["a"]
    assert column.kind == kind
    assert set(column.missing) >= {text.strip() for text in texts[-n:]}
    assert "read as missing" in column.note
    found = inspect_table(table)["a"]
    assert (found.kind, found.n_missing) == (kind, n)
    assert any("read as missing" in one and "--kind a=categorical" in one for one in found.warnings)
    with pytest.warns(EvenlyWarning, match=rf"read_as_missing: 'a' \({n} cells?: "):
        scaler = LipschitzScaler(dates="model").fit(table)
    assert scaler.schema_["a"].kind == kind
    features = np.column_stack(
        [np.asarray(scaler.transform(table)[one], float) for one in scaler.transform(table).columns]
    )
    assert np.isnan(features).all(1).sum() == n


@pytest.mark.parametrize("name", STAYS)
def test_elsewhere_they_are_classes(name):
    table = pd.DataFrame({"a": STAYS[name]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        column = infer_schema(table)["a"]
    assert not set(column.missing) & set(STAYS[name])
    assert set(column.classes) == set(STAYS[name]) if column.classes else column.kind == "ignore"


def test_they_are_filled_and_other_cells_stay():
    table = pd.DataFrame({"a": READ["words"][0], "b": np.arange(62.0) / 4.0})
    with pytest.warns(EvenlyWarning, match="read_as_missing"):
        full = Imputer("marginal", random_state=0).fit_transform(table)
    assert full["a"][:60].tolist() == ANSWERS
    assert set(full["a"][60:]) <= set(ANSWERS)


def test_who_declares_the_column_decides():
    texts, _, _ = READ["numbers"]
    table = pd.DataFrame({"a": texts})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {"-", "."} <= set(
            LipschitzScaler("lip-none", kinds={"a": "categorical"}).fit(table).schema_["a"].classes
        )
        assert LipschitzScaler(missing=["-", ".", "Prefer not to say"]).fit(table).schema_["a"].kind == "count"


def test_new_rows_may_have_them_too():
    texts, _, _ = READ["numbers"]
    with pytest.warns(EvenlyWarning, match="read_as_missing"):
        scaler = LipschitzScaler().fit(pd.DataFrame({"a": texts}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(scaler.transform(pd.DataFrame({"a": ["-", "33"]}))["a"]).tolist() == [True, False]
