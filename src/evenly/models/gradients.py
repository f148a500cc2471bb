"""The gradient of each column's log-likelihood in the shared parameters, and how a step changes it."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from evenly.models.bbvi import State, Trained, jit_once, step, take
from evenly.models.layout import Data
from evenly.models.wiring import Wiring


@partial(jit_once, static_argnums=0)
def column_gradients(model: Trained, wiring: Wiring, data: Data, state: State, rows: jax.Array) -> jax.Array:
    """Return the norm of each column's gradient with respect to the shared parameters, on a batch of rows."""
    return _norms(_jacobian(model, wiring, data, state, rows, jax.random.wrap_key_data(state.key)))


@partial(jax.jit, static_argnums=0)
def gradient_changes(
    model: Trained, wiring: Wiring, data: Data, state: State, rows: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return each column's gradient norm, and the norm of its change by one step, on the same rows and draws."""
    key = jax.random.wrap_key_data(state.key)
    before = _jacobian(model, wiring, data, state, rows, key)
    after = _jacobian(model, wiring, data, step(model, wiring, data, state, rows)[0], rows, key)
    return _norms(before), _norms(jax.tree.map(jnp.subtract, after, before))


def _jacobian(model: Trained, wiring: Wiring, data: Data, state: State, rows: jax.Array, key: jax.Array) -> Any:
    """Return the Jacobian of the columns' log-likelihoods with respect to the shared parameters, by column."""
    local, batch = take((state.local, data), rows)
    valid = (rows < data.mask.shape[0])[:, None]

    start = state.shared if state.balancing is None else state.balancing.folded(model, state.shared)

    def by_column(shared: Any) -> jax.Array:
        terms = model.terms({**shared, **state.fixed}, local, key, wiring, batch, state.epoch)
        return jnp.asarray(jnp.where(valid, terms.log_likelihood, 0.0).sum(0) / valid.sum())

    return jax.jacrev(by_column)(start)


def _norms(jacobian: Any) -> jax.Array:
    squares = [(leaf.reshape(leaf.shape[0], -1) ** 2).sum(-1) for leaf in jax.tree.leaves(jacobian)]
    return jnp.sqrt(sum(squares[1:], squares[0]))
