"""Numbers that are modelled twice: by a normal of the standardized value, and by the bin that it lies in.

Both are trained together. The bins give the distribution; the mean is a weighted mean of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from evenly._support import show
from evenly.imputation.calibration import PLAIN, Calibration, stack
from evenly.imputation.columns.base import FARTHEST_TARGET, MARGINAL_SHARE, ModelledColumn, standardize
from evenly.imputation.experts import NO_EXPERTS, Experts
from evenly.likelihoods import NORMAL, UNIT_NORMAL, Likelihood, Support, get_likelihood
from evenly.predictive import BinnedPredictive, Bins, Predictive
from evenly.tables import Floats

UNSEEN_SHARE = 1e-9
"""The smallest share of a bin in the marginal, so that its logarithm is finite."""
FARTHEST_RANK = 1e-3
"""Ranks are clipped this far from 0 and 1 before they are mapped to quantiles of a normal."""
MOST_TILT = 20.0
"""Limit on the ratio between a bin's share and its probability under a normal, which vanishes in far tails."""


@dataclass(frozen=True)
class BinnedColumn(ModelledColumn):
    """A number that is modelled twice: by a normal of its standardized value, and by its bin."""

    kind = "binned"
    bins: Bins = field(default_factory=lambda: Bins((), (), (), ()))
    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0
    """The scale of the centred value, for the normal."""

    def check(self) -> None:
        super().check()
        self.bins.check()
        if self.column.has_classes:
            raise ValueError(f"bins of {show(self.name)}, which has classes")
        if not (np.isfinite(self.mean) and 0.0 < self.std < np.inf and 0.0 < self.scale < np.inf):
            raise ValueError(f"a mean, standard deviation or scale of {show(self.name)} that is none")

    @property
    def needs_density(self) -> bool:
        """Bins take any number, but inputs of positive columns are logarithms."""
        return self.column.kind == "positive"

    @property
    def likelihoods(self) -> list[Likelihood]:
        return [UNIT_NORMAL, get_likelihood("categorical", len(self.bins))]

    @property
    def stand_ins(self) -> Sequence[float]:
        return (0.0, 0.0)

    @property
    def log_jacobian(self) -> float:
        return 0.0

    @property
    def marginal_naturals(self) -> list[Any]:
        return [np.zeros(1), np.log(np.maximum(self.bins.share, UNSEEN_SHARE))]

    def targets(self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None) -> list[Floats]:
        standard = np.clip(standardize(values, self.mean, self.std), -FARTHEST_TARGET, FARTHEST_TARGET)
        return [self.scale * self.std * standard, self.bins.codes(values)]

    def predict(
        self, naturals: Sequence[Floats], calibration: Calibration = PLAIN, experts: Experts = NO_EXPERTS
    ) -> Predictive:
        normal, binned = naturals
        likely = np.exp(binned - binned.max(-1, keepdims=True))
        likely = likely / likely.sum(-1, keepdims=True)
        # The mean of the bins before the temperature is applied, which would shift it.
        normal_mean = self._mean_of(normal[..., 0])
        mean = calibration.bin_weight * self.bins.means(likely) + (1.0 - calibration.bin_weight) * normal_mean
        stacked = [(one, weight) for one, weight in experts.weighted(calibration) if isinstance(one, BinnedPredictive)]
        if stacked:
            mean = stack(mean, [(one.means, weight) for one, weight in stacked])
            likely = stack(likely, [(one.probabilities, weight) for one, weight in stacked])
        mean = calibration.model_weight * mean + (1.0 - calibration.model_weight) * self.mean
        if np.isfinite(calibration.max_deviation):
            mean = np.clip(mean, self.mean - calibration.max_deviation, self.mean + calibration.max_deviation)
        shares = calibration.apply(likely, self.bins.share)
        return BinnedPredictive(self.column, self.bins, mean, shares, calibration.estimate)

    def _mean_of(self, normal: Floats) -> Floats:
        """Return the mean under the normal, in the table's units."""
        away = normal / (self.scale * self.std)
        with np.errstate(over="ignore"):
            mean = self.mean + self.std * np.clip(away, -FARTHEST_TARGET, FARTHEST_TARGET)
        return np.where(np.isinf(mean), np.clip(mean, self.extent[0], self.extent[1]), mean)

    @property
    def is_calibrated(self) -> bool:
        return True

    @property
    def n_gaussian(self) -> int:
        return 2

    def gaussian_features(self, values: Floats) -> Floats:
        """Return the standardized number, and its rank among the column's numbers as a quantile of the normal."""
        ranks = np.clip(self.bins.places(values), FARTHEST_RANK, 1.0 - FARTHEST_RANK)
        standard = np.column_stack([standardize(values, self.mean, self.std), ndtri(ranks)])
        return np.where(np.isnan(values)[:, None], np.nan, np.clip(standard, -FARTHEST_TARGET, FARTHEST_TARGET))

    def from_gaussian(self, means: Floats, stds: Floats) -> Predictive | None:
        mean = np.clip(means[:, 0], -FARTHEST_TARGET, FARTHEST_TARGET)
        shares = tilt(self.bins, mean, stds[:, 0], self.mean, self.std)
        return BinnedPredictive(self.column, self.bins, self._in_units(mean), shares)

    def _in_units(self, standard: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip(self.mean + self.std * standard, self.extent[0], self.extent[1])

    @property
    def n_outcomes(self) -> int:
        return len(self.bins)

    def outcomes(self, values: Floats) -> Floats:
        return self.bins.codes(values)

    def from_outcomes(self, means: Floats, shares: Floats) -> Predictive:
        mixed = (1.0 - MARGINAL_SHARE) * shares + MARGINAL_SHARE * np.asarray(self.bins.share)
        return BinnedPredictive(self.column, self.bins, self._in_units(means), mixed)

    @property
    def support(self) -> Support:
        return NORMAL.support


def tilt(bins: Bins, means: Floats, stds: Floats, center: float, spread: float) -> Floats:
    """Return the probabilities of bins under normals of the standardized number; NaN stays.

    A normal has neither atoms nor heavy tails. So the probability of each bin is multiplied by the ratio of its share
    of the column to its probability under a normal with the column's mean and standard deviation.

    Examples
    --------
    >>> from evenly.predictive import make_bins
    >>> bins = make_bins(np.array([0.0, 0.0, 0.0, 1.0]))
    >>> tilt(bins, np.array([0.0, 5.0]), np.array([1.0, 0.1]), 0.25, 0.433).round(2)
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    edges = standardize(bins.edges, center, spread)
    share = np.asarray(bins.share)
    preferred = share / np.maximum(np.diff(ndtr(edges), prepend=0.0, append=1.0), 1e-12)
    preferred = np.clip(preferred, 1.0 / MOST_TILT, MOST_TILT)
    # The difference of two probabilities near 1 would cancel: above the mean, the upper tails are subtracted instead.
    z = (edges - means[:, None]) / np.maximum(stds, 1e-6)[:, None]
    low, high = (
        np.pad(z, ((0, 0), (1, 0)), constant_values=-np.inf),
        np.pad(z, ((0, 0), (0, 1)), constant_values=np.inf),
    )
    low, high = np.where(low > 0.0, -high, low), np.where(low > 0.0, -low, high)
    likely = preferred * (ndtr(high) - ndtr(low)) + 1e-9 * share
    return np.asarray(likely / likely.sum(1, keepdims=True))
