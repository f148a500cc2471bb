"""A likelihood of your own: a few formulas in, the rest by differentiation, root finding, quadrature and sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, final

import numpy as np

from evenly._support import TableError, require
from evenly.likelihoods.arrays import Array, namespace
from evenly.likelihoods.base import Likelihood, Pivot, Support, Unscaled
from evenly.likelihoods.custom_formulas import Bounds, FormulaLikelihood, Formulas, Vector, by_jax, inside
from evenly.likelihoods.special import INF

Made = TypeVar("Made", bound=FormulaLikelihood)

_TOLERANCE = 1e-6
"""Largest error that the checks of a definition accept; quadrature and sums are good to about 1e-9."""
_LEAST = 45.0
"""Nats below its peak where a density counts as 0: 3e-20 of it."""


def define_likelihood(
    name: str,
    *,
    support: Support,
    statistics: Callable[..., tuple[Any, ...]],
    log_base: Callable[..., Any],
    log_partition: Callable[..., Any],
    factors: Callable[..., tuple[Any, ...]] | None = None,
    scale_data: Callable[..., Any] | None = None,
    natural_bounds: Bounds | None = None,
) -> Likelihood:
    """Define a likelihood from its formulas; the definition is checked numerically.

    Every function takes the array functions to use (`xp`, NumPy's or JAX's) as its last argument, so that one
    formula serves arrays, derivatives and table engines. `docs/own_likelihood.md` has more examples.

    Parameters
    ----------
    name : str
        The name it gets in schemas and summaries.
    support : Support
        The values that have a density: an interval, or whole numbers, which are for counts.
    statistics : function of (x, xp)
        The sufficient statistics, as a tuple.
    log_base : function of (x, xp)
        Log of the base measure.
    log_partition : function of (natural, xp)
        The log-normalizer; natural parameters are along the last axis.
    factors : function of (scale, xp)
        The factors f(scale) of `statistics(scaled x) = f(scale) * statistics(x) + constant`, as a tuple. Counts, which
        are not scaled, have none.
    scale_data : function of (x, scale, xp), optional
        How x is scaled; multiplication unless given. Scaling by 1/scale must undo it. Where it is a power of x > 0,
        the methods std, max and iqr go by log x.
    natural_bounds : tuple of (float, float), optional
        The open interval of each natural parameter; searched for between -1 and 1 unless given.

    Examples
    --------
    Needs `pip install "evenly[models]"`. A Weibull of known shape 2, natural parameter -1/size^2, in fact a Rayleigh:

    >>> weibull = define_likelihood(
    ...     "weibull-2",
    ...     support=Support(0.0),
    ...     statistics=lambda x, xp: (x**2,),
    ...     log_base=lambda x, xp: xp.log(2.0 * x),
    ...     log_partition=lambda natural, xp: -xp.log(-natural[..., 0]),
    ...     factors=lambda scale, xp: (scale**2,),
    ... )
    >>> weibull.natural_bounds, float(weibull.fisher(np.array([-0.5]))[0, 0])
    (((-inf, 0.0),), 4.0)
    """
    formulas = Formulas(name, support, statistics, log_base, log_partition, natural_bounds)
    if support.whole:
        if factors is not None or scale_data is not None:
            raise TableError(f"factors or scale_data of {name!r}", "whole numbers are not scaled", "leave them out")
        return check_total(CustomCount(formulas), "sum")
    if factors is None:
        raise TableError(f"no factors of {name!r}", f"{support} are scaled, and expect them")
    return check_scaling(check_total(CustomLikelihood(formulas, factors, scale_data or _multiply), "integrate"))


def _multiply(x: Any, scale: Any, xp: Any) -> Any:
    return x * scale


# --- continuous, by quadrature ------------------------------------------------------------------------------


@final
class CustomLikelihood(FormulaLikelihood):
    """A continuous likelihood from `define_likelihood`. It can be pickled if its functions can: a lambda cannot."""

    def __init__(
        self, formulas: Formulas, factors: Callable[..., tuple[Any, ...]], scale_data: Callable[..., Any]
    ) -> None:
        super().__init__(formulas)
        self._factors, self._scale_data = factors, scale_data
        self.in_logs = self.support.lower >= 0.0 and self._is_power()
        self.kinds = ("positive",) if self.support.lower == 0.0 else ("real", "positive")

    def _is_power(self) -> bool:
        bases, scales = np.array([2.0, 5.0]), np.array([3.0, 0.5])
        with np.errstate(all="ignore"):
            return bool(np.allclose(self.scale_data(bases, scales), bases**scales))

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return means

    def factors(self, scale: Array) -> Array:
        xp = namespace(scale)
        scale = xp.asarray(scale)
        return xp.stack([*self._factors(scale, xp)])

    def log_factors(self, log_scale: Array) -> Array:
        xp = namespace(log_scale)
        return xp.log(xp.abs(self.factors(xp.exp(xp.asarray(log_scale)))))

    def scale_data(self, x: Any, scale: Any) -> Any:
        return self._scale_data(x, scale, namespace(x, scale))

    def unscale_data(self, x: Any, scale: Any) -> Any:
        return self._scale_data(x, 1.0 / scale, namespace(x, scale))

    def log_jacobian(self, x: Array, scale: Array) -> Array:
        jax = require("jax", "models")
        slope = jax.numpy.vectorize(jax.grad(self.scale_data), signature="(),()->()")
        return by_jax(lambda x, scale: jax.numpy.log(abs(slope(x, scale))), x, scale)

    def unscale_usual(self, usual: Array, scale: Array) -> Array:
        return self.unscale_natural(usual, scale)

    def _place(self, y: Vector) -> tuple[Vector, Vector]:
        """Map the real line onto the support: the points and the log of the slope."""
        low, high = self.support.lower, self.support.upper
        if low > -INF and high < INF:
            x = low + (high - low) / (1.0 + np.exp(-y))
            return x, np.log(high - low) - np.abs(y) - 2.0 * np.log1p(np.exp(-np.abs(y)))
        if low > -INF:
            return low + np.exp(y), y
        if high < INF:
            return high - np.exp(-y), -y
        return np.sinh(y), np.logaddexp(y, -y) - np.log(2.0)

    def _log_mass(self, y: Vector, natural: Vector) -> Vector:
        x, log_slope = self._place(y)
        with np.errstate(all="ignore"):
            log_mass = np.where(self.support.contains(x), self.log_density(x, natural) + log_slope, -INF)
        return np.where(np.isnan(log_mass), -INF, log_mass)

    def _quadrature(self, natural: Vector) -> tuple[Vector, Vector]:
        """Places on the real line and weights that integrate against the density.

        Along the real line the density falls off fast on both sides, where the trapezoidal rule gains
        digits exponentially. Each pass zooms in on the mass, by up to 2000 times.
        """
        low, high = -700.0, 700.0  # beyond, exp leaves the range of double precision
        for _ in range(5):
            y = np.linspace(low, high, 4001)
            log_mass = self._log_mass(y, natural)
            seen = np.flatnonzero(log_mass >= log_mass.max() - _LEAST)
            low, high = y[max(seen[0] - 1, 0)], y[min(seen[-1] + 1, len(y) - 1)]
        with np.errstate(over="ignore"):
            return y, np.exp(log_mass) * (y[1] - y[0])

    def total(self, natural: Vector) -> float:
        return float(self._quadrature(natural)[1].sum())

    def quantiles(self, natural: Vector, levels: Any) -> Any:
        y, weights = self._quadrature(natural)
        weights = weights / weights.sum()
        # Euler-Maclaurin: the trapezoidal rule up to y is too large by (step^2 / 12) times the slope there.
        below = np.cumsum(weights) - 0.5 * weights - np.gradient(weights) / 12.0
        kept = weights > 1e-13  # so that each step up is far above rounding
        below, y, slope = below[kept], y[kept], (y[1] - y[0]) / weights[kept]
        from scipy.interpolate import CubicHermiteSpline  # a third of a second, for whoever defines a likelihood

        return self._place(CubicHermiteSpline(below, y, slope)(np.clip(levels, below[0], below[-1])))[0]

    def mean(self, natural: Array) -> Array:
        def one(row: Vector) -> float:
            y, weights = self._quadrature(row)
            return float(np.average(self._place(y)[0], weights=weights))

        return self.over_rows(natural, one)

    def mode(self, natural: Array) -> Array:
        from scipy.optimize import minimize_scalar

        def one(row: Vector) -> float:
            y, weights = self._quadrature(row)
            x = self._place(y[weights > 0.0])[0]
            best = int(np.argmax(self.log_density(x, row)))
            around = x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)]
            precise = {"xatol": 1e-9 * (around[1] - around[0])}
            found = minimize_scalar(
                lambda x: -float(self.log_density(x, row)), bounds=around, method="bounded", options=precise
            )
            return float(found.x)

        return self.over_rows(natural, one)


# --- counts, by sums ----------------------------------------------------------------------------------------


@final
class CustomCount(Unscaled, FormulaLikelihood):
    """A likelihood of whole numbers from `define_likelihood`, for counts.

    Sums take every whole number that has mass, if these are fewer than 2^16. Else they take the first 2^14 and, beyond,
    numbers at growing distances, each of which stands for those around it.
    """

    kinds = ("count",)

    def _masses(self, natural: Vector) -> tuple[Vector, Vector]:
        """Return whole numbers, and the probability that each stands for."""
        low, high = max(self.support.lower, -(2.0**52)), min(self.support.upper, 2.0**52)
        for _ in range(8):
            k = self._numbers(low, high)
            gaps = np.diff(k, prepend=2.0 * k[0] - k[1], append=2.0 * k[-1] - k[-2]) if len(k) > 1 else np.ones(2)
            with np.errstate(all="ignore"):
                log_mass = self.log_density(k, natural) + np.log(0.5 * (gaps[:-1] + gaps[1:]))
            log_mass = np.where(np.isnan(log_mass), -INF, log_mass)
            seen = np.flatnonzero(log_mass >= log_mass.max() - _LEAST)
            low, high = k[max(seen[0] - 1, 0)], k[min(seen[-1] + 1, len(k) - 1)]
        return k, np.exp(log_mass)

    @staticmethod
    def _numbers(low: float, high: float) -> Vector:
        if high - low < 2.0**16:
            return np.arange(low, high + 1.0)
        near = min(max(low, 0.0), high)  # where whole numbers are close to each other
        away = np.concatenate([np.arange(2.0**14), np.floor(np.geomspace(2.0**14, 2.0**53, 8192))])
        k = np.concatenate([near - away[::-1], near + away[1:]])
        return k[(k >= low) & (k <= high)]

    def total(self, natural: Vector) -> float:
        return float(self._masses(natural)[1].sum())

    def quantiles(self, natural: Vector, levels: Any) -> Any:
        k, masses = self._masses(natural)
        below = np.cumsum(masses / masses.sum())
        # Rounding in a sum of many must not ask for one more.
        return k[np.minimum(np.searchsorted(below, np.asarray(levels) - 1e-13), len(k) - 1)]

    def mean(self, natural: Array) -> Array:
        def one(row: Vector) -> float:
            k, masses = self._masses(row)
            return float(np.average(k, weights=masses))

        return self.over_rows(natural, one)

    def mode(self, natural: Array) -> Array:

        def one(row: Vector) -> float:
            k = self._masses(row)[0]
            return float(k[np.argmax(self.log_density(k, row))])

        return self.over_rows(natural, one)


# --- the checks of a definition -------------------------------------------------------------------------------


def check_total(made: Made, sums: str) -> Made:
    """Refuse formulas that are no density."""
    for away in (1.0, 1.7):
        total = made.total(_parameters(made, away))
        if not abs(total - 1.0) <= _TOLERANCE:  # NaN too
            raise TableError(
                f"a density that {sums}s to {total:g}",
                f"{made.name!r} must {sums} to 1",
                "check log_base, statistics and log_partition against each other",
            )
    return made


def check_scaling(made: CustomLikelihood) -> CustomLikelihood:
    """Refuse formulas that break the scale law."""
    likely = made.quantiles(_parameters(made, 1.7), np.linspace(0.02, 0.98, 25))
    for scale in (0.5, 1.7):
        scaled = made.scale_data(likely, scale)
        if not np.allclose(made.unscale_data(scaled, scale), likely, rtol=_TOLERANCE):
            _refuse(made, "scale_data", "scaling by 1/scale must undo scaling by scale")
        factors = made.factors(scale)
        if factors.shape != (len(made.natural_bounds),):
            _refuse(made, "factors", "expected one for each of the statistics")
        rest = made.statistics(scaled) - factors * made.statistics(likely)
        if np.ptp(rest, axis=0).max() > _TOLERANCE * (1.0 + np.abs(made.statistics(scaled)).max()):
            _refuse(made, "factors", "statistics(scaled x) - factors * statistics(x) must not depend on x")
        follows = made.log_base(scaled) + made.log_jacobian(likely, scale) - made.log_base(likely)
        if np.ptp(follows) > _TOLERANCE * (1.0 + np.abs(follows).max()):
            _refuse(made, "log_base", "log_base(scaled x) + log_jacobian - log_base(x) must not depend on x")
    return made


def _parameters(made: FormulaLikelihood, away: float) -> Vector:
    return np.array([inside(*bounds, away) for bounds in made.natural_bounds])


def _refuse(made: Likelihood, part: str, law: str) -> None:
    raise TableError(f"a {part} of {made.name!r} that breaks the scale law", law, "check the formulas, or scale_data")
