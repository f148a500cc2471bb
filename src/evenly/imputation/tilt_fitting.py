"""Fitting the tilts of a calibrated ensemble, on observed cells that are predicted as if they were missing.

The cells of a row are divided into up to eight parts, and each part is hidden in turn. Forests predict a cell by the
trees that were not grown from it, and kernels by the regression without its row; networks have seen most of the cells
in training, but stop before they know them by heart. Only tables that have forests get tilts: boosted trees leave all
hidden cells out, and would have nothing to learn from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.imputation.encoding import EncodedTable
from evenly.imputation.experts import Experts
from evenly.imputation.gaussian import (
    Gaussian,
    expect,
    feature_owners,
    first_features,
    from_expected,
    gaussian_features,
)
from evenly.imputation.growing import MOST_ROWS as MOST_TABLE_ROWS
from evenly.imputation.predictors import Pass
from evenly.imputation.row_filling import Filler, HeldOut
from evenly.imputation.tilts import Cells, Place, Tilt, draw_weights, fit_tilt
from evenly.predictive import Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

MOST_PARTS = 8
"""Parts that the columns are divided into; those of a part are hidden from each other."""
MOST_ROWS, MOST_CELLS = 4_000, 100_000
"""The largest number of rows, and of their cells, that tilts are fitted to."""


def divide(known: Flags) -> list[Flags]:
    """Divide the observed cells of up to 4,000 rows into parts, each with few cells of a row.

    Examples
    --------
    >>> [part.astype(int).tolist() for part in divide(np.array([[True, True], [True, False]]))]
    [[[1, 0], [0, 0]], [[0, 1], [1, 0]]]
    """
    n_rows, n_columns = known.shape
    if not 2 <= n_rows <= MOST_TABLE_ROWS or n_columns < 2:
        return []
    n_parts = min(n_columns, MOST_PARTS)
    most = min(MOST_ROWS, max(1, MOST_CELLS // n_columns))
    some = np.zeros(n_rows, bool)
    some[np.random.default_rng(n_rows).permutation(n_rows)[:most]] = True
    part_of = np.add.outer(np.arange(n_rows), np.arange(n_columns)) % n_parts
    return [known & some[:, None] & (part_of == part) for part in range(n_parts)]


class Part(NamedTuple):
    """A part of the cells, and what networks, forests and kernels predict of them."""

    held: HeldOut
    predict: Callable[[int, Experts], Predictive]
    """Returns the calibrated predictions of a column's cells, given those of the experts."""
    experts: Sequence[Experts]
    """Of each column; that of the Gaussian expert is still missing."""


def fit_tilts(
    table: EncodedTable,
    gaussian: Gaussian,
    filler: Filler,
    passes: Sequence[Pass],
    parts: Sequence[Part],
) -> dict[str, Tilt]:
    """Fit the tilt of each column that has enough cells."""
    found: dict[str, Tilt] = {}
    if not parts:
        return found
    owners, features, main = feature_owners(table), gaussian_features(table), main_features(table)
    weights = draw_weights(table.n_rows)
    for one in passes:
        shown = features if one.shown is None else np.where(one.shown[owners], features, np.nan)
        predicted: dict[int, list[Predictive]] = {j: [] for j in one.targets}
        places: dict[int, list[tuple[Floats, Place, Floats]]] = {j: [] for j in one.targets}
        for part in parts:
            rows = np.flatnonzero(part.held.cells.any(1))
            hidden, some = part.held.cells[rows], table.rows(rows)
            known = np.where(hidden[:, owners], np.nan, shown[rows])
            means, stds = expect(gaussian, known)
            by_gaussian = from_expected(some, means, stds)
            filled = filler.fill_held(part.held, one)
            spread = stds[:, first_features(table)] ** 2
            for j in one.targets:
                own, of_column = hidden[:, j], by_gaussian[j]
                if own.any():
                    by_experts = part.experts[j]._replace(gaussian=None if of_column is None else of_column.take(own))
                    predicted[j].append(part.predict(j, by_experts))
                    places[j].append(
                        (some.columns[j].values[own], Place(filled[own], spread[own, j]), weights[rows[own]])
                    )
        for j in one.targets:
            if predicted[j]:
                first, *others = predicted[j]
                truth, by_part, weighted = zip(*places[j], strict=True)
                place = Place(*map(np.concatenate, zip(*by_part, strict=True)))
                cells = Cells(np.concatenate(truth), first.append(others), place, np.concatenate(weighted))
                may = main & (owners != j)
                may &= True if one.shown is None else one.shown[owners]
                tilt = fit_tilt(table.specs[j], cells, ~may)
                if tilt is not None:
                    found[table.specs[j].name] = tilt
    return found


def main_features(table: EncodedTable) -> Flags:
    """Return which features of the Gaussian expert tilts may have: numbers themselves, and all classes but one."""
    found = []
    for one in table.specs:
        own = np.zeros(one.n_gaussian, bool)
        own[slice(1, None) if one.column.has_classes and one.n_gaussian > 1 else slice(0, 1)] = True
        found.append(own)
    return np.concatenate(found)
