"""Fitting the kernel expert: its settings for each column, and predictions of validation cells.

Validation cells are predicted by the regression of all other rows, which follows from that of all rows without another
fit, and with all cells of their set hidden, as networks predict them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.imputation.encoding import EncodedTable
from evenly.imputation.gaussian import feature_owners, gaussian_features
from evenly.imputation.growing import FEWEST, Work
from evenly.imputation.kernels import Kernel, place, similarity
from evenly.imputation.predictors import Pass
from evenly.imputation.row_filling import Filler, HeldOut
from evenly.predictive import Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Array = npt.NDArray[np.float32]

MOST_TABLE_ROWS = 2_000
"""Not fitted to larger tables: networks have learned what it knows."""
MOST_ROWS, MOST_TRIED = 1_000, 300
"""The largest number of rows to fit a column on, and to choose its settings on: time grows with their cube."""
MOST_FEATURES = 200
"""Not fitted to tables with more features of the Gaussian expert."""
WIDTHS = (1.0, 2.0)
"""Candidates for the length scale: two rows drawn at random are about 1.4 apart."""
NOISES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Candidates for the variance of the noise."""
FARTHEST_LOSS = 25.0
"""Limit on a cell's squared error, in squared standard deviations, in the choice of settings: no cell dominates."""


class Regressed(NamedTuple):
    """The regression of a column, and its predictions of the column's validation cells."""

    kernel: Kernel
    predicted: list[Predictive]
    """By set of validation cells. Each cell is predicted from the other rows."""


def fit_kernels(
    table: EncodedTable, filler: Filler | None, passes: Sequence[Pass], held: Sequence[HeldOut], work: Work
) -> list[Regressed | None]:
    """Fit the regression of each column that has enough cells; none if the table is too large for it.

    Parameters
    ----------
    filler : Filler, optional
        Fills the cells that rows are compared by; without it, there are none.
    held : sequence of HeldOut
        Sets of validation cells, to predict with all cells of their set hidden.
    work : Work
        Columns that there is no time for get none.
    """
    found: list[Regressed | None] = [None] * len(table.columns)
    if filler is None or len(table.columns) < 2 or table.n_rows > MOST_TABLE_ROWS:
        return found
    owners, features = feature_owners(table), gaussian_features(table)
    if len(owners) > MOST_FEATURES:
        return found
    slowest, sets = 0.0, [one.cells for one in held]
    rows = [np.flatnonzero(cells.any(1)) for cells in sets]
    for one in passes:
        if work.deadline.left() <= 0.0:
            break
        by_set = [filler.fill_held(each, one) for each in held]
        for j in one.targets:
            begun = time.monotonic()
            if work.deadline.left() > slowest:
                filled = filler.fill_without(one, j)
                points = [place(table.specs, j, some) for some in by_set]
                own = features[:, owners == j]
                found[j] = _fit_column(table, j, (place(table.specs, j, filled), own), _Held(sets, rows, points), work)
            slowest = max(slowest, time.monotonic() - begun)
    return found


class _Held(NamedTuple):
    """The validation cells of a table, and what the rows that have some are compared by, for one column."""

    cells: Sequence[Flags]
    rows: Sequence[Rows]
    points: Sequence[Array]


def _fit_column(table: EncodedTable, j: int, known: tuple[Array, Floats], held: _Held, work: Work) -> Regressed | None:
    """Fit a column's regression, given all rows' points and the column's own features, NaN where missing."""
    spec, values, _ = table.columns[j]
    points, wanted = known
    rows = np.flatnonzero(~np.isnan(values))
    none = np.zeros((0, spec.n_gaussian))
    if len(rows) < FEWEST or (values[rows] == values[rows[0]]).all() or spec.from_gaussian(none, none) is None:
        return None
    rng = np.random.default_rng((int(work.rng.integers(2**31 - 1)), j))
    rows = _some(rows, MOST_ROWS, rng)
    tried = _some(rows, MOST_TRIED, rng)
    width, noise = _choose(points[tried], wanted[tried])
    center = wanted[rows].mean(0)
    inverse: Floats = np.asarray(
        np.linalg.inv(similarity(points[rows], points[rows], width) + noise * np.eye(len(rows)))
    )
    weights = inverse @ (wanted[rows] - center)
    spread = (weights / np.diag(inverse)[:, None]).std(0)
    kernel = Kernel(points[rows], weights, center, spread, np.array([width]))
    predicted = []
    for cells, some, own in zip(held.cells, held.rows, held.points, strict=True):
        asked = np.flatnonzero(cells[some, j])
        means = _predict_without(kernel, inverse, own[asked], _places(rows, some[asked]))
        cells_of = spec.from_gaussian(means, np.tile(spread, (len(means), 1)))
        assert cells_of is not None
        predicted.append(cells_of)
    return Regressed(kernel, predicted)


def _some(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _places(rows: Rows, some: Rows) -> Rows:
    """Return where some rows are among the fitted ones, -1 for others."""
    at = np.minimum(np.searchsorted(rows, some), len(rows) - 1)
    return np.asarray(np.where(rows[at] == some, at, -1), np.intp)


def _choose(points: Array, wanted: Floats) -> tuple[float, float]:
    """Choose length scale and noise by the squared errors of rows that are left out in turn."""
    away = wanted - wanted.mean(0)
    best, least = (WIDTHS[0], NOISES[0]), np.inf
    for width in WIDTHS:
        found, axes = np.linalg.eigh(similarity(points, points, width))  # one decomposition serves all noises
        along, squares = axes.T @ away, axes**2
        for noise in NOISES:
            inverse = 1.0 / (np.maximum(found, 0.0) + noise)
            errors = (axes @ (inverse[:, None] * along)) / (squares @ inverse)[:, None]
            loss = float(np.minimum(errors**2, FARTHEST_LOSS).mean())
            if loss < least:
                best, least = (width, noise), loss
    return best


def _predict_without(kernel: Kernel, inverse: Floats, points: Array, places: Rows) -> Floats:
    """Predict rows of fit, each by the regression that leaves it out; `places` are -1 for rows that were not fitted."""
    near = similarity(points, kernel.points, float(kernel.width[0]))
    found = kernel.center + near @ kernel.weights
    # Without row i, the weights change by -(weight of i / inverse[i, i]) times the i-th column of the inverse.
    own = np.flatnonzero(places >= 0)
    at = places[own]
    pulled = np.einsum("rn,nr->r", near[own], inverse[:, at]) / inverse[at, at]
    found[own] -= pulled[:, None] * kernel.weights[at]
    return np.asarray(found)
