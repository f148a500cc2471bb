"""Workbooks (Excel, OpenDocument) as a Polars frame: the sheet, the table in it, and its types; and written."""

from __future__ import annotations

import io
import logging
import warnings
from datetime import datetime
from typing import IO, Any

from evenly._support import EvenlyWarning, TableError, require, require_later
from evenly.io.delimited import name_columns, refuse_same, tidy
from evenly.io.errors import as_table_error, polars_errors, shortened, without_panics
from evenly.io.formats import Format, Reading
from evenly.io.types import LARGEST, infer_types, some_names
from evenly.io.workbook_checks import check_workbook

HEAD = 100
"""Rows among which the header is searched."""
_MOST_ROWS, _MOST_COLUMNS, _MOST_LETTERS = 1_048_576, 16_384, 32_767
"""What a sheet of Excel holds: rows with the header, columns, and characters of a cell."""


class Workbook(Format):
    """A workbook of sheets, one of which is the table."""

    sheets, in_parts = True, False

    def read(self, data: bytes, how: Reading) -> Any:
        """Return the table of a sheet as a Polars frame."""
        fastexcel = require("fastexcel", "files")
        for library in ("fastexcel", "calamine"):
            logging.getLogger(library).setLevel(logging.ERROR)  # they report every column without a cell
        errors = (fastexcel.FastExcelError, *polars_errors(), ValueError, MemoryError, OverflowError)
        with as_table_error(how.name, "expected a whole and sound workbook", errors):
            check_workbook(data, how)
            with without_panics():
                workbook = fastexcel.read_excel(data)
                sheet, others = _choose(workbook, how)
                frame = _table(workbook, sheet, how.name)
        if others:
            warnings.warn(
                f"{how.name}: read from the sheet {shortened(sheet)!r}; not read: {some_names(others)}. Another one is "
                "chosen by its name: `sheet=` (`--sheet`).",
                EvenlyWarning,
                stacklevel=2,
            )
        return frame

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Refuse to write it."""
        self.check_writable()


class Excel(Workbook):
    """Workbooks of Excel since 2007."""

    name, extensions = "xlsx", (".xlsx", ".xlsm")

    def matches(self, data: bytes) -> bool:
        """Whether it is an archive with the parts of a workbook."""
        return data.startswith(b"PK\x03\x04") and b"xl/" in data

    def check_writable(self) -> None:
        """Refuse it without the package that writes it."""
        require_later("xlsxwriter", "files")

    def check(self, frame: Any) -> Any:
        """Refuse what a sheet cannot hold; whole numbers whose digits Excel would drop become text."""
        pl = require("polars", "tool")
        self.refuse(frame, (pl.Binary, pl.Object, pl.List, pl.Array, pl.Struct, pl.Duration))
        refuse_same([tidy(name) for name in frame.columns if tidy(name)], "the table, but for white space")
        if frame.height >= _MOST_ROWS or frame.width > _MOST_COLUMNS:
            got = f"{frame.height:,} rows and {frame.width:,} columns"
            raise TableError(
                got, f"a sheet holds {_MOST_ROWS - 1:,} rows and {_MOST_COLUMNS:,} columns", "write parquet"
            )
        return frame.with_columns(_as_cells(column) for column in frame.get_columns())

    def write(self, frame: Any, file: IO[bytes]) -> None:
        """Write a workbook of one sheet."""
        xlsxwriter = require("xlsxwriter", "files")
        content = io.BytesIO()
        settings = {
            "in_memory": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
            "nan_inf_to_errors": True,
        }
        with xlsxwriter.Workbook(content, settings) as workbook:
            workbook.set_properties({"created": datetime(1980, 1, 1)})  # same table, same bytes
            sheet = workbook.add_worksheet("table")
            sheet._xml_number_element = _exactly(sheet)
            dates, times = (
                workbook.add_format({"num_format": form}) for form in ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss.000")
            )
            for j, column in enumerate(frame.get_columns()):
                sheet.write_string(0, j, column.name)
                kind = _writer(sheet, column.dtype, dates, times)
                for i, cell in enumerate(column, 1):
                    if cell is not None:
                        kind(i, j, cell)
            sheet.freeze_panes(1, 0)
        file.write(content.getvalue())


class OpenDocument(Workbook):
    """Workbooks of LibreOffice; they are only read."""

    name, extensions = "ods", (".ods",)

    def matches(self, data: bytes) -> bool:
        """Whether it is an archive that begins with its type."""
        return data.startswith(b"PK\x03\x04") and b"opendocument.spreadsheet" in data[:200]

    def check_writable(self) -> None:
        """Refuse to write it: there is no maintained library that does."""
        raise TableError("the format 'ods' to write", "it can only be read", "write .xlsx, which LibreOffice opens")


# --- reading --------------------------------------------------------------------------------------------------


def _choose(workbook: Any, how: Reading) -> tuple[str, list[str]]:
    """Return the name of the sheet to read, and of others that hold tables but were not asked for."""
    names = list(workbook.sheet_names)
    if isinstance(how.sheet, str) and how.sheet in names:
        return how.sheet, []
    if how.sheet is not None:
        number = int(how.sheet) if str(how.sheet).isdecimal() else 0
        if not 0 < number <= len(names):
            raise TableError(
                f"the sheet {how.sheet!r} of {how.name}", f"expected one of {some_names(names)}, or a number from 1"
            )
        return names[number - 1], []
    filled = [name for name in names if _head(workbook, name, 2).height > 1]
    if not filled:
        raise TableError(f"{how.name} without a sheet of at least 2 rows", "expected a header and rows")
    return filled[0], filled[1:]


def _head(workbook: Any, sheet: str, n_rows: int) -> Any:
    """Return the first rows of a sheet as texts."""
    return workbook.load_sheet(sheet, header_row=None, skip_rows=0, n_rows=n_rows, dtypes="string").to_polars()


def _table(workbook: Any, sheet: str, name: str) -> Any:
    """Return the table in a sheet: from the first row of names, without blank rows and columns."""
    pl = require("polars", "tool")
    head = _head(workbook, sheet, HEAD)
    if not head.width:
        raise TableError(f"the sheet {sheet!r} of {name}, which is empty", "expected a table")
    at = _find_header(head)
    rows = workbook.load_sheet(sheet, header_row=None, skip_rows=at + 1, schema_sample_rows=None).to_polars()
    names = [tidy(cell or "") for cell in head.row(at)] + [""] * (rows.width - head.width)
    columns = [column for column in rows.get_columns() if column.dtype != pl.Null]
    texts = [column.cast(pl.String) if column.dtype == pl.Null else column for column in rows.get_columns()]
    kept = [j for j, one in enumerate(texts) if names[j] or one.null_count() < len(one)]
    if not columns or not kept:
        raise TableError(f"the sheet {sheet!r} of {name} with 0 rows below its header", "expected at least 1")
    named = name_columns([names[j] for j in kept], name)
    frame = pl.DataFrame([_typed(texts[j]).alias(one) for j, one in zip(kept, named, strict=True)])
    frame = _without_blank(frame)
    above = [cell for row in head.head(at).rows() for cell in row if cell is not None]
    if above:
        warnings.warn(
            f"{name}: the table begins in row {at + 1} of the sheet {shortened(sheet)!r}; above it: "
            f"{some_names(above[:3])}.",
            EvenlyWarning,
            stacklevel=2,
        )
    return infer_types(frame, name=name)


def _find_header(head: Any) -> int:
    """Return which row holds the names: the first that is about as wide as the widest, below titles and groups."""
    widths = [sum(cell is not None and cell.strip() != "" for cell in row) for row in head.rows()]
    widest = max(widths)
    if not widest:
        return 0
    return next(i for i, width in enumerate(widths) if width * 5 > widest * 3)


def _typed(column: Any) -> Any:
    """Return whole numbers and days as such: a sheet knows only numbers and moments."""
    pl = require("polars", "tool")
    if column.dtype.is_float():
        whole = column.is_finite() & (column == column.floor()) & (column.abs() < LARGEST)
        return column.cast(pl.Int64) if whole.all() and whole.any() else column
    if column.dtype.base_type() == pl.Datetime:
        days = column.cast(pl.Date)
        return days if (days.cast(column.dtype) == column).all() else column
    if column.dtype == pl.String:
        return pl.select(pl.when(column.str.strip_chars() != "").then(column)).to_series()
    return column


def _without_blank(frame: Any) -> Any:
    """Drop rows without a cell: all of them, or those at the end of a single column."""
    pl = require("polars", "tool")
    if frame.width > 1:
        return frame.filter(~pl.all_horizontal(pl.all().is_null()))
    present = frame.to_series().is_not_null().arg_true()
    return frame.head(present[-1] + 1 if len(present) else 0)


# --- writing --------------------------------------------------------------------------------------------------


def _as_cells(column: Any) -> Any:
    """Return a column as cells of Excel: numbers, flags, moments or texts."""
    pl = require("polars", "tool")
    if column.dtype.is_float():
        return pl.select(pl.when(column.is_finite()).then(column).alias(column.name)).to_series()
    if column.dtype.is_integer():
        return column.cast(pl.String) if (column.cast(pl.Float64).abs() >= LARGEST).any() else column
    if column.dtype in (pl.Boolean, pl.Date):
        return column
    if column.dtype.base_type() == pl.Datetime and column.dtype.time_zone is None:
        return column
    texts = column.cast(pl.String)
    long = (texts.str.len_chars() > _MOST_LETTERS).fill_null(False)
    if long.any():
        got = f"a text of {texts.filter(long).str.len_chars()[0]:,} characters"
        raise TableError(got, f"Excel holds {_MOST_LETTERS:,} in a cell", "write parquet", column=column.name)
    return texts


def _writer(sheet: Any, dtype: Any, dates: Any, times: Any) -> Any:
    """Return what writes a cell of a type."""
    pl = require("polars", "tool")
    if dtype.is_numeric():
        return sheet.write_number
    if dtype == pl.Boolean:
        return sheet.write_boolean
    if dtype == pl.Date:
        return lambda i, j, cell: sheet.write_datetime(i, j, cell, dates)
    if dtype.base_type() == pl.Datetime:
        return lambda i, j, cell: sheet.write_datetime(i, j, cell, times)
    return sheet.write_string


def _exactly(sheet: Any) -> Any:
    """Return what writes a number with all its digits; XlsxWriter rounds to 16."""

    def write(number: float, attributes: Any = ()) -> None:
        shown = "".join(f' {key}="{value}"' for key, value in attributes)
        sheet.fh.write(f"<c{shown}><v>{number!r}</v></c>")

    return write
