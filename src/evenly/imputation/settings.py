"""Settings of a fit: those of an imputer, checked, with "auto" resolved as far as possible without a table."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils import check_random_state

from evenly._support import NEVER, Deadline, EvenlyWarning, ScaleWarning, TableError
from evenly.imputation.callbacks import Callback, TrainingNotes, trace_points
from evenly.imputation.effort import EFFORTS, USUAL, Effort
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.panel_keys import AUTO, encode_units, guess_key, read_key
from evenly.imputation.predictors import read_predictors
from evenly.imputation.rules import Rules
from evenly.imputation.streaming import Source
from evenly.imputation.training import Training
from evenly.models import PAPERS_METHOD, SPECS, ModelSpec, Plan, rule_for
from evenly.scaling import FittedColumn, LipschitzScaler, check_strict, get_method
from evenly.tables import DECLARED, Column, Floats, Schema, Table, TableColumn, pick

ESTIMATES = ("mean", "median", "mode")
PRECISIONS = ("column", "full")
PRESETS = (None, "paper", "paper-plus")
"""The paper's model to the letter; its settings, with what is done better now."""
UNRULED = Rules()
"""No rules."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit, with "auto" resolved as far as possible without a table."""

    spec: ModelSpec
    training: Training
    method: str
    declared: Mapping[str, Any]
    """The user's declarations of columns: kinds, likelihoods, bounds, schema, missing."""
    preset: str | None
    seed: int
    callbacks: Sequence[Callback] = ()
    predictors: Any = None
    groups: Any = AUTO
    effort: Effort = USUAL
    deadline: Deadline = NEVER
    """When the fit has to be done."""
    balance: str = "none"
    """The balancing rule, with its setting."""
    rules: Rules = UNRULED
    """What tables obey."""

    def n_networks(self, n_rows: int) -> int:
        """Return the number of networks."""
        return self.training.networks_of(self.spec, n_rows, self.effort)

    @property
    def paper(self) -> bool:
        """Whether the paper's settings are used."""
        return self.preset is not None

    @property
    def as_published(self) -> bool:
        """Whether the model is the paper's to the letter."""
        return self.preset == "paper" and self.spec.from_paper

    @property
    def model_sizes(self) -> dict[str, int]:
        """What `Model.of_size` gets: the sizes that are given, and flags."""
        flags = {"published": self.as_published, "equalized": get_method(self.method).equalizes}
        return self.training.model_sizes | {name: int(one) for name, one in flags.items()}

    def read_predictors(self, columns: Sequence[FittedColumn]) -> dict[str, tuple[str, ...]]:
        """Return the predictors of the columns that have some of their own; refuse them for latent-variable models."""
        if self.predictors and not self.spec.cell_by_cell:
            able = sorted(repr(one.name) for one in SPECS.values() if one.cell_by_cell and one.trains)
            raise TableError(
                f"predictors with model = {self.spec.name!r}",
                "it explains all cells of a row by the same latent variables",
                f"choose {' or '.join(able)}",
            )
        return read_predictors(self.predictors, columns)

    def find_key(self, columns: Sequence[FittedColumn], source: Source) -> int | None:
        """Return the number of the column that names units with several rows; refuse it where nothing would use it."""
        cells = None if source.files is not None else source.cells
        labels = [one.label for one in columns]
        return _find_key(self.spec, (self.groups, self.predictors), [one.column for one in columns], labels, cells)

    def plan(self, n_rows: int, table: EncodedTable, *, streamed: bool) -> Plan:
        """Return the training settings of a network."""
        size = self.training.batch_size_of(self.spec, n_rows)
        return Plan(
            self.training.rate_of(self.spec),
            self.training.epochs_of(self.spec, n_rows, paper=self.paper, streamed=streamed, effort=self.effort),
            min(size, n_rows) if streamed else size,
            table.balancing_weights() if self.balance == "lip" else 1.0,
            trace_points(self.callbacks),
            self.training.optimizer,
            rule=rule_for(self.spec, self.balance),
        )

    def is_binned(self, label: Any, name: str) -> bool:
        """Whether numbers of a column are modelled by bins: not if a likelihood is declared for it."""
        return self.spec.bins_numbers and pick(self.declared["likelihoods"], label, name) is None

    def check_source(self, source: Source) -> None:
        """Raise an error if the table is streamed from files and the model has latent variables of every row."""
        if source.files is not None and self.spec.row_variables:
            *first, last = sorted(repr(one.name) for one in SPECS.values() if one.trains and not one.row_variables)
            raise TableError(
                f"model = {self.spec.name!r} for {source.n_rows} rows of Parquet",
                "it has latent variables of every row, which do not fit into memory",
                f"choose {', '.join(first)} or {last}, or fit on some of the rows",
            )

    def fit_scaler(self, table: Any) -> LipschitzScaler:
        """Fit the scaler to a table."""
        scaler = LipschitzScaler(
            self.method,
            learning_rate=self.training.rate_of(self.spec),
            target=self.training.target,
            bound="paper" if self.paper else self.training.bound,
            zeros="clip" if self.paper else "shift",
            passthrough="keep",
            dates="model",
            noise="drawn",
            random_state=self.seed,
            **self.declared,
        )
        with warnings.catch_warnings():
            if self.spec.bins_numbers and not self.declared["likelihoods"]:
                warnings.simplefilter("ignore", ScaleWarning)  # binned numbers do not use these scales
            scaler.fit(table)
            if self.spec.bins_numbers and (levels := levels_as_numbers(scaler.columns_, self.declared)):
                warnings.simplefilter("ignore", EvenlyWarning)  # given by the first fit
                scaler.set_params(kinds={**(self.declared["kinds"] or {}), **levels}).fit(table)
        self._warn_of_gammas(scaler)
        return scaler

    def _warn_of_gammas(self, scaler: LipschitzScaler) -> None:
        """Warn where gammas of discrete values decide between latent classes; the paper's preset asks for it."""
        if not self.spec.latent_classes or self.paper:
            return
        tricked = [
            one.column.name for one in scaler.columns_ if any(feature.trick == "gamma" for feature in one.features)
        ]
        if tricked:
            shown = ", ".join(map(repr, tricked[:5])) + (" and others" if len(tricked) > 5 else "")
            warnings.warn(
                f"{self.spec.name} under {self.method}: {shown}: a gamma of discrete values has a very high density, "
                f"which may split classes on these columns alone; method = {self.spec.method!r} has no such gammas",
                EvenlyWarning,
                stacklevel=4,
            )


def levels_as_numbers(columns: Sequence[FittedColumn], declared: Mapping[str, Any]) -> dict[Any, str]:
    """Return kinds for columns of numbers that were taken for ordered classes, unless somebody declared them.

    A rating from 1 to 5 is imputed as a number: bins give every level its probability, and the mean has the least
    squared error, which the most probable level has not. The order is all that the classes had.
    """
    by_schema = {one.name for one in declared["schema"].columns} if isinstance(declared["schema"], Schema) else set()
    found = {}
    for one in columns:
        given = pick(declared["kinds"], one.label, one.column.name) is not None or one.column.name in by_schema
        levels = [level for level in one.column.classes or () if isinstance(level, (int, float))]
        if one.column.kind == "ordinal" and one.stored.storage in ("integer", "float") and levels and not given:
            counts = min(levels) >= 0 and all(float(level).is_integer() for level in levels)
            found[one.label] = "count" if counts else "real"
    return found


def _find_key(
    spec: ModelSpec,
    settings: tuple[Any, Any],
    columns: Sequence[Column],
    labels: Sequence[Hashable],
    cells: Sequence[TableColumn] | None,
) -> int | None:
    """Return the number of the column that names units, by the settings `groups` and `predictors`.

    Without cells, rows are read in parts.
    """
    groups, predictors = settings
    able = spec.cell_by_cell and spec.reads_inputs
    if isinstance(groups, str) and groups == AUTO:
        return guess_key(columns, cells) if able and not predictors and cells is not None else None
    if groups is None:
        return None
    key, got = read_key(groups, columns, labels), f"groups = {groups!r}"
    if not able:
        names = [repr(one.name) for one in SPECS.values() if one.cell_by_cell and one.reads_inputs]
        raise TableError(f"{got} with model = {spec.name!r}", "it reads no other rows", f"choose {' or '.join(names)}")
    if predictors:
        raise TableError(f"{got} with predictors", "expected one of them", "leave out the other")
    if cells is None:
        message = f"{got}: rows of large Parquet files are read in parts, and other rows of a unit predict nothing"
        warnings.warn(message, EvenlyWarning, stacklevel=5)
        return None
    return key


def units_of(imputer: Any, columns: Sequence[Column], table: Table) -> tuple[int, Floats] | None:
    """Return the number of the column that names units to an imputer, and the code of each row's unit; None if none."""
    settings = imputer.groups, imputer.predictors
    key = _find_key(SPECS[imputer.model_name], settings, columns, table.labels, table.columns)
    return None if key is None else (key, encode_units(columns[key], table.columns[key].fresh())[1])


def check(imputer: Any) -> None:
    """Raise an error for invalid settings of an imputer."""
    choices = {"model": ("auto", *SPECS), "estimate": ESTIMATES, "precision": PRECISIONS, "preset": PRESETS}
    choices["effort"] = tuple(EFFORTS)
    for name, known in choices.items():
        given = getattr(imputer, name)
        if given not in known:
            raise TableError(f"{name} = {given!r}", f"expected one of {', '.join(map(str, known))}")
    limit = imputer.time_limit
    if limit is not None and not (isinstance(limit, numbers.Real) and 0.0 < float(limit) < float("inf")):
        raise TableError(f"time_limit = {limit!r}", "expected a number of seconds above 0, or None")
    check_strict(imputer)
    Rules.read(imputer.rules)
    rule_for(SPECS[imputer.model_name], imputer.balance)
    (imputer.training or Training()).check()


def resolve(imputer: Any) -> FitSettings:
    """Check an imputer's settings and resolve "auto" as far as possible without a table."""
    check(imputer)
    spec = SPECS[imputer.model_name]
    usual = PAPERS_METHOD if imputer.preset and spec.from_paper else spec.method
    method = usual if imputer.method == "auto" else imputer.method
    by_smoothness = spec.balanced and get_method(method).equalizes
    return FitSettings(
        spec,
        imputer.training or Training(),
        method,
        {name: getattr(imputer, name) for name in DECLARED},
        imputer.preset,
        int(check_random_state(imputer.random_state).randint(2**31 - 1)),
        [*(imputer.callbacks or ()), *([TrainingNotes()] if imputer.verbose > 1 else [])],
        imputer.predictors,
        imputer.groups,
        EFFORTS[imputer.effort],
        Deadline.after(imputer.time_limit),
        ("lip" if by_smoothness else "none") if imputer.balance == "auto" else imputer.balance,
        Rules.read(imputer.rules),
    )
