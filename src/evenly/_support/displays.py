"""Displays of progress: a live bar on a terminal or in a notebook, plain lines in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from typing import Any

from evenly._support.optional import require
from evenly._support.progress import Display, Snapshot, duration, show_on, under_way

SHORT = 2.0
"""Seconds: a log does not mention a job that takes no longer."""
EVERY = 10.0
"""Seconds between two lines of a log at most, however long a stage takes."""


@contextmanager
def showing(verbose: int) -> Iterator[None]:
    """Show the progress of everything inside on standard error, unless it is shown already.

    Parameters
    ----------
    verbose : int
        0 shows nothing, 1 the stages, 2 the details of training too.
    """
    with show_on(None if under_way() else make_display(verbose)):
        yield


def make_display(verbose: int) -> Display | None:
    """Return a bar in a notebook, or on a terminal if Rich is installed, else lines; None to show nothing."""
    if not verbose:
        return None
    if in_notebook():
        return NotebookBar(details=verbose > 1)
    if find_spec("rich") is not None:
        console = require("rich.console", "tool").Console(stderr=True)
        if console.is_terminal:
            return Bar(console, details=verbose > 1)
    return Lines(details=verbose > 1)


def in_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    python = sys.modules.get("IPython")
    return python is not None and hasattr(python.get_ipython(), "kernel")


def describe(now: Snapshot, *, details: bool) -> str:
    """Return the stage in words, and its details if they are wanted.

    Examples
    --------
    >>> describe(Snapshot(("checking the error", "training 1 of 3"), 0.1, 1.0, 9.0, "ELBO -3"), details=True)
    'checking the error: training 1 of 3, ELBO -3'
    """
    return ": ".join(now.names) + (f", {now.note}" if details and now.note else "")


def percent_done(share: float) -> str:
    """Return the percentage of the work that is done, rounded down: 100 % means that nothing is left.

    Examples
    --------
    >>> percent_done(0.998), percent_done(1.0)
    ('99%', '100%')
    """
    return f"{int(100.0 * share + 1e-9)}%"


def _state(now: Snapshot) -> str:
    """Return the percentage done and the time left, as far as they are known."""
    if now.left is None:
        return ""
    return percent_done(now.share) + (f", about {duration(max(now.left, 1.0))} left" if now.left else "")


class Bar:
    """A live bar of all stages, with the current one's name, percent and the time left."""

    def __init__(self, console: Any, *, details: bool = False) -> None:
        progress, self._details = require("rich.progress", "tool"), details
        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[state]}", markup=False),
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
        )
        self._task, self._on, self._planned = self._bar.add_task("", total=1.0, state=""), False, False

    def show(self, now: Snapshot) -> None:
        """Draw the bar."""
        if not self._on:
            self._bar.start()
            self._on = True
        self._planned = now.left is not None
        what = describe(now, details=self._details)
        self._bar.update(self._task, completed=now.share, description=what, state=_state(now), refresh=True)

    def pause(self) -> None:
        """Remove the bar."""
        if self._on:
            self._bar.live.transient = True
            self._bar.stop()
            self._bar.live.transient = self._on = False

    def close(self) -> None:
        """Leave the bar as it is, but for work without a plan, of which it says nothing."""
        if not self._planned:
            self.pause()
        elif self._on:
            self._bar.stop()


class NotebookBar:
    """A bar below a cell of a notebook, drawn in place by IPython alone: Rich would need ipywidgets there."""

    def __init__(self, *, details: bool = False) -> None:
        self._details, self._handle, self._planned = details, None, False

    def show(self, now: Snapshot) -> None:
        """Draw the bar."""
        self._planned = now.left is not None
        what, state = describe(now, details=self._details), _state(now)
        bar = f'<progress max="1" value="{now.share:.4f}"></progress>' if self._planned else ""
        self._draw(f"<div>{escape(what)} {bar} {state}</div>", f"{what} {state}".rstrip())

    def _draw(self, html: str, text: str) -> None:
        shown = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def pause(self) -> None:
        """Nothing to do: what others print has its own place."""

    def close(self) -> None:
        """Leave the bar as it is, but for work without a plan, of which it says nothing."""
        if self._handle is not None and not self._planned:
            self._draw("", "")


class Lines:
    """A line for each stage, and every ten seconds of a long one."""

    def __init__(self, *, details: bool = False) -> None:
        self._details, self._last = details, 0.0
        self._names: tuple[str, ...] = ()

    def show(self, now: Snapshot) -> None:
        """Print a line, if there is news."""
        if not now.names or now.left is None or now.total < SHORT or now.share >= 1.0:
            return
        # A stage that contains the last one is no news.
        if self._names[: len(now.names)] == now.names and now.elapsed < self._last + EVERY:
            return
        self._names, self._last = now.names, now.elapsed
        left = f"{percent_done(now.share)} done, about {duration(max(now.left, 1.0))} left"
        print(f"evenly: {describe(now, details=self._details)} ({left})", file=sys.stderr, flush=True)

    def pause(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""
