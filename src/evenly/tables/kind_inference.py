"""Which kind a column is, and which classes it has, from its profile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from evenly._support import DATE, TableError, refuse_surrogates
from evenly.tables.columns import TableColumn
from evenly.tables.dates import NO_DATES
from evenly.tables.formats import Format, get_format
from evenly.tables.profile import ColumnProfile, TextSummary, Value
from evenly.tables.word_scales import find_order

MOST_CLASSES = 100
"""A text column with more classes is passed through: under a trick every class is a feature."""
FEW_VALUES = 20
"""Whole numbers with at most this many distinct values may be codes of classes."""
MOST_OVERDISPERSION = 100.0
"""Variance over mean up to which whole numbers are counts: 1 under a Poisson, tens in real data."""

NO_DATA = "no data"
"""The note of a column without an observed cell."""


_DATE = re.compile(DATE)
_IDENTIFIER_NAME = re.compile(r"(^|[_\s-])(?i:id|uuid|guid|key|index|nr|number)$|[a-z]I[dD]$")
_YEARS = (1500.0, 2200.0)
"""Consecutive whole numbers in this range are years, not identifiers."""


def decide_kind(cells: TableColumn, profile: ColumnProfile) -> tuple[str, str]:
    """Return the kind of a column and the reason for it."""
    if profile.n == 0:
        return ("real" if profile.numeric else "ignore"), NO_DATA
    if profile.dates:
        return "date", profile.about
    if profile.format is not None:
        return _decide_spelled(cells, profile, get_format(profile.format))
    if profile.storage == "time":
        return "ignore", NO_DATES
    if profile.storage == "other":
        return "ignore", "neither numbers nor texts"
    if profile.storage == "boolean":
        return "binary", ""
    if cells.categories is not None:
        n = len(cells.categories)
        # A category is meant as classes, unless most classes have too few cells to learn from.
        if n > MOST_CLASSES and n > min(0.1 * profile.n, 10 * MOST_CLASSES):
            return "ignore", f"{n} classes in {profile.n} cells; declare it `categorical` to use it"
        return ("ordinal", "") if cells.ordered else ("binary" if n == 2 else "categorical", "")
    return _decide_numbers(cells, profile) if profile.numeric else _decide_texts(profile)


def _decide_spelled(cells: TableColumn, profile: ColumnProfile, form: Format) -> tuple[str, str]:
    """Decide on texts that stand for numbers; a unit says that numbers are no codes."""
    if form.is_quantity:
        return ("real" if profile.minimum < 0.0 else "positive"), profile.about
    kind, note = _decide_numbers(cells, profile)
    return kind, f"{profile.about}; {note}".removesuffix("; ")


def _decide_texts(profile: ColumnProfile) -> tuple[str, str]:
    n_distinct, all_dates, wordy = profile.text_summary or _summarize([str(value) for value in profile.distinct or ()])
    ordered = find_order(profile.distinct or ())
    if ordered is not None:
        return ordered.kind, ordered.note
    if all_dates:
        return "ignore", NO_DATES
    if n_distinct > 10 and n_distinct > 0.5 * profile.n:
        return "ignore", "free text" if wordy else "identifier: nearly every cell differs"
    if n_distinct > MOST_CLASSES:
        return "ignore", f"{n_distinct} classes: more than {MOST_CLASSES}; declare it `categorical` to use it"
    return ("binary" if n_distinct == 2 else "categorical"), ""


def _summarize(texts: list[str]) -> TextSummary:
    all_dates = all(_DATE.match(text) for text in texts)
    mean_length = sum(map(len, texts)) / max(len(texts), 1)
    return TextSummary(
        len(texts), all_dates, is_wordy(mean_length, sum(" " in text for text in texts) / max(len(texts), 1))
    )


def is_wordy(mean_length: float, with_spaces: float) -> bool:
    """Whether texts are prose rather than names or codes, by their mean length and the share that contains spaces."""
    return mean_length > 40 or with_spaces > 0.5


def _decide_numbers(cells: TableColumn, profile: ColumnProfile) -> tuple[str, str]:
    low, high = profile.minimum, profile.maximum
    if not profile.whole:
        return ("real", "") if low < 0.0 else ("positive", "")
    values = profile.distinct
    if values is not None and len(values) == 2 and (values == (0, 1) or profile.n >= 5):
        return "binary", ""
    if may_be_identifier(cells.name, profile) and profile.all_differ:
        return "ignore", "identifier: whole numbers that all differ"
    few = values is not None and 2 < len(values) <= FEW_VALUES and profile.n >= 5 * len(values)
    peaks = few and _several_peaks(profile)
    # Levels from 0 or 1 to 10 are ratings: they often pile up at both ends, but they are ordered, and have a mean.
    rating = peaks and low in (0, 1) and high == 10 and len(values or ()) >= 9
    if peaks and not rating:
        return "categorical", f"whole numbers {low:g} to {high:g} with several peaks: codes"
    if low < 0.0:
        return (
            ("ordinal", f"whole numbers {low:g} to {high:g}: levels")
            if few
            else ("real", "whole numbers, some negative")
        )
    if profile.variance > MOST_OVERDISPERSION * profile.mean:
        return "positive", "whole numbers, spread too wide for a count"
    return "count", f"whole numbers {low:g} to {high:g}" + (": a rating" if rating else "")


def may_be_identifier(name: str, profile: ColumnProfile) -> bool:
    """Whether whole numbers are an identifier if they all differ: they are consecutive, or named like one."""
    if profile.n < 20 or profile.maximum - profile.minimum < profile.n - 1:
        return False
    years = _YEARS[0] <= profile.minimum and profile.maximum <= _YEARS[1]
    consecutive = profile.maximum - profile.minimum == profile.n - 1 and not years
    return consecutive or _IDENTIFIER_NAME.search(name) is not None


def _several_peaks(profile: ColumnProfile) -> bool:
    """Whether the counts of the values rise again after falling, by more than a tenth of the cells."""
    assert profile.distinct is not None
    assert profile.counts is not None
    counts = np.zeros(profile.distinct[-1] - profile.distinct[0] + 1)
    counts[np.array(profile.distinct) - profile.distinct[0]] = profile.counts
    top = int(counts.argmax())
    rising, falling = counts[: top + 1], counts[top:][::-1]
    valleys = sum(float((np.maximum.accumulate(side) - side).sum()) for side in (rising, falling))
    return valleys > 0.1 * profile.n


def find_classes(cells: TableColumn, profile: ColumnProfile) -> list[Value]:
    """Return the classes of a column: those that its type declares, otherwise the sorted ones that it holds."""
    if cells.categories is not None:
        gone = set(profile.markers)
        return _distinguishable(cells, [plain_value(value) for value in cells.categories if value not in gone])
    if profile.storage == "boolean":
        return [False, True]
    if profile.distinct is not None:
        values: Iterable[Any] = profile.distinct
    else:
        assert profile.numbers is not None
        distinct = np.unique(profile.numbers[~np.isnan(profile.numbers)])
        if len(distinct) > 1000:
            raise TableError(
                f"{len(distinct)} distinct numbers",
                "expected at most 1000 classes",
                "declare it `real` or `count`",
                column=cells.name,
            )
        values = (int(v) if profile.whole else float(v) for v in distinct)
    return _distinguishable(cells, sorted((plain_value(value) for value in values), key=_order))


def _distinguishable(cells: TableColumn, classes: list[Value]) -> list[Value]:
    texts = [str(value) for value in classes]
    for text in texts:
        refuse_surrogates(text, "a text", cells.name)
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise TableError(
            f"the class {twice} as a number and as a text", "expected one of them", "convert one", column=cells.name
        )
    return classes


def plain_value(value: Any) -> Value:
    """Return a class as JSON can hold it: intervals, dates and the like by their text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _order(value: Value) -> tuple[bool, Any]:
    """Numbers first, by size; then texts."""
    return (True, value) if isinstance(value, str) else (False, float(value))
