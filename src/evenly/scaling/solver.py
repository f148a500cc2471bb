"""The scale at which a feature's log-likelihood has the target smoothness."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from evenly.likelihoods import Array, Likelihood, to_numpy
from evenly.scaling.outcomes import Outcome, Solved
from evenly.scaling.smoothness import Bound, log_scaled_smoothness

FLOOR_MARGIN = 1.1
"""Aim at this multiple of the floor where the target lies below it, or above it by less: just above the floor, a scale
of 1e-8 or less would reach the target, at which a model learns nothing."""
_REACH = 300.0
"""Largest log-scale searched: e^300 = 1e130, and features are measured in units of their own size."""
_GRID = np.linspace(-_REACH, _REACH, 1201)
_FLAT = 1e-9
"""Two log-smoothnesses that differ by less are equal."""


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
        Standard deviation of the data (of log x for a log-normal). Of two roots, the one that brings it nearer to 1
        is taken.

    Returns
    -------
    Solved
        The scale and its outcome; 1 and `out_of_range` where no scale within e^-300 .. e^300 has the target, or where
        target or standard deviation is no positive number.

    Examples
    --------
    >>> from evenly.likelihoods import get_likelihood
    >>> exponential, gamma = get_likelihood("exponential"), get_likelihood("gamma")
    >>> round(solve_scale(exponential, np.array([-1.0]), 9.0).scale, 12)  # sqrt(target / L)
    3.0
    >>> solve_scale(gamma, np.array([0.0, -1.0]), 1.0).outcome  # the shape alone has pi^2/6
    <Outcome.BELOW_FLOOR: 'below_floor'>
    >>> solve_scale(exponential, np.array([-1.0]), 1e300)
    Solved(scale=1.0, outcome=<Outcome.OUT_OF_RANGE: 'out_of_range'>)
    """
    with np.errstate(all="ignore"):  # what overflows is out of range
        fisher = family.fisher(to_numpy(natural))
    out_of_range = Solved(1.0, Outcome.OUT_OF_RANGE)
    if not (0.0 < target < math.inf and 0.0 < std < math.inf and np.isfinite(fisher).all() and fisher.any()):
        return out_of_range
    goal, outcome = math.log(target), Outcome.REACHED
    curve = _Curve.trace(lambda t: log_scaled_smoothness(family, fisher, t, bound), goal)
    if curve.levels_off and curve.still_falls:  # no floor, only the end of the search
        if curve.least >= goal:
            return out_of_range
    elif curve.levels_off:
        lowest = curve.least + math.log(FLOOR_MARGIN)
        if lowest >= goal:
            goal, outcome = lowest, Outcome.BELOW_FLOOR
    elif curve.least >= goal:  # the minimum is attained
        return Solved(math.exp(curve.lowest), Outcome.BELOW_FLOOR)
    roots = curve.roots(goal)
    if not roots:
        return out_of_range
    return Solved(math.exp(min(roots, key=lambda t: abs(t + math.log(std)))), outcome)


@dataclass(frozen=True)
class _Curve:
    """The log of the smoothness as a convex function of the log of the scale."""

    log_smoothness: Callable[..., Array]
    lowest: float
    """The log-scale of its minimum, or the end of the search towards which it falls."""
    least: float
    """Its value there."""
    levels_off: bool
    """Whether it falls towards one end of the search; else it has a minimum between two rising sides."""
    still_falls: bool
    """Whether it has not levelled off yet at that end."""

    @classmethod
    def trace(cls, log_smoothness: Callable[..., Array], goal: float) -> _Curve:
        """Find the minimum on a grid, and refine it, relative to a goal, where it is not at an end."""
        values = log_smoothness(_GRID)
        bottom = int(values.argmin())
        lowest, least = float(_GRID[bottom]), float(values[bottom])
        levels_off = bool(min(values[0], values[-1]) - least < _FLAT)
        if not levels_off:  # the inverse Gaussian

            def gap(t: float) -> float:
                return float(log_smoothness(t)) - goal

            around = (_GRID[bottom - 1], _GRID[bottom + 1])
            lowest = float(minimize_scalar(gap, bounds=around, method="bounded", options={"xatol": 1e-12}).x)
            least = gap(lowest) + goal
        end, next_to_it = values[:2] if values[0] < values[-1] else (values[-1], values[-2])
        return cls(log_smoothness, lowest, least, levels_off, bool(next_to_it - end > _FLAT))

    def roots(self, goal: float) -> list[float]:
        """List the log-scales at which the curve has a value above its minimum."""

        def gap(t: float) -> float:
            return float(self.log_smoothness(t)) - goal

        ends = [end for end in (-_REACH, _REACH) if gap(end) > 0.0]
        return [brentq(gap, self.lowest, end, xtol=1e-15, rtol=1e-15) for end in ends]
