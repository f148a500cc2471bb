"""The training settings of an imputer's model, with "auto" resolved for a table."""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone

from evenly._support import TableError
from evenly.imputation.effort import USUAL, Effort
from evenly.models import SPECS, ModelSpec, published_epochs

Auto = Literal["auto"]
MOST_DRAWS = 10_000
"""The largest number of draws that predictions are averaged over."""
SIZES = ("latent_size", "n_clusters", "hidden_size")
MOVED = ("epochs", "batch_size", "learning_rate", "n_networks", "masked_training", "n_draws", "target", "bound", *SIZES)
"""Former parameters of `Imputer`."""


class Training(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """How an imputer's model is trained. All defaults depend on the model and the table.

    Parameters
    ----------
    epochs : int or "auto"
        The number of epochs; "auto" depends on the number of rows. `masked` stops early when validation cells are no
        longer predicted better.
    batch_size : int or "auto"
        The number of rows per step.
    learning_rate : float or "auto"
        The learning rate; "auto" is the model's default.
    n_networks : int or "auto"
        How many networks to train, from different starts and with different validation cells; their distributions are
        averaged. "auto": 3 for `masked` below 2,000 rows, else 1.
    sizes : mapping of str to int, optional
        Sizes of the model: `hidden_size` (masked, vae), `latent_size` (vae: 75 % of the number of columns;
        factorization: half; hivae: 10), `n_clusters` (mixture: 10, or 5 below 10,000 rows; hivae: 10), `column_size`
        (hivae: 5).
    masked_training : bool
        Train the VAE by hiding cells and stop it early, like `masked`.
    n_draws : int
        The number of draws of the latent variables that predictions of the paper's models are averaged over; 0 predicts
        at their mean.
    target, bound
        As in `LipschitzScaler`.
    optimizer : {"adam", "sgd"}
        Adam, or gradient descent with a momentum of 0.9, which needs a learning rate of its own.

    Examples
    --------
    >>> Training(epochs=20, sizes={"hidden_size": 64})
    Training(epochs=20, sizes={'hidden_size': 64})
    >>> Training(epochs=0.5).check()
    Traceback (most recent call last):
    evenly.TableError: got epochs = 0.5, but expected a whole number from 0.
    """

    def __init__(
        self,
        *,
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        learning_rate: float | Auto = "auto",
        n_networks: int | Auto = "auto",
        sizes: Mapping[str, int] | None = None,
        masked_training: bool = False,
        n_draws: int = 0,
        target: float | None = None,
        bound: Literal["exact", "paper"] = "exact",
        optimizer: Literal["adam", "sgd"] = "adam",
    ) -> None:
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_networks = n_networks
        self.sizes = sizes
        self.masked_training = masked_training
        self.n_draws = n_draws
        self.target = target
        self.bound = bound
        self.optimizer = optimizer

    def check(self) -> None:
        """Raise an error for invalid settings."""
        given: dict[str, Any] = {name: getattr(self, name) for name in ("epochs", "batch_size", "n_networks")}
        for name, value in (given | {"n_draws": self.n_draws} | dict(self.sizes or {})).items():
            least, auto = int(name not in ("epochs", "n_draws")), isinstance(value, str) and value == "auto"
            if not (auto and name in given) and not (isinstance(value, numbers.Integral) and int(value) >= least):
                raise TableError(f"{name} = {value!r}", f"expected a whole number from {least}")
        if self.n_draws > MOST_DRAWS:
            raise TableError(f"n_draws = {self.n_draws}", f"expected at most {MOST_DRAWS}: a mean gets no better")
        known = sorted({name for spec in SPECS.values() for name in spec.sizes})
        if unknown := [name for name in self.sizes or {} if name not in known]:
            raise TableError(f"the size {unknown[0]!r}", f"expected one of {', '.join(known)}")
        if self.optimizer not in ("adam", "sgd"):
            raise TableError(f"optimizer = {self.optimizer!r}", "expected 'adam' or 'sgd'")
        rate = self.learning_rate
        if rate != "auto" and not (isinstance(rate, numbers.Real) and np.isfinite(rate) and rate > 0):
            raise TableError(f"learning_rate = {rate!r}", "expected a positive number or 'auto'")

    # "auto" resolved.

    def rate_of(self, spec: ModelSpec) -> float:
        """Return the learning rate."""
        return spec.learning_rate if self.learning_rate == "auto" else float(self.learning_rate)

    def batch_size_of(self, spec: ModelSpec, n_rows: int) -> int:
        """Return the number of rows per step."""
        return spec.budget.batch_size(n_rows) if self.batch_size == "auto" else int(self.batch_size)

    def epochs_of(self, spec: ModelSpec, n_rows: int, *, paper: bool, streamed: bool, effort: Effort = USUAL) -> int:
        """Return the number of epochs."""
        if self.epochs != "auto":
            return int(self.epochs)
        if paper:
            return published_epochs(n_rows)
        return effort.epochs(spec.budget.epochs(n_rows, self.batch_size_of(spec, n_rows), streamed=streamed))

    def networks_of(self, spec: ModelSpec, n_rows: int, effort: Effort = USUAL) -> int:
        """Return the number of networks."""
        if self.n_networks != "auto":
            return int(self.n_networks)
        usual = spec.budget.networks(n_rows)
        return effort.networks(usual) if spec.calibrated else usual

    @property
    def model_sizes(self) -> dict[str, int]:
        """The given sizes, as passed to `Model.of_size`."""
        return {name: int(size) for name, size in (self.sizes or {}).items()} | {"masked": int(self.masked_training)}


def with_moved(training: Training | None, moved: Mapping[str, Any]) -> Training:
    """Return a training with settings that were passed to the imputer, with a deprecation warning."""
    names = ", ".join(f"{name}=..." for name in moved)
    warnings.warn(
        f"Imputer({names}) is deprecated and will be removed in the next release: use "
        "Imputer(training=evenly.Training(...)), sizes in Training(sizes={...})",
        FutureWarning,
        stacklevel=3,
    )
    found: Training = Training() if training is None else clone(training)
    sizes = {name: value for name, value in moved.items() if name in SIZES and value != "auto"}
    found.set_params(**{name: value for name, value in moved.items() if name not in SIZES})
    if sizes:
        found.set_params(sizes={**(found.sizes or {}), **sizes})
    return found


def hide_moved(estimator: type) -> None:
    """Remove the moved parameters from the signature that users and scikit-learn see."""
    init: Any = estimator.__init__  # type: ignore[misc]  # a class's own
    signature = inspect.signature(init)
    shown = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    init.__signature__ = signature.replace(parameters=shown)
