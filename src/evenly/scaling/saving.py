"""A fitted scaler as JSON holds it, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly._support import TableError, readable
from evenly._version import __version__
from evenly.likelihoods import Likelihood
from evenly.scaling.measuring import MeasuredColumn, Measurer
from evenly.scaling.settings import plain_settings
from evenly.tables import Schema

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
    given = likelihoods.values() if isinstance(likelihoods, Mapping) else likelihoods
    own = {one.name: one for one in given if isinstance(one, Likelihood)}
    absent = [name for name in saved.get("own_likelihoods", ()) if name not in own]
    if absent:
        raise TableError(f"a scaler with the likelihood {absent[0]!r} of your own", "expected it in `likelihoods`")
    with readable(file, saved):
        return _rebuild(kind, saved, own)


def _rebuild(kind: type[LipschitzScaler], saved: dict[str, Any], own: dict[str, Likelihood]) -> LipschitzScaler:
    # What scalers did that were saved before there was a choice.
    settings = {"passthrough": "keep", "noise": "drawn"} | saved["settings"]
    if settings.get("likelihoods"):
        settings["likelihoods"] = {label: own.get(one, one) for label, one in settings["likelihoods"].items()}
    scaler = kind(**settings)
    measurer = Measurer(own, quartiles=False)
    schema = Schema.model_validate(saved["schema"])
    rows = [dict(zip(LISTS, row, strict=True)) for row in zip(*(saved[name] for name in LISTS.values()), strict=True)]
    measured = [
        MeasuredColumn.from_plain(row, column, measurer.own_family(column))
        for row, column in zip(rows, schema.columns, strict=True)
    ]
    scaler._fit_scales(measured, own)
    scaler.target_ = saved["target"]
    # The saved scales count: solving again with another version of a library may round otherwise.
    scaler.columns_ = [one.with_scales(row["scales"]) for one, row in zip(scaler.columns_, rows, strict=True)]
    labels = [one.label for one in measured]
    scaler.container_, scaler.seed_, scaler.n_features_in_ = saved["container"], saved["seed"], len(labels)
    if scaler.container_ != "numpy" and all(isinstance(label, str) for label in labels):
        scaler.feature_names_in_ = np.array(labels, dtype=object)
    return scaler
