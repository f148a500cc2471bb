"""How well hidden cells were imputed: the error of each column, and log-likelihoods in the table's own units.

Arrays hold encoded cells, rows x columns: the value, or the code of the class; NaN where a cell is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, to_numpy
from evenly.scaling import prepare
from evenly.tables import (
    Column,
    Floats,
    Schema,
    Table,
    TableColumn,
    build_table,
    check_settings,
    column_likelihood,
    complete,
    encode,
    infer_column,
    look,
    open_table,
    pick,
    select,
)

Bools = npt.NDArray[np.bool_]

PROTOCOLS = ("honest", "as-published")
"""How errors are taken; `as-published` is for comparing with the paper's tables only, flaws and all."""

GROUPS = {"discrete": ("count", "binary", "categorical", "ordinal"), "continuous": ("real", "positive")}
"""The kinds that the paper's tables average over; `all` is both."""

CLEARLY = 1.0
"""Standard errors by which a mean loss must be smaller to be clearly so."""

ERROR_COLUMNS = ("column", "kind", "scored", "error", "baseline", "normalized")


# --- errors -------------------------------------------------------------------------------------------------------


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
        Honest: every column on its own hidden cells. As-published: two flaws of the paper's evaluation. A column that
        is split into features is scored by NRMSE of its codes, and column i is scored on the hidden cells of the
        column that owns *feature* i, which the model mostly saw: `predicted` must then have observed cells too.
        Where no column is split, both protocols are the same.
    owners : sequence of int, optional
        The column of each feature, by position; needed by `as-published`, unused otherwise. Ignored columns may be
        left out: then columns and features are both counted without them.
    ranges : mapping of column to (minimum, maximum), optional
        Instead of those over the known cells of `truth`, hidden or not.

    Returns
    -------
    array
        NaN where there is nothing to score: no scored cell, or an ignored column. A column whose range is 0 has no unit
        but its value: the error is then relative to its size, or the plain one if it is 0.

    Examples
    --------
    >>> columns = [Column(name="age", kind="real"), Column(name="color", kind="categorical", classes=["blue", "red"])]
    >>> truth = np.array([[20.0, 0.0], [30.0, 1.0], [60.0, 1.0], [np.nan, 0.0]])
    >>> predicted = np.array([[20.0, 0.0], [34.0, 0.0], [60.0, 1.0], [50.0, 1.0]])
    >>> hidden = np.array([[False, False], [True, True], [False, True], [False, False]])
    >>> column_errors(columns, truth, predicted, hidden)  # 4 of a range of 40; 1 wrong of 2
    array([0.1, 0.5])

    Nothing hidden, nothing to score:

    >>> column_errors(columns, truth, predicted, np.zeros((4, 2), bool))
    array([nan, nan])
    """
    truth, predicted, hidden = _check_arrays(columns, truth, predicted, hidden)
    masks, coded = _check_protocol(protocol, columns, owners)
    ranges = ranges or {}
    for name, (low, high) in ranges.items():
        if name not in {column.name for column in columns}:
            raise TableError("a range for it", f"expected one of {[c.name for c in columns][:20]}", column=name)
        if not (np.isfinite([low, high]).all() and low <= high):
            raise TableError(f"the range {(low, high)!r}", "expected finite (minimum, maximum)", column=name)
    errors = np.full(len(columns), np.nan)
    for j, column in enumerate(columns):
        known = ~np.isnan(truth[:, j])
        scored = known & hidden[:, masks[j]]
        if column.kind == "ignore" or not scored.any():
            continue
        _check_finite(column, truth[known, j], predicted[scored, j], hidden[scored, j])
        if column.has_classes and not coded[j]:
            errors[j] = np.mean(truth[scored, j] != predicted[scored, j])
            continue
        low, high = ranges.get(column.name, (float(truth[known, j].min()), float(truth[known, j].max())))
        unit = (high - low) or abs(low) or 1.0
        errors[j] = _root_mean_square(predicted[scored, j] - truth[scored, j]) / unit
    return errors


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
    columns: Sequence[Column],
    truth: Floats,
    predicted: Floats,
    hidden: Bools,
    *,
    protocol: str = "honest",
    owners: Sequence[int] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Floats:
    """Return each column's error divided by that of `mean_or_mode`, both by the same protocol; below 1 is better.

    Parameters are those of `column_errors`. NaN where there is nothing to score, or no visible cell to take a mean or
    a mode from. Where the mean or the mode makes no error at all: 1 if the prediction makes none either, else
    infinity.

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
    errors = column_errors(columns, truth, predicted, hidden, protocol=protocol, owners=owners, ranges=ranges)
    return ratio_to_baseline(
        errors, baseline_errors(columns, truth, hidden, protocol=protocol, owners=owners, ranges=ranges)
    )


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
    """Whether losses are smaller than others on the same cells, by more than some standard errors of the mean.

    Examples
    --------
    >>> losses = np.array([1.0, 2.0, 1.0, 2.0])
    >>> clearly_better(losses, losses + [1.0, 2.0, 1.0, 2.0]), clearly_better(losses, losses + [9.0, -8.0, 9.0, -8.0])
    (True, False)
    """
    gain = np.asarray(others, np.float64) - np.asarray(losses, np.float64)
    return bool(gain.mean() > by * gain.std() / np.sqrt(len(gain)))


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


# --- log-likelihood -----------------------------------------------------------------------------------------------


def log_likelihood(
    column: Column, usual: Mapping[str, Array], values: Floats, family: Likelihood | None = None
) -> Floats:
    """Return the log-likelihood of encoded cells in the table's own units, so that methods can be compared.

    Parameters
    ----------
    column : Column
        The column; its likelihood counts, whatever trick it was modelled under, as do its shift (which changes no
        unit: its Jacobian is 1) and its clip.
    usual : mapping of parameter to array
        As `LipschitzScaler.unscale` returns them: `mean` and `std`, `rate`, `probability`, `probabilities` (classes
        along the last axis), ... They broadcast with the values.
    values : array
        Values, or codes of classes.
    family : Likelihood, optional
        The column's likelihood if it is one of your own.

    Returns
    -------
    array
        NaN where a cell is; minus infinity where the likelihood has no density. Probabilities are cut to
        [1e-6, 1 - 1e-6] (those of classes then divided by their sum), and Poisson rates below at 1e-6: a trick may
        give 0.

    Examples
    --------
    >>> height = Column(name="height", kind="real")
    >>> log_likelihood(height, {"mean": 170.0, "std": 8.0}, np.array([170.0, np.nan])).round(3)
    array([-2.998,    nan])
    >>> color = Column(name="color", kind="categorical", classes=["blue", "red"])
    >>> log_likelihood(color, {"probabilities": np.array([0.0, 1.0])}, np.array([0.0])).round(2)  # not -infinity
    array([-13.82])
    """
    if column.kind == "ignore":
        raise TableError("an ignored column", "expected one with a likelihood", "leave it out", column=column.name)
    family = column_likelihood(column) if family is None else family
    names = ("probabilities",) if family.one_per_class else family.usual_names
    absent = [name for name in names if name not in usual]
    if absent:
        raise TableError(
            f"the parameters {sorted(usual)}", f"{family.name} expects {', '.join(names)}", column=column.name
        )
    given = [to_numpy(usual[name]) for name in names]
    parameters = given[0] if family.one_per_class else np.stack(np.broadcast_arrays(*given), axis=-1)
    if parameters.shape[-1:] != (len(family.usual_names),):
        got = f"probabilities of shape {parameters.shape}"
        raise TableError(got, f"expected {len(family.usual_names)} along the last axis", column=column.name)
    if family.usual_limits:
        parameters = np.clip(parameters, *np.transpose(family.usual_limits))
    cells = prepare(column, np.asarray(values, np.float64))
    scale = np.float64(1.0)
    if family.needs_unit and cells.size:
        # In the column's own unit, a power of 2: the natural parameters of 1e300 or 1e-300 are no numbers.
        size = np.abs(cells, where=np.isfinite(cells), out=np.zeros_like(cells)).max()
        scale = np.exp2(-np.clip(np.floor(np.log2(size)), -1000.0, 1000.0)) if size > 0.0 else scale
        parameters, cells = family.unscale_usual(parameters, 1.0 / scale), family.scale_data(cells, scale)
    return np.asarray(family.log_density(cells, family.to_natural(parameters)) + np.log(scale), np.float64)


# --- tables -------------------------------------------------------------------------------------------------------


def imputation_error(
    truth: Any,
    imputed: Any,
    hidden: Any,
    *,
    schema: Schema | str | Path | None = None,
    kinds: Mapping[Any, str] | None = None,
) -> Any:
    """Score an imputed table on its hidden cells, column by column, by the honest protocol.

    Parameters
    ----------
    truth, imputed : dataframe or array
        The table as it was and as it was imputed. Columns of a dataframe are found by name, in any order; columns that
        `truth` does not have are not looked at.
    hidden : boolean array or table, rows x columns
        True where a known cell was kept from the imputation. In the order of the columns of `truth`; a table with the
        same names may have another one. Cells that are missing in `truth` are not scored.
    schema : Schema, path or None
        Columns that it leaves out are inferred from `truth`.
    kinds : mapping of column to kind, optional
        Comes before the schema and what is inferred: `{"age": "count", "id": "ignore"}`.

    Returns
    -------
    table
        One row a column: `column`, `kind`, `scored` (number of cells), `error` (error rate of classes, NRMSE of
        numbers), `baseline` (the error of the mean or the most frequent class of the visible cells) and `normalized`,
        error / baseline: below 1 is better than that. A Polars table for one, else a pandas table if it is
        installed, else a record array. Missing where nothing was scored; see `column_errors` and
        `normalized_errors`. A class that `truth` or the schema does not know is a wrong one, no error.

    Examples
    --------
    >>> truth = np.array([[1.5, 0.0], [2.5, 0.0], [3.5, 1.0], [5.5, 1.0]])
    >>> hidden = np.array([[False, False], [False, False], [False, True], [True, False]])
    >>> imputed = np.where(hidden, [3.5, 1.0], truth)
    >>> imputation_error(truth, imputed, hidden)
      column      kind  scored  error  baseline  normalized
    0     x0  positive       1    0.5      0.75    0.666667
    1     x1    binary       1    0.0      1.00    0.000000
    """
    opened, other = open_table(truth, estimator="truth"), open_table(imputed, estimator="imputed")
    both = opened.container == other.container == "pandas" and not truth.index.equals(imputed.index)
    if both and truth.index.sort_values().equals(imputed.index.sort_values()):
        expected, hint = "expected the rows in the order of truth", "use imputed.loc[truth.index]"
        raise TableError("an imputed table with the same index in another order", expected, hint)
    cells = _match(opened, other)
    mask = _open_hidden(opened, hidden)
    columns, known, predicted = [], np.full(mask.shape, np.nan), np.full(mask.shape, np.nan)
    for j, column in enumerate(_settle_schema(opened, schema, kinds)):
        if column.kind != "ignore":
            column, known[:, j] = _encode_all(column, opened.columns[j])
            column, predicted[:, j] = _encode_all(column, cells[j])
        columns.append(column)
    errors = column_errors(columns, known, predicted, mask)
    baseline = baseline_errors(columns, known, mask)
    scored = (mask & ~np.isnan(known)).sum(axis=0)
    names, chosen = ([getattr(column, field) for column in columns] for field in ("name", "kind"))
    rows = (np.array(names), np.array(chosen), scored, errors, baseline, ratio_to_baseline(errors, baseline))
    data = dict(zip(ERROR_COLUMNS, rows, strict=True))
    for container in ("polars",) if opened.container == "polars" else ("pandas", "polars"):
        with suppress(ModuleNotFoundError):
            return build_table(data, container)
    return np.rec.fromarrays(list(data.values()), names=",".join(data))  # type: ignore[call-overload]  # stubs


def _match(truth: Table, other: Table) -> list[TableColumn]:
    """Find the columns of the truth in the imputed table: by position if one of them is an array, else by name."""
    if other.n_rows != truth.n_rows:
        raise TableError(f"{other.n_rows} imputed rows", f"expected as many as in truth, {truth.n_rows}")
    n, by_position = len(truth.columns), truth.container == "numpy"
    if len(other.columns) != n and (by_position or other.container == "numpy"):
        raise TableError(f"{len(other.columns)} imputed columns", f"an array is matched by position: expected {n}")
    known = {*other.labels, *other.names}
    for label in truth.labels if not by_position and other.container != "numpy" else ():
        if label not in known:
            raise TableError(
                f"no such column among {other.names[:20]}",
                "expected every column of truth in the imputed table",
                "leave it out of both",
                column=label,
            )
    return select(other, truth.labels, by_position=by_position)[0]


def _open_hidden(truth: Table, hidden: Any) -> Bools:
    opened = open_table(hidden, estimator="hidden")
    shape, expected = (opened.n_rows, len(opened.columns)), (truth.n_rows, len(truth.columns))
    if shape != expected:
        raise TableError(f"hidden of shape {shape}", f"expected that of truth, {expected}")
    columns = opened.columns
    if opened.container != "numpy" and set(opened.names) == set(truth.names):
        columns = select(opened, truth.names)[0]
    for column, name in zip(columns, truth.names, strict=True):
        if column.storage != "boolean" or column.n_observed < truth.n_rows:
            got = f"hidden cells of type {column.dtype}" + (" with missing ones" if column.storage == "boolean" else "")
            raise TableError(got, "expected booleans", "True = known, kept from the imputation", column=name)
    return np.column_stack([column.numbers.astype(bool) for column in columns])


def _settle_schema(truth: Table, schema: Any, kinds: Mapping[Any, str] | None) -> list[Column]:
    """Return the columns: `kinds` first, then the schema, then what the truth looks like."""
    if not (schema is None or isinstance(schema, (str, Path, Schema))):
        raise TableError(f"schema = {schema!r}", "expected a Schema or the path of one")
    given = Schema.load(schema) if isinstance(schema, (str, Path)) else schema
    known = {column.name: column for column in given.columns} if given else {}
    check_settings(truth, kinds=kinds, schema=known)
    columns = []
    for label, cells in zip(truth.labels, truth.columns, strict=True):
        kind, declared = pick(kinds, label, cells.name), known.get(cells.name)
        if declared is not None and kind is None:
            columns.append(complete(declared, cells))
        else:
            facts = look(cells, () if declared is None else declared.missing)
            columns.append(infer_column(cells, facts, kind=kind))
    return columns


def _encode_all(column: Column, cells: TableColumn) -> tuple[Column, Floats]:
    """Encode cells; classes that the column does not know get codes after its own: they are not missing."""
    values, unknown = encode(column, cells)
    if not unknown:
        return column, values
    column = column.model_copy(update={"classes": [*(column.classes or ()), *unknown]})
    return column, encode(column, cells)[0]
