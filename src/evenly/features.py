"""A table as a model sees it: inputs that are the same under every method, scaled features to explain, and a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenly.likelihoods import LOG_NORMAL, NORMAL, Likelihood
from evenly.models.bbvi import Data, Layout
from evenly.scaler import FittedColumn
from evenly.scaling import Outcome
from evenly.schema import Column
from evenly.statistics import prepare
from evenly.tables import Floats
from evenly.tricks import Feature

FARTHEST = 1e3
"""Standardized inputs are cut here: n rows hold none beyond sqrt(n), so that only strange new rows are touched."""
FAR = 1e4
"""Single precision has seven digits: this many spreads from 0, values keep three of them."""
LARGEST_TARGET = 1e30
"""Targets beyond are cut, as only 1e300 and the like are: single precision must hold them."""


@dataclass(frozen=True)
class Part:
    """What the models' data need to know of one column of the fitted table."""

    modelled: bool
    """Whether a model explains it: not an ignored, an empty or a constant column."""
    constant: float = np.nan
    """The only value of a constant column; the median of one that is too far."""
    too_far: bool = False
    """Whether it lies too many spreads away from 0 for single precision to tell its values apart."""
    observed: float = 0.0
    """The share of its cells that are observed."""
    log_jacobian: float = 0.0
    """What turns the mean log-likelihood of its features into that of the column; 0 under a trick."""
    extent: Sequence[float] = (np.nan, np.nan)
    whole: bool = False
    """Whether all its numbers are whole."""
    centers: Sequence[float] = ()
    spreads: Sequence[float] = ()
    """Mean and standard deviation of its inputs."""
    fill: Sequence[float] = ()
    """A value of each feature to stand where a cell is missing."""


def describe(fitted: FittedColumn, values: Floats | None) -> Part:
    """Describe a column from what the scaler knows of it and its values or codes."""
    if values is None or not fitted.statistics.n:
        return Part(modelled=False)
    seen = values[~np.isnan(values)]
    if fitted.statistics.constant:
        return Part(modelled=False, constant=float(seen[0]))
    inputs = _inputs(fitted.column, seen)
    # Divided by the largest first: squares of 1e300 are no numbers.
    unit = np.maximum(np.abs(inputs).max(0), 1e-300)
    far = (np.abs((inputs / unit).mean(0)) > FAR * (inputs / unit).std(0)).any() and not fitted.column.has_classes
    if far or any(fit.outcome is Outcome.OUT_OF_RANGE for fit in fitted.fits):
        return Part(modelled=False, constant=float(np.quantile(seen, 0.5, method="lower")), too_far=True)
    return Part(
        modelled=True,
        observed=len(seen) / len(values),
        log_jacobian=_log_jacobian(fitted, seen),
        extent=(float(seen.min()), float(seen.max())),
        whole=bool((seen == np.rint(seen)).all()),
        centers=tuple((unit * (inputs / unit).mean(0)).tolist()),
        spreads=tuple(np.maximum(unit * (inputs / unit).std(0), 1e-300).tolist()),
        fill=tuple(float(part[0]) for part in _targets(fitted, seen[:1], None)),
    )


def lay_out(columns: Sequence[FittedColumn], parts: Sequence[Part]) -> Layout:
    """Return the likelihood of every feature that is modelled, and its place among the modelled columns."""
    modelled = [fitted for fitted, part in zip(columns, parts, strict=True) if part.modelled]
    pairs = [(_modelled_as(one), place) for place, fitted in enumerate(modelled) for one in fitted.features]
    return Layout(tuple(family for family, _ in pairs), tuple(place for _, place in pairs))


def arrange(
    columns: Sequence[FittedColumn],
    parts: Sequence[Part],
    values: Sequence[Floats | None],
    *,
    seed: int | None,
    with_inputs: bool = True,
    dtype: str = "float32",
) -> Data:
    """Return the arrays of a model from the columns' values or codes.

    Parameters
    ----------
    seed : int or None
        Of the Gamma trick's noise; None puts its mean.
    with_inputs : bool
        Whether the model reads inputs; without, there are none.
    """
    modelled = [(one, part, v) for one, part, v in zip(columns, parts, values, strict=True) if part.modelled]
    n_rows = next(len(v) for _, _, v in modelled if v is not None)
    n_inputs = sum(len(part.centers) for _, part, _ in modelled) if with_inputs else 0
    n_features = sum(len(part.fill) for _, part, _ in modelled)
    inputs = np.zeros((n_rows, n_inputs), dtype)
    targets, mask = np.empty((n_rows, n_features), dtype), np.empty((n_rows, n_features), bool)
    smallest, at, into = float(np.finfo(dtype).tiny), 0, 0
    for fitted, part, own in modelled:
        assert own is not None
        gone = np.isnan(own)
        with np.errstate(over="ignore"):  # strange new rows: they are cut below
            scaled = _targets(fitted, own, seed)
        for feature, target, stand_in in zip(fitted.features, scaled, part.fill, strict=True):
            # A positive value that single precision would round down to 0 has no density there.
            family = _modelled_as(feature)
            lowest = smallest if family.scalable and family.support.lower == 0.0 else -LARGEST_TARGET
            targets[:, at] = np.clip(np.where(gone, stand_in, target), lowest, LARGEST_TARGET)
            mask[:, at] = ~gone
            at += 1
        if with_inputs:
            with np.errstate(over="ignore"):
                standard = (_inputs(fitted.column, own) - part.centers) / part.spreads
            standard = np.clip(standard, -FARTHEST, FARTHEST)
            inputs[:, into : into + len(part.centers)] = np.where(gone[:, None], 0.0, standard)
            into += len(part.centers)
    return Data(inputs, targets, mask)


def _inputs(column: Column, values: Floats) -> Floats:
    """Return what an encoder sees of a column, unscaled and whatever the method: one-hot classes, logs of positives."""
    if column.kind in ("categorical", "ordinal"):
        return np.asarray(values[:, None] == np.arange(len(column.classes or ())), np.float64)
    if column.kind == "positive":
        values = np.log(prepare(column, values))
    return values[:, None]


def _modelled_as(feature: Feature) -> Likelihood:
    """Return the likelihood that a model uses: a log-normal is a normal of logs, which no precision overflows."""
    return NORMAL if feature.likelihood is LOG_NORMAL else feature.likelihood


def _targets(fitted: FittedColumn, values: Floats, seed: int | None) -> list[Floats]:
    if fitted.features[0].likelihood is LOG_NORMAL:
        return [fitted.fits[0].scale * np.log(prepare(fitted.column, values))]
    return fitted.scale(values, seed)


def _log_jacobian(fitted: FittedColumn, seen: Floats) -> float:
    feature, scale = fitted.features[0], fitted.fits[0].scale
    if feature.trick != "none" or not feature.likelihood.scalable:
        return 0.0
    x = prepare(fitted.column, seen)
    if feature.likelihood is LOG_NORMAL:  # of scale * log x
        return float(np.log(scale) - np.log(x).mean())
    return float(np.mean(feature.likelihood.log_jacobian(x, np.float64(scale))))
