"""The scale that reaches the target: closed forms, floors, extreme columns, and the other methods' scales.

References are the paper's closed forms in exact or 60-digit arithmetic, NumPy's roots and brute force.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special as special
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sizes import examples

from evenly._support.errors import TableError
from evenly.likelihoods.base import Likelihood, Pivot
from evenly.likelihoods.continuous import (
    EXPONENTIAL,
    GAMMA,
    INVERSE_GAMMA,
    INVERSE_GAUSSIAN,
    LOG_NORMAL,
    NORMAL,
    RAYLEIGH,
)
from evenly.likelihoods.discrete import POISSON
from evenly.likelihoods.registry import LIKELIHOODS
from evenly.scaling.feature_fit import FeatureFit, FittedScale
from evenly.scaling.methods import METHODS, Method, get_method
from evenly.scaling.outcomes import Outcome, Solved
from evenly.scaling.scaler import LipschitzScaler
from evenly.scaling.smoothness import Bound, scaled_smoothness
from evenly.scaling.solver import solve_scale
from evenly.scaling.statistics import measure_counts, measure_values, take_moments
from evenly.scaling.tricks import Feature, FeatureStatistics, feature_statistics
from evenly.tables.schema import Column

property_test = settings(deadline=None, derandomize=True, database=None, max_examples=examples(100))
BOUNDS: tuple[Bound, ...] = ("exact", "paper")
both_bounds = pytest.mark.parametrize("bound", BOUNDS)


def natural_of(family: Likelihood, *usual: float) -> np.ndarray:
    return np.asarray(family.to_natural(np.array(usual)))


def _positive(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


some_target = _positive(1e-3, 1e6)


# --- closed forms ---------------------------------------------------------------------------------


@property_test
@given(_positive(1e-6, 1e6), some_target, st.sampled_from(BOUNDS))
def test_exponential_scale_is_the_root_of_the_targets_ratio(rate: float, target: float, bound: Bound) -> None:
    solved = solve_scale(EXPONENTIAL, natural_of(EXPONENTIAL, rate), target, bound=bound)
    # sqrt(target / L) with L = 1/rate^2; the bound of one parameter is the estimator itself.
    assert solved == (pytest.approx(rate * math.sqrt(target), rel=1e-12), Outcome.REACHED)


@property_test
@given(_positive(1e-4, 1e4), some_target, st.sampled_from(BOUNDS))
def test_rayleigh_scale_is_the_fourth_root_of_the_targets_ratio(sigma: float, target: float, bound: Bound) -> None:
    solved = solve_scale(RAYLEIGH, natural_of(RAYLEIGH, sigma), target, bound=bound)
    assert solved == (pytest.approx(target**0.25 / sigma, rel=1e-12), Outcome.REACHED)


above_floor = _positive(0.1001, 1e6)
"""The target is the floor times one plus this: nearer to the floor, the scale aims at 1.1 times the floor."""


@property_test
@given(_positive(0.05, 1e4), _positive(1e-3, 1e3), above_floor)
def test_gamma_scale_with_the_papers_bound_is_the_papers_root(shape: float, rate: float, above: float) -> None:
    trigamma = float(special.polygamma(1, shape))
    first, second = trigamma + 1.0 / rate, 1.0 / rate + shape / rate**2
    target = first * (1.0 + above)
    with localcontext() as context:
        context.prec = 60  # as printed, the formula cancels; sixty digits leave enough of them
        one, two, goal = Decimal(first), Decimal(second), Decimal(target)
        root = (-one - two + ((one - two) ** 2 + 4 * two * goal).sqrt()) / (2 * two)
    solved = solve_scale(GAMMA, natural_of(GAMMA, shape, rate), target, bound="paper")
    assert solved == (pytest.approx(float(root), rel=_near(above)), Outcome.REACHED)


@property_test
@given(_positive(0.05, 1e4), _positive(1e-3, 1e3), above_floor)
def test_gamma_scale_is_the_root_of_the_exact_quadratic(shape: float, rate: float, above: float) -> None:
    floor = float(special.polygamma(1, shape))
    # shape s^2/rate^2 + 2 s/rate = target - floor, solved without cancellation.
    excess = floor * above
    root = rate * excess / (1.0 + math.sqrt(1.0 + shape * excess))
    solved = solve_scale(GAMMA, natural_of(GAMMA, shape, rate), floor * (1.0 + above))
    assert solved == (pytest.approx(root, rel=_near(above)), Outcome.REACHED)


@property_test
@given(_positive(0.05, 1e4), _positive(1e-3, 1e3), above_floor)
def test_inverse_gamma_scale_is_one_over_that_of_the_gamma(shape: float, rate: float, above: float) -> None:
    floor = float(special.polygamma(1, shape))
    excess = floor * above
    root = rate * excess / (1.0 + math.sqrt(1.0 + shape * excess))  # 1/x is gamma(shape, rate)
    solved = solve_scale(INVERSE_GAMMA, natural_of(INVERSE_GAMMA, shape, rate), floor * (1.0 + above))
    assert solved == (pytest.approx(1.0 / root, rel=_near(above)), Outcome.REACHED)


def _near(above: float) -> float:
    """What rounding the target and the floor does to the excess over it, and so to the scale.

    A shape below 1 is rounded once more on its way to shape - 1 and back: 20 roundings at 0.05.
    """
    return 1e-14 * 40.0 * (1.0 + 1.0 / above)


@property_test
@given(st.floats(-50.0, 50.0), _positive(0.1, 10.0), some_target, st.sampled_from(BOUNDS))
def test_normal_scale_is_the_positive_root_of_the_quartic(
    ratio: float, std: float, target: float, bound: Bound
) -> None:
    mean = ratio * std
    natural = natural_of(NORMAL, mean, std)
    variance = std**2
    corner, cross, last = variance, 2.0 * abs(mean) * variance, 2.0 * variance**2 + 4.0 * mean**2 * variance
    if bound == "exact":
        quartic = [last, 2.0 * cross, corner, 0.0, -target]
    else:
        one, two = corner + cross, cross + last
        quartic = [two, one + two, one, 0.0, -target]
    solved = solve_scale(NORMAL, natural, target, bound=bound)
    assert solved.outcome is Outcome.REACHED
    _assert_root(quartic, solved.scale, 1e-11)
    roots = np.roots(quartic)
    (positive,) = roots[(roots.real > 0.0) & (np.abs(roots.imag) < 1e-7 * np.abs(roots))].real
    # NumPy's roots are eigenvalues, good to a rounding of the largest root.
    assert solved.scale == pytest.approx(positive, rel=1e-10, abs=1e-13 * float(np.abs(roots).max()))
    assert solve_scale(LOG_NORMAL, natural, target, bound=bound) == solved


def _assert_root(polynomial: list[float], root: float, rel: float) -> None:
    """Check that a polynomial changes sign next to its root, in exact arithmetic."""
    below, above = (
        sum(Fraction(c) * Fraction(root * side) ** k for k, c in enumerate(reversed(polynomial)))
        for side in (1.0 - rel, 1.0 + rel)
    )
    assert below < 0 < above


# --- the target is reached, or the floor is ---------------------------------------------------------


USUAL: dict[str, tuple[st.SearchStrategy[float], ...]] = {
    "normal": (st.floats(-1e4, 1e4), _positive(1e-3, 1e3)),
    "log-normal": (st.floats(-300.0, 300.0), _positive(1e-3, 1e2)),
    "gamma": (_positive(1e-3, 1e8), _positive(1e-6, 1e6)),
    "inverse-gamma": (_positive(1e-3, 1e8), _positive(1e-6, 1e6)),
    "inverse-gaussian": (_positive(1e-3, 1e3), _positive(1e-4, 1e8)),
    "exponential": (_positive(1e-6, 1e6),),
    "rayleigh": (_positive(1e-6, 1e6),),
}


def test_every_scalable_likelihood_is_drawn_in_these_tests() -> None:
    assert {name for name, family in LIKELIHOODS.items() if family.scalable} == set(USUAL)


@property_test
@given(st.sampled_from(sorted(USUAL)), st.data(), some_target, st.sampled_from(BOUNDS))
def test_smoothness_after_scaling_equals_the_target_or_stays_above_it(
    name: str, data: Any, target: float, bound: Bound
) -> None:
    family = LIKELIHOODS[name]
    natural = natural_of(family, *(data.draw(one) for one in USUAL[name]))
    scale, outcome = solve_scale(family, natural, target, bound=bound)
    after = scaled_smoothness(family, natural, scale, bound)
    if outcome is Outcome.REACHED:
        assert after == pytest.approx(target, rel=1e-8)
    else:
        assert outcome is Outcome.BELOW_FLOOR
        assert name in ("gamma", "inverse-gamma", "inverse-gaussian")
        # No scale gets far below the target: neither these nor any in between, for log L is convex in log scale.
        tried = [scaled_smoothness(family, natural, scale * 10.0**k, bound) for k in range(-12, 13)]
        margin = 1.0 if name == "inverse-gaussian" else 1.1
        assert min(tried) >= target / margin * (1.0 - 1e-12)


@property_test
@given(_positive(0.01, 1e6), _positive(1e-3, 1e3), st.floats(1e-6, 1.0), st.sampled_from(BOUNDS))
def test_below_the_floor_of_the_shape_the_scale_aims_at_a_tenth_more(
    shape: float, rate: float, part: float, bound: Bound
) -> None:
    natural = natural_of(GAMMA, shape, rate)
    # The shape's own curvature; the paper's bound also counts its neighbour in the same row.
    floor = float(special.polygamma(1, float(natural[0]) + 1.0)) + (1.0 / rate if bound == "paper" else 0.0)
    for family, at in ((GAMMA, natural), (INVERSE_GAMMA, natural_of(INVERSE_GAMMA, shape, rate))):
        scale, outcome = solve_scale(family, at, part * floor * (1.0 - 1e-9), bound=bound)
        assert outcome is Outcome.BELOW_FLOOR
        assert scaled_smoothness(family, at, scale, bound) == pytest.approx(1.1 * floor, rel=1e-8)


@property_test
@given(
    *USUAL["inverse-gaussian"],
    st.one_of(_positive(1e-6, 1e6), _positive(0.95, 1.05)),  # near the minimum a rough search is not enough
    st.sampled_from(BOUNDS),
)
def test_inverse_gaussian_takes_its_minimum_or_the_root_nearer_to_unit_spread(
    mean: float, shape: float, times: float, bound: Bound
) -> None:
    natural = natural_of(INVERSE_GAUSSIAN, mean, shape)
    fisher = np.abs([[mean**3 / shape, mean / shape], [mean / shape, 1.0 / (mean * shape) + 2.0 / shape**2]])

    def log_smoothness(t: float) -> float:
        f = np.exp([t, -t])
        total = f @ fisher @ f if bound == "exact" else f.sum() * (f @ fisher.sum(axis=1))
        return float(np.log(total))

    grid = np.linspace(-40.0, 40.0, 801)  # roughly, by brute force; then in the best cell
    best = grid[np.argmin([log_smoothness(t) for t in grid])]
    lowest = minimize_scalar(log_smoothness, bounds=(best - 0.1, best + 0.1), method="bounded").x
    least = math.exp(log_smoothness(lowest))
    std = math.sqrt(mean**3 / shape)
    target = least * times
    scale, outcome = solve_scale(INVERSE_GAUSSIAN, natural, target, bound=bound, std=std)
    after = scaled_smoothness(INVERSE_GAUSSIAN, natural, scale, bound)
    if times < 1.0 - 1e-9:
        assert outcome is Outcome.BELOW_FLOOR
        assert after == pytest.approx(least, rel=1e-10)
    elif times > 1.0 + 1e-9:
        assert outcome is Outcome.REACHED
        assert after == pytest.approx(target, rel=1e-8)
        # The other root lies on the other side of the minimum: walk there, and see that it is not nearer.
        sign = math.copysign(1.0, lowest - math.log(scale))
        step = 1e-3
        here = lowest
        while log_smoothness(here) < math.log(target):
            here += sign * step
        assert abs(math.log(scale * std)) <= abs(here + math.log(std)) + step


@pytest.mark.parametrize("family", [GAMMA, INVERSE_GAMMA])
@pytest.mark.parametrize("times", [1.0, 1.0 + 1e-9, 1.000001, 1.05, 1.0999])
def test_just_above_the_floor_the_scale_aims_at_a_tenth_more_too(family: Likelihood, times: float) -> None:
    """A shape of 9 at 1.000001 times the floor would be reached by a scale of 6e-8, at which nothing is learned."""
    natural, floor = natural_of(family, 9.0, 2.0), float(special.polygamma(1, 9.0))
    scale, outcome = solve_scale(family, natural, times * floor)
    assert outcome is Outcome.BELOW_FLOOR
    assert scaled_smoothness(family, natural, scale, "exact") == pytest.approx(1.1 * floor, rel=1e-8)
    assert solve_scale(family, natural, 1.1001 * floor).outcome is Outcome.REACHED


# --- from the statistics of a column -----------------------------------------------------------------


def fit_column(
    family: Likelihood, x: np.ndarray, scaling: str = "lip", target: float = 83.0, bound: Bound = "exact"
) -> FittedScale:
    """Fit one continuous column, as the scaler does."""
    column = Column(name="x", kind="real" if family is NORMAL else "positive", likelihood=family.name)
    extent = (float(x.min()), float(x.max()))
    mean = float((x / len(x)).sum())
    method, feature = get_method(f"{scaling}-none"), Feature(0, "x", family)
    statistics = measure_values(column, family, x, mean, extent, method.needs_quartiles)
    of = feature_statistics(feature, statistics)
    return method.fit_scale(feature, of, target, bound=bound, constant=statistics.constant)


def sample(family: Likelihood, n: int = 2000) -> np.ndarray:
    rng = np.random.default_rng(5)
    draws: dict[Likelihood, Callable[[], np.ndarray]] = {
        NORMAL: lambda: rng.normal(-2.4, 1.3, n),  # largest below 0
        LOG_NORMAL: lambda: rng.lognormal(0.2, 0.8, n),
        GAMMA: lambda: rng.gamma(2.5, 1.0, n),
        INVERSE_GAMMA: lambda: 1.0 / rng.gamma(4.0, 1.0, n),
        INVERSE_GAUSSIAN: lambda: rng.wald(1.2, 2.0, n),
        EXPONENTIAL: lambda: rng.exponential(1.0, n),
        RAYLEIGH: lambda: rng.rayleigh(1.0, n),
    }
    return draws[family]()


SCALABLE = [family for family in LIKELIHOODS.values() if family.scalable]
each_scalable = pytest.mark.parametrize("family", SCALABLE, ids=[family.name for family in SCALABLE])
SIZES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ordinary": lambda x: x,
    "size 1e300": lambda x: x / np.abs(x).max() * 1e300,
    "size 1e-300": lambda x: x * 1e-300,
    "offset 1e9": lambda x: np.abs(x) + 1e9,
}


@both_bounds
@each_scalable
@pytest.mark.parametrize("size", SIZES)
def test_columns_of_any_size_reach_the_target(family: Likelihood, size: str, bound: Bound) -> None:
    x = SIZES[size](sample(family))
    for target in (7.0, 83.0, 1e5):
        fit = fit_column(family, x, target=target, bound=bound)
        if family is LOG_NORMAL and size == "offset 1e9":
            # Logs of 20.7 with a spread of 1e-9 need a power of thousands: no double holds such an x^scale.
            assert (fit.scale, fit.outcome) == (1.0, Outcome.OUT_OF_RANGE)
            continue
        assert fit.outcome is Outcome.REACHED
        assert (fit.smoothness_after if bound == "exact" else fit.bound_after) == pytest.approx(target, rel=1e-8)
        assert fit.bound_after >= fit.smoothness_after * (1.0 - 1e-12)
        assert fit.natural is not None
        assert np.isfinite(fit.natural).all()


@pytest.mark.parametrize("family", [NORMAL, GAMMA], ids=lambda one: one.name)
def test_an_offset_does_not_eat_the_spread(family: Likelihood) -> None:
    """The scale of a column around 1e9 is that of exact arithmetic on its values, not of rounded squares."""
    x = np.abs(sample(family)) + 1e9
    values = [Fraction(float(v)) for v in x]
    mean = sum(values) / len(values)
    variance = float(sum((v - mean) ** 2 for v in values) / len(values))
    assert fit_column(family, x, "std").scale == pytest.approx(1.0 / math.sqrt(variance), rel=1e-12)


@both_bounds
def test_the_papers_bound_starts_from_standardized_columns_and_from_trick_features_as_they_are(
    bound: Bound,
) -> None:
    """So it depends on where it starts, and the exact smoothness does not."""
    x = sample(GAMMA)
    small, large = (fit_column(GAMMA, x * unit, bound=bound) for unit in (1e-3, 1e3))
    assert small.scale * 1e-3 == pytest.approx(large.scale * 1e3, rel=1e-10)
    statistics = measure_counts(np.random.default_rng(0).poisson(4.0, 500).astype(float))
    feature = Feature(0, "n", GAMMA, "gamma")
    of = feature_statistics(feature, statistics)
    fit = get_method("lip-gamma").fit_scale(feature, of, 83.0, bound=bound, constant=False)
    assert fit.natural is not None
    unscaled = np.asarray(GAMMA.unscale_natural(fit.natural, np.asarray(fit.scale)))
    assert scaled_smoothness(GAMMA, unscaled, fit.scale, bound) == pytest.approx(83.0, rel=1e-10)


@each_scalable
def test_natural_parameters_are_the_maximum_likelihood_ones_of_the_scaled_column(family: Likelihood) -> None:
    x = sample(family)
    fit = fit_column(family, x)
    scaled = np.asarray(family.scale_data(x, fit.scale))
    expected = np.asarray(family.fit(family.statistics(scaled).mean(axis=0)))
    assert fit.natural == pytest.approx(expected, rel=1e-9)


# --- the other methods' scales -----------------------------------------------------------------------


@each_scalable
def test_std_max_and_iqr_scale_by_one_over_them(family: Likelihood) -> None:
    x = sample(family)
    measured = np.log(x) if family is LOG_NORMAL else x
    expected = {
        "std": measured.std(),
        "max": np.abs(measured).max(),
        "iqr": np.subtract(*np.percentile(measured, [75, 25])),
    }
    for scaling, width in expected.items():
        fit = fit_column(family, x, scaling)
        assert fit.scale == pytest.approx(1.0 / width, rel=1e-12)
        assert fit.outcome is Outcome.SCALED
        assert fit.smoothness_after == pytest.approx(
            scaled_smoothness(family, np.asarray(family.fit(family.statistics(x).mean(axis=0))), fit.scale),
            rel=1e-9,
        )


def test_a_log_normal_scaled_by_its_std_has_logs_of_unit_spread() -> None:
    x = sample(LOG_NORMAL)
    fit = fit_column(LOG_NORMAL, x, "std")
    assert np.log(LOG_NORMAL.scale_data(x, fit.scale)).std() == pytest.approx(1.0, rel=1e-12)


def test_equal_quartiles_fall_back_to_the_std() -> None:
    x = np.array([0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 5.0])
    fit = fit_column(NORMAL, x, "iqr")
    assert (fit.scale, fit.outcome) == (pytest.approx(1.0 / x.std(), rel=1e-12), Outcome.NO_SPREAD)


# --- outcomes ---------------------------------------------------------------------------------------


def test_a_constant_column_is_left_as_it_is() -> None:
    for scaling in ("lip", "std", "max", "iqr"):
        fit = fit_column(NORMAL, np.full(5, 3.0), scaling)
        assert (fit.scale, fit.outcome) == (1.0, Outcome.CONSTANT)


def test_a_column_without_data_is_left_as_it_is() -> None:
    column = Column(name="x", kind="real", likelihood="normal")
    statistics = measure_values(column, NORMAL, np.full(4, np.nan), 0.0, (0.0, 0.0), True)
    feature = Feature(0, "x", NORMAL)
    lip = get_method("lip-none")
    fit = lip.fit_scale(feature, feature_statistics(feature, statistics), 83.0, bound="exact", constant=False)
    assert (fit.scale, fit.outcome, fit.natural) == (1.0, Outcome.NO_DATA, None)
    for family, trick in ((POISSON, "none"), (GAMMA, "gamma")):
        feature = Feature(0, "n", family, trick)
        none = feature_statistics(feature, measure_counts(np.full(4, np.nan)))
        fit = lip.fit_scale(feature, none, 83.0, bound="exact", constant=False)
        assert (fit.scale, fit.outcome, fit.natural) == (1.0, Outcome.NO_DATA, None)


def test_a_discrete_column_without_a_trick_is_passed_through() -> None:
    counts = np.random.default_rng(1).poisson(3.0, 300).astype(float)
    feature = Feature(0, "n", POISSON)
    statistics = feature_statistics(feature, measure_counts(counts))
    fit = get_method("lip-none").fit_scale(feature, statistics, 83.0, bound="exact", constant=False)
    assert (fit.scale, fit.outcome) == (1.0, Outcome.PASSED_THROUGH)
    assert fit.smoothness_after == pytest.approx(counts.mean(), rel=1e-12)  # a Poisson's curvature is its rate


@each_scalable
def test_values_too_far_apart_for_double_precision_are_left_as_they_are(family: Likelihood) -> None:
    fit = fit_column(family, np.array([1e-300, 1.0, 1e300]))
    if family in (NORMAL, LOG_NORMAL):
        assert fit.outcome is Outcome.REACHED
    else:  # a scale that suits the large value underflows the small one, out of the support
        assert (fit.scale, fit.outcome) == (1.0, Outcome.OUT_OF_RANGE)


@both_bounds
@each_scalable
@pytest.mark.parametrize("target", [1e300, 1e-300, math.inf, 0.0, math.nan])
def test_a_target_beyond_every_scale_is_a_named_outcome(family: Likelihood, target: float, bound: Bound) -> None:
    natural = np.asarray(family.fit(family.statistics(sample(family)).mean(axis=0)))
    solved = solve_scale(family, natural, target, bound=bound)
    if family in (GAMMA, INVERSE_GAMMA, INVERSE_GAUSSIAN) and target == 1e-300:
        assert solved.outcome is Outcome.BELOW_FLOOR
    elif solved.outcome is Outcome.REACHED:
        assert 0.0 < target < math.inf
        assert scaled_smoothness(family, natural, solved.scale, bound) == pytest.approx(target, rel=1e-9)
    else:
        assert solved == (1.0, Outcome.OUT_OF_RANGE)
    if family is EXPONENTIAL:  # its smoothness goes to 0: it has no floor
        assert solved == (1.0, Outcome.OUT_OF_RANGE)
    # A power that reaches the target may still be too large for the values themselves.
    powers = (Outcome.OUT_OF_RANGE,) if family.in_logs else ()
    assert fit_column(family, sample(family), target=target, bound=bound).outcome in (solved.outcome, *powers)


@both_bounds
@each_scalable
@pytest.mark.parametrize("scaling", ["lip", "std", "max", "iqr"])
def test_a_column_without_measurable_spread_is_a_named_outcome(family: Likelihood, scaling: str, bound: Bound) -> None:
    x = np.array([5e-324, 1e-323, 5e-324])
    fit = fit_column(family, x, scaling, bound=bound)
    if family is LOG_NORMAL and scaling in ("lip", "max"):  # powers below 1; others underflow
        assert fit.outcome in (Outcome.REACHED, Outcome.SCALED)
    else:
        assert (fit.scale, fit.outcome) == (1.0, Outcome.OUT_OF_RANGE)


@pytest.mark.parametrize("std", [0.0, -1.0, math.nan, math.inf])
def test_a_spread_that_is_no_positive_number_is_out_of_range(std: float) -> None:
    assert solve_scale(INVERSE_GAUSSIAN, natural_of(INVERSE_GAUSSIAN, 1.0, 2.0), 83.0, std=std) == (
        1.0,
        Outcome.OUT_OF_RANGE,
    )


def test_parameters_without_curvature_are_out_of_range() -> None:
    for natural in ([-np.inf], [-1e-300], [-1e300]):
        assert solve_scale(EXPONENTIAL, natural, 83.0) == (1.0, Outcome.OUT_OF_RANGE)


def test_the_scaler_warns_of_a_target_out_of_range() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"x": sample(GAMMA, 50)})
    with pytest.warns(UserWarning, match="out_of_range"):
        LipschitzScaler(likelihoods={"x": "gamma"}, target=1e300).fit(table)


def test_a_zero_is_scaled_as_an_exponential() -> None:
    x = np.array([0.0, 1.0, 2.0, 5.0])
    fit = fit_column(EXPONENTIAL, x, target=83.0)
    assert (fit.scale, fit.outcome) == (pytest.approx(math.sqrt(83.0) / x.mean(), rel=1e-12), Outcome.REACHED)


def test_a_family_that_declares_logs_is_measured_in_logs(pareto: Likelihood) -> None:
    """Any likelihood that is scaled by powers, not the log-normal alone."""
    assert pareto.in_logs
    x = np.exp(np.random.default_rng(0).exponential(2.0, 500))
    logs = np.log(x)
    pivot = Pivot(0.0, float(x.mean()))
    own, location = take_moments(pareto, x, pivot), take_moments(LOG_NORMAL, x, pivot)
    quartiles = float(np.quantile(logs, 0.25)), float(np.quantile(logs, 0.75))
    of = FeatureStatistics(len(x), float(x.min()), float(x.max()), location, own, quartiles)
    widths = {"std": logs.std(), "max": logs.max(), "iqr": quartiles[1] - quartiles[0]}
    for scaling, width in widths.items():
        fit = get_method(f"{scaling}-none").fit_scale(Feature(0, "x", pareto), of, 83.0, bound="exact", constant=False)
        assert (fit.scale, fit.outcome) == (pytest.approx(1.0 / width, rel=1e-12), Outcome.SCALED)


@pytest.mark.parametrize("outcome", Outcome, ids=lambda one: one.value)
def test_every_outcome_is_a_name_with_a_remedy(outcome: Outcome) -> None:
    assert outcome.value == outcome.name.lower()
    assert Outcome(outcome.value) is outcome
    assert len(outcome.remedy.split()) >= 4


# --- methods ----------------------------------------------------------------------------------------


def test_methods_are_those_of_the_paper() -> None:
    names = ["std-none", "max-none", "iqr-none", "lip-none", "lip-bern", "std-gamma", "lip-gamma"]
    assert list(METHODS) == names
    for name in names:
        method = get_method(name)
        assert method.name == name
        assert method.trick == name.partition("-")[2]
        assert method.equalizes == name.startswith("lip")
        assert method.needs_quartiles == name.startswith("iqr") == (not method.mergeable)


def test_adding_a_method_takes_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered by its class alone, it fits, transforms, transforms back, merges, loads, and shows in the summary."""
    monkeypatch.setitem(METHODS, "extent-gamma", METHODS["lip-none"])  # so that it is gone afterwards

    class Extent(Method, name="extent-gamma"):
        trick = "gamma"

        def scale(self, fit: FeatureFit, target: float, bound: Bound) -> Solved:
            return Solved(1.0 / (fit.statistics.maximum - fit.statistics.minimum), Outcome.SCALED)

    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(-7.0, 3.0, 200), rng.poisson(3.0, 200)])
    scaler = LipschitzScaler("extent-gamma", random_state=0)
    scaled = scaler.fit_transform(table)
    assert np.ptp(scaled[:, 0]) == pytest.approx(1.0)
    assert list(scaler.summary_["outcome"]) == ["scaled", "scaled"]
    assert list(scaler.summary_["likelihood"]) == ["normal", "gamma"]
    np.testing.assert_allclose(scaler.inverse_transform(scaled), table)
    usual = scaler.unscale(scaler.natural_)
    assert float(usual["x0"]["mean"]) == pytest.approx(table[:, 0].mean())
    assert float(usual["x1"]["rate"]) == pytest.approx(table[:, 1].mean())
    parts = [LipschitzScaler("extent-gamma", random_state=0).fit(table[rows]) for rows in (slice(90), slice(90, None))]
    assert list(sum(parts).summary_["scale"]) == pytest.approx(list(scaler.summary_["scale"]))
    again = LipschitzScaler.from_plain(json.loads(json.dumps(scaler.to_plain())), (), Path("scaler.json"))
    assert (again.transform(table) == scaled).all()


def test_a_method_that_needs_quartiles_gets_them_and_all_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "upper-none", METHODS["lip-none"])  # so that it is gone afterwards

    class UpperQuartile(Method, name="upper-none"):
        needs_quartiles = True

        def scale(self, fit: FeatureFit, target: float, bound: Bound) -> Solved:
            assert fit.statistics.quartiles is not None
            return Solved(1.0 / fit.statistics.quartiles[1], Outcome.SCALED)

    x = np.random.default_rng(0).gamma(2.0, 3.0, (100, 1))
    scaler = LipschitzScaler("upper-none").fit(x)
    assert scaler.summary_["scale"][0] == pytest.approx(1.0 / np.quantile(np.log(x), 0.75))
    with pytest.raises(TableError, match="quartiles need all rows at once"):
        scaler.partial_fit(x)


def test_an_unknown_method_is_named_with_those_there_are() -> None:
    with pytest.raises(TableError, match=r"got the method 'lip', but expected one of std-none, .*lip-gamma"):
        get_method("lip")
