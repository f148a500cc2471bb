"""The formats of files, by name, by extension and by compression; each is a class that registers itself."""

from __future__ import annotations

import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

from evenly._support import TableError

FORMATS: dict[str, Format] = {}
"""The formats by name: whoever subclasses `Format` adds one."""
COMPRESSIONS = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\0", "zst": b"\x28\xb5\x2f\xfd"}
"""Compressions of text formats by extension, with the bytes that such a file begins with."""
MAX_EXPANSION = 200.0
"""How many times larger than itself a file may become when it is read: ordinary tables shrink to a tenth, and tables of
nothing but repetitions to a hundredth."""
FREE = 1 << 25
"""Bytes that any file may expand to."""

_STANDARD = ("-", "/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1")


@dataclass(frozen=True)
class Reading:
    """What a reader knows besides a file's content."""

    name: str
    """What messages call the file."""
    sheet: str | int | None = None
    """The sheet of a workbook."""
    max_expansion: float = MAX_EXPANSION
    size: int = 0
    """Bytes of the file."""

    def check_expansion(self, expanded: int) -> None:
        """Refuse content that is out of proportion to the file, before it is read into memory."""
        if expanded > FREE and expanded > self.max_expansion * self.size:
            raise TableError(
                f"{self.name}, whose {self.size:,} bytes expand to {expanded:,} or more",
                f"expected a table of at most {self.max_expansion:g} times the file's size",
                "if you trust it, allow more: `max_expansion=` (`--max-expansion`)",
            )


class Format(ABC):
    """A format of files: how tables are read from it and written to it."""

    name: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]
    magic: ClassVar[bytes] = b""
    """The bytes that every such file begins with; none for text."""
    text: ClassVar[bool] = False
    """Whether it is text, which may be compressed, and in which NaN is a missing cell."""

    binary_dates: ClassVar[bool] = False
    """Whether dates are kept as the numbers that they are, so that any of them can be written."""
    in_parts: ClassVar[bool] = True
    """Whether a table can be written part by part."""
    sheets: ClassVar[bool] = False
    """Whether a file may hold several tables, one of which is chosen by `sheet`."""

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "name"):
            FORMATS[cls.name] = cls()

    def matches(self, data: bytes) -> bool:
        """Whether a file's bytes can only be of this format."""
        return bool(self.magic) and data.startswith(self.magic)

    @abstractmethod
    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""

    def check_writable(self) -> None:  # noqa: B027  # most formats can always be written
        """Refuse, before any work, a format that cannot be written, or not without packages that are absent."""

    def check(self, frame: Any) -> Any:
        """Refuse, by name, columns that a file of this format cannot hold; return the frame to write."""
        return frame

    @abstractmethod
    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write a frame that passed the check."""

    def write_parts(self, frames: Iterator[Any], file: IO[bytes]) -> None:
        """Write frames one below the other, with one of them in memory at a time."""
        raise TableError(
            f"the format {self.name!r} for a table part by part", "expected another", "write .parquet, .csv or .csv.gz"
        )

    def refuse(self, frame: Any, kinds: tuple[Any, ...]) -> None:
        """Refuse columns of some types."""
        for column in frame.get_columns():
            if column.dtype.base_type() in kinds:
                raise TableError(
                    f"cells of type {column.dtype}",
                    f"{self.name} cannot hold them",
                    "write parquet",
                    column=column.name,
                )


_STRANGERS = {
    b"PK\x03\x04": "a zip archive",
    b"\xd0\xcf\x11\xe0": "an Excel workbook of the old format",
    b"FEA1": "a Feather file of the first version",
    b"%PDF": "a PDF file",
    b"SQLite format 3": "a SQLite database",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"<?xml": "an XML file",
}


def stranger(data: bytes) -> str | None:
    """Say what a file that begins with these bytes is, if it is of none of our formats."""
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:16].lower()
    return next((what for magic, what in _STRANGERS.items() if start.startswith(magic.lower())), None)


def starts_like_another(text: str) -> bool:
    """Whether a text file that begins like this would be taken for another format, or for one with a byte order mark.

    Examples
    --------
    >>> starts_like_another("PAR1"), starts_like_another("age")
    (True, False)
    """
    data = text.encode()
    marks = (*COMPRESSIONS.values(), *(form.magic for form in FORMATS.values() if form.magic), b"\xef\xbb\xbf")
    return data.startswith(marks) or stranger(data) is not None


class Form(NamedTuple):
    """A format, and what it is compressed with."""

    name: str
    compression: str = ""

    def __str__(self) -> str:
        return f"{self.name}.{self.compression}" if self.compression else self.name

    @property
    def format(self) -> Format:
        """What reads and writes it."""
        return FORMATS[self.name]


def parse_form(form: str) -> Form:
    """Parse a format as users write it: a name or an extension, optionally followed by a compression.

    Examples
    --------
    >>> parse_form("csv.gz")
    Form(name='csv', compression='gz')
    >>> parse_form("excel")
    Traceback (most recent call last):
    evenly.TableError: got the format 'excel', but expected one of csv, tsv, jsonl, json, parquet, arrow, arrows...
    """
    found = form_of_name("." + form.lower().removeprefix("."))
    if found is None:
        raise TableError(f"the format {form!r}", expected_formats())
    return _checked(found)


def form_of(path: str | Path) -> Form:
    """Return the format that a file's extension means; `-` and devices are CSV.

    Examples
    --------
    >>> str(form_of("survey.ndjson.gz"))
    'jsonl.gz'
    >>> form_of("survey.doc")
    Traceback (most recent call last):
    evenly.TableError: got the name 'survey.doc', but expected one of csv, tsv, jsonl, json, parquet, arrow, ...
    """
    found = form_of_name(Path(path).name.lower())
    if found is not None:
        return _checked(found)
    if is_standard(path) or is_special(Path(path)):
        return Form("csv")
    raise TableError(
        f"the name {Path(path).name!r}", expected_formats(), "give it one of these extensions, or name the format"
    )


def form_of_name(name: str) -> Form | None:
    """Return the format that a lower-case name ends in; None if it is not known."""
    compression = next((one for one in COMPRESSIONS if name.endswith(f".{one}")), "")
    name = name.removesuffix(f".{compression}")
    for form in FORMATS.values():
        if name.endswith((f".{form.name}", *form.extensions)):
            return Form(form.name, compression)
    return None


def _checked(form: Form) -> Form:
    if form.compression and not form.format.text:
        raise TableError(f"the format {str(form)!r}", f"{form.name} files are compressed inside", f"use .{form.name}")
    return form


def expected_formats() -> str:
    """Return the formats that a message says were expected."""
    texts = ", ".join(form.name for form in FORMATS.values() if form.text)
    return f"expected one of {', '.join(FORMATS)}, or of {texts} with .{', .'.join(COMPRESSIONS)}"


def is_standard(path: str | Path) -> bool:
    """Whether a path means standard input or output."""
    return str(path) in _STANDARD


def is_special(path: Path) -> bool:
    """Whether a path is a pipe, a device or the like, which cannot be replaced by another file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
