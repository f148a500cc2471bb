"""Dask: partitions of pandas frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
from narwhals.dependencies import is_dask_dataframe

from evenly._support import require
from evenly.engines.base import FileEngine, arrow_settings, part_name
from evenly.engines.batches import RowFunction
from evenly.tables import LazyColumn, dtype_storage

PARTITION_CELLS = 1 << 22
"""What Dask holds of a table at a time in each thread, where row groups are not larger: 32 MiB."""


class Dask(FileEngine):
    """Dask dataframes."""

    name = "dask"
    container = "pandas"
    ignored_warnings = (RuntimeWarning,)  # Dask warns of the variance of no cells
    exact_quantiles = False
    maps_rows = True

    @classmethod
    def recognizes(cls, native: Any) -> bool:
        """Say whether an object is a Dask dataframe."""
        return is_dask_dataframe(native)

    def describe(self, native: Any, name: str, dtype: nw.dtypes.DType) -> LazyColumn:
        """Describe a column by its pandas type, which knows categories and their order."""
        own = native.dtypes[name]
        known = list(own.categories) if str(own) == "category" else None
        categories = None if known is None or "__UNKNOWN_CATEGORIES__" in known else known
        ordered = bool(getattr(own, "ordered", False))
        return LazyColumn(name, dtype=str(own), storage=dtype_storage(dtype), categories=categories, ordered=ordered)

    def map_partitions(self, frame: nw.LazyFrame[Any], function: Callable[[Any], Any]) -> Sequence[Any]:
        """Apply a function to each partition, wherever its worker is."""
        dask = require("dask", "engines")
        work = dask.delayed(function)
        answers: Sequence[Any] = dask.compute(*(work(part) for part in nw.to_native(frame).to_delayed()))
        return answers

    def empty(self, native: Any) -> Any:
        """Return a pandas frame without rows."""
        return native._meta  # what Dask's users pass as `meta`; there is no public way to ask for it

    def map_rows(self, native: Any, function: RowFunction, like: Any) -> Any:
        """Apply the function to each partition. It is a task of its own, whose result each worker fetches once."""
        sent = require("dask", "engines").delayed(function, name=f"rows-{function.key}", traverse=False)
        return native[list(like.columns)].map_partitions(_call, sent, meta=like)

    def sample_rows(self, native: Any, share: float, seed: int) -> Any:
        """Return a random share of each partition."""
        chosen = native if share >= 1.0 else native.sample(frac=share, random_state=seed)
        return chosen.compute()

    def errors(self) -> tuple[type[BaseException], ...]:
        """Return what Arrow, which reads and writes for Dask, raises of files."""
        return (OSError, require("pyarrow", "engines").ArrowException)

    def read(self, connection: Any, files: Sequence[Path]) -> Any:
        """Return files as one dataframe."""
        # Dask's own reader takes names for patterns, and whole numbers with a missing one for fractions.
        dd, parquet = require("dask.dataframe", "engines"), require("pyarrow.parquet", "engines")
        slices = [*chain(*map(_slices, files))]
        meta = _to_pandas(parquet.read_schema(files[0]).empty_table())
        return dd.from_map(read_slice, slices or [FileSlice(str(files[0]), [])], meta=meta)

    def write(self, frame: Any, path: Path, rows: int) -> None:
        """Write a folder with one file for each partition."""
        settings = arrow_settings(name for name, dtype in frame.dtypes.items() if dtype.kind != "f")
        frame.to_parquet(str(path), write_index=False, name_function=part_name, row_group_size=rows, **settings)


def _call(part: Any, function: RowFunction) -> Any:
    """Apply a function to a partition, wherever its worker is."""
    return function(part)


class FileSlice(NamedTuple):
    """Some row groups of a Parquet file: what becomes a partition."""

    file: str
    row_groups: list[int]


def _slices(file: Path) -> Iterator[FileSlice]:
    """Put row groups together as long as they are no larger than a partition is to be."""
    metadata = require("pyarrow.parquet", "engines").read_metadata(file)
    sizes = [metadata.row_group(place).num_rows * metadata.num_columns for place in range(metadata.num_row_groups)]
    groups: list[int] = []
    for place, size in enumerate(sizes):
        if groups and sum(sizes[one] for one in groups) + size > PARTITION_CELLS:
            yield FileSlice(str(file), groups)
            groups = []
        groups.append(place)
    if groups:
        yield FileSlice(str(file), groups)


def read_slice(piece: FileSlice, columns: Sequence[str] | None = None) -> Any:
    """Read some columns of a slice, wherever a worker is."""
    with require("pyarrow.parquet", "engines").ParquetFile(piece.file) as opened:
        table = opened.read_row_groups(piece.row_groups, columns=columns)
    return _to_pandas(table if columns is None else table.select(columns))


def _to_pandas(table: Any) -> Any:
    """Return a pandas frame in which whole numbers and booleans stay such beside missing cells."""
    pd, arrow = require("pandas", "engines"), require("pyarrow", "engines")
    whole = {f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    types = {getattr(arrow, name)(): getattr(pd, f"{dtype}Dtype")() for name, dtype in whole.items()}
    return table.to_pandas(types_mapper={arrow.bool_(): pd.BooleanDtype(), **types}.get, ignore_metadata=True)
