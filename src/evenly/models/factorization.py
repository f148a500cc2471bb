"""Matrix factorization: the first natural parameter of every feature is a product of row and feature factors.

Prior: standard normal factors. Posterior: normal; the rows' standard deviations are shared and learned, as are the
other natural parameters of each likelihood, which every row has in common. A categorical has no first parameter: all
of its classes' follow the rows, or else rows could tell the first class from the rest and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax

from evenly.likelihoods import Likelihood
from evenly.models.bbvi import Data, Layout, Model, Terms, constrain, normal_kl


@dataclass(frozen=True)
class Factorization(Model):
    """The paper's matrix factorization with `latent_size` factors."""

    latent_size: int = 6
    learning_rate: ClassVar[float] = 1e-2
    by_row: ClassVar[bool] = True
    inference_steps: int = 200

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Factorization:
        """Half as many factors as columns."""
        return cls(sizes.get("latent_size", max(1, n_columns // 2)))

    def init(self, key: jax.Array, layout: Layout, data: Data) -> tuple[Any, Any]:
        rows, factors = jax.random.split(key)
        dtype, n_rows = data.targets.dtype, data.targets.shape[0]
        followed = _followed(layout)
        shape = (self.latent_size, len(followed))
        shared = {
            "mean": 0.1 * jax.random.normal(factors, shape, dtype),
            "rho": jnp.full(shape, -3.0, dtype),
            "others": layout.raw(_starts(layout, data))[_others(layout)].astype(dtype),
            "row_rho": jnp.full((self.latent_size,), -1.0, dtype),
        }
        return shared, {"mean": jax.random.normal(rows, (n_rows, self.latent_size), dtype)}

    @staticmethod
    def _raw(layout: Layout, product: jax.Array, others: jax.Array) -> jax.Array:
        raw = jnp.zeros((*product.shape[:-1], layout.n_parameters), product.dtype)
        return raw.at[..., _followed(layout)].set(product).at[..., _others(layout)].set(others)

    def terms(self, shared: Any, local: Any, key: jax.Array, layout: Layout, data: Data, epoch: jax.Array) -> Terms:
        rows, factors = jax.random.split(key)
        std, row_std = jax.nn.softplus(shared["rho"]), jax.nn.softplus(shared["row_rho"])
        z = local["mean"] + row_std * jax.random.normal(rows, local["mean"].shape, row_std.dtype)
        beta = shared["mean"] + std * jax.random.normal(factors, std.shape, std.dtype)
        seen = layout.log_likelihood(self._raw(layout, z @ beta, shared["others"]), data.targets, data.mask)
        local_kl = normal_kl(local["mean"], row_std).sum(-1)
        return Terms(seen, local_kl, normal_kl(shared["mean"], std).sum())

    def predict(self, shared: Any, local: Any, key: jax.Array | None, layout: Layout, data: Data) -> jax.Array:
        z, beta = local["mean"], shared["mean"]
        if key is not None:
            rows, factors = jax.random.split(key)
            z = z + jax.nn.softplus(shared["row_rho"]) * jax.random.normal(rows, z.shape, z.dtype)
            beta = beta + jax.nn.softplus(shared["rho"]) * jax.random.normal(factors, beta.shape, beta.dtype)
        return self._raw(layout, z @ beta, shared["others"])

    def infer_local(self, shared: Any, key: jax.Array, layout: Layout, data: Data) -> Any:
        """Climb the rows' part of the ELBO at the mean factors, by Adam from 0."""
        adam = optax.adam(0.1)

        def loss(local: Any) -> jax.Array:
            raw = self.predict(shared, local, None, layout, data)
            seen = layout.cell_log_likelihood(raw, data.targets, data.mask).sum()
            return jnp.asarray(0.5 * (local["mean"] ** 2).sum() - seen)

        def climb(carry: Any, _: None) -> tuple[Any, None]:
            local, moments = carry
            updates, moments = adam.update(jax.grad(loss)(local), moments)
            return (optax.apply_updates(local, updates), moments), None

        first = {"mean": jnp.zeros((data.targets.shape[0], self.latent_size), data.targets.dtype)}
        (local, _), _ = jax.lax.scan(climb, (first, adam.init(first)), None, length=self.inference_steps)
        return local


@cache
def _followed(layout: Layout) -> np.ndarray:
    """Places, in the flat vector of parameters, of those that follow the rows, in the order of the groups."""
    places = []
    for group in layout.groups:
        size = len(group.likelihood.natural_bounds)
        at = group.start + np.arange(len(group.features) * size).reshape(-1, size)
        places.append((at if group.likelihood.name == "categorical" else at[:, :1]).ravel())
    return np.concatenate(places)


@cache
def _others(layout: Layout) -> np.ndarray:
    return np.setdiff1d(np.arange(layout.n_parameters), _followed(layout))


def _starts(layout: Layout, data: Data) -> list[jax.Array]:
    """Return natural parameters, by group, to start from: raw products of 0, and the second parameter at its best.

    The product of the factors starts near 0, wherever the column is. A second parameter at the maximum likelihood of
    the column alone would not go with that: of gamma(0.7, b) with the column's b the mean is some hundredth of the
    column's, and the way back is long. Given the first parameter, the most likely second one makes the mean of its own
    statistic right: a gamma starts at the column's mean, a normal with its mean square.
    """
    starts = []
    for group in layout.groups:
        x, seen = data.targets[:, group.features], data.mask[:, group.features, None]
        statistics = jnp.where(seen, group.likelihood.statistics(x), 0.0)
        mean = statistics.sum(0) / jnp.maximum(seen.sum(0), 1)
        natural = constrain(group.likelihood, jnp.zeros_like(mean))
        bounds = group.likelihood.natural_bounds
        if group.likelihood.name != "categorical" and len(bounds) == 2 and bounds[1] != (-np.inf, np.inf):
            natural = _best_second(group.likelihood, natural[:, 0], mean[:, 1])
        starts.append(natural)
    return starts


def _best_second(likelihood: Likelihood, first: jax.Array, statistic: jax.Array) -> jax.Array:
    """Find the second natural parameter whose mean statistic is this, by halving an interval of log-distances."""
    low, high = likelihood.natural_bounds[1]

    def natural(log_distance: jax.Array) -> jax.Array:
        second = low + jnp.exp(log_distance) if low > -np.inf else high - jnp.exp(log_distance)
        return jnp.stack([first, second], -1)

    def halve(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        near, far = ends
        middle = (near + far) / 2
        # The mean of a statistic grows with its own parameter.
        beyond = (likelihood.mean_statistics(natural(middle))[:, 1] > statistic) == (low > -np.inf)
        return jnp.where(beyond, near, middle), jnp.where(beyond, middle, far)

    ends = (jnp.full_like(first, -30.0), jnp.full_like(first, 30.0))
    near, far = jax.lax.fori_loop(0, 40, halve, ends)
    return natural((near + far) / 2)
