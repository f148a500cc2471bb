"""Choosing calibrations on validation cells: observed cells that were held out from the networks that predict them.

Predictions are stacked with those of the experts, rescaled by a temperature, shrunk towards the marginal, and
mixed with the cells of near-duplicates where these are clearly better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.imputation.calibration import PLAIN, Calibration
from evenly.imputation.columns import BinnedColumn, ModelledColumn, standardize
from evenly.imputation.experts import NO_EXPERTS, Experts
from evenly.imputation.neighbours import WEIGHTS, Neighbours, NeighbourWeight
from evenly.metrics import clearly_better
from evenly.predictive import BinnedPredictive, Bins, ClassPredictive, Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

BIN_WEIGHTS = (0.5, 0.0, 1.0)
"""Candidates for the weight of bins in a number's mean; the first is kept unless another is clearly better."""
FEWEST_NEIGHBOURS, LEAST_SHARE = 5, 0.2
"""Ignore near-duplicates unless at least 5 validation cells have one with a weight above 0.2."""
INVERSE_TEMPERATURES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Candidates for the power that probabilities are raised to."""
MAX_DEVIATION = 4.0
"""Where predictions of validation cells are not clearly better than the mean, other predictions are clipped to 4 times
the largest deviation of these. A few extreme values (one e-mail full of #) make a network predict more of them, and the
validation cells are too few to show that this is wrong."""
MODEL_WEIGHTS: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Candidates for the weight of the model in probabilities of classes, at each temperature."""
FARTHEST_LOSS = 25.0
"""Limit on a cell's squared error, in squared standard deviations, in the choice of weights: no cell dominates."""
LEAST_LIKELY = 1e-12
"""Smallest probability whose logarithm is taken."""
LEVELS = (0.5, 0.8, 0.9)
"""Levels of the central intervals whose coverage is calibrated."""
PRIOR_CELLS = 5.0
"""Prior strength, in cells, of leaving the predictions as they are."""
FEWEST = 10
"""With fewer validation cells, predictions are not calibrated."""
SURELY = 2.0
"""Standard errors by which the most probable level must be better than the mean: most doubtful numbers are numbers."""
FEWEST_OTHERS = 10
"""If one number fills most of a column, fewer other cells than this are too few to have any among validation cells."""


class ValidationCells(NamedTuple):
    """The validation cells of one column: their true values, and their predictions."""

    spec: ModelledColumn
    truth: Floats
    naturals: list[Floats]
    """The networks' natural parameters of each feature."""
    experts: Experts = NO_EXPERTS
    """The predictions of the experts."""

    @property
    def outcomes(self) -> npt.NDArray[np.intp]:
        """The true classes, as codes of what is told apart."""
        return np.asarray(self.spec.column.lump(self.truth), np.intp)

    @property
    def usable(self) -> bool:
        """Whether there are enough cells, of a column that can be calibrated."""
        return len(self.truth) >= FEWEST and self.spec.is_calibrated

    def predict(self, calibration: Calibration) -> Predictive:
        """Return the calibrated predictions of the cells."""
        return self.spec.predict(self.naturals, calibration, self.experts)


def calibrate(cells: ValidationCells, start: Calibration = PLAIN) -> Calibration:
    """Choose the calibration of a column's predictions.

    For classes, temperature and model weight are chosen together, by the log-likelihood. For a number, the model weight
    is chosen by the squared error, and then the temperature by the coverage of intervals. Numbers that hardly vary get
    the marginal.

    Parameters
    ----------
    start : Calibration
        The calibration to start from; its stacking weights are kept.
    """
    spec = cells.spec
    if isinstance(spec, BinnedColumn) and _hardly_varies(spec):
        return replace(start, model_weight=0.0)
    if not cells.usable:
        return start
    shares = _probabilities(cells.predict(start))
    score: Callable[[Floats], float]
    if isinstance(spec, BinnedColumn):
        score, marginal = partial(_coverage, spec.bins, cells.truth), np.asarray(spec.bins.share)
        start = _calibrate_mean(cells, spec, start)
        weights: Sequence[float] = (start.model_weight,)
    else:
        score, marginal = partial(_log_score, cells.outcomes), np.asarray(spec.fitted.frequencies)
        weights = MODEL_WEIGHTS
    tried = [
        replace(start, inverse_temperature=power, model_weight=weight)
        for weight in weights
        for power in INVERSE_TEMPERATURES
    ]
    penalty = [np.log(one.inverse_temperature) ** 2 + (start.model_weight - one.model_weight) ** 2 for one in tried]
    scores = [score(one.apply(shares, marginal)) for one in tried]
    chosen = tried[int(np.argmax(scores - PRIOR_CELLS / len(cells.truth) * np.array(penalty)))]
    if isinstance(spec, BinnedColumn) and spec.column.may_have_classes and spec.bins.single:
        return replace(chosen, estimate=_choose_estimate(cells, spec.bins, chosen))
    return chosen


def _probabilities(predicted: Predictive) -> Floats:
    assert isinstance(predicted, (ClassPredictive, BinnedPredictive))
    return predicted.probabilities


def _hardly_varies(spec: BinnedColumn) -> bool:
    """Whether too few numbers differ from the most frequent one for a model to predict which."""
    most = max(spec.bins.share)
    return most > 0.5 and (1.0 - most) * spec.fitted.statistics.n < FEWEST_OTHERS


def _calibrate_mean(cells: ValidationCells, spec: BinnedColumn, start: Calibration) -> Calibration:
    """Choose the bin weight, the model weight and the largest deviation of a number's mean."""
    ends = [cells.predict(replace(start, bin_weight=end, model_weight=1.0)).mean() for end in (0.0, 1.0)]
    normal, binned, wanted = (standardize(values, spec.mean, spec.std) for values in (*ends, cells.truth))
    means = {weight: weight * binned + (1.0 - weight) * normal for weight in BIN_WEIGHTS}
    chosen = BIN_WEIGHTS[0]
    for weight in BIN_WEIGHTS[1:]:
        if clearly_better((means[weight] - wanted) ** 2, (means[chosen] - wanted) ** 2):
            chosen = weight
    # Least squares through the column's mean, with a prior on a slope of 1: a slope below 1 means overconfidence.
    best = means[chosen]
    prior = 5.0 * PRIOR_CELLS * float(np.mean(best**2)) + 1e-12
    slope = (float(best @ wanted) + prior) / (float(best @ best) + prior)
    weight = float(np.clip(slope, 0.0, 1.0))
    shrunk = weight * best
    start = replace(start, bin_weight=chosen, model_weight=weight)
    if clearly_better((shrunk - wanted) ** 2, wanted**2):
        return start
    return replace(start, max_deviation=MAX_DEVIATION * float(np.abs(shrunk).max()) * spec.std)


def _choose_estimate(cells: ValidationCells, bins: Bins, calibration: Calibration) -> Literal["mean", "mode"]:
    """Choose what is imputed for numbers that may be codes: the mean, unless the most probable level is clearly better.

    A mean has the least squared error, which counts for numbers; the most probable level is most often right, which
    counts for codes. The loss is the sum of both, each relative to that of the estimate which is best by it.
    """
    predicted, truth = cells.predict(calibration), cells.truth
    mean, mode = predicted.mean(), predicted.mode()
    levels = np.asarray(bins.mean)
    nearest = levels[np.abs(mean[:, None] - levels).argmin(1)]
    usual = max(float((mode != truth).mean()), 1.0 / len(truth)), max(float(((mean - truth) ** 2).mean()), 1e-300)
    # Errors are compared by their root: a square that is larger by 2 % is an error that is larger by 1 %.
    by_mode, by_mean = (
        (level != truth) / usual[0] + 0.5 * (number - truth) ** 2 / usual[1]
        for level, number in ((mode, mode), (nearest, mean))
    )
    return "mode" if clearly_better(by_mode, by_mean, SURELY) else "mean"


def _log_score(codes: npt.NDArray[np.int_], shares: Floats) -> float:
    """Return the mean log-probability of classes."""
    return float(np.log(np.maximum(shares[np.arange(len(codes)), codes], LEAST_LIKELY)).mean())


def _coverage(bins: Bins, truth: Floats, shares: Floats) -> float:
    """Return a score of the coverage of central intervals: 0 if all are exact, else negative."""
    away = np.abs(bins.ranks(shares, truth, np.random.default_rng(0)) - 0.5)
    return -10.0 * float(sum(((away < 0.5 * level).mean() - level) ** 2 for level in LEVELS))


# --- near-duplicates ----------------------------------------------------------------------------------------------


def choose_neighbour_weight(
    cells: ValidationCells, calibration: Calibration, neighbours: Neighbours, j: int
) -> Calibration:
    """Choose the weight of near-duplicates' cells: none unless predictions are clearly better with them.

    Parameters
    ----------
    neighbours : Neighbours
        Neighbours of the rows of the cells.
    j : int
        The index of the column among those of the neighbour index.
    """
    if not cells.usable:
        return calibration
    predicted = cells.predict(calibration)

    def losses(weight: NeighbourWeight | None) -> Floats | Flags:
        mixed = mix_neighbours(predicted, weight, neighbours, j)
        if isinstance(cells.spec, BinnedColumn):
            return standardize(mixed.mean(), cells.truth, cells.spec.std) ** 2
        return np.asarray(mixed.mode() != cells.truth)

    best, least = None, losses(None)
    for weight in WEIGHTS:
        found = losses(weight)
        enough = (neighbours.weigh(j, weight)[1] > LEAST_SHARE).sum() >= FEWEST_NEIGHBOURS
        if enough and clearly_better(found, least):
            best, least = weight, found
    return replace(calibration, neighbours=best)


def mix_neighbours(predicted: Predictive, weight: NeighbourWeight | None, neighbours: Neighbours, j: int) -> Predictive:
    """Mix the distributions of column j with the cells of each row's near-duplicates."""
    if weight is None:
        return predicted
    weights, share = neighbours.weigh(j, weight)
    return predicted.with_values(share, share[:, None] * weights, np.nan_to_num(neighbours.cells[:, :, j]))
