"""Make the paper's runs: each leaves one record, so that a sweep that was killed can go on."""

from __future__ import annotations

import platform
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from evenly._support import EvenlyError, TableError, require, write_text
from evenly._version import __version__
from evenly.imputation import GradientTrace, Imputer, Training
from evenly.metrics import baseline_errors, column_errors
from evenly.paper.datasets import DataSet, as_table, hidden_mask, load, schema
from evenly.paper.records import Run, has_failed, heading, is_recorded, to_text
from evenly.predictive import Predictive
from evenly.tables import Column, Floats, encode, open_table

N_POINTS = 10
"""Points of a training at which its history is recorded."""
N_BINS = 20
"""Bars of the recorded histograms."""


# --- one run ----------------------------------------------------------------------------------------------------


def perform(run: Run, data: DataSet) -> dict[str, Any]:
    """Train, impute and score: returns the record of a run."""
    hidden = hidden_mask(data, run.percent, run.mask)
    declared = schema(data, hidden=hidden, zeros="clip")
    trace = GradientTrace(N_POINTS)
    imputer = Imputer(
        run.model,
        run.method,
        preset="paper",
        schema=declared,
        training=Training(epochs=run.epochs),
        callbacks=[trace],
        random_state=run.seed,
    )
    visible = as_table(data, hidden=hidden)
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        imputer.fit(visible)
        fitted = time.perf_counter()
        predicted = imputer.predict_cells(visible)
        found = imputer.distribution(visible)
        said = sorted({str(one.message) for one in caught})
    done = time.perf_counter()
    columns, whole = imputer.schema_.columns, open_table(as_table(data)).columns
    truth = np.column_stack([encode(column, cells)[0] for column, cells in zip(columns, whole, strict=True)])
    owners = [one.column for fitted_column in imputer.scaler_.columns_ for one in fitted_column.features]
    honest = column_errors(columns, truth, predicted, hidden)
    ranges = data.published_ranges
    published = column_errors(columns, truth, predicted, hidden, protocol="as-published", owners=owners, ranges=ranges)
    baseline = baseline_errors(columns, truth, hidden)
    names = [column.name for column in columns]
    modelled = [name for name in names if name in found]
    curves = np.array([imputer.history_["log_likelihood"][name] for name in modelled])
    at = np.maximum(trace.epochs[1:] - 1, 0)
    return {
        **heading(run),
        "versions": _versions(),
        "seconds": {"fit": fitted - begun, "predict": done - fitted},
        "columns": names,
        "kinds": [column.kind for column in columns],
        "honest": honest,
        "as_published": published,
        "mean_or_mode": baseline,
        "log_likelihood": _hidden_log_likelihood(columns, found, truth, hidden),
        "modelled": modelled,
        "points": trace.epochs,
        "elbo": imputer.history_["elbo"][at[at < len(imputer.history_["elbo"])]],
        "history": curves[:, at[at < curves.shape[1]]].T,
        "gradients": trace.gradients,
        "gradient_changes": trace.changes,
        "smoothness": _smoothness(imputer),
        "marginals": _marginals(imputer, found, truth, run) if run.mask == 1 else {},
        "warnings": said,
    }


def _versions() -> dict[str, str]:
    names = ("jax", "optax", "numpy", "scipy", "scikit-learn")
    return {"evenly": __version__, "python": platform.python_version()} | {name: version(name) for name in names}


def _hidden_log_likelihood(
    columns: Sequence[Column], found: Mapping[str, Predictive], truth: Floats, hidden: Any
) -> Floats:
    """Return the mean log-likelihood of each column's hidden cells, in the table's units; NaN where there are none."""
    means = np.full(len(columns), np.nan)
    for j, column in enumerate(columns):
        scored = hidden[:, j] & ~np.isnan(truth[:, j])
        if column.name in found and scored.any():
            means[j] = found[column.name].take(scored).log_prob(truth[scored, j]).mean()
    return means


def _smoothness(imputer: Imputer) -> dict[str, list[float]]:
    """Return each column's smoothness before and after scaling: the sum over its features."""
    fits = [fitted.fits for fitted in imputer.scaler_.columns_]
    return {
        "before": [sum(fit.smoothness_before for fit in group) for group in fits],
        "after": [sum(fit.smoothness_after for fit in group) for group in fits],
    }


def _marginals(imputer: Imputer, found: Mapping[str, Predictive], truth: Floats, run: Run) -> dict[str, Any]:
    """Return, by column, where bars end and the shares of the data and of the model's draws in them.

    One draw for each row. Draws beyond the data's range are in no bar: what the shares lack to 1 lies outside.
    """
    rng = np.random.default_rng(run.seed)
    drawn = {}
    for fitted, cells in zip(imputer.scaler_.columns_, truth.T, strict=True):
        column = fitted.column
        if column.name not in found or fitted.family is None:
            continue
        seen = cells[~np.isnan(cells)]
        draws = found[column.name].sample(rng)
        if column.has_classes:
            ends = np.arange(len(column.classes or ()) + 1) - 0.5
        else:
            ends = np.linspace(seen.min(), seen.max(), N_BINS + 1)
        shares = [np.histogram(one[np.isfinite(one)], ends)[0] / len(one) for one in (seen, draws)]
        drawn[column.name] = {"ends": ends, "data": shares[0], "model": shares[1]}
    return drawn


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
            record = {**heading(run), "versions": _versions(), "failed": f"{type(error).__name__}: {error}"}
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
