"""Distributions of the observed and the imputed cells of each column: counts by bin or class, never the cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evenly.report.cells import Cells
from evenly.tables import Column, Floats

MOST_BINS = 40
MOST_CLASSES_SHOWN = 20
TAIL = 0.005
"""The share of cells at each end that a histogram may leave out, if they would squeeze all others together."""
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
SQUEEZED = 0.25
"""Others count as squeezed if they take less than this share of the axis."""


class Quantiles(NamedTuple):
    """Quantiles of a number at the levels of `QUANTILES`; empty without any cell."""

    observed: tuple[float, ...]
    imputed: tuple[float, ...]


@dataclass(frozen=True)
class Distribution:
    """The cells of one column: how many, and counts by bin (`edges`) or by class (`classes`).

    `beyond` is the number of cells that lie outside the bins.
    """

    n_rows: int
    n_missing: int
    n_filled: int
    drawn: bool = False
    """Whether imputed cells were drawn at random; if not, they are best guesses."""
    edges: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    observed: tuple[int, ...] = ()
    imputed: tuple[int, ...] = ()
    n_classes: int = 0
    beyond: int = 0
    quantiles: Quantiles | None = None

    @property
    def n_observed(self) -> int:
        """Number of cells that were not missing."""
        return self.n_rows - self.n_missing


def distribution(cells: Cells) -> Distribution:
    """Return how the observed and the imputed cells of a column are distributed.

    Imputed cells are those drawn at random or, without any, the best guesses.

    Examples
    --------
    >>> from evenly.report.cells import read_cells
    >>> from evenly.tables.schema import Column, Schema
    >>> schema = Schema(columns=[Column(name="x0", kind="real")])
    >>> found = distribution(*read_cells([[0.0], [1.0], [np.nan]], [[0.0], [1.0], [1.0]], None, schema))
    >>> found.edges, found.observed, found.imputed, found.quantiles.observed[3]
    ((-0.5, 0.5, 1.5), (1, 1), (0, 1), 0.5)
    """
    column, counts = cells.column, (len(cells.missing), int(cells.missing.sum()), len(cells.filled))
    if column is None:
        return Distribution(*counts)
    drawn = len(cells.drawn) > 0
    seen, new = cells.observed, cells.drawn if drawn else cells.filled
    if not len(seen) and not len(new):
        return Distribution(*counts)
    if column.has_classes:
        return Distribution(*counts, drawn=drawn, **_by_class(column, seen, new))
    edges = bin_edges(np.concatenate([seen, new]))
    observed, imputed = (np.histogram(one, edges)[0] for one in (seen, new))
    beyond = len(seen) + len(new) - int(observed.sum() + imputed.sum())
    quantiles = Quantiles(_quantiles(seen), _quantiles(new))
    return Distribution(
        *counts, drawn, _plain(edges), (), _plain(observed), _plain(imputed), beyond=beyond, quantiles=quantiles
    )


def _quantiles(values: Floats) -> tuple[float, ...]:
    values = values[np.isfinite(values)]
    if not len(values):
        return ()
    unit = max(float(np.abs(values).max()), 1e-300)  # the distance of -1e308 and 1e308 is no number
    return _plain(np.quantile(values / unit, QUANTILES) * unit)


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
    return {
        "classes": tuple(labels),
        "n_classes": len(classes),
        **{name: tuple(counts) for name, counts in found.items()},
    }
