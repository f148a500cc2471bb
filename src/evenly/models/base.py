"""The interface of a model: fitting and prediction. Does not import JAX."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import NEVER, Deadline
from evenly.models.layout import Data, Layout
from evenly.models.spec import ModelSpec, register

Floats = npt.NDArray[np.float64]


class Info(NamedTuple):
    """Diagnostics of a step or an epoch: the ELBO, and the log-likelihood of each column's observed cells, per row."""

    elbo: Any
    log_likelihood: Any


class History(NamedTuple):
    """The diagnostics of every epoch, as arrays: epoch x (runs x) ..."""

    elbo: npt.NDArray[Any]
    log_likelihood: npt.NDArray[Any]
    interrupted: bool = False
    not_finite: int = 0
    """How often the loss or a parameter was not finite, so that training went back and halved its learning rate."""


class Trace(NamedTuple):
    """Gradient norms during training: the epochs they were taken at, each column's norm, and its change by one step."""

    epochs: npt.NDArray[Any]
    gradients: npt.NDArray[Any]
    changes: npt.NDArray[Any]
    log_likelihood: npt.NDArray[Any] = np.zeros((0, 0))
    """What `Watchers.score_columns` returned at these epochs."""
    not_finite: int = 0
    """That of the history."""


class Stream(NamedTuple):
    """An endless stream of a table's rows: an epoch is `n_parts` parts of `n_steps` batches each."""

    parts: Iterator[Data]
    n_parts: int
    n_steps: int


class Fitted(NamedTuple):
    """A fitted model: its shared parameters, training history, gradient trace, and the variables of its rows."""

    shared: dict[str, Any]
    history: History
    trace: Trace
    rows: Mapping[str, npt.NDArray[Any]] = {}
    """The learned variables of each row of fit, by name, along the first axis; none without `row_variables`."""
    log_scales: npt.NDArray[np.float64] | None = None
    """By how much the log of each feature's scale has moved, under a rule that moves scales."""


class RowVariables(NamedTuple):
    """Learned variables of rows to predict, and which rows have them: those that fit has seen."""

    variables: Mapping[str, npt.NDArray[Any]]
    """By name, along the first axis; anything for rows that are not known."""
    known: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Plan:
    """Training settings of a model."""

    learning_rate: float
    epochs: int
    batch_size: int = 1024
    weights: Any = 1.0
    """The weight of each column's log-likelihood in the objective."""
    trace_points: int | Literal["log"] | None = None
    """Trace gradients before the first epoch and at this many evenly spaced points after it; "log": after 1, 2, 4, 8
    and so on epochs and after the last; None: never."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """Adam, or gradient descent with momentum."""
    target: float = 1.0
    """The smoothness that every column is to have, for rules that move scales."""
    rule: Any = None
    """The `Rule` that weighs the columns' gradients anew at every step, for models with a shared output."""


class Watchers(NamedTuple):
    """Functions that are called during training."""

    validate: Callable[[Any], float] | None = None
    """Scores shared parameters, higher is better; training stops early when the score no longer improves."""
    on_epoch: Callable[[float, Info], bool | None] | None = None
    """Called with the epoch and its info; training stops if it returns True."""
    score_columns: Callable[[Any, Mapping[str, npt.NDArray[Any]]], npt.NDArray[Any]] | None = None
    """Given the shared parameters and the rows' variables, returns a number for each column: for the trace."""
    deadline: Deadline = NEVER
    """When training has to be done."""
    share: float = 1.0
    """The share of the time to the deadline that this training may take, from when its programs are compiled."""


NOBODY = Watchers()


class Expected(NamedTuple):
    """An array of a model's shared parameters, as a saved file must have it."""

    shape: tuple[int | str, ...]
    """A name stands for any size, the same in all arrays of the model."""
    below: int | None = None
    """For indices: what all of them are smaller than."""
    finite: bool = True
    """Whether all numbers are finite; if not, infinite ones are allowed."""
    least: int = 0
    """For indices: the smallest."""


class Model(ABC):
    """A model with given sizes: a frozen dataclass without arrays.

    A subclass that declares a `spec` is registered under its name.
    """

    spec: ClassVar[ModelSpec]
    """What the model can do."""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Register a subclass that declares a spec."""
        super().__init_subclass__(**settings)
        if "spec" in vars(cls):
            register(cls.spec, cls)

    @property
    def hides_cells(self) -> bool:
        """Whether it is trained to predict hidden cells, so that validation cells can stop training early."""
        return self.spec.calibrated

    @classmethod
    @abstractmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Model:
        """Return the model with default sizes for a table; `sizes` overrides them by name."""

    def expected_arrays(self, layout: Layout) -> Mapping[str, Expected] | None:
        """Return the arrays of the shared parameters by their names in `flatten`; by default, None: any arrays."""
        return None

    @property
    def expected_row_variables(self) -> Mapping[str, Expected]:
        """The learned variables of each row, as a saved file must have them; none by default."""
        return {}

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
        """Fit the model from scratch.

        Parameters
        ----------
        stream : Stream, optional
            All rows, in parts; `data` is then a sample of them, to initialize from.
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
        rows: RowVariables | None = None,
    ) -> list[npt.NDArray[Any]]:
        """Return the natural parameters of every feature, for rows of fit or new ones.

        Parameters
        ----------
        draw : numbers, optional
            Seeds of a draw from the posterior; by default, its mean is used.
        alike : bool
            Whether every row uses the same random numbers, so that its result does not depend on other rows.
        rows : RowVariables, optional
            The learned variables of rows of fit; those of other rows are inferred. Given to models with
            `row_variables` only.
        """


def flatten(shared: Mapping[str, Any], before: str = "") -> dict[str, npt.NDArray[Any]]:
    """Flatten nested dicts of parameters into arrays by name.

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
    """Invert `flatten`.

    Examples
    --------
    >>> unflatten({"first/weight": np.zeros(2)})
    {'first': {'weight': array([0., 0.])}}
    """
    found: dict[str, Any] = {}
    for name, value in arrays.items():
        *path, last = name.split("/")
        branch = found
        for step in path:
            branch = branch.setdefault(step, {})
        branch[last] = value
    return found


def check_arrays(expected: Mapping[str, Expected], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise a ValueError that names the first array that is not as expected.

    Examples
    --------
    >>> check_arrays({"weight": Expected(("n", 2))}, {"weight": np.zeros((3, 2))})
    >>> check_arrays({"weight": Expected(("n", 2))}, {"weight": np.zeros((3, 4))})
    Traceback (most recent call last):
    ValueError: weight: an array of shape (3, 4), expected ('n', 2)
    """
    if apart := sorted(expected.keys() ^ arrays.keys()):
        raise ValueError(f"{apart[0]}: {'no such array' if apart[0] in expected else 'an array that nothing uses'}")
    sizes: dict[str, int] = {}
    for name, (shape, below, finite, least) in expected.items():
        one = arrays[name]
        wanted = tuple(sizes.get(n, n) if isinstance(n, str) else n for n in shape)
        if one.ndim != len(wanted) or any(
            isinstance(b, int) and a != b for a, b in zip(one.shape, wanted, strict=True)
        ):
            raise ValueError(f"{name}: an array of shape {one.shape}, expected {shape}")
        sizes |= {n: size for n, size in zip(shape, one.shape, strict=True) if isinstance(n, str)}
        if one.dtype.kind != ("f" if below is None else "i"):
            raise ValueError(f"{name}: an array of {one.dtype}")
        if below is None and (np.isnan(one).any() or (finite and np.isinf(one).any())):
            raise ValueError(f"{name}: numbers that are not finite")
        if below is not None and one.size and not least <= one.min() <= one.max() < below:
            raise ValueError(
                f"{name}: indices from {one.min()} to {one.max()}, expected them from {least} below {below}"
            )
