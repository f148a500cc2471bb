"""Tables through fitted columns: scaled, and back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from evenly._support import EvenlyWarning, TableError
from evenly.likelihoods import Array
from evenly.scaling.fitted import FittedColumn
from evenly.scaling.inputs import left_out, pass_through, row_keys
from evenly.scaling.lazy_frames import lazy_scaling
from evenly.tables import LazyTable, Table, TableColumn, build_table, map_columns, retype, select


@dataclass(frozen=True)
class Transformation:
    """Fitted columns of a kind of table, and the seed of their noise."""

    columns: Sequence[FittedColumn]
    container: str
    """What the fitted table was."""
    seed: int

    @property
    def names_out(self) -> list[str]:
        """Names of the features."""
        return [name for one in self.columns for name in one.names_out]

    def scale(self, table: Table, wanted: str, key: Any, start: int) -> Any:
        """Scale a table in memory.

        Parameters
        ----------
        wanted : str
            The container of the result; "default" is that of the table.
        key : column or None
            What the noise goes by; without it, it goes by a row's position.
        start : int
            The position of the first row.
        """
        cells, extra = self._select(table, key)
        container = table.container if wanted == "default" else wanted
        keys = None if key is None else row_keys(table, key)
        messages = [left_out(extra)] if extra else []

        def scale_one(fitted: FittedColumn, stored: TableColumn) -> list[Any]:
            if not fitted.features:
                return [pass_through(stored, table.container, container)]
            values, unknown = fitted.encode(stored)
            if unknown:
                messages.append(fitted.unseen(unknown, "become missing"))
            # A column that is not scaled may still be the table's own memory, which is not ours to give away.
            scaled = fitted.scale(values, self.seed, keys, start)
            return [part if part.flags.owndata else part.copy() for part in scaled]

        results = map_columns(scale_one, self.columns, cells, n_rows=table.n_rows)
        for message in messages:
            warnings.warn(message, EvenlyWarning, stacklevel=3)
        # Models know no masks: missing features of a masked array are NaN.
        like = None if container == "numpy" else table.native
        return build_table(dict(zip(self.names_out, chain(*results), strict=True)), container, like)

    def scale_lazily(self, table: LazyTable, wanted: str, key: Any) -> Any:
        """Return a lazy frame of the scaled features."""
        if wanted != "default":
            raise TableError(
                f"set_output(transform={wanted!r}) and a lazy frame", "its output is a lazy frame too", "collect it"
            )
        cells, extra = self._select(table, key)
        if extra:
            warnings.warn(left_out(extra), EvenlyWarning, stacklevel=3)
        return lazy_scaling().scale_lazily(table, cells, self.columns, self.names_out, self.seed, key)

    def restore(self, table: Table) -> Any:
        """Return the columns that scaled features came from."""
        names = self.names_out
        if table.container == "numpy" and len(table.columns) != len(names):
            raise TableError(f"{len(table.columns)} columns", f"expected the {len(names)} features of transform")
        cells = iter(select(table, names)[0])
        data = {}
        for one in self.columns:
            if one.features:
                data[one.label] = one.restore([next(cells).numbers for _ in one.features], self.container)
            else:
                passed = pass_through(next(cells), table.container, self.container)
                data[one.label] = retype(np.asanyarray(passed), one.stored) if self.container == "numpy" else passed
        masked = self.container == "numpy" and any(one.stored.masked for one in self.columns)
        return build_table(data, self.container, np.ma.array([]) if masked else table.native)

    def recover(self, natural: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
        """Return usual parameters per column from natural ones of its scaled features."""
        unknown = set(natural) - set(self.names_out)
        if unknown:
            raise TableError(f"the feature {min(unknown)!r}", f"expected some of {self.names_out}")
        recovered = {}
        for fitted in self.columns:
            absent = [one.name for one in fitted.features if one.name not in natural]
            if len(absent) == len(fitted.features):
                continue
            name = fitted.column.name
            if absent:
                raise TableError(f"no parameters of {absent[0]!r}", "expected all features of it", column=name)
            recovered[name] = fitted.recover([natural[one.name] for one in fitted.features])
        return recovered

    def _select(self, table: Any, key: Any) -> tuple[list[Any], list[Any]]:
        """Return the fitted columns of a table, and the labels of others but the key."""
        cells, extra = select(table, [one.label for one in self.columns], by_position=self.container == "numpy")
        return cells, [label for label in extra if label != key]
