"""Families of real and of positive numbers."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, final

import numpy as np

from evenly.likelihoods.arrays import Array, Namespace, namespace
from evenly.likelihoods.base import ExponentialFamily, Likelihood, Multiplied, Pivot, Powers, Support, Unscaled
from evenly.likelihoods.registry import register
from evenly.likelihoods.special import HALF_LOG_2PI, INF, excess, gamma_shape, log_quotient, log_ratio, stirling_error

STANDARD = NormalDist()


def _inverse(spread: Array) -> Array:
    """Return 1 / spread, infinite where rounding left no spread, or less."""
    xp = namespace(spread)
    return xp.where(spread > 0.0, 1.0 / xp.where(spread > 0.0, spread, 1.0), INF)


def _symmetric(xp: Namespace, a: Array, b: Array, d: Array) -> Array:
    flat = xp.stack([a, b, b, d])
    return flat.reshape((*flat.shape[:-1], 2, 2))


def _normal_parts(natural: Array) -> tuple[Array, Array]:
    """Mean and variance from a normal's natural parameters."""
    return -natural[..., 0] / (2.0 * natural[..., 1]), -1.0 / (2.0 * natural[..., 1])


@final
class Normal(Multiplied):
    """Normal with mean and standard deviation: natural (mean/std^2, -1/(2 std^2)), statistics (x, x^2)."""

    name = "normal"
    usual_names = ("mean", "std")
    support = Support()
    natural_bounds = ((-INF, INF), (-INF, 0.0))
    kinds = ("real", "positive", "date")
    default_for = ("real", "date")
    location_scale = True
    powers = (1, 2)
    usual_powers = (1, 1)

    def statistics(self, x: Array) -> Array:
        return namespace(x).stack([x, x * x])

    def log_base(self, x: Array) -> Array:
        return 0.0 * x - HALF_LOG_2PI

    def log_partition(self, natural: Array) -> Array:
        xp = namespace(natural)
        mean, variance = _normal_parts(natural)
        return 0.5 * mean * mean / variance + 0.5 * xp.log(variance)

    def mean_statistics(self, natural: Array) -> Array:
        mean, variance = _normal_parts(natural)
        return namespace(natural).stack([mean, mean * mean + variance])

    def fisher(self, natural: Array) -> Array:
        mean, variance = _normal_parts(natural)
        cross = 2.0 * mean * variance
        return _symmetric(namespace(natural), variance, cross, 2.0 * variance**2 + 2.0 * mean * cross)

    def _log_density(self, x: Array, natural: Array) -> Array:
        xp = namespace(natural, x)
        mean, variance = _normal_parts(natural)
        return -0.5 * (x - mean) ** 2 / variance - 0.5 * xp.log(variance) - HALF_LOG_2PI

    def to_usual(self, natural: Array) -> Array:
        xp = namespace(natural)
        mean, variance = _normal_parts(natural)
        return xp.stack([mean, xp.sqrt(variance)])

    def to_natural(self, usual: Array) -> Array:
        mean, precision = usual[..., 0], usual[..., 1] ** -2.0
        return namespace(usual).stack([mean * precision, -0.5 * precision])

    def fit(self, mean_statistics: Array) -> Array:
        return self.fit_terms(mean_statistics, Pivot())

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        z = (x - pivot.center) / pivot.unit
        return z, z * z

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        xp = namespace(means)
        mean = pivot.center / pivot.unit + means[..., 0]
        precision = _inverse(means[..., 1] - means[..., 0] ** 2)
        # 0 * infinity is not a number: without spread, the sign of a mean of 0 does not matter.
        mean = xp.where((mean == 0.0) & (precision == INF), 1.0, mean)
        return xp.stack([mean * precision, -0.5 * precision])

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        ratio, shift = old.unit / new.unit, (old.center - new.center) / new.unit
        return _affine(means, ratio, shift)

    def mean(self, natural: Array) -> Array:
        return _normal_parts(natural)[0]

    def mode(self, natural: Array) -> Array:
        return _normal_parts(natural)[0]

    def quantile(self, natural: Array, level: float) -> Array:
        mean, variance = _normal_parts(natural)
        return mean + namespace(natural).sqrt(variance) * STANDARD.inv_cdf(level)

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        mean, variance = _normal_parts(natural)
        return mean + xp.sqrt(variance) * xp.draw_normal(rng, (*shape, *mean.shape), mean)


def _affine(means: Array, ratio: float, shift: float) -> Array:
    """Means of (z', z'^2) from those of (z, z^2), for z' = ratio z + shift."""
    first = ratio * means[..., 0] + shift
    second = ratio * ratio * means[..., 1] + 2.0 * shift * ratio * means[..., 0] + shift * shift
    return namespace(means).stack([first, second])


NORMAL = register(Normal())


@final
class LogNormal(Powers):
    """Log-normal: log x is normal. It is scaled by x -> x^scale, which multiplies log x."""

    name = "log-normal"
    usual_names = ("log_mean", "log_std")
    support = Support(0.0)
    natural_bounds = NORMAL.natural_bounds
    kinds = ("positive",)
    default_for = ("positive",)
    location_scale = True
    needs_unit = False
    in_logs = True
    powers = (1, 2)
    usual_powers = (1, 1)

    @property
    def modelled_as(self) -> Likelihood:
        """The normal of log x, which no precision overflows."""
        return NORMAL

    def statistics(self, x: Array) -> Array:
        return NORMAL.statistics(namespace(x).log(x))

    def log_base(self, x: Array) -> Array:
        return -namespace(x).log(x) - HALF_LOG_2PI

    def log_partition(self, natural: Array) -> Array:
        return NORMAL.log_partition(natural)

    def mean_statistics(self, natural: Array) -> Array:
        return NORMAL.mean_statistics(natural)

    def fisher(self, natural: Array) -> Array:
        return NORMAL.fisher(natural)

    def _log_density(self, x: Array, natural: Array) -> Array:
        log_x = namespace(natural, x).log(x)
        return NORMAL._log_density(log_x, natural) - log_x

    def to_usual(self, natural: Array) -> Array:
        return NORMAL.to_usual(natural)

    def to_natural(self, usual: Array) -> Array:
        return NORMAL.to_natural(usual)

    def fit(self, mean_statistics: Array) -> Array:
        return NORMAL.fit(mean_statistics)

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        if pivot.center:  # a narrow column: log(x) - log(unit) would lose its spread
            z = log_ratio((x - pivot.unit) / pivot.unit, x / pivot.unit)
        else:
            z = namespace(x).log(x) - math.log(pivot.unit)
        return z, z * z

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return NORMAL.fit_terms(means, Pivot(math.log(pivot.unit)))

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return _affine(means, 1.0, log_quotient(old.unit, new.unit))

    def scale_data(self, x: Any, scale: Any) -> Any:
        return x**scale

    def unscale_data(self, x: Any, scale: Any) -> Any:
        return x ** (1.0 / scale)

    def log_jacobian(self, x: Array, scale: Array) -> Array:
        xp = namespace(x, scale)
        return xp.log(xp.asarray(scale, x)) + (scale - 1.0) * xp.log(x)

    def mean(self, natural: Array) -> Array:
        mean, variance = _normal_parts(natural)
        return namespace(natural).exp(mean + 0.5 * variance)

    def mode(self, natural: Array) -> Array:
        mean, variance = _normal_parts(natural)
        return namespace(natural).exp(mean - variance)

    def quantile(self, natural: Array, level: float) -> Array:
        return namespace(natural).exp(NORMAL.quantile(natural, level))

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        return namespace(natural).exp(NORMAL.sample(rng, natural, shape))


LOG_NORMAL = register(LogNormal())


def _repivot_gap(means: Array, old: float, new: float) -> Array:
    """Means of (u', excess(u')) from those of (u, excess(u)), for 1 + u' = (1 + u) old / new."""
    ratio, change = old / new, (old - new) / new  # ratio - 1 would have lost what two close pivots differ by
    first = change + ratio * means[..., 0]
    gap = float(excess(np.asarray(change), math.log(old) - math.log(new)))
    second = gap + change * means[..., 0] + means[..., 1]
    return namespace(means).stack([first, second])


def _fit_gamma(means: Array) -> tuple[Array, Array]:
    """Shape and rate of y = 1 + u from the means of (u, excess(u))."""
    gap = means[..., 1] - excess(means[..., 0])
    shape = gamma_shape(gap)
    return shape, shape / (1.0 + means[..., 0])


@final
class Gamma(Multiplied):
    """Gamma with shape and rate: natural (shape - 1, -rate), statistics (log x, x)."""

    name = "gamma"
    usual_names = ("shape", "rate")
    support = Support(0.0)
    natural_bounds = ((-1.0, INF), (-INF, 0.0))
    kinds = ("positive",)
    powers = (0, 1)
    usual_powers = (0, -1)

    def statistics(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.stack([xp.log(x), x])

    def log_base(self, x: Array) -> Array:
        return 0.0 * x

    def log_partition(self, natural: Array) -> Array:
        xp = namespace(natural)
        shape, rate = natural[..., 0] + 1.0, -natural[..., 1]
        return xp.gammaln(shape) - shape * xp.log(rate)

    def mean_statistics(self, natural: Array) -> Array:
        xp = namespace(natural)
        shape, rate = natural[..., 0] + 1.0, -natural[..., 1]
        return xp.stack([xp.digamma(shape) - xp.log(rate), shape / rate])

    def fisher(self, natural: Array) -> Array:
        xp = namespace(natural)
        shape, rate = natural[..., 0] + 1.0, -natural[..., 1]
        return _symmetric(xp, xp.trigamma(shape), 1.0 / rate, shape / rate**2)

    def _log_density(self, x: Array, natural: Array) -> Array:
        # With x / mean and Stirling's formula, only terms of the size of the result are left.
        xp = namespace(natural, x)
        shape, rate = natural[..., 0] + 1.0, -natural[..., 1]
        mean = shape / rate
        size = 0.5 * xp.log(shape) - HALF_LOG_2PI - stirling_error(shape, xp)
        return size - shape * excess((x - mean) / mean, xp.log(x / mean)) - xp.log(x)

    def to_usual(self, natural: Array) -> Array:
        return namespace(natural).stack([natural[..., 0] + 1.0, -natural[..., 1]])

    def to_natural(self, usual: Array) -> Array:
        return namespace(usual).stack([usual[..., 0] - 1.0, -usual[..., 1]])

    def fit(self, mean_statistics: Array) -> Array:
        xp = namespace(mean_statistics)
        log_mean, mean = mean_statistics[..., 0], mean_statistics[..., 1]
        shape = gamma_shape(xp.log(mean) - log_mean)
        return self.to_natural(xp.stack([shape, shape / mean]))

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        u = (x - pivot.unit) / pivot.unit
        return u, excess(u, namespace(x).log(x / pivot.unit))

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return self.to_natural(namespace(means).stack([*_fit_gamma(means)]))

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return _repivot_gap(means, old.unit, new.unit)

    def mean(self, natural: Array) -> Array:
        return (natural[..., 0] + 1.0) / -natural[..., 1]

    def mode(self, natural: Array) -> Array:
        xp = namespace(natural)
        return xp.where(natural[..., 0] > 0.0, natural[..., 0], 0.0 * natural[..., 0]) / -natural[..., 1]

    def quantile(self, natural: Array, level: float) -> Array:
        return namespace(natural).gamma_quantile(natural[..., 0] + 1.0, level) / -natural[..., 1]

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        repeated = xp.broadcast_to(natural[..., 0] + 1.0, (*shape, *natural.shape[:-1]))
        return xp.draw_gamma(rng, repeated) / -natural[..., 1]


GAMMA = register(Gamma())


@final
class InverseGamma(Multiplied):
    """Inverse gamma (1/x is gamma): natural (-shape - 1, -scale), statistics (log x, 1/x)."""

    name = "inverse-gamma"
    usual_names = ("shape", "scale")
    support = Support(0.0)
    natural_bounds = ((-INF, -1.0), (-INF, 0.0))
    kinds = ("positive",)
    powers = (0, -1)
    usual_powers = (0, 1)

    @staticmethod
    def _reciprocal(natural: Array) -> Array:
        """Natural parameters of the gamma that 1/x has."""
        return namespace(natural).stack([-natural[..., 0] - 2.0, natural[..., 1]])

    def statistics(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.stack([xp.log(x), 1.0 / x])

    def log_base(self, x: Array) -> Array:
        return 0.0 * x

    def log_partition(self, natural: Array) -> Array:
        return GAMMA.log_partition(self._reciprocal(natural))

    def mean_statistics(self, natural: Array) -> Array:
        of_gamma = GAMMA.mean_statistics(self._reciprocal(natural))
        return namespace(natural).stack([-of_gamma[..., 0], of_gamma[..., 1]])

    def fisher(self, natural: Array) -> Array:
        of_gamma = GAMMA.fisher(self._reciprocal(natural))
        return _symmetric(namespace(natural), of_gamma[..., 0, 0], -of_gamma[..., 0, 1], of_gamma[..., 1, 1])

    def _log_density(self, x: Array, natural: Array) -> Array:
        xp = namespace(natural, x)
        return GAMMA._log_density(1.0 / x, self._reciprocal(natural)) - 2.0 * xp.log(x)

    def to_usual(self, natural: Array) -> Array:
        return namespace(natural).stack([-natural[..., 0] - 1.0, -natural[..., 1]])

    def to_natural(self, usual: Array) -> Array:
        return namespace(usual).stack([-usual[..., 0] - 1.0, -usual[..., 1]])

    def fit(self, mean_statistics: Array) -> Array:
        xp = namespace(mean_statistics)
        log_mean, inverse = mean_statistics[..., 0], mean_statistics[..., 1]
        shape = gamma_shape(xp.log(inverse) + log_mean)
        return self.to_natural(xp.stack([shape, shape / inverse]))

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        u = (pivot.unit - x) / x
        return u, excess(u, -namespace(x).log(x / pivot.unit))

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return self.to_natural(namespace(means).stack([*_fit_gamma(means)]))

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return _repivot_gap(means, new.unit, old.unit)

    def mean(self, natural: Array) -> Array:
        xp = namespace(natural)
        shape = -natural[..., 0] - 1.0
        return xp.where(shape > 1.0, -natural[..., 1] / xp.where(shape > 1.0, shape - 1.0, 1.0), INF)

    def mode(self, natural: Array) -> Array:
        return natural[..., 1] / natural[..., 0]

    def quantile(self, natural: Array, level: float) -> Array:
        return 1.0 / GAMMA.quantile(self._reciprocal(natural), 1.0 - level)

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        return 1.0 / GAMMA.sample(rng, self._reciprocal(natural), shape)


INVERSE_GAMMA = register(InverseGamma())


@final
class InverseGaussian(Multiplied):
    """Inverse Gaussian with mean and shape: natural (-shape/(2 mean^2), -shape/2), statistics (x, 1/x)."""

    name = "inverse-gaussian"
    usual_names = ("mean", "shape")
    support = Support(0.0)
    natural_bounds = ((-INF, 0.0), (-INF, 0.0))
    kinds = ("positive",)
    powers = (1, -1)
    usual_powers = (1, 1)

    @staticmethod
    def _parts(natural: Array) -> tuple[Array, Array]:
        return namespace(natural).sqrt(natural[..., 1] / natural[..., 0]), -2.0 * natural[..., 1]

    def statistics(self, x: Array) -> Array:
        return namespace(x).stack([x, 1.0 / x])

    def log_base(self, x: Array) -> Array:
        return -1.5 * namespace(x).log(x) - HALF_LOG_2PI

    def log_partition(self, natural: Array) -> Array:
        xp = namespace(natural)
        return -2.0 * xp.sqrt(natural[..., 0] * natural[..., 1]) - 0.5 * xp.log(-2.0 * natural[..., 1])

    def mean_statistics(self, natural: Array) -> Array:
        mean, shape = self._parts(natural)
        return namespace(natural).stack([mean, 1.0 / mean + 1.0 / shape])

    def fisher(self, natural: Array) -> Array:
        mean, shape = self._parts(natural)
        corner = 1.0 / (mean * shape) + 2.0 / shape**2
        return _symmetric(namespace(natural), mean**3 / shape, -mean / shape, corner)

    def _log_density(self, x: Array, natural: Array) -> Array:
        xp = namespace(natural, x)
        mean, shape = self._parts(natural)
        away = (x - mean) / mean
        return 0.5 * xp.log(shape) - HALF_LOG_2PI - 1.5 * xp.log(x) - 0.5 * shape * away**2 / x

    def to_usual(self, natural: Array) -> Array:
        return namespace(natural).stack([*self._parts(natural)])

    def to_natural(self, usual: Array) -> Array:
        mean, shape = usual[..., 0], usual[..., 1]
        return namespace(usual).stack([-0.5 * shape / mean**2, -0.5 * shape])

    def fit(self, mean_statistics: Array) -> Array:
        mean, inverse = mean_statistics[..., 0], mean_statistics[..., 1]
        return self.to_natural(namespace(mean).stack([mean, _inverse(inverse - 1.0 / mean)]))

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        u = (x - pivot.unit) / pivot.unit
        return u, u * u / (x / pivot.unit)

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        u, v = means[..., 0], means[..., 1]
        # mean(x) mean(1/x) - 1 = mean / shape, from 1/(1 + u) = 1 - u + u^2/(1 + u)
        ratio = v * (1.0 + u) - u * u
        return self.to_natural(namespace(means).stack([1.0 + u, (1.0 + u) * _inverse(ratio)]))

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        ratio, change = old.unit / new.unit, (old.unit - new.unit) / new.unit
        first = change + ratio * means[..., 0]
        # (ratio - 1/ratio) = change (1 + 1/ratio)
        second = change**2 / ratio + change * (1.0 + 1.0 / ratio) * means[..., 0] + means[..., 1] / ratio
        return namespace(means).stack([first, second])

    def mean(self, natural: Array) -> Array:
        return self._parts(natural)[0]

    def mode(self, natural: Array) -> Array:
        mean, shape = self._parts(natural)
        r = 1.5 * mean / shape
        return mean / (namespace(natural).sqrt(1.0 + r * r) + r)

    def quantile(self, natural: Array, level: float) -> Array:
        mean, shape = self._parts(natural)
        return namespace(natural).scipy_quantile("invgauss", level, mean / shape, scale=shape)

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        # Michael, Schucany and Haas (1976): one of the two roots that a chi-square draw belongs to.
        xp = namespace(natural)
        mean, own_shape = self._parts(natural)
        first, second = xp.split(rng)
        half = 0.5 * mean / own_shape * xp.draw_normal(first, (*shape, *mean.shape), mean) ** 2
        smaller = mean / (1.0 + half + xp.sqrt(half * (2.0 + half)))
        chosen = xp.draw_uniform(second, (*shape, *mean.shape), mean) <= mean / (mean + smaller)
        return xp.where(chosen, smaller, mean**2 / smaller)


INVERSE_GAUSSIAN = register(InverseGaussian())


@final
class Exponential(Multiplied):
    """Exponential with a rate: natural -rate, statistic x."""

    name = "exponential"
    usual_names = ("rate",)
    support = Support(0.0, closed=True)
    natural_bounds = ((-INF, 0.0),)
    kinds = ("positive",)
    powers = (1,)
    usual_powers = (-1,)

    def statistics(self, x: Array) -> Array:
        return x[..., None]

    def log_base(self, x: Array) -> Array:
        return 0.0 * x

    def log_partition(self, natural: Array) -> Array:
        return -namespace(natural).log(-natural[..., 0])

    def mean_statistics(self, natural: Array) -> Array:
        return -1.0 / natural

    def fisher(self, natural: Array) -> Array:
        return (natural**-2.0)[..., None]

    def _log_density(self, x: Array, natural: Array) -> Array:
        return natural[..., 0] * x + namespace(natural).log(-natural[..., 0])

    def to_usual(self, natural: Array) -> Array:
        return -natural

    def to_natural(self, usual: Array) -> Array:
        return -usual

    def fit(self, mean_statistics: Array) -> Array:
        return -1.0 / mean_statistics

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        return (x / pivot.unit,)

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return -1.0 / means

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return means * (old.unit / new.unit)

    def mean(self, natural: Array) -> Array:
        return -1.0 / natural[..., 0]

    def mode(self, natural: Array) -> Array:
        return 0.0 * natural[..., 0]

    def quantile(self, natural: Array, level: float) -> Array:
        return math.log1p(-level) / natural[..., 0]

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        return xp.log1p(-xp.draw_uniform(rng, (*shape, *natural.shape[:-1]), natural)) / natural[..., 0]


EXPONENTIAL = register(Exponential())


@final
class Rayleigh(Multiplied):
    """Rayleigh with sigma: natural -1/sigma^2, statistic x^2/2."""

    name = "rayleigh"
    usual_names = ("sigma",)
    support = Support(0.0)
    natural_bounds = ((-INF, 0.0),)
    kinds = ("positive",)
    powers = (2,)
    usual_powers = (1,)

    def statistics(self, x: Array) -> Array:
        return (0.5 * x * x)[..., None]

    def log_base(self, x: Array) -> Array:
        return namespace(x).log(x)

    def log_partition(self, natural: Array) -> Array:
        return -namespace(natural).log(-natural[..., 0])

    def mean_statistics(self, natural: Array) -> Array:
        return -1.0 / natural

    def fisher(self, natural: Array) -> Array:
        return (natural**-2.0)[..., None]

    def _log_density(self, x: Array, natural: Array) -> Array:
        xp = namespace(natural, x)
        return xp.log(x) + xp.log(-natural[..., 0]) + 0.5 * natural[..., 0] * x * x

    def to_usual(self, natural: Array) -> Array:
        return (-natural) ** -0.5

    def to_natural(self, usual: Array) -> Array:
        return -(usual**-2.0)

    def fit(self, mean_statistics: Array) -> Array:
        return -1.0 / mean_statistics

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        r = x / pivot.unit
        return (0.5 * r * r,)

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return -1.0 / means

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return means * (old.unit / new.unit) ** 2

    def mean(self, natural: Array) -> Array:
        return math.sqrt(math.pi / 2.0) * self.to_usual(natural)[..., 0]

    def mode(self, natural: Array) -> Array:
        return self.to_usual(natural)[..., 0]

    def quantile(self, natural: Array, level: float) -> Array:
        return math.sqrt(-2.0 * math.log1p(-level)) * self.to_usual(natural)[..., 0]

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        uniform = xp.draw_uniform(rng, (*shape, *natural.shape[:-1]), natural)
        return xp.sqrt(2.0 * xp.log1p(-uniform) / natural[..., 0])


RAYLEIGH = register(Rayleigh())


@final
class UnitNormal(Unscaled, ExponentialFamily):
    """Normal with standard deviation 1: natural mean, statistic x. Its log-density is minus half the squared error.

    Its smoothness is 1 whatever its parameter, so a column that is learned well does not get larger gradients. Its base
    measure does not follow a scale, so it is for columns that were standardized before.
    """

    name = "unit-normal"
    usual_names = ("mean",)
    support = Support()
    natural_bounds = ((-INF, INF),)

    def statistics(self, x: Array) -> Array:
        return 1.0 * x[..., None]

    def log_base(self, x: Array) -> Array:
        return -0.5 * x * x - HALF_LOG_2PI

    def log_partition(self, natural: Array) -> Array:
        return 0.5 * natural[..., 0] ** 2

    def mean_statistics(self, natural: Array) -> Array:
        return 1.0 * natural

    def fisher(self, natural: Array) -> Array:
        return 0.0 * natural[..., None] + 1.0

    def _log_density(self, x: Array, natural: Array) -> Array:
        return -0.5 * (x - natural[..., 0]) ** 2 - HALF_LOG_2PI

    def to_usual(self, natural: Array) -> Array:
        return 1.0 * natural

    def to_natural(self, usual: Array) -> Array:
        return 1.0 * usual

    def fit(self, mean_statistics: Array) -> Array:
        return 1.0 * mean_statistics

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        return (x,)

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return 1.0 * means

    def mean(self, natural: Array) -> Array:
        return 1.0 * natural[..., 0]

    def mode(self, natural: Array) -> Array:
        return 1.0 * natural[..., 0]

    def quantile(self, natural: Array, level: float) -> Array:
        return natural[..., 0] + STANDARD.inv_cdf(level)

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        mean = natural[..., 0]
        return mean + namespace(natural).draw_normal(rng, (*shape, *mean.shape), mean)


UNIT_NORMAL = UnitNormal()
"""Not registered: models use it for standardized columns, nobody asks for it by name."""
