"""Polars: queries and files in batches, whatever the size of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
from narwhals.dependencies import is_polars_lazyframe

from evenly._support import require
from evenly.engines.base import COMPRESSION, FileEngine
from evenly.engines.batches import RowFunction, sample_positions
from evenly.io import polars_errors, scan


class Polars(FileEngine):
    """Lazy frames of Polars, on its streaming engine."""

    name = "polars"
    container = "polars"
    collect_settings = {"engine": "streaming"}  # noqa: RUF012  # never changed, as the base class declares
    counts_late = True  # asked for two numbers of distinct cells at once, Polars holds the columns in memory
    compares_classes = True  # of a list of classes, Polars holds the column in memory
    most_compared = 32  # it makes all comparisons for every cell: beyond so many, a lookup in each batch is faster
    keeps_order = True
    maps_rows = True

    @classmethod
    def recognizes(cls, native: Any) -> bool:
        """Say whether an object is a `polars.LazyFrame`."""
        return is_polars_lazyframe(native)

    def labels(self, native: Any) -> list[Any]:
        """Return the names of a frame's columns; Polars warns of `columns`, which has to resolve the schema, too."""
        return list(native.collect_schema())

    def count_cells(self, frame: nw.LazyFrame[Any], limits: Mapping[str, int]) -> dict[str, Any]:
        """Count cells batch by batch, and sum: Polars' own counts of several columns would hold them all in memory."""
        pl = require("polars", "tool")
        names = list(limits)
        types = {"column": pl.Int64, "number": pl.Float64, "text": pl.String, "count": pl.Int64}

        def count(batch: Any) -> Any:
            return pl.concat([_count_batch(place, batch[name], types) for place, name in enumerate(names)])

        cell = ("column", "number", "text")
        found = nw.to_native(frame).map_batches(count, schema=types, streamable=True)
        found = found.group_by(cell).agg(pl.col("count").sum())
        most = pl.col("column").replace_strict(range(len(names)), list(limits.values()))
        few = pl.len().over("column") <= most
        kept = found.with_columns(few=few).with_columns(pl.when("few").then(pl.col(name)) for name in cell[1:])
        size = pl.when(pl.col("few").first()).then(pl.col("count").first()).otherwise(pl.len().cast(pl.Int64))
        answers: dict[str, Any] = {name: {} if limit else 0 for name, limit in limits.items()}
        rows = self.collect(nw.from_native(kept.group_by(cell).agg(size.alias("count")))).rows()
        for place, number, text, n in rows:
            if number is None and text is None:
                answers[names[place]] = n
            else:
                answers[names[place]][text if number is None else number] = n
        return answers

    def map_batches(self, frame: nw.LazyFrame[Any], expressions: Mapping[str, nw.Expr]) -> nw.LazyFrame[Any]:
        """Replace columns by numbers batch by batch: Polars' lookup of classes would hold them in memory."""
        pl = require("polars", "tool")

        def replaced(name: str, expression: nw.Expr) -> Any:
            return pl.col(name).map_batches(
                lambda batch: nw.to_native(nw.from_native(batch.to_frame(name)).select(expression.alias(name))[name]),
                return_dtype=pl.Float64,
                is_elementwise=True,
            )

        made = [replaced(name, expression) for name, expression in expressions.items()]
        return nw.from_native(nw.to_native(frame).with_columns(*made))  # type: ignore[no-any-return]  # a lazy frame

    def empty(self, native: Any) -> Any:
        """Return a Polars frame without rows."""
        return native.collect_schema().to_frame()

    def map_rows(self, native: Any, function: RowFunction, like: Any) -> Any:
        """Apply the function to each batch of the streaming engine."""
        columns = native.select(like.columns)
        return columns.map_batches(function, schema=like.schema, streamable=True, slice_pushdown=True)

    def sample_rows(self, native: Any, share: float, seed: int) -> Any:
        """Return rows at random positions, in order."""
        if share >= 1.0:
            return native.collect(**self.collect_settings)
        pl = require("polars", "tool")
        chosen = pl.Series(sample_positions(self.count_rows(native), share, seed), dtype=pl.UInt64)
        row = "_evenly_row"
        found = native.with_row_index(row).filter(pl.col(row).cast(pl.UInt64).is_in(chosen.implode()))
        return found.drop(row).collect(**self.collect_settings)

    def errors(self) -> tuple[type[BaseException], ...]:
        """Return what Polars raises of files."""
        return polars_errors()

    def read(self, connection: Any, files: Sequence[Path]) -> Any:
        """Return files as one lazy frame."""
        return scan(files)

    def write(self, frame: Any, path: Path, rows: int) -> None:
        """Write one file, in the order of the rows."""
        frame.sink_parquet(path, row_group_size=rows, compression=COMPRESSION)


def _count_batch(place: int, cells: Any, types: Mapping[str, Any]) -> Any:
    """Count the distinct cells of a column of a batch, as rows of (column, number, text, count)."""
    pl = require("polars", "tool")
    kind = "number" if cells.dtype == pl.Float64 else "text"
    own = {kind: pl.col(kind), "count": pl.col("count"), "column": pl.lit(place)}
    counted = cells.drop_nulls().alias(kind).value_counts(name="count")
    return counted.select(own.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in types.items())
