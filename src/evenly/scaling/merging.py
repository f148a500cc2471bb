"""Scalers, and columns that were measured in two parts of a table, merged: what the whole would have been.

Statistics merge exactly. Where both parts were counted, value by value, the kind is inferred again from all of their
values, so that parts may differ in their classes, their extent and even their kind.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenly._support import TableError
from evenly.scaling.measuring import MeasuredColumn, Measurer
from evenly.scaling.settings import check_alike
from evenly.scaling.statistics import measure_counted
from evenly.scaling.summary import warn_of_outcomes
from evenly.tables import (
    Column,
    LazyColumn,
    Rule,
    Table,
    TableColumn,
    Value,
    check_values,
    encode_growing,
    profile_column,
)

if TYPE_CHECKING:
    from evenly.scaling.scaler import LipschitzScaler


def merge_scalers(a: LipschitzScaler, b: LipschitzScaler) -> LipschitzScaler:
    """Return what the two parts of a table that scalers were fitted on give together; the noise is that of the first.

    Warns of outcomes where the scalers are added.
    """
    for one in (a, b):
        check_is_fitted(one, "columns_")
    check_alike(a, b)
    theirs = {one.label: one for one in b.columns_}
    names = [TableColumn(one.column.name, None) for one in a.columns_]
    measurer, rules = a._start(Table(names, [one.label for one in a.columns_], 0, a.container_))
    columns = [
        merge_columns(one, theirs[one.label], rule, measurer) for one, rule in zip(a.columns_, rules, strict=True)
    ]
    merged = copy(a)
    merged._fit_scales(columns, measurer.own)
    warn_of_outcomes(merged.columns_, merged.passthrough, stacklevel=3)
    return merged


def merge_columns(a: MeasuredColumn, b: MeasuredColumn, rule: Rule, measurer: Measurer) -> MeasuredColumn:
    """Return what two parts of a column are together, or say why they cannot be merged.

    Parameters
    ----------
    a, b : MeasuredColumn
        The parts, in any order; cells are stored as in the first.
    rule : Rule
        What is declared of the column.
    measurer : Measurer
        Knows the likelihoods of columns.
    """
    merged = _Merge(a, b, rule, measurer).merge()
    return replace(
        merged,
        label=a.label,
        family=measurer.own_family(merged.column),
        stored=a.stored,
        originals=tuple(dict.fromkeys([*a.originals, *b.originals])),
        non_answers=a.non_answers or b.non_answers,
        found_ignored=(a.found_ignored or b.found_ignored) and merged.column.kind == "ignore",
    )


@dataclass(frozen=True)
class _Merge:
    a: MeasuredColumn
    b: MeasuredColumn
    rule: Rule
    measurer: Measurer

    def merge(self) -> MeasuredColumn:
        """Return a part with the column and the statistics of both."""
        a, b = self.a, self.b
        if a.statistics.n == 0 or b.statistics.n == 0:
            return b if a.statistics.n == 0 else a
        first, second = _values(a), _values(b)
        if first is not None and second is not None:
            first.update(second)
            return self._counted(first)
        if first is not None and _may_be_averaged(first, b):
            return self._mixed(a.column, first, b)
        if second is not None and _may_be_averaged(second, a):
            return self._mixed(b.column, second, a)
        if _decisions(a.column) != _decisions(b.column):
            raise _unlike(a.column, b.column)
        statistics = a.statistics.merge(b.statistics, self.measurer.own_family(a.column))
        return replace(a, column=_with_markers(a.column, a.column, b.column), statistics=statistics)

    def _counted(self, counts: Counter[Value]) -> MeasuredColumn:
        """Infer a column again from the values of both parts."""
        a, b, rule = self.a, self.b, self.rule
        weights = np.array(list(counts.values()), np.float64)
        native = np.array([*counts, None], dtype=object)[:-1]
        seen = TableColumn(rule.name, native)
        if a.stored.dtype.startswith(("category", "Enum")):  # declared classes keep their order
            declared = list(dict.fromkeys([*(a.column.classes or ()), *(b.column.classes or ())]))
            seen = LazyColumn(rule.name, native, a.stored.dtype, "text", declared, a.stored.ordered)
        inferred, _ = rule.infer(seen, lambda: profile_column(seen, (), weights))
        if a.column.kind == b.column.kind == inferred.alternative:  # what the other columns of both parts said
            inferred, _ = replace(rule, kind=a.column.kind).infer(seen, lambda: profile_column(seen, (), weights))
            inferred.note, inferred.confidence = a.column.note, a.column.confidence
            inferred.alternative = a.column.alternative
        inferred = _with_spellings(inferred, a.column, b.column)
        column, values = encode_growing(_with_markers(inferred, a.column, b.column), TableColumn(rule.name, native))
        family = self.measurer.family(column)
        check_values(column, values, family)
        statistics = measure_counted(column, family, values, weights, False)
        return replace(a, column=column, statistics=statistics)

    def _mixed(self, counted: Column, counts: Counter[Value], averaged: MeasuredColumn) -> MeasuredColumn:
        """Merge whole numbers that were counted with numbers of the same column that were averaged."""
        column = _with_markers(averaged.column, averaged.column, counted)
        family = self.measurer.family(column)
        values, weights = (np.array(list(some), np.float64) for some in (counts, counts.values()))
        try:
            check_values(column, values, family)
        except TableError:
            raise _unlike(counted, column) from None
        statistics = measure_counted(column, family, values, weights, False)
        return replace(averaged, column=column, statistics=statistics.merge(averaged.statistics, family))


def _with_markers(column: Column, first: Column, second: Column) -> Column:
    """Return a column with the markers of missing cells of both parts."""
    return column.model_copy(update={"missing": list(dict.fromkeys([*first.missing, *second.missing]))})


def _with_spellings(column: Column, first: Column, second: Column) -> Column:
    """Return a column with the other spellings of its classes that were read in both parts."""
    known = set(map(str, column.classes or ()))
    given = {**second.same, **first.same}.items()
    same = {spelling: column.same.get(str(one), one) for spelling, one in given if spelling not in known}
    found = {spelling: one for spelling, one in {**same, **column.same}.items() if str(one) in known}
    return column.model_copy(update={"same": found})


def _values(part: MeasuredColumn) -> Counter[Value] | None:
    """Return how often each value or class occurs, if that was counted."""
    counts, classes = part.statistics.counts, part.column.classes
    if counts is None:
        return None
    if classes is not None:
        return Counter({classes[int(code)]: count for code, count in counts.items()})
    return Counter({int(value): count for value, count in counts.items()})


def _may_be_averaged(counts: Counter[Value], other: MeasuredColumn) -> bool:
    """Whether counted values are numbers, as those of another part that has a likelihood."""
    return other.column.kind != "ignore" and all(isinstance(value, (int, float)) for value in counts)


def _decisions(column: Column) -> dict[str, object]:
    """Return what must be the same in both parts: all but words and markers."""
    return column.model_dump(exclude={"note", "missing"})


def _unlike(a: Column, b: Column) -> TableError:
    kinds = [f"{one.kind} ({one.likelihood}, shift {one.shift:g})" for one in (a, b)]
    return TableError(
        f"{kinds[0]} in one part and {kinds[1]} in the other",
        "parts that were averaged expect to be alike to be merged",
        "declare its kind, or fit the parts with one schema: LipschitzScaler(schema=first.schema_)",
        column=a.name,
    )
