"""The cells of a table, of the filled one and of draws, read once for all that the report counts in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.evaluation import Draws
from evenly.tables import Column, Floats, Schema, Table, TableColumn, cells_among, encode, open_table

Flags = npt.NDArray[np.bool_]
NONE: Floats = np.zeros(0)


@dataclass(frozen=True)
class Cells:
    """The cells of one column."""

    name: str
    column: Column | None
    """What the schema says; None if the column is passed through."""
    given: TableColumn
    full: TableColumn | None
    """As stored, with imputed cells, if there is such a table."""
    values: Floats
    """Values or codes, NaN where there is none; empty if passed through."""
    missing: Flags
    filled: Floats
    """Values or codes of the missing cells that were imputed."""
    is_filled: Flags
    """Which cells these are."""
    drawn: Floats
    """Values or codes of imputed cells that were drawn at random."""

    @property
    def observed(self) -> Floats:
        """The known values or codes."""
        return self.values[~np.isnan(self.values)]


def read_cells(table: Any, filled: Any, draws: Draws | Sequence[Any] | None, schema: Schema) -> list[Cells]:
    """Return the cells of each column of a table.

    Parameters
    ----------
    table : dataframe or array
        As given, with its missing cells.
    filled : dataframe or array, optional
        The same rows, with imputed cells; columns that it lacks count as not imputed.
    draws : Draws or sequence of tables, optional
        Imputed cells drawn at random, as `draw_cells` or `Imputer.sample` return them.
    schema : Schema
        The kinds and classes of the columns, and the markers of missing cells.

    Examples
    --------
    >>> from evenly.tables.schema import Column, Schema
    >>> schema = Schema(columns=[Column(name="x0", kind="real")])
    >>> (found,) = read_cells([[0.0], [1.0], [np.nan]], [[0.0], [1.0], [0.5]], [[[0.0], [1.0], [0.7]]], schema)
    >>> found.observed.tolist(), found.filled.tolist(), found.drawn.tolist()
    ([0.0, 1.0], [0.5], [0.7])
    """
    given = _open(table)
    full = None if filled is None else _by_name(filled, given.n_rows, "the filled table")
    if not isinstance(draws, Draws):
        draws = Draws(np.arange(given.n_rows), tuple(draws or ()))
    drawn = [_by_name(one, len(draws.rows), "a drawn table") for one in draws.tables]
    known = {column.name: column for column in schema.columns}
    found = []
    for one in given.columns:
        column = known.get(one.name)
        column = None if column is None or column.kind == "ignore" else column
        other = None if full is None else full.get(one.name)
        found.append(_read(column, one, other, [(draws.rows, each) for each in drawn]))
    return found


def _open(table: Any) -> Table:
    return open_table(table, estimator="make_report")


def _by_name(table: Any, n_rows: int, what: str) -> dict[str, TableColumn]:
    opened = _open(table)
    if opened.n_rows != n_rows:
        raise TableError(f"{opened.n_rows} rows in {what}", f"expected the {n_rows} of the given one")
    return {one.name: one for one in opened.columns}


def _read(column: Column | None, given: TableColumn, full: TableColumn | None, drawn: Sequence[Any]) -> Cells:
    if column is None:
        missing = absent(given)
        return Cells(given.name, None, given, full, NONE, missing, NONE, np.zeros(len(missing), bool), NONE)
    values, unknown = encode(column, given)
    missing = np.isnan(values) & ~cells_among(given, unknown)
    is_filled, new = np.zeros(len(missing), bool), NONE
    if full is not None:
        filled = encode(column, full)[0]
        is_filled = missing & ~np.isnan(filled)
        new = filled[is_filled]
    sampled = [encode(column, one[given.name])[0][missing[rows]] for rows, one in drawn if given.name in one]
    random = np.concatenate([NONE, *sampled])
    return Cells(given.name, column, given, full, values, missing, new, is_filled, random[~np.isnan(random)])


def absent(cells: TableColumn) -> Flags:
    """Return which cells of a column are missing as it is stored: markers of missing cells are not."""
    native = cells.native
    if not isinstance(native, np.ndarray):
        return np.asarray(native.is_null().to_numpy(), bool)
    if native.dtype == object:
        return np.asarray(cells.factorized[0] < 0, bool)
    return np.asarray(native != native, bool)
