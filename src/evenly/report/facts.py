"""What the report tells, gathered from wherever it comes: the table, the imputer, the trial and the diagnosis."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from evenly._version import __version__
from evenly.report.distributions import Distribution, distributions
from evenly.tables import Schema, infer_schema

MOST_POINTS = 80
"""Points of a learning curve: more cannot be seen."""
LONGEST_SETTING = 200


@dataclass(frozen=True)
class Curve:
    """A column's learning curve: by epoch, its log-likelihood above that of a model that knows the column alone."""

    method: str
    epochs: tuple[int, ...]
    gain: tuple[float, ...]
    baseline: float
    error: float | None = None
    baseline_error: float | None = None
    gradient_share: float | None = None


@dataclass(frozen=True)
class ColumnFacts:
    """All that is known of one column; parts that nobody measured are None or empty."""

    name: str
    kind: str
    likelihood: str
    note: str
    cells: Distribution
    trial: Any
    balance: Any
    curves: tuple[Curve, ...]
    overlooked: tuple[str, ...]

    @property
    def passed_through(self) -> bool:
        """Whether the column is no variable, and comes back untouched."""
        return self.kind == "ignore"


@dataclass(frozen=True)
class Facts:
    """All that the report tells."""

    columns: tuple[ColumnFacts, ...]
    n_rows: int
    filled: bool
    trial: Any
    diagnosis: Any
    comparison: tuple[tuple[str, Any, Any, Any], ...]
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    title: str
    command: str
    seed: str

    @property
    def n_missing(self) -> int:
        """Number of cells that were missing."""
        return sum(one.cells.n_missing for one in self.columns)

    @property
    def n_filled(self) -> int:
        """Number of those that were imputed."""
        return sum(one.cells.n_filled for one in self.columns)


def gather(
    table: Any,
    *,
    filled: Any,
    imputer: Any,
    trial: Any,
    diagnosis: Any,
    comparison: Sequence[Sequence[Any]] | None,
    title: str,
    command: str,
    seed: int | None,
) -> Facts:
    """Gather what the report tells; the arguments are those of `make_report`."""
    schema: Schema = infer_schema(table) if imputer is None else imputer.schema_
    cells = distributions(table, filled, schema)
    trials = {} if trial is None else {one.column: one for one in trial.columns}
    balances = {} if diagnosis is None else {one.column: one for one in diagnosis.columns}
    why = {} if diagnosis is None else dict(diagnosis.passed_through)
    declared = {column.name: column for column in schema.columns}
    columns = []
    for name, own in cells.items():
        column, balance = declared.get(name), balances.get(name)
        likelihood = getattr(balance, "likelihood", None) or getattr(column, "likelihood", None)
        columns.append(
            ColumnFacts(
                name,
                "ignore" if column is None else column.kind,
                likelihood or "",
                why.get(name, "" if column is None else column.note),
                own,
                trials.get(name),
                balance,
                _curves(name, diagnosis, imputer),
                () if diagnosis is None else tuple(t.method for t in diagnosis.trainings if name in t.overlooked),
            )
        )
    params = {} if imputer is None else imputer.get_params()
    seed = params.get("random_state") if seed is None else seed
    return Facts(
        tuple(columns),
        columns[0].cells.n_rows,
        filled is not None,
        trial,
        diagnosis,
        tuple((str(name), error, baseline, seconds) for name, error, baseline, seconds in comparison or ()),
        tuple((name, show_setting(value)) for name, value in params.items()),
        _versions(imputer is not None),
        title,
        command,
        "" if seed is None else show_setting(seed),
    )


def _curves(name: str, diagnosis: Any, imputer: Any) -> tuple[Curve, ...]:
    """Return the curves of the short trainings; where there were none, that of the imputer's own training."""
    trainings = () if diagnosis is None else diagnosis.trainings
    found = [
        _curve(
            training.method,
            training.log_likelihood[name],
            training.baseline[name],
            training.error.get(name),
            training.baseline_error.get(name),
            training.gradient_share.get(name),
        )
        for training in trainings
        if name in training.log_likelihood
    ]
    if not trainings and name in getattr(imputer, "baseline_", {}):
        found.append(_curve("the imputer", imputer.history_["log_likelihood"][name], imputer.baseline_[name]))
    return tuple(curve for curve in found if curve.gain)


def _curve(method: str, values: Any, baseline: float, *rest: Any) -> Curve:
    step = -(-len(values) // MOST_POINTS) or 1
    epochs = tuple(range(len(values) - 1, -1, -step))[::-1]  # the last one is always there
    return Curve(
        method,
        tuple(epoch + 1 for epoch in epochs),
        tuple(float(f"{float(values[epoch]) - baseline:.4g}") for epoch in epochs),
        float(baseline),
        *rest,
    )


def show_setting(value: Any) -> str:
    """Return a setting as text, the same in every run: what has no text of its own is named by its type.

    Examples
    --------
    >>> show_setting({"age": "count"}), show_setting(object())
    ("{'age': 'count'}", 'object')
    """
    text = repr(value) if _is_plain(value) else type(value).__name__
    return text if len(text) <= LONGEST_SETTING else text[: LONGEST_SETTING - 1] + "…"


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_plain(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, Path))


def _versions(with_jax: bool) -> tuple[tuple[str, str], ...]:
    packages = ["numpy", "plotly", *(["jax"] if with_jax else [])]
    found = [("evenly", __version__), ("python", platform.python_version())]
    return (*found, *((name, metadata.version(name)) for name in packages))
