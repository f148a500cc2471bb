"""Which Parquet files a path means, and whether they are parts of one table.

Engines disagree on how to read CSV (whether 02139 is a number, what is missing), so the same file would give different
tables: only Parquet, which declares the types of its columns, is accepted.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenly._support import TableError, require
from evenly.io.errors import as_parquet_error

EXTENSIONS = (".parquet", ".pq")


def is_many(source: str | Path) -> bool:
    """Whether a path means several files: a folder, or a pattern such as `data/*.parquet`.

    Examples
    --------
    >>> is_many("data/*.parquet"), is_many("data.parquet")
    (True, False)
    """
    return os.path.isdir(source) or (glob.has_magic(str(source)) and not os.path.exists(source))


def find_files(source: str | Path) -> list[Path]:
    """List the Parquet files that a path means, in the order of their names.

    Parameters
    ----------
    source : str or Path
        A file; a folder, for the files in it (not in folders below it, nor those whose names begin with `.` or `_`);
        or a pattern: `data/*.parquet`, `data/**/*.parquet`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.parquet", "a.parquet", "_SUCCESS"):
    ...         _ = (Path(folder) / name).write_bytes(b"")
    ...     [file.name for file in find_files(folder)]
    ['a.parquet', 'b.parquet']
    >>> find_files("no/such/*.parquet")
    Traceback (most recent call last):
    evenly.TableError: got the pattern 'no/such/*.parquet', which matches no file, but expected Parquet files.
    """
    path = Path(source)
    if path.is_dir():
        shown = (file for file in path.iterdir() if not file.name.startswith((".", "_")))
        files = [file for file in shown if file.is_file()]
        found = [file for file in files if is_parquet(file)]
        if not found and files:
            raise _no_parquet(min(files))
        got = f"the folder {str(source)!r}, which has no file"
    elif is_many(source):
        found = [file for file in map(Path, glob.glob(str(source), recursive=True)) if file.is_file()]
        got = f"the pattern {str(source)!r}, which matches no file"
    else:
        found = [path] if path.exists() else []
        got = f"no file {str(source)!r}"
    if not found:
        raise TableError(got, "expected Parquet files")
    for file in found:
        if not is_parquet(file):
            raise _no_parquet(file)
    return sorted(found)


def is_parquet(file: Path) -> bool:
    """Whether a file has an extension of Parquet."""
    return file.name.lower().endswith(EXTENSIONS)


def _no_parquet(file: Path) -> TableError:
    return TableError(
        f"the file {str(file)!r}",
        "expected Parquet, which declares the types of columns",
        "write it as Parquet first: evenly.write_table(evenly.read_table(...), ...)",
    )


def check_alike(files: Sequence[Path]) -> dict[str, Any]:
    """Return the columns with their types, or refuse files that are not parts of one table; reads no rows."""
    first: dict[str, Any] = {}
    for file in files:
        with as_parquet_error(file):
            columns = dict(scan([file]).collect_schema())
        first = first or columns
        if list(columns) == list(first) and columns == first:
            continue
        apart = [name for name in (*first, *columns) if first.get(name) != columns.get(name)]
        name = apart[0] if apart else next(a for a, b in zip(columns, first, strict=True) if a != b)
        types = [str(one[name]) if name in one else "no such column" for one in (first, columns)]
        got = (
            f"{types[0]} in {files[0].name} and {types[1]} in {file.name}" if apart else f"another order in {file.name}"
        )
        raise TableError(
            got,
            "expected the same columns in every file",
            "write them with the same names, order and types",
            column=name,
        )
    return first


def count_rows(files: Sequence[Path]) -> int:
    """Return how many rows Parquet files have; reads only their footers."""
    return int(scan(files).select(require("polars", "tool").len()).collect().item())


def scan(files: Sequence[Path]) -> Any:
    """Return files as one lazy frame of Polars; nothing in their names is a pattern or a column."""
    return require("polars", "tool").scan_parquet(list(files), glob=False, hive_partitioning=False)
