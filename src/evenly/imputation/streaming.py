"""Training on tables larger than memory: a sample of rows to initialize from, then all rows in shuffled parts.

While a model trains on one pool of rows, the next one is read and encoded in a thread.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evenly.engines import open_lazy
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble
from evenly.imputation.lazy_filling import sample_table
from evenly.imputation.level_means import fit_means
from evenly.imputation.rules import NO_RULES, RuleBook, complete
from evenly.io import Parquet, Piece, open_parquet
from evenly.models import Data, Stream
from evenly.scaling import FittedColumn
from evenly.tables import Floats, TableColumn, as_column, open_table

Flags = npt.NDArray[np.bool_]
Item = TypeVar("Item")

POOL = 1 << 17
"""Rows that are shuffled together. Twice as many are in memory: this pool, and the next one that is being read."""
N_STEPS = 32
"""Batches per part: enough to make the overhead of a part negligible, few enough that padding the last is cheap."""


Rows = npt.NDArray[np.int64]


class Sample(NamedTuple):
    """A sample of a table's rows: their ascending row numbers, and each column's values or codes.

    For a table in memory it is the whole table, and row numbers are None.
    """

    rows: Rows | None
    values: list[Floats | None]


class Source(NamedTuple):
    """The rows to fit on: a table in memory, or files that are streamed."""

    table: Any
    """An opened table, or a lazy frame."""
    n_rows: int
    cells: list[TableColumn]
    """The columns of a table in memory."""
    files: Parquet | None = None

    def sample(self, columns: Sequence[FittedColumn], rng: np.random.Generator) -> Sample:
        """Return the rows from which column specs are made."""
        if self.files is not None:
            return draw_sample(self.files, columns, rng)
        pairs = zip(columns, self.cells, strict=True)
        return Sample(None, [one.encode(cells)[0] if one.features else None for one, cells in pairs])


def open_source(table: Any, estimator: str, seed: int) -> Source:
    """Open a dataframe, an array, Parquet files by path, or a frame of an engine.

    Small files are read into memory, and so are frames of engines; of a large one, a sample.
    """
    if isinstance(table, (str, Path)):
        files = open_parquet(table)
        if files.large:
            return Source(files.scan(), files.n_rows, [], files)
        table = files.read()
    elif (lazy := open_lazy(table)) is not None:
        table = sample_table(lazy, seed)
    opened = open_table(table, estimator=estimator, keep=True)  # both the scaler and the imputer encode it
    return Source(opened, opened.n_rows, opened.columns)


def encode_piece(columns: Sequence[FittedColumn], frame: Any) -> list[Floats | None]:
    """Return each column's values or codes in a frame; None for columns that it does not have."""
    available = set(frame.columns)
    return [
        one.encode(as_column(one.column.name, frame[one.column.name]))[0] if one.column.name in available else None
        for one in columns
    ]


def draw_sample(source: Parquet, columns: Sequence[FittedColumn], rng: np.random.Generator) -> Sample:
    """Draw a random sample of rows in one pass, with extra rows for rare values.

    Extra rows have each column's smallest and largest number, one that is not whole, and a cell of each class, so that
    the range and the classes of the sample are those of the whole table.
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
    numbers = np.concatenate([chosen, more])
    order = np.argsort(numbers, kind="stable")
    whole = np.concatenate([*tables, *(extra[row][None] for row in more.tolist())])[order]
    for i, j in enumerate(used):
        values[j] = whole[:, i].copy()
    return Sample(numbers[order], values)


class _Witnesses:
    """Finds the cells of a column that a sample must contain: extremes, fractions, and all classes."""

    def __init__(self, n_classes: int) -> None:
        self.seen = np.zeros(n_classes, bool)
        self.low, self.high, self.whole = np.inf, -np.inf, True

    def find(self, values: Floats) -> list[int]:
        """Return the rows with new extremes, new classes, or the first number that is not whole."""
        rows = np.flatnonzero(~np.isnan(values))
        seen = values[rows]
        if not len(rows):
            return []
        if len(self.seen):
            codes, first = np.unique(seen.astype(np.intp), return_index=True)
            fresh = ~self.seen[codes]
            self.seen[codes] = True
            return [int(row) for row in rows[first[fresh]]]
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
    """Streams all rows of a table, epoch after epoch, in parts to train on; see `evenly.models.Stream`."""

    source: Parquet
    ensemble: Ensemble
    """Encodes the rows."""
    sampled: Rows
    """The row numbers of the sample, from which validation cells are held out."""
    batch_size: int
    seed: int
    noise: int
    """The seed of the Gamma trick's noise, which also depends on the row number."""
    sample: EncodedTable | None = None
    """The encoded sample, where classes of columns with many get their means from, if there are such columns."""
    book: RuleBook = NO_RULES.book
    """What its rows obey, where columns that models do not see are left out."""

    @property
    def n_steps(self) -> int:
        """Batches per part."""
        return max(1, min(N_STEPS, POOL // self.batch_size))

    @contextmanager
    def __call__(self, network: int, held: Flags | None) -> Iterator[Stream]:
        """Open the stream that one network is trained on, with the held-out cells of the sample masked."""
        size = self.batch_size * self.n_steps
        reader = self
        if self.sample is not None and self.sample.levels is not None:
            shown = self.sample.without(held)
            # Of all rows, few are in the sample: these see means that their own cells are part of.
            levels = fit_means(shown.specs, shown.values)
            reader = replace(self, ensemble=replace(self.ensemble, levels=levels))
        with closing(reader._read(network, held)) as parts:
            yield Stream(parts, -(-self.source.n_rows // size), self.n_steps)

    def _read(self, network: int, held: Flags | None) -> Generator[Data, None, None]:
        with closing(ahead(self._pools(network, held))) as pools:
            for pool in pools:
                yield from pool

    def _pools(self, network: int, held: Flags | None) -> Iterator[list[Data]]:
        """Read, encode and shuffle pools of rows, split into parts of one size; endless."""
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
                    first = first or cut[0].rows(np.arange(size))  # a copy, so that the pool can be freed
                    yield cut
                    pool, n = [rest], len(rest.mask)
            last = _shuffle(pool, rng)
            # The last part is filled up with rows of the first, like the last batch of a table in memory.
            again = first or last
            lacking = -len(last.mask) % size
            cut, _ = _cut(_join([last, again.rows(np.arange(lacking) % len(again.mask))]), size)
            yield cut

    def _encode(self, piece: Piece, held: Flags | None) -> Data:
        columns = [one.fitted for one in self.ensemble.specs]
        values = complete(self.book, columns, encode_piece(columns, piece.frame))
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
    """Split a pool into parts of one size, and the remaining rows."""
    n = len(pool.mask)
    whole = n // size * size
    return [pool.rows(slice(at, at + size)) for at in range(0, whole, size)], pool.rows(np.arange(whole, n))


def ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield items while the next one is computed in a thread; its exceptions are raised here.

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
