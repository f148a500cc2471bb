"""Building column specs: from a fitted column and its values, or from a saved file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenly._support import show
from evenly.imputation.columns.base import ColumnSpec, UnmodelledColumn, encoder_inputs
from evenly.imputation.columns.binned import BinnedColumn
from evenly.imputation.columns.by_likelihood import LikelihoodColumn
from evenly.imputation.columns.dates import DateColumn, date_inputs, describe_dates
from evenly.predictive import make_bins
from evenly.scaling import FittedColumn, Outcome, get_method
from evenly.tables import Floats, check_fields, find_precision, prepare

FAR = 1e4
"""Distance from 0, in standard deviations, beyond which too few of single precision's seven digits remain: three."""


def describe(
    fitted: FittedColumn,
    values: Floats | None,
    *,
    binned: bool = False,
    method: str = "lip-none",
    raw_inputs: bool = False,
    recorded: Floats | None = None,
) -> ColumnSpec:
    """Decide how a column is modelled, given the fitted column and its values or codes.

    Parameters
    ----------
    binned : bool
        Whether a number is modelled twice, by a normal and by its bin.
    method : str
        The scaling method of that normal.
    raw_inputs : bool
        Whether an encoder sees the unscaled features, as published.
    recorded : array, optional
        The values that were observed, if others follow from them by rules: they have the column's precision.
    """
    if values is None or not fitted.statistics.n:
        return UnmodelledColumn(fitted)
    seen = values[~np.isnan(values)]
    kept = seen if recorded is None else recorded[~np.isnan(recorded)]
    if fitted.statistics.constant:
        return UnmodelledColumn(fitted, float(seen[0]))
    dated = binned and fitted.column.kind == "date"
    own = describe_dates(fitted.column, kept) if dated else {}
    unit, means, stds = _moments(fitted, seen, own.get("parts"))
    common: dict[str, Any] = {
        "observed": len(seen) / len(values),
        "extent": (float(seen.min()), float(seen.max())),
        "whole": bool((kept == np.rint(kept)).all()),
        "precision": None if fitted.column.has_classes or dated else find_precision(kept),
        "centers": tuple((unit * means).tolist()),
        "spreads": tuple(np.maximum(unit * stds, 1e-300).tolist()),
    }
    if binned and not fitted.column.has_classes:
        size = float(max(np.abs(seen).max(), 1e-300))
        mean, std = size * float((seen / size).mean()), max(size * float((seen / size).std()), 1e-300)
        scale = get_method(method).centred_scale(seen, mean, std)
        kind = DateColumn if dated else BinnedColumn
        return kind(fitted, **common, **own, bins=make_bins(seen), mean=mean, std=std, scale=scale)
    far = (np.abs(means) > FAR * stds).any() and not fitted.column.has_classes
    if far or any(fit.outcome is Outcome.OUT_OF_RANGE for fit in fitted.fits):
        return UnmodelledColumn(fitted, float(np.quantile(seen, 0.5, method="lower")), too_far=True)
    fill = tuple(float(one[0]) for one in fitted.targets(seen[:1], None))
    return LikelihoodColumn(fitted, **common, jacobian=_log_jacobian(fitted, seen), fill=fill, raw_inputs=raw_inputs)


def _moments(fitted: FittedColumn, seen: Floats, parts: Sequence[str] | None) -> tuple[Floats, Floats, Floats]:
    """Return units of the inputs, and their means and standard deviations in these units; `parts` of dates."""
    column = fitted.column
    if column.has_rest:  # of as many inputs, no array of all rows
        shares = np.bincount(column.lump(seen).astype(np.intp), minlength=column.n_outcomes) / len(seen)
        return np.ones(len(shares)), shares, np.sqrt(shares * (1.0 - shares))
    inputs = encoder_inputs(column, seen) if parts is None else date_inputs(column, parts, seen)
    # Divided by the largest first: squares of 1e300 overflow.
    unit = np.maximum(np.abs(inputs).max(0), 1e-300)
    return unit, (inputs / unit).mean(0), (inputs / unit).std(0)


def _log_jacobian(fitted: FittedColumn, seen: Floats) -> float:
    feature, scale = fitted.features[0], fitted.fits[0].scale
    if feature.trick != "none" or not feature.likelihood.scalable:
        return 0.0
    x = prepare(fitted.column, seen)
    if feature.likelihood.modelled_as is not feature.likelihood:  # of scale * log x
        return float(np.log(scale) - np.log(x).mean())
    return float(np.mean(feature.likelihood.log_jacobian(x, np.float64(scale))))


def spec_from_plain(fitted: FittedColumn, plain: Any) -> ColumnSpec:
    """Rebuild a spec from `ColumnSpec.to_plain`; ValueError if it is none of the column."""
    kinds: dict[str, Any] = {one.kind: one for one in (UnmodelledColumn, LikelihoodColumn, BinnedColumn, DateColumn)}
    stored = dict(plain)
    kind = kinds.get(stored.pop("kind", None))
    if kind is None:
        raise ValueError(f"a column of the kind {show(plain.get('kind'))}, expected one of {', '.join(kinds)}")
    spec: ColumnSpec = kind(fitted, **check_fields(kind, stored, without="fitted"))
    spec.check()
    return spec
