"""The kernel expert: a Gaussian process regression of each column of a small table on the features of the others.

Its kernel is a linear one, a constant and a squared exponential: linear relations with smooth departures from them. On
few rows this is often the best single predictor; networks need more of them, and forests predict in steps. The features
are those of the Gaussian expert, missing ones filled by what is expected of them given the row without the column
itself. Classes are regressed one-hot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly.imputation.columns import ModelledColumn
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.saved_parts import part_from_tensors, parts_to_tensors, places_of
from evenly.predictive import Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

FARTHEST = 4.0
"""Features are clipped here, in standard deviations: no row may be far from all others."""
LINEAR, CONSTANT = 0.5, 1.0
"""The shares of the linear kernel and of the constant, beside one squared exponential."""


@dataclass(frozen=True)
class Kernel:
    """The regression of a column: the rows that it was fitted on, and what they contribute to a prediction."""

    points: Array
    """The features of the rows, as `place` returns them: rows x features."""
    weights: Array
    """The contribution of each row to each of the column's own features."""
    center: Array
    """The means of these features."""
    spread: Array
    """The standard deviation of their errors, when each row is left out in turn."""
    width: Array
    """The length scale of the squared exponential: one number."""

    def check(self, n_features: int, n_own: int) -> None:
        """Raise an error if this is no regression of so many features on so many others."""
        expected = ((len(self.points), n_features), (len(self.points), n_own), (n_own,), (n_own,), (1,))
        parts = [getattr(self, field.name) for field in fields(self)]
        if any(one.shape != shape for one, shape in zip(parts, expected, strict=True)) or not len(self.points):
            raise ValueError("kernels: arrays of other shapes")
        sound = all(one.dtype.kind == "f" and np.isfinite(one).all() for one in parts)
        if not sound or not (self.width > 0.0).all() or not (self.spread >= 0.0).all():
            raise ValueError("kernels: numbers that are none of a regression")

    def predict(self, points: Array) -> tuple[Floats, Floats]:
        """Return means and standard deviations of the column's own features: rows x features."""
        found = self.center + np.einsum(
            "rn,nf->rf", similarity(points, self.points, float(self.width[0])), self.weights
        )
        return found, np.tile(self.spread, (len(found), 1))


def similarity(some: Array, others: Array, width: float) -> Floats:
    """Return the kernel between rows, each given by its features.

    Examples
    --------
    >>> points = np.array([[1.0], [-1.0]])
    >>> similarity(points, points, 2.0).round(2)
    array([[2.5 , 1.11],
           [1.11, 2.5 ]])
    """
    one, other = np.asarray(some, np.float64), np.asarray(others, np.float64)
    products = _by_row(one, other.T)
    squares = ((each * each).sum(1) for each in (one, other))
    apart = np.add.outer(*squares) - 2.0 * products
    return np.asarray(LINEAR * products + CONSTANT + np.exp(-0.5 * np.maximum(apart, 0.0) / width**2))


def _by_row(rows: Floats, matrix: Floats) -> Floats:
    """Return the matrix product, row by row, so that rounding does not depend on how many rows there are."""
    return np.asarray((rows[:, None, :] @ np.ascontiguousarray(matrix))[:, 0])


def place(specs: Sequence[ModelledColumn], j: int, filled: Floats) -> Array:
    """Return what the regression of column j compares rows by, from filled features of the Gaussian expert.

    Each column counts the same, however many features it has, and all together as much as one number.
    """
    widths = np.array([one.n_gaussian for one in specs])
    owners = np.repeat(np.arange(len(widths)), widths)
    others = owners != j
    share = 1.0 / np.sqrt(widths[owners[others]] * max(1, len(specs) - 1))
    return np.asarray(np.clip(filled[:, others], -FARTHEST, FARTHEST) * share, np.float32)


def predict_by_kernel(kernel: Kernel, table: EncodedTable, j: int, cells: Flags, filled: Floats) -> Predictive | None:
    """Return the distributions of some cells of a column; NaN at those that are known.

    Parameters
    ----------
    cells : array
        Which rows' cells are wanted.
    filled : array
        The features of the Gaussian expert, missing ones filled.
    """
    spec, values, _ = table.columns[j]
    missing = np.isnan(values[cells])
    means, stds = np.full((2, len(missing), spec.n_gaussian), np.nan)
    rows = np.flatnonzero(cells)[missing]
    means[missing], stds[missing] = kernel.predict(place(table.specs, j, filled[rows]))
    return spec.from_gaussian(means, stds)


# --- saving -----------------------------------------------------------------------------------------------------------


def kernels_to_tensors(kernels: Mapping[str, Kernel]) -> dict[str, Array]:
    """Return the arrays of kernels by name, to be saved."""
    return parts_to_tensors("kernel", kernels)


def kernels_from_tensors(
    names: Sequence[str], specs: Sequence[ModelledColumn], tensors: Mapping[str, Array]
) -> dict[str, Kernel]:
    """Rebuild kernels from `kernels_to_tensors`; ValueError if they are none of these columns."""
    n_features, found = sum(one.n_gaussian for one in specs), {}
    for i, (name, j) in enumerate(zip(names, places_of(names, specs, "kernels"), strict=True)):
        own = part_from_tensors(Kernel, f"kernel{i}", tensors)
        own.check(n_features - specs[j].n_gaussian, specs[j].n_gaussian)
        found[name] = own
    return found
