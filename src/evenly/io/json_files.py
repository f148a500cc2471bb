"""JSON as a Polars frame: an object in every line, an array of objects, or an object of columns; and written."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator
from typing import IO, Any, ClassVar

from evenly._support import EvenlyWarning, TableError, require
from evenly.io.encodings import as_utf8
from evenly.io.errors import shortened
from evenly.io.formats import Format, Reading

_OBJECTS = "expected an array of objects, an object of columns, or an object in every line"
_UNREADABLE = (json.JSONDecodeError, RecursionError, ValueError)  # a ValueError: a number of thousands of digits


class JsonLines(Format):
    """A JSON object in every line."""

    name, text = "jsonl", True
    extensions: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""
        return _read_lines(as_utf8(data, how.name), how)

    def check(self, frame: Any) -> Any:
        """Refuse bytes, and say which infinities are lost."""
        pl = require("polars", "tool")
        self.refuse(frame, (pl.Binary, pl.Object))
        for column in frame.get_columns():
            if column.dtype.is_float() and column.is_infinite().any():
                warnings.warn(
                    f"Column {shortened(column.name)!r}: {column.is_infinite().sum()} infinite cells are written as "
                    "missing: JSON has no infinity.",
                    EvenlyWarning,
                    stacklevel=3,
                )
        return frame

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write a line a row."""
        frame.write_ndjson(file)

    def write_parts(self, frames: Iterator[Any], file: IO[bytes]) -> None:
        """Write the lines of all frames."""
        for frame in frames:
            self.write(frame, file)


class Json(JsonLines):
    """An array of JSON objects; read are also objects of columns, and objects in lines."""

    name, extensions = "json", (".json",)

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""
        data = as_utf8(data, how.name)
        try:
            content = json.loads(data, object_pairs_hook=_differing)
        except TableError:
            raise
        except _UNREADABLE as error:
            if data.lstrip().startswith(b"{"):
                return _read_lines(data, how)
            raise TableError(f"{how.name}: {shortened(str(error), 200)}", _OBJECTS) from None
        rows = _rows(content, how.name)
        return _read_lines("".join(f"{json.dumps(row)}\n" for row in rows).encode(), how)

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write one array."""
        self.write_parts(iter([frame]), file)

    def write_parts(self, frames: Iterator[Any], file: IO[bytes]) -> None:
        """Write one array, a line a row."""
        for number, frame in enumerate(frames):
            file.write(b",\n" if number else b"[\n")
            file.write(frame.write_ndjson().rstrip("\n").replace("\n", ",\n").encode())
        file.write(b"\n]\n")


def _rows(content: Any, name: str) -> list[dict[str, Any]]:
    """Return the rows that a JSON document holds."""
    if isinstance(content, dict) and content and all(isinstance(cells, list) for cells in content.values()):
        lengths = {key: len(cells) for key, cells in content.items()}
        if len({*lengths.values()}) > 1:
            short, long = (choose(lengths, key=lengths.__getitem__) for choose in (min, max))
            raise TableError(
                f"{lengths[short]} cells, and {lengths[long]} in {shortened(long)!r}",
                f"expected all columns of {name} to be of the same length",
                column=short,
            )
        return [dict(zip(content, cells, strict=True)) for cells in zip(*content.values(), strict=True)]
    rows = [content] if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise TableError(f"{name}, which is {shortened(json.dumps(content), 30)}", _OBJECTS)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise TableError(f"item {number} of {name}, which is {shortened(json.dumps(row), 30)}", _OBJECTS)
    return rows


def _read_lines(data: bytes, how: Reading) -> Any:
    pl = require("polars", "tool")
    polars_errors = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
    _refuse_sparse(data, how)
    try:
        json.loads(next(line for line in io.BytesIO(data) if line.strip()), object_pairs_hook=_differing)
        frame = pl.read_ndjson(data, infer_schema_length=None)
    except TableError:
        raise
    except (*polars_errors, *_UNREADABLE, StopIteration):
        frame = _read_carefully(data, how.name)
    wide = [pl.Int128] if hasattr(pl, "Int128") else []
    return frame.with_columns(pl.col(pl.Null, pl.UInt64, *wide).cast(pl.String))


def _refuse_sparse(data: bytes, how: Reading) -> None:
    """Refuse lines that have so few names in common that the table would be out of proportion to the file."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    if len(data) * len(lines) < 1 << 27:  # even a name of each four bytes would make few cells
        return
    names: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            names |= json.loads(line).keys()
        except (*_UNREADABLE, AttributeError):
            return  # which reading says
        how.check_expansion(8 * len(names) * len(lines))
        if number == 1000 and len(names) < 1000:
            return  # ordinary rows


def _read_carefully(data: bytes, name: str) -> Any:
    """Read line by line: mixed columns become text, and an error names its line."""
    pl = require("polars", "tool")
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_differing)
        except TableError:
            raise
        except _UNREADABLE as error:
            reason = shortened(str(error), 200)
            raise TableError(f"line {number} of {name}: {reason}", "expected a JSON object in every line") from None
        if not isinstance(row, dict):
            raise TableError(f"line {number} of {name}, which is {line[:30]!r}", "expected a JSON object in every line")
        rows.append(row)
    names = list(dict.fromkeys(key for row in rows for key in row))
    return pl.DataFrame({one: _as_column([row.get(one) for row in rows]) for one in names})


def _differing(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise TableError("the name more than once in an object", "expected names to differ", "rename one", column=twice)
    return row


def _as_column(cells: list[Any]) -> Any:
    pl = require("polars", "tool")
    types = {type(cell) for cell in cells if cell is not None}
    whole = all(-(2**63) <= cell < 2**63 for cell in cells if type(cell) is int)
    if types <= {int, float} and whole:
        return pl.Series(cells, dtype=pl.Float64 if float in types else pl.Int64, strict=False)
    if types == {bool}:
        return pl.Series(cells)
    return pl.Series(
        [one if one is None or isinstance(one, str) else json.dumps(one) for one in cells], dtype=pl.String
    )
