"""Hashes of rows by some of their columns: rows that nearly agree share a hash, and are found without a search.

Every hash is of a group of columns: codes of classes, and numbers in bins with random borders. Groups are just large
enough that few rows share a hash by chance, so that rows with missing cells still have all cells of some group. Work
and memory grow with the number of rows, not with its square.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Hashes = npt.NDArray[np.uint64]

N_GROUPS = 64
"""Groups of columns. A row with a fifth of its cells missing still has all cells of several of them."""
WIDTHS = (0.05, 0.35)
"""Widths of the bins of numbers, in standard deviations of ranks, of every other group: narrow bins need fewer columns,
so that missing cells matter less, and find equal numbers; wide ones find similar ones."""
BY_CHANCE = 16.0
"""Rows that share a hash by chance, on average: a group is complete when it is expected to have no more."""
MOST_SHARED = 64
"""Rows with the same hash that are compared, the first ones of the table: enough for the nearest if all are alike."""
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Group(NamedTuple):
    """Some columns, and the rows of a table in the order of the hash of their cells."""

    columns: Rows
    borders: tuple[float, Floats]
    """The width of bins, and the offset of those of each column; NaN for classes."""
    hashes: Hashes
    """Ascending, of the rows that have all cells of the group."""
    rows: Rows
    """The rows in that order; those with the same hash in the order of the table."""


class RowHashes(NamedTuple):
    """The rows of a table by the hashes of several groups of columns."""

    groups: tuple[Group, ...]
    placed: Floats
    classes: Flags
    telling: Rows
    """The columns from the most to the least telling."""

    def candidates(self, points: Floats, able: Flags, most: float) -> tuple[Rows, Rows]:
        """Return pairs of a row and a row of the table with a common hash, in the order of both.

        Parameters
        ----------
        points : array
            Coordinates of the rows to search for, as the table's: ranks of numbers and codes; NaN where missing.
        able : array of bool
            Which of them to search for.
        most : float
            The largest sum of squared differences; a difference of classes counts 1.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> table = rng.uniform(-1.7, 1.7, (9000, 6))
        >>> hashes = hash_rows(table, np.zeros(6, bool))
        >>> row, other = hashes.candidates(table[40:42], np.array([True, True]), 1e-3)
        >>> row.tolist(), other.tolist()
        ([0, 1], [40, 41])
        """
        found = []
        for group in self.groups:
            asked, hashes = _hash(points, group.columns, group.borders)
            asked, hashes = asked[able[asked]], hashes[able[asked]]
            low = np.searchsorted(group.hashes, hashes, "left")
            counts = np.minimum(np.searchsorted(group.hashes, hashes, "right") - low, MOST_SHARED)
            first = np.cumsum(counts) - counts
            place = np.arange(counts.sum()) - np.repeat(first - low, counts)
            row, other = self._near(points, np.repeat(asked, counts), group.rows[place], most)
            found.append(row * len(self.placed) + other)
        return np.divmod(np.unique(np.concatenate([np.zeros(0, np.intp), *found])), len(self.placed))

    def _near(self, points: Floats, row: Rows, other: Rows, most: float) -> tuple[Rows, Rows]:
        """Drop pairs as soon as they differ too much: most do in the first column or two."""
        gap = np.zeros(len(row))
        for j in self.telling:
            away = points[row, j] - self.placed[other, j]
            gap += np.nan_to_num(away != 0.0 if self.classes[j] else away * away) * ~np.isnan(away)
            kept = gap <= most
            row, other, gap = row[kept], other[kept], gap[kept]
        return row, other


def hash_rows(placed: Floats, classes: Flags) -> RowHashes:
    """Hash the rows of a table.

    Parameters
    ----------
    placed : array
        Standardized ranks of numbers, and codes of classes: rows x columns, NaN where missing.
    classes : array of bool
        Which columns hold codes.
    """
    rng = np.random.default_rng(0)
    surprises, observed = [_surprises(placed, classes, width) for width in WIDTHS], (~np.isnan(placed)).mean(0)
    enough = np.log(len(placed) / BY_CHANCE)
    groups = {}
    for i in range(N_GROUPS):
        columns = _choose(surprises[i % len(WIDTHS)], observed, enough, rng)
        offsets = np.where(classes[columns], np.nan, rng.random(len(columns)))
        if not len(columns) or (np.isnan(offsets).all() and (tuple(columns.tolist()), 0) in groups):
            continue  # without numbers, the same columns give the same hashes
        borders = (WIDTHS[i % len(WIDTHS)], offsets)
        rows, hashes = _hash(placed, columns, borders)
        order = np.argsort(hashes, kind="stable")
        key = (tuple(columns.tolist()), 0 if np.isnan(offsets).all() else i + 1)
        groups[key] = Group(columns, borders, hashes[order], rows[order])
    return RowHashes(tuple(groups.values()), placed, classes, np.argsort(-observed * surprises[0]))


def _choose(surprises: Floats, observed: Floats, enough: float, rng: np.random.Generator) -> Rows:
    """Choose columns at random, complete and telling ones more often, until few rows agree in them by chance."""
    weights = observed**2 * surprises
    left = np.flatnonzero(weights > 0.0)
    if not len(left):
        return np.zeros(0, np.intp)
    # Weighted sampling without replacement: the order of exponential times.
    order = left[np.argsort(rng.exponential(size=len(left)) / weights[left])]
    n = int(np.searchsorted(np.cumsum(surprises[order]), enough)) + 1
    return np.sort(order[:n])


def _surprises(placed: Floats, classes: Flags, width: float) -> Floats:
    """Return minus the log-probability that two rows agree in the code or the bin, for each column."""
    found = np.zeros(placed.shape[1])
    for j, own in enumerate(placed.T):
        seen = own[~np.isnan(own)]
        if len(seen):
            counts = np.unique(seen if classes[j] else np.floor(seen / width), return_counts=True)[1]
            found[j] = -np.log(float(((counts / len(seen)) ** 2).sum()))
    return found


def _hash(points: Floats, columns: Rows, borders: tuple[float, Floats]) -> tuple[Rows, Hashes]:
    """Return the rows that have all cells of a group, and their hashes."""
    some, (width, offsets) = points[:, columns], borders
    rows = np.flatnonzero(~np.isnan(some).any(1))
    some = some[rows]
    bins = np.where(np.isnan(offsets), some, np.floor(some / width + np.nan_to_num(offsets))).astype(np.int64)
    mixed = np.zeros(len(rows), np.uint64)
    with np.errstate(over="ignore"):
        for own in bins.T:
            mixed = (mixed ^ own.astype(np.uint64)) * MULTIPLIER
            mixed ^= mixed >> np.uint64(29)
    return rows, mixed
