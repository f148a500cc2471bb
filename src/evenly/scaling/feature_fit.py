"""The likelihood of one feature, fitted to its statistics: before a scale is chosen, and after."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenly.likelihoods import Likelihood
from evenly.scaling.outcomes import Outcome
from evenly.scaling.smoothness import scaled_smoothness
from evenly.scaling.tricks import Feature, FeatureStatistics
from evenly.tables import Floats


@dataclass(frozen=True)
class FittedScale:
    """The scale of one feature with what led to it."""

    scale: float
    outcome: Outcome
    natural: Floats | None = None
    """Maximum-likelihood natural parameters of the scaled feature."""
    smoothness_before: float = 0.0
    smoothness_after: float = 0.0
    bound_after: float = 0.0
    """The paper's bound after scaling, which the estimator never exceeds."""


@dataclass(frozen=True)
class FeatureFit:
    """What a method chooses the scale of a feature from."""

    family: Likelihood
    statistics: FeatureStatistics
    unit: float
    """The size of the column, in which its moments are kept: columns of size 1e300 stay within the range of numbers."""
    natural: Floats
    """Maximum-likelihood natural parameters of x / unit."""
    usable: bool
    """Whether the parameters and their Fisher matrix are numbers."""
    std: float
    """Standard deviation, of log x where the likelihood is one of logs; 0 where none can be measured."""
    start: float
    """Where the paper's bound starts, which depends on it: continuous columns at 1/std, trick features as they are."""

    @classmethod
    def of(cls, feature: Feature, statistics: FeatureStatistics) -> FeatureFit:
        """Fit the likelihood of a feature that has observed cells."""
        family = feature.likelihood
        unit = statistics.own.pivot.unit if family.needs_unit else 1.0
        natural = statistics.own.natural(family)
        with np.errstate(all="ignore"):
            # A class that never occurs has an infinite parameter; a scalable family must have finite ones.
            usable = np.isfinite(family.fisher(natural)).all() and (np.isfinite(natural).all() or not family.scalable)
        std = 1.0 if statistics.location is None else _std(family, statistics)
        start = std if feature.trick == "none" and std > 0.0 else 1.0
        return cls(family, statistics, unit, natural, bool(usable), std, start)

    def natural_at(self, unit: float) -> Floats:
        """Return the natural parameters of x / unit, for any unit."""
        with np.errstate(all="ignore"):  # a column left as it is may lie beyond the range of numbers
            return np.asarray(self.family.scale_natural(self.natural, self.unit / unit))

    def scaled(self, scale: float, outcome: Outcome) -> FittedScale:
        """Return the feature's fit under a scale; left as it is where the scaled data would leave the support."""
        family = self.family
        if not self._representable(scale):
            scale, outcome = 1.0, Outcome.OUT_OF_RANGE
        if not self.usable:
            return FittedScale(scale, outcome)
        with np.errstate(all="ignore"):
            before, after = (scaled_smoothness(family, self.natural, self.unit * s) for s in (1.0, scale))
            above = scaled_smoothness(family, self.natural_at(self.start), scale * self.start, "paper")
            natural = family.scale_natural(self.natural, self.unit * scale)
        return FittedScale(scale, outcome, natural, before, after, above)

    def _representable(self, scale: float) -> bool:
        """Whether the scale is a number and both ends of the data stay inside the support when scaled by it."""
        support, ends = self.family.support, np.array([self.statistics.minimum, self.statistics.maximum])
        if not (math.isfinite(scale) and scale > 0.0):
            return False
        with np.errstate(all="ignore"):
            scaled = self.family.scale_data(ends, scale)
        # Where the lower end belongs to the support, only a value that was there may lie there.
        inside = support.contains(scaled) & ((scaled != support.lower) | (ends == support.lower))
        return bool(np.isfinite(scaled).all() and (support.whole or inside.all()))


def _std(family: Likelihood, of: FeatureStatistics) -> float:
    assert of.location is not None
    first, second = of.location.means
    unit = 1.0 if family.in_logs else of.location.pivot.unit
    with np.errstate(all="ignore"):
        variance = float(second - first * first)
    return math.sqrt(variance) * unit if variance > 0.0 else 0.0
