"""The training loop: compiled epochs, repeated with a smaller learning rate if the loss is not finite."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning, InterruptedWarning, advance
from evenly.models.base import History, Info
from evenly.models.bbvi import State, Trained, compiled_epoch, compiled_epochs
from evenly.models.layout import LEAST_ROWS, MANY_ROWS, Data, Layout, size_class
from evenly.models.wiring import wire

PIECE = 64
"""Steps of an epoch that run at once: progress is reported, and Ctrl-C noticed, after a second or two on any table."""
MOST_HALVINGS = 20
"""How often training may halve its learning rate, down to a millionth, before it gives up."""


def padded_rows(n_rows: int, batch_size: int) -> int:
    """Return the number of rows that a table's arrays are padded to; rows that no step visits only cost memory.

    Examples
    --------
    >>> [padded_rows(n, 128) for n in (10, 100, 303, 20_000, 500_000)]
    [64, 112, 512, 32768, 524288]
    """
    return size_class(n_rows, LEAST_ROWS, 1 if batch_size <= n_rows <= MANY_ROWS else 4)


class Batches(NamedTuple):
    """How the rows of a table are divided into batches."""

    n_rows: int
    n_padded: int
    """Rows of the padded arrays."""
    batch_size: int
    """Rows per step, at most."""

    @property
    def size(self) -> int:
        """Rows per step, padding included."""
        return min(self.batch_size, self.n_padded)

    @property
    def n_steps(self) -> int:
        """Steps per epoch."""
        return -(-self.n_rows // self.size)

    @property
    def first(self) -> npt.NDArray[np.int32]:
        """The first rows of the table, as many as a step takes."""
        rows = np.arange(self.size, dtype=np.int32)
        return np.where(rows < self.n_rows, rows, self.n_padded).astype(np.int32)

    def order(self, key: npt.NDArray[np.uint32], epoch: int) -> npt.NDArray[np.int32]:
        """Return the rows of each step of an epoch, in random order: steps x rows.

        Every row occurs once; the last step is filled up with rows of the first. If there are fewer rows than a step
        takes, it is filled up with an index beyond the last row, which marks padding.
        """
        rows = np.random.default_rng((*key.tolist(), epoch)).permutation(self.n_rows)
        found = np.full(-(-self.n_padded // self.size) * self.size, self.n_padded, np.int32)
        n = self.n_steps * self.size if self.n_rows >= self.size else self.n_rows
        found[:n] = np.resize(rows, n)
        return found.reshape(-1, self.size)


def _finite(state: State, info: Info, n_runs: int) -> npt.NDArray[np.bool_]:
    """Return which columns of each run are finite: runs x columns; none if the run's loss or a parameter is not."""
    leaves = [info.elbo, *jax.tree.leaves((state.shared, state.local))]
    whole = np.all([np.isfinite(leaf).reshape(n_runs, -1).all(1) for leaf in leaves], axis=0)
    return np.asarray(np.isfinite(info.log_likelihood).reshape(n_runs, -1) & whole[:, None])


@dataclass
class _Halvings:
    """How often the learning rate was halved, and because of which columns."""

    n: int = 0
    columns: set[int] = field(default_factory=set)

    def halve(self, state: State, fine: npt.NDArray[np.bool_]) -> State:
        """Halve the learning rate of the runs that are not finite."""
        self.n += 1
        self.columns |= set(np.flatnonzero(~fine.all(0)).tolist())
        rate = np.asarray(state.learning_rate)
        kept = fine.all(1).reshape(rate.shape)
        return state._replace(learning_rate=np.where(kept, rate, 0.5 * rate).astype(rate.dtype))

    def warn(self, layout: Layout, ended: str) -> None:
        """Warn of all halvings at once."""
        names = layout.names or [str(j) for j in range(layout.n_columns)]
        warnings.warn(
            f"the loss stopped being finite ({self.n} times, columns {[names[j] for j in sorted(self.columns)]}): went "
            f"back to the last finite state and halved the learning rate each time{ended}",
            EvenlyWarning,
            stacklevel=3,
        )


def train(
    model: Trained,
    layout: Layout,
    data: Data | Iterator[Data],
    state: State,
    *,
    epochs: int,
    batch_size: int = 1024,
    on_epoch: Callable[[int, Info], bool | None] | None = None,
) -> tuple[State, History]:
    """Train for a number of epochs; several runs in parallel if data and state have a leading axis of runs.

    If data come as an iterator over parts of one size, an epoch is one part; see `fit_model`.

    If the loss stops being finite, training goes back to the last finite state, halves the learning rate, and warns
    once, naming the columns. Ctrl-C (with a warning), or a callback that returns True, stops training and keeps the
    state reached so far.

    Parameters
    ----------
    on_epoch : function of (epoch, info), optional
        Called after each epoch.
    """
    infos: list[Info] = []
    halvings, interrupted, ended = _Halvings(), False, ""
    unit = "epochs" if isinstance(data, Data) else "parts"
    try:
        for tried, info, fine in _epochs(model, layout, data, state, epochs, batch_size, halvings):
            state = tried
            if not fine:
                ended = f"; training ended after {len(infos)} of {epochs} {unit}: lower the learning rate"
                break
            infos.append(info)
            if on_epoch is not None and on_epoch(len(infos) - 1, info):
                break
    except KeyboardInterrupt:
        if not infos and int(np.max(state.epoch)) == 0:  # nothing was learned
            raise
        interrupted = True
        warnings.warn(
            f"interrupted: training ended after {len(infos)} of {epochs} {unit}; what was learned so far is used",
            InterruptedWarning,
            stacklevel=2,
        )
    if halvings.n:
        halvings.warn(layout, ended)
    if not infos:
        return state, History(np.zeros(0), np.zeros((0, layout.n_columns)), interrupted, halvings.n)
    elbo, gained = (np.stack(parts) for parts in zip(*infos, strict=True))
    return state, History(elbo, gained, interrupted, halvings.n)


def _epochs(
    model: Trained,
    layout: Layout,
    data: Data | Iterator[Data],
    state: State,
    epochs: int,
    batch_size: int,
    halvings: _Halvings,
) -> Iterator[tuple[State, Info, bool]]:
    """Yield, for each epoch, the state after it, its info, and whether all is finite; if not, the state before it."""
    together = isinstance(data, Data) and data.targets.ndim == 3
    run = compiled_epochs if together else compiled_epoch
    wiring, n = wire(layout), layout.n_columns
    n_rows = int(np.asarray(state.n_rows).ravel()[0])
    batches = Batches(n_rows, data.mask.shape[-2] if isinstance(data, Data) else n_rows, batch_size)
    seeds = np.asarray(state.seed).reshape(-1, 2)
    parts = repeat(data) if isinstance(data, Data) else data
    first = int(np.asarray(state.epoch).ravel()[0])
    for epoch in range(epochs):
        orders = [batches.order(seed, first + epoch) for seed in seeds]
        order = np.stack(orders) if together else orders[0]
        part = next(parts)
        while True:
            tried, infos = state, []
            for at, some, n_steps in _pieces(order, batches.n_steps):
                tried, info = run(model, wiring, part, tried, some, np.int32(n_steps), np.int32(at == 1.0))
                infos.append(Info(np.asarray(info.elbo), np.asarray(info.log_likelihood)))  # waits until it is done
                advance((epoch + at) / epochs)
            info = Info(*(sum(one[1:], one[0]) / batches.n_steps for one in zip(*infos, strict=True)))
            fine = _finite(tried, info, len(seeds))[:, :n]
            if fine.all() or halvings.n == MOST_HALVINGS:
                break
            state = halvings.halve(state, fine)
        state = tried if fine.all() else state
        yield state, info._replace(log_likelihood=info.log_likelihood[..., :n]), bool(fine.all())


def _pieces(order: npt.NDArray[np.int32], n_steps: int) -> Iterator[tuple[float, npt.NDArray[np.int32], int]]:
    """Split the steps of an epoch: yields the share done after each piece, its rows, and its number of steps.

    Pieces of a long epoch have one size, padded with steps that are not taken, so that one compiled program runs all.

    Examples
    --------
    >>> order = np.zeros((200, 8), np.int32)
    >>> [(round(at, 2), some.shape, n) for at, some, n in _pieces(order, 130)]
    [(0.49, (64, 8), 64), (0.98, (64, 8), 64), (1.0, (64, 8), 2)]
    >>> [(at, some.shape, n) for at, some, n in _pieces(order[:5], 3)]
    [(1.0, (5, 8), 3)]
    """
    length = order.shape[-2]
    if length <= PIECE:
        yield 1.0, order, n_steps
        return
    for start in range(0, n_steps, PIECE):
        rows = np.minimum(np.arange(start, start + PIECE), length - 1)
        done = min(start + PIECE, n_steps)
        yield done / n_steps, order[..., rows, :], done - start
