"""The imputers that `benchmarks/peers.py` compares.

What a peer needs is imported when it runs, so that this module can be imported without any of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

import evenly
from evenly.metrics import mean_or_mode
from evenly.tables import Column

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Record = dict[str, Any]


@dataclass(frozen=True)
class Filled:
    """A table that a peer filled, what to record of it, and the imputer with its table if it knows distributions."""

    values: Floats
    notes: Record = field(default_factory=dict)
    fitted: tuple[Any, Any] | None = None


def evenly_imputer(columns: list[Column], visible: Floats) -> Filled:
    import pandas as pd

    from evenly import Imputer, Schema

    notes = {"commit": commit()}
    frame = pd.DataFrame({column.name: visible[:, j] for j, column in enumerate(columns)})
    imputer = Imputer(schema=Schema(columns=columns), random_state=0).fit(frame)
    return Filled(imputer.predict_cells(frame), notes | training(imputer), (imputer, frame))


def evenly_inferred(columns: list[Column], visible: Floats) -> Filled:
    """Impute the table as people have it, without a schema; cells left missing get the mean or mode, and are named."""
    from evenly import Imputer

    notes: Record = {"commit": commit()}
    frame = as_people_have_it(columns, visible)
    imputer = Imputer(random_state=0).fit(frame)
    values = as_codes(columns, imputer.transform(frame))
    left = np.isnan(values)
    simple = mean_or_mode(columns, visible, np.zeros(visible.shape, bool))
    found = {column.name: column.kind for column in imputer.schema_.columns}
    others = {column.name: [column.kind, found[column.name]] for column in columns if column.kind != found[column.name]}
    names = [column.name for j, column in enumerate(columns) if left[:, j].any()]
    notes |= {"other_kinds": others, "left_missing": names}
    return Filled(np.where(left, simple, values), notes | training(imputer))


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

    # A folder of packages may lie in a repository of something else: then git does not know the files.
    if ask("ls-files", "--error-unmatch", "__init__.py") is None:
        return evenly.__version__
    return f"{ask('rev-parse', '--short', 'HEAD')}{'+' if ask('status', '--porcelain', '.') else ''}"


def training(imputer: Any) -> Record:
    """Return how many epochs the first network was trained for, until it stopped, and how many networks there are."""
    return {"epochs": len(imputer.history_["elbo"]), "networks": len(imputer.ensemble_.networks)}


def to_classes(columns: list[Column], predicted: Floats) -> Floats:
    """Bring numbers that stand for classes to the nearest one."""
    for j, column in enumerate(columns):
        if column.has_classes:
            predicted[:, j] = np.clip(np.rint(predicted[:, j]), 0, len(column.classes or ()) - 1)
    return predicted


def iterative(columns: list[Column], visible: Floats) -> Filled:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401  (the import is the switch)
    from sklearn.impute import IterativeImputer

    return Filled(to_classes(columns, IterativeImputer(random_state=0).fit_transform(visible)))


def nearest(columns: list[Column], visible: Floats) -> Filled:
    """Average the five nearest rows: numbers and ordered classes standardized, other classes one-hot, most votes win.

    Two different classes are as far from each other, 2, as the squares of two standardized numbers on average.
    """
    from sklearn.impute import KNNImputer

    mean, std = np.nanmean(visible, 0), np.nanstd(visible, 0)
    std = np.where(std > 0.0, std, 1.0)
    parts = [
        one_hot(visible[:, j], len(column.classes or ()))
        if column.kind in ("binary", "categorical")
        else (visible[:, j : j + 1] - mean[j]) / std[j]
        for j, column in enumerate(columns)
    ]
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    filled = np.split(KNNImputer(n_neighbors=5).fit_transform(np.hstack(parts)), ends, axis=1)
    found = [part.argmax(1) if part.shape[1] > 1 else part[:, 0] * std[j] + mean[j] for j, part in enumerate(filled)]
    return Filled(to_classes(columns, np.column_stack(found).astype(float)))


def one_hot(codes: Floats, n: int) -> Floats:
    """Return a column for each class, two at least; rows without a class are missing in all of them."""
    rows: Floats = (codes[:, None] == np.arange(max(n, 2))).astype(float)
    rows[np.isnan(codes)] = np.nan
    return rows


def missforest(
    columns: list[Column],
    visible: Floats,
    n_trees: int = 100,
    most: int = 10,
    of_numbers: Mapping[str, Any] = MappingProxyType({}),
) -> Filled:
    """Forest by forest, the columns with fewest missing cells first, until the imputed cells stop coming closer.

    The stop is that of the R package: as soon as neither numbers nor classes moved less than in the round before, the
    table of the round before is the result; after `most` rounds the last one is.

    Parameters
    ----------
    of_numbers : mapping
        Settings of the forests of numbers; scikit-learn's defaults look at every column at every split.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    gone = np.isnan(visible)
    classes = np.array([column.has_classes for column in columns])
    filled = np.where(gone, mean_or_mode(columns, visible, np.zeros(visible.shape, bool)), visible)
    order = [j for j in np.argsort(gone.sum(0), kind="stable") if gone[:, j].any()]
    last = np.array([np.inf, np.inf])
    for i in range(most):
        before = filled.copy()
        for j in order:
            forest = (
                RandomForestClassifier(n_trees, n_jobs=-1, random_state=0)
                if classes[j]
                else RandomForestRegressor(n_trees, n_jobs=-1, random_state=0, **of_numbers)
            )
            others = np.delete(filled, j, axis=1)
            forest.fit(others[~gone[:, j]], filled[~gone[:, j], j])
            filled[gone[:, j], j] = forest.predict(others[gone[:, j]])
        moved = how_far(before, filled, classes)
        if i + 1 < most and not (moved < last).any():
            return Filled(before)
        last = moved
    return Filled(filled)


def how_far(before: Floats, after: Floats, classes: Flags) -> Floats:
    """Return by how much the numbers of a table moved, relative to all of them, and the share of classes that did.

    A table without one of the two has not moved in it: 0 is never less than the 0 of the round before.
    """
    numbers = after[:, ~classes]
    squares = ((numbers - before[:, ~classes]) ** 2).sum() / max((numbers**2).sum(), 1e-300)
    changed = (after != before)[:, classes]
    return np.array([squares, changed.mean() if changed.size else 0.0])


LIKE_R = MappingProxyType({"max_features": "sqrt", "min_samples_split": 6})
"""The R package's forests of numbers: mtry = floor(sqrt(p)), and no node of 5 cells (its nodesize) or fewer is split.

Its forests of classes are scikit-learn's default.
"""


def miceforest(columns: list[Column], visible: Floats) -> Filled:
    import miceforest as mf
    import pandas as pd

    frame = pd.DataFrame({f"x{j}": visible[:, j] for j in range(visible.shape[1])})
    for j, column in enumerate(columns):
        if column.has_classes:
            frame[f"x{j}"] = frame[f"x{j}"].astype("Int64").astype("category")
    kernel = mf.ImputationKernel(frame, num_datasets=1, random_state=0, mean_match_candidates=0)
    kernel.mice(5)
    return Filled(kernel.complete_data(0).astype(float).to_numpy())


def hyperimpute(columns: list[Column], visible: Floats) -> Filled:
    import pandas as pd
    from hyperimpute.plugins.imputers import Imputers

    frame = pd.DataFrame(visible)
    return Filled(to_classes(columns, np.asarray(Imputers().get("hyperimpute").fit_transform(frame), float)))


def average(columns: list[Column], visible: Floats) -> Filled:
    return Filled(mean_or_mode(columns, visible, np.zeros(visible.shape, bool)))


PEERS: dict[str, Callable[[list[Column], Floats], Filled]] = {
    "mean-or-mode": average,
    "iterative": iterative,
    "knn": nearest,
    "miceforest": miceforest,
    "hyperimpute": hyperimpute,
    "missforest": missforest,
    "missforest-sqrt": partial(missforest, of_numbers=LIKE_R),
    "evenly": evenly_imputer,
    "evenly-inferred": evenly_inferred,
}
