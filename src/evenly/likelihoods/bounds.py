"""What a network gives for a likelihood, any real numbers, as natural parameters within their bounds, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenly.likelihoods.arrays import Array, namespace
from evenly.likelihoods.base import Likelihood

FLOOR = 1e-6
"""Distance that a constrained parameter keeps from a bound of 1: about ten rounding steps of single precision."""
FLOOR_AT_ZERO = 1e-12
"""The same at a bound of 0, where single precision resolves far smaller numbers; its inverse square is still finite."""


def _floor(bound: float) -> float:
    return FLOOR * abs(bound) if bound else FLOOR_AT_ZERO


def constrain(likelihood: Likelihood, raw: Array) -> Array:
    """Map raw parameters into the likelihood's bounds by softplus."""
    if _unbounded(likelihood):
        return raw
    xp, parts = namespace(raw), []
    for i, (low, high) in enumerate(likelihood.natural_bounds):
        x = raw[..., i]
        if low > -np.inf:
            x = low + xp.softplus(x) + _floor(low)
        elif high < np.inf:
            x = high - xp.softplus(x) - _floor(high)
        parts.append(x)
    return xp.stack(parts)


def unconstrain(likelihood: Likelihood, natural: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Invert `constrain`."""
    if _unbounded(likelihood):
        return natural
    parts = []
    for i, (low, high) in enumerate(likelihood.natural_bounds):
        x = natural[..., i]
        if low > -np.inf:
            x = _inverse_softplus(x - low - _floor(low))
        elif high < np.inf:
            x = _inverse_softplus(high - x - _floor(high))
        parts.append(x)
    return np.stack(parts, axis=-1)


def _unbounded(likelihood: Likelihood) -> bool:
    return all(bounds == (-np.inf, np.inf) for bounds in likelihood.natural_bounds)


def _inverse_softplus(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    y = np.maximum(y, FLOOR)
    return np.asarray(y + np.log(-np.expm1(-y)))
