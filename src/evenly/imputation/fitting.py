"""Fitting an ensemble to a table: describe columns, train networks, calibrate predictions on validation cells.

All choices are made on observed cells of the table, never on cells to impute.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt

from evenly._support import Deadline, EvenlyWarning, InterruptedWarning, Stages
from evenly.imputation.calibrating import calibrate_ensemble, without
from evenly.imputation.callbacks import Callback, Epoch, TrainingStart, watching
from evenly.imputation.column_likelihoods import ScoreColumns, score_columns
from evenly.imputation.columns import ColumnSpec, LikelihoodColumn, ModelledColumn, UnmodelledColumn, describe
from evenly.imputation.cost import COMPILED, calibration_seconds, fit_stages, training_seconds
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble, LearningCurves, chunk_size, chunks
from evenly.imputation.growing import Work
from evenly.imputation.learned_rows import LearnedRows
from evenly.imputation.level_means import fit_means
from evenly.imputation.panels import Panel
from evenly.imputation.rules import complete
from evenly.imputation.settings import FitSettings
from evenly.imputation.streaming import BatchStream, Source
from evenly.likelihoods import UNIT_NORMAL
from evenly.metrics import count_held, hold_out
from evenly.models import Data, History, Info, Layout, Model, Plan, Stream, Trace, Watchers
from evenly.scaling import FittedColumn, LipschitzScaler
from evenly.tables import Floats, TableColumn

Flags = npt.NDArray[np.bool_]

CALIBRATING = "calibrating"
TRAINING_SHARE = 0.6
"""How much of a time limit networks get; the rest is for the experts and for calibration."""
HARDLY = 0.05
"""If a time limit leaves less than this share of the epochs, a warning says so."""


def fit_ensemble(source: Source, scaler: LipschitzScaler, settings: FitSettings) -> Ensemble:
    """Describe the columns, train the networks and calibrate them."""
    columns = scaler.columns_
    predictors, key = settings.read_predictors(columns), settings.find_key(columns, source)
    n_networks = settings.n_networks(source.n_rows)
    hurried = settings.deadline.exists  # clocks of other machines tell other times
    together = n_networks > 1 and source.files is None and not hurried and joblib.effective_n_jobs(None) > 1
    stages = _plan_stages(source, len(columns), settings, together=together)
    places, observed = source.sample(columns, np.random.default_rng(settings.seed))
    book = settings.rules.bind(columns, seen=observed)
    values = complete(book, columns, observed, source.cells or None)
    specs = _describe(columns, values, observed, settings)
    n_modelled = sum(one.modelled for one in specs)
    model = settings.spec.load().of_size(source.n_rows, n_modelled, settings.model_sizes)
    ensemble = Ensemble(model, specs, source.n_rows, predictors=predictors)
    if not n_modelled:
        return ensemble
    table = ensemble.encode(values)
    if model.spec.reads_inputs:
        ensemble, table = _with_other_rows(ensemble, values, None if key is None else (columns[key], source.cells[key]))
    data = table.data(seed=scaler.seed_, with_inputs=model.spec.reads_inputs, keys=places)
    plan = replace(settings.plan(source.n_rows, table, streamed=source.files is not None), target=scaler.target_)
    share = TRAINING_SHARE if model.spec.calibrated else 1.0
    score = None
    if any(one.trace_likelihoods for one in settings.callbacks) and source.files is None:
        score = score_columns(model, table, data, settings.seed)
    job = _Job(model, table, data, plan, settings.seed, settings.deadline.share(share), score)
    stream = None
    if source.files is not None and places is not None:
        stream = BatchStream(source.files, ensemble, places, plan.batch_size, settings.seed, scaler.seed_, table, book)
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
    ensemble = replace(ensemble, scales=moved_scales(table.specs, [one.log_scales for one in trained]))
    if model.expected_row_variables and settings.paper:  # after short trainings they lag behind inferred ones
        ensemble = replace(ensemble, learned=LearnedRows.of(table.values, [one.rows for one in trained]))
    cut = len(trained) < n_networks and job.deadline.left() > 0.0  # and not by the deadline
    if cut or any(one.history.interrupted for one in trained):
        ensemble = replace(ensemble, interrupted=True)
    elif hurried:
        _warn_if_hardly_trained(trained, plan.epochs, n_networks)
    try:
        with stages.at(CALIBRATING):
            held = [one.held for one in trained if one.held is not None] if model.spec.calibrated else []
            work = Work(np.random.default_rng((settings.seed, n_networks)), settings.effort, settings.deadline)
            return calibrate_ensemble(ensemble, table, data, held, work) if held else ensemble
    except KeyboardInterrupt:
        message = "interrupted: predictions are not calibrated; what was learned so far is used"
        warnings.warn(message, InterruptedWarning, stacklevel=3)
        return replace(ensemble, interrupted=True)


def moved_scales(specs: Sequence[ModelledColumn], log_scales: Sequence[Floats | None]) -> dict[str, float]:
    """Return the scales that training ended with, by feature, from by how much their logs have moved in each network.

    They are the geometric mean over networks; none under rules that move no scales.
    """
    some = [one for one in log_scales if one is not None]
    if not some:
        return {}
    found: dict[str, float] = {}
    at, log_scale = 0, np.mean(some, axis=0)
    for spec in specs:
        if isinstance(spec, LikelihoodColumn):
            n = len(spec.likelihoods)
            features = zip(spec.fitted.features, spec.fitted.fits, log_scale[at : at + n], strict=True)
            found |= {one.name: float(fit.scale * np.exp(moved)) for one, fit, moved in features if moved}
        at += len(spec.likelihoods)
    return found


def _with_other_rows(
    ensemble: Ensemble, values: Sequence[Floats | None], key: tuple[FittedColumn, TableColumn] | None
) -> tuple[Ensemble, EncodedTable]:
    """Return the ensemble, and the table encoded for it, with what other rows of a class or a unit say."""
    table = ensemble.encode(values)
    ensemble = replace(ensemble, levels=fit_means(table.specs, table.values))
    if key is None:
        return ensemble, ensemble.encode(values)
    panel = Panel.of(key[0].column, key[1].fresh(), table.specs, table.values)
    ensemble = replace(ensemble, panel=panel)
    return ensemble, replace(ensemble.encode(values), unit_inputs=panel.inputs_of_fit())


def _warn_if_hardly_trained(trained: Sequence[_Network], n_epochs: int, n_networks: int) -> None:
    done = len(trained[0].history.elbo)
    if done < HARDLY * n_epochs:
        warnings.warn(
            f"time_limit: time was over after {done} of {n_epochs} epochs of {len(trained)} of {n_networks} networks; "
            "what was learned is used. Predictions get better with more time",
            EvenlyWarning,
            stacklevel=4,
        )


def _plan_stages(source: Source, n_columns: int, settings: FitSettings, *, together: bool) -> Stages:
    """Plan the stages of a fit."""
    plan = {"paper": settings.paper, "streamed": source.files is not None}
    size = source.n_rows, n_columns
    seconds = training_seconds(settings.spec, settings.training, size, settings.effort, **plan)
    names = fit_stages(seconds, together=together)
    if len(names) < len(seconds):
        seconds = [sum(seconds)]
    planned = dict(zip(names, seconds, strict=True))
    return Stages(planned | {CALIBRATING: calibration_seconds(settings.spec, *size, settings.effort)})


def _describe(
    columns: Sequence[FittedColumn],
    values: Sequence[Floats | None],
    observed: Sequence[Floats | None],
    settings: FitSettings,
) -> tuple[ColumnSpec, ...]:
    """Decide how each column is modelled, by its values and those of them that were observed; warns if it cannot be."""
    specs = tuple(
        describe(
            one,
            own,
            binned=settings.is_binned(one.label, one.column.name),
            method=settings.method,
            raw_inputs=settings.as_published,
            recorded=recorded,
        )
        for one, own, recorded in zip(columns, values, observed, strict=True)
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
    trained = observed - held / n_rows
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
    deadline: Deadline
    score_columns: ScoreColumns | None = None


class _Network(NamedTuple):
    """A trained network: its validation cells, parameters, history, gradient trace, rows' variables, moved scales."""

    held: Flags | None
    shared: Any
    history: History
    trace: Trace
    rows: Mapping[str, npt.NDArray[Any]]
    log_scales: Floats | None = None


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
                trained.append(_train(job, i, on_epoch and partial(on_epoch, i), stream, share=1.0 / (n_networks - i)))
        except KeyboardInterrupt:  # outside an epoch: the current network is lost
            if not trained:
                raise
            message = f"interrupted: {i} of {n_networks} networks were trained; these are used"
            warnings.warn(message, InterruptedWarning, stacklevel=2)
            break
        if trained[-1].history.interrupted or job.deadline.left() <= 0.0:
            break
    return trained


def _train(
    job: _Job,
    i: int,
    on_epoch: Callable[[float, Info], bool] | None = None,
    stream: Streaming | None = None,
    *,
    share: float = 1.0,
) -> _Network:
    """Train the i-th network; if it supports early stopping, hold out its own validation cells.

    Parameters
    ----------
    share : float
        The share of the time to the deadline that it may take.
    """
    model, table, data, plan, seed, deadline, score = job
    layout, validate, held = table.layout, None, None
    if model.hides_cells:
        held = hold_out(data.mask[:, : layout.n_columns], np.random.default_rng((seed, i)))
    shown = table.learn_from(data, held)
    if held is not None:
        shown = shown._replace(mask=without(data.mask, held))
        validate = validation_score(model, layout, shown, held)
    with nullcontext() if stream is None else stream(i, held) as parts:
        watchers = Watchers(validate, on_epoch, score if i == 0 else None, deadline, share)
        return _Network(held, *model.fit(layout, shown, seed + i, plan, watchers, parts))


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
