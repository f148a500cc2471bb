"""What a run costs: seconds, CPU seconds and memory, with those of all processes that it starts."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil


def over_processes(measure: Callable[[psutil.Process], float]) -> float:
    """Sum a number over this process and all of its descendants that are still alive."""
    total, own = 0.0, psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += measure(process)
    return total


def cpu_seconds() -> float:
    """Return the user and system time of this process and its descendants, including workers that are idle."""
    return over_processes(lambda process: sum(process.cpu_times()[:4]))  # the last two are those of ended children


def resident_bytes() -> float:
    """Return the memory that this process and its descendants hold at the moment."""
    return over_processes(lambda process: process.memory_info().rss)


class Meter:
    """Measure a `with` block: seconds, CPU seconds and peak memory, children included, and how busy the machine was.

    Memory is sampled four times a second. Adding up the system's own peaks would count memory twice, because a child
    starts with the peak of its parent.
    """

    def __enter__(self) -> Meter:
        self.load = os.getloadavg()[0]
        self._peak, self._over = 0.0, threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        self._cpu, self._begun = cpu_seconds(), time.perf_counter()
        return self

    def _watch(self) -> None:
        while True:
            self._peak = max(self._peak, resident_bytes())
            if self._over.wait(0.25):
                return

    def __exit__(self, *_: object) -> None:
        self.seconds, self.cpu_seconds = time.perf_counter() - self._begun, cpu_seconds() - self._cpu
        self._over.set()
        self._watcher.join()
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # for this process, of every moment
        self.peak_gib = max(self._peak, own) / 2**30

    def costs(self) -> dict[str, float]:
        costs = {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "load": self.load}
        return {name: round(value, 2) for name, value in costs.items()} | {"peak_gib": round(self.peak_gib, 3)}
