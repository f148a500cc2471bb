"""Predictive distributions of classes: probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from evenly.predictive.base import Predictive, add_mass, average
from evenly.predictive.scores import log_likelihood
from evenly.tables import Column, Floats


class ClassPredictive(Predictive):
    """Probabilities of classes."""

    probabilities: Floats
    """Rows x classes."""

    def tilted(self, log_odds: Floats) -> Self:
        """Return the distributions with the log-odds of each class, against all others, shifted: alike or row by row.

        Examples
        --------
        >>> from evenly.tables import Column
        >>> smokes = Column(name="smokes", kind="binary", classes=["no", "yes"])
        >>> BinaryPredictive(smokes, np.array([0.5])).tilted(np.log([1.0, 3.0])).probability
        array([0.75])
        """
        shares = self.probabilities * np.exp(log_odds - log_odds.max(-1, keepdims=True))
        return self._with(shares / shares.sum(-1, keepdims=True))

    @abstractmethod
    def _with(self, probabilities: Floats) -> Self:
        """Return distributions of the same column with other probabilities, rows x classes."""

    def mean(self) -> Floats:
        return self.mode()

    def quantile(self, level: float) -> Floats:
        return self.mode()

    def log_prob(self, values: Floats) -> Floats:
        return log_likelihood(self.column, self.parameters, values)

    def _shown(self) -> dict[str, Floats]:
        classes = self.column.classes or ()
        return {str(value): self.probabilities[:, k] for k, value in enumerate(classes)}


@dataclass(frozen=True)
class CategoricalPredictive(ClassPredictive):
    """Probabilities of a column's classes, rows x classes."""

    column: Column
    probabilities: Floats

    @property
    def parameters(self) -> dict[str, Any]:
        return {"probabilities": self.probabilities}

    def _with(self, probabilities: Floats) -> Self:
        return type(self)(self.column, probabilities)

    def mode(self) -> Floats:
        return np.asarray(self.probabilities.argmax(-1), np.float64)

    def median(self) -> Floats:
        """Return the median class if classes are ordered, else the most probable one."""
        if self.column.kind != "ordinal":
            return self.mode()
        return np.asarray((np.cumsum(self.probabilities, -1)[..., :-1] < 0.5).sum(-1), np.float64)

    def sample(self, rng: np.random.Generator) -> Floats:
        shares = self.probabilities
        below = np.cumsum(shares, -1)[..., :-1] < rng.random(shares.shape[:-1])[..., None]
        return np.asarray(below.sum(-1), np.float64)

    def mix(self, others: Sequence[Self]) -> Self:
        return type(self)(self.column, average([one.probabilities for one in (self, *others)]))

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        return type(self)(self.column, add_mass(self.probabilities, share, weights, values))

    def take(self, rows: Any) -> Self:
        return type(self)(self.column, self.probabilities[rows])

    def append(self, others: Sequence[Self]) -> Self:
        return type(self)(self.column, np.concatenate([one.probabilities for one in (self, *others)]))


@dataclass(frozen=True)
class BinaryPredictive(ClassPredictive):
    """The probability of the second class in each row."""

    column: Column
    probability: Floats

    @property
    def parameters(self) -> dict[str, Any]:
        return {"probability": self.probability}

    def _with(self, probabilities: Floats) -> Self:
        return type(self)(self.column, probabilities[..., 1])

    @property
    def probabilities(self) -> Floats:  # type: ignore[override]  # computed here
        return np.stack([1.0 - self.probability, self.probability], axis=-1)

    def mode(self) -> Floats:
        return np.asarray(self.probability > 0.5, np.float64)

    def median(self) -> Floats:
        return self.mode()

    def sample(self, rng: np.random.Generator) -> Floats:
        return np.asarray(rng.random(self.probability.shape) < self.probability, np.float64)

    def mix(self, others: Sequence[Self]) -> Self:
        return type(self)(self.column, average([one.probability for one in (self, *others)]))

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        return type(self)(self.column, (1.0 - share) * self.probability + (weights * values).sum(1))

    def take(self, rows: Any) -> Self:
        return type(self)(self.column, self.probability[rows])

    def append(self, others: Sequence[Self]) -> Self:
        return type(self)(self.column, np.concatenate([one.probability for one in (self, *others)]))
