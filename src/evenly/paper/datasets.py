"""The six data sets of the paper: read from a folder, or downloaded and coded in the same way; which cells to hide."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenly._support import TableError, require, write_text
from evenly.metrics import hide_share
from evenly.paper.originals import (
    ORIGINS,
    TOP_CODE,
    UCI,
    code_original,
    declared_kinds,
    first_code,
    lines_of,
    numbers_of,
)
from evenly.tables import CLASS_KINDS, Floats, Kind, Schema, build_table, infer_schema

Booleans = npt.NDArray[np.bool_]
Name = Literal["adult", "breast", "credit", "letter", "spam", "wine"]
NAMES: tuple[Name, ...] = get_args(Name)

QUICK = "synthetic"
"""The data set of quick runs, for readers without the data."""
N_ROWS = {name: origin.n_rows for name, origin in ORIGINS.items()} | {QUICK: 700}
"""Known without reading the data sets."""
PERCENTS = (10, 20, 50)
"""The shares of hidden cells in the paper."""
N_MASKS = 10
"""Runs of the paper for each share; a mask that is not given with the data set is generated."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table of numbers, the declared kinds of its columns, and which cells to hide.

    Attributes
    ----------
    values : array of rows x columns
        Classes by their codes; NaN is really missing.
    kinds : mapping of column to kind
        Of every column.
    classes : mapping of column to number
        How many classes are declared; a declared class need not occur.
    first_codes : mapping of column to number
        The code of the first class; the codes are whole numbers from there on.
    masks : mapping of percent to array of run x row x column
        True = known, and hidden to score on; empty where none were given.
    source : str
        Where it came from.
    published_ranges : mapping of column to (lowest, highest)
        By what the published error of a column divides, where that is not the range of its known cells.
    """

    name: str
    columns: list[str]
    values: Floats
    kinds: dict[str, Kind]
    classes: dict[str, int]
    first_codes: dict[str, int]
    masks: dict[int, Booleans] = field(default_factory=dict)
    source: str = ""
    published_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def known(self) -> Booleans:
        """Which cells are not really missing."""
        return np.isfinite(self.values)


# --- what is hidden -----------------------------------------------------------------------------------------------


def n_masks(name: str, percent: int, folder: str | Path | None = None) -> int:
    """Return how many masks are given with a data set, without reading its table; ten where they are generated.

    Examples
    --------
    >>> n_masks("synthetic", 20)
    10
    """
    places = (Path(place) for place in (folder, os.environ.get("EVENLY_DATA") or None, _cache()) if place is not None)
    path = next((place / name for place in places if (place / name).is_dir()), Path(name)) / "masks.npz"
    return len(_given_masks(path)[percent]) if path.is_file() else N_MASKS


def hidden_mask(data: DataSet, percent: int, run: int, seed: int = 0) -> Booleans:
    """Return which cells to hide in a run: as given with the data set, otherwise completely at random.

    A generated mask hides, in each column, that share of its known cells, rounded to a whole number; so every column
    is scored on as many cells in every run. The given masks drew each cell by itself, and differ in this.

    Parameters
    ----------
    percent : int
        Share of the known cells, more than 0 and less than 100.
    run : int
        From 1; a run beyond the given masks is generated.
    seed : int
        Of the generator, with the data set's name, the percent and the run; a given mask does not depend on it.

    Examples
    --------
    >>> data = synthetic()
    >>> hidden = hidden_mask(data, 20, run=1)
    >>> hidden.sum(axis=0)[:3], bool((hidden & ~data.known).any())
    (array([140, 140, 140]), False)
    """
    if not 0 < percent < 100:
        raise TableError(f"percent = {percent}", "expected more than 0 and less than 100")
    if run < 1:
        raise TableError(f"run = {run}", "expected 1 or more")
    if percent in data.masks and run <= len(data.masks[percent]):
        return np.array(data.masks[percent][run - 1])
    rng = np.random.default_rng([seed, zlib.crc32(data.name.encode()), percent, run])
    return hide_share(data.known, percent / 100, rng)


# --- as a table with a schema -------------------------------------------------------------------------------------


def schema(data: DataSet, *, hidden: Booleans | None = None, zeros: Literal["shift", "clip"] = "shift") -> Schema:
    """Return the declared kinds and classes as a schema, for `LipschitzScaler(schema=...)` and `as_table`.

    Only the shift of a positive column with zeros is taken from the cells: from those that are not hidden.

    Examples
    --------
    >>> print(schema(synthetic()))
    column     kind         likelihood   details            note
    real_1     real         normal                          declared
    real_2     real         normal                          declared
    real_3     real         normal                          declared
    amount_1   positive     log-normal                      declared
    amount_2   positive     log-normal                      declared
    amount_3   positive     log-normal                      declared
    count_1    count        poisson                         declared
    count_2    count        poisson                         declared
    answer     binary       bernoulli    0 | 1              declared
    group      categorical  categorical  1 | 2 | 3 | 4      declared
    """
    by_place = {f"x{j}": data.kinds[column] for j, column in enumerate(data.columns)}
    inferred = infer_schema(_visible(data, hidden), kinds=by_place, zeros=zeros).columns
    for column, name in zip(inferred, data.columns, strict=True):
        column.name = name
        if name in data.classes:
            first = data.first_codes[name]
            column.classes = list(range(first, first + data.classes[name]))
    return Schema(columns=inferred)


def as_table(data: DataSet, *, hidden: Booleans | None = None) -> Any:
    """Return the data set as a Polars frame with its column names; hidden and missing cells are null."""
    require("polars", "tool")
    values = _visible(data, hidden)
    return build_table({column: values[:, j] for j, column in enumerate(data.columns)}, "polars")


def _visible(data: DataSet, hidden: Booleans | None) -> Floats:
    return data.values if hidden is None else np.where(hidden, np.nan, data.values)


# --- reading --------------------------------------------------------------------------------------------------


def load_dataset(name: str, folder: str | Path | None = None) -> DataSet:
    """Load one of the paper's data sets: adult, breast, credit, letter, spam or wine.

    It is looked for in `folder`, in the folder that the environment variable EVENLY_DATA names, and in the user's
    cache; otherwise the original is downloaded from the UCI repository, coded, and kept in the cache. In a folder, it
    is in the subfolder of its name: `data.csv` and `kinds.csv`, and `masks.npz` if there are masks; or else the files
    of the UCI repository as they are.

    Examples
    --------
    >>> load_dataset("iris")
    Traceback (most recent call last):
    evenly.TableError: got the data set 'iris', but expected one of adult, breast, credit, letter, spam, wine.
    """
    if name not in ORIGINS:
        raise TableError(f"the data set {str(name)!r}", f"expected one of {', '.join(NAMES)}")
    for place in (folder, os.environ.get("EVENLY_DATA") or None):
        if place is None:
            continue
        if not Path(place).is_dir():
            raise TableError(f"the folder {place}", "there is none", f"name the folder that has {name}/data.csv")
        if (Path(place) / name).is_dir():
            found = _read_folder(name, Path(place) / name)
            if found is None:
                raise TableError(
                    f"the folder {Path(place) / name} without all its files",
                    f"expected data.csv and kinds.csv, or {' and '.join(ORIGINS[name].files)}",
                    "add them, or remove the folder to use the cache",
                )
            return found
    cached = _cache() / name
    if (cached / "data.csv").is_file() and (found := _read_folder(name, cached)):
        return found
    values = code_original(name, _fetch(name, cached))
    # The kinds first: a folder with data.csv but without kinds.csv is incomplete, whoever reads it meanwhile.
    write_text(cached / "kinds.csv", _kinds_text(ORIGINS[name].columns))
    write_text(cached / "data.csv", _data_text(ORIGINS[name].columns, values))
    found = _read_folder(name, cached)
    assert found is not None
    return found


def _cache() -> Path:
    return Path(require("pooch", "tool").os_cache("evenly"))


def _fetch(name: str, folder: Path) -> dict[str, bytes]:
    """Download the original files of a data set into a folder; those that are there already are kept."""
    origin, content = ORIGINS[name], {}
    for file, sha256 in origin.files.items():
        url = f"{UCI}/{origin.folder}/{file.replace(' ', '%20')}"
        try:
            path = require("pooch", "tool").retrieve(url, known_hash=f"sha256:{sha256}", fname=file, path=folder)
        except (OSError, ValueError) as error:  # no network, or another content; both by pooch's own words
            raise TableError(
                f"no {file} from {url} ({type(error).__name__}: {error})",
                f"the data set {name} is neither in a folder nor in the cache",
                f"set EVENLY_DATA to the folder that has {name}/data.csv, or put {file} into {folder}",
            ) from error
        content[file] = Path(path).read_bytes()
    return content


def _read_folder(name: str, folder: Path) -> DataSet | None:
    """Read a data set from its own folder; None if files are not there."""
    origin = ORIGINS[name]
    if (folder / "data.csv").is_file() and (folder / "kinds.csv").is_file():
        kinds, classes = _read_kinds(folder / "kinds.csv", list(origin.columns))
        values = _read_data(folder / "data.csv", list(origin.columns))
    elif all((folder / file).is_file() for file in origin.files):
        kinds, classes = declared_kinds(origin.columns)
        values = code_original(name, {file: (folder / file).read_bytes() for file in origin.files})
    else:
        return None
    first_codes = {column: first_code(origin.columns[column]) for column in classes}
    for column, n in classes.items():
        codes = values[:, list(origin.columns).index(column)]
        first, last = first_codes[column], first_codes[column] + n - 1
        wrong = codes[~np.isnan(codes) & ~np.isin(codes, np.arange(first, last + 1))]
        if len(wrong):
            raise TableError(
                f"the code {wrong[0]:g} in {folder}", f"expected {n} classes, {first} to {last}", column=column
            )
    masks = _read_masks(folder / "masks.npz", ~np.isnan(values)) if (folder / "masks.npz").is_file() else {}
    ranges = {"capital_gain": (0.0, float(TOP_CODE))} if name == "adult" else {}
    return DataSet(name, list(origin.columns), values, kinds, classes, first_codes, masks, str(folder), ranges)


def _read_data(path: Path, columns: Sequence[str]) -> Floats:
    header, *rows = lines_of(path.read_bytes(), path.name) or [[]]
    if header != list(columns):
        different = next((c for c, h in zip(columns, header, strict=False) if c != h), None)
        raise TableError(f"another header in {path}", f"expected {', '.join(columns)}", column=different)
    return numbers_of(rows, columns, path.name, missing="")


def _read_kinds(path: Path, columns: Sequence[str]) -> tuple[dict[str, Kind], dict[str, int]]:
    header, *rows = lines_of(path.read_bytes(), path.name) or [[]]
    if header != ["column", "kind", "classes"] or [row[0] for row in rows] != list(columns):
        raise TableError(
            f"other columns in {path}", f"expected column,kind,classes and a row each of {', '.join(columns)}"
        )
    kinds: dict[str, Kind] = {}
    classes: dict[str, int] = {}
    for column, kind, n in rows:
        if kind not in get_args(Kind) or (kind in CLASS_KINDS) != n.isdecimal():
            raise TableError(
                f"the kind {kind!r} with {n or 'no'} classes in {path}",
                f"expected a kind, and a number of classes with {', '.join(CLASS_KINDS)} only",
                column=column,
            )
        kinds[column] = kind  # type: ignore[assignment]  # checked above
        if n:
            classes[column] = int(n)
    return kinds, classes


def _given_masks(path: Path) -> dict[int, Any]:
    try:
        with np.load(path, allow_pickle=False) as content:
            return {percent: content[f"missing_{percent}"] for percent in PERCENTS}
    except (KeyError, OSError, EOFError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        expected = f"expected the arrays {', '.join(f'missing_{percent}' for percent in PERCENTS)}"
        raise TableError(f"{path} ({type(error).__name__})", expected) from None


def _read_masks(path: Path, known: Booleans) -> dict[int, Booleans]:
    """Read the masks of each percent. Some of them also mark cells that are really missing: nothing to score on."""
    masks = _given_masks(path)
    for percent, mask in masks.items():
        if mask.dtype != bool or mask.ndim != 3 or mask.shape[1:] != known.shape:
            raise TableError(
                f"missing_{percent} of {mask.dtype} and the shape {mask.shape} in {path}",
                f"expected booleans, run x {known.shape[0]} rows x {known.shape[1]} columns",
            )
    return {percent: mask & known for percent, mask in masks.items()}


def _kinds_text(columns: Mapping[str, str]) -> str:
    kinds, classes = declared_kinds(columns)
    return "column,kind,classes\n" + "".join(f"{c},{kind},{classes.get(c, '')}\n" for c, kind in kinds.items())


def _data_text(columns: Iterable[str], values: Floats) -> str:
    """Write the values so that they come back to the last bit."""
    lines = (",".join("" if v != v else f"{v:.0f}" if v == int(v) else repr(v) for v in row) for row in values.tolist())
    return "\n".join([",".join(columns), *lines]) + "\n"


# --- without any file -----------------------------------------------------------------------------------------


def synthetic(n_rows: int = N_ROWS[QUICK], seed: int = 0) -> DataSet:
    """Return a made-up table of the size of breast, with related columns of several kinds.

    Two hidden factors decide each row, up to noise. One cell in fifty of `amount_3` is really missing.

    Examples
    --------
    >>> synthetic().values.shape
    (700, 10)
    >>> bool(np.corrcoef(synthetic().values[:, :2].T)[0, 1] > 0.8)
    True
    """
    if n_rows < 1:
        raise TableError(f"n_rows = {n_rows}", "expected 1 or more")
    rng = np.random.default_rng([seed, zlib.crc32(b"synthetic")])
    one, two = rng.normal(size=(2, n_rows))
    noise = rng.normal(size=(6, n_rows))
    scores = 3.0 * np.stack([one, -one, two, -two]) + rng.gumbel(size=(4, n_rows))
    columns = {
        "real_1": 10.0 * one + 3.0 * noise[0],
        "real_2": 0.5 * one + 0.2 * noise[1] - 4.0,
        "real_3": 100.0 * (one - two) + 30.0 * noise[2],
        "amount_1": np.exp(one + 0.3 * noise[3]),
        "amount_2": 1000.0 * np.exp(0.5 * two + 0.2 * noise[4]),
        "amount_3": 0.01 * np.exp(0.7 * (one + two) + 0.3 * noise[5]),
        "count_1": rng.poisson(np.exp(1.0 + 0.6 * one)),
        "count_2": rng.poisson(np.exp(3.0 + 0.4 * two)),
        "answer": rng.random(n_rows) < 1.0 / (1.0 + np.exp(-4.0 * two)),
        "group": 1 + scores.argmax(axis=0),
    }
    columns["amount_3"] = np.where(rng.random(n_rows) < 0.02, np.nan, columns["amount_3"])
    kinds = dict(zip(columns, ["real"] * 3 + ["positive"] * 3 + ["count"] * 2, strict=False))
    declared = kinds | {"answer": "binary 0..1", "group": "categorical 1..4"}
    values = np.column_stack(list(columns.values())).astype(np.float64)
    first_codes = {"answer": 0, "group": 1}
    return DataSet(
        "synthetic", list(columns), values, *declared_kinds(declared), first_codes, source=f"made up, seed {seed}"
    )


def kinds_of(name: str) -> dict[str, Kind]:
    """Return the declared kinds of a data set's columns, without reading it.

    Examples
    --------
    >>> kinds_of("wine")["quality"], kinds_of("synthetic")["answer"]
    ('count', 'binary')
    """
    return synthetic().kinds if name == QUICK else declared_kinds(ORIGINS[name].columns)[0]


def load(name: str, folder: str | Path | None = None) -> DataSet:
    """Return a data set of the paper, or the synthetic one."""
    return synthetic() if name == QUICK else load_dataset(name, folder)
