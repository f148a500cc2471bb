"""Tables read from files of any usual format, with a type for every column."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly._support import TableError, require
from evenly.io.delimited import as_utf8, read_delimited
from evenly.io.errors import as_file_error
from evenly.io.formats import BINARY, COMPRESSIONS, Form, expected_formats, form_of_name, is_standard, parse_form

if TYPE_CHECKING:
    import polars

_STRANGERS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
    b"FEA1": "a Feather file of the first version",
    b"%PDF": "a PDF file",
    b"SQLite format 3": "a SQLite database",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"<?xml": "an XML file",
}


def read_table(source: str | Path, *, form: str | None = None) -> polars.DataFrame:
    """Read a table from a file, or from standard input.

    Reads CSV, TSV, JSON lines, Parquet and Arrow (files, such as Feather, and streams); the text formats also
    compressed by gzip, bzip2, xz or zstd. A file's content counts more than its name. In delimited text the delimiter
    is guessed among `, ; tab |`, and a column is read as numbers only if every cell is one: postal codes with leading
    zeros, whole numbers beyond 64 bits, dates and mixed columns stay text. Empty cells are missing; other markers of
    missing cells (NA, ?, -999) are left to the schema.

    Parameters
    ----------
    source : str or Path
        A path; `-` is standard input.
    form : str, optional
        One of `evenly.io.formats.FORMATS`, if the name does not say.

    Raises
    ------
    TableError
        If there is no such file, or it is damaged; the message names the line or the column.

    Warns
    -----
    EvenlyWarning
        If the text is not Unicode, a column has no name, or decimal commas were read as points.

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
    pl = require("polars", "tool")
    wanted = parse_form(form) if form else None
    name = "standard input" if is_standard(source) else str(source)
    data = _decompress(_read_bytes(source, name), name)
    if not data or data.isspace():
        raise TableError(f"{name} without any content", "expected a table")
    found = _form_of_content(data, name, wanted, form_of_name(Path(source).name.lower()))
    with as_file_error(name):
        if found in ("csv", "tsv"):
            frame = read_delimited(as_utf8(data, name), name, "\t" if found == "tsv" else None)
        elif found == "jsonl":
            frame = _read_json_lines(as_utf8(data, name), name)
        else:
            frame = {"parquet": pl.read_parquet, "arrow": pl.read_ipc, "arrows": pl.read_ipc_stream}[found](data)
    if not frame.width or not frame.height:
        raise TableError(f"{name} with {frame.height} rows and {frame.width} columns", "expected at least 1 of each")
    return frame  # type: ignore[no-any-return]  # Polars comes through `require`, without its types


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


def _decompress(data: bytes, name: str) -> bytes:
    for compression, magic in COMPRESSIONS.items():
        if data.startswith(magic):
            with as_file_error(f"{name}, compressed by {compression}"):
                return _DECOMPRESS[compression](data)
    return data


def _decompress_zstd(data: bytes) -> bytes:
    # Before Python 3.14 only Polars reads zstd, and only as CSV: a delimiter that never occurs makes it read lines.
    pl = require("polars", "tool")
    schema = {"line": pl.String}
    lines = pl.read_csv(data, has_header=False, separator="\x1f", quote_char=None, schema=schema)
    return str(lines["line"].fill_null("").str.join("\n").item() + "\n").encode()


_DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zst": _decompress_zstd,
}


def _form_of_content(data: bytes, name: str, wanted: Form | None, named: Form | None) -> str:
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    for magic, what in _STRANGERS.items():
        if start[: len(magic)].lower() == magic.lower():
            raise TableError(f"{name}, which is {what}", expected_formats(), "save the table as CSV")
    found = next((form for form, magic in BINARY.items() if data.startswith(magic)), None)
    promised = wanted or named
    if found is not None:
        if wanted is not None and wanted.name != found:
            raise TableError(f"{name}, which is {found}", f"the format {wanted.name} was asked for")
        return found
    if promised is not None and promised.name in BINARY:
        raise TableError(f"{name}, whose first bytes are not those of {promised.name}", f"expected {promised.name}")
    if promised is not None:
        return promised.name
    return "jsonl" if start.startswith(b"{") else "csv"


def _read_json_lines(data: bytes, name: str) -> Any:
    pl = require("polars", "tool")
    try:
        json.loads(next(line for line in io.BytesIO(data) if line.strip()), object_pairs_hook=_differing)
        frame = pl.read_ndjson(data, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, json.JSONDecodeError, RecursionError):
        frame = _read_json_carefully(data, name)
    wide = [pl.Int128] if hasattr(pl, "Int128") else []
    return frame.with_columns(pl.col(pl.Null, pl.UInt64, *wide).cast(pl.String))


def _read_json_carefully(data: bytes, name: str) -> Any:
    """Read line by line: mixed columns become text, and an error names its line."""
    pl = require("polars", "tool")
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_differing)
        except (json.JSONDecodeError, RecursionError) as error:
            raise TableError(f"line {number} of {name}: {error}", "expected a JSON object in every line") from None
        if not isinstance(row, dict):
            raise TableError(f"line {number} of {name}, which is {line[:30]!r}", "expected a JSON object in every line")
        rows.append(row)
    names = list(dict.fromkeys(key for row in rows for key in row))
    return pl.DataFrame({one: _json_column([row.get(one) for row in rows]) for one in names})


def _differing(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = next(key for j, (key, _) in enumerate(pairs) if key in dict(pairs[:j]))
        raise TableError("the name more than once in a line", "expected names to differ", "rename one", column=twice)
    return row


def _json_column(cells: list[Any]) -> Any:
    pl = require("polars", "tool")
    types = {type(cell) for cell in cells if cell is not None}
    whole = all(-(2**63) <= cell < 2**63 for cell in cells if type(cell) is int)
    if types <= {int, float} and whole:
        return pl.Series(cells, dtype=pl.Float64 if float in types else pl.Int64, strict=False)
    if types == {bool}:
        return pl.Series(cells)
    return pl.Series(
        [one if one is None or isinstance(one, str) else json.dumps(one) for one in cells], dtype=pl.String
    )
