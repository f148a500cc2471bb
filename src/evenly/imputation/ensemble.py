"""The fitted ensemble: everything that was learned from a table, as one object that saves and loads itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenly._support import show
from evenly.imputation.boosting import Boosted
from evenly.imputation.calibration import PLAIN, Calibration
from evenly.imputation.columns import ColumnSpec, ModelledColumn, spec_from_plain
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.expected_cells import Naturals, blend, fill_expected
from evenly.imputation.experts import NO_EXPERTS, Experts
from evenly.imputation.gaussian import Gaussian, expect, feature_owners, first_features, gaussian_features
from evenly.imputation.kernels import Kernel, kernels_from_tensors, kernels_to_tensors, predict_by_kernel
from evenly.imputation.learned_rows import LearnedRows
from evenly.imputation.level_means import LevelMeans, plan_means
from evenly.imputation.neighbours import NeighbourIndex, index_rows
from evenly.imputation.panels import Panel, SavedPanel
from evenly.imputation.predictors import Pass, plan_passes
from evenly.imputation.tilts import Place, Tilt, tilts_from_tensors, tilts_to_tensors
from evenly.imputation.trees import Trees, predict_by_trees, trees_from_tensors, trees_to_tensors
from evenly.models import MODELS, Expected, Layout, Model, check_arrays, flatten, unflatten
from evenly.scaling import FittedColumn
from evenly.tables import Content, Floats, check, check_fields

Flags = npt.NDArray[np.bool_]

CHUNK, SMALL_CHUNK, FEW_ROWS = 4096, 512, 2_000
"""Rows per prediction, for a model fitted on many rows and for one fitted on fewer than 2,000. The number is fixed, so
that a row's prediction does not depend on the other rows and compiled programs can be reused."""

MOST = 1 << 16
"""The largest size of a model, and the largest number of networks, that a saved file may ask for."""


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
    """The Gaussian expert, if any column is stacked with it, or with another expert, which uses it."""
    trees: Mapping[str, Trees | Boosted] = field(default_factory=dict)
    """The forests or boosted trees of the columns that are stacked with them."""
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    """The kernel regressions of the columns that are stacked with them."""
    neighbours: NeighbourIndex | None = None
    """The rows to search for near-duplicates, if any column uses them."""
    curves: LearningCurves = field(default_factory=lambda: LearningCurves(np.zeros(0), {}, {}))
    learned: LearnedRows | None = None
    """The variables of the rows of fit, under models that learn some; without them, they are inferred as of new rows.
    """
    predictors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The predictors of the columns that have some of their own."""
    levels: LevelMeans | None = None
    """What the classes of columns with many say about other columns, if there are any."""
    panel: Panel | None = None
    """The rows of fit by their units, if there are some."""
    scales: Mapping[str, float] = field(default_factory=dict)
    """The scales that training ended with, by feature, under a rule that moves them."""
    tilts: Mapping[str, Tilt] = field(default_factory=dict)
    """The tilts of the columns that have one, to draw parameters from."""
    interrupted: bool = False
    """Whether Ctrl-C ended its training, or its calibration; not saved."""

    @cached_property
    def modelled(self) -> tuple[ModelledColumn, ...]:
        """The columns that are modelled."""
        return tuple(one for one in self.specs if isinstance(one, ModelledColumn))

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The passes in which columns are predicted: one for each set of predictors."""
        return plan_passes(self.predictors, [one.name for one in self.modelled])

    @cached_property
    def layout(self) -> Layout:
        """The layout of the modelled columns in the model's arrays."""
        return layout_of(self.model, self.modelled, self.n_rows, self.panel)

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
        return EncodedTable(tuple(columns), self.layout, self.levels, self.panel)

    def ask_experts(
        self, table: EncodedTable, cells: Mapping[int, Flags], naturals: Sequence[Naturals]
    ) -> tuple[dict[int, Experts], dict[int, Place]]:
        """Return the experts' predictions of some cells of some columns, NaN at those that are known.

        Also what tilts regress these cells on; both are empty without a Gaussian expert.

        Parameters
        ----------
        cells : mapping of int to array
            Which rows' cells are wanted, by the number of the column.
        naturals : sequence
            What each network predicts of the rows.
        """
        if self.gaussian is None:
            return dict.fromkeys(cells, NO_EXPERTS), {}
        features = gaussian_features(table)
        means, stds = expect(self.gaussian, features)
        filled = self._fill(table, means, naturals)
        found, places, firsts = {}, {}, first_features(table)
        for j, wanted in cells.items():
            places[j] = Place(filled, np.nan_to_num(stds[:, firsts[j]] ** 2)).take(wanted)
            spec = table.columns[j].spec
            own, name = slice(firsts[j], firsts[j] + spec.n_gaussian), spec.name
            trees, kernel = self.trees.get(name), self.kernels.get(name)
            read = filled if trees is not None and trees.needs_filled else features
            found[j] = Experts(
                spec.from_gaussian(means[wanted, own], stds[wanted, own]),
                None if trees is None else predict_by_trees(trees, table, j, wanted, read),
                None if kernel is None else predict_by_kernel(kernel, table, j, wanted, filled),
            )
        return found, places

    def _fill(self, table: EncodedTable, means: Floats, naturals: Sequence[Naturals]) -> Floats:
        """Return the features of rows, missing ones filled by what is expected of them, for those who read them."""
        if not (self.kernels or self.tilts or any(one.needs_filled for one in self.trees.values())):
            return gaussian_features(table)
        missing = np.isnan(np.column_stack(table.values))
        weights = np.array([one.calibration.fill_weight for one in table.columns])
        return blend(fill_expected(table, missing, naturals), means, weights[feature_owners(table)])

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
        tensors |= trees_to_tensors(self.trees) | kernels_to_tensors(self.kernels)
        tensors |= tilts_to_tensors(self.tilts)
        if self.neighbours is not None:
            tensors["neighbours"] = self.neighbours.values
        if self.learned is not None:
            tensors |= self.learned.to_tensors()
        if self.levels is not None:
            tensors |= {f"level_means{i}": one for i, one in enumerate(self.levels.means)}
        if self.panel is not None:
            tensors |= self.panel.to_tensors()
        content = {
            "model": {"name": self.model.spec.name, **asdict(self.model)},  # type: ignore[call-overload]  # a dataclass
            "n_networks": len(self.networks),
            "n_rows": self.n_rows,
            "shapes": {name: list(array.shape) for name, array in tensors.items()},
            "columns": [one.to_plain() for one in self.specs],
            "calibrations": {name: asdict(one) for name, one in self.calibrations.items()},
            "baseline": dict(curves.baseline),
            "trees": list(self.trees),
            "kernels": list(self.kernels),
            "predictors": {name: list(own) for name, own in self.predictors.items()},
        }
        content |= {} if self.panel is None else {"panel": self.panel.to_plain()}
        content |= {"tilts": list(self.tilts)} if self.tilts else {}
        return content | ({"scales": dict(self.scales)} if self.scales else {}), tensors

    @classmethod
    def from_saved(
        cls, content: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]], columns: Sequence[FittedColumn]
    ) -> Ensemble:
        """Rebuild an ensemble from `to_saved`; ValueError, in one sentence, if it is none of these columns."""
        saved = check(SavedEnsemble, content)
        found = {name: list(array.shape) for name, array in tensors.items()}
        if wrong := sorted(name for name in found.keys() | saved.shapes if found.get(name) != saved.shapes.get(name)):
            raise ValueError(f"{wrong[0]}: an array that is missing or has another shape")
        specs = tuple(spec_from_plain(*pair) for pair in zip(columns, saved.columns, strict=True))
        modelled = tuple(one for one in specs if isinstance(one, ModelledColumn))
        names = [one.name for one in modelled]
        if list(saved.baseline) != names or not saved.calibrations.keys() <= set(names):
            raise ValueError("baselines or calibrations of other columns than the modelled ones")
        if not {one.name for one in specs}.issuperset(chain(saved.predictors, *saved.predictors.values())):
            raise ValueError("predictors that are not among the columns")
        model = _model_of(saved.model)
        if saved.panel is not None and saved.panel.key not in {one.name for one in specs}:
            raise ValueError("a panel whose key is not among the columns")
        panel = None if saved.panel is None else Panel.from_saved(saved.panel, tensors, modelled)
        layout = layout_of(model, modelled, saved.n_rows, panel)
        by_network = _by_network(saved.n_networks if modelled else 0, tensors)
        if modelled and (arrays := model.expected_arrays(layout)) is not None:
            for one in by_network:
                check_arrays(arrays, one)
        curves = {name: np.nan_to_num(tensors[name]) for name in ("elbo", "log_likelihood")}
        check_arrays({"elbo": Expected(("epochs",)), "log_likelihood": Expected((len(names), "epochs"))}, curves)
        return cls(
            model,
            specs,
            saved.n_rows,
            [unflatten(one) for one in by_network],
            {name: Calibration.from_plain(one) for name, one in saved.calibrations.items()},
            (gaussian := _gaussian_of(tensors, modelled)),
            trees_from_tensors(saved.trees if gaussian is not None else [], modelled, tensors),
            kernels_from_tensors(saved.kernels if gaussian is not None else [], modelled, tensors),
            _index_of(tensors, modelled),
            LearningCurves(
                tensors["elbo"], dict(zip(names, tensors["log_likelihood"], strict=True)), dict(saved.baseline)
            ),
            LearnedRows.from_tensors(tensors, model.expected_row_variables, len(by_network)),
            saved.predictors,
            _levels_of(tensors, modelled),
            panel,
            saved.scales,
            tilts_from_tensors(saved.tilts if gaussian is not None else [], modelled, tensors),
        )


class SavedEnsemble(Content):
    """The JSON of `Ensemble.to_saved`, as far as it does not depend on columns and models."""

    model: dict[str, Any]
    n_networks: int = Field(ge=0, le=MOST)
    n_rows: int = Field(ge=1, lt=2**53)
    shapes: dict[str, list[int]]
    columns: list[dict[str, Any]]
    calibrations: dict[str, dict[str, Any]]
    baseline: dict[str, float]
    trees: list[str]
    kernels: list[str]
    predictors: dict[str, list[str]]
    panel: SavedPanel | None = None
    tilts: list[str] = Field(default_factory=list)
    scales: dict[str, Annotated[float, Field(gt=0.0, allow_inf_nan=False)]] = Field(default_factory=dict)


def _model_of(plain: dict[str, Any]) -> Model:
    """Return a model from its name and sizes; ValueError for sizes that none has."""
    sizes = dict(plain)
    name = sizes.pop("name", None)
    if not isinstance(name, str) or name not in MODELS:
        raise ValueError(f"the model {show(name)}, expected one of {', '.join(MODELS)}")
    kind = MODELS[name]
    sizes = check_fields(kind, sizes)
    if wrong := [one for one, size in sizes.items() if isinstance(size, int) and not 0 <= size <= MOST]:
        raise ValueError(f"{wrong[0]} = {sizes[wrong[0]]}, expected at most {MOST}")
    return kind(**sizes)


def _by_network(n: int, tensors: Mapping[str, npt.NDArray[Any]]) -> list[dict[str, npt.NDArray[Any]]]:
    """Return the arrays of each of n networks; ValueError if there are others."""
    found: dict[str, dict[str, npt.NDArray[Any]]] = {f"network{i}": {} for i in range(n)}
    for name, one in tensors.items():
        first, slash, rest = name.partition("/")
        if slash and first not in found:
            raise ValueError(f"{name}: an array of more than {n} networks")
        if slash:
            found[first][rest] = one
    if empty := [name for name, arrays in found.items() if not arrays]:
        raise ValueError(f"no arrays of {empty[0]}")
    return list(found.values())


def _gaussian_of(tensors: Mapping[str, npt.NDArray[Any]], modelled: Sequence[ModelledColumn]) -> Gaussian | None:
    if not any(name.startswith("gaussian_") for name in tensors):
        return None
    gaussian = Gaussian(*(tensors[f"gaussian_{name}"] for name in Gaussian._fields))
    gaussian.check(sum(one.n_gaussian for one in modelled))
    return gaussian


def _index_of(tensors: Mapping[str, npt.NDArray[Any]], modelled: Sequence[ModelledColumn]) -> NeighbourIndex | None:
    if "neighbours" not in tensors:
        return None
    check_arrays(
        {"neighbours": Expected(("rows", len(modelled)))}, {"neighbours": np.nan_to_num(tensors["neighbours"])}
    )
    return index_rows(
        list(tensors["neighbours"].T), [one.column.has_classes for one in modelled], np.random.default_rng(0)
    )


def _levels_of(tensors: Mapping[str, npt.NDArray[Any]], modelled: Sequence[ModelledColumn]) -> LevelMeans | None:
    plans = plan_means(modelled)
    names = [f"level_means{i}" for i in range(len(plans))]
    if not plans or names[0] not in tensors:
        return None
    sizes = [len(modelled[one.column].column.classes or ()) for one in plans]
    expected = {name: Expected((size, one.width)) for name, size, one in zip(names, sizes, plans, strict=True)}
    found = {name: tensors[name] for name in names if name in tensors}
    check_arrays(expected, found)
    return LevelMeans(plans, tuple(found.values()))


def layout_of(model: Model, columns: Sequence[ModelledColumn], n_rows: int, panel: Panel | None = None) -> Layout:
    """Return the layout of the modelled columns of a table, in the size class of its rows."""
    layout = lay_out(columns, None if panel is None else panel.plan)
    return layout.in_class(n_rows, in_bins=model.spec.bins_numbers) if columns else layout


def chunk_size(n_rows: int) -> int:
    """Return the number of rows per prediction, for a model fitted on `n_rows` rows."""
    return SMALL_CHUNK if n_rows < FEW_ROWS else CHUNK


def chunks(rows: npt.NDArray[np.intp], size: int) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Yield chunks of rows, each also padded to `size` with its first row."""
    for start in range(0, len(rows), size):
        where = rows[start : start + size]
        yield where, np.concatenate([where, np.repeat(where[:1], size - len(where))])
