"""Where rows belong to latent classes, gammas of discrete values mislead: in a mixture of one's own, and in ours."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenly import EvenlyWarning, Imputer, LipschitzScaler
from evenly.imputation.settings import resolve
from evenly.models import PAPERS, SPECS
from evenly.scaling.methods import METHODS

SHARES, MEANS = (0.2, 0.7), (120.0, 150.0)
GAMMA = [name for name, method in METHODS.items() if method.trick == "gamma"]


@cache
def patients() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    second = rng.random(1000) < 0.5
    table = pd.DataFrame(
        {"pressure": rng.normal(np.where(second, *MEANS[::-1]), 12.0), "smoker": rng.random(1000) < 0.2 + 0.5 * second}
    )
    return table, np.where(second[:, None], [0.0, 1.0], [1.0, 0.0])


def run_em(
    scaler: LipschitzScaler, steps: int, *, weights: tuple[float, float] = (1.0, 1.0), own_shape: bool = False
) -> tuple[dict[str, dict[str, np.ndarray]], float]:
    """Fit two clusters to the scaled features, starting at the truth; returns their parameters and log-likelihood."""
    table, share = patients()
    cells = scaler.transform(table).to_numpy(float).T
    families = [column.features[0].likelihood for column in scaler.columns_]
    for _ in range(steps):
        joint, naturals = np.log(share.mean(0)) + np.zeros_like(share), {}
        for name, family, x, weight in zip(table, families, cells, weights, strict=True):
            mean = share.T @ family.statistics(x) / share.sum(0)[:, None]
            naturals[name] = np.asarray(family.fit(mean))
            if own_shape and name == "smoker":
                shape = scaler.natural_[name][0] + 1.0
                naturals[name] = np.stack([np.full(2, shape - 1.0), -shape / mean[:, 1]], axis=-1)
            joint += weight * np.stack([family.log_density(x, one) for one in naturals[name]], axis=-1)
        total = np.logaddexp.reduce(joint, axis=1)
        share = np.exp(joint - total[:, None])
    return scaler.unscale(naturals), float(total.sum())


def fitted(method: str) -> LipschitzScaler:
    return LipschitzScaler(method, kinds={"pressure": "real"}, noise="drawn", random_state=0).fit(patients()[0])


@pytest.mark.parametrize("method", METHODS)
def test_a_mixture_recovers_its_clusters_without_the_gamma_trick_and_splits_on_yes_and_no_with_it(method):
    found, log_likelihood = run_em(fitted(method), 60)
    shares, means = found["smoker"]["probability"], found["pressure"]["mean"]
    if method in GAMMA:
        np.testing.assert_allclose(shares, (0.0, 1.0), atol=0.01)
        assert abs(means[0] - MEANS[0]) > 5.0
        assert abs(means[1] - MEANS[1]) > 5.0
        assert log_likelihood > run_em(fitted(method), 1)[1] + 1000.0  # the wrong clusters are much more likely
    else:
        np.testing.assert_allclose(shares, SHARES, atol=0.04)
        np.testing.assert_allclose(means, MEANS, atol=2.0)


def test_gammas_of_the_columns_own_shape_recover_the_clusters():
    found, _ = run_em(fitted("lip-gamma"), 60, own_shape=True)
    np.testing.assert_allclose(found["smoker"]["probability"], SHARES, atol=0.04)
    np.testing.assert_allclose(found["pressure"]["mean"], MEANS, atol=2.0)


def test_weights_that_equal_smoothness_mislead_a_mixture_as_gammas_do():
    scaler = fitted("lip-none")
    found, _ = run_em(scaler, 60, weights=tuple(scaler.balance_weights().values()))
    np.testing.assert_allclose(found["smoker"]["probability"], (0.0, 1.0), atol=0.01)


# --- the imputer's mixture ------------------------------------------------------------------------------------------


def scale(*arguments: str, **settings: Any) -> LipschitzScaler:
    """Scale the table as an imputer does before it trains."""
    return resolve(Imputer(*arguments, random_state=0, **settings)).fit_scaler(patients()[0])


def test_the_mixture_is_the_model_of_latent_classes_and_has_no_gammas_by_default():
    assert [name for name, spec in SPECS.items() if spec.latent_classes] == ["mixture"]
    assert all(METHODS[spec.method].trick != "gamma" for spec in SPECS.values() if spec.latent_classes)
    assert resolve(Imputer("mixture")).method == "lip-none"
    assert {resolve(Imputer(name, preset="paper")).method for name in PAPERS} == {"lip-gamma"}


def test_the_mixture_warns_of_gammas_of_discrete_columns():
    with pytest.warns(EvenlyWarning, match=r"mixture under lip-gamma: 'smoker': .* method = 'lip-none' has no such"):
        scale("mixture", "lip-gamma")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scale("mixture")
        scale("mixture", "lip-gamma", kinds={"smoker": "ignore"})
        scale("mixture", preset="paper")
        scale("vae", "lip-gamma")
