"""What rules know of a column: what its cells mean, which values it can hold, and how its numbers are rounded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from evenly.imputation.columns import DateColumn
from evenly.scaling import FittedColumn
from evenly.tables import (
    ClassCodes,
    Column,
    Floats,
    Precision,
    TableColumn,
    class_codes,
    days_of,
    find_precision,
    read_days,
)

Meaning = Literal["number", "date", "classes", "text"]
TICKS = {"day": 1.0, "hour": 24.0, "minute": 1440.0, "second": 86_400.0}
"""Steps of a day that dates are rounded to."""
MICROSECONDS = 86_400e6
"""The finest steps of a day that cells hold."""
LEAST_POSITIVE = 0.01
"""The least number of a positive column without zeros, as a share of the smallest observed one."""
MORE_DECIMALS = 3
"""How many decimals are added one by one, where a rule needs more than a column has."""
SINGLE, HALF = 1e-6, 2e-3
"""The relative precision of numbers that are stored with 32 and with 16 bits."""
EXACT = 2e-15
"""That of double precision, after a few operations."""


class Grid(NamedTuple):
    """The numbers that a column holds: whole multiples of one over `per`."""

    per: float

    def settle(self, values: Floats, toward: int = 0) -> Floats:
        """Return the nearest numbers of the grid, or the next ones that are not smaller (1) or not larger (-1).

        Examples
        --------
        >>> Grid(10.0).settle(np.array([0.24, 0.3]), 1), Grid(10.0).settle(np.array([0.26, 0.3]), -1)
        (array([0.3, 0.3]), array([0.2, 0.3]))
        """
        with np.errstate(all="ignore"):
            steps = np.rint(values * self.per)
            found = steps / self.per
            if toward > 0:
                found = np.where(found < values, (steps + 1.0) / self.per, found)
            elif toward < 0:
                found = np.where(found > values, (steps - 1.0) / self.per, found)
        return np.where(np.isfinite(found), found, values)


@dataclass(frozen=True)
class RuleColumn:
    """A column of the table, as rules see it."""

    name: str
    index: int
    """Its number among the columns of fit."""
    column: Column
    """What its cells mean."""
    fillable: bool
    """Whether its missing cells can be filled; not if it is passed through."""
    dtype: str
    storage: str
    precision: Precision | None = None
    """That of its observed numbers."""
    rounded: bool = True
    """Whether filled numbers are rounded to it."""
    resolution: str | None = None
    """Of dates."""
    extent: tuple[float, float] = (-np.inf, np.inf)
    """The smallest and the largest observed value; infinite if it has none."""
    frequent: tuple[int, ...] = ()
    """The codes of its classes, the most frequent first."""
    texts: tuple[str, ...] = ()
    """Of a column that is passed through, the texts that rules name: their places are its codes."""

    @property
    def meaning(self) -> Meaning:
        """What a rule takes its cells for."""
        if self.column.kind == "ignore":
            return "date" if self.storage == "time" else "number" if self.storage in ("integer", "float") else "text"
        return "date" if self.column.kind == "date" else "classes" if self.column.has_classes else "number"

    @cached_property
    def codes(self) -> ClassCodes:
        """The codes of its classes, by text and by number."""
        return class_codes(self.column)

    @cached_property
    def levels(self) -> Floats | None:
        """The numbers that its classes stand for, in the order of their codes; None if some stand for none."""
        if self.meaning != "classes" or not self.codes.all_numbers or not self.column.classes:
            return None
        levels = np.full(len(self.column.classes), np.nan)
        for number, code in self.codes.by_number.items():
            levels[int(code)] = number
        return levels

    @property
    def counts(self) -> bool:
        """Whether its cells can be computed with."""
        return self.meaning in ("number", "date") or self.levels is not None

    @property
    def origin(self) -> float:
        """The day that its dates are counted from, since 1970-01-01."""
        return days_of(self.column.origin) if self.column.kind == "date" else 0.0

    def to_numbers(self, values: Floats) -> Floats:
        """Return what rules compute with, from values or codes."""
        if self.levels is not None:
            return np.where(np.isnan(values), np.nan, self.levels[np.nan_to_num(values).astype(np.intp)])
        if self.meaning == "date":  # days from different origins are equal to the last bit then
            return Grid(MICROSECONDS).settle(values + self.origin)
        return values

    def from_numbers(self, numbers: Floats) -> Floats:
        """Return values or codes from numbers of rules; NaN where no class stands for them."""
        if self.levels is None:
            return numbers - self.origin if self.origin else numbers
        order = np.argsort(self.levels)
        known = self.levels[order]
        place = np.clip(np.searchsorted(known, numbers - 1e-9), 0, len(known) - 1)
        return np.where(np.abs(known[place] - numbers) <= 1e-9, order[place].astype(np.float64), np.nan)

    @property
    def whole(self) -> bool:
        """Whether its cells can only hold whole numbers, or whole days."""
        if self.meaning == "date":
            return self.dtype.lower().startswith("date") and "time" not in self.dtype.lower() and "64" not in self.dtype
        return self.storage == "integer" or self.column.kind == "count"

    @property
    def grid(self) -> Grid | None:
        """The grid that filled numbers are rounded to; None if they have full precision."""
        if self.meaning == "date":
            if self.whole or (self.rounded and self.resolution not in (None, "millisecond", *TICKS)):
                return Grid(1.0)
            return Grid(TICKS.get(self.resolution or "", MICROSECONDS) if self.rounded else MICROSECONDS)
        if self.rounded and self.precision is not None:
            return Grid(10.0**self.precision.decimals)
        return Grid(1.0) if self.whole else None

    @property
    def finest(self) -> Grid | None:
        """The finest grid that its cells can hold."""
        if self.meaning == "date":
            return Grid(1.0) if self.whole else Grid(MICROSECONDS)
        return Grid(1.0) if self.whole else None

    @property
    def grids(self) -> list[Grid | None]:
        """The grids for numbers that a rule needs more precisely: the column's own first, the finest last."""
        own, finest = self.grid, self.finest
        if own is None or finest is not None:
            return list(dict.fromkeys((own, finest)))
        return [own, *(Grid(own.per * 10.0**more) for more in range(1, MORE_DECIMALS + 1)), None]

    def inside(self, numbers: Floats, toward: int, *, strict: bool) -> Floats:
        """Return the nearest numbers that the column can hold and that are not smaller (1), or larger (-1), than some.

        Parameters
        ----------
        strict : bool
            Whether they must differ from the given ones.
        """
        if self.levels is not None:
            known = np.append(np.sort(toward * self.levels), np.nan)
            side: Literal["left", "right"] = "right" if strict else "left"
            return np.asarray(toward * known[np.searchsorted(known[:-1], toward * numbers, side=side)])
        grid = self.grid
        found = numbers if grid is None else grid.settle(numbers, toward)
        if strict:
            least = np.maximum(4.0 * max(self.relative, EXACT) * np.abs(numbers), 1e-9 * self.spread)
            step = least if grid is None else 1.0 / grid.per
            return np.where(found == numbers, found + toward * step, found)
        if grid is None and self.relative > EXACT:  # it may be rounded to the other side when it is stored
            return np.asarray(found + toward * self.relative * np.abs(numbers))
        return found

    @property
    def slack(self) -> float:
        """How far a computed number may be from the cell: half a unit of the last decimal that it was recorded with."""
        grid = Grid(10.0**self.precision.decimals) if self.precision is not None else self.grid
        return 0.0 if grid is None or self.levels is not None else 0.5 / grid.per

    @property
    def relative(self) -> float:
        """The relative precision that its cells are stored with."""
        dtype = self.dtype.lower()
        if "16" in dtype or dtype == "halffloat":
            return HALF if self.storage == "float" else EXACT
        return SINGLE if self.storage == "float" and ("32" in dtype or dtype == "float") else EXACT

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest number that it may hold: its declared bounds, and those of its kind."""
        if self.levels is not None:
            return float(self.levels.min()), float(self.levels.max())
        low, high = self.column.lower, self.column.upper
        if low is None and self.column.kind in ("positive", "count"):
            least = self.extent[0]
            positive = self.column.kind == "positive" and 0.0 < least < np.inf and not self.column.shift
            low = LEAST_POSITIVE * least if positive else 0.0
        return -np.inf if low is None else low + self.origin, np.inf if high is None else high + self.origin

    @property
    def spread(self) -> float:
        """The size of its differences, for want of anything better: a quarter of its observed range."""
        width = self.extent[1] - self.extent[0]
        return 0.25 * width if 0.0 < width < np.inf else 1.0

    def read(self, cells: TableColumn) -> Floats:
        """Return the cells of a column that is passed through, as numbers, days or codes of the texts that rules name.

        Other texts have the code -1.
        """
        cells = cells.fresh()
        if self.meaning == "date":
            days = read_days(cells)
            return np.full(len(cells.native), np.nan) if days is None else days
        if self.meaning == "number" and cells.storage in ("integer", "float"):
            return cells.numbers
        codes, distinct = cells.factorized
        known = {text: float(code) for code, text in enumerate(self.texts)}
        lookup = np.array([*(known.get(str(one).strip(), -1.0) for one in distinct), np.nan])
        return np.asarray(lookup[codes])


def rule_column(
    index: int,
    fitted: FittedColumn,
    meaning: Column | None = None,
    *,
    spec: object = None,
    seen: Floats | None = None,
    rounded: bool = True,
) -> RuleColumn:
    """Return a fitted column as rules see it.

    Parameters
    ----------
    meaning : Column, optional
        What its cells mean, where the table holds codes instead of classes.
    spec : ModelledColumn, optional
        How it is modelled, if that is known already.
    seen : array, optional
        Its values in the table of fit, to find their precision in; without them, the spec has it.
    rounded : bool
        Whether filled numbers are rounded to the precision of the column.
    """
    of, column = fitted.statistics, meaning or fitted.column
    precision = getattr(spec, "precision", None)
    if spec is None and seen is not None and column.kind in ("real", "positive", "count"):
        precision = find_precision(seen)
    origin = days_of(column.origin) if column.kind == "date" else 0.0
    known = of.n > 0 and bool(fitted.features) and not column.has_classes
    extent = (of.minimum - column.shift + origin, of.maximum - column.shift + origin) if known else (-np.inf, np.inf)
    return RuleColumn(
        fitted.column.name,
        index,
        column,
        bool(fitted.features),
        fitted.stored.dtype,
        fitted.stored.storage,
        None if precision is None else Precision(*precision),
        rounded,
        spec.resolution if isinstance(spec, DateColumn) else None,
        extent,
        tuple(np.argsort(-fitted.shares, kind="stable").tolist()) if column.has_classes else (),
    )
