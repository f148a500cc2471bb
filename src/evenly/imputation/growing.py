"""Growing the tree expert's forests, by scikit-learn's trees.

A forest of a column gets the other columns; their missing cells are filled by what the networks expect, given the row
without the column itself, in fit as in predictions. Each tree is grown from a bootstrap sample, which leaves out about
a third of the cells. A forest's predictions of validation cells come from the trees that left the cell out, and so a
single forest is enough.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from evenly._support import NEVER, Deadline
from evenly.imputation.boosting import Boosted
from evenly.imputation.columns import ModelledColumn
from evenly.imputation.effort import USUAL, Effort
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.nodes import Array
from evenly.imputation.predictors import Pass
from evenly.imputation.row_filling import Filler, HeldOut
from evenly.imputation.trees import Flags, Rows, Trees, tree_features
from evenly.predictive import Predictive
from evenly.tables import Floats

N_THREADS: int | None = os.cpu_count()
"""Threads that grow trees, which do not depend on it."""
MOST_ROWS = 8_000
"""Forests are not grown on larger tables, where trees are boosted."""
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


@dataclass(frozen=True)
class Work:
    """How forests are grown: random numbers, how many trees, and until when."""

    rng: np.random.Generator
    effort: Effort = USUAL
    deadline: Deadline = NEVER


class Grown(NamedTuple):
    """The trees of a column, and their predictions of the column's validation cells."""

    trees: Trees | Boosted
    predicted: list[Predictive]
    """By set of validation cells. Each cell is predicted by trees that were not grown from it."""


def grow_trees(
    table: EncodedTable, filler: Filler | None, passes: Sequence[Pass], held: Sequence[HeldOut], work: Work
) -> list[Grown | None]:
    """Grow a forest for each column that has enough cells; none if the table is too large for it.

    Parameters
    ----------
    filler : Filler, optional
        Fills the cells that trees read; without it, there are none.
    held : sequence of HeldOut
        Sets of validation cells, to predict with all cells of their set hidden, as networks do.
    work : Work
        Columns that there is no time for get no forest.
    """
    found: list[Grown | None] = [None] * len(table.columns)
    specs = [one.spec for one in table.columns]
    if filler is None or len(specs) < 2 or table.n_rows > MOST_ROWS:
        return found
    used, owners = tree_features(specs)
    if table.n_rows * len(specs) * used.sum() > MOST_FILLED:
        return found
    seeds, slowest = work.rng.integers(2**31 - 1, size=len(specs)), 0.0
    for one in passes:
        if work.deadline.left() <= 0.0:
            break
        by_set = [filler.fill_held(each, one)[:, used] for each in held]
        for j in one.targets:
            spec, values, _ = table.columns[j]
            rows = np.flatnonzero(~np.isnan(values))
            if not grows(spec, values[rows]) or work.deadline.left() < slowest:
                continue
            begun, others = time.monotonic(), owners[used] != j
            filled = filler.fill_without(one, j)[:, used]
            seeded = replace(work, rng=np.random.default_rng(seeds[j]))
            grown = _grow(spec, filled[rows][:, others], values[rows], seeded)
            predicted = []
            for cells, known in zip((each.cells for each in held), by_set, strict=True):
                left_out = grown.left_out[np.searchsorted(rows, np.flatnonzero(cells[:, j]))]
                own = known[cells[cells.any(1), j]][:, others]
                predicted.append(spec.from_outcomes(*grown.trees.predict(own, spec.n_outcomes, left_out)))
            found[j] = Grown(grown.trees, predicted)
            slowest = max(slowest, time.monotonic() - begun)
    return found


def grows(spec: ModelledColumn, values: Floats) -> bool:
    """Whether there is something to grow trees from in the observed cells of a column."""
    return bool(spec.n_outcomes and len(values) >= FEWEST and (values != values[0]).any())


class _Forest(NamedTuple):
    trees: Trees
    left_out: Flags
    """Which trees each cell was left out of: cells x trees."""


def _grow(spec: ModelledColumn, features: Floats, values: Floats, work: Work) -> _Forest:
    plans = _plan_trees(classes=spec.column.has_classes)
    wanted = spec.outcomes(values) if spec.column.has_classes else spec.gaussian_features(values)[:, 0]
    cells = np.ascontiguousarray(features, np.float32)
    seeds = work.rng.integers(2**31 - 1, size=work.effort.n_trees).tolist()
    # Not by scikit-learn's forests: their threads change the filters of warnings of the whole process. What is ignored
    # here, once for all threads, is said of classes that hardly repeat in a sample.
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
