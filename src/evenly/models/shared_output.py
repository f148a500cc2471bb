"""The output that all columns share, where balancing rules weigh the columns' gradients.

A model with such an output computes it from its inputs (the trunk), and from it, by one linear map, the raw parameters
of every cell (the heads). Each raw parameter belongs to one column, so that one backward pass through the heads gives
the gradient of every column's log-likelihood, and one through the trunk passes on what a rule makes of them.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning
from evenly.models.balancing import Memory, Rule, Signals, balance
from evenly.models.bbvi import Momentum, State, Terms, Trained
from evenly.models.layout import Data, Layout
from evenly.models.online import Online
from evenly.models.wiring import Wiring


class Shared(NamedTuple):
    """What the trunk gives for a batch of rows."""

    output: jax.Array
    """What all columns are predicted from: rows x units."""
    scored: jax.Array
    """The cells whose log-likelihood counts."""
    weight: float
    """The factor of that log-likelihood."""
    local_kl: jax.Array
    shared_kl: jax.Array
    units: Any = None
    """What `SharesOutput.link` takes from the batch."""


class Head(NamedTuple):
    """The linear map from the shared output to the raw parameters."""

    weight: jax.Array
    bias: jax.Array
    varies: Any = None
    """Which raw parameters vary by row, by their weight alone; the others are their bias. None: all, by both."""

    def __call__(self, output: jax.Array) -> jax.Array:
        """Return the raw parameters."""
        if self.varies is None:
            return output @ self.weight + self.bias
        return jnp.where(self.varies, output @ self.weight, self.bias)

    @property
    def slope(self) -> jax.Array:
        """The derivative of the raw parameters in the output."""
        return self.weight if self.varies is None else jnp.where(self.varies, self.weight, 0.0)


class SharesOutput(Trained):
    """A model whose raw parameters are linear in an output that all columns share; its spec has `shared_output`."""

    @abstractmethod
    def share(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Shared:
        """Return the shared output of a batch of rows, from a reparametrized draw, and other terms of the ELBO."""

    @abstractmethod
    def head(self, shared: Any, key: jax.Array, wiring: Wiring) -> Head:
        """Return the map from the shared output to the raw parameters, from the same draw."""

    def link(self, raw: jax.Array, wiring: Wiring, units: Any) -> jax.Array:
        """Return the raw parameters of the features from what the heads give; by default, the same."""
        return raw

    def rescale(self, shared: Any, factors: jax.Array) -> Any:
        """Return the shared parameters with the heads of each raw parameter divided by a factor, element by element.

        None if the model's scales do not move.
        """
        return None

    @final
    def terms(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Terms:
        found = self.share(shared, local, key, wiring, data, epoch)
        raw = self.link(self.head(shared, key, wiring)(found.output), wiring, found.units)
        seen = found.weight * wiring.log_likelihood(raw, data.targets, found.scored)
        return Terms(seen, found.local_kl, found.shared_kl)


class Gradients(NamedTuple):
    """What a balanced step goes by."""

    value: jax.Array
    """The negative ELBO per row."""
    terms: Terms
    to_variables: tuple[Any, Any]
    """The gradient of the shared and of the local parameters."""
    balancing: Balancing


class _Columns(NamedTuple):
    """The columns' log-likelihoods in a batch."""

    log_likelihood: jax.Array
    """By row, times the weight that it has in the objective; 0 where it is not finite."""
    losses: jax.Array
    """The mean negative log-likelihood of each column's cells."""
    fine: jax.Array
    """Which columns are finite, and so are their gradients."""
    active: jax.Array
    """Which of them have an observed cell."""
    by_raw: jax.Array
    """The gradient of the active ones in what the heads gave, which each belongs to one column."""
    raw: jax.Array
    """The raw parameters."""
    cells: jax.Array
    """Which cells of each feature slot count."""


@dataclass(frozen=True)
class Balancing:
    """A rule at work: what it remembers from step to step, and which raw parameters belong to which column."""

    rule: Rule
    memory: Memory
    owners: Any
    """The column of each raw parameter; one beyond the last for those that belong to none."""
    places: Any
    """The raw parameters of each column, filled up with one beyond the last: columns x most."""
    target: Any
    """The smoothness that scales which move aim at."""
    multipliers: Any
    """What each raw parameter is multiplied by, under a rule that moves scales; else None."""
    left_out: Any
    """In how many steps each column was left out, because it was not finite."""

    @classmethod
    def start(cls, rule: Rule, layout: Layout, dtype: Any, target: float = 1.0) -> Balancing:
        """Return the rule before the first step."""
        n_columns = layout.sizes.columns
        owners = np.full(layout.n_raw, n_columns, np.int32)
        for column, (_, at) in zip(layout.columns, layout.places, strict=True):
            owners[at] = column
        own = [np.flatnonzero(owners == j) for j in range(n_columns)]
        most = -(-max(map(len, own)) // 4) * 4
        places = np.full((n_columns, most), layout.n_raw, np.int32)
        for row, some in zip(places, own, strict=True):
            row[: len(some)] = some
        memory, left_out = rule.start_in(layout, dtype), np.zeros(n_columns, np.int32)
        multipliers = np.ones(layout.n_raw, dtype) if rule.moves_scales else None
        return cls(rule, memory, owners, places, np.asarray(target, dtype), multipliers, left_out)

    def warn(self, layout: Layout) -> None:
        """Warn of columns that were left out of steps."""
        left_out = np.asarray(self.left_out)[: layout.n_columns]
        if left_out.any():
            names = layout.names or [str(j) for j in range(layout.n_columns)]
            shown = ", ".join(f"{names[j]!r} of {left_out[j]}" for j in np.flatnonzero(left_out))
            warnings.warn(
                f"balance={self.rule.name!r}: columns whose log-likelihood or gradient was not finite were left out of "
                f"steps: {shown}; the others went on",
                EvenlyWarning,
                stacklevel=3,
            )

    def gradients(
        self,
        model: SharesOutput,
        wiring: Wiring,
        variables: tuple[Any, Any],
        key: jax.Array,
        data: Data,
        state: State,
        valid: jax.Array,
    ) -> Gradients:
        """Return the gradient of the negative ELBO, with that of each column weighed by the rule.

        Columns whose log-likelihood or gradient is not finite are left out. Each head gets its own column's gradient,
        weighted if the rule weighs losses.
        """

        def trunk(variables: tuple[Any, Any]) -> tuple[Any, Any]:
            shared, local = variables
            found = model.share({**shared, **state.fixed}, local, key, wiring, data, state.epoch)
            return (found.output, found.local_kl, found.shared_kl), found

        def apply(shared: Any, output: jax.Array) -> jax.Array:
            return model.head({**shared, **state.fixed}, key, wiring)(output)

        (output, local_kl, shared_kl), into_trunk, place = jax.vjp(trunk, variables, has_aux=True)
        given, into_head = jax.vjp(apply, variables[0], output)
        place = place._replace(scored=place.scored & valid[:, None], weight=place.weight / valid.sum())

        def explain(given: jax.Array) -> tuple[jax.Array, jax.Array]:
            raw = given if self.multipliers is None else given * self.multipliers
            raw = model.link(raw, wiring, place.units)
            return wiring.cell_log_likelihood(raw, data.targets, place.scored), raw

        found = self._by_columns(wiring, place, state, jax.vjp(explain, given, has_aux=True))
        slope = model.head({**variables[0], **state.fixed}, key, wiring).slope
        weights, memory = self._weigh(wiring, found, slope, key)
        weighted = found.by_raw * self._by_raw(weights)
        to_head = into_head(weighted if self.rule.weighs_heads else found.by_raw)[0]
        share, n_rows = valid.astype(given.dtype) / valid.sum(), jnp.asarray(state.n_rows, given.dtype)
        ((to_shared, to_local),) = into_trunk((into_head(weighted)[1], -share, -1.0 / n_rows))
        seen = found.log_likelihood * valid.sum()
        elbo = ((state.weights * seen).sum(-1) - jnp.where(valid, local_kl, 0.0)).sum() / valid.sum()
        return Gradients(
            shared_kl / n_rows - elbo,
            Terms(seen, local_kl, shared_kl),
            jax.tree.map(jnp.negative, (jax.tree.map(jnp.add, to_shared, to_head), to_local)),
            replace(self, memory=memory, left_out=self.left_out + ~found.fine),
        )

    def _by_columns(self, wiring: Wiring, place: Shared, state: State, explained: Any) -> _Columns:
        """Return the log-likelihood of each column times a weight, and its gradient in what the heads gave."""
        (cells, into_raw, raw), weight, mask = explained, place.weight, place.scored
        of_columns = wiring.membership.astype(cells.dtype)
        (by_raw,) = into_raw(jnp.broadcast_to(weight * (of_columns @ state.weights), cells.shape))
        # An infinite cell times the 0 of another column's membership would be not a number.
        lost = ~jnp.isfinite(cells)
        fine = (lost.any(0) @ of_columns == 0.0) & self._by_column(jnp.isfinite(by_raw).all(0))
        seen = jnp.where(fine, jnp.where(lost, 0.0, cells) @ of_columns, 0.0)
        n_cells = mask.sum(0)
        active = fine & (n_cells > 0)
        by_raw = jnp.where(self._by_raw(active), by_raw, 0.0)
        losses = -seen.sum(0) / jnp.maximum(n_cells, 1)
        seen_cells = mask[:, wiring.owners] & wiring.used
        return _Columns(weight * seen, losses, fine, active, by_raw, raw, seen_cells)

    def _weigh(self, wiring: Wiring, found: _Columns, slope: jax.Array, key: jax.Array) -> tuple[jax.Array, Memory]:
        """Return the columns' weights and the rule's memory."""
        n, memory = len(found.losses), self.memory
        gram = jnp.zeros((n, n), slope.dtype)
        if self.rule.reads_gradients:
            gram = self._gram(found.by_raw, slope)
        numbers = jax.random.key_data(jax.random.fold_in(key, 1))
        signals = Signals(found.losses, gram, found.active, numbers)
        if isinstance(self.rule, Online):
            memory = self.rule.observe(memory, wiring, found.raw, found.cells)
            signals = signals._replace(smoothness=self.rule.smoothness(memory, wiring))
        return balance(self.rule, memory, signals)

    def settle(self, model: SharesOutput, wiring: Wiring, state: State) -> State:
        """Return the state after a step with the scales moved, if the rule moves them: predictions stay as they are."""
        if not isinstance(self.rule, Online) or model.rescale(state.shared, self.multipliers) is None:
            return state
        memory, multipliers = self.rule.move(self.memory, wiring, self.target)
        growth = multipliers / self.multipliers
        shared, moments = jax.lax.cond(
            (growth != 1.0).any(),
            lambda one: _rescale(model, one, growth),
            lambda one: one,
            (state.shared, state.shared_moments),
        )
        balancing = replace(self, memory=memory, multipliers=multipliers)
        return state._replace(shared=shared, shared_moments=moments, balancing=balancing)

    def folded(self, model: SharesOutput, shared: Any) -> Any:
        """Return the shared parameters of the same model without multipliers."""
        if self.multipliers is None:
            return shared
        found = model.rescale(jax.tree.map(jnp.asarray, shared), 1.0 / jnp.asarray(self.multipliers))
        return shared if found is None else found

    def log_scales(self, layout: Layout) -> npt.NDArray[np.float64] | None:
        """Return by how much the log of each feature's scale has moved; None if the rule moves none."""
        if self.multipliers is None:
            return None
        by_slot = np.concatenate([np.asarray(one, np.float64) for one in self.memory["log_scale"]])
        by_slot = np.pad(by_slot, (0, layout.n_slots - len(by_slot)))
        return by_slot[[slot for slot, _ in layout.places]]

    def _gram(self, by_raw: jax.Array, slope: jax.Array) -> jax.Array:
        """Return the inner products of the columns' gradients at the shared output, over all rows of the batch."""
        of_rows = jnp.pad(by_raw, ((0, 0), (0, 1)))[:, self.places]
        of_heads = jnp.pad(slope, ((0, 0), (0, 1)))[:, self.places]
        by_column = jnp.einsum("bcr,hcr->cbh", of_rows, of_heads).reshape(len(self.places), -1)
        return by_column @ by_column.T

    def _by_raw(self, of_columns: jax.Array) -> jax.Array:
        """Return a number of each raw parameter from that of its column; 0 for those that belong to none."""
        return jnp.pad(of_columns, (0, 1))[self.owners]

    def _by_column(self, of_raw: jax.Array) -> jax.Array:
        """Return whether something holds of all raw parameters of a column."""
        return jnp.pad(of_raw, (0, 1), constant_values=True)[self.places].all(1)


def _rescale(model: SharesOutput, given: tuple[Any, Any], growth: jax.Array) -> tuple[Any, Any]:
    """Return shared parameters divided by how much their multipliers grew, and the moments of their gradients."""
    shared, moments = given
    # The map works element by element, so that its derivative along 1 is that of each element.
    shared, slopes = jax.jvp(lambda one: model.rescale(one, growth), (shared,), (jax.tree.map(jnp.ones_like, shared),))

    def divided(tree: Any, power: int) -> Any:
        return jax.tree.map(lambda one, slope: one / slope**power, tree, slopes)

    if isinstance(moments, Momentum):
        return shared, moments._replace(velocity=divided(moments.velocity, 1))
    return shared, moments._replace(mu=divided(moments.mu, 1), nu=divided(moments.nu, 2))


jax.tree_util.register_dataclass(
    Balancing, data_fields=[one.name for one in fields(Balancing) if one.name != "rule"], meta_fields=["rule"]
)
