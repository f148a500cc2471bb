"""How a parameter changes with the scale of its column: what carries its prior along."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.integrations.sites import FAMILIES, OWN, Columns, find_column
from evenly.likelihoods import Likelihood
from evenly.scaling import FittedColumn, LipschitzScaler

Factor = Any
"""A number; for several columns, an array along the last axis."""


def prior_factor(scaler: LipschitzScaler, columns: Columns, parameter: str) -> Factor:
    """Return what a parameter in the table's units is multiplied by to be that of the scaled column.

    Parameters
    ----------
    scaler : LipschitzScaler
        Fitted.
    columns : column or list of columns
        As a site has them.
    parameter : str
        Its name in the likelihood (`mean`, `std`) or in the library's distribution (`loc`, `scale`).

    Examples
    --------
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit(np.array([[30.0], [50.0], [70.0]]))
    >>> bool(np.isclose(prior_factor(scaler, "x0", "loc"), 1.0 / np.std([30.0, 50.0, 70.0])))
    True
    """
    if isinstance(columns, (list, tuple)):
        return np.array([_factor(find_column(scaler, one), parameter) for one in columns])
    return _factor(find_column(scaler, columns), parameter)


def _factor(column: FittedColumn, parameter: str) -> float:
    family, scale = column.features[0].likelihood, column.fits[0].scale
    if column.features[0].trick != "none" or not family.scalable:
        raise TableError("a prior of a discrete column", "its parameters keep their units", column=column.column.name)
    names = parameter_names(family)
    if parameter not in names:
        listed = ", ".join(names)
        raise TableError(
            f"the parameter {parameter!r}", f"the {family.name} likelihood has {listed}", column=column.column.name
        )
    if names[parameter] is None:  # the scale of a Weibull
        return float(family.scale_data(1.0, scale))
    ones = np.ones(len(family.natural_bounds))
    return float(1.0 / np.asarray(family.unscale_usual(ones, scale))[names[parameter]])


def parameter_names(family: Likelihood) -> dict[str, int | None]:
    """Return the names of a likelihood's parameters, in it and in libraries, with their places.

    Examples
    --------
    >>> from evenly.likelihoods import GAMMA
    >>> parameter_names(GAMMA)
    {'shape': 0, 'rate': 1, 'concentration': 0}
    """
    names: dict[str, int | None] = {name: i for i, name in enumerate(family.usual_names)}
    for one in FAMILIES.values():
        if one.likelihood == family.name and len(one.arguments) == len(family.usual_names):
            names |= {name: i for i, name in enumerate(one.arguments) if name not in family.usual_names}
        elif one.likelihood == OWN and family.name not in [other.likelihood for other in FAMILIES.values()]:
            names.setdefault("scale", None)
    return names
