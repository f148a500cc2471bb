"""Whether the order of a column's numbers means anything to the other columns of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from math import factorial
from typing import TYPE_CHECKING, Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from evenly.tables.columns import Floats, TableColumn

Verdict = Literal["ordered", "unordered", "unclear"]

MOST_ROWS = 5_000
"""Rows that are looked at."""
MOST_TARGETS = 16
"""Other columns that are looked at."""
MOST_LEVELS = 60
"""Levels, at most, of a column whose order is in question."""
N_ORDERS = 400
"""Orders of the levels that are drawn at random, if there are more than that."""
MOST_HASHED = 2_000_000
"""Cells, about, that rows are chosen by, if there are more rows than are looked at."""
MOST_TEXTS = 200_000
"""Rows, at most, of a table whose texts are looked at."""
FEWEST_CELLS = 5
"""Cells of a level, at least: the mean of fewer says nothing."""
CLEAR_SHARE = 0.3
"""Share of the levels' differences that the order explains, where it means something: 0.33 to 1 in real quantities."""
ENOUGH_TOLD = 3
"""Targets that differ between the levels, from which on they do not all go along with an order by accident."""
LEAST_SHARE = 0.01
"""Share of the cells that a level has, at least."""
LEAST_RELIABILITY = 0.8
"""Share of the variance of level means that is not noise, at least: other targets say nothing about the order."""


@dataclass(frozen=True)
class Smoothness:
    """How smoothly the other columns' means go along the levels of a column.

    Attributes
    ----------
    share : float
        The share of the levels' differences that their order explains: 1 if the means of neighbouring levels are equal
        but for noise, 0 if neighbours differ as any two levels do; negative if they differ more.
    rank : float
        The share of all orders of the levels in which neighbours differ no more: small if the order means something,
        anything between 0 and 1 if it does not.
    n_told : int
        How many targets differ between the levels by clearly more than chance.
    n_levels : int
        How many levels have enough cells.
    """

    share: float
    rank: float
    n_told: int
    n_levels: int

    @property
    def verdict(self) -> Verdict:
        """What follows from it.

        Three levels have three orders only, and one or two targets may happen to go along with codes, or not with a
        quantity: both must say so more clearly.
        """
        if self.n_told and self.rank <= 0.1 and self.share >= CLEAR_SHARE:
            return "ordered"
        clear = self.n_told >= ENOUGH_TOLD and (self.n_levels > 3 or self.rank == 1.0)
        highest, least = (CLEAR_SHARE, 0.25) if clear else (0.0, 0.5)
        told = self.n_told > 0 and self.n_levels > (2 if clear else 3)
        return "unordered" if told and self.share < highest and self.rank >= least else "unclear"


def measure_smoothness(levels: npt.NDArray[np.intp], targets: Floats) -> Smoothness | None:
    """Compare the order of a column's levels with other orders of them, as explanations of other columns.

    If the numbers are quantities, rows with similar numbers are similar, so that the means of the other columns go
    smoothly along the levels, whatever their shape. If the numbers are codes, neighbours are as different as any two
    levels. So the weighted squared differences between neighbours are compared with those under other orders of the
    same levels: all of them, or some that are drawn by a fixed seed. Noise is subtracted, as the means of few cells
    differ by chance.

    Parameters
    ----------
    levels : array of int
        The level of each row, counted from 0 in order; -1 where missing.
    targets : array, rows x columns
        The other columns; NaN where missing.

    Returns
    -------
    Smoothness or None
        None if there are fewer than three levels with enough cells, or nothing differs between them.

    Examples
    --------
    >>> levels = np.repeat(np.arange(5), 40)
    >>> noise = np.random.default_rng(0).normal(size=200)
    >>> smooth = measure_smoothness(levels, (levels + noise)[:, None])
    >>> codes = measure_smoothness(levels, (np.array([3.0, 0.0, 4.0, 1.0, 2.0])[levels] + noise)[:, None])
    >>> smooth.verdict, codes.verdict
    ('ordered', 'unordered')
    """
    means, counts, variances = _level_means(levels, targets)
    kept = (counts >= max(FEWEST_CELLS, LEAST_SHARE * counts.sum(axis=0).max())).any(axis=1)
    means, counts = means[kept], counts[kept]
    n_levels = len(means)
    if n_levels < 3:
        return None
    used = (counts >= FEWEST_CELLS).all(axis=0)
    means, noise = means[:, used], variances[used] / counts[:, used]
    between = means.var(axis=0, ddof=1) - noise.mean(axis=0)
    positive = np.maximum(between, 0.0)
    reliable = (positive / (positive + noise)).mean(axis=0)
    told = reliable >= LEAST_RELIABILITY
    if not told.any():
        return Smoothness(0.0, 1.0, 0, n_levels)
    differences = _neighbours(means[:, told], noise[:, told], between[told], _orders(n_levels))
    usual = differences.mean(axis=0)
    relative = (differences / usual).mean(axis=1)
    rank = float((relative <= relative[0] + 1e-9).mean())
    return Smoothness(1.0 - float(relative[0]), rank, int(told.sum()), n_levels)


def _level_means(levels: npt.NDArray[np.intp], targets: Floats) -> tuple[Floats, Floats, Floats]:
    """Return means and counts, levels x targets, and the variance of each target within levels."""
    n_levels, seen = int(levels.max(initial=-1)) + 1, levels >= 0
    levels, targets = levels[seen], targets[seen]
    there = ~np.isnan(targets)
    filled = np.where(there, targets, 0.0)
    member = np.zeros((n_levels, len(levels)))
    member[levels, np.arange(len(levels))] = 1.0
    counts = member @ there
    with np.errstate(all="ignore"):
        means = (member @ filled) / counts
        squares = (filled**2).sum(axis=0) - np.where(counts > 0.0, counts * means**2, 0.0).sum(axis=0)
        variances = squares / (counts.sum(axis=0) - (counts > 0.0).sum(axis=0))
    # Where a level decides a target exactly, chance still is that of its rounding.
    return means, counts, np.maximum(variances, 1e-4)


def _neighbours(means: Floats, noise: Floats, between: Floats, orders: npt.NDArray[np.intp]) -> Floats:
    """Return the mean squared difference between neighbours, beyond noise: orders x targets.

    Differences of levels with few cells count less, but not those of many cells more than others.
    """
    a, b = orders[:, :-1], orders[:, 1:]
    chance = noise[a] + noise[b]
    weights = 1.0 / (2.0 * between + chance)
    found: Floats = (weights * ((means[a] - means[b]) ** 2 - chance)).sum(axis=1) / weights.sum(axis=1)
    return found


def _orders(n: int) -> npt.NDArray[np.intp]:
    """Return orders of the levels, their own first: all but their reversals, or some of them."""
    own = tuple(range(n))
    if factorial(n) <= 2 * N_ORDERS:
        return np.array([own] + [one for one in permutations(own) if one[0] < one[-1] and one != own])
    rng = np.random.default_rng(0)
    return np.array([own] + [rng.permutation(n) for _ in range(N_ORDERS)])


# --- the other columns ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Companions:
    """The columns of a table, as others of them are explained by one; looked at when that is first asked for."""

    columns: Sequence[TableColumn]
    found: dict[str, Smoothness | None] = field(default_factory=dict, repr=False, compare=False)

    def smoothness(self, name: str, numbers: Floats) -> Smoothness | None:
        """Return how smoothly the other columns go along the numbers of a column; None if that cannot be said.

        Rows in another order and columns in another order give the same.
        """
        if name not in self.found:
            targets = [one for key, one in self._targets.items() if key != name]
            rows = self._rows
            values = numbers if rows is None else numbers[rows]
            self.found[name] = measure_smoothness(_levels(values), np.column_stack(targets)) if targets else None
        return self.found[name]

    @cached_property
    def _used(self) -> list[TableColumn]:
        """Columns to look at, one more than needed, as one of them is the column in question."""
        able = [one for one in self.columns if one.storage in ("boolean", "integer", "float")]
        if self._n_rows <= MOST_TEXTS:
            able += [one for one in self.columns if one.storage == "text"]
        return sorted(able, key=lambda one: (crc32(one.name.encode(errors="replace")), one.name))[: MOST_TARGETS + 1]

    @cached_property
    def _n_rows(self) -> int:
        return len(self.columns[0].native)

    @cached_property
    def _rows(self) -> npt.NDArray[np.intp] | None:
        """The rows to look at, chosen by what is in them, not by where they are; None for all."""
        if self._n_rows <= MOST_ROWS:
            return None
        hashed = np.zeros(self._n_rows, np.uint64)
        for one in self._used[: max(2, MOST_HASHED // self._n_rows)]:
            key = np.uint64(crc32(one.name.encode(errors="replace")) * 2 + 1)
            bits = _values(one).view(np.uint64) * key
            bits ^= bits >> np.uint64(29)
            hashed += bits * np.uint64(0xBF58476D1CE4E5B9)
        hashed ^= hashed >> np.uint64(31)
        hashed *= np.uint64(0x94D049BB133111EB)
        found = np.argpartition(hashed, MOST_ROWS)[:MOST_ROWS]
        return np.asarray(found[np.argsort(hashed[found], kind="stable")])

    @cached_property
    def _targets(self) -> dict[str, Floats]:
        """Ranks of numbers, and whether texts are the most frequent ones, by column."""
        found = {}
        for one in self._used:
            values = _values(one)
            values = values if self._rows is None else values[self._rows]
            target = _indicators(values) if one.storage == "text" else _ranks(values)
            if target is not None:
                found[one.name] = target
        return found


def _values(cells: TableColumn) -> Floats:
    """Return numbers, or for texts a number that goes with each; NaN where missing."""
    if cells.storage != "text":
        numbers = cells.fresh().numbers
        return np.where(np.isfinite(numbers), numbers + 0.0, np.nan)
    codes, distinct = cells.fresh().factorized
    keys = [float(crc32(str(one).encode(errors="replace"))) for one in distinct]
    return np.asarray(np.array([*keys, np.nan])[codes])


def _levels(values: Floats) -> npt.NDArray[np.intp]:
    """Return the place of each number among the distinct ones; -1 where missing."""
    seen = ~np.isnan(values)
    levels = np.full(len(values), -1)
    levels[seen] = np.unique(values[seen], return_inverse=True)[1]
    return levels


def _ranks(values: Floats) -> Floats | None:
    """Return standardized ranks, as heavy tails would hide everything else; None if all are equal."""
    seen = ~np.isnan(values)
    places, counts = np.unique(values[seen], return_inverse=True, return_counts=True)[1:]
    if len(counts) < 2:
        return None
    middle = np.cumsum(counts) - 0.5 * (counts - 1)
    ranks = np.full((len(values), 1), np.nan)
    own = middle[places]
    ranks[seen, 0] = (own - own.mean()) / own.std()
    return ranks


def _indicators(values: Floats) -> Floats | None:
    """Return whether a class is each of the three most frequent ones, standardized; None if there are too many."""
    seen = ~np.isnan(values)
    classes, counts = np.unique(values[seen], return_counts=True)
    if not 2 <= len(classes) <= MOST_LEVELS:
        return None
    common = classes[np.argsort(-counts, kind="stable")[: min(3, len(classes) - 1)]]
    found = np.where(seen[:, None], (values[:, None] == common).astype(float), np.nan)
    spread = np.nanstd(found, axis=0)
    return np.asarray((found - np.nanmean(found, axis=0)) / np.where(spread > 0.0, spread, 1.0))
