"""Pyro: distributions of Evenly's likelihoods and of discrete columns under the Gamma trick, masks, and scale laws."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from evenly._support import require
from evenly.integrations.by_likelihood import constraint_of, usual_parameters
from evenly.integrations.sites import Site
from evenly.integrations.tricks import Gammas
from evenly.likelihoods import Likelihood, get_likelihood

torch, dist = require("torch", "pyro"), require("pyro.distributions", "pyro")
constraints = dist.constraints
TorchDistribution: Any = dist.TorchDistribution
Transform: Any = require("torch.distributions.transforms", "pyro").Transform


class ScaleLaw(Transform):  # type: ignore[misc]  # a class of PyTorch, which is not looked into
    """From scaled cells to those of the table, by the law of a likelihood."""

    bijective = True
    sign = 1

    def __init__(self, likelihood: Likelihood, scale: Any, domain: Any) -> None:
        super().__init__()
        self.likelihood, self.scale = likelihood, scale
        self.domain = self.codomain = domain  # scaling maps the support onto itself

    def _like(self, x: Any) -> Any:
        return torch.as_tensor(self.scale, dtype=x.dtype, device=x.device)

    def _call(self, x: Any) -> Any:
        return self.likelihood.unscale_data(x, self._like(x))

    def _inverse(self, y: Any) -> Any:
        return self.likelihood.scale_data(y, self._like(y))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        each = -self.likelihood.log_jacobian(y, self._like(y))
        n = self.domain.event_dim
        return each.sum(tuple(range(-n, 0))) if n else each


def moved_support(support: Any, loc: Any, scale: Any) -> Any:
    """Return where a support comes to by a multiplication and a shift; None where that is no support of PyTorch's."""

    def at(end: Any) -> Any:
        moved = np.asarray(loc) + np.asarray(scale) * (end.numpy() if isinstance(end, torch.Tensor) else end)
        return float(moved) if moved.ndim == 0 else torch.as_tensor(moved)

    kind = type(support)
    if support in (constraints.real, constraints.real_vector):
        return support
    if kind.__name__ == "_IndependentConstraint":
        inner = moved_support(support.base_constraint, loc, scale)
        return None if inner is None else constraints.independent(inner, support.reinterpreted_batch_ndims)
    if hasattr(support, "lower_bound") and hasattr(support, "upper_bound"):
        return constraints.interval(at(support.lower_bound), at(support.upper_bound))
    if hasattr(support, "lower_bound"):
        return kind(at(support.lower_bound))
    return kind(at(support.upper_bound)) if hasattr(support, "upper_bound") else None


class Affine(Transform):  # type: ignore[misc]  # as above
    """A multiplication and a shift that know where a support comes to, as PyTorch's own does not."""

    bijective = True
    sign = 1

    def __init__(self, loc: Any, scale: Any, domain: Any, at_loc: Any = 0.0, at_scale: Any = 1.0) -> None:
        super().__init__()
        self.loc, self.scale, self.domain = loc, scale, domain
        self.codomain = moved_support(domain, at_loc, at_scale)

    def _call(self, x: Any) -> Any:
        return x * self.scale.to(x.dtype) + self.loc.to(x.dtype)

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc.to(y.dtype)) / self.scale.to(y.dtype)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        each = torch.log(self.scale.to(x.dtype)) + 0.0 * x
        n = self.domain.event_dim
        return each.sum(tuple(range(-n, 0))) if n else each


# --- distributions ----------------------------------------------------------------------------------------------------


class LikelihoodDistribution(TorchDistribution):  # type: ignore[misc]  # as above
    """The distribution of a likelihood, by natural parameters along the last axis."""

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, likelihood: Likelihood, natural: Any, *, validate_args: bool | None = None) -> None:
        self.likelihood, self.natural = likelihood, natural
        super().__init__(natural.shape[:-1], torch.Size(()), validate_args=validate_args)

    @property
    def support(self) -> Any:
        return constraint_of(self.likelihood.support, constraints)

    def log_prob(self, value: Any) -> Any:
        return self.likelihood.log_density(value, self.natural)

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            return self.likelihood.sample(None, self.natural.detach(), tuple(sample_shape))

    @property
    def mean(self) -> Any:
        return self.likelihood.mean(self.natural)


def from_likelihood(likelihood: str | Likelihood, natural: Any = None, **usual: Any) -> Any:
    """Return the Pyro distribution of a likelihood that the library lacks, or of one of your own.

    Parameters
    ----------
    likelihood : str or Likelihood
        Such as "inverse-gaussian" or "rayleigh", or what `define_likelihood` returned.
    natural : tensor, optional
        Natural parameters along the last axis.
    **usual : tensors
        Else, usual parameters by name.

    Examples
    --------
    >>> import torch
    >>> from evenly.integrations.pyro import from_likelihood
    >>> waiting = from_likelihood("inverse-gaussian", mean=torch.tensor(2.0), shape=3.0)
    >>> round(float(waiting.mean), 3), tuple(waiting.batch_shape)
    (2.0, ())
    """
    family = get_likelihood(likelihood) if isinstance(likelihood, str) else likelihood
    if natural is None:
        parts = usual_parameters(family, usual)
        known = next((one.dtype for one in parts if isinstance(one, torch.Tensor)), torch.get_default_dtype())
        tensors = [torch.as_tensor(one, dtype=known) for one in parts]
        natural = family.to_natural(torch.stack(torch.broadcast_tensors(*tensors), dim=-1))
    return LikelihoodDistribution(family, natural)


class Filled(TorchDistribution):  # type: ignore[misc]  # as above
    """A distribution whose absent cells are replaced before the formula: masked after it, NaN would be its gradient."""

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, base_dist: Any, there: Any) -> None:
        self.base_dist, self.there = base_dist, there
        super().__init__(base_dist.batch_shape, base_dist.event_shape, validate_args=False)

    @property
    def support(self) -> Any:
        return self.base_dist.support

    @property
    def has_rsample(self) -> Any:
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(torch.Size(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(torch.Size(sample_shape))

    def log_prob(self, value: Any) -> Any:
        there = self.there.reshape((*self.there.shape, *(1,) * self.event_dim))
        typical = torch.zeros_like(value)
        if not getattr(self.support, "is_discrete", False):
            typical = torch.distributions.biject_to(self.support)(typical)
        return self.base_dist.log_prob(torch.where(there & (value == value), value, typical))

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def variance(self) -> Any:
        return self.base_dist.variance


class GammaTrick(TorchDistribution):  # type: ignore[misc]  # as above
    """A discrete column by the gammas of its features: their log-density, and draws of the column itself."""

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, of: Site, natural: Any) -> None:
        self.of, self.natural = of, natural
        super().__init__(natural.shape[:-2], torch.Size(()), validate_args=False)

    @property
    def predictive(self) -> Any:
        """The discrete distribution in the table's units, the trick undone."""
        usual = Gammas(self.of).recover(self.natural)
        if "rate" in usual:
            return dist.Poisson(usual["rate"])
        if "dispersion" in usual:
            size = 1.0 / usual["dispersion"]
            return dist.GammaPoisson(size, size / usual["mean"])
        if "probability" in usual:
            return dist.Bernoulli(probs=usual["probability"])
        return dist.Categorical(probs=usual["probabilities"])

    @property
    def support(self) -> Any:
        return self.predictive.support

    def log_prob(self, value: Any) -> Any:
        return Gammas(self.of).log_prob(value, self.natural)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.predictive.sample(torch.Size(sample_shape))

    @property
    def mean(self) -> Any:
        return self.predictive.mean
