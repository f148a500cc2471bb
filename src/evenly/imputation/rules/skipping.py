"""Skip patterns: columns that are filled in some rows only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenly.imputation.rules.bound import FEW_CLASSES, BoundRule, Flags, order_of
from evenly.imputation.rules.cells import Cells
from evenly.imputation.rules.expressions import Both, Code, Comparison, Expression, Not
from evenly.imputation.rules.solving import solve
from evenly.tables import Floats


@dataclass(frozen=True)
class SkipRule(BoundRule):
    """A column whose cells were asked for only where a condition holds."""

    target: str
    condition: Expression
    otherwise: float | None
    """The value or code in the other rows; None if these cells are missing."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.target, *self.condition.names)))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of the condition."""
        return tuple(dict.fromkeys(self.condition.names))

    def _holds(self, cells: Cells) -> Floats:
        return np.broadcast_to(self.condition.value(cells), (cells.n_rows,))

    def _answered(self, cells: Cells) -> Flags:
        """Which cells hold an answer, and not what stands where none was asked for."""
        values = cells.values[self.target]
        return np.asarray(~np.isnan(values) & (values != (np.nan if self.otherwise is None else self.otherwise)))

    def broken(self, cells: Cells) -> Flags:
        return np.asarray(self._answered(cells) & ~(self._holds(cells) == 1.0))

    def complete(self, cells: Cells) -> None:
        holds, undecided = self._holds(cells), cells.any_open(self.inputs)
        # Open cells do not count, whatever they hold; neither do those that stay missing.
        shown = Shown(cells)
        decided = np.broadcast_to(self.condition.value(shown), (cells.n_rows,))
        not_asked = (decided == 0.0) | (~undecided & ~(holds == 1.0))
        self.skip(cells, not_asked)
        answered = cells.known(self.target) & self._answered(cells) & np.isnan(decided)
        for name in self.inputs:
            others = tuple(one for one in self.inputs if one != name)
            if (where := answered & cells.open[name] & ~cells.any_open(others)).any():
                self._deduce(name, where, cells)

    def _deduce(self, name: str, where: Flags, cells: Cells) -> None:
        """Close cells of classes of which only one goes with an answer."""
        codes = cells.columns[name].frequent
        if not 0 < len(codes) <= FEW_CLASSES:
            return
        fits = np.array([self.condition.value(cells.with_code(name, float(code))) == 1.0 for code in codes])
        only = where & (fits.sum(axis=0) == 1)
        cells.close(name, cells.put(name, only, np.asarray(codes, np.float64)[fits.argmax(axis=0)]))

    def skip(self, cells: Cells, where: Flags) -> None:
        """Give open cells that were not asked for their value, or leave them missing."""
        if self.otherwise is None:
            cells.leave(self.target, where)
        else:
            cells.close(self.target, cells.put(self.target, where, np.full(cells.n_rows, self.otherwise)))

    def repair(self, cells: Cells, active: Flags) -> None:
        """Make open cells of the condition such that what was answered was asked, and leave out what was not."""
        contradicts = active & cells.known(self.target) & self.broken(cells)
        if contradicts.any():
            force(self.condition, contradicts, cells, truth=True)
        self.skip(cells, active & ~(self._holds(cells) == 1.0))


class Shown:
    """Cells without the open ones."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells

    def number(self, name: str) -> Floats:
        """Return the numbers of a column."""
        return np.where(self.cells.open[name], np.nan, self.cells.number(name))

    def code(self, name: str) -> Floats:
        """Return the codes of a column's classes."""
        return np.where(self.cells.open[name], np.nan, self.cells.code(name))


def force(condition: Expression, where: Flags, cells: Cells, *, truth: bool) -> None:
    """Change open cells so that a condition holds, or does not, in some rows, as far as that is possible."""
    where = where & ~(condition.value(cells) == float(truth))
    if not where.any():
        return
    if isinstance(condition, Not):
        force(condition.inner, where, cells, truth=not truth)
    elif isinstance(condition, Both):
        for part in condition.parts:
            if condition.either == truth:  # one of them is enough
                where = where & ~(condition.value(cells) == float(truth))
            force(part, where, cells, truth=truth)
    else:
        _force_one(condition, where, cells, truth)


def _force_one(condition: Expression, where: Flags, cells: Cells, truth: bool) -> None:
    """Change the open cells of one comparison: classes to the most frequent that fits, numbers to the nearest."""
    coded = {part.name for part in condition.parts if isinstance(part, Code)}
    for name in dict.fromkeys(condition.names):
        left = where & cells.open[name] & ~(condition.value(cells) == float(truth))
        if not left.any():
            continue
        if name in coded or cells.columns[name].levels is not None:
            for code in cells.columns[name].frequent:
                fits = left & (condition.value(cells.with_code(name, float(code))) == float(truth))
                left = left & ~cells.put(name, fits, np.full(cells.n_rows, float(code)))
        elif isinstance(condition, Comparison):
            if (order := order_of(condition, truth)) is not None:
                order.repair(cells, left, (order,))
            elif (condition.sign == "==") == truth:
                difference, wanted = condition.left, condition.right
                if name not in difference.names:
                    difference, wanted = wanted, difference
                cells.put_exactly(name, left, solve(difference, name, np.asarray(wanted.value(cells)), cells))
