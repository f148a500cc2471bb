"""The tree expert: its arrays predict as scikit-learn's forests do, validation cells come from trees without them."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from imputers import GaussianFiller, encode, hide, make_imputer, ruled_table
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier, ExtraTreeRegressor

from evenly import Imputer, TableError
from evenly._support import Deadline
from evenly._support.files import read_tensors, write_tensors
from evenly.imputation import growing
from evenly.imputation.effort import Effort
from evenly.imputation.growing import Work, grow_trees
from evenly.imputation.predictors import plan_passes
from evenly.imputation.row_filling import HeldOut
from evenly.imputation.trees import (
    predict_by_trees,
    tree_features,
    trees_from_tensors,
    trees_to_tensors,
)

RNG = np.random.default_rng
SMALL = Effort(n_trees=20)


@pytest.fixture(scope="module")
def grown():
    """A table, its filler, sets of validation cells, and a forest of each column."""
    table = encode(ruled_table())
    filler = GaussianFiller(table)
    observed = np.column_stack([~np.isnan(one) for one in table.values])
    held = [HeldOut(observed & (RNG(seed).random(observed.shape) < 0.1)) for seed in (1, 2)]
    found = grow_trees(table, filler, plan_passes({}, table.layout.names), held, Work(RNG(3), SMALL))
    return table, filler, held, found


def test_every_column_gets_a_forest_and_predictions_of_its_validation_cells(grown):
    _, _, held, found = grown
    for j, one in enumerate(found):
        for cells, predicted in zip(held, one.predicted, strict=True):
            assert len(predicted.mean()) == cells.cells[:, j].sum()
            assert not np.isnan(predicted.mean()).any()


def test_forests_know_sharp_rules(grown):
    table, _, held, found = grown
    truth = np.concatenate([table.values[3][cells.cells[:, 3]] for cells in held])
    guess = np.concatenate([one.mode() for one in found[3].predicted])
    assert (guess == truth).mean() > 0.8


@pytest.mark.parametrize("classes", [False, True])
def test_arrays_predict_as_the_trees_of_scikit_learn(classes, monkeypatch):
    kept = []

    def keep(kind):
        class Kept(kind):
            def fit(self, features, wanted, **settings):
                kept.append(self)
                return super().fit(features, wanted, **settings)

        monkeypatch.setattr(f"sklearn.tree.{kind.__name__}", Kept)

    for kind in (DecisionTreeClassifier, ExtraTreeClassifier) if classes else (ExtraTreeRegressor,):
        keep(kind)
    table = encode(ruled_table())
    filler, passes = GaussianFiller(table), plan_passes({}, table.layout.names)
    only = [pair._replace(targets=(3 if classes else 2,)) for pair in passes]
    grown = grow_trees(table, filler, only, [], Work(RNG(3), SMALL))
    (j,) = only[0].targets
    features = RNG(0).normal(size=(50, kept[0].n_features_in_)).astype(np.float32)
    means, shares = grown[j].trees.predict(features, table.columns[j].spec.n_outcomes)
    assert len(kept) == SMALL.n_trees
    assert sum(isinstance(one, ExtraTreeClassifier) for one in kept) == classes * SMALL.n_trees // 2
    if classes:
        expected = np.zeros_like(shares)
        for tree in kept:
            expected[:, tree.classes_.astype(int)] += tree.predict_proba(features) / len(kept)
        np.testing.assert_allclose(shares, expected, atol=1e-6)
    else:
        np.testing.assert_allclose(means, np.mean([one.predict(features) for one in kept], 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(shares.sum(1), 1.0, atol=1e-6)


def test_a_cell_is_predicted_by_trees_that_did_not_see_it(grown):
    """Its value may be changed, within the validation set, without a change of its own prediction."""
    table, filler, held, found = grown
    spec = table.columns[2].spec
    row = int(np.flatnonzero(held[0].cells[:, 2])[0])
    values = table.values[2].copy()
    values[row] = 10.0 - values[row]
    columns = list(table.columns)
    columns[2] = columns[2]._replace(values=values)
    changed = replace(table, columns=tuple(columns))
    again = grow_trees(
        changed,
        GaussianFiller(changed, filler.gaussian),
        plan_passes({}, table.layout.names),
        held,
        Work(RNG(3), SMALL),
    )
    first, second = (one[2].predicted[0].parameters["probabilities"][0] for one in (found, again))
    np.testing.assert_array_equal(first, second)
    assert len(found[2].trees.mean) != len(again[2].trees.mean)
    assert spec.n_outcomes == len(first)


def test_a_forest_does_not_depend_on_how_many_processors_grow_it(monkeypatch):
    table = encode(ruled_table())
    filler = GaussianFiller(table)
    passes = plan_passes({}, table.layout.names)
    monkeypatch.setattr(growing, "N_THREADS", 4)
    several = grow_trees(table, filler, passes, [], Work(RNG(3), SMALL))
    monkeypatch.setattr(growing, "N_THREADS", 1)
    single = grow_trees(table, filler, passes, [], Work(RNG(3), SMALL))
    for one, other in zip(several, single, strict=True):
        for field in fields(one.trees):
            np.testing.assert_array_equal(getattr(one.trees, field.name), getattr(other.trees, field.name))


def test_predictions_of_a_row_do_not_depend_on_the_rows_around_it(grown):
    table, filler, _, found = grown
    filled = filler.fill(filler.features)
    for j, one in enumerate(found):
        missing = np.isnan(table.values[j])
        whole = predict_by_trees(one.trees, table, j, missing, filled)
        some = missing & (np.arange(len(missing)) > 60)
        part = predict_by_trees(one.trees, table, j, some, filled)
        np.testing.assert_array_equal(part.mean(), whole.take(some[missing]).mean())
        known = predict_by_trees(one.trees, table, j, ~missing, filled)
        assert np.isnan(getattr(known, "probabilities", known.mean())).all()


def test_saved_forests_are_the_same_and_wrong_ones_are_refused(grown):
    table, _, _, found = grown
    specs = [one.spec for one in table.columns]
    trees = {one.name: own.trees for one, own in zip(specs, found, strict=True)}
    tensors = trees_to_tensors(trees)
    again = trees_from_tensors(list(trees), specs, tensors)
    for name, one in trees.items():
        for field in fields(one):
            np.testing.assert_array_equal(getattr(again[name], field.name), getattr(one, field.name))
    used, _ = tree_features(specs)
    n = len(trees["x"].feature)
    for name, wrong in (
        ("feature", np.full(n, used.sum(), np.int32)),
        ("feature", trees["x"].feature.astype(np.int64)),
        ("left", np.zeros(n, np.int32)),
        ("right", np.full(n, n, np.int32)),
        ("roots", np.array([-1], np.int32)),
        ("roots", np.zeros(0, np.int32)),
        ("threshold", np.full(n, np.nan)),
        ("threshold", np.zeros(n - 1)),
        ("mean", np.full(n, np.inf, np.float32)),
        ("size", np.zeros(n, np.int32)),
        ("size", np.full(n, 2**31 - 1, np.int32)),
        ("first", np.full(n, -1, np.int32)),
        ("outcome", np.full(len(trees["x"].outcome), specs[0].n_outcomes, np.int32)),
        ("share", -trees["x"].share),
        ("share", trees["x"].share[:-1]),
    ):
        with pytest.raises(ValueError, match="trees"):
            trees_from_tensors(list(trees), specs, tensors | {f"trees0_{name}": wrong})
    with pytest.raises(ValueError, match="trees of other columns"):
        trees_from_tensors(["z"], specs, tensors)
    with pytest.raises(ValueError, match="no array trees0_left"):
        trees_from_tensors(["x"], specs, {name: one for name, one in tensors.items() if name != "trees0_left"})


def test_tables_that_are_too_large_get_no_forests(grown, monkeypatch):
    table, filler, held, _ = grown
    passes = plan_passes({}, table.layout.names)
    monkeypatch.setattr(growing, "MOST_ROWS", table.n_rows - 1)
    assert grow_trees(table, filler, passes, held, Work(RNG(3), SMALL)) == [None] * 5
    monkeypatch.setattr(growing, "MOST_ROWS", table.n_rows)
    monkeypatch.setattr(growing, "MOST_FILLED", 1)
    assert grow_trees(table, filler, passes, held, Work(RNG(3), SMALL)) == [None] * 5
    assert grow_trees(table, None, passes, held, Work(RNG(3), SMALL)) == [None] * 5


def test_columns_that_there_is_no_time_for_get_no_forest(grown):
    table, filler, held, _ = grown
    over = Work(RNG(3), SMALL, Deadline.after(-1.0))
    assert grow_trees(table, filler, plan_passes({}, table.layout.names), held, over) == [None] * 5


def test_growing_leaves_the_filters_of_warnings_alone(grown):
    table, filler, held, _ = grown
    before = list(warnings.filters)
    grow_trees(table, filler, plan_passes({}, table.layout.names), held, Work(RNG(3), SMALL))
    assert list(warnings.filters) == before


@pytest.mark.more
def test_an_imputer_with_forests_is_the_same_after_loading_and_for_new_rows(tmp_path):
    table = ruled_table(400)
    shown = table.mask(hide(table)[1])
    settings = {"epochs": 2, "hidden_size": 8, "n_networks": 1, "random_state": 0}
    imputer = make_imputer(**settings).fit(shown)
    assert imputer.ensemble_.trees
    full = imputer.transform(shown)
    file = tmp_path / "imputer.safetensors"
    imputer.save(file)
    again = Imputer.load(file)
    pd.testing.assert_frame_equal(again.transform(shown), full, check_exact=True)
    pd.testing.assert_frame_equal(imputer.transform(shown.iloc[100:117]), full.iloc[100:117], check_exact=True)
    pd.testing.assert_frame_equal(make_imputer(**settings).fit(shown).transform(shown), full, check_exact=True)
    for one, other in zip(again.sample(shown, 2), imputer.sample(shown, 2), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    low, high = imputer.interval(shown)
    assert (low["step"] <= high["step"]).all()
    content, tensors = read_tensors(file, "Imputer")
    write_tensors(file, content, tensors | {"trees0_left": np.zeros_like(tensors["trees0_left"])})
    with pytest.raises(TableError, match=r"cannot read it: .*trees"):
        Imputer.load(file)


@pytest.mark.more
def test_a_forest_of_a_column_with_predictors_of_its_own_uses_no_other():
    table = ruled_table(400)
    imputer = make_imputer(epochs=2, hidden_size=8, n_networks=1, random_state=0, predictors={"corner": ["x"]}).fit(
        table
    )
    assert "corner" in imputer.ensemble_.trees
    changed = table.assign(y=0.5, side="up")
    pd.testing.assert_series_equal(imputer.transform(changed)["corner"], imputer.transform(table)["corner"])
