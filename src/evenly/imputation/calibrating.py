"""Calibrating a trained ensemble on validation cells, and fitting the experts that complement its networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import advance
from evenly.imputation.boost_fitting import fit_trees
from evenly.imputation.calibration import Calibration
from evenly.imputation.calibration_choice import (
    ValidationCells,
    calibrate,
    choose_neighbour_weight,
)
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble, chunk_size, chunks
from evenly.imputation.experts import Experts, join
from evenly.imputation.gaussian import Gaussian, fit_validated, no_gaussian
from evenly.imputation.growing import Grown, Work
from evenly.imputation.kernel_fitting import Regressed, fit_kernels
from evenly.imputation.neighbours import Neighbours, index_rows
from evenly.imputation.predictors import Pass
from evenly.imputation.row_filling import FEW_ROWS, HeldOut, RowFiller
from evenly.imputation.stacking import choose_stacking_weights
from evenly.imputation.tilt_fitting import Part, divide, fit_tilts
from evenly.models import Data
from evenly.predictive import Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

MOST_COMPARED = 4_096
"""The largest number of rows with validation cells to search near-duplicates of."""


def without(mask: Flags, held: Flags) -> Flags:
    """Return the mask without the held-out cells; the mask may have more (padded) columns than `held`."""
    shown = mask.copy()
    shown[:, : held.shape[1]] &= ~held
    return shown


class _Predicted(NamedTuple):
    """A network's predictions of a feature's validation cells: rows and natural parameters."""

    rows: Rows
    naturals: Floats


def calibrate_ensemble(
    ensemble: Ensemble, table: EncodedTable, data: Data, held: Sequence[Flags], work: Work
) -> Ensemble:
    """Calibrate the networks' predictions, and fit the experts that complement them.

    Parameters
    ----------
    held : sequence of arrays
        The validation cells of each network: rows x columns.
    work : Work
        After its deadline there are no experts and no near-duplicates.
    """
    pairs = zip(held, ensemble.networks, strict=True)
    predicted = [_predict_held(ensemble, table.learn_from(data, own), own, shared) for own, shared in pairs]
    advance(0.2)
    rng = work.rng
    late = work.deadline.left() <= 0.0
    gaussian, by_gaussian = no_gaussian(table, held) if late else fit_validated(table, held, rng, ensemble.passes)
    advance(0.4)
    parts = [] if gaussian is None else divide(data.mask[:, : table.layout.n_columns])
    pairs = zip(held, ensemble.networks, strict=True)
    sets = [HeldOut(own, [shared]) for own, shared in pairs] + [HeldOut(own) for own in parts]
    filler = None
    if gaussian is not None:
        weights = _choose_fill_weights(ensemble, table, predicted, by_gaussian)
        filler = RowFiller(ensemble, table, table.learn_from(data, None), gaussian, weights)
    grown = fit_trees(table, filler, ensemble.passes, sets, work)
    advance(0.6)
    regressed = fit_kernels(table, filler, ensemble.passes, sets, work)
    asked = [
        [Experts(by_gaussian[i][j], *_of_set(pair, i)) for i in range(len(held))]
        for j, pair in enumerate(zip(grown, regressed, strict=True))
    ]
    cells = [_validation_cells(table, j, predicted, own) for j, own in enumerate(asked)]
    start: dict[int, Calibration] = {}
    for one in ensemble.passes:  # columns that have other predictors know nothing of these columns' experts
        start |= zip(one.targets, choose_stacking_weights([cells[j] for j in one.targets]), strict=True)
    chosen = [calibrate(one, start[j]) for j, one in enumerate(cells)]
    if filler is not None:
        filled = zip(chosen, filler.weights.tolist(), strict=True)
        chosen = [replace(one, fill_weight=weight) for one, weight in filled]
    advance(0.7)
    first = [_validation_cells(table, j, predicted[:1], own[:1]) for j, own in enumerate(asked)]
    rows = [predicted[0][own][0].rows for own in table.features]
    if not late:
        chosen = _weigh_neighbours(table.calibrated(chosen), held[0], first, rows, rng, ensemble.passes)
    index = None
    if any(one.neighbours for one in chosen):
        index = index_rows(table.values, table.classes, rng)
    calibrated = _with_experts(replace(ensemble, neighbours=index), chosen, gaussian, grown, regressed)
    by_part = [
        [Experts(None, *_of_set(pair, len(held) + i)) for pair in zip(grown, regressed, strict=True)]
        for i in range(len(parts))
    ]
    return _with_tilts(
        calibrated, table.calibrated(chosen), data, filler, list(zip(sets[len(held) :], by_part, strict=True))
    )


def _choose_fill_weights(
    ensemble: Ensemble,
    table: EncodedTable,
    predicted: Sequence[list[_Predicted]],
    by_gaussian: Sequence[Sequence[Predictive | None]],
) -> Floats:
    """Choose the weight of the Gaussian expert in what is filled into the cells of each column.

    From `FEW_ROWS` rows it has none: networks have learned what it knows.
    """
    weights = np.zeros(len(table.columns))
    if table.n_rows < FEW_ROWS:
        for one in ensemble.passes:
            asked = ((j, [Experts(own[j]) for own in by_gaussian]) for j in one.targets)
            cells = [_validation_cells(table, j, predicted, own) for j, own in asked]
            weights[list(one.targets)] = [own.stacking_weight for own in choose_stacking_weights(cells)]
    return weights


def _with_experts(
    ensemble: Ensemble,
    chosen: Sequence[Calibration],
    gaussian: Gaussian | None,
    grown: Sequence[Grown | None],
    regressed: Sequence[Regressed | None],
) -> Ensemble:
    """Return the ensemble with the calibrations, and the experts that have a weight in them."""
    names = ensemble.layout.names
    return replace(
        ensemble,
        calibrations=dict(zip(names, chosen, strict=True)),
        gaussian=gaussian if any(any(one.expert_weights) for one in chosen) else None,
        trees={
            name: own.trees
            for name, own, one in zip(names, grown, chosen, strict=True)
            if own is not None and one.tree_weight
        },
        kernels={
            name: own.kernel
            for name, own, one in zip(names, regressed, chosen, strict=True)
            if own is not None and one.kernel_weight
        },
    )


def _of_set(experts: Sequence[Grown | Regressed | None], i: int) -> list[Predictive | None]:
    """Return what experts predict of a column's cells in the i-th set."""
    return [None if one is None else one.predicted[i] for one in experts]


def _with_tilts(
    ensemble: Ensemble,
    table: EncodedTable,
    data: Data,
    filler: RowFiller | None,
    parts: Sequence[tuple[HeldOut, Sequence[Experts]]],
) -> Ensemble:
    """Fit tilts to the cells of parts, given what experts predict of them."""

    def of(held: HeldOut, experts: Sequence[Experts]) -> Part:
        shown = table.learn_from(data, held.cells)
        by_network = [_predict_held(ensemble, shown, held.cells, one) for one in ensemble.networks]

        def predict(j: int, by_experts: Experts) -> Predictive:
            spec, _, calibration = table.columns[j]
            naturals = ([of_feature.naturals for of_feature in one[table.features[j]]] for one in by_network)
            first, *others = (spec.predict(one, calibration, by_experts) for one in naturals)
            return first.mix(others)

        return Part(held, predict, experts)

    if ensemble.gaussian is None or filler is None:
        return ensemble
    found = fit_tilts(table, ensemble.gaussian, filler, ensemble.passes, [of(*one) for one in parts])
    return replace(ensemble, tilts=found)


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
    table: EncodedTable, j: int, predicted: Sequence[list[_Predicted]], experts: Sequence[Experts]
) -> ValidationCells:
    """Collect the validation cells of a column over all networks, and what they and the experts predict."""
    features = [_together(one) for one in zip(*(network[table.features[j]] for network in predicted), strict=True)]
    spec, values, _ = table.columns[j]
    return ValidationCells(spec, values[features[0].rows], [one.naturals for one in features], join(experts))


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
            experts=one.experts.take(compared),
        )
        near = near_of[j].take(held[rows, j])
        calibrations[j] = choose_neighbour_weight(some, calibrations[j], near, j)
    return calibrations
