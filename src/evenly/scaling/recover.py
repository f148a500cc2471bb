"""From natural parameters of scaled features to usual parameters per column, in the table's units, tricks undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evenly.likelihoods import GAMMA, STANDARD, Array, Likelihood, namespace
from evenly.scaling.tricks import Feature, undo_binary, undo_classes, undo_moments
from evenly.tables import Column, Floats, column_likelihood


def recover_column(
    column: Column, features: Sequence[Feature], scales: Sequence[float], naturals: Sequence[Array], frequencies: Floats
) -> dict[str, Array]:
    """Return the usual parameters of one column by name.

    Parameters
    ----------
    column : Column
        The column.
    features, scales : sequences
        Its features and their scales.
    naturals : sequence of arrays
        The natural parameters of each scaled feature, along the last axis.
    frequencies : array
        The observed shares of the classes, for class columns.

    Returns
    -------
    dict
        `mean` and `std`, `rate`, `probability`, `probabilities`, ... and `shift` where the likelihood is that of the
        value plus a shift.

    Examples
    --------
    >>> import numpy as np
    >>> from evenly.likelihoods import NORMAL
    >>> height = Column(name="height", kind="real", likelihood="normal")
    >>> scaled = NORMAL.to_natural(np.array([8.5, 0.4]))  # of the data divided by 20
    >>> usual = recover_column(height, [Feature(0, "height", NORMAL)], [0.05], [scaled], np.zeros(0))
    >>> {name: round(float(value), 9) for name, value in usual.items()}
    {'mean': 170.0, 'std': 8.0}
    """
    feature, scale, natural = features[0], scales[0], naturals[0]
    shares = namespace(natural).asarray(frequencies, natural)
    if feature.trick == "gamma":
        unscaled = [GAMMA.unscale_natural(one, s) for one, s in zip(naturals, scales, strict=True)]
        if column.kind == "count":
            counted = column_likelihood(column)
            return _by_name(counted, counted.from_moments(*undo_moments(unscaled[0])))
        if column.kind == "binary":
            return {"probability": undo_binary(unscaled[0])}
        return {"probabilities": undo_classes(unscaled, "gamma", shares)}
    if feature.trick == "bern":
        return {"probabilities": undo_classes(naturals, "bern", shares)}
    family = feature.likelihood
    usual = family.unscale_usual(family.to_usual(natural), scale)
    if family.one_per_class:
        return {"probabilities": usual}
    return _by_name(family, usual) | ({"shift": column.shift} if column.shift else {})


def _by_name(family: Likelihood, usual: Array) -> dict[str, Array]:
    return {name: usual[..., i] for i, name in enumerate(family.usual_names)}


def estimate_column(column: Column, family: Likelihood, usual: Mapping[str, Array], which: str) -> Floats:
    """Return one value, or code of a class, for each distribution: its mean, median or mode.

    Classes have no mean: the most probable one stands for it, and for the median too where they have no order. Where
    the mean is infinite, the median stands for it.

    Examples
    --------
    >>> import numpy as np
    >>> from evenly.likelihoods import LOG_NORMAL
    >>> wage = Column(name="wage", kind="positive", likelihood="log-normal", shift=1.0)
    >>> usual = {"log_mean": np.array([2.0]), "log_std": np.array([0.5]), "shift": 1.0}
    >>> [round(float(estimate_column(wage, LOG_NORMAL, usual, each)[0]), 3) for each in ("mean", "median", "mode")]
    [7.373, 6.389, 4.755]
    """
    if "probability" in usual:
        return np.asarray(usual["probability"] > 0.5, np.float64)
    if "probabilities" in usual:
        shares = np.asarray(usual["probabilities"])
        if column.kind == "ordinal" and which == "median":
            return np.asarray((np.cumsum(shares, -1)[..., :-1] < 0.5).sum(-1), np.float64)
        return np.asarray(shares.argmax(-1), np.float64)
    if _is_plain(family):
        return np.asarray(usual["mean"])
    natural = _natural(family, usual)
    with np.errstate(over="ignore"):
        value = getattr(family, which)(natural)
        if which == "mean" and not np.isfinite(value).all():
            value = np.where(np.isfinite(value), value, family.median(natural))
    return np.asarray(value - column.shift)


def quantile_column(column: Column, family: Likelihood, usual: Mapping[str, Array], level: float) -> Floats:
    """Return the quantile of each number's distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from evenly.likelihoods.continuous import EXPONENTIAL
    >>> wait = Column(name="wait", kind="positive", likelihood="exponential")
    >>> quantile_column(wait, EXPONENTIAL, {"rate": np.array([1.0, 2.0])}, 0.5).round(3).tolist()
    [0.693, 0.347]
    """
    if _is_plain(family):
        return np.asarray(usual["mean"] + usual["std"] * STANDARD.inv_cdf(level))
    with np.errstate(over="ignore"):
        return np.asarray(family.quantile(_natural(family, usual), level) - column.shift)


def mix_numbers(family: Likelihood, usuals: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Return the distribution of a family that is nearest to a mixture of several, in equal shares.

    That is the one with the mixture's mean statistics: of a normal, its mean and standard deviation. Of a likelihood of
    your own, finding it row by row would take longer than all the rest: its natural parameters are averaged.

    Examples
    --------
    >>> import numpy as np
    >>> apart = [{"mean": np.array([mean]), "std": np.array([1.0])} for mean in (0.0, 10.0)]
    >>> from evenly.likelihoods import NORMAL
    >>> mixed = mix_numbers(NORMAL, apart)
    >>> mixed["mean"].round(3), mixed["std"].round(3)
    (array([5.]), array([5.099]))
    """
    means = {name: np.asarray(sum(one[name] / len(usuals) for one in usuals)) for name in family.usual_names}
    if not family.fits_quickly:
        return means
    if family.location_scale:  # their statistics are squares, of which little is left far from 0
        place, spread = family.usual_names
        apart = [one[place] - means[place] for one in usuals]
        squares = np.hypot.reduce([*apart, *(one[spread] for one in usuals)])
        return {place: means[place], spread: squares / np.sqrt(len(usuals))}
    with np.errstate(all="ignore"):
        statistics = sum(family.mean_statistics(_natural(family, one)) for one in usuals) / len(usuals)
        nearest = family.to_usual(family.fit(np.asarray(statistics)))
    # Where rounding leaves no spread, the distributions agree as far as numbers can tell.
    found = np.isfinite(nearest).all(-1)
    return {name: np.where(found, nearest[..., i], means[name]) for i, name in enumerate(family.usual_names)}


def draw_column(column: Column, family: Likelihood, usual: Mapping[str, Array], rng: np.random.Generator) -> Floats:
    """Draw one value, or code of a class, from each distribution."""
    if "probability" in usual:
        return np.asarray(rng.random(usual["probability"].shape) < usual["probability"], np.float64)
    if "probabilities" in usual:
        shares = np.asarray(usual["probabilities"])
        below = np.cumsum(shares, -1)[..., :-1] < rng.random(shares.shape[:-1])[..., None]
        return np.asarray(below.sum(-1), np.float64)
    if _is_plain(family):
        return np.asarray(usual["mean"] + usual["std"] * rng.standard_normal(usual["mean"].shape))
    with np.errstate(over="ignore"):
        return np.asarray(family.sample(rng, _natural(family, usual)) - column.shift)


def _is_plain(family: Likelihood) -> bool:
    """Whether mean and std say it all: a normal of 1e300 has no natural parameters, since its variance overflows."""
    return family.location_scale and not family.in_logs


def _natural(family: Likelihood, usual: Mapping[str, Array]) -> Floats:
    return np.asarray(family.to_natural(np.stack([usual[name] for name in family.usual_names], axis=-1)))
