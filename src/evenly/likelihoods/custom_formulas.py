"""Likelihoods from formulas: derivatives by differentiation, parameters by Newton's method."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt

from evenly._support import TableError, require
from evenly.likelihoods.arrays import Array, namespace, to_numpy
from evenly.likelihoods.base import ExponentialFamily, Pivot, Support
from evenly.likelihoods.special import INF

Vector = npt.NDArray[np.float64]
Bounds = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Formulas:
    """What defines a likelihood of a user's own; see `define_likelihood`."""

    name: str
    support: Support
    statistics: Callable[..., tuple[Any, ...]]
    log_base: Callable[..., Any]
    log_partition: Callable[..., Any]
    natural_bounds: Bounds | None = None


class FormulaLikelihood(ExponentialFamily):
    """An exponential family from its formulas. Its usual parameters are the natural ones."""

    needs_unit = False
    fits_quickly = False

    def __init__(self, formulas: Formulas) -> None:
        self.name, self.support, self._formulas = formulas.name, formulas.support, formulas
        self._compiled: dict[str, Any] = {}
        self.natural_bounds = formulas.natural_bounds or find_bounds(formulas)
        self.usual_names = tuple(f"natural_{i + 1}" for i in range(len(self.natural_bounds)))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_compiled": {}}  # what JAX compiled cannot be pickled

    # --- the family ---

    @final
    def statistics(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.stack([*self._formulas.statistics(x, xp)])

    @final
    def log_base(self, x: Array) -> Array:
        return self._formulas.log_base(x, namespace(x))

    @final
    def log_partition(self, natural: Array) -> Array:
        return self._formulas.log_partition(natural, namespace(natural))

    @final
    def _log_density(self, x: Array, natural: Array) -> Array:
        return self.log_base(x) + (self.statistics(x) * natural).sum(-1) - self.log_partition(natural)

    @final
    def mean_statistics(self, natural: Array) -> Array:
        return self._differentiate("grad", natural)

    @final
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
        return by_jax(self._compiled[what], natural)

    # --- parameters ---

    @final
    def to_usual(self, natural: Array) -> Array:
        return natural

    @final
    def to_natural(self, usual: Array) -> Array:
        return usual

    @final
    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        return self._formulas.statistics(x, namespace(x))

    @final
    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        return self.fit(means)

    @final
    def fit(self, mean_statistics: Array) -> Array:
        target = to_numpy(mean_statistics)
        rows = [self._fit_one(row) for row in target.reshape(-1, target.shape[-1])]
        return namespace(mean_statistics).asarray(np.reshape(rows, target.shape), mean_statistics)

    def _fit_one(self, target: Vector) -> Vector:
        """Damped Newton on the convex function log_partition(natural) - natural . target."""
        natural = np.array([inside(*bounds) for bounds in self.natural_bounds])
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

    # --- summaries, row by row ---

    @abstractmethod
    def total(self, natural: Vector) -> float:
        """Sum or integral of the density: 1, if the formulas are right."""

    @abstractmethod
    def quantiles(self, natural: Vector, levels: Any) -> Any:
        """Quantiles of one distribution."""

    @staticmethod
    def over_rows(natural: Array, function: Callable[[Vector], float]) -> Array:
        rows = to_numpy(natural)
        flat = [function(row) for row in rows.reshape(-1, rows.shape[-1])]
        return namespace(natural).asarray(np.reshape(np.asarray(flat), rows.shape[:-1]), natural)

    @final
    def quantile(self, natural: Array, level: float) -> Array:
        return self.over_rows(natural, lambda row: float(self.quantiles(row, level)))

    @final
    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        xp = namespace(natural)
        rows = to_numpy(natural).reshape(-1, len(self.natural_bounds))
        uniform = to_numpy(xp.draw_uniform(rng, (*shape, *natural.shape[:-1]), natural))
        flat = uniform.reshape(-1, len(rows))
        drawn = [self.quantiles(row, flat[:, i]) for i, row in enumerate(rows)]
        return xp.asarray(np.stack(drawn, axis=-1).reshape(uniform.shape), natural)


def find_bounds(formulas: Formulas) -> Bounds:
    """Return where the log-partition is finite: the interval of each natural parameter, searched from +-1."""
    of_one = formulas.statistics(np.float64(formulas.support.typical), namespace(1.0))
    for signs in itertools.product((-1.0, 1.0), repeat=len(of_one)):
        if _is_proper(formulas, signs, 0, signs[0]):
            return tuple(_find_interval(partial(_is_proper, formulas, signs, i), sign) for i, sign in enumerate(signs))
    raise TableError(
        f"no finite log-partition of {formulas.name!r} at natural parameters of +-1",
        "expected one",
        "give natural_bounds",
    )


def _is_proper(formulas: Formulas, point: tuple[float, ...], i: int, value: float) -> bool:
    """Whether the log-partition is finite at a point whose i-th coordinate is replaced."""
    natural = np.array([*point[:i], value, *point[i + 1 :]])
    with np.errstate(all="ignore"):
        return bool(np.isfinite(formulas.log_partition(natural, namespace(natural))))


def _find_interval(proper: Callable[[float], bool], inside: float) -> tuple[float, float]:
    """Return the interval that a parameter is proper in, which holds 1 or -1."""
    sign, outside = inside, -inside
    if proper(outside):
        return -INF, INF
    for _ in range(40):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if proper(middle) else (inside, middle)
    end = round(outside, 9) + 0.0  # the last digits of the search are those of an overflow
    return (-INF, end) if sign < 0 else (end, INF)


def by_jax(function: Callable[..., Any], *arrays: Array) -> Array:
    """Apply a function of JAX arrays to arrays of any library, in double precision unless they are JAX's."""
    if any(type(array).__module__.startswith("jax") for array in arrays):
        return function(*arrays)
    with require("jax", "models").enable_x64(True):
        result = function(*[to_numpy(array) for array in arrays])
    return namespace(*arrays).asarray(np.array(result), arrays[0])


def inside(low: float, high: float, away: float = 1.0) -> float:
    """Return a parameter well inside its interval, `away` from the end if there is one."""
    if low > -INF and high < INF:
        return low + (high - low) * away / 3.0
    return low + away if low > -INF else high - away if high < INF else away - 1.0
