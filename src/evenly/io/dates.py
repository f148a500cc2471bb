"""Dates that no calendar has: types of 32 and 64 bits hold more than libraries can show."""

from __future__ import annotations

from typing import Any

from evenly._support import TableError, require

YEARS = (1, 9999)
"""The years that Python, spreadsheets and statistical packages know."""


def refuse_strange_dates(frame: Any) -> Any:
    """Refuse, by column, dates outside the years 1 to 9999, which end in a panic when they are printed.

    Examples
    --------
    >>> import polars as pl
    >>> refuse_strange_dates(pl.DataFrame({"day": pl.Series([19723, 2**30], dtype=pl.Int32).cast(pl.Date)}))
    Traceback (most recent call last):
    evenly.TableError: Column 'day': got row 2, which is no date, but expected years from 1 to 9999. Hint: make ...
    """
    pl = require("polars", "tool")
    for column in frame.get_columns():
        if column.dtype != pl.Date and column.dtype.base_type() != pl.Datetime:
            continue
        # A date far outside has no year. As stored, without a time zone, which could not be computed either.
        own = column if column.dtype == pl.Date else column.to_physical().cast(pl.Datetime(column.dtype.time_unit))
        strange = column.is_not_null() & ~own.dt.year().is_between(*YEARS).fill_null(False)
        if strange.any():
            raise TableError(
                f"row {strange.arg_max() + 1}, which is no date",
                f"expected years from {YEARS[0]} to {YEARS[1]}",
                "make such cells missing",
                column=column.name,
            )
    return frame
