"""An ensemble fitted to a table: validation cells, networks, epochs, and what ends a training."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace

import jax
import numpy as np
import pandas as pd
import pytest
from imputers import MASKED_VAE, hide, linked_table, make_imputer, numbers_table, quick
from model_data import LAYOUT, two_columns
from scipy import stats

from evenly import Callback, EvenlyWarning, Imputer, LipschitzScaler, Schema, TableError, imputation_error
from evenly.imputation.fitting import validation_score
from evenly.imputation.settings import levels_as_numbers
from evenly.metrics import hold_out
from evenly.models import Plan, Watchers, bbvi, fitting, loop
from evenly.models.layout import Data
from evenly.models.masked import Masked


def test_validation_cells_are_neither_shown_nor_trained_on():
    """The data that a network is trained on do not show them, and each network has others."""
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
    assert not np.array_equal(first, second)  # each network has other validation cells


def test_the_validation_score_prefers_parameters_that_predict():
    data, model = two_columns(), Masked(16)
    held = hold_out(data.mask, np.random.default_rng(0))
    shown = data._replace(mask=data.mask & ~held)
    score = validation_score(model, LAYOUT, shown, held)
    assert score is not None
    shared, history, *_ = fitting.fit_model(model, LAYOUT, shown, 0, Plan(1e-2, 40, 64), Watchers(score))
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
def test_it_stops_when_validation_cells_get_no_better() -> None:
    """Columns of noise: there is nothing to learn, and more training makes it worse."""
    noise = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 4)), columns=list("abcd"))
    for masked, stops in ((True, True), (False, False)):
        settings = MASKED_VAE | {"masked_training": masked, "hidden_size": 64, "learning_rate": 1e-2}
        imputer = make_imputer(epochs=300, **settings).fit(noise)
        assert (len(imputer.history_["elbo"]) < 300) == stops


@pytest.mark.more
def test_strong_dependences_are_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    truth = pd.DataFrame({"x": x, "y": 3.0 * x + 0.1 * rng.normal(size=400), "side": np.where(x > 0, "right", "left")})
    hidden = np.zeros(truth.shape, bool)
    hidden[np.arange(400), rng.integers(0, 3, 400)] = rng.random(400) < 0.6
    imputer = make_imputer(epochs=400, hidden_size=32, batch_size=100, random_state=0)
    errors = imputation_error(truth, imputer.fit_transform(truth.mask(hidden)), hidden)
    assert errors["scored"].min() > 50
    assert errors["normalized"].max() < 0.3
    assert imputer.history_["elbo"][-1] > imputer.history_["elbo"][0]
    gains = {name: curve[-1] - imputer.baseline_[name] for name, curve in imputer.history_["log_likelihood"].items()}
    assert gains["x"] > 0.5
    assert gains["y"] > 0.5


def test_the_unit_of_a_column_does_not_matter():
    """Scaled by 1/std, x and 1000 x are the same feature: the density of 1000 x is 1/1000 of that of x."""
    tables = (numbers_table(), numbers_table().assign(b=lambda table: 1000.0 * table["b"]))
    imputers = [quick(epochs=5).fit(one) for one in tables]
    curves = [one.history_["log_likelihood"] for one in imputers]
    np.testing.assert_allclose(curves[1]["b"], curves[0]["b"] - np.log(1000.0), atol=1e-4)
    np.testing.assert_allclose(curves[1]["a"], curves[0]["a"], atol=1e-4)
    assert imputers[1].baseline_["b"] == pytest.approx(imputers[0].baseline_["b"] - np.log(1000.0), abs=1e-4)
    full = [one.transform(given) for one, given in zip(imputers, tables, strict=True)]
    np.testing.assert_allclose(full[1]["b"], 1000.0 * full[0]["b"], rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(full[1]["a"], full[0]["a"], rtol=1e-3, atol=1e-5)


def test_the_baseline_is_the_log_likelihood_of_each_column_alone():
    table = numbers_table()
    baseline = quick(epochs=0).fit(table).baseline_
    for name in table:
        seen = table[name].dropna()
        assert baseline[name] == pytest.approx(stats.norm(seen.mean(), seen.std(ddof=0)).logpdf(seen).mean(), rel=1e-5)


def test_auto_epochs_are_what_is_trained(monkeypatch):
    seen = []

    def fit_model(model, layout, data, seed, plan, *rest):
        seen.append(plan.epochs)
        raise KeyError

    monkeypatch.setattr("evenly.models.fitting.fit_model", fit_model)
    for settings in ({}, {"preset": "paper"}, {"epochs": 7}, {"preset": "paper", "epochs": 1}):
        with pytest.raises(KeyError):
            make_imputer("mixture", **settings).fit(numbers_table())
    assert seen == [1000, 3000, 7, 1]


def test_an_interrupt_keeps_a_usable_imputer(monkeypatch):
    # A process started in the background of a shell ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    run, calls = loop.compiled_epoch, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            timer = threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            timer.join()
        return run(*arguments)

    monkeypatch.setattr(loop, "compiled_epoch", interrupted)
    table = numbers_table()
    try:
        with pytest.warns(EvenlyWarning, match="interrupted"):
            imputer = quick(epochs=100_000, n_networks=2).fit(table)  # the second one is not begun
    finally:
        signal.signal(signal.SIGINT, before)
    assert 3 <= len(imputer.history_["elbo"]) <= 10
    assert not imputer.transform(table).isna().any(axis=None)


@pytest.mark.parametrize(("seconds", "least", "most"), [(100.0, 60, 100), (10.0, 5, 10), (2.0, 1, 3)])
def test_a_deadline_ends_training_in_time(monkeypatch, seconds, least, most):
    """The clock stands still but for one second an epoch."""

    class Second(Callback):
        def on_epoch(self, epoch):
            now[0] += 1.0

    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("evenly._support.deadline.time", clock)
    monkeypatch.setattr("evenly.models.fitting.time", clock)
    imputer = quick(epochs=1000, callbacks=[Second()], time_limit=seconds)
    if seconds < 50.0:
        with pytest.warns(EvenlyWarning, match=r"time_limit: .* after \d+ of 1000 epochs of 1 of 1 networks"):
            imputer.fit(numbers_table())
    else:
        imputer.fit(numbers_table())
    assert least <= len(imputer.history_["elbo"]) <= most
    assert not imputer.ensemble_.interrupted
    assert not imputer.transform(numbers_table()).isna().any(axis=None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_limit": 0}, "got time_limit = 0, but expected a number of seconds above 0"),
        ({"time_limit": float("inf")}, "got time_limit = inf"),
        ({"time_limit": "60"}, "got time_limit = '60'"),
        ({"effort": "most"}, "got effort = 'most', but expected one of quick, default, best"),
    ],
)
def test_wrong_limits_are_refused(settings, message):
    with pytest.raises(TableError, match=message):
        make_imputer("marginal", **settings).fit(numbers_table())


def test_effort_decides_how_long_networks_are_trained(monkeypatch):
    seen = []

    def fit_model(model, layout, data, seed, plan, *rest):
        seen.append(plan.epochs)
        raise KeyError

    monkeypatch.setattr("evenly.models.fitting.fit_model", fit_model)
    for effort in ("quick", "default", "best"):
        with pytest.raises(KeyError):
            make_imputer("masked", effort=effort).fit(numbers_table())
    assert seen == [60, 150, 225]
    with pytest.raises(KeyError):
        make_imputer("masked", effort="best", epochs=7).fit(numbers_table())
    assert seen[-1] == 7


def test_ordered_numbers_that_nobody_declared_are_imputed_as_numbers():
    """Ratings: the mean of the levels has the least squared error."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "rating": rng.integers(1, 6, 80).astype(float),
            "change": rng.integers(-2, 3, 80),
            "size": rng.choice(["s", "m"], 80),
            "grade": pd.Categorical.from_codes(rng.integers(0, 3, 80), [1, 2, 3], ordered=True),
        }
    )
    ordered = {"rating": "ordinal", "change": "ordinal", "size": "ordinal", "grade": "ordinal"}
    columns = LipschitzScaler("lip-none", kinds=ordered).fit(table).columns_
    nothing = {"kinds": None, "schema": None}
    assert levels_as_numbers(columns, nothing) == {"rating": "count", "change": "real"}
    assert levels_as_numbers(columns, nothing | {"kinds": {"rating": "ordinal"}}) == {"change": "real"}
    known = Schema(columns=[one.column for one in columns])
    assert levels_as_numbers(columns, nothing | {"schema": known}) == {}


def test_a_column_taken_for_ordered_levels_gets_the_mean(monkeypatch):
    """Unless it was declared to be such levels."""
    monkeypatch.setattr("evenly.imputation.settings.levels_as_numbers", lambda columns, declared: {"x1": "count"})
    table = np.column_stack([np.random.default_rng(0).normal(size=40), np.repeat([1.0, 2.0, 5.0, np.nan], 10)])
    full = Imputer("marginal", precision="full").fit_transform(table)
    assert full[-1, 1] == pytest.approx(8.0 / 3.0)


@pytest.mark.more
def test_after_the_deadline_there_are_no_experts():
    holed, _ = hide(linked_table(60))
    imputer = make_imputer(epochs=50, hidden_size=8, random_state=0, time_limit=1e-3)
    with pytest.warns(EvenlyWarning, match="time_limit"):
        imputer.fit(holed)
    found = imputer.ensemble_
    assert (found.gaussian, found.neighbours, dict(found.trees)) == (None, None, {})
    assert (len(imputer.history_["elbo"]), len(found.networks)) == (1, 1)
    assert not imputer.transform(holed).isna().any(axis=None)


@pytest.mark.more
def test_a_time_limit_is_kept_within_a_fifth(monkeypatch):
    """By the clock of the process, which other work on the machine does not move; without it, the fit takes longer."""
    clock = SimpleNamespace(monotonic=time.process_time)
    for name in ("_support.deadline", "models.fitting", "imputation.growing", "imputation.kernel_fitting"):
        monkeypatch.setattr(f"evenly.{name}.time", clock)
    holed, _ = hide(linked_table(1_500))
    make_imputer(epochs=1, n_networks=1, random_state=0).fit(holed)  # which compiles
    limit, begun = 3.0, time.process_time()
    Imputer(effort="best", random_state=0, time_limit=limit).fit(holed)
    assert 0.6 * limit <= time.process_time() - begun <= 1.2 * limit
