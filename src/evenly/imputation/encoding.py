"""A table as a model sees it, and back: inputs that are the same under every method, scaled features, and a mask.

A model that predicts cell by cell explains a number twice: by a normal of the centred, scaled value, and by the bin
that it lies in. Both learn together; the bins give the distribution, and both share in the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly.imputation.bins import Bins, make_bins
from evenly.imputation.neighbours import Belief, Twins, weigh
from evenly.likelihoods import LOG_NORMAL, NORMAL, UNIT_NORMAL, Likelihood, get_likelihood
from evenly.models import Data, Layout
from evenly.scaling import (
    Feature,
    FittedColumn,
    Outcome,
    Scaling,
    draw_column,
    estimate_column,
    mix_numbers,
    prepare,
    quantile_column,
    scaled_smoothness,
)
from evenly.tables import Column, Floats

FARTHEST = 1e3
"""Standardized inputs are cut here: n rows hold none beyond sqrt(n), so that only strange new rows are touched."""
FAR = 1e4
"""Single precision has seven digits: this many spreads from 0, values keep three of them."""
LARGEST_TARGET = 1e30
"""Targets beyond are cut, as only 1e300 and the like are: single precision must hold them."""
FARTHEST_TARGET = 20.0
"""Spreads from the mean at which the normal of a binned column is cut: one cell must not shout the others down."""
RARE = 1e-9
"""The share of bins and classes that were not seen."""
MOST_WEIGHT = 4.0
"""No column weighs more, or less, than so many times the median: a class that is rare enough would shout."""


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
    bins: Bins | None = None
    """Of a number that is explained twice; then also its mean and standard deviation, and the scale of its normal."""
    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0
    blend: float = 0.5
    """The share of the bins, beside the normal, in its mean."""
    temper: float = 1.0
    """The power of its probabilities, of bins or classes: below 1 they are less sure."""
    trust: float = 1.0
    """The share of the model, beside what is known of the column alone, in every prediction."""
    reach: float = np.inf
    """How far from its mean a prediction may go."""
    lean: float = 0.0
    """The share of the joint normal, beside the model, in every prediction."""
    belief: Belief | None = None
    """How much of a twin's cell is taken over, if any."""

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Part:
        """Return what `dataclasses.asdict` took apart."""
        known = {"bins": Bins, "belief": Belief}
        return cls(**{**plain, **{name: kind(**plain[name]) for name, kind in known.items() if plain[name]}})


def describe(
    fitted: FittedColumn,
    values: Floats | None,
    *,
    binned: bool = False,
    scaling: Scaling = "lip",
) -> Part:
    """Describe a column from what the scaler knows of it and its values or codes.

    Parameters
    ----------
    binned : bool
        Whether a number is explained twice, by a normal and by its bin.
    scaling : {"std", "max", "iqr", "lip"}
        Of that normal.
    """
    if values is None or not fitted.statistics.n:
        return Part(modelled=False)
    seen = values[~np.isnan(values)]
    if fitted.statistics.constant:
        return Part(modelled=False, constant=float(seen[0]))
    inputs = encoder_inputs(fitted.column, seen)
    # Divided by the largest first: squares of 1e300 are no numbers.
    unit = np.maximum(np.abs(inputs).max(0), 1e-300)
    own: dict[str, Any] = {
        "observed": len(seen) / len(values),
        "extent": (float(seen.min()), float(seen.max())),
        "whole": bool((seen == np.rint(seen)).all()),
        "centers": tuple((unit * (inputs / unit).mean(0)).tolist()),
        "spreads": tuple(np.maximum(unit * (inputs / unit).std(0), 1e-300).tolist()),
    }
    if binned and not fitted.column.has_classes:
        size = float(max(np.abs(seen).max(), 1e-300))
        mean, std = size * float((seen / size).mean()), size * float((seen / size).std())
        scale = _centred_scale(seen, mean, max(std, 1e-300), scaling)
        more: dict[str, Any] = {
            "bins": make_bins(seen),
            "mean": mean,
            "std": max(std, 1e-300),
            "scale": scale,
            "fill": (0.0, 0.0),
        }
        return Part(modelled=True, **own, **more)
    far = (np.abs((inputs / unit).mean(0)) > FAR * (inputs / unit).std(0)).any() and not fitted.column.has_classes
    if far or any(fit.outcome is Outcome.OUT_OF_RANGE for fit in fitted.fits):
        return Part(modelled=False, constant=float(np.quantile(seen, 0.5, method="lower")), too_far=True)
    fill = tuple(float(part[0]) for part in _targets(fitted, Part(modelled=True), seen[:1], None))
    return Part(modelled=True, log_jacobian=_log_jacobian(fitted, seen), fill=fill, **own)


def _centred_scale(seen: Floats, mean: float, std: float, scaling: Scaling) -> float:
    """Return the scale of a number around its mean; under `lip` 1 / std, where a normal of spread 1 fits best."""
    # Of halves: the difference of two of the largest numbers is none.
    if scaling == "max":
        return 0.5 / max(float(np.abs(0.5 * seen - 0.5 * mean).max()), 1e-300)
    if scaling == "iqr":
        low, high = np.quantile(seen, [0.25, 0.75])
        return 0.5 / float(0.5 * high - 0.5 * low) if high > low else 1.0 / std
    return 1.0 / std


def standardize(values: Floats, center: Any, spread: Any) -> Floats:
    """Return how many spreads values lie away from a center; infinite only where that is no number.

    Examples
    --------
    >>> standardize(np.array([5.0, 1.7e308]), 4.0, 2.0).tolist(), standardize(np.array([1.6e308]), -1.6e308, 8e307)
    ([0.5, 8.5e+307], array([4.]))
    """
    with np.errstate(over="ignore"):
        away = np.asarray(values - center)
        return np.asarray(np.where(np.isinf(away), values / spread - np.asarray(center) / spread, away / spread))


def lay_out(columns: Sequence[FittedColumn], parts: Sequence[Part]) -> Layout:
    """Return the likelihood of every feature that is modelled, the columns of features and inputs, and the numbers."""
    modelled = [(fitted, part) for fitted, part in zip(columns, parts, strict=True) if part.modelled]
    pairs = [(one, j) for j, (fitted, part) in enumerate(modelled) for one in _families(fitted, part)]
    inputs = [(j, fitted.column.has_classes) for j, (fitted, part) in enumerate(modelled) for _ in part.centers]
    return Layout(
        tuple(family for family, _ in pairs),
        tuple(j for _, j in pairs),
        tuple(j for j, _ in inputs),
        tuple(at for at, (_, classes) in enumerate(inputs) if not classes),
    )


def _families(fitted: FittedColumn, part: Part) -> list[Likelihood]:
    if part.bins is not None:
        return [UNIT_NORMAL, get_likelihood("categorical", len(part.bins))]
    return [_modelled_as(one) for one in fitted.features]


def constant_naturals(fitted: FittedColumn, part: Part) -> list[Any]:
    """Return the natural parameters of each feature of a model that knows the column alone."""
    if part.bins is None:
        return [fit.natural for fit in fitted.fits]
    return [np.zeros(1), np.log(np.maximum(part.bins.share, RARE))]


def balancing_weights(columns: Sequence[FittedColumn], parts: Sequence[Part]) -> Floats:
    """Return a weight for each modelled column: one over the smoothness of its likelihood at the column's own fit.

    The likelihoods of classes and bins cannot be scaled, but what multiplies a log-likelihood multiplies its
    smoothness: weighted like this, it is the same for every column. Relative to the median, and cut.
    """
    found = []
    for fitted, part in zip(columns, parts, strict=True):
        if part.modelled:
            pairs = zip(_families(fitted, part), constant_naturals(fitted, part), strict=True)
            with np.errstate(all="ignore"):
                found.append(sum(scaled_smoothness(one, np.asarray(natural), 1.0) for one, natural in pairs))
    smoothness = np.array(found)
    usable = np.isfinite(smoothness) & (smoothness > 0.0)
    if not usable.any():
        return np.ones(len(found))
    typical = float(np.median(smoothness[usable]))
    return np.clip(typical / np.where(usable, smoothness, typical), 1.0 / MOST_WEIGHT, MOST_WEIGHT)


def arrange(
    layout: Layout,
    columns: Sequence[FittedColumn],
    parts: Sequence[Part],
    values: Sequence[Floats | None],
    *,
    seed: int | None,
    with_inputs: bool = True,
    dtype: str = "float32",
    keys: npt.NDArray[np.int64] | None = None,
) -> Data:
    """Return the arrays of a model from the columns' values or codes.

    Parameters
    ----------
    seed : int or None
        Of the Gamma trick's noise; None puts its mean.
    with_inputs : bool
        Whether the model reads inputs; without, there are none.
    keys : array of int, optional
        What the noise of each row goes by; by default its position.
    """
    modelled = [(one, part, v) for one, part, v in zip(columns, parts, values, strict=True) if part.modelled]
    n_rows = next(len(v) for _, _, v in modelled if v is not None)
    data = layout.empty(n_rows, dtype, with_inputs=with_inputs)
    smallest, at, into = float(np.finfo(dtype).tiny), 0, 0
    for column, (fitted, part, own) in enumerate(modelled):
        assert own is not None
        gone = np.isnan(own)
        data.mask[:, column] = ~gone
        with np.errstate(over="ignore"):  # strange new rows: they are cut below
            scaled = _targets(fitted, part, own, seed, keys)
        for family, target, stand_in in zip(_families(fitted, part), scaled, part.fill, strict=True):
            # A positive value that single precision would round down to 0 has no density there.
            lowest = smallest if family.scalable and family.support.lower == 0.0 else -LARGEST_TARGET
            data.targets[:, layout.places[at][0]] = np.clip(np.where(gone, stand_in, target), lowest, LARGEST_TARGET)
            at += 1
        if with_inputs:
            standard = standardize(encoder_inputs(fitted.column, own), part.centers, part.spreads)
            standard = np.clip(standard, -FARTHEST, FARTHEST)
            data.inputs[:, into : into + len(part.centers)] = np.where(gone[:, None], 0.0, standard)
            into += len(part.centers)
    return data


# --- and back -----------------------------------------------------------------------------------------------------


def recover_part(
    fitted: FittedColumn, part: Part, naturals: Sequence[Floats], said: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the usual parameters of a column, in the table's units.

    Of a binned number: its `mean`, `std` and the `probabilities` of its bins.

    Parameters
    ----------
    said : dict, optional
        What the joint normal says of the cells, which is mixed in; NaN where it says nothing.
    """
    if part.bins is None:
        usual = fitted.recover(naturals)
        if fitted.column.has_classes:
            shares = class_shares(usual)
            if part.lean and said:
                shares = lean_on(class_shares(said), shares, part.lean)
            shares = calibrate(shares, part, fitted.frequencies)
            usual |= {"probability": shares[..., 1]} if "probability" in usual else {"probabilities": shares}
        return usual
    normal, binned = naturals
    likely = np.exp(binned - binned.max(-1, keepdims=True))
    likely = likely / likely.sum(-1, keepdims=True)
    spread = normal[..., 0] / (part.scale * part.std)
    with np.errstate(over="ignore"):
        alone = part.mean + part.std * np.clip(spread, -FARTHEST_TARGET, FARTHEST_TARGET)
    alone = np.where(np.isinf(alone), np.clip(alone, part.extent[0], part.extent[1]), alone)
    # The mean is that of the bins before they are made less sure, which would move it.
    mean = part.blend * part.bins.means(likely) + (1.0 - part.blend) * alone
    if part.lean and said:
        mean, likely = lean_on(said["mean"], mean, part.lean), lean_on(said["probabilities"], likely, part.lean)
    mean = part.trust * mean + (1.0 - part.trust) * part.mean
    if np.isfinite(part.reach):
        mean = np.clip(mean, part.mean - part.reach, part.mean + part.reach)
    shares = calibrate(likely, part, part.bins.share)
    return {"mean": mean, "std": part.bins.stds(shares), "probabilities": shares}


def lean_on(said: Floats, found: Floats, share: float) -> Floats:
    """Mix two predictions, where there are two.

    Examples
    --------
    >>> lean_on(np.array([1.0, np.nan]), np.array([3.0, 3.0]), 0.25)
    array([2.5, 3. ])
    """
    return np.where(np.isnan(said), found, share * said + (1.0 - share) * found)


def class_shares(usual: Mapping[str, Any]) -> Floats:
    """Return the probability of each class, or bin; of the two of a yes or no, too.

    Examples
    --------
    >>> class_shares({"probability": np.array([0.25])})
    array([[0.75, 0.25]])
    """
    if "probability" in usual:
        return np.stack([1.0 - usual["probability"], usual["probability"]], axis=-1)
    return np.asarray(usual["probabilities"])


def calibrate(shares: Floats, part: Part, alone: Any) -> Floats:
    """Make probabilities as sure as they should be, and mix them with those of the column alone."""
    if part.temper != 1.0:
        raised = (shares / shares.max(-1, keepdims=True)) ** part.temper
        shares = raised / raised.sum(-1, keepdims=True)
    return shares if part.trust == 1.0 else part.trust * shares + (1.0 - part.trust) * np.asarray(alone)


def average(fitted: FittedColumn, part: Part, usuals: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the parameters of a mixture of several networks' distributions, in equal shares.

    Of a number that is not binned: those of its likelihood that is nearest to the mixture.
    """
    if len(usuals) == 1:
        return usuals[0]
    if part.bins is None and not fitted.column.has_classes:
        assert fitted.family is not None
        return usuals[0] | mix_numbers(fitted.family, usuals)
    mixed = {name: sum(one[name] / len(usuals) for one in usuals) for name in usuals[0]}
    if part.bins is not None:
        mixed["std"] = part.bins.stds(mixed["probabilities"])
    return mixed


def mix_twins(part: Part, usual: dict[str, Any], twins: Twins, place: int) -> dict[str, Any]:
    """Return the parameters of each cell's distribution mixed with the cells of its row's twins.

    Parameters
    ----------
    place : int
        Of the column among those that rows are compared by.
    """
    if part.belief is None:
        return usual
    weights, share = weigh(twins, place, part.belief)
    weights, cells = share[:, None] * weights, np.nan_to_num(twins.cells[:, :, place])
    if "probability" in usual:
        return {**usual, "probability": (1.0 - share) * usual["probability"] + (weights * cells).sum(1)}
    mixed = (1.0 - share)[:, None] * usual["probabilities"]
    codes = cells if part.bins is None else part.bins.codes(cells)
    np.add.at(mixed, (np.arange(len(mixed))[:, None], codes.astype(np.intp)), weights)
    if part.bins is None:
        return {**usual, "probabilities": mixed}
    mean = (1.0 - share) * usual["mean"] + (weights * cells).sum(1)
    return {"mean": mean, "std": part.bins.stds(mixed), "probabilities": mixed}


def estimate_part(fitted: FittedColumn, part: Part, usual: Mapping[str, Any], which: str) -> Floats:
    """Return one value or code of each distribution: its mean, median or mode."""
    if part.bins is None:
        assert fitted.family is not None
        return estimate_column(fitted.column, fitted.family, usual, which)
    if which == "mean":
        return np.asarray(usual["mean"])
    if which == "median":
        return part.bins.quantiles(usual["probabilities"], 0.5)
    return part.bins.modes(usual["probabilities"])


def draw_part(fitted: FittedColumn, part: Part, usual: Mapping[str, Any], rng: np.random.Generator) -> Floats:
    """Draw one value or code from each distribution."""
    if part.bins is None:
        assert fitted.family is not None
        return draw_column(fitted.column, fitted.family, usual, rng)
    return part.bins.quantiles(usual["probabilities"], rng.random(len(usual["mean"])))


def quantile_part(fitted: FittedColumn, part: Part, usual: Mapping[str, Any], level: float) -> Floats:
    """Return a quantile of each distribution; of classes, the most probable one."""
    if part.bins is not None:
        return part.bins.quantiles(usual["probabilities"], level)
    if fitted.column.has_classes:
        return estimate_part(fitted, part, usual, "mode")
    assert fitted.family is not None
    return quantile_column(fitted.column, fitted.family, usual, level)


def encoder_inputs(column: Column, values: Floats) -> Floats:
    """Return what an encoder sees of a column, unscaled and whatever the method: one-hot classes, logs of positives."""
    if column.kind in ("categorical", "ordinal"):
        return np.asarray(values[:, None] == np.arange(len(column.classes or ())), np.float64)
    if column.kind == "positive":
        values = np.log(prepare(column, values))
    return values[:, None]


def _modelled_as(feature: Feature) -> Likelihood:
    """Return the likelihood that a model uses: a log-normal is a normal of logs, which no precision overflows."""
    return NORMAL if feature.likelihood is LOG_NORMAL else feature.likelihood


def _targets(
    fitted: FittedColumn, part: Part, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None
) -> list[Floats]:
    if part.bins is not None:
        standard = np.clip(standardize(values, part.mean, part.std), -FARTHEST_TARGET, FARTHEST_TARGET)
        return [part.scale * part.std * standard, part.bins.codes(values)]
    if fitted.features[0].likelihood is LOG_NORMAL:
        return [fitted.fits[0].scale * np.log(prepare(fitted.column, values))]
    return fitted.scale(values, seed, keys)


def _log_jacobian(fitted: FittedColumn, seen: Floats) -> float:
    feature, scale = fitted.features[0], fitted.fits[0].scale
    if feature.trick != "none" or not feature.likelihood.scalable:
        return 0.0
    x = prepare(fitted.column, seen)
    if feature.likelihood is LOG_NORMAL:  # of scale * log x
        return float(np.log(scale) - np.log(x).mean())
    return float(np.mean(feature.likelihood.log_jacobian(x, np.float64(scale))))
