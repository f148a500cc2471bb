"""Inspection of a table before anything is fitted: kinds, missing cells, and what seems wrong in each column."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.likelihoods import FAMILIES, Likelihood
from evenly.tables.cells import check_values, column_likelihood, encode
from evenly.tables.columns import TableColumn
from evenly.tables.dates import show_day
from evenly.tables.declarations import Rule, infer_column, make_rules
from evenly.tables.duplicates import count_duplicates
from evenly.tables.formats import find_format
from evenly.tables.frames import map_columns, open_table
from evenly.tables.kind_inference import NO_DATA
from evenly.tables.non_answers import MOST_SHARE, MOST_STRAYS, NINES, describe_non_answers, is_non_answer
from evenly.tables.profile import ColumnProfile, Value, profile_column, read_number
from evenly.tables.schema import Column, Confidence, Kind, Schema
from evenly.tables.settings import Bounds, Markers
from evenly.tables.spellings import describe_spellings, find_spellings
from evenly.tables.spellings import merge_classes as merge_spellings


@dataclass(frozen=True)
class InspectedColumn:
    """What was found in one column.

    Attributes
    ----------
    name, kind, likelihood, note : str
        As in the schema; the likelihood of an ignored column is None.
    n_missing : int
        Missing cells, markers included.
    missing_share : float
        The same as a share of the rows.
    n_distinct : int or None
        Number of distinct values; None for numbers that were not counted, and for dates.
    range : tuple of float or str, or None
        The smallest and the largest number, infinities left out; of dates, the first and the last, as texts.
    warnings : tuple of str
        What seems wrong, and what to do about it.
    confidence : {"sure", "likely", "doubtful"}
        How sure the kind is.
    alternative : str or None
        The kind that the column may be instead, if that is not sure.
    groups : bool
        Whether the column names units that have several rows each.
    """

    name: str
    kind: str
    likelihood: str | None
    n_missing: int
    missing_share: float
    n_distinct: int | None
    range: tuple[float, float] | tuple[str, str] | None
    note: str
    warnings: tuple[str, ...]
    confidence: Confidence = "sure"
    alternative: Kind | None = None
    groups: bool = False

    @property
    def doubt(self) -> str:
        """What else a column of a doubtful kind may be, and how to say so; empty for the others."""
        if self.confidence != "doubtful" or self.alternative is None:
            return ""
        told, option = f"kinds={{{self.name!r}: {self.alternative!r}}}", shlex.quote(f"{self.name}={self.alternative}")
        return (
            f"taken for {self.kind}, but may be {self.alternative}: if it is, say so with `{told}` (`--kind {option}`)"
        )


@dataclass(frozen=True)
class Inspection:
    """What was found in a table.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    columns : tuple of InspectedColumn
        What was found in each column.
    schema : Schema
        The inferred or declared schema.
    n_duplicates : int
        Rows that repeat an earlier one in all columns but identifiers.
    warnings : tuple of str
        What seems wrong with the rows.
    """

    n_rows: int
    columns: tuple[InspectedColumn, ...]
    schema: Schema
    n_duplicates: int = 0
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> InspectedColumn:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def by_doubt(self) -> list[InspectedColumn]:
        """The columns, those of a doubtful kind first, otherwise in the order of the table."""
        return sorted(self.columns, key=lambda one: one.confidence != "doubtful")

    def to_plain(self) -> dict[str, Any]:
        """Return everything but the schema as plain values for JSON."""
        columns = [
            dict(column.__dict__, range=list(column.range) if column.range else None, warnings=list(column.warnings))
            for column in self.columns
        ]
        about = {"n_rows": self.n_rows, "n_columns": len(columns), "n_duplicates": self.n_duplicates}
        return {**about, "warnings": list(self.warnings), "columns": columns}


def inspect_table(
    table: Any,
    schema: Schema | None = None,
    *,
    kinds: Mapping[Any, str] | None = None,
    likelihoods: Mapping[Any, str | Likelihood] | None = None,
    bounds: Mapping[Any, Bounds] | None = None,
    missing: Markers | None = None,
    merge_classes: bool = False,
) -> Inspection:
    """Inspect every column of a table: its kind and likelihood, its missing cells, and what seems wrong.

    Warns of columns that are constant, without an observed cell, or not a variable (identifiers, dates, free text, too
    many classes: they are passed through untouched); of infinities; of values that may stand for a missing cell, such
    as -999 far from all others, or the text `unknown`; of classes that differ only by case or spaces; and of rows that
    repeat an earlier one, if more do than by chance.

    Parameters
    ----------
    table : dataframe or array
        The table.
    schema : Schema, optional
        Declared columns; the others are inferred.
    kinds, likelihoods, bounds, missing, merge_classes
        As for `infer_schema`; they take precedence over the schema.

    Returns
    -------
    Inspection
        `columns`, `n_rows`, `n_duplicates`, `warnings`, the `schema`, and `to_plain()`.

    Examples
    --------
    >>> table = np.array([[21, 3.5], [34, -999], [45, 1.25], [52, 2.5], [28, 0.75], [39, 4.5]])
    >>> inspection = inspect_table(table)
    >>> inspection["x1"].warnings[0]
    '-999 appears 1 time, apart from the other values (0.75 to 4.5): if it means missing, give it as
    `missing=[-999]` (`--missing -999`)'
    >>> inspection = inspect_table(table, missing=[-999])
    >>> inspection["x1"].kind, inspection["x1"].n_missing, inspection["x1"].warnings
    ('positive', 1, ())
    """
    opened = open_table(table, estimator="inspect_table")
    if not (schema is None or isinstance(schema, Schema)):
        raise TableError(f"schema = {schema!r}", "expected a Schema", "Schema.load reads one")
    rules = make_rules(opened, kinds=kinds, likelihoods=likelihoods, bounds=bounds, schema=schema, missing=missing)
    inspect = partial(_inspect_column, merge=merge_classes)
    pairs = map_columns(inspect, opened.columns, rules, n_rows=opened.n_rows)
    columns, found = zip(*pairs, strict=True)
    return Inspection(opened.n_rows, found, Schema(columns=list(columns)), *_repeated_rows(opened.columns, columns))


def _repeated_rows(cells: Sequence[TableColumn], columns: Sequence[Column]) -> tuple[int, tuple[str, ...]]:
    """Count the rows that repeat an earlier one, and warn of them if they are more than by chance."""
    keys = [column.name for column in columns if column.note.startswith("identifier")]
    rest = [one for one in cells if one.name not in keys]
    found = count_duplicates(rest)
    if found.n <= 2.0 * found.by_chance or len(rest) < 2:
        return found.n, ()
    share = f"{100.0 * found.n / len(rest[0].native):.2g} %"
    but = f" but {', '.join(map(repr, keys))}" if keys else ""
    repeat = "1 row repeats" if found.n == 1 else f"{found.n} rows repeat"
    return found.n, (
        f"{repeat} an earlier one in all columns{but} ({share} of all): if these are copies, not equal by chance, "
        "remove them (`table.drop_duplicates()` in pandas, `table.unique(maintain_order=True)` in Polars)",
    )


def _inspect_column(cells: TableColumn, rule: Rule, *, merge: bool) -> tuple[Column, InspectedColumn]:
    """Decide on a column, and list what seems wrong in it."""
    cells, profile, n_infinite = _profile_finite(cells, rule.missing)
    warnings: list[str] = []
    profile = rule.read(cells, profile)
    if rule.declared is None or rule.kind is not None or rule.likelihood is not None:
        column = infer_column(cells, profile, kind=rule.kind, likelihood=rule.likelihood, bounds=rule.limits)
        rule.check_bounded(column)
    else:
        column, seen = rule.infer(cells, lambda: profile)
        profile, warnings = seen or profile, _disagreement(column, cells)
    if merge:
        column = merge_spellings(column, profile)
    return column, _inspected(column, cells, profile.reading(spelled=column.is_spelled), n_infinite, warnings)


def _profile_finite(cells: TableColumn, markers: Sequence[Value]) -> tuple[TableColumn, ColumnProfile, int]:
    """Return a column with infinities as missing cells, its profile, and how many infinities it had."""
    try:
        return cells, profile_column(cells, markers), 0
    except TableError:
        if cells.storage == "text":
            codes, distinct = cells.factorized
            infinite = np.array([np.isinf(read_number(value) or 0.0) for value in distinct] + [False])[codes]
            kept: Any = np.array([*distinct, None], dtype=object)[np.where(infinite, -1, codes)]
        else:
            infinite = np.isinf(cells.numbers)
            kept = np.where(infinite, np.nan, cells.numbers)
        cells = TableColumn(cells.name, kept)
        return cells, profile_column(cells, markers), int(infinite.sum())


def _disagreement(column: Column, cells: TableColumn) -> list[str]:
    """Refuse cells that do not go with the schema's kind; warn of those that are none of its classes."""
    if column.kind == "ignore":
        return []
    values, unknown = encode(column, cells)
    if column.likelihood in FAMILIES:
        check_values(column, values, column_likelihood(column))
    some = ", ".join(repr(value) for value in unknown[:5])
    return [f"none of the schema's classes, so read as missing: {some}"] if unknown else []


def _inspected(
    column: Column, cells: TableColumn, profile: ColumnProfile, n_infinite: int, warnings: Sequence[str]
) -> InspectedColumn:
    n_rows = profile.n_rows
    opaque = profile.storage in ("time", "other") and not profile.dates
    n_observed = cells.n_observed if opaque else profile.n
    n_missing = n_rows - n_observed - n_infinite
    declared = column.kind == "ignore" and column.note in ("declared", "")
    return InspectedColumn(
        name=column.name,
        kind=column.kind,
        likelihood=column.likelihood,
        n_missing=n_missing,
        missing_share=n_missing / n_rows,
        n_distinct=len(profile.distinct) if profile.distinct is not None else None,
        range=_range(profile) if profile.numeric and profile.n else None,
        note=column.note,
        warnings=() if declared else (*warnings, *_warnings(column, profile, n_infinite)),
        confidence=column.confidence,
        alternative=column.alternative,
        groups=column.groups,
    )


def _range(profile: ColumnProfile) -> tuple[float, float] | tuple[str, str]:
    low, high = profile.minimum, profile.maximum
    return (show_day(low), show_day(high)) if profile.dates else (low, high)


def _warnings(column: Column, profile: ColumnProfile, n_infinite: int) -> list[str]:
    found = []
    if n_infinite:
        found.append(f"{_times(n_infinite, 'infinite cell')}: no model can be fitted to it; make it a missing cell")
    if profile.non_answers:
        option = shlex.quote(f"{column.name}=categorical")
        found.append(
            f"{describe_non_answers(profile.non_answers)} read as missing, as they stand for no answer among the "
            f"others; to keep them, declare the column categorical (`--kind {option}`)"
        )
    if profile.n == 0:
        return [*found, f"{NO_DATA}: every cell is missing, and stays so"]
    if (profile.numeric and profile.minimum == profile.maximum) or (
        profile.distinct is not None and len(profile.distinct) == 1
    ):
        shown = show_day(profile.minimum) if profile.dates else f"{profile.minimum:.15g}"
        value = shown if profile.numeric else repr(profile.distinct[0] if profile.distinct else "")
        found.append(f"constant: every observed cell is {value}, so there is nothing to learn")
    elif column.kind == "ignore":
        key = ", but the imputer reads it as the key of rows that belong together" if column.groups else ""
        found.append(f"{column.note.partition(';')[0]}: passed through untouched{key}{_how_to_use(column, profile)}")
    if column.has_classes:
        apart = [group for group in find_spellings(profile) if len(group.keys() - column.same.keys()) > 1]
        found += describe_spellings(apart)
    if profile.dates:
        return found
    return found + (_suspicious_numbers(profile) if profile.numeric else _suspicious_texts(profile))


def _how_to_use(column: Column, profile: ColumnProfile) -> str:
    if profile.storage in ("time", "other"):
        return ""
    kind = "count" if profile.numeric else "categorical"
    option = shlex.quote(f"{column.name}={kind}")
    return f"; to use it, declare its kind, such as `kinds={{{column.name!r}: {kind!r}}}` (`--kind {option}`)"


def _suspicious_numbers(profile: ColumnProfile) -> list[str]:
    """Warn of numbers made of nines that lie outside the other values by more than their range."""
    if profile.minimum not in NINES and profile.maximum not in NINES:
        return []
    assert profile.numbers is not None
    numbers = profile.numbers[~np.isnan(profile.numbers)]
    hit = np.isin(numbers, NINES)
    others = numbers[~hit]
    if len(others) < 5 or others.min() == others.max():
        return []
    low, high = float(others.min()), float(others.max())
    values, counts = np.unique(numbers[hit], return_counts=True)
    return [
        f"{value:.15g} appears {_times(n, 'time')}, apart from the other values ({low:g} to {high:g}): "
        + _remedy(f"{value:.15g}", f"{value:.15g}")
        for value, n in zip(values.tolist(), counts.tolist(), strict=True)
        if (value < 0.0 <= low) or max(low - value, value - high) > high - low
    ]


def _suspicious_texts(profile: ColumnProfile) -> list[str]:
    """Warn of texts that keep a column from being numbers, and of words that often mean missing."""
    if profile.distinct is None or profile.counts is None:
        return []
    texts = [(str(text), n) for text, n in zip(profile.distinct, profile.counts, strict=True)]
    what, few = _strays(texts)
    strays = dict(few)
    found = []
    if strays:
        listed = ", ".join(map(repr, strays))
        cells = _times(sum(strays.values()), "cell")
        found.append(f"{what}, except for {listed} ({cells}), so taken for texts: {_remedy(listed, *strays)}")
    words = {text: n for text, n in texts if text not in strays and is_non_answer(text)}
    if words:
        appear = ", ".join(f"{text!r} appears {_times(n, 'time')}" for text, n in words.items())
        found.append(f"{appear}: {_remedy(', '.join(map(repr, words)), *words)}")
    return found


def _strays(texts: Sequence[tuple[str, int]]) -> tuple[str, list[tuple[str, int]]]:
    """Return the few texts, in few cells, that keep a column from being numbers; and what its others are."""
    strays = _few(texts, lambda text: read_number(text) is None)
    if strays:
        return "numbers", strays
    strays = _few(texts, lambda text: not any(map(str.isdigit, text)))
    found = find_format([text for text, _ in texts if any(map(str.isdigit, text))]) if strays else None
    return ("", []) if found is None else (found.note, strays)


def _few(texts: Sequence[tuple[str, int]], is_stray: Callable[[str], bool]) -> list[tuple[str, int]]:
    """Return the texts that are strays, if they are few and in few cells."""
    strays: list[tuple[str, int]] = []
    for pair in texts:
        if is_stray(pair[0]):
            strays.append(pair)
            if len(strays) > MOST_STRAYS:
                return []
    return strays if sum(n for _, n in strays) < MOST_SHARE * sum(n for _, n in texts) else []


def _remedy(listed: str, *markers: str) -> str:
    options = " ".join(f"--missing {shlex.quote(marker)}" for marker in markers)
    what, give = ("it means", "it") if len(markers) == 1 else ("they mean", "them")
    return f"if {what} missing, give {give} as `missing=[{listed}]` (`{options}`)"


def _times(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
