"""Input and output tables of the imputer: opened and encoded once, then filled and built once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning
from evenly.imputation.cost import show_filling
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble
from evenly.imputation.rules import RowRules, Rules, with_passed_through, with_visible
from evenly.scaling import FittedColumn, LipschitzScaler, check_width, left_out, pass_through, warn_of_changes
from evenly.tables import (
    Change,
    Floats,
    Table,
    TableColumn,
    as_column,
    build_table,
    decode,
    fill_cells,
    open_table,
    select,
)

Flags = npt.NDArray[np.bool_]

LEFT = ". Only the model sees them so: in the table, observed cells stay as they are"


@dataclass(frozen=True)
class OpenedColumn:
    """A column of a table to impute."""

    fitted: FittedColumn
    cells: TableColumn
    values: Floats | None
    """Values or codes; None if the column is ignored."""
    missing: Flags
    """Which cells to fill; those that hold anything, even if it is no value of the column, are left alone."""


@dataclass(frozen=True)
class OpenedTable:
    """A table to impute, with its columns in the order of fit."""

    table: Table
    columns: list[OpenedColumn]
    encoded: EncodedTable
    """The modelled columns."""
    missing: Flags
    """Which cells to predict: rows x modelled columns."""
    changes: list[Change]
    """What the model sees otherwise than it is in the table."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """The rows with a cell to predict."""
        return np.flatnonzero(self.missing.any(1))

    @property
    def rules(self) -> RowRules:
        """What its filled cells obey."""
        return self.encoded.rules

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
        return OpenedTable(table, columns, self.encoded.rows(slice(n)), self.missing[:n], self.changes)

    def with_values(self, filled: Sequence[Floats]) -> list[Floats]:
        """Return the values or codes of every column, with those of `filled` in the cells to fill."""
        return [
            np.where(one.missing, new, np.nan if one.values is None else one.values)
            for one, new in zip(self.columns, filled, strict=True)
        ]


def open_for(estimator: Any, scaler: LipschitzScaler, ensemble: Ensemble, X: Any) -> OpenedTable:
    """Open a table, find the columns of fit in it and encode them; warns of columns not seen in fit.

    The model sees values that its likelihoods have a density for, if it needs that. What is no value is missing to it.
    """
    table = open_table(X, estimator=type(estimator).__name__)
    check_width(estimator, table)
    fitted = [one.fitted for one in ensemble.specs]
    cells, extra = select(table, [one.label for one in fitted], by_position=scaler.container_ == "numpy")
    if extra:
        warnings.warn(left_out(extra), EvenlyWarning, stacklevel=4)
    columns, changes = list[OpenedColumn](), list[Change]()
    seen: list[Floats | None] = []
    for spec, stored in zip(ensemble.specs, cells, strict=True):
        one, missing = spec.fitted, np.zeros(table.n_rows, bool)
        if not one.features:
            columns.append(OpenedColumn(one, stored, None, missing))
            seen.append(None)
            continue
        found = one.new_cells.read(stored.fresh(), strict=estimator.strict, move=spec.needs_density)
        missing = np.isnan(found.cells)
        if found.unread is not None:
            missing &= ~found.unread
        columns.append(OpenedColumn(one, stored, found.cells, missing))
        seen.append(found.values)
        changes += found.changes
        if found.unseen and found.unread is not None:
            what = "with classes not seen in fit, treated as missing"
            changes.append(Change(one.column.name, int(found.unread.sum()), what, found.unseen))
    rules, seen = _follow(estimator, ensemble, columns, seen)
    gone = zip(rules.to_predict([one.missing for one in columns]), ensemble.specs, strict=True)
    to_predict = np.column_stack([np.zeros((table.n_rows, 0), bool), *(one for one, spec in gone if spec.modelled)])
    encoded = replace(ensemble.encode(seen), rules=rules)
    if ensemble.panel is not None:
        key = [one.column.name for one in fitted].index(ensemble.panel.key.name)
        encoded = replace(encoded, unit_inputs=ensemble.panel.inputs(cells[key].fresh(), encoded.values))
    return OpenedTable(table, columns, encoded, to_predict, changes)


def _follow(
    estimator: Any, ensemble: Ensemble, columns: Sequence[OpenedColumn], seen: Sequence[Floats | None]
) -> tuple[RowRules, list[Floats | None]]:
    """Return the rules on the rows of a table, and what the model sees, with what follows from it by the rules."""
    fitted, rounded = [one.fitted for one in columns], estimator.precision == "column"
    book = Rules.read(estimator.rules).bind(fitted, ensemble.specs, rounded=rounded)
    values = with_passed_through(book, [one.values for one in columns], [one.cells for one in columns])
    rules = RowRules.on(book, values, [one.missing for one in columns])
    after = rules.completed([one.values for one in columns])
    return rules, with_visible(fitted, seen, after, [one.missing for one in columns])


@contextmanager
def filling(imputer: Any, opened: OpenedTable, times: int = 1) -> Iterator[None]:
    """Show the progress of filling an opened table, some times, and warn of rows in which rules do not hold."""
    with show_filling(imputer, opened, times):
        yield
    opened.rules.log.warn(stacklevel=4)


def warn_of_cells(changes: Sequence[Change], stacklevel: int) -> None:
    """Warn of cells that the model sees otherwise than they are in the table, once a column."""
    warn_of_changes(changes, LEFT, stacklevel=stacklevel + 1)


def fill(opened: OpenedTable, filled: Sequence[Floats], scaler: LipschitzScaler, wanted: str) -> Any:
    """Return the table with its missing cells filled; other cells and types are untouched.

    Parameters
    ----------
    filled : sequence of arrays
        Values or codes of every column.
    wanted : str
        The container to build, or "default" for that of the table.
    """
    opened.rules.check(filled)
    source = opened.table.container
    container = source if wanted == "default" else wanted
    labels = dict(zip(opened.table.names, opened.table.labels, strict=True)) if source == container else {}
    data = {}
    for one, values in zip(opened.columns, filled, strict=True):
        cells = fill_column(one, values, source, scaler)
        data[labels.get(cells.name, one.fitted.column.name)] = pass_through(cells, source, container)
    table = build_table(data, container, opened.table.native)
    if container == source == "pandas":  # keep the levels and names of its labels
        order = [opened.table.names.index(one.cells.name) for one in opened.columns]
        table.columns = opened.table.native.columns[order]
    return table


def fill_column(one: OpenedColumn, values: Floats, source: str, scaler: LipschitzScaler) -> TableColumn:
    """Return a column with its missing cells filled from values or codes; its other cells and its type stay."""
    gone, fitted = one.missing & ~np.isnan(values), one.fitted
    if not gone.any():
        return one.cells
    stored = fitted.stored if source == scaler.container_ else None
    # In a loaded imputer, classes that JSON cannot hold (intervals, dates) are texts.
    originals = fitted.originals or tuple(one.cells.categories or ())
    classes = decode(fitted.column, np.arange(float(len(fitted.column.classes or ()))), originals).tolist()
    storage = one.cells.storage if one.cells.n_observed else fitted.stored.storage
    new = decode(fitted.column, values[gone], originals, storage)
    return as_column(one.cells.name, fill_cells(one.cells, gone, new, source, stored, classes or None, fitted.stored))
