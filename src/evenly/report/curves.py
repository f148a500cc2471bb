"""Learning curves: of the imputer's own training, and of the short trainings of a diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_POINTS = 80
"""Points of a learning curve: more would not be visible."""
LAST = 5
"""The end of a training is this part of its epochs, the last fifth."""


@dataclass(frozen=True)
class LearningCurve:
    """A column's log-likelihood by epoch, above that of a model that knows only this column."""

    method: str
    epochs: tuple[int, ...]
    gain: tuple[float, ...]
    baseline: float
    error: float | None = None
    baseline_error: float | None = None
    gradient_share: float | None = None


@dataclass(frozen=True)
class OwnTraining:
    """How the imputer that filled the table was trained."""

    model: str
    method: str
    n_networks: int
    n_epochs: int
    n_columns: int
    curve: LearningCurve
    """The ELBO by epoch."""
    behind: tuple[str, ...]
    """Columns that it explains no better than their own averages, in the last fifth of its epochs."""


def own_training(imputer: Any) -> OwnTraining | None:
    """Return how an imputer was trained; None without one, or if its model needs no training."""
    history = getattr(imputer, "history_", None) or {}
    elbo = np.asarray(history.get("elbo", ()))
    if not len(elbo):
        return None
    # Single epochs are noisy: they see few rows, with other cells hidden each time.
    last = -(-len(elbo) // LAST)
    ends = {name: float(np.mean(values[-last:])) for name, values in history["log_likelihood"].items() if len(values)}
    behind = tuple(name for name, end in ends.items() if not end > imputer.baseline_[name])
    networks = getattr(getattr(imputer, "ensemble_", None), "networks", ())
    method = getattr(getattr(imputer, "scaler_", None), "method", "")
    model = getattr(imputer, "model_name", "")
    return OwnTraining(model, method, len(networks), len(elbo), len(ends), _thin("the imputer", elbo, 0.0), behind)


def own_curve(name: str, imputer: Any) -> LearningCurve | None:
    """Return a column's curve in the imputer's own training."""
    if imputer is None or name not in getattr(imputer, "baseline_", {}):
        return None
    found = _thin("the imputer", imputer.history_["log_likelihood"][name], imputer.baseline_[name])
    return found if found.gain else None


def short_curves(name: str, trainings: Sequence[Any]) -> tuple[LearningCurve, ...]:
    """Return a column's curves in the short trainings of a diagnosis."""
    found = [
        _thin(
            training.method,
            training.log_likelihood[name],
            training.baseline[name],
            training.error.get(name),
            training.baseline_error.get(name),
            training.gradient_share.get(name),
        )
        for training in trainings
        if name in training.log_likelihood
    ]
    return tuple(curve for curve in found if curve.gain)


def _thin(method: str, values: Any, baseline: float, *errors_and_share: Any) -> LearningCurve:
    step = -(-len(values) // MOST_POINTS) or 1
    epochs = tuple(range(len(values) - 1, -1, -step))[::-1]  # the last one is always included
    return LearningCurve(
        method,
        tuple(epoch + 1 for epoch in epochs),
        tuple(float(f"{float(values[epoch]) - baseline:.4g}") for epoch in epochs),
        float(baseline),
        *errors_and_share,
    )
