"""The imputers that `benchmarks/peers.py` compares, one class each: to add one, write its class here.

A class registers itself by its name and says all that the benchmark and `docs/make_peers.py` need to know of it.
Packages are imported in `impute` only, so that the page can be made without them.
"""

from __future__ import annotations

import importlib.util
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
    package: ClassVar[str | None] = None
    """The package to import, if it is not among evenly's own requirements; without it the peer is not run."""
    revision: ClassVar[int] = 1
    """Raise it when the peer gives other results than before: older records are then left out and run again."""
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
    def installed(cls) -> bool:
        """Return whether the package that it needs can be imported."""
        return cls.package is None or importlib.util.find_spec(cls.package) is not None

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


# --- gradient boosting --------------------------------------------------------------------------------------------


class MiceForest(Peer):
    name = "miceforest"
    note = "LightGBM; `mean_match_candidates=0`, so that numbers are its predictions, not cells of similar rows"
    color = "#f0e442"
    package = "miceforest"

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        import miceforest as mf
        import pandas as pd

        frame = pd.DataFrame({f"x{j}": visible[:, j] for j in range(visible.shape[1])})
        for j, column in enumerate(columns):
            if column.has_classes:
                frame[f"x{j}"] = frame[f"x{j}"].astype("Int64").astype("category")
        kernel = mf.ImputationKernel(frame, num_datasets=1, random_state=0, mean_match_candidates=0)
        kernel.mice(5)
        return Filled(kernel.complete_data(0).astype(float).to_numpy())


class HyperImpute(Peer):
    name = "hyperimpute"
    note = "HyperImpute, on class codes as if they were numbers"
    color = "#0072b2"
    package = "hyperimpute"

    def impute(self, columns: list[Column], visible: Floats) -> Filled:
        import pandas as pd
        from hyperimpute.plugins.imputers import Imputers

        frame = pd.DataFrame(visible)
        return Filled(to_classes(columns, np.asarray(Imputers().get("hyperimpute").fit_transform(frame), float)))


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
    revision = 3
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
    revision = 3
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
