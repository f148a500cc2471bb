"""Rows of the table: which of them repeat another one, and some of them with their imputed cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.report.cells import Cells
from evenly.report.missingness import rows_with
from evenly.tables import cell_codes

MOST_COLUMNS = 20


class Repeated(NamedTuple):
    """How many rows repeat an earlier one."""

    n_rows: int
    """In all of their cells."""
    n_modelled: int
    """In the cells of the columns that are modelled: an identifier may differ."""


class ShownCell(NamedTuple):
    """A cell to show; None is a missing one."""

    value: Any
    imputed: bool


@dataclass(frozen=True)
class ShownRows:
    """Some rows of the filled table."""

    columns: tuple[str, ...]
    n_columns: int
    """All columns of the table."""
    rows: tuple[tuple[int, tuple[ShownCell, ...]], ...]
    """The number of each row in the table, from 1, and its cells."""


def count_repeated(columns: Sequence[Cells]) -> Repeated:
    """Return how many rows repeat an earlier one.

    Examples
    --------
    >>> from evenly.report.cells import read_cells
    >>> from evenly.tables import infer_schema
    >>> table = np.array([["a1", 1.5], ["b2", 2.5], ["a1", 1.5], ["c3", 2.5]], object)
    >>> count_repeated(read_cells(table, None, None, infer_schema(table, kinds={"x0": "ignore"})))
    Repeated(n_rows=1, n_modelled=2)
    """
    modelled = [one for one in columns if one.column is not None]
    groups = _tell_apart(np.zeros(len(columns[0].missing), np.intp), [one.values for one in modelled])
    n_modelled = _repeats(groups) if modelled else 0
    others = [cell_codes(one.given) for one in columns if one.column is None] if n_modelled or not modelled else []
    return Repeated(_repeats(_tell_apart(groups, others)), n_modelled)


def _repeats(groups: npt.NDArray[np.intp]) -> int:
    return len(groups) - (int(groups.max()) + 1 if len(groups) else 0)


def _tell_apart(groups: npt.NDArray[np.intp], columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.intp]:
    """Divide groups of equal rows further, by one column after the other, until no two rows are equal."""
    for values in columns:
        if _repeats(groups) == 0:
            break
        codes = np.unique(values, return_inverse=True)[1]  # NaN equals NaN here
        groups = np.unique(groups * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return groups


def show_rows(columns: Sequence[Cells], most: int) -> ShownRows | None:
    """Return some rows with imputed cells, spread over the table; of many columns, those with imputed cells first.

    Examples
    --------
    >>> from evenly.report.cells import read_cells
    >>> from evenly.tables import infer_schema
    >>> given, filled = [[1.5, 2.5], [np.nan, 4.5]], [[1.5, 2.5], [2.0, 4.5]]
    >>> show_rows(read_cells(given, filled, None, infer_schema(given)), 5).rows
    ((2, (ShownCell(value=2.0, imputed=True), ShownCell(value=4.5, imputed=False))),)
    """
    with_imputed = np.flatnonzero(rows_with(columns))
    if not len(with_imputed) or most < 1:
        return None
    places = np.unique(np.rint(np.linspace(0, len(with_imputed) - 1, most)).astype(np.intp))
    rows = with_imputed[places]
    first = sorted(range(len(columns)), key=lambda j: -int(columns[j].is_filled[rows].sum()))
    shown = [columns[j] for j in sorted(first[:MOST_COLUMNS])]
    cells = [[_cell(one, i) for i in rows.tolist()] for one in shown]
    return ShownRows(
        tuple(one.name for one in shown),
        len(columns),
        tuple((i + 1, tuple(own)) for i, own in zip(rows.tolist(), zip(*cells, strict=True), strict=True)),
    )


def _cell(cells: Cells, row: int) -> ShownCell:
    if cells.missing[row] and not cells.is_filled[row]:
        return ShownCell(None, False)
    source = cells.full if cells.is_filled[row] else cells.given
    assert source is not None
    value = source.native[row]
    return ShownCell(value.item() if isinstance(value, np.generic) else value, bool(cells.is_filled[row]))
