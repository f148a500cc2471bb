"""A likelihood of your own: five functions in, the rest by differentiation, root finding and quadrature."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import minimize_scalar

from evenly._support import TableError, require
from evenly.likelihoods.arrays import Array, namespace, to_numpy
from evenly.likelihoods.base import ExponentialFamily, Likelihood, Pivot, Support
from evenly.likelihoods.special import INF

Vector = npt.NDArray[np.float64]

_TOLERANCE = 1e-6
"""Largest error that the checks of a definition accept; the quadrature below is good to about 1e-9."""


def define_likelihood(
    name: str,
    *,
    support: Support,
    statistics: Callable[..., tuple[Any, ...]],
    log_base: Callable[..., Any],
    log_partition: Callable[..., Any],
    factors: Callable[..., tuple[Any, ...]],
    scale_data: Callable[..., Any] | None = None,
    natural_bounds: tuple[tuple[float, float], ...] | None = None,
) -> Likelihood:
    """Define a likelihood from its formulas; the definition is checked numerically.

    Every function takes the array functions to use (`xp`, NumPy's or JAX's) as its last argument, so that one
    formula serves arrays, derivatives and table engines.

    Parameters
    ----------
    name : str
        The name it gets in schemas and summaries.
    support : Support
        The values that have a density: an interval, not whole numbers.
    statistics : function of (x, xp)
        The sufficient statistics, as a tuple.
    log_base : function of (x, xp)
        Log of the base measure.
    log_partition : function of (natural, xp)
        The log-normalizer; natural parameters are along the last axis.
    factors : function of (scale, xp)
        The factors f(scale) of `statistics(scaled x) = f(scale) * statistics(x) + constant`, as a tuple.
    scale_data : function of (x, scale, xp), optional
        How x is scaled; multiplication unless given. Scaling by 1/scale must undo it. Where it is a power of x > 0,
        the methods std, max and iqr look at log x.
    natural_bounds : tuple of (float, float), optional
        The open interval of each natural parameter; searched for between -1 and 1 unless given.

    Returns
    -------
    Likelihood
        Ready for `LipschitzScaler(likelihoods={"column": ...})`. It can be pickled if the functions can: those of a
        module can, a lambda cannot.

    Examples
    --------
    A Weibull of known shape 2 whose natural parameter is -1/size^2 (it is a Rayleigh in disguise):

    >>> weibull = define_likelihood(
    ...     "weibull-2",
    ...     support=Support(0.0),
    ...     statistics=lambda x, xp: (x**2,),
    ...     log_base=lambda x, xp: xp.log(2.0 * x),
    ...     log_partition=lambda natural, xp: -xp.log(-natural[..., 0]),
    ...     factors=lambda scale, xp: (scale**2,),
    ... )
    >>> weibull.natural_bounds
    ((-inf, 0.0),)
    >>> float(weibull.fisher(np.array([-0.5]))[0, 0])
    4.0

    The degenerate case, a formula that is not a density, is refused:

    >>> define_likelihood(
    ...     "wrong",
    ...     support=Support(0.0),
    ...     statistics=lambda x, xp: (x,),
    ...     log_base=lambda x, xp: 0.0 * x,
    ...     log_partition=lambda natural, xp: -2.0 * xp.log(-natural[..., 0]),
    ...     factors=lambda scale, xp: (scale,),
    ... )
    Traceback (most recent call last):
    evenly.TableError: got a density that integrates to 1.7, but 'wrong' must integrate to 1. ...
    """
    if support.whole:
        raise TableError(str(support), f"{name!r} must be continuous", "declare the column a count or a category")
    scaling = scale_data or _multiply
    made = CustomLikelihood(name, support, statistics, log_base, log_partition, factors, scaling, natural_bounds)
    made._check()
    return made


def _multiply(x: Any, scale: Any, xp: Any) -> Any:
    return x * scale


@final
class CustomLikelihood(ExponentialFamily):
    """What `define_likelihood` returns. Its usual parameters are the natural ones."""

    needs_unit = False
    fits_quickly = False

    def __init__(
        self,
        name: str,
        support: Support,
        statistics: Callable[..., tuple[Any, ...]],
        log_base: Callable[..., Any],
        log_partition: Callable[..., Any],
        factors: Callable[..., tuple[Any, ...]],
        scale_data: Callable[..., Any],
        natural_bounds: tuple[tuple[float, float], ...] | None,
    ) -> None:
        self.name, self.support = name, support
        self._statistics, self._log_base, self._log_partition = statistics, log_base, log_partition
        self._factors, self._scale_data = factors, scale_data
        self._compiled: dict[str, Any] = {}
        self.natural_bounds = natural_bounds or self._probe()
        self.usual_names = tuple(f"natural_{i + 1}" for i in range(len(self.natural_bounds)))
        self.in_logs = support.lower >= 0.0 and self._is_power()
        self.kinds = ("positive",) if support.lower == 0.0 else ("real", "positive")

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_compiled": {}}  # what JAX compiled cannot be pickled

    def _is_power(self) -> bool:
        bases, scales = np.array([2.0, 5.0]), np.array([3.0, 0.5])
        with np.errstate(all="ignore"):
            return bool(np.allclose(self.scale_data(bases, scales), bases**scales))

    # --- the family, from the five functions ---

    def statistics(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.stack([*self._statistics(x, xp)])

    def log_base(self, x: Array) -> Array:
        return self._log_base(x, namespace(x))

    def log_partition(self, natural: Array) -> Array:
        return self._log_partition(natural, namespace(natural))

    def _log_density(self, x: Array, natural: Array) -> Array:
        return self.log_base(x) + (self.statistics(x) * natural).sum(-1) - self.log_partition(natural)

    def mean_statistics(self, natural: Array) -> Array:
        return self._differentiate("grad", natural)

    def fisher(self, natural: Array) -> Array:
        return self._differentiate("hessian", natural)

    def _differentiate(self, what: str, natural: Array) -> Array:
        if type(natural).__module__.startswith("torch"):
            func = require("torch.func", "torch")
            derivative = func.grad(self.log_partition)
            derivative = derivative if what == "grad" else func.jacrev(derivative)
            result = func.vmap(derivative)(natural.reshape(-1, natural.shape[-1]))
            return result.reshape(natural.shape[:-1] + result.shape[1:])
        if what not in self._compiled:  # a fit asks for the same derivative many times
            jax = require("jax", "models")
            signature = {"grad": "(k)->(k)", "hessian": "(k)->(k,k)"}[what]
            derivative = getattr(jax, what)(self.log_partition)
            self._compiled[what] = jax.jit(jax.numpy.vectorize(derivative, signature=signature))
        return _by_jax(self._compiled[what], natural)

    # --- parameters ---

    def to_usual(self, natural: Array) -> Array:
        return natural

    def to_natural(self, usual: Array) -> Array:
        return usual

    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        return self._statistics(x, namespace(x))

    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return self.fit(means)

    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return means

    def fit(self, mean_statistics: Array) -> Array:
        target = to_numpy(mean_statistics)
        rows = [self._fit_one(row) for row in target.reshape(-1, target.shape[-1])]
        return namespace(mean_statistics).asarray(np.reshape(rows, target.shape), mean_statistics)

    def _fit_one(self, target: Vector) -> Vector:
        """Damped Newton on the convex function log_partition(natural) - natural . target."""
        natural = np.array([_inside(*bounds) for bounds in self.natural_bounds])
        value = self._objective(natural, target)
        for _ in range(200):
            gradient, step = self._newton(natural, target)
            decrement = float(gradient @ step)
            if decrement <= 1e-24 * (1.0 + abs(value)):
                break
            # The solution may lie closer to a bound than the start by any number of digits.
            for size in 0.5 ** np.arange(1000.0):
                trial = natural - size * step
                trial_value = self._objective(trial, target)
                if trial_value <= value - 0.25 * size * decrement:
                    break
            else:
                break
            natural, value = trial, trial_value
        # One full step more: the objective is flat to rounding before the parameters are exact.
        last = natural - self._newton(natural, target)[1]
        return last if np.isfinite(self._objective(last, target)) else natural

    def _newton(self, natural: Vector, target: Vector) -> tuple[Vector, Vector]:
        """Gradient and Newton's step, in units of the deviations: an offset would pass for rank 1 else."""
        fisher, gradient = self.fisher(natural), self.mean_statistics(natural) - target
        deviation = np.sqrt(np.diagonal(fisher))
        scaled = fisher / np.outer(deviation, deviation)
        return gradient, np.linalg.lstsq(scaled, gradient / deviation, rcond=None)[0] / deviation

    def _objective(self, natural: Vector, target: Vector) -> float:
        low, high = np.transpose(self.natural_bounds)
        if not ((natural > low) & (natural < high)).all():
            return INF
        with np.errstate(all="ignore"):
            value = float(self.log_partition(natural)) - float(natural @ target)
        return value if np.isfinite(value) else INF

    def _probe(self) -> tuple[tuple[float, float], ...]:
        size = len(self._factors(np.float64(1.0), namespace(1.0)))

        def proper(point: tuple[float, ...], i: int = 0, value: float | None = None) -> bool:
            natural = np.array(point)
            natural[i] = natural[i] if value is None else value
            with np.errstate(all="ignore"):
                return bool(np.isfinite(self.log_partition(natural)))

        for signs in itertools.product((-1.0, 1.0), repeat=size):
            if not proper(signs):
                continue
            bounds = []
            for i, sign in enumerate(signs):
                inside, outside = sign, -sign
                if proper(signs, i, outside):
                    bounds.append((-INF, INF))
                    continue
                for _ in range(40):
                    middle = 0.5 * (inside + outside)
                    inside, outside = (middle, outside) if proper(signs, i, middle) else (inside, middle)
                end = round(outside, 9) + 0.0  # the last digits of the search are those of an overflow
                bounds.append((-INF, end) if sign < 0 else (end, INF))
            return tuple(bounds)
        raise TableError(
            f"no finite log-partition of {self.name!r} at natural parameters of +-1",
            "expected one",
            "give natural_bounds",
        )

    # --- scaling ---

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
        return _by_jax(lambda x, scale: jax.numpy.log(abs(slope(x, scale))), x, scale)

    def unscale_usual(self, usual: Array, scale: Array) -> Array:
        return self.unscale_natural(usual, scale)

    # --- summaries, by quadrature ---

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

        Seen along the real line the density falls off fast on both sides, where the trapezoidal rule gains
        digits exponentially. Each pass looks closer at where the mass is: up to 2000 times closer.
        """
        low, high = -700.0, 700.0  # beyond, exp leaves the range of double precision
        for _ in range(5):
            y = np.linspace(low, high, 4001)
            log_mass = self._log_mass(y, natural)
            seen = np.flatnonzero(log_mass >= log_mass.max() - 45.0)  # 3e-20 of the peak
            low, high = y[max(seen[0] - 1, 0)], y[min(seen[-1] + 1, len(y) - 1)]
        with np.errstate(over="ignore"):
            return y, np.exp(log_mass) * (y[1] - y[0])

    @staticmethod
    def _over_rows(natural: Array, function: Callable[[Vector], float]) -> Array:
        rows = to_numpy(natural)
        flat = [function(row) for row in rows.reshape(-1, rows.shape[-1])]
        return namespace(natural).asarray(np.reshape(np.asarray(flat), rows.shape[:-1]), natural)

    def _quantiles(self, natural: Vector, levels: Any) -> Any:
        y, weights = self._quadrature(natural)
        weights = weights / weights.sum()
        # Euler-Maclaurin: the trapezoidal rule up to y is too large by (step^2 / 12) times the slope there.
        below = np.cumsum(weights) - 0.5 * weights - np.gradient(weights) / 12.0
        kept = weights > 1e-13  # so that each step up is far above rounding
        below, y, slope = below[kept], y[kept], (y[1] - y[0]) / weights[kept]
        return self._place(CubicHermiteSpline(below, y, slope)(np.clip(levels, below[0], below[-1])))[0]

    def mean(self, natural: Array) -> Array:
        def one(row: Vector) -> float:
            y, weights = self._quadrature(row)
            return float(np.average(self._place(y)[0], weights=weights))

        return self._over_rows(natural, one)

    def mode(self, natural: Array) -> Array:
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

        return self._over_rows(natural, one)

    def quantile(self, natural: Array, level: float) -> Array:
        return self._over_rows(natural, lambda row: float(self._quantiles(row, level)))

    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        rows = to_numpy(natural).reshape(-1, len(self.natural_bounds))
        uniform = to_numpy(xp.draw_uniform(rng, (*shape, *natural.shape[:-1]), natural))
        flat = uniform.reshape(-1, len(rows))
        drawn = [self._quantiles(row, flat[:, i]) for i, row in enumerate(rows)]
        return xp.asarray(np.stack(drawn, axis=-1).reshape(uniform.shape), natural)

    # --- the check of a definition ---

    def _check(self) -> None:
        for away in (1.0, 1.7):
            natural = np.array([_inside(*bounds, away) for bounds in self.natural_bounds])
            total = float(self._quadrature(natural)[1].sum())
            if not abs(total - 1.0) <= _TOLERANCE:  # NaN too
                raise TableError(
                    f"a density that integrates to {total:g}",
                    f"{self.name!r} must integrate to 1",
                    "check log_base, statistics and log_partition against each other",
                )
        likely = self._quantiles(natural, np.linspace(0.02, 0.98, 25))
        for scale in (0.5, 1.7):
            scaled = self.scale_data(likely, scale)
            if not np.allclose(self.unscale_data(scaled, scale), likely, rtol=_TOLERANCE):
                self._refuse("scale_data", "scaling by 1/scale must undo scaling by scale")
            factors = self.factors(scale)
            rest = self.statistics(scaled) - factors * self.statistics(likely)
            if np.ptp(rest, axis=0).max() > _TOLERANCE * (1.0 + np.abs(self.statistics(scaled)).max()):
                self._refuse("factors", "statistics(scaled x) - factors * statistics(x) must not depend on x")
            follows = self.log_base(scaled) + self.log_jacobian(likely, scale) - self.log_base(likely)
            if np.ptp(follows) > _TOLERANCE * (1.0 + np.abs(follows).max()):
                law = "log_base(scaled x) + log_jacobian - log_base(x) must not depend on x"
                self._refuse("log_base", law)

    def _refuse(self, part: str, law: str) -> None:
        raise TableError(
            f"a {part} of {self.name!r} that breaks the scale law", law, "check the formulas, or scale_data"
        )


def _by_jax(function: Callable[..., Any], *arrays: Array) -> Array:
    """Apply a function of JAX arrays to arrays of any library, in double precision unless they are JAX's."""
    if any(type(array).__module__.startswith("jax") for array in arrays):
        return function(*arrays)
    with require("jax", "models").enable_x64(True):
        result = function(*[to_numpy(array) for array in arrays])
    return namespace(*arrays).asarray(np.array(result), arrays[0])


def _inside(low: float, high: float, away: float = 1.0) -> float:
    """Return a parameter well inside its interval, `away` from the end if there is one."""
    if low > -INF and high < INF:
        return low + (high - low) * away / 3.0
    return low + away if low > -INF else high - away if high < INF else away - 1.0
