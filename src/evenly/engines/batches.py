"""Functions of rows, and Arrow's batches of rows: how an engine lets a function see a table of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenly._support import require

ROWS_AT_ONCE = 1 << 16
"""Rows, about, that a function gets at once: few enough for memory, and enough to be worth a call."""


class RowFunction(Protocol):
    """A function of rows that workers can receive: it can be pickled."""

    @property
    def key(self) -> str:
        """What names it: equal for equal functions only."""

    def __call__(self, rows: Any) -> Any:
        """Take a table in memory, and return one with as many rows in the same order."""


def map_record_batches(batches: Iterable[Any], function: RowFunction) -> Iterator[Any]:
    """Apply a function to Arrow's record batches, of which small ones are put together.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})]
    >>> [batch.num_rows for batch in map_record_batches(batches, lambda table: table)]
    [3]
    """
    for table in gather(batches):
        yield from function(table).combine_chunks().to_batches(max_chunksize=ROWS_AT_ONCE)


def gather(batches: Iterable[Any]) -> Iterator[Any]:
    """Put record batches together to tables of some size."""
    arrow = require("pyarrow", "engines")
    some, n = list[Any](), 0
    for batch in batches:
        some.append(batch)
        n += batch.num_rows
        if n >= ROWS_AT_ONCE:
            yield arrow.Table.from_batches(some)
            some, n = [], 0
    if n:
        yield arrow.Table.from_batches(some)


def sample_positions(n_rows: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Choose the rows of a random share of a table, in order."""
    n = max(1, round(share * n_rows))
    return np.sort(np.random.default_rng(seed).choice(n_rows, n, replace=False))


def take_rows(batches: Iterable[Any], positions: npt.NDArray[np.int64]) -> Any:
    """Return the rows at ascending positions of a table that comes in record batches, as an Arrow table."""
    arrow = require("pyarrow", "engines")
    taken, first = [], 0
    for batch in batches:
        low, high = np.searchsorted(positions, [first, first + batch.num_rows])
        if high > low:
            taken.append(batch.take(arrow.array(positions[low:high] - first)))
        first += batch.num_rows
    return arrow.Table.from_batches(taken)
