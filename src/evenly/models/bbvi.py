"""Black-box variational inference: the ELBO by column, steps, epochs, predictions and gradients.

A model never sees a dataframe, a scale or a method's name. It gets inputs that are the same under every method, the
scaled features to explain, a mask, and a wiring: the likelihood of each feature and the column it belongs to. Compiled
programs depend on array sizes only: the wiring and the numbers of rows and steps are passed as arrays, so that other
tables can reuse a program.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from evenly.models.base import NOBODY, Fitted, Info, Model, Plan, RowVariables, Stream, Watchers
from evenly.models.cache import keep_compiled
from evenly.models.layout import Data, Layout
from evenly.models.wiring import Wiring, wire

keep_compiled()


# --- models -----------------------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """Terms of the ELBO: log-likelihood by row and column, KL of local (per-row) variables, KL of shared variables."""

    log_likelihood: jax.Array
    local_kl: jax.Array
    shared_kl: jax.Array


class Start(NamedTuple):
    """Initial parameters: pytrees (nested dicts) of NumPy arrays."""

    shared: dict[str, Any]
    """Learned parameters that all rows share."""
    local: dict[str, Any]
    """Learned parameters of each row, along the first axis."""
    fixed: dict[str, Any]
    """Constants computed from the data."""


class Trained(Model):
    """A model trained by gradient steps: subclasses define the ELBO and predictions, the training loop is shared."""

    second_decay: ClassVar[float] = 0.999
    """Decay rate of Adam's second moment (b2)."""
    weight_decay: ClassVar[float] = 0.0
    """Weight decay of the arrays named `weight`, as in AdamW."""
    optimization: ClassVar[int] = 3
    """XLA's optimization level: lower where optimizing takes longer than it saves."""

    def schedule(self, progress: Any) -> Any:
        """Return the multiplier of the learning rate, given the share of steps already taken."""
        return 1.0

    @abstractmethod
    def init(self, rng: np.random.Generator, layout: Layout, data: Data) -> Start:
        """Return initial variational parameters, estimated from the observed cells."""

    @abstractmethod
    def terms(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Terms:
        """Return the terms of the ELBO for a batch of rows, from one reparametrized draw."""

    @abstractmethod
    def predict(self, shared: Any, local: Any, key: jax.Array | None, wiring: Wiring, data: Data) -> jax.Array:
        """Return the raw parameters of every row: at the posterior mean, or at a draw if a key is given."""

    @abstractmethod
    def infer_local(self, shared: Any, key: jax.Array, wiring: Wiring, data: Data) -> Any:
        """Return the variational parameters of new rows, with the shared ones fixed."""

    def fit(
        self,
        layout: Layout,
        data: Data,
        seed: int,
        plan: Plan,
        watchers: Watchers = NOBODY,
        stream: Stream | None = None,
    ) -> Fitted:
        """Train the model from scratch; see `fitting.fit_model`."""
        from evenly.models.fitting import fit_model

        return fit_model(self, layout, data, seed, plan, watchers, stream)

    def predict_natural(
        self,
        layout: Layout,
        shared: Mapping[str, Any],
        data: Data,
        draw: Sequence[int] | None = None,
        *,
        alike: bool = False,
        rows: RowVariables | None = None,
    ) -> list[npt.NDArray[Any]]:
        """Return the natural parameters of every feature, for rows of fit or new ones."""
        key, wiring = np.random.SeedSequence(draw or 0).generate_state(2), wire(layout)
        if rows is not None and rows.known.all():
            local: Any = dict(rows.variables)
        else:
            local = _infer_once(self, wiring, shared, data)
        if rows is not None and rows.known.any() and not rows.known.all():
            local = {name: np.where(rows.known[:, None], rows.variables[name], one) for name, one in local.items()}
        found = _predict(self, wiring, shared, (local, data), key, draw is not None, alike)
        return layout.by_feature(np.asarray(found))


class Momentum(NamedTuple):
    """The state of gradient descent with momentum."""

    count: Any
    velocity: Any


class State(NamedTuple):
    """The state of a training, carried from step to step."""

    shared: Any
    fixed: Any
    local: Any
    shared_moments: optax.OptState | Momentum
    """Adam's, or the velocity of gradient descent; then only the first of the local ones are used."""
    local_moments: tuple[Any, Any]
    seed: Any
    """The initial key. The order of rows depends on it and the epoch only, wherever training pauses."""
    key: Any
    """Raw key data, which can be created without compiling a program."""
    epoch: Any
    learning_rate: Any
    n_steps: Any
    """The planned number of steps, for the schedule."""
    n_rows: Any
    """The number of rows of the table; its arrays may be padded."""
    weights: Any
    """The weight of each column's log-likelihood in the objective."""
    balancing: Any = None
    """The `Balancing` of a rule that weighs the columns' gradients, if there is one."""

    def by_momentum(self) -> State:
        """Return the state of a training by gradient descent with momentum, not yet begun."""
        velocity = jax.tree.map(np.zeros_like, self.shared)
        return self._replace(shared_moments=Momentum(np.zeros((), np.int32), velocity))

    def of_steps(self, n_steps: float) -> State:
        """Return the state of a training that is planned to take `n_steps` steps."""
        return self._replace(n_steps=np.asarray(n_steps, np.asarray(self.n_steps).dtype))


def jit_by_model(function: Callable[..., Any], static_argnums: tuple[int, ...]) -> Callable[..., Any]:
    """Compile a function whose first argument is a model, at the model's optimization level."""

    @cache
    def compiled(level: int) -> Callable[..., Any]:
        options = {"xla_backend_optimization_level": level}
        return jax.jit(function, static_argnums=static_argnums, compiler_options=options)

    return lambda model, *rest: compiled(model.optimization)(model, *rest)


# For programs that run a few times: compiling takes longer than running, and half as long without optimization.
jit_once = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


class _Inferred(NamedTuple):
    """The local parameters of some rows, and what they were inferred from."""

    model: Trained
    shared: Any
    data: Data
    local: Any


_inferred: deque[_Inferred] = deque(maxlen=16)
"""The last rows whose local parameters were inferred, as many chunks as are drawn again from the same arrays."""


def _infer_once(model: Trained, wiring: Wiring, shared: Any, data: Data) -> Any:
    """Return the local parameters of rows; the same ones if it is called again with the same arrays."""
    if not model.spec.row_variables:
        return {}
    for one in _inferred:
        if one.model == model and one.shared is shared and one.data is data:
            return one.local
    local = _infer(model, wiring, shared, data)
    _inferred.append(_Inferred(model, shared, data, local))
    return local


@partial(jit_by_model, static_argnums=(0,))
def _infer(model: Trained, wiring: Wiring, shared: Any, data: Data) -> Any:
    return model.infer_local(shared, jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32)), wiring, data)


@partial(jit_by_model, static_argnums=(0, 5, 6))
def _predict(
    model: Trained, wiring: Wiring, shared: Any, rows: tuple[Any, Data], numbers: Any, draw: bool, alike: bool
) -> jax.Array:
    key = jax.random.wrap_key_data(numbers)

    def raw(local: Any, data: Data) -> jax.Array:
        return model.predict(shared, local, key if draw else None, wiring, data)

    if alike:
        return wiring.natural(jax.vmap(raw)(*jax.tree.map(lambda part: part[:, None], rows))[:, 0])
    return wiring.natural(raw(*rows))


def start(
    model: Trained,
    layout: Layout,
    data: Data,
    seed: int,
    learning_rate: float,
    weights: Any = 1.0,
    n_rows: int | None = None,
) -> State:
    """Return the initial state, of NumPy arrays, of a training of one step; see `State.of_steps`.

    Parameters
    ----------
    weights : array
        The weight of each column's log-likelihood in the objective.
    n_rows : int, optional
        Rows of the padded arrays that training will see; by default those of `data`.
    """
    shared, local, fixed = model.init(np.random.default_rng(seed), layout, data)
    dtype = data.targets.dtype
    lacking = max(0, (n_rows or 0) - len(data.mask))
    local = jax.tree.map(lambda part: np.pad(part, [(0, lacking), *[(0, 0)] * (part.ndim - 1)]), local)
    zeros = partial(jax.tree.map, np.zeros_like)
    moments = optax.ScaleByAdamState(np.zeros((), np.int32), zeros(shared), zeros(shared))
    column_weights = np.ones(layout.sizes.columns, dtype)
    column_weights[: layout.n_columns] = weights
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
        np.ones((), dtype),
        np.int32(len(data.mask)),
        column_weights,
    )


def objective(
    model: Trained,
    wiring: Wiring,
    variables: tuple[Any, Any],
    key: jax.Array,
    data: Data,
    state: State,
    valid: jax.Array,
) -> tuple[jax.Array, Terms]:
    """Return the negative ELBO per row, estimated from the valid rows of a batch, and its terms.

    Parameters
    ----------
    variables : pair of pytrees
        The shared and the local parameters.
    """
    shared, local = variables
    terms = model.terms({**shared, **state.fixed}, local, key, wiring, data, state.epoch)
    by_row = (state.weights * terms.log_likelihood).sum(-1) - terms.local_kl
    elbo = jnp.where(valid, by_row, 0.0).sum() / valid.sum() - terms.shared_kl / state.n_rows
    return -elbo, terms


def take(tree: Any, rows: jax.Array) -> Any:
    """Return the given rows of all arrays; indices beyond the last row are clipped to it."""
    return jax.tree.map(lambda part: part.at[rows].get(mode="clip"), tree)


def step(model: Trained, wiring: Wiring, data: Data, state: State, rows: jax.Array) -> tuple[State, Info]:
    """Take one gradient step on a batch of rows; indices beyond the last row are padding."""
    draw = jax.random.wrap_key_data(state.key)
    valid = rows < data.mask.shape[0]
    local, batch = take((state.local, data), rows)
    at = (model, wiring, (state.shared, local), draw, batch, state, valid)
    if state.balancing is None:
        (value, terms), (to_shared, to_local) = jax.value_and_grad(objective, argnums=2, has_aux=True)(*at)
    else:
        value, terms, (to_shared, to_local), balancing = state.balancing.gradients(*at)
        state = state._replace(balancing=balancing)
    adam = optax.scale_by_adam(b2=model.second_decay)
    moments = state.shared_moments
    rate = state.learning_rate * model.schedule(moments.count / state.n_steps)
    if isinstance(moments, Momentum):
        updates = _roll(moments.velocity, to_shared)
        shared_moments: Any = Momentum(moments.count + 1, updates)
    else:
        updates, shared_moments = adam.update(to_shared, moments)
    if model.weight_decay:
        updates = jax.tree_util.tree_map_with_path(
            lambda path, u, p: u + model.weight_decay * p if path[-1].key == "weight" else u, updates, state.shared
        )
    state = state._replace(
        shared=jax.tree.map(lambda p, u: p - rate * u, state.shared, updates),
        shared_moments=shared_moments,
        key=state.key + np.array([0, 1], np.uint32),  # a counter is enough: every key has its own draws
    )
    if jax.tree.leaves(local) and isinstance(moments, Momentum):
        velocity = _roll(take(state.local_moments[0], rows), to_local)
        state = _put_rows(state, rows, jax.tree.map(lambda p, u: p - rate * u, local, velocity), velocity)
    elif jax.tree.leaves(local):
        state = _move_rows(adam, state, local, to_local, rows, rate * jnp.sqrt(state.n_rows / valid.sum()))
    if state.balancing is not None:
        state = state.balancing.settle(model, wiring, state)
    seen = jnp.where(valid[:, None], terms.log_likelihood, 0.0).sum(0) / valid.sum()
    return state, Info(-value, seen)


MOMENTUM = 0.9
"""The usual share of its velocity that gradient descent keeps."""


def _roll(velocity: Any, gradient: Any) -> Any:
    """Return the velocity after a step of gradient descent with momentum."""
    return jax.tree.map(lambda v, g: MOMENTUM * v + g, velocity, gradient)


def _put_rows(state: State, rows: jax.Array, local: Any, *moments: Any) -> State:
    """Return the state with new variables and moments of some rows; padding is left out."""
    put = partial(jax.tree.map, lambda whole, part: whole.at[rows].set(part, mode="drop"))
    kept = state.local_moments[len(moments) :]
    moved = tuple(put(whole, part) for whole, part in zip(state.local_moments, moments, strict=False))
    return state._replace(local=put(state.local, local), local_moments=(*moved, *kept))


def _move_rows(adam: Any, state: State, local: Any, gradient: Any, rows: jax.Array, rate: jax.Array) -> State:
    """Update the local variables of a batch.

    A row is updated only when it is visited, once per epoch, so that Adam's step count is the epoch. Adam on all rows
    at every step would keep moving a row by its momentum: with a gradient every n steps, v converges to g^2 / n and the
    momentum sums to g, a move of sqrt(n) learning rates per epoch. Here the row makes that move at once.
    """
    mu, nu = take(state.local_moments, rows)
    updates, moments = adam.update(gradient, optax.ScaleByAdamState(state.epoch, mu, nu))
    local = jax.tree.map(lambda p, u: p - rate * u, local, updates)
    return _put_rows(state, rows, local, moments.mu, moments.nu)


def run_epoch(
    model: Trained, wiring: Wiring, data: Data, state: State, order: jax.Array, n_steps: Any, n_epochs: Any
) -> tuple[State, Info]:
    """Take `n_steps` steps, the i-th on the rows `order[i]`; returns the sums of their infos.

    Parameters
    ----------
    n_epochs : int
        What to add to the number of epochs: 1 after the last steps of an epoch, else 0.
    """

    def body(i: Any, carry: tuple[State, Info]) -> tuple[State, Info]:
        state, total = carry
        state, info = step(model, wiring, data, state, order[i])
        return state, jax.tree.map(jnp.add, total, info)

    dtype = data.targets.dtype
    nothing = Info(jnp.zeros((), dtype), jnp.zeros(data.mask.shape[-1], dtype))
    state, total = jax.lax.fori_loop(0, n_steps, body, (state, nothing))
    return state._replace(epoch=state.epoch + n_epochs), total


compiled_epoch = jit_by_model(run_epoch, (0,))


@partial(jax.jit, static_argnums=0)
def compiled_epochs(
    model: Trained, wiring: Wiring, data: Data, state: State, order: jax.Array, n_steps: Any, n_epochs: Any
) -> tuple[State, Info]:
    """Run an epoch, or steps of it, of several trainings in parallel, along a leading axis."""
    return jax.vmap(partial(run_epoch, model, wiring, n_steps=n_steps, n_epochs=n_epochs))(data, state, order=order)
