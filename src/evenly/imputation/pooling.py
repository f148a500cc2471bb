"""Rubin's rules: pool the results of an analysis that was run on each of several complete tables."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning, TableError

Floats = npt.NDArray[np.float64]

PAIR = "expected an (estimate, standard error) pair for each table"

LOG_WIDEST = 230.0
"""Log of 1e100 standard errors: wider intervals are infinite, as SciPy's quantiles fail soon after."""


@dataclass(frozen=True)
class Pooled:
    """Pooled results: floats, arrays or pandas Series, as the estimates were.

    Attributes
    ----------
    estimate : float, array or Series
        The mean of the tables' estimates.
    standard_error
        The standard error of the estimate, from the variance within tables and between them.
    low, high
        The ends of the interval.
    degrees
        Student's degrees of freedom of the interval; `inf` is the normal distribution.
    missing_information
        The fraction of missing information, from 0 to 1: how much more precise the estimate would be without missing
        cells. It is Rubin's large-sample value whatever `n_rows` is, and NaN with one table.
    n : int
        The number of tables.
    """

    estimate: Any
    standard_error: Any
    low: Any
    high: Any
    degrees: Any
    missing_information: Any
    n: int


def pool(results: Iterable[Any], *, level: float = 0.95, n_rows: int | None = None, n_parameters: int = 1) -> Pooled:
    """Combine an analysis of each of several complete tables by Rubin's rules.

    The tables (`Imputer.sample`) differ in their imputed cells only: the spread of their estimates measures the
    uncertainty from missing cells, the standard errors that from sampling rows.

    Parameters
    ----------
    results : iterable of (estimate, standard error) pairs
        One pair per table: numbers, or arrays, sequences or pandas Series of one shape, which are pooled elementwise.
    level : float
        The nominal coverage of the interval, between 0 and 1.
    n_rows : int, optional
        The number of rows of a table. If given, the degrees of freedom are Barnard and Rubin's for small samples,
        which never exceed those of the complete table, `n_rows - n_parameters`; else Rubin's, for many rows.
    n_parameters : int
        How many parameters the analysis estimates: 1 for a mean, 2 for the difference of two. Only used with
        `n_rows`.

    Notes
    -----
    Rubin, *Multiple Imputation for Nonresponse in Surveys* (1987), chapter 3; degrees for small samples: Barnard and
    Rubin, Biometrika 86 (1999). Estimates should be roughly normal: pool the logarithm of a ratio, not the ratio.

    Examples
    --------
    >>> pooled = pool([(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])
    >>> print(f"{pooled.estimate:.1f} from {pooled.low:.2f} to {pooled.high:.2f}, {pooled.degrees:.0f} degrees")
    2.0 from -2.70 to 6.70, 32 degrees

    Identical estimates add nothing to the standard errors:

    >>> same = pool([([1.0, 5.0], [2.0, 1.0]), ([1.0, 5.0], [2.0, 1.0])], n_rows=20)
    >>> same.standard_error, same.degrees, same.missing_information
    (array([2., 1.]), array([19., 19.]), array([0., 0.]))
    """
    if not (isinstance(level, numbers.Real) and 0.0 < float(level) < 1.0):
        raise TableError(f"level = {level!r}", "expected a number between 0 and 1")
    complete = _complete_degrees(n_rows, n_parameters)
    pairs = _pairs(results)
    like = _labelled(pairs)
    estimates, errors = _checked(pairs)
    n = len(pairs)
    if n == 1:
        warnings.warn(
            "one table only: the uncertainty of its imputed cells is unknown, so that the interval ignores it and is "
            "too narrow. Pool 5 tables or more",
            EvenlyWarning,
            stacklevel=2,
        )
    entries = _combine(estimates, errors, level, complete)
    return Pooled(*(_as(like, one) for one in entries), n=n)


def _combine(estimates: Floats, errors: Floats, level: float, complete: int | None) -> tuple[Floats, ...]:
    """Return the entries of `Pooled`, by Rubin's rules."""
    n = len(estimates)
    # Relative to the first estimate, equal ones differ by exactly 0; in units of the largest, no square overflows.
    shifts = estimates - estimates[0]
    largest = np.maximum(np.abs(shifts).max(0), errors.max(0))
    unit = np.where(largest > 0.0, largest, 1.0)
    within = np.mean((errors / unit) ** 2, 0)
    between = (1.0 + 1.0 / n) * np.var(shifts / unit, 0, ddof=1) if n > 1 else np.zeros_like(within)
    total = within + between
    share = between / np.where(total > 0.0, total, 1.0)  # of the variance that comes from imputation
    estimate = estimates[0] + unit * np.mean(shifts / unit, 0)
    error = unit * np.sqrt(total)
    with np.errstate(divide="ignore", over="ignore"):  # a share of 0, or nearly 0, has infinite degrees of freedom
        rubin = (n - 1) * (1.0 / share) ** 2 if n > 1 else np.full_like(share, math.inf)
    degrees = rubin if complete is None else _small_sample(rubin, share, within, total, complete)
    missing = share + (1.0 - share) * 2.0 / (rubin + 3.0) if n > 1 else np.full_like(share, math.nan)
    half = error * _quantile(level, degrees)
    return estimate, error, estimate - half, estimate + half, degrees, missing


def _small_sample(rubin: Floats, share: Floats, within: Floats, total: Floats, complete: int) -> Floats:
    """Return Barnard and Rubin's degrees of freedom; without variance between tables, the complete table's."""
    kept = within / np.where(total > 0.0, total, 1.0)
    observed = (complete + 1.0) / (complete + 3.0) * complete * kept
    with np.errstate(divide="ignore", over="ignore"):  # nothing observed: 0 degrees of freedom
        adjusted = 1.0 / (1.0 / rubin + 1.0 / observed)
    return np.where(share > 0.0, adjusted, float(complete))


def _quantile(level: float, degrees: Floats) -> Floats:
    """Return the half-width of the interval in standard errors."""
    from scipy import stats  # imported here, because it takes a fifth of a second

    # For few degrees of freedom the probability beyond x is x^-degrees, so x = (1 - level)^(-1/degrees).
    infinite = degrees * LOG_WIDEST < -math.log1p(-level)
    known = stats.t.ppf(0.5 + 0.5 * level, np.where(infinite, 1.0, degrees))
    return np.where(infinite, math.inf, known)


def _complete_degrees(n_rows: Any, n_parameters: Any) -> int | None:
    """Return the degrees of freedom of the complete table; None if its number of rows is not given."""
    for name, value in (("n_rows", n_rows), ("n_parameters", n_parameters)):
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not (whole and int(value) >= 1) and not (name == "n_rows" and value is None):
            raise TableError(f"{name} = {value!r}", "expected a whole number from 1")
    if n_rows is None:
        return None
    if int(n_rows) <= int(n_parameters):
        raise TableError(
            f"n_rows = {n_rows} and n_parameters = {n_parameters}",
            "expected more rows than parameters",
            "n_rows is the number of rows of one table",
        )
    return int(n_rows) - int(n_parameters)


def _pairs(results: Any) -> list[tuple[Any, Any]]:
    """Return the results as pairs; raise an error that names the first that is not one."""
    if isinstance(results, str | Mapping) or not isinstance(results, Iterable):
        raise TableError(f"a {type(results).__name__}", PAIR)
    pairs = []
    for i, result in enumerate(results):
        if isinstance(result, str | Mapping) or not isinstance(result, Iterable):
            raise TableError(f"a {type(result).__name__} as result {i}", PAIR)
        pair = tuple(result)
        if len(pair) != 2:
            raise TableError(f"{len(pair)} entries in result {i}", PAIR)
        pairs.append(pair)
    if not pairs:
        raise TableError("no results", PAIR, "run the analysis on each table of `Imputer.sample`")
    return pairs


def _checked(pairs: list[tuple[Any, Any]]) -> tuple[Floats, Floats]:
    """Return estimates and standard errors as arrays, one row per table; raise an error that names a wrong result."""
    columns: tuple[list[Floats], list[Floats]] = ([], [])
    for i, pair in enumerate(pairs):
        for name, value, column in zip(("estimate", "standard error"), pair, columns, strict=True):
            found = _floats(value)
            if found is None:
                raise TableError(f"{name} {value!r} in result {i}", "expected a number, or an array of numbers")
            a_name = f"{'an' if name == 'estimate' else 'a'} {name}"
            shape = found.shape if not columns[0] else columns[0][0].shape
            if found.shape != shape:
                raise TableError(
                    f"{a_name} of shape {found.shape} in result {i}",
                    f"the first estimate has the shape {shape}",
                    "every table needs the same estimates, each with its standard error",
                )
            bad = ~np.isfinite(found) if name == "estimate" else ~(np.isfinite(found) & (found >= 0.0))
            if bad.any():
                expected = "expected finite numbers" if name == "estimate" else "expected finite numbers from 0"
                hint = f"check the analysis of table {i}"
                raise TableError(f"{a_name} of {found[bad][0]} in result {i}", expected, hint)
            column.append(found)
    return np.array(columns[0]), np.array(columns[1])


def _floats(value: Any) -> Floats | None:
    """Return a number or numbers as an array; None for anything else."""
    try:
        found = np.asarray(value)
        return None if found.dtype.kind in "cSUmM" or value is None else np.asarray(found, np.float64)
    except (TypeError, ValueError):
        return None


def _labelled(pairs: list[tuple[Any, Any]]) -> Any:
    """Return the first value with labels (a pandas Series), None if there is none; all labels must be equal."""
    # A list has an `index` too, but that is a method.
    series = [
        (i, value)
        for i, pair in enumerate(pairs)
        for value in pair
        if np.ndim(getattr(value, "index", 0)) == 1 and getattr(value, "ndim", 0) == 1
    ]
    for i, value in series:
        if not value.index.equals(series[0][1].index):
            raise TableError(
                f"labels {list(value.index)} in result {i}",
                f"the first have {list(series[0][1].index)}",
                "put all of them into the same order, with `reindex`",
            )
    return series[0][1] if series else None


def _as(like: Any, values: Floats) -> Any:
    """Return a float, an array or a Series, as the estimates were."""
    if np.ndim(values) == 0:
        return float(values)
    return values if like is None else type(like)(values, index=like.index)
