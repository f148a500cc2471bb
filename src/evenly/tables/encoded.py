"""A whole table as numbers: every column decided on and encoded, and tables made of numbers and codes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from evenly.tables.cells import encode_growing
from evenly.tables.columns import Floats, TableColumn
from evenly.tables.declarations import Rule
from evenly.tables.frames import Table, map_columns
from evenly.tables.profile import profile_column
from evenly.tables.schema import Column


def encode_columns(table: Table, rules: Sequence[Rule]) -> tuple[list[Column], Floats]:
    """Decide what each column is and encode its cells; returns the columns, and values or codes: rows x columns.

    Ignored columns are NaN throughout.

    Examples
    --------
    >>> from evenly.tables import make_rules, open_table
    >>> opened = open_table(np.array([["a", 1.5], ["b", 2.5], ["a", None]], object))
    >>> columns, values = encode_columns(opened, make_rules(opened))
    >>> [one.kind for one in columns], values.tolist()
    (['binary', 'positive'], [[0.0, 1.5], [1.0, 2.5], [0.0, nan]])
    """

    def encode(rule: Rule, cells: TableColumn) -> tuple[Column, Floats]:
        fresh = cells.fresh()
        column, _ = rule.infer(fresh, lambda: profile_column(fresh, rule.missing))
        if column.kind == "ignore":
            return column, np.full(table.n_rows, np.nan)
        return encode_growing(column, fresh)

    columns, values = zip(*map_columns(encode, rules, table.columns, n_rows=table.n_rows), strict=True)
    return list(columns), np.column_stack(values)


def number_table(labels: Sequence[Hashable], names: Sequence[str], values: Floats) -> Table:
    """Return an opened table of numbers and codes, which keeps what is found in it.

    Examples
    --------
    >>> number_table(["a"], ["a"], np.array([[1.0], [np.nan]])).n_rows
    2
    """
    columns = [TableColumn(name, own, memo={}) for name, own in zip(names, values.T.copy(), strict=True)]
    return Table(columns, list(labels), len(values), "numpy")
