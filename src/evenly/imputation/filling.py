"""Input and output tables of the imputer: opened and encoded once, then filled and built once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble
from evenly.scaling import FittedColumn, LipschitzScaler, check_width, left_out, pass_through
from evenly.tables import (
    Floats,
    Table,
    TableColumn,
    as_column,
    build_table,
    cells_among,
    decode,
    fill_cells,
    open_table,
    select,
)

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class OpenedColumn:
    """A column of a table to impute."""

    fitted: FittedColumn
    cells: TableColumn
    values: Floats | None
    """Values or codes; None if the column is ignored."""
    missing: Flags
    """Which cells to fill; cells with a class that was not seen in fit are left alone."""


@dataclass(frozen=True)
class OpenedTable:
    """A table to impute, with its columns in the order of fit."""

    table: Table
    columns: list[OpenedColumn]
    encoded: EncodedTable
    """The modelled columns."""
    missing: Flags
    """Which cells to predict: rows x modelled columns."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """The rows with a cell to predict."""
        return np.flatnonzero(self.missing.any(1))

    def head(self, n: int) -> OpenedTable:
        """Return the first rows."""
        columns = [
            replace(
                one,
                cells=as_column(one.cells.name, one.cells.native[:n]),
                values=None if one.values is None else one.values[:n],
                missing=one.missing[:n],
            )
            for one in self.columns
        ]
        table = replace(self.table, n_rows=n, native=self.table.native[:n])
        return OpenedTable(table, columns, self.encoded.rows(slice(n)), self.missing[:n])

    def with_values(self, filled: Sequence[Floats]) -> list[Floats]:
        """Return the values or codes of every column, with those of `filled` in the cells to fill."""
        return [
            np.where(one.missing, new, np.nan if one.values is None else one.values)
            for one, new in zip(self.columns, filled, strict=True)
        ]


def open_for(estimator: Any, scaler: LipschitzScaler, ensemble: Ensemble, X: Any) -> OpenedTable:
    """Open a table, find the columns of fit in it and encode them; warns of columns and classes not seen in fit."""
    table = open_table(X, estimator=type(estimator).__name__)
    check_width(estimator, table)
    fitted = [one.fitted for one in ensemble.specs]
    cells, extra = select(table, [one.label for one in fitted], by_position=scaler.container_ == "numpy")
    messages = [left_out(extra)] if extra else []
    columns = []
    for one, stored in zip(fitted, cells, strict=True):
        values, unknown = one.encode(stored) if one.features else (None, [])
        missing = np.zeros(table.n_rows, bool)
        if values is not None:
            missing = np.isnan(values) & ~cells_among(stored, unknown)
        columns.append(OpenedColumn(one, stored, values, missing))
        if unknown:
            messages.append(one.unseen(unknown, "are left as they are, and the model treats them as missing"))
    for message in messages:
        warnings.warn(message, EvenlyWarning, stacklevel=4)
    encoded = ensemble.encode([one.values for one in columns])
    missing_of = [one.missing for one, spec in zip(columns, ensemble.specs, strict=True) if spec.modelled]
    return OpenedTable(table, columns, encoded, np.column_stack([np.zeros((table.n_rows, 0), bool), *missing_of]))


def fill(opened: OpenedTable, filled: Sequence[Floats], scaler: LipschitzScaler, wanted: str) -> Any:
    """Return the table with its missing cells filled; other cells and types are untouched.

    Parameters
    ----------
    filled : sequence of arrays
        Values or codes of every column.
    wanted : str
        The container to build, or "default" for that of the table.
    """
    source = opened.table.container
    container = source if wanted == "default" else wanted
    labels = dict(zip(opened.table.names, opened.table.labels, strict=True)) if source == container else {}
    data = {}
    for one, values in zip(opened.columns, filled, strict=True):
        cells = _fill_column(one, values, source, scaler)
        data[labels.get(cells.name, one.fitted.column.name)] = pass_through(cells, source, container)
    table = build_table(data, container, opened.table.native)
    if container == source == "pandas":  # keep the levels and names of its labels
        order = [opened.table.names.index(one.cells.name) for one in opened.columns]
        table.columns = opened.table.native.columns[order]
    return table


def _fill_column(one: OpenedColumn, values: Floats, source: str, scaler: LipschitzScaler) -> TableColumn:
    gone, fitted = one.missing & ~np.isnan(values), one.fitted
    if not gone.any():
        return one.cells
    stored = fitted.stored if source == scaler.container_ else None
    # In a loaded imputer, classes that JSON cannot hold (intervals, dates) are texts.
    originals = fitted.originals or tuple(one.cells.categories or ())
    classes = decode(fitted.column, np.arange(float(len(fitted.column.classes or ()))), originals).tolist()
    new = decode(fitted.column, values[gone], originals)
    return as_column(one.cells.name, fill_cells(one.cells, gone, new, source, stored, classes or None))
