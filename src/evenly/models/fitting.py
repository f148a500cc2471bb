"""A model trained from the start, for whoever has NumPy arrays and a seed: stopped, watched, cooled down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from evenly.models.base import Fitted, History, Info, Stream, Watched
from evenly.models.bbvi import (
    Batches,
    State,
    Trained,
    column_gradients,
    padded_rows,
    start,
    train,
    watch,
)
from evenly.models.layout import Data, Layout, pad_rows
from evenly.models.wiring import wire

N_JUDGED, PATIENCE = 20, 4
"""At how many points of a training held-out cells are scored, and after how many without a better score it ends."""
COOL_DOWN = 0.1
"""A training that ends early goes on from its best point for this share of the epochs, with a falling learning rate."""


def fit_model(
    model: Trained,
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
) -> Fitted:
    """Train a model from the start, as `train` does; returns its shared parameters and what every epoch brought.

    With `n_points`, gradients are watched before the first epoch, and they and their changes at so many points, evenly
    spaced; with 0, the gradients before the first epoch alone. With `judge`, a score of shared parameters, it is asked
    at `N_JUDGED` points: the best ones are returned, and training ends when the last `PATIENCE` points brought nothing
    better, after going back to the best point and letting the learning rate fall from there. With `stream`, `data` are
    only some of the rows, to start from; the points lie between parts then, and the callback gets fractions of epochs.
    """
    data = Data(*map(np.asarray, data))
    batches = Batches(len(data.mask), padded_rows(len(data.mask), batch_size), batch_size)
    per_epoch = stream.n_parts if stream else 1
    n_steps = float(max(1, epochs * per_epoch * (stream.n_steps if stream else batches.n_steps)))
    state = start(model, layout, data, seed, learning_rate, n_steps, weights, batches.n_padded)
    there = Data(*map(jnp.asarray, pad_rows(data, batches.n_padded, layout)))
    rows, wiring = batches.first, wire(layout)
    if stream:
        state = state._replace(n_rows=np.int32(stream.n_steps * batch_size))
    parts = n_points or (N_JUDGED if judge else 1)
    visits = epochs * per_epoch
    stops = np.unique(np.linspace(0, visits, parts + 1).round().astype(int)) if visits else np.array([0, 0])
    n, seen, histories, scores, best, cooled = layout.n_columns, [], [], [], state, False
    for at, until in zip(stops, [*stops[1:], None], strict=True):
        if n_points:
            seen.append([np.asarray(one)[:n] for one in watch(model, wiring, there, state, rows)])
        elif n_points == 0 and not seen:
            seen.append([np.asarray(column_gradients(model, wiring, there, state, rows))[:n], np.zeros(0)])
        if judge:
            scores.append(judge(_known(state)))
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
            stream.parts if stream else there,
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
    return Fitted(_known(best if judge else state), brought, watched or Watched(*[np.zeros(0)] * 3))


def _known(state: State) -> dict[str, Any]:
    """Return what predictions need."""
    return {**state.shared, **state.fixed}


def _cool_down(model: Trained, state: State, n_steps: float) -> State:
    """Let the learning rate fall from where it is to the end of its schedule, in so many steps.

    The second half of a schedule does it, which is made as long as that.
    """
    done = float(state.shared_moments.count)
    now, half = (float(model.schedule(one)) for one in (done / float(state.n_steps), 0.5))
    moments = state.shared_moments._replace(count=np.int32(n_steps))
    dtype = state.learning_rate.dtype
    rate, whole = (np.asarray(one, dtype) for one in (float(state.learning_rate) * now / half, 2.0 * n_steps))
    return state._replace(shared_moments=moments, learning_rate=rate, n_steps=whole)


def _by_epoch(visits: npt.NDArray[Any], per_epoch: int) -> npt.NDArray[Any]:
    """Average what the parts of each epoch brought; the last epoch may lack some."""
    if per_epoch == 1 or not len(visits):
        return visits
    return np.stack([visits[at : at + per_epoch].mean(0) for at in range(0, len(visits), per_epoch)])
