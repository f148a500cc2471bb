"""Two parts of a column that were fitted apart, as one: what the whole would have been.

Statistics merge exactly. Where both parts were counted, value by value, the kind is inferred again from all of their
values, so that parts may differ in their classes, their extent and even their kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evenly._support import TableError
from evenly.likelihoods import Likelihood
from evenly.scaling.statistics import ColumnStatistics, measure_counted
from evenly.tables import Column, LazyColumn, Rule, Stored, TableColumn, Value, check_values, encode_growing, look


class Part(NamedTuple):
    """A column as one part of a table was fitted."""

    column: Column
    statistics: ColumnStatistics


def merge_parts(a: Part, b: Part, rule: Rule, stored: Stored, family: Callable[[Column], Likelihood]) -> Part:
    """Return what two parts of a column are together, or say why they cannot be merged.

    Parameters
    ----------
    a, b : Part
        The parts; which comes first does not matter.
    rule : Rule
        What is declared of the column.
    stored : Stored
        How it is stored: declared classes keep their order.
    family : function of a column
        Its likelihood.
    """
    if a.statistics.n == 0 or b.statistics.n == 0:
        return b if a.statistics.n == 0 else a
    first, second = (_values(part) for part in (a, b))
    if first is not None and second is not None:
        return _merge_counted(a, b, first, second, rule, stored, family)
    if first is not None or second is not None:
        counted, values, other = (a, first, b) if first is not None else (b, second, a)
        assert values is not None
        if other.column.kind != "ignore" and all(isinstance(value, (int, float)) for value in values):
            return _merge_mixed(counted, values, other, family)
    if _decided(a.column) != _decided(b.column):
        raise _unlike(a.column, b.column)
    own = None if a.column.kind == "ignore" else family(a.column)
    column = a.column.model_copy(deep=True)
    column.missing = _markers(a.column, b.column)
    return Part(column, a.statistics.merge(b.statistics, own))


def _values(part: Part) -> dict[Value, int] | None:
    """Return how often each value or class occurs, if that was counted."""
    counts, classes = part.statistics.counts, part.column.classes
    if counts is None:
        return None
    if classes is not None:
        return {classes[int(code)]: count for code, count in counts.items()}
    return {int(value): count for value, count in counts.items()}


def _merge_counted(
    a: Part,
    b: Part,
    first: dict[Value, int],
    second: dict[Value, int],
    rule: Rule,
    stored: Stored,
    family: Callable[[Column], Likelihood],
) -> Part:
    counts = dict(first)
    for value, count in second.items():
        counts[value] = counts.get(value, 0) + count
    weights = np.array(list(counts.values()), np.float64)
    cells = TableColumn(rule.name, np.array([*counts, None], dtype=object)[:-1])
    if stored.dtype.startswith(("category", "Enum")):
        declared = [*(a.column.classes or ()), *(b.column.classes or ())]
        cells = LazyColumn(rule.name, cells.native, stored.dtype, "text", list(dict.fromkeys(declared)), stored.ordered)
    column, _ = rule.infer(cells, lambda: look(cells, (), weights))
    column.missing = _markers(a.column, b.column)
    values = encode_growing(column, TableColumn(rule.name, cells.native))
    check_values(column, values, family(column))
    return Part(column, measure_counted(column, family(column), values, weights, False))


def _merge_mixed(counted: Part, values: dict[Value, int], other: Part, family: Callable[[Column], Likelihood]) -> Part:
    """Merge whole numbers that were counted with numbers of the same column that were averaged."""
    column = other.column.model_copy(deep=True)
    column.missing = _markers(other.column, counted.column)
    own, numbers = family(column), np.array(list(values), np.float64)
    try:
        check_values(column, numbers, own)
    except TableError:
        raise _unlike(counted.column, column) from None
    weights = np.array(list(values.values()), np.float64)
    statistics = measure_counted(column, own, numbers, weights, False)
    return Part(column, statistics.merge(other.statistics, own))


def _markers(a: Column, b: Column) -> list[Value]:
    """Return the markers of missing cells of both parts."""
    return list(dict.fromkeys([*a.missing, *b.missing]))


def _decided(column: Column) -> dict[str, object]:
    """Return what must be the same in both parts: all but words and markers."""
    return column.model_dump(exclude={"note", "missing"})


def _unlike(a: Column, b: Column) -> TableError:
    told = [f"{one.kind} ({one.likelihood}, shift {one.shift:g})" for one in (a, b)]
    return TableError(
        f"{told[0]} in one part and {told[1]} in the other",
        "parts that were averaged expect to be alike to be merged",
        "declare its kind, or fit the parts with one schema: LipschitzScaler(schema=first.schema_)",
        column=a.name,
    )
