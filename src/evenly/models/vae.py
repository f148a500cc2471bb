"""Variational autoencoder: one network encodes a row's visible cells into a normal latent vector, another decodes it.

The encoder sees unscaled, standardized features, the same under every method, with 0 for missing cells; the decoder
explains the scaled ones. As published, the encoder sees raw features and normalizes them by batches itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from evenly.models.base import Expected
from evenly.models.bbvi import Start
from evenly.models.layers import draw_rows, hide_cells, linear, normal_kl, padded, share_of
from evenly.models.layout import Data, Layout
from evenly.models.shared_output import Head, Shared, SharesOutput
from evenly.models.spec import SPECS
from evenly.models.wiring import Wiring

PUBLISHED_GAINS = {"encoder": 5.0 / 3.0, "decoder": 2.0**0.5}
"""The gains of Xavier's weights before a tanh and before a ReLU; 1 for the layers of the mean and the spread."""
PUBLISHED_BIAS = 0.01
BATCH_NORM_EPSILON = 1e-5
"""Added to a batch's variance, the usual constant of batch normalization."""


@dataclass(frozen=True)
class VAE(SharesOutput):
    """The paper's VAE: an encoder of three tanh layers, a decoder of four layers with ReLU."""

    latent_size: int = 9
    hidden_size: int = 256
    masked: bool = False
    """Whether a random share of the cells is hidden from the encoder at every step, and only those are scored."""
    published: bool = field(default=False, metadata={"later": True})
    """Whether it is the paper's to the letter: batch normalization of raw inputs, and its first weights."""
    spec: ClassVar = SPECS["vae"]

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> VAE:
        """Return the model with a latent size of 75 % of the number of columns, rounded, and 256 hidden units."""
        latent_size = sizes.get("latent_size", share_of(0.75, n_columns))
        masked, published = (bool(sizes.get(name, False)) for name in ("masked", "published"))
        return cls(latent_size, sizes.get("hidden_size", 256), masked, published)

    @property
    def hides_cells(self) -> bool:
        """Whether cells are hidden from the encoder in training."""
        return self.masked

    def _widths(self, n_inputs: int, n_outputs: int) -> dict[str, list[int]]:
        """Return the numbers of units of each network, layer by layer."""
        hidden, latent = self.hidden_size, self.latent_size
        return {
            "encoder": [n_inputs, hidden, hidden, hidden],
            "mean": [hidden, latent],
            "rho": [hidden, latent],
            "decoder": [latent, hidden, hidden, hidden, n_outputs],
        }

    def expected_arrays(self, layout: Layout) -> Mapping[str, Expected]:
        """Return the layers of both networks, and the normalization of the inputs."""
        n_inputs = layout.sizes.inputs
        found = {f"norm/{name}": Expected((n_inputs,)) for name in ("gain", "offset")}
        if self.published:
            found |= {f"{name}": Expected((n_inputs,)) for name in ("table_mean", "table_variance")}
        for name, sizes in self._widths(n_inputs, layout.n_raw).items():
            for i, (a, b) in enumerate(pairwise(sizes)):
                found |= {f"{name}/{i}/weight": Expected((a, b)), f"{name}/{i}/bias": Expected((b,))}
        return found

    def init(self, rng: np.random.Generator, layout: Layout, data: Data) -> Start:
        dtype = data.targets.dtype
        shared: dict[str, Any] = {
            name: {str(i): self._layer(name, rng, a, b, dtype) for i, (a, b) in enumerate(pairwise(sizes))}
            for name, sizes in self._widths(len(layout.inputs), layout.n_parameters).items()
        }
        first, last = shared["encoder"]["0"], shared["decoder"]["3"]
        first["weight"] = padded(first["weight"], 0, layout.sizes.inputs)
        for axis, name in enumerate(("bias", "weight")):
            last[name] = padded(last[name], axis, layout.n_raw, layout.parameters)
        inputs = np.asarray(data.inputs, np.float64)
        if self.published:
            shared["norm"] = {"gain": np.ones(inputs.shape[1], dtype), "offset": np.zeros(inputs.shape[1], dtype)}
            fixed = {"table_mean": inputs.mean(0), "table_variance": inputs.var(0, ddof=min(1, len(inputs) - 1))}
            return Start(shared, {}, {name: one.astype(dtype) for name, one in fixed.items()})
        # Batch normalization with the statistics of the whole table; gain and offset are learned.
        gain = 1.0 / (inputs.std(0) + 1e-5)
        norm = {"gain": gain, "offset": -gain * inputs.mean(0)}
        shared["norm"] = {name: one.astype(dtype) for name, one in norm.items()}
        return Start(shared, {}, {})

    def _layer(self, name: str, rng: np.random.Generator, n_in: int, n_out: int, dtype: Any) -> dict[str, Any]:
        """Return the first weights of a layer of a network: Xavier's, with gains and biases as published if asked."""
        gain, bias = (PUBLISHED_GAINS.get(name, 1.0), PUBLISHED_BIAS) if self.published else (1.0, 0.0)
        return _xavier(rng, n_in, n_out, gain, bias, dtype)

    def _normalize(self, shared: Any, data: Data, *, training: bool) -> jax.Array:
        """Return the inputs of the first layer."""
        inputs, norm = data.inputs, shared["norm"]
        if self.published:
            mean, variance = shared["table_mean"], shared["table_variance"]
            if training:  # by the rows of the batch: padding has no observed cell
                some = data.mask.any(-1, keepdims=True).astype(inputs.dtype)
                n = jnp.maximum(some.sum(), 1.0)
                mean = (some * inputs).sum(0) / n
                variance = (some * (inputs - mean) ** 2).sum(0) / n
            inputs = (inputs - mean) * jax.lax.rsqrt(variance + BATCH_NORM_EPSILON)
        return jnp.asarray(inputs * norm["gain"] + norm["offset"])

    def _encode(self, shared: Any, data: Data, *, training: bool = False) -> tuple[jax.Array, jax.Array]:
        h = self._normalize(shared, data, training=training)
        for layer in shared["encoder"].values():
            h = jnp.tanh(linear(layer, h))
        return linear(shared["mean"]["0"], h), jax.nn.softplus(linear(shared["rho"]["0"], h)) + 1e-6

    def _decode(self, shared: Any, z: jax.Array) -> jax.Array:
        """Return the last hidden layer, which all columns share."""
        *hidden, _ = shared["decoder"].values()
        for layer in hidden:
            z = jax.nn.relu(linear(layer, z))
        return z

    def head(self, shared: Any, key: jax.Array, wiring: Wiring) -> Head:
        *_, last = shared["decoder"].values()
        return Head(last["weight"], last["bias"])

    def rescale(self, shared: Any, factors: jax.Array) -> Any:
        number, last = list(shared["decoder"].items())[-1]
        return {**shared, "decoder": {**shared["decoder"], number: {name: one / factors for name, one in last.items()}}}

    def share(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Shared:
        scored, weight = data.mask, 1.0
        if self.masked:
            hiding, key = jax.random.split(key)
            numbers = draw_rows(hiding, len(data.mask), 2 + data.mask.shape[1])
            visible, scored, weight = hide_cells(numbers, data.mask)
            data = self._show(wiring, data, visible)
        mean, std = self._encode(shared, data, training=True)
        z = mean + std * jax.random.normal(key, mean.shape, mean.dtype)
        # Masked training models hidden cells given the visible ones, which the latent encodes. It needs no fixed prior:
        # the KL divergence from one would cost every row more than nearly independent columns can gain.
        kl = jnp.zeros(len(mean), mean.dtype) if self.masked else normal_kl(mean, std).sum(-1)
        return Shared(self._decode(shared, z), scored, weight, kl, jnp.zeros((), mean.dtype))

    @staticmethod
    def _show(wiring: Wiring, data: Data, visible: jax.Array) -> Data:
        return data._replace(inputs=data.inputs * visible[:, wiring.input_owners])

    def predict(self, shared: Any, local: Any, key: jax.Array | None, wiring: Wiring, data: Data) -> jax.Array:
        if self.masked:  # validation cells still have their inputs
            data = self._show(wiring, data, data.mask)
        mean, std = self._encode(shared, data)
        z = mean if key is None else mean + std * jax.random.normal(key, mean.shape, mean.dtype)
        *_, last = shared["decoder"].values()
        return linear(last, self._decode(shared, z))

    def infer_local(self, shared: Any, key: jax.Array, wiring: Wiring, data: Data) -> Any:
        """Return nothing: the encoder infers the latent variables of any row."""
        return {}


def _xavier(rng: np.random.Generator, n_in: int, n_out: int, gain: float, bias: float, dtype: Any) -> dict[str, Any]:
    most = gain * np.sqrt(6.0 / max(1, n_in + n_out))
    weight = rng.uniform(-most, most, (n_in, n_out))
    return {"weight": weight.astype(dtype), "bias": np.full(n_out, bias, dtype)}
