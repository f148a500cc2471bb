"""A short training on the visible cells of a table, and the columns that it overlooks.

A column is overlooked unless, after the short training, its log-likelihood exceeds that of its marginal by more than
0.01 + 1 / n nats (of n observed cells), or its error on the hidden cells is smaller than that of the mean or the mode
by more than one standard error of the difference (with 10 hidden cells or more). So a column that is independent of the
others is not overlooked as long as the model describes its observed cells. For `masked`, the error alone decides: it is
not given the cells that it scores, and its log-likelihood varies too much from epoch to epoch.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning, TableError, require
from evenly.evaluation.diagnosis_results import ShortTraining
from evenly.imputation import GradientTrace, Imputer, Training, fit_seconds
from evenly.likelihoods import Likelihood, is_registered
from evenly.metrics import baseline_errors, clearly_better, column_errors, hide_keeping_two, mean_or_mode
from evenly.models import SPECS
from evenly.scaling import FittedColumn, get_method
from evenly.tables import Column, Floats, Schema, Table, coded, number_table

Flags = npt.NDArray[np.bool_]

LEARNING_RATE = 1e-3
"""The default of the VAE and of the scaler: the target depends on it even if nothing is trained."""
MOST_ROWS = 20_000
"""Rows of a short training at most: 2,000 hidden cells of a column give its error to about 2 %."""
STEPS = 500
"""Steps of a short training: far from convergence, since columns that are learned late show only before it."""
LEAST_EPOCHS = 3
FEW_ROWS, BATCH, SMALL_BATCH = 2_000, 256, 128
"""Rows per step: 128 below 2,000 rows, else 256."""
LEAST_GAIN = 0.01
"""Nats that a cell must gain over the marginal, or its column is overlooked: 1 % more likely. Less is noise."""
FEWEST = 10
"""With fewer hidden cells, the error is not considered."""


class TrainingRequest(NamedTuple):
    """Settings of the short trainings."""

    methods: tuple[str, ...]
    model: str
    epochs: Any
    learning_rate: Any
    share: Any
    random_state: Any
    verbose: int

    def check(self, *, train: bool) -> float:
        """Check the settings before any long work; return the learning rate."""
        for method in self.methods:
            get_method(method)
        if not (isinstance(self.share, numbers.Real) and 0.0 < float(self.share) < 1.0):
            raise TableError(f"share = {self.share!r}", "expected a number between 0 and 1")
        if not train:
            return LEARNING_RATE if self.learning_rate == "auto" else float(self.learning_rate)
        require("jax", "models")
        if self.model not in SPECS:
            raise TableError(f"model = {self.model!r}", f"expected one of {', '.join(SPECS)}")
        if not self.methods:
            raise TableError("no methods", "expected one or more to train with", "or train=False")
        training = Training(learning_rate=self.learning_rate, epochs=self.epochs)
        training.check()
        return training.rate_of(SPECS[self.model])

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the expected number of seconds of each training."""
        return fit_seconds(Imputer(self.model, training=self.training(n_rows)), n_rows, n_columns)

    def training(self, n_rows: int) -> Training:
        """Return the settings of a training on some rows."""
        size = BATCH if n_rows >= FEW_ROWS else SMALL_BATCH
        epochs = short_epochs(n_rows, size) if self.epochs == "auto" else self.epochs
        return Training(epochs=epochs, batch_size=size, n_networks=1, learning_rate=self.learning_rate)


@dataclass(frozen=True)
class Coded:
    """A table of numbers and codes with some cells hidden, and the declarations for a training on it."""

    columns: list[Column]
    table: Any
    truth: Floats
    hidden: Flags
    kinds: dict[Any, str]
    likelihoods: dict[Any, Likelihood]
    """The custom likelihoods of columns, which a schema cannot hold."""


def hide_cells(opened: Table, columns: Sequence[FittedColumn], names: set[str], share: float, seed: int) -> Coded:
    """Take up to `MOST_ROWS` rows, encode their cells and hide a share of the observed ones.

    Columns that are not modelled are left empty.
    """
    rng = np.random.default_rng((seed, 0))
    rows = np.arange(opened.n_rows)
    if opened.n_rows > MOST_ROWS:
        rows = np.sort(rng.choice(opened.n_rows, MOST_ROWS, replace=False))
    truth, hidden = np.full((len(rows), len(columns)), np.nan), np.zeros((len(rows), len(columns)), bool)
    kept: list[Column] = []
    own: dict[Any, Likelihood] = {}
    for j, (fitted, cells) in enumerate(zip(columns, opened.columns, strict=True)):
        column = fitted.column
        if column.name not in names:
            kept.append(Column(name=column.name, kind="ignore"))
            continue
        truth[:, j] = fitted.encode(cells)[0][rows]
        hidden[:, j] = hide_keeping_two(truth[:, j], share, rng)
        kept.append(coded(column))
        if fitted.family is not None and not is_registered(fitted.family):
            own[fitted.label] = fitted.family
    table = number_table([one.label for one in columns], opened.names, np.where(hidden, np.nan, truth))
    kinds: dict[Any, str] = {one.label: one.column.kind for one in columns if one.label in own}
    return Coded(kept, table, truth, hidden, kinds, own)


def short_epochs(n_rows: int, batch_size: int) -> int:
    """Return the number of epochs of a short training.

    Examples
    --------
    >>> short_epochs(303, 128), short_epochs(20_000, 256)
    (167, 6)
    """
    return max(LEAST_EPOCHS, round(STEPS / -(-n_rows // batch_size)))


def train_shortly(shown: Coded, method: str, request: TrainingRequest) -> ShortTraining:
    """Train on the visible cells, and score the hidden ones."""
    n_rows = len(shown.truth)
    trace = GradientTrace(0)
    imputer = Imputer(
        request.model,
        method,
        schema=Schema(columns=shown.columns),
        kinds=shown.kinds,
        likelihoods=shown.likelihoods,
        training=request.training(n_rows),
        callbacks=[trace],
        random_state=request.random_state,
        verbose=request.verbose,
    )
    with _collect_warnings() as notes:
        predicted = imputer.fit(shown.table).predict_cells(shown.table)
    errors = column_errors(shown.columns, shown.truth, predicted, shown.hidden)
    averages = baseline_errors(shown.columns, shown.truth, shown.hidden)
    names = [column.name for column in shown.columns]
    scored = shown.hidden.sum(0)
    curves = {name: tuple(curve.tolist()) for name, curve in imputer.history_["log_likelihood"].items()}
    first = trace.gradients[0].astype(np.float64) if len(trace.gradients) else np.zeros(0)
    return ShortTraining(
        method,
        len(imputer.history_["elbo"]),
        n_rows,
        curves,
        dict(imputer.baseline_),
        {name: float(error) for name, error in zip(names, errors, strict=True) if not np.isnan(error)},
        {name: float(error) for name, error in zip(names, averages, strict=True) if not np.isnan(error)},
        {name: int(n) for name, n in zip(names, scored, strict=True) if n},
        dict(zip(curves, (first / max(first.sum(), 1e-300)).tolist(), strict=True)),
        # A model that predicts cell by cell scores different cells, and a different number of them, in each epoch.
        _overlooked(shown, predicted, {} if imputer.ensemble_.model.spec.cell_by_cell else curves, imputer.baseline_),
        tuple(notes),
    )


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the messages of Evenly's warnings; issue other warnings again."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EvenlyWarning)
        yield notes
    for one in caught:
        if issubclass(one.category, EvenlyWarning):
            notes.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _overlooked(
    shown: Coded, predicted: Floats, curves: Mapping[str, Sequence[float]], baseline: Mapping[str, float]
) -> tuple[str, ...]:
    """Return the columns that are learned no better than their own average, as defined above."""
    alone = mean_or_mode(shown.columns, shown.truth, shown.hidden)
    found = []
    for j, column in enumerate(shown.columns):
        if column.kind == "ignore":
            continue
        hidden, truth = shown.hidden[:, j], shown.truth[:, j]
        n_observed = int((~np.isnan(truth) & ~hidden).sum())
        curve = curves.get(column.name, ())
        fitted = bool(curve) and curve[-1] > baseline[column.name] + LEAST_GAIN + 1.0 / n_observed
        losses, baseline_losses = (_losses(column, truth[hidden], one[hidden, j]) for one in (predicted, alone))
        if not fitted and not (hidden.sum() >= FEWEST and clearly_better(losses, baseline_losses)):
            found.append(column.name)
    return tuple(found)


def _losses(column: Column, truth: Floats, predicted: Floats) -> Floats:
    """Return the loss of each cell, whose mean determines the error."""
    if column.has_classes:
        return np.asarray(truth != predicted, np.float64)
    unit = max(float(np.abs(truth).max(initial=0.0)), 1e-300)  # squares of 1e300 overflow
    return np.asarray((truth / unit - predicted / unit) ** 2)
