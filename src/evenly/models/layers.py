"""Building blocks of the models: dense layers, hiding of cells, random numbers by row and parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from evenly.models.wiring import Wiring

MOST_HIDDEN, OFTEN, SELDOM = 0.4, 0.95, 1.0
"""In masked training, the share of a row's observed cells that is hidden is uniform from 0 to 0.4 in 95 % of the rows,
as in most tables to impute, and from 0 to 1 in the others, so that nearly empty rows are trained on too."""


def share_of(share: float, n_columns: int) -> int:
    """Return a share of the number of columns, rounded, a half up; at least 1.

    Examples
    --------
    >>> [share_of(0.75, n) for n in (17, 13, 10, 58)], [share_of(0.5, n) for n in (17, 13, 1)]
    ([13, 10, 8, 44], [9, 7, 1])
    """
    return max(1, int(share * n_columns + 0.5))


def draw_rows(key: jax.Array, n_rows: int, n: int) -> jax.Array:
    """Draw n random 32-bit integers for each row.

    They are hashes of the key, the row and a counter, so that the first numbers of a row depend neither on n nor on the
    number of rows. JAX's own generator takes several times as long, and longer to compile.
    """
    first, second = jax.random.key_data(key)
    rows = _mix(jnp.arange(n_rows, dtype=np.uint32)[:, None] * GOLDEN + first)
    keys = _mix(rows + second)
    counters = jnp.arange(n, dtype=np.uint32) * GOLDEN
    return _mix(_mix(keys + counters) ^ rows)


GOLDEN = np.uint32(0x9E3779B9)
"""The golden ratio's share of 2^32: its multiples are far apart, modulo 2^32."""


def _mix(x: jax.Array) -> jax.Array:
    """Return a one-to-one scrambling of 32-bit integers: the last step of the hash function MurmurHash3."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def hide_cells(numbers: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array, float]:
    """Hide a random share of each row's observed cells, for masked training.

    Returns the visible cells, the hidden cells, and the weight that scales the log-likelihood of hidden cells to that
    of all observed ones.

    Parameters
    ----------
    numbers : array
        Random 32-bit integers, rows x (2 + columns).
    """
    drawn = (numbers >> 8).astype(np.float32) * np.float32(2.0**-24)  # uniform in [0, 1)
    most = jnp.where(drawn[:, :1] < OFTEN, MOST_HIDDEN, SELDOM)
    visible = mask & (drawn[:, 2:] >= most * drawn[:, 1:2])
    return visible, mask & ~visible, 2.0 / (OFTEN * MOST_HIDDEN + (1.0 - OFTEN) * SELDOM)


def draw_parameters(key: jax.Array, wiring: Wiring, n: int, dtype: Any) -> jax.Array:
    """Draw n standard normals for every raw parameter, whatever its position in the arrays: n x parameters."""
    return jnp.asarray(jax.random.normal(key, (len(wiring.draws), n), dtype)[wiring.draws].T)


def normal_kl(mean: jax.Array, std: jax.Array) -> jax.Array:
    """Return the KL divergence of a normal from the standard normal, elementwise."""
    return jnp.asarray(0.5 * (mean**2 + std**2 - 1.0) - jnp.log(std))


def inverse_softplus(y: jax.Array) -> jax.Array:
    """Return what softplus maps to y > 0."""
    return jnp.asarray(y + jnp.log(-jnp.expm1(-y)))


def dense(rng: np.random.Generator, n_in: int, n_out: int, gain: float, dtype: Any) -> dict[str, Any]:
    """Initialize a dense layer with normal weights of variance gain / n_in."""
    weight = rng.standard_normal((n_in, n_out)) * np.sqrt(gain / max(1, n_in))
    return {"weight": weight.astype(dtype), "bias": np.zeros(n_out, dtype)}


def linear(layer: Mapping[str, Any], x: jax.Array) -> jax.Array:
    """Apply a dense layer."""
    return jnp.asarray(x @ layer["weight"] + layer["bias"])


def padded(array: npt.NDArray[Any], axis: int, size: int, places: npt.NDArray[np.intp] | None = None) -> Any:
    """Return an array padded with zeros along an axis: at its end, or around the given positions of its entries."""
    shape = list(array.shape)
    at = np.arange(shape[axis]) if places is None else places
    shape[axis] = size
    found = np.zeros(shape, array.dtype)
    np.moveaxis(found, axis, 0)[at] = np.moveaxis(array, axis, 0)
    return found
