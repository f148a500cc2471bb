"""Imputed numbers are as precise as the column that they stand in, unless full precision is asked for."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenly import Imputer, TableError
from evenly.tables import Precision, find_precision

RNG = np.random.default_rng(0)
N = 60
GONE = np.arange(N) % 6 == 0
TEMPERATURE = RNG.normal(37.5, 1.0, N).round(1)
COLUMNS = {
    "whole": (RNG.poisson(30.0, N).astype(float), 1.0),
    "one decimal": (TEMPERATURE, 0.1),
    "two decimals": (RNG.lognormal(2.0, 1.0, N).round(2), 0.01),
    "multiples of 50": (50.0 * RNG.integers(1, 60, N), 50.0),
    "thousands": (1000.0 * RNG.integers(-40, 60, N), 1000.0),
    "halves": (0.5 * RNG.integers(0, 40, N), 0.5),
}


def holed(cells: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"a": np.where(GONE, np.nan, cells), "b": np.arange(N) + 1 / 3})


def filled(imputer: Imputer, table: pd.DataFrame) -> list[np.ndarray]:
    imputer.fit(table)
    tables = [imputer.transform(table), *imputer.sample(table, 2), *imputer.interval(table)]
    return [np.asarray(full["a"], float)[GONE] for full in tables]


@pytest.mark.parametrize("estimate", ["mean", "median", "mode"])
@pytest.mark.parametrize("name", COLUMNS)
def test_imputed_numbers_have_the_precision_of_their_column(name, estimate):
    cells, step = COLUMNS[name]
    for values in filled(Imputer("marginal", estimate=estimate, random_state=0), holed(cells)):
        decimals = max(0, round(-np.log10(step))) + (step == 0.5)
        assert all(value == round(value, decimals) for value in values.tolist())  # 38.4, not 38.400000000000006
        np.testing.assert_allclose(values / step, np.rint(values / step), atol=1e-9)
        assert cells[~GONE].min() <= values.min() <= values.max() <= cells[~GONE].max()


def test_full_precision_rounds_nothing_but_integers():
    table = holed(COLUMNS["whole"][0])
    mean = table["a"].mean()
    full = Imputer("marginal", precision="full").fit_transform(table)
    assert full["a"][GONE].to_numpy() == pytest.approx(mean)
    assert mean != round(mean)
    whole = Imputer("marginal", precision="full").fit_transform(table.astype({"a": "Int64"}))
    assert whole["a"].dtype == "Int64"
    with pytest.raises(TableError, match="precision = 'half'"):
        Imputer(precision="half").check_settings()


def test_predictions_for_scoring_are_not_rounded():
    table = holed(COLUMNS["multiples of 50"][0])
    predicted = Imputer("marginal").fit(table).predict_cells(table)[:, 0]
    assert predicted[0] == pytest.approx(table["a"].mean())


def test_decimals_texts_and_single_precision_follow_their_column():
    seen = [None if gone else cell for cell, gone in zip(TEMPERATURE.tolist(), GONE, strict=True)]
    other = (np.arange(N) + 1 / 3).tolist()
    texts = pl.DataFrame({"a": [None if cell is None else f"{cell:.2f}" for cell in seen], "b": other})
    full = Imputer("marginal").fit_transform(texts)
    assert all(cell[-1] == "0" and cell[-3] == "." for cell in full["a"])
    cells = pd.Series([None if cell is None else Decimal(str(cell)) for cell in seen], dtype=object)
    exact = pd.DataFrame({"a": cells, "b": other})
    full = Imputer("marginal").fit_transform(exact)
    assert {-cell.as_tuple().exponent for cell in full["a"]} == {1}
    single = pl.DataFrame({"a": seen, "b": other}, schema={"a": pl.Float32, "b": pl.Float64})
    full = Imputer("marginal").fit_transform(single)
    assert np.float32(round(full["a"][0], 1)) == np.float32(full["a"][0])


def test_a_saved_imputer_rounds_as_before(tmp_path):
    table = holed(COLUMNS["halves"][0])
    imputer = Imputer("marginal", precision="column").fit(table)
    imputer.save(tmp_path)
    pd.testing.assert_frame_equal(Imputer.load(tmp_path).transform(table), imputer.transform(table))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (RNG.normal(size=200), None),
        (np.arange(10.0), Precision(0)),
        (5.0 * np.arange(7.0), Precision(0)),  # too few to tell
        (np.tile(5.0 * np.arange(9.0), 5), Precision(0, 5)),
        (np.array([np.nan, 0.125]), Precision(3)),
        (np.float32(TEMPERATURE).astype(float), Precision(1)),
        (np.float16([0.1, 0.2, 0.7]).astype(float), Precision(1)),
        (np.append(RNG.poisson(1e6, 5000), 0.5), Precision(0)),  # one slip
        (np.append(np.zeros(50_000), RNG.normal(size=30)), None),  # zeros say nothing about the others
        (np.append(np.zeros(50_000), RNG.permutation(999)[:30]), Precision(0)),
        (np.array([1e300, 2e307, 0.5]), None),
        (np.zeros(0), None),
        (np.array([np.nan]), None),
    ],
    ids=[
        "full",
        "whole",
        "few",
        "fives",
        "eighth",
        "single",
        "half",
        "slip",
        "many zeros",
        "zeros and whole",
        "huge",
        "empty",
        "missing",
    ],
)
def test_precision_is_found_where_the_evidence_is_clear(values, expected):
    assert find_precision(values) == expected


def test_rounding_stays_within_bounds_that_hold_a_step():
    assert Precision(0, 100).round(np.array([149.0, 20.0, 990.0]), 120.0, 880.0).tolist() == [200.0, 200.0, 800.0]
    assert Precision(0, 100).round(np.array([149.0]), 120.0, 180.0).tolist() == [149.0]
    assert Precision(2).round(np.array([1.7e308, np.nan])).tolist()[0] == 1.7e308
