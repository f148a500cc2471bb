"""The results of an analysis of several tables, read: pairs of numbers, and fitted models of other libraries.

Fitted models are recognized by what they have, so that no other library is imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import TableError

Floats = npt.NDArray[np.float64]

PAIR = "expected an (estimate, standard error) pair, or a fitted model, for each table"
MOST_STEP = 0.1
"""The farthest that coefficients may be from the maximum of the likelihood, in standard errors: solvers stop early."""


class Analysis(NamedTuple):
    """What the analysis of one table found."""

    estimate: Any
    standard_error: Any = None
    """None if it is unknown."""
    degrees: float = math.inf
    """The degrees of freedom of the analysis, if it has them."""


def read_results(results: Any, data: Any = None) -> list[Analysis]:
    """Return what each analysis found; raise an error that names the first result that cannot be read."""
    if isinstance(results, str | Mapping) or not isinstance(results, Iterable):
        raise TableError(f"a {type(results).__name__}", PAIR)
    listed = list(results)
    if not listed:
        raise TableError("no results", PAIR, "run the analysis on each table of `Imputer.sample`")
    tables = _tables(data, len(listed))
    found = [_read(one, i, table) for i, (one, table) in enumerate(zip(listed, tables, strict=True))]
    known = [one.standard_error is not None for one in found]
    if any(known) and not all(known):
        raise TableError(f"no standard error in result {known.index(False)}", "the others have one")
    return found


def _tables(data: Any, n: int) -> list[Any]:
    if data is None:
        return [None] * n
    expected = "expected one (X, y) pair for each result"
    if isinstance(data, str | Mapping) or not isinstance(data, Iterable):
        raise TableError(f"a {type(data).__name__} as data", expected)
    tables = list(data)
    if len(tables) != n or any(not isinstance(one, Sequence) or len(one) != 2 for one in tables):
        raise TableError(f"data of {len(tables)} entries for {n} results", expected, "data=[(X, y), ...]")
    return tables


def _read(result: Any, i: int, table: Any) -> Analysis:
    if hasattr(result, "coef_") and hasattr(result, "intercept_"):
        return _read_linear_model(result, i, table)
    if table is not None:
        got = f"data for a {type(result).__name__} as result {i}"
        raise TableError(got, "only scikit-learn's linear models need data")
    if hasattr(result, "params") and hasattr(result, "bse"):
        return _read_statsmodels(result)
    if isinstance(result, str | Mapping) or not isinstance(result, Iterable):
        hint = "fit scikit-learn's models first; of a pipeline, pool the last step" if hasattr(result, "fit") else ""
        raise TableError(f"a {type(result).__name__} as result {i}", PAIR, hint)
    pair = tuple(result)
    if len(pair) != 2:
        raise TableError(f"{len(pair)} entries in result {i}", PAIR)
    if pair[1] is None:
        raise TableError(f"standard error None in result {i}", "expected a number, or an array of numbers")
    return Analysis(pair[0], _errors_of(*pair))


def _errors_of(estimate: Any, error: Any) -> Any:
    """Return standard errors; of a covariance matrix of several estimates, the roots of its diagonal."""
    estimates, errors = _floats(estimate), _floats(error)
    if estimates is None or errors is None or estimates.ndim != 1 or errors.shape != estimates.shape * 2:
        return error
    variances = np.diagonal(errors)
    # A variance below 0 stays what it is, and is refused with other wrong values.
    return np.where(variances < 0.0, variances, np.sqrt(np.maximum(variances, 0.0)))


def with_labels(values: Any, names: Sequence[str]) -> Any:
    """Return values with the names of their terms: a pandas Series, if pandas is installed."""
    if not find_spec("pandas"):
        return np.asarray(values, np.float64)
    import pandas as pd

    return pd.Series(np.asarray(values, np.float64), index=list(names))


# --- statsmodels --------------------------------------------------------------------------------------------------


def _read_statsmodels(result: Any) -> Analysis:
    """Read params, their standard errors (robust ones, if the fit has them), and the residual degrees of freedom."""
    estimate, error = result.params, result.bse
    if np.ndim(estimate) == 2:  # one column for each outcome of a multinomial model
        outcomes = [str(one) for one in getattr(estimate, "columns", range(np.shape(estimate)[1]))]
        terms = [str(one) for one in getattr(estimate, "index", range(np.shape(estimate)[0]))]
        names = [f"{outcome}: {term}" for outcome in outcomes for term in terms]
        estimate, error = (with_labels(np.asarray(one).ravel("F"), names) for one in (estimate, error))
    elif np.ndim(getattr(estimate, "index", 0)) != 1:
        names = getattr(getattr(result, "model", None), "exog_names", None) or []
        if len(names) == len(estimate) and not isinstance(names, str):
            estimate, error = with_labels(estimate, names), with_labels(error, names)
    degrees = getattr(result, "df_resid", None)
    return Analysis(estimate, error, math.inf if degrees is None or not degrees > 0 else float(degrees))


# --- scikit-learn -------------------------------------------------------------------------------------------------


def _read_linear_model(fit: Any, i: int, table: Any) -> Analysis:
    """Read coefficients, intercept first; their standard errors come from the table, if it is given."""
    weights = np.asarray(fit.coef_, np.float64)
    if weights.ndim == 2 and len(weights) == 1:
        weights = weights[0]
    if weights.ndim != 1:
        what = "classes" if hasattr(fit, "classes_") else "targets"
        raise TableError(f"a fit of several {what} as result {i}", "expected one vector of coefficients", "pool each")
    names = [str(one) for one in getattr(fit, "feature_names_in_", [f"x{j}" for j in range(len(weights))])]
    if getattr(fit, "fit_intercept", True):
        weights = np.concatenate([np.ravel(fit.intercept_).astype(np.float64), weights])
        names = ["intercept", *names]
    estimate = with_labels(weights, names)
    if table is None:
        return Analysis(estimate)
    X, y = _design(fit, i, table, len(weights))
    covariance, step = _logistic(X, y, weights) if hasattr(fit, "classes_") else _least_squares(X, y, weights)
    errors = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    if not (np.abs(step) <= MOST_STEP * errors + 1e-9 * np.abs(weights).max(initial=0.0)).all():
        raise TableError(
            f"coefficients in result {i} that do not maximize the likelihood of its data",
            "standard errors need a least-squares or logistic regression without a penalty",
            "LinearRegression(), LogisticRegression(C=np.inf); or leave out `data` to pool the estimates alone",
        )
    return Analysis(estimate, with_labels(errors, names), float(len(X) - len(weights)))


def _design(fit: Any, i: int, table: Any, width: int) -> tuple[Floats, Floats]:
    """Return the table's X, with a column of ones for the intercept, and y, as 0 and 1 for classes."""
    X, y = np.asarray(table[0]), np.asarray(table[1]).ravel()
    try:
        X = np.asarray(X, np.float64)
        y = np.asarray(y == fit.classes_[1] if hasattr(fit, "classes_") else y, np.float64)
    except (TypeError, ValueError):
        expected = "expected the X and y that it was fitted to"
        raise TableError(f"data of result {i} that are not numbers", expected) from None
    if getattr(fit, "fit_intercept", True) and X.ndim == 2:
        X = np.column_stack([np.ones(len(X)), X])
    if X.ndim != 2 or X.shape != (len(y), width) or len(y) <= width:
        raise TableError(
            f"X of shape {np.shape(table[0])} and {len(y)} values of y for result {i}",
            f"expected the data it was fitted to, with more rows than its {width} coefficients",
        )
    return X, y


def _least_squares(X: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the covariance of the coefficients, and the step from them to the least squares."""
    left = y - X @ weights
    inverse = _inverse_gram(X)
    return inverse * float(left @ left) / (len(X) - len(weights)), inverse @ (X.T @ left)


def _logistic(X: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the inverse of the Fisher matrix, and Newton's step from the coefficients to the maximum likelihood."""
    from scipy.special import expit

    likely = expit(X @ weights)
    inverse = _inverse_gram(X * np.sqrt(likely * (1.0 - likely))[:, None])
    return inverse, inverse @ (X.T @ (y - likely))


def _inverse_gram(X: Floats) -> Floats:
    """Return the inverse of X'X, by singular values: their squares would lose half of the digits."""
    sizes = np.sqrt((X**2).sum(0))
    _, values, axes = np.linalg.svd(X / np.where(sizes > 0.0, sizes, 1.0), full_matrices=False)
    if not values[-1] > 1e-10 * values[0]:
        raise TableError("columns of X that determine each other", "expected coefficients that are unique", "drop one")
    scaled = (axes / values[:, None] / sizes).T
    return np.asarray(scaled @ scaled.T)


# --- checked ------------------------------------------------------------------------------------------------------


def checked_arrays(pairs: Sequence[Analysis]) -> tuple[Floats, Floats]:
    """Return estimates and standard errors as arrays, one row per table; raise an error that names a wrong result."""
    columns: tuple[list[Floats], list[Floats]] = ([], [])
    for i, pair in enumerate(pairs):
        for name, value, column in zip(("estimate", "standard error"), pair[:2], columns, strict=True):
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


def labelled(pairs: Sequence[Analysis]) -> Any:
    """Return the first value with labels (a pandas Series), None if there is none; all labels must be equal."""
    # A list has an `index` too, but that is a method.
    series = [
        (i, value)
        for i, pair in enumerate(pairs)
        for value in pair[:2]
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
