"""The profiles of a lazy frame's columns, from two passes over the data: aggregates, then counts of distinct cells.

They are the profiles of a table in memory, so that inference decides the same on every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Any

import narwhals as nw
import numpy as np

from evenly._support import DATE, SPACED_NUMBER, TableError
from evenly.engines.base import EngineTable
from evenly.likelihoods import Likelihood
from evenly.scaling import finite
from evenly.tables import (
    MISSING_MARKERS,
    MOST_SPAN,
    Column,
    ColumnProfile,
    Floats,
    LazyColumn,
    NumberSummary,
    Rule,
    TextSummary,
    between,
    is_wordy,
    may_be_identifier,
    profile_column,
    read_number,
    refuse_infinite,
)

MOST_TEXTS = 10_000
"""Columns with more distinct texts are not listed: no column of classes has as many."""
MOST_CLASSES = 1000
"""Of a column of numbers that is declared to have classes."""
MOST_VALUES = 1_000_000
"""Counts with more distinct values are not counted one by one."""


@dataclass(frozen=True)
class QueriedColumn:
    """A column of a lazy frame, and what the queries have found out about it so far."""

    cells: LazyColumn
    """With its distinct cells, once they were counted."""
    rule: Rule
    profile: ColumnProfile
    n_distinct: int | None = None
    """How many distinct cells it has, if the engine was asked; missing cells may count as one."""
    counts: Floats | None = None
    """How often each of the distinct cells occurs, if they were counted."""

    @property
    def has_unlisted_texts(self) -> bool:
        """Whether the column holds texts that are too many to list."""
        return self.profile.storage == "text" and self.profile.n > 0 and self.counts is None and not self.rule.ignored

    def infer(self) -> tuple[Column, bool]:
        """Decide on the column; returns whether that was inferred, rather than declared, too."""
        column, profile = self.rule.infer(self.cells, lambda: self.profile)
        return column, profile is not None


def present(column: LazyColumn, missing: Sequence[Any]) -> nw.Expr:
    """Return the observed cells of a column as an expression: numbers in double precision, or texts."""
    if column.storage == "text":
        return nw.col(column.name).cast(nw.String)
    raw = nw.col(column.name).cast(nw.Float64)
    markers = [number for number in map(read_number, missing) if number is not None]
    known = ~raw.is_nan() if column.storage == "float" else ~raw.is_null()
    # A list of them (`is_in`) would be a join to DuckDB, which does not keep the order of rows.
    marked = nw.any_horizontal(*(raw == marker for marker in markers), ignore_nulls=False) if markers else None
    return nw.when(known if marked is None else known & ~marked).then(raw)


# --- the first pass: aggregates ----------------------------------------------------------------------------------


def summarize_columns(table: EngineTable, rules: Sequence[Rule]) -> list[QueriedColumn]:
    """Profile all columns by aggregates, in one pass over the data."""
    pairs = list(zip(table.columns, rules, strict=True))
    late = table.engine.counts_late
    cells = chain(*(_cells(place, *pair) for place, pair in enumerate(pairs)))
    questions = [_questions(place, *pair, late) for place, pair in enumerate(pairs)]
    n_rows, *answers = table.ask([*cells], [nw.len(), *chain(*questions)])
    if int(n_rows) == 0:
        raise TableError("0 rows (n_samples=0)", "expected at least 1 row", "is the file empty?")
    groups = split_answers(answers, [len(group) for group in questions])
    return [_summarize(*pair, int(n_rows), late, group) for pair, group in zip(pairs, groups, strict=True)]


def split_answers(answers: Sequence[Any], lengths: Sequence[int]) -> list[Sequence[Any]]:
    """Cut the answers to one query into those to each group of questions."""
    ends = [0, *accumulate(lengths)]
    return [answers[start:end] for start, end in pairwise(ends)]


def _is_opaque(column: LazyColumn, rule: Rule) -> bool:
    """Whether only the number of a column's observed cells matters."""
    return rule.ignored or column.storage in ("time", "other")


def _cells(place: int, column: LazyColumn, rule: Rule) -> list[nw.Expr]:
    """List the expressions that the first pass aggregates: the cells as they are, the observed and the finite ones."""
    own = nw.col(column.name)
    if _is_opaque(column, rule):
        # Only that a cell is there counts; some engines cannot count cells of any type.
        return [nw.when(~own.is_null()).then(1.0).alias(f"x{place}")]
    x = present(column, rule.missing)
    if column.storage == "text":
        return [x.alias(f"x{place}")]
    return [nw.when(~own.is_null()).then(1.0).alias(f"c{place}"), x.alias(f"x{place}"), finite(x).alias(f"f{place}")]


def _questions(place: int, column: LazyColumn, rule: Rule, late: bool) -> list[nw.Expr]:
    """List what the first pass asks of a column: always the number of observed cells first.

    If `late`, the number of distinct cells is left to the second pass.
    """
    x = nw.col(f"x{place}")
    if _is_opaque(column, rule):
        return [x.count()]
    if column.storage == "text":
        return [x.count()] if late else [x.count(), x.n_unique()]
    real = nw.col(f"f{place}")
    questions = [x.count(), nw.col(f"c{place}").count(), real.count(), real.min(), real.max(), real.mean()]
    questions += [real.var(ddof=0), nw.when(real > 0.0).then(real).min()]
    if column.storage == "float":
        questions.append(nw.when(real != real.floor()).then(real).count())
    if rule.wants_classes and not late:
        questions.append(real.n_unique())
    return questions


def _summarize(column: LazyColumn, rule: Rule, n_rows: int, late: bool, answers: Sequence[Any]) -> QueriedColumn:
    """Profile a column by the answers to its questions."""
    n = int(answers[0])
    if column.storage == "text" or (n == 0 and column.storage in ("time", "other")):
        n_distinct = int(answers[1]) if len(answers) > 1 else None
        return QueriedColumn(column, rule, ColumnProfile("text", n_rows, n), n_distinct)
    if _is_opaque(column, rule):
        return QueriedColumn(column, rule, ColumnProfile(column.storage, n_rows, n_rows))
    refuse_infinite(column.name, n - int(answers[2]))
    markers = tuple(rule.missing) if rule.missing and int(answers[1]) > n else ()
    if n == 0:
        summary = NumberSummary(0.0, 0.0)
        return QueriedColumn(
            column, rule, ColumnProfile(column.storage, n_rows, 0, markers=markers, number_summary=summary)
        )
    low, high = float(answers[3]), float(answers[4])
    variance = float(answers[6]) if answers[6] is not None else 0.0
    summary = NumberSummary(variance if np.isfinite(variance) else np.inf, float(answers[7]) if high > 0.0 else 0.0)
    whole = column.storage != "float" or int(answers[8]) == 0
    mean = between(float(answers[5]), low, high)
    profile = ColumnProfile(column.storage, n_rows, n, low, high, mean, whole, markers=markers, number_summary=summary)
    return QueriedColumn(column, rule, profile, int(answers[-1]) if rule.wants_classes and not late else None)


# --- the second pass: counts -------------------------------------------------------------------------------------


def count_columns(
    table: EngineTable, columns: Sequence[QueriedColumn], family: Callable[[Column], Likelihood]
) -> list[QueriedColumn]:
    """Count the cells of the columns that are listed value by value, in one pass over the data."""
    known = list(columns)
    limits = {j: _most_listed(each) for j, each in enumerate(known) if _is_listed(each, family)}
    doubtful = {j: 0 for j, each in enumerate(known) if j not in limits and _may_be_identifier(each)}
    for j, answer in _count(table, known, limits | doubtful).items():
        each = known[j]
        if j in doubtful:
            assert each.profile.number_summary is not None
            summary = each.profile.number_summary._replace(n_distinct=int(answer))
            known[j] = replace(each, profile=replace(each.profile, number_summary=summary))
        elif isinstance(answer, int):
            known[j] = replace(each, n_distinct=answer)
            _is_listed(known[j], family)  # refuses what needs the list
        else:
            known[j] = _list(each, answer)
    return known


def _is_listed(each: QueriedColumn, family: Callable[[Column], Likelihood]) -> bool:
    """Whether a column's cells are counted one by one; refuses a column that has to be, but has too many."""
    profile, rule, name = each.profile, each.rule, each.cells.name
    if rule.ignored or profile.n == 0 or profile.storage in ("time", "other"):
        return False
    if profile.storage == "text":
        if each.n_distinct is None or each.n_distinct <= MOST_TEXTS:
            return True
        if rule.kind or rule.likelihood or rule.declared:
            raise TableError(
                f"{each.n_distinct} distinct texts",
                f"a lazy frame expects at most {MOST_TEXTS}",
                "cast it to numbers on its engine, `ignore` it, or fit a table in memory",
                column=name,
            )
        return False
    if profile.whole and profile.maximum - profile.minimum < MOST_SPAN:
        return True
    if rule.wants_classes:
        if each.n_distinct is not None and each.n_distinct > MOST_CLASSES + 1:  # missing cells may be one of them
            raise TableError(
                f"{each.n_distinct} distinct numbers",
                f"expected at most {MOST_CLASSES} classes",
                "declare it `real` or `count`",
                column=name,
            )
        return True
    column, _ = each.infer()
    if column.kind == "ignore" or family(column).scalable:
        return False
    return min(profile.maximum - profile.minimum, profile.n) < MOST_VALUES


def _may_be_identifier(each: QueriedColumn) -> bool:
    """Whether a column of numbers is an identifier if all its cells differ, which has to be asked."""
    if each.profile.number_summary is None or each.rule.decided:
        return False
    return may_be_identifier(each.rule.name, each.profile)


def _most_listed(each: QueriedColumn) -> int:
    """Return how many distinct cells a column may have to be listed."""
    if each.profile.storage == "text":
        return MOST_TEXTS
    return MOST_CLASSES + 1 if each.rule.wants_classes else MOST_VALUES


def _count(table: EngineTable, columns: Sequence[QueriedColumn], limits: dict[int, int]) -> dict[int, Any]:
    """Count the distinct cells of columns, by their places; of those of limit 0, only how many there are."""
    if not limits:
        return {}
    cells = (present(columns[j].cells, columns[j].rule.missing).alias(str(j)) for j in limits)
    answers = table.engine.count_cells(table.frame.select(*cells), {str(j): limit for j, limit in limits.items()})
    return {j: answers[str(j)] for j in limits}


def _list(each: QueriedColumn, answer: dict[Any, int]) -> QueriedColumn:
    """Profile a column by its distinct cells and their counts."""
    values = sorted(answer)
    counts = np.array([answer[value] for value in values], np.float64)
    native = np.array(values, dtype=object if each.cells.storage == "text" else np.float64)
    cells = replace(each.cells, native=native)
    profile = profile_column(cells, each.rule.missing, counts)
    return replace(each, cells=cells, profile=profile, counts=counts)


# --- texts that are too many to list -----------------------------------------------------------------------------


def text_cells(column: LazyColumn) -> nw.Expr:
    """Return the texts that are no markers of missing cells."""
    x = present(column, ())
    return nw.when(~x.str.strip_chars().is_in(list(MISSING_MARKERS))).then(x).alias(column.name)


def text_questions(column: LazyColumn) -> list[nw.Expr]:
    """Ask how many texts there are, which shares are numbers, dates and with spaces, and how long they are."""
    cells = nw.col(column.name)
    shares = [cells.str.contains(pattern) for pattern in (SPACED_NUMBER, DATE, " ")]
    return [cells.count(), *map(_share, shares), cells.str.len_chars().cast(nw.Float64).mean()]


def _share(condition: nw.Expr) -> nw.Expr:
    """Return the share of cells for which a condition holds."""
    return nw.when(condition).then(1.0).otherwise(nw.when(~condition).then(0.0)).mean()


def summarize_texts(each: QueriedColumn, answers: Sequence[Any]) -> QueriedColumn:
    """Profile texts by the answers to `text_questions`."""
    assert each.n_distinct is not None
    n, numbers, dates, spaced, length = (float(answer or 0.0) for answer in answers)
    if numbers == 1.0:
        raise TableError(
            f"{each.n_distinct} distinct texts that spell numbers",
            f"a lazy frame expects at most {MOST_TEXTS}",
            "cast it to numbers on its engine",
            column=each.cells.name,
        )
    summary = TextSummary(each.n_distinct, dates == 1.0, is_wordy(length, spaced))
    return replace(each, profile=replace(each.profile, n=int(n), text_summary=summary))
