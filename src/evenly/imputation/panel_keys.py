"""Which column names the units of a panel, and which one orders the rows of a unit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.imputation.columns import ModelledColumn
from evenly.tables import Column, Floats, TableColumn, Value, encode, read_name

AUTO = "auto"
"""The key is found in the table."""
SEVERAL_ROWS = 1.5
"""Rows for each text of an identifier, on average, from which on it names units."""
MOSTLY = 0.9
"""The share of rows that a column of time must tell apart within their units."""
_TIMES = ("date", "year", "time")


def guess_key(columns: Sequence[Column], cells: Sequence[TableColumn]) -> int | None:
    """Return the number of the column that names the units; None if there is none.

    It is passed through: the first that the schema marks, or else the first identifier of texts that repeat.
    """
    ignored = [j for j, one in enumerate(columns) if one.kind == "ignore"]
    marked = [j for j in ignored if columns[j].groups]
    return marked[0] if marked else next((j for j in ignored if _repeats(columns[j], cells[j])), None)


def read_key(label: Any, columns: Sequence[Column], labels: Sequence[Hashable]) -> int:
    """Return the number of a column, given its label or its name; refuse what is none."""
    for j, one in enumerate(labels):
        if type(label) is type(one) and label == one:
            return j
    names = [one.name for one in columns]
    if isinstance(label, str) and label in names:
        return names.index(label)
    raise TableError(f"groups = {label!r}", f"expected one of {names[:20]}, or None", "check the spelling")


def _repeats(column: Column, cells: TableColumn) -> bool:
    """Whether a column that was taken for an identifier of texts names units with several rows."""
    if cells.storage != "text" or not (column.note.startswith("identifier") or " classes" in column.note):
        return False
    key, codes = encode_units(column, cells.fresh())
    return bool((~np.isnan(codes)).sum() >= SEVERAL_ROWS * max(len(key.classes or ()), 1))


def encode_units(column: Column, cells: TableColumn) -> tuple[Column, Floats]:
    """Return a column whose classes are the units that a key names, and the unit of each row.

    Examples
    --------
    >>> cells = TableColumn("person", np.array([7.0, 3.0, np.nan, 7.0]))
    >>> key, codes = encode_units(Column(name="person", kind="ignore"), cells)
    >>> key.classes, codes.tolist()
    ([3, 7], [1.0, 0.0, nan, 1.0])
    """
    found = encode(key_column(column.name, [], column.missing), cells)[1]
    units = list({str(one): one for one in map(_plain, found)}.values())
    key = key_column(column.name, units, column.missing)
    return key, encode(key, cells)[0]


def key_column(name: str, units: Sequence[Value], missing: Sequence[Value]) -> Column:
    """Return a column whose classes are units."""
    return Column(name=name, kind="categorical", classes=list(units), missing=list(missing))


def _plain(unit: Any) -> Value:
    """Return a unit as JSON holds it; 7.0 in a column with missing cells is 7."""
    if isinstance(unit, (bool, np.bool_)):
        return bool(unit)
    if isinstance(unit, (int, float, np.number)):
        return int(unit) if float(unit).is_integer() else float(unit)
    return str(unit)


def find_time(specs: Sequence[ModelledColumn], codes: Floats, values: Sequence[Floats]) -> int | None:
    """Return the modelled column that orders the rows of a unit: dates, years or times that hardly repeat in a unit."""
    for j in sorted(range(len(specs)), key=lambda j: _timeliness(specs[j].column)):
        if _timeliness(specs[j].column) < len(_TIMES):
            known = ~np.isnan(codes) & ~np.isnan(values[j])
            pairs = np.column_stack([codes[known], values[j][known]])
            if known.any() and len(np.unique(pairs, axis=0)) >= MOSTLY * known.sum():
                return j
    return None


def _timeliness(column: Column) -> int:
    """Return how surely a column is one of time: 0 is a date."""
    if column.kind == "date":
        return 0
    name = read_name(column.name)
    if column.kind in ("binary", "categorical"):
        return len(_TIMES)
    return 1 if name.calendar == "year" else 2 if name.meaning == "time" else len(_TIMES)
