"""What a model is to the rest of the package: what it can do, how it is fitted, what it predicts. Without JAX."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.models.layout import Data, Layout

Floats = npt.NDArray[np.float64]


class Info(NamedTuple):
    """For looking at: the ELBO per row and its log-likelihood by column (per row, observed cells)."""

    elbo: Any
    log_likelihood: Any


class History(NamedTuple):
    """What every epoch brought, as arrays: epoch x (runs x) ..."""

    elbo: npt.NDArray[Any]
    log_likelihood: npt.NDArray[Any]
    interrupted: bool = False


class Watched(NamedTuple):
    """What was seen at some points of a training: after how many epochs, each column's gradient norm and its change."""

    epochs: npt.NDArray[Any]
    gradients: npt.NDArray[Any]
    changes: npt.NDArray[Any]


class Stream(NamedTuple):
    """A table that comes part by part, without end: an epoch is `n_parts` of them, each of `n_steps` batches."""

    parts: Iterator[Data]
    n_parts: int
    n_steps: int


class Fitted(NamedTuple):
    """A model's shared parameters, what every epoch brought, and what was watched on the way."""

    shared: dict[str, Any]
    history: History
    watched: Watched


class Model(ABC):
    """What a model says of itself. It is a frozen set of sizes: it holds no arrays."""

    learning_rate: ClassVar[float] = 1e-3
    """The paper's."""
    trains: ClassVar[bool] = True
    """Whether it is learned by steps; otherwise there is nothing to wait for, to hold out cells for, or to average."""
    reads_inputs: ClassVar[bool] = False
    """Whether it looks at `Data.inputs`; otherwise there need not be any."""
    by_cell: ClassVar[bool] = False
    """Whether it predicts each cell from the others, without variables of rows: then cells are drawn one by one."""
    by_row: ClassVar[bool] = False
    """Whether it has variables of rows, which must all be in memory; otherwise a table may come part by part."""

    @property
    def hides(self) -> bool:
        """Whether it is trained to predict cells that are hidden from it: then held-out ones can say when to stop."""
        return self.by_cell and self.trains

    @classmethod
    @abstractmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Model:
        """Return the model with the paper's sizes for a table, but for those that are given by name."""

    @abstractmethod
    def fit(self, layout: Layout, data: Data, seed: int, learning_rate: float, **settings: Any) -> Fitted:
        """Fit the model from the start; the settings are those of `fitting.fit_model`."""

    @abstractmethod
    def predict_natural(
        self,
        layout: Layout,
        shared: Mapping[str, Any],
        data: Data,
        draw: Sequence[int] | None = None,
        *,
        alike: bool = False,
    ) -> list[npt.NDArray[Any]]:
        """Return the natural parameters of every feature for rows that may be new.

        Parameters
        ----------
        draw : numbers, optional
            Seeds of a draw from the posterior; without, its mean is taken.
        alike : bool
            Whether every row draws the same random numbers, so that what comes of it is its own alone.
        """


def flatten(shared: Mapping[str, Any], before: str = "") -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of shared parameters, which are dicts in dicts, by name.

    Examples
    --------
    >>> flatten({"first": {"weight": np.zeros(2)}, "rho": np.ones(1)})
    {'first/weight': array([0., 0.]), 'rho': array([1.])}
    """
    found: dict[str, npt.NDArray[Any]] = {}
    for name, value in shared.items():
        if isinstance(value, Mapping):
            found |= flatten(value, f"{before}{name}/")
        else:
            found[before + name] = np.asarray(value)
    return found


def unflatten(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Undo `flatten`.

    Examples
    --------
    >>> unflatten({"first/weight": np.zeros(2)})
    {'first': {'weight': array([0., 0.])}}
    """
    found: dict[str, Any] = {}
    for name, value in arrays.items():
        *path, last = name.split("/")
        own = found
        for step in path:
            own = own.setdefault(step, {})
        own[last] = value
    return found
