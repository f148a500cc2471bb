"""All rules of a table together: in the order in which they are followed, repeated until nothing is left to do."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.imputation.rules.bound import BoundRule, FormulaRule, OrderRule, Side, between
from evenly.imputation.rules.cells import Cells
from evenly.imputation.rules.columns import RuleColumn
from evenly.imputation.rules.expressions import Expression, Number, Operation
from evenly.imputation.rules.grammar import Formula, Order, Rule
from evenly.imputation.rules.grammar import SkipPattern as Skip
from evenly.imputation.rules.meanings import Meanings
from evenly.imputation.rules.skipping import SkipRule
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Targeted = TypeVar("Targeted", FormulaRule, SkipRule)

MOST_TURNS = 12
"""How often rows that do not obey are repaired again."""
LARGEST = 200
"""Columns in an order, with formulas in the place of computed columns, beyond which these are not put there."""


@dataclass(frozen=True)
class RuleBook:
    """The rules of a table, bound to its columns."""

    columns: Mapping[str, RuleColumn]
    """Those that rules name."""
    skips: tuple[SkipRule, ...] = ()
    formulas: tuple[FormulaRule, ...] = ()
    orders: tuple[OrderRule, ...] = ()
    supports: tuple[OrderRule, ...] = ()
    """That computed columns stay within the bounds of their kind: no rules of the user's."""

    @cached_property
    def rules(self) -> tuple[BoundRule, ...]:
        """The user's rules."""
        return (*self.skips, *self.formulas, *self.orders)

    def __bool__(self) -> bool:
        return bool(self.columns)

    def complete(self, cells: Cells) -> None:
        """Close all open cells whose value follows from known ones."""
        before = -1
        while before != (now := int(sum(own.sum() for own in cells.open.values()))):
            before = now
            for skip in self.skips:
                skip.complete(cells)
            for formula in self.formulas:
                formula.complete(cells)

    def between(self, name: str, cells: Cells) -> tuple[Floats, Floats]:
        """Return between which numbers open cells of a column obey, as far as that follows from known cells."""
        return between(name, cells, self.orders, settled=True)

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """The columns that orders limit."""
        return tuple(dict.fromkeys(name for one in self.orders for side in one.sides for name in side.names))

    def settle(self, cells: Cells) -> None:
        """Change filled cells, which are the open ones, until every row obeys, or nothing helps."""
        first = cells.part(np.arange(cells.n_rows))
        every = np.ones(cells.n_rows, bool)
        for skip in self.skips:
            skip.repair(cells, every)
        self._compute(cells, every)
        rows = np.flatnonzero(self._broken(cells))
        if len(rows):
            some = first.part(rows)
            self._repair(some)
            cells.take_over(some, rows)

    def _broken(self, cells: Cells) -> npt.NDArray[np.int_]:
        """Return how many rules each row with filled cells breaks."""
        broken = [one.broken(cells) for one in (*self.rules, *self.supports)]
        return np.where(cells.any_missing, np.sum(broken, axis=0), 0)

    def _repair(self, cells: Cells) -> None:
        """Repair rows again and again, as what one rule asks for may be against another one; the best is kept."""
        opened = {name: own.copy() for name, own in cells.open.items()}
        filled = {name: own.copy() for name, own in cells.values.items()}
        orders, active = (*self.orders, *self.supports), np.ones(cells.n_rows, bool)
        best, fewest = cells.part(np.arange(cells.n_rows)), np.full(cells.n_rows, len(self.rules) + len(orders) + 1)
        for turn in range(MOST_TURNS):
            cells.ask_again(opened, filled, active)
            for skip in self.skips:
                skip.repair(cells, active)
            for formula in reversed(self.formulas):
                formula.fit_inputs(cells, active, orders)
            self._compute(cells, active)
            if turn >= MOST_TURNS // 2 and turn % 2:  # fitted inputs may move for an order, to be fitted again
                cells.reopen(opened)
            for order in orders:
                order.repair(cells, active, orders)
            self._compute(cells, active)
            n_broken = self._broken(cells)
            better = np.flatnonzero(n_broken < fewest)
            best.take_over(cells.part(better), better)
            fewest = np.minimum(fewest, n_broken)
            active = fewest > 0
            if not active.any():
                break
        cells.take_over(best, np.arange(cells.n_rows))

    def _compute(self, cells: Cells, active: Flags) -> None:
        for formula in self.formulas:
            formula.compute(cells, active)

    def settle_orders(self, cells: Cells) -> None:
        """Change filled cells of columns that no formula gives until they are in order."""
        for _ in self.orders:
            for order in self.orders:
                order.repair(cells, order.broken(cells), self.orders)


def bind_rules(rules: Sequence[Rule], columns: Mapping[str, RuleColumn], labels: Mapping[Hashable, str]) -> RuleBook:
    """Bind rules to the columns of a table; refuse what its columns cannot do.

    Parameters
    ----------
    columns : mapping of name to RuleColumn
        All columns of the table.
    labels : mapping of label to name
        What else columns are called.
    """
    skips, formulas, orders = list[SkipRule](), list[FormulaRule](), list[Order]()
    known = dict(columns)
    for rule in rules:
        meanings = Meanings(rule.text, known, labels)
        if isinstance(rule, Formula):
            formulas.append(_bind_formula(rule, meanings))
        elif isinstance(rule, Skip):
            target = meanings.target(rule.target)
            condition = meanings.condition(rule.condition)
            skips.append(SkipRule(rule.text, target.name, condition, meanings.otherwise(target, rule.otherwise)))
        elif isinstance(rule, Order):
            sign = "<" if rule.strict else "<="
            smaller, larger = meanings.sides(rule.smaller, rule.larger, sign)
            orders.append(replace(rule, smaller=smaller, larger=larger))
        for name, texts in meanings.texts.items():
            known[name] = replace(known[name], texts=tuple(texts))
    formulas, skips = _in_order(formulas), _in_order(skips)
    formulas = _with_whole(formulas)
    bound = tuple(_bind_order(one, formulas) for one in orders)
    _refuse_constants((*formulas, *bound, *skips))
    every = (*skips, *formulas, *bound)
    used = {name: known[name] for name in dict.fromkeys(name for one in every for name in one.names)}
    return RuleBook(used, tuple(skips), tuple(formulas), bound, _supports(formulas, used))


def _bind_formula(rule: Formula, meanings: Meanings) -> FormulaRule:
    target = meanings.target(rule.target)
    if not target.counts:
        raise meanings.wrong("classes on the left", "a formula gives numbers", "", target.name)
    formula, unit = meanings.numbers(rule.formula)
    own = "date" if target.meaning == "date" else "number"
    if unit != own:
        raise meanings.wrong(f"a {own} that is computed as a {unit}", "expected the same", "", target.name)
    return FormulaRule(rule.text, target.name, formula)


def _refuse_constants(rules: Sequence[BoundRule]) -> None:
    for one in rules:
        named = one.inputs if isinstance(one, (FormulaRule, SkipRule)) else one.names
        if not named:
            raise TableError(f"the rule {one.text!r}", "expected a column in it", "bounds are given by `bounds`")


def _in_order(rules: list[Targeted]) -> list[Targeted]:
    """Return rules such that each comes after those that give what it needs; refuse circles."""
    by_target: dict[str, Targeted] = {}
    for one in rules:
        if one.target in by_target:
            got = f"the rules {by_target[one.target].text!r} and {one.text!r}"
            raise TableError(got, "expected one rule for each column", "join them", column=one.target)
        by_target[one.target] = one
    done: dict[str, Targeted] = {}

    def visit(target: str, path: tuple[str, ...]) -> None:
        if target in path:
            circle = " -> ".join((*path[path.index(target) :], target))
            texts = ", ".join(repr(by_target[name].text) for name in path[path.index(target) :])
            raise TableError(f"rules that go round in a circle: {texts}", f"each needs the other: {circle}")
        if target in by_target and target not in done:
            for name in by_target[target].inputs:
                visit(name, (*path, target))
            done[target] = by_target[target]

    for target in by_target:
        visit(target, ())
    return list(done.values())


def _expansions(formulas: Sequence[FormulaRule]) -> dict[str, Expression]:
    """Return the formula of each computed column, with formulas in the place of computed columns in it."""
    found: dict[str, Expression] = {}
    for one in formulas:
        own = {name: found[name] for name in one.inputs if name in found}
        if sum(len(found[name].names) if name in own else 1 for name in one.formula.names) <= LARGEST:
            found[one.target] = one.formula.replaced(own)
    return found


def _with_whole(formulas: list[FormulaRule]) -> list[FormulaRule]:
    """Return formulas that know what they are with other formulas in the place of computed columns."""
    expansions, found = _expansions(formulas), []
    for one in formulas:
        derived = tuple(name for name in one.inputs if name in expansions)
        if derived and one.target in expansions:
            whole = FormulaRule(one.text, one.target, expansions[one.target])
            one = replace(one, whole=whole, derived=derived)
        found.append(one)
    return found


def _sides(smaller: Expression, larger: Expression, expansions: Mapping[str, Expression]) -> tuple[Side, ...]:
    difference = Operation("-", smaller, larger)
    derived = tuple(name for name in dict.fromkeys(difference.names) if name in expansions)
    size = sum(len(expansions[name].names) if name in derived else 1 for name in difference.names)
    if not derived or size > LARGEST:
        return (Side(difference),)
    return (Side(difference), Side(difference.replaced(expansions), derived))


def _bind_order(rule: Order, formulas: Sequence[FormulaRule]) -> OrderRule:
    computed = frozenset(one.target for one in formulas)
    sides = _sides(rule.smaller, rule.larger, _expansions(formulas))
    return OrderRule(rule.text, rule.smaller, rule.larger, rule.strict, sides, computed)


def _supports(formulas: Sequence[FormulaRule], columns: Mapping[str, RuleColumn]) -> tuple[OrderRule, ...]:
    expansions, computed = _expansions(formulas), frozenset(one.target for one in formulas)
    found = []
    for one in formulas:
        low, high = columns[one.target].limits
        formula = expansions.get(one.target, one.formula)
        pairs: list[tuple[Expression, Expression]] = [(Number(low), formula), (formula, Number(high))]
        for (smaller, larger), end in zip(pairs, (low, high), strict=True):
            if np.isfinite(end) and columns[one.target].levels is None:
                side = Side(Operation("-", smaller, larger), (one.target,))
                found.append(OrderRule("", smaller, larger, False, (side,), computed))
    return tuple(found)
