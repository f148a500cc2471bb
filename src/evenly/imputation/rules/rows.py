"""Rules on the rows of one table: what follows before the model predicts, limits while it does, and repairs after."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning
from evenly.imputation.rules.book import RuleBook
from evenly.imputation.rules.cells import Cells
from evenly.predictive import Predictive, TruncatedPredictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Limits = Mapping[int, tuple[Floats, Floats]]

MOST_NAMED = 5
"""Rows that a warning names."""


@dataclass
class Broken:
    """The rows in which a rule does not hold."""

    n: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, n: int, first: Sequence[int]) -> None:
        """Count some more rows."""
        self.n += n
        self.first += first[: MOST_NAMED - len(self.first)]

    def __str__(self) -> str:
        rows = ", ".join(map(str, self.first)) + (", ..." if self.n > len(self.first) else "")
        return f"{self.n} row{'s' if self.n > 1 else ''} ({rows})"


@dataclass
class RuleLog:
    """Where rules do not hold in the tables that were filled."""

    observed: dict[str, Broken] = field(default_factory=dict)
    """In rows whose cells, as far as the rule goes, are all observed."""
    filled: dict[str, Broken] = field(default_factory=dict)
    """In rows with filled cells."""
    n_tables: int = 0

    def add(self, other: RuleLog, start: int) -> None:
        """Take over what was found in a part of the table that starts at a row."""
        for mine, others in ((self.observed, other.observed), (self.filled, other.filled)):
            for text, one in others.items():
                mine.setdefault(text, Broken()).add(one.n, [row + start for row in one.first])

    @staticmethod
    def note(found: dict[str, Broken], text: str, where: Flags) -> None:
        """Count the rows in which a rule does not hold."""
        if (rows := np.flatnonzero(where)).size:
            found.setdefault(text, Broken()).add(len(rows), rows[:MOST_NAMED].tolist())

    def warn(self, stacklevel: int) -> None:
        """Warn of rows in which rules do not hold, once a rule."""
        messages = [
            f"the rule {text!r} contradicts observed cells, which stay as they are, in {one}"
            for text, one in self.observed.items()
        ]
        many = f" of {self.n_tables} tables together" if self.n_tables > 1 else ""
        messages += [
            f"the rule {text!r} could not be followed in filling {one}{many}" for text, one in self.filled.items()
        ]
        for message in messages:
            warnings.warn(f"{message}. Rows are counted from 0", EvenlyWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class RowRules:
    """The rules of a table's rows; without any, nothing is limited or changed.

    Values and codes are those of the columns of fit, in their order.
    """

    book: RuleBook
    values: Mapping[str, Floats] = field(default_factory=dict)
    """Of the columns that rules name, with what follows from known cells."""
    missing: Mapping[str, Flags] = field(default_factory=dict)
    """Which of their cells are to be filled."""
    open: Mapping[str, Flags] = field(default_factory=dict)
    """Which of these do not follow from known cells."""
    blanks: bool = True
    """Whether cells that were not asked for stay missing."""
    log: RuleLog = field(default_factory=RuleLog)

    @classmethod
    def on(cls, book: RuleBook, values: Sequence[Floats | None], missing: Sequence[Flags]) -> RowRules:
        """Return the rules on the rows of a table, given every column's values, and which cells are to be filled."""
        named = {name: values[one.index] for name, one in book.columns.items()}
        known = {name: own for name, own in named.items() if own is not None}
        if len(known) < len(named):  # columns that were not read: these rules cannot be followed
            return cls(NO_BOOK)
        gone = {name: missing[book.columns[name].index] for name in known}
        cells = Cells(book.columns, known, gone)
        book.complete(cells)
        return cls(book, cells.values, gone, cells.open)

    def rows(self, which: slice | npt.NDArray[np.intp]) -> RowRules:
        """Return the rules on a selection of the rows."""
        if not self.book:
            return self
        values = {name: own[which] for name, own in self.values.items()}
        missing, left = ({name: own[which] for name, own in each.items()} for each in (self.missing, self.open))
        return replace(self, values=values, missing=missing, open=left)

    def filling_all(self) -> RowRules:
        """Return the rules without cells that stay missing."""
        return replace(self, blanks=False)

    # --- before prediction ----------------------------------------------------------------------------------------

    def completed(self, values: Sequence[Floats | None]) -> list[Floats | None]:
        """Return every column's values with those that follow from others."""
        found = list(values)
        for name, own in self.values.items():
            index = self.book.columns[name].index
            before, where = found[index], self.missing[name] & ~self.open[name] & ~np.isnan(own)
            if before is not None and where.any():
                found[index] = np.where(where, own, before)
        return found

    def to_predict(self, missing: Sequence[Flags]) -> list[Flags]:
        """Return which of every column's missing cells a model must predict."""
        found = list(missing)
        for name, own in self.open.items():
            index = self.book.columns[name].index
            found[index] = found[index] & own
        return found

    def drawing(self) -> Drawing:
        """Return the rules for cells that are drawn one after the other."""
        return Drawing(self)

    # --- after prediction -----------------------------------------------------------------------------------------

    def cells(self, filled: Sequence[Floats], widths: Mapping[int, Floats] | None = None) -> Cells:
        """Return the cells with filled values, which are open."""
        columns = self.book.columns
        values = {
            name: np.where(self.open[name], filled[columns[name].index], own) for name, own in self.values.items()
        }
        own = {name: widths[one.index] for name, one in columns.items() if one.index in widths} if widths else None
        return Cells(columns, values, self.open, own)

    def settle(self, filled: Sequence[Floats], widths: Mapping[int, Floats] | None = None) -> list[Floats]:
        """Return filled values of every column, changed so that the rules hold."""
        if not self.book:
            return list(filled)
        cells = self.cells(filled, widths)
        self.book.settle(cells)
        return self._with(filled, cells)

    def settle_ends(self, ends: Sequence[Sequence[Floats]], estimates: Sequence[Floats]) -> list[list[Floats]]:
        """Return the ends of intervals around estimates that obey.

        What is exact has no width, what was not asked for no ends. Ends of columns in an order are in order, too.
        """
        if not self.book:
            return [list(one) for one in ends]
        settled = [self.cells(one) for one in ends]
        for cells, widen in zip(settled, (np.fmin, np.fmax), strict=True):
            self.book.settle_orders(cells)
            for name in cells.values:
                estimate, missing = estimates[self.book.columns[name].index], self.missing[name]
                wide = widen(cells.values[name], estimate)
                exact = np.isnan(estimate) | (self.book.columns[name].meaning == "classes") | ~self.open[name]
                cells.values[name] = np.where(missing, np.where(exact, estimate, wide), cells.values[name])
        return [self._with(one, cells) for one, cells in zip(ends, settled, strict=True)]

    def _with(self, filled: Sequence[Floats], cells: Cells) -> list[Floats]:
        found = list(filled)
        for name, own in cells.values.items():
            index = self.book.columns[name].index
            own = own if self.blanks else np.where(np.isnan(own), found[index], own)
            found[index] = np.where(self.missing[name], own, found[index])
        return found

    def check(self, filled: Sequence[Floats]) -> None:
        """Note in which rows of a filled table rules do not hold."""
        if not self.book:
            return
        columns, none = self.book.columns, dict.fromkeys(self.values, np.zeros(0, bool))
        values = {
            name: np.where(self.missing[name], filled[columns[name].index], own) for name, own in self.values.items()
        }
        cells = Cells(columns, values, none)
        self.log.n_tables += 1
        for rule in self.book.rules:
            if (broken := rule.broken(cells)).any():
                gone = np.any([self.missing[name] for name in rule.names], axis=0)
                if self.log.n_tables == 1:  # what is observed is the same in all
                    self.log.note(self.log.observed, rule.text, broken & ~gone)
                self.log.note(self.log.filled, rule.text, broken & gone)

    # --- limits ---------------------------------------------------------------------------------------------------

    def limits(self, cells: Cells | None = None) -> dict[int, tuple[Floats, Floats]]:
        """Return between which values open cells obey, given what is known, by the number of the column."""
        if not self.book:
            return {}
        cells = Cells(self.book.columns, self.values, self.open) if cells is None else cells
        found = {}
        for name in self.book.ordered:
            column = self.book.columns[name]
            if column.meaning == "classes" or not cells.open[name].any():
                continue
            low, high = self.book.between(name, cells)
            ends = (np.where(cells.open[name], one, end) for one, end in ((low, -np.inf), (high, np.inf)))
            low, high = (one - column.origin for one in ends)
            if (np.isfinite(low) | np.isfinite(high)).any():
                found[column.index] = (low, high)
        return found

    @property
    def widths(self) -> dict[int, Floats]:
        """Where to note how uncertain cells are that may be changed: by the number of the column, NaN."""
        numbers = [one for one in self.book.columns.values() if one.meaning in ("number", "date") and one.fillable]
        return {one.index: np.full(len(self.values[one.name]), np.nan) for one in numbers}


class Drawing:
    """The cells of a table while they are drawn one after the other."""

    def __init__(self, rules: RowRules) -> None:
        self.rules = rules
        self.cells = Cells(rules.book.columns, rules.values, rules.open)

    def limits(self) -> dict[int, tuple[Floats, Floats]]:
        """Return between which values open cells obey, given what is drawn."""
        return self.rules.limits(self.cells)

    def drawn(self, values: Mapping[int, Floats], done: Mapping[int, Flags]) -> dict[int, tuple[Flags, Floats]]:
        """Take in cells that were drawn; returns which others follow from them, and their values (NaN: not asked for).

        Parameters
        ----------
        values, done : mapping of int to array
            By the number of a column, its values, and which cells were drawn.
        """
        if not self.rules.book:
            return {}
        cells = self.cells
        for name in cells.open:
            index = self.rules.book.columns[name].index
            if index in done and done[index].any():
                cells.close(name, cells.put(name, done[index], values[index]))
        before = {name: own.copy() for name, own in cells.open.items()}
        self.rules.book.complete(cells)
        closed = {name: own & ~cells.open[name] for name, own in before.items()}
        return {
            self.rules.book.columns[name].index: (own, cells.values[name]) for name, own in closed.items() if own.any()
        }


def truncate(found: Predictive, limits: tuple[Floats, Floats] | None) -> Predictive:
    """Return distributions of numbers between limits, where there are any."""
    if limits is None or not (np.isfinite(limits[0]) | np.isfinite(limits[1])).any():
        return found
    return TruncatedPredictive(found, *limits)


def count_rows(
    book: RuleBook, values: Mapping[str, Floats], missing: Mapping[str, Flags]
) -> dict[str, tuple[int, int, int]]:
    """Return, by the text of a rule, how many rows were filled, do not obey of these, and contradict it as given.

    Parameters
    ----------
    values : mapping of name to array
        Values or codes of a filled table's columns.
    missing : mapping of name to array of bool
        Which of these were missing.
    """
    cells = Cells(book.columns, values, dict.fromkeys(values, np.zeros(0, bool)))
    found = {}
    for text in dict.fromkeys(one.text for one in book.rules):
        some = [one for one in book.rules if one.text == text]  # several of a chain such as 0 <= a <= b
        gone = np.any([missing[name] for one in some for name in one.names], axis=0)
        broken = np.any([one.broken(cells) for one in some], axis=0)
        found[text] = (int(gone.sum()), int((broken & gone).sum()), int((broken & ~gone).sum()))
    return found


NO_BOOK = RuleBook({})
NO_RULES = RowRules(NO_BOOK)
