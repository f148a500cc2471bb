"""Delimited text (CSV, TSV) as a Polars frame: delimiter, header, rows and types, each of them checked; and written."""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import IO, Any, ClassVar

import numpy as np

from evenly._support import NUMBER, EvenlyWarning, TableError, require
from evenly.io.encodings import as_utf8
from evenly.io.errors import shortened
from evenly.io.formats import Format, Reading, starts_like_another
from evenly.io.types import infer_types, some_names

DELIMITERS = (",", ";", "\t", "|")
HEAD = 1 << 16
"""Bytes from which the delimiter is guessed."""
_QUOTED = re.compile(r'(?<![^,;|\t\r\n])"(?:[^"]|"")*+"(?![^,;|\t\r\n])')
"""A quoted cell, whatever the delimiter is."""
_DECLARED = re.compile(rb'"?sep=([,;|\t])"?\r?\n')
"""The line by which Excel declares a delimiter."""


@dataclass(frozen=True)
class Dialect:
    """How the rows of a file are to be read."""

    name: str
    """What messages call the file."""
    delimiter: str
    names: list[str]
    n_lines: int
    """Lines before the rows."""

    @property
    def decimal_comma(self) -> bool:
        """Whether 3,14 may be a number."""
        return self.delimiter == ";"


# --- text -----------------------------------------------------------------------------------------------------


def read_delimited(data: bytes, name: str, delimiter: str | None = None) -> Any:
    """Read delimited text (UTF-8) as a Polars frame.

    Parameters
    ----------
    data : bytes
        The text.
    name : str
        What messages call it.
    delimiter : str, optional
        By default the one of `, ; tab |` that suits the first rows best.
    """
    if b"\r" in data and b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    dialect, start = find_dialect(data, name, delimiter)
    body = without_end(data[start:])
    if len(dialect.names) > 1:
        body = body.rstrip(b"\r\n") + b"\n"  # without a final line end, Polars overlooks a surplus delimiter
    blank = b"\r\n" if len(dialect.names) == 1 else b" \r\n" if dialect.delimiter == "\t" else b" \t\r\n"
    if not body.strip(blank):
        raise no_rows(dialect)
    return infer_types(read_rows(body, dialect), decimal_comma=dialect.decimal_comma, name=name)


def find_dialect(data: bytes, name: str, delimiter: str | None = None) -> tuple[Dialect, int]:
    """Find out how a text is to be read, and where its rows begin."""
    declared = _DECLARED.match(data)
    before = declared.end() if declared else 0
    if declared and not delimiter:
        delimiter = declared.group(1).decode()
    delimiter = delimiter or sniff(data[before : before + HEAD + 1])
    names, start, n_lines = _header(data, before, name, delimiter)
    _refuse_other_delimiter(names, data[before : before + HEAD], name, delimiter)
    return Dialect(name, delimiter, names, n_lines + bool(declared)), start


def without_end(body: bytes) -> bytes:
    """Return rows without the character that ended files once."""
    return body[:-1] if body.endswith(b"\x1a") else body


def no_rows(dialect: Dialect) -> TableError:
    """Return the error of a table that ends with its header."""
    return TableError(
        f"{dialect.name} with a header of {len(dialect.names)} columns and 0 rows", "expected at least 1 row"
    )


def sniff(data: bytes) -> str:
    """Return the delimiter that gives the first rows most consistently the same number of cells.

    Examples
    --------
    >>> sniff(b"name;height\\nMeier, A;1,75\\n")
    ';'
    """
    head = data[:HEAD]
    # A quoted cell is one cell under any delimiter.
    text = _QUOTED.sub("q", head.decode("utf-8", errors="replace"))
    whole = len(head) == len(data)

    def score(delimiter: str) -> tuple[bool, float, int]:
        widths = []
        try:
            for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
                widths += [len(cells)] if cells else []
        except csv.Error:
            pass  # a cell longer than the head
        widths = widths if whole or len(widths) < 2 else widths[:-1]
        width = widths[0] if widths else 1
        return width > 1, sum(w == width for w in widths) / max(len(widths), 1), width

    return max(DELIMITERS, key=score)


def _header(data: bytes, before: int, name: str, delimiter: str) -> tuple[list[str], int, int]:
    """Return the columns' names, where the rows begin, and how many lines they take."""
    used: list[bytes] = []
    file = io.BytesIO(data)
    file.seek(before)

    def lines() -> Iterator[str]:
        for line in file:
            used.append(line)
            yield line.decode()

    try:
        with long_cells():
            cells = next((cells for cells in csv.reader(lines(), delimiter=delimiter) if cells), [])
    except csv.Error as error:
        raise TableError(f"{name}, whose header cannot be read ({error})", "expected a line of names") from None
    if not cells:
        raise TableError(f"{name} without any text", "expected a header and rows")
    start = before + sum(map(len, used))
    if start == len(data) and sum(line.count(b'"') for line in used) % 2:
        raise TableError(f"a quote in the header of {name} that is never closed", "expected quotes in pairs")
    return name_columns([tidy(cell) for cell in cells], name), start, len(used)


def tidy(name: str) -> str:
    """Return a name as it is read: without white space around it, and single spaces in it."""
    return " ".join(name.split())


def name_columns(names: list[str], table: str) -> list[str]:
    """Name the columns without a name; refuse duplicates."""
    blank = [j for j, name in enumerate(names) if not name]
    taken = set(names)
    for j in blank:
        names[j] = next(one for k in count() if (one := f"column_{j + 1}" + "_" * k) not in taken)
        taken.add(names[j])
    if blank:
        called = some_names(names[j] for j in blank)
        warnings.warn(
            f"{table}: {len(blank)} of {len(names)} columns have no name; called {called}.",
            EvenlyWarning,
            stacklevel=2,
        )
    refuse_same(names, table)
    if len(names) > 1 and all(re.match(NUMBER, name) for name in names):
        warnings.warn(
            f"{table}: the first line holds numbers only, and was read as the columns' names. "
            "If it is a row, put a line of names before it.",
            EvenlyWarning,
            stacklevel=2,
        )
    return names


def refuse_same(names: list[str], table: str) -> None:
    """Refuse columns of the same name."""
    for name, n in Counter(names).items():
        if n > 1:
            raise TableError(f"the name {n} times in {table}", "expected names to differ", "rename one", column=name)


def _refuse_other_delimiter(names: list[str], head: bytes, name: str, delimiter: str) -> None:
    """Refuse a single column that seems to hold rows with another delimiter."""
    if len(names) > 1:
        return
    header, *rows = _QUOTED.sub("q", head.decode("utf-8", errors="replace").strip()).splitlines()[:100]
    for other in DELIMITERS:
        if other != delimiter and other in header and sum(other in row for row in rows) > len(rows) / 2:
            raise TableError(
                f"{name} with one column called {shortened(names[0])!r}",
                f"it seems to be delimited by {other!r} rather than {delimiter!r}",
                "name it .csv for `,` `;` or `|` and .tsv for tabs",
            )


# --- rows -----------------------------------------------------------------------------------------------------


def read_rows(body: bytes, dialect: Dialect) -> Any:
    """Read all rows as a frame of texts."""
    frame = read_fast(body, dialect)
    return _read_carefully(body.decode(), dialect) if frame is None else frame


def read_fast(body: bytes, dialect: Dialect) -> Any:
    """Read the rows with Polars; None if it may not read every row completely."""
    pl = require("polars", "tool")
    names, delimiter = dialect.names, dialect.delimiter
    quoted = b'"' in body
    if body.count(b"\r") != body.count(b"\r\n") or (quoted and not quotes_pair_up(body, delimiter)):
        return None
    if not quoted and body.count(delimiter.encode()) != (len(names) - 1) * body.count(b"\n"):
        return None  # Polars would fill short rows up, which takes long in a wide table
    try:
        frame = pl.read_csv(
            body,
            has_header=False,
            separator=delimiter,
            quote_char='"' if quoted else None,
            schema=dict.fromkeys(names, pl.String),
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    # Polars silently fills up short rows: they show in the number of delimiters.
    within = 0
    if quoted:
        within = int(frame.select(pl.all().str.count_matches(delimiter, literal=True).sum()).sum_horizontal()[0] or 0)
    expected = frame.height * (len(names) - 1) + within
    return frame if body.count(delimiter.encode()) == expected else None


def quotes_pair_up(body: bytes, delimiter: str) -> bool:
    """Whether every quote opens a cell, closes a cell, or is one of two that stand together."""
    text = np.frombuffer(body, np.uint8)
    places = np.flatnonzero(text == ord('"'))
    if len(places) % 2:
        return False
    opening, closing = places[::2], places[1::2]
    starts = np.isin(text[opening - 1], [ord(delimiter), ord("\n")]) | (opening == 0)
    starts[1:] |= opening[1:] == closing[:-1] + 1
    ends = np.isin(text[np.minimum(closing + 1, len(text) - 1)], [ord(delimiter), ord("\n"), ord("\r")])
    ends |= closing == len(text) - 1
    ends[:-1] |= closing[:-1] + 1 == opening[1:]
    return bool(starts.all() and ends.all())


def _read_carefully(text: str, dialect: Dialect) -> Any:
    """Read the rows one by one, with quotes as Python's `csv` takes them; an error names the line of a bad row."""
    rows, left = read_one_by_one(text, dialect, dialect.n_lines)
    if left is not None:
        raise never_closed(dialect, left.line)
    return as_frame(rows, dialect)


@dataclass(frozen=True)
class Open:
    """A row that does not end: a quote was left open."""

    line: int
    """Its first line."""
    n_characters: int
    """What comes before it."""


def read_one_by_one(text: str, dialect: Dialect, n_lines: int) -> tuple[list[list[str]], Open | None]:
    """Return the rows of a text, and the last one if it does not end."""
    end = "\0"  # no cell holds one: unless it comes as a row of its own, a quote was left open
    rows: list[list[str]] = []
    lines = [*io.StringIO(text if text.endswith("\n") else f"{text}\n", newline=""), end]
    reader = csv.reader(lines, delimiter=dialect.delimiter)
    n_read = 0
    with long_cells():
        for cells in reader:
            if cells == [end]:
                return rows, None
            if cells and end in cells[-1]:
                break
            line, n_read = n_lines + n_read + 1, reader.line_num
            cells = _checked_cells(cells, dialect, line)
            rows += [cells] if cells else []
    return rows, Open(n_lines + n_read + 1, sum(map(len, lines[:n_read])))


def _checked_cells(cells: list[str], dialect: Dialect, line: int) -> list[str]:
    """Return the cells of a row; none for a blank line. Refuse a row of another width than the header."""
    n_names = len(dialect.names)
    if n_names == 1:
        cells = cells or [""]
    elif len(cells) == 1 and not cells[0].strip():
        return []
    if cells and len(cells) != n_names:
        extra = len(cells) - n_names
        hint = "put quotes around cells that hold the delimiter" if extra > 0 else "the row may be cut off"
        raise TableError(
            f"{len(cells)} cell{'s' * (len(cells) > 1)} in line {line} of {dialect.name}",
            f"its header has {n_names} columns (delimiter {dialect.delimiter!r})",
            hint if extra != 1 else f"{hint}, or name the first column, if it holds row names",
        )
    return cells


def never_closed(dialect: Dialect, line: int) -> TableError:
    """Return the error of a quote that is left open."""
    return TableError(
        f"a quote in line {line} of {dialect.name} that is never closed",
        "expected quotes in pairs",
        'a quote within a cell is written ""',
    )


def as_frame(rows: list[list[str]], dialect: Dialect) -> Any:
    """Return rows as a frame of texts."""
    pl = require("polars", "tool")
    columns = zip(*rows, strict=True) if rows else ((),) * len(dialect.names)
    return pl.DataFrame(
        [pl.Series(one, list(cells), dtype=pl.String) for one, cells in zip(dialect.names, columns, strict=True)]
    )


@contextmanager
def long_cells() -> Iterator[None]:
    """Let Python's reader take cells of any length, for the time being."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# --- formats --------------------------------------------------------------------------------------------------


class Csv(Format):
    """Text delimited by commas; files by others may have `;`, tabs or `|`."""

    name, text = "csv", True
    extensions: ClassVar[tuple[str, ...]] = (".csv",)
    delimiter, given = ",", False

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""
        return read_delimited(as_utf8(data, how.name), how.name, self.delimiter if self.given else None)

    def check(self, frame: Any) -> Any:
        """Refuse what a line of text cannot hold."""
        pl = require("polars", "tool")
        self.refuse(frame, (pl.Binary, pl.Object, pl.List, pl.Array, pl.Struct, pl.Duration))
        refuse_same([tidy(name) for name in frame.columns if tidy(name)], "the table, but for white space")
        for column in frame.get_columns():
            is_text = isinstance(column.dtype, (pl.String, pl.Categorical, pl.Enum))
            zeros = column.cast(pl.String).str.contains("\0", literal=True) if is_text else column.is_null() & False
            if zeros.any() or "\0" in column.name:
                where = f"row {zeros.arg_max() + 1}" if zeros.any() else "its name"
                raise TableError(
                    f"a zero byte in {where}", f"{self.name} cannot hold it", "write parquet", column=column.name
                )
        return frame

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write a header and rows."""
        self.write_parts(iter([frame]), file)

    def write_parts(self, frames: Iterator[Any], file: IO[bytes]) -> None:
        """Write the header of the first frame, and the rows of all."""
        for number, frame in enumerate(frames):
            if not number:
                file.write(self._header(frame.columns).encode())
            # A blank line is a missing cell of a single column, but no row if nothing else follows.
            how = {"null_value": '""'} if frame.width == 1 and frame.null_count().row(0)[0] == frame.height else {}
            frame.write_csv(file, separator=self.delimiter, include_header=False, **how)

    def _header(self, names: list[str]) -> str:
        """Return the line of names, quoted where another delimiter or another format might be seen in them."""
        cells = [
            f'"{name.replace(chr(34), chr(34) * 2)}"'
            if re.search(r'[,;|\t"\r\n]', name) or (not j and starts_like_another(name))
            else name
            for j, name in enumerate(names)
        ]
        declared = f"sep={self.delimiter}\n" if _DECLARED.match(f"{cells[0]}\n".encode()) and len(names) == 1 else ""
        return declared + self.delimiter.join(cells) + "\n" if names else "\n"


class Tsv(Csv):
    """Text delimited by tabs."""

    name, extensions = "tsv", (".tsv", ".tab")
    delimiter, given = "\t", True
