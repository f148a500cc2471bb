"""What every room needs: the errors, the warning, and the message for a missing extra."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any


class EvenlyError(Exception):
    """The base of every error that Evenly raises on purpose."""


class TableError(EvenlyError, ValueError):
    """A table, a column or a setting is not what was expected.

    Parameters
    ----------
    got, expected, hint : str
        What was found, what was expected instead, and what to do about it.
    column : str, optional
        The column concerned.

    Examples
    --------
    >>> print(TableError("minimum -3.0", "gamma expects values > 0", "declare it `real`", column="income"))
    Column 'income': got minimum -3.0, but gamma expects values > 0. Hint: declare it `real`.
    """

    def __init__(self, got: str, expected: str, hint: str = "", *, column: object = None) -> None:
        where = "" if column is None else f"Column {str(column)!r}: "
        tail = f" Hint: {hint}." if hint else ""
        super().__init__(f"{where}got {got}, but {expected}.{tail}")
        self.column = column

    def __reduce__(self) -> tuple[Any, ...]:
        # The message is built from four parts; unpickling must not build it twice (joblib workers pickle errors).
        return (_rebuild, (type(self), str(self), self.column))


def _rebuild(kind: type[TableError], message: str, column: object) -> TableError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.column = column
    return error


class MissingExtraError(EvenlyError, ImportError):
    """A feature needs a package that is not installed; the message names the line that installs it."""


class EvenlyWarning(UserWarning):
    """Something was not as hoped for; the message names the outcome and what was done instead."""


for _public in (EvenlyError, TableError, MissingExtraError, EvenlyWarning):
    _public.__module__ = "evenly"  # where users find them, and what tracebacks show


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
