"""Tables read from files of any usual format, with a type for every column."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly._support import TableError
from evenly.io.compression import decompress
from evenly.io.errors import as_file_error
from evenly.io.formats import (
    FORMATS,
    MAX_EXPANSION,
    Form,
    Format,
    Reading,
    expected_formats,
    form_of_name,
    is_standard,
    parse_form,
    stranger,
)

if TYPE_CHECKING:
    import polars

for _module in ("delimited", "json_files", "columnar", "spreadsheets", "statistical"):
    import_module(f"evenly.io.{_module}")  # each format registers itself; messages list them in this order


def read_table(
    source: str | Path,
    *,
    form: str | None = None,
    sheet: str | int | None = None,
    max_expansion: float = MAX_EXPANSION,
) -> polars.DataFrame:
    """Read a table from a file, or from standard input.

    Reads CSV, TSV, JSON (an array, lines, or columns), Parquet, Arrow (files, such as Feather, and streams), Excel and
    OpenDocument workbooks, Stata and SPSS; text also compressed by gzip, bzip2, xz or zstd. A file's content counts
    more than its name. In delimited text the delimiter is guessed among `, ; tab |`, and a column is read as numbers
    only if every cell is one: postal codes with leading zeros, whole numbers beyond 64 bits, dates and mixed columns
    stay text. Empty cells are missing; other markers of missing cells (NA, ?, -999) are left to the schema.

    Parameters
    ----------
    source : str or Path
        A path; `-` is standard input.
    form : str, optional
        One of `evenly.io.formats.FORMATS`, if the name does not say.
    sheet : str or int, optional
        The name of a workbook's sheet, or its number from 1; by default the first that holds a table.
    max_expansion : float
        How many times larger than itself a compressed file may be once it is read, beyond 32 MiB.

    Raises
    ------
    TableError
        If there is no such file, or it is damaged; the message names the line or the column.

    Warns
    -----
    EvenlyWarning
        If text is not Unicode, a column has no name, commas were read as points, or a workbook has further sheets.

    Examples
    --------
    Needs `pip install "evenly[tool]"`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "survey.csv"
    ...     _ = path.write_text("zip;age;note\\n02139;31;so, so\\n10115;;fine\\n")
    ...     read_table(path).to_dict(as_series=False)
    {'zip': ['02139', '10115'], 'age': [31, None], 'note': ['so, so', 'fine']}
    """
    wanted = parse_form(form) if form else None
    name = "standard input" if is_standard(source) else str(source)
    data = _read_bytes(source, name)
    how = Reading(name, sheet, max_expansion, len(data))
    data = decompress(data, how)
    if not data or data.isspace():
        raise TableError(f"{name} without any content", "expected a table")
    content = find_format(data, name, wanted, form_of_name(Path(source).name.lower()))
    return _read_content(data, content, how)  # type: ignore[no-any-return]  # Polars comes without its types


def _read_content(data: bytes, form: Format, how: Reading) -> Any:
    if how.sheet is not None and not form.sheets:
        raise TableError(f"a sheet, {how.sheet!r}, of {how.name}", f"{form.name} has no sheets", "leave it out")
    with as_file_error(how.name):
        frame: Any = form.read(data, how)
    if not frame.width or not frame.height:
        got = f"{how.name} with {frame.height} rows and {frame.width} columns"
        raise TableError(got, "expected at least 1 of each")
    return frame


def _read_bytes(source: str | Path, name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if is_standard(source) else Path(source).read_bytes()
    except IsADirectoryError:
        raise TableError(f"{name}, which is a folder", "expected a file") from None
    except FileNotFoundError:
        raise TableError(f"no file {name}", "expected one to read", "check the spelling") from None
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        raise TableError(
            f"{name}, which cannot be read: {getattr(error, 'strerror', error)}", "expected a file"
        ) from None


def find_format(data: bytes, name: str, wanted: Form | None, named: Form | None) -> Format:
    """Return the format of a file: what its bytes say, else what was asked for, else what its name says."""
    found = next((form for form in FORMATS.values() if form.matches(data)), None)
    promised = wanted or named
    if found is not None:
        if wanted is not None and wanted.name != found.name:
            raise TableError(f"{name}, which is {found.name}", f"the format {wanted.name} was asked for")
        return found
    what = stranger(data[:512])
    if what is not None:
        raise TableError(f"{name}, which is {what}", expected_formats(), "save the table as CSV")
    if promised is not None and not promised.format.text:
        raise TableError(f"{name}, whose first bytes are not those of {promised.name}", f"expected {promised.name}")
    if promised is not None:
        return promised.format
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    return FORMATS["jsonl" if start.startswith(b"{") else "json" if start.startswith(b"[{") else "csv"]
