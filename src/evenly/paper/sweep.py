"""The paper's experiments as a grid of runs: each one leaves one record, and a sweep that was killed goes on."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from evenly._support import EvenlyError, TableError, require
from evenly._version import __version__
from evenly.cells import encode
from evenly.files import write_text
from evenly.imputer import Imputer, auto_epochs
from evenly.metrics import baseline_errors, column_errors, log_likelihood
from evenly.models import PAPERS
from evenly.paper.datasets import (
    PERCENTS,
    DataSet,
    as_table,
    hidden_mask,
    load_dataset,
    n_masks,
    schema,
    synthetic,
)
from evenly.recover import draw_column
from evenly.scaling import METHODS
from evenly.schema import Column
from evenly.tables import Floats, open_table

QUICK = "synthetic"
"""The data set of quick runs, for readers without the data."""
N_POINTS = 10
"""Points of a training at which the history is recorded."""
N_BINS = 20
"""Bars of the recorded histograms."""
N_ROWS = {"adult": 32561, "breast": 699, "credit": 30000, "letter": 20000, "spam": 4601, "wine": 6497, QUICK: 700}


@dataclass(frozen=True, order=True)
class Run:
    """One cell of the grid: which table, which of its cells are hidden, and what is trained on the others."""

    dataset: str
    percent: int
    mask: int
    model: str
    method: str
    seed: int
    epochs: int

    @property
    def name(self) -> str:
        """A name that no other run has: that of its record's file."""
        return "_".join(map(str, (*asdict(self).values(),)))


def methods_for(kinds: Iterable[str]) -> list[str]:
    """Return the methods that apply to a table with columns of these kinds, as in the paper's tables.

    Without a continuous column nothing but standardization is left to tell apart; without one of more than two classes
    the Bernoulli trick changes nothing.

    Examples
    --------
    >>> methods_for(["count", "binary"])
    ['std-none', 'std-gamma', 'lip-gamma']
    >>> methods_for(["count", "categorical"])
    ['std-none', 'lip-bern', 'std-gamma', 'lip-gamma']
    """
    kinds = set(kinds)
    continuous, classes = kinds & {"real", "positive"}, kinds & {"categorical", "ordinal"}
    applies = {
        "max-none": bool(continuous),
        "iqr-none": bool(continuous),
        "lip-none": bool(continuous),
        "lip-bern": bool(classes),
    }
    return [method for method in METHODS if applies.get(method, True)]


def plan(
    data: Mapping[str, DataSet],
    *,
    percents: Sequence[int] = PERCENTS,
    masks: Sequence[int] | None = None,
    models: Sequence[str] = PAPERS,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
    epochs_fraction: float = 1.0,
) -> list[Run]:
    """Return the runs of a grid, first masks first.

    Parameters
    ----------
    masks : sequence of int, optional
        Which masks, from 1; by default all that are given, or ten generated ones.
    methods : sequence of str, optional
        By default all that apply to a data set.
    epochs_fraction : float
        Share of the paper's epochs.
    """
    if not 0 < epochs_fraction < np.inf:
        raise TableError(f"an epochs fraction of {epochs_fraction}", "expected a positive number")
    if masks is not None and (not masks or min(masks) < 1):
        raise TableError(f"the masks {list(masks)}", "expected one or more numbers from 1")
    if not seeds or not 0 <= min(seeds) <= max(seeds) < 2**32:
        raise TableError(f"the seeds {list(seeds)}", "expected one or more whole numbers from 0 to 4294967295")
    runs = []
    for name, table in data.items():
        epochs = max(1, round(auto_epochs(len(table.values), 1024, True) * epochs_fraction))
        fitting = [one for one in methods_for(table.kinds.values()) if methods is None or one in methods]
        for percent in percents:
            for mask in masks or range(1, n_masks(table, percent) + 1):
                runs += [
                    Run(name, percent, mask, model, method, seed, epochs)
                    for model in models
                    for method in fitting
                    for seed in seeds
                ]
    return sorted(dict.fromkeys(runs), key=lambda run: run.mask)


# --- one run ----------------------------------------------------------------------------------------------------


def perform(run: Run, data: DataSet) -> dict[str, Any]:
    """Train, impute and score: returns the record of a run."""
    hidden = hidden_mask(data, run.percent, run.mask)
    declared = schema(data, hidden=hidden, zeros="clip")
    imputer = Imputer(run.model, run.method, preset="paper", schema=declared, epochs=run.epochs, random_state=run.seed)
    visible = as_table(data, hidden=hidden)
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        imputer._fit(visible, N_POINTS)
        fitted = time.perf_counter()
        predicted = imputer.predict_cells(visible)
        found = imputer.distribution(visible)
        said = sorted({str(one.message) for one in caught})
    done = time.perf_counter()
    columns, whole = imputer.schema_.columns, open_table(as_table(data)).columns
    truth = np.column_stack([encode(column, cells)[0] for column, cells in zip(columns, whole, strict=True)])
    owners = [one.column for fitted_column in imputer._columns for one in fitted_column.features]
    honest = column_errors(columns, truth, predicted, hidden)
    ranges = data.published_ranges
    published = column_errors(columns, truth, predicted, hidden, protocol="as-published", owners=owners, ranges=ranges)
    baseline = baseline_errors(columns, truth, hidden)
    names = [column.name for column in columns]
    modelled = [name for name in names if name in found]
    watched = imputer._watched
    assert watched is not None  # a data set has columns to model
    curves = np.array([imputer.history_["log_likelihood"][name] for name in modelled])
    at = np.maximum(watched.epochs[1:] - 1, 0)
    return {
        "run": asdict(run),
        "versions": _versions(),
        "seconds": {"fit": fitted - begun, "predict": done - fitted},
        "columns": names,
        "kinds": [column.kind for column in columns],
        "honest": honest,
        "as_published": published,
        "mean_or_mode": baseline,
        "log_likelihood": _hidden_log_likelihood(columns, found, truth, hidden),
        "modelled": modelled,
        "points": watched.epochs,
        "elbo": imputer.history_["elbo"][at[at < len(imputer.history_["elbo"])]],
        "history": curves[:, at[at < curves.shape[1]]].T,
        "gradients": watched.gradients,
        "gradient_changes": watched.changes,
        "smoothness": _smoothness(imputer),
        "marginals": _marginals(imputer, found, truth, run) if run.mask == 1 else {},
        "warnings": said,
    }


def _versions() -> dict[str, str]:
    names = ("jax", "optax", "numpy", "scipy", "scikit-learn")
    return {"evenly": __version__, "python": platform.python_version()} | {name: version(name) for name in names}


def _hidden_log_likelihood(columns: Sequence[Column], found: Mapping[str, Any], truth: Floats, hidden: Any) -> Floats:
    """Return the mean log-likelihood of each column's hidden cells, in the table's units; NaN where there are none."""
    means = np.full(len(columns), np.nan)
    for j, column in enumerate(columns):
        scored = hidden[:, j] & ~np.isnan(truth[:, j])
        if column.name in found and scored.any():
            usual = {k: v[scored] if np.ndim(v) else v for k, v in found[column.name].items()}
            means[j] = log_likelihood(column, usual, truth[scored, j]).mean()
    return means


def _smoothness(imputer: Imputer) -> dict[str, list[float]]:
    """Return each column's smoothness before and after scaling: the sum over its features."""
    fits = [fitted.fits for fitted in imputer._columns]
    return {
        "before": [sum(fit.smoothness_before for fit in group) for group in fits],
        "after": [sum(fit.smoothness_after for fit in group) for group in fits],
    }


def _marginals(imputer: Imputer, found: Mapping[str, Any], truth: Floats, run: Run) -> dict[str, Any]:
    """Return, by column, where bars end and the shares of the data and of the model's draws in them.

    One draw a row from its distribution; draws beyond the data's range are left out of the bars, so that a share that
    is missing from their sum lies outside.
    """
    rng = np.random.default_rng(run.seed)
    drawn = {}
    for fitted, cells in zip(imputer._columns, truth.T, strict=True):
        column = fitted.column
        if column.name not in found or fitted.family is None:
            continue
        seen = cells[~np.isnan(cells)]
        draws = draw_column(column, fitted.family, found[column.name], rng)
        if column.has_classes:
            ends = np.arange(len(column.classes or ()) + 1) - 0.5
        else:
            ends = np.linspace(seen.min(), seen.max(), N_BINS + 1)
        shares = [np.histogram(one[np.isfinite(one)], ends)[0] / len(one) for one in (seen, draws)]
        drawn[column.name] = {"ends": ends, "data": shares[0], "model": shares[1]}
    return drawn


# --- records ----------------------------------------------------------------------------------------------------


def to_text(record: Mapping[str, Any]) -> str:
    """Return a record as one line of JSON; numbers keep six digits, and what is no number is null."""
    return json.dumps(_plain(record), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def read_records(*places: str | Path) -> list[dict[str, Any]]:
    """Read records from folders of single ones and from files with one a line; of equal runs the first finished one."""
    found: dict[str, dict[str, Any]] = {}
    for place in map(Path, places):
        if not place.exists():
            raise TableError(f"{place}", "expected a folder or a file of records", "run `evenly paper run` first")
        files = sorted(place.glob("*.json")) if place.is_dir() else [place]
        for file in files:
            try:
                # Not splitlines: JSON texts may hold characters that it takes for the end of a line.
                lines = file.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
                for record in map(json.loads, lines):
                    name = Run(**record["run"]).name
                    if name not in found or ("failed" in found[name] and "failed" not in record):
                        found[name] = record
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise TableError(
                    f"{file}: {error!r}", "expected records of runs", "remove it: its runs are then performed again"
                ) from error
    return list(found.values())


def pack(out: str | Path, *places: str | Path) -> int:
    """Write all finished records to one compact file; returns how many."""
    records = [one for one in read_records(*places) if "failed" not in one]
    if not records:
        raise TableError("no record of a finished run", "expected some", "run `evenly paper run` first")
    records.sort(key=lambda one: Run(**one["run"]))
    try:
        write_text(out, "".join(to_text(one) + "\n" for one in records))
    except OSError as error:
        raise TableError(f"{out}", f"expected a file that can be written to ({error.strerror})") from None
    return len(records)


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Claim a run for this process; yields whether it is ours. The claim of a process that died is free again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have removed it since it was opened: then this is a lock on nothing.
            taken = not os.path.samestat(path.stat(), os.fstat(file.fileno()))
        except (BlockingIOError, FileNotFoundError):
            taken = True
        if taken:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)


def perform_and_record(run: Run, out: str | Path, folder: str | Path | None = None) -> dict[str, Any] | None:
    """Perform a run and write its record, unless it is there or another process is at it; returns what is new."""
    file = Path(out) / f"{run.name}.json"
    if file.exists():
        return None
    with claimed(Path(out) / "claims" / run.name) as mine:
        if not mine or file.exists():
            return None
        data = load(run.dataset, folder)  # a machine without the data is no result of the run
        try:
            with uninterrupted():
                record = perform(run, data)
        except Exception as error:  # the others go on; the reason stands in the record
            record = {"run": asdict(run), "versions": _versions(), "failed": f"{type(error).__name__}: {error}"}
        write_text(file, to_text(record) + "\n")
        return record


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end if there was a Ctrl-C: training only stops early then, for its users' sake."""
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


def load(name: str, folder: str | Path | None = None) -> DataSet:
    """Return a data set of the paper, or the synthetic one."""
    return synthetic() if name == QUICK else load_dataset(name, folder)


def sweep(
    runs: Sequence[Run],
    out: str | Path,
    *,
    folder: str | Path | None = None,
    jobs: int = 1,
    backend: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Perform runs, as many at a time as there are jobs; yields each new record as it comes.

    A run that failed before has a record that says so, and is not tried again.

    Parameters
    ----------
    backend : {"dask", "ray"}, optional
        Hand the runs to an existing cluster through joblib; `out` must be a folder that all its machines see. Dask: the
        current client's, or else the one at DASK_SCHEDULER_ADDRESS; its workers should have one thread each.
    """
    joblib = require("joblib", "tool")
    if jobs == 0:
        raise TableError("0 jobs", "expected 1 or more, or -1 for as many as there are cores")
    out = Path(out).absolute()  # workers may have another working directory
    folder = None if folder is None else Path(folder).absolute()
    try:
        (out / "claims").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(f"the folder {out}", f"expected one that can be written to ({error.strerror})") from None
    left = [run for run in runs if not (out / f"{run.name}.json").exists()]
    with _cluster(backend), joblib.parallel_config(backend) if backend else joblib.parallel_config(n_jobs=jobs):
        parallel = joblib.Parallel(n_jobs=-1 if backend else jobs, return_as="generator_unordered", batch_size=1)
        tasks = (joblib.delayed(perform_and_record)(run, out, folder) for run in left)
        try:
            yield from (record for record in parallel(tasks) if record is not None)
        except joblib.externals.loky.process_executor.TerminatedWorkerError:
            raise EvenlyError(
                "a process was killed, perhaps for want of memory. Start again, with fewer jobs: finished runs are kept"
            ) from None


@contextmanager
def _cluster(backend: str | None) -> Iterator[None]:
    """Make joblib know the cluster."""
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


def project(runs: Sequence[Run], records: Sequence[Mapping[str, Any]]) -> dict[Run, float | None]:
    """Return the seconds that each run will take, by the recorded runs most like it; None where there is none.

    The time of a run is that of its epochs and of one prediction: of the same data set, model and method, or else of
    the same data set and model, or else of the model by the number of rows. Of several the quickest counts: whatever
    else a machine had to do only adds to a time.
    """
    by_key: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    whole: tuple[str, ...]
    for record in records:
        if "seconds" in record:
            run, rows = Run(**record["run"]), N_ROWS[record["run"]["dataset"]]
            epoch, predict = record["seconds"]["fit"] / run.epochs, record["seconds"]["predict"]
            whole = (run.dataset, run.model, run.method)
            by_key.setdefault(whole, []).append((epoch, predict))
            by_key.setdefault(whole[:2], []).append((epoch, predict))
            by_key.setdefault(whole[1:2], []).append((epoch / rows, predict / rows))
    projected: dict[Run, float | None] = {}
    for run in runs:
        whole = (run.dataset, run.model, run.method)
        nearest = next((some for some in (whole, whole[:2], whole[1:2]) if some in by_key), None)
        if nearest is None:
            projected[run] = None
            continue
        epoch, predict = np.min(by_key[nearest], axis=0) * (N_ROWS[run.dataset] if len(nearest) == 1 else 1)
        projected[run] = float(epoch * run.epochs + predict)
    return projected


def tell(record: Mapping[str, Any]) -> str:
    """Return a line about a record."""
    run = Run(**record["run"])
    name = f"{run.dataset} {run.percent} % mask {run.mask} {run.model} {run.method}"
    if "failed" in record:
        return f"{name}: FAILED: {record['failed']}"
    honest, baseline = (np.array(record[key], np.float64) for key in ("honest", "mean_or_mode"))
    seconds = record["seconds"]["fit"] + record["seconds"]["predict"]
    return f"{name}: honest error {np.nanmean(honest):.3f} (mean or mode {np.nanmean(baseline):.3f}), {seconds:.0f} s"
