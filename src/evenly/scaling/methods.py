"""The scale of a feature: 1/std, 1/max, 1/iqr, or the one that gives its log-likelihood the target smoothness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, to_numpy
from evenly.scaling.smoothness import Bound, log_scaled_smoothness, scaled_smoothness
from evenly.scaling.tricks import FeatureStatistics, Trick
from evenly.tables import Floats

Scaling = Literal["std", "max", "iqr", "lip"]


@dataclass(frozen=True)
class Method:
    """How continuous features are scaled, and which trick discrete columns get."""

    scaling: Scaling
    trick: Trick

    @property
    def equalizes(self) -> bool:
        """Whether scales aim at the target, so that every column has the same smoothness."""
        return self.scaling == "lip"

    def centred_scale(self, values: Floats, mean: float, std: float) -> float:
        """Return the scale of a number around its mean; under `lip` 1 / std, where a normal of spread 1 fits best."""
        # Of halves: the difference of two of the largest numbers overflows.
        if self.scaling == "max":
            return 0.5 / max(float(np.abs(0.5 * values - 0.5 * mean).max()), 1e-300)
        if self.scaling == "iqr":
            low, high = np.quantile(values, [0.25, 0.75])
            return 0.5 / float(0.5 * high - 0.5 * low) if high > low else 1.0 / std
        return 1.0 / std


METHODS: dict[str, Method] = {
    "std-none": Method("std", "none"),
    "max-none": Method("max", "none"),
    "iqr-none": Method("iqr", "none"),
    "lip-none": Method("lip", "none"),
    "lip-bern": Method("lip", "bern"),
    "std-gamma": Method("std", "gamma"),
    "lip-gamma": Method("lip", "gamma"),
}
"""The paper's preprocessing methods by name."""


def get_method(name: str) -> Method:
    """Return the method of that name.

    Examples
    --------
    >>> get_method("lip-gamma")
    Method(scaling='lip', trick='gamma')
    """
    if not isinstance(name, str) or name not in METHODS:
        raise TableError(f"the method {name!r}", f"expected one of {', '.join(METHODS)}")
    return METHODS[name]


class Outcome(Enum):
    """How a scale came about; each carries what to do about it.

    Examples
    --------
    >>> Outcome.BELOW_FLOOR.value
    'below_floor'
    >>> Outcome.BELOW_FLOOR.remedy
    "no scale reaches this target: the shape's curvature does not depend on the scale. Scaled to 1.1 times ..."
    """

    remedy: str

    def __new__(cls, value: str, remedy: str) -> Outcome:
        """Make a member whose value is its name in summaries."""
        member = object.__new__(cls)
        member._value_ = value
        member.remedy = remedy
        return member

    REACHED = ("reached", "the smoothness equals the target")
    SCALED = ("scaled", "scaled by 1/std, 1/max or 1/iqr: these methods have no target")
    BELOW_FLOOR = (
        "below_floor",
        "no scale reaches this target: the shape's curvature does not depend on the scale. Scaled to 1.1 times the "
        "least smoothness there is (an inverse Gaussian, which attains it, to the least itself); lower the learning "
        "rate or choose another likelihood",
    )
    NO_SPREAD = (
        "no_spread",
        "the quartiles are equal, or the maximum is 0: 1/std was used instead; choose another method",
    )
    OUT_OF_RANGE = (
        "out_of_range",
        "the target, or the values, are too large, too small or too far apart for double precision to fit and scale: "
        "left as they are; choose another target, unit or likelihood",
    )
    CONSTANT = ("constant", "all observed cells are equal: not scaled")
    NO_DATA = ("no_data", "no observed cells: left as it is")
    PASSED_THROUGH = (
        "passed_through",
        "no variable, or a discrete column that this method does not scale: left as it is",
    )


class Solved(NamedTuple):
    """A scale and how it came about."""

    scale: float
    outcome: Outcome


FLOOR_MARGIN = 1.1
"""What to aim at instead of a target below the floor."""
_REACH = 300.0
"""Log-scales beyond this are not searched: e^300 = 1e130, and the features come in units of their own size."""
_GRID = np.linspace(-_REACH, _REACH, 1201)


def solve_scale(
    family: Likelihood, natural: Array, target: float, *, bound: Bound = "exact", std: float = 1.0
) -> Solved:
    """Find the scale at which the smoothness equals the target.

    The log of the smoothness is convex in the log of the scale (a sum of exponentials), so there are at most two roots.

    Parameters
    ----------
    family, natural
        The likelihood and its fitted natural parameters.
    target : float
        The smoothness to reach.
    bound : {"exact", "paper"}
        As in `evenly.scaling.smoothness.log_scaled_smoothness`.
    std : float
        The spread of the data (of log x for a log-normal): of two roots, the one that brings it nearer to 1 is taken.

    Returns
    -------
    Solved
        The scale and its outcome; 1 and `out_of_range` where no scale within e^-300 .. e^300 has the target, or target
        and spread are not both positive numbers.

    Examples
    --------
    >>> from evenly.likelihoods.continuous import EXPONENTIAL, GAMMA
    >>> round(solve_scale(EXPONENTIAL, np.array([-1.0]), 9.0).scale, 12)  # sqrt(target / L)
    3.0
    >>> solve_scale(GAMMA, np.array([0.0, -1.0]), 1.0).outcome  # the shape alone has pi^2/6
    <Outcome.BELOW_FLOOR: 'below_floor'>
    >>> solve_scale(EXPONENTIAL, np.array([-1.0]), 1e300)
    Solved(scale=1.0, outcome=<Outcome.OUT_OF_RANGE: 'out_of_range'>)
    """
    with np.errstate(all="ignore"):  # what overflows is out of range
        fisher = family.fisher(to_numpy(natural))
    beyond = Solved(1.0, Outcome.OUT_OF_RANGE)
    if not (0.0 < target < math.inf and 0.0 < std < math.inf and np.isfinite(fisher).all() and fisher.any()):
        return beyond
    goal = math.log(target)

    def gap(t: float) -> float:
        return float(log_scaled_smoothness(family, fisher, t, bound)) - goal

    values = log_scaled_smoothness(family, fisher, _GRID, bound)
    bottom = int(values.argmin())
    lowest, least = float(_GRID[bottom]), float(values[bottom])
    level_end = min(values[0], values[-1]) - least < 1e-9
    outcome = Outcome.REACHED
    if not level_end:  # a minimum between two roots: the inverse Gaussian
        around = (_GRID[bottom - 1], _GRID[bottom + 1])
        lowest = float(minimize_scalar(gap, bounds=around, method="bounded", options={"xatol": 1e-12}).x)
        least = gap(lowest) + goal
    if least >= goal:
        if not level_end:
            return Solved(math.exp(lowest), Outcome.BELOW_FLOOR)
        end, next_to_it = values[:2] if values[0] < values[-1] else (values[-1], values[-2])
        if next_to_it - end > 1e-9:  # still falling there: no floor, only the end of the search
            return beyond
        outcome, goal = Outcome.BELOW_FLOOR, least + math.log(FLOOR_MARGIN)
    ends = [end for end in (-_REACH, _REACH) if gap(end) > 0.0]
    if not ends:
        return beyond
    roots = [brentq(gap, lowest, end, xtol=1e-15, rtol=1e-15) for end in ends]
    return Solved(math.exp(min(roots, key=lambda t: abs(t + math.log(std)))), outcome)


@dataclass(frozen=True)
class FittedScale:
    """The scale of one feature with what led to it."""

    scale: float
    outcome: Outcome
    natural: Floats | None
    """Maximum-likelihood natural parameters of the scaled feature."""
    smoothness_before: float
    smoothness_after: float
    bound_after: float
    """The paper's bound after scaling, which the estimator never exceeds."""


def fit_scale(
    family: Likelihood,
    of: FeatureStatistics,
    scaling: Scaling,
    target: float,
    *,
    bound: Bound,
    constant: bool,
    trick: Trick,
) -> FittedScale:
    """Choose the scale of one feature from its statistics."""
    if of.n == 0:
        return FittedScale(1.0, Outcome.NO_DATA, None, 0.0, 0.0, 0.0)
    # The moments are in the column's own unit: that keeps columns of size 1e300 within the range of numbers.
    unit = of.own.pivot.unit if family.needs_unit else 1.0
    natural = of.own.natural(family)
    with np.errstate(all="ignore"):
        # A class that never occurs has an infinite parameter; a scalable family must have finite ones.
        usable = np.isfinite(family.fisher(natural)).all() and (np.isfinite(natural).all() or not family.scalable)

    def fitted(scale: float, outcome: Outcome) -> FittedScale:
        if not _representable(family, of, scale):
            scale, outcome = 1.0, Outcome.OUT_OF_RANGE
        if not usable:
            return FittedScale(scale, outcome, None, 0.0, 0.0, 0.0)
        with np.errstate(all="ignore"):  # a column left as it is may lie beyond the range of numbers
            before, after = (scaled_smoothness(family, natural, unit * s) for s in (1.0, scale))
            above = scaled_smoothness(family, family.scale_natural(natural, unit / start), scale * start, "paper")
            return FittedScale(scale, outcome, family.scale_natural(natural, unit * scale), before, after, above)

    # The paper's bound depends on where it starts: continuous columns at 1/std, trick features as they are.
    std = _std(family, of) if of.location is not None else 1.0
    start = std if trick == "none" and std > 0.0 else 1.0

    if constant:
        return fitted(1.0, Outcome.CONSTANT)
    if not family.scalable:
        return fitted(1.0, Outcome.PASSED_THROUGH)
    if scaling == "lip" and not usable:
        return fitted(1.0, Outcome.OUT_OF_RANGE)
    if scaling == "lip":
        at = start if bound == "paper" else unit
        with np.errstate(all="ignore"):
            started = family.scale_natural(natural, unit / at)
        scale, outcome = solve_scale(family, started, target, bound=bound, std=std / at)
        return fitted(scale / at, outcome)
    low, high = (math.log(v) if family.in_logs else v for v in (of.minimum, of.maximum))
    width = {"std": lambda: std, "max": lambda: max(abs(low), abs(high)), "iqr": lambda: _iqr(of)}[scaling]()
    if width > 0.0 or scaling == "std":
        return fitted(1.0 / width if width > 0.0 else math.inf, Outcome.SCALED)
    return fitted(1.0 / std if std > 0.0 else math.inf, Outcome.NO_SPREAD)


def _representable(family: Likelihood, of: FeatureStatistics, scale: float) -> bool:
    """Whether the scale is a number and both ends of the data stay inside the support when scaled by it."""
    support, ends = family.support, np.array([of.minimum, of.maximum])
    if not (math.isfinite(scale) and scale > 0.0):
        return False
    with np.errstate(all="ignore"):
        scaled = family.scale_data(ends, scale)
    # Where the lower end belongs to the support, only a value that was there may lie there.
    inside = support.contains(scaled) & ((scaled != support.lower) | (ends == support.lower))
    return bool(np.isfinite(scaled).all() and (support.whole or inside.all()))


def _std(family: Likelihood, of: FeatureStatistics) -> float:
    assert of.location is not None
    first, second = of.location.means
    unit = 1.0 if family.in_logs else of.location.pivot.unit
    with np.errstate(all="ignore"):
        variance = float(second - first * first)
    return math.sqrt(variance) * unit if variance > 0.0 else 0.0


def _iqr(of: FeatureStatistics) -> float:
    assert of.quartiles is not None
    return of.quartiles[1] - of.quartiles[0]
