"""The neighbour expert: rows that nearly repeat another row of the table, as far as both are observed.

Tables hold near-duplicates: the same wine tasted again, the same person asked again. A network learns what cells say
about each other in general; that one row repeats another is found by comparing rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

N_NEIGHBOURS = 16
"""Neighbours of a row, at most."""
MOST_ROWS = 50_000
"""Rows in the index, at most."""
FARTHEST = 0.02
"""The distance beyond which rows are no near-duplicates: at most a thousandth of such a cell would be taken over."""
CHUNK, BLOCK = 128, 4096
"""Rows compared at once, with so many of the index: the products stay in the processor's cache."""
CHANCE = 0.1
"""A neighbour counts half if the table is expected to hold this many rows that agree as much by chance; none at 1."""
N_GRID = 1_000
"""Values of a column between which its ranks are interpolated, at most."""


class NeighbourIndex(NamedTuple):
    """The rows that near-duplicates are searched in."""

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

    def find(self, values: Sequence[Floats]) -> Neighbours:
        """Return the rows nearest to some rows, given by their columns' values or codes.

        A row is not its own neighbour where its cell is missing.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> table = rng.normal(size=(200, 4))
        >>> table[7] = table[3]
        >>> index = index_rows(list(table.T), [False] * 4, rng)
        >>> row = table[7].copy()
        >>> row[2] = np.nan
        >>> found = index.find(list(row[None].T))
        >>> bool((found.cells[0, :2, 2] == table[3, 2]).all()), found.distance[0, :3].round(2).tolist()[:2]
        (True, [0.0, 0.0])
        """
        mine = _coordinates(self.classes, self.grid, self.shares, np.column_stack(list(values)))
        some = [_nearest(self, mine[start : start + CHUNK]) for start in range(0, max(len(mine), 1), CHUNK)]
        return Neighbours(*(np.concatenate(one) for one in zip(*some, strict=True)))


class Neighbours(NamedTuple):
    """The nearest rows of some rows, rows x `N_NEIGHBOURS`; where there are fewer, at no finite distance."""

    cells: Floats
    """Their values or codes, rows x neighbours x columns; NaN where missing."""
    distance: Floats
    """Mean squared difference over the columns known in both; of numbers, in standard deviations of ranks."""
    chance: Floats
    """How many rows of the table are expected to agree in as many cells by chance."""

    def take(self, rows: Any) -> Neighbours:
        """Return the neighbours of some of the rows."""
        return Neighbours(*(one[rows] for one in self))

    def weigh(self, j: int, weight: NeighbourWeight) -> tuple[Floats, Floats]:
        """Return the weights of the neighbours' cells in column j, with the sum 1, and their share in a prediction."""
        weights = np.exp(-self.distance / weight.bandwidth) / (1.0 + self.chance / CHANCE)
        weights = np.where(np.isnan(self.cells[:, :, j]) | (self.chance > 1.0), 0.0, weights)
        total = weights.sum(1)
        return weights / np.maximum(total, 1e-300)[:, None], total / (total + weight.prior)


@dataclass(frozen=True)
class NeighbourWeight:
    """How much of a near-duplicate's cell to take over: 1 / (1 + prior), or less by exp(-distance / bandwidth)."""

    bandwidth: float
    prior: float


WEIGHTS = tuple(NeighbourWeight(*one) for one in ((3e-4, 1.0), (3e-4, 0.3), (1e-3, 1.0), (1e-3, 0.3), (3e-3, 1.0)))
"""What is tried, the most careful one first."""


def index_rows(values: Sequence[Floats], classes: Sequence[bool], rng: np.random.Generator) -> NeighbourIndex:
    """Index the rows of a table, or some of them where there are very many.

    Parameters
    ----------
    values : sequence of arrays
        The values or codes of each column.
    classes : sequence of bool
        Which columns hold codes of classes.

    Examples
    --------
    >>> x = np.arange(100.0)
    >>> index_rows([x, x % 2], [False, True], np.random.default_rng(0)).surprise.round(2).tolist()
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
    return NeighbourIndex(table, np.array(classes, bool), grid, shares, np.array(surprise), placed, factors)


def _coordinates(classes: npt.NDArray[np.bool_], grid: list[Floats], shares: list[Floats], table: Floats) -> Floats:
    """Return ranks of numbers in standard deviations from the middle one, and codes; NaN where missing."""
    placed = table.copy()
    for j in np.flatnonzero(~classes):
        placed[:, j] = np.sqrt(12.0) * (np.interp(table[:, j], grid[j], shares[j]) - 0.5)
    return np.asfortranarray(np.where(np.isnan(table), np.nan, placed))


def _factors(classes: npt.NDArray[np.bool_], placed: Floats) -> tuple[Any, Any]:
    """Return two lists of numbers of each row: the product of one row's first and another's second screens the pair.

    The product is the sum of their squared differences, less what `FARTHEST` allows (and a little more, for single
    precision): below 0 for all near-duplicates. Two digits stand for a class, so that a difference of classes counts,
    or counts too little.
    """
    known, codes = ~np.isnan(placed), np.nan_to_num(placed).astype(np.int64)
    points = np.where(classes, np.sqrt(0.5) * (codes % 2), np.nan_to_num(placed))
    second = np.sqrt(0.5) * (codes[:, classes] // 2 % 2)
    squares = points**2
    squares[:, classes] += second**2
    ours = [known * (squares - 1.01 * FARTHEST), known, -2.0 * points, -2.0 * second]
    theirs = [known, squares, points, second]
    return np.concatenate(ours, axis=1).astype(np.float32), np.concatenate(theirs, axis=1).astype(np.float32)


def _nearest(index: NeighbourIndex, mine: Floats) -> Neighbours:
    """Return the nearest rows of the index that are near-duplicates of some rows: near, and not by chance."""
    (n, n_columns), k = index.values.shape, min(N_NEIGHBOURS, len(index.values))
    factors, enough, pairs = _factors(index.classes, mine)[0], np.log(n) - 1e-3, []
    factors[(~np.isnan(mine) * index.surprise).sum(1) < enough] = 0.0
    for start in range(0, n, BLOCK):
        products = factors @ index.factors[:, start : start + BLOCK]
        row, other = np.divmod(np.flatnonzero(products < 0.0), products.shape[1])
        pairs.append((row, other + start))
    row, other = (np.concatenate(one) for one in zip(*pairs, strict=True))
    gap, common, agreeing = np.zeros((3, len(row)))
    for j in range(n_columns):
        away = mine[row, j] - index.placed[other, j]
        both = ~np.isnan(away)
        gap += np.where(both, away != 0.0 if index.classes[j] else away**2, 0.0)
        common += both
        agreeing += both * index.surprise[j]
    distance = gap / np.maximum(common, 1.0)
    near = np.flatnonzero((distance <= FARTHEST) & (agreeing >= enough))
    near = near[np.argsort(distance[near], kind="stable")]  # of equally near ones the first
    near = near[np.argsort(row[near].astype(np.int16), kind="stable")]
    place = np.arange(len(near)) - np.searchsorted(row[near], row[near])
    near, place = near[place < k], place[place < k]
    found = Neighbours(np.full((len(mine), k, n_columns), np.nan), *np.full((2, len(mine), k), np.inf))
    found.cells[row[near], place] = index.values[other[near]]
    found.distance[row[near], place] = distance[near]
    found.chance[row[near], place] = n * np.exp(-agreeing[near])
    return found
