"""Types of text columns: numbers only if every cell is one, decided by the whole column, at once or in parts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evenly._support import NUMBER, TELEPHONE, EvenlyWarning, require
from evenly.io.errors import shortened

_INTEGER = r"^[+-]?(?:0|[1-9][0-9]*)$"
_INFINITE = r"^(?i)[+-]?inf(?:inity)?$"
_NAN = r"^(?i)[+-]?nan$"
_COMMA_NUMBER = r"^[+-]?(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
LARGEST = 2.0**53
"""From here on double precision drops digits of whole numbers."""


def some_names(names: Iterable[str]) -> str:
    """Return the first ten names, as a message quotes them.

    Examples
    --------
    >>> some_names(f"x{j}" for j in range(99))
    "'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7', 'x8', 'x9', ..."
    """
    shown = [repr(shortened(name, 40)) for name in names]
    return ", ".join(shown[:10]) + (", ..." if len(shown) > 10 else "")


def infer_types(frame: Any, *, decimal_comma: bool = False, name: str = "the table") -> Any:
    """Turn text columns whose every cell is a number into numbers; other columns stay as they are.

    A column with a leading zero, of telephone numbers such as +4917012345, or with whole numbers beyond 64 bits, stays
    text. Empty texts are missing cells.

    Parameters
    ----------
    frame : polars.DataFrame
        The table.
    decimal_comma : bool
        Whether `3,14` is a number too.
    name : str
        What messages call the table.

    Examples
    --------
    >>> import polars as pl
    >>> infer_types(pl.DataFrame({"zip": ["02139", "10115"], "n": ["3", ""], "x": ["1e3", "-.5"]})).dtypes
    [String, Int64, Float64]
    """
    pl = require("polars", "tool")
    columns, commas = [], []
    for column in frame.get_columns():
        if column.dtype == pl.String:
            column = _without(column, column == "")
            with_points = _with_points(column) if decimal_comma else None
            if with_points is not None:
                commas.append(column.name)
                column = with_points
            column = _as_numbers(column)
        columns.append(column)
    warn_of_commas(commas, name)
    return pl.DataFrame(columns)


def warn_of_commas(columns: Sequence[str], name: str) -> None:
    """Say which columns had decimal commas, if any."""
    if columns:
        warnings.warn(
            f"{name}: numbers with a decimal comma in {some_names(columns)} were read as numbers (3,14 as 3.14); "
            "they are written with a point.",
            EvenlyWarning,
            stacklevel=3,
        )


def _without(column: Any, gone: Any) -> Any:
    pl = require("polars", "tool")
    return pl.select(pl.when(~gone).then(column).alias(column.name)).to_series() if gone.any() else column


def _as_numbers(column: Any) -> Any:
    """Return a text column as whole numbers, or as numbers, if all its cells are; otherwise unchanged."""
    pl = require("polars", "tool")
    words = f"{NUMBER}|{_INFINITE}|{_NAN}"
    first = column.drop_nulls().head(100).str.strip_chars()
    if not len(first) or not first.str.contains(words).all() or _are_telephones(column):
        return column
    maybe_whole = first.str.contains(f"{_INTEGER}|{_NAN}").all()
    if maybe_whole:
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count() == column.null_count() and (whole.cast(pl.String) == column).all():
            return whole  # the usual case, without regular expressions
    cells = column.str.strip_chars()
    if not cells.str.contains(NUMBER).all():
        if not cells.str.contains(words).all():
            return column
        cells = _without(cells, cells.str.contains(_NAN))
    if maybe_whole:
        whole = cells.cast(pl.Int64, strict=False)
        if whole.null_count() == cells.null_count() < len(cells):
            return whole
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count() > cells.null_count() or not numbers.is_finite().any():
        return column
    # Beyond 2^53 double precision drops digits of whole numbers, and beyond 1.8e308 it knows only infinity.
    large = cells.filter(numbers.abs() >= LARGEST)
    made_infinite = numbers.is_infinite().sum() > large.str.contains(_INFINITE).sum()
    return column if made_infinite or large.str.contains(_INTEGER).any() else numbers


def _are_telephones(column: Any) -> bool:
    """Whether all cells are telephone numbers with the code of a country, which would lose their plus."""
    cells = column.drop_nulls()
    return all(bool(some.str.contains(TELEPHONE).all()) for some in (cells.head(100), cells)) and len(cells) > 0


def _with_points(column: Any) -> Any:
    """Return a column of numbers with decimal commas as one with points; None for any other column.

    Cells without a digit, such as NA, may be among them.
    """
    cells = column.str.strip_chars()
    digits = cells.str.contains("[0-9]").fill_null(False)
    some = cells.filter(digits)
    if not len(some) or not some.head(100).str.contains(_COMMA_NUMBER).all():
        return None
    if not some.str.contains(",", literal=True).any() or not some.str.contains(_COMMA_NUMBER).all():
        return None
    return _pointed(column)


def _pointed(column: Any) -> Any:
    """Return cells with a digit with a decimal point instead of a comma."""
    cells = column.str.strip_chars()
    points = cells.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return points.zip_with(cells.str.contains("[0-9]").fill_null(False), column)


# --- in parts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What some cells of a text column say about its type; `a + b` is what both parts say."""

    numbers: bool = True
    """Every cell spells a number, infinity or NaN."""
    whole: bool = True
    """Every cell spells a whole number of 64 bits, or NaN."""
    finite: bool = False
    """Some cell spells a finite number."""
    beyond: bool = False
    """Some cell spells a number whose digits double precision would drop."""

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.numbers and other.numbers,
            self.whole and other.whole,
            self.finite or other.finite,
            self.beyond or other.beyond,
        )

    @property
    def dtype(self) -> Any:
        """The type of the whole column."""
        pl = require("polars", "tool")
        if not (self.numbers and self.finite):
            return pl.String
        return pl.Int64 if self.whole else pl.String if self.beyond else pl.Float64


def weigh(column: Any) -> Evidence:
    """Return what the cells of a text column, without empty ones, say about its type.

    Examples
    --------
    >>> import polars as pl
    >>> weigh(pl.Series(["1", "nan"])).dtype, (weigh(pl.Series(["1"])) + weigh(pl.Series([".5"]))).dtype
    (Int64, Float64)
    """
    pl = require("polars", "tool")
    cells = column.drop_nulls()
    whole = cells.cast(pl.Int64, strict=False)
    if not whole.null_count() and (whole.cast(pl.String) == cells).all():  # the usual case
        return Evidence(finite=len(cells) > 0, beyond=bool((whole.cast(pl.Float64).abs() >= LARGEST).any()))
    cells = cells.str.strip_chars()
    if _are_telephones(cells) or not cells.str.contains(f"{NUMBER}|{_INFINITE}|{_NAN}").all():
        return Evidence(numbers=False, whole=False)
    cells = cells.filter(~cells.str.contains(_NAN))
    numbers = cells.cast(pl.Float64, strict=False)
    large = cells.filter(numbers.abs() >= LARGEST)
    made_infinite = numbers.is_infinite().sum() > large.str.contains(_INFINITE).sum()
    return Evidence(
        numbers=not numbers.null_count(),
        whole=bool(cells.str.contains(_INTEGER).all()) and not cells.cast(pl.Int64, strict=False).null_count(),
        finite=bool(numbers.is_finite().any()),
        beyond=bool(made_infinite or large.str.contains(_INTEGER).any()),
    )


@dataclass(frozen=True)
class ColumnEvidence:
    """What some cells of a column say, as they are and, if commas may be decimal ones, with points instead."""

    plain: Evidence = Evidence()
    pointed: Evidence = Evidence()
    commas_only: bool = True
    """Every cell with a digit spells a number with or without a decimal comma."""
    commas: bool = False
    """Some cell has a decimal comma."""

    def __add__(self, other: ColumnEvidence) -> ColumnEvidence:
        return ColumnEvidence(
            self.plain + other.plain,
            self.pointed + other.pointed,
            self.commas_only and other.commas_only,
            self.commas or other.commas,
        )

    @classmethod
    def of(cls, column: Any, *, decimal_comma: bool) -> ColumnEvidence:
        """Weigh some cells."""
        column = _without(column, column == "")
        if not decimal_comma:
            return cls(weigh(column))
        cells = column.str.strip_chars()
        some = cells.filter(cells.str.contains("[0-9]").fill_null(False))
        if not some.str.contains(_COMMA_NUMBER).all():
            return cls(weigh(column), commas_only=False)
        return cls(weigh(column), weigh(_pointed(column)), True, bool(some.str.contains(",", literal=True).any()))

    @property
    def decimal_comma(self) -> bool:
        """Whether the column's numbers have decimal commas."""
        return self.commas_only and self.commas

    def convert(self, column: Any) -> Any:
        """Return cells with the type of the whole column."""
        pl = require("polars", "tool")
        column = _without(column, column == "")
        column = _pointed(column) if self.decimal_comma else column
        dtype = (self.pointed if self.decimal_comma else self.plain).dtype
        if dtype == pl.String:
            return column
        cells = column.str.strip_chars()
        return _without(cells, cells.str.contains(_NAN).fill_null(False)).cast(dtype)
