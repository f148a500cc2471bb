"""Exponential families: log p(x; natural) = log_base(x) + natural . statistics(x) - log_partition(natural).

Arrays of natural parameters, statistics and usual parameters hold them along the last axis; everything
broadcasts over the axes before it. All functions take NumPy arrays, JAX arrays or PyTorch tensors and
return the same. The Hessian of log p in the natural parameters is minus the Fisher matrix, whatever x is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from evenly._support import TableError
from evenly.likelihoods.arrays import Array, Namespace, namespace

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
INF = math.inf
STANDARD = NormalDist()


@dataclass(frozen=True)
class Support:
    """The values a likelihood gives a density to: an interval, possibly of whole numbers only.

    Examples
    --------
    >>> Support(0.0).contains(np.array([-1.0, 0.0, 2.5]))
    array([False, False,  True])
    >>> print(Support(0.0))
    values > 0
    >>> print(Support(0.0, closed=True))
    values >= 0
    """

    lower: float = -INF
    upper: float = INF
    whole: bool = False
    closed: bool = False
    """Whether the lower end belongs to it; of whole numbers both ends do."""

    def contains(self, x: Array) -> Array:
        """Say which of the values lie in the support."""
        if self.whole:
            finite = (x >= self.lower) & (x <= self.upper) & (x < INF)
            return finite & (x == namespace(x).floor(x))
        above = (x >= self.lower) & (x > -INF) if self.closed else x > self.lower
        return above & (x < self.upper)

    @property
    def typical(self) -> float:
        """A value well inside, to stand in for one outside where a formula must not fail."""
        if self.lower == -INF:
            return 0.0 if self.upper == INF else self.upper - max(1.0, abs(self.upper))
        if self.whole:
            return self.lower
        if self.upper == INF:
            return self.lower + max(1.0, abs(self.lower))
        return 0.5 * self.lower + 0.5 * self.upper

    def __str__(self) -> str:
        if self.whole:
            return f"whole numbers from {self.lower:g}" + (f" to {self.upper:g}" if self.upper < INF else "")
        if self.lower == -INF:
            return "real values" if self.upper == INF else f"values < {self.upper:g}"
        sign = ">=" if self.closed else ">"
        return f"values {sign} {self.lower:g}" + (f" and < {self.upper:g}" if self.upper < INF else "")


class Pivot(NamedTuple):
    """Where a column lies (`center`) and how large it is (`unit`): moments are taken relative to both.

    Without it, the variance of values around 1e9 drowns in rounding and the squares of 1e300 overflow. Positive
    families use the unit alone; a center of 0 tells the log-normal that the column is wide, so that plain logs do.
    """

    center: float = 0.0
    unit: float = 1.0


class Likelihood(ABC):
    """One exponential family. Abstract methods are implemented once per family and never overridden again.

    Attributes
    ----------
    name : str
        Plain lower-case words, as they appear in schemas and summaries.
    usual_names : tuple of str
        Names of the usual parameters, in the order of `to_usual`.
    support : Support
        The values that have a density.
    natural_bounds : tuple of (float, float)
        The open interval that each natural parameter lives in.
    scalable : bool
        Whether the data may be scaled; false for discrete families, which need a trick first.
    needs_unit : bool
        Whether `fit_terms` returns the parameters of x / unit (families scaled by multiplication).
    in_logs : bool
        Whether scaling raises x to a power, so that the methods std, max and iqr look at log x.
    """

    name: str
    usual_names: tuple[str, ...]
    support: Support
    natural_bounds: tuple[tuple[float, float], ...]
    scalable: bool = True
    needs_unit: bool = True
    in_logs: bool = False

    def __repr__(self) -> str:
        return f"<likelihood {self.name}>"

    @final
    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles of a built-in likelihood are that likelihood itself: rooms tell them apart by identity."""
        if isinstance(self, Categorical):
            return get_likelihood, (self.name, self.n_classes)
        if LIKELIHOODS.get(self.name) is self:
            return get_likelihood, (self.name,)
        return super().__reduce_ex__(protocol)

    # --- the family -----------------------------------------------------------------------------------

    @abstractmethod
    def statistics(self, x: Array) -> Array:
        """Sufficient statistics of x, along a new last axis."""

    @abstractmethod
    def log_base(self, x: Array) -> Array:
        """Log of the base measure."""

    @abstractmethod
    def log_partition(self, natural: Array) -> Array:
        """Log-normalizer; its gradient is the mean of the statistics, its Hessian the Fisher matrix."""

    @abstractmethod
    def mean_statistics(self, natural: Array) -> Array:
        """Mean of the statistics: the gradient of the log-partition."""

    @abstractmethod
    def fisher(self, natural: Array) -> Array:
        """Covariance matrix of the statistics, over two new last axes."""

    @abstractmethod
    def _log_density(self, x: Array, natural: Array) -> Array:
        """Log-density inside the support, in a form that keeps its digits where the definition's terms cancel."""

    @final
    def log_density(self, x: Array, natural: Array) -> Array:
        """Log-density; minus infinity outside the support, not a number where x is not."""
        if self.support == Support():
            return self._log_density(x, natural)
        xp = namespace(natural, x)
        x = xp.asarray(x, natural)
        inside = self.support.contains(x)
        # What lies outside is replaced before the formula: not taken, it would still make gradients NaN.
        value = self._log_density(xp.where(inside, x, self.support.typical), natural)
        return xp.where(inside, value, xp.where(x != x, x, -INF))

    # --- parameters -----------------------------------------------------------------------------------

    @abstractmethod
    def to_usual(self, natural: Array) -> Array:
        """Usual parameters (`usual_names`) from natural ones."""

    @abstractmethod
    def to_natural(self, usual: Array) -> Array:
        """Natural parameters from usual ones."""

    @abstractmethod
    def fit(self, mean_statistics: Array) -> Array:
        """Maximum-likelihood natural parameters from mean sufficient statistics.

        A sample without spread has no maximum: the parameters are then infinite.
        """

    @abstractmethod
    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        """Return what one pass averages to fit the family: statistics relative to a pivot.

        `x` may also be a Narwhals expression: then so are the terms.
        """

    @abstractmethod
    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        """Maximum-likelihood natural parameters of x / unit from the means of the terms."""

    @abstractmethod
    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        """Means of the terms about another pivot, so that parts with different pivots can be merged."""

    # --- scaling --------------------------------------------------------------------------------------

    @abstractmethod
    def factors(self, scale: Array) -> Array:
        """Return f(scale): statistics(scaled x) = f(scale) * statistics(x) + a constant."""

    @abstractmethod
    def log_factors(self, log_scale: Array) -> Array:
        """Log of |f(scale)| from the log of the scale: scales beyond the range of f do not overflow."""

    @abstractmethod
    def scale_data(self, x: Any, scale: Any) -> Any:
        """Scale the data: x times scale; for the log-normal, x to the power of scale."""

    @abstractmethod
    def unscale_data(self, x: Any, scale: Any) -> Any:
        """Undo `scale_data`."""

    @abstractmethod
    def log_jacobian(self, x: Array, scale: Array) -> Array:
        """Log of the derivative of `scale_data` in x."""

    @abstractmethod
    def unscale_usual(self, usual: Array, scale: Array) -> Array:
        """Usual parameters in the data's units from those of the scaled data."""

    @final
    def scale_natural(self, natural: Array, scale: Array) -> Array:
        """Natural parameters of the scaled data: natural = f(scale) * scaled natural."""
        return natural / self.factors(namespace(natural, scale).asarray(scale, natural))

    @final
    def unscale_natural(self, natural: Array, scale: Array) -> Array:
        """Natural parameters in the data's units from those of the scaled data."""
        return natural * self.factors(namespace(natural, scale).asarray(scale, natural))

    # --- summaries of a density -----------------------------------------------------------------------

    @abstractmethod
    def mean(self, natural: Array) -> Array:
        """Mean; infinite where the family has none."""

    @abstractmethod
    def mode(self, natural: Array) -> Array:
        """Value of highest density, or the lower end where the density is unbounded there."""

    @abstractmethod
    def quantile(self, natural: Array, level: float) -> Array:
        """Smallest value with a probability of at least `level` up to it, where the array library has the function."""

    @final
    def median(self, natural: Array) -> Array:
        """Median, where the array library has the function for it."""
        return self.quantile(natural, 0.5)

    @abstractmethod
    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draw values of shape `shape + natural.shape[:-1]`.

        `rng` is a `numpy.random.Generator`, a JAX key or a `torch.Generator`, as the parameters are.
        """


# --- pieces that several families share -----------------------------------------------------------------


def _log_tail(s: Any) -> Any:
    """Return t of log(1 + u) = 2 s (1 + t), where s = u / (2 + u), for |u| < 0.1.

    The series of atanh(s) / s up to s^14: for |s| < 0.053 the first term left out is 2e-22.
    """
    square, series = s * s, 1.0 / 15.0
    for odd in range(13, 2, -2):
        series = 1.0 / odd + square * series
    return square * series


def log_ratio(u: Any, ratio: Any) -> Any:
    """Return log(ratio) with all its digits near ratio = 1, given u = ratio - 1 with all of its own.

    Both may be Narwhals expressions, which have no log1p.

    Examples
    --------
    >>> float(log_ratio(np.array(1e-9), np.array(1.0 + 1e-9)))
    9.999999995e-10
    """
    xp = namespace(u)
    s = u / (2.0 + u)
    return xp.where(xp.abs(u) < 0.1, 2.0 * s * (1.0 + _log_tail(s)), xp.log(ratio))


def _log_quotient(a: float, b: float) -> float:
    """Return log(a / b) with all its digits, though a and b be close, or their quotient out of range."""
    change = (a - b) / b
    if abs(change) < 0.1:
        return float(log_ratio(np.asarray(change), np.asarray(a / b)))
    return math.log(a) - math.log(b)


def excess(u: Any, log: Any = None) -> Any:
    """Return u - log(1 + u) >= 0, without cancellation near 0; `u` may be a Narwhals expression.

    Where u may come close to -1, give `log`, log(1 + u), as well: 1 + u has few digits left there.

    Examples
    --------
    >>> float(excess(np.array(1e-9)))
    4.9999999966...e-19
    """
    xp = namespace(u)
    s = u / (2.0 + u)
    # Both branches are finite for every u > -1: an infinity that is not taken would make gradients NaN.
    far = u - (xp.log(1.0 + u) if log is None else log)
    return xp.where(xp.abs(u) < 0.1, s * (u - 2.0 * _log_tail(s)), far)


def _stirling_error(a: Array, xp: Namespace) -> Array:
    """Return gammaln(a) - [(a - 1/2) log a - a + log(2 pi)/2], by its asymptotic series for a > 10."""
    large = xp.where(a > 10.0, a, 10.0 + xp.zeros_like(a))
    r = 1.0 / (large * large)
    # The first term left out, 1 / (156 a^13), is 6e-16 at 10.
    series = 1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * 691 / 360360))
    series = (1 / 12 - r * (1 / 360 - r * series)) / large
    small = xp.where(a > 10.0, 10.0 + xp.zeros_like(a), a)
    direct = xp.gammaln(small) - ((small - 0.5) * xp.log(small) - small + HALF_LOG_2PI)
    return xp.where(a > 10.0, series, direct)


def _log_minus_digamma(a: Array, xp: Namespace) -> tuple[Array, Array]:
    """Return log(a) - digamma(a) and minus its derivative; asymptotic for a > 20, where they cancel."""
    large = xp.where(a > 20.0, a, 20.0 + xp.zeros_like(a))
    i, r = 1.0 / large, 1.0 / (large * large)
    value = i / 2 + r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    slope = r / 2 + r * i * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * 5 / 66))))
    small = xp.where(a > 20.0, 20.0 + xp.zeros_like(a), a)
    return (
        xp.where(a > 20.0, value, xp.log(small) - xp.digamma(small)),
        xp.where(a > 20.0, slope, xp.trigamma(small) - 1.0 / small),
    )


def gamma_shape(gap: Array) -> Array:
    """Return the shape at which log(shape) - digamma(shape) equals the gap log(mean) - mean(log).

    Examples
    --------
    >>> from scipy.special import digamma
    >>> round(float(gamma_shape(np.log(3.5) - digamma(3.5))), 12)
    3.5
    """
    xp = namespace(gap)
    gap = xp.asarray(gap)
    # Rounding may leave no gap, or less: the shape is then infinite.
    spread = gap > 0.0
    gap = xp.where(spread, gap, 1.0 + xp.zeros_like(gap))
    # Minka's approximation is within 2 %; Newton in 1/shape then gains digits quadratically: from 2 % to
    # rounding in four steps, one to spare.
    a = (3.0 - gap + xp.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    for _ in range(5):
        value, slope = _log_minus_digamma(a, xp)
        a = 1.0 / (1.0 / a + (gap - value) / (a * a * slope))
    return xp.where(spread, a, INF)


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


class _Powers(Likelihood):
    """Families whose f(scale) and usual parameters are powers of the scale, declared as data."""

    powers: ClassVar[tuple[float, ...]]
    usual_powers: ClassVar[tuple[float, ...]]

    @final
    def factors(self, scale: Array) -> Array:
        xp = namespace(scale)
        scale = 1.0 * xp.asarray(scale)  # whole numbers have no negative powers
        return xp.stack([scale**power for power in self.powers])

    @final
    def log_factors(self, log_scale: Array) -> Array:
        xp = namespace(log_scale)
        log_scale = xp.asarray(log_scale)
        return xp.stack([power * log_scale for power in self.powers])

    @final
    def unscale_usual(self, usual: Array, scale: Array) -> Array:
        xp = namespace(usual, scale)
        scale = 1.0 * xp.asarray(scale, usual)
        return usual * xp.stack([scale**-power for power in self.usual_powers])


class _Multiplied(_Powers):
    """Families that are closed under multiplication of x by the scale."""

    @final
    def scale_data(self, x: Any, scale: Any) -> Any:
        return x * scale

    @final
    def unscale_data(self, x: Any, scale: Any) -> Any:
        return x / scale

    @final
    def log_jacobian(self, x: Array, scale: Array) -> Array:
        xp = namespace(x, scale)
        return xp.log(xp.asarray(scale, x)) + 0.0 * x


class _Unscaled(Likelihood):
    """Families whose data are never scaled: the discrete ones, and the normal of known spread."""

    scalable = False
    needs_unit = False

    @final
    def factors(self, scale: Array) -> Array:
        xp = namespace(scale)
        one = 0.0 * xp.asarray(scale) + 1.0
        return xp.stack([one for _ in self.natural_bounds])

    @final
    def log_factors(self, log_scale: Array) -> Array:
        return 0.0 * self.factors(log_scale)

    @final
    def scale_data(self, x: Any, scale: Any) -> Any:
        return x

    @final
    def unscale_data(self, x: Any, scale: Any) -> Any:
        return x

    @final
    def log_jacobian(self, x: Array, scale: Array) -> Array:
        return 0.0 * x

    @final
    def unscale_usual(self, usual: Array, scale: Array) -> Array:
        return usual

    @final
    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return means


# --- the continuous families ------------------------------------------------------------------------------


@final
class Normal(_Multiplied):
    """Normal with mean and standard deviation: natural (mean/std^2, -1/(2 std^2)), statistics (x, x^2)."""

    name = "normal"
    usual_names = ("mean", "std")
    support = Support()
    natural_bounds = ((-INF, INF), (-INF, 0.0))
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


NORMAL = Normal()


@final
class LogNormal(_Powers):
    """Log-normal: log x is normal. It is scaled by x -> x^scale, which multiplies log x."""

    name = "log-normal"
    usual_names = ("log_mean", "log_std")
    support = Support(0.0)
    natural_bounds = NORMAL.natural_bounds
    needs_unit = False
    in_logs = True
    powers = (1, 2)
    usual_powers = (1, 1)

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
        return _affine(means, 1.0, _log_quotient(old.unit, new.unit))

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
class Gamma(_Multiplied):
    """Gamma with shape and rate: natural (shape - 1, -rate), statistics (log x, x)."""

    name = "gamma"
    usual_names = ("shape", "rate")
    support = Support(0.0)
    natural_bounds = ((-1.0, INF), (-INF, 0.0))
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
        size = 0.5 * xp.log(shape) - HALF_LOG_2PI - _stirling_error(shape, xp)
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


GAMMA = Gamma()


@final
class InverseGamma(_Multiplied):
    """Inverse gamma (1/x is gamma): natural (-shape - 1, -scale), statistics (log x, 1/x)."""

    name = "inverse-gamma"
    usual_names = ("shape", "scale")
    support = Support(0.0)
    natural_bounds = ((-INF, -1.0), (-INF, 0.0))
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


@final
class InverseGaussian(_Multiplied):
    """Inverse Gaussian with mean and shape: natural (-shape/(2 mean^2), -shape/2), statistics (x, 1/x)."""

    name = "inverse-gaussian"
    usual_names = ("mean", "shape")
    support = Support(0.0)
    natural_bounds = ((-INF, 0.0), (-INF, 0.0))
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
        return namespace(natural).inverse_gaussian_quantile(*self._parts(natural), level)

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        # Michael, Schucany and Haas (1976): one of the two roots that a chi-square draw belongs to.
        xp = namespace(natural)
        mean, own_shape = self._parts(natural)
        first, second = xp.split(rng)
        half = 0.5 * mean / own_shape * xp.draw_normal(first, (*shape, *mean.shape), mean) ** 2
        smaller = mean / (1.0 + half + xp.sqrt(half * (2.0 + half)))
        chosen = xp.draw_uniform(second, (*shape, *mean.shape), mean) <= mean / (mean + smaller)
        return xp.where(chosen, smaller, mean**2 / smaller)


@final
class Exponential(_Multiplied):
    """Exponential with a rate: natural -rate, statistic x."""

    name = "exponential"
    usual_names = ("rate",)
    support = Support(0.0, closed=True)
    natural_bounds = ((-INF, 0.0),)
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


@final
class Rayleigh(_Multiplied):
    """Rayleigh with sigma: natural -1/sigma^2, statistic x^2/2."""

    name = "rayleigh"
    usual_names = ("sigma",)
    support = Support(0.0)
    natural_bounds = ((-INF, 0.0),)
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


# --- the discrete families ----------------------------------------------------------------------------------


def _softplus(x: Array, xp: Namespace) -> Array:
    # Not abs: its slope at 0, where models start, is taken to be 0.
    return xp.where(x > 0, x, xp.zeros_like(x)) + xp.log1p(xp.exp(xp.where(x > 0, -x, x)))


@final
class Bernoulli(_Unscaled):
    """Bernoulli with a probability: natural log(p / (1 - p)), statistic x."""

    name = "bernoulli"
    usual_names = ("probability",)
    support = Support(0.0, 1.0, whole=True)
    natural_bounds = ((-INF, INF),)

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


@final
class Poisson(_Unscaled):
    """Poisson with a rate: natural log(rate), statistic x."""

    name = "poisson"
    usual_names = ("rate",)
    support = Support(0.0, whole=True)
    natural_bounds = ((-INF, INF),)

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
        size = -0.5 * xp.log(some) - HALF_LOG_2PI - _stirling_error(some, xp)
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

    def mean(self, natural: Array) -> Array:
        return namespace(natural).exp(natural[..., 0])

    def mode(self, natural: Array) -> Array:
        xp = namespace(natural)
        return xp.floor(xp.exp(natural[..., 0]))

    def quantile(self, natural: Array, level: float) -> Array:
        xp = namespace(natural)
        return xp.poisson_quantile(xp.exp(natural[..., 0]), level)

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        rate = xp.exp(natural[..., 0])
        return xp.draw_poisson(rng, xp.broadcast_to(rate, (*shape, *rate.shape)))


@final
class Categorical(_Unscaled):
    """Categorical over the codes 0 .. n_classes - 1: natural log p (up to a constant), statistics one-hot.

    `mean` and `median` are those of the code: of use for ordered classes only.
    """

    name = "categorical"

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.usual_names = tuple(f"probability_{k}" for k in range(n_classes))
        self.support = Support(0.0, n_classes - 1.0, whole=True)
        self.natural_bounds = ((-INF, INF),) * n_classes

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


@final
class UnitNormal(_Unscaled):
    """Normal with standard deviation 1: natural mean, statistic x. Its log-density is minus half the squared error.

    Its smoothness is 1 wherever it is, so that a column that is learned well grows no louder. The base measure does
    not follow a scale, so it is for columns that were standardized before.
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


LOG_NORMAL = LogNormal()
UNIT_NORMAL = UnitNormal()
INVERSE_GAMMA = InverseGamma()
INVERSE_GAUSSIAN = InverseGaussian()
EXPONENTIAL = Exponential()
RAYLEIGH = Rayleigh()
BERNOULLI = Bernoulli()
POISSON = Poisson()

LIKELIHOODS: dict[str, Likelihood] = {
    one.name: one
    for one in (
        NORMAL,
        LOG_NORMAL,
        GAMMA,
        INVERSE_GAMMA,
        INVERSE_GAUSSIAN,
        EXPONENTIAL,
        RAYLEIGH,
        BERNOULLI,
        POISSON,
    )
}
"""The likelihoods that need nothing but their name; `categorical` also needs its number of classes."""


_categorical = cache(Categorical)
"""One object for each number of classes: what is compiled for a table serves the next one like it."""


def get_likelihood(name: str, n_classes: int | None = None) -> Likelihood:
    """Return the likelihood of that name.

    Examples
    --------
    >>> get_likelihood("gamma").usual_names
    ('shape', 'rate')
    >>> get_likelihood("categorical", 3).to_usual(np.log([0.2, 0.3, 0.5]))
    array([0.2, 0.3, 0.5])
    >>> get_likelihood("gama")
    Traceback (most recent call last):
    evenly.TableError: got the likelihood 'gama', but expected one of normal, log-normal, gamma, ...
    """
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    key = {"lognormal": "log-normal"}.get(key, key)
    if key == "categorical":
        if n_classes is None or n_classes < 1:
            raise TableError(f"n_classes={n_classes}", "'categorical' needs the number of its classes")
        return _categorical(int(n_classes))
    if key not in LIKELIHOODS:
        known = ", ".join([*LIKELIHOODS, "categorical"])
        raise TableError(f"the likelihood {name!r}", f"expected one of {known}")
    return LIKELIHOODS[key]
