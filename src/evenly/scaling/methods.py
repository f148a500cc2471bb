"""Preprocessing methods: how continuous features are scaled, and which trick discrete columns get.

A method is one class that declares what it needs and registers itself by name. Adding one takes no other change.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from evenly._support import TableError
from evenly.scaling.feature_fit import FeatureFit, FittedScale
from evenly.scaling.outcomes import Outcome, Solved
from evenly.scaling.smoothness import Bound
from evenly.scaling.solver import solve_scale
from evenly.scaling.tricks import Feature, FeatureStatistics, Trick
from evenly.tables import Floats

METHODS: dict[str, Method] = {}
"""The methods by name, those of the paper first."""
TINY = 1e-300
"""Smaller widths are taken for 0."""


class Method(ABC):
    """A preprocessing method. A subclass that is given a name registers itself.

    Examples
    --------
    >>> class Halves(Method, name="half-none"):
    ...     def scale(self, fit, target, bound):
    ...         return Solved(0.5, Outcome.SCALED)
    >>> get_method("half-none").mergeable
    True
    >>> del METHODS["half-none"]
    """

    name: ClassVar[str]
    trick: ClassVar[Trick] = "none"
    """How discrete columns become continuous features."""
    needs_quartiles: ClassVar[bool] = False
    """Whether scales go by the quartiles of a column, which need all rows at once."""
    equalizes: ClassVar[bool] = False
    """Whether scales aim at the target, so that every column has the same smoothness."""

    def __init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if name is not None:
            cls.name = name
            METHODS[name] = cls()

    @property
    def mergeable(self) -> bool:
        """Whether scales follow from the merged statistics of the parts of a table."""
        return not self.needs_quartiles

    @abstractmethod
    def scale(self, fit: FeatureFit, target: float, bound: Bound) -> Solved:
        """Choose the scale of a continuous feature that varies.

        Parameters
        ----------
        fit : FeatureFit
            The feature's statistics and its likelihood fitted to them.
        target : float
            The smoothness to aim at, for methods that equalize.
        bound : {"exact", "paper"}
            Which smoothness that is.
        """

    def centred_scale(self, values: Floats, mean: float, std: float) -> float:
        """Return the scale of a number around its mean; 1 / std unless a method overrides it.

        A normal of standard deviation 1 has the same smoothness whatever the column: methods that equalize need no
        other scale here.
        """
        return 1.0 / std

    @final
    def fit_scale(
        self, feature: Feature, of: FeatureStatistics, target: float, *, bound: Bound, constant: bool
    ) -> FittedScale:
        """Fit a feature to its statistics and choose its scale; one without data, or constant, is left as it is."""
        if of.n == 0:
            return FittedScale(1.0, Outcome.NO_DATA)
        fit = FeatureFit.of(feature, of)
        if constant:
            return fit.scaled(1.0, Outcome.CONSTANT)
        if not feature.likelihood.scalable:
            return fit.scaled(1.0, Outcome.PASSED_THROUGH)
        return fit.scaled(*self.scale(fit, target, bound))


def get_method(name: str) -> Method:
    """Return the method of that name.

    Examples
    --------
    >>> method = get_method("lip-gamma")
    >>> method.trick, method.equalizes, method.mergeable
    ('gamma', True, True)
    """
    if not isinstance(name, str) or name not in METHODS:
        raise TableError(f"the method {name!r}", f"expected one of {', '.join(METHODS)}")
    return METHODS[name]


class _OneOverWidth(Method):
    """Scale by one over a width of the data; by 1/std where that width is 0."""

    def scale(self, fit: FeatureFit, target: float, bound: Bound) -> Solved:
        width = self.width(fit)
        if width > 0.0:
            return Solved(1.0 / width, Outcome.SCALED)
        return Solved(1.0 / fit.std if fit.std > 0.0 else math.inf, Outcome.NO_SPREAD)

    @abstractmethod
    def width(self, fit: FeatureFit) -> float:
        """Return the width, of the logs where the likelihood is one of logs."""


class Std(_OneOverWidth, name="std-none"):
    """Standard deviation 1."""

    def width(self, fit: FeatureFit) -> float:
        return fit.std


class Max(_OneOverWidth, name="max-none"):
    """Largest absolute value 1."""

    def width(self, fit: FeatureFit) -> float:
        ends = (fit.statistics.minimum, fit.statistics.maximum)
        return max(abs(math.log(v) if fit.family.in_logs else v) for v in ends)

    def centred_scale(self, values: Floats, mean: float, std: float) -> float:
        # Of halves: the difference of two of the largest numbers overflows.
        return 0.5 / max(float(np.abs(0.5 * values - 0.5 * mean).max()), TINY)


class Iqr(_OneOverWidth, name="iqr-none"):
    """Interquartile range 1."""

    needs_quartiles = True

    def width(self, fit: FeatureFit) -> float:
        assert fit.statistics.quartiles is not None
        return fit.statistics.quartiles[1] - fit.statistics.quartiles[0]

    def centred_scale(self, values: Floats, mean: float, std: float) -> float:
        low, high = np.quantile(values, [0.25, 0.75])
        return 0.5 / float(0.5 * high - 0.5 * low) if high > low else 1.0 / std


class Lipschitz(Method, name="lip-none"):
    """The target smoothness."""

    equalizes = True

    def scale(self, fit: FeatureFit, target: float, bound: Bound) -> Solved:
        if not fit.usable:
            return Solved(1.0, Outcome.OUT_OF_RANGE)
        at = fit.start if bound == "paper" else fit.unit
        scale, outcome = solve_scale(fit.family, fit.natural_at(at), target, bound=bound, std=fit.std / at)
        return Solved(scale / at, outcome)


class LipschitzBernoulli(Lipschitz, name="lip-bern"):
    """The target smoothness; a Bernoulli for each class, which no scale changes."""

    trick = "bern"


class StdGamma(Std, name="std-gamma"):
    """Standard deviation 1; discrete columns by the Gamma trick."""

    trick = "gamma"


class LipschitzGamma(Lipschitz, name="lip-gamma"):
    """The target smoothness; discrete columns by the Gamma trick."""

    trick = "gamma"
