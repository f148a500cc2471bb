"""What is missing together: the patterns of missing cells in rows, and pairs of columns that are missing together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenly.report.cells import Cells, Flags
from evenly.tables import Floats

MOST_PATTERNS = 10
MOST_COLUMNS = 30
"""Columns in the matrix of patterns, those with most missing cells."""
MOST_PAIRS = 8
CLEARLY = 3.0
"""Standard errors of a correlation by which two columns must be missing together to be named."""


class Pattern(NamedTuple):
    """Columns that are missing in the same rows, and no others of those shown."""

    missing: tuple[bool, ...]
    """Of each shown column."""
    n_rows: int


class Pair(NamedTuple):
    """Two columns, in how many rows both are missing, and how that compares with chance."""

    first: str
    second: str
    n_both: int
    expected: float
    """The number of rows if one had nothing to do with the other."""
    correlation: float
    """Of what is missing: 1 if always together, 0 if independent, below 0 if rather not together."""


@dataclass(frozen=True)
class Missingness:
    """The pattern of missing cells."""

    n_complete: int
    """Rows without a missing cell."""
    columns: tuple[str, ...]
    """Those of the patterns, in the table's order."""
    n_columns: int
    """All columns with a missing cell."""
    patterns: tuple[Pattern, ...]
    """The most frequent ones, the complete rows among them."""
    n_patterns: int
    pairs: tuple[Pair, ...]
    """Those that are missing together clearly more often than by chance."""


def find_missingness(columns: Sequence[Cells]) -> Missingness | None:
    """Return the pattern of missing cells; None if nothing is missing.

    Examples
    --------
    >>> from evenly.report.cells import read_cells
    >>> from evenly.tables import infer_schema
    >>> nan = np.nan
    >>> table = np.array([[1.5, 2.5, 1.0], [nan, nan, 2.0], [3.5, 4.5, 7.5], [nan, nan, 3.5], [nan, 1.5, 8.5]])
    >>> found = find_missingness(read_cells(table, None, None, infer_schema(table)))
    >>> found.columns, [(one.missing, one.n_rows) for one in found.patterns]
    (('x0', 'x1'), [((False, False), 2), ((True, True), 2), ((True, False), 1)])
    >>> found.n_complete, found.pairs  # in so few rows it may be chance
    (2, ())
    """
    with_missing = [one for one in columns if one.missing.any()]
    if not with_missing:
        return None
    counts = np.array([int(one.missing.sum()) for one in with_missing])
    shown = [with_missing[j] for j in np.sort(np.argsort(-counts, kind="stable")[:MOST_COLUMNS])]
    first, sizes = _group(with_missing)
    complete = int(sizes[~np.array([one.missing[first] for one in with_missing]).any(0)].sum())
    first, sizes = _group(shown)
    matrix = np.array([one.missing[first] for one in shown]).T
    order = np.lexsort((first, -sizes))
    patterns = tuple(Pattern(tuple(matrix[k].tolist()), int(sizes[k])) for k in order[:MOST_PATTERNS])
    names = tuple(one.name for one in shown)
    pairs = _pairs(names, matrix.astype(np.float64), sizes)
    return Missingness(complete, names, len(with_missing), patterns, len(sizes), pairs)


def _group(columns: Sequence[Cells]) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], Floats]:
    """Return the first row of each pattern, and how many rows have it.

    Patterns are told apart by sums of random 64-bit numbers, one a column: sorting these is quick, and two patterns
    with the same sum do not happen.
    """
    weights = np.random.default_rng(0).integers(1, 2**63, len(columns), dtype=np.uint64)
    sums = np.zeros(len(columns[0].missing), np.uint64)
    for one, weight in zip(columns, weights, strict=True):
        sums[one.missing] += weight
    _, first, sizes = np.unique(sums, return_index=True, return_counts=True)
    return first, sizes.astype(np.float64)


def _pairs(names: Sequence[str], patterns: Floats, sizes: Floats) -> tuple[Pair, ...]:
    n = sizes.sum()
    both = patterns.T @ (patterns * sizes[:, None])
    alone = np.diagonal(both)
    spread = np.sqrt(alone * (1.0 - alone / n))
    expected = np.outer(alone, alone) / n
    with np.errstate(all="ignore"):
        correlation = np.where(np.outer(spread, spread) > 0.0, (both - expected) / np.outer(spread, spread), 0.0)
    rows, others = np.triu_indices(len(names), 1)
    together = correlation[rows, others]
    order = np.argsort(-together, kind="stable")[:MOST_PAIRS]
    return tuple(
        Pair(names[i], names[j], round(float(both[i, j])), float(expected[i, j]), float(correlation[i, j]))
        for i, j in zip(rows[order], others[order], strict=True)
        if correlation[i, j] * np.sqrt(n) > CLEARLY
    )


def rows_with(columns: Sequence[Cells]) -> Flags:
    """Return which rows have an imputed cell."""
    found = np.zeros(len(columns[0].missing), bool)
    for one in columns:
        found |= one.is_filled
    return found
