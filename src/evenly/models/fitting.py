"""Training a model from scratch, given NumPy arrays and a seed: early stopping, gradient trace, cool-down."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from evenly._support import part
from evenly.models.base import NOBODY, Fitted, History, Info, Plan, Stream, Trace, Watchers
from evenly.models.bbvi import State, Trained, start
from evenly.models.gradients import column_gradients, gradient_changes
from evenly.models.layout import Data, Layout, pad_rows
from evenly.models.loop import Batches, padded_rows, train
from evenly.models.shared_output import Balancing
from evenly.models.wiring import wire

N_VALIDATIONS, PATIENCE = 20, 4
"""Validation cells are scored at 20 points of a training, which stops after 4 points without a better score."""
COOL_DOWN = 0.1
"""After early stopping, training goes on from its best point for 10 % of the epochs, with a decaying learning rate."""


HURRIED_SHARE = 0.25
"""If time runs out, training goes on for a quarter of the epochs so far, if there is time for so many."""


class _Pace:
    """How long visits take, and when it is time to end the training."""

    def __init__(self, watchers: Watchers) -> None:
        self._deadline, self._share = watchers.deadline, watchers.share
        self._begun, self._done = 0.0, 0
        self.hurried = False
        """Whether the training is to be ended, because of the deadline."""

    def visited(self, *, cooled: bool) -> bool:
        """Note a visit; returns whether to stop."""
        if not self._deadline.exists:
            return False
        if not self._done:  # it compiled the programs, which takes no part in the pace
            self._begun, self._deadline = time.monotonic(), self._deadline.share(self._share)
        self._done += 1
        left = 0 if cooled else self._cooling
        self.hurried = self.hurried or self._deadline.left() < self._seconds * (left + 1)
        return self.hurried if not cooled else self._deadline.left() < self._seconds

    @property
    def _seconds(self) -> float:
        """Seconds of a visit."""
        return (time.monotonic() - self._begun) / max(self._done - 1, 1)

    @property
    def _cooling(self) -> int:
        return max(1, round(HURRIED_SHARE * self._done))

    def shorten(self, n: int) -> int:
        """Return how many of n visits there is time for."""
        if not self.hurried:
            return n
        return max(0, min(n, self._cooling, int(self._deadline.left() / max(self._seconds, 1e-9))))


class _Visits(NamedTuple):
    """How often training passes through its data: a visit is an epoch, or one part of a stream."""

    per_epoch: int
    n: int
    """Total number of visits."""
    n_steps: float
    """Total number of steps."""
    stops: npt.NDArray[np.intp]
    """Numbers of visits after which training pauses for validation or tracing."""


def fit_model(
    model: Trained,
    layout: Layout,
    data: Data,
    seed: int,
    plan: Plan,
    watchers: Watchers = NOBODY,
    stream: Stream | None = None,
) -> Fitted:
    """Train a model from scratch; return its parameters, history and gradient trace.

    With a validation score, shared parameters are scored at `N_VALIDATIONS` points and the best ones are returned.
    After `PATIENCE` points without improvement, training stops early: it goes back to the best point and decays the
    learning rate from on_device. With a stream, `data` is a sample of the rows to initialize from; the points then lie
    between parts, and callbacks get fractional epochs. Before a deadline, the learning rate decays in time.
    """
    data = Data(*map(np.asarray, data))
    batches = Batches(len(data.mask), padded_rows(len(data.mask), plan.batch_size), plan.batch_size)
    visits = _plan_visits(plan, batches, stream, validated=watchers.validate is not None)
    state = start(model, layout, data, seed, plan.learning_rate, plan.weights, batches.n_padded)
    state = _prepare(state.of_steps(visits.n_steps), layout, plan, stream)
    on_device = Data(*map(jnp.asarray, pad_rows(data, batches.n_padded, layout)))
    traced, scored = list[list[npt.NDArray[Any]]](), list[npt.NDArray[Any]]()
    histories, scores, best, cooled, pace = [], [], state, False, _Pace(watchers)
    for at, until in zip(visits.stops, [*visits.stops[1:], None], strict=True):
        if plan.trace_points or (plan.trace_points == 0 and not traced):
            traced.append(_trace(model, layout, on_device, state, batches.first, whole=bool(plan.trace_points)))
            scored += _score(model, watchers, state, data)
        if watchers.validate:
            scores.append(watchers.validate(_parameters(model, state)))
            best = state if scores[-1] >= max(scores) else best
        if cooled or until is None or (int(state.epoch) < at and not pace.hurried):  # finished, or stopped before
            break
        n_epochs, rows = int(until - at), stream.parts if stream else on_device
        if pace.hurried or (watchers.validate and len(scores) - np.argmax(scores) > PATIENCE):
            n_epochs = pace.shorten(min(max(1, round(COOL_DOWN * visits.n)), int(visits.n - at)))
            if not n_epochs:
                break
            best = best if watchers.validate else state
            state, cooled = _cool_down(model, best, n_epochs * visits.n_steps / visits.n), True

        def on_visit(visit: int, info: Info, first: int = at, last: bool = cooled) -> bool | None:
            epoch = first + visit if stream is None else (first + visit + 1) / visits.per_epoch - 1.0
            stops = watchers.on_epoch is not None and watchers.on_epoch(epoch, info)
            return pace.visited(cooled=last) or stops

        with part(at / max(visits.n, 1), (at + n_epochs) / max(visits.n, 1)):
            state, history = train(
                model, layout, rows, state, epochs=n_epochs, batch_size=plan.batch_size, on_epoch=on_visit
            )
        histories.append(history)
    if state.balancing is not None:
        state.balancing.warn(layout)
    state = best if watchers.validate else state
    history = _join(histories, visits.per_epoch)
    more: dict[str, Any] = {"log_likelihood": np.array(scored or np.zeros((0, 0))), "not_finite": history.not_finite}
    trace = _join_traces(visits.stops, traced)._replace(**more)
    log_scales = state.balancing and state.balancing.log_scales(layout)
    return Fitted(_parameters(model, state), history, trace, _rows(state, data), log_scales)


def _prepare(state: State, layout: Layout, plan: Plan, stream: Stream | None) -> State:
    """Return the initial state with what the plan adds: the rows of a stream, the optimizer, the balancing rule."""
    if stream:
        state = state._replace(n_rows=np.int32(stream.n_steps * plan.batch_size))
    if plan.optimizer == "sgd":
        state = state.by_momentum()
    if plan.rule is not None:
        balancing = Balancing.start(plan.rule, layout, state.learning_rate.dtype, plan.target)
        state = state._replace(balancing=balancing)
    return state


def _score(model: Trained, watchers: Watchers, state: State, data: Data) -> list[npt.NDArray[Any]]:
    """Return the columns' scores at a point of the trace, if somebody wants them."""
    return [watchers.score_columns(_parameters(model, state), _rows(state, data))] if watchers.score_columns else []


def _plan_visits(plan: Plan, batches: Batches, stream: Stream | None, *, validated: bool) -> _Visits:
    per_epoch, steps = (stream.n_parts, stream.n_steps) if stream else (1, batches.n_steps)
    n = plan.epochs * per_epoch
    if plan.trace_points == "log":
        stops = log_spaced(n)
    else:
        points = plan.trace_points or (N_VALIDATIONS if validated else 1)
        stops = np.unique(np.linspace(0, n, points + 1).round().astype(int))
    stops = stops if n else np.array([0, 0])
    return _Visits(per_epoch, n, float(max(1, n * steps)), stops)


def log_spaced(n: int) -> npt.NDArray[np.intp]:
    """Return 0, 1, 2, 4, 8 and so on up to n, and n itself.

    Examples
    --------
    >>> log_spaced(20).tolist(), log_spaced(8).tolist(), log_spaced(0).tolist()
    ([0, 1, 2, 4, 8, 16, 20], [0, 1, 2, 4, 8], [0])
    """
    return np.array(sorted({0, n, *(1 << k for k in range(n.bit_length()))}), np.intp)


def _rows(state: State, data: Data) -> dict[str, npt.NDArray[Any]]:
    """Return the variables of the table's rows, without padding."""
    return {name: np.asarray(one)[: len(data.mask)] for name, one in state.local.items()}


def _trace(
    model: Trained, layout: Layout, data: Data, state: State, rows: npt.NDArray[np.int32], *, whole: bool
) -> list[npt.NDArray[Any]]:
    """Return each column's gradient norm, and the norm of its change by one step if `whole`."""
    wiring, n = wire(layout), layout.n_columns
    if whole:
        return [np.asarray(one)[:n] for one in gradient_changes(model, wiring, data, state, rows)]
    return [np.asarray(column_gradients(model, wiring, data, state, rows))[:n], np.zeros(0)]


def _parameters(model: Trained, state: State) -> dict[str, Any]:
    """Return the parameters that predictions need."""
    shared = state.shared
    if state.balancing is not None:
        shared = jax.tree.map(np.asarray, state.balancing.folded(model, shared))
    return {**shared, **state.fixed}


def _cool_down(model: Trained, state: State, n_steps: float) -> State:
    """Decay the learning rate from its current value to the end of its schedule, in `n_steps` steps.

    It follows the second half of the schedule, stretched to that length.
    """
    done = float(state.shared_moments.count)
    now, half = (float(model.schedule(one)) for one in (done / float(state.n_steps), 0.5))
    moments = state.shared_moments._replace(count=np.int32(n_steps))
    rate = np.asarray(float(state.learning_rate) * now / half, state.learning_rate.dtype)
    return state._replace(shared_moments=moments, learning_rate=rate).of_steps(2.0 * n_steps)


def _join(histories: list[History], per_epoch: int) -> History:
    """Return the history of all epochs, each the average over its visits; the last epoch may lack some."""
    elbo, gained, interrupted, not_finite = zip(*histories, strict=True)
    elbo, gained = (_by_epoch(np.concatenate(one), per_epoch) for one in (elbo, gained))
    return History(elbo, gained, any(interrupted), sum(not_finite))


def _by_epoch(visits: npt.NDArray[Any], per_epoch: int) -> npt.NDArray[Any]:
    if per_epoch == 1 or not len(visits):
        return visits
    return np.stack([visits[at : at + per_epoch].mean(0) for at in range(0, len(visits), per_epoch)])


def _join_traces(stops: npt.NDArray[np.intp], traced: list[list[npt.NDArray[Any]]]) -> Trace:
    if not traced:
        return Trace(np.zeros(0), np.zeros(0), np.zeros(0))
    gradients, changes = (np.array(one) for one in zip(*traced, strict=True))
    return Trace(stops[: len(traced)], gradients, changes)
