"""The error of an imputed table on its hidden cells, column by column: tables in, a table out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.metrics.errors import Bools, baseline_errors, column_errors, ratio_to_baseline
from evenly.tables import (
    Column,
    Floats,
    Schema,
    Table,
    TableColumn,
    build_table,
    check_settings,
    complete,
    encode,
    infer_column,
    open_table,
    pick,
    profile_column,
    select,
)


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
        `truth` does not have are ignored.
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
        `normalized_errors`. A class that neither `truth` nor the schema knows counts as wrong.

    Examples
    --------
    >>> truth = np.array([[1.5, 0.0], [2.5, 0.0], [3.5, 1.0], [5.5, 1.0]])
    >>> hidden = np.array([[False, False], [False, False], [False, True], [True, False]])
    >>> imputed = np.where(hidden, [3.5, 1.0], truth)
    >>> errors = imputation_error(truth, imputed, hidden)
    >>> {name: [float(one) for one in errors[name]] for name in ("error", "baseline")}
    {'error': [0.5, 0.0], 'baseline': [0.75, 1.0]}
    """
    opened, other = open_table(truth, estimator="truth"), open_table(imputed, estimator="imputed")
    if opened.container == other.container == "pandas":
        _check_order(truth.index, imputed.index)
    cells, mask = _match(opened, other), _open_hidden(opened, hidden)
    columns, known, predicted = _encode_both(_decide_columns(opened, schema, kinds), opened.columns, cells)
    errors, baseline = column_errors(columns, known, predicted, mask), baseline_errors(columns, known, mask)
    data = {
        "column": np.array([column.name for column in columns]),
        "kind": np.array([column.kind for column in columns]),
        "scored": (mask & ~np.isnan(known)).sum(axis=0),
        "error": errors,
        "baseline": baseline,
        "normalized": ratio_to_baseline(errors, baseline),
    }
    for container in ("polars",) if opened.container == "polars" else ("pandas", "polars"):
        with suppress(ModuleNotFoundError):
            return build_table(data, container)
    return np.rec.fromarrays(list(data.values()), names=",".join(data))  # type: ignore[call-overload]  # stubs


def _check_order(truth: Any, imputed: Any) -> None:
    """Refuse the same index in another order: rows are compared by position."""
    if not truth.equals(imputed) and truth.sort_values().equals(imputed.sort_values()):
        expected, hint = "expected the rows in the order of truth", "use imputed.loc[truth.index]"
        raise TableError("an imputed table with the same index in another order", expected, hint)


def _encode_both(
    columns: Sequence[Column], truth: Sequence[TableColumn], imputed: Sequence[TableColumn]
) -> tuple[list[Column], Floats, Floats]:
    """Encode the cells of both tables alike; ignored columns stay empty."""
    found: list[Column] = []
    shape = (len(truth[0].native), len(columns))
    known, predicted = np.full(shape, np.nan), np.full(shape, np.nan)
    for j, column in enumerate(columns):
        if column.kind != "ignore":
            column, known[:, j] = _encode_all(column, truth[j])
            column, predicted[:, j] = _encode_all(column, imputed[j])
        found.append(column)
    return found, known, predicted


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


def _decide_columns(truth: Table, schema: Any, kinds: Mapping[Any, str] | None) -> list[Column]:
    """Return the columns: `kinds` first, then the schema, then what is inferred from the truth."""
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
            profile = profile_column(cells, () if declared is None else declared.missing)
            columns.append(infer_column(cells, profile, kind=kind))
    return columns


def _encode_all(column: Column, cells: TableColumn) -> tuple[Column, Floats]:
    """Encode cells; classes that the column does not know get codes after its own: they are not missing."""
    values, unknown = encode(column, cells)
    if not unknown:
        return column, values
    column = column.model_copy(update={"classes": [*(column.classes or ()), *unknown]})
    return column, encode(column, cells)[0]
