"""Imputers for tests: settings of the training are given beside the others."""

from __future__ import annotations

from typing import Any

from evenly import Imputer, Training

SIZES = ("latent_size", "n_clusters", "hidden_size")
TRAINING = ("epochs", "batch_size", "learning_rate", "n_networks", "masked_training", "n_draws", "target", "bound")


def make_imputer(*arguments: Any, kind: type[Imputer] = Imputer, **settings: Any) -> Imputer:
    """Return an imputer; settings that belong to its training are put there."""
    sizes = {name: settings.pop(name) for name in SIZES if name in settings}
    training = {name: settings.pop(name) for name in TRAINING if name in settings}
    if sizes:
        training["sizes"] = sizes
    if training:
        settings["training"] = Training(**training)
    return kind(*arguments, **settings)
