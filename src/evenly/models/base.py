"""The interface of a model: how it is fitted, what it predicts. Without JAX."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.models.layout import Data, Layout
from evenly.models.spec import ModelSpec, register

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


class Trace(NamedTuple):
    """Gradients at some points of a training: after how many epochs, each column's gradient norm and its change."""

    epochs: npt.NDArray[Any]
    gradients: npt.NDArray[Any]
    changes: npt.NDArray[Any]


class Stream(NamedTuple):
    """A table that comes part by part, without end: an epoch is `n_parts` of them, each of `n_steps` batches."""

    parts: Iterator[Data]
    n_parts: int
    n_steps: int


class Fitted(NamedTuple):
    """A model's shared parameters, what every epoch brought, and the gradients that were asked for."""

    shared: dict[str, Any]
    history: History
    trace: Trace


@dataclass(frozen=True)
class Plan:
    """How a model is trained."""

    learning_rate: float
    epochs: int
    batch_size: int = 1024
    weights: Any = 1.0
    """Of each column's log-likelihood in the objective."""
    trace_points: int | None = None
    """At how many points to trace gradients, evenly spaced, and before the first epoch; 0: there alone."""


class Watchers(NamedTuple):
    """Who is asked while a model is trained."""

    validate: Callable[[Any], float] | None = None
    """A score of shared parameters, the higher the better: training ends when it no longer rises."""
    on_epoch: Callable[[float, Info], bool | None] | None = None
    """Called with the epoch and its info; training ends if it returns True."""


NOBODY = Watchers()


class Model(ABC):
    """A model of some sizes: a frozen dataclass that holds no arrays.

    A subclass that declares a `spec` is known by its name from then on.
    """

    spec: ClassVar[ModelSpec]
    """What the model can do."""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Register a model that has a spec."""
        super().__init_subclass__(**settings)
        if "spec" in vars(cls):
            register(cls.spec, cls)

    @property
    def hides_cells(self) -> bool:
        """Whether it is trained to predict cells hidden from it: then validation cells can end the training."""
        return self.spec.calibrated

    @classmethod
    @abstractmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Model:
        """Return the model with the paper's sizes for a table, but for those that are given by name."""

    @abstractmethod
    def fit(
        self,
        layout: Layout,
        data: Data,
        seed: int,
        plan: Plan,
        watchers: Watchers = NOBODY,
        stream: Stream | None = None,
    ) -> Fitted:
        """Fit the model from the start.

        Parameters
        ----------
        stream : Stream, optional
            All rows, part by part; then `data` are only some of them, to start from.
        """

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
