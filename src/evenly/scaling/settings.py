"""The settings of a scaler: refused where they mean nothing, compared, and as JSON holds them."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly._support import TableError
from evenly.likelihoods import FAMILIES, Likelihood, is_registered
from evenly.scaling.methods import get_method

if TYPE_CHECKING:
    from evenly.scaling.scaler import LipschitzScaler

CHOICES = {
    "bound": ("exact", "paper"),
    "zeros": ("shift", "clip"),
    "noise": ("mean", "drawn"),
    "handle_unknown": ("ignore", "error"),
    "passthrough": ("drop", "keep"),
    "dates": ("ignore", "model"),
}


def check_settings(scaler: LipschitzScaler) -> None:
    """Refuse settings that mean nothing."""
    get_method(scaler.method)
    for name, value in (("learning_rate", scaler.learning_rate), ("target", scaler.target)):
        if value is not None and not (isinstance(value, numbers.Real) and np.isfinite(value) and value > 0):
            raise TableError(f"{name} = {value!r}", "expected a positive number")
    for name, known in CHOICES.items():
        if getattr(scaler, name) not in known:
            raise TableError(f"{name} = {getattr(scaler, name)!r}", f"expected {known[0]!r} or {known[1]!r}")
    check_strict(scaler)


def check_strict(estimator: Any) -> None:
    """Refuse a setting `strict` that is neither true nor false."""
    if not isinstance(estimator.strict, (bool, np.bool_)):
        raise TableError(f"strict = {estimator.strict!r}", "expected True or False")


def own_likelihoods(likelihoods: Mapping[Any, Any] | None) -> dict[str, Likelihood]:
    """Collect the user's own likelihoods by name; their names must differ from each other and from built-in ones."""
    own: dict[str, Likelihood] = {}
    for column, one in (likelihoods or {}).items():
        if not isinstance(one, Likelihood) or (is_registered(one) and not one.one_per_class):
            continue
        if one.name in FAMILIES or own.setdefault(one.name, one) is not one:
            raise TableError(
                f"another likelihood called {one.name!r}", "expected names to differ", "rename it", column=column
            )
    return own


def plain_settings(estimator: Any) -> dict[str, Any]:
    """Return an estimator's settings as JSON holds them."""
    settings: dict[str, Any] = estimator.get_params(deep=False) | {"schema": None}  # that is in the fitted schema
    settings["likelihoods"] = {
        label: one.name if isinstance(one, Likelihood) else one
        for label, one in (settings["likelihoods"] or {}).items()
    } or None
    if not isinstance(estimator.random_state, (int, np.integer, type(None))):
        settings["random_state"] = None  # a generator; the seed that it gave is saved
    for name in ("kinds", "likelihoods", "bounds", "missing", "predictors"):
        if name in settings:
            settings[name] = _plain(settings[name])
    return settings


def _plain(value: Any) -> Any:
    """Return a setting with labels of columns as texts and pairs as lists, as JSON gives them back."""
    if isinstance(value, Mapping):
        return {str(label): _plain(one) for label, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def check_mergeable(method: str) -> None:
    """Refuse a method whose scales do not follow from the statistics of parts."""
    if not get_method(method).mergeable:
        raise TableError("parts of a table", "quartiles need all rows at once", "use fit, or another method")


def check_alike(a: LipschitzScaler, b: LipschitzScaler) -> None:
    """Refuse to merge fitted scalers that were not fitted alike, on parts of one table."""
    check_mergeable(a.method)
    mine, others = (plain_settings(one) for one in (a, b))
    for name in mine:
        if name != "random_state" and mine[name] != others[name]:
            raise TableError(
                f"{name} = {mine[name]!r} in one scaler and {others[name]!r} in the other",
                "expected the same settings",
                "fit both alike",
            )
    apart = {one.label for one in a.columns_} ^ {one.label for one in b.columns_}
    if apart:
        hint = "add it, with missing cells"
        raise TableError("it in one scaler only", "expected the same columns", hint, column=min(apart, key=str))
