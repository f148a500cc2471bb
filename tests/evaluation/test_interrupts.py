"""Ctrl-C while a table is imputed: as soon as one training is done, the table is filled by what is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from imputers import make_imputer

from evenly import Callback, Imputer
from evenly._support import InterruptedWarning, show_on
from evenly.evaluation import assessment, compare_imputers, fit_and_assess


@pytest.fixture(autouse=True)
def _interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def table_of(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(50.0, 2.0, n)
    table = pd.DataFrame(
        {"a": x, "b": 3.0 * x + rng.normal(size=n), "c": np.where(x > 50.0, "high", "low"), "d": rng.poisson(3.0, n)}
    )
    return table.mask(rng.random(table.shape) < 0.1)


class Interrupting:
    """A display that interrupts when a stage is reached."""

    def __init__(self, *names: str, after: int = 0) -> None:
        self.names, self.after, self.done = names, after, False

    def show(self, now):
        if not self.done and now.names[: len(self.names)] == self.names and now.names:
            self.after -= 1
            if self.after < 0:
                self.done = True
                signal.raise_signal(signal.SIGINT)

    def pause(self):
        pass

    close = pause


CHECKING, FITTING = assessment.CHECKING, assessment.FITTING


def clock() -> float:
    """A clock by which every report is shown, and none of the thread's: signals belong to the main thread."""
    clock.now += 1.0
    return clock.now


clock.now = 0.0


def assess(display, monkeypatch, **settings):
    monkeypatch.setattr("evenly._support.progress.BEAT", 600.0)
    table = table_of()
    imputer = make_imputer(**{"epochs": 3, "n_networks": 2, "hidden_size": 8, "random_state": 0} | settings)
    with show_on(display, clock):
        return fit_and_assess(imputer, table), table


def check_complete(found, table) -> None:
    full = found.imputer.transform(table)
    assert not full.isna().any(axis=None)
    assert ((full == table) | table.isna()).all(axis=None)
    assert full.dtypes.equals(table.dtypes)


@pytest.mark.parametrize(
    ("stage", "known"),
    [
        ((CHECKING, "training 2 of 2"), True),
        ((CHECKING, "calibrating"), True),
        ((CHECKING, "filling hidden cells"), False),
        ((FITTING,), True),
        ((FITTING, "training 1 of 2"), True),
        ((FITTING, "calibrating"), True),
    ],
)
def test_from_the_first_training_on_a_complete_table_comes_out(stage, known, monkeypatch):
    display = Interrupting(*stage)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, table = assess(display, monkeypatch)
    said = "the table is filled by the imputer of the trial, which did not see the hidden cells"
    assert any(issubclass(one.category, InterruptedWarning) and said in str(one.message) for one in caught)
    assert display.done
    assert (found.trial is not None) == known
    assert found.trial is None or found.trial.final
    check_complete(found, table)


def test_before_anything_is_learned_ctrl_c_ends_it(monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        assess(Interrupting(CHECKING), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        assess(Interrupting(CHECKING, "training 1 of 2"), monkeypatch)


def test_without_ctrl_c_the_imputer_is_fitted_to_all_cells(monkeypatch):
    found, table = assess(Interrupting("never"), monkeypatch)
    assert not found.trial.final
    check_complete(found, table)
    own = make_imputer(epochs=3, n_networks=2, hidden_size=8, random_state=0).fit_transform(table)
    pd.testing.assert_frame_equal(found.imputer.transform(table), own)


def test_one_training_is_enough_for_a_large_table(monkeypatch, tmp_path):
    """The imputer of the trial fills it, with the table's classes and types, and is saved like any other."""
    monkeypatch.setattr(assessment, "MANY_ROWS", 100)
    starts = []

    class Count(Callback):
        def on_start(self, start):
            starts.append(start)

    found, table = assess(Interrupting("never"), monkeypatch, callbacks=[Count()])
    assert len(starts) == 1
    assert found.trial.final
    check_complete(found, table)
    found.imputer.save(tmp_path / "imputer")
    again = Imputer.load(tmp_path / "imputer")
    pd.testing.assert_frame_equal(again.transform(table), found.imputer.transform(table))
    assert set(again.transform(table)["c"]) == {"high", "low"}


def test_a_comparison_leaves_out_what_was_cut_short():
    class Stop(Callback):
        def on_epoch(self, epoch):
            raise KeyboardInterrupt

    quick = {"epochs": 3, "n_networks": 1, "hidden_size": 8, "random_state": 0}
    imputers = [make_imputer(**quick), make_imputer(**quick, callbacks=[Stop()]), make_imputer(**quick)]
    assert len(list(compare_imputers(imputers, table_of()))) == 1


def run(arguments: list[str], folder, until: str) -> tuple[int, str]:
    """Run a command and interrupt it once a line of its progress has some text."""
    code = "import signal as s; s.signal(s.SIGINT, s.default_int_handler); from evenly.cli import main; main()"
    command, pipes = [sys.executable, "-c", code, *arguments], {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, text=True, **pipes)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if until in line:
            os.kill(process.pid, signal.SIGINT)
            until = "once"
    process.stderr.close()
    return process.wait(), "".join(lines)


@pytest.mark.more
@pytest.mark.parametrize("until", ["training 2", "calibrating", "filling hidden", FITTING, f"{FITTING}: training 1"])
def test_the_command_writes_the_table(until, tmp_path):
    table = table_of(400)
    table.to_csv(tmp_path / "survey.csv", index=False)
    code, lines = run(["impute", "survey.csv", "-o", "full.csv"], tmp_path, until)
    assert code == 0, lines
    assert "interrupted" in lines
    full = pd.read_csv(tmp_path / "full.csv")
    assert full.shape == table.shape
    assert not full.isna().any(axis=None)


@pytest.mark.more
def test_an_interrupt_before_anything_is_learned_writes_nothing(tmp_path):
    table_of(400).to_csv(tmp_path / "survey.csv", index=False)
    code, lines = run(["impute", "survey.csv", "-o", "full.csv"], tmp_path, CHECKING)
    assert code == 130, lines
    assert not (tmp_path / "full.csv").exists()
