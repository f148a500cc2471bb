"""Online Lipschitz standardization: scales that move towards the target while a model is trained.

Static scales are chosen once, from each column's marginal. These follow a moving average of the smoothness at the
model's own parameters. A scale s multiplies a natural parameter of the table's feature by f(s), the scale law of its
likelihood. So the heads' raw parameters are multiplied by f(s) before they are constrained; when s moves, the weights
of the heads are divided by as much as this factor grew, and the optimizer's moments follow. Predictions stay the same,
whatever the constraint; what changes is how far a step moves them.

Columns whose likelihood cannot be scaled, and those of models without heads to rescale, are weighed by one over their
smoothness instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from evenly.likelihoods import Likelihood, constrain
from evenly.models.balancing import Memory, Rule, Signals
from evenly.models.layout import Layout
from evenly.models.wiring import Wiring

EVERY = 10
"""Steps between measurements, each of which moves the scales."""
MOST_ROWS = 128
"""Rows of a batch that are measured."""
DECAY = 0.9
"""Of the moving average, by measurement."""
LEVER = 0.1
"""Where log(smoothness) changes less than this with log(scale), as at the floor of a gamma, a scale stays."""
FARTHEST = 10.0
"""Scales stay within e^10 of where they started."""
MOST_WEIGHT = 4.0
"""Weights lie within this factor of 1."""


@dataclass(frozen=True)
class Online(Rule, name="online"):
    """Online Lipschitz standardization; weights by current smoothness where there is no scale to move."""

    rate: float = 0.3
    """The share of the way to the target that a scale, in logs, goes at once."""
    candidates: ClassVar = (0.1, 0.3, 1.0)
    limits: ClassVar = (0.0, 1.0)
    moves_scales: ClassVar = True

    def start_in(self, layout: Layout, dtype: Any) -> Memory:
        groups = [(n, len(one.natural_bounds)) for one, n in layout.sizes.groups]
        return {
            "step": np.zeros((), np.int32),
            "fisher": tuple(np.zeros((n, k, k), dtype) for n, k in groups),
            "classes": np.zeros(layout.sizes.heads, dtype),
            "seen": np.zeros(layout.n_slots, bool),
            "log_scale": tuple(np.zeros(n, dtype) for n, _ in groups),
        }

    def observe(self, memory: Memory, wiring: Wiring, raw: jax.Array, cells: jax.Array) -> Memory:
        def measure(memory: Memory) -> Memory:
            return _measure(memory, wiring, raw[:MOST_ROWS], cells[:MOST_ROWS])

        due = memory["step"] % EVERY == 0
        measured = {name: memory[name] for name in ("fisher", "classes", "seen")}
        found: Memory = jax.lax.cond(due, measure, lambda one: one, measured)
        return memory | found | {"step": memory["step"] + 1}

    def smoothness(self, memory: Memory, wiring: Wiring) -> jax.Array:
        """Return the moving average of each column's smoothness, under the scales so far."""
        parts = [
            jnp.exp(_log_smoothness(family, fisher, log_scale))
            for (family, _), fisher, log_scale in zip(wiring.groups, memory["fisher"], memory["log_scale"], strict=True)
        ]
        by_slot: jax.Array = jnp.where(wiring.used & memory["seen"], jnp.concatenate([*parts, memory["classes"]]), 0.0)
        return jnp.asarray(by_slot @ wiring.membership.astype(by_slot.dtype))

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        smoothness = signals.smoothness
        usable = signals.active & jnp.isfinite(smoothness) & (smoothness > 0.0)
        median = jnp.nanmedian(jnp.where(usable, smoothness, jnp.nan))
        weights = jnp.clip(median / jnp.where(usable, smoothness, 1.0), 1.0 / MOST_WEIGHT, MOST_WEIGHT)
        return jnp.where(usable & usable.any(), weights, 1.0), memory

    def move(self, memory: Memory, wiring: Wiring, target: jax.Array) -> tuple[Memory, jax.Array]:
        """Return the memory with the scales moved, and what each raw parameter is multiplied by under them."""
        due = memory["step"] % EVERY == 1  # measured in this step
        count = wiring.membership.sum(0)  # a column's features share its target
        targets, at, moved, factors = target / jnp.maximum(count, 1.0)[wiring.owners], 0, [], []
        for (family, n), fisher, log_scale in zip(wiring.groups, memory["fisher"], memory["log_scale"], strict=True):
            usable = wiring.used[at : at + n] & memory["seen"][at : at + n] & due
            step = self._step(family, fisher, log_scale, jnp.log(targets[at : at + n]))
            usable &= jnp.isfinite(step) & family.scalable
            moved.append(jnp.clip(log_scale + jnp.where(usable, step, 0.0), -FARTHEST, FARTHEST))
            factors.append(jnp.exp(_log_factors(family, moved[-1])).ravel())
            at += n
        n_rest = len(wiring.draws) - sum(map(len, factors))
        return memory | {"log_scale": tuple(moved)}, jnp.concatenate([*factors, jnp.ones(n_rest, targets.dtype)])

    def _step(self, family: Likelihood, fisher: jax.Array, log_scale: jax.Array, log_target: jax.Array) -> jax.Array:
        """Return a damped Newton step of log-scales towards the target."""
        now, slope = jax.jvp(lambda at: _log_smoothness(family, fisher, at), (log_scale,), (jnp.ones_like(log_scale),))
        away = (log_target - now) / jnp.where(jnp.abs(slope) > LEVER, slope, jnp.inf)
        return self.rate * jnp.clip(away, -1.0, 1.0)


def _measure(memory: Memory, wiring: Wiring, raw: jax.Array, cells: jax.Array) -> Memory:
    """Return the moving averages of the absolute Fisher matrices, with those of some rows."""
    counts = cells.sum(0)
    share = cells / jnp.maximum(counts, 1)
    found, at, into = [], 0, 0
    for family, n in wiring.groups:
        k = len(family.natural_bounds)
        own = raw[..., into : into + n * k].reshape((*raw.shape[:-1], n, k))
        fisher = jnp.abs(family.fisher(constrain(family, own)))
        found.append(
            (jnp.where(cells[:, at : at + n, None, None], fisher, 0.0) * share[:, at : at + n, None, None]).sum(0)
        )
        at, into = at + n, into + n * k
    # The absolute entries of diag(p) - p p' sum to 2 (1 - sum of p^2).
    unequal = 2.0 * (1.0 - wiring.class_concentration(raw[..., into:]))
    classes = (unequal * share[:, at:]).sum(0)
    some = (counts > 0) & _all_finite(found, classes)
    seen = memory["seen"]

    def average(old: jax.Array, new: jax.Array, own: slice) -> jax.Array:
        extra = (slice(None), *[None] * (new.ndim - 1))
        moved = jnp.where(seen[own][extra], DECAY * old + (1.0 - DECAY) * new, new)
        return jnp.where(some[own][extra], moved, old)

    starts = np.cumsum([0, *(n for _, n in wiring.groups)])
    averages = tuple(
        average(old, new, slice(a, a + len(new)))
        for old, new, a in zip(memory["fisher"], found, starts[:-1].tolist(), strict=True)
    )
    return {
        "fisher": averages,
        "classes": average(memory["classes"], classes, slice(int(starts[-1]), None)),
        "seen": seen | some,
    }


def _all_finite(groups: list[jax.Array], classes: jax.Array) -> jax.Array:
    return jnp.concatenate([*(jnp.isfinite(one).all((1, 2)) for one in groups), jnp.isfinite(classes)])


def _log_factors(family: Likelihood, log_scale: jax.Array) -> jax.Array:
    if not family.scalable:
        return jnp.zeros((*log_scale.shape, len(family.natural_bounds)), log_scale.dtype)
    return jnp.asarray(family.log_factors(log_scale))


def _log_smoothness(family: Likelihood, fisher: jax.Array, log_scale: jax.Array) -> jax.Array:
    factors = _log_factors(family, log_scale)
    entries = jnp.exp(factors[..., :, None] + factors[..., None, :]) * fisher
    return jnp.log(jnp.maximum(entries.sum((-2, -1)), np.finfo(np.float32).tiny))
