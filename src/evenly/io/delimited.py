"""Delimited text (CSV, TSV) as a Polars frame: encoding, delimiter, header, rows and types, each of them checked."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np

from evenly._support import NUMBER, EvenlyWarning, TableError, require

DELIMITERS = (",", ";", "\t", "|")
HEAD = 1 << 16
"""Bytes from which the delimiter is guessed."""

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_CONTROL = bytes({*range(32)} - set(b"\t\n\v\f\r\x1a"))
_INTEGER = r"^[+-]?(?:0|[1-9][0-9]*)$"
_INFINITE = r"^(?i)[+-]?inf(?:inity)?$"
_NAN = r"^(?i)[+-]?nan$"
_COMMA_NUMBER = r"^[+-]?(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,[0-9]+)?(?:[eE][+-]?[0-9]+)?$"


# --- text ---------------------------------------------------------------------------------------------------


def as_utf8(data: bytes, name: str) -> bytes:
    """Return text as UTF-8 without a byte order mark, whatever its encoding was; refuse data that is not text.

    Examples
    --------
    >>> as_utf8("weight\\n".encode("utf-16"), "a.csv")
    b'weight\\n'
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                text = data.removeprefix(mark) if encoding == "utf-8" else data.decode(encoding).encode()
            except UnicodeError as error:
                raise TableError(
                    f"{name}, which is damaged: {error}", f"its first bytes declare {encoding.upper()}"
                ) from None
            return as_utf8(text, name) if not text.startswith(mark) else text
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        hint = "if it is UTF-16 text without a byte order mark, or has stray zero bytes, save it as UTF-8"
        raise TableError(f"{name} with a zero byte in line {line}", "expected a table as text", hint)
    if data.isascii():
        return data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _from_windows(data, name, error.start)
    return data


def _from_windows(data: bytes, name: str, start: int) -> bytes:
    line = data.count(b"\n", 0, start) + 1
    where = f"byte {data[start]:#04x} in line {line}"
    try:
        if len(data.translate(None, _CONTROL)) < len(data):
            raise UnicodeError
        text = data.decode("cp1252")
    except UnicodeError:
        raise TableError(
            f"{name} with {where}", "expected a table as text (UTF-8, UTF-16 or Windows-1252)", "save it as UTF-8"
        ) from None
    warnings.warn(
        f"{name}: {where} is not UTF-8; the file was read as Windows-1252 (Latin-1). "
        "If letters look wrong, save it as UTF-8.",
        EvenlyWarning,
        stacklevel=2,
    )
    return text.encode()


# --- delimited text -------------------------------------------------------------------------------------------


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
    declared = re.match(rb'"?sep=([,;|\t])"?\r?\n', data)  # the line by which Excel declares a delimiter
    before = 0
    if declared:
        delimiter, data, before = delimiter or declared.group(1).decode(), data[declared.end() :], 1
    delimiter = delimiter or sniff(data)
    names, start, n_lines = _header(data, name, delimiter)
    body = data[start:]
    if len(names) > 1:
        body = body.rstrip(b"\r\n\x1a") + b"\n"  # without a final line end, Polars overlooks a surplus delimiter
    if not body or body.isspace():
        raise TableError(f"{name} with a header of {len(names)} columns and 0 rows", "expected at least 1 row")
    _refuse_other_delimiter(names, body, name, delimiter)
    frame = _read_fast(body, names, delimiter)
    if frame is None:
        frame = _read_carefully(body.decode(), names, name, delimiter, before + n_lines)
    return infer_types(frame, decimal_comma=delimiter == ";", name=name)


def sniff(data: bytes) -> str:
    """Return the delimiter that gives the first rows most consistently the same number of cells.

    Examples
    --------
    >>> sniff(b"name;height\\nMeier, A;1,75\\n")
    ';'
    """
    head = data[:HEAD]
    text = head.decode("utf-8", errors="replace")
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


def _header(data: bytes, name: str, delimiter: str) -> tuple[list[str], int, int]:
    """Return the columns' names, where the rows begin, and how many lines came before."""
    used: list[bytes] = []

    def lines() -> Iterator[str]:
        for line in io.BytesIO(data):
            used.append(line)
            yield line.decode()

    try:
        cells = next((cells for cells in csv.reader(lines(), delimiter=delimiter) if cells), [])
    except csv.Error as error:
        raise TableError(f"{name}, whose header cannot be read ({error})", "expected a line of names") from None
    if not cells:
        raise TableError(f"{name} without any text", "expected a header and rows")
    start = sum(map(len, used))
    if start == len(data) and sum(line.count(b'"') for line in used) % 2:
        raise TableError(f"a quote in the header of {name} that is never closed", "expected quotes in pairs")
    return _names([" ".join(cell.split()) for cell in cells], name), start, len(used)


def _names(names: list[str], table: str) -> list[str]:
    """Name the columns without a name; refuse duplicates."""
    blank = [j for j, name in enumerate(names) if not name]
    for j in blank:
        names[j] = next(one for k in count() if (one := f"column_{j + 1}" + "_" * k) not in names)
    if blank:
        warnings.warn(
            f"{table}: {len(blank)} of {len(names)} columns have no name; called {_some(names[j] for j in blank)}.",
            EvenlyWarning,
            stacklevel=2,
        )
    for name, n in Counter(names).items():
        if n > 1:
            raise TableError(f"the name {n} times in {table}", "expected names to differ", "rename one", column=name)
    if len(names) > 1 and all(re.match(NUMBER, name) for name in names):
        warnings.warn(
            f"{table}: the first line holds numbers only, and was read as the columns' names. "
            "If it is a row, put a line of names before it.",
            EvenlyWarning,
            stacklevel=2,
        )
    return names


def _some(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:10]) + (", ..." if len(shown) > 10 else "")


def _refuse_other_delimiter(names: list[str], body: bytes, name: str, delimiter: str) -> None:
    """Refuse a single column that seems to hold rows with another delimiter."""
    if len(names) > 1:
        return
    rows = body[:HEAD].decode("utf-8", errors="replace").splitlines()[:100]
    for other in DELIMITERS:
        if other != delimiter and other in names[0] and sum(other in row for row in rows) > len(rows) / 2:
            raise TableError(
                f"{name} with one column called {names[0]!r}",
                f"it seems to be delimited by {other!r} rather than {delimiter!r}",
                "name it .csv for `,` `;` or `|` and .tsv for tabs",
            )


# --- rows -----------------------------------------------------------------------------------------------------


def _read_fast(body: bytes, names: list[str], delimiter: str) -> Any:
    """Read the rows with Polars; None if it may not read every row completely."""
    pl = require("polars", "tool")
    quoted = b'"' in body
    if body.count(b"\r") != body.count(b"\r\n") or (quoted and not _quotes_pair_up(body, delimiter)):
        return None
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


def _quotes_pair_up(body: bytes, delimiter: str) -> bool:
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


def _read_carefully(text: str, names: list[str], name: str, delimiter: str, n_lines: int) -> Any:
    """Read the rows one by one, with quotes as Python's `csv` takes them; an error names the line of a bad row."""
    pl = require("polars", "tool")
    end = "\0"  # no cell holds one: unless it comes as a row of its own, a quote was left open
    rows: list[list[str]] = []
    text += end if text.endswith("\n") else f"\n{end}"
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    line = n_lines + 1
    try:
        for cells in reader:
            if cells == [end]:
                break
            if cells and end in cells[-1]:
                raise csv.Error
            if len(names) == 1:
                cells = cells or [""]
            elif len(cells) == 1 and not cells[0].strip():
                cells = []
            if cells and len(cells) != len(names):
                extra = len(cells) - len(names)
                hint = "put quotes around cells that hold the delimiter" if extra > 0 else "the row may be cut off"
                raise TableError(
                    f"{len(cells)} cell{'s' * (len(cells) > 1)} in line {line} of {name}",
                    f"its header has {len(names)} columns (delimiter {delimiter!r})",
                    hint if extra != 1 else f"{hint}, or name the first column, if it holds row names",
                )
            rows += [cells] if cells else []
            line = n_lines + reader.line_num + 1
    except csv.Error:
        raise TableError(
            f"a quote in line {line} of {name} that is never closed",
            "expected quotes in pairs",
            'a quote within a cell is written ""',
        ) from None
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return pl.DataFrame(
        [pl.Series(one, list(cells), dtype=pl.String) for one, cells in zip(names, columns, strict=True)]
    )


# --- types ----------------------------------------------------------------------------------------------------


def infer_types(frame: Any, *, decimal_comma: bool = False, name: str = "the table") -> Any:
    """Turn text columns whose every cell is a number into numbers; other columns stay as they are.

    A column with a leading zero, or with whole numbers beyond 64 bits, stays text. Empty texts are missing cells.

    Parameters
    ----------
    frame : polars.DataFrame
        The table.
    decimal_comma : bool
        Whether `3,14` is a number too.
    name : str
        What messages call the table.

    Examples
    --------
    >>> import polars as pl
    >>> infer_types(pl.DataFrame({"zip": ["02139", "10115"], "n": ["3", ""], "x": ["1e3", "-.5"]})).dtypes
    [String, Int64, Float64]
    """
    pl = require("polars", "tool")
    columns, commas = [], []
    for column in frame.get_columns():
        if column.dtype == pl.String:
            column = _without(column, column == "")
            with_points = _with_points(column) if decimal_comma else None
            if with_points is not None:
                commas.append(column.name)
                column = with_points
            column = _as_numbers(column)
        columns.append(column)
    if commas:
        warnings.warn(
            f"{name}: numbers with a decimal comma in {_some(commas)} were read as numbers (3,14 as 3.14); "
            "they are written with a point.",
            EvenlyWarning,
            stacklevel=2,
        )
    return pl.DataFrame(columns)


def _without(column: Any, gone: Any) -> Any:
    pl = require("polars", "tool")
    return pl.select(pl.when(~gone).then(column).alias(column.name)).to_series() if gone.any() else column


def _as_numbers(column: Any) -> Any:
    """Return a text column as whole numbers, or as numbers, if all its cells are; otherwise unchanged."""
    pl = require("polars", "tool")
    words = f"{NUMBER}|{_INFINITE}|{_NAN}"
    first = column.drop_nulls().head(100).str.strip_chars()
    if not len(first) or not first.str.contains(words).all():
        return column
    maybe_whole = first.str.contains(f"{_INTEGER}|{_NAN}").all()
    if maybe_whole:
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count() == column.null_count() and (whole.cast(pl.String) == column).all():
            return whole  # the usual case, without regular expressions
    cells = column.str.strip_chars()
    if not cells.str.contains(NUMBER).all():
        if not cells.str.contains(words).all():
            return column
        cells = _without(cells, cells.str.contains(_NAN))
    if maybe_whole:
        whole = cells.cast(pl.Int64, strict=False)
        if whole.null_count() == cells.null_count() < len(cells):
            return whole
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count() > cells.null_count() or not numbers.is_finite().any():
        return column
    # Beyond 2^53 double precision drops digits of whole numbers, and beyond 1.8e308 it knows only infinity.
    large = cells.filter(numbers.abs() >= 2.0**53)
    made_infinite = numbers.is_infinite().sum() > large.str.contains(_INFINITE).sum()
    return column if made_infinite or large.str.contains(_INTEGER).any() else numbers


def _with_points(column: Any) -> Any:
    """Return a column of numbers with decimal commas as one with points; None for any other column.

    Cells without a digit, such as NA, may be among them.
    """
    cells = column.str.strip_chars()
    digits = cells.str.contains("[0-9]").fill_null(False)
    some = cells.filter(digits)
    if not len(some) or not some.head(100).str.contains(_COMMA_NUMBER).all():
        return None
    if not some.str.contains(",", literal=True).any() or not some.str.contains(_COMMA_NUMBER).all():
        return None
    points = cells.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return points.zip_with(digits, column)
