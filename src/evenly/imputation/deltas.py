"""Shifts of imputed cells, to see how much depends on the assumption that missing cells are like observed ones.

Of a number, the imputed value is shifted; of classes, the log-odds of each.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.imputation.columns import ModelledColumn
from evenly.predictive import ClassPredictive, Predictive
from evenly.tables import Column, Floats

LEAST_POSITIVE = 0.01
"""Shifted numbers of a positive column end at this share of the smallest observed one."""
MOST_LOG_ODDS = 100.0
"""The largest shift of log-odds: beyond, probabilities are 0 or 1 to the last digit."""


class Delta:
    """What is done to the imputed cells of one column: nothing, here."""

    def tilted(self, found: Predictive) -> Predictive:
        """Return the distributions to choose from."""
        return found

    def bounded(self, spec: ModelledColumn, values: Floats, *, rounded: bool, to_support: bool) -> Floats:
        """Return the chosen values, as `ModelledColumn.bounded` does."""
        return spec.bounded(values, rounded=rounded, to_support=to_support)


@dataclass(frozen=True)
class NumberDelta(Delta):
    """A shift of a column of numbers, in its units.

    Shifted numbers may leave the observed range, but not the declared bounds. Counts and positive columns with zeros
    end at 0, other positive columns at a hundredth of their smallest observed number, so that they have a logarithm.
    """

    amount: float

    def bounded(self, spec: ModelledColumn, values: Floats, *, rounded: bool, to_support: bool) -> Floats:
        column, (low, high) = spec.column, spec.extent
        least = -np.inf
        if column.kind in ("positive", "count"):
            least = LEAST_POSITIVE * low if column.kind == "positive" else 0.0
        first = max(low + self.amount, least)
        wide = replace(spec, extent=(first, max(high + self.amount, first)))
        plain = spec.bounded(values, rounded=False, to_support=to_support)
        return wide.bounded(plain + self.amount, rounded=rounded, to_support=to_support)


@dataclass(frozen=True)
class ClassDelta(Delta):
    """Shifts of the log-odds of classes, each against all others."""

    log_odds: tuple[float, ...]

    def tilted(self, found: Predictive) -> Predictive:
        assert isinstance(found, ClassPredictive)
        return found.tilted(np.array(self.log_odds))


NO_DELTA = Delta()


def read_deltas(delta: Any, columns: Mapping[Any, Column]) -> dict[str, Delta]:
    """Return the shifts by name of column; refuse those that mean nothing.

    Parameters
    ----------
    delta : mapping of column to shift
        Of a number, the shift in its units; of classes, a mapping of class to shift of its log-odds.
    columns : mapping of label to Column
        The columns whose missing cells are imputed; they are found by name, too.
    """
    if delta is None:
        return {}
    if not isinstance(delta, Mapping):
        raise TableError(f"delta = {delta!r}", "expected a mapping by column", '{"income": -5000}')
    known: dict[Any, Column] = {one.name: one for one in columns.values()} | dict(columns)
    found: dict[str, Delta] = {}
    for label, shift in delta.items():
        if label not in known:
            names = [one.name for one in columns.values()][:20]
            raise TableError("delta for it", f"expected one of {names}, which are imputed by the model", column=label)
        column = known[label]
        found[column.name] = _of_classes(column, shift) if column.has_classes else NumberDelta(_amount(column, shift))
    return found


def _amount(column: Column, shift: Any) -> float:
    if isinstance(shift, bool) or not isinstance(shift, numbers.Real) or not math.isfinite(shift):
        raise TableError(f"delta = {shift!r}", "expected a number in the column's units", column=column.name)
    return float(shift)


def _of_classes(column: Column, shift: Any) -> ClassDelta:
    classes = [str(one) for one in column.classes or ()]
    example = f"{{{column.name!r}: {{{classes[-1]!r}: 0.5}}}}"
    if not isinstance(shift, Mapping):
        raise TableError(f"delta = {shift!r}", "expected the shift of a class's log-odds", example, column=column.name)
    log_odds = [0.0] * len(classes)
    for one, amount in shift.items():
        if str(one) not in classes:
            raise TableError(f"delta of {one!r}", f"its classes are {classes[:20]}", column=column.name)
        if abs(_amount(column, amount)) > MOST_LOG_ODDS:
            raise TableError(f"delta = {amount!r}", f"log-odds shift by {MOST_LOG_ODDS:g} at most", column=column.name)
        log_odds[classes.index(str(one))] = float(amount)
    return ClassDelta(tuple(log_odds))
