"""Variational autoencoder: one network encodes a row's visible cells into a normal latent, another decodes it.

The encoder sees unscaled, standardized features, the same under every method, with 0 for missing cells; the decoder
explains the scaled ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from evenly.models.bbvi import Data, Layout, Model, Terms, hide_cells, normal_kl


@dataclass(frozen=True)
class VAE(Model):
    """The paper's VAE: three tanh layers in, four layers with ReLU out."""

    latent_size: int = 9
    hidden_size: int = 256
    masked: bool = False
    """Whether a random part of the cells is hidden from the encoder at every step, and only those are scored."""
    learning_rate: ClassVar[float] = 1e-3
    reads_inputs: ClassVar[bool] = True

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> VAE:
        """A latent of 75 % of the number of columns, 256 hidden units."""
        latent_size = sizes.get("latent_size", max(1, int(0.75 * n_columns)))
        return cls(latent_size, sizes.get("hidden_size", 256), bool(sizes.get("masked", False)))

    @property
    def hides(self) -> bool:
        """Whether cells are hidden from the encoder."""
        return self.masked

    def init(self, key: jax.Array, layout: Layout, data: Data) -> tuple[Any, Any]:
        n_inputs, hidden = data.inputs.shape[1], self.hidden_size
        sizes = {
            "encoder": [n_inputs, hidden, hidden, hidden],
            "mean": [hidden, self.latent_size],
            "rho": [hidden, self.latent_size],
            "decoder": [self.latent_size, hidden, hidden, hidden, layout.n_parameters],
        }
        keys = jax.random.split(key, len(sizes))
        shared: dict[str, Any] = {
            name: _xavier(k, widths, data.inputs.dtype) for k, (name, widths) in zip(keys, sizes.items(), strict=True)
        }
        # Batch normalization by the statistics of the whole table; the gain and the offset are learned.
        gain = 1.0 / (data.inputs.std(0) + 1e-5)
        shared["norm"] = {"gain": gain, "offset": -gain * data.inputs.mean(0)}
        return shared, {}

    def _encode(self, shared: Any, data: Data) -> tuple[jax.Array, jax.Array]:
        norm = shared["norm"]
        h = data.inputs * norm["gain"] + norm["offset"]
        for layer in shared["encoder"]:
            h = jnp.tanh(_linear(layer, h))
        return _linear(shared["mean"][0], h), jax.nn.softplus(_linear(shared["rho"][0], h)) + 1e-6

    def _decode(self, shared: Any, z: jax.Array) -> jax.Array:
        *hidden, last = shared["decoder"]
        for layer in hidden:
            z = jax.nn.relu(_linear(layer, z))
        return _linear(last, z)

    def terms(self, shared: Any, local: Any, key: jax.Array, layout: Layout, data: Data, epoch: jax.Array) -> Terms:
        scored, weight = data.mask, 1.0
        if self.masked:
            hiding, key = jax.random.split(key)
            visible, scored, weight = hide_cells(hiding, layout, data.mask)
            data = self._show(layout, data, visible)
        mean, std = self._encode(shared, data)
        z = mean + std * jax.random.normal(key, mean.shape, mean.dtype)
        seen = weight * layout.log_likelihood(self._decode(shared, z), data.targets, scored)
        # What is explained are hidden cells given the visible ones, of which the latent is a function: it has no other
        # prior to stay near, and one would be paid for at every row by cells that say little of each other.
        kl = jnp.zeros(len(mean), mean.dtype) if self.masked else normal_kl(mean, std).sum(-1)
        return Terms(seen, kl, jnp.zeros((), mean.dtype))

    @staticmethod
    def _show(layout: Layout, data: Data, visible: jax.Array) -> Data:
        return data._replace(inputs=data.inputs * visible[:, np.array(layout.inputs)])

    def predict(self, shared: Any, local: Any, key: jax.Array | None, layout: Layout, data: Data) -> jax.Array:
        if self.masked:  # cells that are held out still have their inputs
            data = self._show(layout, data, data.mask[:, layout.first_features])
        mean, std = self._encode(shared, data)
        z = mean if key is None else mean + std * jax.random.normal(key, mean.shape, mean.dtype)
        return self._decode(shared, z)

    def infer_local(self, shared: Any, key: jax.Array, layout: Layout, data: Data) -> Any:
        """Nothing to infer: the encoder takes new rows as it took the old."""
        return {}


def _xavier(key: jax.Array, widths: list[int], dtype: Any) -> list[dict[str, jax.Array]]:
    draw = jax.nn.initializers.glorot_uniform()
    keys = jax.random.split(key, len(widths) - 1)
    return [
        {"weight": draw(k, (a, b), dtype), "bias": jnp.zeros((b,), dtype)}
        for k, a, b in zip(keys, widths[:-1], widths[1:], strict=True)
    ]


def _linear(layer: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return x @ layer["weight"] + layer["bias"]
