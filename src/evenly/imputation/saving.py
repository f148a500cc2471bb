"""A fitted imputer as JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from evenly._support import readable
from evenly._version import __version__
from evenly.imputation.ensemble import Ensemble
from evenly.imputation.training import Training
from evenly.likelihoods import Likelihood
from evenly.scaling import LipschitzScaler, plain_settings

if TYPE_CHECKING:
    from evenly.imputation.imputer import Imputer


def imputer_to_saved(imputer: Imputer) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return all of a fitted imputer as plain JSON types and arrays."""
    learned, tensors = imputer.ensemble_.to_saved()
    training = None if imputer.training is None else imputer.training.get_params()
    content = {
        "evenly": __version__,
        "saved": type(imputer).__name__,
        "settings": plain_settings(imputer) | {"training": training, "callbacks": None},
        "scaler": imputer.scaler_.to_plain(),
        **learned,
    }
    return content, tensors


def imputer_from_saved(
    kind: type[Imputer],
    content: dict[str, Any],
    tensors: Mapping[str, npt.NDArray[Any]],
    likelihoods: Sequence[Likelihood] | Mapping[Any, Any],
    file: Path,
) -> Imputer:
    """Return the fitted imputer that `imputer_to_saved` took apart; `file` is for messages."""
    with readable(file, content):
        scaler = LipschitzScaler.from_plain(content["scaler"], likelihoods, file)
        settings = content["settings"]
        if settings["likelihoods"]:
            settings["likelihoods"] = scaler.likelihoods
        if settings["training"]:
            settings["training"] = Training(**settings["training"])
        return kind(**settings)._become(scaler, Ensemble.from_saved(content, tensors, scaler.columns_))
