"""Formulas and orders bound to columns: what follows from known cells, and how open ones are repaired."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import count, product

import numpy as np
import numpy.typing as npt

from evenly.imputation.rules.cells import Cells
from evenly.imputation.rules.expressions import Comparison, Expression, Name, Operation, Rows
from evenly.imputation.rules.solving import solve
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

CLOSE = 1e-9
"""How far a computed number may be from its cell, relative to it, where no precision is recorded."""
STEPS = 8
"""Steps by which several open inputs are brought to where their formula gives the known result."""
NEARBY = (1, -1, 2, -2, 3, -3)
"""Steps of its precision by which one of several inputs is moved, for another one to fit."""
FEW_CLASSES = 100
"""Classes of a column that are tried one by one."""


@dataclass(frozen=True)
class BoundRule(ABC):
    """A rule whose columns are known."""

    text: str

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The columns that it names, once each."""

    @abstractmethod
    def broken(self, cells: Cells) -> Flags:
        """Which rows do not obey; those in which a cell that it needs is missing do."""


def _present(names: tuple[str, ...], cells: Cells) -> Flags:
    """Which rows have no missing cell in some columns."""
    present = [~np.isnan(cells.values[name]) for name in names]
    return np.asarray(np.all([np.ones(cells.n_rows, bool), *present], axis=0))


def _coarsest(names: tuple[str, ...], cells: Cells) -> float:
    return max(cells.columns[name].relative for name in names)


@dataclass(frozen=True)
class FormulaRule(BoundRule):
    """A column that is computed from others."""

    target: str
    formula: Expression
    whole: FormulaRule | None = None
    """The same with formulas in the place of computed columns, if there are some."""
    derived: tuple[str, ...] = ()
    """These columns."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it is computed from."""
        return tuple(dict.fromkeys(self.formula.names))

    @property
    def names(self) -> tuple[str, ...]:
        return (self.target, *self.inputs)

    def _off(self, rows: Rows, cells: Cells) -> Flags:
        """Which results differ from their formula by more than the precision of the column."""
        result, computed = rows.number(self.target), np.asarray(self.formula.value(rows))
        sizes = [np.abs(rows.number(name)) for name in self.inputs] or [np.abs(result)]
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(result), np.abs(computed))
            far = cells.columns[self.target].slack * (1.0 + CLOSE) + CLOSE * size
            far = far + _coarsest(self.names, cells) * np.max([size, *np.broadcast_arrays(*sizes)], axis=0)
            return np.asarray(~(np.abs(result - computed) <= far))

    def broken(self, cells: Cells) -> Flags:
        return np.asarray(_present(self.names, cells) & self._off(cells, cells))

    def complete(self, cells: Cells) -> None:
        n_open = np.sum([cells.open[name] for name in self.inputs], axis=0) + np.zeros(cells.n_rows)
        cells.close(self.target, self.compute(cells, n_open == 0))
        alone = (n_open == 1) & cells.known(self.target)
        for name in self.inputs:
            if (where := alone & cells.open[name] & self._others_present(name, cells)).any():
                cells.close(name, self._solve_for(name, where, cells))

    def _others_present(self, name: str, cells: Cells) -> Flags:
        return _present(tuple(one for one in self.names if one != name), cells)

    def compute(self, cells: Cells, where: Flags) -> Flags:
        """Compute the result where it is open; returns where that gave a number that the column can hold."""
        where = where & cells.open[self.target] & _present(self.inputs, cells)
        if not where.any():
            return where
        computed = np.broadcast_to(self.formula.value(cells), (cells.n_rows,))
        return cells.put_numbers(self.target, where, computed)

    def _solve_for(self, name: str, where: Flags, cells: Cells) -> Flags:
        """Solve for one input, with as many decimals as the rule needs; returns where it then holds."""
        column, done = cells.columns[name], np.zeros(cells.n_rows, bool)
        numbers = solve(self.formula, name, cells.number(self.target), cells)
        for grid in column.grids:
            settled = numbers if grid is None else grid.settle(numbers)
            if column.levels is not None:
                settled = column.to_numbers(column.from_numbers(settled))
            holds = where & ~done & np.isfinite(settled) & ~self._off(cells.with_numbers(name, settled), cells)
            done |= cells.put_exactly(name, holds, settled)
        return done

    def fit_inputs(self, cells: Cells, active: Flags, orders: tuple[OrderRule, ...]) -> None:
        """Bring open inputs to where the formula gives the result that is known, those first that are least certain."""
        if self.whole is not None:
            open_ = np.all([cells.open[name] for name in self.derived], axis=0)
            self.whole.fit_inputs(cells, active & open_, orders)
            active = active & ~open_
        wrong = active & cells.known(self.target) & cells.any_open(self.inputs) & self.broken(cells)
        rows = np.flatnonzero(wrong)
        if not len(rows):
            return
        some = cells.part(rows)
        several = np.sum([some.open[name] for name in self.inputs], axis=0) > 1
        self._approach(some, several, orders)
        self._solve_one(some)
        for name, steps in product(self.inputs, NEARBY):
            if (some.columns[name].grid is not None) and (left := several & self.broken(some)).any():
                self._solve_beside(name, steps, some, left & some.open[name])
        for name in self.inputs:
            left = some.open[name] & self.broken(some)
            if left.any():
                self._come_near(name, left, some)
        cells.take_over(some, rows)
        solved = wrong & ~self.broken(cells)
        for name in self.inputs:
            cells.close(name, solved)

    def _solve_one(self, cells: Cells) -> None:
        """Solve for one input, whichever gives the result exactly."""
        for name in self.inputs:
            if (left := cells.open[name] & self.broken(cells)).any():
                self._solve_for(name, left, cells)

    def _solve_beside(self, name: str, steps: int, cells: Cells, where: Flags) -> None:
        """Move an input by some steps of its precision, and solve for another one: whole numbers may need that."""
        grid = cells.columns[name].grid
        if grid is None or not where.any():
            return
        tried = cells.part(np.arange(cells.n_rows))
        moved = tried.put_numbers(name, where, cells.number(name) + steps / grid.per)
        tried.close(name, np.ones(cells.n_rows, bool))
        self._solve_one(tried)
        rows = np.flatnonzero(moved & ~self.broken(tried))
        cells.take_over(tried.part(rows), rows)

    def _approach(self, cells: Cells, where: Flags, orders: tuple[OrderRule, ...]) -> None:
        """Share the difference among several inputs by their uncertainty, and round them."""
        names = [one for one in self.inputs if cells.columns[one].levels is None]
        moved = {one: where & cells.open[one] for one in names}
        ends = {one: between(one, cells, orders, settled=True) for one in names}
        for _ in range(STEPS):
            computed = np.asarray(self.formula.value(cells))
            gap = cells.number(self.target) - computed
            slopes = {}
            for name in names:
                width = cells.width(name)
                nearby = self.formula.value(cells.with_numbers(name, cells.number(name) + 1e-4 * width))
                with np.errstate(all="ignore"):
                    slopes[name] = np.where(moved[name], (nearby - computed) / 1e-4, 0.0)
            with np.errstate(all="ignore"):
                total = np.sum([one**2 for one in slopes.values()], axis=0) + np.zeros(cells.n_rows)
                for name in names:
                    column = cells.columns[name]
                    (low, high), (least, most) = column.extent, column.limits
                    there = cells.number(name) + slopes[name] * cells.width(name) * gap / total
                    there = np.clip(np.clip(there, max(low, least), min(high, most)), *ends[name])
                    cells.put(name, moved[name], column.from_numbers(there))
        for name in names:
            cells.put_numbers(name, moved[name], cells.number(name))

    def _come_near(self, name: str, where: Flags, cells: Cells) -> None:
        """Move an input as far towards the solution as its column allows."""
        column = cells.columns[name]
        low, high = column.limits
        wanted = np.clip(solve(self.formula, name, cells.number(self.target), cells), low, high)
        if column.levels is not None:
            known = np.sort(column.levels)
            wanted = np.where(np.isnan(wanted), np.nan, known[np.abs(wanted[:, None] - known).argmin(axis=1)])
        cells.put_numbers(name, where, wanted)


@dataclass(frozen=True)
class Side:
    """An order, as a difference that must not be above 0."""

    difference: Expression
    derived: tuple[str, ...] = ()
    """Computed columns that their formulas stand for, which must be open."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in it, once each."""
        return tuple(dict.fromkeys(self.difference.names))


@dataclass(frozen=True)
class OrderRule(BoundRule):
    """An expression that is no larger than another one, or smaller."""

    smaller: Expression
    larger: Expression
    strict: bool
    sides: tuple[Side, ...]
    """The order as it is written, and with formulas in the place of computed columns."""
    computed: frozenset[str] = field(default=frozenset())
    """The columns that formulas give, which are not changed themselves."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.smaller.names, *self.larger.names)))

    def broken(self, cells: Cells) -> Flags:
        small, large = (np.asarray(one.value(cells)) for one in (self.smaller, self.larger))
        plain = isinstance(self.smaller, Name) and isinstance(self.larger, Name)
        relative = 0.0 if plain else _coarsest(self.names, cells)
        with np.errstate(invalid="ignore"):
            fine = small < large if self.strict else small <= large + relative * (np.abs(small) + np.abs(large))
        return _present(self.names, cells) & ~fine

    def edges(self, name: str, cells: Cells, *, settled: bool) -> tuple[Floats, Floats]:
        """Return between which numbers a column's cells obey, given the others; infinite where they always do.

        Parameters
        ----------
        settled : bool
            Whether only what follows from known cells counts.
        """
        low, high = np.full(cells.n_rows, -np.inf), np.full(cells.n_rows, np.inf)
        column = cells.columns[name]
        for side in self.sides:
            if name not in side.names:
                continue
            others = tuple(one for one in side.names if one != name)
            where = _present(others, cells) & np.all([cells.open[one] for one in side.derived], axis=0)
            if settled:
                where = where & ~cells.any_open(others)
            at = solve(side.difference, name, np.zeros(cells.n_rows), cells)
            aside = np.maximum(1e-6 * np.abs(at), 1e-3 * column.spread)
            column_at = np.where(np.isfinite(at), at, np.nan)
            above, below = (side.difference.value(cells.with_numbers(name, column_at + one)) for one in (aside, -aside))
            with np.errstate(invalid="ignore"):
                up, down = where & (above <= 0.0) & (below > 0.0), where & (above > 0.0) & (below <= 0.0)
            low = np.maximum(low, np.where(up, column.inside(at, 1, strict=self.strict), -np.inf))
            high = np.minimum(high, np.where(down, column.inside(at, -1, strict=self.strict), np.inf))
        return np.nan_to_num(low, nan=np.inf, posinf=np.inf), np.nan_to_num(high, nan=-np.inf, neginf=-np.inf)

    def repair(self, cells: Cells, active: Flags, orders: tuple[OrderRule, ...]) -> None:
        """Move the least certain open cell of each row that does not obey to the nearest number that does."""
        where = active & self.broken(cells)
        names = tuple(dict.fromkeys(one for side in self.sides for one in side.names if one not in self.computed))
        tried = {name: np.zeros(cells.n_rows, bool) for name in names}
        for _ in names:
            free = [np.where(cells.open[name] & ~tried[name], cells.width(name), -np.inf) for name in names]
            where = where & (np.max(free, axis=0) > -np.inf)
            if not where.any():
                return
            chosen = np.argmax(free, axis=0)
            moved = np.zeros(cells.n_rows, bool)
            for place, name in zip(count(), names, strict=False):
                mine = where & (chosen == place)
                tried[name] |= mine
                if mine.any():
                    moved |= self._move(name, mine, cells, orders)
            where = where & ~moved

    def _move(self, name: str, where: Flags, cells: Cells, orders: tuple[OrderRule, ...]) -> Flags:
        """Clip a column to what all orders allow or, if that is nothing, to what this one does."""
        low, high = between(name, cells, orders, settled=False)
        own_low, own_high = self.edges(name, cells, settled=False)
        free = low <= high
        low, high = np.where(free, low, own_low), np.where(free, high, own_high)
        bounded = where & (np.isfinite(own_low) | np.isfinite(own_high)) & (low <= high)
        wanted = np.clip(cells.number(name), low, high)
        return cells.put_exactly(name, bounded, wanted)


def between(name: str, cells: Cells, orders: tuple[OrderRule, ...], *, settled: bool) -> tuple[Floats, Floats]:
    """Return between which numbers a column's cells obey all orders, given the other columns."""
    low, high = np.full(cells.n_rows, -np.inf), np.full(cells.n_rows, np.inf)
    for order in orders:
        own_low, own_high = order.edges(name, cells, settled=settled)
        low, high = np.maximum(low, own_low), np.minimum(high, own_high)
    return low, high


def order_of(comparison: Comparison, truth: bool) -> OrderRule | None:
    """Return the order that a comparison of numbers asks for, to be true or false; None if it asks for none."""
    sign = comparison.sign
    if not truth:
        sign = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}.get(sign, "")
    if sign not in ("<=", "<", ">=", ">"):
        return None
    smaller, larger = comparison.parts if sign.startswith("<") else comparison.parts[::-1]
    side = Side(Operation("-", smaller, larger))
    return OrderRule("", smaller, larger, len(sign) == 1, (side,))
