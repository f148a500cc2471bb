"""Bins: they hold every value, keep mean and spread, and their distribution is what the definitions say."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from evenly.predictive.bins import Bins, make_bins

RNG = np.random.default_rng(0)
COLUMNS = {
    "smooth": RNG.normal(3.0, 2.0, 3000),
    "zeros and a heavy tail": np.where(RNG.random(3000) < 0.6, 0.0, RNG.lognormal(0.0, 2.0, 3000)),
    "rounded": RNG.normal(50.0, 9.0, 3000).round(),
    "counts": RNG.poisson(2.0, 3000).astype(float),
    "few cells": np.array([1.0, 5.0, 2.0]),
    "two values": np.array([0.0, 1.0, 1.0, 0.0]),
    "huge": RNG.normal(size=200) * 1e300,
    "tiny": RNG.normal(size=200) * 1e-300,
    "far": 1e9 + RNG.normal(size=500),
}


@pytest.fixture(params=list(COLUMNS))
def column(request) -> np.ndarray:
    return COLUMNS[request.param]


def shares(bins: Bins, n: int) -> np.ndarray:
    return np.tile(bins.share, (n, 1))


def test_bins_partition_the_observed_values(column):
    bins = make_bins(column)
    codes = bins.codes(column).astype(int)
    low, high = np.array(bins.low), np.array(bins.high)
    assert ((low[codes] <= column) & (column <= high[codes])).all()
    assert (high[:-1] < low[1:]).all()
    np.testing.assert_allclose(np.bincount(codes, minlength=len(bins)) / len(column), bins.share)


def test_the_columns_own_shares_give_back_its_mean(column):
    bins = make_bins(column)
    unit = np.abs(column).max()
    np.testing.assert_allclose(bins.means(shares(bins, 1))[0] / unit, (column / unit).mean(), atol=1e-12)


def test_quantiles_of_the_columns_own_shares_are_near_its_own(column):
    bins = make_bins(column)
    for level in (0.05, 0.3, 0.5, 0.9):
        found = bins.quantiles(shares(bins, 1), level)[0]
        # The quantile lies in the bin of the true one: bins are known only up to their ends.
        at = int(bins.codes(np.array([np.quantile(column, level, method="inverted_cdf")]))[0])
        assert bins.low[max(at - 1, 0)] <= found <= bins.high[min(at + 1, len(bins) - 1)]
    assert bins.quantiles(shares(bins, 1), 0.0)[0] == column.min()
    assert bins.quantiles(shares(bins, 1), 1.0)[0] == column.max()


def test_ranks_of_draws_are_uniform_and_quantiles_undo_them(column):
    bins, n = make_bins(column), 4000
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.ones(len(bins)), n)
    drawn = bins.quantiles(probabilities, rng.random(n))
    assert stats.kstest(bins.ranks(probabilities, drawn, rng), "uniform").pvalue > 1e-3
    if bins.whole:
        assert (drawn == np.rint(drawn)).all()


def test_a_wrong_distribution_has_ranks_that_are_not_uniform():
    column = COLUMNS["smooth"]
    bins = make_bins(column)
    narrow = np.zeros((len(column), len(bins)))
    narrow[:, len(bins) // 2] = 1.0
    ranks = bins.ranks(narrow, column, np.random.default_rng(0))
    assert stats.kstest(ranks, "uniform").pvalue < 1e-6


def total_density(bins: Bins, probabilities: np.ndarray) -> float:
    """Sum or integrate the density from far below the smallest to far above the largest value."""
    low, high = np.array(bins.low), np.array(bins.high)
    beyond = high[-1] - low[0]

    def density(at: np.ndarray) -> np.ndarray:
        return np.exp(bins.log_density(np.tile(probabilities, (len(at), 1)), at))

    if bins.whole:
        return float(density(np.arange(low[0] - 10.0, high[-1] + 11.0)).sum())
    # The density may change at a bin's end, half a bin beyond it, and in the middle between two.
    half = 0.5 * (high - low)
    places = [low, high, low - half, high + half, 0.5 * (low[1:] + high[:-1]), [low[0] - beyond, high[-1] + beyond]]
    ends = np.unique(np.concatenate(places))
    smooth = density(0.5 * (ends[1:] + ends[:-1])) @ np.diff(ends)
    return float(smooth + density(low[low == high]).sum())


@pytest.mark.parametrize("name", ["smooth", "zeros and a heavy tail", "counts", "rounded", "far", "few cells"])
def test_the_density_sums_to_one(name):
    bins = make_bins(COLUMNS[name])
    probabilities = np.random.default_rng(2).dirichlet(np.ones(len(bins)))
    assert total_density(bins, probabilities) == pytest.approx(1.0, abs=1e-6)


def test_numbers_that_no_bin_holds_have_next_to_no_density():
    sparse = make_bins(np.repeat([0.0, 100.0, 1000.0], 50))
    apart = make_bins(np.concatenate([np.linspace(0.0, 1.0, 200), np.linspace(10.0, 11.0, 200)]))
    for bins, values in ((sparse, [-1.0, 50.0, 100.5, 2000.0]), (apart, [-3.0, 5.0, 12.0])):
        found = bins.log_density(shares(bins, len(values)), np.array(values))
        assert (found < np.log(1e-9)).all()
    assert total_density(sparse, np.array(sparse.share)) == pytest.approx(1.0, abs=1e-6)
    assert total_density(apart, np.array(apart.share)) == pytest.approx(1.0, abs=1e-6)


def test_new_values_between_two_bins_are_as_likely_as_their_neighbours():
    """A few per cent of new values fall there: with next to no density they would dominate the score."""
    rng = np.random.default_rng(0)
    bins, new = make_bins(rng.normal(size=1000)), rng.uniform(-1.5, 1.5, 2000)
    found = bins.log_density(shares(bins, 2000), new)
    assert found.mean() == pytest.approx(stats.norm.logpdf(new).mean(), abs=0.1)


def test_the_spread_is_that_of_draws():
    bins = make_bins(COLUMNS["zeros and a heavy tail"])
    probabilities = np.tile(np.random.default_rng(3).dirichlet(np.ones(len(bins))), (200_000, 1))
    drawn = bins.quantiles(probabilities, np.random.default_rng(4).random(200_000))
    # Uniform inside of a bin, around its middle rather than its mean: the widest of them decides how far apart.
    assert bins.stds(probabilities[:1])[0] == pytest.approx(drawn.std(), rel=0.05)


@pytest.mark.parametrize("unit", [1.0, 1000.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_mode_is_where_values_lie_densest(seed, unit):
    """Whatever the widest and the narrowest bin happen to be; also of whole numbers of which no two are equal."""
    rng = np.random.default_rng(seed)
    for drawn, mode in ((rng.normal(size=2000), 0.0), (rng.gamma(9.0, 1.0 / 3.0, 2000), 8.0 / 3.0)):
        bins = make_bins(drawn if unit == 1.0 else np.rint(unit * drawn))
        found = bins.modes(shares(bins, 2))
        np.testing.assert_allclose(found / unit, mode, atol=0.45)
        assert not bins.whole or (found == np.rint(found)).all()


def test_the_mode_of_values_that_repeat_is_the_most_probable_one():
    counts = np.repeat(np.arange(40.0), (1000 * stats.poisson(20.5).pmf(np.arange(40))).astype(int) + 1)
    assert make_bins(counts).modes(shares(make_bins(counts), 1)).tolist() == [20.0]
    stars = make_bins(np.repeat([0.5, 1.0, 1.5, 4.0, 5.0], 10))
    probabilities = np.array([[0.25, 0.25, 0.2, 0.3, 0.0], [0.1, 0.2, 0.1, 0.1, 0.5]])
    assert stars.modes(probabilities).tolist() == [4.0, 5.0]
    visits = np.concatenate([np.zeros(200), np.random.default_rng(0).normal(50.0, 9.0, 800)])
    for column in (visits, visits.round()):
        assert make_bins(column).modes(shares(make_bins(column), 1)).tolist() == [0.0]


def test_the_mode_lies_among_the_values(column):
    bins = make_bins(column)
    found = bins.modes(np.random.default_rng(0).dirichlet(np.full(len(bins), 0.2), 50))
    assert ((found >= column.min()) & (found <= column.max())).all()
    sure = bins.modes(np.eye(len(bins)))
    assert ((sure >= bins.low) & (sure <= bins.high)).all()


@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0], [-7.0, 3.0, 1e9]])
def test_a_whole_number_that_is_sure_has_no_spread(values):
    bins = make_bins(np.array(values * 10))
    assert bins.stds(np.eye(3)).tolist() == [0.0, 0.0, 0.0]
    assert bins.stds(np.array([[0.5, 0.0, 0.5]]))[0] == pytest.approx(np.std([values[0], values[-1]]))


def test_whole_numbers_in_one_bin_have_the_spread_of_equally_probable_ones():
    bins = Bins([1.0], [6.0], [3.5], [1.0], whole=True)
    assert bins.stds(np.ones((1, 1)))[0] == pytest.approx(np.std(np.arange(1.0, 7.0)))


def test_spreads_far_from_zero_keep_their_digits():
    rng = np.random.default_rng(0)
    column = rng.normal(size=3000)
    assert make_bins(column + 1e9).stds(shares(make_bins(column + 1e9), 1))[0] == pytest.approx(column.std(), rel=0.05)


def test_missing_values_stay_missing_and_values_beyond_the_ends_fall_into_the_last_bins():
    bins = make_bins(COLUMNS["smooth"])
    codes = bins.codes(np.array([np.nan, -1e9, 1e9]))
    assert np.isnan(codes[0])
    assert codes[1:].tolist() == [0.0, len(bins) - 1.0]
    assert np.isnan(bins.log_density(shares(bins, 1), np.array([np.nan])))[0]


def test_a_frequent_value_is_a_bin_of_its_own():
    bins = make_bins(COLUMNS["zeros and a heavy tail"])
    assert (bins.low[0], bins.high[0]) == (0.0, 0.0)
    assert bins.share[0] == pytest.approx((COLUMNS["zeros and a heavy tail"] == 0.0).mean())


def test_bins_come_back_from_what_a_file_holds():
    bins = make_bins(COLUMNS["counts"])
    assert Bins(**asdict(bins)) == bins


def test_each_of_few_levels_has_a_bin_however_rare():
    """Years of schooling: most have 12 or 16, a few 5 or 7."""
    years = np.repeat([5.0, 7.0, 8.0, 11.0, 12.0, 14.0, 16.0, 17.0], [1, 2, 3, 9, 400, 40, 200, 8])
    bins = make_bins(years)
    assert list(bins.low) == list(bins.high) == np.unique(years).tolist()
    np.testing.assert_allclose(bins.share, np.unique(years, return_counts=True)[1] / len(years))
    seldom = make_bins(np.repeat(np.arange(25.0), 2), n_quantiles=4, n_widths=4)  # too few cells to be levels
    assert len(seldom) < 12
    assert len(make_bins(np.repeat(np.arange(31.0), 20), n_quantiles=4, n_widths=4)) < 31
