"""The profile of a column: how it is stored, its numbers or distinct texts, and which cells are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from evenly._support import SPACED_NUMBER, TELEPHONE, TableError
from evenly.tables.columns import Floats, TableColumn, blocks
from evenly.tables.dates import read_days
from evenly.tables.formats import find_format

Value = bool | int | float | str

MISSING_MARKERS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
"""Texts that are read as missing cells without being declared. `None` and `-` are not: they may be real classes."""

_TELEPHONE = re.compile(TELEPHONE)
_SPACED_NUMBER = re.compile(SPACED_NUMBER)


class NumberSummary(NamedTuple):
    """What an engine answered about a column of numbers, whose cells stay on the engine."""

    variance: float
    least_positive: float
    n_distinct: int | None = None
    """None where it was not asked for."""


class TextSummary(NamedTuple):
    """What inference needs to know of texts that are too many to list."""

    n_distinct: int
    all_dates: bool
    wordy: bool
    """Whether they are long, or most have spaces."""


@dataclass(frozen=True)
class ColumnProfile:
    """What inference needs to know of a column; a column of texts has neither `numbers` nor a `number_summary`."""

    storage: str
    n_rows: int
    n: int
    minimum: float = 0.0
    maximum: float = 0.0
    mean: float = 0.0
    whole: bool = False
    numbers: Floats | None = None
    distinct: tuple[Any, ...] | None = None
    """The distinct values: always for texts, for whole numbers if they are few."""
    counts: tuple[int, ...] | None = None
    markers: tuple[Value, ...] = ()
    weights: Floats | None = None
    """How often each number occurs, if `numbers` are distinct ones that were counted."""
    number_summary: NumberSummary | None = None
    text_summary: TextSummary | None = None
    format: str | None = None
    """The pattern in which texts spell `numbers`, if these are no plain numbers."""
    about: str = ""
    """What such texts are, in words; also where an engine cannot read them."""
    dates: bool = False
    """Whether `numbers` are days since 1970-01-01."""
    non_answers: tuple[tuple[str, int], ...] = ()
    """Texts that were found to stand for no answer, and are read as missing; with the number of their cells."""
    spelled: ColumnProfile | None = None
    """Of a column of texts or times: the profile of the numbers that its cells stand for in a format."""

    def reading(self, *, spelled: bool) -> ColumnProfile:
        """Return the profile of the numbers that texts spell, if these are meant and they do; else itself."""
        return self if not spelled or self.spelled is None else self.spelled

    @property
    def numeric(self) -> bool:
        """Whether the cells are numbers, or texts of numbers."""
        return self.numbers is not None or self.number_summary is not None

    @property
    def variance(self) -> float:
        """Variance of the numbers."""
        if self.number_summary is not None:
            return self.number_summary.variance
        assert self.numbers is not None
        with np.errstate(over="ignore"):
            if self.weights is not None:
                seen = ~np.isnan(self.numbers)
                return float(((self.numbers[seen] - self.mean) ** 2 * self.weights[seen]).sum()) / self.n
            return sum(float(((block - self.mean) ** 2).sum()) for block in blocks(self.numbers)) / self.n

    @property
    def least_positive(self) -> float:
        """The smallest number above 0, of a column that has one."""
        if self.number_summary is not None:
            return self.number_summary.least_positive
        assert self.numbers is not None
        return min(float(b[b > 0].min()) for b in blocks(self.numbers) if (b > 0).any())

    @property
    def n_distinct(self) -> int | None:
        """How many distinct values there are; None where nobody counted them."""
        if self.distinct is not None:
            return len(self.distinct)
        if self.number_summary is not None:
            return self.number_summary.n_distinct
        if self.text_summary is not None:
            return self.text_summary.n_distinct
        return None if self.numbers is None else len(np.unique(self.numbers[~np.isnan(self.numbers)]))

    @property
    def all_differ(self) -> bool:
        """Whether all numbers are known to differ."""
        return self.n_distinct == self.n

    @property
    def two_valued(self) -> bool:
        """Whether all numbers are one of two: they are if their variance is the largest that their mean allows."""
        if self.distinct is not None:
            return len(self.distinct) == 2
        low, high = self.minimum, self.maximum
        if not (low < high and self.numbers is not None):  # numbers that are elsewhere have no list of classes
            return False
        return self.n_distinct == 2 if self.variance > 0.999 * (high - self.mean) * (self.mean - low) else False


def profile_column(column: TableColumn, missing: Sequence[Value] = (), weights: Floats | None = None) -> ColumnProfile:
    """Profile a column, or its distinct cells with `weights` that say how often each occurs."""
    if weights is None:
        return column.remember(("profile", repr(tuple(missing))), lambda: _profile(column, missing, None))
    return _profile(column, missing, weights)


def _profile(column: TableColumn, missing: Sequence[Value], weights: Floats | None) -> ColumnProfile:
    declared = [number for number in map(read_number, missing) if number is not None]
    if column.storage in ("boolean", "integer", "float"):
        numbers = column.numbers
        hit = np.isin(numbers, declared) if declared else np.zeros(0, bool)
        if hit.any():
            numbers = np.where(hit, np.nan, numbers)
        return _profile_numbers(column, numbers, tuple(missing) if hit.any() else (), weights)
    n_rows = len(column.native) if weights is None else int(weights.sum())
    if column.storage in ("time", "other"):
        profile = ColumnProfile(column.storage, n_rows, n_rows)
        days = None if weights is not None or column.storage == "other" else read_days(column)
        return profile if days is None else replace(profile, spelled=_profile_dates(column, days))
    gone = {str(marker) for marker in (*MISSING_MARKERS, *missing)}
    if (spelled := column.spelled_numbers(gone)) is not None:
        return _profile_numbers(column, spelled[0], tuple(spelled[1]))
    codes, distinct = column.factorized
    if not distinct:
        return ColumnProfile("text", n_rows, 0)
    is_marker = np.array([isinstance(value, str) and value.strip() in gone for value in distinct])
    seen = codes >= 0
    each = None if weights is None else weights[seen]
    counts = np.bincount(codes[seen], each, minlength=len(distinct)).astype(np.int64)
    markers = tuple(value for value, hit in zip(distinct, is_marker, strict=True) if hit)
    kept = [value for value, hit in zip(distinct, is_marker, strict=True) if not hit]
    parsed = _numbers_of(kept) if kept and column.categories is None else None
    if parsed is not None:
        lookup = np.full(len(distinct) + 1, np.nan)  # the last entry is for the code -1
        lookup[:-1][~is_marker] = parsed
        return _profile_numbers(column, lookup[codes], markers, weights)
    n = int(counts[~is_marker].sum())
    profile = ColumnProfile("text", n_rows, n, distinct=tuple(kept), counts=tuple(counts[~is_marker]), markers=markers)
    if column.categories is not None or not all(isinstance(value, str) for value in kept):
        return profile
    if (found := find_format(kept)) is None:
        return profile
    if weights is not None and found.expression(nw.col(column.name)) is None:
        return replace(profile, about=found.note)
    lookup = np.full(len(distinct) + 1, np.nan)
    lookup[:-1][~is_marker] = [found.read(text) for text in kept]
    of_numbers = _profile_numbers(column, lookup[codes], markers, weights)
    of_numbers = replace(of_numbers, format=found.pattern, about=found.note, dates=found.reads_dates)
    return replace(profile, spelled=of_numbers)


def _profile_dates(column: TableColumn, days: Floats) -> ColumnProfile:
    return replace(_profile_numbers(column, days, ()), about="dates", dates=True)


def _numbers_of(values: Iterable[Any]) -> list[float] | None:
    """Return the numbers that cells spell; None as soon as one of them spells none, or if all are telephone numbers."""
    values = list(values)
    if all(isinstance(value, str) and _TELEPHONE.match(value) for value in values):
        return None
    numbers = []
    for value in values:
        number = read_number(value)
        if number is None:
            return None
        numbers.append(number)
    return numbers


def read_number(value: Any) -> float | None:
    """Return the number that a cell is or spells; a text with a leading zero (a postal code) is no number."""
    if isinstance(value, bool) or (isinstance(value, str) and not _SPACED_NUMBER.match(value)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def refuse_infinite(name: str, n_infinite: int) -> None:
    """Refuse a column with infinite cells."""
    if n_infinite:
        raise TableError(
            f"{n_infinite} infinite values",
            "expected finite numbers (Input X contains infinity)",
            "make them missing cells",
            column=name,
        )


def between(mean: float, low: float, high: float) -> float:
    """Return a mean that is finite and within the range, although the sum may have overflowed or been rounded."""
    return min(max(mean if np.isfinite(mean) else 0.5 * low + 0.5 * high, low), high)


MOST_SPAN = 1000
"""Whole numbers that span fewer values than this are counted one by one."""


def _profile_numbers(
    column: TableColumn, numbers: Floats, markers: tuple[Value, ...], weights: Floats | None = None
) -> ColumnProfile:
    if weights is not None:
        return _profile_counted(column, numbers, markers, weights)
    n, low, high, total, whole = 0, np.inf, -np.inf, 0.0, True
    for block in blocks(numbers):
        if not len(block):
            continue
        n += len(block)
        low, high = min(low, float(block.min())), max(high, float(block.max()))
        with np.errstate(all="ignore"):
            total += float(block.sum())
        whole = whole and bool((block == np.rint(block)).all())
    if n == 0:
        return ColumnProfile(column.storage, len(numbers), 0, numbers=numbers, markers=markers)
    if not (np.isfinite(low) and np.isfinite(high)):
        refuse_infinite(column.name, int(np.isinf(numbers).sum()))
    mean = between(total / n, low, high)
    profile = ColumnProfile(column.storage, len(numbers), n, low, high, mean, whole, numbers, None, None, markers)
    if whole and high - low < MOST_SPAN:
        span = np.arange(int(low), int(high) + 1)
        counts = np.zeros(len(span), np.int64)
        for block in blocks(numbers):
            counts += np.bincount((block - low).astype(np.intp), minlength=len(span))
        seen = counts > 0
        distinct = tuple(int(v) for v in span[seen])
        return replace(profile, distinct=distinct, counts=tuple(int(c) for c in counts[seen]))
    return profile


def _profile_counted(
    column: TableColumn, numbers: Floats, markers: tuple[Value, ...], weights: Floats
) -> ColumnProfile:
    """Profile distinct numbers with their counts."""
    n_rows, seen = int(weights.sum()), ~np.isnan(numbers)
    if not seen.any():
        return ColumnProfile(column.storage, n_rows, 0, numbers=numbers, markers=markers, weights=weights)
    values, firsts = np.unique(numbers[seen], return_inverse=True)
    counts = np.bincount(firsts, weights[seen])
    refuse_infinite(column.name, int(counts[np.isinf(values)].sum()))
    low, high, n = float(values[0]), float(values[-1]), int(counts.sum())
    with np.errstate(over="ignore"):
        mean = between(float((values * counts).sum()) / n, low, high)
    whole = bool((values == np.rint(values)).all())
    profile = ColumnProfile(column.storage, n_rows, n, low, high, mean, whole, numbers, None, None, markers, weights)
    if whole and high - low < MOST_SPAN:
        return replace(profile, distinct=tuple(int(v) for v in values), counts=tuple(int(c) for c in counts))
    return profile
