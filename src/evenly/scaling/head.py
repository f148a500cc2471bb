"""The likelihood head of one column: from raw outputs of a network to its distributions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, constrain
from evenly.predictive import Predictive, predictive_of
from evenly.scaling.fitted import FittedColumn
from evenly.tables import Floats


@dataclass(frozen=True)
class Head:
    """The part of one column: its slices of the raw outputs and of the encoded features."""

    fitted: FittedColumn
    outputs: slice
    features: slice

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.fitted.column.name

    @property
    def likelihoods(self) -> list[Likelihood]:
        """The likelihood of each feature as a model has it: of a log-normal, the normal of its logarithm."""
        return [one.likelihood.modelled_as for one in self.fitted.features]

    @property
    def parameters(self) -> list[npt.NDArray[np.intp]]:
        """The places of each feature's parameters among the raw outputs."""
        ends = np.cumsum([self.outputs.start, *(len(one.natural_bounds) for one in self.likelihoods)])
        return [np.arange(a, b) for a, b in pairwise(ends)]

    def naturals(self, raw: Array) -> list[Array]:
        """Return the natural parameters of each feature from the raw outputs of all columns."""
        pairs = zip(self.likelihoods, self.parameters, strict=True)
        return [constrain(one, raw[..., places[0] : places[-1] + 1]) for one, places in pairs]

    def distribution(self, raw: Floats) -> Predictive:
        """Return the distributions of its cells, in the table's units."""
        assert self.fitted.family is not None
        return predictive_of(self.fitted.column, self.fitted.family, self.fitted.recover(self.naturals(raw)))

    @property
    def marginal(self) -> list[Floats]:
        """The natural parameters of each feature that are most likely for all rows alike, made finite."""
        unseen = np.log(2.0 * self.fitted.statistics.n + 1.0)  # half a cell of a class that never occurs
        found = []
        for one, fit in zip(self.likelihoods, self.fitted.fits, strict=True):
            natural = constrain(one, np.zeros(len(one.natural_bounds))) if fit.natural is None else fit.natural
            found.append(np.nan_to_num(natural, nan=0.0, posinf=unseen, neginf=-unseen))
        return found

    def log_jacobian(self, values: Array) -> Array:
        """Return the log of the derivative of the feature in the cell; 0 under a trick, and of what is not scaled."""
        feature, scale, x = self.fitted.features[0], self.fitted.fits[0].scale, values[..., self.features.start]
        if feature.trick != "none" or not feature.likelihood.scalable:
            return 0.0 * x
        if feature.likelihood.modelled_as is not feature.likelihood:  # x is scale * log of the cell
            return math.log(scale) - x / scale
        own = feature.likelihood
        return own.log_jacobian(own.unscale_data(x, scale), np.float64(scale))


def lay_out_heads(columns: Sequence[FittedColumn], chosen: Sequence[Hashable] | None) -> tuple[list[Head], list[str]]:
    """Return the heads of columns, one after another, and the names of those that have none.

    Columns that are ignored, empty or constant have none: the density of a single value has no upper bound. To choose
    one of them is an error.
    """
    picked = [*columns] if chosen is None else _pick(columns, chosen)
    heads: list[Head] = []
    left_out = []
    for one in picked:
        if not one.is_variable or one.statistics.constant:
            left_out.append(one.column.name)
            continue
        n = sum(len(feature.likelihood.natural_bounds) for feature in one.features)
        at, into = (heads[-1].outputs.stop, heads[-1].features.stop) if heads else (0, 0)
        heads.append(Head(one, slice(at, at + n), slice(into, into + len(one.features))))
    if left_out and (chosen is not None or not heads):
        got = "a column that is ignored, has no observed cell, or a single value"
        raise TableError(got, "a head expects one that varies", "leave it out", column=left_out[0])
    if not heads:
        raise TableError("no columns", "heads expect one at least")
    return heads, left_out


def _pick(columns: Sequence[FittedColumn], chosen: Sequence[Hashable]) -> list[FittedColumn]:
    """Return the chosen columns, by name or label, in the order of the table."""
    if isinstance(chosen, str):
        raise TableError(f"columns = {chosen!r}", "expected a list of columns", f"pass [{chosen!r}]")
    known = {one.column.name: j for j, one in enumerate(columns)} | {one.label: j for j, one in enumerate(columns)}
    for name in chosen:
        if name not in known:
            names = [one.column.name for one in columns][:20]
            raise TableError(f"no such column among {names}", "expected a column that was there in fit", column=name)
    return [columns[j] for j in sorted({known[name] for name in chosen})]
