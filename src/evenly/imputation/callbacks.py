"""Callbacks that observe a training and may stop it, such as notes on progress and the gradient trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from evenly._support import add_note
from evenly.models import Trace
from evenly.tables import Floats


@dataclass(frozen=True)
class TrainingStart:
    """What callbacks get before the first epoch."""

    columns: tuple[str, ...]
    """The modelled columns."""
    epochs: int
    n_networks: int
    baseline: Floats
    """The log-likelihood of each column under its marginal."""


@dataclass(frozen=True)
class Epoch:
    """What callbacks get after each epoch."""

    network: int
    """The index of the network that is trained."""
    epoch: float
    """The index of the epoch; fractional if rows are streamed."""
    elbo: float
    log_likelihood: Floats
    """The mean over each column's training cells, in the table's units, as in `Imputer.history_`."""


class Callback:
    """Observes the training of an imputer: override what you need.

    Examples
    --------
    Needs `pip install "evenly[models]"`.

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

    trace_points: int | Literal["log"] | None = None
    """Trace gradients before the first epoch and at this many evenly spaced points after it; "log": after 1, 2, 4, 8
    and so on epochs and after the last; None: never."""
    trace_likelihoods: bool = False
    """Whether the log-likelihood of each column, in the table's units, is traced at these points too."""

    def on_start(self, start: TrainingStart) -> None:
        """Called before the first epoch."""

    def on_epoch(self, epoch: Epoch) -> bool | None:
        """Called after each epoch; returning True stops the training of that network."""

    def on_end(self, trace: Trace) -> None:
        """Called after the last epoch with the first network's gradient trace, even if training failed."""


@dataclass
class GradientTrace(Callback):
    """Records the norm of each column's gradient, and of its change by one step, at several points of the training.

    Examples
    --------
    Needs `pip install "evenly[models]"`.

    >>> from evenly import Imputer, Training
    >>> trace = GradientTrace(0)  # before the first epoch alone
    >>> table = np.random.default_rng(0).normal(size=(40, 2))
    >>> training = Training(epochs=1, sizes={"n_clusters": 2})
    >>> _ = Imputer("mixture", training=training, callbacks=[trace], random_state=0).fit(table)
    >>> trace.epochs.tolist(), trace.gradients.shape
    ([0], (1, 2))
    """

    trace_points: int | Literal["log"] | None = 10
    trace_likelihoods: bool = False
    epochs: Any = field(default_factory=lambda: np.zeros(0))
    gradients: Any = field(default_factory=lambda: np.zeros((0, 0)))
    changes: Any = field(default_factory=lambda: np.zeros((0, 0)))
    log_likelihood: Any = field(default_factory=lambda: np.zeros((0, 0)))
    """With `trace_likelihoods`, the mean over each column's observed cells, predicted as the imputer predicts them; of
    tables with more than 4,096 rows, over so many. Tricks and scales are undone, so that methods can be compared."""
    not_finite: int = 0
    """How often the loss or a parameter was not finite, so that training went back and halved its learning rate."""

    def on_end(self, trace: Trace) -> None:
        """Store the trace."""
        self.epochs, self.gradients, self.changes, self.log_likelihood, self.not_finite = trace


class TrainingNotes(Callback):
    """Adds to the progress bar the ELBO and the column that gains least over its marginal."""

    def on_start(self, start: TrainingStart) -> None:
        """Remember the columns."""
        self._start = start

    def on_epoch(self, epoch: Epoch) -> None:
        """Note the state of the training."""
        gains = epoch.log_likelihood - self._start.baseline
        worst = int(np.argmin(gains))
        name = self._start.columns[worst]
        add_note(
            f"epoch {epoch.epoch + 1:.4g} of {self._start.epochs}, ELBO {epoch.elbo:.2f}, worst column {name} "
            f"({gains[worst]:+.2f} nats)"
        )


def trace_points(callbacks: Sequence[Callback]) -> int | Literal["log"] | None:
    """Return "log" if any callback asks for it, else the largest number of trace points; None if none asks."""
    wanted = [one.trace_points for one in callbacks if one.trace_points is not None]
    return "log" if "log" in wanted else max((one for one in wanted if one != "log"), default=None)


NO_TRACE = Trace(np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0)))


@contextmanager
def watching(callbacks: Sequence[Callback], start: TrainingStart) -> Iterator[list[Trace]]:
    """Call `on_start` and, even after an error, `on_end` with the trace that the caller appends to the list."""
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
