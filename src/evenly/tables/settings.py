"""Settings that declare something of columns: checked, and looked up by column."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenly._support import TableError
from evenly.tables.profile import Value

Markers = Mapping[Any, Sequence[Value]] | Sequence[Value | Mapping[Any, Sequence[Value]]]
"""Markers of missing cells: of all columns, by column, or a list that holds both: `[-999, {"age": [-1]}]`."""
Bounds = tuple[float | None, float | None]
"""The smallest and the largest number that a column may hold; None leaves an end open."""


def check_settings(opened: Any, **settings: Any) -> None:
    """Refuse settings that are not mappings by column, or that name columns which the table does not have."""
    known: set[Any] = {*opened.labels, *opened.names}
    for setting, mapping in settings.items():
        if mapping is not None and not isinstance(mapping, Mapping):
            raise TableError(f"{setting} = {mapping!r}", "expected a mapping by column", '{"age": ...}')
        for name in mapping or ():
            if name not in known:
                raise TableError(
                    f"{setting} for it", f"expected one of {opened.names[:20]}", "check the spelling", column=name
                )


def check_markers(missing: Any) -> Callable[[Any, str], tuple[Value, ...]]:
    """Return the markers of missing cells by column: those of all columns, and its own.

    Examples
    --------
    >>> check_markers([-999, {"age": [-1]}])("age", "age")
    (-999, -1)
    """
    common, by_column = split_markers(missing)
    return lambda label, name: (*common, *(one for own in by_column for one in pick(own, label, name) or ()))


def split_markers(missing: Any) -> tuple[list[Value], list[Mapping[Any, Sequence[Value]]]]:
    """Return the markers of all columns, and the mappings of columns to theirs."""
    given = [missing] if isinstance(missing, Mapping) else () if missing is None else missing
    by_column = (
        []
        if isinstance(given, str) or not isinstance(given, Sequence)
        else [one for one in given if isinstance(one, Mapping)]
    )
    for one in (given, *(own for mapping in by_column for own in mapping.values())):
        if isinstance(one, str) or not isinstance(one, Sequence):
            raise TableError(
                f"missing = {one!r}", "expected a list of markers, or a mapping of column to one", "[-999]"
            )
    return [one for one in given if not isinstance(one, Mapping)], by_column


def check_bounds(value: Any, name: str) -> Bounds | None:
    """Return the declared bounds of a column; refuse what is not a pair of numbers in their order."""
    if value is None:
        return None
    pair = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    numbers_only = all(
        one is None or (isinstance(one, numbers.Real) and not isinstance(one, bool) and not math.isnan(one))
        for one in pair
    )
    if len(pair) != 2 or not numbers_only:
        raise TableError(f"bounds = {value!r}", "expected (lower, upper)", "None leaves an end open", column=name)
    lower, upper = (None if one is None or math.isinf(one) else float(one) for one in pair)
    if lower is not None and upper is not None and lower > upper:
        raise TableError(f"bounds = {value!r}", "expected the lower one first", column=name)
    return lower, upper


def pick(mapping: Mapping[Any, Any] | None, label: Any, name: str) -> Any:
    """Return the entry of a column in a mapping, by its label or its name."""
    if not mapping:
        return None
    return mapping[label] if label in mapping else mapping.get(name)
