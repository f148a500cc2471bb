"""Errors and warnings. An error says what was got, what was expected, and what to do about it."""

from __future__ import annotations

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
    >>> print(TableError("0 rows", "expected some", "is the file empty?"))
    got 0 rows, but expected some. Hint: is the file empty?
    """

    def __init__(self, got: str, expected: str = "", hint: str = "", *, column: object = None) -> None:
        if not expected:  # made again from its message, as Pyro does to add the shapes of a trace
            super().__init__(got)
            self.column = column
            return
        where = "" if column is None else f"Column {_cut(str(column), 80)!r}: "
        tail = f" Hint: {hint}{'' if hint.endswith('?') else '.'}" if hint else ""
        super().__init__(f"{where}got {_cut(got, 400)}, but {expected}.{tail}")
        self.column = column

    def __reduce__(self) -> tuple[Any, ...]:
        # joblib workers pickle errors: the message must not be built from its parts again.
        return (_rebuild, (type(self), str(self), self.column))


def _cut(text: str, most: int) -> str:
    """Return what a message quotes of a table, without its middle if it is long: a name or a cell may be anything."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def _rebuild(kind: type[TableError], message: str, column: object) -> TableError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.column = column
    return error


class MissingExtraError(EvenlyError, ImportError):
    """A feature needs a package that is not installed; the message names the line that installs it."""


class EvenlyWarning(UserWarning):
    """Something did not go as expected; the message names the outcome and what was done instead."""


class ScaleWarning(EvenlyWarning):
    """A column was scaled otherwise than asked for: `below_floor`, `no_spread` or `out_of_range`."""


class InterruptedWarning(EvenlyWarning):
    """A training was interrupted; what was learned so far is kept."""


for _public in (EvenlyError, TableError, MissingExtraError, EvenlyWarning):
    _public.__module__ = "evenly"  # where users find them, and what tracebacks show
