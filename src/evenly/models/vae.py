"""Variational autoencoder: one network encodes a row's visible cells into a normal latent vector, another decodes it.

The encoder sees unscaled, standardized features, the same under every method, with 0 for missing cells; the decoder
explains the scaled ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from evenly.models.base import Expected
from evenly.models.bbvi import Start, Terms, Trained
from evenly.models.layers import draw_rows, hide_cells, linear, normal_kl, padded
from evenly.models.layout import Data, Layout
from evenly.models.spec import SPECS
from evenly.models.wiring import Wiring


@dataclass(frozen=True)
class VAE(Trained):
    """The paper's VAE: an encoder of three tanh layers, a decoder of four layers with ReLU."""

    latent_size: int = 9
    hidden_size: int = 256
    masked: bool = False
    """Whether a random share of the cells is hidden from the encoder at every step, and only those are scored."""
    spec: ClassVar = SPECS["vae"]

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> VAE:
        """Return the model with a latent size of 75 % of the number of columns and 256 hidden units."""
        latent_size = sizes.get("latent_size", max(1, int(0.75 * n_columns)))
        return cls(latent_size, sizes.get("hidden_size", 256), bool(sizes.get("masked", False)))

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
        for name, sizes in self._widths(n_inputs, layout.n_raw).items():
            for i, (a, b) in enumerate(pairwise(sizes)):
                found |= {f"{name}/{i}/weight": Expected((a, b)), f"{name}/{i}/bias": Expected((b,))}
        return found

    def init(self, rng: np.random.Generator, layout: Layout, data: Data) -> Start:
        dtype = data.targets.dtype
        shared: dict[str, Any] = {
            name: {str(i): _xavier(rng, a, b, dtype) for i, (a, b) in enumerate(pairwise(sizes))}
            for name, sizes in self._widths(len(layout.inputs), layout.n_parameters).items()
        }
        first, last = shared["encoder"]["0"], shared["decoder"]["3"]
        first["weight"] = padded(first["weight"], 0, layout.sizes.inputs)
        for axis, name in enumerate(("bias", "weight")):
            last[name] = padded(last[name], axis, layout.n_raw, layout.parameters)
        # Batch normalization with the statistics of the whole table; gain and offset are learned.
        inputs = np.asarray(data.inputs, np.float64)
        gain = 1.0 / (inputs.std(0) + 1e-5)
        norm = {"gain": gain, "offset": -gain * inputs.mean(0)}
        shared["norm"] = {name: one.astype(dtype) for name, one in norm.items()}
        return Start(shared, {}, {})

    def _encode(self, shared: Any, data: Data) -> tuple[jax.Array, jax.Array]:
        norm = shared["norm"]
        h = data.inputs * norm["gain"] + norm["offset"]
        for layer in shared["encoder"].values():
            h = jnp.tanh(linear(layer, h))
        return linear(shared["mean"]["0"], h), jax.nn.softplus(linear(shared["rho"]["0"], h)) + 1e-6

    def _decode(self, shared: Any, z: jax.Array) -> jax.Array:
        *hidden, last = shared["decoder"].values()
        for layer in hidden:
            z = jax.nn.relu(linear(layer, z))
        return linear(last, z)

    def terms(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Terms:
        scored, weight = data.mask, 1.0
        if self.masked:
            hiding, key = jax.random.split(key)
            numbers = draw_rows(hiding, len(data.mask), 2 + data.mask.shape[1])
            visible, scored, weight = hide_cells(numbers, data.mask)
            data = self._show(wiring, data, visible)
        mean, std = self._encode(shared, data)
        z = mean + std * jax.random.normal(key, mean.shape, mean.dtype)
        seen = weight * wiring.log_likelihood(self._decode(shared, z), data.targets, scored)
        # Masked training models hidden cells given the visible ones, which the latent encodes. It needs no fixed prior:
        # the KL divergence from one would cost every row more than nearly independent columns can gain.
        kl = jnp.zeros(len(mean), mean.dtype) if self.masked else normal_kl(mean, std).sum(-1)
        return Terms(seen, kl, jnp.zeros((), mean.dtype))

    @staticmethod
    def _show(wiring: Wiring, data: Data, visible: jax.Array) -> Data:
        return data._replace(inputs=data.inputs * visible[:, wiring.input_owners])

    def predict(self, shared: Any, local: Any, key: jax.Array | None, wiring: Wiring, data: Data) -> jax.Array:
        if self.masked:  # validation cells still have their inputs
            data = self._show(wiring, data, data.mask)
        mean, std = self._encode(shared, data)
        z = mean if key is None else mean + std * jax.random.normal(key, mean.shape, mean.dtype)
        return self._decode(shared, z)

    def infer_local(self, shared: Any, key: jax.Array, wiring: Wiring, data: Data) -> Any:
        """Return nothing: the encoder infers the latent variables of any row."""
        return {}


def _xavier(rng: np.random.Generator, n_in: int, n_out: int, dtype: Any) -> dict[str, Any]:
    most = np.sqrt(6.0 / max(1, n_in + n_out))
    weight = rng.uniform(-most, most, (n_in, n_out))
    return {"weight": weight.astype(dtype), "bias": np.zeros(n_out, dtype)}
