"""The formats of files, by name, by extension and by compression."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import NamedTuple

from evenly._support import TableError

FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "arrows": (".arrows",),
}
"""The formats by name, with their extensions; `arrow` is Arrow's file format, `arrows` its stream."""
TEXT_FORMATS = ("csv", "tsv", "jsonl")
COMPRESSIONS = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\0", "zst": b"\x28\xb5\x2f\xfd"}
"""Compressions of text formats by extension, with the bytes that such a file begins with."""

BINARY = {"parquet": b"PAR1", "arrow": b"ARROW1", "arrows": b"\xff\xff\xff\xff"}
_STANDARD = ("-", "/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1")


class Form(NamedTuple):
    """A format, and what it is compressed with."""

    name: str
    compression: str = ""

    def __str__(self) -> str:
        return f"{self.name}.{self.compression}" if self.compression else self.name


def parse_form(form: str) -> Form:
    """Parse a format as users write it: a name or an extension, optionally followed by a compression.

    Examples
    --------
    >>> parse_form("csv.gz")
    Form(name='csv', compression='gz')
    >>> parse_form("excel")
    Traceback (most recent call last):
    evenly.TableError: got the format 'excel', but expected one of csv, tsv, jsonl, parquet, arrow, arrows...
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
    >>> form_of("survey.xlsx")
    Traceback (most recent call last):
    evenly.TableError: got the name 'survey.xlsx', but expected one of csv, tsv, jsonl, parquet, arrow, ...
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
    for form, extensions in FORMATS.items():
        if name.endswith((f".{form}", *extensions)):
            return Form(form, compression)
    return None


def _checked(form: Form) -> Form:
    if form.compression and form.name not in TEXT_FORMATS:
        raise TableError(f"the format {str(form)!r}", f"{form.name} files are compressed inside", f"use .{form.name}")
    return form


def expected_formats() -> str:
    """Return the formats that a message says were expected."""
    return f"expected one of {', '.join(FORMATS)}, or of {', '.join(TEXT_FORMATS)} with .{', .'.join(COMPRESSIONS)}"


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
