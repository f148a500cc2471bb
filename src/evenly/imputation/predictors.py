"""Which columns predict which: chosen by the user for some columns, all others for the rest.

A column with predictors of its own is predicted in a pass in which every other cell is hidden, as if it were missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.scaling import FittedColumn
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]


class Pass(NamedTuple):
    """The columns that are predicted together, from the same columns."""

    shown: Flags | None
    """Which modelled columns are shown; None: all."""
    targets: tuple[int, ...]
    """The modelled columns to predict."""

    @property
    def hides(self) -> Any:
        """Which modelled columns are hidden; False if none is."""
        return False if self.shown is None else ~self.shown

    def show(self, values: Sequence[Floats]) -> list[Floats]:
        """Return the values of each modelled column, NaN where it is hidden."""
        if self.shown is None:
            return list(values)
        return [own if seen else np.full_like(own, np.nan) for own, seen in zip(values, self.shown, strict=True)]


def read_predictors(predictors: Any, columns: Sequence[FittedColumn]) -> dict[str, tuple[str, ...]]:
    """Return the names of the predictors of each column that has some of its own; refuse what is not a variable."""
    if predictors is None:
        return {}
    if not isinstance(predictors, Mapping):
        raise TableError(f"predictors = {predictors!r}", "expected a mapping by column", '{"income": ["age", "job"]}')
    known: dict[Any, FittedColumn] = {one.column.name: one for one in columns} | {one.label: one for one in columns}

    def name_of(label: Any, role: str) -> str:
        try:
            column = known[label].column
        except (KeyError, TypeError):
            names = [one.column.name for one in columns][:20]
            raise TableError(f"it as {role}", f"expected one of {names}", "check the spelling", column=label) from None
        if column.kind == "ignore":
            raise TableError(f"it as {role}", f"it is passed through ({column.note})", "declare its kind", column=label)
        return column.name

    found = {}
    for label, own in predictors.items():
        target = name_of(label, "a column with predictors")
        if isinstance(own, str) or not isinstance(own, Sequence):
            raise TableError(f"predictors {own!r}", "expected a list of columns", '["age", "job"]', column=label)
        names = tuple(name_of(one, f"a predictor of {target!r}") for one in own)
        if target in names:
            raise TableError("it as its own predictor", "expected other columns", column=label)
        found[target] = names
    return found


def plan_passes(predictors: Mapping[str, Sequence[str]], names: Sequence[str]) -> tuple[Pass, ...]:
    """Return the passes in which modelled columns are predicted: one for each set of predictors.

    Parameters
    ----------
    predictors : mapping of column to columns
        The predictors of some columns; the others are predicted from all.
    names : sequence of str
        The modelled columns.

    Examples
    --------
    >>> for one in plan_passes({"a": ["c"], "b": ["c"]}, ["a", "b", "c"]):
    ...     print(one.shown, one.targets)
    None (2,)
    [False False  True] (0, 1)
    """
    groups: dict[frozenset[str] | None, list[int]] = {}
    for j, name in enumerate(names):
        own = frozenset(predictors[name]) if name in predictors else None
        groups.setdefault(own, []).append(j)
    ordered = sorted(groups.items(), key=lambda one: one[0] is not None)
    return tuple(
        Pass(None if own is None else np.array([name in own for name in names]), tuple(targets))
        for own, targets in ordered
    )
