"""90 % intervals of errors on hidden cells, for the random choice of these cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evenly.tables import Floats

Z = 1.6448536269514722
"""Half-width of a 90 % interval of a normal mean, in standard errors."""


def error_interval(error: float, losses: Floats, *, rate: bool) -> tuple[float, float]:
    """Return the interval of an error: Wilson's for a rate; from the spread of squared errors for an NRMSE.

    Parameters
    ----------
    error : float
        The error itself.
    losses : array
        Of each cell: wrong (1) or not (0), or its squared error in any unit.

    Examples
    --------
    >>> [round(end, 3) for end in error_interval(0.25, np.array([1.0, 0.0, 0.0, 0.0]), rate=True)]
    [0.058, 0.644]
    """
    n = len(losses)
    if rate:
        middle, spread = error + Z**2 / (2 * n), Z * np.sqrt(error * (1 - error) / n + Z**2 / (4 * n**2))
        low, high = (float((middle + sign * spread) / (1 + Z**2 / n)) for sign in (-1.0, 1.0))
        return low if error > 0.0 else 0.0, high if error < 1.0 else 1.0  # exact, despite rounding
    if n < 2 or not losses.any():
        return (error, error) if n > 1 else (0.0, math.inf)
    relative = Z * float(losses.std(ddof=1) / np.sqrt(n) / losses.mean())
    return error * float(np.sqrt(max(0.0, 1.0 - relative))), error * float(np.sqrt(1.0 + relative))


def normalized_interval(losses: Floats, others: Floats, *, rate: bool) -> tuple[float, float]:
    """Return the interval of an error divided by another one on the same cells.

    By the delta method on the log of the ratio, where what both have in common cancels. Without any loss, the upper end
    is that of the error; where the others have none, nothing is known.

    Examples
    --------
    >>> others = np.tile([1.0, 0.0], 50)
    >>> normalized_interval(others, others, rate=True)  # the same errors on the same cells
    (1.0, 1.0)
    >>> low, high = normalized_interval(others * np.tile([1.0, 1.0, 0.0, 0.0], 25), others, rate=True)
    >>> low < 0.5 < high < 1.0
    True
    """
    n, mean, other = len(losses), float(losses.mean()), float(others.mean())
    if n < 2 or not other:
        return 0.0, math.inf
    if not mean:
        high = error_interval(0.0, losses, rate=rate)[1]
        return 0.0, high / other
    spread = Z * float((losses / mean - others / other).std(ddof=1)) / math.sqrt(n)
    ratio, spread = (mean / other, spread) if rate else (math.sqrt(mean / other), 0.5 * spread)
    return ratio * math.exp(-spread), ratio * math.exp(min(spread, 700.0))


def mean_with_interval(found: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Return the mean of independent values with its interval, given each value with the ends of its own.

    The distances to the ends add like standard errors (MOVER, the method of variance estimates recovery), so that the
    interval may be lopsided as theirs are.

    Examples
    --------
    >>> [round(one, 3) for one in mean_with_interval([(1.0, 0.7, 1.6), (2.0, 1.6, 2.8)])]
    [1.5, 1.25, 2.0]
    """
    if not found:
        return math.nan, math.nan, math.nan
    values, lows, highs = np.array(found).T
    mean = float(values.mean())
    below, above = (float(np.sqrt(((values - end) ** 2).sum())) / len(values) for end in (lows, highs))
    return mean, max(mean - below, 0.0), mean + above
