"""What the imputer knows of one column: the protocol that both kinds of modelled columns implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenly.imputation.bins import Bins
from evenly.imputation.calibration import PLAIN, Calibration
from evenly.imputation.predictive import Predictive
from evenly.likelihoods import Likelihood, Support
from evenly.scaling import FittedColumn, prepare, scaled_smoothness
from evenly.tables import Column, Floats

FARTHEST_INPUT = 1e3
"""Standardized inputs are clipped here: n rows hold none beyond sqrt(n), so that only strange new rows are touched."""
FARTHEST_TARGET = 20.0
"""Standard deviations at which the normal of a binned column is clipped, so that no single cell dominates the loss."""
LARGEST = 1e300
"""An imputed number is never larger, whatever the model says."""


@dataclass(frozen=True)
class ColumnSpec(ABC):
    """How one column of the fitted table is modelled. Three kinds: `by_likelihood`, `binned`, `unmodelled`."""

    fitted: FittedColumn
    modelled: ClassVar[bool] = True
    """Whether a model explains it."""
    kind: ClassVar[str]
    """The name of this kind in saved files."""

    @property
    def column(self) -> Column:
        """The column of the schema."""
        return self.fitted.column

    @property
    def name(self) -> str:
        """The column's name."""
        return self.fitted.column.name

    def to_plain(self) -> dict[str, Any]:
        """Return the description as JSON can hold it; the fitted column is saved with the scaler."""
        plain = {name: value for name, value in vars(self).items() if name != "fitted"}
        return {"kind": self.kind, **{k: asdict(v) if isinstance(v, Bins) else v for k, v in plain.items()}}


@dataclass(frozen=True)
class UnmodelledColumn(ColumnSpec):
    """A column that no model explains: ignored, empty, constant, or too far from 0 for single precision."""

    modelled = False
    kind = "unmodelled"
    constant: float = np.nan
    """What is imputed: the only value of a constant column, the median of one that is too far."""
    too_far: bool = False
    """Whether it lies too many standard deviations away from 0 for single precision to tell its values apart."""


@dataclass(frozen=True)
class ModelledColumn(ColumnSpec):
    """A column that a model explains by one or several features."""

    observed: float = 0.0
    """The share of its cells that are observed."""
    extent: Sequence[float] = (np.nan, np.nan)
    """The smallest and the largest observed value."""
    whole: bool = False
    """Whether all its numbers are whole."""
    centers: Sequence[float] = ()
    spreads: Sequence[float] = ()
    """Mean and standard deviation of its inputs."""

    @property
    @abstractmethod
    def likelihoods(self) -> list[Likelihood]:
        """The likelihood of each feature."""

    @property
    @abstractmethod
    def stand_ins(self) -> Sequence[float]:
        """A value of each feature to stand where a cell is missing."""

    @property
    @abstractmethod
    def log_jacobian(self) -> float:
        """What turns the mean log-likelihood of its features into that of the column; 0 under a trick."""

    @property
    @abstractmethod
    def marginal_naturals(self) -> list[Any]:
        """The natural parameters of each feature of a model that knows the column alone."""

    @abstractmethod
    def targets(self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None) -> list[Floats]:
        """Return the features to explain; without a seed, with the mean of the Gamma trick's noise."""

    @abstractmethod
    def predict(
        self, naturals: Sequence[Floats], calibration: Calibration = PLAIN, expert: Predictive | None = None
    ) -> Predictive:
        """Return the distributions that the natural parameters of each feature describe, calibrated.

        Parameters
        ----------
        expert : Predictive, optional
            What the Gaussian expert says of the same cells; NaN where it says nothing.
        """

    @property
    @abstractmethod
    def n_gaussian(self) -> int:
        """How many features the Gaussian expert sees of the column."""

    @abstractmethod
    def gaussian_features(self, values: Floats) -> Floats:
        """Return the features of the Gaussian expert, standardized: rows x features, NaN where missing."""

    @abstractmethod
    def from_gaussian(self, means: Floats, stds: Floats) -> Predictive | None:
        """Return the distributions that the Gaussian expert's predictions of these features mean, if any."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """The numbers that the column's likelihood allows."""

    @property
    def is_calibrated(self) -> bool:
        """Whether validation cells can say how far to follow its predictions."""
        return self.column.has_classes

    @property
    def smoothness(self) -> float:
        """The smoothness of the features' likelihoods at the column's own fit."""
        pairs = zip(self.likelihoods, self.marginal_naturals, strict=True)
        with np.errstate(all="ignore"):
            return float(sum(scaled_smoothness(one, np.asarray(natural), 1.0) for one, natural in pairs))

    def inputs(self, values: Floats) -> Floats:
        """Return what an encoder sees of the column, standardized and the same under every method; 0 where missing."""
        standard = standardize(encoder_inputs(self.column, values), self.centers, self.spreads)
        return np.where(np.isnan(values)[:, None], 0.0, np.clip(standard, -FARTHEST_INPUT, FARTHEST_INPUT))

    def bounded(self, values: Floats, *, whole: bool, to_support: bool) -> Floats:
        """Bring imputed numbers into what the column holds: its bounds or observed range, whole numbers.

        Parameters
        ----------
        whole : bool
            Whether to round, if all observed numbers are whole.
        to_support : bool
            Clip to the likelihood's support instead of the observed range, as the paper does.
        """
        column = self.column
        if column.has_classes:
            return values
        (low, high), support = self.extent, self.support
        # An open end of the support has no density: the smallest observed number stands there.
        open_end = -np.inf if support.closed or support.whole else support.lower - column.shift
        if to_support:
            low, high = max(support.lower - column.shift, -LARGEST), min(support.upper, LARGEST)
        low = low if column.lower is None else column.lower
        high = high if column.upper is None else column.upper
        values = np.clip(values, low, high)
        values = np.where(values > open_end, values, self.extent[0])
        return np.clip(np.rint(values), np.ceil(low), np.floor(high)) if whole and self.whole else values


# --- arithmetic ---------------------------------------------------------------------------------------------------


def standardize(values: Floats, center: Any, spread: Any) -> Floats:
    """Return how many spreads values lie away from a center; infinite only where that is no number.

    Examples
    --------
    >>> standardize(np.array([5.0, 1.7e308]), 4.0, 2.0).tolist(), standardize(np.array([1.6e308]), -1.6e308, 8e307)
    ([0.5, 8.5e+307], array([4.]))
    """
    with np.errstate(over="ignore"):
        away = np.asarray(values - center)
        return np.asarray(np.where(np.isinf(away), values / spread - np.asarray(center) / spread, away / spread))


def encoder_inputs(column: Column, values: Floats) -> Floats:
    """Return what an encoder sees of a column, unscaled and whatever the method: one-hot classes, logs of positives."""
    if column.kind in ("categorical", "ordinal"):
        return np.asarray(values[:, None] == np.arange(len(column.classes or ())), np.float64)
    if column.kind == "positive":
        values = np.log(prepare(column, values))
    return values[:, None]
