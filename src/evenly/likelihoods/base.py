"""What a likelihood is: its support, its formulas, and what it declares for those who use it.

Arrays of natural parameters, statistics and usual parameters hold them along the last axis; everything
broadcasts over the axes before it. All functions take NumPy arrays, JAX arrays or PyTorch tensors and
return the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

from evenly.likelihoods.arrays import Array, namespace
from evenly.likelihoods.registry import get_likelihood, is_registered
from evenly.likelihoods.special import INF


@dataclass(frozen=True)
class Support:
    """The values a likelihood gives a density to: an interval, possibly of whole numbers only.

    Examples
    --------
    >>> import numpy as np
    >>> Support(0.0).contains(np.array([-1.0, 0.0, 2.5]))
    array([False, False,  True])
    >>> print(Support(0.0))
    values > 0
    >>> print(Support(0.0, closed=True))
    values >= 0
    """

    lower: float = -INF
    upper: float = INF
    whole: bool = False
    closed: bool = False
    """Whether the lower end belongs to it; of whole numbers both ends do."""

    def contains(self, x: Array) -> Array:
        """Say which of the values lie in the support."""
        if self.whole:
            finite = (x >= self.lower) & (x <= self.upper) & (x < INF)
            return finite & (x == namespace(x).floor(x))
        above = (x >= self.lower) & (x > -INF) if self.closed else x > self.lower
        return above & (x < self.upper)

    @property
    def typical(self) -> float:
        """A value well inside: it replaces values outside where a formula must not fail."""
        if self.lower == -INF:
            return 0.0 if self.upper == INF else self.upper - max(1.0, abs(self.upper))
        if self.whole:
            return self.lower
        if self.upper == INF:
            return self.lower + max(1.0, abs(self.lower))
        return 0.5 * self.lower + 0.5 * self.upper

    def __str__(self) -> str:
        if self.whole:
            return f"whole numbers from {self.lower:g}" + (f" to {self.upper:g}" if self.upper < INF else "")
        if self.lower == -INF:
            return "real values" if self.upper == INF else f"values < {self.upper:g}"
        sign = ">=" if self.closed else ">"
        return f"values {sign} {self.lower:g}" + (f" and < {self.upper:g}" if self.upper < INF else "")


class Pivot(NamedTuple):
    """Where a column lies (`center`) and how large it is (`unit`): moments are taken relative to both.

    Without it, the variance of values around 1e9 drowns in rounding and the squares of 1e300 overflow. Positive
    families use the unit alone; to the log-normal, a center of 0 means that the column is wide and plain logs suffice.
    """

    center: float = 0.0
    unit: float = 1.0


class Likelihood(ABC):
    """A distribution of one column, with what scaling, models and imputation need of it.

    A family is a class below this one: its formulas, and what it declares as attributes. Others ask for these, never
    for its name. Abstract methods are implemented once and not overridden again.

    Attributes
    ----------
    name : str
        Plain lower-case words, as they appear in schemas and summaries.
    usual_names : tuple of str
        Names of the usual parameters, in the order of `to_usual`.
    support : Support
        The values that have a density.
    natural_bounds : tuple of (float, float)
        The open interval of each natural parameter: those that a model learns.
    kinds : tuple of str
        The kinds of column that it goes with; the first is the one that declaring the likelihood implies.
    default_for : tuple of str
        The kinds of column that get it unless another one is declared.
    scalable : bool
        Whether the data may be scaled; false for discrete families, which need a trick first.
    takes_tricks : bool
        Whether a trick may stand in for it: its parameters follow from the mean and the variance (`from_moments`).
    needs_unit : bool
        Whether `fit_terms` returns the parameters of x / unit (families scaled by multiplication).
    in_logs : bool
        Whether scaling raises x to a power, so that the methods std, max and iqr go by log x.
    location_scale : bool
        Whether the usual parameters are the mean and the standard deviation, of x or (`in_logs`) of log x.
    one_per_class : bool
        Whether the parameters are one for each class; the usual ones are then called `probabilities` together.
    fits_quickly : bool
        Whether `fit` takes many rows at once; if not, it searches row by row.
    usual_limits : tuple of (float, float)
        Where each usual parameter is cut before cells are scored, so that a cell that was held to be impossible does
        not have a log-likelihood of minus infinity; empty if they are not.
    """

    name: str
    usual_names: tuple[str, ...]
    support: Support
    natural_bounds: tuple[tuple[float, float], ...]
    kinds: tuple[str, ...] = ()
    default_for: tuple[str, ...] = ()
    scalable: bool = True
    takes_tricks: bool = False
    needs_unit: bool = True
    in_logs: bool = False
    location_scale: bool = False
    one_per_class: bool = False
    fits_quickly: bool = True
    usual_limits: tuple[tuple[float, float], ...] = ()

    def __repr__(self) -> str:
        return f"<likelihood {self.name}>"

    @final
    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles of a registered likelihood are that likelihood itself: others compare by identity."""
        if is_registered(self):
            return get_likelihood, (self.name, len(self.natural_bounds))
        return super().__reduce_ex__(protocol)

    @property
    def modelled_as(self) -> Likelihood:
        """The likelihood that a model uses: another one if that is this one after a change of variable."""
        return self

    # --- the density ----------------------------------------------------------------------------------

    @abstractmethod
    def statistics(self, x: Array) -> Array:
        """Statistics of x, along a new last axis, from whose means `fit` finds the parameters."""

    @abstractmethod
    def mean_statistics(self, natural: Array) -> Array:
        """Mean of the statistics."""

    @abstractmethod
    def fisher(self, natural: Array) -> Array:
        """Fisher information of the natural parameters, over two new last axes: minus the mean Hessian of log p."""

    @abstractmethod
    def _log_density(self, x: Array, natural: Array) -> Array:
        """Log-density inside the support, in a form that keeps its digits where the definition's terms cancel."""

    @final
    def log_density(self, x: Array, natural: Array) -> Array:
        """Log-density; minus infinity outside the support, not a number where x is not."""
        if self.support == Support():
            return self._log_density(x, natural)
        xp = namespace(natural, x)
        x = xp.asarray(x, natural)
        inside = self.support.contains(x)
        # What lies outside is replaced before the formula: not taken, it would still make gradients NaN.
        value = self._log_density(xp.where(inside, x, self.support.typical), natural)
        return xp.where(inside, value, xp.where(x != x, x, -INF))

    # --- parameters -----------------------------------------------------------------------------------

    @abstractmethod
    def to_usual(self, natural: Array) -> Array:
        """Usual parameters (`usual_names`) from natural ones."""

    @abstractmethod
    def to_natural(self, usual: Array) -> Array:
        """Natural parameters from usual ones."""

    @abstractmethod
    def fit(self, mean_statistics: Array) -> Array:
        """Natural parameters from the means of the statistics: the most likely ones of an exponential family.

        A sample without spread has no maximum: the parameters are then infinite.
        """

    @abstractmethod
    def terms(self, x: Any, pivot: Pivot) -> tuple[Any, ...]:
        """Return what one pass averages to fit the family: statistics relative to a pivot.

        `x` may also be a Narwhals expression: then so are the terms.
        """

    @abstractmethod
    def fit_terms(self, means: Array, pivot: Pivot) -> Array:
        """Natural parameters of x / unit from the means of the terms; as `fit`."""

    def from_moments(self, mean: Array, variance: Array) -> Array:
        """Usual parameters from the mean and the variance that a trick left; for families that `takes_tricks` names."""
        raise NotImplementedError

    @abstractmethod
    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        """Means of the terms about another pivot, so that batches with different pivots can be merged."""

    # --- scaling --------------------------------------------------------------------------------------

    @abstractmethod
    def factors(self, scale: Array) -> Array:
        """Return f(scale): statistics(scaled x) = f(scale) * statistics(x) + a constant."""

    @abstractmethod
    def log_factors(self, log_scale: Array) -> Array:
        """Log of |f(scale)| from the log of the scale: scales beyond the range of f do not overflow."""

    @abstractmethod
    def scale_data(self, x: Any, scale: Any) -> Any:
        """Scale the data: x times scale; for the log-normal, x to the power of scale."""

    @abstractmethod
    def unscale_data(self, x: Any, scale: Any) -> Any:
        """Undo `scale_data`."""

    @abstractmethod
    def log_jacobian(self, x: Array, scale: Array) -> Array:
        """Log of the derivative of `scale_data` in x."""

    @abstractmethod
    def unscale_usual(self, usual: Array, scale: Array) -> Array:
        """Usual parameters in the data's units from those of the scaled data."""

    @final
    def scale_natural(self, natural: Array, scale: Array) -> Array:
        """Natural parameters of the scaled data: natural = f(scale) * scaled natural."""
        return natural / self.factors(namespace(natural, scale).asarray(scale, natural))

    @final
    def unscale_natural(self, natural: Array, scale: Array) -> Array:
        """Natural parameters in the data's units from those of the scaled data."""
        return natural * self.factors(namespace(natural, scale).asarray(scale, natural))

    # --- summaries of a density -----------------------------------------------------------------------

    @abstractmethod
    def mean(self, natural: Array) -> Array:
        """Mean; infinite where the family has none."""

    @abstractmethod
    def mode(self, natural: Array) -> Array:
        """Value of highest density, or the lower end where the density is unbounded there."""

    @abstractmethod
    def quantile(self, natural: Array, level: float) -> Array:
        """Smallest value with a probability of at least `level` up to it, where the array library has the function."""

    @final
    def median(self, natural: Array) -> Array:
        """Median, where the array library has the function for it."""
        return self.quantile(natural, 0.5)

    @abstractmethod
    def sample(self, rng: Any, natural: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draw values of shape `shape + natural.shape[:-1]`.

        `rng` is a `numpy.random.Generator`, a JAX key or a `torch.Generator`, as the parameters are.
        """


class ExponentialFamily(Likelihood):
    """log p(x; natural) = log_base(x) + natural . statistics(x) - log_partition(natural).

    The mean of the statistics is the gradient of the log-partition, the Fisher matrix its Hessian. The Hessian of
    log p in the natural parameters is minus the Fisher matrix, whatever x is, and `fit` is maximum likelihood.
    """

    @abstractmethod
    def log_base(self, x: Array) -> Array:
        """Log of the base measure."""

    @abstractmethod
    def log_partition(self, natural: Array) -> Array:
        """Log-normalizer."""


class Powers(ExponentialFamily):
    """Families whose f(scale) and usual parameters are powers of the scale, declared as data."""

    powers: ClassVar[tuple[float, ...]]
    usual_powers: ClassVar[tuple[float, ...]]

    @final
    def factors(self, scale: Array) -> Array:
        xp = namespace(scale)
        scale = 1.0 * xp.asarray(scale)  # whole numbers have no negative powers
        return xp.stack([scale**power for power in self.powers])

    @final
    def log_factors(self, log_scale: Array) -> Array:
        xp = namespace(log_scale)
        log_scale = xp.asarray(log_scale)
        return xp.stack([power * log_scale for power in self.powers])

    @final
    def unscale_usual(self, usual: Array, scale: Array) -> Array:
        xp = namespace(usual, scale)
        scale = 1.0 * xp.asarray(scale, usual)
        return usual * xp.stack([scale**-power for power in self.usual_powers])


class Multiplied(Powers):
    """Families that are closed under multiplication of x by the scale."""

    @final
    def scale_data(self, x: Any, scale: Any) -> Any:
        return x * scale

    @final
    def unscale_data(self, x: Any, scale: Any) -> Any:
        return x / scale

    @final
    def log_jacobian(self, x: Array, scale: Array) -> Array:
        xp = namespace(x, scale)
        return xp.log(xp.asarray(scale, x)) + 0.0 * x


class Unscaled(Likelihood):
    """Families whose data are never scaled: the discrete ones, and the normal of known spread."""

    scalable = False
    needs_unit = False

    @final
    def factors(self, scale: Array) -> Array:
        xp = namespace(scale)
        one = 0.0 * xp.asarray(scale) + 1.0
        return xp.stack([one for _ in self.natural_bounds])

    @final
    def log_factors(self, log_scale: Array) -> Array:
        return 0.0 * self.factors(log_scale)

    @final
    def scale_data(self, x: Any, scale: Any) -> Any:
        return x

    @final
    def unscale_data(self, x: Any, scale: Any) -> Any:
        return x

    @final
    def log_jacobian(self, x: Array, scale: Array) -> Array:
        return 0.0 * x

    @final
    def unscale_usual(self, usual: Array, scale: Array) -> Array:
        return usual

    @final
    def repivot(self, means: Array, old: Pivot, new: Pivot) -> Array:
        return means
