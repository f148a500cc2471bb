"""Log-likelihoods in compiled programs, which depend on array sizes only; positions of columns are passed as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evenly.likelihoods import Likelihood, constrain
from evenly.models.layout import BLOCK, Layout

NONE = -1e30
"""Logit of an unused class slot: practically 0 probability, but finite."""


@dataclass(frozen=True)
class Wiring:
    """A layout for compiled programs: the slots of each likelihood are static, all else is passed as arrays."""

    groups: tuple[tuple[Likelihood, int], ...]
    n_columns: Any
    owners: Any
    """The column of each feature slot."""
    used: Any
    """Which slots hold a feature."""
    membership: Any
    """Matrix that sums feature slots into columns."""
    input_owners: Any
    """The column of each input."""
    parameters: Any
    """Which raw parameters belong to a feature."""
    followed: Any
    """Parameters that vary by row in a factorization: the first of each feature, all of a categorical."""
    draws: Any
    """Index of each raw parameter, feature by feature: selects its random numbers independently of padding."""
    block_head: Any
    """The categorical of each block of classes."""
    block_first: Any
    """The first class of each block."""
    block_size: Any
    """The number of classes in each block."""
    head_blocks: Any
    """The blocks of each categorical, padded with an index beyond the last block."""

    @property
    def raw_owners(self) -> jax.Array:
        """The column of each raw parameter."""
        owners, parts, at = jnp.asarray(self.owners), [], 0
        for likelihood, n in self.groups:
            parts.append(jnp.repeat(owners[at : at + n], len(likelihood.natural_bounds)))
            at += n
        if self.head_blocks.shape[0]:
            parts.append(jnp.repeat(owners[at:][self.block_head], BLOCK))
        return jnp.concatenate(parts)

    def natural(self, raw: jax.Array) -> jax.Array:
        """Map flat raw parameters, along the last axis, to natural ones."""
        parts, into = [], 0
        for likelihood, n in self.groups:
            k = len(likelihood.natural_bounds)
            own = raw[..., into : into + n * k].reshape((*raw.shape[:-1], n, k))
            parts.append(constrain(likelihood, own).reshape((*raw.shape[:-1], n * k)))
            into += n * k
        return jnp.concatenate([*parts, raw[..., into:]], axis=-1)

    def log_likelihood(self, raw: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the log-likelihood of every column in every row, over observed cells."""
        seen = self.cell_log_likelihood(raw, targets, mask)
        return jnp.asarray(seen @ self.membership.astype(seen.dtype))

    def class_concentration(self, raw: jax.Array) -> jax.Array:
        """Return the sum of the squared probabilities of each categorical's classes, given their raw parameters."""
        if not self.head_blocks.shape[0]:
            return jnp.zeros((*raw.shape[:-1], 0), raw.dtype)
        logits = _logits(raw, self.block_size)
        of_head = jnp.asarray(self.block_head[:, None] == jnp.arange(len(self.head_blocks)), raw.dtype)
        shares = jnp.exp(logits - logits.max((-2, -1), keepdims=True))
        total, squares = shares.sum(-1) @ of_head, (shares**2).sum(-1) @ of_head
        return squares / jnp.maximum(total**2, np.finfo(raw.dtype).tiny)

    def cell_log_likelihood(self, raw: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the log-likelihood of every feature slot in every row; 0 if not observed."""
        cells, at, into = [], 0, 0
        others, classes = _split(raw, sum(n * len(likelihood.natural_bounds) for likelihood, n in self.groups))
        for likelihood, n in self.groups:
            k = len(likelihood.natural_bounds)
            own = others[..., into : into + n * k].reshape((*raw.shape[:-1], n, k))
            cells.append(likelihood.log_density(targets[..., at : at + n], constrain(likelihood, own)))
            at, into = at + n, into + n * k
        if self.head_blocks.shape[0]:
            classes = jnp.broadcast_to(classes, (*targets.shape[:-1], classes.shape[-1]))
            blocks = (self.block_head, self.block_first, self.block_size, self.head_blocks)
            cells.append(class_log_likelihood(classes, targets[..., at:], blocks))
        seen = mask[..., self.owners] & self.used
        return jnp.where(seen, jnp.concatenate(cells, axis=-1), 0.0)


jax.tree_util.register_dataclass(
    Wiring, data_fields=[one.name for one in fields(Wiring) if one.name != "groups"], meta_fields=["groups"]
)


@lru_cache(16)
def wire(layout: Layout) -> Wiring:
    """Return the wiring of a layout."""
    sizes = layout.sizes
    owners, used = np.zeros(layout.n_slots, np.int32), np.zeros(layout.n_slots, bool)
    membership = np.zeros((layout.n_slots, sizes.columns), np.float32)
    parameters, followed = np.zeros(layout.n_raw, bool), np.zeros(layout.n_raw, bool)
    draws = np.zeros(layout.n_raw, np.int32)
    head, held = np.zeros(sizes.blocks, np.int32), np.zeros(sizes.blocks, np.int32)
    first = np.full(sizes.blocks, -BLOCK, np.int32)  # unused blocks start before any class
    heads = np.full((sizes.heads, sizes.most_blocks), sizes.blocks, np.int32)
    n_heads = n_blocks = 0
    for one, column, (slot, places) in zip(layout.likelihoods, layout.columns, layout.places, strict=True):
        owners[slot], used[slot], membership[slot, column] = column, True, 1.0
        classes = one.one_per_class
        parameters[places] = True
        followed[places if classes else places[:1]] = True
        if classes:
            starts = np.arange(0, len(places), BLOCK)
            taken = n_blocks + np.arange(len(starts))
            head[taken], first[taken], held[taken] = n_heads, starts, np.minimum(BLOCK, len(places) - starts)
            heads[n_heads, : len(taken)] = taken
            n_heads, n_blocks = n_heads + 1, n_blocks + len(taken)
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


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _split(raw: jax.Array, at: int) -> tuple[jax.Array, jax.Array]:
    """Split raw parameters along the last axis; their gradients are put in place, not padded and added."""
    return raw[..., :at], raw[..., at:]


def _join(at: int, _: None, upstream: tuple[jax.Array, jax.Array]) -> tuple[jax.Array]:
    first, second = upstream
    whole = jnp.pad(first, [*[(0, 0)] * (first.ndim - 1), (0, second.shape[-1])])
    return (jax.lax.dynamic_update_slice_in_dim(whole, second, at, -1),)


_split.defvjp(lambda raw, at: (_split(raw, at), None), _join)


Blocks = tuple[Any, Any, Any, Any]
"""`block_head`, `block_first`, `block_size` and `head_blocks` of a wiring."""


def _logits(raw: jax.Array, size: jax.Array) -> jax.Array:
    """Return raw parameters by block, with unused class slots masked."""
    return jnp.where(jnp.arange(BLOCK) < size[:, None], raw.reshape((*raw.shape[:-1], -1, BLOCK)), NONE)


@jax.custom_vjp
def class_log_likelihood(raw: jax.Array, codes: jax.Array, blocks: Blocks) -> jax.Array:
    """Return the log-probability of each categorical's code, given the raw parameters of all classes in blocks."""
    return _class_log_likelihood(raw, codes, blocks)[0]


def _heads(blocks: Blocks, dtype: Any) -> jax.Array:
    """Return the matrix that sums blocks into categoricals, blocks x categoricals.

    Its transpose gives each block what its categorical has. Products with it are faster than gathering, and the
    compiler keeps their results instead of computing them anew for each class.
    """
    return jnp.asarray(blocks[0][:, None] == jnp.arange(len(blocks[3])), dtype)


def _class_log_likelihood(raw: jax.Array, codes: jax.Array, blocks: Blocks) -> tuple[jax.Array, Any]:
    _, _, size, of_head = blocks
    logits = _logits(raw, size)
    tops = logits.max(-1)
    ends = jnp.full((*tops.shape[:-1], 1), NONE, tops.dtype)
    highest = jnp.concatenate([tops, ends], axis=-1)[..., of_head].max(-1)
    heads = _heads(blocks, raw.dtype)
    flat = logits.reshape(raw.shape)
    powers = jnp.exp(flat - jnp.repeat(highest @ heads.T, BLOCK, axis=-1))
    lanes = [powers[..., i::BLOCK] for i in range(BLOCK)]  # in passes over whole vectors
    total = jnp.maximum(sum(lanes[1:], lanes[0]) @ heads, np.finfo(raw.dtype).tiny)
    places = of_head[:, 0] * BLOCK + codes.astype(np.int32)
    chosen = jnp.take_along_axis(flat, places, axis=-1, mode="clip")
    return chosen - highest - jnp.log(total), (powers, total, codes, blocks)


def _class_gradient(kept: Any, upstream: jax.Array) -> tuple[jax.Array, None, None]:
    """Return the gradient, written by hand: automatic differentiation would scatter block by block, which is slow."""
    powers, total, codes, blocks = kept
    heads = _heads(blocks, powers.dtype)
    code, up, share = (jnp.repeat(one @ heads.T, BLOCK, axis=-1) for one in (codes, upstream, upstream / total))
    hit = code == (blocks[1][:, None] + jnp.arange(BLOCK)).reshape(-1)
    return jnp.where(hit, up, 0.0) - powers * share, None, None


class_log_likelihood.defvjp(_class_log_likelihood, _class_gradient)
