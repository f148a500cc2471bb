"""Packages of optional extras: imported when needed; an absent one is an error that names the line to install it."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from evenly._support.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional extra; if it is absent, the error says how to install it.

    Examples
    --------
    >>> require("json", "tool").dumps([1])
    '[1]'
    >>> require("no_such_package", "tool")
    Traceback (most recent call last):
    evenly.MissingExtraError: this needs the package 'no_such_package'. Install it with: pip install ...
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtraError(
            f'this needs the package {package!r}. Install it with: pip install "evenly[{extra}]"'
        ) from None


def require_later(module: str, extra: str) -> None:
    """Raise the error of `require` if a module of an optional extra is absent, without importing it.

    Examples
    --------
    >>> require_later("json", "tool")
    """
    try:
        found = importlib.util.find_spec(module) is not None
    except ValueError:  # a stand-in without a spec, which hides it
        found = False
    if not found:
        require(module, extra)
