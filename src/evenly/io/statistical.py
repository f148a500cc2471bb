"""Files of Stata and SPSS as a Polars frame: value labels become classes, missing codes missing cells; and written."""

from __future__ import annotations

import io
import re
import tempfile
import warnings
from abc import abstractmethod
from pathlib import Path
from typing import IO, Any, ClassVar

from evenly._support import EvenlyWarning, TableError, require, require_later
from evenly.io.errors import as_table_error
from evenly.io.formats import Format, Reading
from evenly.io.trial import crashes
from evenly.io.types import LARGEST, some_names


class Statistical(Format):
    """A format of a statistics program, which pyreadstat reads and writes."""

    in_parts = False
    most_letters: ClassVar[int]
    """Characters of a name."""
    most_bytes: ClassVar[int]
    """Bytes of a text."""

    @abstractmethod
    def load(self, file: IO[bytes], **how: Any) -> tuple[dict[str, Any], Any]:
        """Return the columns, and what is known about them."""

    @abstractmethod
    def save(self, frame: Any, path: Path, **how: Any) -> None:
        """Write a frame with value labels."""

    @abstractmethod
    def timeless(self, content: bytearray) -> None:
        """Replace the time of writing: same table, same bytes."""

    def check_writable(self) -> None:
        """Refuse it without the package that writes it."""
        require_later("pyreadstat", "files")

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""
        pl, errors = require("polars", "tool"), _errors()
        if crashes(lambda: self.load(io.BytesIO(data), output_format="dict")):
            raise TableError(f"{how.name}, which is damaged", "expected a whole and sound file")
        with as_table_error(how.name, "expected a whole and sound file", errors):
            columns, about = self.load(io.BytesIO(data), output_format="dict")
            labels = {name: about.value_labels[label] for name, label in about.variable_to_label.items()}
            series = []
            for name, cells in columns.items():
                kind = about.readstat_variable_types.get(name, "double")
                series.append(_labelled(_as_column(name, cells, kind), labels.get(name, {})))
        return pl.DataFrame(series)

    def check(self, frame: Any) -> Any:
        """Refuse names and cells that the program does not know."""
        pl = require("polars", "tool")
        self.refuse(frame, (pl.Binary, pl.Object, pl.List, pl.Array, pl.Struct, pl.Duration))
        for name in frame.columns:
            if not re.fullmatch(rf"[^\W\d_]\w{{0,{self.most_letters - 1}}}|_\w{{1,{self.most_letters - 1}}}", name):
                raise TableError(
                    "the name",
                    f"{self.name} expects letters, digits and _, at most {self.most_letters}",
                    "rename it, or write another format",
                    column=name,
                )
        if len({name.lower() for name in frame.columns}) < frame.width:
            raise TableError(
                "names that differ in case only", f"expected {self.name} names to differ otherwise", "rename one"
            )
        return frame.with_columns(self._as_cells(column) for column in frame.get_columns())

    def _as_cells(self, column: Any) -> Any:
        """Return a column with a type that the program knows."""
        pl = require("polars", "tool")
        if column.dtype.is_float():
            return pl.select(pl.when(column.is_finite()).then(column).alias(column.name)).to_series().cast(pl.Float64)
        if column.dtype.is_decimal():
            return column.cast(pl.Float64)
        if column.dtype.is_integer():
            if (column.cast(pl.Float64).abs() >= LARGEST).any():
                raise TableError(
                    "whole numbers from 2^53 on", f"{self.name} would drop digits", "write parquet", column=column.name
                )
            return column.cast(pl.Float64)
        if column.dtype == pl.Boolean:
            return column.cast(pl.Float64)
        if column.dtype in (pl.Date, pl.Categorical) or isinstance(column.dtype, pl.Enum):
            return column
        if column.dtype.base_type() == pl.Datetime and column.dtype.time_zone is None:
            return column
        texts = column.cast(pl.String)
        if (texts.str.len_bytes() > self.most_bytes).any() or texts.str.contains("\0", literal=True).any():
            expected = f"{self.name} holds {self.most_bytes:,} bytes in a cell, and no zero byte"
            raise TableError("a longer text, or a zero byte", expected, "write parquet", column=column.name)
        return texts.fill_null("")  # neither program knows a missing text

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write a file; classes as numbers with labels."""
        pl = require("polars", "tool")
        labels, columns = {}, []
        for column in frame.get_columns():
            if column.dtype == pl.Categorical or isinstance(column.dtype, pl.Enum):
                used = column.cast(pl.String).drop_nulls().unique().sort()
                texts = (column.dtype.categories if isinstance(column.dtype, pl.Enum) else used).to_list()
                labels[column.name] = {float(code): text for code, text in enumerate(texts, 1)}
                codes = {text: float(code) for code, text in enumerate(texts, 1)}
                column = column.cast(pl.String).replace_strict(codes, default=None, return_dtype=pl.Float64)
            columns.append(column)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table"
            what = f"a table, which could not be written as {self.name}"
            with as_table_error(what, "expected space, and cells that it holds", _errors()):
                self.save(pl.DataFrame(columns), path, variable_value_labels=labels)
            content = bytearray(path.read_bytes())
        self.timeless(content)
        file.write(content)


class Stata(Statistical):
    """Stata, from version 14 on for what is written."""

    name, extensions = "dta", (".dta",)
    most_letters, most_bytes = 32, 2_000_000

    def matches(self, data: bytes) -> bool:
        """Whether it begins as files of Stata 13 and later do; earlier ones have no such mark."""
        return data.startswith(b"<stata_dta>")

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table as a Polars frame."""
        if not self.matches(data) and data[0] not in range(102, 116):
            raise TableError(f"{how.name}, whose first bytes are not those of dta", "expected dta")
        if self.matches(data) and not data.rstrip().endswith(b"</stata_dta>"):
            raise TableError(f"{how.name}, which ends too early", "expected a whole and sound file")
        return super().read(data, how)

    def load(self, file: IO[bytes], **how: Any) -> tuple[dict[str, Any], Any]:
        """Return the columns, and what is known about them."""
        found: tuple[dict[str, Any], Any] = require("pyreadstat", "files").read_dta(file, **how)
        return found

    def save(self, frame: Any, path: Path, **how: Any) -> None:
        """Write a frame with value labels."""
        require("pyreadstat", "files").write_dta(frame, path, **how)

    def timeless(self, content: bytearray) -> None:
        """Replace the time in the header."""
        found = re.search(rb"<timestamp>\x11(.{17})</timestamp>", content[:2000], re.DOTALL)
        if found:
            content[found.start(1) : found.end(1)] = b"01 Jan 1980 00:00"


class Spss(Statistical):
    """SPSS."""

    name, extensions, magic = "sav", (".sav", ".zsav"), b"$FL"
    most_letters, most_bytes = 64, 32_767

    def load(self, file: IO[bytes], **how: Any) -> tuple[dict[str, Any], Any]:
        """Return the columns, and what is known about them; codes that users declared missing are missing."""
        found: tuple[dict[str, Any], Any] = require("pyreadstat", "files").read_sav(file, **how)
        return found

    def save(self, frame: Any, path: Path, **how: Any) -> None:
        """Write a frame with value labels."""
        require("pyreadstat", "files").write_sav(frame, path, **how)

    def timeless(self, content: bytearray) -> None:
        """Replace the day and the time in the header."""
        content[92:109] = b"01 Jan 8000:00:00"


def _errors() -> tuple[type[BaseException], ...]:
    pyreadstat = require("pyreadstat", "files")
    known = (pyreadstat.ReadstatError, pyreadstat.PyreadstatError)
    return (*known, OSError, ValueError, OverflowError, MemoryError, TypeError, KeyError, AttributeError, IndexError)


def _as_column(name: str, cells: Any, kind: str) -> Any:
    """Return a column with a type: texts, whole numbers, numbers, days or moments."""
    pl = require("polars", "tool")
    if kind == "string":
        texts = pl.Series(name, list(cells), dtype=pl.String)
        return pl.select(pl.when(texts != "").then(texts).alias(name)).to_series()
    column = pl.Series(name, list(cells), strict=False)
    if column.dtype == pl.Null:
        return column.cast(pl.Float64)
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = (column == column.floor()) & (column.abs() < LARGEST)
        return column.cast(pl.Int64) if whole.all() and whole.any() else column
    return column.cast(pl.Int64) if column.dtype.is_integer() else column


def _labelled(column: Any, labels: dict[Any, str]) -> Any:
    """Return labels instead of codes, if every code has one; else a note says which values have one."""
    pl = require("polars", "tool")
    if not labels or not (column.dtype.is_numeric() or column.dtype == pl.String):
        return column
    texts = dict(zip(labels, _differing(list(labels.values())), strict=True))
    cells = column.to_list()
    seen = {cell for cell in cells if cell is not None}
    if seen <= texts.keys():
        return pl.Series(column.name, [texts.get(cell) for cell in cells], dtype=pl.Enum(list(texts.values())))
    if seen & texts.keys():
        some = some_names(f"{code} = {text}" for code, text in texts.items())
        warnings.warn(
            f"Column {column.name!r}: only some values have labels ({some}); its values are kept as they are. "
            "If a label means a missing cell, declare its value: `missing=` (`--missing`).",
            EvenlyWarning,
            stacklevel=2,
        )
    return column


def _differing(texts: list[str]) -> list[str]:
    """Return labels that differ: a second one of the same text gets a number."""
    made: dict[str, None] = {}
    for text in texts:
        one, number = text, 1
        while one in made:
            number += 1
            one = f"{text} ({number})"
        made[one] = None
    return list(made)
