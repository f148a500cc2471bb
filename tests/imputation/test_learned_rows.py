"""A row that fit has seen is predicted from its learned variables, wherever it stands; others are inferred."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from imputers import TABLE, make_imputer

from evenly import Imputer
from evenly.imputation.learned_rows import LearnedRows, hash_cells
from evenly.models import Expected

CELLS = [np.array([0.0, 1.5, np.nan, 2.0]), np.array([3.0, np.nan, 1.0, 1.0])]


def test_hashes_are_those_of_cells_whatever_their_bits_and_places() -> None:
    same = [np.array([-0.0, 1.5, -np.nan, 2.0]), CELLS[1]]
    np.testing.assert_array_equal(hash_cells(same), hash_cells(CELLS))
    order = [2, 0, 3, 1]
    np.testing.assert_array_equal(hash_cells([one[order] for one in CELLS]), hash_cells(CELLS)[order])
    assert len(np.unique(hash_cells(CELLS))) == 4
    assert (hash_cells(CELLS[::-1]) != hash_cells(CELLS)).all()  # the same numbers in other columns


def test_a_million_rows_that_hardly_differ_have_a_million_hashes() -> None:
    n = 1000
    grid = np.meshgrid(np.arange(n, dtype=float), np.arange(n, dtype=float))
    assert len(np.unique(hash_cells([one.ravel() for one in grid]))) == n * n


def test_arrays_of_other_rows_are_refused() -> None:
    rows = LearnedRows.of(CELLS, [{"mean": np.zeros((4, 2), np.float32)}])
    expected = {"mean": Expected(("rows", 2))}
    again = LearnedRows.from_tensors(rows.to_tensors(), expected, 1)
    np.testing.assert_array_equal(again.hashes, rows.hashes)
    tensors = rows.to_tensors()
    for broken in (
        {"row_hashes": tensors["row_hashes"][::-1]},
        {"row_hashes": tensors["row_hashes"][:3]},
        {"row_hashes": tensors["row_hashes"].astype(float)},
        {"row_variables0_mean": np.zeros((4, 3), np.float32)},
        {"row_variables0_mean": np.full((4, 2), np.nan, np.float32)},
        {"row_variables1_mean": np.zeros((4, 2), np.float32)},
    ):
        with pytest.raises(ValueError, match="row_"):
            LearnedRows.from_tensors(tensors | broken, expected, 1)
    assert LearnedRows.from_tensors({"elbo": np.zeros(3)}, expected, 1) is None


@pytest.fixture(scope="module", params=["mixture", "factorization"])
def fitted(request) -> Imputer:
    sizes = {"n_clusters": 2} if request.param == "mixture" else {"latent_size": 2}
    return make_imputer(request.param, preset="paper-plus", epochs=3, random_state=0, **sizes).fit(TABLE)


def inferring(imputer: Imputer) -> Imputer:
    return Imputer(**imputer.get_params(deep=False))._become(imputer.scaler_, replace(imputer.ensemble_, learned=None))


@pytest.mark.more
def test_rows_of_fit_use_their_learned_variables_in_any_order_and_alone(fitted) -> None:
    whole = fitted.predict_cells(TABLE)
    assert (whole != inferring(fitted).predict_cells(TABLE)).any()
    known = fitted.ensemble_.learned.find(fitted._open(TABLE).encoded.values, 0).known
    assert known.all()
    turned = TABLE.iloc[::-1].reset_index(drop=True)
    np.testing.assert_array_equal(fitted.predict_cells(turned)[::-1], whole)
    np.testing.assert_array_equal(fitted.predict_cells(TABLE.iloc[7:8]), whole[7:8])
    pd.testing.assert_frame_equal(
        Imputer(**fitted.get_params(deep=False)).fit_transform(TABLE), fitted.transform(TABLE)
    )


@pytest.mark.more
def test_new_rows_are_inferred_as_before(fitted) -> None:
    new = TABLE.assign(real=TABLE["real"] + 1e-3).loc[TABLE["real"].notna()]
    np.testing.assert_array_equal(fitted.predict_cells(new), inferring(fitted).predict_cells(new))


@pytest.mark.more
def test_they_are_saved_and_a_file_without_them_still_loads(fitted, tmp_path) -> None:
    fitted.save(tmp_path / "with")
    np.testing.assert_array_equal(Imputer.load(tmp_path / "with").predict_cells(TABLE), fitted.predict_cells(TABLE))
    inferring(fitted).save(tmp_path / "without")
    loaded = Imputer.load(tmp_path / "without")
    np.testing.assert_array_equal(loaded.predict_cells(TABLE), inferring(fitted).predict_cells(TABLE))
