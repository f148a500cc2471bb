"""Text of any usual encoding as UTF-8."""

from __future__ import annotations

import warnings

from evenly._support import EvenlyWarning, TableError

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
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
