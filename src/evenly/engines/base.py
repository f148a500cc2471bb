"""What Evenly knows of an engine, as one class: how its frames are recognized, what it can do, and its quirks.

A new engine is one subclass of `Engine` (of `FileEngine`, if it reads and writes Parquet): defining it registers it.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import narwhals as nw

from evenly._support import TableError, refuse_duplicates
from evenly.engines.batches import RowFunction
from evenly.tables import LazyColumn, LazyTable, dtype_storage

ENGINES: dict[str, type[Engine]] = {}
"""The engines by name."""
COMPRESSION = "snappy"
"""Scaled features hardly get smaller: zstd takes three times as long for a twelfth of the size."""


class Engine(ABC):
    """An engine whose frames are fitted and transformed where they are.

    A subclass sets `name`, says which objects are its frames, and overrides what differs from the defaults, which are
    right for any frame that Narwhals knows.
    """

    name: ClassVar[str]
    """As users write it."""
    container: ClassVar[str] = "pyarrow"
    """The kind of table in memory that its results come as."""
    collect_settings: ClassVar[Mapping[str, Any]] = {}
    """Passed to `collect` for every query."""
    ignored_warnings: ClassVar[tuple[type[Warning], ...]] = ()
    """Warnings of its own that a query may raise, and that mean nothing to a user."""
    counts_late: ClassVar[bool] = False
    """Whether numbers of distinct cells are left to the second pass, because asking for them beside other aggregates
    would load columns into memory."""
    exact_quantiles: ClassVar[bool] = True
    """Whether it computes exact quantiles; if not, quartiles are merged from its partitions (`map_partitions`)."""
    compares_classes: ClassVar[bool] = False
    """Whether a class is found by comparisons instead of a lookup in a list of classes."""
    most_compared: ClassVar[int | None] = None
    """Columns with more classes are coded batch by batch (`map_batches`); None: however many there are."""
    answers_queries: ClassVar[bool] = True
    """Whether Narwhals can query its frames, as scalers need."""
    maps_rows: ClassVar[bool] = False
    """Whether functions can be applied to its rows, as imputers need: `empty`, `map_rows` and `sample_rows`."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "name" in vars(cls):
            ENGINES[cls.name] = cls

    @classmethod
    @abstractmethod
    def recognizes(cls, native: Any) -> bool:
        """Say whether an object is a lazy frame of this engine."""

    def labels(self, native: Any) -> list[Any]:
        """Return the names of a frame's columns, duplicates included."""
        return list(native.columns)

    def view(self, native: Any) -> nw.LazyFrame[Any]:
        """View a native frame through Narwhals."""
        frame: nw.LazyFrame[Any] = nw.from_native(native)
        return frame

    def unwrap(self, frame: nw.LazyFrame[Any]) -> Any:
        """Return the native frame behind a view, as the user gets it."""
        return nw.to_native(frame)

    def columns(self, native: Any) -> list[LazyColumn]:
        """Describe the columns of a frame."""
        return [self.describe(native, name, dtype) for name, dtype in self.view(native).collect_schema().items()]

    def describe(self, native: Any, name: str, dtype: nw.dtypes.DType) -> LazyColumn:
        """Describe how a column is stored."""
        categories = list(dtype.categories) if isinstance(dtype, nw.Enum) else None
        return LazyColumn(name, dtype=str(dtype), storage=dtype_storage(dtype), categories=categories)

    def collect(self, frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
        """Run a query: one pass over the data, answered by aggregates or counts."""
        with warnings.catch_warnings():
            for category in self.ignored_warnings:
                warnings.simplefilter("ignore", category)
            return frame.collect(**self.collect_settings)

    def count_cells(self, frame: nw.LazyFrame[Any], limits: Mapping[str, int]) -> dict[str, Any]:
        """Count the distinct cells of columns (numbers in double precision, or texts), in one query.

        Parameters
        ----------
        frame : LazyFrame
            The columns to count.
        limits : mapping of column to int
            A column of limit 0 gives its number of distinct cells, any other a dictionary of cell to count. An engine
            that `counts_late` gives only the number for a column with more distinct cells than its limit, too.
        """
        return _count_unpivoted(self, frame, limits)

    def map_batches(self, frame: nw.LazyFrame[Any], expressions: Mapping[str, nw.Expr]) -> nw.LazyFrame[Any]:
        """Replace columns by expressions of themselves; batch by batch, if the engine has to."""
        return frame.with_columns(*(expression.alias(name) for name, expression in expressions.items()))

    def map_partitions(self, frame: nw.LazyFrame[Any], function: Callable[[Any], Any]) -> Sequence[Any]:
        """Apply a function to each partition, in memory; for engines without exact quantiles."""
        raise NotImplementedError

    # --- functions of rows ----------------------------------------------------------------------------------------

    def count_rows(self, native: Any) -> int:
        """Return the number of rows of a frame."""
        return int(self.collect(self.view(native).select(nw.len().alias("n"))).rows()[0][0])

    def empty(self, native: Any) -> Any:
        """Return a table in memory with the columns of a frame, and no row."""
        raise NotImplementedError

    def map_rows(self, native: Any, function: RowFunction, like: Any) -> Any:
        """Return a frame of what a function makes of some of the columns, part by part; nothing is computed yet.

        Parameters
        ----------
        function : RowFunction
            Takes some rows with the columns of `like`; it is sent to each worker once.
        like : table
            An empty table in memory with the columns that the function takes, in the types of what it returns.
        """
        raise NotImplementedError

    def sample_rows(self, native: Any, share: float, seed: int) -> Any:
        """Return a random share of the rows as a table in memory; a share of 1 is all of them, in order."""
        raise NotImplementedError


class FileEngine(Engine):
    """An engine that reads and writes Parquet files, too."""

    keeps_order: ClassVar[bool] = False
    """Whether it writes one file, with the rows in the order of the files that it read."""

    def connect(self) -> AbstractContextManager[Any]:
        """Start the engine until the end of a `with` statement; gives what `read` needs."""
        return nullcontext()

    @abstractmethod
    def errors(self) -> tuple[type[BaseException], ...]:
        """Return what it raises if a file cannot be read or written."""

    @abstractmethod
    def read(self, connection: Any, files: Sequence[Path]) -> Any:
        """Return files as one lazy frame."""

    @abstractmethod
    def write(self, frame: Any, path: Path, rows: int) -> None:
        """Write a lazy frame to one Parquet file with row groups of so many rows, or to a folder of files."""


def get_file_engine(name: str) -> FileEngine:
    """Return the engine of a name.

    Examples
    --------
    >>> get_file_engine("excel")
    Traceback (most recent call last):
    evenly.TableError: got the engine 'excel', but expected one of dask, duckdb, polars, spark.
    """
    known = {one: engine for one, engine in ENGINES.items() if issubclass(engine, FileEngine)}
    if name not in known:
        raise TableError(f"the engine {name!r}", f"expected one of {', '.join(known)}")
    return known[name]()


# --- frames ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EngineTable(LazyTable):
    """A lazy frame seen as named columns, with its engine."""

    engine: Engine
    native: Any

    @cached_property
    def frame(self) -> nw.LazyFrame[Any]:
        """The frame through Narwhals; an error if its engine answers no queries."""
        if not self.engine.answers_queries:
            raise TableError(
                f"a frame of {self.engine.name}",
                "scalers ask queries, which it does not answer",
                "give them its files, or fit each part and add the scalers: a + b",
            )
        return self.engine.view(self.native)

    def ask(self, cells: Sequence[nw.Expr], aggregates: Sequence[nw.Expr]) -> list[Any]:
        """Return the answers to aggregates of cells, in one query."""
        named = [aggregate.alias(str(place)) for place, aggregate in enumerate(aggregates)]
        return list(self.engine.collect(self.frame.select(*cells).select(*named)).rows()[0])


def open_lazy(table: Any) -> EngineTable | None:
    """View a lazy frame as columns; None if the table is not one.

    Examples
    --------
    >>> import polars as pl
    >>> open_lazy(pl.LazyFrame({"a": [1.0], "b": ["x"]})).names
    ['a', 'b']
    >>> open_lazy([[1.0]]) is None
    True
    """
    native = nw.to_native(table, pass_through=True)
    engine = next((one() for one in ENGINES.values() if one.recognizes(native)), None)
    if engine is None:
        return None
    labels = engine.labels(native)
    refuse_duplicates(labels)  # Narwhals would refuse them in its own words
    for label in labels:
        if not isinstance(label, str):
            raise TableError(f"the name {label!r}", "a lazy frame expects texts", "rename it", column=label)
    columns = engine.columns(native)
    if not columns:
        raise TableError("0 feature(s) while a minimum of 1 is required", "expected columns")
    return EngineTable(columns, [one.name for one in columns], engine.container, engine, native)


# --- counts ------------------------------------------------------------------------------------------------------


def _count_unpivoted(engine: Engine, frame: nw.LazyFrame[Any], limits: Mapping[str, int]) -> dict[str, Any]:
    """Count cells where an engine cannot list several columns' counts at once: as rows of (column, cell)."""
    types, names = frame.collect_schema(), list(limits)
    numbers = [name for name in names if not limits[name]]
    long = (
        frame.select(*(nw.col(name).cast(nw.String) for name in names))
        .unpivot(names, variable_name="column", value_name="cell")
        .filter(~nw.col("cell").is_null())
        .group_by("column", "cell")
        .agg(nw.len().alias("count"))
    )
    if numbers:  # of these columns only the number of groups leaves the engine
        gone = nw.col("column").is_in(numbers)
        long = (
            long.with_columns(nw.when(gone).then(nw.lit("")).otherwise(nw.col("cell")).alias("cell"))
            .group_by("column", "cell")
            .agg(nw.col("count").sum(), nw.len().alias("groups"))
        )
    results: dict[str, Any] = {name: {} if limits[name] else 0 for name in names}
    for name, cell, count, *groups in engine.collect(long).rows():
        if name in numbers:
            results[name] = int(groups[0])
            continue
        value = float(cell) if types[name] == nw.Float64 else cell
        if value == value:
            results[name][value] = results[name].get(value, 0) + int(count)
    return results


# --- files -------------------------------------------------------------------------------------------------------


def arrow_settings(repeated: Iterable[str]) -> dict[str, Any]:
    """Return settings of Arrow's writer, which by default spends most of its time on searching repeated cells."""
    return {"compression": COMPRESSION, "use_dictionary": list(repeated)}


def part_name(place: int) -> str:
    """Return the file name of a part of a table; names sort in the order of the parts."""
    return f"part-{place:05d}.parquet"
