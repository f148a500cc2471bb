"""The setting `rules` of an imputer: read and checked without a table, and bound to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.imputation.columns import ColumnSpec
from evenly.imputation.rules.book import RuleBook, bind_rules
from evenly.imputation.rules.columns import rule_column
from evenly.imputation.rules.grammar import EXAMPLES, Rule, parse_rule
from evenly.imputation.rules.rows import NO_BOOK, RowRules
from evenly.scaling import FittedColumn
from evenly.tables import Column, Floats, TableColumn

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rules:
    """The rules of an imputer.

    Examples
    --------
    >>> [type(one).__name__ for one in Rules.read(["total = a + b", "0 <= a <= b"]).parsed]
    ['Formula', 'Order', 'Order']
    """

    parsed: tuple[Rule, ...] = ()
    meanings: Mapping[str, Column] | None = None
    """What columns mean, by name, if the table to fill has codes instead of classes."""

    @classmethod
    def read(cls, given: Any) -> Rules:
        """Read the setting; refuse what is no list of rules."""
        if given is None:
            return cls()
        if isinstance(given, Rules):
            return given
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
            raise TableError(f"rules = {given!r}", "expected a list of texts", f"[{EXAMPLES.partition(',')[0]}]")
        return cls(tuple(rule for text in given for rule in parse_rule(text)))

    def meaning(self, columns: Sequence[Column]) -> Rules:
        """Return the same rules for a table of codes of these columns."""
        return Rules(self.parsed, {one.name: one for one in columns})

    def bind(
        self,
        columns: Sequence[FittedColumn],
        specs: Sequence[ColumnSpec] | None = None,
        seen: Sequence[Floats | None] | None = None,
        *,
        rounded: bool = True,
    ) -> RuleBook:
        """Bind the rules to the columns of fit.

        Parameters
        ----------
        specs : sequence of ColumnSpec, optional
            How columns are modelled, if that is known.
        seen : sequence of arrays, optional
            The values of the table of fit, if it is not.
        rounded : bool
            Whether computed numbers are rounded to the precision of their column.
        """
        if not self.parsed:
            return NO_BOOK
        names = {name for rule in self.parsed for name in rule_names(rule)}
        known = {}
        for index, one in enumerate(columns):
            used = one.column.name in names or str(one.label) in names
            meaning = (self.meanings or {}).get(one.column.name)
            spec = None if specs is None else specs[index]
            values = seen[index] if seen is not None and used else None
            known[one.column.name] = rule_column(index, one, meaning, spec=spec, seen=values, rounded=rounded)
        return bind_rules(self.parsed, known, {str(one.label): one.column.name for one in columns})

    def complete(
        self, columns: Sequence[FittedColumn], values: Sequence[Floats | None], cells: Sequence[TableColumn] | None
    ) -> list[Floats | None]:
        """Return values and codes of the table of fit, with those that follow from others.

        Parameters
        ----------
        cells : sequence of TableColumn or None
            The table's columns, if they are in memory: what columns hold that are passed through.
        """
        book = self.bind(columns, seen=values)
        return complete(book, columns, values, cells)


def complete(
    book: RuleBook,
    columns: Sequence[FittedColumn],
    values: Sequence[Floats | None],
    cells: Sequence[TableColumn] | None = None,
) -> list[Floats | None]:
    """Return values and codes of rows of fit with those that follow from others and that their likelihood takes."""
    if not book:
        return list(values)
    given = list(values) if cells is None else with_passed_through(book, values, cells)
    missing = [np.zeros(0, bool) if one is None else np.isnan(one) for one in given]
    return with_visible(columns, values, RowRules.on(book, given, missing).completed(values), missing)


def with_passed_through(
    book: RuleBook, values: Sequence[Floats | None], cells: Sequence[TableColumn]
) -> list[Floats | None]:
    """Return values and codes with those of columns that are passed through and that rules name."""
    found = list(values)
    for one in book.columns.values():
        if found[one.index] is None:
            found[one.index] = one.read(cells[one.index])
    return found


def with_visible(
    columns: Sequence[FittedColumn],
    before: Sequence[Floats | None],
    after: Sequence[Floats | None],
    missing: Sequence[Flags],
) -> list[Floats | None]:
    """Return every column's values, with those that followed for missing cells, as far as a model can see them."""
    found = list(before)
    for index, (one, old, new, gone) in enumerate(zip(columns, before, after, missing, strict=True)):
        if old is not None and new is not None and new is not old:
            found[index] = np.where(gone & ~np.isnan(new), visible(one, new), old)
    return found


def visible(fitted: FittedColumn, values: Floats) -> Floats:
    """Return values without those that a column's likelihood has no density for: a model cannot see them."""
    if fitted.family is None or fitted.statistics.constant:
        return np.full_like(values, np.nan)
    if fitted.column.has_classes:
        return values
    with np.errstate(invalid="ignore"):
        return np.where(fitted.family.support.contains(values + fitted.column.shift), values, np.nan)


def rule_names(rule: Rule) -> list[str]:
    """Return the names in a rule."""
    parts = [getattr(rule, name, None) for name in ("target", "formula", "smaller", "larger", "condition")]
    return [name for part in parts if part is not None for name in part.names]
