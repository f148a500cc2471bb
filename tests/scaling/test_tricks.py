"""The tricks: discrete columns become continuous features and come back, exactly and without a draw in fitting.

References are SciPy's quadrature and distributions, and the paper's worked example written out by hand.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.special as special
import scipy.stats as stats
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from sizes import examples

from evenly.likelihoods.continuous import GAMMA, NORMAL
from evenly.likelihoods.discrete import BERNOULLI, POISSON, Categorical
from evenly.likelihoods.registry import get_likelihood
from evenly.scaling.recover import recover_column
from evenly.scaling.scaler import LipschitzScaler
from evenly.scaling.statistics import Moments, measure_counts
from evenly.scaling.tricks import (
    NOISE_MEAN,
    Feature,
    FeatureStatistics,
    _noise_quantile,
    draw_noise,
    feature_statistics,
    feature_values,
    features_of,
    undo_binary,
    undo_classes,
    undo_mean,
    undo_moments,
    undo_values,
)
from evenly.tables import BLOCK
from evenly.tables.schema import Column

property_test = settings(deadline=None, derandomize=True, database=None, max_examples=examples(100))
NOISE = stats.beta(1.1, 30.0)
COUNT = Feature(0, "n", GAMMA, "gamma")


def noise_mean_of(function: Any) -> float:
    """Return the mean of a function of the noise: SciPy's quadrature with the density's powers as its weight."""
    # x^0.1 (1 - x)^29, which plain quadrature would stumble over at 0.
    total, _ = quad(function, 0.0, 1.0, weight="alg", wvar=(0.1, 29.0), epsabs=0.0, epsrel=1e-13)
    return float(total / special.beta(1.1, 30.0))


def gamma_by_hand(mean: float, mean_log: float) -> tuple[float, float]:
    """Return shape and rate of the gamma with these mean statistics."""
    gap = math.log(mean) - mean_log
    shape = brentq(lambda a: math.log(a) - special.digamma(a) - gap, 0.1 / gap, 2.0 / gap, xtol=1e-300, rtol=1e-14)
    return shape, shape / mean


def natural_in_units(of: FeatureStatistics) -> np.ndarray:
    """Return the fitted natural parameters of a feature as it is, unscaled."""
    return np.asarray(GAMMA.scale_natural(of.own.natural(GAMMA), np.asarray(of.own.pivot.unit)))


def spread_of(location: Moments | None) -> tuple[float, float]:
    assert location is not None
    (center, unit), (first, second) = location.pivot, location.means
    return center + unit * first, unit * math.sqrt(second - first * first)


# --- statistics without a draw --------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts",
    [{0: 1}, {0: 7, 1: 3}, {0: 1, 1: 5, 2: 4, 9: 1}, {1000: 2, 1003: 5}, {10**6: 1, 10**6 + 4000: 1}],
    ids=str,
)
def test_feature_statistics_are_those_of_the_values_plus_one_plus_noise(counts: dict[int, int]) -> None:
    n = sum(counts.values())
    column = measure_counts(np.repeat(list(counts), list(counts.values())).astype(float))
    of = feature_statistics(COUNT, column)
    shares = {k: c / n for k, c in counts.items()}
    mean = math.fsum(share * (k + 1.0 + 1.1 / 31.1) for k, share in shares.items())
    variance = math.fsum(share * ((k + 1.0 + 1.1 / 31.1 - mean) ** 2 + NOISE.var()) for k, share in shares.items())
    assert spread_of(of.location) == pytest.approx((mean, math.sqrt(variance)), rel=1e-12)
    # As excesses u - log(1 + u) of the relative distance from the mean, which do not cancel.
    gap = math.fsum(
        share * noise_mean_of(lambda e, k=k: _excess((k + 1.0 + e - mean) / mean)) for k, share in shares.items()
    )
    shape, rate = np.asarray(GAMMA.to_usual(natural_in_units(of)))
    assert shape / rate == pytest.approx(mean, rel=1e-13)
    assert math.log(shape) - special.digamma(shape) == pytest.approx(gap, rel=1e-9)


def _excess(u: float) -> float:
    """Return u - log(1 + u), by its series where it would cancel."""
    if abs(u) < 1e-3:
        return u * u * (1 / 2 - u * (1 / 3 - u * (1 / 4 - u * (1 / 5 - u / 6))))
    return u - math.log1p(u)


def test_drawn_noise_has_these_statistics_in_the_limit() -> None:
    rng = np.random.default_rng(2)
    counts = rng.poisson(3.0, 400_000).astype(float)
    column = measure_counts(counts)
    natural = natural_in_units(feature_statistics(COUNT, column))
    drawn = feature_values(COUNT, counts, seed=5)
    # Of the same values, noise is all that differs: compare what it adds to x and to log x.
    shape, rate = np.asarray(GAMMA.to_usual(natural))
    for found, limit, spread in (
        (drawn.mean(), shape / rate, NOISE.std()),
        (np.log(drawn).mean(), special.digamma(shape) - math.log(rate), np.log1p(NOISE.rvs(10_000, rng)).std()),
    ):
        assert abs(found - limit) < 5.0 * spread / math.sqrt(len(counts))


def test_fitting_needs_no_draw() -> None:
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.poisson(4.0, 300), rng.integers(0, 3, 300), rng.integers(0, 2, 300)])
    kinds = {0: "count", 1: "categorical", 2: "binary"}
    one, two = (LipschitzScaler(kinds=kinds, noise="drawn", random_state=seed).fit(table) for seed in (1, 2))
    assert one.summary_["scale"].to_list() == two.summary_["scale"].to_list()
    assert (one.transform(table) != two.transform(table)).all()


def test_features_of_classes_count_their_class_against_the_rest() -> None:
    codes = np.array([0.0, 2.0, 2.0, 1.0, 2.0, np.nan])
    column = measure_counts(codes)
    for code, share in enumerate((0.2, 0.2, 0.6)):
        gamma = feature_statistics(Feature(0, f"c={code}", GAMMA, "gamma", code), column)
        assert float(undo_binary(natural_in_units(gamma))) == pytest.approx(share, rel=1e-12)
        bern = feature_statistics(Feature(0, f"c={code}", BERNOULLI, "bern", code), column)
        assert bern.n == 5
        assert bern.own.means.tolist() == pytest.approx([share], rel=1e-15)


def test_a_column_without_cells_has_features_of_none() -> None:
    nothing = measure_counts(np.full(3, np.nan))
    for feature in (COUNT, Feature(0, "n", POISSON), Feature(0, "c=1", BERNOULLI, "bern", 1)):
        assert feature_statistics(feature, nothing).n == 0


# --- which features there are ---------------------------------------------------------------------


COLUMNS = {
    "real": Column(name="a", kind="real", likelihood="normal"),
    "count": Column(name="a", kind="count", likelihood="poisson"),
    "binary": Column(name="a", kind="binary", likelihood="bernoulli", classes=["no", "yes"]),
    "categorical": Column(name="a", kind="categorical", likelihood="categorical", classes=["r", "g", "b"]),
    "ordinal": Column(name="a", kind="ordinal", likelihood="categorical", classes=[1, 2, 3]),
}
FEATURES = [
    ("real", "none", [("a", "normal")]),
    ("real", "bern", [("a", "normal")]),
    ("real", "gamma", [("a", "normal")]),
    ("count", "none", [("a", "poisson")]),
    ("count", "bern", [("a", "poisson")]),
    ("count", "gamma", [("a", "gamma")]),
    ("binary", "none", [("a", "bernoulli")]),
    ("binary", "bern", [("a", "bernoulli")]),
    ("binary", "gamma", [("a", "gamma")]),
    ("categorical", "none", [("a", "categorical")]),
    ("categorical", "bern", [("a=r", "bernoulli"), ("a=g", "bernoulli"), ("a=b", "bernoulli")]),
    ("categorical", "gamma", [("a=r", "gamma"), ("a=g", "gamma"), ("a=b", "gamma")]),
    ("ordinal", "gamma", [("a=1", "gamma"), ("a=2", "gamma"), ("a=3", "gamma")]),
]


@pytest.mark.parametrize(("kind", "trick", "expected"), FEATURES, ids=[f"{k} {t}" for k, t, _ in FEATURES])
def test_each_kind_gets_its_features(kind: str, trick: Any, expected: list[tuple[str, str]]) -> None:
    column = COLUMNS[kind]
    family = get_likelihood(str(column.likelihood), 3)
    features = features_of(4, column, family, trick)
    assert [(one.name, one.likelihood.name) for one in features] == expected
    assert {one.column for one in features} == {4}
    assert [one.code for one in features] == ([0, 1, 2] if len(expected) == 3 else [None])


# --- noise ----------------------------------------------------------------------------------------


@property_test
@given(st.integers(0, 2**31 - 2), st.integers(0, 300), st.integers(0, 60), st.text(max_size=8))
@example(0, 1, 5, "a")
@example(2**31 - 2, 3, 1, "")
def test_a_row_has_the_same_noise_in_every_batch(seed: int, start: int, n: int, name: str) -> None:
    feature = Feature(0, name, GAMMA, "gamma")
    whole = draw_noise(seed, feature, 400)
    assert draw_noise(seed, feature, n, start=start).tobytes() == whole[start : start + n].tobytes()


def test_batches_join_across_blocks() -> None:
    whole = draw_noise(3, COUNT, 2 * BLOCK + 10)
    for start in (BLOCK - 3, BLOCK, BLOCK + 1, 2 * BLOCK + 2):
        assert draw_noise(3, COUNT, 8, start=start).tobytes() == whole[start : start + 8].tobytes()


def test_features_and_seeds_have_noise_of_their_own() -> None:
    n = 20_000
    drawn = [draw_noise(seed, Feature(0, name, GAMMA, "gamma"), n) for seed in (0, 1, 2) for name in ("a", "b", "a=b")]
    together = np.corrcoef(drawn)
    others = together[~np.eye(len(drawn), dtype=bool)]
    assert np.abs(others).max() < 5.0 / math.sqrt(n)


def test_noise_is_that_of_the_papers_beta() -> None:
    noise = draw_noise(11, COUNT, 300_000)
    assert stats.kstest(noise, NOISE.cdf).pvalue > 0.01
    assert ((noise > 0.0) & (noise < 1.0)).all()
    assert abs(noise.mean() - 1.1 / 31.1) < 5.0 * NOISE.std() / math.sqrt(len(noise))
    assert pytest.approx(NOISE.mean(), rel=1e-15) == NOISE_MEAN
    # Both tails, where a table of quantiles is at its worst: as many draws there as there should be.
    for level in (1e-4, 1e-3, 0.999, 0.9999):
        below = float((noise < NOISE.ppf(level)).mean())
        assert abs(below - level) < 5.0 * math.sqrt(level * (1.0 - level) / len(noise))
    # One draw in a billion lies beyond these, at either end.
    assert NOISE.ppf(1e-9) < noise.min()
    assert noise.max() < NOISE.isf(1e-9)


def test_missing_cells_stay_missing() -> None:
    codes = np.array([1.0, np.nan, 0.0])
    for feature in (COUNT, Feature(0, "c=1", GAMMA, "gamma", 1), Feature(0, "c=1", BERNOULLI, "bern", 1)):
        values = feature_values(feature, codes, seed=0)
        assert np.isnan(values).tolist() == [False, True, False]
        assert np.isnan(undo_values(feature, values)).tolist() == [False, True, False]


# --- and back -------------------------------------------------------------------------------------


@property_test
@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=200),
    st.floats(math.log(1e-3), math.log(1e3)).map(math.exp),
    st.integers(0, 2**31 - 2),
)
def test_every_discrete_value_comes_back(values: list[int], scale: float, seed: int) -> None:
    cells = np.array(values, np.float64)
    feature = feature_values(COUNT, cells, seed)
    assert (feature > cells + 1.0 - 1e-9).all()
    assert undo_values(COUNT, feature).tolist() == values
    scaled = np.asarray(GAMMA.scale_data(feature, scale))
    assert undo_values(COUNT, np.asarray(GAMMA.unscale_data(scaled, scale))).tolist() == values


def test_every_value_comes_back_from_many_draws() -> None:
    cells = np.tile(np.array([0.0, 1.0, 37.0, 999_999.0, 1e6]), 100_000)
    for scale in (1e-3, 1.0 / 3.0, 1e3):
        scaled = np.asarray(GAMMA.scale_data(feature_values(COUNT, cells, seed=8), scale))
        assert (undo_values(COUNT, np.asarray(GAMMA.unscale_data(scaled, scale))) == cells).all()


def test_noise_that_nearly_rounds_away_or_fills_the_unit_does_not_lose_a_value() -> None:
    # Scaling may round a value with hardly any noise to just below the whole number.
    assert undo_values(COUNT, np.array([np.nextafter(3.0, 0.0), 3.0, 3.0 + 1e-12])).tolist() == [2.0, 2.0, 2.0]
    # Noise reaches up to 1/2, if hardly ever: larger draws are cut.
    assert undo_values(COUNT, np.array([2.5, 1.5])).tolist() == [1.0, 0.0]
    assert _noise_quantile(np.array([np.nextafter(1.0, 0.0)])).tolist() == [0.5]


def test_classes_come_back_from_their_features() -> None:
    codes = np.random.default_rng(4).integers(0, 3, 500).astype(float)
    for trick, family in (("gamma", GAMMA), ("bern", BERNOULLI)):
        parts = [Feature(0, f"c={k}", family, trick, k) for k in range(3)]
        back = np.stack([undo_values(one, feature_values(one, codes, seed=1)) for one in parts])
        assert (back == (codes == np.arange(3.0)[:, None])).all()


# --- parameters, and back -------------------------------------------------------------------------


def gamma_of_mean(*means: float, shape: float = 30.0) -> np.ndarray:
    """Natural parameters of gammas whose discrete means are these."""
    wanted = np.array(means) + 1.0 + 1.1 / 31.1
    return np.stack([np.full(len(means), shape - 1.0), -shape / wanted], axis=-1)


def undo_count(natural: Any) -> Any:
    return POISSON.from_moments(*undo_moments(natural))[..., 0]


@property_test
@given(st.lists(st.integers(0, 1), min_size=2, max_size=60), st.lists(st.integers(0, 500), min_size=2, max_size=60))
def test_fitted_gammas_give_back_the_sample_means(bits: list[int], counts: list[int]) -> None:
    p = undo_binary(natural_in_units(feature_statistics(COUNT, measure_counts(np.array(bits, float)))))
    # The mean is found beside 1 + noise: it is known to a rounding of that, and of its own size.
    assert float(p) == pytest.approx(np.mean(bits), abs=1e-12)
    rate = undo_count(natural_in_units(feature_statistics(COUNT, measure_counts(np.array(counts, float)))))
    expected = max(float(np.mean(counts)), 1e-6)
    assert float(rate) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("sample", [stats.bernoulli(0.2), stats.poisson(3.0), stats.poisson(0.1)])
def test_any_maximum_likelihood_gamma_has_the_samples_mean(sample: Any) -> None:
    """SciPy's own fit, by search: mean matching recovers the mean of the noisy sample and nothing else."""
    rng = np.random.default_rng(6)
    noisy = sample.rvs(2000, random_state=rng) + 1.0 + NOISE.rvs(2000, random_state=rng)
    shape, _, scale = stats.gamma.fit(noisy, floc=0.0)
    assert shape * scale == pytest.approx(noisy.mean(), rel=1e-9)
    recovered = undo_mean(np.array([shape - 1.0, -1.0 / scale]))
    assert float(recovered) == pytest.approx(noisy.mean() - 1.0 - 1.1 / 31.1, abs=1e-8)


def test_means_outside_the_range_are_cut() -> None:
    means = gamma_of_mean(-0.5, 0.0, 0.25, 1.0, 1.5)
    assert undo_mean(means).tolist() == pytest.approx([-0.5, 0.0, 0.25, 1.0, 1.5], abs=1e-14)
    assert undo_binary(means).tolist() == pytest.approx([0.0, 0.0, 0.25, 1.0, 1.0], abs=1e-14)
    assert ((undo_binary(means) >= 0.0) & (undo_binary(means) <= 1.0)).all()
    rates = undo_count(means)
    assert rates[2:].tolist() == pytest.approx([0.25, 1.0, 1.5], rel=1e-13)
    assert (rates > 0.0).all()  # a Poisson's rate is positive ...
    assert (rates[:2] < 1e-3).all()  # ... if only just


FREQUENCIES = np.array([0.5, 0.3, 0.2])


def test_class_means_are_cut_to_probabilities_and_divided_by_their_sum() -> None:
    rows = np.array([[0.2, 0.3, 0.5], [0.4, -0.3, 0.4], [0.9, 0.9, 0.2], [-0.1, -0.2, -0.3], [3.0, 0.6, -0.2]])
    expected = [[0.2, 0.3, 0.5], [0.5, 0.0, 0.5], [0.45, 0.45, 0.1], [0.5, 0.3, 0.2], [0.625, 0.375, 0.0]]
    naturals = [gamma_of_mean(*rows[:, k]) for k in range(3)]
    found = undo_classes(naturals, "gamma", FREQUENCIES)
    assert found.tolist() == pytest.approx(np.array(expected), abs=1e-13)
    assert found.sum(axis=-1) == pytest.approx(1.0, rel=1e-14)


def test_bernoulli_class_means_are_divided_by_their_sum() -> None:
    shares = np.array([0.2, 0.6, 0.4])
    naturals = [np.array([special.logit(p)]) for p in shares]
    assert undo_classes(naturals, "bern", FREQUENCIES).tolist() == pytest.approx(shares / 1.2, rel=1e-14)


def test_jax_parameters_come_back_as_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    rows = np.array([[0.2, 0.3, 0.5], [-0.1, -0.2, -0.3], [2.0, 0.7, 0.3]])
    naturals = [gamma_of_mean(*rows[:, k]) for k in range(3)]
    with jax.enable_x64(True):
        theirs = [jax.numpy.asarray(one) for one in naturals]
        for undo in (undo_mean, undo_binary, undo_count):
            found = undo(theirs[0])
            assert isinstance(found, jax.Array)
            assert np.asarray(found) == pytest.approx(np.asarray(undo(naturals[0])), rel=1e-13, abs=1e-15)
        found = jax.jit(lambda one: undo_classes(one, "gamma", FREQUENCIES))(theirs)
        assert isinstance(found, jax.Array)
        expected = undo_classes(naturals, "gamma", FREQUENCIES)
        assert np.asarray(found) == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_recovering_a_column_unscales_and_undoes_its_trick() -> None:
    scales = [0.25, 3.0, 40.0]
    naturals = [gamma_of_mean(p)[0] for p in (0.1, 0.6, 0.3)]
    scaled = [np.asarray(GAMMA.scale_natural(one, np.asarray(s))) for one, s in zip(naturals, scales, strict=True)]
    classes = COLUMNS["categorical"]
    features = features_of(0, classes, Categorical(3), "gamma")
    found = recover_column(classes, features, scales, scaled, FREQUENCIES)
    assert found["probabilities"].tolist() == pytest.approx([0.1, 0.6, 0.3], abs=1e-13)
    for kind, name, value in (("binary", "probability", 0.1), ("count", "rate", 0.1)):
        feature = features_of(0, COLUMNS[kind], get_likelihood(str(COLUMNS[kind].likelihood)), "gamma")
        found = recover_column(COLUMNS[kind], feature, scales[:1], scaled[:1], FREQUENCIES)
        assert {key: float(v) for key, v in found.items()} == {name: pytest.approx(value, abs=1e-13)}


# --- the appendix's worked example: a normal and a column of three classes, there and back ------------


@pytest.mark.parametrize("bound", ["exact", "paper"])
def test_the_worked_example_by_hand(bound: Any) -> None:
    rng = np.random.default_rng(9)
    n = 400
    x1 = rng.normal(170.0, 8.0, n)
    x2 = rng.choice(3, n, p=[0.15, 0.6, 0.25])
    scaler = LipschitzScaler(
        "lip-gamma", learning_rate=1e-3, bound=bound, kinds={0: "real", 1: "categorical"}, random_state=0
    ).fit(np.column_stack([x1, x2]))
    scales = dict(zip(scaler.summary_["feature"], scaler.summary_["scale"], strict=True))

    # Two columns: each aims at 1/(2 learning rates), each of the three classes at a third of that.
    target = 1.0 / (2.0 * 1e-3)
    assert scaler.target_ == pytest.approx(target, rel=1e-15)

    # X1 ~ Normal(mu, sigma): the scale is the positive root of a quartic.
    mu, sigma = x1.mean(), x1.std()
    if bound == "exact":
        quartic = [2.0 * sigma**4 + 4.0 * mu**2 * sigma**2, 4.0 * mu * sigma**2, sigma**2, 0.0, -target]
        unit = 1.0
    else:  # of the standardized column: L1 = 1 + 2 mu/sigma, L2 = 4 (mu/sigma)^2 + 2 mu/sigma + 2
        r = mu / sigma
        first, second = 1.0 + 2.0 * r, 4.0 * r**2 + 2.0 * r + 2.0
        quartic = [second, first + second, first, 0.0, -target]
        unit = sigma
    roots = np.roots(quartic)
    omega1 = float(roots[(np.abs(roots.imag) < 1e-12) & (roots.real > 0.0)].real[0]) / unit
    assert scales["x0"] == pytest.approx(omega1, rel=1e-9)
    # eta = (mu/sigma^2, -1/(2 sigma^2)), and eta-tilde = eta / f(omega) with f = (omega, omega^2).
    scaled = {"x0": np.array([mu / sigma**2 / omega1, -1.0 / (2.0 * sigma**2) / omega1**2])}

    # X2j = [X2 = j] + 1 + noise ~ Gamma(alpha_j, beta_j), with the noise averaged out.
    log_one, log_two = noise_mean_of(np.log1p), noise_mean_of(lambda e: math.log(2.0 + e))
    shares = np.bincount(x2, minlength=3) / n
    omega2 = []
    for j, share in enumerate(shares):
        mean = share + 1.0 + 1.1 / 31.1
        alpha, beta = gamma_by_hand(mean, share * log_two + (1.0 - share) * log_one)
        trigamma = float(special.polygamma(1, alpha))
        if bound == "exact":  # trigamma + 2 omega/beta + omega^2 alpha/beta^2 = target/3
            polynomial = [alpha / beta**2, 2.0 / beta, trigamma - target / 3.0]
        else:  # (1 + omega)(L1 + L2 omega) = target/3
            first, second = trigamma + 1.0 / beta, 1.0 / beta + alpha / beta**2
            polynomial = [second, first + second, first - target / 3.0]
        omega2.append(float(np.roots(polynomial).max()))
        assert scales[f"x1={j}"] == pytest.approx(omega2[-1], rel=1e-9)
        # eta = (alpha - 1, -beta), f = (1, omega)
        scaled[f"x1={j}"] = np.array([alpha - 1.0, -beta / omega2[-1]])

    # That is what the scaler takes the features to be.
    assert set(scaler.natural_) == set(scaled)
    for name, natural in scaled.items():
        assert scaler.natural_[name] == pytest.approx(natural, rel=1e-8)

    # Back: eta = f(omega) eta-tilde; sigma^2 = -1/(2 eta2), mu = -eta1/(2 eta2).
    eta1, eta2 = scaled["x0"] * np.array([omega1, omega1**2])
    by_hand = {"mean": -eta1 / (2.0 * eta2), "std": math.sqrt(-1.0 / (2.0 * eta2))}
    # p_j = max(0, min(1, alpha_j/beta_j - 1 - 0.035)), pi_j = p_j / sum of p.
    p = []
    for j, omega in enumerate(omega2):
        eta1, eta2 = scaled[f"x1={j}"] * np.array([1.0, omega])
        p.append(max(0.0, min(1.0, (eta1 + 1.0) / -eta2 - 1.0 - 1.1 / 31.1)))
    pi = np.array(p) / sum(p)
    recovered = scaler.unscale(scaled)
    assert {name: float(v) for name, v in recovered["x0"].items()} == pytest.approx(by_hand, rel=1e-8)
    assert recovered["x1"]["probabilities"] == pytest.approx(pi, rel=1e-8)
    # And that is where the table started.
    assert by_hand == pytest.approx({"mean": mu, "std": sigma}, rel=1e-10)
    assert pi == pytest.approx(shares, rel=1e-10)


def test_the_worked_example_with_a_models_parameters_for_every_row() -> None:
    """A model gives each row parameters of its own; they come back row by row, from JAX as from NumPy."""
    rng = np.random.default_rng(10)
    table = np.column_stack([rng.normal(5.0, 2.0, 200), rng.integers(0, 3, 200)])
    scaler = LipschitzScaler(kinds={0: "real", 1: "categorical"}, random_state=0).fit(table)
    scales = dict(zip(scaler.summary_["feature"], scaler.summary_["scale"], strict=True))
    usual = np.stack([rng.normal(5.0, 1.0, 50), rng.uniform(0.5, 3.0, 50)], axis=-1)
    natural = {"x0": np.asarray(NORMAL.to_natural(usual * scales["x0"]))}
    pi = rng.dirichlet([2.0, 3.0, 4.0], 50)
    for j in range(3):
        of_class = gamma_of_mean(*pi[:, j])
        natural[f"x1={j}"] = of_class / np.array([1.0, scales[f"x1={j}"]])
    found = scaler.unscale(natural)
    assert found["x0"]["mean"] == pytest.approx(usual[:, 0], rel=1e-12)
    assert found["x0"]["std"] == pytest.approx(usual[:, 1], rel=1e-12)
    assert found["x1"]["probabilities"] == pytest.approx(pi, rel=1e-11)
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        theirs = scaler.unscale({name: jax.numpy.asarray(one) for name, one in natural.items()})
        assert np.asarray(theirs["x1"]["probabilities"]) == pytest.approx(pi, rel=1e-11)
        assert isinstance(theirs["x0"]["std"], jax.Array)


# --- the paper's simulation ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "gamma_trick.py"
    spec = importlib.util.spec_from_file_location("gamma_trick", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["Bernoulli", "Poisson"])
def test_the_papers_simulation_measures_the_sampling_noise_of_a_mean(simulation: ModuleType, name: str) -> None:
    group = simulation.make_groups()[name]
    for n in (50, 200):
        matched, plain = simulation.measure_errors(group, n, np.random.default_rng(n))
        # They differ by the mean of the added noise only, which is off by 0.033/sqrt(n) or so.
        assert abs(matched - plain) < NOISE.std() / math.sqrt(n)
        expected, deviation = simulation.expected_error(group, n)
        assert abs(matched - expected) < 4.0 * deviation


def test_the_papers_errors_are_those_of_about_a_thousand_draws() -> None:
    p = np.arange(51) / 50.0
    rates = np.concatenate([np.arange(51.0), p])
    for variances, reported in ((p * (1.0 - p), 0.0081), (rates, 0.0712)):
        away = {}
        for n in (100, 1000, 10_000):
            stds = np.sqrt((variances + NOISE.var()) / n)
            # |normal| has mean sqrt(2/pi) std and variance (1 - 2/pi) std^2.
            expected = math.sqrt(2.0 / math.pi) * stds.mean()
            deviation = math.sqrt((1.0 - 2.0 / math.pi) * (stds**2).sum()) / len(stds)
            away[n] = (reported - expected) / deviation
            if n == 1000:
                assert reported == pytest.approx(expected, rel=0.2)
        assert abs(away[1000]) < 2.0
        assert away[100] < -5.0
        assert away[10_000] > 5.0


def test_the_simulations_expectation_is_the_closed_form(simulation: ModuleType) -> None:
    groups = simulation.make_groups()
    assert (len(groups["Bernoulli"].parameters), len(groups["Poisson"].parameters)) == (51, 102)
    assert pytest.approx(NOISE.var(), rel=1e-14) == simulation.NOISE_VARIANCE
    expected, _ = simulation.expected_error(groups["Bernoulli"], 1000)
    p = np.arange(51) / 50.0
    by_hand = [math.sqrt(2.0 / math.pi * (q * (1.0 - q) + NOISE.var()) / 1000.0) for q in p]
    assert expected == pytest.approx(np.mean(by_hand), rel=1e-13)
