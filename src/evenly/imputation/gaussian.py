"""The Gaussian expert: a joint normal of all columns, and the conditional distribution of a row's missing cells.

Networks need many rows; linear relations can be learned from few, and more accurately where columns nearly determine
each other. The features of a column are the number and its rank among the column's numbers, or its one-hot classes
(`ModelledColumn.gaussian_features`). The normal is fitted by expectation-maximization, which uses the observed cells of
incomplete rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.imputation.encoding import EncodedTable
from evenly.imputation.predictors import Pass, plan_passes
from evenly.predictive import Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

MOST_FEATURES = 500
"""Not fitted to tables with more features: a row costs the cube of the number of its missing features."""
MOST_ROWS = 6_000
"""The largest number of rows to fit on: enough for linear relations."""
N_STEPS, TOLERANCE = 30, 2e-3
"""Expectation-maximization stops after 30 steps, or when no covariance changes by more than 0.002."""
PRIORS = (1.0, 5.0, 25.0, 125.0)
"""Candidates for the prior strength, in pseudo-rows of independent columns; chosen on validation cells."""
PRIOR = 5.0
"""The prior strength for many rows, where it is not chosen."""
FEW_ROWS = 2_000
"""From this number of rows the prior hardly matters, and is not chosen on validation cells."""
FARTHEST_LOSS = 25.0
"""Limit on a cell's squared error, in squared standard deviations, in the choice of the prior: no cell dominates."""
BLOCK = 4_000_000
"""The largest number of matrix entries that are inverted at once."""


class Gaussian(NamedTuple):
    """A joint normal of standardized features: mean vector and precision matrix."""

    mean: Floats
    precision: Floats

    def check(self, n_features: int) -> None:
        """Raise an error if this is no normal of so many features."""
        if self.mean.shape != (n_features,) or self.precision.shape != (n_features, n_features):
            raise ValueError(
                f"gaussian_precision: an array of shape {self.precision.shape}, expected {n_features} rows"
            )
        if any(one.dtype != np.float64 or not np.isfinite(one).all() for one in self):
            raise ValueError("gaussian_precision or gaussian_mean: not finite, or not in double precision")
        if not np.allclose(self.precision, self.precision.T) or np.linalg.eigvalsh(self.precision).min() <= 0.0:
            raise ValueError("gaussian_precision: a matrix that is not symmetric and positive definite")


def fit_gaussian(table: Floats, prior: float = PRIOR, start: Gaussian | None = None) -> Gaussian:
    """Fit a joint normal to standardized features, of which some are missing (NaN).

    Parameters
    ----------
    prior : float
        The prior strength, in pseudo-rows of independent features.
    start : Gaussian, optional
        Initial value, such as the fit to a similar table.

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
        # Pairwise covariances, each from other rows, need not be positive definite.
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
    """Return the conditional mean and standard deviation of every missing feature given its row; NaN at the others."""
    means, stds = np.full(table.shape, np.nan), np.full(table.shape, np.nan)
    for rows, features, expected, left in _expect(gaussian, table):
        means[rows[:, None], features] = expected
        stds[rows[:, None], features] = np.sqrt(np.maximum(np.diagonal(left, axis1=1, axis2=2), 0.0))
    return means, stds


def _expect(gaussian: Gaussian, table: Floats) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield rows, missing features, conditional means and covariances, for rows with equally many missing features.

    The conditional covariance is the inverse of the missing features' block of the precision matrix, which is as large
    as what is missing, not as what is known. Products are summed by row, so that rounding does not depend on other
    rows.
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


def first_features(table: EncodedTable) -> npt.NDArray[np.intp]:
    """Return the place of each column's first feature among those of the Gaussian expert."""
    return np.searchsorted(feature_owners(table), np.arange(len(table.columns)))


def gaussian_features(table: EncodedTable) -> Floats:
    """Return the features of the joint normal: rows x features, NaN where missing."""
    return np.concatenate([one.spec.gaussian_features(one.values) for one in table.columns], axis=1)


def predict_cells(gaussian: Gaussian, table: EncodedTable, features: Floats | None = None) -> list[Predictive | None]:
    """Return the distributions of each column's missing cells given the rest of their rows; NaN at known cells.

    Parameters
    ----------
    features : array, optional
        Features of the joint normal, if already computed; some may be hidden in them.
    """
    return from_expected(table, *expect(gaussian, gaussian_features(table) if features is None else features))


def from_expected(table: EncodedTable, means: Floats, stds: Floats) -> list[Predictive | None]:
    """Return the distributions of each column's missing cells, given what `expect` returns of their features."""
    found, at = [], 0
    for one in table.columns:
        until = at + one.spec.n_gaussian
        found.append(one.spec.from_gaussian(means[:, at:until], stds[:, at:until]))
        at = until
    return found


class Validated(NamedTuple):
    """A joint normal of the whole table, and predictions of hidden cells by normals that were fitted without them."""

    gaussian: Gaussian | None
    predictions: list[list[Predictive | None]]
    """By set of hidden cells and by column, for the column's hidden cells."""


def no_gaussian(table: EncodedTable, hidden: Sequence[Flags]) -> Validated:
    """Return what stands for a joint normal that is not fitted."""
    return Validated(None, [[None] * len(table.columns) for _ in hidden])


def fit_validated(
    table: EncodedTable, hidden: Sequence[Flags], rng: np.random.Generator, passes: Sequence[Pass] | None = None
) -> Validated:
    """Fit a joint normal to a table, and predict hidden cells by normals that were fitted without them.

    Parameters
    ----------
    hidden : sequence of arrays
        Sets of cells: rows x columns, True where hidden.
    passes : sequence of Pass, optional
        The columns that predict each column; by default, all others.
    """
    owners = feature_owners(table)
    passes = passes or plan_passes({}, table.layout.names)
    if len(owners) > MOST_FEATURES or not any(one.any() for one in hidden):
        return no_gaussian(table, hidden)
    n_rows = len(hidden[0])
    some = np.arange(n_rows)
    if n_rows > MOST_ROWS:
        some = np.sort(rng.choice(n_rows, MOST_ROWS, replace=False))
        # Encode only rows to fit on and rows to predict: tables may have millions.
        needed = np.flatnonzero(np.isin(np.arange(n_rows), some) | np.any([one.any(1) for one in hidden], axis=0))
        hidden, some, table = [one[needed] for one in hidden], np.searchsorted(needed, some), table.rows(needed)
    features = gaussian_features(table)
    by_feature = [one[:, owners] for one in hidden]
    without, prior = _choose_prior(features, by_feature, some)
    predictions = []
    for cells, own, gaussian in zip(hidden, by_feature, without, strict=True):
        rows = np.flatnonzero(cells.any(1))
        known = np.where(own, np.nan, features)[rows]
        found: dict[int, Predictive | None] = {}
        for one in passes:
            seen = known if one.shown is None else np.where(one.shown[owners], known, np.nan)
            predicted = predict_cells(gaussian, table, seen)
            found |= {j: predicted[j] for j in one.targets}
        some_cells = ((j, found[j]) for j in range(len(table.columns)))
        predictions.append([None if of is None else of.take(cells[rows, j]) for j, of in some_cells])
    return Validated(fit_gaussian(features[some], prior, without[0]), predictions)


def _choose_prior(
    features: Floats, hidden: Sequence[Flags], some: npt.NDArray[np.intp]
) -> tuple[list[Gaussian], float]:
    """Choose the prior strength by the squared error on hidden cells; return the normals fitted without them, too.

    The first set of hidden cells decides: it has cells of every column, and more sets hardly change the choice.
    """
    shown = [np.where(one, np.nan, features) for one in hidden]
    if len(features) >= FEW_ROWS:
        return [fit_gaussian(one[some], PRIOR) for one in shown], PRIOR
    gaussian: Gaussian | None = None
    tried = []
    for prior in PRIORS:
        gaussian = fit_gaussian(shown[0], prior, gaussian)
        away = (expect(gaussian, shown[0])[0] - features)[hidden[0] & ~np.isnan(features)]
        tried.append((float(np.minimum(away**2, FARTHEST_LOSS).mean()), gaussian, prior))
    _, first, prior = min(tried, key=lambda one: one[0])
    return [first, *(fit_gaussian(one, prior) for one in shown[1:])], prior
