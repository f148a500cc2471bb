"""What the report shows, collected from the table, the imputer, the trial and the diagnosis."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from evenly._version import __version__
from evenly.report.distributions import Distribution, distributions
from evenly.tables import Schema, infer_schema

MOST_POINTS = 80
"""Points of a learning curve: more would not be visible."""
LONGEST_SETTING = 200


@dataclass(frozen=True)
class ReportInput:
    """The arguments of `make_report`."""

    table: Any
    filled: Any = None
    imputer: Any = None
    trial: Any = None
    diagnosis: Any = None
    comparison: Sequence[Sequence[Any]] | None = None
    title: str = ""
    command: str = ""
    seed: int | None = None


@dataclass(frozen=True)
class LearningCurve:
    """A column's log-likelihood by epoch, above that of a model that knows only this column."""

    method: str
    epochs: tuple[int, ...]
    gain: tuple[float, ...]
    baseline: float
    error: float | None = None
    baseline_error: float | None = None
    gradient_share: float | None = None


@dataclass(frozen=True)
class ColumnContent:
    """Everything the report shows of one column; what was not measured is None or empty."""

    name: str
    kind: str
    likelihood: str
    note: str
    cells: Distribution
    trial: Any
    balance: Any
    curves: tuple[LearningCurve, ...]
    overlooked: tuple[str, ...]

    @property
    def passed_through(self) -> bool:
        """Whether the column is not modelled and comes back untouched."""
        return self.kind == "ignore"


class Candidate(NamedTuple):
    """One row of a comparison."""

    name: str
    error: Any
    baseline: Any
    seconds: Any


@dataclass(frozen=True)
class ReportContent:
    """Everything the report shows."""

    columns: tuple[ColumnContent, ...]
    n_rows: int
    filled: bool
    trial: Any
    diagnosis: Any
    comparison: tuple[Candidate, ...]
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    title: str
    command: str
    seed: str

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return sum(one.cells.n_missing for one in self.columns)

    @property
    def n_filled(self) -> int:
        """Number of missing cells that were imputed."""
        return sum(one.cells.n_filled for one in self.columns)

    @property
    def mixes_tricks(self) -> bool:
        """Whether there are learning curves that cannot be compared with each other."""
        return len({curve.method.partition("-")[2] for column in self.columns for curve in column.curves}) > 1


def collect(given: ReportInput) -> ReportContent:
    """Collect what the report shows."""
    imputer = given.imputer
    schema: Schema = infer_schema(given.table) if imputer is None else imputer.schema_
    cells = distributions(given.table, given.filled, schema)
    params = {} if imputer is None else imputer.get_params()
    seed = params.get("random_state") if given.seed is None else given.seed
    return ReportContent(
        columns=_columns(cells, schema, given),
        n_rows=next(iter(cells.values())).n_rows,
        filled=given.filled is not None,
        trial=given.trial,
        diagnosis=given.diagnosis,
        comparison=tuple(Candidate(str(name), *numbers) for name, *numbers in given.comparison or ()),
        # Settings within another object have rows of their own.
        settings=tuple((name, show_setting(one)) for name, one in params.items() if not hasattr(one, "get_params")),
        versions=_versions(imputer is not None),
        title=given.title or "Report on a table",
        command=given.command,
        seed="" if seed is None else show_setting(seed),
    )


def _columns(cells: Mapping[str, Distribution], schema: Schema, given: ReportInput) -> tuple[ColumnContent, ...]:
    diagnosis = given.diagnosis
    trials = {} if given.trial is None else {one.column: one for one in given.trial.columns}
    balances = {} if diagnosis is None else {one.column: one for one in diagnosis.columns}
    reasons = {} if diagnosis is None else diagnosis.passed_through
    trainings = () if diagnosis is None else diagnosis.trainings
    declared = {column.name: column for column in schema.columns}
    columns = []
    for name, own in cells.items():
        column, balance = declared.get(name), balances.get(name)
        likelihood = getattr(balance, "likelihood", None) or getattr(column, "likelihood", None)
        columns.append(
            ColumnContent(
                name=name,
                kind="ignore" if column is None else column.kind,
                likelihood=likelihood or "",
                note=reasons.get(name, "" if column is None else column.note),
                cells=own,
                trial=trials.get(name),
                balance=balance,
                curves=_curves(name, trainings, given.imputer),
                overlooked=tuple(one.method for one in trainings if name in one.overlooked),
            )
        )
    return tuple(columns)


def _curves(name: str, trainings: Sequence[Any], imputer: Any) -> tuple[LearningCurve, ...]:
    """Return the curves of the short trainings or, without any, that of the imputer's own training."""
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


def _curve(method: str, values: Any, baseline: float, *errors_and_share: Any) -> LearningCurve:
    step = -(-len(values) // MOST_POINTS) or 1
    epochs = tuple(range(len(values) - 1, -1, -step))[::-1]  # the last one is always included
    return LearningCurve(
        method,
        tuple(epoch + 1 for epoch in epochs),
        tuple(float(f"{float(values[epoch]) - baseline:.4g}") for epoch in epochs),
        float(baseline),
        *errors_and_share,
    )


def show_setting(value: Any) -> str:
    """Return a setting as text that is the same in every run: objects without such a text are named by their type.

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
