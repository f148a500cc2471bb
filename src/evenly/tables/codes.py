"""The codes of a column's classes, as data: what encoding in memory and the expressions of engines both go by."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.tables.profile import read_number
from evenly.tables.schema import Column


@dataclass(frozen=True)
class ClassCodes:
    """The code of each class, by the text and by the number that a cell may hold instead.

    Examples
    --------
    >>> codes = class_codes(Column(name="size", kind="ordinal", classes=["2", "10", "many"]))
    >>> codes.by_text
    {'2': 0.0, '10': 1.0, 'many': 2.0}
    >>> codes.by_number
    {2.0: 0.0, 10.0: 1.0}
    """

    by_text: dict[str, float]
    by_number: dict[float, float]
    """Of classes that are numbers or spell them; of two that spell the same number, the first."""
    all_numbers: bool
    """Whether every class is a number, spells one, or is a boolean."""

    @property
    def by_boolean(self) -> dict[float, float]:
        """The codes of False (0) and True (1): by their texts, if there are classes that are no numbers."""
        if self.all_numbers:
            return {number: self.by_number[number] for number in (0.0, 1.0) if number in self.by_number}
        return {float(value): self.by_text[str(value)] for value in (False, True) if str(value) in self.by_text}


def class_codes(column: Column) -> ClassCodes:
    """Return the codes of a column's classes, which are their places."""
    classes = column.classes or []
    by_number: dict[float, float] = {}
    numbers = [float(value) if isinstance(value, bool) else read_number(value) for value in classes]
    for code, number in enumerate(numbers):
        if number is not None:
            by_number.setdefault(number, float(code))
    by_text = {str(value): float(code) for code, value in enumerate(classes)}
    by_text |= {spelling: by_text[str(one)] for spelling, one in column.same.items() if str(one) in by_text}
    return ClassCodes(by_text, by_number, None not in numbers)
