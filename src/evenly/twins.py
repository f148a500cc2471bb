"""Twins: rows that repeat another row of the table, as far as both are known.

Tables hold rows twice: the same wine tasted again, the same person asked again. A network learns what cells say about
each other in general; that one row is another one over again, a comparison of rows tells better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

N_TWINS = 16
"""Rows that are looked at for each row."""
MOST_ROWS = 50_000
"""Rows that are remembered at most."""
CHUNK = 512
"""Rows compared with all remembered ones at once."""
N_SIGNS = 12
"""Numbers that stand for a class when rows are compared by products; two classes agree in half of them on average."""
CHANCE = 0.1
"""Rows of which a table like this has so many that agree by chance count half; where it has one, not at all."""
N_GRID = 1_000
"""Values of a column between which its shares are interpolated, at most."""


class Memory(NamedTuple):
    """Rows that twins are looked for in."""

    values: Floats
    """Values or codes, rows x columns; NaN where missing."""
    classes: npt.NDArray[np.bool_]
    """Which columns hold codes of classes."""
    grid: list[Floats]
    shares: list[Floats]
    """Of each column of numbers: some of its values, and the share of smaller ones."""
    surprise: Floats
    """Of each column: minus the logarithm of the probability that two rows agree."""


class Twins(NamedTuple):
    """The remembered rows nearest to some rows, rows x `N_TWINS`."""

    cells: Floats
    """Their values or codes, rows x twins x columns; NaN where missing."""
    distance: Floats
    """Mean squared difference over the columns known in both; of numbers, in standard deviations of ranks."""
    chance: Floats
    """How many rows of the table would agree by chance in as many cells."""


@dataclass(frozen=True)
class Belief:
    """How much of a twin's cell to take over: 1 / (1 + doubt) of it, or less by exp(-distance / near)."""

    near: float
    doubt: float


BELIEFS = (Belief(3e-4, 1.0), Belief(3e-4, 0.3), Belief(1e-3, 1.0), Belief(1e-3, 0.3), Belief(3e-3, 1.0))
"""What is tried, the most careful one first."""


def remember(values: Sequence[Floats], classes: Sequence[bool], rng: np.random.Generator) -> Memory:
    """Remember a table's columns, or some of its rows where there are very many.

    Examples
    --------
    >>> x = np.arange(100.0)
    >>> memory = remember([x, x % 2], [False, True], np.random.default_rng(0))
    >>> memory.surprise.round(2).tolist()
    [4.61, 0.69]
    """
    table = np.column_stack(list(values))
    if len(table) > MOST_ROWS:
        table = table[np.sort(rng.choice(len(table), MOST_ROWS, replace=False))]
    grid, shares, surprise = [], [], []
    for column, coded in zip(table.T, classes, strict=True):
        distinct, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        n = max(int(counts.sum()), 1)
        surprise.append(-np.log(max(float(((counts / n) ** 2).sum()), 1.0 / n)) if len(distinct) else 0.0)
        some = np.unique(np.linspace(0, max(len(distinct) - 1, 0), N_GRID).round().astype(int))
        middle = (np.cumsum(counts) - 0.5 * counts) / n
        grid.append(np.zeros(0) if coded else distinct[some] if len(distinct) else np.zeros(1))
        shares.append(np.zeros(0) if coded else middle[some] if len(distinct) else np.zeros(1))
    return Memory(table, np.array(classes, bool), grid, shares, np.array(surprise))


def find_twins(memory: Memory, values: Sequence[Floats]) -> Twins:
    """Return the remembered rows that are nearest to some rows. A row is not its own twin where its cell is missing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(200, 4))
    >>> table[7] = table[3]
    >>> memory = remember(list(table.T), [False] * 4, rng)
    >>> row = table[7].copy()
    >>> row[2] = np.nan
    >>> found = find_twins(memory, list(row[None].T))
    >>> bool((found.cells[0, :2, 2] == table[3, 2]).all()), found.distance[0, :3].round(2).tolist()[:2]
    (True, [0.0, 0.0])
    """
    table = np.column_stack(list(values))
    ours, theirs = _coordinates(memory, table), _coordinates(memory, memory.values)
    known, k = ~np.isnan(memory.values), min(N_TWINS, len(memory.values))
    places = [_as_products(memory, theirs[:, j], j) for j in range(table.shape[1])]
    features = np.concatenate(places, axis=1)
    owners = np.repeat(np.arange(table.shape[1]), [one.shape[1] for one in places])
    weights = 1.0 / np.array([one.shape[1] for one in places], np.float32)[owners]
    there = known[:, owners].astype(np.float32)
    squares = (features**2 * weights * there).T.copy()
    mask, surprise = known.astype(np.float32), memory.surprise.astype(np.float32)
    cells, distance, chance = [], [], []
    for start in range(0, len(table), CHUNK):
        mine = ours[start : start + CHUNK]
        seen = ~np.isnan(mine)
        own = np.concatenate([_as_products(memory, mine[:, j], j) for j in range(mine.shape[1])], axis=1)
        shown = seen[:, owners].astype(np.float32)
        gap = (own**2 * weights) @ there.T + shown @ squares - 2.0 * (own * weights) @ features.T
        common = seen.astype(np.float32) @ mask.T
        agreeing = (seen * surprise).astype(np.float32) @ mask.T
        nearest = _least(gap / np.maximum(common, 1.0) + (agreeing < np.log(len(memory.values)) - 1e-3), k)
        cells.append(memory.values[nearest])
        distance.append(_distance(memory, mine, theirs, nearest))
        chance.append(len(memory.values) * np.exp(-((seen * memory.surprise)[:, None] * known[nearest]).sum(2)))
    order = np.argsort(np.concatenate(distance), axis=1, kind="stable")
    return Twins(
        np.take_along_axis(np.concatenate(cells), order[:, :, None], axis=1),
        *(np.take_along_axis(np.concatenate(one), order, axis=1) for one in (distance, chance)),
    )


def weigh(twins: Twins, j: int, belief: Belief) -> tuple[Floats, Floats]:
    """Return the weight of every twin's cell in a column, and the share of all of them in a prediction."""
    weights = np.exp(-twins.distance / belief.near) / (1.0 + twins.chance / CHANCE)
    weights = np.where(np.isnan(twins.cells[:, :, j]) | (twins.chance > 1.0), 0.0, weights)
    total = weights.sum(1)
    return weights / np.maximum(total, 1e-300)[:, None], total / (total + belief.doubt)


def _coordinates(memory: Memory, table: Floats) -> Floats:
    """Return ranks of numbers in standard deviations, and codes."""
    placed = table.copy()
    for j in np.flatnonzero(~memory.classes):
        placed[:, j] = np.sqrt(12.0) * np.interp(table[:, j], memory.grid[j], memory.shares[j])
    return np.where(np.isnan(table), np.nan, placed)


def _as_products(memory: Memory, column: Floats, j: int) -> Any:
    """Return coordinates whose squared differences are those of a column, of classes only nearly; 0 where missing."""
    if not memory.classes[j]:
        return np.nan_to_num(column)[:, None].astype(np.float32)
    codes = np.nan_to_num(column).astype(np.int64)
    signs = np.random.default_rng(j).integers(0, 2, (int(np.nanmax(memory.values[:, j], initial=0)) + 2, N_SIGNS))
    coded = np.sqrt(2.0) * signs[np.clip(codes, 0, len(signs) - 1)]
    return np.where(np.isnan(column)[:, None], 0.0, coded).astype(np.float32)


def _least(scores: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.intp]:
    """Return the places of the k least of each row, of equal ones the first.

    The last digits of a product go by the shapes of its factors: scores are equal if four decimals are, so that a row's
    twins do not go by the rows around it.
    """
    last = np.partition(scores, k - 1, axis=1)[:, k - 1]
    found = np.empty((len(scores), k), np.intp)
    for i, row in enumerate(scores):
        some = np.flatnonzero(row <= last[i] + 1e-4)
        found[i] = some[np.argsort(np.round(row[some], 4), kind="stable")[:k]]
    return found


def _distance(memory: Memory, mine: Floats, theirs: Floats, nearest: npt.NDArray[np.intp]) -> Floats:
    """Return the mean squared difference of rows to some remembered ones each, over the columns known in both."""
    gap = mine[:, None, :] - theirs[nearest]
    gap = np.where(memory.classes, gap != 0.0, gap**2) + np.where(np.isnan(gap), np.nan, 0.0)
    common = (~np.isnan(gap)).sum(2)
    return np.asarray(np.where(common, np.nansum(gap, axis=2) / np.maximum(common, 1), np.inf), np.float64)
