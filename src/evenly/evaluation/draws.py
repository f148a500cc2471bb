"""Imputed cells drawn at random, of as many rows as a histogram needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly.imputation import Imputer
from evenly.tables import Table, TableColumn, encode, open_table

MOST_ROWS = 2_000
MOST_DRAWS = 10
"""A cell is drawn more than once if few are missing."""


@dataclass(frozen=True)
class Draws:
    """Some rows of a table, and tables of these rows with imputed cells drawn at random."""

    rows: npt.NDArray[np.intp]
    tables: tuple[Any, ...]


def draw_cells(imputer: Imputer, table: Any, *, delta: Mapping[Any, Any] | None = None) -> Draws:
    """Draw the missing cells of up to 2,000 rows of a table, up to ten times; rows are spread over the table.

    Best guesses spread less than the cells that they stand for; draws spread as those do.

    Parameters
    ----------
    imputer : Imputer
        A fitted imputer.
    table : dataframe or array
        The table that it fills.
    delta : mapping of column to shift, optional
        As in `Imputer.transform`.

    Examples
    --------
    >>> table = np.array([[1.5, 2.5], [2.0, np.nan], [4.5, 3.5], [np.nan, 5.5]])
    >>> found = draw_cells(Imputer("marginal", random_state=0).fit(table), table)
    >>> found.rows.tolist(), len(found.tables), found.tables[0].shape
    ([1, 3], 10, (2, 2))
    """
    opened = open_table(table, estimator="Imputer")
    missing = np.zeros(opened.n_rows, bool)
    stored = {cells.name: cells for cells in opened.columns}
    for column in imputer.schema_.columns:
        if column.kind != "ignore" and column.name in stored:
            missing |= np.isnan(encode(column, stored[column.name])[0])
    rows = spread(np.flatnonzero(missing), MOST_ROWS)
    if not len(rows):
        return Draws(rows, ())
    n = int(np.clip(MOST_ROWS // len(rows), 1, MOST_DRAWS))
    return Draws(rows, tuple(imputer.sample(take_rows(opened, rows), n, delta=delta)))


def spread(rows: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """Return up to so many of some rows, evenly spread over them.

    Examples
    --------
    >>> spread(np.arange(10), 4).tolist(), spread(np.arange(3), 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if len(rows) <= most:
        return rows
    return rows[np.rint(np.linspace(0, len(rows) - 1, most)).astype(np.intp)]


def take_rows(table: Table, rows: Sequence[int] | npt.NDArray[np.intp]) -> Table:
    """Return some rows of an opened table, in their container.

    Examples
    --------
    >>> take_rows(open_table([[1.0], [2.0], [4.0]]), [0, 2]).columns[0].numbers
    array([1., 4.])
    """
    chosen = np.asarray(rows, np.intp)
    frame = None if table.frame is None else table.frame[chosen]
    if hasattr(table.native, "iloc"):  # its labels need not be texts, those of the frame are
        native = table.native.iloc[chosen]
    else:
        native = None if frame is None else nw.to_native(frame)
    columns = [TableColumn(one.name, one.native[chosen]) for one in table.columns]
    return replace(table, columns=columns, n_rows=len(chosen), native=native, frame=frame)
