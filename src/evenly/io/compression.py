"""Compressed files, expanded piece by piece: one that is out of proportion is refused before it fills memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from evenly._support import require
from evenly.io.errors import as_file_error
from evenly.io.formats import COMPRESSIONS, Reading

_PIECE = 1 << 20
_ZSTD_PIECE = 1 << 11
"""Bytes of zstd that are expanded at once: each four of them may become 128 KiB."""


def compression_of(data: bytes) -> str:
    """Return what a file that begins with these bytes is compressed with.

    Examples
    --------
    >>> compression_of(gzip.compress(b"a")), compression_of(b"a,b")
    ('gz', '')
    """
    return next((name for name, magic in COMPRESSIONS.items() if data.startswith(magic)), "")


def decompress(data: bytes, how: Reading) -> bytes:
    """Return the content of a file that may be compressed.

    Examples
    --------
    >>> decompress(gzip.compress(b"a,b"), Reading("a.csv.gz"))
    b'a,b'
    """
    compression = compression_of(data)
    if not compression:
        return data
    pieces, n = [], 0
    with as_file_error(f"{how.name}, compressed by {compression}"), expanding(io.BytesIO(data), compression) as file:
        while piece := file.read(_PIECE):
            pieces.append(piece)
            n += len(piece)
            how.check_expansion(n)
    return b"".join(pieces)


def expanding(file: IO[bytes], compression: str) -> IO[bytes]:
    """Return a file to read the content of a compressed one from."""
    content: IO[bytes] = _EXPAND[compression](file)
    return content


class _Zstd(io.RawIOBase):
    """The content of a zstd file; `zstandard` has a reader of its own, which takes a truncated file for a whole one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._zstandard = file, require("zstandard", "tool")
        self._frame = self._zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(b"")  # of which parts are taken without a copy of the rest

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; none at the end."""
        while not self._ready:
            piece = self._frame.unused_data or self._file.read(_ZSTD_PIECE)
            if not piece:
                if not self._frame.eof:
                    raise EOFError("it ends too early")
                return 0
            if self._frame.eof:  # another frame follows
                self._frame = self._zstandard.ZstdDecompressor().decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(piece))
            except self._zstandard.ZstdError as error:
                raise EOFError(str(error)) from None
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n


_EXPAND: dict[str, Callable[[IO[bytes]], Any]] = {
    "gz": lambda file: gzip.GzipFile(fileobj=file),
    "bz2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
    "zst": lambda file: io.BufferedReader(_Zstd(file), _PIECE),
}


@contextmanager
def compressing(file: IO[bytes], compression: str) -> Iterator[Any]:
    """Give a file whose content is written to another one, compressed; the same content gives the same bytes."""
    if not compression:
        yield file
    elif compression == "gz":  # without a name and a time
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
            yield out
    elif compression == "zst":
        with require("zstandard", "tool").ZstdCompressor().stream_writer(file, closefd=False) as out:
            yield out
    else:
        with (bz2.BZ2File if compression == "bz2" else lzma.LZMAFile)(file, "wb") as out:
            yield out
