"""Balancing rules by name and setting, such as `mgda` or `cagrad:0.8`; JAX is imported when one is asked for."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import Any

from evenly._support import TableError, require
from evenly.models.spec import SPECS, ModelSpec

PLAIN, BY_SMOOTHNESS, AUTO = "none", "lip", "auto"
"""No balancing; weights that never change; the model's default. None of them needs JAX."""


def get_rule(text: str) -> Any:
    """Return the balancing rule of that name, with its setting if one follows a colon.

    Examples
    --------
    Needs `pip install "evenly[models]"`.

    >>> get_rule("cagrad:0.8"), get_rule("mgda")
    (CaGrad(c=0.8), Mgda())
    >>> get_rule("mgda:2")
    Traceback (most recent call last):
    evenly.TableError: got balance = 'mgda:2', but mgda has no setting.
    """
    require("jax", "models")
    import_module("evenly.models.online")  # registers its rule
    rules: dict[str, Any] = import_module("evenly.models.balancing").RULES

    name, colon, given = text.partition(":") if isinstance(text, str) else ("", "", "")
    if name not in rules:
        raise TableError(f"balance = {text!r}", f"expected one of {AUTO}, {', '.join(rules)}")
    settings = fields(rules[name])
    if not colon:
        return rules[name]()
    if not settings:
        raise TableError(f"balance = {text!r}", f"{name} has no setting")
    try:
        value = float(given)
    except ValueError:
        value = float("nan")
    low, high = rules[name].limits
    if not low <= value <= high:
        raise TableError(f"balance = {text!r}", f"expected {settings[0].name} as a number from {low:g} to {high:g}")
    return rules[name](value)


def rule_for(spec: ModelSpec, text: str) -> Any:
    """Return the rule that works at every step, None if none does; refuse one that the model has no place for."""
    if text in (AUTO, PLAIN):
        return None
    if not spec.trains:
        _refuse(spec, text, "it is not trained", [one.name for one in SPECS.values() if one.trains])
    if text == BY_SMOOTHNESS:
        return None
    rule = get_rule(text)
    if not spec.shared_output:
        able = [one.name for one in SPECS.values() if one.shared_output]
        _refuse(spec, text, "its columns share no output at which gradients could be weighed", able)
    return rule


def _refuse(spec: ModelSpec, text: str, why: str, able: list[str]) -> None:
    raise TableError(f"balance = {text!r} with model = {spec.name!r}", why, f"choose {' or '.join(map(repr, able))}")
