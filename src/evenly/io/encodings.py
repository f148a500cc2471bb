"""Text of any usual encoding as UTF-8."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Iterable

from evenly._support import EvenlyWarning, TableError

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_NOT_WINDOWS = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
"""What Windows-1252 leaves undefined."""
_CONTROL = bytes({*range(32)} - set(b"\t\n\v\f\r\x1a"))


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
                text = data[len(mark) :] if encoding == "utf-8" else data.decode(encoding).encode()
            except UnicodeError as error:
                raise TableError(
                    f"{name}, which is damaged: {error}", f"its first bytes declare {encoding.upper()}"
                ) from None
            return as_utf8(text, name)
    if b"\0" in data:
        raise _zero_byte(name, data.count(b"\n", 0, data.index(b"\0")) + 1)
    if data.isascii():
        return data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _from_windows(data, name, error.start)
    return data


def _zero_byte(name: str, line: int) -> TableError:
    hint = "if it is UTF-16 text without a byte order mark, or has stray zero bytes, save it as UTF-8"
    return TableError(f"{name} with a zero byte in line {line}", "expected a table as text", hint)


def _from_windows(data: bytes, name: str, start: int) -> bytes:
    line = data.count(b"\n", 0, start) + 1
    where = f"byte {data[start]:#04x} in line {line}"
    try:
        if len(data.translate(None, _CONTROL)) < len(data):
            raise UnicodeError
        text = data.decode("cp1252")
    except UnicodeError:
        raise _no_text(name, where) from None
    _warn_of_windows(name, where)
    return text.encode()


def _no_text(name: str, where: str) -> TableError:
    expected = "expected a table as text (UTF-8, UTF-16 or Windows-1252)"
    return TableError(f"{name} with {where}", expected, "save it as UTF-8")


def _warn_of_windows(name: str, where: str) -> None:
    warnings.warn(
        f"{name}: {where} is not UTF-8; the file was read as Windows-1252 (Latin-1). "
        "If letters look wrong, save it as UTF-8.",
        EvenlyWarning,
        stacklevel=3,
    )


def check_encoding(pieces: Iterable[bytes], name: str) -> str:
    """Return the encoding of a text that comes in pieces, by all of it; refuse what is not text.

    Examples
    --------
    >>> check_encoding(iter([b"a,b", b"1,2"]), "a.csv")
    'utf-8'
    """
    encoding, decoder, n_lines, odd, control = "", None, 0, "", False
    for piece in pieces:
        if decoder is None:
            encoding = next((own for mark, own in _MARKS if piece.startswith(mark)), "utf-8")
            decoder = codecs.getincrementaldecoder(encoding)()
        if not odd:
            try:
                text = decoder.decode(piece)
            except UnicodeDecodeError as error:
                if encoding != "utf-8":
                    declared = f"its first bytes declare {encoding.upper()}"
                    raise TableError(f"{name}, which is damaged: {error}", declared) from None
                line = n_lines + error.object.count(b"\n", 0, error.start) + 1
                odd = f"byte {error.object[error.start]:#04x} in line {line}"
            else:
                if "\0" in text:
                    raise _zero_byte(name, n_lines + text.count("\n", 0, text.index("\0")) + 1)
        if b"\0" in piece and odd:
            raise _zero_byte(name, n_lines + piece.count(b"\n", 0, piece.index(b"\0")) + 1)
        control = control or len(piece.translate(None, _CONTROL)) < len(piece)
        unknown = odd and any(byte in piece for byte in _NOT_WINDOWS)
        if odd and (control or unknown):
            raise _no_text(name, odd)
        n_lines += piece.count(b"\n")
    if odd:
        _warn_of_windows(name, odd)
        return "cp1252"
    return encoding or "utf-8"
