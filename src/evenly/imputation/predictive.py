"""Predictive distributions: what a model says of the cells of one column, one distribution a row, in the table's units.

Numbers have a likelihood's distribution or one over bins, classes have probabilities. Values of classes are their
codes: the places in `column.classes`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from evenly.imputation.bins import Bins
from evenly.likelihoods import STANDARD, Likelihood
from evenly.metrics import log_likelihood
from evenly.tables import Column, Floats, build_table

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of a number that `Predictive.to_frame` shows."""


class Predictive(ABC):
    """The distributions of a column's cells, one a row.

    Examples
    --------
    >>> from evenly.tables import Column
    >>> colour = Column(name="colour", kind="categorical", classes=["blue", "red"])
    >>> cells = CategoricalPredictive(colour, np.array([[0.2, 0.8], [0.5, 0.5]]))
    >>> cells.mode().tolist(), cells.log_prob(np.array([1.0, 0.0])).round(3).tolist()
    ([1.0, 0.0], [-0.223, -0.693])
    """

    column: Column

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The usual parameters by name: arrays with one entry, or one vector, a row."""

    @abstractmethod
    def mean(self) -> Floats:
        """Return the mean of each distribution; classes have none: the most probable one stands for it."""

    @abstractmethod
    def mode(self) -> Floats:
        """Return the most probable value of each distribution."""

    @abstractmethod
    def quantile(self, level: float) -> Floats:
        """Return a quantile of each distribution; of classes, the most probable one."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Floats:
        """Draw one value from each distribution."""

    @abstractmethod
    def log_prob(self, values: Floats) -> Floats:
        """Return the log-density, or the log-probability, of one value a row; NaN where the value is."""

    @abstractmethod
    def mix(self, others: Sequence[Self]) -> Self:
        """Return the mixture with others of the same column, in equal shares."""

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        """Return the mixture with single values of other rows.

        Parameters
        ----------
        share : array
            Of the values in the mixture of each row.
        weights, values : arrays
            Rows x values; the weights of a row add up to its share.
        """
        raise NotImplementedError

    @abstractmethod
    def take(self, rows: Any) -> Self:
        """Return the distributions of some rows."""

    @abstractmethod
    def append(self, others: Sequence[Self]) -> Self:
        """Return these distributions and then those of others, of further rows."""

    @abstractmethod
    def _shown(self) -> dict[str, Floats]:
        """Return what `to_frame` shows."""

    def median(self) -> Floats:
        """Return the median of each distribution."""
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central intervals that hold a number with the probability `level`."""
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def estimate(self, which: str) -> Floats:
        """Return the mean, the median or the mode of each distribution."""
        found: Floats = getattr(self, which)()
        return found

    def to_frame(self) -> Any:
        """Return a table with one row a distribution: mean and quantiles of numbers, probabilities of classes.

        A pandas frame if pandas is installed, else a Polars frame.

        Examples
        --------
        >>> from evenly.tables import Column
        >>> smokes = Column(name="smokes", kind="binary", classes=["no", "yes"])
        >>> BinaryPredictive(smokes, np.array([0.25])).to_frame()
             no   yes
        0  0.75  0.25
        """
        return build_table(self._shown(), "pandas" if find_spec("pandas") else "polars")

    def __getitem__(self, name: str) -> Any:
        """Return a parameter by name, as the dictionaries had it that stood here before."""
        message = f"distribution(...)[column][{name!r}] will go: use .parameters[{name!r}]"
        warnings.warn(message, FutureWarning, stacklevel=2)
        return self.parameters[name]


# --- classes ------------------------------------------------------------------------------------------------------


class ClassPredictive(Predictive):
    """Probabilities of classes."""

    probabilities: Floats
    """Rows x classes."""

    def mean(self) -> Floats:
        return self.mode()

    def quantile(self, level: float) -> Floats:
        return self.mode()

    def log_prob(self, values: Floats) -> Floats:
        return log_likelihood(self.column, self.parameters, values)

    def _shown(self) -> dict[str, Floats]:
        classes = self.column.classes or ()
        return {str(value): self.probabilities[:, k] for k, value in enumerate(classes)}


@dataclass(frozen=True)
class CategoricalPredictive(ClassPredictive):
    """Probabilities of a column's classes, rows x classes."""

    column: Column
    probabilities: Floats

    @property
    def parameters(self) -> dict[str, Any]:
        return {"probabilities": self.probabilities}

    def mode(self) -> Floats:
        return np.asarray(self.probabilities.argmax(-1), np.float64)

    def median(self) -> Floats:
        """Return the median class where classes are ordered, else the most probable one."""
        if self.column.kind != "ordinal":
            return self.mode()
        return np.asarray((np.cumsum(self.probabilities, -1)[..., :-1] < 0.5).sum(-1), np.float64)

    def sample(self, rng: np.random.Generator) -> Floats:
        shares = self.probabilities
        below = np.cumsum(shares, -1)[..., :-1] < rng.random(shares.shape[:-1])[..., None]
        return np.asarray(below.sum(-1), np.float64)

    def mix(self, others: Sequence[Self]) -> Self:
        return type(self)(self.column, _average([one.probabilities for one in (self, *others)]))

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        return type(self)(self.column, _add_mass(self.probabilities, share, weights, values))

    def take(self, rows: Any) -> Self:
        return type(self)(self.column, self.probabilities[rows])

    def append(self, others: Sequence[Self]) -> Self:
        return type(self)(self.column, np.concatenate([one.probabilities for one in (self, *others)]))


@dataclass(frozen=True)
class BinaryPredictive(ClassPredictive):
    """The probability of yes, the second class, in each row."""

    column: Column
    probability: Floats

    @property
    def parameters(self) -> dict[str, Any]:
        return {"probability": self.probability}

    @property
    def probabilities(self) -> Floats:  # type: ignore[override]  # computed here
        return np.stack([1.0 - self.probability, self.probability], axis=-1)

    def mode(self) -> Floats:
        return np.asarray(self.probability > 0.5, np.float64)

    def median(self) -> Floats:
        return self.mode()

    def sample(self, rng: np.random.Generator) -> Floats:
        return np.asarray(rng.random(self.probability.shape) < self.probability, np.float64)

    def mix(self, others: Sequence[Self]) -> Self:
        return type(self)(self.column, _average([one.probability for one in (self, *others)]))

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        return type(self)(self.column, (1.0 - share) * self.probability + (weights * values).sum(1))

    def take(self, rows: Any) -> Self:
        return type(self)(self.column, self.probability[rows])

    def append(self, others: Sequence[Self]) -> Self:
        return type(self)(self.column, np.concatenate([one.probability for one in (self, *others)]))


# --- numbers ------------------------------------------------------------------------------------------------------


class NumberPredictive(Predictive):
    """Distributions of numbers."""

    def _shown(self) -> dict[str, Floats]:
        named = {f"q{round(100 * level):02d}": self.quantile(level) for level in QUANTILES}
        return {"mean": self.mean(), **named}


@dataclass(frozen=True)
class BinnedPredictive(NumberPredictive):
    """Probabilities of a number's bins, and its mean, which is estimated apart from them.

    Examples
    --------
    >>> from evenly.imputation.bins import make_bins
    >>> from evenly.tables import Column
    >>> bins = make_bins(np.array([0.0, 0.0, 1.0, 2.0, 3.0]), n_quantiles=2, n_widths=0)
    >>> wait = BinnedPredictive(Column(name="wait", kind="real"), bins, np.array([1.2]), np.array([[0.5, 0.0, 0.5]]))
    >>> wait.mean(), wait.quantile(0.4), wait.parameters["std"].round(2)
    (array([1.2]), array([0.]), array([1.3]))
    """

    column: Column
    bins: Bins
    means: Floats
    probabilities: Floats
    """Rows x bins."""

    @cached_property
    def std(self) -> Floats:
        """The standard deviation of each distribution."""
        return self.bins.stds(self.probabilities)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"mean": self.means, "std": self.std, "probabilities": self.probabilities}

    def mean(self) -> Floats:
        return self.means

    def mode(self) -> Floats:
        return self.bins.modes(self.probabilities)

    def quantile(self, level: float) -> Floats:
        return self.bins.quantiles(self.probabilities, level)

    def sample(self, rng: np.random.Generator) -> Floats:
        return self.bins.quantiles(self.probabilities, rng.random(len(self.means)))

    def log_prob(self, values: Floats) -> Floats:
        return self.bins.log_density(self.probabilities, values)

    def mix(self, others: Sequence[Self]) -> Self:
        every = (self, *others)
        means, probabilities = _average([one.means for one in every]), _average([one.probabilities for one in every])
        return type(self)(self.column, self.bins, means, probabilities)

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        mixed = _add_mass(self.probabilities, share, weights, self.bins.codes(values))
        return type(self)(self.column, self.bins, (1.0 - share) * self.means + (weights * values).sum(1), mixed)

    def take(self, rows: Any) -> Self:
        return type(self)(self.column, self.bins, self.means[rows], self.probabilities[rows])

    def append(self, others: Sequence[Self]) -> Self:
        every = (self, *others)
        means = np.concatenate([one.means for one in every])
        return type(self)(self.column, self.bins, means, np.concatenate([one.probabilities for one in every]))


@dataclass(frozen=True)
class ParametricPredictive(NumberPredictive):
    """Distributions of a likelihood's family, of the number plus the column's shift.

    Examples
    --------
    >>> from evenly.likelihoods import LOG_NORMAL
    >>> from evenly.tables import Column
    >>> wage = Column(name="wage", kind="positive", likelihood="log-normal", shift=1.0)
    >>> usual = {"log_mean": np.array([2.0]), "log_std": np.array([0.5])}
    >>> cells = ParametricPredictive(wage, LOG_NORMAL, usual)
    >>> [round(float(cells.estimate(which)[0]), 3) for which in ("mean", "median", "mode")]
    [7.373, 6.389, 4.755]
    """

    column: Column
    family: Likelihood
    usual: Mapping[str, Floats]
    """The family's usual parameters by name, one entry a row."""

    @property
    def parameters(self) -> dict[str, Any]:
        return {**self.usual, **({"shift": self.column.shift} if self.column.shift else {})}

    @property
    def _plain(self) -> bool:
        """Whether mean and std say it all: a normal of 1e300 has no natural parameters, its variance overflows."""
        return self.family.location_scale and not self.family.in_logs

    @property
    def _natural(self) -> Floats:
        return _natural(self.family, self.usual)

    def mean(self) -> Floats:
        """Return the mean of each distribution; the median where the mean is infinite."""
        if self._plain:
            return np.asarray(self.usual["mean"])
        with np.errstate(over="ignore"):
            value = self.family.mean(self._natural)
            if not np.isfinite(value).all():
                value = np.where(np.isfinite(value), value, self.family.median(self._natural))
        return np.asarray(value - self.column.shift)

    def median(self) -> Floats:
        return self._of_family("median")

    def mode(self) -> Floats:
        return self._of_family("mode")

    def _of_family(self, which: str) -> Floats:
        if self._plain:
            return np.asarray(self.usual["mean"])
        with np.errstate(over="ignore"):
            return np.asarray(getattr(self.family, which)(self._natural) - self.column.shift)

    def quantile(self, level: float) -> Floats:
        if self._plain:
            return np.asarray(self.usual["mean"] + self.usual["std"] * STANDARD.inv_cdf(level))
        with np.errstate(over="ignore"):
            return np.asarray(self.family.quantile(self._natural, level) - self.column.shift)

    def sample(self, rng: np.random.Generator) -> Floats:
        if self._plain:
            return np.asarray(self.usual["mean"] + self.usual["std"] * rng.standard_normal(self.usual["mean"].shape))
        with np.errstate(over="ignore"):
            return np.asarray(self.family.sample(rng, self._natural) - self.column.shift)

    def log_prob(self, values: Floats) -> Floats:
        return log_likelihood(self.column, self.usual, values, self.family)

    def mix(self, others: Sequence[Self]) -> Self:
        """Return the distribution of the family that is nearest to the mixture; see `mix_parameters`."""
        if not others:
            return self
        return type(self)(self.column, self.family, mix_parameters(self.family, [one.usual for one in (self, *others)]))

    def take(self, rows: Any) -> Self:
        return type(self)(self.column, self.family, {name: one[rows] for name, one in self.usual.items()})

    def append(self, others: Sequence[Self]) -> Self:
        every = (self, *others)
        usual = {name: np.concatenate([one.usual[name] for one in every]) for name in self.usual}
        return type(self)(self.column, self.family, usual)


def mix_parameters(family: Likelihood, usuals: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Return the parameters of the member of a family that is nearest to a mixture of several, in equal shares.

    That is the one with the mixture's mean statistics: of a normal, its mean and standard deviation. For a user's own
    likelihood, finding it row by row would take longer than everything else: its parameters are averaged.

    Examples
    --------
    >>> from evenly.likelihoods import NORMAL
    >>> apart = [{"mean": np.array([mean]), "std": np.array([1.0])} for mean in (0.0, 10.0)]
    >>> mixed = mix_parameters(NORMAL, apart)
    >>> mixed["mean"].round(3), mixed["std"].round(3)
    (array([5.]), array([5.099]))
    """
    means = {name: _average([one[name] for one in usuals]) for name in family.usual_names}
    if not family.fits_quickly:
        return means
    if family.location_scale:  # their statistics are squares, of which little is left far from 0
        place, spread = family.usual_names
        apart = [one[place] - means[place] for one in usuals]
        squares = np.hypot.reduce([*apart, *(one[spread] for one in usuals)])
        return {place: means[place], spread: squares / np.sqrt(len(usuals))}
    with np.errstate(all="ignore"):
        statistics = sum(family.mean_statistics(_natural(family, one)) for one in usuals) / len(usuals)
        nearest = family.to_usual(family.fit(np.asarray(statistics)))
    # Where rounding leaves no spread, the distributions agree as far as numbers can tell.
    found = np.isfinite(nearest).all(-1)
    return {name: np.where(found, nearest[..., i], means[name]) for i, name in enumerate(family.usual_names)}


def _natural(family: Likelihood, usual: Mapping[str, Floats]) -> Floats:
    return np.asarray(family.to_natural(np.stack([usual[name] for name in family.usual_names], axis=-1)))


def _add_mass(probabilities: Floats, share: Floats, weights: Floats, codes: Floats) -> Floats:
    """Return probabilities with the weights of some codes added, and the rest made smaller by their share."""
    mixed = (1.0 - share)[:, None] * probabilities
    np.add.at(mixed, (np.arange(len(mixed))[:, None], codes.astype(np.intp)), weights)
    return mixed


def _average(arrays: Sequence[Floats]) -> Floats:
    return arrays[0] if len(arrays) == 1 else np.asarray(sum(one / len(arrays) for one in arrays))


def predictive_of(column: Column, family: Likelihood, usual: Mapping[str, Any]) -> Predictive:
    """Return the distributions that usual parameters of a column describe, as `FittedColumn.recover` returns them.

    Examples
    --------
    >>> from evenly.tables import Column
    >>> from evenly.likelihoods import get_likelihood
    >>> smokes = Column(name="smokes", kind="binary", classes=["no", "yes"])
    >>> predictive_of(smokes, get_likelihood("bernoulli"), {"probability": np.array([0.75])}).mode()
    array([1.])
    """
    if "probability" in usual:
        return BinaryPredictive(column, np.asarray(usual["probability"]))
    if "probabilities" in usual:
        return CategoricalPredictive(column, np.asarray(usual["probabilities"]))
    return ParametricPredictive(column, family, {name: np.asarray(usual[name]) for name in family.usual_names})
