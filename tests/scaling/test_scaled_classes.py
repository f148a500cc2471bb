"""Features of columns with many classes: a hundred classes have one each, the others none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenly import LipschitzScaler

METHODS = ("lip-none", "lip-bern", "lip-gamma")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """250 towns, some more frequent than others, and a number."""
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(250), rng.geometric(0.02, 3000) % 250])
    cells = [f"town {code}" for code in codes]
    return pd.DataFrame({"town": cells, "x": rng.normal(size=len(codes))})


def frequent(table: pd.DataFrame) -> list[str]:
    return LipschitzScaler().fit(table).schema_["town"].classes[:100]


@pytest.mark.parametrize("method", METHODS)
def test_the_first_hundred_come_back_and_the_rest_is_missing(table, method):
    scaler = LipschitzScaler(method).fit(table)
    scaled = scaler.transform(table)
    assert scaled.shape[1] == (2 if method == "lip-none" else 101)
    back = scaler.inverse_transform(scaled)
    kept = table["town"].isin(frequent(table))
    assert (back["town"][kept] == table["town"][kept]).all()
    assert back["town"][~kept].isna().all()
    if method == "lip-bern":
        assert (scaled.loc[~kept, scaled.columns != "x"] == 0.0).all(axis=None)


@pytest.mark.parametrize("method", METHODS)
def test_recovered_probabilities_are_the_shares_of_the_first_hundred_and_of_the_rest(table, method):
    scaler = LipschitzScaler(method).fit(table)
    given = scaler.natural_
    found = scaler.unscale(given)["town"]["probabilities"]
    shares = table["town"].value_counts(normalize=True)[frequent(table)].to_numpy()
    np.testing.assert_allclose(found, [*shares, 1.0 - shares.sum()], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_lazy_frame_and_a_loaded_scaler_give_the_same_features(table, method, tmp_path):
    scaler = LipschitzScaler(method).fit(table)
    scaled = scaler.transform(table)
    lazy = scaler.transform(pl.from_pandas(table).lazy()).collect()
    np.testing.assert_allclose(lazy.to_numpy(), scaled.to_numpy(), rtol=1e-12)
    scaler.save(tmp_path)
    pd.testing.assert_frame_equal(LipschitzScaler.load(tmp_path).transform(table), scaled)


def test_parts_of_a_table_merge_to_the_order_of_the_whole(table):
    whole = LipschitzScaler("lip-bern").fit(table)
    halves = [LipschitzScaler("lip-bern").fit(half) for half in (table[::2], table[1::2])]
    both = halves[0] + halves[1]
    counts = table["town"].value_counts()
    found = counts[both.schema_["town"].classes].to_numpy()
    np.testing.assert_array_equal(found, counts[whole.schema_["town"].classes].to_numpy())


def test_declared_categories_come_back_in_their_order(table):
    typed = table.astype({"town": "category"})
    scaler = LipschitzScaler("lip-bern").fit(typed)
    back = scaler.inverse_transform(scaler.transform(typed))
    assert list(back["town"].cat.categories) == list(typed["town"].cat.categories)
