"""Fitting the tree expert: forests to small tables, gradient-boosted trees to large ones.

Validation cells are left out when trees are boosted, and predicted with all cells of their set hidden, as networks
predict them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from evenly._support import boost, boosted_arrays
from evenly.imputation.boosting import Boosted
from evenly.imputation.columns import ModelledColumn
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.gaussian import gaussian_features
from evenly.imputation.growing import MOST_ROWS as MOST_GROWN
from evenly.imputation.growing import Grown, Work, grow_trees, grows
from evenly.imputation.nodes import Array
from evenly.imputation.predictors import Pass
from evenly.imputation.row_filling import Filler, HeldOut
from evenly.imputation.trees import tree_features
from evenly.tables import Floats

MOST_ROWS = 60_000
"""Trees are boosted on a sample of so many rows of larger tables."""
MOST_FEATURES = 500
"""Not fitted to tables with more features."""
MOST_TREES = 1_000
"""Trees of a column: each round adds one for every class, so that columns of many classes have fewer rounds."""
FEWEST_ROUNDS = 20
"""Columns of so many classes that there would be fewer rounds have no trees."""


def fit_trees(
    table: EncodedTable, filler: Filler | None, passes: Sequence[Pass], sets: Sequence[HeldOut], work: Work
) -> list[Grown | None]:
    """Fit trees to each column that has enough cells: a forest, or on a large table boosted trees.

    Parameters
    ----------
    filler : Filler, optional
        Fills the cells that forests read; without it, there are no trees.
    sets : sequence of HeldOut
        Sets of validation cells, to predict with all cells of their set hidden, as networks do.
    work : Work
        Columns that there is no time for get no trees.
    """
    if table.n_rows <= MOST_GROWN:
        return grow_trees(table, filler, passes, sets, work)
    found: list[Grown | None] = [None] * len(table.columns)
    specs = [one.spec for one in table.columns]
    used, owners = tree_features(specs)
    if filler is None or len(specs) < 2 or used.sum() > MOST_FEATURES:
        return found
    held = [one.cells for one in sets]
    if table.n_rows > MOST_ROWS:  # only rows to learn from and rows to predict: tables may have millions
        learned = np.zeros(table.n_rows, bool)
        learned[work.rng.choice(table.n_rows, MOST_ROWS, replace=False)] = True
        needed = np.flatnonzero(learned | np.any([one.any(1) for one in held], axis=0))
        held, table, learned = [one[needed] for one in held], table.rows(needed), learned[needed]
    else:
        learned = np.ones(table.n_rows, bool)
    features = gaussian_features(table)
    hidden, slowest = np.any(held, axis=0), 0.0
    for one in passes:
        shown = features if one.shown is None else np.where(one.shown[owners], features, np.nan)
        some = [np.flatnonzero(cells.any(1)) for cells in held]
        by_set = [
            (cells, np.where(cells[rows][:, owners], np.nan, shown[rows]))
            for cells, rows in zip(held, some, strict=True)
        ]
        for j in one.targets:
            spec, values, _ = table.columns[j]
            rows = np.flatnonzero(learned & ~np.isnan(values) & ~hidden[:, j])
            if not grows(spec, values[rows]) or work.deadline.left() < slowest:
                continue
            begun, others = time.monotonic(), used & (owners != j)
            trees = _boost(spec, shown[np.ix_(rows, others)], values[rows], work.effort.n_trees)
            if trees is not None:
                predicted = []
                for cells, known in by_set:
                    own = known[cells[cells.any(1), j]][:, others]
                    predicted.append(spec.from_outcomes(*trees.predict(own, spec.n_outcomes)))
                found[j] = Grown(trees, predicted)
            slowest = max(slowest, time.monotonic() - begun)
    return found


def _boost(spec: ModelledColumn, features: Floats, values: Floats, n_rounds: int) -> Boosted | None:
    """Return the boosted trees of a column; None if it has too many classes."""
    if not spec.column.has_classes:
        return _as_boosted(features, spec.gaussian_features(values)[:, 0], n_rounds, np.zeros(0))
    codes, wanted = np.unique(spec.outcomes(values), return_inverse=True)
    n_outputs = len(codes) if len(codes) > 2 else 1
    rounds = min(n_rounds, MOST_TREES // n_outputs)
    return _as_boosted(features, wanted, rounds, codes) if rounds >= FEWEST_ROUNDS else None


def _as_boosted(features: Floats, wanted: Array, n_rounds: int, codes: Array) -> Boosted:
    base, parts = boosted_arrays(boost(features, wanted, n_rounds, classes=len(codes) > 0))
    sizes = np.array([len(one["value"]) for one in parts])
    roots = np.cumsum(sizes) - sizes
    nodes = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
    shift = np.repeat(roots, sizes)
    leaf = nodes["is_leaf"].astype(bool)
    return Boosted(
        base=np.asarray(base, np.float64),
        codes=codes.astype(np.int32),
        roots=roots.astype(np.int32),
        feature=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32),
        threshold=np.where(leaf, 0.0, nodes["num_threshold"]),
        left=np.where(leaf, 0, nodes["left"] + shift).astype(np.int32),
        right=np.where(leaf, 0, nodes["right"] + shift).astype(np.int32),
        missing_left=nodes["missing_go_to_left"].astype(bool) & ~leaf,
        value=np.where(leaf, nodes["value"], 0.0),
    )
