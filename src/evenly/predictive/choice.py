"""Choosing the class of predictive distribution for usual parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenly.likelihoods import Likelihood
from evenly.predictive.base import Predictive
from evenly.predictive.classes import BinaryPredictive, CategoricalPredictive
from evenly.predictive.numbers import ParametricPredictive
from evenly.tables import Column


def predictive_of(column: Column, family: Likelihood, usual: Mapping[str, Any]) -> Predictive:
    """Return the distributions with the given usual parameters, as returned by `FittedColumn.recover`.

    Examples
    --------
    >>> from evenly.tables import Column
    >>> from evenly.likelihoods import get_likelihood
    >>> smokes = Column(name="smokes", kind="binary", classes=["no", "yes"])
    >>> predictive_of(smokes, get_likelihood("bernoulli"), {"probability": np.array([0.75])}).mode()
    array([1.])
    """
    if "probability" in usual:
        return BinaryPredictive(column, np.asarray(usual["probability"]))
    if "probabilities" in usual:
        return CategoricalPredictive(column, np.asarray(usual["probabilities"]))
    return ParametricPredictive(column, family, {name: np.asarray(usual[name]) for name in family.usual_names})
