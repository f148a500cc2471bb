"""Families of counts and of classes. Their data are never scaled; a trick makes them continuous first."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from evenly.likelihoods.arrays import Array, Namespace, namespace
from evenly.likelihoods.base import ExponentialFamily, Pivot, Support, Unscaled
from evenly.likelihoods.registry import register, register_by_classes
from evenly.likelihoods.special import HALF_LOG_2PI, INF, excess, stirling_error

LEAST_PROBABILITY = 1e-6
PROBABLE = (LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
LEAST_RATE = 1e-6
"""Below, a trick has left no mean: it may give a class or a count a mean of 0, whose log would be minus infinity."""


def _softplus(x: Array, xp: Namespace) -> Array:
    # Not abs: its slope at 0, where models start, is taken to be 0.
    return xp.where(x > 0, x, xp.zeros_like(x)) + xp.log1p(xp.exp(xp.where(x > 0, -x, x)))


@final
class Bernoulli(Unscaled, ExponentialFamily):
    """Bernoulli with a probability: natural log(p / (1 - p)), statistic x."""

    name = "bernoulli"
    usual_names = ("probability",)
    support = Support(0.0, 1.0, whole=True)
    natural_bounds = ((-INF, INF),)
    kinds = ("binary",)
    default_for = ("binary",)
    takes_tricks = True
    usual_limits = (PROBABLE,)

    def statistics(self, x: Array) -> Array:
        return 1.0 * x[..., None]

    def log_base(self, x: Array) -> Array:
        return 0.0 * x

    def log_partition(self, natural: Array) -> Array:
        return _softplus(natural[..., 0], namespace(natural))

    def mean_statistics(self, natural: Array) -> Array:
        return self.to_usual(natural)

    def fisher(self, natural: Array) -> Array:
        return (self.to_usual(natural) * self.to_usual(-natural))[..., None]

    def _log_density(self, x: Array, natural: Array) -> Array:
        # Of two infinite terms nothing would be left: log p(1) is -softplus(-natural), log p(0) is -softplus(natural).
        return -_softplus((1.0 - 2.0 * x) * natural[..., 0], namespace(natural, x))

    def to_usual(self, natural: Array) -> Array:
        xp = namespace(natural)
        small = xp.exp(xp.where(natural >= 0, -natural, natural))
        return xp.where(natural >= 0, 1.0, small) / (1.0 + small)

    def to_natural(self, usual: Array) -> Array:
        xp = namespace(usual)
        return xp.log(usual) - xp.log1p(-usual)

    def fit(self, mean_statistics: Array) -> Array:
        return self.to_natural(mean_statistics)

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        return (x,)

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return self.to_natural(means)

    def mean(self, natural: Array) -> Array:
        return self.to_usual(natural)[..., 0]

    def mode(self, natural: Array) -> Array:
        return namespace(natural).zeros_like(natural[..., 0]) + (natural[..., 0] > 0.0)

    def quantile(self, natural: Array, level: float) -> Array:
        likely = natural[..., 0] > math.log1p(-level) - math.log(level)  # the probability is above 1 - level
        return namespace(natural).zeros_like(natural[..., 0]) + likely

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        p = self.to_usual(natural)[..., 0]
        return xp.zeros_like(p) + (xp.draw_uniform(rng, (*shape, *p.shape), p) < p)


BERNOULLI = register(Bernoulli())


@final
class Poisson(Unscaled, ExponentialFamily):
    """Poisson with a rate: natural log(rate), statistic x."""

    name = "poisson"
    usual_names = ("rate",)
    support = Support(0.0, whole=True)
    natural_bounds = ((-INF, INF),)
    kinds = ("count",)
    default_for = ("count",)
    takes_tricks = True
    usual_limits = ((LEAST_RATE, INF),)

    def statistics(self, x: Array) -> Array:
        return 1.0 * x[..., None]

    def log_base(self, x: Array) -> Array:
        return -namespace(x).gammaln(x + 1.0)

    def log_partition(self, natural: Array) -> Array:
        return namespace(natural).exp(natural[..., 0])

    def mean_statistics(self, natural: Array) -> Array:
        return namespace(natural).exp(natural)

    def fisher(self, natural: Array) -> Array:
        return namespace(natural).exp(natural)[..., None]

    def _log_density(self, x: Array, natural: Array) -> Array:
        # As for the gamma; a count of 0 has no logarithm, but leaves nothing to cancel either.
        xp = namespace(natural, x)
        log_rate, rate = natural[..., 0], xp.exp(natural[..., 0])
        some = xp.where(x == 0, 1.0, x)
        size = -0.5 * xp.log(some) - HALF_LOG_2PI - stirling_error(some, xp)
        away = excess((rate - some) / some, log_rate - xp.log(some))
        return xp.where(x == 0, -rate, size - some * away)

    def to_usual(self, natural: Array) -> Array:
        return namespace(natural).exp(natural)

    def to_natural(self, usual: Array) -> Array:
        return namespace(usual).log(usual)

    def fit(self, mean_statistics: Array) -> Array:
        return self.to_natural(mean_statistics)

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        return (x,)

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return self.to_natural(means)

    def from_moments(self, mean: Array, variance: Array) -> Array:
        return namespace(mean).where(mean > LEAST_RATE, mean, 0.0 * mean + LEAST_RATE)[..., None]

    def mean(self, natural: Array) -> Array:
        return namespace(natural).exp(natural[..., 0])

    def mode(self, natural: Array) -> Array:
        xp = namespace(natural)
        return xp.floor(xp.exp(natural[..., 0]))

    def quantile(self, natural: Array, level: float) -> Array:
        xp = namespace(natural)
        return xp.scipy_quantile("poisson", level, xp.exp(natural[..., 0]))

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        rate = xp.exp(natural[..., 0])
        return xp.draw_poisson(rng, xp.broadcast_to(rate, (*shape, *rate.shape)))


POISSON = register(Poisson())


@final
class NegativeBinomial(Unscaled):
    """Negative binomial with mean and dispersion, for counts that vary more than a Poisson's.

    The variance is mean + dispersion * mean^2; without dispersion it is a Poisson, with 1 a geometric. No exponential
    family: with the dispersion unknown there are no sufficient statistics. The natural parameters are the logs of the
    usual ones, in which the Fisher matrix is diagonal; the statistics are x and x^2, and `fit` matches their means.
    """

    name = "negative-binomial"
    usual_names = ("mean", "dispersion")
    support = Support(0.0, whole=True)
    # Of a dispersion below e^-18 nothing is left in double precision: r = 1 / dispersion is added to counts.
    natural_bounds = ((-INF, INF), (-18.0, INF))
    kinds = ("count",)
    takes_tricks = True
    least_dispersion = 1e-6
    usual_limits = ((LEAST_RATE, INF), (least_dispersion, INF))

    def statistics(self, x: Array) -> Array:
        return namespace(x).stack([x, 1.0 * x * x])

    def mean_statistics(self, natural: Array) -> Array:
        xp = namespace(natural)
        mean, dispersion = xp.exp(natural[..., 0]), xp.exp(natural[..., 1])
        return xp.stack([mean, mean + (1.0 + dispersion) * mean * mean])

    def fisher(self, natural: Array) -> Array:
        """Fisher information: of log(mean), mean / (1 + dispersion mean); of log(dispersion), by quadrature.

        With r = 1 / dispersion and q = mean / (mean + r) the second is r^2 times the sum over j > 1 of q^j B(j, r) / j
        (Fisher, 1941), which is r times the integral over y > 0 of exp(-y) (-log(1 - q t) - q t) / t, where
        1 - t = exp(-y / r). The trapezoidal rule in log y gains digits exponentially.
        """
        xp = namespace(natural)
        mean, dispersion = xp.exp(natural[..., 0]), xp.exp(natural[..., 1])
        a, m = dispersion[..., None], mean[..., None]
        nodes = xp.asarray(np.linspace(0.0, 1.0, 513), natural)
        low = -20.0 - xp.log(1.0 + a)  # the integrand falls like y^2 below min(1, r)
        step = (4.0 - low) / 512.0
        y = xp.exp(low + (4.0 - low) * nodes)
        z = y * a
        small = 0.0 * z
        for k in range(12, 1, -1):  # t = 1 - exp(-z), which would cancel for small z
            small = z / k * (1.0 - small)
        t = xp.where(z < 0.1, z * (1.0 - small), 1.0 - xp.exp(-z))
        left = 1.0 / (1.0 + a * m)  # 1 - q
        log = xp.log(left + (1.0 - left) * xp.exp(-z))
        second = (xp.exp(-y) * y * excess(-(1.0 - left) * t, log) / t * step).sum(-1) / dispersion
        zero = xp.zeros_like(mean)
        flat = xp.stack([mean / (1.0 + dispersion * mean), zero, zero, second])
        return flat.reshape((*flat.shape[:-1], 2, 2))

    def _log_density(self, x: Array, natural: Array) -> Array:
        # Loader's form (2000), as a binomial's: with Stirling's formula only terms of the size of the result are left.
        xp = namespace(natural, x)
        log_mean, log_r = natural[..., 0], -natural[..., 1]
        mean, r = xp.exp(log_mean), xp.exp(log_r)
        some = xp.where(x == 0, 1.0, x)
        n, total = some + r, mean + r
        size = -0.5 * xp.log1p(some / r) - 0.5 * xp.log(some) - HALF_LOG_2PI
        size = size + stirling_error(n, xp) - stirling_error(r, xp) - stirling_error(some, xp)
        log_share = xp.log(n) - xp.log(total)
        of_r = r * excess((some - mean) / total, log_share)
        of_x = some * excess((mean - some) / some * (r / total), log_share + log_mean - xp.log(some))
        return xp.where(x == 0, -r * xp.log1p(mean / r), size - of_r - of_x)

    def to_usual(self, natural: Array) -> Array:
        return namespace(natural).exp(natural)

    def to_natural(self, usual: Array) -> Array:
        return namespace(usual).log(usual)

    def fit(self, mean_statistics: Array) -> Array:
        mean, square = mean_statistics[..., 0], mean_statistics[..., 1]
        return self.to_natural(self._match(mean, square - mean * mean))

    def _match(self, mean: Array, variance: Array) -> Array:
        """Usual parameters by mean and variance; a variance below a Poisson's leaves the least dispersion."""
        xp = namespace(mean)
        some = xp.where(mean > 0.0, mean, 1.0)
        dispersion = (variance - mean) / (some * some)
        least = 0.0 * dispersion + self.least_dispersion
        return xp.stack([mean, xp.where(dispersion > least, dispersion, least)])

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        return x, x * x

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return self.fit(means)

    def from_moments(self, mean: Array, variance: Array) -> Array:
        return self._match(namespace(mean).where(mean > LEAST_RATE, mean, 0.0 * mean + LEAST_RATE), variance)

    def mean(self, natural: Array) -> Array:
        return namespace(natural).exp(natural[..., 0])

    def mode(self, natural: Array) -> Array:
        xp = namespace(natural)
        top = xp.exp(natural[..., 0]) * (1.0 - xp.exp(natural[..., 1]))
        return xp.floor(xp.where(top > 0.0, top, xp.zeros_like(top)))

    def quantile(self, natural: Array, level: float) -> Array:
        xp = namespace(natural)
        mean, dispersion = xp.exp(natural[..., 0]), xp.exp(natural[..., 1])
        return xp.scipy_quantile("nbinom", level, 1.0 / dispersion, 1.0 / (1.0 + dispersion * mean))

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        # A Poisson whose rate is gamma distributed.
        xp = namespace(natural)
        mean, dispersion = xp.exp(natural[..., 0]), xp.exp(natural[..., 1])
        first, second = xp.split(rng)
        drawn = xp.draw_gamma(first, xp.broadcast_to(1.0 / dispersion, (*shape, *mean.shape)))
        return xp.draw_poisson(second, mean * dispersion * drawn)


register(NegativeBinomial())


@final
class Categorical(Unscaled, ExponentialFamily):
    """Categorical over the codes 0 .. n_classes - 1: natural log p (up to a constant), statistics one-hot.

    `mean` and `median` are those of the code: of use for ordered classes only.
    """

    name = "categorical"
    kinds = ("categorical", "ordinal")
    default_for = ("categorical", "ordinal")
    takes_tricks = True
    one_per_class = True

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.usual_names = tuple(f"probability_{k}" for k in range(n_classes))
        self.support = Support(0.0, n_classes - 1.0, whole=True)
        self.natural_bounds = ((-INF, INF),) * n_classes
        self.usual_limits = (PROBABLE,) * n_classes

    def statistics(self, x: Array) -> Array:
        return namespace(x).one_hot(x, self.n_classes)

    def log_base(self, x: Array) -> Array:
        return 0.0 * x

    def log_partition(self, natural: Array) -> Array:
        return namespace(natural).logsumexp(natural)

    def mean_statistics(self, natural: Array) -> Array:
        return self.to_usual(natural)

    def fisher(self, natural: Array) -> Array:
        p = self.to_usual(natural)
        identity = namespace(natural).eye_like(self.n_classes, p)
        return p[..., None] * identity - p[..., None] * p[..., None, :]

    def _log_density(self, x: Array, natural: Array) -> Array:
        xp = namespace(natural, x)
        # A class of probability 0 has an infinite natural parameter: 0 * inf must not make the others NaN.
        hit = xp.one_hot(x, self.n_classes) > 0
        return xp.where(hit, natural, xp.zeros_like(natural)).sum(-1) - xp.logsumexp(natural)

    def to_usual(self, natural: Array) -> Array:
        xp = namespace(natural)
        return xp.exp(natural - xp.logsumexp(natural)[..., None])

    def to_natural(self, usual: Array) -> Array:
        return namespace(usual).log(usual)

    def fit(self, mean_statistics: Array) -> Array:
        return self.to_natural(mean_statistics)

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        xp = namespace(x)
        # 0 * x rather than 0: a missing cell must stay missing.
        return tuple(xp.where(x == k, 1.0, 0.0 * x) for k in range(self.n_classes))

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return self.to_natural(means)

    def mean(self, natural: Array) -> Array:
        p = self.to_usual(natural)
        return (namespace(natural).cumsum(0.0 * p + 1.0) * p).sum(-1) - 1.0

    def mode(self, natural: Array) -> Array:
        return namespace(natural).argmax(natural)

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        return self.quantile(natural, namespace(natural).draw_uniform(rng, (*shape, *natural.shape[:-1]), natural))

    def quantile(self, natural: Array, level: Any) -> Array:
        xp = namespace(natural)
        below = xp.cumsum(self.to_usual(natural))[..., :-1] < xp.asarray(level, natural)[..., None]
        return (xp.zeros_like(natural[..., :-1]) + below).sum(-1)


register_by_classes(Categorical)
