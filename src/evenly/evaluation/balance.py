"""How evenly the columns of a table would be learned: smoothness and gradient shares, from their statistics.

The gradient is that of one cell in the natural parameters of its scaled features, at the column's marginal: there it is
the sufficient statistics minus their mean, so that its mean square is the trace of the Fisher matrix. A column's share
is the root of that trace divided by the sum of the roots over columns. Discrete likelihoods cannot be scaled, so that a
discrete column is the same under none, std, max and iqr; under `lip` it gets the Gamma trick, as in `lip-gamma`, and
all columns have the same smoothness (except where no scale reaches the target: `below_floor`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evenly.evaluation.diagnosis_results import SCALINGS, ColumnBalance
from evenly.scaling import (
    ColumnStatistics,
    Feature,
    FittedColumn,
    FittedScale,
    Outcome,
    feature_statistics,
    features_of,
    get_method,
)
from evenly.tables import Column, Floats


def measure_balance(columns: Sequence[FittedColumn], rate: float) -> tuple[tuple[ColumnBalance, ...], dict[str, str]]:
    """Return the balance of the columns that can be modelled, and for the others, why they cannot."""
    reasons = {one.column.name: _no_variable(one) for one in columns}
    n_scaled = sum(reason is None for reason in reasons.values())
    found: list[tuple[Column, dict[str, float], Floats]] = []
    for index, fitted in enumerate(columns):
        if reasons[fitted.column.name] is None:
            smoothness, gradient_size = _measure(index, fitted, 1.0 / (n_scaled * rate))
            if np.isfinite(gradient_size).all():
                found.append((fitted.column, smoothness, gradient_size))
            else:
                reasons[fitted.column.name] = Outcome.OUT_OF_RANGE.remedy
    log_gradients = np.array([one for _, _, one in found]).reshape(-1, len(SCALINGS))
    shares = np.exp(log_gradients - log_gradients.max(0, initial=-math.inf))
    shares /= shares.sum(0)
    balances = tuple(
        ColumnBalance(
            column.name, column.kind, str(column.likelihood), smoothness, dict(zip(SCALINGS, own.tolist(), strict=True))
        )
        for (column, smoothness, _), own in zip(found, shares, strict=True)
    )
    return balances, {name: reason for name, reason in reasons.items() if reason is not None}


def _no_variable(fitted: FittedColumn) -> str | None:
    """Return why a column cannot be modelled; None if it can."""
    if not fitted.statistics.n:
        return "no data: no observed cells"
    if fitted.column.kind == "ignore":
        return "declared `ignore`" if fitted.column.note == "declared" else fitted.column.note or "declared `ignore`"
    return "constant: all observed cells are equal" if fitted.statistics.constant else None


def _measure(index: int, fitted: FittedColumn, target: float) -> tuple[dict[str, float], Floats]:
    """Return a column's smoothness, and the log of its gradient's size, under each scaling."""
    assert fitted.family is not None
    plain = fitted.features[0]
    split = features_of(index, fitted.column, fitted.family, "gamma")
    fits = {name: _fit(plain, fitted.statistics, f"{name}-none", 1.0) for name in ("std", "max", "iqr")}
    lip = [_fit(one, fitted.statistics, "lip-gamma", target / len(split)) for one in split]
    smoothness = {"none": fits["std"].smoothness_before}
    smoothness |= {name: fit.smoothness_after for name, fit in fits.items()}
    smoothness["lip"] = sum(fit.smoothness_after for fit in lip)
    # Relative to the standardized column, whose parameters have moderate sizes.
    start = fits["std"]
    scales = [1.0, *(fit.scale for fit in fits.values()), lip[0].scale]
    gradient_size = [_log_gradient_size([plain], [start], math.log(scale) - math.log(start.scale)) for scale in scales]
    if split[0].trick != "none":
        gradient_size[-1] = _log_gradient_size(split, lip, 0.0)
    return smoothness, np.array(gradient_size)


def _fit(feature: Feature, of: ColumnStatistics, method: str, target: float) -> FittedScale:
    return get_method(method).fit_scale(feature, feature_statistics(feature, of), target, bound="exact", constant=False)


def _log_gradient_size(features: Sequence[Feature], fits: Sequence[FittedScale], log_scale: float) -> float:
    """Return the log of the root mean square of a cell's gradient, with its fitted features scaled once more.

    Computed in logs, so that neither huge nor tiny columns overflow. NaN without a fit.
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
