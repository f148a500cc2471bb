"""Models for whoever has NumPy arrays and a seed: trained from the start, asked what they predict, kept as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evenly.models.bbvi import (
    Data,
    History,
    Info,
    Layout,
    Model,
    State,
    column_gradients,
    jit_by_model,
    jit_once,
    start,
    train,
    watch,
)

N_JUDGED, PATIENCE = 20, 4
"""At how many points of a training held-out cells are scored, and after how many without a better score it ends."""
COOL_DOWN = 0.1
"""A training that ends early goes on from its best point for this share of the epochs, with a falling learning rate."""


class Stream(NamedTuple):
    """A table that comes part by part, without end: an epoch is `n_parts` of them, each of `n_steps` batches."""

    parts: Iterator[Data]
    n_parts: int
    n_steps: int


class Watched(NamedTuple):
    """What was seen at some points of a training: after how many epochs, each column's gradient norm and its change."""

    epochs: np.ndarray
    gradients: np.ndarray
    changes: np.ndarray


def fit_model(
    model: Model,
    layout: Layout,
    data: Data,
    seed: int,
    learning_rate: float,
    *,
    epochs: int,
    batch_size: int = 1024,
    names: tuple[str, ...] | None = None,
    callback: Callable[[float, Info], bool | None] | None = None,
    n_points: int | None = None,
    judge: Callable[[Any], float] | None = None,
    weights: Any = 1.0,
    stream: Stream | None = None,
) -> tuple[Any, History, Watched]:
    """Train a model from the start, as `train` does; returns its shared parameters and what every epoch brought.

    With `n_points`, gradients are watched before the first epoch, and they and their changes at so many points, evenly
    spaced; with 0, the gradients before the first epoch alone. With `judge`, a score of shared parameters, it is asked
    at `N_JUDGED` points: the best ones are returned, and training ends when the last `PATIENCE` points brought nothing
    better, after going back to the best point and letting the learning rate fall from there. With `stream`, `data` are
    only some of the rows, to start from; the points lie between parts then, and the callback gets fractions of epochs.
    """
    data = Data(*map(jnp.asarray, data))
    size = min(batch_size, data.targets.shape[0])
    per_epoch = stream.n_parts if stream else 1
    n_steps = float(max(1, epochs * per_epoch * (stream.n_steps if stream else -(-data.targets.shape[0] // size))))
    state = start(model, layout, data, jax.random.key(seed), learning_rate, n_steps, weights)
    rows = jnp.arange(size)
    parts = n_points or (N_JUDGED if judge else 1)
    visits = epochs * per_epoch
    stops = np.unique(np.linspace(0, visits, parts + 1).round().astype(int)) if visits else np.array([0, 0])
    seen, histories, scores, best, cooled = [], [], [], state, False
    for at, until in zip(stops, [*stops[1:], None], strict=True):
        if n_points:
            seen.append([np.asarray(one) for one in watch(model, layout, data, state, rows)])
        elif n_points == 0 and not seen:
            seen.append([np.asarray(column_gradients(model, layout, data, state, rows)), np.zeros(0)])
        if judge:
            scores.append(judge(state.shared))
            if scores[-1] >= max(scores):
                best = state
        if cooled or until is None or int(state.epoch) < at:  # the end, or it was ended before
            break
        n_epochs = int(until - at)
        if judge and len(scores) - np.argmax(scores) > PATIENCE:
            n_epochs = min(max(1, round(COOL_DOWN * visits)), int(visits - at))
            state, cooled = _cool_down(model, best, n_epochs * n_steps / visits), True

        def told(visit: int, info: Info, first: int = at) -> bool | None:
            epoch = first + visit if stream is None else (first + visit + 1) / per_epoch - 1.0
            return callback(epoch, info) if callback is not None else None

        state, history = train(
            model,
            layout,
            stream.parts if stream else data,
            state,
            epochs=n_epochs,
            batch_size=batch_size,
            names=names,
            callback=told,
        )
        histories.append(history)
    elbo, gained, interrupted = zip(*histories, strict=True)
    brought = History(
        _by_epoch(np.concatenate(elbo), per_epoch), _by_epoch(np.concatenate(gained), per_epoch), any(interrupted)
    )
    watched = Watched(stops[: len(seen)], *(np.array(part) for part in zip(*seen, strict=True))) if seen else None
    return (best if judge else state).shared, brought, watched or Watched(*[np.zeros(0)] * 3)


def _cool_down(model: Model, state: State, n_steps: float) -> State:
    """Let the learning rate fall from where it is to the end of its schedule, in so many steps.

    The second half of a schedule does it, which is made as long as that.
    """
    done = state.shared_moments.count
    now, half = (model.schedule(jnp.asarray(one)) for one in (done / state.n_steps, 0.5))
    moments = state.shared_moments._replace(count=jnp.asarray(n_steps, done.dtype))
    dtype = state.learning_rate.dtype
    rate, whole = (jnp.asarray(one, dtype) for one in (state.learning_rate * now / half, 2.0 * n_steps))
    return state._replace(shared_moments=moments, learning_rate=rate, n_steps=whole)


def _by_epoch(visits: np.ndarray, per_epoch: int) -> np.ndarray:
    """Average what the parts of each epoch brought; the last epoch may lack some."""
    if per_epoch == 1 or not len(visits):
        return visits
    return np.stack([visits[at : at + per_epoch].mean(0) for at in range(0, len(visits), per_epoch)])


@partial(jit_by_model, static_argnums=(0, 1, 5, 6))
def _predict(
    model: Model, layout: Layout, shared: Any, data: Data, key: jax.Array, draw: bool, alike: bool
) -> list[jax.Array]:
    local = model.infer_local(shared, key, layout, data)

    def raw(local: Any, data: Data) -> jax.Array:
        return model.predict(shared, local, key if draw else None, layout, data)

    if alike:
        rows = jax.tree.map(lambda part: part[:, None], (local, data))
        return layout.by_feature(layout.natural(jax.vmap(raw)(*rows)[:, 0]))
    return layout.by_feature(layout.natural(raw(local, data)))


def predict_natural(
    model: Model, layout: Layout, shared: Any, data: Data, draw: Sequence[int] | None = None, *, alike: bool = False
) -> list[np.ndarray]:
    """Return the natural parameters of every feature for rows that may be new.

    Parameters
    ----------
    draw : numbers, optional
        Seeds of a draw from the posterior; without, its mean is taken.
    alike : bool
        Whether every row draws the same random numbers, so that what comes of it is its own alone.
    """
    key = jax.random.key(draw[0] if draw else 0)
    for number in (draw or ())[1:]:
        key = jax.random.fold_in(key, number)
    return [np.asarray(one) for one in _predict(model, layout, shared, data, key, draw is not None, alike)]


@partial(jit_by_model, static_argnums=(0, 1))
def held_out_log_likelihood(model: Model, layout: Layout, shared: Any, data: Data, held: Any) -> jax.Array:
    """Return the log-likelihood of each column's held-out cells, summed over rows; the model does not see them."""
    local = model.infer_local(shared, jax.random.key(0), layout, data)
    raw = model.predict(shared, local, None, layout, data)
    return layout.log_likelihood(raw, data.targets, held).sum(0)


def constant_log_likelihood(layout: Layout, naturals: Sequence[Any], data: Data) -> np.ndarray:
    """Return the log-likelihood of each column, per row, if every row had these parameters of its features."""
    dtype = jnp.asarray(data.targets[:1]).dtype
    grouped = [jnp.asarray(np.stack([naturals[j] for j in group.features]), dtype) for group in layout.groups]
    return np.asarray(_constant(layout, grouped, data), np.float64)


@partial(jit_once, static_argnums=0)
def _constant(layout: Layout, naturals: list[jax.Array], data: Data) -> jax.Array:
    return layout.log_likelihood(layout.raw(naturals), data.targets, data.mask).mean(0)


def flatten(shared: Any) -> dict[str, np.ndarray]:
    """Return the arrays of shared parameters by name."""
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(shared)}


def unflatten(model: Model, layout: Layout, n_inputs: int, arrays: Mapping[str, np.ndarray]) -> Any:
    """Undo `flatten`; the model knows the tree that the arrays form."""
    some = Data(jnp.zeros((2, n_inputs)), jnp.ones((2, layout.n_features)), jnp.zeros((2, layout.n_features), bool))
    shape = jax.eval_shape(lambda: model.init(jax.random.key(0), layout, some)[0])
    paths, tree = jax.tree_util.tree_flatten_with_path(shape)
    return jax.tree.unflatten(tree, [jnp.asarray(arrays[jax.tree_util.keystr(path)]) for path, _ in paths])
