"""Dates: modelled as binned numbers of days, and shown to the model with their place in the year, week and day.

Months, days of the week and hours go round, so each is two inputs: the sine and the cosine of its angle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenly._support import show
from evenly.imputation.columns.base import FARTHEST_TARGET, standardize
from evenly.imputation.columns.binned import BinnedColumn
from evenly.tables import Column, Floats, days_of, make_dates

DAYS_OF_YEAR = 365.2425
MONDAY = 3.0
"""1970-01-01 was a Thursday: so many days after a Monday."""
STEPS = {"day": 1.0, "hour": 24.0, "minute": 1440.0, "second": 86_400.0, "millisecond": 86_400_000.0}
"""Steps of a resolution in a day, the coarsest first."""
MONTHS = {"year": 12, "quarter": 3, "month": 1}
"""Months of the resolutions beyond a day: dates are the first of one; at `month end`, the last day."""
SLACK = 2e-11
"""Days by which a date in double precision may be off: two microseconds."""


@dataclass(frozen=True)
class DateColumn(BinnedColumn):
    """A column of dates: a binned number of days since its origin."""

    kind = "date"
    parts: Sequence[str] = ()
    """What the model sees of a date beside its days: `year`, and the cycles `season`, `weekday` and `hour`."""
    resolution: str | None = None
    """The coarsest step that all observed dates are multiples of."""

    def check(self) -> None:
        known = (*MONTHS, "month end", *STEPS, None)
        if self.column.kind != "date" or not set(self.parts) <= PARTS.keys() or self.resolution not in known:
            raise ValueError(
                f"parts {show([*self.parts])} or a resolution {show(self.resolution)} of {show(self.name)}"
            )
        super().check()

    @property
    def n_plain(self) -> int:
        return 1 + sum(PARTS[one] for one in self.parts)

    def plain_inputs(self, values: Floats) -> Floats:
        return date_inputs(self.column, self.parts, values)

    @property
    def n_gaussian(self) -> int:
        return 2 + sum(PARTS[one] for one in self.parts if one != "year")

    def gaussian_features(self, values: Floats) -> Floats:
        """Return those of the number of days, and the cycles; a year would be a multiple of the days."""
        first = super().gaussian_features(values)
        skipped = 2 if "year" in self.parts else 1
        cycles = standardize(self.plain_inputs(values), self.centers, self.spreads)[:, skipped:]
        return np.column_stack([first, np.clip(cycles, -FARTHEST_TARGET, FARTHEST_TARGET)])

    def bounded(self, values: Floats, *, rounded: bool, to_support: bool) -> Floats:
        values = super().bounded(values, rounded=False, to_support=to_support)
        if not rounded or self.resolution is None:
            return values
        origin = days_of(self.column.origin)
        return np.clip(round_days(values + origin, self.resolution) - origin, self.extent[0], self.extent[1])


PARTS = {"year": 1, "season": 2, "weekday": 2, "hour": 2}
"""Inputs of each part of a date."""


def describe_dates(column: Column, seen: Floats) -> dict[str, Any]:
    """Return what a `DateColumn` knows of observed dates: the parts that vary, and the resolution.

    Examples
    --------
    >>> describe_dates(Column(name="a", kind="date"), np.array([0.0, 7.0, 14.0]))
    {'parts': ['season'], 'resolution': 'day'}
    """
    days = seen + days_of(column.origin)
    whole = np.floor(days + SLACK)
    months = make_dates(whole).astype("datetime64[M]").astype(np.int64)
    varies = {
        "year": len(np.unique(months // 12)) > 1,
        "season": whole.max() - whole.min() > 0.0,
        "weekday": len(np.unique(whole % 7.0)) > 1,
        "hour": float(np.ptp(days - whole)) > SLACK,
    }
    resolution = find_resolution(days)
    if resolution in (*MONTHS, "month end"):  # their day of the week says nothing
        varies["weekday"] = False
        varies["season"] = len(np.unique(months % 12)) > 1
    return {"parts": [one for one, does in varies.items() if does], "resolution": resolution}


def date_inputs(column: Column, parts: Sequence[str], values: Floats) -> Floats:
    """Return the inputs of dates: days, the year, and the sine and cosine of each cycle; NaN where missing.

    Examples
    --------
    >>> monday, wednesday = date_inputs(Column(name="a", kind="date"), ["year", "weekday"], np.array([4.0, 370.0]))
    >>> monday.round(2).tolist(), wednesday.round(2).tolist()
    ([4.0, 1970.0, 0.0, 1.0], [370.0, 1971.0, 0.97, -0.22])
    """
    days = values + days_of(column.origin)
    found = [values]
    with np.errstate(invalid="ignore"):
        for part in parts:
            if part == "year":
                years = make_dates(days).astype("datetime64[Y]").astype(np.int64) + 1970.0
                found.append(np.where(np.isnan(days), np.nan, years))
                continue
            turns = {"season": days / DAYS_OF_YEAR, "weekday": np.floor(days + SLACK + MONDAY) / 7.0, "hour": days}
            angle = 2.0 * np.pi * (turns[part] % 1.0)
            found += [np.sin(angle), np.cos(angle)]
    return np.column_stack(found)


def find_resolution(days: Floats) -> str | None:
    """Return the coarsest step that all dates, as days since 1970-01-01, are multiples of; None if there is none.

    Examples
    --------
    >>> find_resolution(np.array([0.0, 31.0])), find_resolution(np.array([0.0, 30.0, 0.5]))
    ('month', 'hour')
    """
    candidates = (*MONTHS, "month end", *STEPS)
    return next((one for one in candidates if (np.abs(round_days(days, one) - days) <= SLACK).all()), None)


def round_days(days: Floats, resolution: str) -> Floats:
    """Return the nearest dates of a resolution.

    Examples
    --------
    >>> round_days(np.array([20.0, 40.3]), "month"), round_days(np.array([40.3]), "month end")
    (array([31., 31.]), array([30.]))
    """
    if resolution in STEPS:
        return np.rint(days * STEPS[resolution]) / STEPS[resolution]
    if resolution == "month end":
        return round_days(days + 1.0, "month") - 1.0
    n = MONTHS[resolution]
    first = make_dates(days).astype("datetime64[M]").astype(np.int64) // n * n
    low, high = ((first + ahead).astype("datetime64[M]").astype("datetime64[D]").astype(np.float64) for ahead in (0, n))
    return np.where(days - low < high - days, low, high)
