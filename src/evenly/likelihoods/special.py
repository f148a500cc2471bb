"""Functions that the densities share, in forms that keep their digits where plain ones cancel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenly.likelihoods.arrays import Array, Namespace, namespace

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
INF = math.inf


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


def log_quotient(a: float, b: float) -> float:
    """Return log(a / b) with all its digits, even if a and b are close, or their quotient is out of range."""
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


def stirling_error(a: Array, xp: Namespace) -> Array:
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
