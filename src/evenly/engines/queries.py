"""What fitting asks of a table that stays on its own engine.

Three queries at most, each one pass over the data, each answered by aggregates: what the columns hold (1), how often
each value of the discrete ones occurs (2), and the mean sufficient statistics of the others (3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from evenly._support import TableError
from evenly.engines import profiling
from evenly.engines.base import EngineTable
from evenly.engines.partitions import ask_partitions
from evenly.engines.profiling import QueriedColumn, split_answers, summarize_texts, text_cells, text_questions
from evenly.likelihoods import Likelihood
from evenly.scaling import (
    ColumnStatistics,
    Request,
    measure_counted,
    measure_expressions,
    prepared_cells,
    read_measures,
)
from evenly.tables import Column, LazyColumn, Rule, check_values, encode_growing


class Measured(NamedTuple):
    """One column as a lazy frame was fitted: what it is, whether that was inferred, and its statistics."""

    column: Column
    inferred: bool
    statistics: ColumnStatistics


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
    columns = profiling.count_columns(table, profiling.summarize_columns(table, rules), family)
    texts = {j: each for j, each in enumerate(columns) if each.has_unlisted_texts}
    decided: dict[int, tuple[Column, bool]] = {}
    statistics: dict[int, ColumnStatistics] = {}
    requests: dict[int, Request] = {}
    for j, each in enumerate(columns):
        if j in texts:
            continue
        column, inferred = each.infer()
        column, measured = _measure(column, each, family, quartiles)
        decided[j] = column, inferred
        if isinstance(measured, tuple):
            requests[j] = measured
        else:
            statistics[j] = measured
    cells = [each.cells for each in texts.values()]
    answers, measures = _ask_statistics(table, cells, list(requests.values()), quartiles)
    statistics |= dict(zip(requests, measures, strict=True))
    for (j, each), answer in zip(texts.items(), answers, strict=True):
        decided[j] = summarize_texts(each, answer).infer()
        statistics[j] = ColumnStatistics(each.profile.n, 0.0, 0.0)
    return [Measured(*decided[j], statistics[j]) for j in range(len(columns))]


def _measure(
    column: Column, each: QueriedColumn, family: Callable[[Column], Likelihood], quartiles: bool
) -> tuple[Column, ColumnStatistics | Request]:
    """Take the statistics of a column from its counts, or say what to ask for them; it may grow by classes."""
    profile = each.profile
    if column.kind == "ignore":
        return column, ColumnStatistics(profile.n, 0.0, 0.0)
    if each.counts is not None:
        column, values = encode_growing(column, each.cells)
        check_values(column, values, family(column))
        return column, measure_counted(column, family(column), values, each.counts, quartiles)
    of = family(column)
    if profile.n == 0:
        nothing = np.zeros(0)
        return column, measure_counted(column, of, nothing, nothing, False)
    if not of.scalable:
        raise TableError(
            f"more than {profiling.MOST_VALUES} distinct numbers",
            f"a lazy frame expects a {column.kind} to have fewer",
            "declare it `positive` or `real`",
            column=column.name,
        )
    extent = (profile.minimum, profile.maximum)
    check_values(column, np.array(extent), of)
    return column, Request(column.name, column, of, profile.mean, extent)


def _ask_statistics(
    table: EngineTable, texts: Sequence[LazyColumn], requests: Sequence[Request], quartiles: bool
) -> tuple[list[Sequence[Any]], list[ColumnStatistics]]:
    """Ask for the statistics, and about the texts that are too many to list, in one pass over the data."""
    if not texts and not requests:
        return [], []
    if quartiles and requests and not table.engine.exact_quantiles:
        return ask_partitions(table, texts, requests)
    questions = [text_questions(text) for text in texts]
    lengths = [len(group) for group in questions]
    cells = [*map(text_cells, texts), *prepared_cells(requests)]
    answers = table.ask(cells, [*chain(*questions), *measure_expressions(requests, quartiles)])
    n = sum(lengths)
    return split_answers(answers[:n], lengths), read_measures(requests, answers[n:], quartiles)
