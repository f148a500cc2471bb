"""Scaled features as a model takes them: finite, in the precision that it computes in, without missing cells."""

from __future__ import annotations

import numpy as np

from evenly.likelihoods import Likelihood
from evenly.tables import Floats

LARGEST_TARGETS = {"float32": 1e30, "float64": 1e300}
"""Targets are clipped here, to fit into the precision; only numbers of such a size are affected."""


def settle(family: Likelihood, target: Floats, stand_in: float, dtype: str) -> Floats:
    """Replace missing cells of a feature, and clip numbers that the precision cannot hold.

    Examples
    --------
    >>> from evenly.likelihoods import GAMMA
    >>> settle(GAMMA, np.array([1e-50, 2.0, np.nan, 1e300]), 1.0, "float32").tolist()
    [1.1754943508222875e-38, 2.0, 1.0, 1e+30]
    """
    # A positive value that single precision would round down to 0 has no density there.
    largest = LARGEST_TARGETS[dtype]
    lowest = float(np.finfo(dtype).tiny) if family.scalable and family.support.lower == 0.0 else -largest
    return np.asarray(np.clip(np.where(np.isnan(target), stand_in, target), lowest, largest))
