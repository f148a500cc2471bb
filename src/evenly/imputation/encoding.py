"""A table as a model sees it: one object per column, and the model's arrays that are built from them.

Inputs are the same under every method; targets are the scaled features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.imputation.calibration import PLAIN, Calibration
from evenly.imputation.columns import ModelledColumn
from evenly.imputation.level_means import LevelMeans, inputs_without_own, plan_means
from evenly.imputation.panels import Inputs, Panel, PanelPlan
from evenly.imputation.rules import NO_RULES, RowRules
from evenly.models import Data, Layout
from evenly.scaling import balancing_weights, settle
from evenly.tables import BLOCK, Floats

MOST_WEIGHT = 4.0
"""Balancing weights are clipped to this factor around the median, so that rare classes cannot dominate the loss."""


class EncodedColumn(NamedTuple):
    """A modelled column of a table: its spec, its values or codes, and its calibration."""

    spec: ModelledColumn
    values: Floats
    """NaN where missing."""
    calibration: Calibration = PLAIN


@dataclass(frozen=True)
class EncodedTable:
    """The modelled columns of a table, and their layout in a model's arrays."""

    columns: tuple[EncodedColumn, ...]
    layout: Layout
    levels: LevelMeans | None = None
    """What the classes of columns with many say about other columns, if the model reads it."""
    panel: Panel | None = None
    """The rows of fit by their units, if there are some that the model reads."""
    unit_inputs: Inputs | None = None
    """What the other rows of each row's unit say; None: nothing."""
    rules: RowRules = NO_RULES
    """What filled cells of the rows obey."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].values)

    @cached_property
    def features(self) -> list[slice]:
        """The slice of each column's features among all features."""
        ends = np.cumsum([0, *(len(one.spec.likelihoods) for one in self.columns)]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    @property
    def classes(self) -> list[bool]:
        """Which columns hold codes of classes."""
        return [one.spec.column.has_classes for one in self.columns]

    @property
    def values(self) -> list[Floats]:
        """The values or codes of each column."""
        return [one.values for one in self.columns]

    @property
    def specs(self) -> list[ModelledColumn]:
        """The spec of each column."""
        return [one.spec for one in self.columns]

    def rows(self, which: Any) -> EncodedTable:
        """Return a selection of the rows."""
        columns = tuple(one._replace(values=one.values[which]) for one in self.columns)
        inputs = None if self.unit_inputs is None else self.unit_inputs[which]
        return replace(self, columns=columns, unit_inputs=inputs, rules=self.rules.rows(which))

    def without(self, held: npt.NDArray[np.bool_] | None) -> EncodedTable:
        """Return the table without some cells, rows x columns."""
        if held is None:
            return self
        pairs = zip(self.columns, held.T, strict=True)
        return replace(
            self, columns=tuple(one._replace(values=np.where(gone, np.nan, one.values)) for one, gone in pairs)
        )

    def showing(self, shown: npt.NDArray[np.bool_] | None) -> EncodedTable:
        """Return the table with the cells of other columns hidden; None shows all."""
        if shown is None:
            return self
        hidden = np.full(self.n_rows, np.nan)
        pairs = zip(self.columns, shown, strict=True)
        return replace(self, columns=tuple(one if seen else one._replace(values=hidden) for one, seen in pairs))

    def calibrated(self, calibrations: Sequence[Calibration]) -> EncodedTable:
        """Return the same table with other calibrations."""
        pairs = zip(self.columns, calibrations, strict=True)
        return replace(self, columns=tuple(one._replace(calibration=new) for one, new in pairs))

    def data(
        self,
        *,
        seed: int | None,
        with_inputs: bool = True,
        dtype: str = "float32",
        keys: npt.NDArray[np.int64] | None = None,
    ) -> Data:
        """Return the model's arrays.

        Parameters
        ----------
        seed : int or None
            Seed of the Gamma trick's noise; None uses its mean.
        with_inputs : bool
            Whether to build inputs, for models that read them.
        keys : array of int, optional
            Keys of the rows that determine their noise; by default, their positions.
        """
        layout = self.layout
        data = layout.empty(self.n_rows, dtype, with_inputs=with_inputs)
        at, into = 0, 0
        for j, (spec, values, _) in enumerate(self.columns):
            data.mask[:, j] = ~np.isnan(values)
            with np.errstate(over="ignore"):  # outliers in new rows are clipped below
                targets = spec.targets(values, seed, keys)
            for family, target, stand_in in zip(spec.likelihoods, targets, spec.stand_ins, strict=True):
                data.targets[:, layout.places[at][0]] = settle(family, target, stand_in, dtype)
                at += 1
            if with_inputs:
                width = spec.n_inputs
                # In double precision, many classes would take much memory.
                block = BLOCK if spec.inputs_need_no_draw else max(1, len(values))
                for start in range(0, len(values), block):
                    some = slice(start, start + block)
                    own = None if keys is None else keys[some]
                    data.inputs[some, into : into + width] = spec.inputs(values[some], seed, own)
                into += width
        if with_inputs and self.levels is not None:
            data.inputs[:, into : into + self.levels.width] = self.levels.inputs(self.values)
        if with_inputs and self.unit_inputs is not None:
            data.inputs[:, self._of_units] = self.unit_inputs
        return data

    @property
    def _of_units(self) -> slice:
        """The inputs that other rows of a unit give, which are the last ones."""
        n_inputs, width = len(self.layout.inputs), 0 if self.panel is None else self.panel.plan.width
        return slice(n_inputs - width, n_inputs)

    def learn_from(self, data: Data, held: npt.NDArray[np.bool_] | None) -> Data:
        """Return the model's arrays to train a network on.

        Inputs that depend on other rows leave out the row's own cells, and held-out cells of all rows.
        """
        if self.levels is None and self.panel is None:
            return data
        shown, inputs = self.without(held), data.inputs.copy()
        if self.levels is not None:
            into = sum(one.n_inputs for one in self.specs)
            inputs[:, into : into + self.levels.width] = inputs_without_own(self.specs, shown.values)
        if self.panel is not None:
            inputs[:, self._of_units] = self.panel.showing(shown.values).inputs_of_fit()
        return data._replace(inputs=inputs)

    def balancing_weights(self) -> Floats:
        """Return the weight of each column: the inverse smoothness of its likelihoods at their marginals.

        The likelihoods of classes and bins cannot be scaled, but a factor on a log-likelihood is a factor on its
        smoothness, which these weights make equal for all columns. They are relative to the median, and clipped.
        """
        return balancing_weights(np.array([one.spec.smoothness for one in self.columns]), most=MOST_WEIGHT)


def lay_out(columns: Sequence[ModelledColumn], panel: PanelPlan | None = None) -> Layout:
    """Return the layout of columns: likelihoods, the columns of features and inputs, which inputs are numbers."""
    pairs = [(one, j) for j, spec in enumerate(columns) for one in spec.likelihoods]
    inputs = [(j, spec.column.has_classes) for j, spec in enumerate(columns) for _ in range(spec.n_inputs)]
    inputs += [(plan.column, at >= plan.n_numbers) for plan in plan_means(columns) for at in range(plan.width)]
    inputs += [] if panel is None else panel.owners
    return Layout(
        tuple(family for family, _ in pairs),
        tuple(j for _, j in pairs),
        tuple(j for j, _ in inputs),
        tuple(at for at, (_, classes) in enumerate(inputs) if not classes),
        names=tuple(spec.name for spec in columns),
    )
