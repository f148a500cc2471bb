"""DuckDB: relations, in a memory of limited size."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
from narwhals.dependencies import is_duckdb_relation

from evenly._support import require
from evenly.engines.base import COMPRESSION, FileEngine
from evenly.engines.batches import ROWS_AT_ONCE, RowFunction, map_record_batches, sample_positions, take_rows

MEMORY = "512MB"
"""What DuckDB may hold, beside what it reads and writes: more goes to a temporary folder."""
REWRITE = "distinct_aggregate_rewrite"
"""An optimizer of DuckDB that holds a table in memory to count the distinct cells of a column beside its mean."""


class DuckDB(FileEngine):
    """Relations of DuckDB."""

    name = "duckdb"
    compares_classes = True  # of a list of classes DuckDB makes a join, which loses the order of rows
    keeps_order = True
    maps_rows = True

    @classmethod
    def recognizes(cls, native: Any) -> bool:
        """Say whether an object is a `duckdb.DuckDBPyRelation`."""
        return is_duckdb_relation(native)

    def count_cells(self, frame: nw.LazyFrame[Any], limits: Mapping[str, int]) -> dict[str, Any]:
        """Count cells by a histogram of each column: the table is read once."""
        answers = [
            f'histogram("{name}") as "{name}"' if limit else f'count(distinct "{name}") as "{name}"'
            for name, limit in limits.items()
        ]
        (row,) = self.collect(nw.from_native(nw.to_native(frame).aggregate(", ".join(answers)))).rows()
        return {name: dict(answer or ()) if limits[name] else answer for name, answer in zip(limits, row, strict=True)}

    def empty(self, native: Any) -> Any:
        """Return an Arrow table without rows."""
        return native.limit(0).to_arrow_table()

    def map_rows(self, native: Any, function: RowFunction, like: Any) -> Any:
        """Return a relation on a connection of its own, which reads the other one batch by batch.

        The frame's connection is busy while its rows are read, so that it cannot run the query that reads them.
        """
        columns = native.project(", ".join(map(_quoted, like.column_names)))
        own = require("duckdb", "engines").connect().from_arrow(_Mapped(columns, function, like.schema))
        types = zip(own.columns, own.types, columns.types, strict=True)
        cast = (f"{_quoted(a)}::{to} as {_quoted(a)}" if str(has) != str(to) else _quoted(a) for a, has, to in types)
        return own.project(", ".join(cast))

    def sample_rows(self, native: Any, share: float, seed: int) -> Any:
        """Return rows at random positions, in order; all rows pass, as DuckDB's own samples depend on its threads."""
        if share >= 1.0:
            return native.to_arrow_table()
        return take_rows(_read_batches(native), sample_positions(self.count_rows(native), share, seed))

    @contextmanager
    def connect(self) -> Iterator[Any]:
        """Open a database of its own, in memory."""
        duckdb = require("duckdb", "engines")
        settings = {"memory_limit": MEMORY}
        with tempfile.TemporaryDirectory() as spilled, duckdb.connect(config=settings) as connection:
            connection.execute("set enable_progress_bar = false")
            connection.execute("set temp_directory = $folder", {"folder": spilled})
            known = connection.execute("select name from duckdb_optimizers()").fetchall()
            if (REWRITE,) in known:
                connection.execute(f"set disabled_optimizers = '{REWRITE}'")
            yield connection

    def errors(self) -> tuple[type[BaseException], ...]:
        """Return what DuckDB raises of files."""
        return (OSError, require("duckdb", "engines").Error)

    def read(self, connection: Any, files: Sequence[Path]) -> Any:
        """Return files as one relation; nothing in their names is a pattern or a column."""
        return connection.read_parquet([glob.escape(str(file)) for file in files], hive_partitioning=False)

    def write(self, frame: Any, path: Path, rows: int) -> None:
        """Write one file, in the order of the rows."""
        frame.write_parquet(str(path), row_group_size=rows, compression=COMPRESSION)


class _Mapped:
    """What a function makes of a relation, as a stream of Arrow's, which DuckDB opens anew for every query."""

    def __init__(self, relation: Any, function: RowFunction, schema: Any) -> None:
        self.relation, self.function, self.schema = relation, function, schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        arrow = require("pyarrow", "engines")
        batches = map_record_batches(_read_batches(self.relation), self.function)
        return arrow.RecordBatchReader.from_batches(self.schema, batches).__arrow_c_stream__(requested_schema)


def _read_batches(relation: Any) -> Iterator[Any]:
    """Read a relation batch by batch."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # before DuckDB 2
    yield from read(ROWS_AT_ONCE)


def _quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'
