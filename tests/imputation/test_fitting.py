"""An ensemble fitted to a table: validation cells, networks, epochs, and what ends a training."""

from __future__ import annotations

import jax
import numpy as np
import pandas as pd
import pytest
from imputers import MASKED_VAE, hide, linked_table, make_imputer
from model_data import LAYOUT, two_columns

from evenly import EvenlyWarning
from evenly.imputation.fitting import validation_score
from evenly.metrics import hold_out
from evenly.models import Plan, Watchers, bbvi, fitting
from evenly.models.layout import Data
from evenly.models.masked import Masked


def test_held_out_cells_are_neither_shown_nor_trained_on():
    """The data that a network is trained on do not show them, and each network gives others away."""
    holed, _ = hide(linked_table(300))
    seen: list[Data] = []

    def spy(model, layout, data, *args, **settings):
        seen.append(data)
        return fit_model(model, layout, data, *args, **settings)

    from evenly.models.fitting import fit_model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenly.models.fitting.fit_model", spy)
        make_imputer(epochs=1, hidden_size=8, n_networks=2, random_state=0).fit(holed)
    observed = int(holed.notna().to_numpy().sum())
    first, second = (data.mask for data in seen)
    assert 0.85 * observed < first.sum() < observed
    assert not np.array_equal(first, second)  # each network gives other cells away


def test_the_validation_score_prefers_parameters_that_predict():
    data, model = two_columns(), Masked(16)
    held = hold_out(data.mask, np.random.default_rng(0))
    shown = data._replace(mask=data.mask & ~held)
    score = validation_score(model, LAYOUT, shown, held)
    assert score is not None
    shared, history, _ = fitting.fit_model(model, LAYOUT, shown, 0, Plan(1e-2, 40, 64), Watchers(score))
    state = bbvi.start(model, LAYOUT, shown, 0, 1e-2)
    begun = {**state.shared, **state.fixed}
    assert score(shared) > score(begun) + 0.1
    assert score({**jax.tree.map(lambda leaf: leaf * np.nan, state.shared), **state.fixed}) == -np.inf
    assert validation_score(model, LAYOUT, data, np.zeros_like(held)) is None
    assert len(history.elbo) <= 40


@pytest.mark.more
def test_a_model_that_learns_nothing_gains_nothing_over_the_baseline():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=150), "c": rng.choice(list("uvw"), 150)})
    # At this rate nothing moves. Each epoch hides other cells, more or fewer: a mean over 60 is known to 2 %.
    imputer = make_imputer(epochs=200, learning_rate=1e-9, hidden_size=8, n_networks=1, random_state=0).fit(table)
    for name, curve in imputer.history_["log_likelihood"].items():
        assert len(curve) >= 60
        assert curve.mean() == pytest.approx(imputer.baseline_[name], rel=0.05)


@pytest.mark.more
def test_networks_trained_before_an_interrupt_are_used(monkeypatch):
    """Whatever the next one was doing."""
    holed, _ = hide(linked_table(60))

    fit_model = fitting.fit_model

    def stopped(model, layout, data, seed, *args, **settings):
        if seed != first:
            raise KeyboardInterrupt
        return fit_model(model, layout, data, seed, *args, **settings)

    imputer = make_imputer(epochs=1, hidden_size=8, n_networks=3, random_state=0)
    first = int(np.random.RandomState(0).randint(2**31 - 1))
    monkeypatch.setattr("evenly.models.fitting.fit_model", stopped)
    with pytest.warns(EvenlyWarning, match="interrupted: 1 of 3 networks"):
        imputer.fit(holed)
    assert len(imputer.ensemble_.networks) == 1
    assert not imputer.transform(holed).isna().any(axis=None)


@pytest.mark.more
def test_it_stops_where_held_out_cells_say_so() -> None:
    """Columns of noise: there is nothing to be learned, and the more it is trained the worse it gets."""
    noise = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 4)), columns=list("abcd"))
    for masked, stops in ((True, True), (False, False)):
        settings = MASKED_VAE | {"masked_training": masked, "hidden_size": 64, "learning_rate": 1e-2}
        imputer = make_imputer(epochs=300, **settings).fit(noise)
        assert (len(imputer.history_["elbo"]) < 300) == stops
