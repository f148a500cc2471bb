"""Lazy frames of Polars, DuckDB, Dask, Spark and Ibis as columns, and the two kinds of query that fitting asks of them.

Either is one pass over the data, and returns aggregates or counts, never rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from narwhals.dependencies import (
    is_dask_dataframe,
    is_duckdb_relation,
    is_ibis_table,
    is_polars_lazyframe,
    is_pyspark_connect_dataframe,
    is_pyspark_dataframe,
)

from evenly._support import TableError, require
from evenly.tables.frames import Storage, TableColumn, dtype_storage, refuse_duplicates

_LAZY = (
    is_polars_lazyframe,
    is_duckdb_relation,
    is_dask_dataframe,
    is_pyspark_dataframe,
    is_pyspark_connect_dataframe,
    is_ibis_table,
)

COUNTS_LATE = ("polars",)
"""Engines that are not asked for numbers of distinct cells together with other things: of two such numbers Polars holds
the columns in memory."""


@dataclass(frozen=True)
class LazyColumn(TableColumn):
    """A column of a lazy frame. Its cells are not here: `native` is empty, or its distinct cells once counted."""

    native: Any = field(default_factory=lambda: np.zeros(0))
    dtype: str = ""
    storage: Storage = "other"
    categories: list[Any] | None = None
    ordered: bool = False


class LazyTable(NamedTuple):
    """A lazy frame seen as named columns."""

    columns: list[LazyColumn]
    labels: list[Hashable]
    container: str
    """The kind of table in memory that the engine's answers come as."""
    engine: str
    frame: nw.LazyFrame[Any]

    @property
    def names(self) -> list[str]:
        """The columns' names as text."""
        return [column.name for column in self.columns]


def open_lazy(table: Any) -> LazyTable | None:
    """View a lazy frame as columns; None if the table is none.

    Examples
    --------
    >>> import polars as pl
    >>> open_lazy(pl.LazyFrame({"a": [1.0], "b": ["x"]})).names
    ['a', 'b']
    >>> open_lazy([[1.0]]) is None
    True
    """
    native = nw.to_native(table, pass_through=True)
    if not any(is_lazy(native) for is_lazy in _LAZY):
        return None
    labels = list(native.collect_schema()) if is_polars_lazyframe(native) else list(native.columns)
    refuse_duplicates(labels)  # Narwhals would refuse them in its own words
    for label in labels:
        if not isinstance(label, str):
            raise TableError(f"the name {label!r}", "a lazy frame expects texts", "rename it", column=label)
    frame = nw.from_native(native)
    types = frame.collect_schema()
    if not types:
        raise TableError("0 feature(s) while a minimum of 1 is required", "expected columns")
    engine = frame.implementation.name.lower()
    container = {"polars": "polars", "dask": "pandas"}.get(engine, "pyarrow")
    columns = [_describe(name, dtype, native if engine == "dask" else None) for name, dtype in types.items()]
    return LazyTable(columns, list(types), container, engine, frame)


def _describe(name: str, dtype: nw.dtypes.DType, dask: Any) -> LazyColumn:
    categories = list(dtype.categories) if isinstance(dtype, nw.Enum) else None
    own, ordered = str(dtype), False
    if dask is not None:
        of = dask.dtypes[name]
        own, ordered = str(of), bool(getattr(of, "ordered", False))
        if own == "category":
            known = list(of.categories)
            categories = None if "__UNKNOWN_CATEGORIES__" in known else known
    return LazyColumn(name, dtype=own, storage=dtype_storage(dtype), categories=categories, ordered=ordered)


# --- queries: each is one pass over the data ---------------------------------------------------------------------


def ask(table: LazyTable, cells: Sequence[nw.Expr], aggregates: Sequence[nw.Expr]) -> list[Any]:
    """Return the answers to aggregates of cells, in one query."""
    named = [aggregate.alias(str(place)) for place, aggregate in enumerate(aggregates)]
    return list(_collect(table.frame.select(*cells).select(*named)).rows()[0])


def _collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Run a query; Polars in batches, whatever the size of the table."""
    if frame.implementation.is_polars():
        return frame.collect(engine="streaming")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # Dask warns of the variance of no cells
        return frame.collect()


def count_cells(
    table: LazyTable, counted: Sequence[nw.Expr], doubtful: Sequence[nw.Expr], most: Sequence[int]
) -> list[Any]:
    """Count the distinct cells of columns (numbers as double precision, or texts), in one query.

    Returns a dictionary of cell to count for each of `counted`, then the number of distinct cells of each of
    `doubtful`. Missing cells are not counted. Where the engine was not asked before how many there are (`COUNTS_LATE`),
    a column of `counted` with more distinct cells than its place in `most` says gives only their number, too.
    """
    names = [str(place) for place in range(len(counted) + len(doubtful))]
    if not names:
        return []
    frame = table.frame.select(*(each.alias(name) for each, name in zip([*counted, *doubtful], names, strict=True)))
    listed = len(counted)
    if table.engine == "polars":
        return _count_batches(nw.to_native(frame), [*most, *(0 for _ in doubtful)])
    if table.engine == "duckdb":
        answers = [f'histogram("{name}") as "{name}"' for name in names[:listed]]
        answers += [f'count(distinct "{name}") as "{name}"' for name in names[listed:]]
        row = _collect(nw.from_native(nw.to_native(frame).aggregate(", ".join(answers)))).rows()[0]
        return [*(dict(part or ()) for part in row[:listed]), *row[listed:]]
    return _count_unpivoted(frame, table, names, listed)


def _count_unpivoted(frame: nw.LazyFrame[Any], table: LazyTable, names: list[str], listed: int) -> list[Any]:
    """Count cells where an engine cannot list several columns' counts at once: as rows of (column, cell)."""
    types = frame.collect_schema()
    long = (
        frame.select(*(nw.col(name).cast(nw.String) for name in names))
        .unpivot(names, variable_name="column", value_name="cell")
        .filter(~nw.col("cell").is_null())
        .group_by("column", "cell")
        .agg(nw.len().alias("count"))
    )
    if listed < len(names):  # of a doubtful column only the number of groups leaves the engine
        gone = nw.col("column").is_in(names[listed:])
        long = (
            long.with_columns(nw.when(gone).then(nw.lit("")).otherwise(nw.col("cell")).alias("cell"))
            .group_by("column", "cell")
            .agg(nw.col("count").sum(), nw.len().alias("groups"))
        )
    results: dict[str, Any] = {name: {} if place < listed else 0 for place, name in enumerate(names)}
    for name, cell, count, *groups in _collect(long).rows():
        if name in names[listed:]:
            results[name] = int(groups[0])
            continue
        value = float(cell) if types[name] == nw.Float64 else cell
        if value == value:
            results[name][value] = results[name].get(value, 0) + int(count)
    return list(results.values())


def _count_batches(frame: Any, most: Sequence[int]) -> list[Any]:
    """Count cells batch by batch, and sum: Polars' own counts of several columns would hold them all in memory."""
    pl = require("polars", "tool")
    types = {"column": pl.Int64, "number": pl.Float64, "text": pl.String, "count": pl.Int64}

    def count(batch: Any) -> Any:
        parts = []
        for cells in batch.get_columns():
            kind = "number" if cells.dtype == pl.Float64 else "text"
            parts.append(
                cells.drop_nulls()
                .alias(kind)
                .value_counts(name="count")
                .select(
                    (pl.col(name) if name in (kind, "count") else pl.lit(int(cells.name) if name == "column" else None))
                    .cast(dtype)
                    .alias(name)
                    for name, dtype in types.items()
                )
            )
        return pl.concat(parts)

    cell = ("column", "number", "text")
    found = frame.map_batches(count, schema=types, streamable=True).group_by(cell).agg(pl.col("count").sum())
    few = pl.len().over("column") <= pl.col("column").replace_strict(range(len(most)), most)
    kept = found.with_columns(few=few).with_columns(pl.when("few").then(pl.col(name)) for name in cell[1:])
    size = pl.when(pl.col("few").first()).then(pl.col("count").first()).otherwise(pl.len().cast(pl.Int64))
    answers: list[Any] = [{} if limit else 0 for limit in most]
    for column, number, text, n in _collect(nw.from_native(kept.group_by(cell).agg(size.alias("count")))).rows():
        if number is None and text is None:
            answers[column] = n
        else:
            answers[column][text if number is None else number] = n
    return answers
