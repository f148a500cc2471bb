"""Tables through fitted columns: scaled, and back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from evenly._support import EvenlyWarning, TableError
from evenly.likelihoods import Array
from evenly.scaling.fitted import FittedColumn
from evenly.scaling.inputs import left_out, pass_through, row_keys
from evenly.scaling.lazy_frames import lazy_scaling
from evenly.scaling.parameters import Given, natural_parameters
from evenly.tables import (
    Change,
    LazyTable,
    Table,
    TableColumn,
    build_table,
    describe_changes,
    map_columns,
    retype,
    select,
)


@dataclass(frozen=True)
class NewRows:
    """What to do with cells and columns that a model cannot take as they are; as the settings of a scaler."""

    strict: bool = False
    handle_unknown: str = "ignore"
    passthrough: str = "drop"


@dataclass(frozen=True)
class Transformation:
    """Fitted columns of a kind of table, and their noise."""

    columns: Sequence[FittedColumn]
    container: str
    """What the fitted table was."""
    seed: int
    drawn: bool
    """Whether noise is drawn without a key; if not, its mean is added."""
    rows: NewRows = field(default_factory=NewRows)

    def keeps(self, column: FittedColumn) -> bool:
        """Whether a column is part of the output."""
        return column.is_variable or self.rows.passthrough == "keep"

    @property
    def kept(self) -> list[FittedColumn]:
        """The columns of the output."""
        return [one for one in self.columns if self.keeps(one)]

    @property
    def names_out(self) -> list[str]:
        """Names of the features."""
        return [name for one in self.kept for name in one.names_out]

    def scale(self, table: Table, wanted: str, key: Any, start: int) -> tuple[Any, list[Change]]:
        """Scale a table in memory; returns what was changed in its cells before, too.

        Parameters
        ----------
        wanted : str
            The container of the result; "default" is that of the table.
        key : column or None
            What noise is drawn by; without it, drawn noise goes by a row's position.
        start : int
            The position of the first row.
        """
        cells, extra = self._select(table, key)
        container = table.container if wanted == "default" else wanted
        keys, seed = None if key is None else row_keys(table, key), self._seed(key)
        messages = [left_out(extra)] if extra else []

        def scale_one(fitted: FittedColumn, stored: TableColumn) -> tuple[list[Any], list[Change]]:
            if not fitted.features:
                return [pass_through(stored, table.container, container)], []
            values, changes = fitted.read(stored, strict=self.rows.strict, handle_unknown=self.rows.handle_unknown)
            # A column that is not scaled may still be the table's own memory, which is not ours to give away.
            scaled = fitted.scale(values, seed, keys, start)
            return [part if part.flags.owndata else part.copy() for part in scaled], changes

        results = map_columns(scale_one, self.kept, cells, n_rows=table.n_rows)
        for message in messages:
            warnings.warn(message, EvenlyWarning, stacklevel=3)
        features = dict(zip(self.names_out, chain(*(parts for parts, _ in results)), strict=True))
        # Models know no masks: missing features of a masked array are NaN.
        like = None if container == "numpy" else table.native
        made = build_table(features, container, like) if features else empty_table(table, container)
        return made, [*chain(*(changes for _, changes in results))]

    def scale_parts(self, tables: Iterable[Table], wanted: str, key: Any, start: int) -> Iterator[Any]:
        """Scale the parts of a table, one after another; warns of changed cells after the last."""
        changes: list[Change] = []
        for table in tables:
            scaled, changed = self.scale(table, wanted, key, start)
            changes += changed
            start += table.n_rows
            yield scaled
        warn_of_changes(changes, stacklevel=2)

    def scale_lazily(self, table: LazyTable, wanted: str, key: Any) -> Any:
        """Return a lazy frame of the scaled features."""
        if wanted != "default":
            raise TableError(
                f"set_output(transform={wanted!r}) and a lazy frame", "its output is a lazy frame too", "collect it"
            )
        cells, extra = self._select(table, key)
        if extra:
            warnings.warn(left_out(extra), EvenlyWarning, stacklevel=3)
        if not self.kept:
            raise TableError(
                "no column with a variable in it", "a lazy frame expects one at least", 'pass passthrough="keep"'
            )
        return lazy_scaling().scale_lazily(table, cells, self.kept, self.rows, self._seed(key), key)

    def restore(self, table: Table) -> Any:
        """Return the columns that scaled features came from; dropped ones too, if the table has them nevertheless."""
        there = set() if table.container == "numpy" else set(table.names)
        kept = [one for one in self.columns if self.keeps(one) or there.issuperset(one.names_out)]
        names = [name for one in kept for name in one.names_out]
        if table.container == "numpy" and len(table.columns) != len(names):
            raise TableError(f"{len(table.columns)} columns", f"expected the {len(names)} features of transform")
        cells = iter(select(table, names)[0])
        data = {}
        for one in kept:
            if one.features:
                data[one.label] = one.restore([next(cells).numbers for _ in one.features], self.container)
            else:
                passed = pass_through(next(cells), table.container, self.container)
                data[one.label] = retype(np.asanyarray(passed), one.stored) if self.container == "numpy" else passed
        if not data:
            return empty_table(table, self.container)
        masked = self.container == "numpy" and any(one.stored.masked for one in self.columns)
        return build_table(data, self.container, np.ma.array([]) if masked else table.native)

    def recover(self, given: Mapping[str, Given]) -> dict[str, dict[str, Array]]:
        """Return usual parameters per column from natural or usual ones of its scaled features."""
        known = [one.name for fitted in self.columns for one in fitted.features]
        unknown = set(given) - set(known) - {fitted.column.name for fitted in self.columns if fitted.features}
        if unknown:
            raise TableError(f"the feature {min(unknown, key=str)!r}", f"expected some of {known}")
        recovered = {}
        for fitted in self.columns:
            naturals = natural_parameters(fitted.column.name, fitted.features, given, known)
            if naturals is not None:
                recovered[fitted.column.name] = fitted.recover(naturals)
        return recovered

    def _seed(self, key: Any) -> int | None:
        """Return the seed of the noise; None for its mean. To name a key is to ask for noise that is drawn."""
        return self.seed if self.drawn or key is not None else None

    def _select(self, table: Any, key: Any) -> tuple[list[Any], list[Any]]:
        """Return the columns of a table that the output is made of, and the labels of those that fit did not see.

        The key, if any, is not one of them.
        """
        cells, extra = select(table, [one.label for one in self.columns], by_position=self.container == "numpy")
        used = [stored for one, stored in zip(self.columns, cells, strict=True) if self.keeps(one)]
        return used, [label for label in extra if label != key]


def empty_table(table: Table, container: str) -> Any:
    """Return a table without columns, with the rows of another where its kind has rows without columns."""
    if container == "numpy":
        return np.empty((table.n_rows, 0))
    if container == "pandas":
        import pandas as pd

        return pd.DataFrame(index=getattr(table.native, "index", range(table.n_rows)))
    return build_table({}, container)


def warn_of_changes(changes: Iterable[Change], note: str = "", *, stacklevel: int) -> None:
    """Warn of what was changed in the cells of new rows, once a column."""
    for message in describe_changes(changes):
        warnings.warn(message + note, EvenlyWarning, stacklevel=stacklevel + 1)
