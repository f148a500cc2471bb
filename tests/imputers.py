"""Imputers and tables for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenly import Imputer, LipschitzScaler, Training
from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.gaussian import Gaussian, expect, feature_owners, fit_gaussian, gaussian_features
from evenly.imputation.row_filling import HeldOut
from evenly.models import MODELS, PAPERS
from evenly.tables.frames import open_table

SIZES = ("latent_size", "n_clusters", "hidden_size")
TRAINING = ("epochs", "batch_size", "learning_rate", "n_networks", "masked_training", "n_draws", "target", "bound")
MASKED_VAE: dict[str, Any] = {"model": "vae", "masked_training": True, "hidden_size": 16, "random_state": 0}
"""The VAE trained by hiding cells, small."""


class Recorded:
    """A display that keeps what it is shown."""

    def __init__(self) -> None:
        self.seen = []

    def show(self, now):
        self.seen.append(now)

    def pause(self):
        pass

    close = pause


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
    """Columns that depend strongly on each other."""
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


def mixed_table(n: int = 80, seed: int = 0) -> pd.DataFrame:
    """Columns that go together, of every kind; a fifth of the cells of each is missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "real": 3.0 + 2.0 * x,
            "positive": np.exp(0.5 * x + 0.3 * rng.normal(size=n)),
            "count": pd.array(rng.poisson(np.exp(1.0 + 0.5 * x)), dtype="Int64"),
            "binary": pd.array(x + 0.3 * rng.normal(size=n) > 0.0, dtype="boolean"),
            "class": np.array(["a", "b", "c"])[np.digitize(x, [-0.5, 0.5])],
            "grade": pd.Categorical.from_codes(np.digitize(x, [-0.5, 0.5]), ["lo", "mid", "hi"], ordered=True),
        }
    )
    return table.mask(rng.random(table.shape) < 0.2)


def quick(**settings: object) -> Imputer:
    """The imputer that compiles fastest; without training, which will do where types and bounds are tested."""
    given = {"model": "vae", "method": "std-none", "epochs": 0, "hidden_size": 4, "random_state": 0}
    return make_imputer(**given | settings)


def numbers_table(n: int = 30) -> pd.DataFrame:
    x = np.random.default_rng(1).normal(size=n)
    table = pd.DataFrame({"a": x, "b": 2.0 * x + np.random.default_rng(2).normal(size=n)})
    table.loc[:3, "a"] = np.nan
    table.loc[2:6, "b"] = np.nan
    return table


SMALL = {"epochs": 2, "hidden_size": 8, "random_state": 0}
TABLE = mixed_table()
LONG = (*PAPERS, "hivae")
"""Models that take their time to compile."""
EACH = [pytest.param(name, marks=[pytest.mark.more] if name in LONG else []) for name in MODELS]
"""Every model."""


def ruled_table(n: int = 160) -> pd.DataFrame:
    """Columns that follow from each other by sharp rules, with gaps."""
    rng = np.random.default_rng(0)
    x, y = rng.random((2, n))
    table = pd.DataFrame(
        {"x": x, "y": y, "step": np.where((x > 0.5) == (y > 0.5), 3.0, 1.0) + 0.1 * rng.normal(size=n)}
    )
    table["corner"] = np.array(["a", "b", "c"])[(x > 0.5).astype(int) + ((x > 0.5) & (y > 0.5))]
    table["side"] = np.where(y > 0.5, "up", "down")
    return table.mask(rng.random(table.shape) < 0.1)


def encode(table: pd.DataFrame) -> EncodedTable:
    scaler, opened = LipschitzScaler("lip-none", random_state=0).fit(table), open_table(table)
    values = [one.encode(cells)[0] for one, cells in zip(scaler.columns_, opened.columns, strict=True)]
    specs = [describe(one, own, binned=True) for one, own in zip(scaler.columns_, values, strict=True)]
    return EncodedTable(tuple(map(EncodedColumn, specs, values)), lay_out(specs))


class GaussianFiller:
    """A filler that needs no networks: conditional means of a joint normal."""

    def __init__(self, table: EncodedTable, gaussian: Gaussian | None = None) -> None:
        self.features, self.owners = gaussian_features(table), feature_owners(table)
        self.gaussian = gaussian or fit_gaussian(self.features)

    def fill(self, features: Any) -> Any:
        return np.where(np.isnan(features), expect(self.gaussian, features)[0], features)

    def hiding(self, columns: Any) -> Any:
        """Return the features, filled with some columns hidden: rows x columns, or one row for all."""
        return self.fill(np.where(np.asarray(columns)[..., self.owners], np.nan, self.features))

    def fill_held(self, held: HeldOut, one: Any) -> Any:
        return self.hiding(held.cells | one.hides)[held.cells.any(1)]

    def fill_without(self, one: Any, j: int) -> Any:
        hidden = np.broadcast_to(np.asarray(one.hides), (self.owners.max() + 1,)).copy()
        hidden[j] = True
        return np.where(self.owners == j, self.features, self.hiding(hidden))
