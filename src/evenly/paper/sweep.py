"""Make the paper's runs: each leaves one record, so that a sweep that was killed can go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evenly._support import EvenlyError, TableError, require, write_text
from evenly.paper.datasets import load
from evenly.paper.performing import perform, versions
from evenly.paper.records import Run, has_failed, heading, is_recorded, to_text

# --- one record each --------------------------------------------------------------------------------------------


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Claim a run for this process; yields whether it is ours. The claim of a process that died is free again."""
    filelock = require("filelock", "models")
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file alone is no claim: it would stay when its process is killed.
    lock = filelock.FileLock(path, blocking=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        yield False
        return
    try:
        yield True
    finally:
        # Before it is released: whoever has opened it meanwhile sees that it is gone, and does not take it.
        with suppress(PermissionError):  # Windows keeps files that are open
            path.unlink(missing_ok=True)
        lock.release()


def perform_and_record(run: Run, out: str | Path, folder: str | Path | None = None) -> dict[str, Any] | None:
    """Perform a run and write its record, unless it is there or another process is at it; returns a new record."""
    file = Path(out) / f"{run.name}.json"
    if is_recorded(file):
        return None
    with claimed(Path(out) / "claims" / run.name) as mine:
        if not mine or is_recorded(file):
            return None
        data = load(run.dataset, folder)  # that this machine has no data is not the run's failure
        try:
            with uninterrupted():
                record = perform(run, data)
        except Exception as error:  # the other runs go on; the record has the reason
            record = {**heading(run), "versions": versions(), "failed": f"{type(error).__name__}: {error}"}
        write_text(file, to_text(record) + "\n")
        return record


def _attempt(run: Run, out: Path, folder: Path | None) -> tuple[Run, dict[str, Any] | None]:
    return run, perform_and_record(run, out, folder)


def forget_failed(runs: Sequence[Run], out: Path) -> None:
    """Remove the records of failed runs, so that they are made again, unless another process is at one."""
    for run in runs:
        file = out / f"{run.name}.json"
        if has_failed(file):
            with claimed(out / "claims" / run.name) as mine:
                if mine and has_failed(file):
                    file.unlink()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end if there was a Ctrl-C, by which a training only stops early."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    caught = False

    def catch(number: int, frame: Any) -> None:
        nonlocal caught
        caught = True
        before(number, frame)

    signal.signal(signal.SIGINT, catch)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        raise KeyboardInterrupt


def run_sweep(
    runs: Sequence[Run],
    out: str | Path,
    *,
    folder: str | Path | None = None,
    jobs: int = 1,
    backend: str | None = None,
    retry_failed: bool = False,
) -> Iterator[tuple[Run, dict[str, Any] | None]]:
    """Perform runs, as many at a time as there are jobs; yields each with its new record as it comes.

    The record is None if another process is at the run, or has finished it meanwhile. A run that failed before is not
    tried again unless `retry_failed`.

    Parameters
    ----------
    backend : {"dask", "ray"}, optional
        Hand the runs to an existing cluster through joblib; `out` must be a folder that all its machines see. Dask: the
        current client's, or else the one at DASK_SCHEDULER_ADDRESS; its workers should have one thread each.
    """
    import joblib

    if jobs == 0:
        raise TableError("0 jobs", "expected 1 or more, or -1 for as many as there are cores")
    out = Path(out).absolute()  # workers may have another working directory
    folder = None if folder is None else Path(folder).absolute()
    try:
        (out / "claims").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(f"the folder {out}", f"expected one that can be written to ({error.strerror})") from None
    if retry_failed:
        forget_failed(runs, out)
    left = [run for run in runs if not is_recorded(out / f"{run.name}.json")]
    with _cluster(backend), joblib.parallel_config(backend) if backend else joblib.parallel_config(n_jobs=jobs):
        parallel = joblib.Parallel(n_jobs=-1 if backend else jobs, return_as="generator_unordered", batch_size=1)
        tasks = (joblib.delayed(_attempt)(run, out, folder) for run in left)
        try:
            yield from parallel(tasks)
        except joblib.externals.loky.process_executor.TerminatedWorkerError:
            raise EvenlyError(
                "a process was killed, perhaps for want of memory. Start again, with fewer jobs: finished runs are kept"
            ) from None


@contextmanager
def _cluster(backend: str | None) -> Iterator[None]:
    """Connect joblib to the cluster."""
    if backend == "ray":
        require("ray.util.joblib", "ray").register_ray()
    if backend != "dask":
        yield
        return
    distributed = require("distributed", "engines")
    try:
        distributed.Client.current()
    except ValueError:
        address = require("dask", "engines").config.get("scheduler-address", None)
        if not address:
            hint = "set DASK_SCHEDULER_ADDRESS to its scheduler's address"
            raise TableError("no Dask cluster", "expected a client of one", hint) from None
        try:
            client = distributed.Client(address)
        except OSError as error:
            raise TableError(f"DASK_SCHEDULER_ADDRESS = {address!r}", f"nobody answers there ({error})") from None
        with client:
            yield
    else:
        yield
