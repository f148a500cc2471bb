"""Column specs: the interface that both kinds of modelled columns implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenly._support import show
from evenly.imputation.calibration import PLAIN, Calibration
from evenly.imputation.experts import NO_EXPERTS, Experts
from evenly.likelihoods import Likelihood, Support
from evenly.predictive import Bins, ClassPredictive, Predictive
from evenly.scaling import FittedColumn, scaled_smoothness
from evenly.tables import Column, Floats, Precision, prepare

FARTHEST_INPUT = 1e3
"""Standardized inputs are clipped here: of n rows none is beyond sqrt(n), so that only outliers in new rows are."""
FARTHEST_RAW = 1e15
"""Raw inputs are clipped here: a batch's sum of their squares is finite in single precision."""
FARTHEST_TARGET = 20.0
"""Standard deviations at which the normal of a binned column is clipped, so that no single cell dominates the loss."""
MARGINAL_SHARE = 0.02
"""How much of the column's own shares is added to counted ones: a few cells do not make others impossible."""
DIGITS = 15
"""The decimal digits that a double holds."""
LARGEST = 1e300
"""Imputed numbers never exceed this, whatever the model predicts."""


@dataclass(frozen=True)
class ColumnSpec(ABC):
    """How one column of the fitted table is modelled. Three kinds: `by_likelihood`, `binned`, `unmodelled`."""

    fitted: FittedColumn
    modelled: ClassVar[bool] = True
    """Whether the column is part of the model."""
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

    @property
    def needs_density(self) -> bool:
        """Whether the model can only take numbers that the column's likelihood has a density for."""
        return False

    @abstractmethod
    def check(self) -> None:
        """Raise an error if a saved spec does not go with its fitted column."""

    def to_plain(self) -> dict[str, Any]:
        """Return the spec as plain JSON types, without the fitted column, which is saved with the scaler."""
        plain = {name: value for name, value in vars(self).items() if name != "fitted"}
        return {"kind": self.kind, **{k: asdict(v) if isinstance(v, Bins) else v for k, v in plain.items()}}


@dataclass(frozen=True)
class UnmodelledColumn(ColumnSpec):
    """A column that is not modelled: ignored, empty, constant, or too far from 0 for single precision."""

    modelled = False
    kind = "unmodelled"
    constant: float = np.nan
    """The imputed value: that of a constant column, the median of one too far from 0; NaN if there is none."""
    too_far: bool = False
    """Whether it is too many standard deviations away from 0 for single precision to resolve its values."""

    def check(self) -> None:
        """Raise an error if the constant is no value of the column."""
        n_classes = len(self.column.classes or ()) if self.column.has_classes else None
        known = self.constant in range(n_classes) if n_classes is not None else abs(self.constant) < np.inf
        if not (known or np.isnan(self.constant)):
            raise ValueError(f"a constant of {self.constant:g}, which the column {show(self.name)} cannot have")


@dataclass(frozen=True)
class ModelledColumn(ColumnSpec):
    """A column that is modelled by one or several features."""

    observed: float = 0.0
    """The share of observed cells."""
    extent: Sequence[float] = (np.nan, np.nan)
    """The smallest and the largest observed value."""
    whole: bool = False
    """Whether all observed numbers are whole."""
    precision: Sequence[int] | None = None
    """Decimals and multiple that observed numbers were recorded with, as in `Precision`; None if they are not fixed."""
    centers: Sequence[float] = ()
    spreads: Sequence[float] = ()
    """Means and standard deviations of the inputs."""

    def check(self) -> None:
        """Raise an error if the numbers are not of such a column."""
        if self.fitted.family is None or not self.fitted.statistics.n:
            raise ValueError(f"a model of {show(self.name)}, which is ignored or empty")
        if not len(self.centers) == len(self.spreads) == self.n_plain:
            raise ValueError(f"{len(self.centers)} centers of {show(self.name)}, expected {self.n_plain}")
        finite = np.isfinite([*self.extent, *self.centers, *self.spreads]).all()
        if not (finite and 0.0 < self.observed <= 1.0 and min(self.spreads) > 0.0):
            raise ValueError(f"centers, spreads or extent of {show(self.name)} that are no numbers of a column")
        if len(self.extent) != 2 or self.extent[0] > self.extent[1]:
            raise ValueError(f"an extent of {show(self.extent)} of {show(self.name)}")
        if self.precision is not None and not (
            len(self.precision) == 2 and 0 <= self.precision[0] <= DIGITS and self.precision[1] >= 1
        ):
            raise ValueError(f"a precision of {show(self.precision)} of {show(self.name)}")

    @property
    def n_plain(self) -> int:
        """The number of inputs that are standardized."""
        return self.column.n_outcomes if self.column.kind in ("categorical", "ordinal") else 1

    @property
    @abstractmethod
    def likelihoods(self) -> list[Likelihood]:
        """The likelihood of each feature."""

    @property
    @abstractmethod
    def stand_ins(self) -> Sequence[float]:
        """The placeholder of each feature in missing cells."""

    @property
    @abstractmethod
    def log_jacobian(self) -> float:
        """What is added to the mean log-likelihood of the features to get that of the column; 0 under a trick."""

    @property
    @abstractmethod
    def marginal_naturals(self) -> list[Any]:
        """The natural parameters of each feature's marginal."""

    @abstractmethod
    def targets(self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None) -> list[Floats]:
        """Return the features to model; without a seed, with the mean of the Gamma trick's noise."""

    @abstractmethod
    def predict(
        self, naturals: Sequence[Floats], calibration: Calibration = PLAIN, experts: Experts = NO_EXPERTS
    ) -> Predictive:
        """Return calibrated predictive distributions, given the natural parameters of each feature.

        Parameters
        ----------
        experts : Experts, optional
            The experts' predictions of the same cells; NaN where they have none.
        """

    @property
    @abstractmethod
    def n_gaussian(self) -> int:
        """The number of features of the column in the Gaussian expert."""

    @abstractmethod
    def gaussian_features(self, values: Floats) -> Floats:
        """Return the features of the Gaussian expert, standardized: rows x features, NaN where missing."""

    def expected_features(self, found: Predictive) -> Floats:
        """Return the expected features of the Gaussian expert, given distributions of cells: rows x features."""
        if isinstance(found, ClassPredictive):
            of_classes = self.gaussian_features(np.arange(float(self.n_outcomes)))
            # Row by row, so that rounding does not depend on how many there are.
            return np.asarray(np.einsum("rk,kf->rf", found.probabilities, of_classes))
        return self.gaussian_features(found.mean())

    @abstractmethod
    def from_gaussian(self, means: Floats, stds: Floats) -> Predictive | None:
        """Return predictive distributions, given the Gaussian expert's predictions of these features, if it has any."""

    @property
    def n_outcomes(self) -> int:
        """The number of classes that are told apart, or of bins; 0 of a number that has none."""
        return self.column.n_outcomes if self.column.has_classes else 0

    def outcomes(self, values: Floats) -> Floats:
        """Return the class or the bin of each value; classes that are modelled as one have one code."""
        return np.asarray(self.column.lump(values))

    @abstractmethod
    def from_outcomes(self, means: Floats, shares: Floats) -> Predictive:
        """Return predictive distributions, given standardized means (of numbers) and shares of classes or bins.

        Shares are counts, which may be 0 by chance: a small part of the column's own is added.
        """

    @property
    @abstractmethod
    def support(self) -> Support:
        """The support of the column's likelihood."""

    @property
    def is_calibrated(self) -> bool:
        """Whether its predictions are calibrated on validation cells."""
        return self.column.has_classes

    @property
    def smoothness(self) -> float:
        """The smoothness of the features' likelihoods at their marginals, summed."""
        pairs = zip(self.likelihoods, self.marginal_naturals, strict=True)
        with np.errstate(all="ignore"):
            return float(sum(scaled_smoothness(one, np.asarray(natural), 1.0) for one, natural in pairs))

    @property
    def n_inputs(self) -> int:
        """The number of inputs of an encoder."""
        return len(self.centers)

    @property
    def inputs_need_no_draw(self) -> bool:
        """Whether the inputs of a row depend on nothing but its cell."""
        return True

    def plain_inputs(self, values: Floats) -> Floats:
        """Return the inputs of an encoder before they are standardized."""
        return encoder_inputs(self.column, values)

    def inputs(self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None) -> Floats:
        """Return the inputs of an encoder, standardized and the same under every method; 0 where missing.

        Seed and keys are those of the features, in case inputs are made of these.
        """
        standard = standardize(self.plain_inputs(values), self.centers, self.spreads)
        return np.where(np.isnan(values)[:, None], 0.0, np.clip(standard, -FARTHEST_INPUT, FARTHEST_INPUT))

    def bounded(self, values: Floats, *, rounded: bool, to_support: bool) -> Floats:
        """Clip imputed numbers to the column's declared bounds or observed range, and round them if asked.

        Parameters
        ----------
        rounded : bool
            Whether to round to the precision of the observed numbers.
        to_support : bool
            Clip to the likelihood's support instead of the observed range, as the paper does.
        """
        column = self.column
        if column.has_classes:
            return values
        (low, high), support = self.extent, self.support
        # An open end of the support has no density: the smallest observed number is used instead.
        open_end = -np.inf if support.closed or support.whole else support.lower - column.shift
        if to_support:
            low, high = max(support.lower - column.shift, -LARGEST), min(support.upper, LARGEST)
        low = low if column.lower is None else column.lower
        high = high if column.upper is None else column.upper
        values = np.clip(values, low, high)
        values = np.where(values > open_end, values, self.extent[0])
        return Precision(*self.precision).round(values, low, high) if rounded and self.precision else values


# --- arithmetic ---------------------------------------------------------------------------------------------------


def standardize(values: Floats, center: Any, spread: Any) -> Floats:
    """Return (values - center) / spread; infinite only where the result is, not where the difference overflows.

    Examples
    --------
    >>> standardize(np.array([5.0, 1.7e308]), 4.0, 2.0).tolist(), standardize(np.array([1.6e308]), -1.6e308, 8e307)
    ([0.5, 8.5e+307], array([4.]))
    """
    with np.errstate(over="ignore"):
        away = np.asarray(values - center)
        return np.asarray(np.where(np.isinf(away), values / spread - np.asarray(center) / spread, away / spread))


def encoder_inputs(column: Column, values: Floats) -> Floats:
    """Return the unscaled inputs of an encoder, the same under every method: one-hot classes, logs of positives."""
    if column.kind in ("categorical", "ordinal"):
        return np.asarray(column.lump(values)[:, None] == np.arange(column.n_outcomes), np.float64)
    if column.kind == "positive":
        values = np.log(prepare(column, values))
    return values[:, None]
