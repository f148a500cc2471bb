"""Columns that are modelled by the likelihoods of their scaled features: classes, and numbers of the paper's models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._support import show
from evenly.imputation.calibration import PLAIN, Calibration, stack
from evenly.imputation.columns.base import (
    FARTHEST_RAW,
    FARTHEST_TARGET,
    MARGINAL_SHARE,
    ModelledColumn,
    encoder_inputs,
    standardize,
)
from evenly.imputation.experts import NO_EXPERTS, Experts
from evenly.likelihoods import Likelihood, Support
from evenly.predictive import (
    BinaryPredictive,
    CategoricalPredictive,
    ClassPredictive,
    ManyClassesPredictive,
    Predictive,
    predictive_of,
)
from evenly.tables import Floats

MOST_GAUSSIAN = 30
"""Of a column with many classes, the Gaussian expert sees the 30 most frequent: it costs the cube of its features."""
LEAST_CLASS = 0.02
"""Smallest probability of a class from the Gaussian expert, relative to its frequency: a normal has no bounds."""


@dataclass(frozen=True)
class LikelihoodColumn(ModelledColumn):
    """A column that is modelled by the likelihoods of its scaled features."""

    kind = "by_likelihood"
    jacobian: float = 0.0
    fill: Sequence[float] = ()
    raw_inputs: bool = field(default=False, metadata={"later": True})
    """Whether an encoder sees the unscaled features themselves, as published; else all methods have the same inputs."""

    def check(self) -> None:
        super().check()
        if len(self.fill) != len(self.fitted.features) or not np.isfinite(self.fill).all():
            raise ValueError(f"{len(self.fill)} stand-ins of {show(self.name)}, expected one for each feature")

    @property
    def needs_density(self) -> bool:
        return True

    @property
    def likelihoods(self) -> list[Likelihood]:
        return [one.likelihood.modelled_as for one in self.fitted.features]

    @property
    def n_inputs(self) -> int:
        return len(self.fitted.features) if self.raw_inputs else len(self.centers)

    @property
    def inputs_need_no_draw(self) -> bool:
        return not self.raw_inputs

    def inputs(self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None) -> Floats:
        if not self.raw_inputs:
            return super().inputs(values, seed, keys)
        features = np.column_stack(self.fitted.split(values, seed, keys))
        return np.where(np.isnan(values)[:, None], 0.0, np.clip(features, -FARTHEST_RAW, FARTHEST_RAW))

    @property
    def stand_ins(self) -> Sequence[float]:
        return self.fill

    @property
    def log_jacobian(self) -> float:
        return self.jacobian

    @property
    def marginal_naturals(self) -> list[Any]:
        return [fit.natural for fit in self.fitted.fits]

    def targets(self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None) -> list[Floats]:
        return self.fitted.targets(values, seed, keys)

    def predict(
        self, naturals: Sequence[Floats], calibration: Calibration = PLAIN, experts: Experts = NO_EXPERTS
    ) -> Predictive:
        assert self.fitted.family is not None
        found = predictive_of(self.column, self.fitted.family, self.fitted.recover(naturals))
        if not isinstance(found, ClassPredictive):
            return found
        shares = found.probabilities
        stacked = [(one, weight) for one, weight in experts.weighted(calibration) if isinstance(one, ClassPredictive)]
        if stacked:
            shares = stack(shares, [(one.probabilities, weight) for one, weight in stacked])
        shares = calibration.apply(shares, self.fitted.frequencies)
        return self._of_classes(shares, binary=isinstance(found, BinaryPredictive))

    def _of_classes(self, shares: Floats, *, binary: bool) -> ClassPredictive:
        if binary:
            return BinaryPredictive(self.column, shares[..., 1])
        if self.column.has_rest:
            return ManyClassesPredictive.of(self.column, shares, self.fitted.shares)
        return CategoricalPredictive(self.column, shares)

    @property
    def n_gaussian(self) -> int:
        return min(len(self.centers), MOST_GAUSSIAN) if self.column.has_rest else len(self.centers)

    def gaussian_features(self, values: Floats) -> Floats:
        n = self.n_gaussian
        standard = standardize(encoder_inputs(self.column, values)[:, :n], self.centers[:n], self.spreads[:n])
        return np.where(np.isnan(values)[:, None], np.nan, np.clip(standard, -FARTHEST_TARGET, FARTHEST_TARGET))

    def from_gaussian(self, means: Floats, stds: Floats) -> Predictive | None:
        """Return the probabilities of classes; numbers with a likelihood and many classes are left to the model."""
        if not self.column.has_classes or self.column.has_rest:
            return None
        likely = np.asarray(self.centers) + np.asarray(self.spreads) * means
        least = LEAST_CLASS * np.asarray(self.fitted.frequencies)
        if len(self.centers) == 1:
            return BinaryPredictive(self.column, np.clip(likely[:, 0], least[1], 1.0 - least[0]))
        likely = np.maximum(likely, np.maximum(least, 1e-6))
        return CategoricalPredictive(self.column, likely / likely.sum(1, keepdims=True))

    def from_outcomes(self, means: Floats, shares: Floats) -> Predictive:
        mixed = (1.0 - MARGINAL_SHARE) * shares + MARGINAL_SHARE * np.asarray(self.fitted.frequencies)
        return self._of_classes(mixed, binary=self.column.kind == "binary")

    @property
    def support(self) -> Support:
        assert self.fitted.family is not None
        return self.fitted.family.support
