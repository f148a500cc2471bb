"""Parameters of scaled features as a model gives them, of any leading shape: checked, and made natural."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, namespace, to_numpy
from evenly.scaling.tricks import Feature

Given = Array | Mapping[str, Array]
"""Natural parameters along the last axis, or usual ones by name."""
TOLERANCE = 1e-3
"""Usual parameters that come back from natural ones with another value, beyond rounding in half precision, are none."""


def natural_parameters(
    name: str, features: Sequence[Feature], given: Mapping[str, Given], known: Sequence[str]
) -> list[Array] | None:
    """Return the natural parameters of a column's features, in their order; None if there are none of them.

    Parameters
    ----------
    name : str
        The column's.
    features : sequence of Feature
        Its features.
    given : mapping of feature or column to parameters
        For a column of several features either each of them or the column itself, whose arrays have an axis of
        features: the last one but one of natural parameters, the last one of usual parameters.
    known : sequence of str
        The names of all features: a feature takes precedence over a column of the same name.

    Examples
    --------
    >>> from evenly.likelihoods import NORMAL
    >>> height = [Feature(0, "height", NORMAL)]
    >>> draws = {"height": {"mean": np.full((4, 3), 2.0), "std": 0.5}}  # one standard deviation for all
    >>> natural_parameters("height", height, draws, ["height"])[0].shape
    (4, 3, 2)
    """
    if name in given and name not in known:
        both = [one.name for one in features if one.name in given]
        if both:
            raise TableError(f"parameters of it and of {both[0]!r}", "expected one of them", column=name)
        naturals = _of_column(name, features, given[name])
    else:
        absent = [one.name for one in features if one.name not in given]
        if len(absent) == len(features):
            return None
        if absent:
            raise TableError(f"no parameters of {absent[0]!r}", "expected all features of it", column=name)
        naturals = [_natural(one.likelihood, given[one.name], one.name) for one in features]
    shapes = [tuple(one.shape) for one in naturals]
    _broadcast([shape[:-1] for shape in shapes], [one.name for one in features], name)
    return naturals


def _of_column(name: str, features: Sequence[Feature], given: Given) -> list[Array]:
    """Take the parameters of several features apart."""
    n, usual = len(features), isinstance(given, Mapping)
    arrays = {key: _array(one, name) for key, one in given.items()} if isinstance(given, Mapping) else {}
    if not usual:
        arrays = {"natural parameters": _array(given, name)}
    for key, one in arrays.items():
        axes = tuple(one.shape)[-1:] if usual else tuple(one.shape)[-2:-1]
        if axes != (n,):
            which = "last axis" if usual else "last axis but one"
            raise TableError(
                f"{key} of shape {tuple(one.shape)}", f"expected its {n} features along the {which}", column=name
            )
    if usual:
        return [
            _natural(one.likelihood, {key: array[..., k] for key, array in arrays.items()}, name)
            for k, one in enumerate(features)
        ]
    (whole,) = arrays.values()
    return [_natural(one.likelihood, whole[..., k, :], name) for k, one in enumerate(features)]


def _natural(family: Likelihood, given: Given, name: str) -> Array:
    """Return checked natural parameters from natural or usual ones."""
    if isinstance(given, Mapping):
        usual = _stack_usual(family, given, name)
        with np.errstate(all="ignore"):  # what leaves the domain is found below
            natural = family.to_natural(usual)
            _check_usual(family, usual, family.to_usual(natural), name)
    else:
        natural = _array(given, name)
        _check_size(natural, family, name)
    _check_domain(family, natural, name)
    return natural


def _stack_usual(family: Likelihood, given: Mapping[str, Array], name: str) -> Array:
    names = ("probabilities",) if family.one_per_class else family.usual_names
    if set(given) != set(names):
        raise TableError(
            f"the parameters {', '.join(map(str, given)) or 'none'}",
            f"a scaled feature of the {family.name} likelihood expects {', '.join(names)}",
            "or give natural parameters, as an array",
            column=name,
        )
    parts = {one: _array(given[one], name) for one in names}
    if family.one_per_class:
        _check_size(parts["probabilities"], family, name, "probabilities")
        return parts["probabilities"]
    _broadcast([tuple(one.shape) for one in parts.values()], names, name)
    xp = namespace(*parts.values())
    like = next((one for one in parts.values() if namespace(one) is xp), None)
    return xp.stack([xp.asarray(one, like) for one in parts.values()])


def _array(given: Any, name: str) -> Array:
    """Return an array of NumPy, JAX or PyTorch as it is, and numbers in lists or tables as one of NumPy."""
    if namespace(given) is not namespace(0.0):
        return given
    try:
        array = np.asarray(given)
        return array if np.issubdtype(array.dtype, np.floating) else array.astype(np.float64)
    except (TypeError, ValueError):
        raise TableError(
            f"{type(given).__name__} that is no array of numbers", "expected arrays of the same shape", column=name
        ) from None


def _check_size(array: Array, family: Likelihood, name: str, what: str = "natural parameters") -> None:
    """Refuse parameters whose last axis is not that of the likelihood: rows there would be taken for parameters."""
    n = len(family.natural_bounds)
    if tuple(array.shape)[-1:] != (n,):
        usual = "probabilities" if family.one_per_class else ", ".join(family.usual_names)
        hint = "add an axis: array[..., None]" if n == 1 else f"or give usual parameters by name: {usual}"
        expected = f"the {family.name} likelihood of its scaled feature expects {n} along the last axis"
        raise TableError(f"{what} of shape {tuple(array.shape)}", expected, hint, column=name)


def _broadcast(shapes: Sequence[tuple[int, ...]], names: Sequence[str], column: str) -> None:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        different = dict(zip(shapes, names, strict=True))
        listed = ", ".join(f"{one} of shape {shape}" for shape, one in different.items())
        raise TableError(listed, "expected leading axes of the same shape (rows, draws)", column=column) from None


def _check_domain(family: Likelihood, natural: Array, name: str) -> None:
    """Refuse natural parameters that no distribution has; those inside a compiled function cannot be seen."""
    values = _seen(natural)
    if values is None:
        return
    for k, (low, high) in enumerate(family.natural_bounds):
        outside = values[..., k][(values[..., k] < low) | (values[..., k] > high)]
        if outside.size:
            raise TableError(
                f"{outside.flat[0]:.6g} as natural parameter {k + 1}",
                f"the {family.name} likelihood of its scaled feature expects one between {low:g} and {high:g}",
                column=name,
            )


def _check_usual(family: Likelihood, usual: Array, again: Array, name: str) -> None:
    """Refuse usual parameters that no distribution has: they do not come back from the natural ones."""
    values, back = _seen(usual), _seen(again)
    if values is None or back is None:
        return
    with np.errstate(all="ignore"):
        same = np.isnan(values) | (values == back) | (np.abs(values - back) <= TOLERANCE * np.abs(values))
    if not same.all():
        place = tuple(np.argwhere(~same)[0])
        what = "probabilities" if family.one_per_class else family.usual_names[place[-1]]
        expected = f"the {family.name} likelihood of its scaled feature has none such"
        if family.one_per_class:
            expected = "expected probabilities that sum to 1"
        raise TableError(f"{what} = {values[place]:.6g}", expected, column=name)


def _seen(array: Array) -> Any:
    """Return the numbers of an array; None where there are none yet, as inside a function that JAX compiles."""
    try:
        return to_numpy(array)
    except (TypeError, RuntimeError):
        return None
