"""In how many rows of a filled table each rule was followed, for whoever tells of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenly.imputation.rules import RuleBook, Rules, count_rows
from evenly.scaling import FittedColumn
from evenly.tables import Floats, Table, open_table, select


class RuleCount(NamedTuple):
    """How a filled table obeys a rule."""

    rule: str
    n_filled: int
    """Rows with a filled cell in one of its columns; cells that were not asked for count."""
    n_against: int
    """Rows among these in which it does not hold."""
    n_observed: int
    """Rows whose observed cells contradict it."""


def count_rules(imputer: Any, table: Any, filled: Any) -> tuple[RuleCount, ...]:
    """Count the rows of a filled table in which the rules of a fitted imputer hold.

    Examples
    --------
    >>> from evenly import Imputer
    >>> table = np.array([[1.5, 3.0], [2.5, np.nan], [3.5, 7.0], [4.5, 1.0]])
    >>> imputer = Imputer("marginal", rules=["x1 = 2 * x0"]).fit(table)
    >>> full = np.array([[1.5, 3.0], [2.5, 5.0], [3.5, 7.0], [4.5, 1.0]])
    >>> count_rules(imputer, table, full)
    (RuleCount(rule='x1 = 2 * x0', n_filled=1, n_against=0, n_observed=1),)
    """
    fitted = imputer.scaler_.columns_
    rounded = imputer.precision == "column"
    rules = Rules.read(imputer.rules)
    book = rules.bind(fitted, imputer.ensemble_.specs, rounded=rounded)
    if not book:
        return ()
    by_position = imputer.scaler_.container_ == "numpy"
    before, after = (_values(book, fitted, open_table(one), by_position=by_position) for one in (table, filled))
    missing = {name: np.isnan(own) for name, own in before.items()}
    found = count_rows(book, after, missing)
    return tuple(RuleCount(text, *found[text]) for text in dict.fromkeys(one.text for one in rules.parsed))


def _values(book: RuleBook, fitted: list[FittedColumn], table: Table, *, by_position: bool) -> dict[str, Floats]:
    """Return the values or codes of the columns that rules name."""
    cells = select(table, [one.label for one in fitted], by_position=by_position)[0]
    found = {}
    for name, column in book.columns.items():
        one, stored = fitted[column.index], cells[column.index].fresh()
        found[name] = one.new_cells.read(stored, strict=False).cells if one.features else column.read(stored)
    return found
