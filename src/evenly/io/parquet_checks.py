"""What a Parquet file claims, compared with what it has: sizes that cannot be are refused before memory is taken.

The footer of a file and the header before each page are structures of Thrift's compact protocol: fields by number, each
with a type, and whole numbers in as few bytes as they need.
"""

from __future__ import annotations

import struct
from typing import Any

from evenly._support import TableError
from evenly.io.formats import Reading

LARGEST = 1 << 28
"""Bytes of a file up to which the header of every page is looked at; reading takes seconds beyond."""
_DATA_PAGES = {0: 5, 3: 8}
"""Types of pages with rows, and the fields of their headers that say how many."""
_DICTIONARY, _DICTIONARY_FIELD = 2, 7
_MOST_DEPTH = 32


def check_parquet(data: bytes, how: Reading) -> None:
    """Refuse a Parquet file with a size that does not fit into it.

    Examples
    --------
    >>> check_parquet(b"PAR1 and so on, PAR1", Reading("a.parquet"))
    Traceback (most recent call last):
    evenly.TableError: got a.parquet, whose sizes do not fit its content, but expected a whole and sound file.
    """
    if len(data) > LARGEST or data.endswith(b"PARE"):  # an encrypted footer, which readers refuse
        return
    try:
        (size,) = struct.unpack_from("<I", data, len(data) - 8)
        if size > len(data) - 12:
            raise ValueError
        footer = _Thrift(data, len(data) - 8 - size).struct()
        for group in footer.get(4, []):
            n_rows = group.get(3, 0)
            if n_rows < 0:
                raise ValueError
            for chunk in group.get(1, []):
                about = chunk.get(3)
                if about is not None and 1 not in chunk:  # field 1: the chunk is in another file
                    _check_chunk(data, about)
    except (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError):
        raise TableError(f"{how.name}, whose sizes do not fit its content", "expected a whole and sound file") from None


def _check_chunk(data: bytes, about: dict[int, Any]) -> None:
    """Check the pages of a column in a row group."""
    n_values, size, start = about.get(5, 0), about.get(7, 0), about.get(9, 0)
    dictionary = about.get(11)
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    if min(n_values, size) < 0 or start < 4 or start + size > len(data):
        raise ValueError
    end, found = start + size, 0
    while start < end and found < n_values:
        reader = _Thrift(data, start)
        page = reader.struct()
        kind, expanded, compressed = page.get(1, 0), page.get(2, 0), page.get(3, 0)
        if expanded < 0 or compressed < 0 or reader.at + compressed > len(data):
            raise ValueError
        field = _DATA_PAGES.get(kind, _DICTIONARY_FIELD if kind == _DICTIONARY else None)
        n = page.get(field, {}).get(1, 0) if field is not None else 0
        if n < 0 or (kind in _DATA_PAGES and found + n > n_values) or (kind == _DICTIONARY and n > 8 * expanded + 8):
            raise ValueError
        found += n if kind in _DATA_PAGES else 0
        start = reader.at + compressed


class _Thrift:
    """Reads structures of the compact protocol as dictionaries of their fields."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read a structure."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self.byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self.number()
            fields[number] = self.value(head & 15, depth)
        return fields

    def value(self, kind: int, depth: int) -> Any:
        """Read a field of a type."""
        if depth > _MOST_DEPTH:
            raise ValueError
        if kind in (1, 2):  # truth and falsehood, which the type says
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.number()
        if kind == 7:
            return self.take(8)
        if kind == 8:
            return self.take(self.unsigned())
        if kind in (9, 10):
            return self.items(depth)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError

    def items(self, depth: int) -> list[Any]:
        """Read a list."""
        head = self.byte()
        n = head >> 4 if head >> 4 < 15 else self.unsigned()
        if n > len(self.data) - self.at:
            raise ValueError
        kind = head & 15
        if kind in (1, 2):  # in lists, truth takes a byte
            return [self.byte() for _ in range(n)]
        return [self.value(kind, depth + 1) for _ in range(n)]

    def byte(self) -> int:
        """Read a byte."""
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        """Read a number of seven bits in each byte."""
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise ValueError

    def number(self) -> int:
        """Read a number whose lowest bit is its sign."""
        found = self.unsigned()
        return (found >> 1) ^ -(found & 1)

    def take(self, n: int) -> bytes:
        """Read some bytes."""
        if self.at + n > len(self.data):
            raise ValueError
        self.at += n
        return self.data[self.at - n : self.at]
