"""The Gaussian expert: a joint normal of all columns, and the conditional distribution of a row's missing cells.

A network needs many rows to learn from; linear relations between columns take few, and where columns nearly repeat each
other no network finds them as exactly. The features are a number, its rank among the column's numbers, and every class
(`ModelledColumn.gaussian_features`). They are fitted by expectation-maximization, so that rows with missing cells count
for what they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.imputation.encoding import EncodedTable
from evenly.imputation.predictive import Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

MOST_FEATURES = 500
"""A table with more features is left to the network: every row would cost the cube of its missing ones."""
MOST_ROWS = 6_000
"""Rows that it is fitted on at most: linear relations are known from these."""
N_STEPS, TOLERANCE = 30, 2e-3
"""Steps of expectation-maximization at most, and the largest change of a covariance that ends them."""
PRIORS = (1.0, 5.0, 25.0, 125.0)
"""Prior strengths that are tried on validation cells, in pseudo-rows of independent columns."""
PRIOR = 5.0
"""The prior strength where none is tried."""
FEW_ROWS = 2_000
"""With more rows the prior hardly matters, and none is tried."""
FARTHEST_LOSS = 25.0
"""Squared standard deviations that a cell counts for at most where the prior is chosen: no cell decides alone."""
BLOCK = 4_000_000
"""Numbers of the matrices that are inverted at once, at most."""


class Gaussian(NamedTuple):
    """A joint normal of standardized features: their means, and the inverse of their covariances."""

    mean: Floats
    precision: Floats


def fit_gaussian(table: Floats, prior: float = PRIOR, start: Gaussian | None = None) -> Gaussian:
    """Fit a joint normal to rows with missing features (NaN), which are in standard deviations from their means.

    Parameters
    ----------
    prior : float
        The prior strength, in pseudo-rows of independent features.
    start : Gaussian, optional
        One of nearly the same table, to go on from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2_000)
    >>> table = np.column_stack([x, 0.8 * x + 0.6 * rng.normal(size=2_000)])
    >>> table[:500, 1] = np.nan
    >>> np.linalg.inv(fit_gaussian(table).precision).round(1)
    array([[1. , 0.8],
           [0.8, 1. ]])
    """
    n, width = table.shape
    known = ~np.isnan(table)
    if start is None:
        filled, counts = np.where(known, table, 0.0), known.astype(float)
        pairs = counts.T @ counts
        found, axes = np.linalg.eigh(filled.T @ filled / np.maximum(pairs, 1.0) * (pairs / (pairs + prior)))
        # Covariances of pairs, each of other rows, need not be those of any table.
        start = Gaussian(np.zeros(width), np.linalg.inv((axes * np.maximum(found, 1e-2)) @ axes.T))
    gaussian, covariance = start, np.linalg.inv(start.precision)
    for _ in range(N_STEPS):
        filled, spread = np.where(known, table, 0.0), np.zeros(width * width)
        for rows, features, expected, left in _expect(gaussian, table):
            filled[rows[:, None], features] = expected
            pairs = features[:, :, None] * width + features[:, None, :]
            spread += np.bincount(pairs.ravel(), left.ravel(), width * width)
        mean = filled.sum(0) / (n + prior)
        filled -= mean
        fresh = (filled.T @ filled + spread.reshape(width, width) + prior * np.eye(width)) / (n + prior)
        moved = float(np.abs(fresh - covariance).max())
        covariance, gaussian = fresh, Gaussian(mean, np.linalg.inv(fresh))
        if moved < TOLERANCE:
            break
    return gaussian


def expect(gaussian: Gaussian, table: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of every missing feature, given those that its row has; NaN at the others."""
    means, stds = np.full(table.shape, np.nan), np.full(table.shape, np.nan)
    for rows, features, expected, left in _expect(gaussian, table):
        means[rows[:, None], features] = expected
        stds[rows[:, None], features] = np.sqrt(np.maximum(np.diagonal(left, axis1=1, axis2=2), 0.0))
    return means, stds


def _expect(gaussian: Gaussian, table: Floats) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Go through the rows with missing features, those with as many together: rows, features, means, covariances.

    The covariance of some features given all others is the inverse of their part of the precision: as large as what
    is missing, not as what is known. Sums of products row by row, so that a row does not go by those around it.
    """
    missing = np.isnan(table)
    away = np.where(missing, 0.0, table - gaussian.mean)
    counts = missing.sum(1)
    for k in np.unique(counts[counts > 0]):
        some = np.flatnonzero(counts == k)
        size = max(1, BLOCK // int(k * max(k, table.shape[1])))
        for rows in np.split(some, range(size, len(some), size)):
            features = np.nonzero(missing[rows])[1].reshape(len(rows), k)
            left = np.linalg.inv(gaussian.precision[features[:, :, None], features[:, None, :]])
            pull = np.einsum("rkf,rf->rk", gaussian.precision[features], away[rows])
            yield rows, features, gaussian.mean[features] - np.einsum("rkl,rl->rk", left, pull), left


# --- of a table ---------------------------------------------------------------------------------------------------


def feature_owners(table: EncodedTable) -> npt.NDArray[np.intp]:
    """Return which column each feature of the joint normal belongs to."""
    widths = [one.spec.n_gaussian for one in table.columns]
    return np.repeat(np.arange(len(widths)), widths)


def gaussian_features(table: EncodedTable) -> Floats:
    """Return the features of the joint normal: rows x features, NaN where missing."""
    return np.concatenate([one.spec.gaussian_features(one.values) for one in table.columns], axis=1)


def predict_cells(gaussian: Gaussian, table: EncodedTable, features: Floats | None = None) -> list[Predictive | None]:
    """Return the distributions of each column's missing cells given the others of their rows; NaN at known cells.

    Parameters
    ----------
    features : array, optional
        Of the joint normal, if they are at hand; some may be hidden in them.
    """
    means, stds = expect(gaussian, gaussian_features(table) if features is None else features)
    found, at = [], 0
    for one in table.columns:
        until = at + one.spec.n_gaussian
        found.append(one.spec.from_gaussian(means[:, at:until], stds[:, at:until]))
        at = until
    return found


class Validated(NamedTuple):
    """A joint normal of the whole table, and what normals without some hidden cells predict for these."""

    gaussian: Gaussian | None
    predictions: list[list[Predictive | None]]
    """By set of hidden cells and column: those of the column's own hidden cells."""


def fit_validated(table: EncodedTable, hidden: Sequence[Flags], rng: np.random.Generator) -> Validated:
    """Fit a joint normal to a table, and predict cells by normals that were fitted without them.

    Parameters
    ----------
    hidden : sequence of arrays
        Sets of cells: rows x columns, True where hidden.
    """
    owners = feature_owners(table)
    if len(owners) > MOST_FEATURES or not any(one.any() for one in hidden):
        return Validated(None, [[None] * len(table.columns) for _ in hidden])
    n_rows = len(hidden[0])
    some = np.arange(n_rows)
    if n_rows > MOST_ROWS:
        some = np.sort(rng.choice(n_rows, MOST_ROWS, replace=False))
        # Only rows to fit on and rows to predict: the others of a million need not be encoded.
        needed = np.flatnonzero(np.isin(np.arange(n_rows), some) | np.any([one.any(1) for one in hidden], axis=0))
        hidden, some, table = [one[needed] for one in hidden], np.searchsorted(needed, some), table.rows(needed)
    features = gaussian_features(table)
    by_feature = [one[:, owners] for one in hidden]
    without, prior = _choose_prior(features, by_feature, some)
    predictions = []
    for cells, own, gaussian in zip(hidden, by_feature, without, strict=True):
        rows = np.flatnonzero(cells.any(1))
        found = predict_cells(gaussian, table, np.where(own, np.nan, features)[rows])
        predictions.append([None if one is None else one.take(cells[rows, j]) for j, one in enumerate(found)])
    return Validated(fit_gaussian(features[some], prior, without[0]), predictions)


def _choose_prior(
    features: Floats, hidden: Sequence[Flags], some: npt.NDArray[np.intp]
) -> tuple[list[Gaussian], float]:
    """Choose the prior strength by the squared error of hidden cells; returns the normals without these, too."""
    shown = [np.where(one, np.nan, features) for one in hidden]
    if len(features) >= FEW_ROWS:
        return [fit_gaussian(one[some], PRIOR) for one in shown], PRIOR
    start: Sequence[Gaussian | None] = [None] * len(hidden)
    tried = []
    for prior in PRIORS:
        fitted = [fit_gaussian(one, prior, before) for one, before in zip(shown, start, strict=True)]
        lost = [
            np.minimum((expect(gaussian, one)[0] - features)[own & ~np.isnan(features)] ** 2, FARTHEST_LOSS)
            for gaussian, one, own in zip(fitted, shown, hidden, strict=True)
        ]
        tried.append((float(np.concatenate(lost).mean()), fitted, prior))
        start = fitted
    return min(tried, key=lambda one: one[0])[1:]
