"""How long runs take, which of them are left, and how far a sweep has come. Without JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenly.models import published_epochs
from evenly.paper.datasets import N_ROWS
from evenly.paper.records import Run


def project(
    runs: Sequence[Run], records: Sequence[Mapping[str, Any]], *, median: bool = False
) -> dict[Run, float | None]:
    """Return the seconds that each run will take, by the recorded runs most like it; None where there is none.

    Recorded times of an epoch and of a prediction are taken from runs of the same data set, model and method, or else
    of the same data set and model, or else of the same model, by the number of rows. Of several times the quickest
    counts, since other work of the machine only adds to it; or the median, which is what runs usually took.
    """
    by_key: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    whole: tuple[str, ...]
    for record in records:
        if "seconds" in record:
            run = Run(**record["run"])
            epoch, predict = record["seconds"]["fit"] / run.epochs, record["seconds"]["predict"]
            whole = (run.dataset, run.model, run.method)
            by_key.setdefault(whole, []).append((epoch, predict))
            by_key.setdefault(whole[:2], []).append((epoch, predict))
            if rows := N_ROWS.get(run.dataset):
                by_key.setdefault(whole[1:2], []).append((epoch / rows, predict / rows))
    chosen = np.median if median else np.min
    projected: dict[Run, float | None] = {}
    for run in runs:
        whole = (run.dataset, run.model, run.method)
        nearest = next((some for some in (whole, whole[:2], whole[1:2]) if some in by_key), None)
        if nearest is None:
            projected[run] = None
            continue
        rows = N_ROWS[run.dataset] if len(nearest) == 1 else 1
        epoch, predict = chosen(by_key[nearest], axis=0) * rows
        projected[run] = float(epoch * run.epochs + predict)
    return projected


def weigh(seconds: Mapping[Run, float | None]) -> dict[Run, float]:
    """Return the weight of each run in a progress bar: its seconds or, if unknown, the mean of the others or 1.

    Examples
    --------
    >>> one, two, three = (Run("breast", 20, mask, "vae", "std-none", 0, 3000) for mask in (1, 2, 3))
    >>> list(weigh({one: 10.0, two: 30.0, three: None}).values()), list(weigh({one: None}).values())
    ([10.0, 30.0, 20.0], [1.0])
    """
    known = [value for value in seconds.values() if value is not None]
    mean = sum(known) / len(known) if known else 1.0
    return {run: mean if value is None else value for run, value in seconds.items()}


@dataclass(frozen=True)
class Schedule:
    """Runs to make, and what the records say about them.

    Examples
    --------
    >>> one, two = (Run("breast", 20, mask, "vae", "std-none", 0, 3000) for mask in (1, 2))
    >>> failed = {"run": {**vars(one)}, "failed": "out of memory"}
    >>> len(make_schedule([one, two], [failed]).left), len(make_schedule([one, two], [failed], retry_failed=True).left)
    (1, 2)
    """

    runs: Sequence[Run]
    left: Sequence[Run]
    failed: Sequence[Mapping[str, Any]]
    """The records of those that failed."""
    quickest: Mapping[Run, float | None]
    median: Mapping[Run, float | None]
    """Seconds of each run, by the recorded ones; None where nothing like it is recorded."""


def make_schedule(runs: Sequence[Run], records: Sequence[Mapping[str, Any]], *, retry_failed: bool = False) -> Schedule:
    """Find out which runs are left, and how long they take."""
    finished = {Run(**record["run"]) for record in records if not (retry_failed and "failed" in record)}
    wanted = set(runs)
    return Schedule(
        runs,
        [run for run in runs if run not in finished],
        [record for record in records if "failed" in record and Run(**record["run"]) in wanted],
        project(runs, records),
        project(runs, records, median=True),
    )


@dataclass(frozen=True)
class Coverage:
    """How many of some runs of a data set and a model are made, and how long the others would take."""

    dataset: str
    model: str
    epochs: int
    """The paper's."""
    done: int
    """Runs with these epochs."""
    shorter: int
    """Runs that are made with fewer epochs only."""
    left: int
    """Runs that are not made at all."""
    seconds: float
    """What those without the paper's epochs would take with them, by the median of recorded times."""
    unknown: int
    """How many of those are like no recorded run."""


def cover(runs: Sequence[Run], records: Sequence[Mapping[str, Any]]) -> list[Coverage]:
    """Count what is done of some runs at the paper's epochs, whatever epochs they are planned with.

    Examples
    --------
    >>> one, two, three = (Run("adult", 20, mask, "vae", "std-none", 0, 100) for mask in (1, 2, 3))
    >>> took = {"seconds": {"fit": 50.0, "predict": 0.0}}
    >>> records = [{"run": {**vars(one), "epochs": 400}, **took}, {"run": vars(two), **took}]
    >>> cover([one, two, three], records)  # a median of 0.3125 s an epoch
    [Coverage(dataset='adult', model='vae', epochs=400, done=1, shorter=1, left=1, seconds=250.0, unknown=0)]
    """
    most: dict[Run, int] = {}
    for record in records:
        run = Run(**record["run"])
        if "failed" not in record:
            cell = replace(run, epochs=0)
            most[cell] = max(most.get(cell, 0), run.epochs)
    blocks: dict[tuple[str, str], list[Run]] = {}
    for run in dict.fromkeys(replace(run, epochs=published_epochs(N_ROWS[run.dataset])) for run in runs):
        blocks.setdefault((run.dataset, run.model), []).append(run)
    found = []
    for (dataset, model), some in blocks.items():
        made = [most.get(replace(run, epochs=0), 0) for run in some]
        lacking = [run for run, epochs in zip(some, made, strict=True) if epochs < run.epochs]
        seconds = list(project(lacking, records, median=True).values())
        done, shorter = len(some) - len(lacking), sum(0 < epochs < some[0].epochs for epochs in made)
        known = [one for one in seconds if one is not None]
        left, unknown = len(lacking) - shorter, len(seconds) - len(known)
        found.append(Coverage(dataset, model, some[0].epochs, done, shorter, left, sum(known), unknown))
    return found


@dataclass
class Progress:
    """How far a sweep has come, by the seconds that its runs are expected to take."""

    schedule: Schedule
    completed: float = 0.0
    elsewhere: list[Run] = field(default_factory=list)
    """Runs that another process makes, or has made meanwhile."""

    def __post_init__(self) -> None:
        self._weights = weigh(self.schedule.median)
        self.total = sum(self._weights[run] for run in self.schedule.left)
        self.done = len(self.schedule.runs) - len(self.schedule.left)

    def add(self, run: Run, record: Mapping[str, Any] | None) -> None:
        """Count a run that has ended here, or, without a record, that is with another process."""
        if record is None:  # not waited for, and not done by us: that would make us seem quicker than we are
            self.elsewhere.append(run)
            self.total -= self._weights[run]
        else:
            self.done += 1
            self.completed += self._weights[run]

    def seconds_left(self, elapsed: float) -> float | None:
        """Return how long the rest takes at the present speed; None if nothing is left or nothing is done yet."""
        waiting = len(self.schedule.runs) - self.done - len(self.elsewhere)
        return (self.total / self.completed - 1.0) * elapsed if waiting and self.completed else None
