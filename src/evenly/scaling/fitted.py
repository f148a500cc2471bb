"""The fitted columns of a table: features with their scales, and the way of a column's cells there and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.likelihoods import Array
from evenly.scaling.feature_fit import FeatureFit, FittedScale
from evenly.scaling.measuring import MeasuredColumn
from evenly.scaling.methods import Method
from evenly.scaling.outcomes import Outcome
from evenly.scaling.recover import recover_column
from evenly.scaling.smoothness import Bound
from evenly.scaling.tricks import (
    NOISE_MEAN,
    OFFSET,
    Feature,
    feature_statistics,
    feature_values,
    features_of,
    undo_values,
)
from evenly.tables import (
    Change,
    Floats,
    NewCells,
    Reading,
    TableColumn,
    check_values,
    decode,
    encode,
    prepare,
    quote,
    restore_column,
)

LARGEST = np.finfo(np.float64).max
"""Where a feature would be infinite, as that of 1e308 in a new row may be, it is this."""
UNSEEN = -1.0
"""The code of classes that fit did not see: all features of a split column are 0 there."""


class SummaryRow(NamedTuple):
    """One feature in a scaler's summary."""

    column: str
    feature: str
    kind: str
    likelihood: str
    smoothness_before: float
    scale: float
    smoothness_after: float
    outcome: str
    bound_after: float


@dataclass(frozen=True, kw_only=True)
class FittedColumn(MeasuredColumn):
    """One column of a fitted table: what was measured of it, and its features with their scales."""

    features: list[Feature]
    """None of them if the column is ignored."""
    fits: list[FittedScale]
    """One a feature."""

    @cached_property
    def frequencies(self) -> Floats:
        """The observed shares of its classes; those that are not modelled one by one share the last."""
        shares, single = self.shares, self.column.n_single
        return np.append(shares[:single], shares[single:].sum()) if self.column.has_rest else shares

    @cached_property
    def shares(self) -> Floats:
        """The observed shares of all its classes."""
        counts, classes = self.statistics.counts or {}, self.column.classes or []
        shares = np.array([counts.get(float(k), 0) for k in range(len(classes))], np.float64)
        return np.asarray(shares / max(shares.sum(), 1.0))

    @property
    def is_variable(self) -> bool:
        """Whether a model can learn it: not ignored, and with observed cells."""
        return bool(self.features) and self.statistics.n > 0

    @property
    def names_out(self) -> list[str]:
        """Names of its features; an ignored column passes through under its own."""
        return [one.name for one in self.features] or [self.column.name]

    # --- cells to features and back --------------------------------------------------------------------------

    def encode(self, cells: TableColumn) -> tuple[Floats, list[Any]]:
        """Return the checked values or codes of cells, and the classes that fit did not see."""
        assert self.family is not None
        values, unknown = encode(self.column, cells.fresh())
        check_values(self.column, values, self.family)
        return values, unknown

    @property
    def new_cells(self) -> NewCells:
        """Reads its cells in rows that fit did not see."""
        assert self.family is not None
        of = self.statistics
        return NewCells(self.column, self.family, (of.minimum, of.maximum) if of.n else None)

    @property
    def unseen_code(self) -> float:
        """The code that classes get which fit did not see; the most frequent class where one feature holds them all."""
        return UNSEEN if self.features[0].code is not None else float(np.argmax(self.shares))

    def read(self, cells: TableColumn, *, strict: bool, handle_unknown: str) -> tuple[Floats, list[Change]]:
        """Return values or codes of cells in new rows that can be scaled, and what was changed to that end."""
        found, unseen = self._read(cells, strict, handle_unknown)
        if unseen is None or found.unread is None:
            return found.values, found.changes
        code, what = self.unseen_code, "0 in each of its features"
        if code != UNSEEN:
            what = f"used as the most frequent, {quote((self.column.classes or [])[int(code) :][:1])}"
        change = replace(unseen, what=f"{unseen.what}, {what}")
        return np.where(found.unread, code, found.values), [*found.changes, change]

    def read_known(self, cells: TableColumn, *, strict: bool, handle_unknown: str) -> tuple[Floats, list[Change]]:
        """As `read`, but classes that fit did not see are missing: nothing is known of their probability."""
        found, unseen = self._read(cells, strict, handle_unknown)
        if unseen is None:
            return found.values, found.changes
        return found.values, [*found.changes, replace(unseen, what=f"{unseen.what}, treated as missing")]

    def _read(self, cells: TableColumn, strict: bool, handle_unknown: str) -> tuple[Reading, Change | None]:
        """Read cells in new rows; returns which of them hold classes that fit did not see, too."""
        found = self.new_cells.read(cells.fresh(), strict=strict)
        if not found.unseen or found.unread is None:
            return found, None
        if handle_unknown == "error":
            raise TableError(
                f"classes not seen in fit: {quote(found.unseen)}",
                "expected the classes of fit",
                'pass handle_unknown="ignore" to scale the rest of such rows',
                column=self.column.name,
            )
        what = "with classes not seen in fit"
        return found, Change(self.column.name, int(found.unread.sum()), what, found.unseen)

    def split(
        self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None, start: int = 0
    ) -> list[Floats]:
        """Return the features before they are scaled, as `scale` takes them."""
        prepared = prepare(self.column, values)
        return [feature_values(one, prepared, seed, keys, start) for one in self.features]

    def scale(
        self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None, start: int = 0
    ) -> list[Floats]:
        """Return the scaled features from values or codes; without a seed, with the mean of the noise."""
        unscaled = self.split(values, seed, keys, start)
        pairs = zip(self.features, self.fits, unscaled, strict=True)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = [one.likelihood.scale_data(part, fit.scale) for one, fit, part in pairs]
            return [part if np.isfinite(part.sum()) else np.clip(part, -LARGEST, LARGEST) for part in scaled]

    def targets(
        self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None, start: int = 0
    ) -> list[Floats]:
        """Return the scaled features as a model takes them: of a log-normal, which it models as a normal, the log."""
        family = self.features[0].likelihood
        if family.modelled_as is not family:
            return [self.fits[0].scale * np.log(prepare(self.column, values))]
        return self.scale(values, seed, keys, start)

    def unscale(self, scaled: Sequence[Floats]) -> Floats:
        """Return values or codes from the scaled features."""
        column, first = self.column, self.features[0]
        parts = [_unscale(*each) for each in zip(self.features, self.fits, scaled, strict=True)]
        if first.code is not None:
            stacked = np.stack(parts, axis=-1) - (OFFSET + NOISE_MEAN if first.trick == "gamma" else 0.0)
            # A class that fit did not see gives none of the classes. Probabilities may all be small, too, but sum to 1.
            none = (stacked.max(axis=-1) < 0.5) & (stacked.sum(axis=-1) < 0.5)
            missing = np.isnan(stacked).any(axis=-1) | none
            return np.where(missing, np.nan, np.nan_to_num(stacked).argmax(axis=-1))
        values = undo_values(first, parts[0])
        if column.has_classes:
            codes = np.clip(np.rint(values), 0.0, column.n_outcomes - 1.0)
            return codes if first.rest is None else np.where(codes == first.rest, np.nan, codes)
        if first.likelihood.support.lower == 0.0:
            values = np.where(values - column.shift < 0.0, 0.0, values - column.shift)
        if column.clip is not None:  # what was raised to the clip was 0
            values = np.where(values <= column.clip * (1.0 + 1e-9), 0.0, values)
        return values

    def restore(self, scaled: Sequence[Floats], container: str) -> Any:
        """Return the cells, in their type and classes, from the scaled features."""
        return self.decode(self.unscale(scaled), container)

    def decode(self, values: Floats, container: str) -> Any:
        """Return the cells, in their type and classes, from values or codes."""
        cells = decode(self.column, values, self.originals, self.stored.storage)
        classes = list(self.originals) or self.column.classes
        return restore_column(cells, container, self.stored, classes)

    def recover(self, naturals: Sequence[Array]) -> dict[str, Array]:
        """Return usual parameters from the natural ones of its scaled features."""
        scales = [fit.scale for fit in self.fits]
        return recover_column(self.column, self.features, scales, naturals, self.frequencies)

    # --- reporting and saving ----------------------------------------------------------------------------------

    def summary(self) -> Iterator[SummaryRow]:
        """List its features, or itself if it is ignored, as rows of the summary."""
        name = self.column.name
        if not self.features:
            outcome = Outcome.PASSED_THROUGH if self.statistics.n else Outcome.NO_DATA
            yield SummaryRow(name, name, "ignore", "-", 0.0, 1.0, 0.0, outcome.value, 0.0)
        for one, fit in zip(self.features, self.fits, strict=True):
            yield SummaryRow(
                name,
                one.name,
                self.column.kind,
                one.likelihood.name,
                fit.smoothness_before,
                fit.scale,
                fit.smoothness_after,
                fit.outcome.value,
                fit.bound_after,
            )

    def to_plain(self) -> dict[str, Any]:
        """Return the column as JSON holds it, beside the schema, which has its description."""
        return super().to_plain() | {"scales": [fit.scale for fit in self.fits]}

    def rescaled(self, scales: Mapping[str, float]) -> FittedColumn:
        """Return the column, fitted again, with other scales of some features, by name."""
        fits = [
            FeatureFit.of(one, feature_statistics(one, self.statistics)).scaled(scales[one.name], Outcome.LEARNED)
            if one.name in scales
            else fit
            for one, fit in zip(self.features, self.fits, strict=True)
        ]
        return replace(self, fits=fits)

    def with_scales(self, scales: Sequence[float]) -> FittedColumn:
        """Return the column with other scales."""
        fits = [replace(fit, scale=scale) for fit, scale in zip(self.fits, scales, strict=True)]
        return replace(self, fits=fits)


def fit_scales(
    columns: Sequence[MeasuredColumn], method: Method, *, target: float | None, learning_rate: float, bound: Bound
) -> tuple[float, list[FittedColumn]]:
    """Find the scales of measured columns; returns the smoothness aimed at, too.

    Without a target, that is 1 / (D * learning_rate), with D the number of columns that the method scales. A column
    of several features divides its own among them.
    """
    groups = _name_apart(columns, method)
    scaled = sum(
        bool(group) and one.statistics.n > 0 and not one.statistics.constant and group[0].likelihood.scalable
        for one, group in zip(columns, groups, strict=True)
    )
    target = float(target or 1.0 / (max(scaled, 1) * learning_rate))
    fitted = []
    for one, group in zip(columns, groups, strict=True):
        of = one.statistics
        fits = [
            method.fit_scale(
                feature, feature_statistics(feature, of), target / len(group), bound=bound, constant=of.constant
            )
            for feature in group
        ]
        measured = {field.name: getattr(one, field.name) for field in fields(MeasuredColumn)}
        fitted.append(FittedColumn(**measured, features=group, fits=fits))
    return target, fitted


def _name_apart(columns: Sequence[MeasuredColumn], method: Method) -> list[list[Feature]]:
    """List the features of each column, under names that differ.

    Columns keep theirs: a feature `a=b` of a column `a` gives way to a column that is called `a=b`.
    """
    groups = [
        [] if one.family is None else features_of(j, one.column, one.family, method.trick)
        for j, one in enumerate(columns)
    ]
    split = [bool(group) and group[0].code is not None for group in groups]
    taken = {one.column.name for one, apart in zip(columns, split, strict=True) if not apart}
    return [
        [replace(one, name=_unused(one.name, taken)) for one in group] if apart else group
        for group, apart in zip(groups, split, strict=True)
    ]


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def _unscale(feature: Feature, fit: FittedScale, values: Floats) -> Floats:
    """Undo the scale of a feature; a value below the support, which no data gave, becomes its lower end."""
    if feature.likelihood.support.lower == 0.0:
        values = np.where(values < 0.0, 0.0, values)
    return np.asarray(feature.likelihood.unscale_data(values, fit.scale))
