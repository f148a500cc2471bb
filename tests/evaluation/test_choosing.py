"""The likelihood of a column is chosen by cells that its fit did not see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenly import LipschitzScaler, Schema, TableError, choose_likelihoods
from evenly.evaluation.choosing import candidates
from evenly.tables.schema import Column

DRAWN: dict[str, Any] = {
    "log-normal": stats.lognorm(0.8, scale=3.0),
    "gamma": stats.gamma(1.7, scale=20.0),
    "inverse-gamma": stats.invgamma(2.5, scale=0.3),
    "inverse-gaussian": stats.invgauss(2.0, scale=1.5),
    "rayleigh": stats.rayleigh(scale=5.0),
    "normal": stats.norm(50.0, 10.0),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_likelihood_that_a_column_was_drawn_from_is_chosen(name: str) -> None:
    table = pd.DataFrame({"x": DRAWN[name].rvs(4000, random_state=1)})
    found = choose_likelihoods(table, kinds={"x": "positive"})
    assert found.likelihoods.get("x", "log-normal") == name
    assert max(found.scores["x"], key=lambda one: found.scores["x"][one]) == name


@pytest.mark.parametrize(("name", "fit"), [("gamma", stats.gamma), ("log-normal", stats.lognorm)])
def test_a_score_is_the_log_likelihood_of_cells_that_were_not_fitted(name: str, fit: Any) -> None:
    """Against SciPy's own fit of the same parts."""
    x = DRAWN["gamma"].rvs(60, random_state=2)
    parts = np.random.RandomState(5).permutation(60) % 5
    expected = []
    for part in range(5):
        usual = fit.fit(x[parts != part], floc=0.0)
        expected.append(fit.logpdf(x[parts == part], *usual))
    found = choose_likelihoods(pd.DataFrame({"x": x}), random_state=5).scores["x"]
    assert found[name] == pytest.approx(np.concatenate(expected).mean(), rel=1e-4)  # SciPy stops at 1e-4 or so


def test_counts_that_vary_too_much_are_no_poisson() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"calm": rng.poisson(30.0, 1000), "wild": rng.negative_binomial(2, 0.04, 1000)})
    found = choose_likelihoods(table)
    assert found.likelihoods == {"wild": "negative-binomial"}
    assert choose_likelihoods(table, kinds={"wild": "count"}).likelihoods == found.likelihoods
    declared = Schema(columns=[Column(name="wild", kind="count")])
    assert choose_likelihoods(table, schema=declared).likelihoods == found.likelihoods
    assert list(choose_likelihoods(table, schema=declared).scores["wild"]) == ["poisson", "negative-binomial"]


@pytest.mark.parametrize(("size", "share"), [(1.0, 0.25), (0.5, 0.25), (5.0, 0.2)])
def test_a_density_is_not_favoured_over_the_probabilities_that_counts_were_drawn_from(
    size: float, share: float
) -> None:
    """Where counts are small, a density at whole numbers may sum to more than 1."""
    x = stats.nbinom(size, share).rvs(2000, random_state=3)
    found = choose_likelihoods(pd.DataFrame({"x": x}))
    truth = stats.nbinom(size, share).logpmf(x)
    assert max(found.scores["x"].values()) < truth.mean() + 2.0 * truth.std() / np.sqrt(len(x)) / 5.0
    assert found.likelihoods["x"] == "negative-binomial"


def test_the_choice_is_what_the_scaler_takes() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.gamma(2.0, 3.0, 500), 7: rng.gamma(0.9, 3.0, 500), "c": list("xy") * 250})
    table.loc[::9, "a"] = np.nan
    found = choose_likelihoods(table)
    assert set(found.scores) == {"a", 7}
    scaler = LipschitzScaler(likelihoods=found.likelihoods).fit(table)
    assert [one.likelihood for one in scaler.schema_.columns] == ["gamma", found.likelihoods[7], "bernoulli"]
    assert str(found).splitlines()[0].split() == ["column", "chosen", *candidates("positive")]


def test_the_units_of_a_column_do_not_matter() -> None:
    x = DRAWN["gamma"].rvs(800, random_state=3)
    scores = choose_likelihoods(pd.DataFrame({"x": x})).scores["x"]
    large = choose_likelihoods(pd.DataFrame({"x": 1e6 * x})).scores["x"]
    assert {name: score + np.log(1e6) for name, score in large.items()} == pytest.approx(scores, rel=1e-6)


@pytest.mark.parametrize(
    "cells",
    [[1.0] * 30, [np.nan] * 30, list("abc") * 10, pd.date_range("2020", periods=30), [1.5, 2.5]],
    ids=["constant", "missing", "texts", "dates", "few"],
)
def test_columns_without_a_choice_are_left_alone(cells: Any) -> None:
    found = choose_likelihoods(pd.DataFrame({"x": cells}))
    assert (found.likelihoods, found.scores) == ({}, {})


def test_a_likelihood_without_a_fit_is_not_chosen() -> None:
    table = pd.DataFrame({"x": [1e300, 1e-300] * 15})
    found = choose_likelihoods(table)
    assert not any(np.isnan(score) for score in found.scores["x"].values())
    assert np.isfinite(found.scores["x"][found.likelihoods.get("x", "log-normal")])


def test_zeros_are_compared_as_each_likelihood_takes_them() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random(600) < 0.3, 0.0, rng.gamma(2.0, 3.0, 600).round(1))
    scores = choose_likelihoods(pd.DataFrame({"x": x}), kinds={"x": "positive"}).scores["x"]
    assert all(np.isfinite(score) for score in scores.values())


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(TableError, match="'y'"):
        choose_likelihoods(pd.DataFrame({"x": [1.0, 2.0]}), kinds={"y": "real"})
