"""Distributions of the observed and the imputed cells of each column: counts by bin or class, never the cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.tables import Column, Floats, Schema, TableColumn, cells_among, encode, open_table

MOST_BINS = 40
MOST_CLASSES_SHOWN = 20
TAIL = 0.005
"""The share of cells at each end that a histogram may leave out, if they would squeeze all others together."""
SQUEEZED = 0.25
"""Others count as squeezed if they take less than this share of the axis."""


@dataclass(frozen=True)
class Distribution:
    """The cells of one column: how many, and counts by bin (`edges`) or by class (`classes`).

    `beyond` is the number of cells that lie outside the bins.
    """

    n_rows: int
    n_missing: int
    n_filled: int
    edges: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    observed: tuple[int, ...] = ()
    imputed: tuple[int, ...] = ()
    beyond: int = 0

    @property
    def n_observed(self) -> int:
        """Number of cells that were not missing."""
        return self.n_rows - self.n_missing


def distributions(table: Any, filled: Any, schema: Schema) -> dict[str, Distribution]:
    """Return how the cells of a table and of the filled one are distributed, by column.

    Parameters
    ----------
    table : dataframe or array
        As given, with its missing cells.
    filled : dataframe or array, optional
        The same rows, with imputed cells; columns that it lacks count as not imputed.
    schema : Schema
        The kinds and classes of the columns, and the markers of missing cells.

    Examples
    --------
    >>> from evenly.tables.schema import Column, Schema
    >>> schema = Schema(columns=[Column(name="x0", kind="real")])
    >>> found = distributions([[0.0], [1.0], [np.nan]], [[0.0], [1.0], [1.0]], schema)["x0"]
    >>> found.edges, found.observed, found.imputed
    ((-0.5, 0.5, 1.5), (1, 1), (0, 1))
    """
    given = open_table(table, estimator="make_report")
    full = None if filled is None else open_table(filled, estimator="make_report")
    if full is not None and full.n_rows != given.n_rows:
        raise TableError(f"{full.n_rows} rows in the filled table", f"expected the {given.n_rows} of the given one")
    others = {} if full is None else {cells.name: cells for cells in full.columns}
    known = {column.name: column for column in schema.columns}
    return {
        cells.name: _of_column(known.get(cells.name), cells, others.get(cells.name), given.n_rows)
        for cells in given.columns
    }


def _of_column(column: Column | None, cells: TableColumn, full: TableColumn | None, n_rows: int) -> Distribution:
    if column is None or column.kind == "ignore":
        return Distribution(n_rows, n_rows - cells.n_observed, 0)
    values, unknown = encode(column, cells)
    missing = np.isnan(values) & ~cells_among(cells, unknown)
    new = np.full(0, np.nan) if full is None else encode(column, full)[0][missing]
    seen, new = values[~np.isnan(values)], new[~np.isnan(new)]
    counts = int(missing.sum()), len(new)
    if not len(seen) and not len(new):
        return Distribution(n_rows, *counts)
    if column.has_classes:
        return Distribution(n_rows, *counts, **_by_class(column, seen, new))
    edges = bin_edges(np.concatenate([seen, new]))
    observed, imputed = (np.histogram(one, edges)[0] for one in (seen, new))
    beyond = len(seen) + len(new) - int(observed.sum() + imputed.sum())
    return Distribution(n_rows, *counts, _plain(edges), (), _plain(observed), _plain(imputed), beyond)


def _plain(values: Any) -> tuple[Any, ...]:
    return tuple(values.tolist())


def bin_edges(values: Floats) -> Floats:
    """Return the edges of a histogram's bins: one for each value of a few whole numbers, else up to 40 of equal width.

    A few far cells are left out where they would squeeze all others into a quarter of the axis or less.
    """
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if low == high:
        half = max(0.5, 1e-6 * abs(low))
        return np.array([low - half, low + half])
    unit = max(abs(low), abs(high))  # the width of -1e308 to 1e308 is no number
    inner_low, inner_high = np.quantile(values / unit, [TAIL, 1.0 - TAIL])
    if 0.0 < inner_high - inner_low < SQUEEZED * (high / unit - low / unit):
        low, high = float(inner_low) * unit, float(inner_high) * unit
    if high - low < MOST_BINS and (np.rint(values) == values).mean() > 0.5 and unit < 1e15:
        return np.arange(np.rint(low) - 0.5, np.rint(high) + 1.0)
    n_bins = int(np.clip(np.sqrt(len(values)), 8, MOST_BINS))
    edges = np.linspace(low / unit, high / unit, n_bins + 1) * unit
    edges[0], edges[-1] = low, high  # dividing and multiplying again may lose the end
    return edges


def _by_class(column: Column, seen: Floats, new: Floats) -> dict[str, Any]:
    classes = column.classes or []
    observed, imputed = (np.bincount(one.astype(np.intp), minlength=len(classes)) for one in (seen, new))
    # Classes that have an order keep it; the others come by size.
    ordered = column.kind in ("ordinal", "binary")
    order = np.argsort(-(observed + imputed), kind="stable")
    chosen = np.sort(order[:MOST_CLASSES_SHOWN]) if ordered else order[:MOST_CLASSES_SHOWN]
    rest = order[MOST_CLASSES_SHOWN:]
    found = {"observed": observed[chosen].tolist(), "imputed": imputed[chosen].tolist()}
    labels = [str(classes[k]) for k in chosen]
    if len(rest):
        labels.append(f"other ({len(rest)} classes)")
        found["observed"].append(int(observed[rest].sum()))
        found["imputed"].append(int(imputed[rest].sum()))
    return {"classes": tuple(labels), **{name: tuple(counts) for name, counts in found.items()}}
