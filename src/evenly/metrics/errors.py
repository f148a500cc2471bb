"""How well hidden cells were imputed: the error of each column.

Arrays hold encoded cells, rows x columns: the value, or the code of the class; NaN where a cell is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.tables import Column, Floats

Bools = npt.NDArray[np.bool_]

PROTOCOLS = ("honest", "as-published")
"""How errors are taken; `as-published` is for comparing with the paper's tables only, flaws and all."""

GROUPS = {"discrete": ("count", "binary", "categorical", "ordinal"), "continuous": ("real", "positive", "date")}
"""The kinds that the paper's tables average over; `all` is both."""

CLEARLY = 1.0
"""Standard errors by which a mean loss must be smaller to be clearly so."""
ROUNDING = 1e-9
"""A smaller share of the loss is no gain: predictions of the mean are not exactly equal."""


def column_errors(
    columns: Sequence[Column],
    truth: Floats,
    predicted: Floats,
    hidden: Bools,
    *,
    protocol: str = "honest",
    owners: Sequence[int] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Floats:
    """Return one error a column: error rate for classes, root mean square error / range for numbers (NRMSE).

    Parameters
    ----------
    columns : sequence of Column
        The columns, in the arrays' order.
    truth, predicted : array, rows x columns
        Encoded cells. Cells that are missing in `truth` are never scored; `predicted` must be finite where scored.
    hidden : boolean array, rows x columns
        True where a known cell was kept from the model.
    protocol : {"honest", "as-published"}
        Honest: every column on its own hidden cells. As-published, with two flaws of the paper's evaluation: a column
        that is split into features is scored by NRMSE of its codes, and column i on the hidden cells of the column
        that owns *feature* i, so that `predicted` needs observed cells too. The same where no column is split.
    owners : sequence of int, optional
        The column of each feature, by position, for `as-published`. Ignored columns may be left out: then columns and
        features are both counted without them.
    ranges : mapping of column to (minimum, maximum), optional
        Instead of those over the known cells of `truth`, hidden or not.

    Returns
    -------
    array
        NaN without a scored cell, or if ignored. Where the range is 0, relative to the size of the value.

    Examples
    --------
    >>> columns = [Column(name="age", kind="real"), Column(name="color", kind="categorical", classes=["blue", "red"])]
    >>> truth = np.array([[20.0, 0.0], [30.0, 1.0], [60.0, 1.0], [np.nan, 0.0]])
    >>> predicted = np.array([[20.0, 0.0], [34.0, 0.0], [60.0, 1.0], [50.0, 1.0]])
    >>> hidden = np.array([[False, False], [True, True], [False, True], [False, False]])
    >>> column_errors(columns, truth, predicted, hidden)  # 4 of a range of 40; 1 wrong of 2
    array([0.1, 0.5])
    >>> column_errors(columns, truth, predicted, np.zeros((4, 2), bool))  # nothing hidden, nothing to score
    array([nan, nan])
    """
    truth, predicted, hidden = _check_arrays(columns, truth, predicted, hidden)
    masks, coded = _check_protocol(protocol, columns, owners)
    given, errors = _check_ranges(ranges or {}, columns), np.full(len(columns), np.nan)
    for j, column in enumerate(columns):
        known = ~np.isnan(truth[:, j])
        scored = known & hidden[:, masks[j]]
        if column.kind != "ignore" and scored.any():
            own, others = truth[scored, j], predicted[scored, j]
            _check_finite(column, truth[known, j], others, hidden[scored, j])
            if not column.has_classes or coded[j]:
                errors[j] = _root_mean_square(others - own) / _unit(truth[known, j], given.get(column.name))
            else:
                errors[j] = np.mean(own != others)
    return errors


def count_far_off(columns: Sequence[Column], truth: Floats, predicted: Floats, hidden: Bools) -> npt.NDArray[np.intp]:
    """Return how many hidden cells of each number are predicted farther off than the range of its known cells.

    No cell of a class is. A mean error tells nothing about such a column: a handful of cells make it what it is.

    Examples
    --------
    >>> truth = np.array([[0.0], [2.0], [1.0]])
    >>> count_far_off([Column(name="a", kind="real")], truth, truth + [[3.0], [-1.0], [9.0]], np.ones((3, 1), bool))
    array([2])
    """
    truth, predicted, hidden = _check_arrays(columns, truth, predicted, hidden)
    counts = np.zeros(len(columns), np.intp)
    for j, column in enumerate(columns):
        known = ~np.isnan(truth[:, j])
        scored = known & hidden[:, j]
        if column.kind != "ignore" and not column.has_classes and scored.any():
            away = np.abs(predicted[scored, j] - truth[scored, j])
            counts[j] = (~(away <= _unit(truth[known, j], None))).sum()
    return counts


def _unit(known: Floats, given: tuple[float, float] | None) -> float:
    """Return the range of a column's known cells, or the given one; without a range, its size."""
    low, high = (float(known.min()), float(known.max())) if given is None else given
    return (high - low) or abs(low) or 1.0


def _root_mean_square(values: Floats) -> float:
    """Relative to the largest, so that no square overflows or vanishes."""
    largest = float(np.abs(values).max())
    return largest * float(np.sqrt(np.mean((values / largest) ** 2))) if largest else 0.0


def mean_or_mode(columns: Sequence[Column], truth: Floats, hidden: Bools) -> Floats:
    """Return the table that a simple imputation predicts: the mean of numbers, the most frequent code of classes.

    Both are taken from the visible cells, known and not hidden; of classes equally frequent the first counts. Every
    cell of a column gets the same; NaN if the column has no visible cell or is ignored.

    Examples
    --------
    >>> columns = [Column(name="age", kind="real"), Column(name="color", kind="categorical", classes=["blue", "red"])]
    >>> truth = np.array([[20.0, 1.0], [40.0, np.nan], [90.0, 0.0]])
    >>> hidden = np.array([[False, False], [False, False], [True, True]])
    >>> mean_or_mode(columns, truth, hidden)[0]
    array([30.,  1.])
    >>> mean_or_mode(columns, truth, np.ones((3, 2), bool))[0]
    array([nan, nan])
    """
    truth, _, hidden = _check_arrays(columns, truth, truth, hidden)
    predicted = np.full(truth.shape, np.nan)
    for j, column in enumerate(columns):
        visible = truth[~np.isnan(truth[:, j]) & ~hidden[:, j], j]
        if column.kind == "ignore" or not len(visible):
            continue
        if column.has_classes:
            codes, counts = np.unique(visible, return_counts=True)
            predicted[:, j] = codes[counts.argmax()]
        else:
            # Rounding must not move the mean of equal cells away from them: their error is 0.
            with np.errstate(over="ignore"):
                predicted[:, j] = np.clip(visible.mean(), visible.min(), visible.max())
    return predicted


def normalized_errors(
    columns: Sequence[Column], truth: Floats, predicted: Floats, hidden: Bools, **settings: Any
) -> Floats:
    """Return each column's error divided by that of `mean_or_mode`, both by the same protocol; below 1 is better.

    Parameters and settings are those of `column_errors`. NaN where there is nothing to score, or no visible cell to
    take a mean or a mode from. Where the mean or the mode makes no error at all: 1 if the prediction makes none
    either, else infinity.

    Examples
    --------
    >>> columns = [Column(name="age", kind="real")]
    >>> truth = np.array([[20.0], [40.0], [34.0]])  # the mean of the visible two is 30
    >>> hidden = np.array([[False], [False], [True]])
    >>> normalized_errors(columns, truth, np.array([[20.0], [40.0], [33.0]]), hidden)
    array([0.25])
    >>> same = np.full((3, 1), 7.0)  # a constant column: the mean is right, and so is the prediction
    >>> normalized_errors(columns, same, same, hidden)
    array([1.])
    """
    errors = column_errors(columns, truth, predicted, hidden, **settings)
    return ratio_to_baseline(errors, baseline_errors(columns, truth, hidden, **settings))


def baseline_errors(columns: Sequence[Column], truth: Floats, hidden: Bools, **settings: Any) -> Floats:
    """Return the errors of `mean_or_mode`; NaN for a column that it has no prediction for."""
    baseline = mean_or_mode(columns, truth, hidden)
    absent = np.isnan(baseline).any(axis=0)
    errors = column_errors(columns, truth, np.where(absent, 0.0, baseline), hidden, **settings)
    return np.where(absent, np.nan, errors)


def ratio_to_baseline(errors: Floats, baseline: Floats) -> Floats:
    """Divide errors by those of the mean or the mode; where the latter is 0: 1 if both are, else infinity."""
    perfect = baseline == 0.0
    ratio = errors / np.where(perfect, 1.0, baseline)
    return np.where(perfect, np.where(errors == 0.0, 1.0, np.inf), ratio)


def clearly_better(losses: Floats | Bools, others: Floats | Bools, by: float = CLEARLY) -> bool:
    """Whether losses are smaller than others on the same cells, by more than some standard errors and rounding.

    Examples
    --------
    >>> losses = np.array([1.0, 2.0, 1.0, 2.0])
    >>> clearly_better(losses, losses + [1.0, 2.0, 1.0, 2.0]), clearly_better(losses, losses + [9.0, -8.0, 9.0, -8.0])
    (True, False)
    """
    gain = np.asarray(others, np.float64) - np.asarray(losses, np.float64)
    least = ROUNDING * np.abs(np.asarray(others, np.float64)).mean()
    return bool(gain.mean() > max(by * gain.std() / np.sqrt(len(gain)), least))


def mean_errors(columns: Sequence[Column], errors: Floats) -> dict[str, float]:
    """Return the mean error of the `discrete` columns, of the `continuous` ones, and of `all`, as in the paper.

    Counts are discrete there, though scored by NRMSE. Columns without a scored cell (NaN) are left out, and so is a
    group without a scored column. One infinite normalized error makes its means infinite.

    Examples
    --------
    >>> columns = [Column(name="age", kind="real"), Column(name="visits", kind="count"), Column(name="x", kind="real")]
    >>> mean_errors(columns, np.array([0.25, 0.75, np.nan]))
    {'discrete': 0.75, 'continuous': 0.25, 'all': 0.5}
    >>> mean_errors(columns, np.full(3, np.nan))
    {}
    """
    errors = np.asarray(errors, np.float64)
    if errors.shape != (len(columns),):
        raise TableError(f"errors of shape {errors.shape}", f"expected one for each of {len(columns)} columns")
    kinds = np.array([column.kind for column in columns])
    groups = {name: np.isin(kinds, members) for name, members in GROUPS.items()}
    groups["all"] = groups["discrete"] | groups["continuous"]
    scored = {name: errors[group & ~np.isnan(errors)] for name, group in groups.items()}
    return {name: float(group.mean()) for name, group in scored.items() if len(group)}


# --- checks -------------------------------------------------------------------------------------------------------


def _check_arrays(columns: Sequence[Column], truth: Any, predicted: Any, hidden: Any) -> tuple[Floats, Floats, Bools]:
    truth, predicted, hidden = np.asarray(truth, np.float64), np.asarray(predicted, np.float64), np.asarray(hidden)
    if truth.ndim != 2 or truth.shape[1] != len(columns):
        raise TableError(f"truth of shape {truth.shape}", f"expected rows x {len(columns)} columns")
    for name, array in (("predicted", predicted), ("hidden", hidden)):
        if array.shape != truth.shape:
            raise TableError(f"{name} of shape {array.shape}", f"expected that of truth, {truth.shape}")
    if hidden.dtype != bool:
        raise TableError(f"hidden of type {hidden.dtype}", "expected booleans", "True = known, kept from the model")
    return truth, predicted, hidden


def _check_protocol(
    protocol: str, columns: Sequence[Column], owners: Sequence[int] | None
) -> tuple[npt.NDArray[np.intp], Bools]:
    """Return the column whose hidden cells each column is scored on, and which columns are scored by their codes."""
    if protocol not in PROTOCOLS:
        raise TableError(f"protocol = {protocol!r}", f"expected one of {', '.join(PROTOCOLS)}")
    n = len(columns)
    masks = np.arange(n)
    if protocol == "honest":
        return masks, np.zeros(n, bool)
    if owners is None:
        raise TableError("no owners", "'as-published' expects the column of each feature", "[0, 0, 0, 1]")
    owned = np.asarray(owners)
    whole = owned.ndim == 1 and owned.dtype.kind in "iu"
    if not whole or (owned < 0).any() or (owned >= n).any() or (np.diff(owned) < 0).any():
        raise TableError(f"owners = {owners!r}", f"expected positions of {n} columns, in their order")
    features = np.bincount(owned, minlength=n)
    for column, count in zip(columns, features, strict=True):
        if not count and column.kind != "ignore":
            raise TableError("no feature in owners", "expected one or more", "or `ignore` it", column=column.name)
    modelled = np.flatnonzero(features)
    masks[modelled] = owned[: len(modelled)]
    return masks, features > 1


def _check_ranges(
    ranges: Mapping[str, tuple[float, float]], columns: Sequence[Column]
) -> Mapping[str, tuple[float, float]]:
    names = [column.name for column in columns]
    for name, (low, high) in ranges.items():
        if name not in names:
            raise TableError("a range for it", f"expected one of {names[:20]}", column=name)
        if not (np.isfinite([low, high]).all() and low <= high):
            raise TableError(f"the range {(low, high)!r}", "expected finite (minimum, maximum)", column=name)
    return ranges


def _check_finite(column: Column, truth: Floats, predicted: Floats, own: Bools) -> None:
    if np.isinf(truth).any():
        raise TableError("infinite values in truth", "expected finite ones", "make them missing", column=column.name)
    absent = ~np.isfinite(predicted)
    if absent.any():
        hint = "impute every hidden cell" if own[absent].any() else "'as-published' scores observed cells too"
        raise TableError(
            f"{absent.sum()} scored cells that are missing or infinite in the prediction",
            "expected a finite value for each",
            hint,
            column=column.name,
        )
