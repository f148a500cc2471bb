"""The imputers that `benchmarks/peers.py` compares, one class each: to add one, write its class here.

A class registers itself by its name and says all that the benchmark and `docs/make_peers.py` need to know of it.
Packages are imported in `impute` only, or in an environment of their own, so that the page can be made without them.
"""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt
from peer_environments import Environment, Failed

import evenly
from evenly import evaluation
from evenly.evaluation import to_classes
from evenly.metrics import mean_or_mode
from evenly.tables import Column, Kind

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Record = dict[str, Any]


@dataclass(frozen=True)
class Filled:
    """An imputed table."""

    values: Floats
    notes: Record = field(default_factory=dict)
    """What to add to the record of the run."""
    fitted: tuple[Any, Any] | None = None
    """The imputer and the table that it was given, if it predicts distributions, whose calibration is then measured."""


class Peer(ABC):
    """An imputer of the benchmark.

    Peers are run, and shown on the page, in the order of their classes.

    Examples
    --------
    >>> class Median(Peer):
    ...     name = "median"
    ...     note = "the median of every column"
    ...     kinds = frozenset({"real", "positive", "count"})
    ...
    ...     def impute(self, columns, visible):
    ...         return Filled(np.where(np.isnan(visible), np.nanmedian(visible, axis=0), visible))
    >>> PEERS["median"]().impute([], np.array([[1.0], [np.nan], [4.0]])).values.tolist()
    [[1.0], [2.5], [4.0]]
    >>> del PEERS["median"]
    """

    name: ClassVar[str]
    """By which it is asked for and recorded. A class without one is a base for others, and not a peer itself."""
    label: ClassVar[str]
    """What the page calls it; its name unless given."""
    note: ClassVar[str] = ""
    """What readers of the page should know of it: whose it is, and which settings are not its defaults."""
    color: ClassVar[str | None] = None
    """Of its bars in the picture; None: one of matplotlib's own."""
    unable: ClassVar[str | None] = None
    """Why it cannot be run at all, if that is known."""
    revision: ClassVar[int] = 1
    """Raise it when the peer gives other results than before: older records are then left out and run again."""
    still_shown: ClassVar[int | None] = None
    """A revision before it, whose records stay on the page, and are named there, until these runs are made again."""
    kinds: ClassVar[frozenset[Kind]] = frozenset(get_args(Kind))
    """The kinds of columns that it can impute; it is not run on tables with others."""
    own: ClassVar[bool] = False
    """Whether this is evenly, which the others are compared with."""
    baseline: ClassVar[bool] = False
    """Whether this is what the errors of all others are relative to."""
    compare_time: ClassVar[bool] = False
    """Whether the page says on how many data sets evenly takes less time."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            return
        if cls.name in PEERS:
            raise ValueError(f"Two peers have the name {cls.name!r}.")
        if "label" not in vars(cls):
            cls.label = cls.name
        PEERS[cls.name] = cls

    @classmethod
    def prepare(cls) -> None:
        """Install what it needs, before its time is measured; `Failed` if that cannot be done."""
        if cls.unable:
            raise Failed(cls.unable)

    @classmethod
    def why_not(cls, columns: list[Column], visible: Floats) -> str | None:
        """Say why it cannot impute a table, None if it can; override this for limits other than kinds."""
        others = [f"{column.name} ({column.kind})" for column in columns if column.kind not in cls.kinds]
        return f"{cls.name} cannot impute columns of these kinds: {', '.join(others)}" if others else None

    @abstractmethod
    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        """Impute a table.

        Parameters
        ----------
        columns : list of Column
            What is known of the columns; the classes of a column are their codes.
        visible : array of shape (rows, columns)
            Numbers and codes of classes, from 0, with NaN where a cell is missing or hidden. May be written to.
        """


PEERS: dict[str, type[Peer]] = {}
"""All peers by name. Records may name others, which are no longer here."""


def own_names() -> list[str]:
    """Return the names of evenly's imputers."""
    return [name for name, peer in PEERS.items() if peer.own]


# --- simple ones --------------------------------------------------------------------------------------------------


class MeanOrMode(Peer):
    name = "mean-or-mode"
    note = "the mean of a column of numbers, the most frequent class of others"
    color = "0.6"
    baseline = True

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        return Filled(simple_values(columns, visible))


def simple_values(columns: list[Column], visible: Floats) -> Floats:
    """Return a table in which every cell is its column's mean or mode."""
    return mean_or_mode(columns, visible, np.zeros(visible.shape, bool))


class Iterative(Peer):
    name = "iterative"
    note = "scikit-learn's `IterativeImputer`: linear, on class codes as if they were numbers"
    color = "#56b4e9"

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401  (without it the next import fails)
        from sklearn.impute import IterativeImputer

        return Filled(to_classes(columns, IterativeImputer(random_state=0).fit_transform(visible)))


class NearestNeighbours(Peer):
    """Average the five nearest rows: numbers and ordered classes standardized, other classes one-hot by majority.

    Two different classes have the squared distance 2, as two standardized numbers have on average.
    """

    name = "knn"
    note = (
        "scikit-learn's `KNNImputer`: numbers standardized, classes without an order one-hot, so that neighbours vote"
    )
    color = "#009e73"
    revision = 2

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        return Filled(evaluation.NearestNeighbours().impute(columns, visible))


# --- in environments of their own ---------------------------------------------------------------------------------


class Elsewhere(Peer):
    """A base for peers that run in an environment of their own."""

    environment: ClassVar[Environment]
    job: ClassVar[str]
    """The function of `peer_worker.py` that runs it."""
    n_tables: ClassVar[int] = 1
    """How many tables it draws; they are averaged, as errors of single draws would be larger."""
    settings: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    @classmethod
    def prepare(cls) -> None:
        super().prepare()
        cls.environment.make()

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        n_classes = [len(column.classes or ()) if column.has_classes else 0 for column in columns]
        settings = {"n_classes": n_classes, "seed": 0, "tables": self.n_tables, **self.settings}
        tables, notes = self.environment.impute(self.job, visible, settings)
        return Filled(np.where(np.isnan(visible), average_tables(columns, tables), visible), notes)


def average_tables(columns: list[Column], tables: list[Floats]) -> Floats:
    """Return the mean of each number, and the most frequent class of each cell, the first of equally frequent ones.

    Classes that are no codes are rounded, and cut to the first and the last.
    """
    found = np.mean(tables, axis=0)
    for j, column in enumerate(columns):
        if column.has_classes:
            codes = np.clip(np.rint([one[:, j] for one in tables]), 0, len(column.classes or ()) - 1)
            votes = np.array([(codes == code).sum(0) for code in range(len(column.classes or ()))])
            found[:, j] = votes.argmax(0)
    return np.asarray(found)


class MiceForest(Elsewhere):
    name = "miceforest"
    note = "LightGBM; `mean_match_candidates=0`, so that numbers are its predictions, not cells of similar rows"
    color = "#f0e442"
    environment = Environment("miceforest", ("miceforest==6.0.5", "lightgbm==4.5.0"))
    job = "miceforest"


class UnmaskingTrees(Elsewhere):
    name = "utrees"
    note = "UnmaskingTrees 0.3.0, classes declared; the mean, or the most frequent class, of five drawn tables"
    environment = Environment("utrees", ("utrees==0.3.0", "scikit-learn==1.5.2"))
    job = "utrees"
    n_tables = 5


class ForestDiffusion(Elsewhere):
    name = "forestdiffusion"
    note = 'ForestDiffusion 1.0.6, `diffusion_type="vp"`, classes declared; the mean or mode of five drawn tables'
    environment = Environment("forestdiffusion", ("ForestDiffusion==1.0.6", "pandas<3"))
    job = "forestdiffusion"
    n_tables = 5
    levels, copies = 50, 100
    """Of noise, and of each row; its defaults. At each level, every column has boosted trees of its own."""
    seconds_a_cell = 8e-7
    """CPU seconds of these trees for a cell of a column's copies: 6.7 s for 649,700 rows of 13 columns."""
    most_hours = 1.0

    @classmethod
    def why_not(cls, columns: list[Column], visible: Floats) -> str | None:
        n_rows, n_columns = visible.shape
        hours = cls.levels * n_columns * (cls.copies * n_rows * n_columns) * cls.seconds_a_cell / 3600.0
        if hours > cls.most_hours:
            fits = cls.levels * n_columns
            return f"its trees would take {hours:.1f} hours of one core, by the time of one of their {fits} fits"
        return super().why_not(columns, visible)


HYPERIMPUTE = Environment("hyperimpute", ("hyperimpute==0.1.17", "torch==2.13.0", "pandas<3", "setuptools<81"))


class HyperImpute(Elsewhere):
    name = "hyperimpute"
    note = "HyperImpute 0.1.17, on class codes as if they were numbers"
    color = "#0072b2"
    environment = HYPERIMPUTE
    job = "hyperimpute"
    settings = MappingProxyType({"plugin": "hyperimpute"})


class Miwae(Elsewhere):
    name = "miwae"
    note = "MIWAE as HyperImpute 0.1.17 ships it, on class codes as if they were numbers"
    environment = HYPERIMPUTE
    job = "hyperimpute"
    settings = MappingProxyType({"plugin": "miwae"})


class Gain(Elsewhere):
    name = "gain"
    note = "GAIN as HyperImpute 0.1.17 ships it, on class codes as if they were numbers"
    environment = HYPERIMPUTE
    job = "hyperimpute"
    settings = MappingProxyType({"plugin": "gain"})


class TabImpute(Elsewhere):
    name = "tabimpute"
    note = "TabImpute 0.0.4"
    unable = "its package brings no weights; they are downloaded from Hugging Face"
    environment = Environment("tabimpute", ("tabimpute==0.0.4",))
    job = "tabimpute"


# --- random forests -----------------------------------------------------------------------------------------------


class MissForest(Peer):
    """Fit a forest to each column, the one with fewest missing cells first, until the imputed cells stop converging.

    The stopping rule is that of the R package: when neither numbers nor classes changed less than in the round before,
    the result is the table of the round before; after `max_rounds` it is the last one.
    """

    name = "missforest"
    note = (
        "100 trees of scikit-learn's random forests a column, a classifier for classes, until the imputed cells stop "
        "converging by the R package's rule"
    )
    color = "#d55e00"
    revision = 2
    compare_time = True
    regressor_settings: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Of the forests of numbers; scikit-learn's defaults consider every column at every split."""

    def __init__(self, n_trees: int = 100, max_rounds: int = 10) -> None:
        self.n_trees, self.max_rounds = n_trees, max_rounds

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        forest = evaluation.Forest(n_trees=self.n_trees, max_rounds=self.max_rounds, settings=self.regressor_settings)
        return Filled(forest.impute(columns, visible))


class MissForestSqrt(MissForest):
    """Uses the R package's forests of numbers too; its forests of classes are scikit-learn's default.

    There mtry = floor(sqrt(p)), and a node of 5 cells (its nodesize) or fewer is not split.
    """

    name = "missforest-sqrt"
    note = (
        "`missforest` with the R package's forests of numbers: the square root of the columns at a split, no split of "
        "5 cells"
    )
    color = "#e69f00"
    revision = 1  # not that of `missforest`, whose second one came first
    regressor_settings = evaluation.Forest.settings


# --- evenly -------------------------------------------------------------------------------------------------------


class Evenly(Peer):
    """Raise the revision whenever what `Imputer()` learns or imputes changes."""

    name = "evenly"
    note = "`Imputer(random_state=0)` with the kinds of columns declared"
    color = "#000000"
    revision = 4
    still_shown = 3
    own = True

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        import pandas as pd

        from evenly import Imputer, Schema

        notes = {"commit": commit()}
        frame = pd.DataFrame({column.name: visible[:, j] for j, column in enumerate(columns)})
        imputer = Imputer(schema=Schema(columns=columns), random_state=0).fit(frame)
        return Filled(imputer.predict_cells(frame), notes | training(imputer), (imputer, frame))


class EvenlyInferred(Peer):
    """Impute the table as people have it, without a schema; cells left missing get the mean or mode and are recorded.

    Raise the revision together with that of `Evenly`.
    """

    name = "evenly-inferred"
    note = "`Imputer(random_state=0)` on texts and numbers, without a schema"
    color = "#cc79a7"
    revision = 4
    still_shown = 3
    own = True

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        from evenly import Imputer

        notes: Record = {"commit": commit()}
        frame = as_people_have_it(columns, visible)
        imputer = Imputer(random_state=0).fit(frame)
        values = as_codes(columns, imputer.transform(frame))
        left = np.isnan(values)
        kinds = {column.name: column.kind for column in imputer.schema_.columns}
        others = {
            column.name: [column.kind, kinds[column.name]] for column in columns if column.kind != kinds[column.name]
        }
        names = [column.name for j, column in enumerate(columns) if left[:, j].any()]
        notes |= {"other_kinds": others, "left_missing": names}
        return Filled(np.where(left, simple_values(columns, visible), values), notes | training(imputer))


def as_people_have_it(columns: list[Column], visible: Floats) -> Any:
    """Return a pandas frame with classes as texts (c0, c1, ...) and numbers as floats, as files with gaps are read."""
    import pandas as pd

    def texts(codes: Floats) -> list[str | None]:
        return [None if np.isnan(code) else f"c{code:.0f}" for code in codes]

    cells = {
        column.name: texts(visible[:, j]) if column.has_classes else visible[:, j] for j, column in enumerate(columns)
    }
    return pd.DataFrame(cells)


def as_codes(columns: list[Column], frame: Any) -> Floats:
    """Return the values of such a frame, with classes as codes again and NaN where a cell is missing."""
    cells = []
    for column in columns:
        own = frame[column.name]
        if column.has_classes:
            own = own.map({f"c{code}": float(code) for code in range(len(column.classes or ()))})
        cells.append(own.to_numpy(dtype=float, na_value=np.nan))
    return np.column_stack(cells)


def commit() -> str:
    """Return the commit that evenly is imported from, with a plus if its files differ, or else its version."""
    folder = Path(evenly.__file__).parent

    def ask(*words: str) -> str | None:
        with suppress(OSError):
            made = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
            return None if made.returncode else made.stdout.strip()
        return None

    # Installed packages may lie inside the repository of another project, where git does not track them.
    if ask("ls-files", "--error-unmatch", "__init__.py") is None:
        return evenly.__version__
    return f"{ask('rev-parse', '--short', 'HEAD')}{'+' if ask('status', '--porcelain', '.') else ''}"


def training(imputer: Any) -> Record:
    """Return for how many epochs the first network was trained, and how many networks there are."""
    return {"epochs": len(imputer.history_["elbo"]), "networks": len(imputer.ensemble_.networks)}
