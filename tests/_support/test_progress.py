"""Progress: planned stages, the time left, what displays are called with, and a first Ctrl-C that waits."""

from __future__ import annotations

import io
import signal
import sys
import time
import warnings
from types import SimpleNamespace

import pytest

from evenly._support import InterruptedWarning, Stages, add_note, advance, announce, finishing, part, paused, show_on
from evenly._support.displays import Bar, Lines, make_display, showing
from evenly._support.progress import Snapshot


class Recorder:
    """Keeps what it is shown, and when."""

    def __init__(self) -> None:
        self.seen, self.calls, self.times = [], [], []

    def show(self, now):
        self.seen.append(now)
        self.times.append(time.monotonic())

    def pause(self):
        self.calls.append("pause")

    def close(self):
        self.calls.append("close")


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_display_nothing_happens():
    stages = Stages({"a": 1.0})
    with stages.at("a"), part(0.0, 0.5), paused():
        advance(0.5)
        announce("b")
        add_note("c")


def test_stages_divide_the_work_by_their_seconds_and_end_at_all_of_it_however_early():
    shown, clock = Recorder(), Clock()
    with show_on(shown, clock):
        outer = Stages({"checking": 30.0, "filling": 10.0})
        with outer.at("checking"):
            inner = Stages({"training 1 of 2": 2.0, "_training": 1.0})
            with inner.at("training 1 of 2"):
                clock.now += 5.0
                advance(0.5)  # and then it stops early
            with inner.at("_training"), Stages({"network": 1.0}).at("network"):
                pass
        with outer.at("filling", 0.0, 0.5):
            pass
        with outer.at("filling", 0.5, 1.0):
            clock.now += 5.0
            advance(0.5)
    found = [(one.names, round(one.share, 3)) for one in shown.seen]
    assert found[:4] == [
        (("checking",), 0.0),
        (("checking", "training 1 of 2"), 0.0),
        (("checking", "training 1 of 2"), 0.25),
        (("checking",), 0.5),
    ]
    assert (("checking", "network"), 0.5) in found
    assert found[-1] == (("filling",), 1.0)
    assert shown.calls == ["close"]


def test_the_time_left_is_planned_from_the_start_and_follows_the_measured_speed():
    shown, clock = Recorder(), Clock()
    with show_on(shown, clock):
        announce("reading a.csv")
        clock.now = 50.0  # reading does not count
        stages = Stages({"training": 90.0, "filling": 10.0})
        with stages.at("training"):
            clock.now += 10.0
            advance(0.01)
            clock.now = 50.0 + 90.0
            advance(0.5)
    assert shown.seen[0].left is None
    assert shown.seen[1].left == 100.0
    slow = shown.seen[-1]
    assert slow.share == 0.45
    assert slow.left == pytest.approx(0.55 * 200.0, rel=0.2)  # half as quick as planned


def test_nothing_is_silent_while_one_step_takes_long():
    shown = Recorder()
    with show_on(shown):
        stages = Stages({"compiling": 5.0})
        with stages.at("compiling"):
            time.sleep(1.3)
    gaps = [b - a for a, b in zip(shown.times, shown.times[1:], strict=False)]
    assert max(gaps) < 1.0


def test_a_job_inside_of_another_is_part_of_it():
    outer, inner = Recorder(), Recorder()
    with show_on(outer), show_on(inner):
        stages = Stages({"a": 1.0})
        with stages.at("a"), showing(2):
            pass
    assert not inner.seen
    assert outer.seen


def test_an_error_leaves_the_stage_where_it_was_and_closes_the_display():
    shown = Recorder()

    def fail() -> None:
        with show_on(shown), Stages({"a": 1.0}).at("a"):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert shown.calls == ["close"]
    assert shown.seen[-1].share == 0.0


def snapshots(**changes) -> list[Snapshot]:
    first = Snapshot(("checking", "training [1] of 3"), 0.0, 0.0, 100.0, "ELBO -3.21")._replace(**changes)
    later = [first._replace(share=s, elapsed=t) for s, t in ((0.01, 5.0), (0.02, 11.0), (0.02, 12.0))]
    return [
        first,
        *later,
        first._replace(names=("checking",), elapsed=13.0),
        first._replace(names=("filling",), elapsed=14.0),
    ]


def test_a_log_has_a_line_for_each_stage_and_every_ten_seconds(capsys):
    lines = Lines()
    for one in snapshots():
        lines.show(one)
    assert capsys.readouterr().err.splitlines() == [
        "evenly: checking: training [1] of 3 (0% done, about 2 min left)",
        "evenly: checking: training [1] of 3 (2% done, about 2 min left)",
        "evenly: filling (0% done, about 2 min left)",
    ]
    detailed = Lines(details=True)
    detailed.show(snapshots()[0])
    assert "ELBO -3.21" in capsys.readouterr().err


@pytest.mark.parametrize("share", [0.994, 0.996, 0.9999])
def test_nothing_is_100_percent_before_its_end(share, capsys):
    """Rounded, a comparison stood at 100 % while its last candidate was at work."""
    Lines().show(snapshots()[0]._replace(share=share, elapsed=100.0, left=20.0))
    assert "(99% done, about 20 s left)" in capsys.readouterr().err


def test_a_log_does_not_mention_short_work(capsys):
    lines = Lines()
    for one in snapshots(left=0.5):
        lines.show(one._replace(elapsed=0.1))
    assert capsys.readouterr().err == ""


def test_a_bar_shows_stage_percent_and_time_left_and_ends_as_it_is():
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), force_terminal=True, width=120)
    bar = Bar(console)
    bar.show(snapshots()[0])
    bar.pause()
    bar.show(Snapshot(("filling 200,000 rows",), 1.0, 9.0, 0.0))
    bar.close()
    text = console.file.getvalue()
    assert "checking: training [1] of 3" in text
    assert "0%, about 2 min left" in text
    assert "ELBO" not in text
    assert "100%" in text.splitlines()[-1] or "100%" in text


def test_a_bar_of_unplanned_work_leaves_nothing_behind():
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), force_terminal=True, width=100)
    with show_on(Bar(console)):
        announce("reading a.csv")
    shown = console.file.getvalue()
    assert "reading a.csv" in shown
    assert shown.endswith("\x1b[2K")  # the line is erased


def test_nothing_is_shown_unless_asked_for(monkeypatch):
    assert make_display(0) is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(make_display(1), Lines)


@pytest.fixture
def notebook(monkeypatch):
    """What IPython displays, as its own handle keeps it: `display` begins an output, `update` replaces it."""
    outputs = []

    class Handle:
        def update(self, shown, raw):
            assert raw
            outputs[-1].append(shown)

    def display(shown, raw, display_id):
        assert raw
        assert display_id
        outputs.append([shown])
        return Handle()

    python = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1), display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", python)
    return outputs


def test_a_notebook_has_one_bar_that_is_drawn_in_place(notebook):
    with showing(1), Stages({"training <b>": 1.0}).at("training <b>"):
        advance(0.25)
    (shown,) = notebook
    assert '<progress max="1" value="0.0000">' in shown[0]["text/html"]
    assert "training &lt;b&gt;" in shown[0]["text/html"]
    assert shown[-1]["text/plain"] == "training <b> 100%"
    assert 'value="1.0000"' in shown[-1]["text/html"]


def test_unplanned_work_in_a_notebook_leaves_nothing_behind(notebook):
    with showing(1):
        announce("reading a.csv")
    assert notebook[0][0]["text/plain"] == "reading a.csv"
    assert notebook[0][-1] == {"text/html": "", "text/plain": ""}


def test_ipython_without_a_notebook_has_no_bar_of_one(notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(make_display(1), Lines)


def interrupt(times: int) -> None:
    with finishing("the table is written first"):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)


def test_a_first_interrupt_waits_and_a_second_does_not():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.warns(InterruptedWarning, match="the table is written first; Ctrl-C again"):
            interrupt(1)
        with pytest.raises(KeyboardInterrupt), warnings.catch_warnings(action="ignore"):
            interrupt(2)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
