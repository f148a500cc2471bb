"""Parquet files as one table that need not fit into memory: read piece by piece, in order or shuffled."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import TableError, refuse_duplicates, require
from evenly.io.errors import as_parquet_error
from evenly.io.sources import check_alike, count_rows, find_files, is_many, is_parquet, scan

MOST_IN_MEMORY = 500_000
"""Tables of up to as many rows are read into memory: 400 MB for a hundred columns in double precision."""
SAMPLE = 200_000
"""Rows of the sample that describes a larger table: ranks of quantiles are good to 0.1 %, and a column with at least a
fifth of its cells observed has enough for 2,000 validation cells."""
PIECE = 1 << 14
"""Rows that are decoded at once, however large a row group is."""
BATCH = 1 << 16
"""Rows that are imputed and written at once, as one row group."""
SIDE_BY_SIDE = 8
"""Row groups that are read in turns when shuffled: tables are often sorted, and this separates neighbouring rows."""


class RowGroup(NamedTuple):
    """A row group of one of the files, and the position of its first row in the table."""

    file: int
    number: int
    first: int


class Piece(NamedTuple):
    """Consecutive rows, and the position of the first one in the table."""

    first: int
    frame: Any
    """A Polars frame."""


@dataclass(frozen=True)
class Parquet:
    """One or several Parquet files of the same columns, seen as one table."""

    files: tuple[Path, ...]
    names: tuple[str, ...]
    n_rows: int
    groups: tuple[RowGroup, ...] = field(repr=False)
    metadata: tuple[Any, ...] = field(repr=False)
    """The footer of each file, as pyarrow reads it."""

    def scan(self) -> Any:
        """Return a lazy frame of Polars."""
        return scan(self.files)

    def read(self) -> Any:
        """Return the whole table as a Polars frame."""
        with _readable(self.files[0]):
            return self.scan().collect()

    @property
    def large(self) -> bool:
        """Whether it has too many rows to be read at once."""
        return self.n_rows > MOST_IN_MEMORY

    def choose(self, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Choose the random rows that describe the table, in order."""
        return np.sort(rng.choice(self.n_rows, min(SAMPLE, self.n_rows), replace=False))

    def sample(self, seed: int) -> Any:
        """Return a random sample of rows as a Polars frame, in one pass."""
        chosen, found = self.choose(np.random.default_rng(seed)), []
        for piece in self.pieces(self.names):
            low, high = np.searchsorted(chosen, [piece.first, piece.first + len(piece.frame)])
            found.append(piece.frame[chosen[low:high] - piece.first])
        return require("polars", "tool").concat(found)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        """Go through all rows in order."""
        for group in self.groups:
            yield from self._pieces_of(group, names)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Go through all rows in order, in larger frames."""
        pl = require("polars", "tool")
        some, n = [], 0
        for piece in self.pieces(names):
            some.append(piece.frame)
            n += len(piece.frame)
            if n >= BATCH:
                yield pl.concat(some)
                some, n = [], 0
        if n:
            yield pl.concat(some)

    def shuffled(self, names: Sequence[str], rng: np.random.Generator) -> Iterator[Piece]:
        """Go through all rows: row groups in random order, several at a time, piece by piece in turns."""
        order = rng.permutation(len(self.groups))
        waiting = (self._pieces_of(self.groups[i], names) for i in order)
        turns = deque(islice(waiting, SIDE_BY_SIDE))
        while turns:
            one = turns.popleft()
            piece = next(one, None)
            if piece is None:
                turns.extendleft(islice(waiting, 1))  # the next one takes its turn
            else:
                turns.append(one)
                yield piece

    def _pieces_of(self, group: RowGroup, names: Sequence[str]) -> Iterator[Piece]:
        pl, parquet = require("polars", "tool"), require("pyarrow.parquet", "engines")
        path, at = self.files[group.file], group.first
        with _readable(path), parquet.ParquetFile(path, metadata=self.metadata[group.file]) as file:
            for batch in file.iter_batches(PIECE, [group.number], columns=list(names)):
                if len(batch):
                    yield Piece(at, pl.from_arrow(batch).select(names))
                at += len(batch)


def open_parquet(source: str | Path) -> Parquet:
    """Open a Parquet file, a pattern such as `data/*.parquet`, or all Parquet files in a folder, as one table.

    Only the footers of the files are read, which list columns and row groups.

    Raises
    ------
    TableError
        If there is no such file, one is not Parquet, or they do not have the same columns; the message names the file.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(2):
    ...         pl.DataFrame({"x": [1.0, 2.0], "y": ["a", None]}).write_parquet(f"{folder}/part{k}.parquet")
    ...     table = open_parquet(folder)
    >>> table.names, table.n_rows, [path.name for path in table.files]
    (('x', 'y'), 4, ['part0.parquet', 'part1.parquet'])
    """
    parquet = require("pyarrow.parquet", "engines")
    files = find_files(source)
    groups, metadata, n_rows = [], [], 0
    for number, path in enumerate(files):
        with _readable(path), parquet.ParquetFile(path) as file:
            known = file.metadata
            refuse_duplicates(file.schema_arrow.names)
        metadata.append(known)
        for i in range(known.num_row_groups):
            groups.append(RowGroup(number, i, n_rows))
            n_rows += known.row_group(i).num_rows
    names = tuple(check_alike(files))
    if not n_rows or not names:
        raise TableError(f"{source} with {n_rows} rows and {len(names)} columns", "expected at least 1 of each")
    return Parquet(tuple(files), names, n_rows, tuple(groups), tuple(metadata))


def is_dataset(source: str | Path) -> bool:
    """Whether a path means Parquet files to treat piece by piece: a folder, a pattern, or a file of many rows.

    Examples
    --------
    >>> is_dataset("data/*.parquet"), is_dataset("survey.csv"), is_dataset("-")
    (True, False, False)
    """
    path = Path(source)
    return is_many(path) or (path.is_file() and is_parquet(path) and _count_rows(path) > MOST_IN_MEMORY)


def _count_rows(path: Path) -> int:
    """Return how many rows a Parquet file has; 0 if it is damaged, which raises an error once it is read."""
    pl = require("polars", "tool")
    try:
        return count_rows([path])
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return 0


def _readable(path: Path) -> AbstractContextManager[None]:
    """Turn errors of Polars and Arrow about a file into a `TableError`."""
    return as_parquet_error(path, require("pyarrow", "engines").ArrowException)
