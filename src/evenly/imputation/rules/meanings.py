"""What the columns of a rule mean: names are found, texts become classes or dates, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from typing import Literal

import numpy as np

from evenly._support import TableError
from evenly.imputation.rules.columns import RuleColumn
from evenly.imputation.rules.expressions import (
    CONDITIONS,
    Among,
    Call,
    Code,
    Comparison,
    Expression,
    Name,
    Negative,
    Number,
    Operation,
    Text,
)
from evenly.tables import DAY, quote, read_number

Unit = Literal["number", "date", "condition"]
EPOCH = datetime(1970, 1, 1)
BOOLEANS = {"False": 0.0, "True": 1.0}


class Meanings:
    """Binds the expressions of one rule to the columns of a table."""

    def __init__(self, rule: str, columns: Mapping[str, RuleColumn], labels: Mapping[Hashable, str]) -> None:
        self.rule, self.columns, self.labels = rule, columns, labels
        self.texts: dict[str, list[str]] = {}
        """The texts that it compares columns with that are passed through."""

    def wrong(self, what: str, expected: str, hint: str = "", column: str | None = None) -> TableError:
        """Return an error about the rule."""
        return TableError(f"{what} in the rule {self.rule!r}", expected, hint, column=column)

    def find(self, name: Name) -> RuleColumn:
        """Return the column of a name."""
        found = self.labels.get(name.name, name.name)
        if found not in self.columns:
            near = get_close_matches(name.name, list(self.columns), 1)
            hint = f"did you mean {near[0]!r}?" if near else "check the spelling"
            where = f"the name {name.name!r} (character {name.at + 1})"
            raise self.wrong(where, f"the table has no such column among {list(self.columns)[:20]}", hint)
        return self.columns[found]

    def target(self, name: Name) -> RuleColumn:
        """Return a column that a rule fills."""
        column = self.find(name)
        if not column.fillable:
            note = column.column.note
            raise self.wrong(
                f"a column that is passed through ({note or 'ignored'}) on the left",
                "it is no variable, so that its missing cells are not filled",
                "declare its kind",
                column.name,
            )
        return column

    # --- numbers ------------------------------------------------------------------------------------------------------

    def numbers(self, one: Expression) -> tuple[Expression, Unit]:
        """Return an expression whose columns are known, and whether it is a number or a date."""
        if isinstance(one, Number):
            return one, "number"
        if isinstance(one, Text):
            raise self.wrong(f"the text {one.text!r} (character {one.at + 1})", "expected a number or a column there")
        if isinstance(one, Name):
            return self._name(one)
        if isinstance(one, CONDITIONS):
            raise self.wrong("a condition", "expected a number there", "a condition follows `only if`")
        parts = [self.numbers(part) for part in one.parts]
        found, units = one.rebuilt(tuple(part for part, _ in parts)), [unit for _, unit in parts]
        if isinstance(one, Operation):
            return found, self._unit(one, units)
        if "date" in units and not (isinstance(one, Call) and one.function in ("min", "max") and {*units} == {"date"}):
            what = "a minus" if isinstance(one, Negative) else f"{getattr(one, 'function', '')}()"
            raise self.wrong(f"{what} of a date", "expected a number", "the difference of two dates is one, in days")
        return found, units[0]

    def _name(self, one: Name) -> tuple[Expression, Unit]:
        if one.name in BOOLEANS and one.name not in self.columns:
            return Number(BOOLEANS[one.name]), "number"
        column = self.find(one)
        if not column.counts:
            what = (
                "texts" if column.meaning == "text" else f"classes such as {quote((column.column.classes or [])[:2])}"
            )
            raise self.wrong(f"{what}", "it needs numbers or dates there", column=column.name)
        return replace(one, name=column.name), "date" if column.meaning == "date" else "number"

    def _unit(self, one: Operation, units: list[Unit]) -> Unit:
        """Return what two numbers or dates give."""
        if "date" not in units:
            return "number"
        if one.sign == "-" and units[0] == "date":
            return "number" if units[1] == "date" else "date"
        if one.sign == "+" and "number" in units:
            return "date"
        got = f"{units[0]} {one.sign} {units[1]} (character {one.at + 1})"
        raise self.wrong(got, "of dates there are differences, and sums with days", "date - date, or date + 7")

    # --- comparisons --------------------------------------------------------------------------------------------------

    def sides(self, left: Expression, right: Expression, sign: str) -> tuple[Expression, Expression]:
        """Return two sides that are compared, in the same units."""
        flipped = isinstance(left, Text) or (isinstance(left, Number) and isinstance(right, Name))
        first, second = (right, left) if flipped else (left, right)
        if isinstance(first, Name) and isinstance(second, (Text, Number)):
            one, other = self._with_value(first, second, sign)
        else:
            (one, unit), (other, own) = self.numbers(first), self.numbers(second)
            if unit != own:
                raise self.wrong(f"a {unit} beside a {own}", f"{sign} compares two of the same", "check both sides")
        return (other, one) if flipped else (one, other)

    def _with_value(self, name: Name, value: Text | Number, sign: str) -> tuple[Expression, Expression]:
        """Return a column and a value that it is compared with: a number, a date or a class."""
        if name.name in BOOLEANS and name.name not in self.columns:
            return self.numbers(name)[0], self.numbers(value)[0]
        column = self.find(name)
        if column.meaning == "date" and isinstance(value, Text):
            return self._name(name)[0], self.day(value)
        if column.meaning in ("classes", "text") and (isinstance(value, Text) or column.levels is None):
            ordered = column.column.kind == "ordinal"
            if sign not in ("==", "!=") and not ordered:
                raise self.wrong(f"{sign} of classes", "expected == or !=", "or declare it ordinal", column.name)
            return Code(column.name, name.at), Number(self.code(column, value))
        found, unit = self._name(name)
        if isinstance(value, Text):
            number = read_number(value.text)
            if number is None:
                raise self.wrong(f"the text {value.text!r}", "it has numbers", column=column.name)
            value = Number(number)
        if unit == "date":
            raise self.wrong("a number beside a date", "expected a text such as '2024-01-31'", column=column.name)
        return found, value

    def code(self, column: RuleColumn, value: Text | Number) -> float:
        """Return the code of a class."""
        if column.meaning == "text":
            texts = self.texts.setdefault(column.name, list(column.texts))
            text = value.text.strip() if isinstance(value, Text) else f"{value.number:g}"
            if text not in texts:
                texts.append(text)
            return float(texts.index(text))
        codes = column.codes
        found = codes.by_text.get(value.text) if isinstance(value, Text) else codes.by_number.get(value.number)
        if found is None and isinstance(value, Text) and (number := read_number(value.text)) is not None:
            found = codes.by_number.get(number)
        if found is None:
            classes = [str(one) for one in column.column.classes or ()]
            text = value.text if isinstance(value, Text) else f"{value.number:g}"
            near = get_close_matches(text, classes, 1)
            hint = f"did you mean {near[0]!r}?" if near else ""
            raise self.wrong(f"the class {text!r}", f"its classes are {quote(classes)}", hint, column.name)
        return found

    def day(self, value: Text) -> Number:
        """Return a date as days since 1970-01-01."""
        try:
            moment = datetime.fromisoformat(value.text.strip()).replace(tzinfo=None)
        except ValueError:
            where = f"the date {value.text!r} (character {value.at + 1})"
            raise self.wrong(where, "expected one such as '2024-01-31'") from None
        since = moment - EPOCH
        return Number((since.days * DAY + since.seconds * 1_000_000 + since.microseconds) / DAY)

    def condition(self, one: Expression) -> Expression:
        """Return a condition whose columns are known."""
        if isinstance(one, Comparison):
            return one.rebuilt(self.sides(one.left, one.right, one.sign))
        if isinstance(one, Among):
            assert isinstance(one.name, Name)
            pairs = [self.sides(one.name, value, "==") for value in one.values]
            return Among(pairs[0][0], tuple(value for _, value in pairs))
        return one.rebuilt(tuple(self.condition(part) for part in one.parts))

    def otherwise(self, column: RuleColumn, value: Number | Text | None) -> float | None:
        """Return the value or code that stands where a column was not asked for."""
        if value is None:
            return None
        if column.meaning == "classes":
            return self.code(column, value)
        if column.meaning == "date":
            if isinstance(value, Number):
                raise self.wrong("a number after `else`", "expected a text such as '2024-01-31'", column=column.name)
            return float(column.from_numbers(np.array(self.day(value).number)))
        number = value.number if isinstance(value, Number) else read_number(value.text)
        if number is None:
            raise self.wrong(f"{value!r} after `else`", "expected a number", column=column.name)
        return number
