"""Smoothness: the estimator, what standardizing makes of it, the two sum rules, the bound, and balls.

References are SciPy's integrals, closed forms worked out by hand and differences of mean statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as special
import scipy.stats as stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from evenly._support.errors import TableError
from evenly.likelihoods.base import Likelihood
from evenly.likelihoods.continuous import (
    EXPONENTIAL,
    GAMMA,
    INVERSE_GAMMA,
    INVERSE_GAUSSIAN,
    LOG_NORMAL,
    NORMAL,
    RAYLEIGH,
    UNIT_NORMAL,
)
from evenly.likelihoods.discrete import BERNOULLI, POISSON, Categorical
from evenly.likelihoods.registry import LIKELIHOODS
from evenly.scaling.outcomes import Outcome
from evenly.scaling.smoothness import (
    ball_smoothness,
    log_scaled_smoothness,
    scaled_smoothness,
    smoothness_at,
    smoothness_by_parameter,
)
from evenly.scaling.solver import solve_scale

EPS = np.finfo(np.float64).eps
property_test = settings(deadline=None, derandomize=True, database=None, max_examples=examples(60))
Fitted = tuple[Likelihood, np.ndarray]
Ball = tuple[Likelihood, np.ndarray, float]
SCALABLE = [family for family in LIKELIHOODS.values() if family.scalable]


def natural_of(family: Likelihood, *usual: float) -> np.ndarray:
    return np.asarray(family.to_natural(np.array(usual)))


# --- random parameters ----------------------------------------------------------------------------


def _positive(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


_real = st.floats(-300.0, 300.0)
USUAL: dict[str, tuple[st.SearchStrategy[float], ...]] = {
    "normal": (_real, _positive(0.05, 20.0)),
    "log-normal": (_real, _positive(0.05, 20.0)),
    "gamma": (_positive(0.05, 1e4), _positive(1e-3, 1e3)),
    "inverse-gamma": (_positive(0.05, 1e4), _positive(1e-3, 1e3)),
    "inverse-gaussian": (_positive(0.01, 100.0), _positive(0.01, 1e4)),
    "exponential": (_positive(1e-4, 1e4),),
    "rayleigh": (_positive(1e-3, 1e3),),
    "bernoulli": (st.floats(0.01, 0.99),),
    "poisson": (_positive(0.01, 1e3),),
}
some_scale = _positive(1e-4, 1e4)


@st.composite
def fitted(draw: Any, only_scalable: bool = False) -> Fitted:
    """Any likelihood and natural parameters of it; the categorical too, if it need not be scaled."""
    names = [name for name in USUAL if LIKELIHOODS[name].scalable or not only_scalable]
    name = draw(st.sampled_from([*names] if only_scalable else [*names, "categorical"]))
    if name == "categorical":
        shares = np.array(draw(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=5)))
        return Categorical(len(shares)), np.log(shares / shares.sum())
    family = LIKELIHOODS[name]
    return family, natural_of(family, *(draw(one) for one in USUAL[name]))


# --- the estimator --------------------------------------------------------------------------------


def _log(x: float) -> float:
    return math.log(x)


def _inverse(x: float) -> float:
    return 1.0 / x


STATISTICS: list[tuple[str, tuple[float, ...], Any, tuple[Callable[[float], float], ...]]] = [
    ("normal", (1.5, 0.7), stats.norm(1.5, 0.7), (lambda x: x, lambda x: x * x)),
    ("log-normal", (0.4, 0.6), stats.lognorm(0.6, scale=math.exp(0.4)), (_log, lambda x: _log(x) ** 2)),
    ("gamma", (3.0, 2.0), stats.gamma(3.0, scale=0.5), (_log, lambda x: x)),
    ("inverse-gamma", (4.0, 3.0), stats.invgamma(4.0, scale=3.0), (_log, _inverse)),
    ("inverse-gaussian", (1.2, 2.5), stats.invgauss(1.2 / 2.5, scale=2.5), (lambda x: x, _inverse)),
    ("exponential", (0.8,), stats.expon(scale=1.25), (lambda x: x,)),
    ("rayleigh", (1.4,), stats.rayleigh(scale=1.4), (lambda x: 0.5 * x * x,)),
    ("bernoulli", (0.3,), stats.bernoulli(0.3), (lambda x: x,)),
    ("poisson", (2.7,), stats.poisson(2.7), (lambda x: x,)),
]


@pytest.mark.parametrize(("name", "usual", "reference", "statistics"), STATISTICS, ids=[row[0] for row in STATISTICS])
def test_estimator_sums_the_absolute_covariances_of_the_statistics(
    name: str, usual: tuple[float, ...], reference: Any, statistics: tuple[Callable[[float], float], ...]
) -> None:
    natural = natural_of(LIKELIHOODS[name], *usual)
    # An end of the support at 0 is a pole of log x and 1/x; no mass worth 1e-12 lies this close to it.
    ends = {} if name in ("normal", "bernoulli", "poisson") else {"lb": 1e-9}
    mean = np.array([reference.expect(t, **ends) for t in statistics])
    products = [[reference.expect(lambda x, a=a, b=b: a(x) * b(x), **ends) for b in statistics] for a in statistics]
    rows = np.abs(np.array(products) - np.outer(mean, mean)).sum(axis=-1)
    # SciPy integrates to 1.5e-8 of its integrals, which here are at most ten times the covariances.
    assert smoothness_by_parameter(LIKELIHOODS[name], natural) == pytest.approx(rows, rel=2e-7)
    assert smoothness_at(LIKELIHOODS[name], natural) == pytest.approx(rows.sum(), rel=2e-7)


def test_estimator_of_a_categorical_sums_twice_the_variances_of_its_classes() -> None:
    p = np.array([0.2, 0.3, 0.5])
    # Row k: p_k (1 - p_k) on the diagonal, and the p_k p_j beside it add up to the same.
    assert smoothness_by_parameter(Categorical(3), np.log(p)) == pytest.approx(2.0 * p * (1.0 - p), rel=1e-14)


@property_test
@given(fitted())
def test_estimator_is_the_sum_over_its_parameters(case: Fitted) -> None:
    family, natural = case
    assert smoothness_at(family, natural) == pytest.approx(smoothness_by_parameter(family, natural).sum(), rel=1e-14)


# --- what standardizing leaves (the paper's Table 1 and its appendix, corrected) ------------------


def standardized(family: Likelihood, usual: tuple[float, ...], reference: Any) -> np.ndarray:
    """Row sums of the estimator after x / std, for parameters whose standard deviation SciPy knows."""
    std = float(reference.std())
    return smoothness_by_parameter(family, family.scale_natural(natural_of(family, *usual), np.asarray(1.0 / std)))


def rows_normal(mean: float, std: float) -> list[float]:
    r = abs(mean / std)
    return [1.0 + 2.0 * r, 4.0 * r * r + 2.0 * r + 2.0]


def rows_gamma(shape: float, rate: float) -> list[float]:
    cross = 1.0 / math.sqrt(shape)
    return [float(special.polygamma(1, shape)) + cross, 1.0 + cross]


def rows_inverse_gaussian(mean: float, shape: float) -> list[float]:
    m = mean / math.sqrt(mean**3 / shape)
    return [1.0 + 1.0 / m**2, (2.0 + m**2 + m**4) / m**6]


def rows_inverse_gamma(shape: float, scale: float) -> list[float]:
    beta = (shape - 1.0) * math.sqrt(shape - 2.0)
    return [float(special.polygamma(1, shape)) + 1.0 / beta, 1.0 / beta + shape / beta**2]


def rows_exponential(rate: float) -> list[float]:
    return [1.0]


def rows_rayleigh(sigma: float) -> list[float]:
    return [(2.0 / (4.0 - math.pi)) ** 2]


STANDARDIZED: list[tuple[Likelihood, tuple[float, ...], Any, Callable[..., list[float]]]] = [
    (NORMAL, (0.0, 5.0), stats.norm(0.0, 5.0), rows_normal),
    (NORMAL, (-30.0, 4.0), stats.norm(-30.0, 4.0), rows_normal),
    (GAMMA, (0.5, 3.0), stats.gamma(0.5, scale=1 / 3.0), rows_gamma),
    (GAMMA, (40.0, 0.01), stats.gamma(40.0, scale=100.0), rows_gamma),
    (INVERSE_GAUSSIAN, (2.0, 5.0), stats.invgauss(2.0 / 5.0, scale=5.0), rows_inverse_gaussian),
    (INVERSE_GAUSSIAN, (7.0, 90.0), stats.invgauss(7.0 / 90.0, scale=90.0), rows_inverse_gaussian),
    (INVERSE_GAMMA, (12.0, 6.0), stats.invgamma(12.0, scale=6.0), rows_inverse_gamma),
    (INVERSE_GAMMA, (60.0, 0.1), stats.invgamma(60.0, scale=0.1), rows_inverse_gamma),
    (EXPONENTIAL, (0.02,), stats.expon(scale=50.0), rows_exponential),
    (RAYLEIGH, (9.0,), stats.rayleigh(scale=9.0), rows_rayleigh),
]


def each(cases: list[Any]) -> Any:
    names = ("family", "usual", "reference", "rows")
    return pytest.mark.parametrize(names, cases, ids=[f"{case[0].name}{case[1]}" for case in cases])


@each(STANDARDIZED)
def test_standardizing_gives_the_closed_forms(
    family: Likelihood, usual: tuple[float, ...], reference: Any, rows: Callable[..., list[float]]
) -> None:
    assert standardized(family, usual, reference) == pytest.approx(rows(*usual), rel=1e-12)


# The mean of a sample of a centred normal is never 0, so |mean| is biased: it has a test of its own below.
@pytest.mark.more
@each(STANDARDIZED[1:])
def test_standardizing_a_large_sample_gives_the_closed_forms(
    family: Likelihood, usual: tuple[float, ...], reference: Any, rows: Callable[..., list[float]]
) -> None:
    parts = reference.rvs(size=(50, 20_000), random_state=np.random.default_rng(11))
    parts = parts / parts.std(axis=1, keepdims=True)
    found = np.array([smoothness_by_parameter(family, family.fit(family.statistics(x).mean(axis=0))) for x in parts])
    # The parts are independent, so their spread gives the standard error of their mean; 5 of them leave one
    # chance in a million. The bias of a part, of the order of 1/20,000, is far below.
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - rows(*usual)) < 5.0 * error + 1e-12).all()


def test_a_centred_and_standardized_sample_is_three_smooth_as_a_normal() -> None:
    x = np.random.default_rng(4).gamma(0.7, 30.0, 1000)  # of whatever shape
    x = (x - x.mean()) / x.std()
    assert smoothness_at(NORMAL, NORMAL.fit(NORMAL.statistics(x).mean(axis=0))) == pytest.approx(3.0, rel=1e-12)


def test_a_standardized_log_normal_is_a_standardized_normal_in_logs() -> None:
    logs = np.random.default_rng(3).normal(2.0, 0.7, 500)
    scale = 1.0 / logs.std()
    x = np.asarray(LOG_NORMAL.scale_data(np.exp(logs), scale))
    natural = np.asarray(LOG_NORMAL.fit(LOG_NORMAL.statistics(x).mean(axis=0)))
    expected = rows_normal(float(logs.mean()), float(logs.std()))
    assert smoothness_by_parameter(LOG_NORMAL, natural) == pytest.approx(expected, rel=1e-10)


def test_centred_normal_exponential_and_rayleigh_have_constants_after_standardizing() -> None:
    for size in (1e-6, 1.0, 1e6):
        assert standardized(NORMAL, (0.0, size), stats.norm(0.0, size)).sum() == pytest.approx(3.0, rel=1e-12)
        one = standardized(EXPONENTIAL, (1.0 / size,), stats.expon(scale=size))
        assert one.sum() == pytest.approx(1.0, rel=1e-12)
        ray = standardized(RAYLEIGH, (size,), stats.rayleigh(scale=size)).sum()
        assert ray == pytest.approx((2.0 / (4.0 - math.pi)) ** 2, rel=1e-12)
        assert round(ray, 3) == 5.428  # as printed in the paper


def test_standardized_gamma_tends_to_one_like_two_over_the_root_of_its_shape() -> None:
    totals = []
    for shape in (1e2, 1e4, 1e6, 1e8):
        total = standardized(GAMMA, (shape, 1.0), stats.gamma(shape)).sum()
        # trigamma(a) = 1/a + 1/(2 a^2) + 1/(6 a^3) - ..., so that the total is 1 + 2/sqrt(a) + 1/a + ...
        series = 1.0 + 2.0 / math.sqrt(shape) + 1.0 / shape + 0.5 / shape**2 + 1.0 / (6.0 * shape**3)
        assert total == pytest.approx(series, rel=1e-11)
        totals.append(total)
    assert totals == sorted(totals, reverse=True)
    assert abs(totals[-1] - 1.0) < 3e-4
    # Near 0 the shape's own curvature takes over: 1/a^2.
    assert standardized(GAMMA, (1e-3, 1.0), stats.gamma(1e-3)).sum() == pytest.approx(1e6, rel=1e-4)


def test_standardized_inverse_gaussian_can_be_arbitrarily_large_or_small() -> None:
    # In units of its standard deviation: mean m, shape m^3.
    totals = [
        smoothness_at(INVERSE_GAUSSIAN, natural_of(INVERSE_GAUSSIAN, m, m**3)) for m in (0.01, 0.1, 1.0, 10.0, 1e3)
    ]
    assert totals[0] == pytest.approx(2.0 / 0.01**6, rel=1e-3)
    assert totals == sorted(totals, reverse=True)
    # Not below 1: the variance itself is one of the entries.
    assert totals[-1] == pytest.approx(1.0, rel=1e-5)


def test_standardized_inverse_gamma_explodes_near_two_and_vanishes_far_from_it() -> None:
    def rows(shape: float) -> np.ndarray:
        beta = (shape - 1.0) * math.sqrt(shape - 2.0)
        return smoothness_by_parameter(INVERSE_GAMMA, natural_of(INVERSE_GAMMA, shape, beta))

    near = np.array([rows(2.0 + gap) for gap in (1e-2, 1e-4, 1e-6, 1e-8)])
    far = np.array([rows(shape) for shape in (1e1, 1e3, 1e5, 1e7)])
    assert (np.diff(near, axis=0) > 0.0).all()
    assert (near[-1] > 1e3).all()
    assert (np.diff(far, axis=0) < 0.0).all()
    assert (far[-1] < 1e-6).all()
    assert near[-1] == pytest.approx([1e4, 2e8], rel=1e-3)  # 1/sqrt(gap) and 2/gap


# --- after scaling: exact, and the paper's bound --------------------------------------------------


@property_test
@given(fitted(), some_scale)
def test_exact_smoothness_is_the_estimator_of_the_scaled_parameters(case: Fitted, scale: float) -> None:
    family, natural = case
    direct = smoothness_at(family, np.asarray(family.scale_natural(natural, np.asarray(scale))))
    # In logs, of at most 60, a rounding of the log is a relative error of 60 roundings.
    assert scaled_smoothness(family, natural, scale) == pytest.approx(direct, rel=1e-12)


@property_test
@given(fitted(), some_scale)
def test_the_papers_bound_is_never_below_the_exact_smoothness(case: Fitted, scale: float) -> None:
    family, natural = case
    bound = scaled_smoothness(family, natural, scale, "paper")
    assert bound >= scaled_smoothness(family, natural, scale) * (1.0 - 1e-13)
    # As the paper writes it down: sum_i |f_i| sum_j |f_j| L_i.
    factors = np.abs(np.asarray(family.factors(np.asarray(scale))))
    rows = smoothness_by_parameter(family, natural)
    assert bound == pytest.approx(float((factors * rows).sum() * factors.sum()), rel=1e-12)


@property_test
@given(fitted())
def test_the_bound_starts_at_the_estimator_times_the_number_of_parameters(
    case: Fitted,
) -> None:
    family, natural = case
    times = len(family.natural_bounds)
    assert scaled_smoothness(family, natural, 1.0, "paper") == pytest.approx(
        times * smoothness_at(family, natural), rel=1e-13
    )


def test_at_the_same_bound_the_true_smoothness_differs_between_normals() -> None:
    true = []
    for r in (0.0, 50.0):
        first, second = rows_normal(r, 1.0)
        # The paper's quartic for standardized data, whose only positive root is the scale.
        roots = np.roots([second, first + second, first, 0.0, -83.0])
        (scale,) = roots[(np.abs(roots.imag) < 1e-9) & (roots.real > 0.0)].real
        true.append(scale**2 + 4.0 * r * scale**3 + (2.0 + 4.0 * r * r) * scale**4)
        natural = natural_of(NORMAL, r, 1.0)
        solved = solve_scale(NORMAL, natural, 83.0, bound="paper").scale
        assert solved == pytest.approx(scale, rel=1e-9)
        assert scaled_smoothness(NORMAL, natural, solved) == pytest.approx(true[-1], rel=1e-9)
    assert [round(value) for value in true] == [51, 14]


@property_test
@given(st.floats(0.0, 1e3), _positive(1e-3, 1e3))
def test_with_the_exact_smoothness_every_normal_ends_at_the_target(r: float, target: float) -> None:
    natural = natural_of(NORMAL, r, 1.0)
    scale = solve_scale(NORMAL, natural, target).scale
    assert scaled_smoothness(NORMAL, natural, scale) == pytest.approx(target, rel=1e-11)


def test_log_smoothness_stays_a_number_where_smoothness_does_not() -> None:
    natural = natural_of(NORMAL, 0.0, 1.0)
    assert scaled_smoothness(NORMAL, natural, 1e200) == math.inf
    log = log_scaled_smoothness(NORMAL, NORMAL.fisher(natural), math.log(1e200), "exact")
    assert float(log) == pytest.approx(math.log(2.0) + 800.0 * math.log(10.0), rel=1e-14)


# --- units, and scaling twice ---------------------------------------------------------------------


def _std(family: Likelihood, natural: np.ndarray) -> float:
    """Return the spread that decides between the two roots of an inverse Gaussian; the others have one."""
    if family is INVERSE_GAUSSIAN:
        mean, shape = np.asarray(family.to_usual(natural))
        return math.sqrt(mean**3 / shape)
    return 1.0


@property_test
@given(fitted(only_scalable=True), some_scale, st.floats(-2.0, 5.0))
def test_the_scaled_feature_does_not_depend_on_the_columns_units(case: Fitted, unit: float, log_target: float) -> None:
    family, natural = case
    target = 10.0**log_target
    other = np.asarray(family.scale_natural(natural, np.asarray(unit)))
    here = solve_scale(family, natural, target, std=_std(family, natural))
    there = solve_scale(family, other, target, std=_std(family, other))
    assert there.outcome is here.outcome
    assert _close(family, natural, there.scale * unit, here, target)


@property_test
@given(fitted(only_scalable=True), st.floats(-2.0, 5.0))
def test_scaling_twice_changes_nothing(case: Fitted, log_target: float) -> None:
    family, natural = case
    target = 10.0**log_target
    first = solve_scale(family, natural, target, std=_std(family, natural))
    scaled = np.asarray(family.scale_natural(natural, np.asarray(first.scale)))
    second = solve_scale(family, scaled, target, std=_std(family, scaled))
    assert second.outcome is first.outcome
    assert _close(family, natural, first.scale * second.scale, first, target)


def _close(family: Likelihood, natural: np.ndarray, scale: float, expected: Any, target: float) -> bool:
    """Whether two scales are the same as far as the smoothness determines them.

    Its slope in log scale turns a rounding of the smoothness into one of the scale: near a floor and at a
    minimum the slope is small, and the scale loosely determined.
    """
    step = 1e-3
    logs = [scaled_smoothness(family, natural, expected.scale * math.exp(t)) for t in (-step, step)]
    slope = abs(math.log(logs[1] / logs[0])) / (2.0 * step)
    if expected.outcome is Outcome.BELOW_FLOOR and family is INVERSE_GAUSSIAN:
        slope = 0.0
    # At a minimum with curvature of the order of 1, a rounding of 1e-13 moves the scale by its root.
    return abs(math.log(scale / expected.scale)) <= min(1e-12 / max(slope, 1e-300), 1e-5)


# --- balls, and the two sum rules -----------------------------------------------------------------


@st.composite
def balls(draw: Any) -> Ball:
    """A likelihood, parameters, and a radius that keeps the ball inside the domain."""
    family, natural = draw(fitted())
    return family, natural, draw(st.floats(1e-3, 0.9)) * min(distance_to_edge(family, natural), 2.0)


def distance_to_edge(family: Likelihood, natural: np.ndarray) -> float:
    """Return the distance to the edge of the domain."""
    low, high = np.transpose(family.natural_bounds)
    return float(np.minimum(natural - low, high - natural).min())


def constants(family: Likelihood, natural: np.ndarray, radius: float) -> np.ndarray:
    """Lipschitz constants of the partial derivatives over the ball (a box) in closed form.

    The entries of a continuous family's Fisher matrix, and of the Poisson's, are monotone in each parameter's
    distance to the edge (or to 0); where a row mixes rising and falling ones they are powers of it, so the
    sum is convex in its log. Either way a row sum is largest at a corner. Those of classes are c p (1 - p),
    largest where p comes nearest to 1/2.
    """
    if isinstance(family, Categorical) or family is BERNOULLI:
        p = np.asarray(family.to_usual(natural))
        reach = 2.0 * radius if isinstance(family, Categorical) else radius  # the others move the other way
        ends = [special.expit(special.logit(p) + sign * reach) for sign in (-1.0, 1.0)]
        nearest = np.clip(0.5, *ends)
        return (2.0 if isinstance(family, Categorical) else 1.0) * nearest * (1.0 - nearest)
    corners = np.stack(np.meshgrid(*([[-radius, radius]] * len(natural))), axis=-1).reshape(-1, len(natural))
    return np.abs(np.asarray(family.fisher(natural + corners))).sum(axis=-1).max(axis=0)


def gradients(family: Likelihood, naturals: np.ndarray) -> np.ndarray:
    """Gradients of log p, up to the statistics of x, which are the same everywhere."""
    return -np.asarray(family.mean_statistics(naturals))


def pairs(natural: np.ndarray, radius: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw pairs of parameters in the ball, from far apart to close together, and their distance."""
    rng = np.random.default_rng(seed)
    a = natural + radius * rng.uniform(-1.0, 1.0, (200, len(natural)))
    b = natural + radius * rng.uniform(-1.0, 1.0, (200, len(natural)))
    b = a + (b - a) * 10.0 ** rng.uniform(-3.0, 0.0, (200, 1))
    return a, b, np.abs(a - b).max(axis=-1)


def rounding(gradient: np.ndarray) -> np.ndarray:
    """The error of differences of gradients: a few roundings of each."""
    return 16.0 * EPS * (1.0 + np.abs(gradient))


some_seed = st.integers(0, 2**32 - 1)


@property_test
@given(balls(), some_seed)
def test_constants_of_the_partial_derivatives_add_up_to_one_of_the_gradient(ball: Ball, seed: int) -> None:
    family, natural, radius = ball
    rows = constants(family, natural, radius)
    a, b, apart = pairs(natural, radius, seed)
    at = gradients(family, a)
    change = np.abs(at - gradients(family, b))
    assert (change <= rows * apart[:, None] + rounding(at)).all()
    assert (change.sum(axis=-1) <= rows.sum() * apart + rounding(at).sum(axis=-1)).all()


SHARED = [
    (NORMAL, LOG_NORMAL),
    (EXPONENTIAL, RAYLEIGH),
    (BERNOULLI, POISSON),
    (POISSON, POISSON),
    (GAMMA, GAMMA),
]


@property_test
@given(st.sampled_from(SHARED), st.data(), some_seed)
def test_constants_of_likelihoods_that_share_their_parameters_add_up(
    two: tuple[Likelihood, Likelihood], data: Any, seed: int
) -> None:
    natural = natural_of(two[0], *(data.draw(one) for one in USUAL[two[0].name]))
    radius = data.draw(st.floats(1e-3, 0.9)) * min(distance_to_edge(two[0], natural), 2.0)
    total = sum(ball_smoothness(family, natural, radius) for family in two)
    a, b, apart = pairs(natural, radius, seed)
    at = sum(gradients(family, a) for family in two)
    change = np.abs(at - sum(gradients(family, b) for family in two)).sum(axis=-1)
    assert (change <= total * apart + 2.0 * rounding(at).sum(axis=-1)).all()


@property_test
@given(balls(), balls(), some_seed)
def test_constants_of_likelihoods_with_parameters_of_their_own_add_up(one: Ball, two: Ball, seed: int) -> None:
    radius = min(one[2], two[2])
    total = sum(ball_smoothness(family, natural, radius) for family, natural, _ in (one, two))
    cut = len(one[1])
    a, b, apart = pairs(np.concatenate([one[1], two[1]]), radius, seed)

    def both(at: np.ndarray) -> np.ndarray:
        return np.concatenate([gradients(one[0], at[:, :cut]), gradients(two[0], at[:, cut:])], axis=-1)

    change = np.abs(both(a) - both(b)).sum(axis=-1)
    assert (change <= total * apart + rounding(both(a)).sum(axis=-1)).all()


@property_test
@given(balls())
def test_ball_smoothness_is_the_sum_of_the_largest_row_sums(
    ball: Ball,
) -> None:
    family, natural, radius = ball
    assert ball_smoothness(family, natural, radius) == pytest.approx(constants(family, natural, radius).sum(), rel=1e-9)


@property_test
@given(balls(), some_seed)
def test_ball_smoothness_exceeds_every_difference_quotient(ball: Ball, seed: int) -> None:
    family, natural, radius = ball
    a, b, apart = pairs(natural, radius, seed)
    at = gradients(family, a)
    change = np.abs(at - gradients(family, b)).sum(axis=-1)
    allowed = ball_smoothness(family, natural, radius) * (1.0 + 1e-9) * apart  # a maximum found to 1e-9
    assert (change <= allowed + rounding(at).sum(axis=-1)).all()


@property_test
@given(fitted())
def test_ball_smoothness_goes_to_the_estimator_as_the_radius_goes_to_zero(
    case: Fitted,
) -> None:
    family, natural = case
    limit = smoothness_at(family, natural)
    assert ball_smoothness(family, natural, 0.0) == limit
    for part in (1e-2, 1e-4, 1e-6):
        excess = ball_smoothness(family, natural, part * min(distance_to_edge(family, natural), 1.0)) / limit - 1.0
        # Curvatures grow at most like the distance to the edge to the power of -3, or like exp.
        assert -1e-12 <= excess <= 10.0 * part


@property_test
@given(balls(), st.floats(0.01, 1.0))
def test_ball_smoothness_grows_with_the_radius(ball: Ball, part: float) -> None:
    family, natural, radius = ball
    inner, outer = (ball_smoothness(family, natural, r) for r in (part * radius, radius))
    assert smoothness_at(family, natural) <= inner * (1.0 + 1e-12)
    assert inner <= outer * (1.0 + 1e-9)


@property_test
@given(fitted(only_scalable=True), st.floats(1.0, 10.0))
def test_ball_smoothness_is_infinite_where_the_ball_reaches_the_edge_of_the_domain(case: Fitted, times: float) -> None:
    family, natural = case
    edge = distance_to_edge(family, natural) * times
    # (value - radius) may round to inside the edge when the radius is that distance itself.
    assert ball_smoothness(family, natural, edge * (1.0 + 1e-12)) == math.inf


@pytest.mark.parametrize("family", [EXPONENTIAL, RAYLEIGH], ids=lambda one: one.name)
def test_ball_smoothness_of_one_parameter_in_closed_form(family: Likelihood) -> None:
    natural = np.array([-2.0])
    # Curvature 1/natural^2, largest at the end next to 0.
    assert ball_smoothness(family, natural, 0.5) == pytest.approx(1.0 / 1.5**2, rel=1e-14)
    assert ball_smoothness(family, natural, 2.0) == math.inf


def test_ball_smoothness_finds_a_maximum_inside_the_ball() -> None:
    # p (1 - p) peaks at 0, between the ends of the ball; the discrete families have no edge to reach.
    for natural, radius in ((0.3, 1.0), (3.0, 4.0), (20.0, 25.0), (-100.0, 150.0)):
        assert ball_smoothness(BERNOULLI, np.array([natural]), radius) == pytest.approx(0.25, rel=1e-9)


def test_ball_smoothness_of_a_probability_that_underflows_is_zero() -> None:
    assert ball_smoothness(BERNOULLI, np.array([800.0]), 1.0) == 0.0


def test_every_scalable_likelihood_is_drawn_in_these_tests() -> None:
    assert {family.name for family in SCALABLE} <= set(USUAL)


# --- what they accept -----------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["list", "jax", "torch", "torch with gradients", "numpy float32"])
def test_parameters_of_any_library_or_a_list_are_taken(library: str) -> None:
    values = [0.5, -0.25]
    expected = np.array(values)
    given: Any = values
    if library == "jax":
        given = pytest.importorskip("jax").numpy.asarray(values)
    elif library.startswith("torch"):
        given = pytest.importorskip("torch").tensor(values, requires_grad="gradients" in library)
    elif library.startswith("numpy"):
        given = np.array(values, np.float32)
    assert smoothness_at(NORMAL, given) == smoothness_at(NORMAL, expected)
    assert ball_smoothness(NORMAL, given, 0.1) == ball_smoothness(NORMAL, expected, 0.1)
    assert scaled_smoothness(NORMAL, given, 2.0) == scaled_smoothness(NORMAL, expected, 2.0)
    rows = smoothness_by_parameter(NORMAL, given)
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == np.float64
    assert np.array_equal(rows, smoothness_by_parameter(NORMAL, expected))
    assert solve_scale(NORMAL, given, 83.0) == solve_scale(NORMAL, expected, 83.0)


@pytest.mark.parametrize("radius", [-0.1, math.nan])
def test_a_negative_radius_is_refused(radius: float) -> None:
    with pytest.raises(TableError, match="radius"):
        ball_smoothness(NORMAL, np.array([0.5, -0.25]), radius)


def test_the_smoothness_of_a_unit_normal_never_changes():
    assert [scaled_smoothness(UNIT_NORMAL, np.array([mean]), 1.0) for mean in (-1e3, 0.0, 5.0)] == [1.0] * 3
    narrow, wide = (scaled_smoothness(NORMAL, NORMAL.to_natural(np.array([0.0, std])), 1.0) for std in (0.1, 10.0))
    assert wide / narrow > 1e4  # whereas that of a normal goes with its spread
