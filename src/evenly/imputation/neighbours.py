"""The neighbour expert: finds near-duplicates, rows that agree with another row in the cells observed in both.

Tables contain near-duplicates: the same wine tasted twice, the same person asked again. Networks learn relations
between columns; that a row repeats another is found by comparing rows: with all rows of a small table, and with those
that agree in the hash of some columns if there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.imputation.row_hashes import RowHashes, hash_rows

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

N_NEIGHBOURS = 16
"""The largest number of neighbours of a row."""
MOST_ROWS = 200_000
"""The largest number of rows in the index; more are sampled."""
FEW_ROWS = 30_000
"""Up to this number of rows in the index, each row is compared with all of them: no near-duplicate is overlooked."""
FARTHEST = 0.02
"""The largest distance of near-duplicates: beyond, a neighbour's weight would be a thousandth or less."""
CHUNK, BLOCK = 128, 4096
"""Sizes of the blocks of rows, and of rows of the index, that are compared at once: their products fit the cache."""
HASHED_CHUNK = 4096
"""Rows that are searched at once by their hashes."""
CHANCE = 0.1
"""Expected number of rows that agree as much by chance at which a neighbour counts half; at more than 1, not at all."""
SLACK = 1e-3
"""Rounding allowed in sums of surprises."""
N_GRID = 1_000
"""The largest number of values of a column between which ranks are interpolated."""


class NeighbourIndex(NamedTuple):
    """The rows to search for near-duplicates."""

    values: Floats
    """Values or codes, rows x columns; NaN where missing."""
    classes: npt.NDArray[np.bool_]
    """Which columns hold codes of classes."""
    grid: list[Floats]
    shares: list[Floats]
    """For each column of numbers: some of its values, and their ranks (the share of smaller ones)."""
    surprise: Floats
    """Of each column: minus the log-probability that two random rows agree."""
    placed: Floats
    """The coordinates of the rows, in which they are compared."""
    factors: npt.NDArray[np.float32]
    """The second factors of `_factors`, one column per row; empty if rows are hashed."""
    hashes: RowHashes | None = None
    """The hashes of the rows, if there are more than `FEW_ROWS`."""

    def find(self, values: Sequence[Floats]) -> Neighbours:
        """Return the nearest rows of each row, given every column's values or codes.

        A row of the index is not a neighbour of itself where its cell is missing.

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
        points = _coordinates(self.classes, self.grid, self.shares, np.column_stack(list(values)))
        size = CHUNK if self.hashes is None else HASHED_CHUNK
        found = [_nearest(self, points[start : start + size]) for start in range(0, max(len(points), 1), size)]
        return Neighbours(*(np.concatenate(one) for one in zip(*found, strict=True)))


class Neighbours(NamedTuple):
    """The nearest rows of each row, rows x `N_NEIGHBOURS`; if there are fewer, the others have an infinite distance."""

    cells: Floats
    """Values or codes of the neighbours, rows x neighbours x columns; NaN where missing."""
    distance: Floats
    """Mean squared difference over the columns observed in both; for numbers, in standard deviations of ranks."""
    chance: Floats
    """The number of rows of the table that are expected to agree as much by chance."""

    def take(self, rows: Any) -> Neighbours:
        """Return the neighbours of a selection of the rows."""
        return Neighbours(*(one[rows] for one in self))

    def weigh(self, j: int, weight: NeighbourWeight) -> tuple[Floats, Floats]:
        """Return the neighbours' normalized weights in column j, and their joint share in the prediction."""
        weights = np.exp(-self.distance / weight.bandwidth) / (1.0 + self.chance / CHANCE)
        weights = np.where(np.isnan(self.cells[:, :, j]) | (self.chance > 1.0), 0.0, weights)
        total = weights.sum(1)
        return weights / np.maximum(total, 1e-300)[:, None], total / (total + weight.prior)


@dataclass(frozen=True)
class NeighbourWeight:
    """The weight of a near-duplicate's cell, w / (w + prior) with w = exp(-distance / bandwidth)."""

    bandwidth: float
    prior: float


WEIGHTS = tuple(NeighbourWeight(*one) for one in ((3e-4, 1.0), (3e-4, 0.3), (1e-3, 1.0), (1e-3, 0.3), (3e-3, 1.0)))
"""Candidates, from the most conservative."""


def index_rows(values: Sequence[Floats], classes: Sequence[bool], rng: np.random.Generator) -> NeighbourIndex:
    """Index the rows of a table, or a sample of `MOST_ROWS` of them.

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
    coded_columns = np.array(classes, bool)
    placed = _coordinates(coded_columns, grid, shares, table)
    index = NeighbourIndex(table, coded_columns, grid, shares, np.array(surprise), placed, np.zeros((0, 0), np.float32))
    if len(table) > FEW_ROWS:
        return index._replace(hashes=hash_rows(placed, coded_columns))
    return index._replace(factors=_factors(coded_columns, placed)[1].T.copy())


def _coordinates(classes: npt.NDArray[np.bool_], grid: list[Floats], shares: list[Floats], table: Floats) -> Floats:
    """Return standardized ranks of numbers, and codes of classes; NaN where missing."""
    placed = table.copy()
    for j in np.flatnonzero(~classes):
        placed[:, j] = np.sqrt(12.0) * (np.interp(table[:, j], grid[j], shares[j]) - 0.5)
    return np.asfortranarray(np.where(np.isnan(table), np.nan, placed))


def _factors(classes: npt.NDArray[np.bool_], placed: Floats) -> tuple[Any, Any]:
    """Return two vectors for each row: the product of one row's first and another's second screens the pair.

    The product is the sum of squared differences minus what `FARTHEST` allows (and a little more, for single
    precision): it is negative for all near-duplicates. Classes are represented by the last two bits of their code, so
    that a difference is never overestimated; the candidates are then compared exactly.
    """
    known, codes = ~np.isnan(placed), np.nan_to_num(placed).astype(np.int64)
    points = np.where(classes, np.sqrt(0.5) * (codes % 2), np.nan_to_num(placed))
    second = np.sqrt(0.5) * (codes[:, classes] // 2 % 2)
    squares = points**2
    squares[:, classes] += second**2
    ours = [known * (squares - 1.01 * FARTHEST), known, -2.0 * points, -2.0 * second]
    theirs = [known, squares, points, second]
    return np.concatenate(ours, axis=1).astype(np.float32), np.concatenate(theirs, axis=1).astype(np.float32)


def _pairs(index: NeighbourIndex, points: Floats) -> tuple[Rows, Rows]:
    """Return pairs of a row and a row of the index that may be near-duplicates, in the order of both."""
    # Rows with too few observed cells to rule out chance have no near-duplicates.
    able = (~np.isnan(points) * index.surprise).sum(1) >= np.log(len(index.values)) - SLACK
    if index.hashes is not None:
        return index.hashes.candidates(points, able, 1.01 * FARTHEST * points.shape[1])
    factors, pairs = _factors(index.classes, points)[0], []
    factors[~able] = 0.0
    for start in range(0, len(index.values), BLOCK):
        products = factors @ index.factors[:, start : start + BLOCK]
        row, other = np.divmod(np.flatnonzero(products < 0.0), products.shape[1])
        pairs.append((row, other + start))
    row, other = (np.concatenate(one) for one in zip(*pairs, strict=True))
    return row, other


def _nearest(index: NeighbourIndex, points: Floats) -> Neighbours:
    """Return the nearest near-duplicates of each row: rows of the index that are close, and not by chance."""
    (n, n_columns), k = index.values.shape, min(N_NEIGHBOURS, len(index.values))
    row, other = _pairs(index, points)
    gap, common, agreeing = np.zeros((3, len(row)))
    for j in range(n_columns):
        away = points[row, j] - index.placed[other, j]
        both = ~np.isnan(away)
        gap += np.where(both, away != 0.0 if index.classes[j] else away**2, 0.0)
        common += both
        agreeing += both * index.surprise[j]
    distance = gap / np.maximum(common, 1.0)
    near = np.flatnonzero((distance <= FARTHEST) & (agreeing >= np.log(n) - SLACK))
    near = near[np.argsort(distance[near], kind="stable")]  # ties in the order of the table
    near = near[np.argsort(row[near].astype(np.int16), kind="stable")]
    rank = np.arange(len(near)) - np.searchsorted(row[near], row[near])
    near, rank = near[rank < k], rank[rank < k]
    found = Neighbours(np.full((len(points), k, n_columns), np.nan), *np.full((2, len(points), k), np.inf))
    found.cells[row[near], rank] = index.values[other[near]]
    found.distance[row[near], rank] = distance[near]
    found.chance[row[near], rank] = n * np.exp(-agreeing[near])
    return found
