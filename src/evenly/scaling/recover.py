"""From natural parameters of scaled features to usual parameters per column, in the table's units, tricks undone."""

from __future__ import annotations

from collections.abc import Sequence

from evenly.likelihoods import GAMMA, Array, Likelihood, namespace
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
        `mean` and `std`, `rate`, `probability`, `probabilities`, ... and `shift` where the likelihood describes the
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
