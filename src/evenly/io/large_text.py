"""Delimited text that need not fit into memory: converted to Parquet part by part, with types by the whole column."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenly._support import require
from evenly.io import delimited
from evenly.io.compression import compression_of, expanding
from evenly.io.delimited import (
    Dialect,
    as_frame,
    find_dialect,
    never_closed,
    no_rows,
    read_fast,
    read_one_by_one,
    without_end,
)
from evenly.io.encodings import check_encoding
from evenly.io.errors import as_file_error
from evenly.io.formats import MAX_EXPANSION, Reading, form_of, form_of_name, parse_form
from evenly.io.types import ColumnEvidence, warn_of_commas

LARGE = 128 << 20
"""Bytes of text from which on it is not read as a whole: a table takes several times as many in memory."""
COMPRESSED = 8
"""By how much text shrinks when it is compressed, as a guess before it is read."""
PIECE = 8 << 20
"""Bytes that are read at once."""
LONGEST = 256 << 20
"""Bytes of a row: a quote that is not closed within them is taken for damage."""


def is_large_text(source: str | Path, form: str | None = None) -> bool:
    """Whether a path means a file of CSV or TSV, compressed or not, that is better not read as a whole.

    Examples
    --------
    >>> is_large_text("-"), is_large_text("survey.parquet")
    (False, False)
    """
    path = Path(source)
    found = parse_form(form) if form else form_of_name(path.name.lower())
    if found is None or found.name not in ("csv", "tsv") or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(16)
    packed = compression_of(start)
    binary = not packed and start.startswith((b"PAR1", b"ARROW1", b"PK\x03\x04"))
    return not binary and path.stat().st_size * (COMPRESSED if packed else 1) > LARGE


def writes_parts(target: str | Path, form: str | None = None) -> bool:
    """Whether a table can be written to a target part by part.

    Examples
    --------
    >>> writes_parts("full.csv"), writes_parts("full.xlsx"), writes_parts("-")
    (True, False, False)
    """
    wanted = parse_form(form) if form else form_of(target)
    return str(target) != "-" and wanted.format.in_parts


@contextmanager
def as_parquet(source: str | Path, *, form: str | None = None, max_expansion: float = MAX_EXPANSION) -> Iterator[Path]:
    """Give a file of CSV or TSV as a temporary Parquet file, for tables that do not fit into memory.

    The file is read twice, a few megabytes at a time: once to decide the type of each column, by all of its cells, and
    once to write them. Types, missing cells, warnings and errors are those of `read_table`. The Parquet file is in the
    folder of temporary files, which the variable `TMPDIR` names, and is deleted in the end.

    Examples
    --------
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.csv").write_text("zip;x\\n02139;1.5\\n")
    ...     with as_parquet(Path(folder) / "a.csv") as path:
    ...         pl.read_parquet(path).rows()
    [('02139', 1.5)]
    """
    found = parse_form(form) if form else form_of_name(Path(source).name.lower())
    delimiter = "\t" if found is not None and found.name == "tsv" else None
    with tempfile.TemporaryDirectory(prefix="evenly_") as folder:
        path = Path(folder) / "table.parquet"
        with as_file_error(str(source)):
            how = Reading(str(source), max_expansion=max_expansion, size=Path(source).stat().st_size)
            _convert(_Text(Path(source), how, delimiter), path)
        yield path


def _convert(text: _Text, path: Path) -> None:
    """Write a text as Parquet."""
    parquet, pl = require("pyarrow.parquet", "engines"), require("polars", "tool")
    evidence: list[ColumnEvidence] = []
    names, commas, n_rows = [], False, 0
    for frame, dialect in text.parts():
        own = [ColumnEvidence.of(column, decimal_comma=dialect.decimal_comma) for column in frame.get_columns()]
        evidence = [a + b for a, b in zip(evidence, own, strict=True)] if evidence else own
        names, commas, n_rows = dialect.names, dialect.decimal_comma, n_rows + frame.height
    if not n_rows or text.blank:
        raise no_rows(text.dialect())
    if commas:
        pairs = zip(names, evidence, strict=True)
        warn_of_commas([name for name, one in pairs if one.decimal_comma], text.how.name)
    writer = None
    try:
        for frame, _ in text.parts():
            columns = [one.convert(column) for one, column in zip(evidence, frame.get_columns(), strict=True)]
            table = pl.DataFrame(columns).to_arrow()
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


@dataclass
class _Text:
    """A file of delimited text, to be read several times."""

    path: Path
    how: Reading
    delimiter: str | None
    blank: bool = True
    """Whether nothing but line ends was read so far, which are no cells of a single column."""
    _encoding: str | None = None
    _dialect: Dialect | None = None

    def dialect(self) -> Dialect:
        """Return how the rows are read."""
        assert self._dialect is not None
        return self._dialect

    def parts(self) -> Iterator[tuple[Any, Dialect]]:
        """Go through all rows, in frames of texts."""
        if self._encoding is None:
            self._encoding = check_encoding(self._raw(), self.how.name)
        rest, dialect, n_lines, returns = b"", self._dialect, 0, False
        begun = False
        for piece, last in _with_last(self._utf8(self._encoding)):
            data = rest + piece
            if not begun:
                begun, returns = True, b"\r" in data and b"\n" not in data
                data = data.replace(b"\r", b"\n") if returns else data
                found, start = find_dialect(data, self.how.name, self.delimiter) if dialect is None else (dialect, 0)
                self._dialect = dialect = found
                start = start or _header_size(data, dialect)
                data, n_lines = data[start:], dialect.n_lines
            elif returns:
                data = rest + piece.replace(b"\r", b"\n")
            assert dialect is not None
            if last:
                data = without_end(data)
            self.blank = self.blank and not data.strip(b"\r\n")
            frame, used = _part(data, dialect, n_lines, last=last)
            n_lines += data.count(b"\n", 0, used)
            rest = data[used:]
            if len(rest) > LONGEST:
                raise never_closed(dialect, n_lines + 1)
            if frame.height:
                yield frame, dialect

    def _raw(self) -> Iterator[bytes]:
        """Go through the bytes of the file, decompressed."""
        with self.path.open("rb") as file:
            packed = compression_of(file.read(16))
            file.seek(0)
            content: IO[bytes] = expanding(file, packed) if packed else file
            n = 0
            while piece := content.read(max(PIECE, 0 if n else delimited.HEAD + 1)):
                n += len(piece)
                if packed:
                    self.how.check_expansion(n)
                yield piece

    def _utf8(self, encoding: str) -> Iterator[bytes]:
        """Go through the text as UTF-8 without byte order marks."""
        first = True
        pieces = (
            self._raw() if encoding == "utf-8" else (text.encode() for text in codecs.iterdecode(self._raw(), encoding))
        )
        for piece in pieces:
            while first and piece.startswith(codecs.BOM_UTF8):
                piece = piece[3:]
            first = False
            yield piece


def _with_last(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Say of each piece whether it is the last."""
    before = next(pieces, b"")
    for piece in pieces:
        yield before, False
        before = piece
    yield before, True


def _header_size(data: bytes, dialect: Dialect) -> int:
    """Return how many bytes come before the rows."""
    at = 0
    for _ in range(dialect.n_lines):
        at = data.find(b"\n", at) + 1 or len(data)
    return at


def _part(data: bytes, dialect: Dialect, n_lines: int, *, last: bool) -> tuple[Any, int]:
    """Read the rows of some text that end in it; return them, and how many bytes they took."""
    if last:
        body = data.rstrip(b"\r\n") if len(dialect.names) > 1 else data.removesuffix(b"\n").removesuffix(b"\r")
        body = body + b"\n" if data else b""
    else:
        body = data[: _whole_rows(data)]
    if body:
        frame = read_fast(body, dialect)
        if frame is not None:
            return frame, len(data) if last else len(body)
    # The careful way decides by itself where a row ends.
    text = (data if last else data[: data.rfind(b"\n") + 1]).decode()
    if not text:
        return as_frame([], dialect), 0
    rows, left = read_one_by_one(text, dialect, n_lines)
    if left is None:
        return as_frame(rows, dialect), len(data) if last else len(text.encode())
    if last:
        raise never_closed(dialect, left.line)
    return as_frame(rows, dialect), len(text[: left.n_characters].encode())


def _whole_rows(data: bytes) -> int:
    """Return where the last row ends, if every quote has a partner."""
    end = data.rfind(b"\n")
    odd = data.count(b'"', 0, end + 1) % 2
    while odd and end > 0:
        quote = data.rfind(b'"', 0, end)
        before = data.rfind(b"\n", 0, quote)
        odd = (odd + data.count(b'"', before + 1, end)) % 2 if before >= 0 else 0
        end = before
    return end + 1
