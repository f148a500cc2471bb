"""Rubin's rules: pool the results of an analysis that was run on each of several complete tables."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning, TableError, align
from evenly.imputation.analyses import Analysis, checked_arrays, labelled, read_results
from evenly.imputation.rubin import combine
from evenly.tables import build_table

Floats = npt.NDArray[np.float64]

SHOWN = {
    "estimate": "estimate",
    "standard_error": "std_error",
    "t": "t",
    "degrees": "df",
    "p": "p",
    "low": "low",
    "high": "high",
    "missing_information": "fmi",
    "relative_increase": "r",
    "imputation_share": "lambda",
}
"""The columns of `Pooled.to_frame` and `summary`, with the names that other software has for them."""


@dataclass(frozen=True, repr=False)
class Pooled:
    """Pooled results: floats, arrays or pandas Series, as the estimates were; printed as a table.

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
    t, p
        Student's t of the hypothesis that the true value is 0, and its two-sided p-value.
    relative_increase
        The variance that imputation adds, divided by that within tables (Rubin's r); NaN with one table.
    imputation_share
        The share of the variance that comes from imputation (lambda); NaN with one table.
    n : int
        The number of tables.
    level : float
        The nominal coverage of the interval.
    terms : tuple of str
        The names of the estimates.

    Examples
    --------
    >>> from evenly import pool
    >>> pool([(0.8, 0.21), (0.9, 0.2), (0.85, 0.22)], n_rows=100)
    term      estimate  std_error     t    df        p     low   high     fmi       r  lambda
    estimate      0.85     0.2179  3.90  73.8  0.00021  0.4157  1.284  0.0747  0.0755  0.0702
    3 tables, 95 % intervals
    """

    estimate: Any
    standard_error: Any
    low: Any
    high: Any
    degrees: Any
    missing_information: Any
    t: Any
    p: Any
    relative_increase: Any
    imputation_share: Any
    n: int
    level: float
    terms: tuple[str, ...]

    def to_frame(self) -> Any:
        """Return a table with a row for each estimate: a pandas frame if pandas is installed, else a Polars frame.

        Its columns are term, estimate, std_error, t, df, p, low, high, fmi (the fraction of missing information), r
        (the relative increase of the variance) and lambda (the share of the variance that comes from imputation).
        """
        values = {shown: np.ravel(np.asarray(getattr(self, name), np.float64)) for name, shown in SHOWN.items()}
        terms = np.array(self.terms, dtype=object)
        return build_table({"term": terms, **values}, "pandas" if find_spec("pandas") else "polars")

    def summary(self) -> str:
        """Return the same as text, rounded."""
        columns = [[rounded(float(one), name) for one in np.ravel(getattr(self, name))] for name in SHOWN]
        rows = [("term", *SHOWN.values()), *zip(self.terms, *columns, strict=True)]
        tables = f"{self.n} table{'s' if self.n > 1 else ''}, {100.0 * self.level:g} % intervals"
        return "\n".join([*align(rows, 1), tables])

    __repr__ = summary


def rounded(value: float, name: str) -> str:
    """Return a number as a summary shows it; nothing where it is unknown."""
    if math.isnan(value):
        return "-"
    if name in ("degrees", "t"):
        return f"{value:.1f}" if name == "degrees" else f"{value:.2f}"
    return f"{value:.4g}" if name in ("estimate", "standard_error", "low", "high") else f"{value:.3g}"


def pool(
    results: Iterable[Any],
    *,
    level: float = 0.95,
    n_rows: int | None = None,
    n_parameters: int = 1,
    data: Iterable[tuple[Any, Any]] | None = None,
) -> Pooled:
    """Combine an analysis of each of several complete tables by Rubin's rules.

    The tables (`Imputer.sample`) differ in their imputed cells only: the spread of their estimates measures the
    uncertainty from missing cells, the standard errors that from sampling rows.

    Parameters
    ----------
    results : iterable
        One result per table. An (estimate, standard error) pair: numbers, or arrays, sequences or pandas Series of one
        shape, which are pooled elementwise; in place of several standard errors, their covariance matrix will do. Or a
        fitted model of statsmodels, or a linear model of scikit-learn.
    level : float
        The nominal coverage of the interval, between 0 and 1.
    n_rows : int, optional
        The number of rows of a table. If given, the degrees of freedom are Barnard and Rubin's for small samples,
        which never exceed those of the complete table, `n_rows - n_parameters`; else Rubin's, for many rows. Fitted
        models know their residual degrees of freedom, which are used unless `n_rows` is given.
    n_parameters : int
        How many parameters the analysis estimates: 1 for a mean, 2 for the difference of two. Only used with
        `n_rows`.
    data : iterable of (X, y), optional
        What each of scikit-learn's models was fitted to. They do not know their standard errors, which are computed
        from it: those of least squares, or of logistic regression, without a penalty. Without `data`, only the
        estimates are pooled, with a warning.

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
    return _pool(read_results(results, data), float(level), _complete_degrees(n_rows, n_parameters))


def _pool(found: Sequence[Analysis], level: float, complete: float | None) -> Pooled:
    like = labelled(found)
    estimates, errors = _arrays(found)
    least = min(one.degrees for one in found)
    if complete is None and math.isfinite(least):
        complete = least
    if len(found) == 1:
        warnings.warn(
            "one table only: the uncertainty of its imputed cells is unknown, so that the interval ignores it and is "
            "too narrow. Pool 5 tables or more",
            EvenlyWarning,
            stacklevel=3,
        )
    entries = vars(combine(estimates, errors, level, complete))
    terms = _terms(like, estimates[0])
    return Pooled(**{name: _as(like, one) for name, one in entries.items()}, n=len(found), level=level, terms=terms)


def _arrays(found: Sequence[Analysis]) -> tuple[Floats, Floats]:
    """Return checked estimates and standard errors; NaN, with a warning, if the results do not have them."""
    if found[0].standard_error is not None:
        return checked_arrays(found)
    estimates, errors = checked_arrays([one._replace(standard_error=np.zeros_like(one.estimate)) for one in found])
    warnings.warn(
        "no standard errors: scikit-learn's models do not know them, so that only the estimates are pooled. Give what "
        "each was fitted to, as data=[(X, y), ...], for tests and intervals",
        EvenlyWarning,
        stacklevel=4,
    )
    return estimates, np.full_like(errors, math.nan)


def _terms(like: Any, estimate: Floats) -> tuple[str, ...]:
    """Return the names of the estimates: their labels, or their places."""
    if like is not None:
        return tuple(str(one) for one in like.index)
    if estimate.ndim == 0:
        return ("estimate",)
    return tuple(f"x{','.join(map(str, place))}" for place in np.ndindex(estimate.shape))


def _complete_degrees(n_rows: Any, n_parameters: Any) -> float | None:
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
    return float(int(n_rows) - int(n_parameters))


def _as(like: Any, values: Floats) -> Any:
    """Return a float, an array or a Series, as the estimates were."""
    if np.ndim(values) == 0:
        return float(values)
    return values if like is None else type(like)(values, index=like.index)
