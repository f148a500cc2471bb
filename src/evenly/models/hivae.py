"""HI-VAE (Nazabal et al., 2018): latent classes and a normal vector that depends on them, decoded column by column.

A row's class s is drawn from q(s | x) by Gumbel-softmax, its vector z from q(z | x, s), whose prior is a normal around
a linear function of s. A linear layer of z is cut into one piece for each column. The first parameter of a column's
likelihood, and the logits of classes, depend linearly on the column's piece and on s, the others on s alone. All of
that is linear in (z, s), which is the output that the columns share.

Inputs are normalized by the observed cells of the batch, predictions by those of the table. Outputs are de-normalized
in the same way, unless scales are chosen for equal smoothness: de-normalizing would undo them, so heads then give the
natural parameters of the scaled features, as those of the other models do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evenly.likelihoods import NORMAL, POISSON
from evenly.models.base import Expected
from evenly.models.bbvi import Start
from evenly.models.layers import inverse_softplus, linear, padded
from evenly.models.layout import ALWAYS, BLOCK, Data, Layout
from evenly.models.shared_output import Head, Shared, SharesOutput
from evenly.models.spec import SPECS
from evenly.models.wiring import Wiring, wire

FIRST_STD = 0.05
"""Standard deviation of the first weights."""
FARTHEST = 15.0
"""Log-variances of z lie within this distance of 0."""
COOLING, COLDEST = 0.01, 1e-3
"""The temperature of the Gumbel-softmax falls from 1 by a hundredth an epoch, to a thousandth."""
LEAST_VARIANCE, MOST_VARIANCE = 1e-3, 1.0
"""Limits of a normal's variance, relative to that of the batch's observed cells."""
LEAST_SPREAD = 1e-6
"""The smallest variance that cells are normalized by."""


class Moments(NamedTuple):
    """The mean and the variance of observed cells."""

    mean: Any
    variance: Any


@dataclass(frozen=True)
class HIVAE(SharesOutput):
    """HI-VAE with `n_clusters` latent classes and `column_size` units for each column."""

    latent_size: int = 10
    n_clusters: int = 10
    column_size: int = 5
    normalizes: bool = True
    """Whether outputs are de-normalized by the batch's means and variances."""
    spec: ClassVar = SPECS["hivae"]

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> HIVAE:
        """Return the model with ten latent classes, ten latent variables and five units for each column."""
        given = {name: sizes[name] for name in cls.spec.sizes if name in sizes}
        return cls(**given, normalizes=not sizes.get("equalized", False))

    def expected_arrays(self, layout: Layout) -> Mapping[str, Expected]:
        """Return the layers of the encoder, the prior and the decoder, and the moments of the table's cells."""
        n_inputs, n_slots, columns = layout.sizes.inputs, layout.n_slots, layout.sizes.columns
        layers = {
            "cluster": (n_inputs, self.n_clusters),
            "mean": (n_inputs + self.n_clusters, self.latent_size),
            "log_variance": (n_inputs + self.n_clusters, self.latent_size),
            "prior": (self.n_clusters, self.latent_size),
        }
        found = {f"{name}/weight": Expected(shape) for name, shape in layers.items()}
        found |= {f"{name}/bias": Expected(shape[1:]) for name, shape in layers.items()}
        return found | {
            "pieces/weight": Expected((columns, self.latent_size, self.column_size)),
            "pieces/bias": Expected((columns, self.column_size)),
            "heads/of_piece": Expected((self.column_size, layout.n_raw)),
            "heads/of_cluster": Expected((self.n_clusters, layout.n_raw)),
            "numbers": Expected((n_inputs,)),
            **{f"table_{name}/inputs": Expected((n_inputs,)) for name in Moments._fields},
            **{f"table_{name}/targets": Expected((n_slots,)) for name in Moments._fields},
        }

    def init(self, rng: np.random.Generator, layout: Layout, data: Data) -> Start:
        dtype, sizes, n_inputs = data.targets.dtype, layout.sizes, len(layout.inputs)
        wiring = wire(layout)

        def draw(*shape: int) -> Any:
            return (FIRST_STD * rng.standard_normal(shape)).astype(dtype)

        def layer(n_in: int, n_out: int) -> dict[str, Any]:
            return {"weight": draw(n_in, n_out), "bias": np.zeros(n_out, dtype)}

        def from_inputs(n_more: int, n_out: int) -> dict[str, Any]:
            found, more = layer(n_inputs, n_out), draw(n_more, n_out)
            return found | {"weight": np.concatenate([padded(found["weight"], 0, sizes.inputs), more])}

        pieces = draw(layout.n_columns, self.latent_size, self.column_size)
        heads = {"of_piece": self.column_size, "of_cluster": self.n_clusters}
        shared = {
            "cluster": from_inputs(0, self.n_clusters),
            "mean": from_inputs(self.n_clusters, self.latent_size),
            "log_variance": from_inputs(self.n_clusters, self.latent_size),
            "prior": layer(self.n_clusters, self.latent_size),
            "pieces": {
                "weight": padded(pieces, 0, sizes.columns),
                "bias": np.zeros((sizes.columns, self.column_size), dtype),
            },
            "heads": {
                name: padded(draw(layout.n_parameters, n).T, 1, layout.n_raw, layout.parameters)
                for name, n in heads.items()
            },
        }
        numbers = np.zeros(sizes.inputs, dtype)
        numbers[list(layout.numbers)] = 1.0
        fixed: dict[str, Any] = {"numbers": numbers, "table_mean": {}, "table_variance": {}}
        for name, seen in _observed(wiring, data).items():
            moments = _moments(np, getattr(data, name), seen)
            for of, one in zip(Moments._fields, moments, strict=True):
                fixed[f"table_{of}"][name] = one.astype(dtype)
        return Start(shared, {}, fixed)

    def temperature(self, epoch: Any) -> jax.Array:
        """Return the temperature of the Gumbel-softmax."""
        return jnp.maximum(COLDEST, 1.0 - COOLING * epoch)

    def share(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Shared:
        observed = _observed(wiring, data)
        x = self._normalize(shared, wiring, data, _moments(jnp, data.inputs, observed["inputs"]))
        clusters, latents = jax.random.split(key)
        log_share = jax.nn.log_softmax(linear(shared["cluster"], x))
        gumbel = jax.random.gumbel(clusters, log_share.shape, log_share.dtype)
        s = jax.nn.softmax((log_share + gumbel) / self.temperature(epoch).astype(x.dtype))
        mean, log_variance = self._encode(shared, x, s)
        z = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(latents, mean.shape, mean.dtype)
        away = mean - linear(shared["prior"], s)
        kl = (jnp.exp(log_share) * (log_share + np.log(self.n_clusters))).sum(-1)
        kl += 0.5 * (jnp.exp(log_variance) + away**2 - 1.0 - log_variance).sum(-1)
        units = _moments(jnp, data.targets, observed["targets"]) if self.normalizes else None
        return Shared(jnp.concatenate([z, s], -1), data.mask, 1.0, kl, jnp.zeros((), x.dtype), units)

    def _normalize(self, shared: Any, wiring: Wiring, data: Data, moments: Moments) -> jax.Array:
        """Return inputs normalized by the mean and the variance of observed cells: numbers only, 0 where hidden."""
        variance = jnp.maximum(moments.variance, LEAST_SPREAD)
        moved = (data.inputs - moments.mean) * jax.lax.rsqrt(variance)
        seen = _observed(wiring, data)["inputs"]
        return jnp.where(seen, jnp.where(shared["numbers"] > 0.0, moved, data.inputs), 0.0)

    def _encode(self, shared: Any, x: jax.Array, s: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the mean and the log-variance of z, given inputs and shares of the classes."""
        both = jnp.concatenate([x, s], -1)
        return linear(shared["mean"], both), jnp.clip(linear(shared["log_variance"], both), -FARTHEST, FARTHEST)

    def head(self, shared: Any, key: jax.Array, wiring: Wiring) -> Head:
        # The pieces' layer and the heads are linear: together, one map from (z, s).
        owners, heads, pieces = wiring.raw_owners, shared["heads"], shared["pieces"]
        of_piece = jnp.where(wiring.followed, heads["of_piece"], 0.0)
        of_latent = jnp.einsum("rlk,kr->lr", pieces["weight"][owners], of_piece)
        bias = (pieces["bias"][owners].T * of_piece).sum(0)
        free = 1.0 - _first_classes(wiring)
        return Head(jnp.concatenate([of_latent, heads["of_cluster"]]) * free, bias * free)

    def link(self, raw: jax.Array, wiring: Wiring, units: Any) -> jax.Array:
        """Return raw parameters of the features from those of normalized ones."""
        if units is None:
            return raw
        parts, at, into = [], 0, 0
        for one, n in wiring.groups:
            k = len(one.natural_bounds)
            own = raw[..., into : into + n * k]
            if one is NORMAL:
                some = Moments(units.mean[at : at + n], units.variance[at : at + n])
                own = _denormalize(own.reshape((*own.shape[:-1], n, k)), some).reshape(own.shape)
            elif one is POISSON:  # the rate is a softplus
                own = jnp.log(jax.nn.softplus(own) + LEAST_SPREAD)
            parts.append(own)
            at, into = at + n, into + n * k
        return jnp.concatenate([*parts, raw[..., into:]], -1)

    def rescale(self, shared: Any, factors: jax.Array) -> Any:
        if self.normalizes:  # normalized outputs have no scale
            return None
        return {**shared, "heads": {name: one / factors for name, one in shared["heads"].items()}}

    def predict(self, shared: Any, local: Any, key: jax.Array | None, wiring: Wiring, data: Data) -> jax.Array:
        """Return the raw parameters at the most probable class and the mean of z, or at a draw of both."""
        inputs, targets = (
            Moments(*(shared[f"table_{of}"][name] for of in Moments._fields)) for name in ("inputs", "targets")
        )
        x = self._normalize(shared, wiring, data, inputs)
        logits = linear(shared["cluster"], x)
        clusters, latents = (None, None) if key is None else jax.random.split(key)
        chosen = logits.argmax(-1) if clusters is None else jax.random.categorical(clusters, logits)
        s = jax.nn.one_hot(chosen, self.n_clusters, dtype=x.dtype)
        z, log_variance = self._encode(shared, x, s)
        if latents is not None:
            z = z + jnp.exp(0.5 * log_variance) * jax.random.normal(latents, z.shape, z.dtype)
        raw = self.head(shared, jax.random.key(0), wiring)(jnp.concatenate([z, s], -1))
        return self.link(raw, wiring, targets if self.normalizes else None)

    def infer_local(self, shared: Any, key: jax.Array, wiring: Wiring, data: Data) -> Any:
        """Return nothing: the encoder infers the latent variables of any row."""
        return {}


def _observed(wiring: Wiring, data: Data) -> dict[str, Any]:
    """Return which inputs and which targets are observed."""
    return {
        "inputs": data.mask[:, wiring.input_owners] | (wiring.input_owners == ALWAYS),
        "targets": data.mask[:, wiring.owners] & wiring.used,
    }


def _moments(xp: Any, x: Any, seen: Any) -> Moments:
    """Return the moments of finite observed cells; a mean and a variance of 0 where there are none."""
    seen = seen & xp.isfinite(x)
    n = xp.maximum(seen.sum(0), 1)
    mean = xp.where(seen, x, 0.0).sum(0) / n
    return Moments(mean, (xp.where(seen, x - mean, 0.0) ** 2).sum(0) / n)


def _denormalize(raw: jax.Array, moments: Moments) -> jax.Array:
    """Return raw parameters of normals from the mean and the variance, not yet positive, of the normalized cells."""
    variance = jnp.maximum(moments.variance, LEAST_SPREAD)
    mean = moments.mean + jnp.sqrt(variance) * raw[..., 0]
    spread = variance * jnp.clip(jax.nn.softplus(raw[..., 1]), LEAST_VARIANCE, MOST_VARIANCE)
    return jnp.stack([mean / spread, inverse_softplus(0.5 / spread)], -1)


def _first_classes(wiring: Wiring) -> jax.Array:
    """Return 1 at the raw parameter of the first class of each categorical, which is 0, and 0 elsewhere."""
    first = jnp.asarray(wiring.block_first)[:, None] + jnp.arange(BLOCK) == 0
    return jnp.pad(first.ravel().astype(np.float32), (len(wiring.draws) - first.size, 0))
