"""Choosing the weights of networks and experts in the predictions of each column, on validation cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from evenly.imputation.calibration import PLAIN, Calibration
from evenly.imputation.calibration_choice import FARTHEST_LOSS, FEWEST, LEAST_LIKELY, ValidationCells
from evenly.imputation.columns import BinnedColumn, standardize
from evenly.imputation.experts import Experts
from evenly.predictive import BinnedPredictive, ClassPredictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

STACKING_STEPS = 8
STACKING_WEIGHTS = tuple(
    tuple(part / STACKING_STEPS for part in reversed(parts))
    for parts in product(range(STACKING_STEPS + 1), repeat=len(Experts._fields))
    if sum(parts) <= STACKING_STEPS
)
"""Candidates for the weights of the experts, in their order; the rest is the networks'."""
POOLING = 25.0
"""Strength, in cells, that shrinks a column's stacking weights towards those of all columns of numbers, or classes."""
USUAL_WEIGHTS, USUAL_CELLS, FEW_ROWS_POOLING = (0.0, 0.25, 0.5), 30.0, 100.0
"""Where rows are few, so that there is a kernel expert: the weights that those of all columns are shrunk towards, with
which strength, and how strongly a column's weights are shrunk. Chosen on cells of 15 small tables that were hidden from
the visible ones; other choices were within 1 % of it."""
LEAST_LOSS = 1e-4
"""Losses below this share of the networks' count like it, where logarithms of losses are compared."""


def choose_stacking_weights(columns: Sequence[ValidationCells]) -> list[Calibration]:
    """Choose the weights of the experts in the predictions of each column.

    One choice is made for all numbers and one for all classes; the weights of a column are shrunk towards it.
    """
    few_rows = any(one.experts.kernel is not None for one in columns)
    curves = [_stacking_losses(one) for one in columns]
    if few_rows:  # so that columns that nearly follow from others count, too
        curves = [None if one is None else np.log(np.maximum(one, LEAST_LOSS)) for one in curves]
    weights = np.array(STACKING_WEIGHTS)
    pooling = FEW_ROWS_POOLING if few_rows else POOLING
    to_usual = USUAL_CELLS * ((weights - USUAL_WEIGHTS) ** 2).sum(1) * few_rows
    chosen = []
    for one, curve in zip(columns, curves, strict=True):
        alike = [
            (other, len(cells.truth))
            for cells, other in zip(columns, curves, strict=True)
            if other is not None and cells.spec.column.has_classes == one.spec.column.has_classes
        ]
        allowed = _allowed(one.experts)
        if not alike or allowed.sum() < 2:
            chosen.append(PLAIN)
            continue
        of_all = np.mean([other for other, _ in alike], axis=0) + to_usual / sum(n for _, n in alike)
        best = weights[np.argmin(np.where(allowed, of_all, np.inf))]
        if curve is not None:
            pull = pooling / len(one.truth) * ((weights - best) ** 2).sum(1)
            best = weights[np.argmin(np.where(allowed, curve + pull, np.inf))]
        gaussian, trees, kernel = best.tolist()
        chosen.append(Calibration(stacking_weight=gaussian, tree_weight=trees, kernel_weight=kernel))
    return chosen


def _allowed(experts: Experts) -> Flags:
    """Return which of `STACKING_WEIGHTS` give no weight to an expert that is not there."""
    weights = np.array(STACKING_WEIGHTS)
    absent = np.array([one is None for one in experts])
    return np.asarray(~((weights > 0.0) & absent).any(1))


def _stacking_losses(cells: ValidationCells) -> Floats | None:
    """Return the mean loss of a column's cells for each of `STACKING_WEIGHTS`, relative to that without experts.

    Weights of an expert that is not there count like those without it.
    """
    if len(cells.truth) < FEWEST or all(one is None for one in cells.experts):
        return None
    # Predictions are linear in the weights, so those of the network and of each expert alone are enough.
    network, *alone = (
        _what_counts(cells, one)
        for one in (
            PLAIN,
            Calibration(stacking_weight=1.0),
            Calibration(tree_weight=1.0),
            Calibration(kernel_weight=1.0),
        )
    )
    moved = np.array(STACKING_WEIGHTS) @ (np.array(alone) - network)
    if isinstance(cells.spec, BinnedColumn):
        losses = np.minimum((network + moved) ** 2, FARTHEST_LOSS).mean(1)
    else:
        losses = -np.log(np.maximum(network + moved, LEAST_LIKELY)).mean(1)
    return np.asarray(losses / max(losses[0], 1e-12))


def _what_counts(cells: ValidationCells, calibration: Calibration) -> Floats:
    """Return the standardized errors of a number, or the probabilities of the true classes."""
    predicted = cells.predict(calibration)
    if isinstance(cells.spec, BinnedColumn):
        return standardize(predicted.mean(), cells.truth, cells.spec.std)
    assert isinstance(predicted, (ClassPredictive, BinnedPredictive))
    return np.asarray(predicted.probabilities[np.arange(len(cells.truth)), cells.outcomes])
