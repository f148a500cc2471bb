"""Masked network: the likelihood of every cell from the visible cells of its row, learned by hiding some of them.

A variational autoencoder is trained to copy the cells that it is given. Here a random part of each row's observed cells
is hidden from the network at every step, and only those are scored: it has to learn what one cell says about another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from evenly.models.bbvi import Data, Layout, Model, Terms, constant_raw, hide_cells

FARTHEST = 5.0
"""Standardized numbers are cut here, beside their place among the knots, which says the rest."""
LEAST_GAP = 1e-6
"""Knots that coincide, at a value that is frequent, make a step."""
WARM_UP = 0.03
"""Share of the steps in which the learning rate rises."""


@dataclass(frozen=True)
class Masked(Model):
    """Residual blocks of two layers; numbers come in by their places between quantiles (piecewise linear)."""

    hidden_size: int = 256
    n_blocks: int = 3
    n_knots: int = 32
    dropout_percent: int = 0
    learning_rate: ClassVar[float] = 2e-3
    reads_inputs: ClassVar[bool] = True
    by_cell: ClassVar[bool] = True
    second_decay: ClassVar[float] = 0.99
    weight_decay: ClassVar[float] = 0.01
    # Products of matrices, which are no work of the compiler: an epoch takes as long, and compiling a quarter less.
    optimization: ClassVar[int] = 1

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Masked:
        """256 units; where rows are few, half as many, and a fifth of them is dropped at each step."""
        few = n_rows < 2_000
        return cls(sizes.get("hidden_size", 128 if few else 256), dropout_percent=20 if few else 0)

    def schedule(self, progress: jax.Array) -> jax.Array:
        """Rise in a straight line, then fall to 1 % along a cosine."""
        fall = 0.01 + 0.99 * 0.5 * (1.0 + jnp.cos(np.pi * (progress - WARM_UP) / (1.0 - WARM_UP)))
        return jnp.where(progress < WARM_UP, progress / WARM_UP, fall)

    def init(self, key: jax.Array, layout: Layout, data: Data) -> tuple[Any, Any]:
        hidden, n_inputs = self.hidden_size, len(layout.inputs)
        numbers = np.array(layout.numbers, np.int32)
        seen = data.mask[:, layout.first_features][:, np.array(layout.inputs, np.int32)]
        known = jnp.where(seen, data.inputs, jnp.nan)
        ends = jnp.nan_to_num(jnp.stack([jnp.nanmin(known, 0), jnp.nanmax(known, 0)]))
        levels = jnp.linspace(0.0, 1.0, self.n_knots + 1)
        knots = jnp.nan_to_num(jnp.nanquantile(known[:, numbers], levels, axis=0)).T
        width = n_inputs + len(numbers) * self.n_knots + layout.n_columns
        keys = iter(jax.random.split(key, 2 * self.n_blocks + 2))
        dtype = data.inputs.dtype
        shared: dict[str, Any] = {
            "ends": ends,
            "knots": knots,
            "first": _layer(next(keys), width, hidden, 1.0, dtype),
            "blocks": [
                {
                    "norm": _norm(hidden, dtype),
                    "up": _layer(next(keys), hidden, hidden, 2.0, dtype),
                    "down": _layer(next(keys), hidden, hidden, 0.1, dtype),
                }
                for _ in range(self.n_blocks)
            ],
            "norm": _norm(hidden, dtype),
            "last": _layer(next(keys), hidden, layout.n_parameters, 0.01, dtype),
        }
        shared["last"]["bias"] = constant_raw(layout, data.targets, data.mask).astype(dtype)
        return shared, {}

    def _encode(self, shared: Any, layout: Layout, inputs: jax.Array, visible: jax.Array) -> jax.Array:
        numbers = np.array(layout.numbers, np.int32)
        columns = np.array(layout.inputs, np.int32)
        low, high = jax.lax.stop_gradient(shared["ends"])
        knots = jax.lax.stop_gradient(shared["knots"])
        plain = (inputs - low) / jnp.maximum(high - low, LEAST_GAP)
        plain = plain.at[:, numbers].set(jnp.clip(inputs[:, numbers], -FARTHEST, FARTHEST))
        gaps = jnp.maximum(jnp.diff(knots), LEAST_GAP)
        placed = jnp.clip((inputs[:, numbers, None] - knots[:, :-1]) / gaps, 0.0, 1.0)
        shown = visible.astype(inputs.dtype)
        placed = placed * shown[:, columns[numbers], None]
        return jnp.concatenate([plain * shown[:, columns], placed.reshape(len(inputs), -1), shown], axis=1)

    def _raw(self, shared: Any, layout: Layout, inputs: jax.Array, visible: jax.Array, key: Any = None) -> jax.Array:
        h = _linear(shared["first"], self._encode(shared, layout, inputs, visible))
        for i, block in enumerate(shared["blocks"]):
            z = jax.nn.relu(_linear(block["up"], _normalize(block["norm"], h)))
            if key is not None and self.dropout_percent:
                keep = 1.0 - self.dropout_percent / 100
                z = z * jax.random.bernoulli(jax.random.fold_in(key, i), keep, z.shape) / keep
            h = h + _linear(block["down"], z)
        return _linear(shared["last"], jax.nn.relu(_normalize(shared["norm"], h)))

    def terms(self, shared: Any, local: Any, key: jax.Array, layout: Layout, data: Data, epoch: jax.Array) -> Terms:
        hiding, dropping = jax.random.split(key)
        visible, hidden, weight = hide_cells(hiding, layout, data.mask)
        raw = self._raw(shared, layout, data.inputs, visible, dropping)
        found = weight * layout.log_likelihood(raw, data.targets, hidden)
        return Terms(found, jnp.zeros(len(found), found.dtype), jnp.zeros((), found.dtype))

    def predict(self, shared: Any, local: Any, key: jax.Array | None, layout: Layout, data: Data) -> jax.Array:
        """Return raw parameters of every cell; of an observed one, from itself too. There is no variable to draw."""
        return self._raw(shared, layout, data.inputs, data.mask[:, layout.first_features])

    def infer_local(self, shared: Any, key: jax.Array, layout: Layout, data: Data) -> Any:
        """Nothing to infer: a row has no variables."""
        return {}


def _layer(key: jax.Array, n_in: int, n_out: int, gain: float, dtype: Any) -> dict[str, jax.Array]:
    weight = jax.random.normal(key, (n_in, n_out), dtype) * np.sqrt(gain / n_in)
    return {"weight": weight, "bias": jnp.zeros(n_out, dtype)}


def _linear(layer: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return x @ layer["weight"] + layer["bias"]


def _norm(size: int, dtype: Any) -> dict[str, jax.Array]:
    return {"gain": jnp.ones(size, dtype), "offset": jnp.zeros(size, dtype)}


def _normalize(norm: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * norm["gain"] + norm["offset"]
