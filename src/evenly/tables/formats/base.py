"""What a format is, and the formats by their patterns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

FORMATS: list[type[Format]] = []
"""All formats, in the order in which they are tried."""
LONGEST = 60
"""Characters of a pattern, and of a text that is read in one."""


class Format(ABC):
    """How texts spell the numbers of a column; a subclass registers itself."""

    reads_dates: ClassVar[bool] = False
    """Whether its numbers are days since 1970-01-01."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        FORMATS.append(cls)

    @classmethod
    @abstractmethod
    def recognize(cls, texts: Sequence[str]) -> Format | None:
        """Return the format in which all of some distinct texts are spelled; None if there is none."""

    @classmethod
    @abstractmethod
    def parse(cls, pattern: str) -> Format | None:
        """Return the format of a pattern; None if it is no pattern of such a format."""

    @property
    @abstractmethod
    def pattern(self) -> str:
        """The format as a text, from which `parse` makes it again."""

    @property
    @abstractmethod
    def note(self) -> str:
        """What the texts are, in words."""

    @property
    def is_quantity(self) -> bool:
        """Whether the spelling alone says that the numbers measure something, and are no codes."""
        return False

    @abstractmethod
    def read(self, text: str) -> float | None:
        """Return the number that a text spells; None if it is none in this format."""

    @abstractmethod
    def write(self, number: float) -> str:
        """Spell a number as the column's others."""

    def expression(self, texts: Any) -> Any:
        """Return the numbers of texts as a Narwhals expression, null where unreadable; None if that is impossible."""
        return None


def find_format(texts: Sequence[str]) -> Format | None:
    """Return the first format in which all of some distinct texts are spelled.

    Examples
    --------
    >>> found = find_format(["$1,200.00", "$15.50"])
    >>> found.pattern, found.read("$1,300.50"), found.write(1300.5)
    ('$#,##0.00', 1300.5, '$1,300.50')
    >>> find_format(["12 %", "low"]) is None
    True
    """
    if not texts or any(len(text) > LONGEST for text in texts):
        return None
    return next((found for one in FORMATS if (found := one.recognize(texts)) is not None), None)


@lru_cache(maxsize=1024)
def get_format(pattern: str) -> Format:
    """Return the format of a pattern; ValueError if there is none.

    Examples
    --------
    >>> get_format("0.# %").read("12.5 %")
    12.5
    >>> get_format("money")
    Traceback (most recent call last):
    ValueError: the format 'money' is no pattern of numbers, such as '#,##0.00 EUR', or dates, such as '%Y-%m-%d'
    """
    if len(pattern) <= LONGEST:
        for one in FORMATS:
            if (found := one.parse(pattern)) is not None:
                return found
    raise ValueError(
        f"the format {pattern[:LONGEST]!r} is no pattern of numbers, such as '#,##0.00 EUR', or dates, such as "
        "'%Y-%m-%d'"
    )
