"""From a table to measured columns: what each column is, and its statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evenly.likelihoods import Likelihood
from evenly.scaling.lazy_frames import lazy_scaling
from evenly.scaling.statistics import (
    ColumnStatistics,
    Request,
    from_counts,
    measure_counts,
    measure_frame,
    measure_values,
)
from evenly.tables import (
    Column,
    ColumnProfile,
    LazyTable,
    Rule,
    Stored,
    Table,
    TableColumn,
    check_values,
    column_likelihood,
    describe_non_answers,
    encode_counts,
    encode_growing,
    map_columns,
    profile_column,
    select,
)


@dataclass(frozen=True, kw_only=True)
class MeasuredColumn:
    """One column of a table, after the pass over its cells."""

    label: Any
    """What the table calls it."""
    column: Column
    family: Likelihood | None
    """Its own likelihood, whatever the trick; None if it is ignored."""
    statistics: ColumnStatistics
    stored: Stored
    """How its cells were stored."""
    originals: tuple[Any, ...] = ()
    """Classes as they were declared, where JSON cannot hold them (intervals, dates): a schema has only their texts."""
    found_ignored: bool = False
    """Whether it was found to be no variable, which users are warned of; not one that they ignore."""
    non_answers: str = ""
    """The texts that were found to stand for no answer, which users are warned of."""

    def to_plain(self) -> dict[str, Any]:
        """Return the column as JSON holds it, beside the schema, which has its description."""
        label = self.label if isinstance(self.label, (str, int, float)) else str(self.label)
        return {"label": label, "stored": self.stored.to_plain(), "statistics": self.statistics.to_plain()}

    @staticmethod
    def from_plain(plain: Mapping[str, Any], column: Column, family: Likelihood | None) -> MeasuredColumn:
        """Return the column from its description in the schema and what `to_plain` gave."""
        stored, statistics = Stored(*plain["stored"]), ColumnStatistics.from_plain(plain["statistics"])
        return MeasuredColumn(label=plain["label"], column=column, family=family, statistics=statistics, stored=stored)


@dataclass(frozen=True)
class Measurer:
    """Measures the columns of tables."""

    own: Mapping[str, Likelihood]
    """The user's own likelihoods by name."""
    quartiles: bool
    """Whether the method needs them."""

    def family(self, column: Column) -> Likelihood:
        """Return the likelihood of a column that is not ignored."""
        return column_likelihood(column, self.own)

    def own_family(self, column: Column) -> Likelihood | None:
        """Return the likelihood of a column; None if it is ignored."""
        return None if column.kind == "ignore" else self.family(column)

    def measure(self, table: Table | LazyTable, rules: Sequence[Rule]) -> list[MeasuredColumn]:
        """Infer what each column is, where rules do not declare it, and take its statistics."""
        said = [""] * len(table.columns)
        if isinstance(table, LazyTable):
            measured = lazy_scaling().measure_lazily(table, rules, self.family, quartiles=self.quartiles)
        else:
            pairs = map_columns(_infer, rules, table.columns, n_rows=table.n_rows)
            columns, profiles = [column for column, _ in pairs], [profile for _, profile in pairs]
            said = [describe_non_answers(one.non_answers) if one and one.non_answers else "" for one in profiles]
            statistics = self._measure_all(table, columns, table.columns, profiles)
            measured = [
                (column, profile is not None, of) for (column, of), profile in zip(statistics, profiles, strict=True)
            ]
        return [
            MeasuredColumn(
                label=label,
                column=column,
                family=self.own_family(column),
                statistics=of,
                stored=cells.stored,
                originals=_originals(cells, column),
                found_ignored=inferred and column.kind == "ignore",
                non_answers=non_answers,
            )
            for label, cells, (column, inferred, of), non_answers in zip(
                table.labels, table.columns, measured, said, strict=True
            )
        ]

    def measure_more(self, table: Table, columns: Sequence[MeasuredColumn], by_position: bool) -> list[MeasuredColumn]:
        """Return columns with the statistics of another part of their table merged in; they may grow by classes."""
        cells, _ = select(table, [one.label for one in columns], by_position=by_position)
        measured = self._measure_all(table, [one.column for one in columns], cells, [None] * len(columns))
        more = []
        for old, (column, of) in zip(columns, measured, strict=True):
            family = self.own_family(column)
            more.append(replace(old, column=column, family=family, statistics=old.statistics.merge(of, family)))
        return more

    def _measure_all(
        self,
        table: Table,
        columns: Sequence[Column],
        cells: Sequence[TableColumn],
        profiles: Sequence[ColumnProfile | None],
    ) -> list[tuple[Column, ColumnStatistics]]:
        """Take the statistics of all columns, those that a Polars frame can take itself in one query."""
        by_engine = table.container == "polars" and not self.quartiles
        parts = map_columns(partial(self._measure_one, by_engine), columns, cells, profiles, n_rows=table.n_rows)
        requests = [part for _, part in parts if isinstance(part, Request)]
        answers = iter(measure_frame(table.frame.lazy(), requests) if requests else [])
        return [(column, next(answers) if isinstance(part, Request) else part) for column, part in parts]

    def _measure_one(
        self, by_engine: bool, column: Column, cells: TableColumn, profile: ColumnProfile | None
    ) -> tuple[Column, ColumnStatistics | Request]:
        """Take the statistics of one column, or say what to ask the engine for."""
        cells = cells.fresh()
        if column.kind == "ignore":
            return column, ColumnStatistics(cells.n_observed, 0.0, 0.0)
        bounded = column.lower is not None or column.upper is not None
        if profile is not None and not bounded and not column.is_spelled and not self.family(column).scalable:
            counts = encode_counts(column, profile)
            if counts is not None:
                check_values(column, np.array([*counts]), self.family(column))
                return column, from_counts(counts)
        if profile is None and not column.has_classes:
            profile = profile_column(cells, column.missing)
        column, values = encode_growing(column, cells)
        family = self.family(column)
        check_values(column, values, family)
        if not family.scalable:
            return column, measure_counts(values)
        if column.is_spelled:  # the profile is that of its cells
            profile = profile_column(TableColumn(column.name, values))
        assert profile is not None
        extent = (profile.minimum, profile.maximum)
        numbers = cells.storage in ("integer", "float") and cells.dtype != "object"
        if by_engine and numbers and not column.missing and profile.n:
            return column, Request(column.name, column, family, profile.mean, extent)
        return column, measure_values(column, family, values, profile.mean, extent, self.quartiles)


def _infer(rule: Rule, cells: TableColumn) -> tuple[Column, ColumnProfile | None]:
    """Decide what a column is; returns its profile too, without its numbers, if one was taken."""
    fresh = cells.fresh()
    column, profile = rule.infer(fresh, lambda: profile_column(fresh, rule.missing))
    return column, None if profile is None else replace(profile, numbers=None)


def _originals(cells: Any, column: Column) -> tuple[Any, ...]:
    """Return declared classes if those of the schema differ: JSON cannot hold some, and many have another order."""
    classes = tuple(cells.categories or ())
    plain = all(isinstance(value, (bool, int, float, str)) for value in classes)
    same = column.classes is None or (len(classes) == len(column.classes) and not column.has_rest)
    return () if plain and same else classes
