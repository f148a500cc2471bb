"""The tree expert: a random forest for each column, on the features of the Gaussian expert.

Forests learn sharp rules and interactions from few rows, where networks smooth them out. A forest of a column gets the
other columns; their missing cells are filled by their conditional means, given the row without the column itself, in
fit as in predictions. Each tree is grown from a bootstrap sample, which leaves out about a third of the cells. A
forest's predictions of validation cells come from the trees that left the cell out, and so a single forest is enough.

Trees are grown by scikit-learn, and kept and saved as arrays. A leaf keeps the shares of its cells' classes or bins,
so that predictions are distributions.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import NEVER, Deadline
from evenly.imputation.columns import ModelledColumn
from evenly.imputation.effort import USUAL, Effort
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.gaussian import Gaussian, expect, fill_without, gaussian_features
from evenly.imputation.predictors import Pass
from evenly.predictive import Predictive
from evenly.tables import Floats

Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

N_THREADS: int | None = os.cpu_count()
"""Threads that grow trees, which do not depend on it."""
MOST_ROWS = 8_000
"""Forests are not grown on larger tables, where networks have learned what trees know."""
MOST_FILLED = 60_000_000
"""The largest number of filled cells: rows x columns x features."""
FEWEST = 30
"""Observed cells of a column that a forest is grown from."""
SPLIT_NUMBERS = 6
"""Trees of numbers do not split fewer cells.

Their splits are random, one of each feature, and the best of these: on cells that trees left out, in seven small
tables, the squared error is 0 to 32 % below that of the best splits of some features, as missForest has them.
"""
LEAF_BEST, LEAF_RANDOM = 3, 2
"""The fewest cells in a leaf of a tree of classes, with the best split of some features and with a random one.

Forests have as many trees with best as with random splits: on validation cells of small tables they predict better
together than either alone."""
ROWS_AT_ONCE = 512
"""Rows that are predicted at once, for the memory that it takes."""


@dataclass(frozen=True)
class Trees:
    """The forest of a column. Nodes of all trees stand in one list; the children of a node come after it."""

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
        nodes = np.arange(n)
        of_nodes = (self.feature, self.threshold, self.left, self.right, self.mean, self.first, self.size)
        whole = (self.roots, self.feature, self.left, self.right, self.first, self.size, self.outcome)
        if any(one.shape != (n,) for one in of_nodes) or self.outcome.shape != self.share.shape or not n:
            raise ValueError("trees: arrays of different lengths")
        if any(one.ndim != 1 or one.dtype != np.int32 for one in whole):
            raise ValueError("trees: nodes that are no whole numbers")
        inner = self.feature >= 0
        # Children come after their node, so that every way ends in a leaf.
        sound = all((nodes < side)[inner].all() and (side < n)[inner].all() for side in (self.left, self.right))
        sound &= len(self.roots) > 0 and _within(self.roots, 0, n) and _within(self.feature, -1, n_features)
        sound &= _within(self.first, 0, len(self.outcome) + 1) and bool((self.size[~inner] >= 1).all())
        sound &= bool((self.size >= 0).all() and (self.first.astype(int) + self.size <= len(self.outcome)).all())
        sound &= _within(self.outcome, 0, n_outcomes) and bool(((self.share > 0.0) & (self.share <= 1.0)).all())
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
            leaves = self._leaves(features[some])
            asked = np.ones(leaves.shape, bool) if used is None else used[some]
            with np.errstate(invalid="ignore"):
                weights = asked / asked.sum(1, keepdims=True)
            means[some] = (weights * self.mean[leaves]).sum(1)
            shares[some] = self._shares(leaves, weights, n_outcomes)
        return means, shares

    def _leaves(self, features: Floats) -> Rows:
        """Return the leaf that each row reaches in each tree."""
        cells = features.astype(np.float32).ravel()  # as scikit-learn compares them
        n, width = features.shape
        at = np.tile(self.roots.astype(np.intp), n)
        begins = np.repeat(np.arange(n) * width, len(self.roots))
        on = np.flatnonzero(self.feature[at] >= 0)
        while len(on):
            node = at[on]
            below = cells[begins[on] + self.feature[node]] <= self.threshold[node]
            at[on] = node = np.where(below, self.left[node], self.right[node])
            on = on[self.feature[node] >= 0]
        return at.reshape(n, -1)

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


def _within(values: Array, low: int, high: int) -> bool:
    return bool(((values >= low) & (values < high)).all())


# --- growing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """How forests are grown: random numbers, how many trees, and until when."""

    rng: np.random.Generator
    effort: Effort = USUAL
    deadline: Deadline = NEVER


class Grown(NamedTuple):
    """The forest of a column, and its predictions of the column's validation cells."""

    trees: Trees
    predicted: list[Predictive]
    """By set of validation cells. Each cell is predicted by trees that were not grown from it."""


def tree_features(specs: Sequence[ModelledColumn]) -> tuple[Flags, Rows]:
    """Return which features of the Gaussian expert trees use, and the column that each feature belongs to.

    A number is enough: its rank, the second feature, orders the rows in the same way.
    """
    widths = [one.n_gaussian for one in specs]
    used = [np.arange(n) < (n if one.column.has_classes else 1) for one, n in zip(specs, widths, strict=True)]
    return np.concatenate(used), np.repeat(np.arange(len(widths)), widths)


def grow_trees(
    table: EncodedTable,
    gaussian: Gaussian | None,
    passes: Sequence[Pass],
    held: Sequence[Flags],
    work: Work,
) -> list[Grown | None]:
    """Grow a forest for each column that has enough cells; none if the table is too large for it.

    Parameters
    ----------
    held : sequence of arrays
        Sets of validation cells, to predict with all cells of their set hidden, as networks do: rows x columns.
    work : Work
        Columns that there is no time for get no forest.
    """
    found: list[Grown | None] = [None] * len(table.columns)
    specs = [one.spec for one in table.columns]
    if gaussian is None or len(specs) < 2 or table.n_rows > MOST_ROWS:
        return found
    used, owners = tree_features(specs)
    if table.n_rows * len(specs) * used.sum() > MOST_FILLED:
        return found
    features = gaussian_features(table)
    seeds, slowest = work.rng.integers(2**31 - 1, size=len(specs)), 0.0
    for one in passes:
        shown = features if one.shown is None else np.where(one.shown[owners], features, np.nan)
        by_set = [_fill_held(gaussian, shown, cells, owners)[:, used] for cells in held]
        for j, filled in zip(one.targets, fill_without(gaussian, shown, owners, one.targets, used), strict=True):
            spec, values, _ = table.columns[j]
            rows = np.flatnonzero(~np.isnan(values))
            if not _grows(spec, values[rows]) or work.deadline.left() < slowest:
                continue
            begun, others = time.monotonic(), owners[used] != j
            seeded = replace(work, rng=np.random.default_rng(seeds[j]))
            grown = _grow(spec, filled[rows][:, others], values[rows], seeded)
            predicted = []
            for cells, known in zip(held, by_set, strict=True):
                left_out = grown.left_out[np.searchsorted(rows, np.flatnonzero(cells[:, j]))]
                own = known[cells[cells.any(1), j]][:, others]
                predicted.append(spec.from_outcomes(*grown.trees.predict(own, spec.n_outcomes, left_out)))
            found[j] = Grown(grown.trees, predicted)
            slowest = max(slowest, time.monotonic() - begun)
    return found


def _grows(spec: ModelledColumn, values: Floats) -> bool:
    """Whether a forest can be grown from the observed cells of a column."""
    return bool(spec.n_outcomes and len(values) >= FEWEST and (values != values[0]).any())


def _fill_held(gaussian: Gaussian, features: Floats, held: Flags, owners: Rows) -> Floats:
    """Return the filled features of rows with validation cells, with these cells hidden."""
    rows = held.any(1)
    return fill(gaussian, np.where(held[rows][:, owners], np.nan, features[rows]))


def fill(gaussian: Gaussian, features: Floats) -> Floats:
    """Return features with missing ones filled by their conditional means."""
    return np.where(np.isnan(features), expect(gaussian, features)[0], features)


class _Forest(NamedTuple):
    trees: Trees
    left_out: Flags
    """Which trees each cell was left out of: cells x trees."""


def _grow(spec: ModelledColumn, features: Floats, values: Floats, work: Work) -> _Forest:
    plans = _plan_trees(classes=spec.column.has_classes)
    wanted = spec.outcomes(values) if spec.column.has_classes else spec.gaussian_features(values)[:, 0]
    cells = np.ascontiguousarray(features, np.float32)
    seeds = work.rng.integers(2**31 - 1, size=work.effort.n_trees).tolist()
    # Not by scikit-learn's forests: their threads change the filters of warnings of the whole process.
    # Of classes that hardly repeat in a sample; the filters are those of all threads.
    with warnings.catch_warnings(), ThreadPoolExecutor(N_THREADS) as threads:
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        grown = list(threads.map(partial(_grow_tree, cells, wanted), cycle(plans), seeds))
    left_out = np.ones((len(values), len(grown)), bool)
    for t, (_, drawn) in enumerate(grown):
        left_out[drawn, t] = False
    outcomes = spec.outcomes(values).astype(int)
    leaves = ((tree, tree.apply(cells[drawn]), outcomes[drawn]) for tree, drawn in grown)
    return _Forest(_as_arrays(leaves, spec.n_outcomes, numbers=not spec.column.has_classes), left_out)


def _plan_trees(*, classes: bool) -> tuple[Callable[..., Any], ...]:
    """Return the kinds of trees that a forest has in turn."""
    from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier, ExtraTreeRegressor

    if classes:
        best = partial(DecisionTreeClassifier, max_features="sqrt", min_samples_leaf=LEAF_BEST)
        return best, partial(ExtraTreeClassifier, min_samples_leaf=LEAF_RANDOM)
    return (partial(ExtraTreeRegressor, min_samples_split=SPLIT_NUMBERS),)


def _grow_tree(cells: Array, wanted: Floats, plan: Callable[..., Any], seed: int) -> tuple[Any, Rows]:
    """Grow a tree from a bootstrap sample; return it and the sample."""
    drawn = np.random.default_rng(seed).integers(len(wanted), size=len(wanted))
    counts = np.bincount(drawn, minlength=len(wanted)).astype(float)
    kept = np.flatnonzero(counts)
    tree = plan(random_state=seed).fit(cells[kept], wanted[kept], sample_weight=counts[kept])
    return tree.tree_, drawn


def _as_arrays(grown: Iterator[tuple[Any, Rows, Rows]], n_outcomes: int, *, numbers: bool) -> Trees:
    """Return scikit-learn's trees as arrays.

    Parameters
    ----------
    grown : iterator
        Each tree, and the leaves and outcomes of the cells that it was grown from.
    """
    parts: dict[str, list[Array]] = {field.name: [] for field in fields(Trees)}
    at = n_before = 0
    for tree, leaves, outcomes in grown:
        pairs, counts = np.unique(leaves * n_outcomes + outcomes, return_counts=True)
        size = np.bincount(pairs // n_outcomes, minlength=tree.node_count)
        cells = np.bincount(leaves, minlength=tree.node_count)
        leaf = tree.children_left < 0
        one = {
            "roots": np.array([at]),
            "feature": np.where(leaf, -1, tree.feature),
            "threshold": np.where(leaf, 0.0, tree.threshold),
            "left": np.where(leaf, 0, tree.children_left + at),
            "right": np.where(leaf, 0, tree.children_right + at),
            "mean": tree.value[:, 0, 0] if numbers else np.zeros(len(leaf)),
            "first": n_before + np.cumsum(size) - size,
            "size": size,
            "outcome": pairs % n_outcomes,
            "share": counts / cells[pairs // n_outcomes],
        }
        for name, part in one.items():
            parts[name].append(part)
        at += tree.node_count
        n_before += len(pairs)
    exact = {"threshold": np.float64, "mean": np.float32, "share": np.float32}
    return Trees(**{name: np.concatenate(some).astype(exact.get(name, np.int32)) for name, some in parts.items()})


# --- predictions ------------------------------------------------------------------------------------------------------


def predict_by_trees(trees: Trees, table: EncodedTable, j: int, cells: Flags, filled: Floats) -> Predictive:
    """Return the distributions of some cells of a column by its forest; NaN at those that are known.

    Parameters
    ----------
    cells : array
        Which rows' cells are wanted.
    filled : array
        The features of the Gaussian expert, missing ones filled by their conditional means.
    """
    spec, values, _ = table.columns[j]
    used, owners = tree_features([one.spec for one in table.columns])
    missing = np.isnan(values[cells])
    means, shares = np.full(len(missing), np.nan), np.full((len(missing), spec.n_outcomes), np.nan)
    own = filled[np.flatnonzero(cells)[missing]][:, used & (owners != j)]
    means[missing], shares[missing] = trees.predict(own, spec.n_outcomes)
    return spec.from_outcomes(means, shares)


# --- saving -----------------------------------------------------------------------------------------------------------


def trees_to_tensors(trees: Mapping[str, Trees]) -> dict[str, Array]:
    """Return the arrays of forests by name, to be saved."""
    return {
        f"trees{i}_{field.name}": getattr(one, field.name)
        for i, one in enumerate(trees.values())
        for field in fields(Trees)
    }


def trees_from_tensors(
    names: Sequence[str], specs: Sequence[ModelledColumn], tensors: Mapping[str, Array]
) -> dict[str, Trees]:
    """Rebuild forests from `trees_to_tensors`; ValueError if they are none of these columns."""
    places = {one.name: j for j, one in enumerate(specs)}
    if len(set(names)) < len(names) or not places.keys() >= set(names):
        raise ValueError("trees of other columns than the modelled ones")
    found = {}
    for i, name in enumerate(names):
        j = places[name]
        used, owners = tree_features(specs)
        if lacking := [field.name for field in fields(Trees) if f"trees{i}_{field.name}" not in tensors]:
            raise ValueError(f"no array trees{i}_{lacking[0]}")
        own = Trees(**{field.name: tensors[f"trees{i}_{field.name}"] for field in fields(Trees)})
        own.check(int((used & (owners != j)).sum()), specs[j].n_outcomes)
        found[name] = own
    return found
