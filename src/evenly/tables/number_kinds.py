"""Which kind a column of numbers is: numbers, unless a name, the values or the other columns say that they are codes.

A rule is a function that decides, or leaves the column to the next one. They are tried in the order of `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenly.tables.columns import TableColumn
from evenly.tables.decisions import Decision
from evenly.tables.kind_names import NameReading, read_name
from evenly.tables.order_evidence import MOST_LEVELS, Smoothness
from evenly.tables.profile import MOST_SPAN, ColumnProfile

MOST_CLASSES = 100
"""A column with more classes is passed through: under a trick every class is a feature."""
FEW_LEVELS = 20
"""Whole numbers with at most this many distinct values may be codes of classes without a name that says so."""
FEWER_LEVELS = 7
"""Levels of a scale that people answer on, or of a short list of codes: at most this many."""
ROWS_A_LEVEL = 5
"""Rows for each level, on average, from which on levels say something about the other columns."""
MOST_OVERDISPERSION = 100.0
"""Variance over mean up to which whole numbers are counts: 1 under a Poisson, tens in real data."""
SEVERAL_ROWS = 1.5
"""Rows for each value, on average, from which on it names a unit with several rows."""
MANY_ROWS = 20
"""Rows for each value, on average, from which on a few units are classes to learn from."""

EXACT = 2.0**53
"""Up to here, double precision holds every whole number."""
MERGED = 1.5
"""Whole numbers for each double, on average, from which on rounding would merge them: times in nanoseconds have one."""
_NAMING = ("key", "unit", "running", "code", "place")
"""What names say that make numbers stand for things, however many there are."""
YEARS = (1500.0, 2200.0)
_CALENDAR_RANGE = {"month": (0, 12), "quarter": (1, 4), "weekday": (0, 7), "season": (0, 5)}
"""The parts of a date that are classes, and the numbers that they have."""
_NUMBERED = {"hour": (0, 24), "minute": (0, 60), "day": (0, 366)}
"""The parts of a date that are numbers."""


@dataclass(frozen=True)
class Numbers:
    """What the rules look at: the values of a column, its name, and what its order means to the other columns."""

    cells: TableColumn
    profile: ColumnProfile

    @cached_property
    def name(self) -> NameReading:
        """What the name says."""
        return read_name(self.cells.name)

    @cached_property
    def n_levels(self) -> int | None:
        """Distinct values; None if there are too many to matter, or nobody counted them."""
        listed = self.profile.distinct
        return len(listed) if listed is not None else self.profile.n_distinct if self.name.meaning in _NAMING else None

    @property
    def rows_a_level(self) -> float:
        """Rows for each distinct value, on average."""
        return self.profile.n / max(self.n_levels or 1, 1)

    @property
    def low(self) -> float:
        """The smallest value."""
        return self.profile.minimum

    @property
    def high(self) -> float:
        """The largest value."""
        return self.profile.maximum

    @property
    def contiguous(self) -> bool:
        """Whether all whole numbers between the smallest, which is 0 or 1, and the largest occur."""
        return self.low in (0.0, 1.0) and self.n_levels == self.high - self.low + 1

    @property
    def runs_from_elsewhere(self) -> bool:
        """Whether all numbers between two occur that are neither 0 nor 1, such as ages; or all are years.

        Codes that do not start at 0 or 1 have gaps, such as 11, 12, 13, 21, 22.
        """
        dense = self.low > 1.0 and self.n_levels == self.high - self.low + 1
        return dense or (self.low >= YEARS[0] and self.high <= YEARS[1])

    @property
    def balanced(self) -> bool:
        """Whether each value occurs as often."""
        return len(set(self.profile.counts or (1, 2))) == 1

    @property
    def has_shape(self) -> bool:
        """Whether the counts of neighbouring values are alike: those of a quantity are, of arbitrary numbers not."""
        counts = np.array(self.profile.counts or (), float)
        if len(counts) <= FEWER_LEVELS or counts.var() == 0.0:
            return False
        return bool((np.diff(counts) ** 2).mean() < counts.var())

    @property
    def span(self) -> str:
        """The extent, in words."""
        return f"whole numbers {self.low:g} to {self.high:g}"

    @cached_property
    def smoothness(self) -> Smoothness | None:
        """How smoothly the other columns go along the values, if there are few and the table is in memory."""
        levels, profile = self.n_levels or 0, self.profile
        asked = 3 <= levels <= MOST_LEVELS and self.rows_a_level >= ROWS_A_LEVEL
        if self.cells.companions is None or profile.numbers is None or not asked:
            return None
        return self.cells.companions.smoothness(self.cells.name, profile.numbers)


Rule = Callable[[Numbers], Decision | None]


def decide_numbers(cells: TableColumn, profile: ColumnProfile) -> Decision:
    """Decide on a column of numbers."""
    column = Numbers(cells, profile)
    for rule in RULES:
        if (decision := rule(column)) is not None:
            return decision
    raise AssertionError("the last rule decides")  # pragma: no cover


def may_be_identifier(name: str, profile: ColumnProfile) -> bool:
    """Whether it has to be known how many numbers differ, as they may be an identifier or the key of units."""
    meaning = read_name(name).meaning
    if profile.n < 2 or not (profile.whole or meaning == "key"):
        return False
    return (meaning in _NAMING and profile.maximum > profile.minimum) or _consecutive_if_all_differ(profile)


def _consecutive_if_all_differ(profile: ColumnProfile) -> bool:
    years = YEARS[0] <= profile.minimum and profile.maximum <= YEARS[1]
    return profile.n >= MANY_ROWS and profile.maximum - profile.minimum == profile.n - 1 and not years


# --- the rules -----------------------------------------------------------------------------------------------------


def long_numbers(column: Numbers) -> Decision | None:
    """Whole numbers that differ in digits for which double precision has no room are no quantities."""
    if not column.profile.whole or max(abs(column.low), abs(column.high)) <= EXACT:
        return None
    exact = {int(text) for text in map(str, column.cells.factorized[1]) if text.strip().lstrip("+-").isdecimal()}
    if not exact or len(exact) < MERGED * len({float(number) for number in exact}):
        return None
    what = "identifier: " if len(exact) == column.profile.n else ""
    return Decision("ignore", f"{what}long whole numbers that differ in their last digits", "likely")


def two_values(column: Numbers) -> Decision | None:
    """Two values are a choice."""
    profile = column.profile
    if not profile.two_valued or not (profile.distinct == (0, 1) or profile.n >= ROWS_A_LEVEL):
        return None
    if not profile.whole and column.rows_a_level < ROWS_A_LEVEL:
        return None
    usual = profile.distinct in ((0, 1), (1, 2)) or column.name.meaning in ("classes", "place", "levels")
    if usual:
        return Decision("binary")
    return Decision("binary", "two values", "likely", "count" if profile.whole and column.low >= 0.0 else "real")


def named_keys(column: Numbers) -> Decision | None:
    """What is called an identifier is one, also if its numbers have decimals."""
    return keys(column) if column.name.meaning == "key" else None


def fractions(column: Numbers) -> Decision | None:
    """Numbers with decimals are quantities."""
    if column.profile.whole:
        return None
    return Decision("real" if column.low < 0.0 else "positive")


def dates(column: Numbers) -> Decision | None:
    """Numbers such as 20241231 are dates, if all of them are."""
    low, high = 1e4 * YEARS[0] + 101.0, 1e4 * YEARS[1] + 1231.0
    numbers = column.profile.numbers
    if numbers is None or not (low <= column.low and column.high <= high) or column.profile.n < ROWS_A_LEVEL:
        return None
    seen = numbers[~np.isnan(numbers)]
    month, day = seen // 100 % 100, seen % 100
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return Decision("ignore", "dates or times, as numbers", "likely", "count") if valid.all() else None


def calendar(column: Numbers) -> Decision | None:
    """Years, hours and days are numbers; months, quarters and weekdays are classes in order."""
    part = column.name.calendar
    if part == "year" and column.low >= YEARS[0] and column.high <= YEARS[1]:
        return Decision("real", f"years {column.low:g} to {column.high:g}")
    if part in _CALENDAR_RANGE and _CALENDAR_RANGE[part][0] <= column.low and column.high <= _CALENDAR_RANGE[part][1]:
        return Decision("categorical" if part == "season" else "ordinal", f"{part}s by number", "sure", "count")
    if part in _NUMBERED and _NUMBERED[part][0] <= column.low and column.high <= _NUMBERED[part][1]:
        return Decision("count", f"{column.span}: {part}s", "likely", "ordinal")
    return None


def keys(column: Numbers) -> Decision | None:
    """Numbers of an identifier, or of units with several rows, have no size."""
    name, n_levels, n = column.name, column.n_levels, column.profile.n
    if name.meaning not in ("key", "unit", "running") or n_levels is None or n_levels < 3:
        return None
    if name.meaning == "key" and name.part in ("classes", "place", "levels") and n_levels <= MOST_CLASSES < n:
        return replace(_codes(column, "the name says so"), groups=name.part == "place")
    if n_levels == n:
        sure = name.meaning == "key" or n >= MANY_ROWS
        return Decision("ignore", "identifier: whole numbers that all differ") if sure else None
    if name.meaning == "running" and not _runs(column):
        return None
    if name.meaning == "unit" and not _numbered(column):
        return None
    if name.meaning == "unit" and n_levels <= FEWER_LEVELS:
        numbered = column.contiguous and column.low == 1.0 and column.rows_a_level >= SEVERAL_ROWS
        return (
            Decision("categorical", f"{n_levels} units by number", "likely", "count", groups=True) if numbered else None
        )
    units = _units("units by number", n_levels, column.rows_a_level)
    return units or Decision("ignore", "identifier: whole numbers that mostly differ", "likely")


def decide_text_keys(name: NameReading, n_levels: int, n: int) -> Decision | None:
    """Texts of what is called an identifier name units with several rows, as its numbers would; None if not so.

    Examples
    --------
    >>> decide_text_keys(read_name("patient_id"), 90, 270).reason, decide_text_keys(read_name("colour"), 90, 270)
    ('90 units, with several rows each', None)
    """
    if name.meaning != "key" or name.part in ("classes", "place", "levels") or n_levels < 3:
        return None
    return _units("units", n_levels, n / n_levels)


def _units(what: str, n_levels: int, rows_each: float) -> Decision | None:
    """Units of a key that have several rows each: a few with many rows are classes to learn from."""
    if rows_each >= MANY_ROWS and n_levels <= FEW_LEVELS:
        return Decision("categorical", f"{n_levels} {what}, with many rows each", "likely", "ignore", groups=True)
    if rows_each >= SEVERAL_ROWS:
        return Decision("ignore", f"{n_levels} {what}, with several rows each", "likely", groups=True)
    return None


def _runs(column: Numbers) -> bool:
    """Whether a number or index of something is a running one, not how many there are.

    It is if it is called the number of a thing and is high enough; alone, if it runs from 0 or 1 and hardly ever or
    always as often occurs, as no quantity does.
    """
    many = (column.n_levels or 0) > FEW_LEVELS
    if not column.name.alone:
        return many and column.low >= 0.0 and column.name.part != "quantity"
    return column.contiguous and ((many and column.balanced) or column.rows_a_level <= 2.0)


def _numbered(column: Numbers) -> bool:
    """Whether numbers of `fish` say which fish, not how many were caught: from 1 on without a shape, or very many."""
    many = (column.n_levels or 0) > FEW_LEVELS
    from_one = column.low == 1.0 and (column.n_levels or 0) >= 0.8 * column.high and not column.has_shape
    return from_one or (many and (column.low > 0.0 or column.balanced))


def codes(column: Numbers) -> Decision | None:
    """Postal codes, telephone numbers, regions and other choices, by their names."""
    meaning, n_levels = column.name.meaning, column.n_levels
    if n_levels is None or n_levels < 3 or column.low < 0.0:
        return None
    if meaning == "code":
        return _codes(column, "the name says so")
    if meaning == "place" and (n_levels <= FEW_LEVELS or column.high - column.low < MOST_SPAN):
        return _codes(column, "the name says so")
    if meaning == "classes" and _are_classes(column, n_levels):
        return _codes(column, "the name says so")
    if meaning == "levels" and n_levels <= FEW_LEVELS // 2 and column.contiguous:
        return Decision("ordinal", f"{column.span}: levels, by the name", "likely", "count")
    return None


def _are_classes(column: Numbers, n_levels: int) -> bool:
    """Whether numbers that are named like a choice look like one: few, and most of those from 0 or 1 on, or a type."""
    if n_levels > FEW_LEVELS:
        ordered = column.smoothness is not None and column.smoothness.verdict == "ordered"
        return column.contiguous and n_levels <= MOST_CLASSES and not ordered
    dense = n_levels <= FEWER_LEVELS or 2 * n_levels > column.high - column.low
    return column.name.grouping or (column.low <= 1.0 and dense)


def _codes(column: Numbers, why: str) -> Decision:
    n_levels = column.n_levels or 0
    if n_levels <= FEW_LEVELS or (n_levels <= MOST_CLASSES and column.rows_a_level >= ROWS_A_LEVEL):
        sure = n_levels <= FEW_LEVELS or column.name.meaning == "code"
        return Decision("categorical", f"{column.span}: codes, {why}", "sure" if sure else "likely", "count")
    several = column.rows_a_level >= SEVERAL_ROWS
    reason = f"{n_levels} codes, {why}; declare it `categorical` to use it"
    return Decision("ignore", reason, "likely", "categorical", groups=several)


def consecutive(column: Numbers) -> Decision | None:
    """Consecutive numbers that all differ number the rows, unless they are times or quantities."""
    if column.name.meaning in ("time", "quantity") or column.name.calendar or not column.profile.all_differ:
        return None
    if not _consecutive_if_all_differ(column.profile):
        return None
    return Decision("ignore", "identifier: whole numbers that all differ", "likely", "count")


def signed(column: Numbers) -> Decision | None:
    """Few levels around zero are levels; more are numbers."""
    if column.low >= 0.0:
        return None
    few = 3 <= (column.n_levels or 0) <= FEWER_LEVELS - 2 and column.rows_a_level >= ROWS_A_LEVEL
    if few:
        return Decision("ordinal", f"{column.span}: levels", "likely", "real")
    return Decision("real", "whole numbers, some negative")


def unordered(column: Numbers) -> Decision | None:
    """Numbers whose order means nothing to the other columns are codes, if neither name nor values contradict."""
    if column.name.meaning in ("quantity", "time") or column.name.calendar or column.runs_from_elsewhere:
        return None
    if column.smoothness is None or column.smoothness.verdict != "unordered":
        return None
    reason = f"{column.span}: codes, as their order means nothing to other columns"
    return Decision("categorical", reason, "doubtful", "count")


def quantity(column: Numbers) -> Decision:
    """Whole numbers are numbers: what is left."""
    profile = column.profile
    if profile.variance > MOST_OVERDISPERSION * profile.mean:
        return Decision("positive", "whole numbers, spread too wide for a count", "likely")
    named = column.name.meaning in ("quantity", "time")
    few = 3 <= (column.n_levels or 0) <= FEWER_LEVELS and column.contiguous and column.rows_a_level >= ROWS_A_LEVEL
    if not few or named:
        n_levels = column.n_levels or MOST_LEVELS
        if named or n_levels >= MOST_LEVELS:
            return Decision("count", column.span)
        return Decision("count", column.span, "likely", "ordinal" if 3 <= n_levels <= FEW_LEVELS else None)
    if column.smoothness is not None and column.smoothness.verdict == "ordered":
        return Decision(
            "count", f"{column.span}, in an order that means something to other columns", "likely", "ordinal"
        )
    return Decision("count", column.span, "doubtful", "categorical")


RULES: tuple[Rule, ...] = (
    long_numbers,
    two_values,
    named_keys,
    fractions,
    dates,
    calendar,
    keys,
    codes,
    consecutive,
    signed,
    unordered,
    quantity,
)
