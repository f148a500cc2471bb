"""Calibration of a column's predictions. The module `calibration_choice` chooses it on validation cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from evenly._support import show
from evenly.imputation.neighbours import NeighbourWeight
from evenly.tables import Floats, check_fields


@dataclass(frozen=True)
class Calibration:
    """The calibration of a column's predictions, chosen on validation cells. The defaults change nothing."""

    bin_weight: float = 0.5
    """The weight of the bins in the mean of a binned number; the rest is that of the normal."""
    inverse_temperature: float = 1.0
    """The power that probabilities of bins or classes are raised to: below 1, they are less confident."""
    model_weight: float = 1.0
    """The weight of the model in every prediction; the rest, the shrinkage, is that of the column's marginal."""
    max_deviation: float = np.inf
    """The largest distance of a predicted mean from the column's mean."""
    stacking_weight: float = 0.0
    """The weight of the Gaussian expert in every prediction."""
    tree_weight: float = 0.0
    """The weight of the tree expert in every prediction."""
    kernel_weight: float = 0.0
    """The weight of the kernel expert in every prediction; the rest is that of the model."""
    neighbours: NeighbourWeight | None = None
    """The weight of near-duplicates' cells, if any."""
    fill_weight: float = field(default=1.0, metadata={"later": True})
    """The weight of the Gaussian expert, beside the model, in what trees and kernels read in a missing cell.

    Imputers that were saved without it filled these cells by the Gaussian expert alone.
    """
    estimate: Literal["mean", "mode"] = field(default="mean", metadata={"later": True})
    """What is imputed for a number: the mean, or the mode of one that may be a code of classes."""

    @property
    def expert_weights(self) -> tuple[float, float, float]:
        """The weights of the experts, in the order of `Experts`."""
        return self.stacking_weight, self.tree_weight, self.kernel_weight

    @classmethod
    def from_plain(cls, plain: Any) -> Calibration:
        """Rebuild a calibration from `dataclasses.asdict`; ValueError if it is none."""
        found = cls(**check_fields(cls, plain))
        experts = found.expert_weights
        weights = (found.bin_weight, found.model_weight, found.fill_weight, *experts, sum(experts))
        positive = [found.inverse_temperature]
        if found.neighbours is not None:
            positive += [found.neighbours.bandwidth, found.neighbours.prior]
        sound = all(0.0 <= one <= 1.0 for one in weights) and all(0.0 < one < np.inf for one in positive)
        if not sound or not found.max_deviation >= 0.0:
            raise ValueError(f"a calibration of {show(plain)}, expected weights from 0 to 1")
        return found

    def apply(self, probabilities: Floats, marginal: Any) -> Floats:
        """Return probabilities at the temperature, shrunk towards the marginal ones.

        Examples
        --------
        >>> Calibration(model_weight=0.5).apply(np.array([[1.0, 0.0]]), [0.5, 0.5])
        array([[0.75, 0.25]])
        """
        if self.inverse_temperature != 1.0:
            raised = (probabilities / probabilities.max(-1, keepdims=True)) ** self.inverse_temperature
            probabilities = raised / raised.sum(-1, keepdims=True)
        if self.model_weight == 1.0:
            return probabilities
        return self.model_weight * probabilities + (1.0 - self.model_weight) * np.asarray(marginal)


PLAIN = Calibration()


def stack(model: Floats, experts: Iterable[tuple[Floats, float]]) -> Floats:
    """Return the weighted mean of a model's and experts' predictions; where an expert has none (NaN), the model's.

    Examples
    --------
    >>> stack(np.array([3.0, 3.0]), [(np.array([1.0, np.nan]), 0.25)])
    array([2.5, 3. ])
    """
    found, rest = np.zeros_like(model), np.ones_like(model)
    for expert, weight in experts:  # so that a weight of 1 leaves nothing of the model, not even its rounding
        known = ~np.isnan(expert)
        found = found + np.where(known, weight * expert, 0.0)
        rest = rest - np.where(known, weight, 0.0)
    return found + rest * model
