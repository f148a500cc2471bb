"""Weights of log-likelihoods do for the columns that a method leaves unscaled what scales do for the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenly import LipschitzScaler, TableError, load_heart
from evenly.scaling import balancing_weights, smoothness_at
from evenly.scaling.methods import METHODS

HEART = load_heart().dropna()


@pytest.mark.parametrize("method", METHODS)
def test_every_weighted_column_has_the_targets_smoothness(method):
    """By the estimator on the scaled cells themselves; under the Gamma trick they need the noise that gammas expect."""
    scaler = LipschitzScaler(method, noise="drawn", random_state=0).fit(HEART)
    scaled = scaler.transform(HEART)
    for target in (None, 2.0):
        weights = scaler.balance_weights(target)
        assert list(weights) == list(HEART.columns)
        for column in scaler.columns_:
            found = 0.0
            for feature in column.features:
                family, cells = feature.likelihood, scaled[feature.name].to_numpy(float)
                found += smoothness_at(family, family.fit(family.statistics(cells).mean(axis=0)))
            drawn = METHODS[method].trick == "gamma" and column.column.kind != "positive"
            expected = pytest.approx(target or scaler.target_, rel=0.05 if drawn else 1e-8)
            assert weights[column.column.name] * found == expected


@pytest.mark.parametrize("method", ["lip-none", "lip-bern", "lip-gamma"])
def test_columns_that_reached_the_target_need_no_weight(method):
    scaler = LipschitzScaler(method).fit(HEART)
    reached = set(scaler.summary_.loc[scaler.summary_["outcome"] == "reached", "column"])
    weights = scaler.balance_weights()
    assert all(weights[name] == pytest.approx(1.0, rel=1e-8) for name in reached)
    assert all(weights[name] > 10.0 for name in ("sex", "thal") if name not in reached)


@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_columns_without_smoothness_weigh_1_and_ignored_ones_are_left_out():
    table = pd.DataFrame({"x": [0.5, 1.0, -2.0] * 9, "same": ["a"] * 27, "id": [f"note {i}" for i in range(27)]})
    scaler = LipschitzScaler("std-none", kinds={"id": "ignore", "same": "categorical"}).fit(table)
    weights = scaler.balance_weights()
    assert set(weights) == {"x", "same"}
    assert weights["same"] == 1.0
    np.testing.assert_array_equal(balancing_weights(np.array([0.0, np.nan, np.inf])), np.ones(3))


def test_a_target_that_is_none_is_refused():
    with pytest.raises(TableError, match=r"target = 0\.0, but expected a positive number"):
        LipschitzScaler("lip-none").fit(HEART).balance_weights(0.0)
