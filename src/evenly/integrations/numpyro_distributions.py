"""NumPyro: distributions of Evenly's likelihoods and of discrete columns under the Gamma trick, and scale laws."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenly._support import require
from evenly.integrations.by_likelihood import constraint_of, usual_parameters
from evenly.integrations.sites import Site
from evenly.integrations.tricks import Gammas
from evenly.likelihoods import Likelihood, get_likelihood, is_registered

jax, jnp = require("jax", "numpyro"), require("jax.numpy", "numpyro")
dist = require("numpyro.distributions", "numpyro")
constraints = dist.constraints
Distribution: Any = dist.Distribution
Transform: Any = dist.transforms.Transform
AffineTransform: Any = dist.transforms.AffineTransform


class ScaleLaw(Transform):  # type: ignore[misc]  # a class of NumPyro, which has no types
    """From scaled cells to those of the table, by the law of a likelihood."""

    def __init__(self, likelihood: Likelihood, scale: Any, domain: Any) -> None:
        self.likelihood, self.scale, self._domain = likelihood, scale, domain

    @property
    def domain(self) -> Any:
        return self._domain

    codomain = domain
    """Scaling maps the support onto itself."""
    sign = 1

    def __call__(self, x: Any) -> Any:
        return self.likelihood.unscale_data(x, jnp.asarray(self.scale, x.dtype))

    def _inverse(self, y: Any) -> Any:
        return self.likelihood.scale_data(y, jnp.asarray(self.scale, y.dtype))

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        each = -self.likelihood.log_jacobian(y, jnp.asarray(self.scale, y.dtype))
        return each.sum(tuple(range(-self._domain.event_dim, 0)))

    def tree_flatten(self) -> Any:
        return (self.scale,), (("scale",), {"likelihood": self.likelihood, "_domain": self._domain})


class LikelihoodDistribution(Distribution):  # type: ignore[misc]  # as above
    """The distribution of a likelihood, by natural parameters along the last axis."""

    pytree_data_fields = ("natural",)
    pytree_aux_fields = ("likelihood",)

    def __init__(self, likelihood: Likelihood, natural: Any, *, validate_args: bool | None = None) -> None:
        self.likelihood, self.natural = likelihood, natural
        super().__init__(jnp.shape(natural)[:-1], (), validate_args=validate_args)

    @property
    def support(self) -> Any:
        return constraint_of(self.likelihood.support, constraints)

    def log_prob(self, value: Any) -> Any:
        return self.likelihood.log_density(jnp.asarray(value), self.natural)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        if is_registered(self.likelihood):
            return self.likelihood.sample(key, self.natural, sample_shape)

        def draw(bits: Any, natural: Any) -> Any:  # a likelihood of the user's has no quantiles in JAX
            rng = np.random.default_rng(np.asarray(bits).ravel())
            drawn = self.likelihood.sample(rng, np.asarray(natural, np.float64), tuple(sample_shape))
            return np.asarray(drawn, np.float32)  # the host may not know of double precision

        shape = jax.ShapeDtypeStruct((*sample_shape, *self.batch_shape), "float32")
        bits = jax.random.bits(key, (4,), "uint32")
        drawn = jax.pure_callback(draw, shape, bits, self.natural, vmap_method="sequential")
        return drawn.astype(self.natural.dtype)

    @property
    def mean(self) -> Any:
        return self.likelihood.mean(self.natural)


def from_likelihood(likelihood: str | Likelihood, natural: Any = None, **usual: Any) -> Any:
    """Return the NumPyro distribution of a likelihood that the library lacks, or of one of your own.

    Parameters
    ----------
    likelihood : str or Likelihood
        Such as "inverse-gaussian" or "rayleigh", or what `define_likelihood` returned.
    natural : array, optional
        Natural parameters along the last axis.
    **usual : arrays
        Else, usual parameters by name.

    Examples
    --------
    >>> from evenly.integrations.numpyro import from_likelihood
    >>> waiting = from_likelihood("inverse-gaussian", mean=2.0, shape=3.0)
    >>> round(float(waiting.mean), 3), waiting.batch_shape
    (2.0, ())
    """
    family = get_likelihood(likelihood) if isinstance(likelihood, str) else likelihood
    if natural is None:
        parts = usual_parameters(family, usual)
        arrays = [jnp.asarray(1.0 * one) for one in parts]
        natural = family.to_natural(jnp.stack(jnp.broadcast_arrays(*arrays), axis=-1))
    return LikelihoodDistribution(family, jnp.asarray(natural))


class GammaTrick(Distribution):  # type: ignore[misc]  # as above
    """A discrete column by the gammas of its features: their log-density, and draws of the column itself."""

    pytree_data_fields = ("natural",)
    pytree_aux_fields = ("of",)

    def __init__(self, of: Site, natural: Any, *, validate_args: bool | None = None) -> None:
        self.of, self.natural = of, natural
        super().__init__(jnp.shape(natural)[:-2], (), validate_args=False)

    @property
    def predictive(self) -> Any:
        """The discrete distribution in the table's units, the trick undone."""
        usual = Gammas(self.of).recover(self.natural)
        if "rate" in usual:
            return dist.Poisson(usual["rate"])
        if "dispersion" in usual:
            return dist.NegativeBinomial2(usual["mean"], 1.0 / usual["dispersion"])
        if "probability" in usual:
            return dist.Bernoulli(probs=usual["probability"])
        return dist.Categorical(probs=usual["probabilities"])

    @property
    def support(self) -> Any:
        return self.predictive.support

    def log_prob(self, value: Any) -> Any:
        return Gammas(self.of).log_prob(jnp.asarray(value), self.natural)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return self.predictive.sample(key, sample_shape)

    @property
    def mean(self) -> Any:
        return self.predictive.mean


class Multiply(AffineTransform):  # type: ignore[misc]  # as above
    """Multiplication of a support that it maps onto itself: numbers, vectors of them, and positive ones."""

    def __init__(self, scale: Any, domain: Any) -> None:
        super().__init__(0.0, scale, domain=domain)

    @property
    def codomain(self) -> Any:
        return self._domain

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        each = super().log_abs_det_jacobian(x, y, intermediates)
        return each.sum(tuple(range(-self._domain.event_dim, 0)))
