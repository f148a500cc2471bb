"""Black-box variational inference: the ELBO by column, one step, and the training loop that all models share.

A model never sees a dataframe, a scale or a method's name. It gets inputs that are the same under every method, the
scaled features to explain, a mask, and a layout: the likelihood of each feature and the column it belongs to.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import repeat
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from evenly._support import EvenlyWarning
from evenly.likelihoods import Likelihood

FLOOR = 1e-6
"""How far from a bound of 1 a constrained parameter stays: ten rounding steps of single precision."""
FLOOR_AT_ZERO = 1e-12
"""The same at a bound of 0, where single precision resolves far smaller numbers; its inverse square is still finite."""


Array = Any
"""A JAX array; where a docstring says so, a NumPy one."""


class Group(NamedTuple):
    """The features of one likelihood, computed together."""

    likelihood: Likelihood
    features: tuple[int, ...]
    start: int
    """Where their parameters start in the flat vector of raw parameters."""


@dataclass(frozen=True)
class Layout:
    """The likelihood of every feature, and the column that each belongs to.

    Raw parameters of all features form one flat vector, group after group; `natural` brings them into bounds.
    """

    likelihoods: tuple[Likelihood, ...]
    columns: tuple[int, ...]
    inputs: tuple[int, ...] = ()
    """The column of each input."""
    numbers: tuple[int, ...] = ()
    """The inputs that are numbers; the others tell classes apart."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.likelihoods)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return max(self.columns) + 1

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Features by likelihood; categorical ones also by their number of classes."""
        members: dict[tuple[str, int], list[int]] = {}
        for j, one in enumerate(self.likelihoods):
            members.setdefault((one.name, len(one.natural_bounds)), []).append(j)
        groups, start = [], 0
        for (_, size), features in members.items():
            groups.append(Group(self.likelihoods[features[0]], tuple(features), start))
            start += size * len(features)
        return tuple(groups)

    @cached_property
    def n_parameters(self) -> int:
        """Length of the flat vector of raw parameters."""
        return sum(len(one.natural_bounds) for one in self.likelihoods)

    @cached_property
    def first_features(self) -> np.ndarray:
        """The first feature of each column: its mask is the column's."""
        return np.unique(self.columns, return_index=True)[1].astype(np.int32)

    @cached_property
    def order(self) -> np.ndarray:
        """The features in the order of the groups."""
        return np.array([j for group in self.groups for j in group.features], np.int32)

    @cached_property
    def membership(self) -> np.ndarray:
        """Matrix that sums features, in the order of the groups, into columns."""
        return np.asarray(np.eye(self.n_columns, dtype=np.float32)[np.array(self.columns)[self.order]])

    def natural(self, raw: jax.Array) -> list[jax.Array]:
        """Return the natural parameters of each group, from raw ones along the last axis."""
        return [constrain(group.likelihood, self._part(raw, group)) for group in self.groups]

    def raw(self, naturals: list[Any]) -> jax.Array:
        """Return the flat vector of raw parameters that gives these natural ones."""
        parts = [
            unconstrain(group.likelihood, jnp.asarray(one)) for group, one in zip(self.groups, naturals, strict=True)
        ]
        return jnp.concatenate([part.reshape((*part.shape[:-2], -1)) for part in parts], axis=-1)

    def by_feature(self, naturals: list[Any]) -> list[Any]:
        """Return natural parameters one feature at a time, in the order of the features."""
        found: dict[int, Any] = {}
        for group, natural in zip(self.groups, naturals, strict=True):
            for place, j in enumerate(group.features):
                found[j] = natural[..., place, :]
        return [found[j] for j in range(self.n_features)]

    @staticmethod
    def _part(raw: jax.Array, group: Group) -> jax.Array:
        size = len(group.likelihood.natural_bounds)
        part = raw[..., group.start : group.start + size * len(group.features)]
        return part.reshape((*part.shape[:-1], len(group.features), size))

    def log_likelihood(self, raw: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the log-likelihood of every column of every row: observed cells only."""
        seen = self.cell_log_likelihood(raw, targets, mask)
        return seen @ self.membership.astype(seen.dtype)

    def cell_log_likelihood(self, raw: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the log-likelihood of every feature of every row, in the order of the groups: 0 if not observed."""
        cells = [
            group.likelihood.log_density(targets[..., group.features], natural)
            for group, natural in zip(self.groups, self.natural(raw), strict=True)
        ]
        return jnp.where(mask[..., self.order], jnp.concatenate(cells, axis=-1), 0.0)


def constant_raw(layout: Layout, targets: jax.Array, mask: jax.Array) -> jax.Array:
    """Return the raw parameters of a model that knows each feature alone: its maximum-likelihood ones."""
    naturals = []
    for group in layout.groups:
        seen = mask[:, group.features, None]
        statistics = jnp.where(seen, group.likelihood.statistics(targets[:, group.features]), 0.0)
        # Half a cell for each class, so that one that was not seen is rare rather than impossible.
        extra = 0.5 if group.likelihood.name == "categorical" else 0.0
        total = seen.sum(0) + extra * statistics.shape[-1]
        natural = group.likelihood.fit((statistics.sum(0) + extra) / jnp.maximum(total, 1))
        naturals.append(jnp.where(jnp.isfinite(natural).all(-1, keepdims=True), natural, 0.0))
    return layout.raw(naturals)


def _floor(bound: float) -> float:
    return FLOOR * abs(bound) if bound else FLOOR_AT_ZERO


def constrain(likelihood: Likelihood, raw: jax.Array) -> jax.Array:
    """Bring raw parameters into the likelihood's bounds by softplus."""
    if _unbounded(likelihood):
        return raw
    parts = []
    for i, (low, high) in enumerate(likelihood.natural_bounds):
        x = raw[..., i]
        if low > -np.inf:
            x = low + jax.nn.softplus(x) + _floor(low)
        elif high < np.inf:
            x = high - jax.nn.softplus(x) - _floor(high)
        parts.append(x)
    return jnp.stack(parts, axis=-1)


def unconstrain(likelihood: Likelihood, natural: jax.Array) -> jax.Array:
    """Undo `constrain`."""
    if _unbounded(likelihood):
        return natural
    parts = []
    for i, (low, high) in enumerate(likelihood.natural_bounds):
        x = natural[..., i]
        if low > -np.inf:
            x = _inverse_softplus(x - low - _floor(low))
        elif high < np.inf:
            x = _inverse_softplus(high - x - _floor(high))
        parts.append(x)
    return jnp.stack(parts, axis=-1)


def _unbounded(likelihood: Likelihood) -> bool:
    return all(bounds == (-np.inf, np.inf) for bounds in likelihood.natural_bounds)


def _inverse_softplus(y: jax.Array) -> jax.Array:
    y = jnp.maximum(y, FLOOR)
    return y + jnp.log(-jnp.expm1(-y))


class Data(NamedTuple):
    """A table as a model sees it.

    `inputs` are standardized, the same under every method, 0 where missing. `targets` are the scaled features, with any
    value inside the support where `mask` is False.
    """

    inputs: Array
    targets: Array
    mask: Array

    def rows(self, which: Any) -> Data:
        """Return some of the rows."""
        return Data(*(part[which] for part in self))


class Terms(NamedTuple):
    """The ELBO's parts: log-likelihood by row and column, KL of the rows' variables, KL of the shared ones."""

    log_likelihood: jax.Array
    local_kl: jax.Array
    shared_kl: jax.Array


class Model(ABC):
    """What a model has to say; the loop does the rest. A model is a frozen set of sizes: it holds no arrays."""

    learning_rate: ClassVar[float]
    """The paper's."""
    reads_inputs: ClassVar[bool] = False
    """Whether it looks at `Data.inputs`; otherwise there need not be any."""
    by_cell: ClassVar[bool] = False
    """Whether it predicts each cell from the others, without variables of rows: then cells are drawn one by one."""
    by_row: ClassVar[bool] = False
    """Whether it has variables of rows, which must all be in memory; otherwise a table may come part by part."""
    second_decay: ClassVar[float] = 0.999
    """Of Adam's second moment."""
    weight_decay: ClassVar[float] = 0.0
    """Of the arrays named `weight`, by step and learning rate."""
    optimization: ClassVar[int] = 3
    """How hard the compiler tries (XLA's level of optimization): less where that takes longer than it ever saves."""

    @property
    def hides(self) -> bool:
        """Whether it is trained to predict cells that are hidden from it: then held-out ones can say when to stop."""
        return self.by_cell

    def schedule(self, progress: jax.Array) -> jax.Array | float:
        """Return what the learning rate is multiplied by, after a share of all steps."""
        return 1.0

    @classmethod
    @abstractmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Model:
        """Return the model with the paper's sizes for a table, but for those that are given by name."""

    @abstractmethod
    def init(self, key: jax.Array, layout: Layout, data: Data) -> tuple[Any, Any]:
        """Return the shared variational parameters and those of each row (a tree of arrays by row)."""

    @abstractmethod
    def terms(self, shared: Any, local: Any, key: jax.Array, layout: Layout, data: Data, epoch: jax.Array) -> Terms:
        """Return the ELBO's parts for some rows, by one reparametrized draw."""

    @abstractmethod
    def predict(self, shared: Any, local: Any, key: jax.Array | None, layout: Layout, data: Data) -> jax.Array:
        """Return raw parameters of every row: at the posterior means, or at a draw if a key is given."""

    @abstractmethod
    def infer_local(self, shared: Any, key: jax.Array, layout: Layout, data: Data) -> Any:
        """Return the variational parameters of new rows, with the shared ones fixed."""


class State(NamedTuple):
    """All that goes forward from step to step."""

    shared: Any
    local: Any
    shared_moments: optax.OptState
    local_moments: tuple[Any, Any]
    key: jax.Array
    epoch: jax.Array
    learning_rate: jax.Array
    n_steps: jax.Array
    """How many steps there are to be in all, for a schedule."""
    weights: jax.Array
    """Of each column's log-likelihood in the objective."""


class Info(NamedTuple):
    """For looking at: the ELBO per row and its log-likelihood by column (per row, observed cells)."""

    elbo: jax.Array
    log_likelihood: jax.Array


# For what runs once, or a few times: compiling takes longer than running, and without optimizations half as long.
jit_once = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def jit_by_model(function: Callable[..., Any], static_argnums: tuple[int, ...]) -> Callable[..., Any]:
    """Compile a function whose first argument is a model, with as much optimization as the model asks for."""

    @cache
    def compiled(level: int) -> Callable[..., Any]:
        options = {"xla_backend_optimization_level": level}
        return jax.jit(function, static_argnums=static_argnums, compiler_options=options)

    return lambda model, *rest: compiled(model.optimization)(model, *rest)


def start(
    model: Model,
    layout: Layout,
    data: Data,
    key: jax.Array,
    learning_rate: float,
    n_steps: float = 1.0,
    weights: Any = 1.0,
) -> State:
    """Return the first state."""
    compiles = all(likelihood.compiles for likelihood in layout.likelihoods)
    return (_compiled_start if compiles else _start)(model, layout, data, key, learning_rate, n_steps, weights)


def _start(
    model: Model, layout: Layout, data: Data, key: jax.Array, learning_rate: float, n_steps: float, weights: Any
) -> State:
    first, key = jax.random.split(key)
    shared, local = model.init(first, layout, data)
    zeros = jax.tree.map(jnp.zeros_like, local)
    rate, steps = (jnp.asarray(number, data.targets.dtype) for number in (learning_rate, n_steps))
    moments = optax.scale_by_adam().init(shared)
    weighed = jnp.broadcast_to(jnp.asarray(weights, data.targets.dtype), (layout.n_columns,))
    return State(shared, local, moments, (zeros, zeros), key, jnp.zeros((), jnp.int32), rate, steps, weighed)


_compiled_start = partial(jit_once, static_argnums=(0, 1))(_start)


def objective(
    model: Model,
    layout: Layout,
    n_rows: int,
    shared: Any,
    local: Any,
    key: jax.Array,
    data: Data,
    epoch: jax.Array,
    weights: jax.Array | float = 1.0,
) -> tuple[jax.Array, Terms]:
    """Return minus the ELBO per row, as estimated from some rows and with weighted columns, and its parts."""
    terms = model.terms(shared, local, key, layout, data, epoch)
    elbo = ((weights * terms.log_likelihood).sum(-1) - terms.local_kl).mean() - terms.shared_kl / n_rows
    return -elbo, terms


def step(model: Model, layout: Layout, data: Data, state: State, rows: jax.Array) -> tuple[State, Info]:
    """Take one gradient step on some rows."""
    key, draw = jax.random.split(state.key)
    local = jax.tree.map(lambda part: part[rows], state.local)
    loss = partial(objective, model, layout, data.targets.shape[0])
    (value, terms), (to_shared, to_local) = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(
        state.shared, local, draw, data.rows(rows), state.epoch, state.weights
    )
    adam = optax.scale_by_adam(b2=model.second_decay)
    rate = state.learning_rate * model.schedule(state.shared_moments.count / state.n_steps)
    updates, shared_moments = adam.update(to_shared, state.shared_moments)
    if model.weight_decay:
        updates = jax.tree_util.tree_map_with_path(
            lambda path, u, p: u + model.weight_decay * p if path[-1].key == "weight" else u, updates, state.shared
        )
    shared = jax.tree.map(lambda p, u: p - rate * u, state.shared, updates)
    # A row's variables move only when the row is seen, once an epoch: its moments are as old as the epochs. Adam on all
    # rows at every step would go on moving them by their momentum; with a gradient every n steps, v settles at g^2 / n
    # and the momentum adds up to g, so that they would move sqrt(n) rates an epoch. So they do here, at once.
    local_rate = rate * (data.targets.shape[0] / rows.shape[0]) ** 0.5
    mu, nu = (jax.tree.map(lambda part: part[rows], moment) for moment in state.local_moments)
    updates, moments = adam.update(to_local, optax.ScaleByAdamState(state.epoch, mu, nu))
    local = jax.tree.map(lambda p, u: p - local_rate * u, local, updates)
    put = partial(jax.tree.map, lambda whole, part: whole.at[rows].set(part))
    state = state._replace(
        shared=shared,
        local=put(state.local, local),
        shared_moments=shared_moments,
        local_moments=(put(state.local_moments[0], moments.mu), put(state.local_moments[1], moments.nu)),
        key=key,
    )
    return state, Info(-value, terms.log_likelihood.mean(0))


def run_epoch(model: Model, layout: Layout, batch_size: int, data: Data, state: State) -> tuple[State, Info, jax.Array]:
    """Visit every row once, in random order; returns also which columns are still finite."""
    n_rows = data.targets.shape[0]
    size = min(batch_size, n_rows)
    n_steps = -(-n_rows // size)
    key, shuffle = jax.random.split(state.key)
    order = jax.random.permutation(shuffle, n_rows)
    # The last batch is filled up with rows of the first.
    order = jnp.concatenate([order, order[: n_steps * size - n_rows]]).reshape(n_steps, size)
    state, info = jax.lax.scan(partial(step, model, layout, data), state._replace(key=key), order)
    state = state._replace(epoch=state.epoch + 1)
    info = jax.tree.map(lambda part: part.mean(0), info)
    leaves = jax.tree.leaves((state.shared, state.local))
    fine = jnp.isfinite(info.elbo) & jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]).all()
    return state, info, jnp.isfinite(info.log_likelihood) & fine


_compiled = jit_by_model(run_epoch, (0, 1, 2))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _compiled_together(
    model: Model, layout: Layout, batch_size: int, data: Data, state: State
) -> tuple[State, Info, jax.Array]:
    return jax.vmap(partial(run_epoch, model, layout, batch_size))(data, state)


class History(NamedTuple):
    """What every epoch brought, as arrays: epoch x (runs x) ..."""

    elbo: np.ndarray
    log_likelihood: np.ndarray
    interrupted: bool = False


MOST_HALVINGS = 20


def train(
    model: Model,
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
    parts, unit = (repeat(data), "epochs") if isinstance(data, Data) else (data, "parts")
    infos: list[Info] = []
    halvings, concerned, ended, interrupted = 0, np.zeros(layout.n_columns, bool), "", False
    try:
        for epoch in range(epochs):
            part = next(parts)
            tried, info, finite = run(model, layout, batch_size, part, state)
            while not (fine := np.asarray(finite)).all() and halvings < MOST_HALVINGS:
                halvings += 1
                bad = ~fine.reshape(-1, layout.n_columns)
                concerned |= bad.any(0)
                lost = jnp.asarray(bad.any(-1) if together else bad.any())
                rate = jnp.where(lost, 0.5 * state.learning_rate, state.learning_rate)
                state = state._replace(learning_rate=rate)
                tried, info, finite = run(model, layout, batch_size, part, state)
            if not np.asarray(finite).all():
                ended = f"; training ended after {epoch} of {epochs} {unit}: lower the learning rate"
                break
            state = tried
            infos.append(info)
            if callback is not None and callback(epoch, info):
                break
    except KeyboardInterrupt:
        interrupted = True
        warnings.warn(
            f"interrupted: training ended after {len(infos)} of {epochs} {unit}; what was learned so far is used",
            EvenlyWarning,
            stacklevel=2,
        )
    if halvings:
        shown = names or tuple(str(j) for j in range(layout.n_columns))
        warnings.warn(
            f"the loss stopped being finite ({halvings} times, columns "
            f"{[shown[j] for j in np.flatnonzero(concerned)]}): went back to the last finite state and halved the "
            f"learning rate each time{ended}",
            EvenlyWarning,
            stacklevel=2,
        )
    if not infos:
        return state, History(np.zeros(0), np.zeros((0, layout.n_columns)), interrupted)
    elbo, gained = (np.stack([np.asarray(part) for part in parts]) for parts in zip(*infos, strict=True))
    return state, History(elbo, gained, interrupted)


@partial(jit_once, static_argnums=(0, 1))
def column_gradients(model: Model, layout: Layout, data: Data, state: State, rows: jax.Array) -> jax.Array:
    """Return the norm of each column's gradient in the shared parameters, on some rows: who is listened to."""
    return _norms(_jacobian(model, layout, data, state, rows, state.key))


@partial(jax.jit, static_argnums=(0, 1))
def watch(model: Model, layout: Layout, data: Data, state: State, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return each column's gradient norm, and the norm of its change by one step on the same rows and draws."""
    before = _jacobian(model, layout, data, state, rows, state.key)
    after = _jacobian(model, layout, data, step(model, layout, data, state, rows)[0], rows, state.key)
    return _norms(before), _norms(jax.tree.map(jnp.subtract, after, before))


def _jacobian(model: Model, layout: Layout, data: Data, state: State, rows: jax.Array, key: jax.Array) -> Any:
    """Return the gradient of each column's log-likelihood in the shared parameters: a tree with a leading axis."""
    local = jax.tree.map(lambda part: part[rows], state.local)

    def by_column(shared: Any) -> jax.Array:
        return model.terms(shared, local, key, layout, data.rows(rows), state.epoch).log_likelihood.mean(0)

    return jax.jacrev(by_column)(state.shared)


def _norms(jacobian: Any) -> jax.Array:
    squares = [(leaf.reshape(leaf.shape[0], -1) ** 2).sum(-1) for leaf in jax.tree.leaves(jacobian)]
    return jnp.sqrt(sum(squares[1:], squares[0]))


MOST_HIDDEN, OFTEN, SELDOM = 0.4, 0.95, 1.0
"""In masked training the share of a row's observed cells that is hidden is uniform from 0 to the first in so many rows
(a share), and from 0 to the third in the others: near to what is asked for later, and no row is strange."""


def hide_cells(key: jax.Array, layout: Layout, mask: jax.Array) -> tuple[jax.Array, jax.Array, float]:
    """Hide a random share of each row's observed cells, for masked training.

    Returns which cells stay visible (by column), which are hidden (by feature), and the weight that makes the hidden
    ones stand for all observed ones.
    """
    shares, cells = jax.random.split(key)
    observed = mask[:, layout.first_features]
    most = jnp.where(jnp.arange(len(mask)) < OFTEN * len(mask), MOST_HIDDEN, SELDOM)[:, None]
    share = most * jax.random.uniform(shares, (len(mask), 1))
    visible = observed & (jax.random.uniform(cells, observed.shape) >= share)
    hidden = (observed & ~visible)[:, np.array(layout.columns)]
    return visible, hidden, 2.0 / (OFTEN * MOST_HIDDEN + (1.0 - OFTEN) * SELDOM)


def normal_kl(mean: jax.Array, std: jax.Array) -> jax.Array:
    """Return the KL divergence of a normal from the standard normal, element by element."""
    return 0.5 * (mean**2 + std**2 - 1.0) - jnp.log(std)
