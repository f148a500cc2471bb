"""Diagnosis of a table: which columns would be learned, and which overlooked. Without training, JAX is not needed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from sklearn.utils import check_random_state

from evenly._support import EvenlyWarning, Stages, showing
from evenly.evaluation.balance import measure_balance
from evenly.evaluation.diagnosis_results import Diagnosis, ShortTraining, give_verdict
from evenly.evaluation.short_training import Coded, TrainingRequest, hide_cells, train_shortly
from evenly.likelihoods import Likelihood
from evenly.scaling import LipschitzScaler
from evenly.tables import Bounds, Markers, Schema, open_table


def diagnose(
    table: Any,
    *,
    methods: Sequence[str] = ("std-none", "lip-gamma"),
    model: str = "vae",
    train: bool = True,
    epochs: int | Literal["auto"] = "auto",
    share: float = 0.1,
    kinds: Mapping[Any, str] | None = None,
    likelihoods: Mapping[Any, str | Likelihood] | None = None,
    bounds: Mapping[Any, Bounds] | None = None,
    schema: Schema | str | Path | None = None,
    missing: Markers | None = None,
    learning_rate: float | Literal["auto"] = "auto",
    random_state: Any = None,
    verbose: int = 0,
) -> Diagnosis:
    """Measure how evenly the columns of a table would be learned, and which ones a short training overlooks.

    The page about diagnosis explains the numbers, and when a column counts as overlooked.

    Parameters
    ----------
    table : dataframe or array
        As for `Imputer`.
    methods : sequence of str
        The methods to train with; the first is the reference of the comparison.
    model : {"vae", "masked", "mixture", "factorization", "hivae"}
        The model to train.
    train : bool
        Whether to train; if not, JAX is not needed.
    epochs : int or "auto"
        Epochs of each training, on up to 20,000 rows; "auto": about 500 steps of 256 rows (128 below 2,000 rows), in 3
        epochs or more.
    share : float
        The share of each column's observed cells that are hidden from the trainings and scored.
    kinds, likelihoods, bounds, schema, missing
        As in `LipschitzScaler`.
    learning_rate : float or "auto"
        Used in the trainings and for the target under `lip`; "auto" is the model's, or 0.001 if nothing is trained.
    random_state : int, RandomState or None
        Seeds the choice of hidden cells and the trainings.
    verbose : int
        1 shows progress, 2 the ELBO and the column that is learned worst, too.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.normal(0.0, 1.0, 200), rng.normal(900.0, 30.0, 200)])
    >>> found = diagnose(table, train=False, kinds={"x1": "real"})
    >>> {one.column: round(one.gradient_share["std"], 3) for one in found.columns}
    {'x0': 0.029, 'x1': 0.971}
    >>> {one.column: round(one.smoothness["lip"]) for one in found.columns}
    {'x0': 500, 'x1': 500}
    """
    declared = {"kinds": kinds, "likelihoods": likelihoods, "bounds": bounds, "schema": schema, "missing": missing}
    chosen = tuple(dict.fromkeys([methods] if isinstance(methods, str) else methods))
    request = TrainingRequest(chosen, model, epochs, learning_rate, share, random_state, verbose)
    return _diagnose(table, declared, request, train=train)


def _diagnose(table: Any, declared: dict[str, Any], request: TrainingRequest, *, train: bool) -> Diagnosis:
    rate = request.check(train=train)
    opened = open_table(table, estimator="diagnose", keep=True)
    # Only this method computes quartiles; the scales of the others follow from the same statistics.
    scaler = LipschitzScaler("iqr-none", learning_rate=rate, passthrough="keep", **declared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)  # columns that are not modelled are reported in the diagnosis
        columns = scaler.fit(opened).columns_
    balances, passed = measure_balance(columns, rate)
    trainings: tuple[ShortTraining, ...] = ()
    if train and balances:
        seed = int(check_random_state(request.random_state).randint(2**31 - 1))
        shown = hide_cells(opened, columns, {one.column for one in balances}, float(request.share), seed)
        own = request._replace(learning_rate=rate, random_state=seed)
        trainings = _train_all(shown, own)
    return Diagnosis(opened.n_rows, balances, trainings, passed, give_verdict(balances, trainings))


def _train_all(shown: Coded, request: TrainingRequest) -> tuple[ShortTraining, ...]:
    names = {f"training briefly under {method}": method for method in request.methods}
    trainings = []
    with showing(request.verbose):
        stages = Stages(dict.fromkeys(names, request.seconds(*shown.truth.shape)))
        for name, method in names.items():
            with stages.at(name):
                trainings.append(train_shortly(shown, method, request))
    return tuple(trainings)
