"""Equations solved for one column, row by row: by undoing operations where it occurs once, else by bracketing."""

from __future__ import annotations

import numpy as np

from evenly.imputation.rules.cells import Cells
from evenly.imputation.rules.columns import RuleColumn
from evenly.imputation.rules.expressions import Expression, Name, Number, Operation
from evenly.tables import Floats

POINTS, HALVINGS = 33, 60
"""Points of the grid that is searched for a change of sign, and how often the bracket is then halved."""
WIDER = 1.0
"""How far beyond the observed range is searched, as a share of it."""


def solve(expression: Expression, name: str, wanted: Floats, cells: Cells) -> Floats:
    """Return the numbers of a column at which an expression has a value; NaN where there is none, or several.

    Examples
    --------
    >>> from evenly.imputation.rules.grammar import parse_rule
    >>> from evenly.imputation.rules.columns import RuleColumn
    >>> from evenly.tables import Column
    >>> names = ("weight", "height")
    >>> kinds = {one: Column(name=one, kind="positive") for one in names}
    >>> columns = {one: RuleColumn(one, 0, kinds[one], True, "float64", "float") for one in names}
    >>> values = {"weight": np.array([np.nan, 80.0]), "height": np.array([2.0, np.nan])}
    >>> cells = Cells(columns, values, {one: np.isnan(own) for one, own in values.items()})
    >>> bmi = parse_rule("bmi = weight / height**2")[0].formula
    >>> [solve(bmi, name, np.array([20.0, 20.0]), cells).tolist() for name in names]
    [[80.0, nan], [nan, 2.0]]
    """
    column = cells.columns[name]
    wanted = np.broadcast_to(np.asarray(wanted, np.float64), (cells.n_rows,))
    if expression.names.count(name) == 1 and _unique(expression, name, column):
        return _undo(expression, name, wanted, cells)
    return _search(expression, name, wanted, cells)


def _undo(expression: Expression, name: str, wanted: Floats, cells: Cells) -> Floats:
    """Undo one operation after the other, from the outermost to the column."""
    if isinstance(expression, Name):
        return wanted
    which = next(i for i, part in enumerate(expression.parts) if name in part.names)
    return _undo(expression.parts[which], name, expression.inverse(which, wanted, cells), cells)


def _unique(expression: Expression, name: str, column: RuleColumn) -> bool:
    """Whether no operation on the way to a column has several inverses: of even powers, one is negative."""
    if isinstance(expression, Name):
        return True
    which = next(i for i, part in enumerate(expression.parts) if name in part.names)
    inner = expression.parts[which]
    if isinstance(expression, Operation) and expression.sign == "**" and which == 0:
        power = expression.right
        odd = isinstance(power, Number) and power.number % 2.0 == 1.0
        positive = isinstance(inner, Name) and max(column.extent[0], column.limits[0]) >= 0.0
        if not (odd or positive):
            return False
    return _unique(inner, name, column)


def _search(expression: Expression, name: str, wanted: Floats, cells: Cells) -> Floats:
    """Search around the observed range for the only change of sign, and halve its bracket."""
    column = cells.columns[name]
    (low, high), (least, most) = column.extent, column.limits
    if not np.isfinite([low, high]).all():
        return np.full(cells.n_rows, np.nan)
    width = WIDER * max(high - low, 1e-6 * max(abs(low), abs(high), 1e-300))
    ends = np.linspace(max(low - width, least), min(high + width, most), POINTS)

    def off(at: Floats | float) -> Floats:
        numbers = np.broadcast_to(np.asarray(at, np.float64), (cells.n_rows,))
        return np.asarray(expression.value(cells.with_numbers(name, numbers)) - wanted)

    above = np.array([off(one) > 0.0 for one in ends])
    known = np.all([np.isfinite(off(one)) for one in ends], axis=0)
    changes = above[1:] != above[:-1]
    first = changes.argmax(axis=0)
    left, right = ends[first], ends[np.minimum(first + 1, POINTS - 1)]
    rising = above[np.minimum(first + 1, POINTS - 1), np.arange(cells.n_rows)]
    for _ in range(HALVINGS):
        middle = 0.5 * (left + right)
        beyond = (off(middle) > 0.0) == rising
        left, right = np.where(beyond, left, middle), np.where(beyond, middle, right)
    return np.where(known & (changes.sum(axis=0) == 1), 0.5 * (left + right), np.nan)
