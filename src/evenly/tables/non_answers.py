"""Texts that stand for no answer: a few of them among numbers, dates or words in an order are missing cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from evenly.tables.columns import TableColumn
from evenly.tables.formats import find_format
from evenly.tables.lazy import LazyColumn
from evenly.tables.profile import ColumnProfile, Value, profile_column, read_number
from evenly.tables.word_scales import find_order

NINES = (-9.0, *(sign * float("9" * n) for n in range(2, 8) for sign in (-1.0, 1.0)))
"""Numbers that often stand for a missing cell: -9, 99, -99, 999, -999 and so on."""
MARKS = frozenset(str.split("- -- --- \u2013 \u2014 . .. ... \u2026 * / #value! #div/0! #ref! #name? #null! #num!"))
WORDS = MARKS | frozenset(
    re.split(
        r",\s*",
        "na, n.a., n.a, n/d, s/d, nil, null, none, missing, empty, unknown, unk, undefined, unavailable, "
        "not available, not applicable, not known, not recorded, not reported, not stated, not given, not asked, "
        "no data, no answer, "
        "no response, nonresponse, refused, refusal, declined, decline to answer, prefer not to say, "
        "prefer not to answer, rather not say, dk, don't know, dont know, do not know, not sure, tbd, tba, "
        "error, k.a., k. a., keine angabe, "
        "keine antwort, weiß nicht, sans réponse, non renseigné, ne sait pas, no sabe, no contesta, ns/nc, ns/nr",
    )
)
"""Texts, in lower case, that often stand for a missing cell, beside those that are always read as missing."""
MOST_STRAYS, MOST_SHARE = 10, 0.2
"""Distinct texts, at most, and their share of the cells, that a column may hold beside what it is."""


def is_non_answer(text: str) -> bool:
    """Whether a text usually stands for no answer.

    Examples
    --------
    >>> is_non_answer("Prefer not to say "), is_non_answer("+")
    (True, False)
    """
    return " ".join(text.casefold().replace("\u2019", "'").split()) in WORDS


def find_non_answers(texts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the few texts for no answer, and how often they occur, without which all others are read; else none.

    The others are at least two numbers, dates, texts in one format or words in an order. Among other classes, a
    hyphen or "unknown" may be a class of its own.

    Examples
    --------
    >>> find_non_answers([("34", 9), ("51", 9), ("-", 1), ("refused", 1)])
    [('-', 1), ('refused', 1)]
    >>> find_non_answers([("low", 9), ("high", 9), ("999", 1)])
    [('999', 1)]
    >>> find_non_answers([("A", 9), ("B", 9), ("-", 1)])
    []
    """
    if find_order([text for text, _ in texts]) is not None:
        return []
    words = [pair for pair in texts if is_non_answer(pair[0])]
    if (rest := _others(texts, words)) and (_are_read(rest) or find_order(rest) is not None):
        return words
    words += [pair for pair in texts if read_number(pair[0]) in NINES]
    return words if (rest := _others(texts, words)) and find_order(rest) is not None else []


def _others(texts: Sequence[tuple[str, int]], strays: Sequence[tuple[str, int]]) -> list[str]:
    """Return the other texts, if the strays are few and in few cells, and two texts or more are left."""
    few = 0 < len(strays) <= MOST_STRAYS and sum(n for _, n in strays) < MOST_SHARE * sum(n for _, n in texts)
    rest = [text for text, _ in texts if text not in dict(strays)]
    return rest if few and len(rest) > 1 else []


def _are_read(texts: Sequence[str]) -> bool:
    return all(read_number(text) is not None for text in texts) or find_format(texts) is not None


def without_non_answers(cells: TableColumn, profile: ColumnProfile, missing: Sequence[Value]) -> ColumnProfile:
    """Return the profile of a column of texts with texts for no answer as markers of missing cells, if it has some.

    Parameters
    ----------
    missing : sequence
        The markers that the profile was taken with.
    """
    listed = profile.distinct is not None and profile.counts is not None and profile.storage == "text"
    if not listed or profile.numeric or profile.spelled is not None or isinstance(cells, LazyColumn):
        return profile
    if cells.categories is not None or not all(isinstance(text, str) for text in profile.distinct or ()):
        return profile
    found = find_non_answers(list(zip(profile.distinct or (), profile.counts or (), strict=True)))
    if not found:
        return profile
    read = profile_column(cells, (*missing, *dict.fromkeys(text.strip() for text, _ in found)))
    spelled = None if read.spelled is None else replace(read.spelled, non_answers=tuple(found))
    return replace(read, non_answers=tuple(found), spelled=spelled)


def describe_non_answers(found: Sequence[tuple[str, int]]) -> str:
    """Return how many cells these are, and their texts.

    Examples
    --------
    >>> describe_non_answers([("-", 1), ("refused", 2)])
    "3 cells: '-', 'refused'"
    """
    n = int(sum(count for _, count in found))
    return f"{n} cell{'s' * (n != 1)}: {', '.join(repr(text) for text, _ in found)}"
