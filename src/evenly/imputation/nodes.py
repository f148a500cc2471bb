"""Nodes of many trees in one list, as forests and boosted trees keep them: are they sound, and where do rows end?"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
Array = npt.NDArray[Any]


class Nodes(Protocol):
    """The arrays that trees of any sort have. The children of a node come after it."""

    @property
    def roots(self) -> Array:
        """The first node of each tree."""

    @property
    def feature(self) -> Array:
        """The feature that a node compares with its threshold; -1 in a leaf."""

    @property
    def threshold(self) -> Array:
        """Rows whose feature is not above it go to the left."""

    @property
    def left(self) -> Array:
        """The node that they go to."""

    @property
    def right(self) -> Array:
        """The node that others go to."""


def are_sound(trees: Nodes, n_features: int) -> bool:
    """Whether every way through the nodes ends in a leaf, and asks for features that there are."""
    n = len(trees.feature)
    nodes, inner = np.arange(n), trees.feature >= 0
    ends = all((nodes < side)[inner].all() and (side < n)[inner].all() for side in (trees.left, trees.right))
    return ends and len(trees.roots) > 0 and are_within(trees.roots, 0, n) and are_within(trees.feature, -1, n_features)


def are_within(values: Array, low: int, high: int) -> bool:
    """Whether whole numbers are at least `low` and below `high`."""
    return bool(((values >= low) & (values < high)).all())


def find_leaves(trees: Nodes, features: Array, missing_left: Array | None = None) -> Rows:
    """Return the leaf that each row reaches in each tree: rows x trees.

    Parameters
    ----------
    missing_left : array, optional
        At which nodes rows go to the left whose feature is missing; by default, at none.
    """
    n, width = features.shape
    cells = features.ravel()
    at = np.tile(trees.roots.astype(np.intp), n)
    begins = np.repeat(np.arange(n) * width, len(trees.roots))
    on = np.flatnonzero(trees.feature[at] >= 0)
    while len(on):
        node = at[on]
        cell = cells[begins[on] + trees.feature[node]]
        goes_left = cell <= trees.threshold[node]
        if missing_left is not None:
            goes_left |= np.isnan(cell) & missing_left[node]
        at[on] = node = np.where(goes_left, trees.left[node], trees.right[node])
        on = on[trees.feature[node] >= 0]
    return at.reshape(n, -1)
