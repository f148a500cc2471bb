"""Columns with many classes, such as towns or products: which columns are such, and the order of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenly.tables.profile import ColumnProfile, Value
from evenly.tables.schema import MOST_SINGLE, MOST_VALUES, Column

FEWEST_CELLS = 4.0
"""Cells for each class, on average, in a column of more than a hundred: with fewer, hardly any class says anything."""


def refuse_many(n_classes: int, n_cells: int) -> str:
    """Return why so many classes are none to learn from; empty if they are.

    Examples
    --------
    >>> refuse_many(400, 2_000), refuse_many(400, 900)
    ('', '400 classes in 900 cells; declare it `categorical` to use it')
    """
    if n_classes <= MOST_SINGLE:
        return ""
    if n_classes > MOST_VALUES:
        return f"{n_classes} classes: more than {MOST_VALUES:,}"
    if n_cells < FEWEST_CELLS * n_classes:
        return f"{n_classes} classes in {n_cells} cells; declare it `categorical` to use it"
    return ""


def describe_many(n_classes: int) -> str:
    """Return the note of a column with so many classes; empty if each is modelled.

    Examples
    --------
    >>> describe_many(400), describe_many(100)
    ('400 classes: the 100 most frequent are modelled one by one', '')
    """
    if n_classes <= MOST_SINGLE:
        return ""
    return f"{n_classes} classes: the {MOST_SINGLE} most frequent are modelled one by one"


def in_order(column: Column, classes: list[Value], profile: ColumnProfile) -> list[Value]:
    """Return the classes of a column; by their frequency, if they are so many that not all are modelled one by one."""
    many = column.kind == "categorical" and len(classes) > MOST_SINGLE
    return by_frequency(classes, profile) if many else classes


def by_frequency(classes: Sequence[Value], profile: ColumnProfile) -> list[Value]:
    """Return classes by how often they occur, the most frequent first; equally frequent ones keep their order.

    Examples
    --------
    >>> from evenly.tables.columns import TableColumn
    >>> from evenly.tables.profile import profile_column
    >>> cells = TableColumn("town", np.array(["Bern", "Ulm", "Ulm", "Aarau"], object))
    >>> by_frequency(["Aarau", "Bern", "Ulm"], profile_column(cells))
    ['Ulm', 'Aarau', 'Bern']
    """
    distinct: Sequence[Any]
    counts: Sequence[Any]
    if profile.distinct is not None and profile.counts is not None:
        distinct, counts = profile.distinct, profile.counts
    elif profile.numbers is not None:
        known = ~np.isnan(profile.numbers)
        weights = None if profile.weights is None else profile.weights[known]
        values, places = np.unique(profile.numbers[known], return_inverse=True)
        distinct, counts = values.tolist(), np.bincount(places, weights, minlength=len(values)).tolist()
    else:
        return list(classes)
    found = {_key(value): float(n) for value, n in zip(distinct, counts, strict=True)}
    return sorted(classes, key=lambda one: -found.get(_key(one), 0.0))


def _key(value: Any) -> str:
    """Return what a class is known by: equal for 1 and 1.0, which are the same number."""
    return str(float(value)) if isinstance(value, (int, float, np.number)) else str(value)
