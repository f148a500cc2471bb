"""How strongly the columns of a table go together, in pairs, whatever their kinds.

Numbers and ordered classes: Spearman's rank correlation, from -1 to 1. Classes with classes: Cramér's V; a number with
classes: the correlation ratio of its ranks; both from 0 to 1, and corrected for what chance alone gives (Bergsma 2013;
Kelley 1935). Each pair is measured on the rows where both are known, of at most some thousand. All pairs come from a
few products of matrices: a column is a column of ranks, or one of flags for each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenly.report.cells import Cells
from evenly.tables import Floats

MOST_ROWS = 4_000
MOST_COLUMNS = 200
MOST_CLASSES = 20
"""The rarer classes of a column count as one."""
MOST_IN_MAP = 30
"""Columns of a heat map; of more, the strongest pairs are listed."""
MOST_PAIRS = 20
FEWEST_ROWS = 10
"""A pair that is known together in fewer rows has no association."""


class PairStrength(NamedTuple):
    """Two columns and how strongly they go together."""

    first: str
    second: str
    strength: float
    measure: str


@dataclass(frozen=True)
class Associations:
    """The columns that were compared, and the strength of every pair, NaN where unknown."""

    names: tuple[str, ...]
    strength: Floats
    signed: tuple[bool, ...]
    """Of each column, whether it has an order."""
    n_rows: int
    n_left_out: int
    """Columns that were not compared, because there are too many."""

    def strongest(self, most: int = MOST_PAIRS) -> list[PairStrength]:
        """Return the pairs that go together most strongly."""
        rows, columns = np.triu_indices(len(self.names), 1)
        sizes = np.abs(self.strength[rows, columns])
        order = [k for k in np.argsort(-np.nan_to_num(sizes, nan=-1.0), kind="stable")[:most] if sizes[k] > 0.0]
        return [
            PairStrength(
                self.names[i], self.names[j], float(self.strength[i, j]), _measure(self.signed[i], self.signed[j])
            )
            for i, j in ((rows[k], columns[k]) for k in order)
        ]


def _measure(*signed: bool) -> str:
    return {2: "rank correlation", 1: "correlation ratio", 0: "Cramér’s V"}[sum(signed)]


def find_associations(columns: Sequence[Cells]) -> Associations | None:
    """Return how strongly columns go together; None if there are no two to compare.

    Examples
    --------
    >>> from evenly.report.cells import read_cells
    >>> from evenly.tables import infer_schema
    >>> x = np.arange(60.0) ** 2 + 0.5
    >>> table = np.column_stack([x, -np.log(x), np.where(x > 800, "old", "young")]).astype(object)
    >>> table[:, :2] = table[:, :2].astype(float)
    >>> found = find_associations(read_cells(table, None, None, infer_schema(table)))
    >>> found.strength[0].round(2).tolist(), found.signed
    ([1.0, -1.0, 0.86], (True, True, False))
    """
    usable = [one for one in columns if one.column is not None and _varies(one.values)]
    if len(usable) < 2:
        return None
    chosen = usable[:MOST_COLUMNS]
    n_rows = len(chosen[0].values)
    rows = np.unique(np.rint(np.linspace(0, n_rows - 1, min(n_rows, MOST_ROWS))).astype(np.intp))
    signed = tuple(not (one.column and one.column.has_classes) or one.column.kind == "ordinal" for one in chosen)
    numbers = [j for j, ordered in enumerate(signed) if ordered]
    classes = [j for j, ordered in enumerate(signed) if not ordered]
    strength = np.full((len(chosen), len(chosen)), np.nan)
    ranks = np.column_stack([np.zeros((len(rows), 0)), *(_ranks(chosen[j].values[rows]) for j in numbers)])
    flags = [_flags(chosen[j].values[rows]) for j in classes]
    strength[np.ix_(numbers, numbers)] = _correlate(ranks)
    strength[np.ix_(classes, classes)] = _cramers_v(flags)
    strength[np.ix_(numbers, classes)] = _correlation_ratio(ranks, flags)
    strength[np.ix_(classes, numbers)] = strength[np.ix_(numbers, classes)].T
    np.fill_diagonal(strength, 1.0)
    names = tuple(one.name for one in chosen)
    return Associations(names, strength, signed, len(rows), len(usable) - len(chosen))


def _varies(values: Floats) -> bool:
    seen = values[~np.isnan(values)]
    return len(seen) >= FEWEST_ROWS and bool(seen.min() < seen.max())


def _ranks(values: Floats) -> Floats:
    """Return the ranks of the known values, equal ones sharing their mean, centred and divided by their spread."""
    known = ~np.isnan(values)
    ranks = np.full(len(values), np.nan)
    if known.any():
        _, inverse, counts = np.unique(values[known], return_inverse=True, return_counts=True)
        own = (np.cumsum(counts) - 0.5 * (counts - 1.0))[inverse]
        ranks[known] = (own - own.mean()) / (own.std() or 1.0)
    return ranks


def _flags(values: Floats) -> Floats:
    """Return a column of flags for each class, the rarer ones together; no flag where the cell is missing."""
    codes, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    counts[np.isnan(codes)] = 0
    place = np.empty(len(codes), np.intp)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(codes))
    flags = np.zeros((len(values), min(int((counts > 0).sum()), MOST_CLASSES)))
    known = np.flatnonzero(~np.isnan(values))
    if len(known):
        flags[known, np.minimum(place[inverse[known]], flags.shape[1] - 1)] = 1.0
    return flags


def _correlate(ranks: Floats) -> Floats:
    """Return the correlation of every pair of columns over the rows where both are known."""
    known = (~np.isnan(ranks)).astype(np.float64)
    zeros = np.nan_to_num(ranks)
    n, first, squares, products = known.T @ known, zeros.T @ known, (zeros**2).T @ known, zeros.T @ zeros
    with np.errstate(all="ignore"):
        covariance = products / n - first * first.T / n**2
        variance = squares / n - (first / n) ** 2
        found = covariance / np.sqrt(variance * variance.T)
    return np.where((n >= FEWEST_ROWS) & (variance > 1e-12) & (variance.T > 1e-12), np.clip(found, -1.0, 1.0), np.nan)


def _cramers_v(flags: Sequence[Floats]) -> Floats:
    found = np.full((len(flags), len(flags)), np.nan)
    if not flags:
        return found
    ends = np.cumsum([0, *(one.shape[1] for one in flags)])
    stacked = np.concatenate(flags, axis=1).astype(np.float32)
    tables = (stacked.T @ stacked).astype(np.float64)
    for i in range(len(flags)):
        for j in range(i):
            found[i, j] = found[j, i] = _cramers_v_of(tables[ends[i] : ends[i + 1], ends[j] : ends[j + 1]])
    return found


def _cramers_v_of(table: Floats) -> float:
    table = table[table.any(1)][:, table.any(0)]
    n = table.sum()
    if n < FEWEST_ROWS or min(table.shape) < 2:
        return np.nan
    expected = np.outer(table.sum(1), table.sum(0)) / n
    phi = float(((table - expected) ** 2 / expected).sum() / n)
    k, m = table.shape
    corrected = max(0.0, phi - (k - 1.0) * (m - 1.0) / (n - 1.0))
    least = min(k - (k - 1.0) ** 2 / (n - 1.0), m - (m - 1.0) ** 2 / (n - 1.0)) - 1.0
    return float(np.sqrt(min(corrected / least, 1.0))) if least > 0.0 else np.nan


def _correlation_ratio(ranks: Floats, flags: Sequence[Floats]) -> Floats:
    """Return, for each column of ranks and each of classes, how much of the variance the classes explain."""
    known, zeros = (~np.isnan(ranks)).astype(np.float64), np.nan_to_num(ranks)
    found = np.full((ranks.shape[1], len(flags)), np.nan)
    for j, own in enumerate(flags):
        counts, sums, squares = known.T @ own, zeros.T @ own, (zeros**2).T @ own.sum(1)
        n, total, k = counts.sum(1), sums.sum(1), (counts > 0.0).sum(1)
        with np.errstate(all="ignore"):
            whole = squares - total**2 / n
            within = squares - np.where(counts > 0.0, sums**2 / counts, 0.0).sum(1)
            explained = 1.0 - (within / (n - k)) / (whole / (n - 1.0))
        usable = (n >= FEWEST_ROWS) & (k > 1) & (n > k) & (whole > 1e-9)
        found[:, j] = np.where(usable, np.sqrt(np.clip(explained, 0.0, 1.0)), np.nan)
    return found
