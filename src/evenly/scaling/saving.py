"""A fitted scaler as JSON holds it, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from evenly._support import TableError, readable, refuse_duplicates
from evenly._version import __version__
from evenly.likelihoods import Likelihood
from evenly.scaling.measuring import MeasuredColumn, Measurer
from evenly.scaling.settings import check_settings, plain_settings
from evenly.scaling.statistics import location_family
from evenly.tables import Column, Content, Schema, Stored, check, check_parameters

if TYPE_CHECKING:
    from evenly.scaling.scaler import LipschitzScaler

LISTS = {"label": "labels", "stored": "stored", "statistics": "statistics", "scales": "scales"}
"""A file has one list a property, in the order of the columns: the property, and the name of its list."""


def scaler_to_plain(scaler: LipschitzScaler) -> dict[str, Any]:
    """Return all of a fitted scaler as JSON holds it."""
    columns = [one.to_plain() for one in scaler.columns_]
    lists = {name: [one[key] for one in columns] for key, name in LISTS.items()}
    return {
        "evenly": __version__,
        "saved": type(scaler).__name__,
        "settings": plain_settings(scaler),
        "own_likelihoods": sorted(scaler._own),
        "schema": scaler.schema_.model_dump(exclude_defaults=True),
        "labels": lists["labels"],
        "container": scaler.container_,
        "stored": lists["stored"],
        "seed": scaler.seed_,
        "target": scaler.target_,
        "statistics": lists["statistics"],
        "scales": lists["scales"],
    }


def scaler_from_plain(
    kind: type[LipschitzScaler],
    saved: dict[str, Any],
    likelihoods: Sequence[Likelihood] | Mapping[Any, Any],
    file: Path,
) -> LipschitzScaler:
    """Return the fitted scaler that `scaler_to_plain` took apart.

    Parameters
    ----------
    likelihoods : sequence or mapping of Likelihood
        The user's own ones.
    file : Path
        Where it was saved, for messages.
    """
    with readable(file, saved):
        content = check(SavedScaler, saved)
    given = likelihoods.values() if isinstance(likelihoods, Mapping) else likelihoods
    own = {one.name: one for one in given if isinstance(one, Likelihood)}
    absent = [name for name in content.own_likelihoods if name not in own]
    if absent:
        raise TableError(f"a scaler with the likelihood {absent[0]!r} of your own", "expected it in `likelihoods`")
    with readable(file, saved):
        return _rebuild(kind, content, own)


class SavedMoments(Content):
    """`Moments` as JSON holds them."""

    n: int = Field(ge=0)
    pivot: tuple[float, float]
    means: list[float]


class SavedStatistics(Content):
    """`ColumnStatistics` as JSON holds them."""

    n: int = Field(ge=0)
    minimum: float = Field(allow_inf_nan=False)
    maximum: float = Field(allow_inf_nan=False)
    location: SavedMoments | None = None
    own: SavedMoments | None = None
    counts: list[tuple[float, Annotated[int, Field(ge=1)]]] | None = None
    quartiles: tuple[float, float] | None = None

    def fit(self, column: Column, family: Likelihood | None) -> None:
        """Raise an error if these are not statistics of a column with that likelihood; None if it is ignored."""
        if self.minimum > self.maximum:
            raise ValueError(f"a minimum of {self.minimum:g} above a maximum of {self.maximum:g}")
        if family is None:
            return
        if family.scalable:
            location = location_family(family)
            terms = {"location": location, "own": None if family is location else family}
        else:
            terms = {"location": None, "own": None}
            self._fit_counts(len(column.classes or ()) if column.has_classes else None)
        for name, of in terms.items():
            wanted, part = None if of is None else len(of.natural_bounds), getattr(self, name)
            found = None if part is None else len(part.means)
            if found != wanted:
                raise ValueError(f"{found or 'no'} means in {name}, expected {wanted or 'none'} of {family.name}")

    def _fit_counts(self, n_classes: int | None) -> None:
        """Raise an error if these are not the counts of whole numbers, or of the codes of classes."""
        counted = dict(self.counts or ())
        below = float("inf") if n_classes is None else n_classes
        if self.counts is None or len(counted) < len(self.counts) or sum(counted.values()) != self.n:
            raise ValueError(f"counts that do not add up to {self.n}")
        if wrong := [value for value in counted if not (0 <= value < below and value == int(value))]:
            raise ValueError(f"a count of {wrong[0]:g}, expected whole numbers from 0 below {below}")


class SavedScaler(Content):
    """A fitted scaler as JSON holds it."""

    evenly: str
    saved: str
    settings: dict[str, Any]
    own_likelihoods: list[str]
    schema_: Schema = Field(alias="schema")
    labels: list[bool | int | float | str]
    container: Literal["numpy", "pandas", "polars", "pyarrow", "modin", "cudf"]
    stored: list[Stored]
    seed: int = Field(ge=0, lt=2**63)
    target: float = Field(gt=0.0)
    statistics: list[SavedStatistics]
    scales: list[list[Annotated[float, Field(gt=0.0, allow_inf_nan=False)]]]

    def check_labels(self) -> None:
        """Raise an error if labels are not those of the schema's columns."""
        names = refuse_duplicates(self.labels)
        if self.container == "numpy":
            names = [f"x{j}" for j in range(len(names))]
        if names != [one.name for one in self.schema_.columns]:
            raise ValueError("labels that are not those of the schema's columns")


def _rebuild(kind: type[LipschitzScaler], saved: SavedScaler, own: dict[str, Likelihood]) -> LipschitzScaler:
    settings = check_parameters(kind, saved.settings)
    if settings.get("likelihoods"):
        settings["likelihoods"] = {label: own.get(one, one) for label, one in settings["likelihoods"].items()}
    scaler = kind(**settings)
    check_settings(scaler)
    saved.check_labels()
    measurer = Measurer(own, quartiles=False)
    plain = saved.model_dump(exclude_none=True)
    lists = zip(*(plain[name] for name in LISTS.values()), strict=True)
    rows = [dict(zip(LISTS, row, strict=True)) for row in lists]
    measured = []
    for row, column, statistics in zip(rows, saved.schema_.columns, saved.statistics, strict=True):
        family = measurer.own_family(column)
        statistics.fit(column, family)
        measured.append(MeasuredColumn.from_plain(row, column, family))
    scaler._fit_scales(measured, own)
    scaler.target_ = saved.target
    # The saved scales count: solving again with another version of a library may round otherwise.
    scaler.columns_ = [one.with_scales(row["scales"]) for one, row in zip(scaler.columns_, rows, strict=True)]
    labels = [one.label for one in measured]
    scaler.container_, scaler.seed_, scaler.n_features_in_ = saved.container, saved.seed, len(labels)
    if scaler.container_ != "numpy" and all(isinstance(label, str) for label in labels):
        scaler.feature_names_in_ = np.array(labels, dtype=object)
    return scaler
