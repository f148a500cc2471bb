"""The simulation of pooled intervals: its analysis is least squares, and its summary counts what it should."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "docs")]
pooling, make_pooling = import_module("pooling"), import_module("make_pooling")

RNG = np.random.default_rng


def test_the_analysis_is_least_squares_and_its_truth_that_of_the_tables():
    table = np.concatenate([pooling.simulate(RNG(seed)) for seed in range(50)])
    found, errors = pooling.analyse(table)
    least = sm.OLS(table[:, 0], sm.add_constant(table[:, 1:4])).fit()
    np.testing.assert_allclose(found, least.params, rtol=1e-9)
    np.testing.assert_allclose(errors, least.bse, rtol=1e-9)
    assert (np.abs(found - pooling.TRUTH) < 3.5 * errors).all()


@pytest.mark.parametrize("mechanism", pooling.MECHANISMS)
def test_a_share_of_four_columns_is_hidden_and_only_mar_depends_on_the_fifth(mechanism):
    table = np.concatenate([pooling.simulate(RNG(seed)) for seed in range(20)])
    gone = np.isnan(pooling.hide(table, mechanism, RNG(1)))
    assert not gone[:, 4].any()
    np.testing.assert_allclose(gone[:, :4].mean(0), pooling.SHARE, atol=0.02)
    high = table[:, 4] > np.median(table[:, 4])
    ratio = gone[high, :4].mean() / gone[~high, :4].mean()
    assert (ratio > 1.5) == (mechanism == "mar")


def test_complete_cases_are_biased_only_where_gaps_depend_on_the_outcome():
    runs = [
        pooling.repeat(mechanism, i, method)
        for mechanism in ("mcar", "mar")
        for i in range(40)
        for method in ("complete", "complete cases")
    ]
    found = {(one["mechanism"], one["method"]): one for one in pooling.summarize(runs)}
    assert found["mcar", "complete"]["width"] == 1.0
    assert 0.9 < found["mcar", "complete"]["covered"] < 1.0
    assert found["mcar", "complete cases"]["covered"] > 0.9
    assert found["mar", "complete cases"]["covered"] < 0.88
    assert found["mar", "complete cases"]["bias"][0] < -2.0
    text = make_pooling.page("<!-- coverage -->\nold\n<!-- end -->", list(found.values()))
    assert "| at random | the complete data | 40 |" in text
    assert "old" not in text


def test_every_method_has_a_label():
    assert set(make_pooling.LABELS) == {*pooling.ALONE, *pooling.METHODS}
