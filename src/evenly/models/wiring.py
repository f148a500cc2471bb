"""The log-likelihood of a table's columns, in programs that know sizes alone: who stands where is said by arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evenly.likelihoods import Likelihood
from evenly.models.layout import BLOCK, Layout, constrain

NONE = -1e30
"""The logit of a class that is not there."""


@dataclass(frozen=True)
class Wiring:
    """A layout as programs see it: which likelihoods there are places for, and arrays that say who stands where."""

    groups: tuple[tuple[Likelihood, int], ...]
    n_columns: Any
    owners: Any
    """The column of each feature, by place."""
    used: Any
    """Which places hold a feature."""
    membership: Any
    """Matrix that sums features into columns."""
    input_owners: Any
    """The column of each input."""
    parameters: Any
    """Which of the raw parameters are a feature's."""
    followed: Any
    """The first parameter of each feature, and all of a categorical's: what follows the rows in a factorization."""
    draws: Any
    """The number of each raw parameter, feature after feature: its random numbers go by that, not by its place."""
    block_head: Any
    """The categorical of each block of classes."""
    block_first: Any
    """The first class of each block."""
    block_size: Any
    """How many of its classes there are."""
    head_blocks: Any
    """The blocks of each categorical; beyond the last, one that is not there."""

    def natural(self, raw: jax.Array) -> jax.Array:
        """Return the flat natural parameters of raw ones along the last axis."""
        parts, into = [], 0
        for likelihood, n in self.groups:
            k = len(likelihood.natural_bounds)
            own = raw[..., into : into + n * k].reshape((*raw.shape[:-1], n, k))
            parts.append(constrain(likelihood, own).reshape((*raw.shape[:-1], n * k)))
            into += n * k
        return jnp.concatenate([*parts, raw[..., into:]], axis=-1)

    def log_likelihood(self, raw: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the log-likelihood of every column of every row: observed cells only."""
        seen = self.cell_log_likelihood(raw, targets, mask)
        return jnp.asarray(seen @ self.membership.astype(seen.dtype))

    def cell_log_likelihood(self, raw: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the log-likelihood of every feature of every row, by place: 0 if not observed."""
        cells, at, into = [], 0, 0
        for likelihood, n in self.groups:
            k = len(likelihood.natural_bounds)
            own = raw[..., into : into + n * k].reshape((*raw.shape[:-1], n, k))
            cells.append(likelihood.log_density(targets[..., at : at + n], constrain(likelihood, own)))
            at, into = at + n, into + n * k
        if self.head_blocks.shape[0]:
            classes = jnp.broadcast_to(raw[..., into:], (*targets.shape[:-1], raw.shape[-1] - into))
            blocks = (self.block_head, self.block_first, self.block_size, self.head_blocks)
            cells.append(class_log_likelihood(classes, targets[..., at:], blocks))
        seen = mask[..., self.owners] & self.used
        return jnp.where(seen, jnp.concatenate(cells, axis=-1), 0.0)


jax.tree_util.register_dataclass(
    Wiring, data_fields=[one.name for one in fields(Wiring) if one.name != "groups"], meta_fields=["groups"]
)


@lru_cache(16)
def wire(layout: Layout) -> Wiring:
    """Return a layout as programs see it."""
    sizes = layout.sizes
    owners, used = np.zeros(layout.n_slots, np.int32), np.zeros(layout.n_slots, bool)
    membership = np.zeros((layout.n_slots, sizes.columns), np.float32)
    parameters, followed = np.zeros(layout.n_raw, bool), np.zeros(layout.n_raw, bool)
    draws = np.zeros(layout.n_raw, np.int32)
    head, held = np.zeros(sizes.blocks, np.int32), np.zeros(sizes.blocks, np.int32)
    first = np.full(sizes.blocks, -BLOCK, np.int32)  # of a block that is not used, before any class
    heads = np.full((sizes.heads, sizes.most_blocks), sizes.blocks, np.int32)
    n_heads = n_blocks = 0
    for one, column, (slot, places) in zip(layout.likelihoods, layout.columns, layout.places, strict=True):
        owners[slot], used[slot], membership[slot, column] = column, True, 1.0
        classes = one.one_per_class
        parameters[places] = True
        followed[places if classes else places[:1]] = True
        if classes:
            starts = np.arange(0, len(places), BLOCK)
            own = n_blocks + np.arange(len(starts))
            head[own], first[own], held[own] = n_heads, starts, np.minimum(BLOCK, len(places) - starts)
            heads[n_heads, : len(own)] = own
            n_heads, n_blocks = n_heads + 1, n_blocks + len(own)
    draws[layout.parameters] = np.arange(layout.n_parameters)
    inputs = np.zeros(sizes.inputs, np.int32)
    inputs[: len(layout.inputs)] = layout.inputs
    return Wiring(
        sizes.groups,
        np.int32(layout.n_columns),
        owners,
        used,
        membership,
        inputs,
        parameters,
        followed,
        draws,
        head,
        first,
        held,
        heads,
    )


Blocks = tuple[Any, Any, Any, Any]
"""`block_head`, `block_first`, `block_size` and `head_blocks` of a wiring."""


def _logits(raw: jax.Array, size: jax.Array) -> jax.Array:
    """Return raw parameters by block, without those of classes that are not there."""
    return jnp.where(jnp.arange(BLOCK) < size[:, None], raw.reshape((*raw.shape[:-1], -1, BLOCK)), NONE)


def _hit(codes: jax.Array, blocks: Blocks) -> jax.Array:
    """Say which class of each block is the code of its head."""
    head, first = blocks[:2]
    return jnp.asarray(first[:, None] + jnp.arange(BLOCK) == codes[..., head, None])


@jax.custom_vjp
def class_log_likelihood(raw: jax.Array, codes: jax.Array, blocks: Blocks) -> jax.Array:
    """Return the log-probability of each head's class, from the raw parameters of all heads' classes in blocks."""
    return _class_log_likelihood(raw, codes, blocks)[0]


def _class_log_likelihood(raw: jax.Array, codes: jax.Array, blocks: Blocks) -> tuple[jax.Array, Any]:
    head, _, size, of_head = blocks
    logits = _logits(raw, size)
    tops = logits.max(-1)
    ends = jnp.full((*tops.shape[:-1], 1), NONE, tops.dtype)
    highest = jnp.concatenate([tops, ends], axis=-1)[..., of_head].max(-1)
    # Sums over a head's blocks are products with a matrix: faster than to gather them.
    summed = jnp.asarray(head[:, None] == jnp.arange(len(of_head)), raw.dtype)
    total = jnp.exp(logits - highest[..., head, None]).sum(-1) @ summed
    log_total = highest + jnp.log(jnp.maximum(total, np.finfo(raw.dtype).tiny))
    chosen = jnp.where(_hit(codes, blocks), logits, 0.0).sum(-1) @ summed
    return chosen - log_total, (raw, codes, log_total, blocks)


def _class_gradient(kept: Any, upstream: jax.Array) -> tuple[jax.Array, None, None]:
    """By hand: what is gathered and summed over a head's blocks forwards would be scattered backwards, one by one."""
    raw, codes, log_total, blocks = kept
    head, _, size, _ = blocks
    shares = jnp.exp(_logits(raw, size) - log_total[..., head, None])
    return (upstream[..., head, None] * (_hit(codes, blocks) - shares)).reshape(raw.shape), None, None


class_log_likelihood.defvjp(_class_log_likelihood, _class_gradient)
