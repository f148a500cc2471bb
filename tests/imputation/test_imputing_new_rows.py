"""Rows that fit did not see: any goes through an imputer, and what was observed in them comes back as it was."""

from __future__ import annotations

import pickle
import warnings
from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imputers import SMALL, TABLE, make_imputer, quick

from evenly import EvenlyWarning, Imputer, TableError

pytestmark = pytest.mark.usefixtures("small_chunks")


def odd_rows() -> pd.DataFrame:
    """Rows with cells that a fit refuses, or has not seen, and a missing cell in each column."""
    new = pd.DataFrame(
        {
            "real": [1.0, np.inf, "abc", 2.0, None, -90.0],
            "positive": [0.0, -1.0, 1e-300, -np.inf, None, 90.0],
            "count": [2.5, -1.0, 0.4, np.inf, None, 90.0],
            "binary": [True, False, True, False, None, "maybe"],
            "class": ["new", "a", "b", "?", None, "other"],
            "grade": ["lo", "hi", "highest", "mid", None, 7],
        },
        dtype=object,
    )
    return new.loc[[0, 1, 2, 3, 4, 5, 4]].reset_index(drop=True)


def quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        return function(*arguments)


@pytest.fixture(scope="module", params=["marginal", "bins", "likelihoods"])
def imputer(request: pytest.FixtureRequest) -> Imputer:
    """One that models numbers by bins, and one by likelihoods; the paper's method, too."""
    if request.param == "likelihoods":
        return quick(method="lip-gamma").fit(TABLE)
    if request.param == "bins":
        return make_imputer("masked", **SMALL).fit(TABLE)
    return Imputer("marginal", random_state=0).fit(TABLE)


def test_observed_cells_come_back_as_they_were_and_missing_ones_are_filled(imputer):
    new = odd_rows()
    tables = [quietly(imputer.transform, new), *quietly(imputer.sample, new, 2), *quietly(imputer.interval, new)]
    for full in tables:
        for name in new:
            gone = new[name].isna() | (new[name] == "?")
            assert full[name][~gone].tolist() == new[name][~gone].tolist()
            assert not full[name][gone].isin(["?", None]).any()
            assert not full[name].isna().any()
    # What is missing beside an odd cell is predicted from a finite input.
    for name in new:
        beside = quietly(imputer.transform, new.assign(**{name: None}))[name]
        assert not beside.isna().any()
        assert beside.dtype.kind == "O" or np.isfinite(beside).all()


def test_the_other_ways_to_use_it_take_them_too(imputer):
    new = odd_rows()
    assert np.isfinite(quietly(imputer.score, new))
    assert np.isfinite(list(quietly(imputer.log_likelihood, new).values())).all()
    low, high = quietly(imputer.interval_cells, new)
    assert low[0, 1] == high[0, 1] == 0.0  # as it is in the table
    assert np.isfinite(quietly(imputer.predict_cells, new)).all()
    for found in quietly(imputer.distribution, new).values():
        assert np.isfinite(found.mean() if hasattr(found, "mean") else found.mode()).all()


def test_one_warning_a_column_says_what_the_model_sees(imputer):
    with pytest.warns(EvenlyWarning) as caught:
        imputer.transform(odd_rows())
    said = {str(one.message).split("'")[1]: str(one.message) for one in caught}
    assert len(said) == len(caught) == 6
    assert "1 cell with no number, treated as missing: 'abc'; 1 cell infinite, treated as missing" in said["real"]
    assert "2 cells with classes not seen in fit, treated as missing: 'new', 'other'" in said["class"]
    assert all(message.endswith("in the table, observed cells stay as they are") for message in said.values())
    assert "2 cells not above 0, used as" in said["positive"]
    assert ("2 cells not whole, rounded" in said["count"]) == (imputer.model == "vae")


def test_the_model_sees_the_nearest_value_that_has_a_density():
    """Other cells of the row are imputed as if the value inside the support were there."""
    imputer = quick(method="lip-gamma").fit(TABLE)
    least = TABLE["positive"].min()
    new = TABLE.head(8).astype({"positive": float, "count": float}).assign(real=np.nan)
    odd = new.assign(positive=[0.0, -1.0] * 4, count=[2.5, -3.0] * 4)
    inside = new.assign(positive=least, count=[3.0, 0.0] * 4)
    assert quietly(imputer.transform, odd)["real"].equals(imputer.transform(inside)["real"])


def test_bins_take_counts_that_are_none_as_they_are():
    imputer = Imputer("marginal").fit(TABLE)
    new = TABLE.head(2).astype({"count": float}).assign(count=[2.5, -1.0])
    full = imputer.transform(new)  # without a warning
    assert full["count"].tolist() == [2.5, -1.0]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("positive", -1.0, "Column 'positive': got minimum -1, but log-normal expects values > 0"),
        ("count", 1.5, "Column 'count': got values that are not whole numbers, but poisson expects"),
        ("real", np.inf, "Column 'real': got infinite values"),
        ("real", "text", "Column 'real': got the text 'text', but real expects numbers"),
    ],
)
@pytest.mark.parametrize("model", ["marginal", "vae"])
def test_a_strict_imputer_refuses_what_fit_refuses(model, column, value, message):
    imputer = (quick(strict=True) if model == "vae" else Imputer("marginal", strict=True)).fit(TABLE)
    new = TABLE.head(3).astype({column: object})
    new.loc[1, column] = value
    with pytest.raises(TableError, match=message):
        imputer.transform(new)


def test_strict_is_a_setting_like_others(tmp_path):
    with pytest.raises(TableError, match="strict = 1, but expected True or False"):
        Imputer("marginal", strict=1).fit(TABLE)
    imputer = Imputer("marginal", strict=True, random_state=0).fit(TABLE)
    imputer.save(tmp_path)
    assert Imputer.load(tmp_path).strict
    assert pickle.loads(pickle.dumps(imputer)).strict


def test_files_warn_once_of_all_their_cells(tmp_path):
    n = 300
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.normal(size=n), "c": rng.choice(["a", "b", "c"], n)})
    imputer = Imputer("marginal", random_state=0).fit(table)
    odd = table.with_columns(
        pl.when(pl.int_range(n) % 3 == 0).then(np.inf).when(pl.int_range(n) % 3 == 1).then("x").alias("x"),
        pl.when(pl.int_range(n) % 2 == 0).then(pl.lit("new")).otherwise("c").alias("c"),
    )
    odd.write_parquet(tmp_path / "odd.parquet", row_group_size=50)
    pieces = copy(imputer)
    with pytest.warns(EvenlyWarning) as caught:
        pieces.transform_file(tmp_path / "odd.parquet", tmp_path / "full.parquet")
    assert [str(one.message).partition(", ")[0] for one in caught] == [
        "column 'x': 100 cells infinite",
        "column 'c': 150 cells with classes not seen in fit",
    ]
    assert pl.read_parquet(tmp_path / "full.parquet").equals(quietly(imputer.transform, odd))


def test_numbers_among_texts_are_spelled_as_in_fit_whatever_rows_are_beside_them():
    table = pl.DataFrame({"cents": ["1.25", "3.50", None, "0.75", "2.00"] * 8})
    imputer = Imputer("marginal", kinds={"cents": "real"}).fit(table)
    (alone,) = imputer.transform(table[2:3])["cents"]
    beside = imputer.transform(pl.DataFrame({"cents": [None, "1.5", "2.5"]}))["cents"]
    assert beside.to_list() == [alone, "1.5", "2.5"]
    assert len(alone.partition(".")[2]) == 2
