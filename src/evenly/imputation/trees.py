"""The tree expert: a random forest for each column, on the features of the Gaussian expert.

Forests learn sharp rules and interactions from few rows, where networks smooth them out. They are kept and saved as
arrays. A leaf keeps the shares of its cells' classes or bins, so that predictions are distributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from evenly.imputation.boosting import Boosted
from evenly.imputation.columns import ModelledColumn
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.nodes import Array, are_sound, are_within, find_leaves
from evenly.imputation.saved_parts import part_from_tensors, parts_to_tensors, places_of
from evenly.predictive import Predictive
from evenly.tables import Floats

Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

ROWS_AT_ONCE = 512
"""Rows that are predicted at once, for the memory that it takes."""


@dataclass(frozen=True)
class Trees:
    """The forest of a column. Nodes of all trees stand in one list; the children of a node come after it."""

    needs_filled: ClassVar[bool] = True
    """Missing features are filled first."""

    roots: Array
    feature: Array
    """The feature that a node compares with its threshold; -1 in a leaf."""
    threshold: Array
    left: Array
    right: Array
    mean: Array
    """The mean of a node's numbers, standardized; 0 for classes."""
    first: Array
    """Where the outcomes of a leaf begin among those of all leaves."""
    size: Array
    """How many different outcomes the cells of a leaf have; 0 in other nodes."""
    outcome: Array
    """The bins or classes of the cells of each leaf."""
    share: Array
    """The share of each of them among the cells of the leaf."""

    def check(self, n_features: int, n_outcomes: int) -> None:
        """Raise an error if this is no forest of so many features, and bins or classes."""
        n = len(self.feature)
        of_nodes = (self.feature, self.threshold, self.left, self.right, self.mean, self.first, self.size)
        whole = (self.roots, self.feature, self.left, self.right, self.first, self.size, self.outcome)
        if any(one.shape != (n,) for one in of_nodes) or self.outcome.shape != self.share.shape or not n:
            raise ValueError("trees: arrays of different lengths")
        if any(one.ndim != 1 or one.dtype != np.int32 for one in whole):
            raise ValueError("trees: nodes that are no whole numbers")
        inner = self.feature >= 0
        sound = are_sound(self, n_features)
        sound &= are_within(self.first, 0, len(self.outcome) + 1) and bool((self.size[~inner] >= 1).all())
        sound &= bool((self.size >= 0).all() and (self.first.astype(int) + self.size <= len(self.outcome)).all())
        sound &= are_within(self.outcome, 0, n_outcomes) and bool(((self.share > 0.0) & (self.share <= 1.0)).all())
        if not (sound and np.isfinite(self.threshold).all() and np.isfinite(self.mean).all()):
            raise ValueError("trees: nodes that form no forest")

    def predict(self, features: Floats, n_outcomes: int, used: Flags | None = None) -> tuple[Floats, Floats]:
        """Return the mean of the trees' predictions: the mean of each row, and its shares, rows x outcomes.

        Parameters
        ----------
        used : array, optional
            Which trees to ask about each row: rows x trees. NaN where there are none.
        """
        means, shares = np.empty(len(features)), np.empty((len(features), n_outcomes))
        for start in range(0, len(features), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            leaves = find_leaves(self, features[some].astype(np.float32))  # as scikit-learn compares them
            asked = np.ones(leaves.shape, bool) if used is None else used[some]
            with np.errstate(invalid="ignore"):
                weights = asked / asked.sum(1, keepdims=True)
            means[some] = (weights * self.mean[leaves]).sum(1)
            shares[some] = self._shares(leaves, weights, n_outcomes)
        return means, shares

    def _shares(self, leaves: Rows, weights: Floats, n_outcomes: int) -> Floats:
        sizes = self.size[leaves].ravel()
        ends = np.cumsum(sizes)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.first[leaves].ravel() - ends + sizes, sizes)
        rows = np.repeat(np.arange(leaves.size) // leaves.shape[1], sizes)
        found = np.bincount(
            rows * n_outcomes + self.outcome[places],
            np.repeat(weights.ravel(), sizes) * self.share[places],
            len(leaves) * n_outcomes,
        )
        return np.asarray(found.reshape(len(leaves), n_outcomes), np.float64)


def tree_features(specs: Sequence[ModelledColumn]) -> tuple[Flags, Rows]:
    """Return which features of the Gaussian expert trees use, and the column that each feature belongs to.

    A number is enough: its rank, the second feature, orders the rows in the same way.
    """
    widths = [one.n_gaussian for one in specs]
    used = [np.arange(n) < (n if one.column.has_classes else 1) for one, n in zip(specs, widths, strict=True)]
    return np.concatenate(used), np.repeat(np.arange(len(widths)), widths)


# --- predictions ------------------------------------------------------------------------------------------------------


def predict_by_trees(trees: Trees | Boosted, table: EncodedTable, j: int, cells: Flags, features: Floats) -> Predictive:
    """Return the distributions of some cells of a column by its trees; NaN at those that are known.

    Parameters
    ----------
    cells : array
        Which rows' cells are wanted.
    features : array
        The features of the Gaussian expert; if the trees need it, missing ones filled.
    """
    spec, values, _ = table.columns[j]
    used, owners = tree_features([one.spec for one in table.columns])
    missing = np.isnan(values[cells])
    means, shares = np.full(len(missing), np.nan), np.full((len(missing), spec.n_outcomes), np.nan)
    own = features[np.ix_(np.flatnonzero(cells)[missing], used & (owners != j))]
    means[missing], shares[missing] = trees.predict(own, spec.n_outcomes)
    return spec.from_outcomes(means, shares)


# --- saving -----------------------------------------------------------------------------------------------------------


def trees_to_tensors(trees: Mapping[str, Trees | Boosted]) -> dict[str, Array]:
    """Return the arrays of trees by name, to be saved."""
    return parts_to_tensors("trees", trees)


def trees_from_tensors(
    names: Sequence[str], specs: Sequence[ModelledColumn], tensors: Mapping[str, Array]
) -> dict[str, Trees | Boosted]:
    """Rebuild trees from `trees_to_tensors`; ValueError if they are none of these columns."""
    found: dict[str, Trees | Boosted] = {}
    if not names:
        return found
    used, owners = tree_features(specs)
    for i, (name, j) in enumerate(zip(names, places_of(names, specs, "trees"), strict=True)):
        kind: type[Trees | Boosted] = Boosted if f"trees{i}_base" in tensors else Trees
        own = part_from_tensors(kind, f"trees{i}", tensors)
        own.check(int((used & (owners != j)).sum()), specs[j].n_outcomes)
        if isinstance(own, Boosted) and own.has_classes != specs[j].column.has_classes:
            raise ValueError("boosted trees of classes for a number, or the other way round")
        found[name] = own
    return found
