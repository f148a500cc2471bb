"""What several models are made of: dense layers, hidden cells, random numbers by row and parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from evenly.models.wiring import Wiring

MOST_HIDDEN, OFTEN, SELDOM = 0.4, 0.95, 1.0
"""In masked training the share of a row's observed cells that is hidden is uniform from 0 to the first in so many rows
(a share), and from 0 to the third in the others: near to what is asked for later, and no row is strange."""


def draw_rows(key: jax.Array, n_rows: int, n: int) -> jax.Array:
    """Draw n whole numbers of 32 bits for each row.

    At once, since every call costs a program more than its numbers do. A row has a key of its own, so that its first
    numbers are the same however many follow, and however many rows there are.
    """
    return jax.vmap(lambda own: jax.random.bits(own, (n,), np.uint32))(jax.random.split(key, n_rows))


def hide_cells(numbers: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array, float]:
    """Hide a random share of each row's observed cells, for masked training.

    Returns which cells stay visible, which are hidden, and the weight that makes the hidden ones stand for all observed
    ones.

    Parameters
    ----------
    numbers : array
        Random numbers of 32 bits, two more for each row than there are columns.
    """
    drawn = (numbers >> 8).astype(np.float32) * np.float32(2.0**-24)  # uniform from 0 to 1, which is not reached
    most = jnp.where(drawn[:, :1] < OFTEN, MOST_HIDDEN, SELDOM)
    visible = mask & (drawn[:, 2:] >= most * drawn[:, 1:2])
    return visible, mask & ~visible, 2.0 / (OFTEN * MOST_HIDDEN + (1.0 - OFTEN) * SELDOM)


def draw_parameters(key: jax.Array, wiring: Wiring, n: int, dtype: Any) -> jax.Array:
    """Draw a standard normal for every raw parameter, n times: n x parameters, the same wherever they stand."""
    return jnp.asarray(jax.random.normal(key, (len(wiring.draws), n), dtype)[wiring.draws].T)


def normal_kl(mean: jax.Array, std: jax.Array) -> jax.Array:
    """Return the KL divergence of a normal from the standard normal, element by element."""
    return jnp.asarray(0.5 * (mean**2 + std**2 - 1.0) - jnp.log(std))


def dense(rng: np.random.Generator, n_in: int, n_out: int, gain: float, dtype: Any) -> dict[str, Any]:
    """Return a layer with normal weights of variance gain / n_in."""
    weight = rng.standard_normal((n_in, n_out)) * np.sqrt(gain / max(1, n_in))
    return {"weight": weight.astype(dtype), "bias": np.zeros(n_out, dtype)}


def linear(layer: Mapping[str, Any], x: jax.Array) -> jax.Array:
    """Apply a layer."""
    return jnp.asarray(x @ layer["weight"] + layer["bias"])


def padded(array: npt.NDArray[Any], axis: int, size: int, places: npt.NDArray[np.intp] | None = None) -> Any:
    """Return an array with zeros along an axis: after its entries, or wherever they do not have their places."""
    shape = list(array.shape)
    at = np.arange(shape[axis]) if places is None else places
    shape[axis] = size
    found = np.zeros(shape, array.dtype)
    np.moveaxis(found, axis, 0)[at] = np.moveaxis(array, axis, 0)
    return found
