"""Rows of fit are predicted from the variables that were learned of them, new rows from inferred ones."""

from __future__ import annotations

import numpy as np
import pytest
from model_data import LAYOUT, two_columns

from evenly.models import SPECS, RowVariables
from evenly.models.base import NOBODY, Plan
from evenly.models.bbvi import start
from evenly.models.factorization import Factorization
from evenly.models.mixture import Mixture

DATA = two_columns(40)
KNOWN = np.arange(40) % 2 == 0


def test_a_factorizations_learned_factors_times_the_columns_ones_are_the_parameters() -> None:
    shared = start(Factorization(2), LAYOUT, DATA, 0, 1e-3).shared
    factors = np.random.default_rng(1).normal(size=(40, 2)).astype(np.float32)
    rows = RowVariables({"mean": factors}, np.ones(40, bool))
    found = Factorization(2).predict_natural(LAYOUT, shared, DATA, rows=rows)
    number = LAYOUT.places[0][1]  # a normal of unit variance: its parameter is the product itself
    np.testing.assert_allclose(found[0], factors @ shared["mean"][:, number], rtol=1e-5)


def test_rows_that_are_not_known_are_inferred() -> None:
    model = Mixture(3)
    shared = start(model, LAYOUT, DATA, 0, 1e-3).shared
    inferred = model.predict_natural(LAYOUT, shared, DATA)[0]
    clusters = np.tile(np.eye(3, dtype=np.float32), (14, 1))[:40]  # the logits of a row: 1 for its cluster
    found = model.predict_natural(LAYOUT, shared, DATA, rows=RowVariables({"logits": clusters}, KNOWN))[0]
    by_hand = shared["mean"][clusters.argmax(1)][:, LAYOUT.places[0][1]]
    np.testing.assert_allclose(found[KNOWN], by_hand[KNOWN], rtol=1e-6)
    np.testing.assert_array_equal(found[~KNOWN], inferred[~KNOWN])
    assert (by_hand[~KNOWN] != inferred[~KNOWN]).any()


@pytest.mark.more
@pytest.mark.parametrize("model", [Mixture(3), Factorization(2)], ids=lambda one: one.spec.name)
def test_a_fit_returns_the_variables_of_its_rows(model) -> None:
    fitted = model.fit(LAYOUT, DATA, 0, Plan(1e-2, 3), NOBODY)
    first = start(model, LAYOUT, DATA, 0, 1e-2).local
    assert {name: one.shape for name, one in fitted.rows.items()} == {
        name: (40, *one.shape[1:]) for name, one in first.items()
    }
    assert all((fitted.rows[name] != first[name]).all(axis=1).any() for name in first)
    assert fitted.rows.keys() == model.expected_row_variables.keys()


def test_models_with_row_variables_say_which() -> None:
    models = {"mixture": Mixture(3), "factorization": Factorization(2)}
    assert {name for name, spec in SPECS.items() if spec.row_variables} == models.keys()
    assert all(model.expected_row_variables for model in models.values())
