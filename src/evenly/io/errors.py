"""One clear error for whatever goes wrong with a file, whichever library reads or writes it."""

from __future__ import annotations

import lzma
import os
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from evenly._support import EvenlyError, TableError, require

_alone = threading.Lock()


@contextmanager
def as_table_error(what: str, expected: str, errors: tuple[type[BaseException], ...]) -> Iterator[None]:
    """Turn errors of other libraries into a `TableError` with the first line of their message."""
    try:
        yield
    except EvenlyError:
        raise
    except BaseException as error:
        # A panic is no `Exception`, and every library in Rust has a class of its own for it.
        if not isinstance(error, errors) and type(error).__name__ != "PanicException":
            raise
        message = getattr(error, "strerror", None) or str(error)
        first = next((line for line in message.splitlines() if line.strip()), type(error).__name__)
        raise TableError(f"{what}: {shortened(' '.join(first.split()).rstrip('.'), 200)}", expected) from error


def as_parquet_error(file: Path, *errors: type[BaseException]) -> AbstractContextManager[None]:
    """Turn what Polars, or another reader with errors of its own, says of a Parquet file into a `TableError`."""
    return as_table_error(f"the file {str(file)!r}", "expected a whole Parquet file", (*polars_errors(), *errors))


def as_file_error(what: str, expected: str = "expected a whole and sound file") -> AbstractContextManager[None]:
    """Turn what goes wrong with a file of any format, compressed or not, into a `TableError`."""
    errors = (*polars_errors(), EOFError, ValueError, MemoryError, OverflowError, zlib.error, lzma.LZMAError)
    return as_table_error(what, expected, errors)


def polars_errors() -> tuple[type[BaseException], ...]:
    """Return what Polars raises if a file cannot be read or written."""
    errors = require("polars", "tool").exceptions
    return (OSError, errors.PolarsError, errors.PanicException)


@contextmanager
def without_panics() -> Iterator[None]:
    """Keep what a reader in Rust prints when it panics off standard error: our sentence says it.

    It prints past Python, so the descriptor is replaced. Whatever else is printed meanwhile comes out afterwards,
    unless reading fails. The first thread that panics ends the reading; others may still be printing.
    """
    with _alone, tempfile.TemporaryFile() as kept:
        try:
            sys.stderr.flush()
            before = os.dup(2)
        except (OSError, ValueError, AttributeError):  # there is no standard error to keep clean
            before = None
        if before is None:
            yield
            return
        os.dup2(kept.fileno(), 2)
        try:
            yield
            kept.seek(0)
            os.write(before, kept.read())
        except BaseException:
            _wait_for_silence(kept.fileno())
            raise
        finally:
            os.dup2(before, 2)
            os.close(before)


def _wait_for_silence(descriptor: int, seconds: float = 0.1, most: float = 2.0) -> None:
    """Wait until a file that something was printed to has not grown for a while."""
    size, end = os.fstat(descriptor).st_size, time.monotonic() + most
    while size and time.monotonic() < end:
        time.sleep(seconds)
        before, size = size, os.fstat(descriptor).st_size
        if size == before:
            return


def shortened(text: str, most: int = 80) -> str:
    """Return a text that a message quotes, cut if it is long.

    Examples
    --------
    >>> shortened("a" * 100, 10)
    'aaaaaaaaa…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"
