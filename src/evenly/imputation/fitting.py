"""Fitting an ensemble to a table: describe columns, train networks, calibrate predictions on validation cells.

All choices are made on observed cells of the table, never on cells to impute.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning, InterruptedWarning, Stages, advance
from evenly.imputation.calibration import Calibration
from evenly.imputation.calibration_choice import (
    ValidationCells,
    calibrate,
    choose_neighbour_weight,
    choose_stacking_weights,
)
from evenly.imputation.callbacks import Callback, Epoch, TrainingStart, watching
from evenly.imputation.columns import ColumnSpec, UnmodelledColumn, describe
from evenly.imputation.cost import COMPILED, calibration_seconds, fit_stages, training_seconds
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble, LearningCurves, chunk_size, chunks
from evenly.imputation.gaussian import fit_validated
from evenly.imputation.level_means import fit_means
from evenly.imputation.neighbours import Neighbours, index_rows
from evenly.imputation.predictive import Predictive
from evenly.imputation.predictors import Pass
from evenly.imputation.settings import FitSettings
from evenly.imputation.streaming import BatchStream, Source
from evenly.likelihoods import UNIT_NORMAL
from evenly.metrics import count_held, hold_out
from evenly.models import Data, History, Info, Layout, Model, Plan, Stream, Trace, Watchers
from evenly.scaling import FittedColumn, LipschitzScaler
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

CALIBRATING = "calibrating"
MOST_COMPARED = 4_096
"""The largest number of rows with validation cells to search near-duplicates of."""


def fit_ensemble(source: Source, scaler: LipschitzScaler, settings: FitSettings) -> Ensemble:
    """Describe the columns, train the networks and calibrate them."""
    columns = scaler.columns_
    predictors = settings.read_predictors(columns)
    n_networks = settings.training.networks_of(settings.spec, source.n_rows)
    together = n_networks > 1 and source.files is None and joblib.effective_n_jobs(None) > 1
    stages = _plan_stages(source, len(columns), settings, together=together)
    places, values = source.sample(columns, np.random.default_rng(settings.seed))
    specs = _describe(columns, values, settings)
    n_modelled = sum(one.modelled for one in specs)
    model = settings.spec.load().of_size(source.n_rows, n_modelled, settings.training.model_sizes)
    ensemble = Ensemble(model, specs, source.n_rows, predictors=predictors)
    if not n_modelled:
        return ensemble
    table = ensemble.encode(values)
    if model.spec.reads_inputs:
        ensemble = replace(ensemble, levels=fit_means(table.specs, table.values))
        table = ensemble.encode(values)
    data = table.data(seed=scaler.seed_, with_inputs=model.spec.reads_inputs, keys=places)
    plan = settings.plan(source.n_rows, table, streamed=source.files is not None)
    job = _Job(model, table, data, plan, settings.seed)
    stream = None
    if source.files is not None and places is not None:
        stream = BatchStream(source.files, ensemble, places, plan.batch_size, settings.seed, scaler.seed_, table)
    units = _units(table, data, model, source.n_rows)
    start = TrainingStart(table.layout.names, plan.epochs, n_networks, units.baseline)
    watchers = settings.callbacks if model.spec.trains else ()
    with watching(watchers, start) as traces:
        if together:
            with stages.at("training"):
                trained = list(joblib.Parallel()(joblib.delayed(_train)(job, i) for i in range(n_networks)))
        else:
            trained = _train_all(job, stages, n_networks, _on_epoch(watchers, units), stream)
        traces.append(trained[0].trace)
    COMPILED.add(settings.spec.name)
    ensemble = replace(ensemble, networks=[one.shared for one in trained], curves=units.curves(trained[0].history))
    if len(trained) < n_networks or any(one.history.interrupted for one in trained):
        ensemble = replace(ensemble, interrupted=True)
    try:
        with stages.at(CALIBRATING):
            return _calibrate(ensemble, table, data, trained, np.random.default_rng((settings.seed, n_networks)))
    except KeyboardInterrupt:
        message = "interrupted: predictions are not calibrated; what was learned so far is used"
        warnings.warn(message, InterruptedWarning, stacklevel=3)
        return replace(ensemble, interrupted=True)


def _plan_stages(source: Source, n_columns: int, settings: FitSettings, *, together: bool) -> Stages:
    """Plan the stages of a fit."""
    plan = {"paper": settings.paper, "streamed": source.files is not None}
    seconds = training_seconds(settings.spec, settings.training, source.n_rows, n_columns, **plan)
    names = fit_stages(seconds, together=together)
    if len(names) < len(seconds):
        seconds = [sum(seconds)]
    planned = dict(zip(names, seconds, strict=True))
    return Stages(planned | {CALIBRATING: calibration_seconds(settings.spec, source.n_rows, n_columns)})


def _describe(
    columns: Sequence[FittedColumn], values: Sequence[Floats | None], settings: FitSettings
) -> tuple[ColumnSpec, ...]:
    """Decide how each column is modelled; warns of columns that cannot be."""
    specs = tuple(
        describe(
            one,
            own,
            binned=settings.is_binned(one.label, one.column.name),
            method=settings.method,
        )
        for one, own in zip(columns, values, strict=True)
    )
    far = [one.name for one in specs if isinstance(one, UnmodelledColumn) and one.too_far]
    if far:
        warnings.warn(
            f"too far from 0 for their spread: {far}: the median is imputed; subtract a constant first",
            EvenlyWarning,
            stacklevel=4,
        )
    return specs


# --- reports to callbacks -----------------------------------------------------------------------------------------


class _Units(NamedTuple):
    """Converts log-likelihoods per row into means over training cells, in the table's units."""

    names: tuple[str, ...]
    trained: Floats
    """The share of each column's cells that are trained on, that is, observed and not validation cells."""
    log_jacobian: Floats
    baseline: Floats

    def of(self, log_likelihood: Any) -> Floats:
        """Return the mean log-likelihood of each column's training cells, in the table's units."""
        return np.asarray(log_likelihood / self.trained + self.log_jacobian)

    def curves(self, history: History) -> LearningCurves:
        """Return the learning curves of a training."""
        by_column = self.of(history.log_likelihood.reshape(-1, len(self.names)))
        baseline = dict(zip(self.names, self.baseline.tolist(), strict=True))
        return LearningCurves(history.elbo, {name: by_column[:, i] for i, name in enumerate(self.names)}, baseline)


def _units(table: EncodedTable, data: Data, model: Model, n_rows: int) -> _Units:
    specs = [one.spec for one in table.columns]
    log_jacobian = np.array([one.log_jacobian for one in specs])
    naturals = [natural for one in specs for natural in one.marginal_naturals]
    observed = np.array([one.observed for one in specs])
    baseline = table.layout.log_likelihood(naturals, data).mean(0) / observed + log_jacobian
    held = count_held(data.mask[:, : table.layout.n_columns]) if model.hides_cells else 0
    trained = (np.array([one.fitted.statistics.n for one in specs]) - held) / n_rows
    return _Units(table.layout.names, trained, log_jacobian, baseline)


def _on_epoch(callbacks: Sequence[Callback], units: _Units) -> Callable[[int, float, Info], bool] | None:
    if not callbacks:
        return None

    def report(network: int, epoch: float, info: Info) -> bool:
        seen = Epoch(network, epoch, float(info.elbo), units.of(np.asarray(info.log_likelihood)))
        answers = [one.on_epoch(seen) for one in callbacks]
        return any(answers)

    return report


# --- networks -----------------------------------------------------------------------------------------------------


class _Job(NamedTuple):
    """Everything needed to train a network, possibly on another machine."""

    model: Model
    table: EncodedTable
    data: Data
    plan: Plan
    seed: int


class _Network(NamedTuple):
    """A trained network: its validation cells, shared parameters, history and gradient trace."""

    held: Flags | None
    shared: Any
    history: History
    trace: Trace


Streaming = Callable[[int, Flags | None], AbstractContextManager[Stream]]


def _train_all(
    job: _Job,
    stages: Stages,
    n_networks: int,
    on_epoch: Callable[[int, float, Info], bool] | None,
    stream: Streaming | None,
) -> list[_Network]:
    """Train the networks one after the other."""
    trained: list[_Network] = []
    for i, name in enumerate(fit_stages([0.0] * n_networks, together=False)):
        try:
            with stages.at(name):
                trained.append(_train(job, i, on_epoch and partial(on_epoch, i), stream))
        except KeyboardInterrupt:  # outside an epoch: the current network is lost
            if not trained:
                raise
            message = f"interrupted: {i} of {n_networks} networks were trained; these are used"
            warnings.warn(message, InterruptedWarning, stacklevel=2)
            break
        if trained[-1].history.interrupted:
            break
    return trained


def _train(
    job: _Job, i: int, on_epoch: Callable[[float, Info], bool] | None = None, stream: Streaming | None = None
) -> _Network:
    """Train the i-th network; if it supports early stopping, hold out its own validation cells."""
    model, table, data, plan, seed = job
    layout, validate, held = table.layout, None, None
    if model.hides_cells:
        held = hold_out(data.mask[:, : layout.n_columns], np.random.default_rng((seed, i)))
    shown = table.learn_from(data, held)
    if held is not None:
        shown = shown._replace(mask=without(data.mask, held))
        validate = validation_score(model, layout, shown, held)
    with nullcontext() if stream is None else stream(i, held) as parts:
        return _Network(held, *model.fit(layout, shown, seed + i, plan, Watchers(validate, on_epoch), parts))


def without(mask: Flags, held: Flags) -> Flags:
    """Return the mask without the held-out cells; the mask may have more (padded) columns than `held`."""
    shown = mask.copy()
    shown[:, : held.shape[1]] &= ~held
    return shown


def validation_score(model: Model, layout: Layout, data: Data, held: Flags) -> Callable[[Any], float] | None:
    """Return a score of shared parameters: the mean over columns of the log-likelihood of validation cells.

    None if there are no such cells. They must be hidden in `data`. For a binned number, only the squared error counts:
    its bins become overconfident, which calibration corrects, before its mean is learned.
    """
    rows = np.flatnonzero(held.any(1))
    if not len(rows):
        return None
    some = [(where, data.rows(padded)) for where, padded in chunks(rows, chunk_size(len(held)))]
    scored = [
        f
        for f in range(layout.n_features)
        if not (f and layout.columns[f] == layout.columns[f - 1] and layout.likelihoods[f - 1] is UNIT_NORMAL)
    ]
    counts = np.maximum(held.sum(0), 1)

    def score(shared: Any) -> float:
        found = np.zeros(layout.n_columns)
        for where, part in some:
            naturals = model.predict_natural(layout, shared, part)
            for f in scored:
                mine = np.flatnonzero(held[where, layout.columns[f]])
                natural = np.asarray(naturals[f][mine], np.float64)
                cells = layout.likelihoods[f].log_density(layout.target(part, f)[mine].astype(np.float64), natural)
                found[layout.columns[f]] += cells.sum()
        mean = float(np.mean(found / counts))
        return mean if np.isfinite(mean) else -np.inf

    return score


# --- calibration --------------------------------------------------------------------------------------------------


class _Predicted(NamedTuple):
    """A network's predictions of a feature's validation cells: rows and natural parameters."""

    rows: Rows
    naturals: Floats


def _calibrate(
    ensemble: Ensemble, table: EncodedTable, data: Data, trained: Sequence[_Network], rng: np.random.Generator
) -> Ensemble:
    """Calibrate the networks' predictions, and fit the experts that complement them."""
    held = [one.held for one in trained if one.held is not None] if ensemble.model.spec.calibrated else []
    if not held:
        return ensemble
    predicted = [
        _predict_held(ensemble, table.learn_from(data, own), own, one.shared)
        for own, one in zip(held, trained, strict=False)
    ]
    advance(0.2)
    gaussian, by_expert = fit_validated(table, held, rng, ensemble.passes)
    advance(0.5)
    cells = [_validation_cells(table, j, predicted, [one[j] for one in by_expert]) for j in range(len(table.columns))]
    weights = choose_stacking_weights(cells)
    chosen = [calibrate(one, Calibration(stacking_weight=w)) for one, w in zip(cells, weights, strict=True)]
    advance(0.7)
    first = [_validation_cells(table, j, predicted[:1], [by_expert[0][j]]) for j in range(len(table.columns))]
    rows = [predicted[0][own][0].rows for own in table.features]
    chosen = _weigh_neighbours(table.calibrated(chosen), held[0], first, rows, rng, ensemble.passes)
    index = None
    if any(one.neighbours for one in chosen):
        index = index_rows(table.values, table.classes, rng)
    return replace(
        ensemble,
        calibrations=dict(zip(table.layout.names, chosen, strict=True)),
        gaussian=gaussian if any(one.stacking_weight for one in chosen) else None,
        neighbours=index,
    )


def _predict_held(ensemble: Ensemble, data: Data, held: Flags, shared: Any) -> list[_Predicted]:
    """Predict the validation cells of a network, feature by feature, each from the predictors of its column."""
    layout = ensemble.layout
    found: list[list[_Predicted]] = [[] for _ in layout.columns]
    groups = product(chunks(np.flatnonzero(held.any(1)), chunk_size(len(held))), ensemble.passes)
    for (where, padded), one in groups:
        some = data.rows(padded)
        some = some._replace(mask=without(some.mask, held[padded] | one.hides))
        for f, natural in enumerate(ensemble.model.predict_natural(layout, shared, some)):
            if layout.columns[f] in one.targets:
                own = held[where, layout.columns[f]]
                found[f].append(_Predicted(where[own], np.asarray(natural[: len(where)][own], np.float64)))
    return [_together(of_feature) for of_feature in found]


def _together(some: Sequence[_Predicted]) -> _Predicted:
    nonempty = [one for one in some if len(one.rows)] or [_Predicted(np.zeros(0, np.intp), np.zeros((0, 0)))]
    rows, naturals = zip(*nonempty, strict=True)
    return _Predicted(np.concatenate(rows), np.concatenate(naturals))


def _validation_cells(
    table: EncodedTable, j: int, predicted: Sequence[list[_Predicted]], by_expert: Sequence[Predictive | None]
) -> ValidationCells:
    """Collect the validation cells of a column over all networks."""
    features = [_together(one) for one in zip(*(network[table.features[j]] for network in predicted), strict=True)]
    experts = [one for one in by_expert if one is not None]
    expert = experts[0].append(experts[1:]) if experts else None
    spec, values, _ = table.columns[j]
    return ValidationCells(spec, values[features[0].rows], [one.naturals for one in features], expert)


def _weigh_neighbours(
    table: EncodedTable,
    held: Flags,
    cells: Sequence[ValidationCells],
    rows_of_cells: Sequence[Rows],
    rng: np.random.Generator,
    passes: Sequence[Pass],
) -> list[Calibration]:
    """Choose the weight of near-duplicates for each column, on the first network's validation cells."""
    calibrations = [one.calibration for one in table.columns]
    rows = np.flatnonzero(held.any(1))
    if len(rows) > MOST_COMPARED:
        rows = np.sort(rng.choice(rows, MOST_COMPARED, replace=False))
    if not len(rows):
        return calibrations
    shown = [np.where(held[:, j], np.nan, own) for j, own in enumerate(table.values)]
    index = index_rows(shown, table.classes, rng)
    near_of: dict[int, Neighbours] = {}
    for each in passes:
        near_of |= dict.fromkeys(each.targets, index.find(each.show([own[rows] for own in shown])))
    for j, (one, own) in enumerate(zip(cells, rows_of_cells, strict=True)):
        compared = np.isin(own, rows)
        some = one._replace(
            truth=one.truth[compared],
            naturals=[natural[compared] for natural in one.naturals],
            expert=None if one.expert is None else one.expert.take(compared),
        )
        near = near_of[j].take(held[rows, j])
        calibrations[j] = choose_neighbour_weight(some, calibrations[j], near, j)
    return calibrations
