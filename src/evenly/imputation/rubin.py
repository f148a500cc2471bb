"""Rubin's rules on arrays: estimates and standard errors of several tables in, one estimate and its interval out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LOG_WIDEST = 230.0
"""Log of 1e100 standard errors: wider intervals are infinite, as SciPy's quantiles fail soon after."""


@dataclass(frozen=True)
class Combined:
    """Pooled values, an entry for each estimate."""

    estimate: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    degrees: Floats
    missing_information: Floats
    t: Floats
    p: Floats
    relative_increase: Floats
    imputation_share: Floats


def combine(estimates: Floats, errors: Floats, level: float, complete: float | None) -> Combined:
    """Combine estimates and standard errors, one row per table, by Rubin's rules.

    Parameters
    ----------
    complete : float, optional
        The degrees of freedom of the analysis of a complete table; by default, infinitely many.

    Examples
    --------
    >>> found = combine(np.array([[1.0], [3.0]]), np.array([[2.0], [2.0]]), 0.95, None)
    >>> found.estimate.item(), round(found.standard_error.item() ** 2, 12), round(found.imputation_share.item(), 4)
    (2.0, 7.0, 0.4286)
    """
    n = len(estimates)
    # Relative to the first estimate, equal ones differ by exactly 0; in units of the largest, no square overflows.
    shifts = estimates - estimates[0]
    largest = np.maximum(np.abs(shifts).max(0), errors.max(0))
    unit = np.where(largest > 0.0, largest, 1.0)
    within = np.mean((errors / unit) ** 2, 0)
    between = (1.0 + 1.0 / n) * np.var(shifts / unit, 0, ddof=1) if n > 1 else np.zeros_like(within)
    total = within + between
    share = between / np.where(total == 0.0, 1.0, total)  # of the variance that comes from imputation
    estimate = estimates[0] + unit * np.mean(shifts / unit, 0)
    error = unit * np.sqrt(total)
    with np.errstate(divide="ignore", over="ignore"):  # a share of 0, or nearly 0, has infinite degrees of freedom
        rubin = (n - 1) * (1.0 / share) ** 2 if n > 1 else np.full_like(share, math.inf)
        increase = between / np.where((within > 0.0) | (between > 0.0), within, 1.0)
    degrees = rubin if complete is None else _small_sample(rubin, share, within, total, complete)
    missing = share + (1.0 - share) * 2.0 / (rubin + 3.0) if n > 1 else np.full_like(share, math.nan)
    half = error * _quantile(level, degrees)
    t, p = _test(estimate, error, degrees)
    ends = estimate - half, estimate + half
    unknown = math.nan if n == 1 else 1.0
    return Combined(estimate, error, *ends, degrees, missing, t, p, unknown * increase, unknown * share)


def _small_sample(rubin: Floats, share: Floats, within: Floats, total: Floats, complete: float) -> Floats:
    """Return Barnard and Rubin's degrees of freedom; without variance between tables, the complete table's."""
    kept = within / np.where(total == 0.0, 1.0, total)
    observed = (complete + 1.0) / (complete + 3.0) * complete * kept
    with np.errstate(divide="ignore", over="ignore"):  # nothing observed: 0 degrees of freedom
        adjusted = 1.0 / (1.0 / rubin + 1.0 / observed)
    return np.where(share > 0.0, adjusted, complete + 0.0 * share)


def _quantile(level: float, degrees: Floats) -> Floats:
    """Return the half-width of the interval in standard errors."""
    from scipy import stats  # imported here, because it takes a fifth of a second

    # For few degrees of freedom the probability beyond x is x^-degrees, so x = (1 - level)^(-1/degrees).
    infinite = degrees * LOG_WIDEST < -math.log1p(-level)
    known = stats.t.ppf(0.5 + 0.5 * level, np.where(infinite, 1.0, degrees))
    return np.where(infinite, math.inf, known)


def _test(estimate: Floats, error: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Return Student's t of the hypothesis that the estimate is 0, and its two-sided p-value.

    Without a standard error, an estimate of 0 agrees with the hypothesis, and any other refutes it; with 0 degrees of
    freedom nothing is known.
    """
    from scipy import stats

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = np.where((estimate == 0.0) & (error == 0.0), 0.0, estimate / error)
    known = ~(degrees * LOG_WIDEST < 1.0)
    p = 2.0 * stats.t.sf(np.abs(t), np.where(known, degrees, 1.0))
    return t, np.where(known | np.isinf(t), p, 1.0)
