"""Log-likelihoods of cells in the table's own units, so that methods and models can be compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, to_numpy
from evenly.tables import Column, Floats, column_likelihood, prepare


def log_likelihood(
    column: Column, usual: Mapping[str, Array], values: Floats, family: Likelihood | None = None
) -> Floats:
    """Return the log-likelihood of encoded cells in the table's own units, so that methods can be compared.

    Parameters
    ----------
    column : Column
        The column; its likelihood counts, whatever trick it was modelled under, as do its shift (which changes no
        unit: its Jacobian is 1) and its clip.
    usual : mapping of parameter to array
        As `LipschitzScaler.unscale` returns them: `mean` and `std`, `rate`, `probability`, `probabilities` (classes
        along the last axis), ... They broadcast with the values.
    values : array
        Values, or codes of classes.
    family : Likelihood, optional
        The column's likelihood if it is one of your own.

    Returns
    -------
    array
        NaN where a cell is; minus infinity where the likelihood has no density. Probabilities are cut to
        [1e-6, 1 - 1e-6] (those of classes then divided by their sum), and Poisson rates below at 1e-6: a trick may
        give 0.

    Examples
    --------
    >>> height = Column(name="height", kind="real")
    >>> log_likelihood(height, {"mean": 170.0, "std": 8.0}, np.array([170.0, np.nan])).round(3)
    array([-2.998,    nan])
    >>> color = Column(name="color", kind="categorical", classes=["blue", "red"])
    >>> log_likelihood(color, {"probabilities": np.array([0.0, 1.0])}, np.array([0.0])).round(2)  # not -infinity
    array([-13.82])
    """
    if column.kind == "ignore":
        raise TableError("an ignored column", "expected one with a likelihood", "leave it out", column=column.name)
    family = column_likelihood(column) if family is None else family
    names = ("probabilities",) if family.one_per_class else family.usual_names
    absent = [name for name in names if name not in usual]
    if absent:
        raise TableError(
            f"the parameters {sorted(usual)}", f"{family.name} expects {', '.join(names)}", column=column.name
        )
    given = [to_numpy(usual[name]) for name in names]
    parameters = given[0] if family.one_per_class else np.stack(np.broadcast_arrays(*given), axis=-1)
    if parameters.shape[-1:] != (len(family.usual_names),):
        got = f"probabilities of shape {parameters.shape}"
        raise TableError(got, f"expected {len(family.usual_names)} along the last axis", column=column.name)
    if family.usual_limits:
        parameters = np.clip(parameters, *np.transpose(family.usual_limits))
    cells = prepare(column, column.lump(np.asarray(values, np.float64)))
    scale = np.float64(1.0)
    if family.needs_unit and cells.size:
        # In the column's own unit, a power of 2: the natural parameters of 1e300 or 1e-300 are no numbers.
        size = np.abs(cells, where=np.isfinite(cells), out=np.zeros_like(cells)).max()
        scale = np.exp2(-np.clip(np.floor(np.log2(size)), -1000.0, 1000.0)) if size > 0.0 else scale
        parameters, cells = family.unscale_usual(parameters, 1.0 / scale), family.scale_data(cells, scale)
    return np.asarray(family.log_density(cells, family.to_natural(parameters)) + np.log(scale), np.float64)
