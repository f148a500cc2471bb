"""Imputers of scikit-learn as candidates of a comparison, one class each: to add one, write its class here.

They get numbers and codes of classes, as Evenly's models do, and are scored on the same hidden cells. scikit-learn's
modules are imported when an imputer is run, since they are slow to import.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning, TableError, advance
from evenly.metrics import mean_or_mode
from evenly.tables import Column, Floats

Flags = npt.NDArray[np.bool_]

METHOD = "scikit-learn"
"""What a comparison shows in place of a scaling method."""
MOST_CELLS = 100_000
"""In a comparison, imputers learn from a sample of rows with so many cells: their time grows faster than the table."""
FEWEST_ROWS = 500
"""The smallest such sample: wide tables need rows, too."""
MOST_PAIRS = 400_000_000
"""Nearest neighbours compare at most so many pairs of rows: a row of the table with one that they learned from."""
AT_ONCE = 2_000
"""Rows for which neighbours are looked for at a time."""
MOST_COLUMNS = 100
"""Wider tables take a forest too long to be compared unasked: each column has a forest in each round."""


class PeerImputer(ABC):
    """An imputer of tables of numbers and codes. A subclass registers itself by its name.

    Parameters
    ----------
    random_state : int
        Seeds the imputer, and the sample of rows.
    most_cells : int, optional
        Learn from a sample of rows with so many cells, and say so; by default, from all rows.

    Examples
    --------
    >>> class Median(PeerImputer, name="median"):
    ...     def impute(self, columns, visible):
    ...         return np.where(np.isnan(visible), np.nanmedian(visible, axis=0), visible)
    >>> PEER_IMPUTERS["median"]().impute([], np.array([[1.0], [np.nan], [4.0]])).tolist()
    [[1.0], [2.5], [4.0]]
    >>> del PEER_IMPUTERS["median"]
    """

    name: ClassVar[str]
    most_columns: ClassVar[float] = np.inf
    """Not compared unasked on wider tables."""
    learned_seconds: ClassVar[float] = 1e-5
    """About how many seconds it takes a cell of the rows that it learns from, for the time left."""
    filled_seconds: ClassVar[float] = 3e-6
    """And a cell of the table."""
    column_seconds: ClassVar[float] = 0.01
    """And a column, however few rows there are."""

    def __init_subclass__(cls, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if name is not None:
            cls.name = name
            PEER_IMPUTERS[name] = cls

    def __init__(self, random_state: int = 0, most_cells: int | None = None) -> None:
        self.random_state, self.most_cells = random_state, most_cells

    @abstractmethod
    def impute(self, columns: Sequence[Column], visible: Floats) -> Floats:
        """Return the table with its missing cells filled.

        Parameters
        ----------
        columns : sequence of Column
            Columns that are not ignored and have a visible cell.
        visible : array of shape (rows, columns)
            Numbers and codes of classes, from 0; NaN where a cell is missing or hidden.
        """

    def n_learned(self, n_rows: int, n_columns: int) -> int:
        """Return how many rows of a table it learns from."""
        if self.most_cells is None:
            return n_rows
        return min(n_rows, max(FEWEST_ROWS, self.most_cells // max(n_columns, 1)))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return about how many seconds a table takes."""
        learned = self.learned_seconds * self.n_learned(n_rows, n_columns)
        return n_columns * (self.column_seconds + learned + self.filled_seconds * n_rows) + 0.1

    def learns_from(self, visible: Floats) -> Flags:
        """Return which rows to learn from: all, or a random sample of a large table, with a warning."""
        n_rows, n_columns = visible.shape
        chosen, n = np.ones(n_rows, bool), self.n_learned(n_rows, n_columns)
        if n < n_rows:
            chosen[:] = False
            chosen[np.random.default_rng(self.random_state).choice(n_rows, n, replace=False)] = True
            warnings.warn(
                f"{self.name}: learns from {n:,} of the {n_rows:,} rows, drawn at random, so that it ends in time",
                EvenlyWarning,
                stacklevel=3,
            )
        return chosen


PEER_IMPUTERS: dict[str, type[PeerImputer]] = {}
"""All peers by name."""


# --- as numbers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberEncoding:
    """Numbers and ordered classes standardized, other classes one-hot, for imputers that know nothing of classes.

    Two different classes then have the squared distance 2, as two standardized numbers have on average.

    Examples
    --------
    >>> columns = [Column(name="x", kind="real"), Column(name="c", kind="categorical", classes=["a", "b"])]
    >>> table = np.array([[1.0, 0.0], [3.0, np.nan]])
    >>> encoding = NumberEncoding.of(columns, table)
    >>> encoding.encode(table)
    array([[-1.,  1.,  0.],
           [ 1., nan, nan]])
    >>> encoding.decode(np.array([[0.5, 0.2, 0.8]]))
    array([[2.5, 1. ]])
    """

    columns: Sequence[Column]
    mean: Floats
    std: Floats

    @classmethod
    def of(cls, columns: Sequence[Column], visible: Floats) -> NumberEncoding:
        """Return the encoding of a table; every column must have a visible cell."""
        mean, std = np.nanmean(visible, 0), np.nanstd(visible, 0)
        return cls(columns, mean, np.where(std > 0.0, std, 1.0))

    def encode(self, visible: Floats) -> Floats:
        """Return the table as numbers."""
        blocks = [
            _one_hot(visible[:, j], _width(column))
            if _width(column) > 1
            else (visible[:, j : j + 1] - self.mean[j]) / self.std[j]
            for j, column in enumerate(self.columns)
        ]
        return np.hstack(blocks)

    def decode(self, filled: Floats) -> Floats:
        """Return numbers in their units and the most probable class of each cell."""
        widths = [_width(column) for column in self.columns]
        blocks = np.split(filled, np.cumsum(widths)[:-1], axis=1)
        found = [
            block.argmax(1) if block.shape[1] > 1 else block[:, 0] * self.std[j] + self.mean[j]
            for j, block in enumerate(blocks)
        ]
        return to_classes(self.columns, np.column_stack(found).astype(float))


def _width(column: Column) -> int:
    """Return the number of columns that encode one: one for each class without an order, at least two of them."""
    return max(column.n_outcomes, 2) if column.kind in ("binary", "categorical") else 1


def _one_hot(codes: Floats, n: int) -> Floats:
    """Return a column for each class; a row without a class is missing in all of them."""
    rows: Floats = (codes[:, None] == np.arange(n)).astype(float)
    rows[np.isnan(codes)] = np.nan
    return rows


def to_classes(columns: Sequence[Column], predicted: Floats) -> Floats:
    """Round numbers that stand for classes to the nearest code."""
    for j, column in enumerate(columns):
        if column.has_classes:
            predicted[:, j] = np.clip(np.rint(predicted[:, j]), 0, len(column.classes or ()) - 1)
    return predicted


class EncodedPeer(PeerImputer):
    """Any imputer of numbers with scikit-learn's `fit` and `transform`, on a table that is encoded as numbers.

    It suits imputers that compare rows. One that regresses column on column learns that the one-hot columns of a class
    determine each other, and not much else of them.
    """

    def __init__(self, estimator: Any = None, random_state: int = 0, most_cells: int | None = None) -> None:
        super().__init__(random_state, most_cells)
        self.estimator = estimator
        if not hasattr(type(self), "name"):
            self.name = type(estimator).__name__  # type: ignore[misc]  # of this object alone

    def make(self) -> Any:
        """Return a new estimator."""
        from sklearn.base import clone

        return clone(self.estimator)

    def impute(self, columns: Sequence[Column], visible: Floats) -> Floats:
        encoding = NumberEncoding.of(columns, visible)
        cells, rows, estimator = encoding.encode(visible), self.learns_from(visible), self.make()
        found = estimator.fit_transform(cells) if rows.all() else self.fill(estimator.fit(cells[rows]), cells)
        filled = np.asarray(found, np.float64)
        if filled.shape != cells.shape or not np.isfinite(filled).all():
            raise TableError(
                f"an array of shape {filled.shape} from {self.name}, or missing cells in it",
                f"expected all {cells.shape[1]} columns, filled",
                "of scikit-learn's imputers, set keep_empty_features=True",
            )
        return encoding.decode(filled)

    def fill(self, fitted: Any, cells: Floats) -> Any:
        """Return all rows, filled by an estimator that was fitted to some."""
        return fitted.transform(cells)


class NearestNeighbours(EncodedPeer, name="knn"):
    """The mean of the five nearest rows, which vote for classes (`KNNImputer`)."""

    def __init__(self, random_state: int = 0, most_cells: int | None = None) -> None:
        super().__init__(None, random_state, most_cells)

    def make(self) -> Any:
        """Return the imputer of scikit-learn."""
        from sklearn.impute import KNNImputer

        return KNNImputer(n_neighbors=5, keep_empty_features=True)

    def n_learned(self, n_rows: int, n_columns: int) -> int:
        """Return how many rows it learns from: fewer of a long table, whose rows are all compared with them."""
        n = super().n_learned(n_rows, n_columns)
        return n if self.most_cells is None else min(n, max(FEWEST_ROWS, MOST_PAIRS // max(n_rows, 1)))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return about how many seconds a table takes: each pair of rows counts."""
        return 1e-8 * n_rows * self.n_learned(n_rows, n_columns) * n_columns + 0.1

    def fill(self, fitted: Any, cells: Floats) -> Any:
        """Return all rows, filled some at a time: each by its own neighbours, and the time left is known."""
        parts = []
        for start in range(0, len(cells), AT_ONCE):
            parts.append(fitted.transform(cells[start : start + AT_ONCE]))
            advance(min(1.0, (start + AT_ONCE) / len(cells)))
        return np.vstack(parts)


# --- in rounds ----------------------------------------------------------------------------------------------------


class InRounds(PeerImputer):
    """Fit a model to each column, the one with fewest missing cells first, until imputed cells stop converging.

    The stopping rule is that of the R package missForest: when neither numbers nor classes changed less than in the
    round before, the result is the table of the round before; after `max_rounds` it is the last one.
    """

    def __init__(self, random_state: int = 0, most_cells: int | None = None, *, max_rounds: int = 10) -> None:
        super().__init__(random_state, most_cells)
        self.max_rounds = max_rounds

    def impute(self, columns: Sequence[Column], visible: Floats) -> Floats:
        missing, rows = np.isnan(visible), self.learns_from(visible)
        classes = np.array([column.has_classes for column in columns])
        filled = np.where(missing, mean_or_mode(columns, visible, np.zeros(visible.shape, bool)), visible)
        order = [j for j in np.argsort(missing.sum(0), kind="stable") if missing[:, j].any()]
        last = np.array([np.inf, np.inf])
        for i in range(self.max_rounds):
            before = filled.copy()
            for k, j in enumerate(order):
                advance((i + k / len(order)) / self.max_rounds)
                known, gone = ~missing[:, j] & rows, missing[:, j]
                if len(columns) > 1 and len(np.unique(filled[known, j])) > 1:
                    filled[gone, j] = self.predict(columns, filled, j, known, gone)
            changed = how_far(before, filled, classes)
            if i + 1 < self.max_rounds and not (changed < last).any():
                return before
            last = changed
        return filled

    @abstractmethod
    def predict(self, columns: Sequence[Column], filled: Floats, j: int, known: Flags, gone: Flags) -> Floats:
        """Return column j in the rows `gone`, by a model of its other columns that is fitted to the rows `known`."""


class Linear(InRounds, name="linear"):
    """Bayesian ridge regressions of numbers, ridge classifiers of classes, on standardized and one-hot columns.

    scikit-learn's `IterativeImputer` would regress the one-hot columns of a class on each other, which are missing
    together.
    """

    def predict(self, columns: Sequence[Column], filled: Floats, j: int, known: Flags, gone: Flags) -> Floats:
        from sklearn.linear_model import BayesianRidge, RidgeClassifier

        others = [*columns[:j], *columns[j + 1 :]]
        cells = np.delete(filled, j, axis=1)
        features = NumberEncoding.of(others, cells).encode(cells)
        model = RidgeClassifier() if columns[j].has_classes else BayesianRidge()
        return np.asarray(model.fit(features[known], filled[known, j]).predict(features[gone]), np.float64)


class Forest(InRounds, name="forest"):
    """Random forests, as the R package missForest has them.

    In forests of numbers, the square root of the columns is considered at a split, and a node of 5 cells or fewer is
    not split; those of classes are scikit-learn's default.
    """

    most_columns = MOST_COLUMNS
    learned_seconds, filled_seconds, column_seconds = 4e-4, 2e-5, 0.5
    settings: ClassVar[Mapping[str, Any]] = MappingProxyType({"max_features": "sqrt", "min_samples_split": 6})
    """Of the forests of numbers."""

    def __init__(
        self,
        random_state: int = 0,
        most_cells: int | None = None,
        *,
        n_trees: int = 100,
        max_rounds: int = 10,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(random_state, most_cells, max_rounds=max_rounds)
        self.n_trees = n_trees
        self.regressor_settings = type(self).settings if settings is None else settings

    def predict(self, columns: Sequence[Column], filled: Floats, j: int, known: Flags, gone: Flags) -> Floats:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        of_all = {"n_estimators": self.n_trees, "n_jobs": -1, "random_state": self.random_state}
        forest = (
            RandomForestClassifier(**of_all)
            if columns[j].has_classes
            else RandomForestRegressor(**of_all, **self.regressor_settings)
        )
        others = np.delete(filled, j, axis=1)
        forest.fit(others[known], filled[known, j])
        forest.set_params(n_jobs=1)  # several threads add up the trees in any order, with other rounding
        return np.asarray(forest.predict(others[gone]), np.float64)


def how_far(before: Floats, after: Floats, classes: Flags) -> Floats:
    """Return the squared change of a table's numbers relative to their squares, and the share of classes that changed.

    A table without numbers or without classes has 0 for them, which is never less than the 0 of the round before.
    """
    numbers = after[:, ~classes]
    squares = ((numbers - before[:, ~classes]) ** 2).sum() / max((numbers**2).sum(), 1e-300)
    changed = (after != before)[:, classes]
    return np.array([squares, changed.mean() if changed.size else 0.0])


# --- in a comparison ----------------------------------------------------------------------------------------------


def as_peer(candidate: Any, random_state: int) -> PeerImputer:
    """Return what a candidate names: a peer, the name of one, or any imputer of scikit-learn."""
    if isinstance(candidate, PeerImputer):
        return candidate
    if isinstance(candidate, str):
        if candidate not in PEER_IMPUTERS:
            raise TableError(f"the imputer {candidate!r}", f"expected one of {', '.join(PEER_IMPUTERS)}, or an Imputer")
        return PEER_IMPUTERS[candidate](random_state, MOST_CELLS)
    if isinstance(candidate, type) or not (hasattr(candidate, "fit") and hasattr(candidate, "transform")):
        raise TableError(f"{candidate!r} as imputer", "expected an Imputer, a name, or an imputer of scikit-learn")
    return EncodedPeer(candidate, random_state)


def impute_visible(peer: PeerImputer, columns: Sequence[Column], visible: Floats) -> Floats:
    """Return a peer's imputed table; NaN in columns that are ignored or have no visible cell.

    Of many classes, peers tell apart those that an imputer does; the code of the rest is that of its first class.
    """
    used = [j for j, one in enumerate(columns) if one.kind != "ignore" and not np.isnan(visible[:, j]).all()]
    found = np.full(visible.shape, np.nan)
    some = [columns[j] for j in used]
    lumped = [one.lump(visible[:, j]) for one, j in zip(some, used, strict=True)]
    found[:, used] = peer.impute(some, np.column_stack([np.zeros((len(visible), 0)), *lumped]))
    return found
