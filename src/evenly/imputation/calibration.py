"""Calibration: how far to follow the predictions of a column; chosen on validation cells in `calibration_choice`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenly.imputation.neighbours import NeighbourWeight
from evenly.tables import Floats


@dataclass(frozen=True)
class Calibration:
    """How far to follow the predictions of a column, as validation cells say. The defaults change nothing."""

    bin_weight: float = 0.5
    """The share of the bins, beside the normal, in the mean of a binned number."""
    inverse_temperature: float = 1.0
    """The power of its probabilities, of bins or classes: below 1 they are less sure."""
    model_weight: float = 1.0
    """The share of the model, beside the column's marginal, in every prediction: 1 minus the shrinkage."""
    max_deviation: float = np.inf
    """How far from the column's mean a prediction may go."""
    stacking_weight: float = 0.0
    """The share of the Gaussian expert, beside the model, in every prediction."""
    neighbours: NeighbourWeight | None = None
    """How much of a near-duplicate's cell is taken over, if any."""

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Calibration:
        """Return what `dataclasses.asdict` took apart."""
        weight = plain["neighbours"]
        return cls(**{**plain, "neighbours": None if weight is None else NeighbourWeight(**weight)})

    def apply(self, probabilities: Floats, marginal: Any) -> Floats:
        """Return probabilities at their temperature, shrunk towards the marginal ones.

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


def stack(expert: Floats, model: Floats, weight: float) -> Floats:
    """Return the weighted mean of two predictions; the model's where the expert has none (NaN).

    Examples
    --------
    >>> stack(np.array([1.0, np.nan]), np.array([3.0, 3.0]), 0.25)
    array([2.5, 3. ])
    """
    return np.where(np.isnan(expert), model, weight * expert + (1.0 - weight) * model)
