"""Black-box variational inference: the ELBO by column, one step, and the training loop that all models share.

A model never sees a dataframe, a scale or a method's name. It gets inputs that are the same under every method, the
scaled features to explain, a mask, and a wiring: the likelihood of each feature and the column it belongs to. What is
compiled knows sizes alone: the wiring and the numbers of rows and steps are passed as arrays, so that another table can
use the same program.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import repeat
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from evenly._support import EvenlyWarning
from evenly.models.base import Fitted, History, Info, Model
from evenly.models.cache import keep_compiled
from evenly.models.layout import LEAST_ROWS, MANY_ROWS, Data, Layout, size_class
from evenly.models.wiring import Wiring, wire

keep_compiled()


# --- models -----------------------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """The ELBO's parts: log-likelihood by row and column, KL of the rows' variables, KL of the shared ones."""

    log_likelihood: jax.Array
    local_kl: jax.Array
    shared_kl: jax.Array


class Start(NamedTuple):
    """Where a training starts: trees (dicts in dicts) of NumPy arrays."""

    shared: dict[str, Any]
    """What all rows have in common, and is learned."""
    local: dict[str, Any]
    """What each row has: arrays by row."""
    fixed: dict[str, Any]
    """What is known from the data, and stays as it is."""


class Trained(Model):
    """A model that is learned by gradients: what it has to say; the loop does the rest."""

    second_decay: ClassVar[float] = 0.999
    """Of Adam's second moment."""
    weight_decay: ClassVar[float] = 0.0
    """Of the arrays named `weight`, by step and learning rate."""
    optimization: ClassVar[int] = 3
    """How hard the compiler tries (XLA's level of optimization): less where that takes longer than it ever saves."""

    def schedule(self, progress: Any) -> Any:
        """Return what the learning rate is multiplied by, after a share of all steps."""
        return 1.0

    @abstractmethod
    def init(self, rng: np.random.Generator, layout: Layout, data: Data) -> Start:
        """Return the first variational parameters, from the observed cells of a table."""

    @abstractmethod
    def terms(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Terms:
        """Return the ELBO's parts for some rows, by one reparametrized draw."""

    @abstractmethod
    def predict(self, shared: Any, local: Any, key: jax.Array | None, wiring: Wiring, data: Data) -> jax.Array:
        """Return raw parameters of every row: at the posterior means, or at a draw if a key is given."""

    @abstractmethod
    def infer_local(self, shared: Any, key: jax.Array, wiring: Wiring, data: Data) -> Any:
        """Return the variational parameters of new rows, with the shared ones fixed."""

    def fit(self, layout: Layout, data: Data, seed: int, learning_rate: float, **settings: Any) -> Fitted:
        """Train it from the start; see `fitting.fit_model`."""
        from evenly.models.fitting import fit_model

        return fit_model(self, layout, data, seed, learning_rate, **settings)

    def predict_natural(
        self,
        layout: Layout,
        shared: Mapping[str, Any],
        data: Data,
        draw: Sequence[int] | None = None,
        *,
        alike: bool = False,
    ) -> list[npt.NDArray[Any]]:
        """Return the natural parameters of every feature for rows that may be new."""
        key = np.random.SeedSequence(draw or 0).generate_state(2)
        found = _predict(self, wire(layout), shared, data, key, draw is not None, alike)
        return layout.by_feature(np.asarray(found))


class State(NamedTuple):
    """All that goes forward from step to step."""

    shared: Any
    fixed: Any
    local: Any
    shared_moments: optax.OptState
    local_moments: tuple[Any, Any]
    seed: Any
    """The first key. The order of rows goes by it and the epoch, wherever a training stops on its way."""
    key: Any
    """As numbers, so that it can be made without a program."""
    epoch: Any
    learning_rate: Any
    n_steps: Any
    """How many steps there are to be in all, for a schedule."""
    n_rows: Any
    """How many rows the table has: its arrays may have more."""
    weights: Any
    """Of each column's log-likelihood in the objective."""


def jit_by_model(function: Callable[..., Any], static_argnums: tuple[int, ...]) -> Callable[..., Any]:
    """Compile a function whose first argument is a model, with as much optimization as the model asks for."""

    @cache
    def compiled(level: int) -> Callable[..., Any]:
        options = {"xla_backend_optimization_level": level}
        return jax.jit(function, static_argnums=static_argnums, compiler_options=options)

    return lambda model, *rest: compiled(model.optimization)(model, *rest)


# For what runs a few times: compiling takes longer than running, and without optimizations half as long.
jit_once = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@partial(jit_by_model, static_argnums=(0, 5, 6))
def _predict(
    model: Trained, wiring: Wiring, shared: Any, data: Data, numbers: Any, draw: bool, alike: bool
) -> jax.Array:
    key = jax.random.wrap_key_data(numbers)
    local = model.infer_local(shared, key, wiring, data)

    def raw(local: Any, data: Data) -> jax.Array:
        return model.predict(shared, local, key if draw else None, wiring, data)

    if alike:
        rows = jax.tree.map(lambda part: part[:, None], (local, data))
        return wiring.natural(jax.vmap(raw)(*rows)[:, 0])
    return wiring.natural(raw(local, data))


def start(
    model: Trained,
    layout: Layout,
    data: Data,
    seed: int,
    learning_rate: float,
    n_steps: float = 1.0,
    weights: Any = 1.0,
    n_rows: int | None = None,
) -> State:
    """Return the first state, of NumPy arrays.

    Parameters
    ----------
    n_rows : int, optional
        Of the arrays that training will see; by default as many as `data` have.
    """
    shared, local, fixed = model.init(np.random.default_rng(seed), layout, data)
    dtype = data.targets.dtype
    lacking = max(0, (n_rows or 0) - len(data.mask))
    local = jax.tree.map(lambda part: np.pad(part, [(0, lacking), *[(0, 0)] * (part.ndim - 1)]), local)
    zeros = partial(jax.tree.map, np.zeros_like)
    moments = optax.ScaleByAdamState(np.zeros((), np.int32), zeros(shared), zeros(shared))
    weighed = np.ones(layout.sizes.columns, dtype)
    weighed[: layout.n_columns] = weights
    key = np.random.SeedSequence(seed).generate_state(2)
    return State(
        shared,
        fixed,
        local,
        moments,
        (zeros(local), zeros(local)),
        key,
        key,
        np.zeros((), np.int32),
        np.asarray(learning_rate, dtype),
        np.asarray(n_steps, dtype),
        np.int32(len(data.mask)),
        weighed,
    )


def objective(
    model: Trained,
    wiring: Wiring,
    shared: Any,
    local: Any,
    key: jax.Array,
    data: Data,
    state: State,
    valid: jax.Array,
) -> tuple[jax.Array, Terms]:
    """Return minus the ELBO per row, as estimated from the valid ones of some rows, and its parts."""
    terms = model.terms({**shared, **state.fixed}, local, key, wiring, data, state.epoch)
    by_row = (state.weights * terms.log_likelihood).sum(-1) - terms.local_kl
    elbo = jnp.where(valid, by_row, 0.0).sum() / valid.sum() - terms.shared_kl / state.n_rows
    return -elbo, terms


def take(tree: Any, rows: jax.Array) -> Any:
    """Return some rows of all arrays; a row beyond the last is the last."""
    return jax.tree.map(lambda part: part.at[rows].get(mode="clip"), tree)


def step(model: Trained, wiring: Wiring, data: Data, state: State, rows: jax.Array) -> tuple[State, Info]:
    """Take one gradient step on some rows; those beyond the last do not count."""
    draw = jax.random.wrap_key_data(state.key)
    valid = rows < data.mask.shape[0]
    local, batch = take((state.local, data), rows)
    (value, terms), (to_shared, to_local) = jax.value_and_grad(objective, argnums=(2, 3), has_aux=True)(
        model, wiring, state.shared, local, draw, batch, state, valid
    )
    adam = optax.scale_by_adam(b2=model.second_decay)
    rate = state.learning_rate * model.schedule(state.shared_moments.count / state.n_steps)
    updates, shared_moments = adam.update(to_shared, state.shared_moments)
    if model.weight_decay:
        updates = jax.tree_util.tree_map_with_path(
            lambda path, u, p: u + model.weight_decay * p if path[-1].key == "weight" else u, updates, state.shared
        )
    state = state._replace(
        shared=jax.tree.map(lambda p, u: p - rate * u, state.shared, updates),
        shared_moments=shared_moments,
        key=state.key + np.array([0, 1], np.uint32),  # a counter will do: every key has draws of its own
    )
    if jax.tree.leaves(local):
        state = _move_rows(adam, state, local, to_local, rows, rate * jnp.sqrt(state.n_rows / valid.sum()))
    seen = jnp.where(valid[:, None], terms.log_likelihood, 0.0).sum(0) / valid.sum()
    return state, Info(-value, seen)


def _move_rows(adam: Any, state: State, local: Any, gradient: Any, rows: jax.Array, rate: jax.Array) -> State:
    """Move the variables of some rows.

    They move only when the row is seen, once an epoch: their moments are as old as the epochs. Adam on all rows at
    every step would go on moving them by their momentum; with a gradient every n steps, v settles at g^2 / n and the
    momentum adds up to g, so that they would move sqrt(n) rates an epoch. So they do here, at once.
    """
    mu, nu = take(state.local_moments, rows)
    updates, moments = adam.update(gradient, optax.ScaleByAdamState(state.epoch, mu, nu))
    local = jax.tree.map(lambda p, u: p - rate * u, local, updates)
    put = partial(jax.tree.map, lambda whole, part: whole.at[rows].set(part, mode="drop"))
    return state._replace(
        local=put(state.local, local),
        local_moments=(put(state.local_moments[0], moments.mu), put(state.local_moments[1], moments.nu)),
    )


def run_epoch(
    model: Trained, wiring: Wiring, data: Data, state: State, order: jax.Array, n_steps: Any
) -> tuple[State, Info]:
    """Take as many steps as there are, each on the rows that `order` names."""

    def one(i: Any, carry: tuple[State, Info]) -> tuple[State, Info]:
        state, total = carry
        state, info = step(model, wiring, data, state, order[i])
        return state, jax.tree.map(jnp.add, total, info)

    dtype = data.targets.dtype
    nothing = Info(jnp.zeros((), dtype), jnp.zeros(data.mask.shape[-1], dtype))
    state, total = jax.lax.fori_loop(0, n_steps, one, (state, nothing))
    state = state._replace(epoch=state.epoch + 1)
    info = jax.tree.map(lambda part: part / n_steps, total)
    return state, info


_compiled = jit_by_model(run_epoch, (0,))


@partial(jax.jit, static_argnums=0)
def _compiled_together(
    model: Trained, wiring: Wiring, data: Data, state: State, order: jax.Array, n_steps: Any
) -> tuple[State, Info]:
    return jax.vmap(partial(run_epoch, model, wiring, n_steps=n_steps))(data, state, order=order)


# --- the loop ---------------------------------------------------------------------------------------------------------


def padded_rows(n_rows: int, batch_size: int) -> int:
    """Return how many rows the arrays of a table have: those that no step names cost memory alone.

    Examples
    --------
    >>> [padded_rows(n, 128) for n in (10, 100, 303, 20_000, 500_000)]
    [64, 112, 512, 32768, 524288]
    """
    return size_class(n_rows, LEAST_ROWS, 1 if batch_size <= n_rows <= MANY_ROWS else 4)


class Batches(NamedTuple):
    """How the rows of a table are cut into steps."""

    n_rows: int
    n_padded: int
    """Rows of the arrays."""
    batch_size: int
    """Rows of a step, at most."""

    @property
    def size(self) -> int:
        """Rows of a step, those that do not count included."""
        return min(self.batch_size, self.n_padded)

    @property
    def n_steps(self) -> int:
        """Steps of an epoch."""
        return -(-self.n_rows // self.size)

    @property
    def first(self) -> npt.NDArray[np.int32]:
        """The first rows, as many as a step takes."""
        rows = np.arange(self.size, dtype=np.int32)
        return np.where(rows < self.n_rows, rows, self.n_padded).astype(np.int32)

    def order(self, key: npt.NDArray[np.uint32], epoch: int) -> npt.NDArray[np.int32]:
        """Return the rows of each step of an epoch, every row once; the last step is filled up with the first rows.

        Where there are fewer rows than a step takes, the rest is beyond the last row, and does not count.
        """
        rows = np.random.default_rng((*key.tolist(), epoch)).permutation(self.n_rows)
        found = np.full(-(-self.n_padded // self.size) * self.size, self.n_padded, np.int32)
        n = self.n_steps * self.size if self.n_rows >= self.size else self.n_rows
        found[:n] = np.resize(rows, n)
        return found.reshape(-1, self.size)


def _finite(state: State, info: Info, n_runs: int) -> npt.NDArray[np.bool_]:
    """Say which columns of which run are still finite: runs x columns; none if a run's loss or a parameter is not."""
    leaves = [info.elbo, *jax.tree.leaves((state.shared, state.local))]
    whole = np.all([np.isfinite(leaf).reshape(n_runs, -1).all(1) for leaf in leaves], axis=0)
    return np.asarray(np.isfinite(info.log_likelihood).reshape(n_runs, -1) & whole[:, None])


MOST_HALVINGS = 20


def train(
    model: Trained,
    layout: Layout,
    data: Data | Iterator[Data],
    state: State,
    *,
    epochs: int,
    batch_size: int = 1024,
    names: tuple[str, ...] | None = None,
    callback: Callable[[int, Info], bool | None] | None = None,
) -> tuple[State, History]:
    """Train for some epochs; several runs at once if data and state have a leading axis of runs.

    Data that come part by part, all of one size, are visited one part an epoch; see `fit_model`.

    If the loss stops being finite, training goes back to the last finite state with half the learning rate, and warns
    once with the columns concerned. Ctrl-C (with a warning), or a callback that
    returns True, ends it with the state reached so far.

    Parameters
    ----------
    names : tuple of str, optional
        The columns' names, for the warning.
    callback : function of (epoch, info), optional
        Called after each epoch.
    """
    together = isinstance(data, Data) and data.targets.ndim == 3
    run = _compiled_together if together else _compiled
    wiring, n = wire(layout), layout.n_columns
    n_rows = int(np.asarray(state.n_rows).ravel()[0])
    batches = Batches(n_rows, data.mask.shape[-2] if isinstance(data, Data) else n_rows, batch_size)
    seeds = np.asarray(state.seed).reshape(-1, 2)
    parts, unit = (repeat(data), "epochs") if isinstance(data, Data) else (data, "parts")
    infos: list[Info] = []
    first = int(np.asarray(state.epoch).ravel()[0])
    halvings, concerned, ended, interrupted = 0, np.zeros(n, bool), "", False
    try:
        for epoch in range(epochs):
            orders = [batches.order(seed, first + epoch) for seed in seeds]
            order = np.stack(orders) if together else orders[0]
            part = next(parts)
            while True:
                tried, info = run(model, wiring, part, state, order, np.int32(batches.n_steps))
                fine = _finite(tried, info, len(seeds))[:, :n]
                if fine.all() or halvings == MOST_HALVINGS:
                    break
                halvings += 1
                concerned |= ~fine.all(0)
                rate = np.asarray(state.learning_rate)
                kept = fine.all(1).reshape(rate.shape)
                state = state._replace(learning_rate=np.where(kept, rate, 0.5 * rate).astype(rate.dtype))
            if not fine.all():
                ended = f"; training ended after {epoch} of {epochs} {unit}: lower the learning rate"
                break
            state = tried
            infos.append(Info(np.asarray(info.elbo), np.asarray(info.log_likelihood)[..., :n]))
            if callback is not None and callback(epoch, infos[-1]):
                break
    except KeyboardInterrupt:
        interrupted = True
        warnings.warn(
            f"interrupted: training ended after {len(infos)} of {epochs} {unit}; what was learned so far is used",
            EvenlyWarning,
            stacklevel=2,
        )
    if halvings:
        shown = names or tuple(str(j) for j in range(n))
        warnings.warn(
            f"the loss stopped being finite ({halvings} times, columns "
            f"{[shown[j] for j in np.flatnonzero(concerned)]}): went back to the last finite state and halved the "
            f"learning rate each time{ended}",
            EvenlyWarning,
            stacklevel=2,
        )
    if not infos:
        return state, History(np.zeros(0), np.zeros((0, n)), interrupted)
    elbo, gained = (np.stack(parts) for parts in zip(*infos, strict=True))
    return state, History(elbo, gained, interrupted)


@partial(jit_once, static_argnums=0)
def column_gradients(model: Trained, wiring: Wiring, data: Data, state: State, rows: jax.Array) -> jax.Array:
    """Return the norm of each column's gradient in the shared parameters, on some rows: who is listened to."""
    return _norms(_jacobian(model, wiring, data, state, rows, jax.random.wrap_key_data(state.key)))


@partial(jax.jit, static_argnums=0)
def watch(model: Trained, wiring: Wiring, data: Data, state: State, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return each column's gradient norm, and the norm of its change by one step on the same rows and draws."""
    key = jax.random.wrap_key_data(state.key)
    before = _jacobian(model, wiring, data, state, rows, key)
    after = _jacobian(model, wiring, data, step(model, wiring, data, state, rows)[0], rows, key)
    return _norms(before), _norms(jax.tree.map(jnp.subtract, after, before))


def _jacobian(model: Trained, wiring: Wiring, data: Data, state: State, rows: jax.Array, key: jax.Array) -> Any:
    """Return the gradient of each column's log-likelihood in the shared parameters: a tree with a leading axis."""
    local, batch = take((state.local, data), rows)
    valid = (rows < data.mask.shape[0])[:, None]

    def by_column(shared: Any) -> jax.Array:
        terms = model.terms({**shared, **state.fixed}, local, key, wiring, batch, state.epoch)
        return jnp.asarray(jnp.where(valid, terms.log_likelihood, 0.0).sum(0) / valid.sum())

    return jax.jacrev(by_column)(state.shared)


def _norms(jacobian: Any) -> jax.Array:
    squares = [(leaf.reshape(leaf.shape[0], -1) ** 2).sum(-1) for leaf in jax.tree.leaves(jacobian)]
    return jnp.sqrt(sum(squares[1:], squares[0]))


# --- what several models share ----------------------------------------------------------------------------------------


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
