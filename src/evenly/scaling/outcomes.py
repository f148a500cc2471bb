"""How the scale of a feature came about: named outcomes, each with what to do about it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Outcome(Enum):
    """How a scale came about; each member carries a remedy.

    Examples
    --------
    >>> Outcome.BELOW_FLOOR.value
    'below_floor'
    >>> Outcome.BELOW_FLOOR.remedy
    "no scale reaches this target, or only one near 0 or infinity: the shape's curvature does not depend on the ..."
    """

    remedy: str

    def __new__(cls, value: str, remedy: str) -> Outcome:
        """Make a member whose value is its name in summaries."""
        member = object.__new__(cls)
        member._value_ = value
        member.remedy = remedy
        return member

    REACHED = ("reached", "the smoothness equals the target")
    SCALED = ("scaled", "scaled by 1/std, 1/max or 1/iqr: these methods have no target")
    LEARNED = ("learned", "scaled while a model was trained, towards the target at the model's own parameters")
    BELOW_FLOOR = (
        "below_floor",
        "no scale reaches this target, or only one near 0 or infinity: the shape's curvature does not depend on the "
        "scale. Scaled to 1.1 times the least smoothness there is (an inverse Gaussian, which attains it, to the least "
        "itself); lower the learning rate or choose another likelihood",
    )
    NO_SPREAD = (
        "no_spread",
        "the quartiles are equal, or the maximum is 0: 1/std was used instead; choose another method",
    )
    OUT_OF_RANGE = (
        "out_of_range",
        "the target, or the values, are too large, too small or too far apart for double precision to fit and scale: "
        "left as they are; choose another target, unit or likelihood",
    )
    CONSTANT = ("constant", "all observed cells are equal: not scaled")
    READ_AS_MISSING = (
        "read_as_missing",
        "texts for no answer among numbers, dates or words in an order: missing cells; to keep them as classes, "
        "declare the kind `categorical`, and to be silent, declare them as missing",
    )
    NO_DATA = ("no_data", "no observed cells: left as it is")
    PASSED_THROUGH = (
        "passed_through",
        "no variable, or a discrete column that this method does not scale: left as it is",
    )


class Solved(NamedTuple):
    """A scale and how it came about."""

    scale: float
    outcome: Outcome
