"""The interface of predictive distributions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from evenly._support import require
from evenly.tables import Column, Floats, build_table


class Predictive(ABC):
    """The distributions of a column's cells, one per row.

    Examples
    --------
    >>> from evenly.tables import Column
    >>> colour = Column(name="colour", kind="categorical", classes=["blue", "red"])
    >>> from evenly.predictive import CategoricalPredictive
    >>> cells = CategoricalPredictive(colour, np.array([[0.2, 0.8], [0.5, 0.5]]))
    >>> cells.mode().tolist(), cells.log_prob(np.array([1.0, 0.0])).round(3).tolist()
    ([1.0, 0.0], [-0.223, -0.693])
    """

    column: Column

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The usual parameters by name: arrays with one entry, or one vector, per row."""

    @abstractmethod
    def mean(self) -> Floats:
        """Return the mean of each distribution; for classes, the most probable one."""

    @abstractmethod
    def mode(self) -> Floats:
        """Return the most probable value of each distribution."""

    @abstractmethod
    def quantile(self, level: float) -> Floats:
        """Return a quantile of each distribution; for classes, the most probable one."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Floats:
        """Draw one value from each distribution."""

    @abstractmethod
    def log_prob(self, values: Floats) -> Floats:
        """Return the log-density, or the log-probability, of one value per row; NaN where the value is NaN."""

    @abstractmethod
    def mix(self, others: Sequence[Self]) -> Self:
        """Return the mixture with other distributions of the same column, with equal weights."""

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        """Return the mixture with single values of other rows.

        Parameters
        ----------
        share : array
            The total weight of the values in the mixture of each row.
        weights, values : arrays
            Rows x values; the weights of a row add up to its share.
        """
        raise NotImplementedError  # a likelihood's family is not closed under it, and its columns are not calibrated

    @abstractmethod
    def take(self, rows: Any) -> Self:
        """Return the distributions of a selection of the rows."""

    @abstractmethod
    def append(self, others: Sequence[Self]) -> Self:
        """Return these distributions followed by those of other rows."""

    @abstractmethod
    def _shown(self) -> dict[str, Floats]:
        """Return the columns of `to_frame`."""

    def median(self) -> Floats:
        """Return the median of each distribution."""
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central intervals that contain a number with the probability `level`."""
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def estimate(self, which: str) -> Floats:
        """Return the mean, the median or the mode of each distribution."""
        found: Floats = getattr(self, which)()
        return found

    def to_frame(self) -> Any:
        """Return a table with one row per distribution: mean and quantiles of numbers, probabilities of classes.

        A pandas frame if pandas is installed, else a Polars frame.

        Examples
        --------
        Needs `pip install "evenly[tool]"` or `pip install evenly pandas`.

        >>> from evenly.tables import Column
        >>> smokes = Column(name="smokes", kind="binary", classes=["no", "yes"])
        >>> from evenly.predictive import BinaryPredictive
        >>> frame = BinaryPredictive(smokes, np.array([0.25])).to_frame()
        >>> {name: float(frame[name][0]) for name in frame.columns}
        {'no': 0.75, 'yes': 0.25}
        """
        if find_spec("pandas"):
            return build_table(self._shown(), "pandas")
        require("polars", "tool")
        return build_table(self._shown(), "polars")

    def __getitem__(self, name: str) -> Any:
        """Return a parameter by name; deprecated, for code that expects a dictionary."""
        message = f"distribution(...)[column][{name!r}] is deprecated: use .parameters[{name!r}]"
        warnings.warn(message, FutureWarning, stacklevel=2)
        return self.parameters[name]


# --- arithmetic ---------------------------------------------------------------------------------------------------


def add_mass(probabilities: Floats, share: Floats, weights: Floats, codes: Floats) -> Floats:
    """Return the mixture of probabilities, with weight 1 - share, and of codes with the given weights."""
    mixed = (1.0 - share)[:, None] * probabilities
    np.add.at(mixed, (np.arange(len(mixed))[:, None], codes.astype(np.intp)), weights)
    return mixed


def average(arrays: Sequence[Floats]) -> Floats:
    """Return the mean of arrays; a single array is returned as it is."""
    return arrays[0] if len(arrays) == 1 else np.asarray(sum(one / len(arrays) for one in arrays))
