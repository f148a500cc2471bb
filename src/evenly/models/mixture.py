"""Mixture model: every row belongs to one of K clusters, every cluster has its own parameters of every feature.

Prior: clusters uniform, cluster parameters standard normal. Posterior: a categorical per row, drawn through
Gumbel-softmax, and normal cluster parameters. Link: raw parameters of a row = its cluster's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from evenly.models.bbvi import Data, Layout, Model, Terms, normal_kl

FIRST_STD = 0.01
"""Spread of the cluster parameters' posterior at the start: near the maximum-likelihood values."""


@dataclass(frozen=True)
class Mixture(Model):
    """The paper's mixture model with `n_clusters` clusters."""

    n_clusters: int = 10
    learning_rate: ClassVar[float] = 1e-3
    by_row: ClassVar[bool] = True

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Mixture:
        """Five clusters for the paper's small tables (below 10,000 rows), ten otherwise."""
        return cls(sizes.get("n_clusters", 10 if n_rows >= 10_000 else 5))

    def init(self, key: jax.Array, layout: Layout, data: Data) -> tuple[Any, Any]:
        parts, rows = jax.random.split(key)
        n_rows = data.targets.shape[0]
        member = jax.random.randint(parts, (n_rows,), 0, self.n_clusters)
        naturals = []
        for group in layout.groups:
            x, seen = data.targets[:, group.features], data.mask[:, group.features]
            statistics = group.likelihood.statistics(x)
            in_cluster = jax.nn.one_hot(member, self.n_clusters, dtype=x.dtype)
            # A cluster without an observed cell of a feature starts from the whole column: one cell of it in each.
            whole = jnp.where(seen[..., None], statistics, 0.0).sum(0) / jnp.maximum(seen.sum(0), 1)[:, None]
            weight = jnp.einsum("nk,nf->kf", in_cluster, seen.astype(x.dtype))
            total = jnp.einsum("nk,nfi->kfi", in_cluster, jnp.where(seen[..., None], statistics, 0.0))
            mean = (total + whole) / (weight + 1.0)[..., None]
            naturals.append(_fit(group.likelihood, mean, whole))
        mean = layout.raw(naturals)
        rho = jnp.full_like(mean, np.log(np.expm1(FIRST_STD)))
        logits = 0.01 * jax.random.normal(rows, (n_rows, self.n_clusters), data.targets.dtype)
        return {"mean": mean, "rho": rho}, {"logits": logits}

    @staticmethod
    def temperature(epoch: jax.Array) -> jax.Array:
        """Return the temperature: max(0.001, exp(-0.001 epoch)), updated every 20 epochs."""
        return jnp.maximum(0.001, jnp.exp(-0.001 * (epoch // 20 * 20)))

    def terms(self, shared: Any, local: Any, key: jax.Array, layout: Layout, data: Data, epoch: jax.Array) -> Terms:
        clusters, rows = jax.random.split(key)
        std = jax.nn.softplus(shared["rho"])
        beta = shared["mean"] + std * jax.random.normal(clusters, std.shape, std.dtype)
        log_share = jax.nn.log_softmax(local["logits"])
        gumbel = jax.random.gumbel(rows, log_share.shape, log_share.dtype)
        z = jax.nn.softmax((log_share + gumbel) / self.temperature(epoch))
        local_kl = (jnp.exp(log_share) * (log_share + np.log(self.n_clusters))).sum(-1)
        seen = layout.log_likelihood(z @ beta, data.targets, data.mask)
        return Terms(seen, local_kl, normal_kl(shared["mean"], std).sum())

    def predict(self, shared: Any, local: Any, key: jax.Array | None, layout: Layout, data: Data) -> jax.Array:
        beta, share = shared["mean"], jax.nn.softmax(local["logits"])
        if key is None:
            return jnp.asarray(beta[share.argmax(-1)])
        clusters, rows = jax.random.split(key)
        beta = beta + jax.nn.softplus(shared["rho"]) * jax.random.normal(clusters, beta.shape, beta.dtype)
        return jnp.asarray(beta[jax.random.categorical(rows, local["logits"])])

    def infer_local(self, shared: Any, key: jax.Array, layout: Layout, data: Data) -> Any:
        """Exact: with the clusters fixed, a row's posterior is proportional to its likelihood under each."""

        def under(beta: jax.Array) -> jax.Array:
            return layout.log_likelihood(beta, data.targets, data.mask).sum(-1)

        return {"logits": jax.vmap(under)(shared["mean"]).T}


def _fit(likelihood: Any, mean: jax.Array, whole: jax.Array) -> jax.Array:
    """Maximum-likelihood parameters of each part; where a part has no spread, those of the whole."""
    fitted, fallback = likelihood.fit(mean), likelihood.fit(whole)
    fallback = jnp.where(jnp.isfinite(fallback), fallback, 0.0)
    return jnp.where(jnp.isfinite(fitted).all(-1, keepdims=True), fitted, fallback)
