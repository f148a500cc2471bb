"""Progress of long work: named stages that are planned in seconds, reported to a display.

Whoever divides work plans its stages; whoever works says how far the current one is. Neither knows what is shown, nor
whether: without a display, all of this does nothing.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

BEAT = 0.5
"""Seconds after which a display is called again, even if nothing was reported: the time left goes on."""
SOON = 0.1
"""Seconds within which a display is not called again while a stage advances: drawing takes time, too."""
PRIOR = 0.1
"""The share of the work after which the measured speed counts as much as the planned seconds."""


class Snapshot(NamedTuple):
    """The state of a job, as displays get it."""

    names: tuple[str, ...]
    """The current stage, and the stages inside of it."""
    share: float
    """How much of all work is done, from 0 to 1."""
    elapsed: float
    """Seconds since the plan was made."""
    left: float | None
    """The expected number of seconds left; None before there is a plan."""
    note: str = ""

    @property
    def total(self) -> float:
        """The expected number of seconds of the whole job."""
        return self.elapsed + (self.left or 0.0)


class Display(Protocol):
    """Shows the progress of a job."""

    def show(self, now: Snapshot) -> None:
        """Called when a stage begins, advances or ends, and at least every second."""

    def pause(self) -> None:
        """Called before others print; the next `show` goes on."""

    def close(self) -> None:
        """Called at the end."""


@dataclass
class Job:
    """A job that is under way: where it is, and what was planned."""

    display: Display
    clock: Callable[[], float] = time.monotonic
    planned: float | None = None
    begun: float = 0.0
    names: tuple[str, ...] = ()
    share: float = 0.0
    note: str = ""
    shown: float = -math.inf
    """When the display was called last."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def snapshot(self) -> Snapshot:
        """Return the current state; the time left follows the plan at first, and then the measured speed."""
        if self.planned is None:
            return Snapshot(self.names, 0.0, 0.0, None, self.note)
        elapsed = self.clock() - self.begun
        total = (PRIOR * self.planned + elapsed) / (PRIOR + self.share) if self.share else self.planned
        left = max(total - elapsed, 0.5 * total * (1.0 - self.share)) if self.share < 1.0 else 0.0
        return Snapshot(self.names, self.share, elapsed, left, self.note)

    def report(self, names: tuple[str, ...], share: float) -> None:
        """Take note of the current stage and show it; progress never goes back."""
        news = names != self.names or share >= 1.0 > self.share or self.clock() >= self.shown + SOON
        if names != self.names:
            self.note = ""
        self.names, self.share = names, min(1.0, max(self.share, share))
        if news:
            self.show()

    def plan(self, seconds: float) -> None:
        """Start the clock, with the expected number of seconds."""
        if self.planned is None:
            self.planned, self.begun = seconds, self.clock()

    def show(self) -> None:
        """Call the display, from one thread at a time."""
        with self._lock:
            self.shown = self.clock()
            self.display.show(self.snapshot())

    def pause(self) -> None:
        """Let others print."""
        with self._lock:
            self.display.pause()


class _Part(NamedTuple):
    """A part of a job: the names of its stages, and its place between 0 and 1."""

    job: Job
    names: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0

    def within(self, low: float, high: float, name: str = "") -> _Part:
        extent = self.high - self.low
        names = (*self.names, name) if name else self.names
        return _Part(self.job, names, self.low + low * extent, self.low + high * extent)


_current: ContextVar[_Part | None] = ContextVar("evenly_progress", default=None)


@contextmanager
def show_on(display: Display | None, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Show the progress of everything inside; inside of another job, or without a display, nothing changes."""
    if display is None or _current.get() is not None:
        yield
        return
    job, ended = Job(display, clock), threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT):
            job.show()

    token = _current.set(_Part(job))
    thread = threading.Thread(target=beat, daemon=True, name="progress")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _current.reset(token)
        display.close()


class Stages:
    """The planned stages of the current piece of work, each with the number of seconds that it is expected to take.

    A stage whose name begins with an underscore is not named itself, but the stages inside of it are. One that is
    skipped counts as done when a later one begins.

    Examples
    --------
    >>> class Printed:
    ...     def show(self, now):
    ...         print(*now.names, f"{now.share:.0%}")
    ...     def pause(self): pass
    ...     def close(self): pass
    >>> with show_on(Printed(), clock=lambda: 0.0):
    ...     stages = Stages({"training": 30.0, "filling": 10.0})
    ...     with stages.at("training"):
    ...         pass
    ...     with stages.at("filling"):
    ...         pass
    training 0%
    filling 75%
    filling 100%
    """

    def __init__(self, planned: Mapping[str, float]) -> None:
        self._part, self._places = _current.get(), dict[str, tuple[float, float]]()
        total, at = sum(planned.values()) or 1.0, 0.0
        for name, seconds in planned.items():
            self._places[name] = (at / total, (at + seconds) / total)
            at += seconds
        if self._part is not None:
            self._part.job.plan(total)

    @contextmanager
    def at(self, name: str, low: float = 0.0, high: float = 1.0) -> Iterator[None]:
        """Work on a stage, or a part of it; when that ends, however early, all of it is done."""
        if self._part is None:
            yield
            return
        with _inside(self._part.within(*self._places[name], "" if name.startswith("_") else name).within(low, high)):
            yield


@contextmanager
def part(low: float, high: float) -> Iterator[None]:
    """Work on a part of the current stage, given its place between 0 and 1; `advance` is relative to it."""
    outer = _current.get()
    if outer is None:
        yield
        return
    with _inside(outer.within(low, high)):
        yield


@contextmanager
def _inside(one: _Part) -> Iterator[None]:
    token = _current.set(one)
    try:
        one.job.report(one.names, one.low)
        yield
        one.job.report(one.names, one.high)
    finally:
        _current.reset(token)


def under_way() -> bool:
    """Whether progress is shown already."""
    return _current.get() is not None


def advance(share: float) -> None:
    """Say how much of the current stage is done, from 0 to 1."""
    one = _current.get()
    if one is not None:
        one.job.report(one.names, one.low + share * (one.high - one.low))


def announce(name: str) -> None:
    """Name what is done before there is a plan."""
    one = _current.get()
    if one is not None:
        one.job.report((name,), 0.0)


def add_note(text: str) -> None:
    """Add details to the current stage, for displays that show them."""
    one = _current.get()
    if one is not None:
        one.job.note = text


@contextmanager
def paused() -> Iterator[None]:
    """Print something else while a job is under way."""
    one = _current.get()
    if one is None:
        yield
        return
    with one.job._lock:
        one.job.pause()
        yield


def duration(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> duration(5.2), duration(100.0), duration(7300.0)
    ('5 s', '2 min', '2 h 2 min')
    """
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if seconds >= 90 else f"{seconds:.0f} s"
