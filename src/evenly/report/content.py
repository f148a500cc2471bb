"""What the report shows, collected from the table, the imputer, the trial, the diagnosis and the comparison."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from evenly._version import __version__
from evenly.evaluation import rank_trials
from evenly.imputation import RuleCount, count_rules
from evenly.report.associations import Associations, find_associations
from evenly.report.cells import Cells, read_cells
from evenly.report.curves import LearningCurve, OwnTraining, own_curve, own_training, short_curves
from evenly.report.distributions import Distribution, distribution
from evenly.report.missingness import Missingness, find_missingness
from evenly.report.rows import Repeated, ShownRows, count_repeated, show_rows
from evenly.tables import Schema, infer_schema, open_table

LONGEST_SETTING = 200


@dataclass(frozen=True)
class ReportInput:
    """The arguments of `make_report`."""

    table: Any
    filled: Any = None
    draws: Any = None
    imputer: Any = None
    trial: Any = None
    diagnosis: Any = None
    comparison: Sequence[Any] | None = None
    title: str = ""
    command: str = ""
    seed: int | None = None
    rows: int = 6


@dataclass(frozen=True)
class ColumnContent:
    """Everything the report shows of one column; what was not measured is None or empty."""

    name: str
    kind: str
    modelled_by: str
    note: str
    cells: Distribution
    trial: Any
    balance: Any
    curve: LearningCurve | None
    """Of the imputer's own training."""
    short_curves: tuple[LearningCurve, ...]
    """Of the short trainings of the diagnosis."""
    overlooked: tuple[str, ...]
    unit: str = ""
    """What its numbers are, if they are not those of its cells."""

    @property
    def passed_through(self) -> bool:
        """Whether the column is not modelled and comes back untouched."""
        return self.kind == "ignore"


@dataclass(frozen=True)
class ReportContent:
    """Everything the report shows."""

    columns: tuple[ColumnContent, ...]
    n_rows: int
    filled: bool
    repeated: Repeated
    missingness: Missingness | None
    associations: Associations | None
    shown_rows: ShownRows | None
    rules: tuple[RuleCount, ...]
    trial: Any
    training: OwnTraining | None
    diagnosis: Any
    comparison: tuple[Any, ...]
    """Trials from the best to the worst."""
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
    def ranked(self) -> list[tuple[int, ColumnContent]]:
        """The columns with their places in the table: those that gain least over mean or mode first, if scored."""

        def gains_least(pair: tuple[int, ColumnContent]) -> tuple[bool, bool, float]:
            column, ratio = pair[1], math.nan if pair[1].trial is None else pair[1].trial.normalized
            return column.passed_through, math.isnan(ratio), 0.0 if math.isnan(ratio) else -ratio

        placed = list(enumerate(self.columns))
        return placed if self.trial is None else sorted(placed, key=gains_least)

    @property
    def mixes_tricks(self) -> bool:
        """Whether there are learning curves that cannot be compared with each other."""
        return len({curve.method.partition("-")[2] for column in self.columns for curve in column.short_curves}) > 1


def collect(given: ReportInput) -> ReportContent:
    """Collect what the report shows; every column is read once."""
    imputer, opened = given.imputer, open_table(given.table, estimator="make_report", keep=True)
    schema: Schema = infer_schema(opened) if imputer is None else imputer.schema_
    cells = read_cells(opened, given.filled, given.draws, schema)
    params = {} if imputer is None else imputer.get_params()
    seed = params.get("random_state") if given.seed is None else given.seed
    comparison = tuple(rank_trials(given.comparison or ()))
    trial = given.trial if given.trial is not None or not comparison else comparison[0]
    return ReportContent(
        columns=_columns(cells, schema, given, trial),
        n_rows=len(cells[0].missing),
        filled=given.filled is not None,
        repeated=count_repeated(cells),
        missingness=find_missingness(cells),
        associations=find_associations(cells),
        shown_rows=show_rows(cells, given.rows),
        rules=() if imputer is None or given.filled is None else count_rules(imputer, opened, given.filled),
        trial=trial,
        training=own_training(imputer),
        diagnosis=given.diagnosis,
        comparison=comparison,
        # Settings within another object have rows of their own.
        settings=tuple((name, show_setting(one)) for name, one in params.items() if not hasattr(one, "get_params")),
        versions=_versions(imputer is not None),
        title=given.title or "Report on a table",
        command=given.command,
        seed="" if seed is None else show_setting(seed),
    )


def _columns(cells: Sequence[Cells], schema: Schema, given: ReportInput, trial: Any) -> tuple[ColumnContent, ...]:
    diagnosis = given.diagnosis
    trials = {} if trial is None else {one.column: one for one in trial.columns}
    balances = {} if diagnosis is None else {one.column: one for one in diagnosis.columns}
    reasons = {} if diagnosis is None else diagnosis.passed_through
    trainings = () if diagnosis is None else diagnosis.trainings
    declared = {column.name: column for column in schema.columns}
    in_bins = getattr(given.imputer, "bins_", {})
    columns = []
    for own in cells:
        name, column, balance = own.name, declared.get(own.name), balances.get(own.name)
        likelihood = getattr(balance, "likelihood", None) or getattr(column, "likelihood", None)
        columns.append(
            ColumnContent(
                name=name,
                kind="ignore" if column is None else column.kind,
                modelled_by="normal and bins" if name in in_bins else likelihood or "",
                note=reasons.get(name, "" if column is None else column.note),
                cells=distribution(own),
                trial=trials.get(name),
                balance=balance,
                curve=own_curve(name, given.imputer),
                short_curves=short_curves(name, trainings),
                overlooked=tuple(one.method for one in trainings if name in one.overlooked),
                unit=f"days from {column.origin}" if column is not None and column.origin else "",
            )
        )
    return tuple(columns)


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
