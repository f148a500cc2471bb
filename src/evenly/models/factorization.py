"""Matrix factorization: the first natural parameter of every feature is a product of row and feature factors.

Prior: standard normal factors. Posterior: normal; the rows' standard deviations are shared and learned, as are the
other natural parameters of each likelihood, which every row has in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax

from evenly.models.bbvi import Data, Layout, Model, Terms, normal_kl


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
        naturals = []
        for group in layout.groups:
            x, seen = data.targets[:, group.features], data.mask[:, group.features]
            statistics = jnp.where(seen[..., None], group.likelihood.statistics(x), 0.0)
            fitted = group.likelihood.fit(statistics.sum(0) / jnp.maximum(seen.sum(0), 1)[:, None])
            naturals.append(jnp.where(jnp.isfinite(fitted), fitted, 0.0))
        others = np.setdiff1d(np.arange(layout.n_parameters), layout.first_parameters)
        shared = {
            "mean": 0.1 * jax.random.normal(factors, (self.latent_size, layout.n_features), dtype),
            "rho": jnp.full((self.latent_size, layout.n_features), -3.0, dtype),
            "others": layout.raw(naturals)[others].astype(dtype),
            "row_rho": jnp.full((self.latent_size,), -1.0, dtype),
        }
        return shared, {"mean": jax.random.normal(rows, (n_rows, self.latent_size), dtype)}

    @staticmethod
    def _raw(layout: Layout, product: jax.Array, others: jax.Array) -> jax.Array:
        first = layout.first_parameters
        raw = jnp.zeros((*product.shape[:-1], layout.n_parameters), product.dtype)
        raw = raw.at[..., first].set(product)
        return raw.at[..., np.setdiff1d(np.arange(layout.n_parameters), first)].set(others)

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
            seen = layout.log_likelihood(raw, data.targets, data.mask).sum()
            return jnp.asarray(0.5 * (local["mean"] ** 2).sum() - seen)

        def climb(carry: Any, _: None) -> tuple[Any, None]:
            local, moments = carry
            updates, moments = adam.update(jax.grad(loss)(local), moments)
            return (optax.apply_updates(local, updates), moments), None

        first = {"mean": jnp.zeros((data.targets.shape[0], self.latent_size), data.targets.dtype)}
        (local, _), _ = jax.lax.scan(climb, (first, adam.init(first)), None, length=self.inference_steps)
        return local
