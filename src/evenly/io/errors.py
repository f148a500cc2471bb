"""One clear error for whatever goes wrong with a file, whichever library reads or writes it."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from evenly._support import TableError, require


@contextmanager
def as_table_error(what: str, expected: str, errors: tuple[type[BaseException], ...]) -> Iterator[None]:
    """Turn errors of other libraries into a `TableError` with the first line of their message."""
    try:
        yield
    except TableError:
        raise
    except errors as error:
        message = getattr(error, "strerror", None) or str(error)
        first = next((line for line in message.splitlines() if line.strip()), type(error).__name__)
        raise TableError(f"{what}: {' '.join(first.split()).rstrip('.')}", expected) from error


def as_parquet_error(file: Path, *errors: type[BaseException]) -> AbstractContextManager[None]:
    """Turn what Polars, or another reader with errors of its own, says of a Parquet file into a `TableError`."""
    return as_table_error(f"the file {str(file)!r}", "expected a whole Parquet file", (*polars_errors(), *errors))


def as_file_error(what: str, expected: str = "expected a whole and sound file") -> AbstractContextManager[None]:
    """Turn what goes wrong with a file of any format, compressed or not, into a `TableError`."""
    errors = (*polars_errors(), EOFError, ValueError, zlib.error, lzma.LZMAError)
    return as_table_error(what, expected, errors)


def polars_errors() -> tuple[type[BaseException], ...]:
    """Return what Polars raises if a file cannot be read or written."""
    errors = require("polars", "tool").exceptions
    return (OSError, errors.PolarsError, errors.PanicException)
