"""Rows that repeat an earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly.tables.columns import TableColumn

Codes = npt.NDArray[np.uint64]
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
EXACT = 2.0**53
"""Whole numbers beyond it are not all exact in double precision."""


class Duplicates(NamedTuple):
    """How many rows repeat an earlier one, and how many would by chance if columns were independent."""

    n: int
    by_chance: float


def count_duplicates(columns: Sequence[TableColumn]) -> Duplicates:
    """Count the rows that repeat an earlier one in all of some columns; missing cells equal each other.

    Examples
    --------
    >>> count_duplicates([TableColumn("a", np.array([1.5, 2.5, 1.5, np.nan, np.nan]))]).n
    2
    """
    if not columns:
        return Duplicates(0, 0.0)
    n = len(columns[0].native)
    coded = [cell_codes(column.fresh()) for column in columns]
    rows = np.zeros(n, np.uint64)
    for cells in coded:
        rows = _mix(rows * np.uint64(31) + cells)
    if len(np.unique(rows)) == n:
        return Duplicates(0, 0.0)
    firsts = np.unique(rows, return_index=True)[1]
    # How often two cells of a column are equal, among rows that differ: copies must not make copies likely.
    match = float(np.prod([_share_of_equal_pairs(cells[firsts]) for cells in coded]))
    return Duplicates(n - len(firsts), n * min(1.0, 0.5 * (n - 1.0) * match))


def _share_of_equal_pairs(cells: Codes) -> float:
    n, counts = len(cells), np.unique(cells, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1.0)).sum()) / (n * (n - 1.0)) if n > 1 else 1.0


def cell_codes(column: TableColumn) -> Codes:
    """Return numbers that are equal where cells are, up to chance of 1 in 2**64; of any type, hashable or not.

    Examples
    --------
    >>> codes = cell_codes(TableColumn("a", np.array([{"b": 1}, {"b": 2}, {"b": 1}, None], object)))
    >>> (codes == codes[0]).tolist()
    [True, False, True, False]
    """
    if column.storage in ("boolean", "integer", "float"):
        numbers = column.numbers
        if column.storage != "integer" or not (np.abs(numbers) >= EXACT).any():
            plain = np.where(np.isnan(numbers), np.nan, numbers + 0.0)  # one NaN, and one zero
            return _mix(plain.view(np.uint64))
    if column.storage == "text":
        return _mix(column.factorized[0].astype(np.int64).view(np.uint64))
    native = _plain(column.native)
    cells = native.tolist() if isinstance(native, np.ndarray) else native.to_list()
    places: dict[str, int] = {}
    return _mix(np.array([places.setdefault(_text(cell), len(places)) for cell in cells], np.uint64))


def _plain(native: Any) -> Any:
    """Return dates and times of Polars and Arrow as the whole numbers that they are: Python's end in the year 9999."""
    if isinstance(native, np.ndarray) or not native.dtype.is_temporal():
        return native
    if native.implementation.is_polars():
        return native.to_native().to_physical()
    if native.implementation.is_pyarrow():
        own = native.to_native()
        return nw.from_native(own.cast(f"int{own.type.bit_width}"), series_only=True)
    return native


def _text(cell: object) -> str:
    try:
        return repr(cell)
    except Exception:  # any code may run there
        return f"{type(cell)} at {id(cell)}"


def _mix(values: Codes) -> Codes:
    """Mix the bits of numbers (SplitMix64), so that sums of them hardly ever coincide."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, multiplier in zip((30, 27), _MULTIPLIERS, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * multiplier
    return mixed ^ (mixed >> np.uint64(31))
