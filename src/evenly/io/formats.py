"""Tables in files of any usual format: read with every type settled, written all or nothing."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import stat
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from evenly._support import EvenlyWarning, TableError, replacing, require
from evenly.io.delimited import as_utf8, read_delimited

if TYPE_CHECKING:
    import polars

FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "arrows": (".arrows",),
}
"""The formats by name, with the extensions that mean them; `arrow` is Arrow's file format, `arrows` its stream."""
TEXT_FORMATS = ("csv", "tsv", "jsonl")
COMPRESSIONS = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\0", "zst": b"\x28\xb5\x2f\xfd"}
"""What a text format may be compressed with, by extension, and the bytes that such a file begins with."""

_BINARY = {"parquet": b"PAR1", "arrow": b"ARROW1", "arrows": b"\xff\xff\xff\xff"}
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
_STANDARD = ("-", "/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1")


class Form(NamedTuple):
    """A format, and what it is compressed with."""

    name: str
    compression: str = ""

    def __str__(self) -> str:
        return f"{self.name}.{self.compression}" if self.compression else self.name


def parse_form(form: str) -> Form:
    """Read a format as people write it: its name or an extension of it, with that of a compression.

    Examples
    --------
    >>> parse_form("csv.gz")
    Form(name='csv', compression='gz')
    >>> parse_form("excel")
    Traceback (most recent call last):
    evenly.TableError: got the format 'excel', but expected one of csv, tsv, jsonl, parquet, arrow, arrows...
    """
    found = _form_of_name("." + form.lower().removeprefix("."))
    if found is None:
        raise TableError(f"the format {form!r}", _expected())
    return _checked(found)


def form_of(path: str | Path) -> Form:
    """Return the format that a file's name promises; `-` and devices are CSV.

    Examples
    --------
    >>> str(form_of("survey.ndjson.gz"))
    'jsonl.gz'
    >>> form_of("survey.xlsx")
    Traceback (most recent call last):
    evenly.TableError: got the name 'survey.xlsx', but expected one of csv, tsv, jsonl, parquet, arrow, ...
    """
    found = _form_of_name(Path(path).name.lower())
    if found is not None:
        return _checked(found)
    if _is_standard(path) or _is_special(Path(path)):
        return Form("csv")
    raise TableError(
        f"the name {Path(path).name!r}", _expected(), "give it one of these extensions, or name the format"
    )


def _form_of_name(name: str) -> Form | None:
    compression = next((one for one in COMPRESSIONS if name.endswith(f".{one}")), "")
    name = name.removesuffix(f".{compression}")
    for form, extensions in FORMATS.items():
        if name.endswith((f".{form}", *extensions)):
            return Form(form, compression)
    return None


def _checked(form: Form) -> Form:
    if form.compression and form.name not in TEXT_FORMATS:
        raise TableError(f"the format {str(form)!r}", f"{form.name} files are compressed inside", f"use .{form.name}")
    return form


def _expected() -> str:
    return f"expected one of {', '.join(FORMATS)}, or of {', '.join(TEXT_FORMATS)} with .{', .'.join(COMPRESSIONS)}"


def _is_standard(path: str | Path) -> bool:
    return str(path) in _STANDARD


def _is_special(path: Path) -> bool:
    """Whether a path is a pipe, a device or the like, which cannot be replaced by another file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def _clear(what: str, expected: str = "expected a whole and sound file") -> Iterator[None]:
    """Turn whatever goes wrong with a file into one clear error."""
    pl = require("polars", "tool")
    damage = (EOFError, ValueError, zlib.error, lzma.LZMAError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
    try:
        yield
    except TableError:
        raise
    except (OSError, *damage) as error:
        message = getattr(error, "strerror", None) or str(error)
        raise TableError(f"{what}: {' '.join(message.partition(chr(10))[0].split()).rstrip('.')}", expected) from error


# --- reading --------------------------------------------------------------------------------------------------


def read_table(source: str | Path, *, form: str | None = None) -> polars.DataFrame:
    """Read a table from a file, or from standard input.

    CSV, TSV, JSON lines, Parquet and Arrow (files, which Feather's are, and streams); the texts also compressed by
    gzip, bzip2, xz or zstd. What the file's bytes are counts more than its name. In delimited text the
    delimiter is found among `, ; tab |`, and a column is made of numbers only if every cell is one: postal codes with
    leading zeros, whole numbers beyond 64 bits, dates and mixed columns stay text. Empty cells are missing; other
    markers of missing cells (NA, ?, -999) are left to the schema.

    Parameters
    ----------
    source : str or Path
        A path; `-` is standard input.
    form : str, optional
        One of `evenly.io.formats.FORMATS`, where the name does not tell.

    Raises
    ------
    TableError
        If there is no such file, or it is not a whole table; the message names the line or the column.

    Warns
    -----
    EvenlyWarning
        If the text is not Unicode, a column has no name, or decimal commas were read as points.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "survey.csv"
    ...     _ = path.write_text("zip;age;note\\n02139;31;so, so\\n10115;;fine\\n")
    ...     read_table(path).to_dict(as_series=False)
    {'zip': ['02139', '10115'], 'age': [31, None], 'note': ['so, so', 'fine']}
    """
    pl = require("polars", "tool")
    wanted = parse_form(form) if form else None
    name = "standard input" if _is_standard(source) else str(source)
    data = _decompress(_read_bytes(source, name), name)
    if not data or data.isspace():
        raise TableError(f"{name} without any content", "expected a table")
    found = _form_of_content(data, name, wanted, _form_of_name(Path(source).name.lower()))
    with _clear(name):
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
        return sys.stdin.buffer.read() if _is_standard(source) else Path(source).read_bytes()
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
            with _clear(f"{name}, compressed by {compression}"):
                return _DECOMPRESS[compression](data)
    return data


def _decompress_zstd(data: bytes) -> bytes:
    # Before Python 3.14 only Polars knows zstd, and only as a reader of text: so it reads lines, without delimiters.
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
            raise TableError(f"{name}, which is {what}", _expected(), "save the table as CSV")
    found = next((form for form, magic in _BINARY.items() if data.startswith(magic)), None)
    promised = wanted or named
    if found is not None:
        if wanted is not None and wanted.name != found:
            raise TableError(f"{name}, which is {found}", f"the format {wanted.name} was asked for")
        return found
    if promised is not None and promised.name in _BINARY:
        raise TableError(f"{name}, which does not begin as {promised.name} does", f"expected {promised.name}")
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


# --- writing --------------------------------------------------------------------------------------------------


def check_writable(target: str | Path, *, form: str | None = None) -> None:
    """Refuse, before any long work, a target that `write_table` could not write to.

    Examples
    --------
    >>> check_writable("no_such_format.xlsx")
    Traceback (most recent call last):
    evenly.TableError: got the name 'no_such_format.xlsx', but expected one of csv, tsv, ...
    """
    parse_form(form) if form else form_of(target)
    path = Path(target)
    if _is_standard(target):
        return
    if path.is_dir():
        raise TableError(f"{target}, which is a folder", "expected a file to write")
    if (path.exists() or _is_special(path)) and not os.access(path, os.W_OK):
        raise TableError(f"{target}, which may not be written", "expected a file to write")
    if _is_special(path):
        return
    folder = next(parent for parent in _real(path).parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TableError(f"{target}: {error.strerror} in {folder}", "expected a folder to write to") from None


def write_table(table: Any, target: str | Path, *, form: str | None = None) -> None:
    """Write a table to a file, all or nothing, or to standard output.

    A reader sees the old file or the new one, never half of it; whatever goes wrong, the old one stays. Delimited
    text is written with `,` or tabs, in UTF-8, and numbers so that they are read back to the last bit.

    Parameters
    ----------
    table : dataframe
        Polars, pandas or Arrow.
    target : str or Path
        A path; `-` is standard output. Pipes and devices are written to as they are.
    form : str, optional
        One of `evenly.io.formats.FORMATS`, such as `parquet` or `csv.gz`; by default what the name says, and CSV for
        standard output.

    Examples
    --------
    >>> import polars as pl
    >>> write_table(pl.DataFrame({"name": ["Ann", "Bo, Jr."], "height": [1.7, None]}), "-")
    name,height
    Ann,1.7
    "Bo, Jr.",
    """
    wanted = parse_form(form) if form else form_of(target)
    frame = _writable(_as_polars(table), wanted)
    path = Path(target)
    if _is_standard(target):
        _write_standard(frame, wanted)
        return
    check_writable(target, form=form)
    with _clear(f"{target}, which could not be written", "expected room and the right to; an old file is unchanged"):
        if _is_special(path):
            with path.open("wb") as file:
                _write(frame, file, wanted)
            return
        with replacing(_real(path)) as temporary, temporary.open("wb") as file:
            _write(frame, file, wanted)


def write_parts(tables: Iterable[Any], target: str | Path, *, form: str | None = None) -> None:
    """Write a table that comes part by part to a file, all or nothing; no more than a part is in memory.

    Parameters
    ----------
    tables : iterable of dataframes
        The parts, from top to bottom: of the same columns, and at least one.
    target, form
        As in `write_table`, but for standard output and for text that is compressed by zstd.

    Examples
    --------
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parts((pl.DataFrame({"x": [k, None]}) for k in range(2)), f"{folder}/all.csv")
    ...     (Path(folder) / "all.csv").read_text().split()
    ['x', '0', '1']
    """
    wanted = parse_form(form) if form else form_of(target)
    if _is_standard(target) or wanted.compression == "zst":
        got = "standard output" if _is_standard(target) else f"the format {str(wanted)!r}"
        raise TableError(f"{got} for a table part by part", "expected a file", "write .parquet, .csv or .csv.gz")
    check_writable(target, form=form)
    frames = (_writable(_as_polars(table), wanted) for table in tables)
    with (
        _clear(f"{target}, which could not be written", "expected room and the right to; an old file is unchanged"),
        replacing(_real(Path(target))) as temporary,
        temporary.open("wb") as file,
        _compressing(file, wanted.compression) as out,
    ):
        _WRITE_PARTS[wanted.name](frames, out)


def _write_texts(frames: Iterator[Any], file: IO[bytes], form: str) -> None:
    for number, frame in enumerate(frames):
        header = {"include_header": not number} if form != "jsonl" else {}
        _WRITE[form](frame, file, **header)


def _write_binaries(frames: Iterator[Any], file: IO[bytes], writer: Callable[..., Any]) -> None:
    first = next(frames).to_arrow()
    with writer(file, first.schema) as out:
        for part in chain([first], (frame.to_arrow() for frame in frames)):
            out.write_table(part)


_WRITE_PARTS: dict[str, Callable[[Iterator[Any], IO[bytes]], None]] = {
    **{form: partial(_write_texts, form=form) for form in TEXT_FORMATS},
    "parquet": lambda frames, file: _write_binaries(frames, file, require("pyarrow.parquet", "engines").ParquetWriter),
    "arrow": lambda frames, file: _write_binaries(frames, file, require("pyarrow", "engines").ipc.new_file),
    "arrows": lambda frames, file: _write_binaries(frames, file, require("pyarrow", "engines").ipc.new_stream),
}


def _real(path: Path) -> Path:
    """Follow links, so that the file behind one is replaced, and not the link."""
    return Path(os.path.realpath(path))


def _as_polars(table: Any) -> Any:
    pl = require("polars", "tool")
    if isinstance(table, pl.DataFrame):
        return table
    try:
        return pl.DataFrame(table)
    except (TypeError, ValueError, ImportError, pl.exceptions.PolarsError) as error:
        raise TableError(f"a table of type {type(table).__name__}: {error}", "expected a dataframe") from None


def _writable(frame: Any, form: Form) -> Any:
    """Refuse what a text format cannot hold; NaN becomes a missing cell there."""
    pl = require("polars", "tool")
    if form.name not in TEXT_FORMATS:
        return frame
    impossible: tuple[Any, ...] = (pl.Binary, pl.Object)
    if form.name != "jsonl":
        impossible += (pl.List, pl.Array, pl.Struct, pl.Duration)
    for column in frame.get_columns():
        if column.dtype.base_type() in impossible:
            raise TableError(
                f"cells of type {column.dtype}", f"{form.name} holds none", "write parquet", column=column.name
            )
        if form.name == "jsonl" and column.dtype.is_float() and column.is_infinite().any():
            warnings.warn(
                f"Column {column.name!r}: {column.is_infinite().sum()} infinite cells are written as missing: "
                "JSON has no infinity.",
                EvenlyWarning,
                stacklevel=3,
            )
    return frame.with_columns(pl.selectors.float().fill_nan(None))


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
            while left:  # unbuffered, as under `python -u`, it takes a part at a time
                left = left[binary.write(left) :]
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at its end, and would complain about the closed pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise TableError("a closed pipe as standard output", "expected it to take the whole table") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"standard output: {error}", "expected it to take the table") from None


def _write(frame: Any, file: IO[bytes], form: Form) -> None:
    if form.compression == "zst":
        _write_zstd(frame, file, form)
        return
    with _compressing(file, form.compression) as out:
        _WRITE[form.name](frame, out)


def _write_zstd(frame: Any, file: IO[bytes], form: Form) -> None:
    try:
        _WRITE[form.name](frame, file, compression="zstd")
    except TypeError:
        polars_version = require("polars", "tool").__version__
        raise TableError(f"the format {str(form)!r}", f"Polars {polars_version} cannot write zstd", "use .gz") from None


@contextmanager
def _compressing(file: IO[bytes], compression: str) -> Iterator[Any]:
    if not compression:
        yield file
    elif compression == "gz":  # without a name and a time: same table, same bytes
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
            yield out
    else:
        with (bz2.BZ2File if compression == "bz2" else lzma.LZMAFile)(file, "wb") as out:
            yield out


_WRITE: dict[str, Callable[..., Any]] = {
    "csv": lambda frame, file, **how: frame.write_csv(file, **how),
    "tsv": lambda frame, file, **how: frame.write_csv(file, separator="\t", **how),
    "jsonl": lambda frame, file, **how: frame.write_ndjson(file, **how),
    "parquet": lambda frame, file: frame.write_parquet(file),
    "arrow": lambda frame, file: frame.write_ipc(file),
    "arrows": lambda frame, file: frame.write_ipc_stream(file),
}
