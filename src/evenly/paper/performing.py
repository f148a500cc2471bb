"""Perform one run of the paper: train, impute and score, and keep all that the tables and figures need."""

from __future__ import annotations

import platform
import subprocess
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly._version import __version__
from evenly.imputation import GradientTrace, Imputer, Training
from evenly.metrics import baseline_errors, column_errors, count_far_off, hold_out
from evenly.paper.datasets import DataSet, as_table, hidden_mask, schema
from evenly.paper.records import Run, heading
from evenly.predictive import Predictive
from evenly.tables import Column, Floats, encode, open_table

N_BINS = 20
"""Bars of the recorded histograms."""
RATES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The learning rates that gradient descent is tried with: the same for every method."""
TUNED_FOR = 0.1
"""The share of the epochs that each rate is tried for."""

FARTHEST = 1e300
"""What predictions that are not finite count as."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cells:
    """The cells of a table as numbers and codes, and what its columns are."""

    columns: Sequence[Column]
    truth: Floats
    owners: Sequence[int]
    """The column of each feature."""


def perform(run: Run, data: DataSet) -> dict[str, Any]:
    """Train, impute and score: returns the record of a run."""
    hidden = hidden_mask(data, run.percent, run.mask)
    trace = GradientTrace("log", trace_likelihoods=True)
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tuning = tune(run, data, hidden) if run.optimizer == "sgd" else {}
        rate = min(tuning, key=tuning.__getitem__) if tuning else None
        imputer = make_imputer(run, data, hidden, rate=rate, callbacks=[trace])
        visible = as_table(data, hidden=hidden)
        imputer.fit(visible)
        fitted = time.perf_counter()
        predicted = finite(imputer.predict_cells(visible))
        found = imputer.distribution(visible)
        said = sorted({str(one.message) for one in caught})
    done = time.perf_counter()
    columns, whole = imputer.schema_.columns, open_table(as_table(data)).columns
    truth = np.column_stack([encode(column, cells)[0] for column, cells in zip(columns, whole, strict=True)])
    owners = [one.column for fitted_column in imputer.scaler_.columns_ for one in fitted_column.features]
    cells = Cells(columns, truth, owners)
    names = [column.name for column in columns]
    modelled = [name for name in names if name in found]
    return {
        **heading(run),
        "versions": versions(),
        "settings": settings_of(imputer),
        "tuning": {f"{tried:g}": error for tried, error in tuning.items()},
        "seconds": {"fit": fitted - begun, "predict": done - fitted},
        "columns": names,
        "kinds": [column.kind for column in columns],
        **_errors(cells, predicted, hidden, data),
        "mean_or_mode": baseline_errors(columns, truth, hidden),
        "log_likelihood": _hidden_log_likelihood(columns, found, truth, hidden),
        **_inferred(imputer, cells, visible, hidden),
        "modelled": modelled,
        "not_finite": trace.not_finite,
        "points": trace.epochs,
        "elbo": _at(trace.epochs, imputer.history_["elbo"]),
        "history": trace.log_likelihood,
        "gradients": trace.gradients,
        "gradient_changes": trace.changes,
        "smoothness": _smoothness(imputer),
        "marginals": _marginals(imputer, found, truth, run) if run.mask == 1 else {},
        "warnings": said,
    }


def make_imputer(
    run: Run,
    data: DataSet,
    hidden: Flags,
    *,
    rate: float | None = None,
    epochs: int | None = None,
    callbacks: Any = None,
) -> Imputer:
    """Return the imputer of a run, not yet fitted."""
    return Imputer(
        run.model,
        run.method,
        preset=run.preset,
        schema=schema(data, hidden=hidden, zeros="clip"),
        training=Training(
            epochs=run.epochs if epochs is None else epochs,
            learning_rate="auto" if rate is None else rate,
            optimizer=run.optimizer,
        ),
        callbacks=callbacks,
        random_state=run.seed,
    )


def finite(predicted: Floats) -> Floats:
    """Return predictions with what is not finite as far off as can be: it is scored, and not left out."""
    return np.where(np.isfinite(predicted), predicted, FARTHEST)


def tune(run: Run, data: DataSet, hidden: Flags) -> dict[float, float]:
    """Return the mean error of validation cells under each of `RATES`, trained for a tenth of the epochs.

    Validation cells are observed ones that are hidden, too; the cells that a run is scored on are not looked at.
    """
    data = replace(data, values=np.where(hidden, np.nan, data.values))
    observed = ~np.isnan(data.values)
    held = hold_out(observed, np.random.default_rng((run.seed, run.mask)))
    visible = as_table(data, hidden=hidden | held)
    errors = {}
    for rate in RATES:
        imputer = make_imputer(run, data, hidden | held, rate=rate, epochs=max(1, round(TUNED_FOR * run.epochs)))
        with warnings.catch_warnings(), np.errstate(all="ignore"):  # large rates are tried, too
            warnings.simplefilter("ignore")
            predicted = finite(imputer.fit(visible).predict_cells(visible))
        columns, whole = imputer.schema_.columns, open_table(as_table(data)).columns
        truth = np.column_stack([encode(column, cells)[0] for column, cells in zip(columns, whole, strict=True)])
        errors[rate] = float(np.nanmean(column_errors(columns, truth, predicted, held)))
    return errors


def settings_of(imputer: Imputer) -> dict[str, Any]:
    """Return all settings that a fitted imputer was trained with, "auto" resolved."""
    scaler, training = imputer.scaler_, imputer.training or Training()
    model = imputer.ensemble_.model
    spec = model.spec
    return {
        "preset": imputer.preset,
        "seed": imputer.random_state,
        "epochs": training.epochs,
        "batch_size": training.batch_size_of(spec, imputer.ensemble_.n_rows),
        "learning_rate": training.rate_of(spec),
        "optimizer": training.optimizer,
        "sizes": asdict(model),  # type: ignore[call-overload]  # a dataclass
        "target": scaler.target_,
        "bound": scaler.bound,
        "zeros": scaler.zeros,
        "scales": {one.column.name: [fit.scale for fit in one.fits] for one in scaler.columns_},
    }


def versions() -> dict[str, str | None]:
    """Return the versions of what computes, and the commit of the sources, with a + if they were changed since."""
    names = ("jax", "optax", "numpy", "scipy", "scikit-learn")
    found = {"evenly": __version__, "commit": _commit(), "python": platform.python_version()}
    return found | {name: version(name) for name in names}


@cache
def _commit() -> str | None:
    """Return the commit of the folder that the sources are in; None if it is no checkout."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        asked = ["git", "-C", str(folder), *arguments]
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(folder.parent)) else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _errors(cells: Cells, predicted: Floats, hidden: Flags, data: DataSet) -> dict[str, Any]:
    """Return the errors of hidden cells by both protocols, and how many are farther off than their column's range."""
    columns, truth = cells.columns, cells.truth
    published: dict[str, Any] = {
        "protocol": "as-published",
        "owners": cells.owners,
        "ranges": data.published_ranges,
    }
    return {
        "honest": column_errors(columns, truth, predicted, hidden),
        "as_published": column_errors(columns, truth, predicted, hidden, **published),
        "far_off": count_far_off(columns, truth, predicted, hidden),
    }


def _inferred(imputer: Imputer, cells: Cells, visible: Any, hidden: Flags) -> dict[str, Any]:
    """Return the errors if the variables of rows are inferred as of new rows, where they are learned otherwise."""
    if imputer.ensemble_.learned is None:
        return {}
    learned = imputer.ensemble_
    imputer.ensemble_ = replace(learned, learned=None)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):  # said already of the learned ones
            warnings.simplefilter("ignore")
            predicted = finite(imputer.predict_cells(visible))
    finally:
        imputer.ensemble_ = learned
    errors = column_errors(cells.columns, cells.truth, predicted, hidden)
    return {"inferred": {"honest": errors, "far_off": count_far_off(cells.columns, cells.truth, predicted, hidden)}}


def _at(points: Any, by_epoch: Floats) -> Floats:
    """Return the values of the epochs that end at these points; none for the start."""
    ends = np.asarray(points, int)
    ends = ends[(ends > 0) & (ends <= len(by_epoch))]
    found: Floats = np.asarray(by_epoch, np.float64)[ends - 1]
    return found


def _hidden_log_likelihood(
    columns: Sequence[Column], found: Mapping[str, Predictive], truth: Floats, hidden: Any
) -> Floats:
    """Return the mean log-likelihood of each column's hidden cells, in the table's units; NaN where there are none."""
    means = np.full(len(columns), np.nan)
    for j, column in enumerate(columns):
        scored = hidden[:, j] & ~np.isnan(truth[:, j])
        if column.name in found and scored.any():
            with np.errstate(all="ignore"):  # of a prediction that is not finite it is NaN
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
        if not all(np.isfinite(one).all() for one in found[column.name].parameters.values()):
            continue  # nothing can be drawn
        seen = cells[~np.isnan(cells)]
        draws = found[column.name].sample(rng)
        if column.has_classes:
            ends = np.arange(len(column.classes or ()) + 1) - 0.5
        else:
            ends = np.linspace(seen.min(), seen.max(), N_BINS + 1)
        shares = [np.histogram(one[np.isfinite(one)], ends)[0] / len(one) for one in (seen, draws)]
        drawn[column.name] = {"ends": ends, "data": shares[0], "model": shares[1]}
    return drawn
