"""What an Arrow file claims, compared with what it has: lengths that cannot be are refused before memory is taken.

A reader takes the lengths in a file's metadata at their word. One damaged number, and it asks for more memory than
there is, which ends the process. Arrow's metadata are flatbuffers: tables whose fields are found by a list of offsets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from evenly._support import TableError
from evenly.io.formats import Reading

_START, _END = 8, 10
"""Bytes before the first message of a file, and of the footer's length and the mark after it."""
_CONTINUES = 0xFFFFFFFF
_DICTIONARY, _BATCH = 2, 3


def check_arrow_file(data: bytes, how: Reading) -> None:
    """Refuse an Arrow file whose lengths do not fit into it, or whose content is out of proportion.

    Examples
    --------
    >>> check_arrow_file(b"ARROW1\\0\\0 and so on, ARROW1", Reading("a.arrow"))
    Traceback (most recent call last):
    evenly.TableError: got a.arrow, whose lengths do not fit its content, but expected a whole and sound file.
    """
    try:
        (length,) = struct.unpack_from("<i", data, len(data) - _END)
        start = len(data) - _END - length
        if start < _START:
            raise ValueError
        footer = _Table.root(data, start)
        blocks = [*footer.structs(2, 24), *footer.structs(3, 24)]
        messages = []
        for at in blocks:
            offset, size, body_size = struct.unpack_from("<qi4xq", data, at)
            if min(offset, size, body_size) < 0 or offset + size + body_size > len(data):
                raise ValueError
            messages.append((offset, offset + size))
        _check_messages(data, messages, how)
    except (struct.error, ValueError):
        raise _damaged(how) from None


def check_arrow_stream(data: bytes, how: Reading) -> None:
    """Refuse an Arrow stream whose lengths do not fit into it, or whose content is out of proportion."""
    try:
        _check_messages(data, _walk(data), how)
    except (struct.error, ValueError):
        raise _damaged(how) from None


def _damaged(how: Reading) -> TableError:
    return TableError(f"{how.name}, whose lengths do not fit its content", "expected a whole and sound file")


def _walk(data: bytes) -> Iterator[tuple[int, int]]:
    """Go from message to message: where each one is, and where its body begins."""
    at = 0
    while at + 8 <= len(data):
        begins, size = _message(data, at)
        if not size:
            return
        body = begins + size
        message = _Table.root(data, begins)
        yield at, body
        at = body + message.number("<q", 3)


def _message(data: bytes, at: int) -> tuple[int, int]:
    """Return where the metadata of a message begin, and their size; old files have no mark before it."""
    mark, size = struct.unpack_from("<Ii", data, at)
    begins, size = (at + 8, size) if mark == _CONTINUES else (at + 4, mark)
    if size < 0 or begins + size > len(data):
        raise ValueError
    return begins, size


def _check_messages(data: bytes, messages: Iterator[tuple[int, int]] | list[tuple[int, int]], how: Reading) -> None:
    expanded = n_rows = 0
    for at, body in messages:
        message = _Table.root(data, _message(data, at)[0])
        kind, size = message.number("<B", 1), message.number("<q", 3)
        if size < 0 or body + size > len(data):
            raise ValueError
        if kind not in (_DICTIONARY, _BATCH):
            continue
        batch = message.table(2)
        if kind == _DICTIONARY:
            batch = batch.table(1)
        n_rows += batch.number("<q", 0)
        if n_rows < 0:
            raise ValueError
        expanded += _check_batch(data, batch, body, size)
        how.check_expansion(max(expanded, n_rows // 8))


def _check_batch(data: bytes, batch: _Table, body: int, size: int) -> int:
    """Check the lengths of a batch of rows; return how many bytes its buffers have, expanded."""
    for at in batch.structs(1, 16):
        length, n_missing = struct.unpack_from("<qq", data, at)
        if not 0 <= n_missing <= length:
            raise ValueError
    compressed, expanded = batch.has(3), 0
    for at in batch.structs(2, 16):
        offset, length = struct.unpack_from("<qq", data, at)
        if offset < 0 or length < 0 or offset + length > size:
            raise ValueError
        if compressed and length:
            (own,) = struct.unpack_from("<q", data, body + offset)
            if own < -1:
                raise ValueError
            length = length if own == -1 else own  # -1: it was not worth compressing
        expanded += length
    return expanded


@dataclass(frozen=True)
class _Table:
    """A table of a flatbuffer: its fields are found through a list of offsets."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes, at: int) -> _Table:
        """Return the outermost table of a flatbuffer."""
        return cls(data, cls.follow(data, at))

    @staticmethod
    def follow(data: bytes, at: int) -> int:
        """Return the place that an offset points to."""
        (offset,) = struct.unpack_from("<I", data, at)
        if at + offset >= len(data):
            raise ValueError
        return int(at + offset)

    def field(self, number: int) -> int | None:
        """Return where a field is; None if it has its default."""
        (back,) = struct.unpack_from("<i", self.data, self.at)
        offsets = self.at - back
        if offsets < 0:
            raise ValueError
        (size,) = struct.unpack_from("<H", self.data, offsets)
        place = 4 + 2 * number
        if place >= size:
            return None
        (offset,) = struct.unpack_from("<H", self.data, offsets + place)
        return self.at + offset if offset else None

    def has(self, number: int) -> bool:
        """Whether a field is there."""
        return self.field(number) is not None

    def number(self, form: str, number: int) -> int:
        """Return a number."""
        at = self.field(number)
        return 0 if at is None else int(struct.unpack_from(form, self.data, at)[0])

    def table(self, number: int) -> _Table:
        """Return a table within this one."""
        at = self.field(number)
        if at is None:
            raise ValueError
        return _Table(self.data, self.follow(self.data, at))

    def structs(self, number: int, size: int) -> range:
        """Return where the items of a list are."""
        at = self.field(number)
        if at is None:
            return range(0)
        start = self.follow(self.data, at)
        (n,) = struct.unpack_from("<I", self.data, start)
        if start + 4 + n * size > len(self.data):
            raise ValueError
        return range(start + 4, start + 4 + n * size, size)
