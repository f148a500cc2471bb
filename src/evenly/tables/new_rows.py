"""Cells of rows that were not there in fit, as values that a likelihood has a density for.

A fit refuses cells that its likelihoods have no density for. A row that comes later may hold any: they are moved to the
nearest value that has one, and what was changed is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, namespace
from evenly.tables.cells import cells_among, check_values, encode, read_cells
from evenly.tables.columns import Floats, TableColumn
from evenly.tables.schema import Column

MOST_NAMED = 5
"""Cells that a message quotes."""
LONGEST = 40
"""Characters of a cell that a message quotes."""


@dataclass(frozen=True)
class Change:
    """What was done to some cells of a column.

    Examples
    --------
    >>> print(Change("colour", 3, "with classes not seen in fit, treated as missing", ("violet",)))
    column 'colour': 3 cells with classes not seen in fit, treated as missing: 'violet'
    """

    column: str
    n: int
    what: str
    """What the cells were, and what was done."""
    quoted: tuple[Any, ...] = ()
    """The distinct cells, where they are no numbers."""

    def __str__(self) -> str:
        return self.about([self])

    @staticmethod
    def about(changes: Sequence[Change]) -> str:
        """Return one message about the changes of one column."""
        parts = [
            f"{one.n} cell{'s' if one.n > 1 else ''} {one.what}{f': {quote(one.quoted)}' if one.quoted else ''}"
            for one in changes
        ]
        return f"column {changes[0].column!r}: {'; '.join(parts)}"


def quote(cells: Sequence[Any]) -> str:
    """Quote the first few cells, cut to a sane length.

    Examples
    --------
    >>> print(quote(["a" * 100, 2.5]))
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..., 2.5
    """
    texts = [repr(one) for one in cells[:MOST_NAMED]]
    shown = ", ".join(text if len(text) <= LONGEST else f"{text[:LONGEST]}..." for text in texts)
    return shown + (f" and {len(cells) - MOST_NAMED} more" if len(cells) > MOST_NAMED else "")


def describe_changes(changes: Iterable[Change]) -> list[str]:
    """Return one message for each column; the same change of several parts of a table is counted together.

    Examples
    --------
    >>> describe_changes([Change("n", 2, "below 0, used as 0"), Change("n", 1, "below 0, used as 0")])
    ["column 'n': 3 cells below 0, used as 0"]
    """
    together: dict[str, dict[str, Change]] = {}
    for one in changes:
        same = together.setdefault(one.column, {})
        before = same.get(one.what, replace(one, n=0, quoted=()))
        quoted = tuple(dict.fromkeys([*before.quoted, *one.quoted]))
        same[one.what] = replace(one, n=before.n + one.n, quoted=quoted)
    return [Change.about([*same.values()]) for same in together.values()]


class Step(NamedTuple):
    """A step that moves values to where the likelihood has a density."""

    what: str
    """What the moved cells were, and where they went."""
    move: Callable[[Array], Array]
    """Takes an array, or a Narwhals expression; missing cells stay."""


class Reading(NamedTuple):
    """The cells of a column in new rows."""

    cells: Floats
    """Values or codes; NaN where they are missing, or are no values."""
    values: Floats
    """The same, with a density: what a model takes."""
    unread: npt.NDArray[np.bool_] | None
    """Which cells hold something that is no value: an unseen class, a text in a column of numbers, infinity."""
    unseen: tuple[Any, ...]
    """The classes that the column does not know."""
    changes: list[Change]
    """What was done, except with unseen classes, which is up to the caller."""


@dataclass(frozen=True)
class NewCells:
    """Reads cells of one column in rows that were not there in fit.

    Examples
    --------
    >>> from evenly.likelihoods import get_likelihood
    >>> visits = NewCells(Column(name="visits", kind="count"), get_likelihood("poisson"), (1.0, 7.0))
    >>> found = visits.read(TableColumn("visits", np.array([3.0, 2.5, -1.0, np.inf, np.nan])))
    >>> found.values.tolist()
    [3.0, 3.0, 0.0, nan, nan]
    >>> print(*describe_changes(found.changes), sep="\\n")
    column 'visits': 1 cell infinite, treated as missing; 1 cell below 0, used as 0; 1 cell not whole, rounded
    """

    column: Column
    family: Likelihood
    extent: tuple[float, float] | None
    """The smallest and the largest value in fit, shift included; None if there was none."""

    @property
    def steps(self) -> list[Step]:
        """The steps from any number to one that the likelihood has a density for."""
        if self.column.has_classes:
            return []
        bounded = self._into_bounds()
        return bounded + (self._into_whole() if self.family.support.whole else self._into_support())

    def read(self, cells: TableColumn, *, strict: bool = False, move: bool = True) -> Reading:
        """Read cells, and move their values to where the likelihood has a density.

        Parameters
        ----------
        strict : bool
            Raise an error instead, as fit does.
        move : bool
            Whether to move finite values at all.
        """
        cells = _told_apart(cells)
        values, unknown = (encode if strict else read_cells)(self.column, cells)
        unread = cells_among(cells, unknown) if unknown else None
        unseen = tuple(unknown) if self.column.has_classes else ()
        changes = []
        if unread is not None and not self.column.has_classes:
            changes.append(self._change(unread, "with no number, treated as missing", tuple(unknown)))
        try:
            check_values(self.column, values, self.family)
            return Reading(values, values, unread, unseen, changes)
        except TableError:
            if strict:
                raise
        infinite = np.isinf(values)
        if infinite.any():
            changes.append(self._change(infinite, "infinite, treated as missing"))
            unread = infinite if unread is None else unread | infinite
        moved = np.where(infinite, np.nan, values)
        for what, step in self.steps if move else ():
            before, moved = moved, np.asarray(step(moved))
            changed = (moved != before) & ~np.isnan(before)
            if changed.any():
                changes.append(self._change(changed, what))
        return Reading(values, moved, unread, unseen, changes)

    def _change(self, where: npt.NDArray[np.bool_], what: str, quoted: tuple[Any, ...] = ()) -> Change:
        return Change(self.column.name, int(where.sum()), what, quoted)

    def _into_bounds(self) -> list[Step]:
        low, high = self.column.lower, self.column.upper
        steps = []
        if low is not None:
            steps.append(Step(f"below the declared {low:g}, used as that", lambda x: _raise_to(low, x)))
        if high is not None:
            steps.append(Step(f"above the declared {high:g}, used as that", lambda x: _lower_to(high, x)))
        return steps

    def _into_whole(self) -> list[Step]:
        support = self.family.support
        low, high = support.lower - self.column.shift, support.upper - self.column.shift
        # A remainder, because expressions of some engines cannot round, and others do so to the even number.
        steps = [
            Step(f"below {low:g}, used as {low:g}", lambda x: _raise_to(low, x)),
            Step("not whole, rounded", lambda x: (x - low + 0.5) - (x - low + 0.5) % 1.0 + low),
        ]
        if np.isfinite(high):
            steps.append(Step(f"above {high:g}, used as {high:g}", lambda x: _lower_to(high, x)))
        return steps

    def _into_support(self) -> list[Step]:
        """Move values outside an open end to the outermost value of fit.

        Next to the end itself, a value such as 1e-300 would be an extreme outlier to a likelihood of logarithms.
        """
        support, shift = self.family.support, self.column.shift
        low, high = support.lower - shift, support.upper - shift
        first, last = self.extent or (support.typical, support.typical)
        steps = []
        if np.isfinite(low) and support.closed:
            steps.append(Step(f"below {low:g}, used as {low:g}", lambda x: _raise_to(low, x)))
        elif np.isfinite(low):
            nearest = first - shift
            what = f"not above {low:g}, used as {nearest:g}, the smallest value in fit"
            zeros = self.column.clip is not None  # which have a treatment of their own
            steps.append(Step(what, lambda x: namespace(x).where(x < low if zeros else x <= low, nearest, x)))
        if np.isfinite(high):
            farthest = last - shift
            what = f"not below {high:g}, used as {farthest:g}, the largest value in fit"
            steps.append(Step(what, lambda x: namespace(x).where(x >= high, farthest, x)))
        return steps


def _told_apart(cells: TableColumn) -> TableColumn:
    """Return lists and other cells that cannot be told apart by their hash as their texts."""
    if cells.storage != "other":
        return cells
    try:
        _ = cells.factorized
        return cells
    except TypeError:
        native = cells.native.tolist() if isinstance(cells.native, np.ndarray) else cells.native.to_list()
        return TableColumn(cells.name, np.array([None if cell is None else str(cell) for cell in native], object))


def _raise_to(low: float, x: Array) -> Array:
    return namespace(x).where(x < low, low, x)


def _lower_to(high: float, x: Array) -> Array:
    return namespace(x).where(x > high, high, x)
