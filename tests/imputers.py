"""Imputers and tables for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenly import Imputer, Training

SIZES = ("latent_size", "n_clusters", "hidden_size")
TRAINING = ("epochs", "batch_size", "learning_rate", "n_networks", "masked_training", "n_draws", "target", "bound")
MASKED_VAE: dict[str, Any] = {"model": "vae", "masked_training": True, "hidden_size": 16, "random_state": 0}
"""The VAE trained by hiding cells, small."""


def make_imputer(*arguments: Any, kind: type[Imputer] = Imputer, **settings: Any) -> Imputer:
    """Return an imputer; settings that belong to its training are put there."""
    sizes = {name: settings.pop(name) for name in SIZES if name in settings}
    training = {name: settings.pop(name) for name in TRAINING if name in settings}
    if sizes:
        training["sizes"] = sizes
    if training:
        settings["training"] = Training(**training)
    return kind(*arguments, **settings)


def linked_table(n: int = 1500, seed: int = 0) -> pd.DataFrame:
    """Columns that say much about each other; a fifth of the cells is missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "x": x,
            "double": 2.0 * x + 0.3 * rng.normal(size=n),
            "amount": np.where(rng.random(n) < 0.4, 0.0, np.exp(x + 0.3 * rng.normal(size=n))),
            "visits": rng.poisson(np.exp(0.5 * x)).astype(float),
            "sign": np.where(x + 0.2 * rng.normal(size=n) > 0.0, "plus", "minus"),
        }
    )
    return table


def hide(table: pd.DataFrame, share: float = 0.2, seed: int = 1) -> tuple[pd.DataFrame, np.ndarray]:
    hidden = np.random.default_rng(seed).random(table.shape) < share
    return table.mask(hidden), hidden


def holed_table(n_rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    z = rng.normal(size=n_rows)
    table = pd.DataFrame(
        {
            "a": z + 0.3 * rng.normal(size=n_rows),
            "b": 2.0 * z + 0.5 * rng.normal(size=n_rows),
            "c": np.where(z + 0.5 * rng.normal(size=n_rows) > 0, "yes", "no"),
        }
    )
    return table.mask(rng.random(table.shape) < 0.2)
