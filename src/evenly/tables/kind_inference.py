"""Which kind a column is, and which classes it has, from its profile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from evenly._support import DATE, TableError, refuse_surrogates
from evenly.tables.columns import TableColumn
from evenly.tables.dates import NO_DATES
from evenly.tables.decisions import Decision as Decision
from evenly.tables.formats import Format, get_format
from evenly.tables.kind_names import read_name
from evenly.tables.many_classes import describe_many, refuse_many
from evenly.tables.number_kinds import decide_numbers, decide_text_keys
from evenly.tables.profile import ColumnProfile, TextSummary, Value
from evenly.tables.schema import MOST_SINGLE, MOST_VALUES
from evenly.tables.word_scales import find_order

NO_DATA = "no data"
"""The note of a column without an observed cell."""


_DATE = re.compile(DATE)


def decide_kind(cells: TableColumn, profile: ColumnProfile) -> Decision:
    """Decide on the kind of a column."""
    if profile.n == 0:
        return Decision("real" if profile.numeric else "ignore", NO_DATA)
    if profile.dates:
        return Decision("date", profile.about)
    if profile.format is not None:
        return _decide_spelled(cells, profile, get_format(profile.format))
    if profile.storage == "time":
        return Decision("ignore", NO_DATES)
    if profile.storage == "other":
        return Decision("ignore", "neither numbers nor texts")
    if profile.storage == "boolean":
        return Decision("binary")
    if cells.categories is not None:
        n = len(cells.categories)
        # A category is meant as classes, unless most classes have too few cells to learn from.
        if refused := refuse_many(n, profile.n):
            return Decision("ignore", refused)
        if cells.ordered and n <= MOST_SINGLE:
            return Decision("ordinal")
        return Decision("binary" if n == 2 else "categorical", describe_many(n))
    return decide_numbers(cells, profile) if profile.numeric else _decide_texts(cells.name, profile)


def _decide_spelled(cells: TableColumn, profile: ColumnProfile, form: Format) -> Decision:
    """Decide on texts that stand for numbers; a unit says that numbers are no codes."""
    if form.is_quantity:
        return Decision("real" if profile.minimum < 0.0 else "positive", profile.about)
    found = decide_numbers(cells, profile)
    return replace(found, reason=f"{profile.about}; {found.reason}".removesuffix("; "))


def _decide_texts(name: str, profile: ColumnProfile) -> Decision:
    n_distinct, all_dates, wordy = profile.text_summary or _summarize([str(value) for value in profile.distinct or ()])
    ordered = find_order(profile.distinct or ())
    if ordered is not None:
        return Decision(ordered.kind, ordered.note)
    if all_dates:
        return Decision("ignore", NO_DATES)
    if n_distinct > 10 and n_distinct > 0.5 * profile.n:
        return Decision("ignore", "free text" if wordy else "identifier: nearly every cell differs")
    if (key := decide_text_keys(read_name(name), n_distinct, profile.n)) is not None:
        return key
    if refused := refuse_many(n_distinct, profile.n):
        return Decision("ignore", refused)
    return Decision("binary" if n_distinct == 2 else "categorical", describe_many(n_distinct))


def _summarize(texts: list[str]) -> TextSummary:
    all_dates = all(_DATE.match(text) for text in texts)
    mean_length = sum(map(len, texts)) / max(len(texts), 1)
    return TextSummary(
        len(texts), all_dates, is_wordy(mean_length, sum(" " in text for text in texts) / max(len(texts), 1))
    )


def is_wordy(mean_length: float, with_spaces: float) -> bool:
    """Whether texts are prose rather than names or codes, by their mean length and the share that contains spaces."""
    return mean_length > 40 or with_spaces > 0.5


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
        if len(distinct) > MOST_VALUES:
            raise TableError(
                f"{len(distinct)} distinct numbers",
                f"expected at most {MOST_VALUES:,} classes",
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
