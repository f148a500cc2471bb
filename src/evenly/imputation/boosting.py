"""The tree expert of large tables: gradient-boosted trees of each column, kept and saved as arrays.

They read the features of the Gaussian expert as they are: a node also says where rows go whose feature is missing. They
predict the mean of a number, not its distribution, which stays that of the networks; and the probabilities of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from evenly.imputation.nodes import Array, are_sound, are_within, find_leaves
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

ROWS_AT_ONCE = 512
"""Rows that are predicted at once, for the memory that it takes."""


@dataclass(frozen=True)
class Boosted:
    """The trees of a column. Nodes of all trees stand in one list; the children of a node come after it."""

    needs_filled: ClassVar[bool] = False
    """Missing features are left as they are."""

    base: Array
    """What each output starts from: one output for numbers and for two classes, else one for each class."""
    codes: Array
    """The classes that were seen, in the order of the outputs; none for numbers."""
    roots: Array
    """The first node of each tree; trees of the outputs follow each other in turn."""
    feature: Array
    """The feature that a node compares with its threshold; -1 in a leaf."""
    threshold: Array
    left: Array
    right: Array
    missing_left: Array
    """Whether rows whose feature is missing go to the left."""
    value: Array
    """What a leaf adds to its output; 0 in other nodes."""

    def check(self, n_features: int, n_outcomes: int) -> None:
        """Raise an error if these are no trees of so many features, and bins or classes."""
        n = len(self.feature)
        of_nodes = (self.feature, self.threshold, self.left, self.right, self.missing_left, self.value)
        whole = (self.codes, self.roots, self.feature, self.left, self.right)
        if any(one.shape != (n,) for one in of_nodes) or not n:
            raise ValueError("boosted trees: arrays of different lengths")
        if any(one.ndim != 1 or one.dtype != np.int32 for one in whole) or self.missing_left.dtype != np.bool_:
            raise ValueError("boosted trees: nodes that are no whole numbers")
        sound = are_sound(self, n_features) and are_within(self.codes, 0, n_outcomes)
        sound &= len(self.codes) != 1 and len(np.unique(self.codes)) == len(self.codes)
        sound &= self.base.shape == (len(self.codes) if len(self.codes) > 2 else 1,)
        sound &= not len(self.roots) % max(len(self.base), 1)
        if not (sound and np.isfinite(self.base).all() and np.isfinite(self.value).all()):
            raise ValueError("boosted trees: nodes that form no trees")
        if np.isnan(self.threshold).any():
            raise ValueError("boosted trees: a threshold that is no number")

    @property
    def has_classes(self) -> bool:
        """Whether they predict classes."""
        return len(self.codes) > 0

    def predict(self, features: Floats, n_outcomes: int) -> tuple[Floats, Floats]:
        """Return the mean of each row, and its shares of classes, rows x outcomes; NaN for what is not predicted."""
        n, n_outputs = len(features), len(self.base)
        raw = np.empty((n, n_outputs))
        for start in range(0, n, ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            added = self.value[find_leaves(self, features[some], self.missing_left)]
            raw[some] = self.base + added.reshape(len(added), -1, n_outputs).sum(1)
        if not self.has_classes:
            return raw[:, 0], np.full((n, n_outcomes), np.nan)
        shares = np.zeros((n, n_outcomes))
        of_second = expit(raw)
        shares[:, self.codes] = np.hstack([1.0 - of_second, of_second]) if n_outputs == 1 else softmax(raw, axis=1)
        return np.full(n, np.nan), shares
