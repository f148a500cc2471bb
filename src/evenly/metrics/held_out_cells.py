"""Which cells to hide: the one place that chooses validation cells, and cells to score an imputation on.

Known cells come in as flags (True = known), hidden ones go out as flags of the same shape. Every choice goes column by
column with the generator it is given, so the same seed hides the same cells. Masked training alone hides cells
elsewhere, in `models`: it draws a new mask for every batch, on the device and inside a compiled step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

SHARE, SMALL_SHARE, SMALL = 0.05, 0.1, 2_000
"""Share of a column's observed cells that are held out for validation; the larger one below this many rows."""
MOST = 2_000
"""Validation cells of a column at most: they give its mean error to about 2 %."""
FEWEST = 10
"""A column with fewer observed cells keeps them all: a held-out error would be noise."""


def count_held(observed: Flags, share: float | None = None) -> Places:
    """Return how many cells of each column `hold_out` chooses.

    Examples
    --------
    >>> count_held(np.ones((150, 2), bool)), count_held(np.ones((9, 1), bool))
    (array([15, 15]), array([0]))
    """
    most = MOST if share is None else len(observed)
    if share is None:
        share = SMALL_SHARE if len(observed) < SMALL else SHARE
    n_observed = observed.sum(0)
    wanted = np.minimum(np.minimum(most, n_observed - 2), np.rint(share * n_observed).astype(np.intp))
    return np.where(n_observed >= FEWEST, wanted, 0)


def hold_out(observed: Flags, rng: np.random.Generator, *, share: float | None = None) -> Flags:
    """Choose validation cells: a share of each column's observed ones, by default as many as early stopping needs.

    At least two cells of a column stay; of a column with fewer than ten, all do.

    Examples
    --------
    >>> hold_out(np.ones((20, 2), bool), np.random.default_rng(0), share=0.99).sum(0)
    array([18, 18])
    """
    return _draw(observed, count_held(observed, share), rng)


def hide_share(known: Flags, share: float, rng: np.random.Generator) -> Flags:
    """Hide a share of each column's known cells, completely at random, rounded to a whole number of cells.

    Examples
    --------
    >>> known = np.array([[True, True], [True, False], [True, False], [True, False]])
    >>> hide_share(known, 0.5, np.random.default_rng(0)).sum(0)
    array([2, 0])
    """
    return _draw(known, np.rint(share * known.sum(0)).astype(np.intp), rng)


def hide_keeping_two(values: Floats, share: float, rng: np.random.Generator) -> Flags:
    """Hide a share of one column's known cells, at least one, but leave two different values visible.

    Examples
    --------
    >>> values = np.array([0.0, 0.0, np.nan, 1.0])
    >>> hidden = hide_keeping_two(values, 0.9, np.random.default_rng(0))
    >>> int(hidden.sum()), bool(hidden[2]), sorted(values[~hidden & ~np.isnan(values)].tolist())
    (1, False, [0.0, 1.0])
    """
    order = rng.permutation(np.flatnonzero(~np.isnan(values)))
    hidden = np.zeros(len(values), bool)
    if len(order) > 2:
        other = int(np.argmax(values[order] != values[order[0]]))
        order = np.delete(order, [0, other])
        hidden[order[: max(1, round(share * (len(order) + 2)))]] = True
    return hidden


def hide_by_rank(values: Floats, share: float, rng: np.random.Generator, *, driver: int | None = None) -> Flags:
    """Hide a share of each column's known cells, not at random: the probability grows with a rank.

    It grows in a straight line, from 1/3 of the share at the lowest rank to 5/3 at the highest.

    Parameters
    ----------
    values : array, rows x columns
        NaN where a cell is missing.
    driver : int, optional
        The column whose values decide about the others, and which stays whole (missing at random, MAR). Without one,
        every cell's own value decides (missing not at random, MNAR).

    Examples
    --------
    >>> values = np.arange(2000.0).reshape(1000, 2)
    >>> hidden = hide_by_rank(values, 0.3, np.random.default_rng(0), driver=0)
    >>> hidden.sum(0), bool(hidden[500:, 1].sum() > 1.5 * hidden[:500, 1].sum())
    (array([  0, 300]), True)
    """
    hidden = np.zeros(values.shape, bool)
    for j in range(values.shape[1]):
        if j != driver:
            rows = np.flatnonzero(~np.isnan(values[:, j]))
            by = values[rows, j if driver is None else driver]
            hidden[rows[draw_by_rank(rank(by), share, rng)], j] = True
    return hidden


def rank(values: Floats) -> Floats:
    """Return ranks between 0 and 1 whose mean is 1/2; equal values share one, and missing ones are in the middle.

    Examples
    --------
    >>> rank(np.array([3.0, np.nan, 1.0]))
    array([0.75, 0.5 , 0.25])
    """
    ranks = np.full(len(values), 0.5)
    there = ~np.isnan(values)
    # Equal values share a rank, or the order of the rows would decide.
    _, place, counts = np.unique(values[there], return_inverse=True, return_counts=True)
    ranks[there] = ((np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1))[place]
    return ranks


def draw_by_rank(ranks: Floats, share: float, rng: np.random.Generator) -> Places:
    """Draw that share of the places, up to rounding; a higher rank is drawn more often.

    This is systematic sampling along the cumulative probabilities of the places in random order: each place has its
    own probability, and how many are drawn does not depend on chance.

    Examples
    --------
    >>> len(draw_by_rank(np.linspace(0.0, 1.0, 50), 0.2, np.random.default_rng(0)))
    10
    """
    steepness = min(2 / 3, (1 - share) / share)  # no probability above 1
    order = rng.permutation(len(ranks))
    passed = np.cumsum(share * (1 + steepness * (2 * ranks[order] - 1)))
    steps = np.floor(np.concatenate([[0.0], passed]) + rng.random())
    return order[np.diff(steps) > 0]


def _draw(known: Flags, counts: Places, rng: np.random.Generator) -> Flags:
    """Draw so many of each column's known cells, without replacement."""
    drawn = np.zeros(known.shape, bool)
    for j, n in enumerate(counts):
        drawn[rng.choice(np.flatnonzero(known[:, j]), n, replace=False), j] = True
    return drawn
