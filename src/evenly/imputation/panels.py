"""Other rows of the same unit as inputs: what a person's other years say about this one.

In a panel a key names the unit of each row, such as a person who is asked every year. Each row gets inputs from the
other rows of its unit in the table of fit: shrunk means of their cells (`ClassSums`), and the observed cells before and
after it, along a column of time, or else in the order of the rows. A column that does not differ between units, or does
not go along with the rows before, by more than chance counts as 0.

A row's own cells feed none of its inputs, and cells that are held out feed none of any row. A row that comes later
is known by its cells if it is one of fit; a new one has all rows of its unit as others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenly.imputation.columns import ModelledColumn
from evenly.imputation.learned_rows import hash_cells
from evenly.imputation.level_means import EVIDENCE, MOST_MEANS, ClassSums, averaged_cells, choose_averaged
from evenly.imputation.panel_keys import encode_units, find_time, key_column
from evenly.models import ALWAYS
from evenly.tables import Column, Content, Floats, TableColumn, Value, encode

Rows = npt.NDArray[np.intp]
Inputs = npt.NDArray[np.float32]

MOST_BESIDE = 32
"""The largest number of inputs from the row before, and from the row after."""
NO_ROW = -1
"""The number of a row that is none of fit."""


@dataclass(frozen=True)
class PanelPlan:
    """Which inputs a panel gives."""

    key: int | None
    """The key among the modelled columns; None if it is passed through."""
    time: int | None
    """The modelled column along which rows are ordered; None: in the order of the table."""
    averaged: tuple[int, ...]
    """The columns whose means are taken."""
    n_means: int
    n_numbers: int
    """How many of the means, the first, are of numbers."""
    beside: tuple[int, ...]
    """The columns whose cells before and after are taken."""
    n_beside: int
    n_numbers_beside: int

    @classmethod
    def of(cls, specs: Sequence[ModelledColumn], key: int | None, time: int | None) -> PanelPlan:
        """Choose the columns: numbers and two classes first, while there is room."""
        means = choose_averaged(specs, [key], MOST_MEANS)
        return cls(key, time, *means, *choose_averaged(specs, [key, time], MOST_BESIDE))

    @property
    def width(self) -> int:
        """The number of inputs."""
        return self.n_means + 2 * self.n_beside

    @property
    def owners(self) -> list[tuple[int, bool]]:
        """The modelled column with whose cells each input is hidden, and whether the input stands for classes.

        An input that tells what its row's key or time is must be hidden with these.
        """
        owner = ALWAYS if self.key is None else self.key
        beside = owner if self.time is None else self.time
        means = [(owner, at >= self.n_numbers) for at in range(self.n_means)]
        return means + 2 * [(beside, at >= self.n_numbers_beside) for at in range(self.n_beside)]


class UnitRows(NamedTuple):
    """Rows of a table, placed in a panel."""

    codes: Floats
    """The unit of each row; NaN: one that is not in the panel."""
    times: Floats
    places: Rows
    """Which row of fit it is; `NO_ROW`: none."""


class _Learned(NamedTuple):
    """What is computed from the rows of fit once."""

    sums: ClassSums
    order: _Order
    beside: Floats
    """The cells that rows before or after show, less their mean, as far as they say something."""


class SavedPanel(Content):
    """The JSON of `Panel.to_plain`."""

    key: str
    units: list[Value]
    missing: list[Value]
    time: int | None = Field(ge=0)


@dataclass(frozen=True)
class Panel:
    """The rows of fit by their units."""

    key: Column
    """The column that names the units, which are its classes."""
    plan: PanelPlan
    codes: Floats
    """The unit of each row of fit; NaN where unknown."""
    specs: tuple[ModelledColumn, ...]
    values: tuple[Floats, ...]
    """Each modelled column's values or codes in fit."""

    @classmethod
    def of(cls, column: Column, cells: TableColumn, specs: Sequence[ModelledColumn], values: Sequence[Floats]) -> Panel:
        """Return the panel of a table, given its key and its modelled columns."""
        key, codes = encode_units(column, cells)
        names = [one.name for one in specs]
        own = names.index(key.name) if key.name in names else None
        time = find_time(specs, codes, values) if own is None else None
        return cls(key, PanelPlan.of(specs, own, time), codes, tuple(specs), tuple(values))

    def bound(self, column: Column, cells: TableColumn, specs: Sequence[ModelledColumn]) -> Panel:
        """Return the panel with the units of a table that it has learned from as codes; `column` is the table's key."""
        units: Sequence[Value] = encode_units(column, cells)[0].classes or ()
        if column.kind != "ignore":
            units = column.classes or ()
        names = [units[int(code)] for code in self.key.classes or ()] if units else self.key.classes
        key = key_column(column.name, names or (), column.missing)
        return replace(self, key=key, specs=tuple(specs))

    def showing(self, values: Sequence[Floats]) -> Panel:
        """Return the panel of the same rows, of whose cells less is shown."""
        hidden = np.zeros(len(self.codes), bool) if self.plan.key is None else np.isnan(values[self.plan.key])
        return replace(self, codes=np.where(hidden, np.nan, self.codes), values=tuple(values))

    def inputs_of_fit(self) -> Inputs:
        """Return the inputs of the rows of fit."""
        return self._inputs(UnitRows(self.codes, self.times, np.arange(len(self.codes))))

    def inputs(self, cells: TableColumn, values: Sequence[Floats]) -> Inputs:
        """Return the inputs of rows, given the cells of the key and every modelled column's values or codes."""
        codes = encode(self.key, cells)[0]
        times = np.full(len(codes), np.inf) if self.plan.time is None else values[self.plan.time]
        return self._inputs(UnitRows(codes, times, self._find(codes, values)))

    @property
    def times(self) -> Floats:
        """Where each row of fit stands in its unit."""
        return np.zeros(len(self.codes)) if self.plan.time is None else self.values[self.plan.time]

    @cached_property
    def _hashes(self) -> tuple[npt.NDArray[np.uint64], Rows]:
        """The hashes of the rows of fit, ascending, and the first row of each."""
        return np.unique(hash_cells([self.codes, *self.values]), return_index=True)

    def _find(self, codes: Floats, values: Sequence[Floats]) -> Rows:
        """Return which row of fit each row is: of equal rows of a unit, the first."""
        known, first = self._hashes
        hashes = hash_cells([codes, *values])
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return np.where(known[at] == hashes, first[at], NO_ROW)

    @cached_property
    def _learned(self) -> _Learned:
        """What is computed from the rows of fit once."""
        cells = averaged_cells(self.specs, self.values, self.plan.averaged, by_code=True)
        beside = averaged_cells(self.specs, self.values, self.plan.beside, by_code=True).astype(np.float64)
        order = _Order.of(self.codes, self.times)
        rows = UnitRows(self.codes, self.times, np.arange(len(self.codes)))
        known = ~np.isnan(beside)
        center = np.where(known, beside, 0.0).sum(0) / np.maximum(known.sum(0), 1)
        scale = _evidence(beside, order.beside(beside, rows)[0])
        sums = ClassSums.of(self.codes, len(self.key.classes or ()), cells)
        return _Learned(sums, order, (beside - center) * scale)

    def _inputs(self, rows: UnitRows) -> Inputs:
        learned = self._learned
        own = np.where((rows.places >= 0)[:, None], learned.sums.cells[rows.places], np.float32(np.nan))
        means = learned.sums.means_of(rows.codes, own)
        beside = learned.order.beside(learned.beside, rows)
        return np.concatenate([means, *(np.nan_to_num(one) for one in beside)], axis=1, dtype=np.float32)

    # --- saving -----------------------------------------------------------------------------------------------------

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays to save, by name."""
        return {"panel_codes": self.codes, "panel_values": np.column_stack(self.values)}

    def to_plain(self) -> dict[str, Any]:
        """Return the rest as plain JSON types."""
        return {"key": self.key.name, "units": self.key.classes, "missing": self.key.missing, "time": self.plan.time}

    @classmethod
    def from_saved(
        cls, plain: SavedPanel, tensors: Mapping[str, npt.NDArray[Any]], specs: Sequence[ModelledColumn]
    ) -> Panel:
        """Rebuild it from a file's content and arrays; ValueError if they do not fit the modelled columns."""
        codes, values = (tensors.get(f"panel_{name}", np.zeros(0)) for name in ("codes", "values"))
        if codes.dtype != np.float64 or codes.ndim != 1 or not len(codes) or not plain.units:
            raise ValueError("panel_codes: no codes of units")
        known = codes[~np.isnan(codes)]
        if ((known < 0) | (known >= len(plain.units)) | (known != np.rint(known))).any():
            raise ValueError("panel_codes: codes of no unit")
        if values.dtype != np.float64 or values.shape != (len(codes), len(specs)) or np.isinf(values).any():
            raise ValueError("panel_values: no numbers of the modelled columns, or of other rows")
        for spec, own in zip(specs, values.T, strict=True):
            seen = own[~np.isnan(own)]
            n_classes = len(spec.column.classes or ())
            if spec.column.has_classes and ((seen < 0) | (seen >= n_classes) | (seen != np.rint(seen))).any():
                raise ValueError(f"panel_values: codes of no class of {spec.name!r}")
        if plain.time is not None and plain.time >= len(specs):
            raise ValueError("panel: a time that is no modelled column")
        names = [one.name for one in specs]
        own_place = names.index(plain.key) if plain.key in names else None
        plan = PanelPlan.of(specs, own_place, plain.time)
        return cls(key_column(plain.key, plain.units, plain.missing), plan, codes, tuple(specs), tuple(values.T.copy()))


# --- the rows before and after --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Order:
    """The rows of fit, sorted by unit, time and position; those of no unit come last."""

    codes: Floats
    times: Floats
    rows: Rows
    """The row at each place of the order."""

    @classmethod
    def of(cls, codes: Floats, times: Floats) -> _Order:
        return cls(codes, times, np.lexsort((times, codes)))

    def place_all(self) -> Rows:
        """Return the place of each row of fit."""
        places = np.empty(len(self.rows), np.intp)
        places[self.rows] = np.arange(len(self.rows))
        return places

    def place(self, rows: UnitRows) -> Rows:
        """Return the place of each row; of one that is not of fit, the place of the row that comes after it."""
        n, new = len(self.rows), np.flatnonzero(rows.places < 0)
        together = (
            np.repeat([0, 1], [n, len(new)]),
            np.concatenate([self.times, rows.times[new]]),
            np.concatenate([self.codes, rows.codes[new]]),
        )
        order = np.lexsort(together)
        passed = np.empty(len(order), np.intp)
        passed[order] = np.cumsum(order < n)
        found = self.place_all()[rows.places]
        found[new] = passed[n:]
        return found

    def beside(self, cells: Floats, rows: UnitRows) -> tuple[Floats, Floats]:
        """Return the last observed cells before some rows and the first ones after them, within their units.

        Without any before, it is the one after, and the other way round; NaN without either. A row's own cells count
        for neither.
        """
        n, ordered, places = len(self.rows), self.codes[self.rows], self.place(rows)
        first, last = np.searchsorted(ordered, rows.codes, "left"), np.searchsorted(ordered, rows.codes, "right")
        before, after = np.full((2, len(places), cells.shape[1]), np.nan)
        for d in range(cells.shape[1]):
            column = cells[self.rows, d]
            known = ~np.isnan(column)
            upto = np.concatenate([[-1], np.maximum.accumulate(np.where(known, np.arange(n), -1))])
            since = np.concatenate([np.minimum.accumulate(np.where(known, np.arange(n), n)[::-1])[::-1], [n]])
            one, other = upto[places], since[places + (rows.places >= 0)]
            has_one, has_other = one >= first, other < last
            some = np.flatnonzero((has_one | has_other) & ~np.isnan(rows.codes))
            before[some, d] = column[np.where(has_one, one, other)[some]]
            after[some, d] = column[np.where(has_other, other, one)[some]]
        return before, after


def _evidence(cells: Floats, before: Floats) -> Floats:
    """Return by how much the cells before count, 0 to 1: 0 if cells do not go along with them by more than chance.

    It rises from 0 at as many standard errors as are evidence, so that a few cells more or less change little.
    """
    both = ~np.isnan(cells) & ~np.isnan(before)
    n = np.maximum(both.sum(0), 1)
    one, other = (np.where(both, part - np.where(both, part, 0.0).sum(0) / n, 0.0) for part in (cells, before))
    spread = (one**2).sum(0) * (other**2).sum(0)
    explained = np.where(spread > 0.0, (one * other).sum(0) ** 2 / np.maximum(spread, 1e-300), 0.0)
    return np.asarray(np.maximum(0.0, 1.0 - EVIDENCE**2 / np.maximum(n * explained, 1e-300)))
