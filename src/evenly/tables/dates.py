"""Dates of native types as days, and back; dates with a time zone as the time on the clock there."""

from __future__ import annotations

from datetime import date
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly.tables.columns import Floats, TableColumn, missing_cells
from evenly.tables.formats import EPOCH

DAY = 86_400_000_000
"""Microseconds of a day."""
TICKS = {"day": 1, "s": 86_400, "ms": 86_400_000, "us": DAY, "ns": 1_000 * DAY}
"""Units of time in a day."""
FIRST, LAST = 1 - EPOCH, date.max.toordinal() + 1 - EPOCH
"""The days from which and up to which there are dates, since 1970-01-01."""
NO_DATES = "dates or times"
"""The note of a column of dates or times that is no variable."""


def read_days(cells: TableColumn) -> Floats | None:
    """Return the days since 1970-01-01 of cells that are stored as dates, NaN where missing; None if they are others.

    Dates beyond the years 1 to 9999, which are damage rather than dates, are none either.

    Examples
    --------
    >>> read_days(TableColumn("a", np.array(["1970-01-02T12:00", "NaT"], "datetime64[s]"))).tolist()
    [1.5, nan]
    """
    stored = cells.readable
    if isinstance(stored, np.ndarray):
        return _of_array(stored) if stored.dtype.kind == "M" else None
    if not isinstance(stored.dtype, (nw.Date, nw.Datetime)):
        return None
    if getattr(stored.dtype, "time_zone", None) is not None:
        stored = stored.dt.replace_time_zone(None)
    try:
        if stored.implementation.is_pandas_like():
            days = TableColumn(cells.name, stored.cast(nw.Datetime("us")).dt.timestamp("us")).numbers / DAY
        else:  # as they are stored, since a cast may overflow
            unit = TICKS[getattr(stored.dtype, "time_unit", "day")]
            ticks = stored.cast(nw.Int32 if stored.dtype == nw.Date else nw.Int64)
            days = TableColumn(cells.name, ticks).numbers / unit
    except Exception:  # each library has its own for a date that its time stamps cannot hold
        return None
    inside = np.isnan(days) | ((days >= FIRST) & (days < LAST))
    return days if inside.all() else None


def _of_array(values: npt.NDArray[Any]) -> Floats:
    gone = missing_cells(values)
    ticks = np.where(gone, np.datetime64(0, "us"), np.ma.getdata(values)).astype("datetime64[us]").astype(np.int64)
    return np.where(gone, np.nan, ticks / DAY)


def make_dates(days: Floats) -> npt.NDArray[np.datetime64]:
    """Return days since 1970-01-01 as dates, to the microsecond; NaT where missing.

    Examples
    --------
    >>> make_dates(np.array([1.5, np.nan])).tolist()
    [datetime.datetime(1970, 1, 2, 12, 0), None]
    """
    gone = np.isnan(days)
    ticks = np.rint(np.where(gone, 0.0, days) * DAY).astype(np.int64)
    return np.where(gone, np.datetime64("NaT", "us"), ticks.astype("datetime64[us]"))


def find_origin(mean: float) -> str | None:
    """Return the day of a mean of days, from which a column of dates counts its own."""
    try:
        return date.fromordinal(int(np.floor(mean)) + EPOCH).isoformat()
    except (ValueError, OverflowError):  # beyond the calendar
        return None


def days_of(origin: str | None) -> float:
    """Return the days since 1970-01-01 of an origin; ValueError if it is no date.

    Examples
    --------
    >>> days_of("1970-02-01"), days_of(None)
    (31.0, 0.0)
    """
    return 0.0 if origin is None else float(date.fromisoformat(origin).toordinal() - EPOCH)


def show_day(days: float) -> str:
    """Return days since 1970-01-01 as people write dates."""
    day, _, time = str(make_dates(np.array([days]))[0]).partition("T")
    return day if time == "00:00:00.000000" else f"{day} {time.removesuffix('.000000')}"


def build_dates(dates: npt.NDArray[np.datetime64], container: str, dtype: Any, *, days: bool = False) -> Any:
    """Return dates as a native column of a type; in a time zone, a time that the clock skips becomes the next one.

    In columns of objects, they become `datetime.datetime`, or `datetime.date` if `days` is true.
    """
    if str(dtype).lower() == "object":
        objects = dates.astype("datetime64[D]" if days else "datetime64[us]").astype(object)
        return _polars_objects(objects) if container == "polars" else objects
    if container == "numpy":
        return dates.astype(dtype) if dtype.kind == "M" else dates.astype(object)
    if container == "polars":
        return _build_polars(dates, dtype)
    if container == "pyarrow":
        return _build_arrow(dates, dtype)
    return _build_pandas(dates, dtype)


def _polars_objects(objects: npt.NDArray[Any]) -> Any:
    import polars as pl

    return pl.Series(objects.tolist(), dtype=pl.Object)


def _build_polars(dates: npt.NDArray[np.datetime64], dtype: Any) -> Any:
    import polars as pl

    plain: Any = pl.Series(dates)
    if (zone := getattr(dtype, "time_zone", None)) is not None:
        local, later = (
            one.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
            for one in (plain, plain.dt.offset_by("1h"))
        )
        plain = local.fill_null(later)
    return plain if dtype is None else plain.cast(dtype)


def _build_arrow(dates: npt.NDArray[np.datetime64], dtype: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pa.array(dates)
    if (zone := getattr(dtype, "tz", None)) is not None:
        plain = pc.assume_timezone(plain, zone, ambiguous="earliest", nonexistent="latest")
    return plain if dtype is None else plain.cast(dtype, safe=False)


def _build_pandas(dates: npt.NDArray[np.datetime64], dtype: Any) -> Any:
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(_build_arrow(dates, dtype.pyarrow_dtype))
    plain = pd.Series(dates)
    if isinstance(dtype, pd.PeriodDtype):
        return _nearest_periods(plain, dtype)
    if (zone := getattr(dtype, "tz", None)) is not None:
        plain = plain.dt.tz_localize(zone, ambiguous=np.ones(len(dates), bool), nonexistent="shift_forward")
    return (plain if dtype is None else plain.astype(dtype)).array


def _nearest_periods(dates: Any, dtype: Any) -> Any:
    """Return the periods of a pandas type whose starts are nearest to some dates."""
    before = dates.astype(dtype)
    after = before + 1
    later = after.dt.to_timestamp() - dates < dates - before.dt.to_timestamp()
    return before.where(~later, after).array
