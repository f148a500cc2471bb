"""Statistics from partitions, each in memory: the third pass on engines that compute no exact quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from evenly.engines.base import EngineTable
from evenly.engines.profiling import text_cells, text_questions
from evenly.scaling import ColumnStatistics, Request, counted_quartiles, finite, measure_values
from evenly.tables import Floats, LazyColumn, prepare

KEPT_RANKS = 1000
"""Ordered values that are kept of each partition, so that ranks are good to 1/1000."""


def ask_partitions(
    table: EngineTable, texts: Sequence[LazyColumn], requests: Sequence[Request]
) -> tuple[list[Sequence[Any]], list[ColumnStatistics]]:
    """Ask each partition for its statistics and some of its ordered values, and merge the answers."""
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
    by_text = [np.array([answers[place] for answers, _ in parts], np.float64) for place in range(len(texts))]
    return [_pool(answers) for answers in by_text], merged


def _pool(answers: Floats) -> list[float]:
    """Pool a count and means over partitions."""
    counts = answers[:, 0]
    means = np.nansum(answers[:, 1:] * counts[:, None], axis=0) / max(counts.sum(), 1.0)
    return [float(counts.sum()), *map(float, means)]


def _measure_partition(
    part: Any, texts: Sequence[LazyColumn], requests: Sequence[Request]
) -> tuple[list[Any], list[Any]]:
    """Measure one partition: statistics, and evenly spaced ranks with how many cells each stands for."""
    frame = nw.from_native(part, eager_only=True)
    answers = []
    for text in texts:
        named = [one.alias(str(place)) for place, one in enumerate(text_questions(text))]
        answers.append(frame.select(text_cells(text)).select(*named).rows()[0])
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
