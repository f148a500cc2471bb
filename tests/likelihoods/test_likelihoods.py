"""Every likelihood against SciPy, exact arithmetic, derivatives and its own laws, driven by one table.

Tolerances are multiples of the rounding unit times the size of what is rounded: each test says which.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import pickle
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pytest
import scipy.special as special
import scipy.stats as stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sizes import examples

from evenly._support.errors import EvenlyError, TableError
from evenly.likelihoods.base import ExponentialFamily, Likelihood, Pivot, Support
from evenly.likelihoods.continuous import UNIT_NORMAL
from evenly.likelihoods.discrete import Categorical
from evenly.likelihoods.registry import LIKELIHOODS, get_likelihood
from evenly.likelihoods.special import excess, gamma_shape, log_ratio
from evenly.scaling.recover import recover_column
from evenly.scaling.tricks import Feature
from evenly.tables.schema import Column

EPS = np.finfo(np.float64).eps


# --- the table ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A likelihood, its usual parameters and SciPy's distribution with the same parameters."""

    likelihood: Likelihood
    usual: np.ndarray
    reference: Any

    @property
    def natural(self) -> np.ndarray:
        return self.likelihood.to_natural(self.usual)

    @property
    def discrete(self) -> bool:
        return self.likelihood.support.whole

    def log_pdf(self, x: np.ndarray) -> np.ndarray:
        return self.reference.logpmf(x) if self.discrete else self.reference.logpdf(x)

    def points(self) -> np.ndarray:
        """Seven values from both tails and the middle; as many for every case, so that JAX compiles once."""
        return np.resize(np.unique(self.reference.ppf([1e-6, 0.02, 0.2, 0.5, 0.8, 0.98, 1.0 - 1e-6])), 7)

    def sample(self, size: int = 400) -> np.ndarray:
        x = self.reference.rvs(size=size, random_state=np.random.default_rng(7))
        return np.asarray(x, np.float64)


def _categorical(*p: float) -> Any:
    return stats.rv_discrete(values=(np.arange(len(p)), p))


# One block per family: an ordinary row, an extreme one, a skewed one.
TABLE: list[tuple[str, tuple[float, ...], Any]] = [
    ("normal", (0.3, 1.2), stats.norm(0.3, 1.2)),
    ("normal", (1e3, 1e-2), stats.norm(1e3, 1e-2)),
    ("normal", (-40.0, 7.0), stats.norm(-40.0, 7.0)),
    ("normal", (0.0, 1.0), stats.norm(0.0, 1.0)),
    ("log-normal", (0.3, 0.8), stats.lognorm(0.8, scale=math.exp(0.3))),
    ("log-normal", (12.0, 0.02), stats.lognorm(0.02, scale=math.exp(12.0))),
    ("log-normal", (-2.0, 2.5), stats.lognorm(2.5, scale=math.exp(-2.0))),
    ("gamma", (2.5, 1.7), stats.gamma(2.5, scale=1 / 1.7)),
    ("gamma", (4e4, 2e-3), stats.gamma(4e4, scale=1 / 2e-3)),
    ("gamma", (0.05, 3.0), stats.gamma(0.05, scale=1 / 3.0)),
    ("gamma", (1.0, 1e-8), stats.gamma(1.0, scale=1e8)),
    ("inverse-gamma", (3.5, 2.0), stats.invgamma(3.5, scale=2.0)),
    ("inverse-gamma", (900.0, 1e7), stats.invgamma(900.0, scale=1e7)),
    ("inverse-gamma", (0.4, 5.0), stats.invgamma(0.4, scale=5.0)),
    ("inverse-gaussian", (1.3, 2.0), stats.invgauss(1.3 / 2.0, scale=2.0)),
    ("inverse-gaussian", (50.0, 1e5), stats.invgauss(50.0 / 1e5, scale=1e5)),
    ("inverse-gaussian", (1.0, 0.05), stats.invgauss(1.0 / 0.05, scale=0.05)),
    ("exponential", (0.7,), stats.expon(scale=1 / 0.7)),
    ("exponential", (1e5,), stats.expon(scale=1e-5)),
    ("exponential", (1e-4,), stats.expon(scale=1e4)),
    ("rayleigh", (1.3,), stats.rayleigh(scale=1.3)),
    ("rayleigh", (1e4,), stats.rayleigh(scale=1e4)),
    ("rayleigh", (1e-3,), stats.rayleigh(scale=1e-3)),
    ("bernoulli", (0.5,), stats.bernoulli(0.5)),  # the natural parameter is 0, where models start
    ("bernoulli", (1.0 - 2.0**-20,), stats.bernoulli(1.0 - 2.0**-20)),
    ("bernoulli", (0.03,), stats.bernoulli(0.03)),
    ("poisson", (3.2,), stats.poisson(3.2)),
    ("poisson", (1e4,), stats.poisson(1e4)),
    ("poisson", (0.01,), stats.poisson(0.01)),
    ("negative-binomial", (3.2, 0.5), stats.nbinom(2.0, 1.0 / 2.6)),
    ("negative-binomial", (1e4, 2.0**-10), stats.nbinom(2.0**10, 1.0 / (1.0 + 1e4 * 2.0**-10))),
    ("negative-binomial", (0.5, 8.0), stats.nbinom(0.125, 0.2)),
    ("categorical", (0.2, 0.3, 0.5), _categorical(0.2, 0.3, 0.5)),
    ("categorical", (0.25, 0.25, 0.25, 0.25), _categorical(0.25, 0.25, 0.25, 0.25)),
    ("categorical", (2.0**-20, 0.25, 0.75 - 2.0**-20), _categorical(2.0**-20, 0.25, 0.75 - 2.0**-20)),
]
CASES = [Case(get_likelihood(name, len(usual)), np.array(usual), ref) for name, usual, ref in TABLE]
CASES.append(Case(UNIT_NORMAL, np.array([0.7]), stats.norm(0.7, 1.0)))  # for models only: not by name
SCALED = [case for case in CASES if case.likelihood.scalable]
EXPONENTIAL = [case for case in CASES if isinstance(case.likelihood, ExponentialFamily)]
OTHERS = [case for case in CASES if not isinstance(case.likelihood, ExponentialFamily)]
FAMILIES = {case.likelihood.name: case for case in reversed(CASES)}  # the ordinary row of each


def _name(case: Case) -> str:
    return f"{case.likelihood.name}({', '.join(f'{value:g}' for value in case.usual)})"


every_case = pytest.mark.parametrize("case", CASES, ids=_name)
exponential_case = pytest.mark.parametrize("case", EXPONENTIAL, ids=_name)
other_case = pytest.mark.parametrize("case", OTHERS, ids=_name)
scaled_case = pytest.mark.parametrize("case", SCALED, ids=_name)
each_family = pytest.mark.parametrize("case", FAMILIES.values(), ids=FAMILIES)


# --- references that share no code with the package ---------------------------------------------------------


def rounding_of_terms(case: Case, x: np.ndarray) -> np.ndarray:
    """Size of the terms that a log-density is defined by: what a plain evaluation rounds."""
    likelihood, natural = case.likelihood, case.natural
    if not isinstance(likelihood, ExponentialFamily):  # log-gammas, of counts and of what parameters add to them
        sizes = x + 1.0 + (1.0 / case.usual).max()
        return EPS * (1.0 + 2.0 * sizes * np.log(1.0 + sizes))
    parts = np.abs(likelihood.log_base(x)) + np.abs(natural * likelihood.statistics(x)).sum(-1)
    return EPS * (1.0 + parts + np.abs(likelihood.log_partition(natural)))


def rounding_of_inputs(case: Case, x: np.ndarray) -> np.ndarray:
    """What rounding the natural parameters alone does to a log-density: no algorithm can do better.

    Its derivative in natural_i is the score: T_i - E[T_i] in an exponential family.
    """
    likelihood, natural = case.likelihood, case.natural
    away = scores(case, x)
    return EPS * (1.0 + np.abs(likelihood.log_density(x, natural)) + np.abs(natural * away).sum(-1))


def scores(case: Case, x: np.ndarray) -> np.ndarray:
    """Gradients of the log-density in the natural parameters, one for each x."""
    likelihood, natural = case.likelihood, case.natural
    if isinstance(likelihood, ExponentialFamily):
        return likelihood.statistics(x) - likelihood.mean_statistics(natural)
    free = [(-np.inf, np.inf)] * len(natural)
    found, _ = slopes(lambda at: likelihood.log_density(x, at), natural, free, np.eye(len(natural)))
    return found.T


def moments(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the statistics by summation or quadrature with SciPy's distribution."""
    if case.discrete:
        low, high = case.reference.support()
        reach = 12.0 * case.reference.std() + 30.0
        end = max(case.reference.mean() + reach, case.reference.isf(1e-16))
        x = np.arange(max(low, np.floor(case.reference.mean() - reach)), min(high, end) + 1.0)
        weights = case.reference.pmf(x)
    else:
        # x = quantile(Phi(t)): the trapezoidal rule gains digits exponentially in t; 1e-15 lies beyond +-8.
        t = np.linspace(-8.0, 8.0, 641)
        lower = case.reference.ppf(special.ndtr(t[:320]))
        x = np.concatenate([lower, case.reference.isf(special.ndtr(-t[320:]))])
        weights = np.exp(-0.5 * t**2) / math.sqrt(2.0 * math.pi) * (t[1] - t[0])
    # SciPy's Poisson probabilities all share an error of about the rounding of log(rate!), here 1e-11.
    assert abs(weights.sum() - 1.0) < 1e-10
    weights = weights / weights.sum()
    statistics = case.likelihood.statistics(x)
    mean = weights @ statistics
    away = statistics - mean
    return mean, (weights[:, None] * away).T @ away


def deviations(case: Case) -> np.ndarray:
    """Return the standard deviations of the statistics."""
    exponential = isinstance(case.likelihood, ExponentialFamily)
    return np.sqrt(np.diagonal(case.likelihood.fisher(case.natural) if exponential else moments(case)[1]))


def slopes(function: Any, natural: np.ndarray, bounds: Any, fisher: np.ndarray) -> tuple[Any, Any]:
    """Central differences, extrapolated once, along each natural parameter; and their steps.

    Functions here vary on the scale of the distance to a bound, else of 1 (discrete families) or one over the
    standard deviation of the statistic: a hundredth of it leaves a truncation error of about (1e-2)^4.
    """
    found, steps = [], []
    for i, (low, high) in enumerate(bounds):
        distance = min(natural[i] - low, high - natural[i])
        step = 1e-2 * (distance if np.isfinite(distance) else min(1.0, fisher[i, i] ** -0.5))
        unit = np.eye(len(natural))[i]

        def central(h: float, unit: np.ndarray = unit) -> Any:
            return (function(natural + h * unit) - function(natural - h * unit)) / (2.0 * h)

        found.append((4.0 * central(step / 2.0) - central(step)) / 3.0)
        steps.append(step)
    return np.array(found), np.array(steps)


@functools.cache
def _compiled(likelihood: Likelihood, what: str) -> Any:
    """Derivatives by JAX, compiled once per family: one by one, JAX would compile each operation in them."""
    jax = pytest.importorskip("jax")
    if what == "fisher":
        return jax.jit(jax.hessian(likelihood.log_partition))
    return jax.jit(jax.vmap(jax.value_and_grad(likelihood.log_density, argnums=1), (0, None)))


# --- the family ---------------------------------------------------------------------------------------------


@every_case
def test_log_density_is_scipys(case: Case) -> None:
    x = case.points()
    got = case.likelihood.log_density(x, case.natural)
    # SciPy evaluates the definition's terms, some of them twice (its scale argument).
    assert np.all(np.abs(got - case.log_pdf(x)) <= 16.0 * rounding_of_terms(case, x))


@exponential_case
def test_log_density_is_the_exponential_family(case: Case) -> None:
    likelihood, natural, x = case.likelihood, case.natural, case.points()
    defined = likelihood.log_base(x) + likelihood.statistics(x) @ natural - likelihood.log_partition(natural)
    got = likelihood.log_density(x, natural)
    assert np.all(np.abs(got - defined) <= 8.0 * rounding_of_terms(case, x))


def _exact_log_gamma(a: Decimal) -> Decimal:
    assert a == int(a)
    return Decimal(math.factorial(int(a) - 1)).ln()


def _exact_log_density(name: str, x: Decimal, n: list[Decimal]) -> Decimal:
    """Evaluate the textbook densities in decimal arithmetic, in terms of the natural parameters."""
    half_log_2pi = Decimal("0.91893853320467274178032973640561763986139747363778341281715")
    if name == "log-normal":
        return _exact_log_density("normal", x.ln(), n) - x.ln()
    if name == "normal":
        mean, variance = -n[0] / (2 * n[1]), -1 / (2 * n[1])
        return -((x - mean) ** 2) / (2 * variance) - variance.ln() / 2 - half_log_2pi
    if name == "gamma":
        shape, rate = n[0] + 1, -n[1]
        return shape * rate.ln() - _exact_log_gamma(shape) + (shape - 1) * x.ln() - rate * x
    if name == "inverse-gamma":
        shape, scale = -n[0] - 1, -n[1]
        return shape * scale.ln() - _exact_log_gamma(shape) - (shape + 1) * x.ln() - scale / x
    if name == "inverse-gaussian":
        mean, shape = (n[1] / n[0]).sqrt(), -2 * n[1]
        size = shape.ln() / 2 - half_log_2pi - 3 * x.ln() / 2
        return size - shape * (x - mean) ** 2 / (2 * mean**2 * x)
    if name == "negative-binomial":
        mean, r = n[0].exp(), (-n[1]).exp()
        rising = sum(((r + k) / (1 + k)).ln() for k in range(int(x)))
        return rising + x * (mean / (mean + r)).ln() + r * (r / (mean + r)).ln()
    assert name == "poisson"
    return n[0] * x - n[0].exp() - _exact_log_gamma(x + 1)


@pytest.mark.parametrize(
    ("name", "usual", "x"),
    [
        ("normal", (1e6, 1e-2), [1e6 - 0.03, 1e6, 1e6 + 0.01]),
        ("log-normal", (18.0, 1e-6), [math.exp(18.0) * (1.0 + 2e-6), math.exp(18.0)]),
        ("gamma", (20001.0, 0.5), [40002.0, 40010.0, 39500.0, 41000.0, 1e-3]),
        ("gamma", (11.0, 1.0), [11.0, 10.5, 13.0]),
        ("gamma", (3.0, 1.0), [1e-30, 1e-12, 1e-4, 3.0, 3.1, 3.4, 60.0, 1e5]),
        ("inverse-gamma", (20001.0, 0.5), [1.0 / 40002.0, 1.0 / 41000.0]),
        ("inverse-gamma", (3.0, 1.0), [1e30, 1e12, 0.3, 1e-2]),
        ("inverse-gaussian", (1e3, 1e12), [1e3 + 0.03, 1e3 - 0.1]),
        ("poisson", (20000.0,), [20000.0, 20100.0, 19000.0, 3.0, 1.0, 0.0]),
        ("negative-binomial", (300.0, 1e-6), [300.0, 350.0, 260.0, 3.0, 1.0, 0.0]),
        ("negative-binomial", (300.0, 40.0), [300.0, 2.0, 0.0]),
    ],
)
def test_log_density_keeps_its_digits(name: str, usual: tuple[float, ...], x: list[float]) -> None:
    """The definition's terms are 1e4 to 1e14 times the result here: adding them up would not do."""
    case = Case(get_likelihood(name), np.array(usual), None)
    with localcontext() as context:
        context.prec = 60
        natural = [Decimal(float(value)) for value in case.natural]
        expected = np.array([float(_exact_log_density(name, Decimal(value), natural)) for value in x])
    got = case.likelihood.log_density(np.array(x), case.natural)
    assert np.all(np.abs(got - expected) <= 8.0 * rounding_of_inputs(case, np.array(x)))


@exponential_case
def test_mean_statistics_is_the_gradient_of_the_log_partition(case: Case) -> None:
    likelihood, natural = case.likelihood, case.natural
    got = likelihood.mean_statistics(natural)
    numeric, steps = slopes(likelihood.log_partition, natural, likelihood.natural_bounds, likelihood.fisher(natural))
    noise = 8.0 * EPS * np.abs(likelihood.log_partition(natural)) / steps
    assert np.all(np.abs(got - numeric) <= noise + 1e-7 * np.abs(got))


@exponential_case
def test_mean_statistics_and_fisher_are_the_moments_of_scipys_distribution(case: Case) -> None:
    mean, covariance = moments(case)
    fisher = case.likelihood.fisher(case.natural)
    deviation = np.sqrt(np.diagonal(fisher))
    # Both sides round the values of the statistics, which an offset makes larger than their deviation.
    relative = 1e-9 + 1e2 * EPS * np.abs(mean) / deviation
    assert np.all(np.abs(case.likelihood.mean_statistics(case.natural) - mean) <= relative * deviation)
    limit = np.outer(deviation, deviation) * (relative[:, None] + relative)
    assert np.all(np.abs(fisher - covariance) <= limit)


@other_case
def test_mean_statistics_are_scipys_and_fisher_is_the_covariance_of_the_score(case: Case) -> None:
    mean, covariance = moments(case)
    likelihood, natural = case.likelihood, case.natural
    away = np.abs(likelihood.mean_statistics(natural) - mean)
    assert np.all(away <= 1e-9 * np.sqrt(np.diagonal(covariance)))
    x = np.arange(case.reference.isf(1e-17) + 1.0)
    weights, score = case.reference.pmf(x), scores(case, x)
    fisher = likelihood.fisher(natural)
    deviation = np.sqrt(np.diagonal(fisher))
    assert np.all(np.abs(weights @ score) <= 1e-6 * deviation)
    # The scores are numerical derivatives of log-densities of some tens.
    assert np.all(np.abs(fisher - (weights[:, None] * score).T @ score) <= 1e-6 * np.outer(deviation, deviation))


@other_case
def test_libraries_differentiate_other_log_densities(case: Case) -> None:
    jax, torch = pytest.importorskip("jax"), pytest.importorskip("torch")
    x, fisher = case.points(), case.likelihood.fisher(case.natural)
    expected = scores(case, x)
    with jax.enable_x64(True):
        ours = _compiled(case.likelihood, "gradient")(jax.numpy.asarray(x), jax.numpy.asarray(case.natural))[1]
    natural = torch.tensor(case.natural, requires_grad=True)
    total = case.likelihood.log_density(torch.as_tensor(x), natural).sum()
    (theirs,) = torch.autograd.grad(total, natural)
    limit = 1e-7 * (np.abs(expected) + np.sqrt(np.diagonal(fisher)))
    assert np.all(np.abs(np.asarray(ours) - expected) <= limit)
    assert np.all(np.abs(theirs.numpy() - np.asarray(ours).sum(0)) <= 1e-9 * np.abs(np.asarray(ours)).sum(0))


@exponential_case
def test_fisher_is_the_slope_of_the_mean_statistics(case: Case) -> None:
    likelihood, natural = case.likelihood, case.natural
    fisher = likelihood.fisher(natural)
    numeric, steps = slopes(likelihood.mean_statistics, natural, likelihood.natural_bounds, fisher)
    noise = 8.0 * EPS * np.abs(likelihood.mean_statistics(natural)) / steps[:, None]
    deviation = np.sqrt(np.diagonal(fisher))
    assert np.all(np.abs(fisher - numeric) <= noise + 1e-7 * np.outer(deviation, deviation))
    assert np.array_equal(fisher, fisher.T)
    assert np.all(np.linalg.eigvalsh(fisher / np.outer(deviation, deviation)) >= -1e-12)


@exponential_case
def test_fisher_is_jaxs_hessian_of_the_log_partition(case: Case) -> None:
    jax = pytest.importorskip("jax")
    hessian = _compiled(case.likelihood, "fisher")
    with jax.enable_x64(True):
        hessian = np.asarray(hessian(jax.numpy.asarray(case.natural)))
    fisher = case.likelihood.fisher(case.natural)
    deviation = np.sqrt(np.diagonal(fisher))
    assert np.all(np.abs(fisher - hessian) <= 1e-12 * np.outer(deviation, deviation))


# --- scaling ------------------------------------------------------------------------------------------------


def _representable(case: Case, x: np.ndarray, scale: float) -> bool:
    """Say whether x^scale is a number for the log-normal; products always are, here."""
    return case.likelihood.name != "log-normal" or bool(np.all(np.abs(scale * np.log(x)) < 600.0))


scales = st.floats(-3.0, 3.0).map(lambda exponent: 10.0**exponent)
levels = st.floats(1e-4, 1.0 - 1e-4)
any_scaled_case = st.sampled_from(SCALED)
property_test = settings(deadline=None, derandomize=True, database=None, max_examples=examples(300))


@property_test
@given(case=any_scaled_case, scale=scales, level=levels)
def test_the_density_survives_scaling(case: Case, scale: float, level: float) -> None:
    likelihood, natural = case.likelihood, case.natural
    x = np.asarray(case.reference.ppf(level))
    if not _representable(case, x, scale):
        return
    y, scaled_natural = np.asarray(likelihood.scale_data(x, scale)), likelihood.scale_natural(natural, scale)
    scaled = likelihood.log_density(y, scaled_natural)
    total = scaled + likelihood.log_jacobian(x, scale)
    scaled_case = Case(likelihood, likelihood.to_usual(scaled_natural), None)
    # Rounding y itself counts where its spread is small: x^0.001 is 1 but for a thousandth.
    moved = np.abs(likelihood.log_density(np.nextafter(y, np.inf), scaled_natural) - scaled)
    limit = rounding_of_inputs(case, x) + rounding_of_inputs(scaled_case, y) + moved
    assert abs(total - likelihood.log_density(x, natural)) <= 16.0 * limit


@property_test
@given(case=any_scaled_case, scale=scales)
def test_statistics_follow_the_factors_up_to_a_constant(case: Case, scale: float) -> None:
    likelihood, x = case.likelihood, case.points()
    if not _representable(case, x, scale):
        return
    scaled = likelihood.statistics(likelihood.scale_data(x, scale))
    rest = scaled - likelihood.factors(scale) * likelihood.statistics(x)
    size = np.abs(scaled).max(0) + np.abs(rest).max(0) + np.abs(math.log(scale))
    assert np.all(np.ptp(rest, axis=0) <= 16.0 * EPS * size)


@property_test
@given(case=any_scaled_case, scale=scales)
def test_fisher_of_the_scaled_feature_is_the_factors_times_fisher(case: Case, scale: float) -> None:
    likelihood, natural = case.likelihood, case.natural
    got = likelihood.fisher(likelihood.scale_natural(natural, scale))
    factors = likelihood.factors(scale)
    np.testing.assert_allclose(got, np.outer(factors, factors) * likelihood.fisher(natural), rtol=64.0 * EPS)


@property_test
@given(case=any_scaled_case, scale=scales)
def test_scaling_is_undone(case: Case, scale: float) -> None:
    likelihood, natural, x = case.likelihood, case.natural, case.points()
    there = likelihood.scale_natural(natural, scale)
    np.testing.assert_allclose(likelihood.unscale_natural(there, scale), natural, rtol=4.0 * EPS)
    usual = likelihood.unscale_usual(likelihood.to_usual(there), scale)
    np.testing.assert_allclose(usual, likelihood.to_usual(natural), rtol=16.0 * EPS, atol=0.0)
    if _representable(case, x, scale):
        back = likelihood.unscale_data(likelihood.scale_data(x, scale), scale)
        # A power rounds relative to its logarithm: x^s = exp(s log x), both ways.
        power = (1.0 + np.abs(np.log(x))) * (1.0 + 1.0 / scale) if likelihood.name == "log-normal" else 1.0
        assert np.all(np.abs(back - x) <= 8.0 * EPS * power * np.abs(x))


@scaled_case
def test_unscale_usual_is_to_usual_of_unscale_natural(case: Case) -> None:
    likelihood = case.likelihood
    scales = np.array([1e-3, 0.7, 30.0])
    scaled_natural = np.broadcast_to(case.natural, (3, len(case.natural)))
    np.testing.assert_allclose(
        likelihood.unscale_usual(likelihood.to_usual(scaled_natural), scales),
        likelihood.to_usual(likelihood.unscale_natural(scaled_natural, scales)),
        rtol=64.0 * EPS,
    )


@pytest.mark.parametrize("case", [case for case in CASES if case.discrete], ids=_name)
def test_discrete_families_are_not_scaled(case: Case) -> None:
    likelihood, natural, x = case.likelihood, case.natural, case.points()
    assert not likelihood.scalable
    assert np.array_equal(likelihood.factors(np.array([0.5, 3.0])), np.ones((2, len(natural))))
    assert np.array_equal(likelihood.scale_data(x, 3.0), x)
    assert np.array_equal(likelihood.unscale_data(x, 3.0), x)
    assert np.array_equal(likelihood.log_jacobian(x, 3.0), np.zeros(len(x)))
    assert np.array_equal(likelihood.scale_natural(natural, 3.0), natural)
    assert np.array_equal(likelihood.unscale_usual(case.usual, 3.0), case.usual)


@each_family
def test_a_whole_number_is_a_scale_too(case: Case) -> None:
    likelihood = case.likelihood
    assert np.array_equal(likelihood.factors(2), likelihood.factors(2.0))
    assert np.array_equal(likelihood.scale_natural(case.natural, 2), likelihood.scale_natural(case.natural, 2.0))
    assert np.array_equal(likelihood.unscale_usual(case.usual, 2), likelihood.unscale_usual(case.usual, 2.0))


# --- parameters ---------------------------------------------------------------------------------------------


@every_case
def test_usual_parameters_come_back(case: Case) -> None:
    likelihood = case.likelihood
    # gamma: shape - 1 + 1 rounds at the size of 1; bernoulli: the odds round near probability 1.
    np.testing.assert_allclose(likelihood.to_usual(case.natural), case.usual, rtol=16.0 * EPS, atol=EPS)
    again = likelihood.to_natural(likelihood.to_usual(case.natural))
    gain = 1.0 / (1.0 - case.usual) if likelihood.name == "bernoulli" else 1.0
    assert np.all(np.abs(again - case.natural) <= 16.0 * EPS * gain * (1.0 + np.abs(case.natural)))


@every_case
def test_natural_parameters_lie_inside_their_bounds(case: Case) -> None:
    low, high = np.transpose(case.likelihood.natural_bounds)
    assert np.all((case.natural > low) & (case.natural < high))
    assert len(case.likelihood.usual_names) == len(case.usual)


def _fit_rounding(case: Case, natural: np.ndarray, statistics: np.ndarray) -> np.ndarray:
    """What rounding the mean statistics alone does to the fitted parameters: natural moves by Fisher^-1."""
    sizes = np.abs(statistics)
    if case.likelihood.name == "categorical":  # its Fisher matrix is singular; log p is plain
        return EPS * (1.0 + np.abs(natural))
    inverse = np.linalg.inv(case.likelihood.fisher(natural))
    return EPS * (np.abs(natural) + np.abs(inverse) @ sizes)


@every_case
def test_fit_undoes_mean_statistics(case: Case) -> None:
    statistics = case.likelihood.mean_statistics(case.natural)
    limit = 64.0 * _fit_rounding(case, case.natural, statistics)
    assert np.all(np.abs(case.likelihood.fit(statistics) - case.natural) <= limit)


def _scipy_fit(name: str, x: np.ndarray, n_classes: int) -> list[float]:
    """SciPy's own maximum-likelihood estimates, as usual parameters."""
    if name == "normal":
        return list(stats.norm.fit(x))
    if name == "log-normal":
        std, _, scale = stats.lognorm.fit(x, floc=0)
        return [math.log(scale), std]
    if name == "gamma":
        shape, _, scale = stats.gamma.fit(x, floc=0)
        return [shape, 1.0 / scale]
    if name == "inverse-gamma":  # SciPy's fit of it is a simplex search, good to 1e-4; its gamma fit is not
        shape, _, scale = stats.gamma.fit(1.0 / x, floc=0)
        return [shape, 1.0 / scale]
    if name == "inverse-gaussian":
        ratio, _, shape = stats.invgauss.fit(x, floc=0)
        return [ratio * shape, shape]
    if name == "exponential":
        return [1.0 / stats.expon.fit(x, floc=0)[1]]
    if name == "rayleigh":
        return [stats.rayleigh.fit(x, floc=0)[1]]
    if name == "categorical":
        return list(np.bincount(x.astype(int), minlength=n_classes) / len(x))
    return [float(np.mean(x))]


@exponential_case
def test_fit_is_scipys_fit(case: Case) -> None:
    likelihood, x = case.likelihood, case.sample()
    statistics = likelihood.statistics(x).mean(0)
    got = likelihood.fit(statistics)
    expected = np.array(_scipy_fit(likelihood.name, x, len(case.usual)))
    if not np.all(np.isfinite(got)):  # a class or a value that the sample lacks
        np.testing.assert_allclose(likelihood.to_usual(got), expected, rtol=4.0 * EPS)
        return
    # SciPy finds the gamma's shape to an absolute 2e-12; the rest is the rounding of the mean statistics.
    natural = likelihood.to_natural(expected)
    limit = 64.0 * _fit_rounding(case, got, statistics)
    if "gamma" in likelihood.name:
        limit = limit + 4e-12 * np.abs(natural) / expected[0] + 4e-12
    assert np.all(np.abs(got - natural) <= limit)


def _means(likelihood: Likelihood, x: np.ndarray, pivot: Pivot) -> np.ndarray:
    return np.stack([np.mean(term) for term in likelihood.terms(x, pivot)])


def _pivot(x: np.ndarray) -> Pivot:
    return Pivot(float(np.mean(x)), float(np.mean(np.abs(x))))


@every_case
def test_fitting_terms_about_a_pivot_is_fitting_the_sample(case: Case) -> None:
    likelihood, x = case.likelihood, case.sample()
    if not case.discrete:
        x = x[x > 1e-290] if likelihood.support.lower == 0.0 else x
    pivot = _pivot(x)
    statistics, means = likelihood.statistics(x).mean(0), _means(likelihood, x, pivot)
    expected, got = likelihood.fit(statistics), likelihood.fit_terms(means, pivot)
    if not np.all(np.isfinite(expected)):  # a class or a value that the sample lacks
        np.testing.assert_allclose(got, expected, rtol=4.0 * EPS)
        return
    limit = _fit_rounding(case, expected, statistics)
    if likelihood.needs_unit:
        expected = likelihood.scale_natural(expected, 1.0 / pivot.unit)
        limit = np.abs(likelihood.scale_natural(limit, 1.0 / pivot.unit))
    # A heavy tail makes the unit, and with it the terms, larger than the statistics.
    limit = limit + _fit_rounding(case, expected, np.full(len(means), np.abs(means).max()))
    assert np.all(np.abs(got - expected) <= 64.0 * limit)


@every_case
def test_terms_move_to_another_pivot(case: Case) -> None:
    likelihood, x = case.likelihood, case.sample()
    here, spread = _pivot(x), float(np.std(x))
    for there in (
        Pivot(here.center + 0.4 * spread, here.unit * 1.7),
        Pivot(here.center - 3.0 * spread, here.unit * 1e-3),
        Pivot(here.center, here.unit * (1.0 + 1e-9)),
    ):
        means = _means(likelihood, x, here)
        direct = _means(likelihood, x, there)
        ratio = max(here.unit / there.unit, there.unit / here.unit)
        # Moving a square by a ratio rounds at the size of its largest term.
        size = (1.0 + np.abs(means)) * ratio**2 + np.abs(direct)
        moved = likelihood.repivot(means, here, there)
        assert np.all(np.abs(moved - direct) <= 64.0 * EPS * size)
        same = likelihood.repivot(means, here, here)
        np.testing.assert_allclose(same, means, rtol=4.0 * EPS)


# --- large offsets, very large and very small columns -------------------------------------------------------

OFFSETS = [0.0, 0.25, -1.5, 0.75, 2.0, -0.5, -0.25, 1.25]
"""Exactly representable beside 1e9."""


def _exact_usual(name: str, values: list[float]) -> list[Fraction | Decimal]:
    """Usual parameters of values / mean(values), in exact or 80-digit arithmetic."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    relative = [value / mean for value in exact]
    inverse = sum(1 / value for value in relative) / len(exact)
    logs = [Decimal(value.numerator).ln() - Decimal(value.denominator).ln() for value in relative]
    log_mean = sum(logs) / len(logs)
    if name == "normal":
        return [Fraction(1), sum((value - 1) ** 2 for value in relative) / len(exact)]
    if name == "inverse-gaussian":
        return [Fraction(1), 1 / (inverse - 1)]
    if name == "log-normal":
        center = Decimal(mean.numerator).ln() - Decimal(mean.denominator).ln() + log_mean
        return [center, sum((value - log_mean) ** 2 for value in logs) / len(logs)]
    log_inverse = Decimal(inverse.numerator).ln() - Decimal(inverse.denominator).ln()
    gap = -log_mean if name == "gamma" else log_inverse + log_mean
    # log a - digamma(a) = 1/(2a) + 1/(12 a^2) - ...: solved to relative gap^2, far below rounding here.
    shape = 1 / (2 * gap) + Decimal(1) / 6
    return [shape, shape if name == "gamma" else shape / (Decimal(inverse.numerator) / inverse.denominator)]


@pytest.mark.parametrize("name", ["normal", "log-normal", "gamma", "inverse-gamma", "inverse-gaussian"])
def test_an_offset_of_1e9_does_not_eat_the_spread(name: str) -> None:
    likelihood = get_likelihood(name)
    x = 1e9 + np.array(OFFSETS)
    pivot = Pivot(float(np.mean(x)), float(np.mean(x)))
    with localcontext() as context:
        context.prec = 80
        first, second = (float(value) for value in _exact_usual(name, list(x)))
        exact_mean = float(sum(Fraction(value) for value in x) / len(x))
    if name in ("normal", "log-normal"):
        second = math.sqrt(second)
    got = likelihood.to_usual(likelihood.fit_terms(_means(likelihood, x, pivot), pivot))
    assert exact_mean == pivot.unit  # so both are of x / unit
    np.testing.assert_allclose(got, [first, second], rtol=32.0 * EPS)


@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.parametrize(
    "name",
    ["normal", "log-normal", "gamma", "inverse-gamma", "inverse-gaussian", "exponential", "rayleigh"],
)
def test_very_large_and_very_small_columns_fit(name: str, size: float) -> None:
    likelihood = get_likelihood(name)
    x = FAMILIES["gamma"].sample()
    plain = likelihood.fit_terms(_means(likelihood, x, _pivot(x)), _pivot(x))
    large = x * size
    pivot = Pivot(_pivot(x).center * size, _pivot(x).unit * size)
    got = likelihood.fit_terms(_means(likelihood, large, pivot), pivot)
    if likelihood.needs_unit:
        np.testing.assert_allclose(got, plain, rtol=1e3 * EPS)
    else:  # the log-normal keeps its own units: the size is a shift of the logarithm
        expected = likelihood.to_usual(plain) + np.array([math.log(size), 0.0])
        np.testing.assert_allclose(likelihood.to_usual(got), expected, rtol=1e3 * EPS)


@pytest.mark.parametrize("name", ["gamma", "inverse-gamma", "inverse-gaussian", "log-normal"])
def test_values_far_from_the_pivot_keep_their_digits(name: str) -> None:
    """Some values are 1e-25 or 1e25 times the unit: 1 + (x - unit)/unit would round them to 0."""
    likelihood = get_likelihood(name)
    x = np.array([1e-25, 3e-18, 1e-9, 0.5, 1.0, 7.0, 3e12, 1e25])
    first, second = (float(np.mean(term)) for term in likelihood.terms(x, Pivot(1.0, 1.0)))
    with localcontext() as context:
        context.prec = 60
        exact = [Decimal(value) for value in x]
        expected = {
            "gamma": (sum(v - 1 for v in exact), sum(v - 1 - v.ln() for v in exact)),
            "inverse-gamma": (sum(1 / v - 1 for v in exact), sum(1 / v - 1 + v.ln() for v in exact)),
            "inverse-gaussian": (sum(v - 1 for v in exact), sum((v - 1) ** 2 / v for v in exact)),
            "log-normal": (sum(v.ln() for v in exact), sum(v.ln() ** 2 for v in exact)),
        }[name]
        each = [[float(v - 1 - v.ln()), float(v.ln())] for v in exact]
    assert first == pytest.approx(float(expected[0]) / 8, rel=16 * EPS)
    assert second == pytest.approx(float(expected[1]) / 8, rel=16 * EPS)
    np.testing.assert_allclose(excess(x - 1.0, np.log(x)), [pair[0] for pair in each], rtol=16 * EPS)
    np.testing.assert_allclose(log_ratio(x - 1.0, x), [pair[1] for pair in each], rtol=16 * EPS)


def test_excess_and_log_ratio_keep_their_digits() -> None:
    sizes = np.array([1e-12, 1e-6, 1e-3, 0.009, 0.011, 0.05, 0.099, 0.101, 0.3, 0.9])
    u = np.concatenate([-sizes, sizes, [5.0, 1e3]])
    with localcontext() as context:
        context.prec = 60
        logs = [(1 + Decimal(value)).ln() for value in u]
        gaps = [float(Decimal(value) - log) for value, log in zip(u, logs, strict=True)]
    # Beyond the series, 1 + u rounds by EPS / 2, and excess(0.1) is 0.0047: 2e-14 of it.
    np.testing.assert_allclose(excess(u), gaps, rtol=1e2 * EPS)
    np.testing.assert_allclose(log_ratio(u, 1.0 + u), [float(log) for log in logs], rtol=16.0 * EPS)
    assert float(excess(np.array(0.0))) == 0.0


def test_gamma_shape_solves_its_equation() -> None:
    small = np.array([1e-3, 0.05, 0.7, 3.0, 19.0, 21.0])
    gap = np.log(small) - special.digamma(small)
    # The equation's slope: an error in the gap comes back as error * shape / (shape slope), below 2 gap.
    np.testing.assert_allclose(gamma_shape(gap), small, rtol=1e-13)
    large = [Fraction(10) ** power for power in (2, 5, 9, 15)]
    exact = [1 / (2 * a) + 1 / (12 * a**2) - 1 / (120 * a**4) + 1 / (252 * a**6) for a in large]
    shapes = gamma_shape(np.array([float(value) for value in exact]))
    np.testing.assert_allclose(shapes, [float(a) for a in large], rtol=8.0 * EPS)


@pytest.mark.parametrize("name", ["normal", "log-normal", "gamma", "inverse-gamma", "inverse-gaussian"])
@pytest.mark.parametrize("value", [3.0, 1.0])
def test_a_sample_without_spread_has_infinite_parameters(name: str, value: float) -> None:
    likelihood = get_likelihood(name)
    pivot = Pivot(value, value)
    means = _means(likelihood, np.full(5, value), pivot)
    for rounding in (0.0, -EPS):  # the spread may come out below zero by rounding
        got = likelihood.fit_terms(means + np.array([0.0, rounding]), pivot)
        assert np.all(np.isinf(got))
        low, high = np.transpose(likelihood.natural_bounds)
        assert np.all((got >= low) & (got <= high))
    assert np.all(np.isinf(likelihood.fit(likelihood.statistics(np.array(1.0)))))


def test_values_that_never_occur_have_infinite_parameters() -> None:
    assert get_likelihood("bernoulli").fit(np.array([0.0])) == -np.inf
    assert get_likelihood("bernoulli").fit(np.array([1.0])) == np.inf
    assert get_likelihood("poisson").fit(np.array([0.0])) == -np.inf
    natural = Categorical(3).fit(np.array([0.5, 0.0, 0.5]))
    assert np.array_equal(Categorical(3).to_usual(natural), [0.5, 0.0, 0.5])
    assert Categorical(3).log_density(np.array(2.0), natural) == math.log(0.5)
    assert Categorical(3).log_density(np.array(1.0), natural) == -np.inf


# --- support and summaries ----------------------------------------------------------------------------------


@every_case
def test_support_is_scipys(case: Case) -> None:
    x = np.array([-np.inf, -3.0, -1.0, 0.0, 1e-3, 0.5, 1.0, 2.0, 2.5, 3.0, 4.0, 7.0, 1e6, np.inf, np.nan])
    if case.discrete:
        low, high = case.reference.support()
        expected = _is_whole_within(x, low, high)
    else:
        low, high = case.reference.support()
        # SciPy counts the ends in; only an exponential has its largest density there.
        expected = ((x >= low) if case.likelihood.name == "exponential" else (x > low)) & (x < high)
    assert np.array_equal(case.likelihood.support.contains(x), expected)
    assert np.all(case.likelihood.support.contains(case.points()))


def _is_whole_within(x: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.array([math.isfinite(v) and low <= v <= high and float(v).is_integer() for v in x])


def test_support_reads_well() -> None:
    assert str(Support()) == "real values"
    assert str(Support(0.0)) == "values > 0"
    assert str(Support(upper=3.0)) == "values < 3"
    assert str(Support(0.0, 1.0)) == "values > 0 and < 1"
    assert str(Support(0.0, closed=True)) == "values >= 0"
    assert str(Support(0.0, 1.0, closed=True)) == "values >= 0 and < 1"
    assert str(Support(0.0, whole=True)) == "whole numbers from 0"
    assert str(Support(0.0, 4.0, whole=True)) == "whole numbers from 0 to 4"
    assert repr(get_likelihood("gamma")) == "<likelihood gamma>"


def test_a_closed_support_holds_its_lower_end() -> None:
    assert Support(0.0, closed=True).contains(np.array([-1.0, 0.0, 1.0, np.inf, np.nan])).tolist() == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert not Support(closed=True).contains(-np.inf)


@pytest.mark.parametrize(
    "support",
    [
        Support(),
        Support(0.0),
        Support(-1e30),
        Support(upper=-5.0),
        Support(0.0, 1.0),
        Support(2.0, 4.0, whole=True),
        Support(0.0, closed=True),
    ],
    ids=str,
)
def test_a_typical_value_lies_in_the_support(support: Support) -> None:
    assert support.contains(support.typical)


OUTSIDE = np.array([-np.inf, -1.0, -0.5, 0.0, 0.5, 3.5, 5.0, 7.0, np.inf])


@every_case
def test_outside_the_support_the_log_density_is_minus_infinity(case: Case) -> None:
    likelihood, natural = case.likelihood, case.natural
    inside = likelihood.support.contains(OUTSIDE)
    x = OUTSIDE[~inside]
    assert np.array_equal(likelihood.log_density(x, natural), np.full(len(x), -np.inf))
    # At the end itself SciPy takes the limit, which may be infinite; at infinity it subtracts infinities.
    reference = case.log_pdf(x[(x != 0.0) & np.isfinite(x)])
    assert np.array_equal(reference, np.full(len(reference), -np.inf))
    mixed = likelihood.log_density(np.append(OUTSIDE, np.nan), natural)
    assert np.array_equal(np.isfinite(mixed[:-1]), inside)
    if len(x):
        assert likelihood.log_density(float(x[0]), natural) == -np.inf
    assert np.isnan(mixed[-1])


@each_family
def test_zero_has_the_density_of_an_exponential_and_of_no_other_positive_family(case: Case) -> None:
    if case.likelihood.name == "exponential":
        assert case.likelihood.log_density(np.array(0.0), case.natural) == pytest.approx(case.log_pdf(0.0))
    elif case.likelihood.support.lower == 0.0 and not case.discrete:
        assert case.likelihood.log_density(np.array(0.0), case.natural) == -np.inf


@pytest.mark.filterwarnings("error")
def test_certain_and_impossible_values_have_log_probabilities_0_and_minus_infinity() -> None:
    bernoulli, poisson = get_likelihood("bernoulli"), get_likelihood("poisson")
    x = np.array([0.0, 1.0])
    for p in (0.0, 1.0):
        natural = bernoulli.to_natural(np.array([p]))
        expected = stats.bernoulli(p).logpmf(x)
        assert np.array_equal(bernoulli.log_density(x, natural), expected)
    assert bernoulli.log_partition(np.array([-np.inf])) == 0.0
    counts = np.array([0.0, 1.0, 7.0])
    natural = poisson.to_natural(np.array([0.0]))
    assert np.array_equal(poisson.log_density(counts, natural), [0.0, -np.inf, -np.inf])


@every_case
def test_mean_is_scipys(case: Case) -> None:
    got = case.likelihood.mean(case.natural)
    assert got == pytest.approx(float(case.reference.mean()), rel=64.0 * EPS)


@every_case
def test_median_is_scipys(case: Case) -> None:
    got = float(case.likelihood.median(case.natural))
    if case.discrete:
        # Half of the mass on both sides; where it is exactly half, either neighbour is a median.
        assert case.reference.cdf(got) >= 0.5 - 4.0 * EPS
        assert case.reference.sf(got - 1.0) >= 0.5 - 4.0 * EPS
        assert got == int(got)
    else:
        # Both invert the distribution function to rounding, and there the quantile is d x = d p / density.
        assert got == pytest.approx(float(case.reference.median()), rel=1e-12)


@pytest.mark.parametrize("level", [5e-4, 0.05, 0.475, 0.95, 0.9995])
@every_case
def test_quantiles_are_scipys(case: Case, level: float) -> None:
    got = float(case.likelihood.quantile(case.natural, level))
    if case.discrete:
        assert case.reference.cdf(got) >= level - 4.0 * EPS
        assert case.reference.cdf(got - 1.0) <= level + 4.0 * EPS
        assert got == int(got)
    else:
        # A large shape has lost digits to its natural parameters, a mean to the variance's square root.
        assert got == pytest.approx(float(case.reference.ppf(level)), rel=1e-11)


@every_case
def test_mode_is_where_scipys_density_is_highest(case: Case) -> None:
    got = float(case.likelihood.mode(case.natural))
    name, first = case.likelihood.name, case.usual[0]
    if case.discrete:
        near = np.arange(max(case.reference.ppf(1e-9), 0.0), case.reference.isf(1e-9) + 1.0)
        assert case.log_pdf(got) >= case.log_pdf(near).max() - 16.0 * EPS * (1.0 + abs(got) * 10.0)
        assert case.likelihood.support.contains(got)
        return
    if name == "exponential" or (name == "gamma" and first <= 1.0):
        assert got == 0.0  # the density falls from the lower end on
        grid = case.reference.ppf(np.linspace(0.01, 0.9, 20))
        assert np.all(np.diff(case.log_pdf(grid)) < 0.0)
        return
    # z: away from it by so many spreads; of the logarithm, for positive values.
    below, above = case.reference.ppf([0.1, 0.9])

    def minus_log_pdf(z: float) -> float:
        return -case.log_pdf(got + z * (above - below) if below < 0.0 else got * (above / below) ** z)

    best = minimize_scalar(minus_log_pdf, bounds=(-1.0, 1.0), method="bounded", options={"xatol": 1e-10})
    # The log-density is flat to rounding within the square root of its rounding error.
    flat = math.sqrt(float(32.0 * rounding_of_terms(case, np.array(got))))
    assert abs(best.x) <= max(flat, 1e-7)


@every_case
def test_samples_have_the_mean_statistics(case: Case) -> None:
    likelihood, natural, size = case.likelihood, case.natural, 20_000
    x = likelihood.sample(np.random.default_rng(3), natural, (size,))
    assert x.shape == (size,)
    assert np.all(likelihood.support.contains(x))
    deviation = deviations(case)
    away = likelihood.statistics(x).mean(0) - likelihood.mean_statistics(natural)
    offset = EPS * size * np.abs(likelihood.mean_statistics(natural))
    assert np.all(np.abs(away) <= 5.0 * deviation / math.sqrt(size) + offset)


@each_family
def test_samples_have_the_shape_asked_for_and_depend_on_the_seed_alone(case: Case) -> None:
    natural = np.broadcast_to(case.natural, (4, 1, len(case.natural)))
    draw = case.likelihood.sample(np.random.default_rng(5), natural, (2, 3))
    assert draw.shape == (2, 3, 4, 1)
    again = case.likelihood.sample(np.random.default_rng(5), natural, (2, 3))
    assert draw.tobytes() == again.tobytes()
    other = case.likelihood.sample(np.random.default_rng(6), natural, (2, 3))
    assert draw.tobytes() != other.tobytes()
    assert np.shape(case.likelihood.sample(np.random.default_rng(5), case.natural)) == ()


@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_a_sample_spends_the_generator_on_its_own_draws_alone(name: str) -> None:
    case = FAMILIES[name]
    drawn = case.likelihood.sample(np.random.default_rng(5), case.natural, (6,))
    rng = np.random.default_rng(5)
    if name == "gamma":
        expected = rng.standard_gamma(np.full(6, case.natural[0] + 1.0)) / -case.natural[1]
    else:
        expected = rng.poisson(np.full(6, np.exp(case.natural[0])))
    assert np.array_equal(drawn, expected)


def test_only_the_log_normal_is_scaled_in_logs() -> None:
    assert [one.name for one in LIKELIHOODS.values() if one.in_logs] == ["log-normal"]
    assert not Categorical(3).in_logs


# --- the other array libraries ------------------------------------------------------------------------------


class _JaxSide:
    """JAX in double precision."""

    def __init__(self) -> None:
        self.jax = pytest.importorskip("jax")

    def context(self) -> Any:
        return self.jax.enable_x64(True)

    def array(self, x: Any) -> Any:
        return self.jax.numpy.asarray(x)

    def rng(self, seed: int) -> Any:
        return self.jax.random.key(seed)

    def is_native(self, x: Any) -> bool:
        return isinstance(x, self.jax.Array)

    def where_finite(self, x: Any) -> Any:
        return self.jax.numpy.where(self.jax.numpy.isfinite(x), x, 0.0)

    def gradient(self, function: Any, at: Any) -> Any:
        return self.jax.grad(function)(at)


class _TorchSide:
    """PyTorch in double precision."""

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch")

    def context(self) -> Any:
        return contextlib.nullcontext()

    def array(self, x: Any) -> Any:
        return self.torch.as_tensor(x)

    def rng(self, seed: int) -> Any:
        return self.torch.Generator().manual_seed(seed)

    def is_native(self, x: Any) -> bool:
        return isinstance(x, self.torch.Tensor)

    def where_finite(self, x: Any) -> Any:
        return self.torch.where(self.torch.isfinite(x), x, 0.0)

    def gradient(self, function: Any, at: Any) -> Any:
        return self.torch.func.grad(function)(at)


sides = pytest.mark.parametrize(
    "side", [pytest.param(_JaxSide, id="jax", marks=pytest.mark.more), pytest.param(_TorchSide, id="torch")]
)


@sides
@every_case
def test_every_library_gives_the_same_numbers(case: Case, side: Any) -> None:
    library, likelihood, natural, x = side(), case.likelihood, case.natural, case.points()
    statistics = likelihood.mean_statistics(natural)
    pivot = _pivot(case.sample())
    means = _means(likelihood, case.sample(), pivot)
    third = np.array(1.0 / 3.0)
    calls: dict[str, tuple[Any, ...]] = {
        "statistics": (x,),
        "mean_statistics": (natural,),
        "fisher": (natural,),
        "log_density": (x, natural),
        "fit": (statistics,),
        "to_usual": (natural,),
        "to_natural": (case.usual,),
        "factors": (third,),
        "scale_data": (x, third),
        "unscale_data": (x, third),
        "scale_natural": (natural, third),
        "unscale_natural": (natural, third),
        "unscale_usual": (case.usual, third),
        "log_jacobian": (x, third),
        "mean": (natural,),
        "mode": (natural,),
    }
    if isinstance(likelihood, ExponentialFamily):
        calls |= {"log_base": (x,), "log_partition": (natural,)}
    # JAX's and PyTorch's special functions are good to about 1e-14; these amplify it.
    limits = {
        "fit": 1e2 * _fit_rounding(case, natural, statistics),
        "log_density": 1e2 * rounding_of_inputs(case, x),
        "log_partition": 1e2 * EPS * (1.0 + np.abs(natural).max()),
    }
    with library.context():
        for name, arguments in calls.items():
            expected = getattr(likelihood, name)(*arguments)
            got = getattr(likelihood, name)(*[library.array(one) for one in arguments])
            assert library.is_native(got), name
            np.testing.assert_allclose(
                np.asarray(got), expected, rtol=1e2 * EPS, atol=np.max(limits.get(name, 0.0)), err_msg=name
            )
        for name in ("scale_natural", "unscale_natural", "unscale_usual", "scale_data", "log_jacobian"):
            # A plain number must not be rounded to single precision on the way.
            got = getattr(likelihood, name)(library.array(calls[name][0]), 1.0 / 3.0)
            expected = getattr(likelihood, name)(*calls[name])
            np.testing.assert_allclose(np.asarray(got), expected, rtol=1e2 * EPS, err_msg=name)
        terms = likelihood.terms(library.array(case.sample()), pivot)
        np.testing.assert_allclose([float(term.mean()) for term in terms], means, rtol=1e-12, atol=1e-15)
        native = library.array(means)
        fitted = likelihood.fit_terms(native, pivot)
        np.testing.assert_allclose(np.asarray(fitted), likelihood.fit_terms(means, pivot), rtol=1e-11)
        moved = likelihood.repivot(native, pivot, Pivot(pivot.center, 2.0 * pivot.unit))
        expected = likelihood.repivot(means, pivot, Pivot(pivot.center, 2.0 * pivot.unit))
        np.testing.assert_allclose(np.asarray(moved), expected, rtol=1e2 * EPS)
        inside = likelihood.support.contains(library.array(x - 0.5))
        assert library.is_native(inside)
        assert np.array_equal(np.asarray(inside), likelihood.support.contains(x - 0.5))


@pytest.mark.more
@sides
@each_family
def test_outside_the_support_every_library_agrees_and_leaves_gradients_clean(case: Case, side: Any) -> None:
    library, likelihood = side(), case.likelihood
    x = np.append(OUTSIDE, np.nan)
    if likelihood.support == Support():
        x = x[np.isfinite(x)]  # the normal at infinity has no slope
    inside = likelihood.support.contains(x)
    expected = scores(case, x[inside]).sum(0)
    limit = 1e-11 if isinstance(likelihood, ExponentialFamily) else 1e-7  # a numerical derivative
    with library.context():
        native, natural = library.array(x), library.array(case.natural)
        got = likelihood.log_density(native, natural)
        assert library.is_native(got)
        np.testing.assert_allclose(np.asarray(got), likelihood.log_density(x, case.natural), rtol=1e-13, atol=1e-13)

        def total(n: Any) -> Any:
            return library.where_finite(likelihood.log_density(native, n)).sum()

        np.testing.assert_allclose(np.asarray(library.gradient(total, natural)), expected, rtol=limit, atol=limit)


@sides
@pytest.mark.parametrize(("name", "usual"), [("bernoulli", 0.0), ("bernoulli", 1.0), ("poisson", 0.0)])
def test_infinite_parameters_give_the_same_in_every_library(name: str, usual: float, side: Any) -> None:
    library, likelihood = side(), get_likelihood(name)
    x, natural = np.array([0.0, 1.0]), likelihood.to_natural(np.array([usual]))
    with library.context():
        got = np.asarray(likelihood.log_density(library.array(x), library.array(natural)))
    assert np.array_equal(got, likelihood.log_density(x, natural))


@pytest.mark.more
@sides
@each_family
def test_single_precision_stays_single(case: Case, side: Any) -> None:
    library, likelihood = side(), case.likelihood
    x, third = case.points(), 1.0 / 3.0
    with library.context():

        def single(value: Any) -> Any:
            return library.array(np.asarray(value, np.float32))

        natural = single(case.natural)
        results = {
            "log_density": likelihood.log_density(single(x), natural),
            "at a number": likelihood.log_density(float(x[3]), natural),
            "at whole numbers": likelihood.log_density(library.array(np.array([1, 2])), natural),
            "to_usual": likelihood.to_usual(natural),
            "scale_natural": likelihood.scale_natural(natural, third),
            "unscale_natural": likelihood.unscale_natural(natural, third),
            "unscale_usual": likelihood.unscale_usual(single(case.usual), third),
            "log_jacobian": likelihood.log_jacobian(single(x), third),
            "sample": likelihood.sample(library.rng(1), natural, (3,)),
        }
        for name, got in results.items():
            assert library.is_native(got), name
            assert str(got.dtype).endswith("float32"), name


@each_family
def test_tensors_stay_on_their_device(case: Case) -> None:
    """The meta device holds shapes only; like a GPU, it refuses to be mixed with arrays of the CPU."""
    torch = pytest.importorskip("torch")
    likelihood = case.likelihood
    natural = torch.as_tensor(np.broadcast_to(case.natural, (4, len(case.natural))).copy()).to("meta")
    x = torch.ones(4, dtype=torch.float64, device="meta")
    for got in (
        likelihood.log_density(x, natural),
        likelihood.log_density(1.0, natural),
        likelihood.to_usual(natural),
        likelihood.fisher(natural),
        likelihood.scale_natural(natural, 1.0 / 3.0),
        likelihood.unscale_natural(natural, np.float64(1.0 / 3.0)),
        likelihood.unscale_natural(natural, np.full(4, 1.0 / 3.0)),
        likelihood.unscale_usual(likelihood.to_usual(natural), 1.0 / 3.0),
        likelihood.log_jacobian(x, 1.0 / 3.0),
        likelihood.mean(natural),
        likelihood.mode(natural),
    ):
        assert got.device.type == "meta"
        assert got.shape[0] == 4


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_recovered_columns_stay_on_the_device_and_in_the_precision_of_the_parameters(device: str) -> None:
    torch = pytest.importorskip("torch")
    classes = ["a", "b", "c"]
    gamma, bernoulli = get_likelihood("gamma"), get_likelihood("bernoulli")
    real = Column(name="x", kind="real", likelihood="normal")
    color = Column(name="c", kind="categorical", likelihood="categorical", classes=classes)
    count = Column(name="n", kind="count", likelihood="poisson")
    shares = np.array([0.2, 0.3, 0.5])

    def single(*values: float) -> Any:
        return torch.tensor([values] * 4, dtype=torch.float32, device=device)

    calls = [
        (real, [Feature(0, "x", get_likelihood("normal"))], [single(1.0, -0.5)]),
        (count, [Feature(0, "n", gamma, "gamma")], [single(2.0, -1.0)]),
        (color, [Feature(0, "c", gamma, "gamma", k) for k in range(3)], [single(2.0, -1.0)] * 3),
        (color, [Feature(0, "c", bernoulli, "bern", k) for k in range(3)], [single(0.5)] * 3),
        (color, [Feature(0, "c", Categorical(3))], [single(0.0, 0.1, 0.2)]),
    ]
    for column, features, naturals in calls:
        usual = recover_column(column, features, [1.0 / 3.0] * len(features), naturals, shares)
        assert usual
        for name, got in usual.items():
            assert got.device.type == device, name
            assert got.dtype == torch.float32, name


@pytest.mark.more
@sides
@each_family
def test_every_library_samples(case: Case, side: Any) -> None:
    library, likelihood, size = side(), case.likelihood, 4_000
    with library.context():
        natural = library.array(np.broadcast_to(case.natural, (2, len(case.natural))).copy())
        x = likelihood.sample(library.rng(1), natural, (size,))
        again = likelihood.sample(library.rng(1), natural, (size,))
    assert library.is_native(x)
    assert tuple(x.shape) == (size, 2)
    values = np.asarray(x, np.float64)
    assert np.array_equal(values, np.asarray(again, np.float64))
    assert not np.array_equal(values[:, 0], values[:, 1])
    statistics = likelihood.statistics(values.ravel()).mean(0)
    deviation = deviations(case)
    away = np.abs(statistics - likelihood.mean_statistics(case.natural))
    assert np.all(away <= 5.0 * deviation / math.sqrt(2 * size))


class _NeedsNumPy(Exception):
    """Raised where a library has no function for a median, and says what to do."""


def _median(likelihood: Likelihood, natural: Any) -> Any:
    try:
        return likelihood.median(natural)
    except EvenlyError as error:
        if "convert the parameters to NumPy" not in str(error):
            raise
        raise _NeedsNumPy from None


@sides
@each_family
def test_medians_exist_in_every_library_or_say_what_to_do(case: Case, side: Any) -> None:
    library = side()
    with library.context():
        natural = library.array(case.natural)
        got: Any = None
        with contextlib.suppress(_NeedsNumPy):
            got = float(_median(case.likelihood, natural))
        if got is None:
            closed = ("normal", "log-normal", "exponential", "rayleigh", "bernoulli", "categorical", "unit-normal")
            assert case.likelihood.name not in closed
        else:
            assert got == pytest.approx(float(case.likelihood.median(case.natural)), rel=16 * EPS)


@exponential_case
def test_gradients_of_the_log_density_are_statistics_minus_their_mean(case: Case) -> None:
    jax = pytest.importorskip("jax")
    likelihood, natural, x = case.likelihood, case.natural, case.points()
    with jax.enable_x64(True):
        both = _compiled(likelihood, "gradient")(jax.numpy.asarray(x), jax.numpy.asarray(natural))
        got = np.asarray(both[1])
    statistics, mean = likelihood.statistics(x), likelihood.mean_statistics(natural)
    size = np.abs(statistics) + np.abs(mean) + np.sqrt(np.diagonal(likelihood.fisher(natural)))
    assert np.all(np.abs(got - (statistics - mean)) <= 64.0 * EPS * size)


@every_case
def test_gradients_are_finite_and_close_in_single_precision(case: Case) -> None:
    jax = pytest.importorskip("jax")
    likelihood, natural = case.likelihood, case.natural
    x = case.points()
    x = np.resize(x[(np.abs(x) > 1e-30) | (x == 0.0)], 7)  # what single precision can hold
    single = jax.numpy.asarray(x, "float32"), jax.numpy.asarray(natural, "float32")
    value, got = _compiled(likelihood, "gradient")(*single)
    assert value.dtype == got.dtype == np.float32
    assert np.all(np.isfinite(value))
    expected = scores(case, x)
    # Rounding the parameters moves the gradient by Fisher times that.
    size = np.abs(expected) + np.abs(likelihood.fisher(natural)) @ np.abs(natural)
    if isinstance(likelihood, ExponentialFamily):  # the score is a difference
        size = size + np.abs(likelihood.statistics(x)) + np.abs(likelihood.mean_statistics(natural))
    else:  # the parameters share the terms that their gradients are made of
        size = size + np.abs(expected).max(-1, keepdims=True)
    size = size + np.sqrt(np.diagonal(likelihood.fisher(natural)))
    unit = np.finfo(np.float32).eps
    assert np.all(np.abs(np.asarray(got, np.float64) - expected) <= 64.0 * unit * size)
    limit = 64.0 * unit / EPS * rounding_of_inputs(case, x)
    assert np.all(np.abs(np.asarray(value, np.float64) - likelihood.log_density(x, natural)) <= limit)


@exponential_case
def test_torch_differentiates_the_log_density(case: Case) -> None:
    torch = pytest.importorskip("torch")
    likelihood, x = case.likelihood, case.points()
    natural = torch.tensor(case.natural, requires_grad=True)
    (got,) = torch.autograd.grad(likelihood.log_density(torch.as_tensor(x), natural).sum(), natural)
    statistics, mean = likelihood.statistics(x), likelihood.mean_statistics(case.natural)
    size = (np.abs(statistics) + np.abs(mean)).sum(0)
    size = size + len(x) * np.sqrt(np.diagonal(likelihood.fisher(case.natural)))
    assert np.all(np.abs(got.numpy() - (statistics - mean).sum(0)) <= 64.0 * EPS * size)


def test_slopes_at_the_natural_parameter_zero_are_right() -> None:
    """Models start there; an absolute value on the way would have slope 0."""
    jax = pytest.importorskip("jax")
    bernoulli = get_likelihood("bernoulli")
    zero = jax.numpy.zeros(1)
    assert jax.jit(jax.grad(bernoulli.log_partition))(zero)[0] == 0.5
    assert jax.jit(jax.hessian(bernoulli.log_partition))(zero)[0, 0] == 0.25
    assert jax.jit(jax.jacobian(bernoulli.mean_statistics))(zero)[0, 0] == 0.25


# --- table engines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow"])
@every_case
def test_terms_are_the_same_on_every_table_engine(case: Case, engine: str) -> None:
    module = pytest.importorskip(engine)
    x = case.sample()
    frame = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[engine]
    table = nw.from_native(getattr(module, frame)({"x": x}))
    pivot = _pivot(x)
    terms = case.likelihood.terms(nw.col("x"), pivot)
    averages = table.select(**{f"t{i}": term.mean() for i, term in enumerate(terms)})
    got = [averages[name][0] for name in averages.columns]
    expected = _means(case.likelihood, x, pivot)
    # A mean near 0 rounds at the size of what it averages.
    size = [np.mean(np.abs(term)) for term in case.likelihood.terms(x, pivot)]
    assert np.all(np.abs(got - expected) <= 1e-12 * np.array(size))


@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow"])
@each_family
def test_a_missing_cell_has_no_terms(case: Case, engine: str) -> None:
    """Else an average over the observed cells would count it."""
    module = pytest.importorskip(engine)
    x = case.sample(20)
    frame = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[engine]
    table = nw.from_native(getattr(module, frame)({"x": [*x, None]}))
    terms = case.likelihood.terms(nw.col("x"), Pivot(1.0, 1.0))
    averages = table.select(**{f"t{i}": term.mean() for i, term in enumerate(terms)})
    expected = _means(case.likelihood, x, Pivot(1.0, 1.0))
    got = [averages[name][0] for name in averages.columns]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


# --- by name ------------------------------------------------------------------------------------------------


def test_likelihoods_are_found_by_name() -> None:
    for name, likelihood in LIKELIHOODS.items():
        assert get_likelihood(name) is likelihood
    assert get_likelihood(" Inverse Gamma ").name == "inverse-gamma"
    assert get_likelihood("inverse_gaussian").name == "inverse-gaussian"
    assert get_likelihood("lognormal").name == "log-normal"
    assert get_likelihood("Categorical", 4).usual_names == tuple(f"probability_{k}" for k in range(4))
    assert set(LIKELIHOODS) | {"categorical", "unit-normal"} == set(FAMILIES)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TableError, match=r"got the likelihood 'gama', but expected one of normal, .*categorical"):
        get_likelihood("gama")


@pytest.mark.parametrize("n_classes", [None, 0])
def test_a_categorical_needs_its_number_of_classes(n_classes: int | None) -> None:
    with pytest.raises(TableError, match=r"got n_classes=.*, but 'categorical' needs .* classes"):
        get_likelihood("categorical", n_classes)


@pytest.mark.parametrize(
    "likelihood", [*LIKELIHOODS.values(), get_likelihood("categorical", 3)], ids=lambda one: one.name
)
def test_a_copy_of_a_likelihood_is_the_likelihood(likelihood):
    assert pickle.loads(pickle.dumps(likelihood)) is likelihood
    assert copy.deepcopy(likelihood) is likelihood
    assert get_likelihood("categorical", 3) is get_likelihood("categorical", 3)
