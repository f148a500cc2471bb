"""Estimates, distributions, scores and samples of an imputer, against SciPy."""

from __future__ import annotations

import copy
import math

import numpy as np
import pandas as pd
import pytest
from imputers import TABLE, numbers_table, quick
from scipy import stats

from evenly import Column, EvenlyWarning, Schema, TableError

pytestmark = pytest.mark.usefixtures("small_chunks")


def closed_form(usual: dict[str, np.ndarray], name: str, which: str) -> np.ndarray:
    """The estimate by SciPy."""
    if name == "real":
        return usual["mean"]
    if name == "positive":
        law = stats.lognorm(usual["log_std"], -usual.get("shift", 0.0), np.exp(usual["log_mean"]))
        mode = np.exp(usual["log_mean"] - usual["log_std"] ** 2) - usual.get("shift", 0.0)
        return {"mean": law.mean, "median": law.median, "mode": lambda: mode}[which]()
    law = stats.poisson(usual["rate"])
    return {"mean": law.mean, "median": law.median, "mode": lambda: np.floor(usual["rate"])}[which]()


@pytest.mark.parametrize("which", ["mean", "median", "mode"])
def test_estimates_are_those_of_the_distribution(explaining, which):
    fitted = explaining
    imputer = copy.copy(fitted).set_params(estimate=which)
    full, found = imputer.transform(TABLE), imputer.distribution(TABLE)
    for name in ("real", "positive", "count"):
        gone = TABLE[name].isna().to_numpy()
        low, high = float(TABLE[name].min()), float(TABLE[name].max())
        expected = np.clip(closed_form(found[name].parameters, name, which), low, high)
        expected = np.rint(expected) if name == "count" else expected
        np.testing.assert_allclose(full[name].to_numpy(float)[gone], expected[gone], rtol=1e-6)
    gone, likely = TABLE["class"].isna().to_numpy(), found["class"].probabilities.argmax(-1)
    assert full["class"][gone].tolist() == np.array(["a", "b", "c"])[likely][gone].tolist()
    gone = TABLE["binary"].isna().to_numpy()
    assert full["binary"][gone].tolist() == (found["binary"].probability > 0.5)[gone].tolist()
    gone, shares = TABLE["grade"].isna().to_numpy(), found["grade"].probabilities
    codes = (shares.cumsum(-1) < 0.5).sum(-1) if which == "median" else shares.argmax(-1)
    assert full["grade"].cat.codes[gone].tolist() == codes[gone].tolist()


def test_distributions_and_scores_are_those_of_scipy(explaining):
    fitted = explaining
    cells, scores = fitted.distribution(TABLE), fitted.log_likelihood(TABLE)
    assert list(cells) == list(scores) == list(TABLE)
    assert fitted.score(TABLE) == pytest.approx(np.mean(list(scores.values())))
    found = {name: one.parameters for name, one in cells.items()}
    assert all(len(value) == len(TABLE) for usual in found.values() for value in usual.values() if np.ndim(value))
    for name in ("class", "grade"):
        np.testing.assert_allclose(found[name]["probabilities"].sum(-1), 1.0)
    by_hand = stats.norm(found["real"]["mean"], found["real"]["std"]).logpdf(TABLE["real"])
    assert scores["real"] == pytest.approx(np.nanmean(by_hand), rel=1e-9)
    seen = TABLE["class"].notna().to_numpy()
    codes = np.array([["a", "b", "c"].index(one) for one in TABLE["class"][seen]])
    shares = np.clip(found["class"]["probabilities"][seen], 1e-6, 1.0 - 1e-6)
    shares = shares / shares.sum(-1, keepdims=True)
    assert scores["class"] == pytest.approx(np.log(shares[np.arange(len(codes)), codes]).mean(), rel=1e-6)


def test_predicted_cells_are_the_estimates_of_all(fitted):
    predicted, full = fitted.predict_cells(TABLE), fitted.transform(TABLE)
    assert predicted.shape == TABLE.shape
    gone = TABLE["real"].isna().to_numpy()
    np.testing.assert_array_equal(predicted[gone, 0], full["real"][gone])
    assert not np.array_equal(predicted[~gone, 0], full["real"][~gone])
    gone = TABLE["grade"].isna().to_numpy()
    assert full["grade"].cat.codes[gone].tolist() == predicted[gone, 5].tolist()


def test_the_mean_of_many_samples_is_that_of_the_distribution():
    """A mixture of one cluster starts at the columns' own normals; its parameters' posterior is narrow."""
    table = numbers_table()
    bounds = {"lower": -1e6, "upper": 1e6}  # instead of the observed range
    schema = Schema.model_validate({"columns": [{"name": name, "kind": "real", **bounds} for name in table]})
    imputer = quick(model="mixture", n_clusters=1, schema=schema).fit(table)
    usual, gone = imputer.distribution(table)["b"].parameters, table["b"].isna().to_numpy()
    mean, std = usual["mean"][gone][0], usual["std"][gone][0]
    assert (usual["mean"] == mean).all()
    assert (mean, std) == pytest.approx((table["b"].mean(), table["b"].std(ddof=0)), rel=0.1)
    drawn = np.concatenate([one["b"][gone] for one in imputer.sample(table, 400)])
    # Four standard errors; the parameters' draws, 0.01 around theirs, widen a cell's spread by less than a tenth.
    assert abs(drawn.mean() - mean) < 4.0 * 1.1 * std / math.sqrt(len(drawn))
    assert drawn.std() == pytest.approx(std, rel=4.0 / math.sqrt(2.0 * len(drawn)) + 0.02)
    assert stats.kstest((drawn - mean) / std, "norm").pvalue > 1e-3


def test_the_papers_preset():
    table = numbers_table().assign(c=np.where(np.arange(30) % 3 == 0, 0.0, np.random.default_rng(4).lognormal(size=30)))
    table.loc[25:, "c"] = np.nan
    imputer = quick(preset="paper", estimate="mean").fit(table)
    assert imputer.scaler_.bound == "paper"
    assert imputer.schema_["c"].clip == 1e-30
    full, usual = imputer.transform(table), imputer.distribution(table)["c"].parameters
    mode = np.exp(usual["log_mean"] - usual["log_std"] ** 2)
    np.testing.assert_allclose(full["c"][25:], mode[25:], rtol=1e-6)
    drawn = pd.concat(imputer.sample(table, 50))
    assert drawn["c"].max() > table["c"].max()  # cut to the support only
    assert drawn["c"].min() >= 0.0
    assert np.isfinite(drawn).all(axis=None)


@pytest.mark.parametrize("preset", [None, "paper"])
def test_an_open_end_of_the_support_is_never_imputed(preset):
    """A gamma of a shape below 1 has its mode at 0, where it has no density."""
    table = pd.DataFrame({"a": np.random.default_rng(0).gamma(0.3, size=30) + 1e-3, "b": np.arange(30.0) + 0.5})
    table.loc[:4, "a"] = np.nan
    schema = Schema(columns=[Column(name="a", kind="positive", likelihood="gamma", lower=0.0)])
    imputer = quick(schema=schema, estimate="mode", preset=preset).fit(table)
    assert (imputer.distribution(table)["a"].parameters["shape"][:5] < 1.0).any()
    assert (imputer.transform(table)["a"] > 0.0).all()


def test_declared_bounds_hold_and_whole_columns_stay_whole():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": 50.0 * rng.normal(size=30), "b": np.rint(5.0 * rng.normal(size=30))})
    table.loc[:9, "a"], table.loc[5:14, "b"] = np.nan, np.nan
    seen = table["a"].dropna()
    bounds = {"lower": float(seen.min()) - 30.0, "upper": float(seen.max()) + 1.0}
    columns = [{"name": "a", "kind": "real", **bounds}, {"name": "b", "kind": "real"}]
    schema = Schema.model_validate({"columns": columns})
    imputer = quick(schema=schema).fit(table)
    drawn = pd.concat(imputer.sample(table, 200))
    assert drawn["a"].between(*bounds.values()).all()
    assert drawn["a"].min() < seen.min()  # bounds count, where they are declared, rather than the observed range
    assert drawn["b"].between(table["b"].min(), table["b"].max()).all()
    assert (drawn["b"] == np.rint(drawn["b"])).all()
    with pytest.warns(EvenlyWarning, match="column 'a': 10 cells above the declared"):
        imputer.transform(table.fillna({"a": 1e4}))
    with pytest.raises(TableError, match="Column 'a': got values from"):
        imputer.set_params(strict=True).transform(table.fillna({"a": 1e4}))
