"""Tables written to files of any usual format, all or nothing."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from evenly._support import TableError, replacing, require
from evenly.io.compression import compressing
from evenly.io.dates import refuse_strange_dates
from evenly.io.errors import as_file_error
from evenly.io.formats import Form, form_of, is_special, is_standard, parse_form

UNCHANGED = "expected space on the disk and the right to write; an old file is unchanged"


def check_writable(target: str | Path, *, form: str | None = None) -> None:
    """Refuse, before any long work, a target that `write_table` could not write to.

    Examples
    --------
    >>> check_writable("no_such_format.doc")
    Traceback (most recent call last):
    evenly.TableError: got the name 'no_such_format.doc', but expected one of csv, tsv, ...
    """
    wanted = parse_form(form) if form else form_of(target)
    wanted.format.check_writable()
    path = Path(target)
    if is_standard(target):
        return
    if path.is_dir():
        raise TableError(f"{target}, which is a folder", "expected a file to write")
    if (path.exists() or is_special(path)) and not os.access(path, os.W_OK):
        raise TableError(f"{target}, which may not be written", "expected a file to write")
    if is_special(path):
        return
    folder = next(parent for parent in _real(path).parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TableError(f"{target}: {error.strerror} in {folder}", "expected a folder to write to") from None


def write_table(table: Any, target: str | Path, *, form: str | None = None) -> None:
    """Write a table to a file, all or nothing, or to standard output.

    Readers see the old file or the new one, never half of it; if anything goes wrong, the old file stays. Delimited
    text is UTF-8 with `,` or tabs, and numbers are read back to the last bit.

    Parameters
    ----------
    table : dataframe
        Polars, pandas or Arrow.
    target : str or Path
        A path; `-` is standard output. Pipes and devices are written to directly.
    form : str, optional
        One of `evenly.io.formats.FORMATS`, such as `parquet` or `csv.gz`; by default what the name says, and CSV for
        standard output.

    Examples
    --------
    Needs `pip install "evenly[tool]"`.

    >>> import polars as pl
    >>> write_table(pl.DataFrame({"name": ["Ann", "Bo, Jr."], "height": [1.7, None]}), "-")
    name,height
    Ann,1.7
    "Bo, Jr.",
    """
    wanted = parse_form(form) if form else form_of(target)
    wanted.format.check_writable()
    frame = _writable(_as_polars(table), wanted)
    path = Path(target)
    if is_standard(target):
        _write_standard(frame, wanted)
        return
    check_writable(target, form=form)
    with as_file_error(f"{target}, which could not be written", UNCHANGED):
        if is_special(path):
            with path.open("wb") as file:
                _write(frame, file, wanted)
            return
        with replacing(_real(path)) as temporary, temporary.open("wb") as file:
            _write(frame, file, wanted)


def write_parts(tables: Iterable[Any], target: str | Path, *, form: str | None = None) -> None:
    """Write a table that comes in parts to a file, all or nothing, with one part in memory at a time.

    Parameters
    ----------
    tables : iterable of dataframes
        The parts, from top to bottom: at least one, all with the same columns.
    target, form
        As in `write_table`, except for standard output, workbooks, Stata and SPSS.

    Examples
    --------
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parts((pl.DataFrame({"x": [k, None]}) for k in range(2)), f"{folder}/all.csv")
    ...     (Path(folder) / "all.csv").read_text().split()
    ['x', '0', '1']
    """
    wanted = parse_form(form) if form else form_of(target)
    if is_standard(target):
        hint = "write .parquet, .csv or .csv.gz"
        raise TableError("standard output for a table part by part", "expected a file", hint)
    check_writable(target, form=form)
    frames = (_writable(_as_polars(table), wanted) for table in tables)
    with (
        as_file_error(f"{target}, which could not be written", UNCHANGED),
        replacing(_real(Path(target))) as temporary,
        temporary.open("wb") as file,
        compressing(file, wanted.compression) as out,
    ):
        wanted.format.write_parts(frames, out)


def _real(path: Path) -> Path:
    """Follow links, so that the file behind a link is replaced, not the link."""
    return Path(os.path.realpath(path))


def _as_polars(table: Any) -> Any:
    pl = require("polars", "tool")
    if isinstance(table, pl.DataFrame):
        return table
    try:
        return pl.DataFrame(table)
    except ImportError:  # what pandas holds other than NumPy's types goes through PyArrow, unless that is absent
        return _of_objects(table)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise TableError(f"a table of type {type(table).__name__}: {error}", "expected a dataframe") from None


def _of_objects(table: Any) -> Any:
    """Return a table of pandas as one of Polars, without PyArrow: what is not NumPy's goes by its values."""
    pl = require("polars", "tool")
    columns = []
    for at, label in enumerate(table.columns):
        own, classes = table.iloc[:, at], hasattr(table.dtypes.iloc[at], "categories")
        if classes or hasattr(own.dtype, "na_value"):
            own = own.astype(object)
        if own.dtype != object:
            columns.append(pl.Series(str(label), own.to_numpy(), nan_to_null=True))
            continue
        cells = pl.Series(str(label), own.where(own.notna(), None).tolist(), strict=False)
        columns.append(cells.cast(pl.Categorical) if classes and cells.dtype == pl.String else cells)
    try:
        return pl.DataFrame(columns)
    except pl.exceptions.PolarsError as error:
        raise TableError(f"a table of type {type(table).__name__}: {error}", "expected a dataframe") from None


def _writable(frame: Any, form: Form) -> Any:
    """Refuse columns that the format cannot hold, and make NaN a missing cell in text."""
    frame = form.format.check(frame if form.format.binary_dates else refuse_strange_dates(frame))
    return frame.with_columns(require("polars", "tool").selectors.float().fill_nan(None)) if form.format.text else frame


def _write_standard(frame: Any, form: Form) -> None:
    buffer = io.BytesIO()
    _write(frame, buffer, form)
    binary = getattr(sys.stdout, "buffer", None)
    try:
        if binary is None:  # a captured or replaced standard output, of texts
            sys.stdout.write(buffer.getvalue().decode("utf-8"))
        else:
            sys.stdout.flush()
            left = buffer.getbuffer()
            while left:  # unbuffered output, as under `python -u`, may take only some of it at a time
                left = left[binary.write(left) :]
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more when it exits, and would report the closed pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise TableError("a closed pipe as standard output", "expected it to take the whole table") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"standard output: {error}", "expected it to take the table") from None


def _write(frame: Any, file: IO[bytes], form: Form) -> None:
    with compressing(file, form.compression) as out:
        form.format.write(frame, out)
