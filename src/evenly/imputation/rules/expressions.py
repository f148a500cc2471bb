"""What rules are made of: expressions of columns and conditions on them, evaluated row by row.

Numbers are in the table's units, dates are days since 1970-01-01. A missing cell is NaN, and so is what depends on it;
a condition is 1, 0 or NaN, where it is not known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
import numpy.typing as npt

from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]


class Rows(Protocol):
    """The rows that expressions are evaluated on."""

    def number(self, name: str) -> Floats:
        """Return the numbers of a column; those that its classes stand for, if it has classes."""

    def code(self, name: str) -> Floats:
        """Return the codes of a column's classes."""


@dataclass(frozen=True)
class Expression(ABC):
    """A part of a rule."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Expression, ...]:
        """The expressions that it is made of."""

    @abstractmethod
    def value(self, rows: Rows) -> Floats:
        """Return its value in each row."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in it, as often as they occur."""
        return tuple(name for part in self.parts for name in part.names)

    @abstractmethod
    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        """Return the same of other parts."""

    def replaced(self, by_name: Mapping[str, Expression]) -> Expression:
        """Return the expression with others in the place of some columns."""
        return self.rebuilt(tuple(part.replaced(by_name) for part in self.parts))

    def inverse(self, which: int, wanted: Floats, rows: Rows) -> Floats:
        """Return the value of one of its parts at which the whole has a value; NaN if there is none or several."""
        return np.full_like(wanted, np.nan)


@dataclass(frozen=True)
class Number(Expression):
    """A number."""

    number: float
    parts = ()

    def value(self, rows: Rows) -> Floats:
        return np.asarray(self.number)

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return self


@dataclass(frozen=True)
class Text(Expression):
    """A text, in quotes: a class, or a date."""

    text: str
    at: int
    parts = ()

    def value(self, rows: Rows) -> Floats:
        raise NotImplementedError  # replaced when the columns are known

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return self


@dataclass(frozen=True)
class Name(Expression):
    """A column, and where its name stands in the rule."""

    name: str
    at: int
    parts = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def value(self, rows: Rows) -> Floats:
        return rows.number(self.name)

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return self

    def replaced(self, by_name: Mapping[str, Expression]) -> Expression:
        return by_name.get(self.name, self)


@dataclass(frozen=True)
class Code(Name):
    """A column of classes, as its codes."""

    def value(self, rows: Rows) -> Floats:
        return rows.code(self.name)

    def replaced(self, by_name: Mapping[str, Expression]) -> Expression:
        return self


@dataclass(frozen=True)
class Negative(Expression):
    """The negative of an expression."""

    inner: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def value(self, rows: Rows) -> Floats:
        return -self.inner.value(rows)

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Negative(parts[0])

    def inverse(self, which: int, wanted: Floats, rows: Rows) -> Floats:
        return -wanted


OPERATIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
}


@dataclass(frozen=True)
class Operation(Expression):
    """Two expressions and one of the signs + - * / **."""

    sign: str
    left: Expression
    right: Expression
    at: int = 0

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def value(self, rows: Rows) -> Floats:
        with np.errstate(all="ignore"):
            left, right = (np.asarray(one.value(rows), np.float64) for one in self.parts)
            return np.asarray(OPERATIONS[self.sign](left, right))

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Operation(self.sign, parts[0], parts[1], self.at)

    def inverse(self, which: int, wanted: Floats, rows: Rows) -> Floats:
        other = np.asarray(self.parts[1 - which].value(rows), np.float64)
        with np.errstate(all="ignore"):
            if self.sign == "**":
                return _root(wanted, other) if which == 0 else np.asarray(np.log(wanted) / np.log(other))
            if self.sign == "+":
                return np.asarray(wanted - other)
            if self.sign == "-":
                return np.asarray(wanted + other if which == 0 else other - wanted)
            if self.sign == "*":
                return np.asarray(wanted / other)
            return np.asarray(wanted * other if which == 0 else other / wanted)


def _root(wanted: Floats, power: Floats) -> Floats:
    """Return the base of a power: of an even one, the positive base."""
    odd = np.abs(power) % 2.0 == 1.0
    size = np.abs(wanted) ** (1.0 / power)
    return np.asarray(np.where(wanted >= 0.0, size, np.where(odd, -size, np.nan)))


def _nearest(x: Floats) -> Floats:
    return np.asarray(np.floor(x + 0.5))


FUNCTIONS: dict[str, tuple[Callable[..., Floats], Callable[[Floats], Floats] | None]] = {
    "abs": (np.abs, None),
    "ceil": (np.ceil, None),
    "exp": (np.exp, np.log),
    "floor": (np.floor, None),
    "log": (np.log, np.exp),
    "max": (np.maximum, None),
    "min": (np.minimum, None),
    "round": (_nearest, None),
    "sqrt": (np.sqrt, np.square),
}
"""What a rule may call, each with its inverse; `min` and `max` take two arguments or more."""


@dataclass(frozen=True)
class Call(Expression):
    """A function of expressions."""

    function: str
    arguments: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.arguments

    def value(self, rows: Rows) -> Floats:
        with np.errstate(all="ignore"):
            values = [np.asarray(one.value(rows), np.float64) for one in self.arguments]
            function = FUNCTIONS[self.function][0]
            return reduce(function, values) if len(values) > 1 else np.asarray(function(values[0]))

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Call(self.function, parts)

    def inverse(self, which: int, wanted: Floats, rows: Rows) -> Floats:
        back = FUNCTIONS[self.function][1]
        with np.errstate(all="ignore"):
            return np.full_like(wanted, np.nan) if back is None else np.asarray(back(wanted))


# --- conditions -------------------------------------------------------------------------------------------------------

COMPARISONS: dict[str, Callable[[Floats, Floats], Flags]] = {
    "<=": np.less_equal,
    "<": np.less,
    ">=": np.greater_equal,
    ">": np.greater,
    "==": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True)
class Comparison(Expression):
    """Two expressions that are compared."""

    sign: str
    left: Expression
    right: Expression
    at: int = 0

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def value(self, rows: Rows) -> Floats:
        left, right = np.broadcast_arrays(self.left.value(rows), self.right.value(rows))
        known = ~(np.isnan(left) | np.isnan(right))
        return np.where(known, COMPARISONS[self.sign](left, right), np.nan)

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Comparison(self.sign, parts[0], parts[1], self.at)


@dataclass(frozen=True)
class Among(Expression):
    """Whether a column holds one of several values."""

    name: Expression
    values: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.name, *self.values)

    def value(self, rows: Rows) -> Floats:
        cells = np.asarray(self.name.value(rows))
        hit = np.isin(cells, [float(one.value(rows)) for one in self.values])
        return np.where(np.isnan(cells), np.nan, hit)

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Among(parts[0], parts[1:])


@dataclass(frozen=True)
class Both(Expression):
    """Whether two conditions hold, or, if `either`, one of them at least."""

    left: Expression
    right: Expression
    either: bool = False

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def value(self, rows: Rows) -> Floats:
        left, right = self.left.value(rows), self.right.value(rows)
        decisive = 1.0 if self.either else 0.0
        decided = (left == decisive) | (right == decisive)
        # What is decided by one side does not depend on the other, even if that is not known.
        return np.where(decided, decisive, np.where(np.isnan(left) | np.isnan(right), np.nan, 1.0 - decisive))

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Both(parts[0], parts[1], self.either)


@dataclass(frozen=True)
class Not(Expression):
    """Whether a condition does not hold."""

    inner: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def value(self, rows: Rows) -> Floats:
        return 1.0 - self.inner.value(rows)

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Not(parts[0])


CONDITIONS = (Comparison, Among, Both, Not)
"""Expressions that hold or do not."""
