"""Which columns would be learned and which overlooked: smoothness, gradients, and a short real training.

Smoothness and gradient shares come from the columns' statistics alone. The share is by the expected size of one
cell's gradient in the natural parameters of its scaled features, at the column's own fit: there the gradient is
the sufficient statistics minus their mean, so that its mean square is the trace of the Fisher matrix, and the
share is the root of that trace divided by the sum of these roots over columns. Discrete likelihoods cannot be
scaled, so that a discrete column is the same under none, std, max and iqr; under `lip` it gets the Gamma trick, as
in `lip-gamma`, and every column has the same smoothness (but where no scale reaches the target: `below_floor`).

A column is overlooked if neither of two things holds after the short training: its log-likelihood is more than
0.01 + 1 / n nats (of n observed cells) above that of a model that knows the column alone; or its error on the
hidden cells is smaller than that of the mean or the mode by more than one standard error of the difference (with
10 hidden cells or more). A column that no other column tells anything about is not overlooked, as long as the
model describes its cells when it sees them; but for `masked`, which does not see them, and whose log-likelihood
varies too much from epoch to epoch: there the error alone decides.

Without the training no JAX is needed.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evenly._support import EvenlyWarning, TableError, require
from evenly.evaluation.diagnosis import SCALINGS, ColumnBalance, Diagnosis, ShortTraining, give_verdict
from evenly.imputation import GradientTrace, Imputer, Training
from evenly.likelihoods import Likelihood, is_registered
from evenly.metrics import baseline_errors, clearly_better, column_errors, hide_keeping_two, mean_or_mode
from evenly.models import SPECS
from evenly.scaling import (
    ColumnStatistics,
    Feature,
    FittedColumn,
    FittedScale,
    LipschitzScaler,
    Outcome,
    feature_statistics,
    features_of,
    get_method,
)
from evenly.tables import Column, Floats, Schema, Table, Value, coded, number_table, open_table

__all__ = ["SCALINGS", "ColumnBalance", "Diagnosis", "ShortTraining", "diagnose"]

Flags = npt.NDArray[np.bool_]

LEARNING_RATE = 1e-3
"""That of the VAE, and the scaler's own: a target needs one even where nothing is trained."""
MOST_ROWS = 20_000
"""Rows of a short training at most: 2,000 hidden cells of each tell an error to some 2 %."""
STEPS = 500
"""Of a short training. Far from the end of one, which is the point: who is heard late shows only before."""
LEAST_EPOCHS = 3
FEW_ROWS, BATCH, SMALL_BATCH = 2_000, 256, 128
"""Rows a step; fewer where rows are few."""
LEAST_GAIN = 0.01
"""Nats that a cell must gain over knowing its column alone: 1 % more likely. Less is the noise of the last epoch."""
FEWEST = 10
"""Fewer hidden cells say nothing about an error."""


def diagnose(
    table: Any,
    *,
    methods: Sequence[str] = ("std-none", "lip-gamma"),
    model: str = "vae",
    train: bool = True,
    epochs: int | Literal["auto"] = "auto",
    share: float = 0.1,
    kinds: Mapping[Any, str] | None = None,
    likelihoods: Mapping[Any, str | Likelihood] | None = None,
    schema: Schema | str | Path | None = None,
    missing: Mapping[Any, Sequence[Value]] | Sequence[Value] | None = None,
    learning_rate: float | Literal["auto"] = "auto",
    random_state: Any = None,
    verbose: int = 0,
) -> Diagnosis:
    """Say how evenly the columns of a table would be learned, and whom a short real training overlooks.

    What the numbers mean, and when a column counts as overlooked, is on the page about diagnosis.

    Parameters
    ----------
    table : dataframe or array
        As for `Imputer`.
    methods : sequence of str
        The methods to train with, the one to compare with first.
    model : {"vae", "masked", "mixture", "factorization"}
        What is trained.
    train : bool
        Whether to train; without, no JAX is needed.
    epochs : int or "auto"
        How often a training sees its rows, of which it takes 20,000 at most; "auto": some 500 steps of 256 rows (128
        below 2,000 rows), in 3 epochs or more.
    share : float
        Of each column's observed cells: how many are hidden from the trainings, to score on.
    kinds, likelihoods, schema, missing
        As in `LipschitzScaler`.
    learning_rate : float or "auto"
        Of the trainings, and of the target under `lip`; "auto" is that of the model, 0.001 where nothing is trained.
    random_state : int, RandomState or None
        Seeds which cells are hidden, and the trainings.
    verbose : int
        Show a progress bar for each training.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.normal(0.0, 1.0, 200), rng.normal(900.0, 30.0, 200)])
    >>> found = diagnose(table, train=False, kinds={"x1": "real"})
    >>> {one.column: round(one.gradient_share["std"], 3) for one in found.columns}
    {'x0': 0.029, 'x1': 0.971}
    >>> {one.column: round(one.smoothness["lip"]) for one in found.columns}
    {'x0': 500, 'x1': 500}
    """
    declared = {"kinds": kinds, "likelihoods": likelihoods, "schema": schema, "missing": missing}
    chosen = tuple(dict.fromkeys([methods] if isinstance(methods, str) else methods))
    request = _Request(chosen, model, epochs, learning_rate, share, random_state, verbose)
    return _diagnose(table, declared, request, train=train)


class _Request(NamedTuple):
    """Which short trainings are asked for."""

    methods: tuple[str, ...]
    model: str
    epochs: Any
    learning_rate: Any
    share: Any
    random_state: Any
    verbose: int

    def check(self, *, train: bool) -> float:
        """Refuse settings before any long work; returns the learning rate."""
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


def _diagnose(table: Any, declared: dict[str, Any], request: _Request, *, train: bool) -> Diagnosis:
    rate = request.check(train=train)
    opened = open_table(table, estimator="diagnose", keep=True)
    # Quartiles are statistics of this method only; the scales of the others follow from the same statistics.
    scaler = LipschitzScaler("iqr-none", learning_rate=rate, **declared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)  # what is not modelled is part of the answer
        columns = scaler.fit(opened).columns_
    balances, passed = _balance(columns, rate)
    trainings: tuple[ShortTraining, ...] = ()
    if train and balances:
        seed = int(check_random_state(request.random_state).randint(2**31 - 1))
        shown = _hide(opened, columns, {one.column for one in balances}, float(request.share), seed)
        own = request._replace(learning_rate=rate, random_state=seed)
        trainings = tuple(_train(shown, method, own) for method in request.methods)
    return Diagnosis(opened.n_rows, balances, trainings, passed, give_verdict(balances, trainings))


# --- from statistics alone ----------------------------------------------------------------------------------------


def _balance(columns: Sequence[FittedColumn], rate: float) -> tuple[tuple[ColumnBalance, ...], dict[str, str]]:
    """Return the balance of the columns that can be modelled, and why the others cannot."""
    reasons = {one.column.name: _no_variable(one) for one in columns}
    n_scaled = sum(reason is None for reason in reasons.values())
    found: list[tuple[Column, dict[str, float], Floats]] = []
    for place, fitted in enumerate(columns):
        if reasons[fitted.column.name] is None:
            smoothness, loudness = _measure(place, fitted, 1.0 / (n_scaled * rate))
            if np.isfinite(loudness).all():
                found.append((fitted.column, smoothness, loudness))
            else:
                reasons[fitted.column.name] = Outcome.OUT_OF_RANGE.remedy
    loud = np.array([one for _, _, one in found]).reshape(-1, len(SCALINGS))
    shares = np.exp(loud - loud.max(0, initial=-math.inf))
    shares /= shares.sum(0)
    balances = tuple(
        ColumnBalance(
            column.name, column.kind, str(column.likelihood), smoothness, dict(zip(SCALINGS, own.tolist(), strict=True))
        )
        for (column, smoothness, _), own in zip(found, shares, strict=True)
    )
    return balances, {name: reason for name, reason in reasons.items() if reason is not None}


def _no_variable(fitted: FittedColumn) -> str | None:
    """Say why a column cannot be modelled; None if it can."""
    if not fitted.statistics.n:
        return "no data: no observed cells"
    if fitted.column.kind == "ignore":
        return "declared `ignore`" if fitted.column.note == "declared" else fitted.column.note or "declared `ignore`"
    return "constant: all observed cells are equal" if fitted.statistics.constant else None


def _measure(place: int, fitted: FittedColumn, target: float) -> tuple[dict[str, float], Floats]:
    """Return a column's smoothness, and the log of the size of its gradient, under each scaling."""
    assert fitted.family is not None
    plain = fitted.features[0]
    split = features_of(place, fitted.column, fitted.family, "gamma")
    fits = {name: _fit(plain, fitted.statistics, f"{name}-none", 1.0) for name in ("std", "max", "iqr")}
    lip = [_fit(one, fitted.statistics, "lip-gamma", target / len(split)) for one in split]
    smoothness = {"none": fits["std"].smoothness_before}
    smoothness |= {name: fit.smoothness_after for name, fit in fits.items()}
    smoothness["lip"] = sum(fit.smoothness_after for fit in lip)
    # Relative to the standardized column, whose parameters are of no strange size.
    start = fits["std"]
    scales = [1.0, *(fit.scale for fit in fits.values()), lip[0].scale]
    loudness = [_log_loudness([plain], [start], math.log(scale) - math.log(start.scale)) for scale in scales]
    if split[0].trick != "none":
        loudness[-1] = _log_loudness(split, lip, 0.0)
    return smoothness, np.array(loudness)


def _fit(feature: Feature, of: ColumnStatistics, method: str, target: float) -> FittedScale:
    return get_method(method).fit_scale(feature, feature_statistics(feature, of), target, bound="exact", constant=False)


def _log_loudness(features: Sequence[Feature], fits: Sequence[FittedScale], log_scale: float) -> float:
    """Return the log of the root mean square of a cell's gradient, if its fitted features were scaled once more.

    In logs, neither a huge column nor a tiny one leaves the range of numbers. NaN without a fit.
    """
    if any(fit.natural is None for fit in fits):
        return math.nan
    parts = []
    with np.errstate(all="ignore"):
        for feature, fit in zip(features, fits, strict=True):
            variances = np.diagonal(feature.likelihood.fisher(fit.natural))
            factors = np.asarray(feature.likelihood.log_factors(np.float64(log_scale)))
            parts.append(np.log(variances) + 2.0 * factors)
        return 0.5 * float(np.logaddexp.reduce(np.concatenate(parts)))


# --- a short training ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coded:
    """A table as numbers and codes with some of its cells hidden, and all that a training on it needs to know."""

    columns: list[Column]
    table: Any
    truth: Floats
    hidden: Flags
    kinds: dict[Any, str]
    likelihoods: dict[Any, Likelihood]
    """Of columns with a likelihood of the user's own, which no schema holds."""


def _hide(opened: Table, columns: Sequence[FittedColumn], names: set[str], share: float, seed: int) -> Coded:
    """Take some rows, encode their cells and hide a share of the observed ones.

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
    """Return how often a short training sees its rows.

    Examples
    --------
    >>> short_epochs(303, 128), short_epochs(20_000, 256)
    (167, 6)
    """
    return max(LEAST_EPOCHS, round(STEPS / -(-n_rows // batch_size)))


def _train(shown: Coded, method: str, request: _Request) -> ShortTraining:
    """Train on the visible cells, and score the hidden ones."""
    n_rows = len(shown.truth)
    size = BATCH if n_rows >= FEW_ROWS else SMALL_BATCH
    epochs = short_epochs(n_rows, size) if request.epochs == "auto" else request.epochs
    trace = GradientTrace(0)
    imputer = Imputer(
        request.model,
        method,
        schema=Schema(columns=shown.columns),
        kinds=shown.kinds,
        likelihoods=shown.likelihoods,
        training=Training(epochs=epochs, batch_size=size, n_networks=1, learning_rate=request.learning_rate),
        callbacks=[trace],
        random_state=request.random_state,
        verbose=request.verbose,
    )
    with _listening() as notes:
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
        # A model that predicts cell by cell scores other cells, and another number of them, in each epoch.
        _overlooked(shown, predicted, {} if imputer.ensemble_.model.spec.cell_by_cell else curves, imputer.baseline_),
        tuple(notes),
    )


@contextmanager
def _listening() -> Iterator[list[str]]:
    """Collect what Evenly warns of; other warnings go their way."""
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
    """Return the columns that are known no better than by their own average, as `diagnose` defines it."""
    alone = mean_or_mode(shown.columns, shown.truth, shown.hidden)
    found = []
    for j, column in enumerate(shown.columns):
        if column.kind == "ignore":
            continue
        hidden, truth = shown.hidden[:, j], shown.truth[:, j]
        n_observed = int((~np.isnan(truth) & ~hidden).sum())
        curve = curves.get(column.name, ())
        fitted = bool(curve) and curve[-1] > baseline[column.name] + LEAST_GAIN + 1.0 / n_observed
        ours, others = (_losses(column, truth[hidden], one[hidden, j]) for one in (predicted, alone))
        if not fitted and not (hidden.sum() >= FEWEST and clearly_better(ours, others)):
            found.append(column.name)
    return tuple(found)


def _losses(column: Column, truth: Floats, predicted: Floats) -> Floats:
    """Return the loss of each cell whose mean the error goes by."""
    if column.has_classes:
        return np.asarray(truth != predicted, np.float64)
    unit = max(float(np.abs(truth).max(initial=0.0)), 1e-300)  # squares of 1e300 are no numbers
    return np.asarray((truth / unit - predicted / unit) ** 2)
