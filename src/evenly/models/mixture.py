"""Mixture model: every row belongs to one of K clusters, each with its own parameters of every feature.

Prior: uniform over clusters, standard normal cluster parameters. Posterior: a categorical per row, drawn through
Gumbel-softmax, and normal cluster parameters. The raw parameters of a row are those of its cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from evenly.models.base import Expected
from evenly.models.bbvi import Start, Terms, Trained
from evenly.models.layers import draw_parameters, normal_kl
from evenly.models.layout import Data, Layout
from evenly.models.spec import SPECS
from evenly.models.wiring import Wiring

FIRST_STD = 0.01
"""Initial standard deviation of the cluster parameters: small, to start near their maximum-likelihood values."""


@dataclass(frozen=True)
class Mixture(Trained):
    """The paper's mixture model with `n_clusters` clusters."""

    n_clusters: int = 10
    spec: ClassVar = SPECS["mixture"]

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Mixture:
        """Return the model with five clusters below 10,000 rows (the paper's small tables), else ten."""
        return cls(sizes.get("n_clusters", 10 if n_rows >= 10_000 else 5))

    def expected_arrays(self, layout: Layout) -> Mapping[str, Expected]:
        """Return means and spreads of the clusters' parameters."""
        return dict.fromkeys(("mean", "rho"), Expected((self.n_clusters, layout.n_raw)))

    @property
    def expected_row_variables(self) -> Mapping[str, Expected]:
        """Return the logits of each row's clusters."""
        return {"logits": Expected(("rows", self.n_clusters))}

    def init(self, rng: np.random.Generator, layout: Layout, data: Data) -> Start:
        n_rows, dtype = len(data.mask), data.targets.dtype
        member = np.eye(self.n_clusters)[rng.integers(0, self.n_clusters, n_rows)]
        naturals = []
        for f, one in enumerate(layout.likelihoods):
            # One pseudo-cell of the whole column in each cluster, for those without an observed cell of a feature.
            whole = layout.mean_statistics(data, f)[0]
            total, weight = layout.mean_statistics(data, f, member)
            naturals.append(_fit(one, (total + whole) / (weight + 1.0)[:, None], whole))
        mean = layout.flat(naturals).astype(dtype)
        rho = np.full_like(mean, np.log(np.expm1(FIRST_STD)))
        logits = 0.01 * rng.standard_normal((n_rows, self.n_clusters))
        return Start({"mean": mean, "rho": rho}, {"logits": logits.astype(dtype)}, {})

    @staticmethod
    def temperature(epoch: jax.Array) -> jax.Array:
        """Return the temperature of the Gumbel-softmax: max(0.001, exp(-0.001 epoch)), updated every 20 epochs."""
        return jnp.maximum(0.001, jnp.exp(-0.001 * (epoch // 20 * 20)))

    def terms(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Terms:
        clusters, rows = jax.random.split(key)
        std = jax.nn.softplus(shared["rho"])
        beta = shared["mean"] + std * draw_parameters(clusters, wiring, self.n_clusters, std.dtype)
        log_share = jax.nn.log_softmax(local["logits"])
        gumbel = jax.random.gumbel(rows, log_share.shape, log_share.dtype)
        z = jax.nn.softmax((log_share + gumbel) / self.temperature(epoch))
        local_kl = (jnp.exp(log_share) * (log_share + np.log(self.n_clusters))).sum(-1)
        seen = wiring.log_likelihood(z @ beta, data.targets, data.mask)
        return Terms(seen, local_kl, jnp.where(wiring.parameters, normal_kl(shared["mean"], std), 0.0).sum())

    def predict(self, shared: Any, local: Any, key: jax.Array | None, wiring: Wiring, data: Data) -> jax.Array:
        beta, share = shared["mean"], jax.nn.softmax(local["logits"])
        if key is None:
            return jnp.asarray(beta[share.argmax(-1)])
        clusters, rows = jax.random.split(key)
        drawn = draw_parameters(clusters, wiring, self.n_clusters, beta.dtype)
        beta = beta + jax.nn.softplus(shared["rho"]) * drawn
        return jnp.asarray(beta[jax.random.categorical(rows, local["logits"])])

    def infer_local(self, shared: Any, key: jax.Array, wiring: Wiring, data: Data) -> Any:
        """Return the exact posterior: given the clusters, proportional to the row's likelihood under each."""

        def under(beta: jax.Array) -> jax.Array:
            return wiring.log_likelihood(beta, data.targets, data.mask).sum(-1)

        return {"logits": jax.vmap(under)(shared["mean"]).T}


def _fit(likelihood: Any, mean: Any, whole: Any) -> Any:
    """Return each cluster's maximum-likelihood parameters; the whole column's where a cluster has no spread."""
    with np.errstate(all="ignore"):
        fitted, fallback = np.asarray(likelihood.fit(mean)), np.asarray(likelihood.fit(whole))
    fallback = np.where(np.isfinite(fallback), fallback, 0.0)
    return np.where(np.isfinite(fitted).all(-1, keepdims=True), fitted, fallback)
