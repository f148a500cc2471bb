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
FARTHEST = 0.02
"""The distance beyond which rows are no twins: a thousandth of them would be taken over by the least careful belief."""
CHUNK, BLOCK = 128, 4096
"""Rows compared at once, with so many remembered ones: what comes of it stays near the processor."""
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
    placed: Floats
    """The values as coordinates, in which rows are compared."""
    factors: npt.NDArray[np.float32]
    """What the rows to compare are multiplied by, a column a row: see `_factors`."""


class Twins(NamedTuple):
    """The remembered rows nearest to some rows, rows x `N_TWINS`; where there are fewer, at no finite distance."""

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
    placed = _coordinates(np.array(classes, bool), grid, shares, table)
    factors = _factors(np.array(classes, bool), placed)[1].T.copy()
    return Memory(table, np.array(classes, bool), grid, shares, np.array(surprise), placed, factors)


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
    mine = _coordinates(memory.classes, memory.grid, memory.shares, np.column_stack(list(values)))
    some = [_nearest(memory, mine[start : start + CHUNK]) for start in range(0, max(len(mine), 1), CHUNK)]
    return Twins(*(np.concatenate(one) for one in zip(*some, strict=True)))


def weigh(twins: Twins, j: int, belief: Belief) -> tuple[Floats, Floats]:
    """Return the weight of every twin's cell in a column, and the share of all of them in a prediction."""
    weights = np.exp(-twins.distance / belief.near) / (1.0 + twins.chance / CHANCE)
    weights = np.where(np.isnan(twins.cells[:, :, j]) | (twins.chance > 1.0), 0.0, weights)
    total = weights.sum(1)
    return weights / np.maximum(total, 1e-300)[:, None], total / (total + belief.doubt)


def _coordinates(classes: npt.NDArray[np.bool_], grid: list[Floats], shares: list[Floats], table: Floats) -> Floats:
    """Return ranks of numbers in standard deviations from the middle one, and codes; NaN where missing."""
    placed = table.copy()
    for j in np.flatnonzero(~classes):
        placed[:, j] = np.sqrt(12.0) * (np.interp(table[:, j], grid[j], shares[j]) - 0.5)
    return np.asfortranarray(np.where(np.isnan(table), np.nan, placed))


def _factors(classes: npt.NDArray[np.bool_], placed: Floats) -> tuple[Any, Any]:
    """Return two lists of numbers of each row: one row's first times another's second tells whether they may be twins.

    The product is the sum of their squared differences, less what `FARTHEST` allows (and a little more, for single
    precision): below 0 for all twins. Two digits stand for a class, so that its difference is counted or too small.
    """
    known, codes = ~np.isnan(placed), np.nan_to_num(placed).astype(np.int64)
    points = np.where(classes, np.sqrt(0.5) * (codes % 2), np.nan_to_num(placed))
    second = np.sqrt(0.5) * (codes[:, classes] // 2 % 2)
    squares = points**2
    squares[:, classes] += second**2
    ours = [known * (squares - 1.01 * FARTHEST), known, -2.0 * points, -2.0 * second]
    theirs = [known, squares, points, second]
    return np.concatenate(ours, axis=1).astype(np.float32), np.concatenate(theirs, axis=1).astype(np.float32)


def _nearest(memory: Memory, mine: Floats) -> Twins:
    """Return the nearest of the remembered rows that are twins of some rows: near, and not by chance."""
    (n, n_columns), k = memory.values.shape, min(N_TWINS, len(memory.values))
    factors, enough, pairs = _factors(memory.classes, mine)[0], np.log(n) - 1e-3, []
    factors[(~np.isnan(mine) * memory.surprise).sum(1) < enough] = 0.0
    for start in range(0, n, BLOCK):
        products = factors @ memory.factors[:, start : start + BLOCK]
        row, other = np.divmod(np.flatnonzero(products < 0.0), products.shape[1])
        pairs.append((row, other + start))
    row, other = (np.concatenate(one) for one in zip(*pairs, strict=True))
    gap, common, agreeing = np.zeros((3, len(row)))
    for j in range(n_columns):
        away = mine[row, j] - memory.placed[other, j]
        both = ~np.isnan(away)
        gap += np.where(both, away != 0.0 if memory.classes[j] else away**2, 0.0)
        common += both
        agreeing += both * memory.surprise[j]
    distance = gap / np.maximum(common, 1.0)
    twins = np.flatnonzero((distance <= FARTHEST) & (agreeing >= enough))
    twins = twins[np.argsort(distance[twins], kind="stable")]  # of equally near ones the first
    twins = twins[np.argsort(row[twins].astype(np.int16), kind="stable")]
    place = np.arange(len(twins)) - np.searchsorted(row[twins], row[twins])
    twins, place = twins[place < k], place[place < k]
    found = Twins(np.full((len(mine), k, n_columns), np.nan), *np.full((2, len(mine), k), np.inf))
    found.cells[row[twins], place] = memory.values[other[twins]]
    found.distance[row[twins], place] = distance[twins]
    found.chance[row[twins], place] = n * np.exp(-agreeing[twins])
    return found
