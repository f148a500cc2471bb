"""Parquet and Arrow as a Polars frame, and written; what a damaged file claims is checked before memory is taken."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from evenly._support import require
from evenly.io.arrow_checks import check_arrow_file, check_arrow_stream
from evenly.io.dates import refuse_strange_dates
from evenly.io.errors import without_panics
from evenly.io.formats import Format, Reading
from evenly.io.parquet_checks import check_parquet


class _Columnar(Format):
    """A format of columns with types."""

    binary_dates = True

    def write_parts(self, frames: Iterator[Any], file: IO[bytes]) -> None:
        """Write frames as row groups or batches, by pyarrow."""
        first = next(frames).to_arrow()
        with self.writer(file, first.schema) as out:
            for part in chain([first], (frame.to_arrow() for frame in frames)):
                out.write_table(part)

    @abstractmethod
    def writer(self, file: IO[bytes], schema: Any) -> Any:
        """Return what writes parts."""


class Parquet(_Columnar):
    """Parquet, which has its compression inside."""

    name, extensions, magic = "parquet", (".parquet", ".pq"), b"PAR1"

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""
        check_parquet(data, how)
        with without_panics():
            return refuse_strange_dates(require("polars", "tool").read_parquet(data))

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write a file."""
        frame.write_parquet(file)

    def writer(self, file: IO[bytes], schema: Any) -> Any:
        """Return what writes row groups."""
        return require("pyarrow.parquet", "engines").ParquetWriter(file, schema)


class Arrow(_Columnar):
    """Arrow's files, which are Feather's second version."""

    name, extensions, magic = "arrow", (".arrow", ".feather", ".ipc"), b"ARROW1"

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""
        check_arrow_file(data, how)
        with without_panics():
            return refuse_strange_dates(require("polars", "tool").read_ipc(data))

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write a file."""
        frame.write_ipc(file)

    def writer(self, file: IO[bytes], schema: Any) -> Any:
        """Return what writes record batches."""
        return require("pyarrow", "engines").ipc.new_file(file, schema)


class ArrowStream(_Columnar):
    """Arrow's streams."""

    name, extensions, magic = "arrows", (".arrows",), b"\xff\xff\xff\xff"

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""
        check_arrow_stream(data, how)
        with without_panics():
            return refuse_strange_dates(require("polars", "tool").read_ipc_stream(data))

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write a stream."""
        frame.write_ipc_stream(file)

    def writer(self, file: IO[bytes], schema: Any) -> Any:
        """Return what writes record batches."""
        return require("pyarrow", "engines").ipc.new_stream(file, schema)
