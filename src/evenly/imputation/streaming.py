"""Training on a table larger than memory: a sample of its rows to start from, then all of them in shuffled parts.

While a model trains on one pool of rows, the next one is read and encoded in a thread.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evenly.imputation.ensemble import Ensemble
from evenly.io import Parquet, Piece, open_parquet
from evenly.models import Data, Stream
from evenly.scaling import FittedColumn
from evenly.tables import Floats, TableColumn, as_column, open_table

Flags = npt.NDArray[np.bool_]
Item = TypeVar("Item")

POOL = 1 << 17
"""Rows that are shuffled together. With the pool that is being read, twice as many are in memory."""
N_STEPS = 32
"""Batches of a part: enough that starting a compiled part costs nothing, few enough to fill up the last one."""


Rows = npt.NDArray[np.int64]


class Sample(NamedTuple):
    """The rows that a table is described by: their places in it, from low to high, and each column's values or codes.

    Of a table in memory they are all rows; then there is no need for places.
    """

    rows: Rows | None
    values: list[Floats | None]


class Source(NamedTuple):
    """Where the rows of a fit come from: a table in memory, or files that are not read at once."""

    table: Any
    """An opened table, or a lazy frame."""
    n_rows: int
    cells: list[TableColumn]
    """The columns of a table in memory."""
    files: Parquet | None = None

    def sample(self, columns: Sequence[FittedColumn], rng: np.random.Generator) -> Sample:
        """Return the rows to describe the table by."""
        if self.files is not None:
            return draw_sample(self.files, columns, rng)
        pairs = zip(columns, self.cells, strict=True)
        return Sample(None, [one.encode(cells)[0] if one.features else None for one, cells in pairs])


def open_source(table: Any, estimator: str) -> Source:
    """Open a dataframe, an array, or the path of Parquet files, which are read if they have few rows."""
    if isinstance(table, (str, Path)):
        files = open_parquet(table)
        if files.large:
            return Source(files.scan(), files.n_rows, [], files)
        table = files.read()
    opened = open_table(table, estimator=estimator, keep=True)  # the scaler and the imputer both encode it
    return Source(opened, opened.n_rows, opened.columns)


def encode_piece(columns: Sequence[FittedColumn], frame: Any) -> list[Floats | None]:
    """Return the values or codes of some rows; None of columns that are not there."""
    there = set(frame.columns)
    return [
        one.encode(as_column(one.column.name, frame[one.column.name]))[0] if one.column.name in there else None
        for one in columns
    ]


def draw_sample(source: Parquet, columns: Sequence[FittedColumn], rng: np.random.Generator) -> Sample:
    """Draw rows at random, in one pass; and with them witnesses of what is rare.

    Each column's smallest and largest number, one that is not whole, and a cell of each class: then what is seen of
    the sample, its range and its classes, holds for the whole table.
    """
    chosen = source.choose(rng)
    used = [j for j, one in enumerate(columns) if one.features]
    values: list[Floats | None] = [None] * len(columns)
    if not used:
        return Sample(chosen, values)
    witnesses = [_Witnesses(len(columns[j].column.classes or ())) for j in used]
    tables, extra = [], dict[int, Floats]()
    for piece in source.pieces([columns[j].column.name for j in used]):
        table = np.column_stack([own for own in encode_piece(columns, piece.frame) if own is not None])
        low, high = np.searchsorted(chosen, [piece.first, piece.first + len(table)])
        tables.append(table[chosen[low:high] - piece.first])
        for one, own in zip(witnesses, table.T, strict=True):
            extra |= {piece.first + row: table[row].copy() for row in one.find(own)}
    more = np.setdiff1d(np.array(list(extra), np.int64), chosen)
    places = np.concatenate([chosen, more])
    order = np.argsort(places, kind="stable")
    whole = np.concatenate([*tables, *(extra[row][None] for row in more.tolist())])[order]
    for place, j in enumerate(used):
        values[j] = whole[:, place].copy()
    return Sample(places[order], values)


class _Witnesses:
    """Finds the cells of a column that say what the others do not."""

    def __init__(self, n_classes: int) -> None:
        self.seen = np.zeros(n_classes, bool)
        self.low, self.high, self.whole = np.inf, -np.inf, True

    def find(self, values: Floats) -> list[int]:
        """Return the rows of new extremes, new classes, and of the first number that is not whole."""
        rows = np.flatnonzero(~np.isnan(values))
        seen = values[rows]
        if not len(rows):
            return []
        if len(self.seen):
            fresh = np.bincount(seen.astype(np.intp), minlength=len(self.seen)).astype(bool) & ~self.seen
            self.seen |= fresh
            return [int(rows[np.argmax(seen == code)]) for code in np.flatnonzero(fresh)]
        found = []
        low, high = int(seen.argmin()), int(seen.argmax())
        if seen[low] < self.low:
            self.low = float(seen[low])
            found.append(int(rows[low]))
        if seen[high] > self.high:
            self.high = float(seen[high])
            found.append(int(rows[high]))
        broken = seen != np.rint(seen) if self.whole else np.zeros(0, bool)
        if broken.any():
            self.whole = False
            found.append(int(rows[broken.argmax()]))
        return found


@dataclass(frozen=True)
class BatchStream:
    """All rows of a table, epoch after epoch, as parts that a model is trained on; see `evenly.models.Stream`."""

    source: Parquet
    ensemble: Ensemble
    """How the table's columns are modelled."""
    sampled: Rows
    """The places of the rows that validation cells are held out from."""
    batch_size: int
    seed: int
    noise: int
    """The seed of the Gamma trick's noise, which goes by the row's place in the table."""

    @property
    def n_steps(self) -> int:
        """Batches in a part."""
        return max(1, min(N_STEPS, POOL // self.batch_size))

    @contextmanager
    def __call__(self, network: int, held: Flags | None) -> Iterator[Stream]:
        """Give the stream that one network is trained on, without cells of the sample that are held out from it."""
        size = self.batch_size * self.n_steps
        with closing(self._read(network, held)) as parts:
            yield Stream(parts, -(-self.source.n_rows // size), self.n_steps)

    def _read(self, network: int, held: Flags | None) -> Generator[Data, None, None]:
        with closing(ahead(self._pools(network, held))) as pools:
            for pool in pools:
                yield from pool

    def _pools(self, network: int, held: Flags | None) -> Iterator[list[Data]]:
        """Read, encode and shuffle pools of rows, each cut into parts of one size, without end."""
        size = self.batch_size * self.n_steps
        most = max(POOL, size)
        names = [one.name for one in self.ensemble.modelled]
        for epoch in count():
            rng = np.random.default_rng((self.seed, network, epoch))
            pool: list[Data] = []
            first, n = None, 0
            for piece in self.source.shuffled(names, rng):
                pool.append(self._encode(piece, held))
                n += len(piece.frame)
                if n >= most:
                    cut, rest = _cut(_shuffle(pool, rng), size)
                    first = first or cut[0].rows(np.arange(size))  # a copy: the pool may go
                    yield cut
                    pool, n = [rest], len(rest.mask)
            last = _shuffle(pool, rng)
            # The last part is filled up with rows of the first, as the last batch is in memory.
            again = first or last
            lacking = -len(last.mask) % size
            cut, _ = _cut(_join([last, again.rows(np.arange(lacking) % len(again.mask))]), size)
            yield cut

    def _encode(self, piece: Piece, held: Flags | None) -> Data:
        values = encode_piece([one.fitted for one in self.ensemble.specs], piece.frame)
        keys = np.arange(piece.first, piece.first + len(piece.frame))
        table = self.ensemble.encode(values)
        data = table.data(seed=self.noise, with_inputs=self.ensemble.model.spec.reads_inputs, keys=keys)
        if held is not None:
            low, high = np.searchsorted(self.sampled, [piece.first, piece.first + len(piece.frame)])
            data.mask[self.sampled[low:high] - piece.first, : table.layout.n_columns] &= ~held[low:high]
        return data


def _join(pool: Sequence[Data]) -> Data:
    return Data(*(np.concatenate(one) for one in zip(*pool, strict=True)))


def _shuffle(pool: Sequence[Data], rng: np.random.Generator) -> Data:
    whole = _join(pool)
    return whole.rows(rng.permutation(len(whole.mask)))


def _cut(pool: Data, size: int) -> tuple[list[Data], Data]:
    """Cut a pool into parts of one size, and what is left."""
    n = len(pool.mask)
    whole = n // size * size
    return [pool.rows(slice(at, at + size)) for at in range(0, whole, size)], pool.rows(np.arange(whole, n))


def ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Go through items while the next one is made in a thread; what goes wrong there is raised here.

    Examples
    --------
    >>> list(ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    nothing = object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, nothing)
        while (item := coming.result()) is not nothing:
            coming = thread.submit(next, items, nothing)
            yield item  # type: ignore[misc]  # not `nothing`
            del item
