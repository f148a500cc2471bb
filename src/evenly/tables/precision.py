"""The precision that the numbers of a column were recorded with: decimals, or multiples of 5, 10, 100 and so on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.tables.columns import Floats

MOST_DECIMALS = 6
"""Numbers with more decimals are taken for measured in full precision."""
EXCEPTIONS = 0.001
"""The share of numbers that may be more precise than the column: slips of whoever recorded them."""
MULTIPLES: list[int] = sorted({base * 10**k for base in (1, 5, 25) for k in range(7)} - {1}, reverse=True)
FEWEST_CELLS, FEWEST_DISTINCT = 20, 8
"""Evidence for steps above the last decimal: by chance, eight numbers are multiples of 5 once in 400,000 times."""


class Precision(NamedTuple):
    """The step of a column's numbers: `multiple` units of the last of `decimals` decimals.

    Examples
    --------
    >>> Precision(1).round(np.array([38.4499, -0.04])), Precision(0, 50).round(np.array([1234.0]))
    (array([38.4, -0. ]), array([1250.]))
    """

    decimals: int
    multiple: int = 1

    def round(self, values: Floats, low: float = -np.inf, high: float = np.inf) -> Floats:
        """Round numbers to multiples of the step, between two bounds if there is one."""
        unit = 10.0**self.decimals
        with np.errstate(over="ignore", invalid="ignore"):
            # Divided by a power of ten, not multiplied by 0.1: 384 / 10 is 38.4.
            least, most = np.ceil(low * unit / self.multiple), np.floor(high * unit / self.multiple)
            steps = np.rint(values * unit / self.multiple)
            rounded = np.clip(steps, least, max(least, most)) * self.multiple / unit
        return np.where(np.isfinite(rounded) & (rounded >= low) & (rounded <= high), rounded, values)


def find_precision(values: Floats) -> Precision | None:
    """Return the precision of a column's numbers; None if they are not recorded with a fixed one.

    Examples
    --------
    >>> find_precision(np.array([36.6, 38.4, 40.0])), find_precision(np.array([1 / 3, 0.5]))
    (Precision(decimals=1, multiple=1), None)
    >>> find_precision(50.0 * np.arange(-10.0, 10.0))
    Precision(decimals=0, multiple=50)
    """
    seen = values[~np.isnan(values)]
    if not len(seen):
        return None
    # A number of single precision is the decimal one whose nearest single it is.
    single = bool((seen == _as(np.float32, seen)).all())
    kind: type[np.floating[Any]] = np.float32 if single else np.float64
    if single and (seen == _as(np.float16, seen)).all():
        kind = np.float16
    for decimals in range(MOST_DECIMALS + 1):
        if _nearly_all(seen, _has_decimals(seen, decimals, kind)):
            return Precision(decimals, _multiple(seen, decimals))
    return None


def _nearly_all(seen: Floats, hit: npt.NDArray[np.bool_]) -> bool:
    """Whether all numbers but slips are hit; not if one frequent number is, such as 0, and most others are not."""
    if hit.all():
        return True
    if hit.mean() < 1.0 - EXCEPTIONS:
        return False
    return len(np.unique(seen[~hit])) <= 0.1 * len(np.unique(seen))


def _as(kind: type[np.floating[Any]], values: Floats) -> Floats:
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(values.astype(kind), np.float64)


def _has_decimals(values: Floats, decimals: int, kind: type[np.floating[Any]]) -> npt.NDArray[np.bool_]:
    """Return which numbers have at most so many decimals."""
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.rint(values * 10.0**decimals) / 10.0**decimals
        return np.asarray(_as(kind, nearest) == values)


def _multiple(seen: Floats, decimals: int) -> int:
    """Return the largest of `MULTIPLES` that the numbers, in units of the last decimal, are multiples of; else 1."""
    steps = np.rint(seen * 10.0**decimals)
    if len(steps) < FEWEST_CELLS or len(np.unique(steps[:10_000])) < FEWEST_DISTINCT:
        return 1
    for multiple in MULTIPLES:
        if (steps[:100] % multiple == 0).mean() > 0.9 and _nearly_all(steps, steps % multiple == 0):
            return multiple
    return 1
