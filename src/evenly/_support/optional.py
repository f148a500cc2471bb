"""Packages of optional extras: imported when they are needed, or named with the line that installs them."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from evenly._support.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional extra, or say how to install it.

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
    """Say how to install a module of an optional extra if it is not there, without importing it.

    Examples
    --------
    >>> require_later("json", "tool")
    """
    try:
        found = importlib.util.find_spec(module) is not None
    except ValueError:  # somebody hides it: there is a place for it, but nothing in it
        found = False
    if not found:
        require(module, extra)
