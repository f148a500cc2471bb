"""What fitting asks of a table that stays on its own engine.

Three queries at most, each one pass over the data, each answered by aggregates: what the columns hold (1), how often
each value of the discrete ones occurs (2), and the mean sufficient statistics of the others (3). Decisions are those
of the schema: it gets the same profile as of a table in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from evenly._support import TableError
from evenly.engines.base import EngineTable
from evenly.likelihoods import Likelihood
from evenly.scaling import (
    ColumnStatistics,
    Request,
    counted_quartiles,
    finite,
    measure_counted,
    measure_expressions,
    measure_values,
    prepare,
    prepared_cells,
    read_measures,
)
from evenly.tables import (
    DATE,
    MISSING_MARKERS,
    MOST_SPAN,
    SPACED_NUMBER,
    Column,
    ColumnProfile,
    Floats,
    LazyColumn,
    NumberSummary,
    Rule,
    TextSummary,
    between,
    check_values,
    encode_growing,
    is_wordy,
    may_be_identifier,
    profile_column,
    read_number,
    refuse_infinite,
)

MOST_TEXTS = 10_000
"""Texts with more distinct ones are not listed: no column of classes has as many."""
MOST_CLASSES = 1000
"""Of a column of numbers that is declared to have classes."""
MOST_VALUES = 1_000_000
"""Counts with more distinct values are not counted one by one."""
KEPT_RANKS = 1000
"""Dask has no exact quantiles: of each partition so many ordered values are kept, so that ranks are good to 1/1000."""


# --- profiles ------------------------------------------------------------------------------------------------------


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


def _cells(place: int, column: LazyColumn, rule: Rule) -> list[nw.Expr]:
    """List what the first pass looks at: the cells as they are, and the observed and finite ones."""
    own = nw.col(column.name)
    if rule.ignored or column.storage in ("time", "other"):
        # Only that a cell is there counts; some engines cannot count cells of any type.
        return [nw.when(~own.is_null()).then(1.0).alias(f"x{place}")]
    x = present(column, rule.missing)
    if column.storage == "text":
        return [x.alias(f"x{place}")]
    return [nw.when(~own.is_null()).then(1.0).alias(f"c{place}"), x.alias(f"x{place}"), finite(x).alias(f"f{place}")]


def _questions(place: int, column: LazyColumn, rule: Rule, late: bool) -> list[nw.Expr]:
    """List what the first pass asks of a column: always the number of observed cells first.

    How many differ is left to the second pass if that is late.
    """
    x = nw.col(f"x{place}")
    if rule.ignored or column.storage in ("time", "other"):
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


class _FirstAnswer(NamedTuple):
    """What is known of a column after the first pass: its profile, and how many distinct cells it may have."""

    profile: ColumnProfile
    n_distinct: int | None = None


def _first(column: LazyColumn, rule: Rule, n_rows: int, late: bool, answers: Sequence[Any]) -> _FirstAnswer:
    n = int(answers[0])
    if column.storage == "text" or (n == 0 and column.storage in ("time", "other")):
        return _FirstAnswer(ColumnProfile("text", n_rows, n), int(answers[1]) if len(answers) > 1 else None)
    if rule.ignored or column.storage in ("time", "other"):
        return _FirstAnswer(ColumnProfile(column.storage, n_rows, n_rows))
    refuse_infinite(column.name, n - int(answers[2]))
    markers = tuple(rule.missing) if rule.missing and int(answers[1]) > n else ()
    if n == 0:
        return _FirstAnswer(
            ColumnProfile(column.storage, n_rows, 0, markers=markers, number_summary=NumberSummary(0.0, 0.0))
        )
    low, high = float(answers[3]), float(answers[4])
    variance = float(answers[6]) if answers[6] is not None else 0.0
    summary = NumberSummary(variance if np.isfinite(variance) else np.inf, float(answers[7]) if high > 0.0 else 0.0)
    whole = column.storage != "float" or int(answers[8]) == 0
    mean = between(float(answers[5]), low, high)
    profile = ColumnProfile(column.storage, n_rows, n, low, high, mean, whole, markers=markers, number_summary=summary)
    return _FirstAnswer(profile, int(answers[-1]) if rule.wants_classes and not late else None)


def _lists(column: LazyColumn, rule: Rule, seen: _FirstAnswer, family: Callable[[Column], Likelihood]) -> bool:
    """Whether the second pass is to count a column's cells one by one."""
    profile = seen.profile
    if rule.ignored or profile.n == 0 or profile.storage in ("time", "other"):
        return False
    if profile.storage == "text":
        if seen.n_distinct is None or seen.n_distinct <= MOST_TEXTS:
            return True
        if rule.kind or rule.likelihood or rule.declared:
            raise TableError(
                f"{seen.n_distinct} distinct texts",
                f"a lazy frame expects at most {MOST_TEXTS}",
                "cast it to numbers on its engine, `ignore` it, or fit a table in memory",
                column=column.name,
            )
        return False
    if profile.whole and profile.maximum - profile.minimum < MOST_SPAN:
        return True
    if rule.wants_classes:
        if seen.n_distinct is not None and seen.n_distinct > MOST_CLASSES + 1:  # missing cells may be one of them
            raise TableError(
                f"{seen.n_distinct} distinct numbers",
                f"expected at most {MOST_CLASSES} classes",
                "declare it `real` or `count`",
                column=column.name,
            )
        return True
    inferred, _ = rule.infer(column, lambda: profile)
    if inferred.kind == "ignore" or family(inferred).scalable:
        return False
    return min(profile.maximum - profile.minimum, profile.n) < MOST_VALUES


def _most(seen: _FirstAnswer, rule: Rule) -> int:
    """Return how many distinct cells a column may have to be listed."""
    if seen.profile.storage == "text":
        return MOST_TEXTS
    return MOST_CLASSES + 1 if rule.wants_classes else MOST_VALUES


def _text_questions(column: LazyColumn) -> list[nw.Expr]:
    """Ask what tells many texts apart: how many there are; which shares are numbers, dates, prose."""
    cells = nw.col(column.name)
    shares = [cells.str.contains(pattern) for pattern in (SPACED_NUMBER, DATE, " ")]
    return [cells.count(), *map(_share, shares), cells.str.len_chars().cast(nw.Float64).mean()]


def _long_cells(column: LazyColumn) -> nw.Expr:
    """Return the texts that are no markers of missing cells."""
    x = present(column, ())
    return nw.when(~x.str.strip_chars().is_in(list(MISSING_MARKERS))).then(x).alias(column.name)


def _share(condition: nw.Expr) -> nw.Expr:
    """Return the share of cells for which a condition holds."""
    return nw.when(condition).then(1.0).otherwise(nw.when(~condition).then(0.0)).mean()


def _long_texts(column: LazyColumn, seen: _FirstAnswer, answers: Sequence[Any]) -> ColumnProfile:
    """Return the profile of texts that are too many to list."""
    assert seen.n_distinct is not None
    n, numbers, dates, spaced, length = (float(answer or 0.0) for answer in answers)
    if numbers == 1.0:
        raise TableError(
            f"{seen.n_distinct} distinct texts that spell numbers",
            f"a lazy frame expects at most {MOST_TEXTS}",
            "cast it to numbers on its engine",
            column=column.name,
        )
    return replace(
        seen.profile, n=int(n), text_summary=TextSummary(seen.n_distinct, dates == 1.0, is_wordy(length, spaced))
    )


# --- fitting -----------------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """One column as a lazy frame was fitted: what it is, whether that was inferred, and its statistics."""

    column: Column
    inferred: bool
    statistics: ColumnStatistics


class _Counted(NamedTuple):
    """What is known of a column after the second pass: its distinct cells and their counts, if it was listed."""

    cells: LazyColumn
    profile: ColumnProfile
    counts: Floats | None = None


def measure_lazily(
    table: EngineTable, rules: Sequence[Rule], family: Callable[[Column], Likelihood], *, quartiles: bool
) -> list[Measured]:
    """Infer the schema of a lazy frame and take its statistics, in at most three passes over the data.

    Parameters
    ----------
    table : EngineTable
        From `open_lazy`.
    rules : sequence of Rule
        What is declared of each column.
    family : function of a column
        Its likelihood.
    quartiles : bool
        Whether the method needs them.
    """
    first = _first_pass(table, rules)
    known = _second_pass(table, rules, first, family)
    long = {
        j: (cells, first[j])
        for j, (cells, profile, counts) in enumerate(known)
        if profile.storage == "text" and profile.n and counts is None and not rules[j].ignored
    }
    decided, statistics = {}, {}
    requests: dict[int, Request] = {}
    for j, each in enumerate(known):
        if j in long:
            continue
        column, profile = rules[j].infer(each.cells, lambda profile=each.profile: profile)  # type: ignore[misc]  # a default
        column, measured = _measure(column, each, family, quartiles)
        decided[j] = column, profile
        if isinstance(measured, tuple):
            requests[j] = measured
        else:
            statistics[j] = measured
    texts = [cells for cells, _ in long.values()]
    answers, measures = _third_pass(table, texts, list(requests.values()), quartiles)
    statistics |= dict(zip(requests, measures, strict=True))
    for (j, (cells, seen)), answer in zip(long.items(), answers, strict=True):
        profile = _long_texts(cells, seen, answer)
        decided[j] = rules[j].infer(cells, lambda profile=profile: profile)  # type: ignore[misc]  # a default
        statistics[j] = ColumnStatistics(seen.profile.n, 0.0, 0.0)
    return [Measured(decided[j][0], decided[j][1] is not None, statistics[j]) for j in range(len(rules))]


def _first_pass(table: EngineTable, rules: Sequence[Rule]) -> list[_FirstAnswer]:
    places = range(len(rules))
    cells = [*chain(*map(_cells, places, table.columns, rules))]
    late = table.engine.counts_late
    questions = [_questions(j, table.columns[j], rules[j], late) for j in places]
    n_rows, *answers = table.ask(cells, [nw.len(), *chain(*questions)])
    if int(n_rows) == 0:
        raise TableError("0 rows (n_samples=0)", "expected at least 1 row", "is the file empty?")
    parts = _cut(answers, [len(part) for part in questions])
    return [
        _first(column, rule, int(n_rows), late, part)
        for column, rule, part in zip(table.columns, rules, parts, strict=True)
    ]


def _cut(answers: Sequence[Any], lengths: Sequence[int]) -> list[Sequence[Any]]:
    ends = [0, *accumulate(lengths)]
    return [answers[start:end] for start, end in pairwise(ends)]


def _second_pass(
    table: EngineTable, rules: Sequence[Rule], first: list[_FirstAnswer], family: Callable[[Column], Likelihood]
) -> list[_Counted]:
    """Count cells; where they turn out to be too many to list, that is added to what was seen first."""
    listed = [j for j, seen in enumerate(first) if _lists(table.columns[j], rules[j], seen, family)]
    doubtful = [
        j
        for j, (profile, _) in enumerate(first)
        if j not in listed
        and profile.number_summary is not None
        and profile.whole
        and not rules[j].decided
        and may_be_identifier(rules[j].name, profile)
    ]
    limits = {j: _most(first[j], rules[j]) for j in listed} | dict.fromkeys(doubtful, 0)
    known = [_Counted(column, seen.profile) for column, seen in zip(table.columns, first, strict=True)]
    for j, answer in _count(table, rules, limits).items():
        cells, profile, _ = known[j]
        if j in doubtful:
            assert profile.number_summary is not None
            known[j] = _Counted(
                cells, replace(profile, number_summary=profile.number_summary._replace(n_distinct=int(answer)))
            )
            continue
        if isinstance(answer, int):
            first[j] = first[j]._replace(n_distinct=answer)
            _lists(table.columns[j], rules[j], first[j], family)  # refuses what needs the list
            continue
        values = sorted(answer)
        cells = replace(cells, native=np.array(values, dtype=object if cells.storage == "text" else np.float64))
        counts = np.array([answer[value] for value in values], np.float64)
        known[j] = _Counted(cells, profile_column(cells, rules[j].missing, counts), counts)
    return known


def _count(table: EngineTable, rules: Sequence[Rule], limits: dict[int, int]) -> dict[int, Any]:
    """Count the distinct cells of columns, by their places; of those of limit 0, only how many there are."""
    if not limits:
        return {}
    wanted = (present(table.columns[j], rules[j].missing).alias(str(j)) for j in limits)
    answers = table.engine.count_cells(table.frame.select(*wanted), {str(j): limit for j, limit in limits.items()})
    return {j: answers[str(j)] for j in limits}


def _measure(
    column: Column, known: _Counted, family: Callable[[Column], Likelihood], quartiles: bool
) -> tuple[Column, ColumnStatistics | Request]:
    """Take the statistics of a column from its counts, or say what to ask for them; it may grow by classes."""
    cells, profile, counts = known
    if column.kind == "ignore":
        return column, ColumnStatistics(profile.n, 0.0, 0.0)
    if counts is not None:
        column, values = encode_growing(column, cells)
        check_values(column, values, family(column))
        return column, measure_counted(column, family(column), values, counts, quartiles)
    of = family(column)
    if profile.n == 0:
        nothing = np.zeros(0)
        return column, measure_counted(column, of, nothing, nothing, False)
    if not of.scalable:
        raise TableError(
            f"more than {MOST_VALUES} distinct numbers",
            f"a lazy frame expects a {column.kind} to have fewer",
            "declare it `positive` or `real`",
            column=column.name,
        )
    extent = (profile.minimum, profile.maximum)
    check_values(column, np.array(extent), of)
    return column, Request(column.name, column, of, profile.mean, extent)


def _third_pass(
    table: EngineTable, texts: Sequence[LazyColumn], requests: Sequence[Request], quartiles: bool
) -> tuple[list[Sequence[Any]], list[ColumnStatistics]]:
    """Ask for the statistics, and what tells long texts apart."""
    if not texts and not requests:
        return [], []
    if not table.engine.exact_quantiles and quartiles and requests:
        return _ask_partitions(table, texts, requests)
    questions = [_text_questions(text) for text in texts]
    lengths = [len(group) for group in questions]
    cells = [*map(_long_cells, texts), *prepared_cells(requests)]
    answers = table.ask(cells, [*chain(*questions), *measure_expressions(requests, quartiles)])
    return _cut(answers[: sum(lengths)], lengths), read_measures(requests, answers[sum(lengths) :], quartiles)


# --- Dask's quartiles --------------------------------------------------------------------------------------------


def _ask_partitions(
    table: EngineTable, texts: Sequence[LazyColumn], requests: Sequence[Request]
) -> tuple[list[Sequence[Any]], list[ColumnStatistics]]:
    """Ask each partition for its statistics and some of its ordered values, and merge what they say."""
    parts = table.engine.map_partitions(table.frame, partial(_measure_partition, texts=texts, requests=requests))
    merged = []
    for place, (_, _, family, _, _) in enumerate(requests):
        answers = [measured[place] for _, measured in parts]
        whole, values, weights = answers[0]
        for more, others, copies in answers[1:]:
            whole = whole.merge(more, family)
            values, weights = np.concatenate([values, others]), np.concatenate([weights, copies])
        order = np.argsort(values, kind="stable")
        merged.append(replace(whole, quartiles=counted_quartiles(values[order], weights[order])))
    said = [np.array([answers[place] for answers, _ in parts], np.float64) for place in range(len(texts))]
    return [_pool(answers) for answers in said], merged


def _pool(answers: Floats) -> list[float]:
    """Pool a count and means over partitions."""
    counts = answers[:, 0]
    means = np.nansum(answers[:, 1:] * counts[:, None], axis=0) / max(counts.sum(), 1.0)
    return [float(counts.sum()), *map(float, means)]


def _measure_partition(
    part: Any, texts: Sequence[LazyColumn], requests: Sequence[Request]
) -> tuple[list[Any], list[Any]]:
    """Measure one partition, in memory: statistics, and evenly spaced ranks with how many cells each stands for."""
    frame = nw.from_native(part, eager_only=True)
    answers = []
    for text in texts:
        named = [one.alias(str(place)) for place, one in enumerate(_text_questions(text))]
        answers.append(frame.select(_long_cells(text)).select(*named).rows()[0])
    measured = []
    for label, column, family, mean, extent in requests:
        cells = frame.select(finite(nw.col(label), column.missing).alias("x"))["x"].to_numpy().astype(np.float64)
        x = np.sort(prepare(column, cells[~np.isnan(cells)]))
        x = np.log(x) if family.in_logs else x
        # Of each run of cells the middle one stands for them all.
        ends = np.linspace(0, len(x), min(len(x), KEPT_RANKS) + 1).round().astype(np.intp)
        statistics = measure_values(column, family, cells, mean, extent, False)
        measured.append((statistics, x[(ends[:-1] + ends[1:]) // 2], np.diff(ends).astype(np.float64)))
    return answers, measured
