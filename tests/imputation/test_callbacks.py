"""Callbacks of a training: when they are called and with what, how they end it, gradient traces, the progress bar."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest
from imputers import Recorded, make_imputer, numbers_table, quick

from evenly import Callback, GradientTrace, Imputer
from evenly._support import show_on
from evenly.models import fitting


class Recorder(Callback):
    """Writes down every call; ends the training of a network after some epochs."""

    def __init__(self, into: list, name: str = "", stop_after: float = np.inf) -> None:
        self.into, self.name, self.stop_after = into, name, stop_after

    def on_start(self, start):
        self.start = start
        self.into.append(f"{self.name}start")

    def on_epoch(self, epoch):
        self.into.append(epoch)
        return epoch.epoch + 1 >= self.stop_after

    def on_end(self, trace):
        self.trace = trace
        self.into.append(f"{self.name}end")


class Failing(Callback):
    """Fails in one of its methods."""

    def __init__(self, where: str) -> None:
        self.where = where

    def on_start(self, start):
        self.fail("on_start")

    def on_epoch(self, epoch):
        self.fail("on_epoch")

    def fail(self, where: str) -> None:
        if where == self.where:
            raise RuntimeError(f"failed {where}")


def test_a_callback_sees_the_start_every_epoch_and_the_end():
    events: list = []
    recorder, table = Recorder(events), numbers_table()
    imputer = quick(epochs=3, n_networks=2, callbacks=[recorder]).fit(table)
    assert (events[0], events[-1]) == ("start", "end")
    epochs = events[1:-1]
    assert [(one.network, one.epoch) for one in epochs] == [(i, j) for i in range(2) for j in range(3)]
    start = recorder.start
    assert (start.columns, start.epochs, start.n_networks) == (("a", "b"), 3, 2)
    assert dict(zip(start.columns, start.baseline.tolist(), strict=True)) == imputer.baseline_
    # The history is that of the first network.
    np.testing.assert_allclose([one.elbo for one in epochs[:3]], imputer.history_["elbo"], rtol=1e-6)
    for j, name in enumerate(start.columns):
        curve = [one.log_likelihood[j] for one in epochs[:3]]
        np.testing.assert_allclose(curve, imputer.history_["log_likelihood"][name], rtol=1e-6)


def test_several_callbacks_are_called_one_after_the_other_and_change_nothing():
    events: list = []
    table = numbers_table()
    watched = quick(epochs=1, callbacks=[Recorder(events, "first "), Recorder(events, "second ")]).fit(table)
    assert [one if isinstance(one, str) else one.epoch for one in events] == [
        *("first start", "second start", 0, 0, "first end", "second end")
    ]
    alone = quick(epochs=1).fit_transform(table)
    pd.testing.assert_frame_equal(watched.transform(table), alone, check_exact=True)


def test_a_callback_that_returns_true_ends_the_training_of_that_network():
    events: list = []
    stopping, watching = Recorder(events, stop_after=2), Recorder([])
    imputer = quick(epochs=50, n_networks=2, callbacks=[stopping, watching]).fit(numbers_table())
    assert [(one.network, one.epoch) for one in events[1:-1]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(imputer.history_["elbo"]) == 2
    assert watching.into[1:-1] == events[1:-1]  # called for the last epoch too
    assert len(imputer.ensemble_.networks) == 2


def test_on_end_is_called_after_a_training_that_fails_too():
    events: list = []
    for where in ("on_epoch", "on_start"):
        imputer = quick(epochs=1, callbacks=[Recorder(events), Failing(where), Recorder(events, "never ")])
        if where == "on_epoch":
            imputer.callbacks.pop()
        with pytest.raises(RuntimeError, match=f"failed {where}"):
            imputer.fit(numbers_table())
        assert not hasattr(imputer, "scaler_")
        assert (events[0], events[-1]) == ("start", "end")
        assert imputer.callbacks[0].trace.epochs.size == 0
        assert not any(isinstance(one, str) and one.startswith("never") for one in events)
        events.clear()


def test_there_is_nothing_to_watch_where_nothing_is_trained():
    events: list = []
    Imputer("marginal", callbacks=[Recorder(events)]).fit(numbers_table())
    assert events == []


@pytest.fixture(scope="module")
def traced() -> tuple[list[tuple], GradientTrace, GradientTrace, Recorder]:
    """What a model was fitted with, and who watched it: by 2 points, by 1, and without a trace."""
    seen: list[tuple] = []
    fit_model = fitting.fit_model

    def spy(*arguments):
        seen.append(arguments)
        return fit_model(*arguments)

    two, one, nobody = GradientTrace(2), GradientTrace(1), Recorder([])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "fit_model", spy)
        quick(epochs=4, n_networks=2, callbacks=[one, two, nobody]).fit(numbers_table())
    return seen, two, one, nobody


def test_a_gradient_trace_is_that_of_the_first_networks_training(traced):
    seen, trace, _, _ = traced
    model, layout, data, seed, plan, *_ = seen[0]
    expected = fitting.fit_model(model, layout, data, seed, replace(plan, trace_points=2)).trace
    assert trace.epochs.tolist() == expected.epochs.tolist() == [0, 2, 4]
    assert trace.gradients.shape == trace.changes.shape == (3, 2)
    np.testing.assert_array_equal(trace.gradients, expected.gradients)
    np.testing.assert_array_equal(trace.changes, expected.changes)
    assert (trace.gradients > 0.0).all()


def test_several_traces_are_those_of_whoever_wants_most(traced):
    _, two, one, nobody = traced
    for other in (one, nobody.trace):
        assert other.epochs.tolist() == two.epochs.tolist()
        np.testing.assert_array_equal(other.gradients, two.gradients)


def test_a_trace_of_no_points_is_taken_before_the_first_epoch(traced):
    _, two, _, _ = traced
    start = GradientTrace(0)
    quick(epochs=1, callbacks=[start, Recorder([])]).fit(numbers_table())
    assert start.epochs.tolist() == [0]
    np.testing.assert_allclose(start.gradients, two.gradients[:1], rtol=1e-5)


def test_callbacks_are_code_and_so_no_part_of_a_saved_imputer(tmp_path):
    imputer = make_imputer("marginal", callbacks=[Recorder([])]).fit(numbers_table())
    imputer.save(tmp_path)
    assert Imputer.load(tmp_path).callbacks is None


def test_progress_names_the_column_that_learns_least(capsys):
    table = numbers_table().rename(columns={"a": "[bold]a[/bold]", "b": "[/b\\"})
    shown = Recorded()
    with show_on(shown, clock=count().__next__):
        quick(epochs=3, verbose=2).fit(table)
    notes = {one.note for one in shown.seen if one.names == ("training",)}
    assert any("epoch 3 of 3, ELBO" in note for note in notes)
    assert any("worst column [bold]a[/bold] (" in note or "worst column [/b\\ (" in note for note in notes)
    capsys.readouterr()
    quick(epochs=3).fit(table)
    assert capsys.readouterr() == ("", "")


def test_early_stopping_ends_its_stage_at_100_percent():
    class Stop(Callback):
        def on_epoch(self, epoch):
            return epoch.epoch >= 1

    shown = Recorded()
    with show_on(shown, clock=count().__next__):
        quick(epochs=40, n_networks=2, callbacks=[Stop()]).fit(numbers_table())
    names = list(dict.fromkeys(one.names[-1] for one in shown.seen if one.names))
    assert names == ["training 1 of 2", "training 2 of 2", "calibrating"]
    second = next(one for one in shown.seen if one.names == ("training 2 of 2",))
    trained = next(one for one in shown.seen if one.names == ("calibrating",))
    assert second.share > 0.4  # the first network counts as done, although it stopped after two of forty epochs
    assert trained.share > 0.9
    assert shown.seen[-1].share == 1.0
    assert [one.share for one in shown.seen] == sorted(one.share for one in shown.seen)


@pytest.mark.more
def test_no_stage_is_silent_for_two_seconds():
    """Of a table whose epochs take longer than that: steps are reported, not only epochs."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40_000, 8))
    table[rng.random(table.shape) < 0.1] = np.nan
    shown, times = Recorded(), []
    show = shown.show
    shown.show = lambda now: (times.append(time.monotonic()), show(now))
    with show_on(shown):
        imputer = make_imputer(epochs=2, random_state=0).fit(table)
        imputer.transform(table)
    assert max(np.diff(times)) < 2.0
    shares = {round(one.share, 4) for one in shown.seen if one.names == ("training",)}
    assert len(shares) > 4  # more than two epochs give
    assert {one.names for one in shown.seen} >= {("training",), ("calibrating",)}
