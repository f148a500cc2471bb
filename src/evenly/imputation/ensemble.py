"""The fitted ensemble: everything that was learned from a table, as one object that saves and loads itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly.imputation.calibration import PLAIN, Calibration
from evenly.imputation.columns import ColumnSpec, ModelledColumn, spec_from_plain
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.gaussian import Gaussian
from evenly.imputation.neighbours import NeighbourIndex, index_rows
from evenly.models import MODELS, Layout, Model, flatten, unflatten
from evenly.scaling import FittedColumn
from evenly.tables import Floats

CHUNK, SMALL_CHUNK, FEW_ROWS = 4096, 512, 2_000
"""Rows per prediction, for a model fitted on many rows and for one fitted on fewer than 2,000. The number is fixed, so
that a row's prediction does not depend on the other rows and compiled programs can be reused."""


@dataclass(frozen=True)
class LearningCurves:
    """The learning curves of the first network, in the table's units."""

    elbo: Floats
    log_likelihood: Mapping[str, Floats]
    """The mean over each modelled column's training cells, by epoch."""
    baseline: Mapping[str, float]
    """The log-likelihood of each column under its marginal."""


@dataclass(frozen=True)
class Ensemble:
    """Trained networks, column specs and calibrations, and the experts that complement the networks."""

    model: Model
    specs: tuple[ColumnSpec, ...]
    """The spec of every column of the table."""
    n_rows: int
    """Rows of the table in fit."""
    networks: list[Any] = field(default_factory=list)
    """The shared parameters of each network."""
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    gaussian: Gaussian | None = None
    """The Gaussian expert, if any column is stacked with it."""
    neighbours: NeighbourIndex | None = None
    """The rows to search for near-duplicates, if any column uses them."""
    curves: LearningCurves = field(default_factory=lambda: LearningCurves(np.zeros(0), {}, {}))
    interrupted: bool = False
    """Whether Ctrl-C ended its training, or its calibration; not saved."""

    @cached_property
    def modelled(self) -> tuple[ModelledColumn, ...]:
        """The columns that are modelled."""
        return tuple(one for one in self.specs if isinstance(one, ModelledColumn))

    @cached_property
    def layout(self) -> Layout:
        """The layout of the modelled columns in the model's arrays."""
        return layout_of(self.model, self.modelled, self.n_rows)

    @property
    def chunk_size(self) -> int:
        """Number of rows per prediction."""
        return chunk_size(self.n_rows)

    def encode(self, values: Sequence[Floats | None]) -> EncodedTable:
        """Return the modelled columns of a table, given every column's values or codes."""
        pairs = zip(self.specs, values, strict=True)
        columns = [
            EncodedColumn(spec, own, self.calibrations.get(spec.name, PLAIN))
            for spec, own in pairs
            if isinstance(spec, ModelledColumn) and own is not None
        ]
        return EncodedTable(tuple(columns), self.layout)

    # --- saving ---------------------------------------------------------------------------------------------------

    def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return the ensemble as plain JSON types and arrays."""
        curves = self.curves
        by_column = np.array([curves.log_likelihood[name] for name in curves.baseline])
        tensors = {
            f"network{i}/{name}": array for i, one in enumerate(self.networks) for name, array in flatten(one).items()
        }
        tensors |= {
            "elbo": np.asarray(curves.elbo, np.float64),
            "log_likelihood": by_column.reshape(len(curves.baseline), len(curves.elbo)),
        }
        if self.gaussian is not None:
            tensors |= {f"gaussian_{name}": array for name, array in self.gaussian._asdict().items()}
        if self.neighbours is not None:
            tensors["neighbours"] = self.neighbours.values
        content = {
            "model": {"name": self.model.spec.name, **asdict(self.model)},  # type: ignore[call-overload]  # a dataclass
            "n_networks": len(self.networks),
            "n_rows": self.n_rows,
            "shapes": {name: list(array.shape) for name, array in tensors.items()},
            "columns": [one.to_plain() for one in self.specs],
            "calibrations": {name: asdict(one) for name, one in self.calibrations.items()},
            "baseline": dict(curves.baseline),
        }
        return content, tensors

    @classmethod
    def from_saved(
        cls, content: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]], columns: Sequence[FittedColumn]
    ) -> Ensemble:
        """Rebuild an ensemble from `to_saved`; ValueError if arrays are missing or have another shape."""
        found = {name: list(array.shape) for name, array in tensors.items()}
        if wrong := [name for name, shape in content["shapes"].items() if found.get(name) != shape]:
            raise ValueError(f"arrays that are missing or have another shape: {wrong}")
        specs = tuple(spec_from_plain(*pair) for pair in zip(columns, content["columns"], strict=True))
        sizes = {**content["model"]}
        networks = [
            unflatten({name.removeprefix(start): one for name, one in tensors.items() if name.startswith(start)})
            for start in (f"network{i}/" for i in range(content["n_networks"]))
        ]
        gaussian = index = None
        if "gaussian_mean" in tensors:
            gaussian = Gaussian(*(tensors[f"gaussian_{name}"] for name in Gaussian._fields))
        if "neighbours" in tensors:
            classes = [one.column.has_classes for one in specs if isinstance(one, ModelledColumn)]
            index = index_rows(list(tensors["neighbours"].T), classes, np.random.default_rng(0))
        curves = dict(zip(content["baseline"], tensors["log_likelihood"], strict=True))
        return cls(
            MODELS[sizes.pop("name")](**sizes),
            specs,
            content["n_rows"],
            networks,
            {name: Calibration.from_plain(one) for name, one in content["calibrations"].items()},
            gaussian,
            index,
            LearningCurves(tensors["elbo"], curves, content["baseline"]),
        )


def layout_of(model: Model, columns: Sequence[ModelledColumn], n_rows: int) -> Layout:
    """Return the layout of the modelled columns of a table, in the size class of its rows."""
    layout = lay_out(columns)
    return layout.in_class(n_rows, in_bins=model.spec.bins_numbers) if columns else layout


def chunk_size(n_rows: int) -> int:
    """Return the number of rows per prediction, for a model fitted on `n_rows` rows."""
    return SMALL_CHUNK if n_rows < FEW_ROWS else CHUNK


def chunks(rows: npt.NDArray[np.intp], size: int) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Yield chunks of rows, each also padded to `size` with its first row."""
    for start in range(0, len(rows), size):
        where = rows[start : start + size]
        yield where, np.concatenate([where, np.repeat(where[:1], size - len(where))])
