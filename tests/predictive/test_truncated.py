"""Distributions cut at limits: against SciPy's truncated normal, and at atoms and far limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenly.likelihoods import get_likelihood
from evenly.predictive import BinnedPredictive, ParametricPredictive, TruncatedPredictive, make_bins
from evenly.tables import Column

LOW = np.array([-np.inf, 0.0, -1.0, 1.0, -np.inf])
HIGH = np.array([np.inf, np.inf, 0.5, 1.5, -1.0])


def cut(low: np.ndarray, high: np.ndarray) -> TruncatedPredictive:
    n = len(low)
    parameters = {"mean": np.zeros(n), "std": np.ones(n)}
    return TruncatedPredictive(
        ParametricPredictive(Column(name="a", kind="real"), get_likelihood("normal"), parameters), low, high
    )


def test_means_and_quantiles_are_those_of_a_truncated_normal():
    found, expected = cut(LOW, HIGH), stats.truncnorm(LOW, HIGH)
    np.testing.assert_allclose(found.mean(), expected.mean(), atol=0.02)
    for level in (0.05, 0.3, 0.5, 0.9):
        np.testing.assert_allclose(found.quantile(level), expected.ppf(level), atol=0.02)


def test_log_probabilities_are_those_of_a_truncated_normal():
    values = np.array([0.3, 0.3, 0.3, 1.2, -1.2])
    np.testing.assert_allclose(cut(LOW, HIGH).log_prob(values), stats.truncnorm(LOW, HIGH).logpdf(values), atol=0.02)
    assert (cut(LOW[1:4], HIGH[1:4]).log_prob(np.full(3, -9.0)) == -np.inf).all()


def test_draws_are_those_of_a_truncated_normal():
    drawn = cut(np.zeros(4000), np.full(4000, np.inf)).sample(np.random.default_rng(0))
    assert stats.kstest(drawn, stats.truncnorm(0.0, np.inf).cdf).pvalue > 1e-3
    rare = cut(np.full(4000, 2.0), np.full(4000, 2.5)).sample(np.random.default_rng(0))  # hardly a draw is inside
    assert stats.kstest(rare, stats.truncnorm(2.0, 2.5).cdf).pvalue > 1e-4


def test_beyond_the_distribution_the_nearest_end_is_certain():
    found = cut(np.array([50.0, -70.0]), np.array([60.0, -50.0]))
    for values in (found.mean(), found.mode(), found.quantile(0.9), found.sample(np.random.default_rng(0))):
        np.testing.assert_array_equal(values, [50.0, -50.0])


def test_an_atom_at_a_limit_is_inside():
    bins = make_bins(np.array([0.0] * 50 + [1.0, 2.0, 3.0, 4.0] * 5))
    shares = np.bincount(bins.codes(np.array([0.0] * 50 + [1.0, 2.0, 3.0, 4.0] * 5)).astype(int), minlength=len(bins))
    counts = BinnedPredictive(Column(name="n", kind="count"), bins, np.array([0.7]), shares[None] / shares.sum())
    found = TruncatedPredictive(counts, np.array([0.0]), np.array([1.0]))
    assert found.quantile(0.5).item() == pytest.approx(0.0, abs=1e-9)
    assert TruncatedPredictive(counts, np.array([0.5]), np.array([9.0])).quantile(0.01).item() >= 0.5


def test_selected_and_joined_rows_keep_their_limits():
    found = cut(LOW, HIGH)
    parts = found.take(np.array([1, 3])).append([found.take(np.array([2]))])
    np.testing.assert_allclose(parts.mean(), found.mean()[[1, 3, 2]])
