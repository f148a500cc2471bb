"""Masked network: predicts every cell from the visible cells of its row, trained by hiding some of them.

A variational autoencoder is trained to reconstruct the cells that it is given. Here a random share of each row's
observed cells is hidden from the network at every step, and only those are scored, so that it has to predict cells from
the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from evenly.models.base import Expected
from evenly.models.bbvi import Start
from evenly.models.layers import dense, draw_rows, hide_cells, linear, padded
from evenly.models.layout import ALWAYS, Data, Layout, size_class
from evenly.models.shared_output import Head, Shared, SharesOutput
from evenly.models.spec import SPECS
from evenly.models.wiring import Wiring

FARTHEST = 5.0
"""Standardized inputs are clipped at 5 standard deviations; the piecewise linear encoding covers the tails."""
LEAST_GAP = 1e-6
"""Smallest distance between knots; knots that coincide, at a frequent value, encode a step."""
WARM_UP = 0.03
"""Share of the steps in which the learning rate warms up."""
LEAST_UNITS = 64
"""The smallest size class of the number of encoded inputs."""


@dataclass(frozen=True)
class Masked(SharesOutput):
    """Residual blocks of two layers; numbers are encoded piecewise linearly, with quantiles as knots."""

    hidden_size: int = 256
    n_blocks: int = 3
    n_knots: int = 32
    dropout_percent: int = 0
    spec: ClassVar = SPECS["masked"]
    second_decay: ClassVar[float] = 0.99
    weight_decay: ClassVar[float] = 0.01
    # Mostly matrix products, which the compiler does not optimize: epochs take as long, compiling a quarter less.
    optimization: ClassVar[int] = 1

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Masked:
        """Return the model with 256 hidden units; below 2,000 rows with 128, and 20 % dropout."""
        few = n_rows < 2_000
        return cls(sizes.get("hidden_size", 128 if few else 256), dropout_percent=20 if few else 0)

    def schedule(self, progress: Any) -> Any:
        """Warm up linearly, then decay to 1 % along a cosine."""
        xp: Any = np if isinstance(progress, float) else jnp
        fall = 0.01 + 0.99 * 0.5 * (1.0 + xp.cos(np.pi * (progress - WARM_UP) / (1.0 - WARM_UP)))
        return xp.where(progress < WARM_UP, progress / WARM_UP, fall)

    def expected_arrays(self, layout: Layout) -> Mapping[str, Expected]:
        """Return the encoding of the inputs, the layers and their normalizations."""
        hidden = Expected((self.hidden_size,))
        found = {
            "units/source": Expected(("units",), below=max(1, layout.sizes.inputs)),
            "units/owner": Expected(("units",), below=layout.sizes.columns, least=ALWAYS),
            **{f"units/{name}": Expected(("units",)) for name in ("low", "gap")},
            **{f"units/{name}": Expected(("units",), finite=False) for name in ("least", "most")},
            "first/weight": Expected(("units", self.hidden_size)),
            "first/bias": hidden,
            "last/weight": Expected((self.hidden_size, layout.n_raw)),
            "last/bias": Expected((layout.n_raw,)),
        }
        square = Expected((self.hidden_size, self.hidden_size))
        for i in range(self.n_blocks):
            found |= {f"blocks/{i}/{name}/weight": square for name in ("up", "down")}
            found |= {f"blocks/{i}/{name}/bias": hidden for name in ("up", "down")}
        norms = ["norm", *(f"blocks/{i}/norm" for i in range(self.n_blocks))]
        return found | {f"{norm}/{name}": hidden for norm in norms for name in ("gain", "offset")}

    def init(self, rng: np.random.Generator, layout: Layout, data: Data) -> Start:
        hidden, dtype = self.hidden_size, data.targets.dtype
        units = [unit for i in range(len(layout.inputs)) for unit in self._units(layout, data, i)]
        # One unit per column indicates whether it is visible: it is 1 whatever the input, which is clipped to it.
        units += [(0, column, 0.0, 1.0, 1.0, 1.0) for column in range(layout.n_columns)]
        width = size_class(len(units), LEAST_UNITS, layout.sizes.per_octave)
        names = ("source", "owner", "low", "gap", "least", "most")
        of_units = {
            name: padded(np.array(part, np.int32 if name in ("source", "owner") else dtype), 0, width)
            for name, part in zip(names, zip(*units, strict=True), strict=True)
        }
        of_units["gap"] = np.where(of_units["gap"] > 0.0, of_units["gap"], 1.0).astype(dtype)
        first = dense(rng, len(units), hidden, 1.0, dtype)
        blocks: dict[str, Any] = {}
        for i in range(self.n_blocks):
            blocks[str(i)] = {
                "norm": _norm(hidden, dtype),
                "up": dense(rng, hidden, hidden, 2.0, dtype),
                "down": dense(rng, hidden, hidden, 0.1, dtype),
            }
        last = dense(rng, hidden, layout.n_parameters, 0.01, dtype)
        shared = {
            "first": {"weight": padded(first["weight"], 0, width), "bias": first["bias"]},
            "blocks": blocks,
            "norm": _norm(hidden, dtype),
            "last": {
                "weight": padded(last["weight"], 1, layout.n_raw, layout.parameters),
                "bias": layout.constant(data).astype(dtype),
            },
        }
        return Start(shared, {}, {"units": of_units})

    def _units(self, layout: Layout, data: Data, i: int) -> list[tuple[int, int, float, float, float, float]]:
        """Return the encoding of an input: its index, its column, and how it is shifted, divided and clipped."""
        column = layout.inputs[i]
        rows = slice(None) if column == ALWAYS else data.mask[:, column]
        seen = np.asarray(data.inputs[rows, i])
        if not len(seen):
            return []
        if i not in layout.numbers:
            low, high = float(seen.min()), float(seen.max())
            return [(i, column, low, max(high - low, LEAST_GAP), -np.inf, np.inf)]
        knots = np.quantile(seen, np.linspace(0.0, 1.0, self.n_knots + 1))
        pieces = _distinct(knots[:-1], np.maximum(np.diff(knots), LEAST_GAP), seen)
        return [
            (i, column, 0.0, 1.0, -FARTHEST, FARTHEST),
            *((i, column, float(low), float(gap), 0.0, 1.0) for low, gap in pieces),
        ]

    def _encode(self, shared: Any, inputs: jax.Array, visible: jax.Array) -> jax.Array:
        units, inputs = shared["units"], jnp.nan_to_num(jnp.asarray(inputs))  # 0 times infinity would not be a number
        # Products with matrices of 0 and 1: into a gather the compiler would move all that leads to what is gathered,
        # and compute it anew for every unit.
        source = jnp.asarray(jnp.arange(inputs.shape[1])[:, None] == units["source"], inputs.dtype)
        owner = jnp.asarray(jnp.arange(visible.shape[1])[:, None] == units["owner"], inputs.dtype)
        moved = (inputs @ source - units["low"]) / units["gap"]
        seen = (jnp.asarray(visible, inputs.dtype) @ owner > 0.0) | (units["owner"] == ALWAYS)
        return jnp.where(seen, jnp.clip(moved, units["least"], units["most"]), 0.0)

    def _hidden(self, shared: Any, inputs: jax.Array, visible: jax.Array, drawn: Any = None) -> jax.Array:
        """Return the last hidden layer, which all columns share."""
        h = linear(shared["first"], self._encode(shared, inputs, visible))
        for i in range(self.n_blocks):
            block = shared["blocks"][str(i)]
            z = jax.nn.relu(linear(block["up"], _normalize(block["norm"], h)))
            if drawn is not None and self.dropout_percent:
                z = _drop(drawn[:, i * self.hidden_size :], z, self.dropout_percent)
            h = h + linear(block["down"], z)
        return jax.nn.relu(_normalize(shared["norm"], h))

    def head(self, shared: Any, key: jax.Array, wiring: Wiring) -> Head:
        return Head(shared["last"]["weight"], shared["last"]["bias"])

    def share(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Shared:
        # One random number per unit for dropout. Those that hide cells come last: their number depends on the padding.
        n_drops = self.n_blocks * self.hidden_size if self.dropout_percent else 0
        numbers = draw_rows(key, len(data.mask), n_drops + 2 + data.mask.shape[1])
        visible, hidden, weight = hide_cells(numbers[:, n_drops:], data.mask)
        output = self._hidden(shared, data.inputs, visible, numbers[:, :n_drops])
        nothing = jnp.zeros((), output.dtype)
        return Shared(output, hidden, weight, jnp.zeros(len(output), output.dtype), nothing)

    def predict(self, shared: Any, local: Any, key: jax.Array | None, wiring: Wiring, data: Data) -> jax.Array:
        """Return the raw parameters of every cell given all observed ones, itself included; nothing is drawn."""
        return linear(shared["last"], self._hidden(shared, data.inputs, data.mask))

    def infer_local(self, shared: Any, key: jax.Array, wiring: Wiring, data: Data) -> Any:
        """Return nothing: rows have no latent variables."""
        return {}


def _distinct(
    lows: npt.NDArray[Any], gaps: npt.NDArray[Any], seen: npt.NDArray[Any]
) -> list[tuple[np.floating[Any], np.floating[Any]]]:
    """Drop pieces that are constant or duplicates on the values of a column with few distinct ones."""
    numbers = np.unique(seen)
    if len(numbers) <= 2 * len(lows):
        encoded = np.clip((numbers - lows[:, None]) / gaps[:, None], 0.0, 1.0)
        first = np.sort(np.unique(encoded, axis=0, return_index=True)[1])
        first = first[np.ptp(encoded[first], axis=1) > 0.0]
        lows, gaps = lows[first], gaps[first]
    return list(zip(lows, gaps, strict=True))


def _drop(drawn: jax.Array, x: jax.Array, percent: int) -> jax.Array:
    """Drop units by random 32-bit integers, and rescale the others."""
    kept = 1.0 - percent / 100.0
    return jnp.where(drawn[:, : x.shape[1]] < np.uint32(kept * 2.0**32), x / kept, 0.0)


def _norm(size: int, dtype: Any) -> dict[str, Any]:
    return {"gain": np.ones(size, dtype), "offset": np.zeros(size, dtype)}


def _normalize(norm: Mapping[str, Any], x: jax.Array) -> jax.Array:
    x = x - x.mean(-1, keepdims=True)
    return jnp.asarray(x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * norm["gain"] + norm["offset"])
