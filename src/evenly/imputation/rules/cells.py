"""The cells of some rows that rules read and fill: which are known, which are open, and which were not asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from evenly.imputation.rules.columns import RuleColumn
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]


class Cells:
    """The cells of the columns that rules name.

    Parameters
    ----------
    columns : mapping of name to RuleColumn
        The columns.
    values : mapping of name to array
        Values or codes; NaN where they are not known.
    open_ : mapping of name to array of bool
        Which cells may be filled, and filled again.
    widths : mapping of name to array, optional
        How uncertain open cells are, in the units of the column.
    """

    def __init__(
        self,
        columns: Mapping[str, RuleColumn],
        values: Mapping[str, Floats],
        open_: Mapping[str, Flags],
        widths: Mapping[str, Floats] | None = None,
    ) -> None:
        self.columns, self.widths = columns, widths or {}
        self.values = {name: own.copy() for name, own in values.items()}
        self.open = {name: own.copy() for name, own in open_.items()}
        self.blank = {name: np.zeros(len(own), bool) for name, own in values.items()}
        """Which cells were not asked, and stay missing."""
        self._numbers: dict[str, Floats] = {}

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.values.values()), np.zeros(0)))

    def number(self, name: str) -> Floats:
        """Return the numbers of a column, as rules compute with them."""
        if name not in self._numbers:
            self._numbers[name] = self.columns[name].to_numbers(self.values[name])
        return self._numbers[name]

    def code(self, name: str) -> Floats:
        """Return the codes of a column's classes."""
        return self.values[name]

    def known(self, name: str) -> Flags:
        """Which cells hold a value that is not to be changed."""
        return ~np.isnan(self.values[name]) & ~self.open[name]

    def any_open(self, names: Iterable[str]) -> Flags:
        """Which rows have an open cell in some columns."""
        return np.asarray(np.any([self.open[name] for name in names], axis=0) | np.zeros(self.n_rows, bool))

    def put(self, name: str, where: Flags, values: Floats) -> Flags:
        """Write values or codes, where there are any; returns where."""
        where = where & self.open[name] & np.isfinite(values)
        self.values[name] = np.where(where, values, self.values[name])
        self._numbers.pop(name, None)
        return where

    def put_numbers(self, name: str, where: Flags, numbers: Floats, *, toward: int = 0) -> Flags:
        """Write numbers that the column can hold, rounded to its precision; returns where there were such."""
        column = self.columns[name]
        grid, (low, high) = column.grid, column.limits
        settled = numbers if grid is None else grid.settle(numbers, toward)
        with np.errstate(invalid="ignore"):
            return self.put(name, where & (settled >= low) & (settled <= high), column.from_numbers(settled))

    def put_exactly(self, name: str, where: Flags, numbers: Floats) -> Flags:
        """Write numbers in the full precision of the column's type; returns where it can hold them."""
        column = self.columns[name]
        finest, (low, high) = column.finest, column.limits
        settled = numbers if finest is None else finest.settle(numbers)
        with np.errstate(invalid="ignore"):
            return self.put(name, where & (settled >= low) & (settled <= high), column.from_numbers(settled))

    def close(self, name: str, where: Flags) -> None:
        """Take cells as known from now on."""
        self.open[name] = self.open[name] & ~where

    def leave(self, name: str, where: Flags) -> None:
        """Leave cells missing, because they were not asked."""
        where = where & self.open[name]
        self.values[name] = np.where(where, np.nan, self.values[name])
        self.blank[name] = self.blank[name] | where
        self._numbers.pop(name, None)
        self.close(name, where)

    def width(self, name: str) -> Floats:
        """Return how uncertain each cell is."""
        spread = self.columns[name].spread
        own = self.widths.get(name)
        if own is None:
            return np.full(self.n_rows, spread)
        return np.where(np.isfinite(own) & (own > 0.0), own, 1e-6 * spread)

    @property
    def any_missing(self) -> Flags:
        """Which rows have cells that were filled, or left missing."""
        return np.asarray(self.any_open(self.open) | np.any([*self.blank.values()], axis=0))

    def part(self, rows: npt.NDArray[np.intp]) -> Cells:
        """Return a copy of some rows."""
        values, widths = ({name: own[rows] for name, own in each.items()} for each in (self.values, self.widths))
        return Cells(self.columns, values, {name: own[rows] for name, own in self.open.items()}, widths)

    def take_over(self, some: Cells, rows: npt.NDArray[np.intp]) -> None:
        """Take over the values of some rows."""
        for name, own in some.values.items():
            self.values[name][rows] = own
            self._numbers.pop(name, None)

    def ask_again(self, opened: Mapping[str, Flags], filled: Mapping[str, Floats], rows: Flags) -> None:
        """Open cells again; in some rows, those that were left missing hold again what they were filled with."""
        for name in opened:
            again = self.blank[name] & rows
            self.blank[name] = self.blank[name] & ~again
            self.values[name] = np.where(again, filled[name], self.values[name])
            self._numbers.pop(name, None)
        self.reopen(opened)

    def reopen(self, opened: Mapping[str, Flags]) -> None:
        """Open cells again, but for those that are left missing."""
        for name, own in opened.items():
            self.open[name] = own & ~self.blank[name]

    def with_numbers(self, name: str, numbers: Floats) -> Trial:
        """Return the same rows with other numbers in one column."""
        return Trial(self, {name: numbers}, {})

    def with_code(self, name: str, code: float) -> Trial:
        """Return the same rows with one class in one column."""
        codes = np.full(self.n_rows, code)
        return Trial(self, {name: self.columns[name].to_numbers(codes)}, {name: codes})


class Trial:
    """Cells with other numbers or codes in some columns, to try them."""

    def __init__(self, cells: Cells, numbers: Mapping[str, Floats], codes: Mapping[str, Floats]) -> None:
        self.cells, self.numbers, self.codes = cells, numbers, codes

    def number(self, name: str) -> Floats:
        """Return the numbers of a column."""
        return self.numbers[name] if name in self.numbers else self.cells.number(name)

    def code(self, name: str) -> Floats:
        """Return the codes of a column's classes."""
        return self.codes[name] if name in self.codes else self.cells.code(name)
