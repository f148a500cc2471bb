"""Callbacks: who watches a training, and may end it. The progress bar and the gradient trace are such."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenly._support import require
from evenly.models import Trace
from evenly.tables import Floats


@dataclass(frozen=True)
class TrainingStart:
    """What is known before the first epoch."""

    columns: tuple[str, ...]
    """The modelled columns."""
    epochs: int
    n_networks: int
    baseline: Floats
    """The log-likelihood of each column under a model that knows it alone."""


@dataclass(frozen=True)
class Epoch:
    """What an epoch brought."""

    network: int
    """Which of the networks is trained, from 0."""
    epoch: float
    """Which epoch it was, from 0; a fraction where rows are streamed."""
    elbo: float
    log_likelihood: Floats
    """Of each column: mean per cell that is trained on, in the table's units, as in `Imputer.history_`."""


class Callback:
    """Watches the training of an imputer: override what you need.

    Examples
    --------
    >>> from evenly import Imputer, Training
    >>> class Stop(Callback):
    ...     def on_epoch(self, epoch):
    ...         return epoch.epoch >= 2
    >>> table = np.random.default_rng(0).normal(size=(40, 2))
    >>> small = Training(epochs=50, n_networks=1, sizes={"hidden_size": 8})
    >>> imputer = Imputer(training=small, callbacks=[Stop()], random_state=0).fit(table)
    >>> len(imputer.history_["elbo"]) < 50
    True
    """

    trace_points: int | None = None
    """At how many points of the training the gradients are traced for it; 0: before the first epoch alone."""

    def on_start(self, start: TrainingStart) -> None:
        """Called before the first epoch."""

    def on_epoch(self, epoch: Epoch) -> bool | None:
        """Called after each epoch; True ends the training of that network."""

    def on_end(self, trace: Trace) -> None:
        """Called after the last epoch, with the first network's gradient trace; also if the training fails."""


@dataclass
class GradientTrace(Callback):
    """Keeps the norm of each column's gradient, and of its change by one step, at some points of the training.

    Examples
    --------
    >>> from evenly import Imputer, Training
    >>> trace = GradientTrace(2)
    >>> table = np.random.default_rng(0).normal(size=(40, 2))
    >>> training = Training(epochs=4, sizes={"latent_size": 1, "hidden_size": 8})
    >>> _ = Imputer("vae", training=training, callbacks=[trace], random_state=0).fit(table)
    >>> trace.epochs.tolist(), trace.gradients.shape
    ([0, 2, 4], (3, 2))
    """

    trace_points: int | None = 10
    epochs: Any = field(default_factory=lambda: np.zeros(0))
    gradients: Any = field(default_factory=lambda: np.zeros((0, 0)))
    changes: Any = field(default_factory=lambda: np.zeros((0, 0)))

    def on_end(self, trace: Trace) -> None:
        """Keep the trace."""
        self.epochs, self.gradients, self.changes = trace


class ProgressBar(Callback):
    """Shows a bar with the ELBO and the column that gains least over knowing its own average."""

    def on_start(self, start: TrainingStart) -> None:
        """Begin the bar, on standard error: standard output may be a table."""
        progress, self._escape = require("rich.progress", "tool"), require("rich.markup", "tool").escape
        self._start = start
        self._bar = progress.Progress(
            "[progress.description]{task.description}",
            progress.BarColumn(),
            "{task.completed:g}/{task.total} epochs",
            progress.TimeRemainingColumn(),
            "{task.fields[state]}",
            console=require("rich.console", "tool").Console(stderr=True),
        )
        self._bar.start()
        self._task = self._bar.add_task("training", total=start.epochs * start.n_networks, state="compiling")

    def on_epoch(self, epoch: Epoch) -> None:
        """Move the bar."""
        gains = epoch.log_likelihood - self._start.baseline
        worst = int(np.argmin(gains))
        name = self._start.columns[worst]
        state = f"ELBO {epoch.elbo:.2f}, worst column {name} ({gains[worst]:+.2f} nats)"
        done = round(epoch.network * self._start.epochs + epoch.epoch + 1, 2)
        self._bar.update(self._task, completed=done, state=self._escape(state))

    def on_end(self, trace: Trace) -> None:
        """End the bar."""
        self._bar.stop()


def trace_points(callbacks: Sequence[Callback]) -> int | None:
    """Return at how many points gradients are to be traced, for whoever wants most; None if nobody does."""
    wanted = [one.trace_points for one in callbacks if one.trace_points is not None]
    return max(wanted, default=None)


NO_TRACE = Trace(np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0)))


@contextmanager
def watching(callbacks: Sequence[Callback], start: TrainingStart) -> Iterator[list[Trace]]:
    """Call `on_start` and, whatever happens, `on_end` with the trace that is put into the list."""
    traces: list[Trace] = []
    begun = []
    try:
        for one in callbacks:
            one.on_start(start)
            begun.append(one)
        yield traces
    finally:
        for one in begun:
            one.on_end(traces[0] if traces else NO_TRACE)
