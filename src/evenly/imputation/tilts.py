"""Tilts: regressions of a column on the others that start from what the ensemble predicts, to draw parameters from.

Multiple imputation is right if drawn tables relate their columns as the complete table does, and differ by as much as
is not known. Predictions are shrunk, as is best for a single one, and the same in every draw. So each column also has a
regression, in which the ensemble's distribution of a cell is multiplied by exp(statistics of the outcome times linear
functions of the row), and divided by the sum. The statistics of a number are its standardized value, and the squared
distance from its predicted mean, whose function is that of how much the row leaves open; those of classes are
indicators. Of a normal, this moves the mean by a linear function and changes the variance; of classes, it moves
log-odds. Atoms, bounds and whole numbers stay what they are.

Every drawn table has its own draw of the coefficients: what they would be if each row had another, random weight. The
weights are the same for all columns, so that their errors go together: if a relation is too strong in the distribution
of one column, it is so in that of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.imputation.columns import BinnedColumn, ModelledColumn, standardize
from evenly.imputation.saved_parts import part_from_tensors, parts_to_tensors, places_of
from evenly.predictive import BinnedPredictive, ClassPredictive, Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

FEWEST = 30
"""Cells of a column that a tilt is fitted to."""
CELLS_A_FEATURE, MOST_COEFFICIENTS = 10, 300
"""A tilt has at most a feature for ten cells, those that the column is correlated with most, and 300 coefficients."""
PRIOR = 1.0
"""The prior on coefficients of 0, as strong as so many cells."""
LEAST_VARIANCE = 1e-3
"""The smallest variance of a statistic, where predictions are certain."""
LEAST_OPEN = 0.05
"""The smallest conditional variance that is told apart, in squared standard deviations."""
FARTHEST = 4.0
"""Features are clipped here, in standard deviations."""
N_DRAWS = 200
"""Draws of the coefficients; more tables than this have some in common."""
N_STEPS, TOLERANCE = 50, 1e-9
"""Newton's method stops after 50 steps, or when the log-posterior grows by less than 1e-9 of a cell's."""


class Place(NamedTuple):
    """What a column is regressed on, row by row."""

    filled: Floats
    """The features of the Gaussian expert, missing ones filled by what networks expect: rows x features."""
    open: Floats
    """The conditional variance of the column's first feature by the Gaussian expert: how much the row leaves open."""

    def take(self, rows: Any) -> Place:
        """Return a selection of the rows."""
        return Place(self.filled[rows], self.open[rows])

    def designs(self, features: Array) -> tuple[Floats, Floats]:
        """Return what linear functions of the row, and of how much it leaves open, are taken of: rows x terms."""
        ones = np.ones(len(self.open))
        chosen = np.clip(self.filled[:, features], -FARTHEST, FARTHEST)
        both = np.column_stack([ones, chosen]), np.column_stack([ones, 1.0 / np.maximum(self.open, LEAST_OPEN)])
        return np.ascontiguousarray(both[0]), np.ascontiguousarray(both[1])  # or rounding would depend on the layout


class Statistic(NamedTuple):
    """What a log-probability may be moved by: one number for each outcome."""

    values: Floats
    """Rows x outcomes."""
    design: int
    """Of which of `Place.designs` its factor is a linear function."""


def statistics_of(spec: ModelledColumn, shares: Floats) -> list[Statistic]:
    """Return the statistics of a column's outcomes, given their probabilities."""
    if isinstance(spec, BinnedColumn):
        values = np.broadcast_to(standardize(np.asarray(spec.bins.mean), spec.mean, spec.std), shares.shape)
        return [Statistic(values, 0), Statistic((values - (shares * values).sum(1)[:, None]) ** 2, 1)]
    indicators = np.eye(shares.shape[1])[1:]
    return [Statistic(np.broadcast_to(one, shares.shape), 0) for one in indicators]


@dataclass(frozen=True)
class Tilt:
    """The regression of a column."""

    features: Array
    """Which of the Gaussian expert's features it has."""
    coefficients: Floats
    """Of each statistic in turn: a constant, and one for each other term of its design."""
    draws: Floats
    """How far draws of the coefficients are from them: draws x coefficients."""

    def drawn(self, i: int) -> Tilt:
        """Return the tilt with the i-th draw of its coefficients."""
        return replace(self, coefficients=self.coefficients + self.draws[i])

    def apply(self, spec: ModelledColumn, found: Predictive, place: Place) -> Predictive:
        """Return tilted distributions of cells."""
        assert isinstance(found, (BinnedPredictive, ClassPredictive))
        statistics = statistics_of(spec, found.probabilities)
        return found.tilted(_log_factors(statistics, place.designs(self.features), self.coefficients))

    def check(self, spec: ModelledColumn, n_features: int) -> None:
        """Raise an error if this is no tilt of the column."""
        n, whole = len(self.coefficients), self.features.dtype.kind == "i"
        if not whole or self.features.ndim != 1 or not ((self.features >= 0) & (self.features < n_features)).all():
            raise ValueError("tilts: features that there are not")
        shapes = (self.coefficients.shape, self.draws.shape)
        sound = all(one.dtype == np.float64 and np.isfinite(one).all() for one in (self.coefficients, self.draws))
        nowhere = Place(np.zeros((0, n_features)), np.zeros(0)).designs(self.features)
        sizes = _sizes(statistics_of(spec, np.ones((0, spec.n_outcomes))), nowhere)
        if shapes != ((n,), (N_DRAWS, n)) or not sound or n != sum(sizes):
            raise ValueError("tilts: coefficients of another regression")


class Cells(NamedTuple):
    """Observed cells of a column, and what is predicted of them from the rest of their rows."""

    truth: Floats
    predicted: Predictive
    place: Place
    weights: Floats
    """Standard normals, the same for all cells of a row: cells x draws."""


def draw_weights(n_rows: int) -> Floats:
    """Return the random weights of rows: rows x draws."""
    return np.random.default_rng(n_rows).standard_normal((n_rows, N_DRAWS))


def fit_tilt(spec: ModelledColumn, cells: Cells, own: Flags) -> Tilt | None:
    """Fit the regression of a column.

    Parameters
    ----------
    own : array
        Which features belong to the column, or may not predict it.

    Returns
    -------
    None if there are too few cells, or too many classes.
    """
    truth, predicted, place, weights = cells
    if not isinstance(predicted, (BinnedPredictive, ClassPredictive)) or len(truth) < FEWEST:
        return None
    shares = predicted.probabilities
    statistics = statistics_of(spec, shares)
    room = min(len(truth) // CELLS_A_FEATURE, MOST_COEFFICIENTS // max(len(statistics), 1)) - 1
    if room < 0 or not statistics:
        return None
    outcomes = spec.outcomes(truth).astype(np.intp)
    wanted = np.stack([np.take_along_axis(one.values, outcomes[:, None], 1)[:, 0] for one in statistics], 1)
    chosen = _choose_features(place.filled, wanted, own, room)
    coefficients, precision, slopes = _fit(statistics, place.designs(chosen), shares, outcomes)
    # As in the variance of least squares, some freedom was used up by the coefficients.
    grown = np.sqrt(len(truth) / max(1.0, len(truth) - len(coefficients) / len(statistics)))
    draws = grown * (weights.T @ slopes) @ np.linalg.inv(precision)
    return Tilt(chosen.astype(np.int32), coefficients, np.ascontiguousarray(draws))


def _choose_features(filled: Floats, wanted: Floats, own: Flags, most: int) -> Array:
    """Return the features that are correlated with the column most, in their order."""
    varies = ~own & (filled.std(0) > 1e-6)
    away = (filled - filled.mean(0)) / np.where(varies, filled.std(0), 1.0)
    aim = (wanted - wanted.mean(0)) / np.maximum(wanted.std(0), 1e-12)
    strength = np.where(varies, np.abs(away.T @ aim).max(1), -1.0)
    best = np.argsort(-strength, kind="stable")[: min(most, int(varies.sum()))]
    return np.sort(best)


def _sizes(statistics: Sequence[Statistic], designs: Sequence[Floats]) -> list[int]:
    """Return the number of coefficients of each statistic."""
    return [designs[one.design].shape[1] for one in statistics]


def _log_factors(statistics: Sequence[Statistic], designs: Sequence[Floats], coefficients: Floats) -> Floats:
    """Return what is added to the log-probabilities: rows x outcomes."""
    ends = np.cumsum(_sizes(statistics, designs))
    found = np.zeros(statistics[0].values.shape)
    for one, own in zip(statistics, np.split(coefficients, ends[:-1]), strict=True):
        # Summed by row, so that rounding does not depend on other rows.
        found = found + one.values * (designs[one.design] * own).sum(1)[:, None]
    return found


def _fit(
    statistics: Sequence[Statistic], designs: Sequence[Floats], shares: Floats, outcomes: npt.NDArray[np.intp]
) -> tuple[Floats, Floats, Floats]:
    """Return the most probable coefficients, by Newton's method, their precision matrix, and each cell's slopes.

    Slopes are the derivatives of the cell's log-likelihood: cells x coefficients.
    """
    values = np.stack([one.values for one in statistics], -1)  # rows x outcomes x statistics
    wanted = np.take_along_axis(values, outcomes[:, None, None], 1)[:, 0]
    by_statistic = [designs[one.design] for one in statistics]
    sizes, every = _sizes(statistics, designs), np.arange(len(outcomes))
    log_shares = np.log(np.maximum(shares, 1e-300))
    log_shares[every, outcomes] = np.maximum(log_shares[every, outcomes], np.log(1e-9))  # or nothing could explain it

    def moments(coefficients: Floats) -> tuple[float, Floats, Floats]:
        """Return the log-likelihood, and the means and covariances of the statistics."""
        moved = log_shares + _log_factors(statistics, designs, coefficients)
        most = moved.max(1, keepdims=True)
        likely = np.exp(moved - most)
        total = likely.sum(1, keepdims=True)
        likely = likely / total
        mean = np.einsum("nk,nks->ns", likely, values)
        away = values - mean[:, None]
        covariance = np.einsum("nks,nkt->nst", likely[..., None] * away, away)
        return float((moved[every, outcomes] - most[:, 0] - np.log(total[:, 0])).sum()), mean, covariance

    coefficients = np.zeros(sum(sizes))
    score, mean, covariance = moments(coefficients)
    usual = np.maximum(np.diagonal(covariance, axis1=1, axis2=2).mean(0), LEAST_VARIANCE)
    prior = PRIOR * np.repeat(usual, sizes)
    for _ in range(N_STEPS):
        slope = np.concatenate([one.T @ (wanted - mean)[:, s] for s, one in enumerate(by_statistic)])
        step = np.linalg.solve(_precision(by_statistic, covariance, prior), slope - prior * coefficients)
        for _ in range(N_STEPS):
            there = coefficients + step
            found = moments(there)
            gained = found[0] - score - 0.5 * float(prior @ (there**2 - coefficients**2))
            if gained >= 0.0:
                break
            step = 0.5 * step
        else:
            break
        coefficients, (score, mean, covariance) = there, found
        if gained < TOLERANCE * len(outcomes):
            break
    slopes = np.column_stack([one * (wanted - mean)[:, s, None] for s, one in enumerate(by_statistic)])
    return coefficients, _precision(by_statistic, covariance, prior), slopes


def _precision(designs: Sequence[Floats], covariance: Floats, prior: Floats) -> Floats:
    """Return the precision matrix of the coefficients, given the covariances of the statistics in each row."""
    blocks = [
        [(one * covariance[:, s, t, None]).T @ other for t, other in enumerate(designs)]
        for s, one in enumerate(designs)
    ]
    return np.asarray(np.block(blocks) + np.diag(prior))


# --- saving -----------------------------------------------------------------------------------------------------------


def tilts_to_tensors(tilts: Mapping[str, Tilt]) -> dict[str, Array]:
    """Return the arrays of tilts by name, to be saved."""
    return parts_to_tensors("tilt", tilts)


def tilts_from_tensors(
    names: Sequence[str], specs: Sequence[ModelledColumn], tensors: Mapping[str, Array]
) -> dict[str, Tilt]:
    """Rebuild tilts from `tilts_to_tensors`; ValueError if they are none of these columns."""
    n_features, found = sum(one.n_gaussian for one in specs), {}
    for i, (name, j) in enumerate(zip(names, places_of(names, specs, "tilts"), strict=True)):
        own = part_from_tensors(Tilt, f"tilt{i}", tensors)
        own.check(specs[j], n_features)
        found[name] = own
    return found
