"""Predictive distributions of numbers: histograms, or the family of a likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from evenly.likelihoods import STANDARD, Likelihood
from evenly.predictive.base import Predictive, add_mass, average
from evenly.predictive.bins import Bins
from evenly.predictive.scores import log_likelihood
from evenly.tables import Column, Floats

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles in `Predictive.to_frame`."""


class NumberPredictive(Predictive):
    """Distributions of numbers."""

    def _shown(self) -> dict[str, Floats]:
        named = {f"q{round(100 * level):02d}": self.quantile(level) for level in QUANTILES}
        return {"mean": self.mean(), **named}


@dataclass(frozen=True)
class BinnedPredictive(NumberPredictive):
    """Probabilities of a number's bins, and its mean, which is estimated separately.

    Examples
    --------
    >>> from evenly.predictive.bins import make_bins
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
    usual: str = "mean"
    """The estimate that `estimate("mean")` returns: the mode, where numbers were found to be codes of classes."""

    def estimate(self, which: str) -> Floats:
        """Return the mean, the median or the mode of each distribution; of codes, the mode instead of the mean."""
        return super().estimate(self.usual if which == "mean" else which)

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
        means, probabilities = average([one.means for one in every]), average([one.probabilities for one in every])
        return replace(self, means=means, probabilities=probabilities)

    def tilted(self, log_factors: Floats) -> Self:
        """Return the distributions with each bin's probability multiplied by a factor; the mean is that of the bins.

        Examples
        --------
        >>> from evenly.predictive.bins import make_bins
        >>> from evenly.tables import Column
        >>> bins = make_bins(np.array([0.0, 0.0, 1.0, 1.0]))
        >>> cells = BinnedPredictive(Column(name="wait", kind="real"), bins, np.array([0.5]), np.array([[0.5, 0.5]]))
        >>> cells.tilted(np.log([[1.0, 3.0]])).mean()
        array([0.75])
        """
        shares = self.probabilities * np.exp(log_factors - log_factors.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        return type(self)(self.column, self.bins, self.bins.means(shares), shares)

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        mixed = add_mass(self.probabilities, share, weights, self.bins.codes(values))
        return replace(self, means=(1.0 - share) * self.means + (weights * values).sum(1), probabilities=mixed)

    def take(self, rows: Any) -> Self:
        return replace(self, means=self.means[rows], probabilities=self.probabilities[rows])

    def append(self, others: Sequence[Self]) -> Self:
        every = (self, *others)
        means, probabilities = ([getattr(one, name) for one in every] for name in ("means", "probabilities"))
        return replace(self, means=np.concatenate(means), probabilities=np.concatenate(probabilities))


@dataclass(frozen=True)
class ParametricPredictive(NumberPredictive):
    """Distributions of the family of a likelihood, for the number plus the column's shift.

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
    """The family's usual parameters by name, one entry per row."""

    @property
    def parameters(self) -> dict[str, Any]:
        return {**self.usual, **({"shift": self.column.shift} if self.column.shift else {})}

    @property
    def _plain(self) -> bool:
        """Whether to use mean and std directly: the variance, and so the natural parameters, of 1e300 overflow."""
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
        """Return the family's distribution that is closest to the mixture; see `mix_parameters`."""
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
    """Return the parameters of the family's member that is closest to a mixture of several, with equal weights.

    It has the mixture's mean statistics (moment matching): for a normal, its mean and standard deviation. Custom
    likelihoods would have to be fitted row by row, which is slow: their parameters are averaged instead.

    Examples
    --------
    >>> from evenly.likelihoods import NORMAL
    >>> apart = [{"mean": np.array([mean]), "std": np.array([1.0])} for mean in (0.0, 10.0)]
    >>> mixed = mix_parameters(NORMAL, apart)
    >>> mixed["mean"].round(3), mixed["std"].round(3)
    (array([5.]), array([5.099]))
    """
    means = {name: average([one[name] for one in usuals]) for name in family.usual_names}
    if not family.fits_quickly:
        return means
    if family.location_scale:  # their statistics are squares, which cancel far from 0
        location, spread = family.usual_names
        apart = [one[location] - means[location] for one in usuals]
        squares = np.hypot.reduce([*apart, *(one[spread] for one in usuals)])
        return {location: means[location], spread: squares / np.sqrt(len(usuals))}
    with np.errstate(all="ignore"):
        statistics = sum(family.mean_statistics(_natural(family, one)) for one in usuals) / len(usuals)
        nearest = family.to_usual(family.fit(np.asarray(statistics)))
    # Where rounding leaves no spread, the distributions agree to within precision.
    found = np.isfinite(nearest).all(-1)
    return {name: np.where(found, nearest[..., i], means[name]) for i, name in enumerate(family.usual_names)}


def _natural(family: Likelihood, usual: Mapping[str, Floats]) -> Floats:
    return np.asarray(family.to_natural(np.stack([usual[name] for name in family.usual_names], axis=-1)))
