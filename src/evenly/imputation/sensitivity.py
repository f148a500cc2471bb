"""Sensitivity of an analysis to cells that are missing for reasons of their own: pooled under several shifts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from evenly._support import TableError, align
from evenly.imputation.imputer import Imputer
from evenly.imputation.pooling import SHOWN, Pooled, pool, rounded
from evenly.tables import build_table


@dataclass(frozen=True, repr=False)
class Sensitivity:
    """Pooled results by shift of a column's imputed cells; printed as a table.

    Attributes
    ----------
    column : label
        The column whose imputed cells were shifted.
    deltas : tuple
        The shifts.
    pooled : tuple of Pooled
        The pooled result under each.
    """

    column: Any
    deltas: tuple[Any, ...]
    pooled: tuple[Pooled, ...]

    def to_frame(self) -> Any:
        """Return a table with a row for each shift and estimate; its columns are `delta` and those of `Pooled`."""
        rows = [(delta, one) for delta, one in zip(self.deltas, self.pooled, strict=True)]
        numbers = all(isinstance(delta, (int, float)) for delta in self.deltas)
        shifts = [delta if numbers else str(delta) for delta, one in rows for _ in one.terms]
        terms = np.array([term for _, one in rows for term in one.terms], dtype=object)
        values = {
            shown: np.concatenate([np.ravel(np.asarray(getattr(one, name), np.float64)) for _, one in rows])
            for name, shown in SHOWN.items()
        }
        first = np.array(shifts, float if numbers else object)
        return build_table({"delta": first, "term": terms, **values}, "pandas" if find_spec("pandas") else "polars")

    def summary(self) -> str:
        """Return the same as text, with the estimate, its standard error, p-value and interval."""
        names = ("estimate", "standard_error", "p", "low", "high")
        lines = [(f"delta of {self.column}", "term", *(SHOWN[name] for name in names))]
        for delta, one in zip(self.deltas, self.pooled, strict=True):
            columns = [[rounded(float(value), name) for value in np.ravel(getattr(one, name))] for name in names]
            lines += [(str(delta), *row) for row in zip(one.terms, *columns, strict=True)]
        return "\n".join(align(lines, 2))

    __repr__ = summary


def delta_sensitivity(
    imputer: Imputer,
    table: Any,
    analysis: Callable[[Any], Any],
    deltas: Mapping[Any, Sequence[Any]],
    *,
    n: int = 5,
    **settings: Any,
) -> Sensitivity:
    """Pool an analysis of imputed tables under several shifts of a column's imputed cells.

    Imputation assumes that missing cells are distributed as observed ones with the same other cells. Where people with
    a low income are less likely to state it, that is wrong, and no table can show by how much. What can be shown is how
    large the error would have to be for a conclusion to change: where the estimate, or its interval, crosses the
    border that matters. All shifts use the same random numbers.

    Parameters
    ----------
    imputer : Imputer
        A fitted imputer.
    table : dataframe or array
        The table with missing cells.
    analysis : callable
        Called with each complete table; returns what `pool` takes.
    deltas : mapping of one column to shifts
        `{"income": [0, -2000, -5000]}`; for classes, `{"smokes": [{"yes": 0.0}, {"yes": 0.5}]}`. See `Imputer.sample`.
    n : int
        The number of tables under each shift.
    **settings
        Passed on to `pool`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> income = np.where(rng.random(200) < 0.3, np.nan, rng.normal(30.0, 5.0, 200))
    >>> imputer = Imputer("marginal", random_state=0).fit(income[:, None])
    >>> def mean_income(full):
    ...     return full.mean(), full.std() / np.sqrt(len(full))
    >>> found = delta_sensitivity(imputer, income[:, None], mean_income, {0: [0, -10]})
    >>> fall = found.pooled[0].estimate - found.pooled[1].estimate
    >>> bool(abs(fall - 10.0 * np.isnan(income).mean()) < 1e-9)
    True
    """
    if not isinstance(deltas, Mapping) or len(deltas) != 1:
        raise TableError(f"deltas = {deltas!r}", "expected one column with its shifts", '{"income": [0, -2000, -5000]}')
    column, shifts = next(iter(deltas.items()))
    if isinstance(shifts, str) or not isinstance(shifts, (Sequence, np.ndarray)) or not len(shifts):
        raise TableError(f"deltas = {shifts!r}", "expected a list of shifts", "[0, -2000, -5000]", column=column)
    pooled = [pool(map(analysis, imputer.sample(table, n, delta={column: one})), **settings) for one in shifts]
    return Sensitivity(column, tuple(shifts), tuple(pooled))
