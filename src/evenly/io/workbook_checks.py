"""What a workbook claims, compared with its size: readers make room for every cell up to the farthest one."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO

from evenly._support import TableError
from evenly.io.formats import Reading

_PIECE = 1 << 20
_CELL = 32
"""Bytes that a reader takes for a cell."""
_MOST_ROWS = 1_048_576
_PLACE = re.compile(rb""" r=["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_BEYOND = re.compile(rb""" r=["'](?:[A-Za-z]{4}|[A-Za-z]{0,3}[0-9]{8})""")
_COUNT = re.compile(rb"""ount=["']([0-9]{1,30})["']""")
_TAG = re.compile(rb"<table:(table-row|table-cell|covered-table-cell|table(?=[\s>]))([^>]*)>")
_REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated=["']([0-9]{1,18})["']""")


def check_workbook(data: bytes, how: Reading) -> None:
    """Refuse a damaged archive, and one whose content or whose farthest cell is out of proportion to it."""
    expanded = 0
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for part in archive.infolist():
                pieces = []
                for piece in _expand(archive, part):
                    pieces.append(piece)
                    expanded += len(piece)
                    how.check_expansion(expanded)
                if part.filename.startswith("xl/worksheets/"):
                    _check_sheet(b"".join(pieces), how)
                elif part.filename == "xl/sharedStrings.xml":
                    _check_strings(b"".join(pieces), how)
                elif part.filename == "content.xml":
                    _check_open_document(b"".join(pieces), how)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{how.name}, a damaged or locked archive ({error})", "expected a whole workbook") from None


def _expand(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(part) as file:
        while piece := file.read(_PIECE):
            yield piece


def _check_sheet(text: bytes, how: Reading) -> None:
    """Refuse a sheet of Excel with a cell far away from all others."""
    if _BEYOND.search(text):
        raise ValueError("a cell beyond the end of a sheet")
    letters = next((n for n in (3, 2) if re.search(rb" r=.[A-Za-z]{%d}[0-9]" % n, text)), 1)
    digits = next((n for n in range(7, 1, -1) if re.search(rb" r=.[A-Za-z]{0,3}[0-9]{%d}" % n, text)), 1)
    try:
        how.check_expansion(26**letters * 10**digits * _CELL)
    except TableError:  # that was an upper bound
        names, first, last = set(), _MOST_ROWS, 1
        for match in _PLACE.finditer(text):
            names.add(match[1])
            row = int(match[2])
            first, last = min(first, row), max(last, row)
        columns = [_column(name) for name in names] or [1]
        how.check_expansion((max(columns) - min(columns) + 1) * (last - first + 1) * _CELL)


def _check_strings(text: bytes, how: Reading) -> None:
    """Refuse a list of texts that claims to be far longer than it is: readers make room for what it claims."""
    for match in _COUNT.finditer(text[:4096]):
        how.check_expansion(int(match[1]) * _CELL)


def _column(name: bytes) -> int:
    number = 0
    for letter in name.upper():
        number = 26 * number + letter - 64
    return number


def _check_open_document(text: bytes, how: Reading) -> None:
    """Refuse a sheet that repeats its cells far too often; empty ones at the ends do not count."""
    n_rows = filled_rows = widest = at = repeated = 0
    filled = False
    for match in _TAG.finditer(text):
        tag, attributes = match[1], match[2]
        found = _REPEATED.search(attributes)
        times = int(found[1]) if found else 1
        if tag == b"table":
            n_rows = filled_rows = widest = 0
        elif tag == b"table-row":
            n_rows += times
            at, filled, repeated = 0, False, n_rows
        else:
            at += times
            if not attributes.endswith(b"/") or b"office:value" in attributes:
                filled, widest = True, max(widest, at)
            if filled:
                filled_rows = repeated
        how.check_expansion(filled_rows * widest * _CELL)
