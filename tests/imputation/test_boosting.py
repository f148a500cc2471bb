"""The tree expert of large tables: its arrays predict as scikit-learn's trees do, validation cells are left out."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from imputers import GaussianFiller, encode, make_imputer, ruled_table

from evenly import Imputer
from evenly._support import Deadline
from evenly.imputation import boost_fitting, kernel_fitting, tilt_fitting
from evenly.imputation.boost_fitting import fit_trees
from evenly.imputation.boosting import Boosted
from evenly.imputation.effort import Effort
from evenly.imputation.gaussian import gaussian_features
from evenly.imputation.growing import Work
from evenly.imputation.predictors import plan_passes
from evenly.imputation.row_filling import HeldOut
from evenly.imputation.trees import Trees, predict_by_trees, tree_features, trees_from_tensors, trees_to_tensors

RNG = np.random.default_rng
SMALL = Effort(n_trees=20)
NAMES = ("x", "y", "step", "corner", "side")


@pytest.fixture(scope="module")
def boosted():
    """A table that counts as large, its validation cells, the trees, and what they were fitted to."""
    table = encode(ruled_table(400))
    filler = GaussianFiller(table)
    observed = np.column_stack([~np.isnan(one) for one in table.values])
    held = [HeldOut(observed & (RNG(1).random(observed.shape) < 0.1))]
    kept, real = [], boost_fitting.boost

    def keep(features, wanted, n_rounds, *, classes):
        kept.append((features, real(features, wanted, n_rounds, classes=classes)))
        return kept[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boost_fitting, "MOST_GROWN", 100)
        patch.setattr(boost_fitting, "boost", keep)
        passes = plan_passes({}, table.layout.names)
        found = fit_trees(table, filler, passes, held, Work(RNG(3), SMALL))
    return table, held, found, kept


def test_small_tables_get_forests_and_large_ones_boosted_trees(boosted):
    table, held, found, _ = boosted
    assert all(isinstance(one.trees, Boosted) for one in found)
    filler, passes = GaussianFiller(table), plan_passes({}, table.layout.names)
    grown = fit_trees(table, filler, passes, held, Work(RNG(3), SMALL))
    assert all(isinstance(one.trees, Trees) for one in grown)


@pytest.mark.parametrize("j", range(5), ids=NAMES)
def test_arrays_predict_as_the_trees_of_scikit_learn(boosted, j):
    table, _, found, kept = boosted
    features, model = kept[j]
    asked = RNG(0).normal(size=(50, features.shape[1]))
    asked[RNG(1).random(asked.shape) < 0.3] = np.nan
    means, shares = found[j].trees.predict(asked, table.specs[j].n_outcomes)
    if table.specs[j].column.has_classes:
        np.testing.assert_allclose(shares, model.predict_proba(asked), rtol=1e-9)
        assert np.isnan(means).all()
    else:
        np.testing.assert_allclose(means, model.predict(asked), rtol=1e-9)
        assert np.isnan(shares).all()


def test_validation_cells_are_left_out_and_hidden(boosted):
    table, held, found, kept = boosted
    used, owners = tree_features(table.specs)
    for j, (features, _) in enumerate(kept):
        values, cells = table.values[j], held[0].cells
        assert len(features) == (~np.isnan(values) & ~cells[:, j]).sum()
        assert len(found[j].predicted[0].mode()) == cells[:, j].sum()
        shown = np.where(cells[:, owners], np.nan, gaussian_features(table))
        own = shown[cells[:, j]][:, used & (owners != j)]
        expected = table.specs[j].from_outcomes(*found[j].trees.predict(own, table.specs[j].n_outcomes))
        by = "probabilities" if table.specs[j].column.has_classes else "means"
        np.testing.assert_array_equal(getattr(found[j].predicted[0], by), getattr(expected, by))


def test_boosted_trees_know_sharp_rules_where_cells_are_missing(boosted):
    table, held, found, _ = boosted
    truth = table.values[3][held[0].cells[:, 3]]
    assert (found[3].predicted[0].mode() == truth).mean() > 0.8
    step = table.values[2]
    missing = np.where(RNG(5).random(len(step)) < 0.5, step, np.nan)
    step_too = table.columns[2]._replace(values=missing)
    gapped = replace(table, columns=(*table.columns[:2], step_too, *table.columns[3:]))
    cells = np.isnan(missing) & ~np.isnan(step)
    predicted = predict_by_trees(found[2].trees, gapped, 2, cells, gaussian_features(gapped))
    assert np.abs(predicted.means - step[cells]).mean() < 0.5 * np.abs(step[cells] - np.nanmean(step)).mean()


def test_the_distribution_of_a_number_stays_that_of_the_networks(boosted):
    _, _, found, _ = boosted
    assert np.isnan(found[2].predicted[0].probabilities).all()


def test_trees_come_back_from_their_arrays(boosted):
    table, _, found, _ = boosted
    trees = {name: one.trees for name, one in zip(NAMES, found, strict=True)}
    again = trees_from_tensors(list(trees), table.specs, trees_to_tensors(trees))
    for name, one in trees.items():
        assert isinstance(again[name], Boosted)
        assert all(np.array_equal(getattr(one, f.name), getattr(again[name], f.name)) for f in fields(Boosted))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("left", lambda one: np.zeros_like(one)),
        ("feature", lambda one: one + np.int32(99)),
        ("codes", lambda one: one + np.int32(99)),
        ("value", lambda one: one * np.nan),
        ("threshold", lambda one: one * np.nan),
        ("roots", lambda one: one[:-1]),
        ("base", lambda one: one[:-1]),
        ("missing_left", lambda one: one.astype(np.int32)),
    ],
)
def test_damaged_trees_are_refused(boosted, field, wrong):
    table, _, found, _ = boosted
    corner = found[3].trees  # three classes
    damaged = replace(corner, **{field: wrong(getattr(corner, field))})
    with pytest.raises(ValueError, match="boosted trees"):
        trees_from_tensors(["corner"], table.specs, trees_to_tensors({"corner": damaged}))


def test_trees_of_classes_are_refused_for_a_number(boosted):
    table, _, found, _ = boosted
    with pytest.raises(ValueError, match="boosted trees of classes for a number"):
        trees_from_tensors(["x"], table.specs, trees_to_tensors({"x": replace(found[4].trees)}))


def test_without_time_there_are_no_trees(monkeypatch):
    monkeypatch.setattr(boost_fitting, "MOST_GROWN", 100)
    table = encode(ruled_table())
    filler = GaussianFiller(table)
    held, late = [HeldOut(np.isnan(np.column_stack(table.values)))], Work(RNG(0), SMALL, Deadline.after(1e-9))
    none = fit_trees(table, filler, plan_passes({}, table.layout.names), held, late)
    assert none == [None] * 5


def test_of_a_very_large_table_a_sample_of_rows_is_learned_from(boosted, monkeypatch):
    table, held, _, _ = boosted
    kept, real = [], boost_fitting.boost

    def keep(features, *rest, **settings):
        kept.append(len(features))
        return real(features, *rest, **settings)

    monkeypatch.setattr(boost_fitting, "MOST_GROWN", 100)
    monkeypatch.setattr(boost_fitting, "MOST_ROWS", 200)
    monkeypatch.setattr(boost_fitting, "boost", keep)
    filler, passes = GaussianFiller(table), plan_passes({}, table.layout.names)
    found = fit_trees(table, filler, passes, held, Work(RNG(3), SMALL))
    assert all(100 < n <= 200 for n in kept)
    for j, one in enumerate(found):
        assert len(one.predicted[0].mode()) == held[0].cells[:, j].sum()


def test_columns_of_too_many_classes_have_no_trees(boosted, monkeypatch):
    monkeypatch.setattr(boost_fitting, "MOST_TREES", 30)
    table, _, _, kept = boosted
    spec = table.specs[3]
    assert boost_fitting._boost(spec, kept[3][0][:50], np.resize([0.0, 1.0, 2.0], 50), 100) is None
    assert boost_fitting._boost(spec, kept[3][0][:50], np.resize([0.0, 1.0], 50), 100) is not None


@pytest.mark.more
def test_an_imputer_with_boosted_trees_is_saved_and_predicts_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(boost_fitting, "MOST_GROWN", 100)
    for small_tables_only in (kernel_fitting, tilt_fitting):
        monkeypatch.setattr(small_tables_only, "MOST_TABLE_ROWS", 100)
    table = ruled_table(400)
    imputer = make_imputer(epochs=2, n_networks=1, hidden_size=16, random_state=0).fit(table)
    assert any(isinstance(one, Boosted) for one in imputer.ensemble_.trees.values())
    full = imputer.transform(table)
    assert not full.isna().any(axis=None)
    imputer.save(tmp_path / "imputer.safetensors")
    pd.testing.assert_frame_equal(Imputer.load(tmp_path / "imputer.safetensors").transform(table), full)
    pd.testing.assert_frame_equal(imputer.transform(table.iloc[[7]]), full.iloc[[7]])
