"""The cells of the paper's tables from records of runs, and how far they agree with the published ones."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.metrics import PROTOCOLS, mean_errors
from evenly.models import PAPERS, published_epochs
from evenly.paper.datasets import N_ROWS
from evenly.scaling import METHODS
from evenly.tables import Column

Record = Mapping[str, Any]
Key = tuple[str, str, str, str]

KINDS = ("discrete", "continuous", "all")
MEAN_OR_MODE = "mean-or-mode"
"""The row of the simple imputation: the mean of numbers, the most frequent class."""
FLAWED = ("adult", "credit", "letter")
"""Data sets with columns of more than two classes: the published code cannot learn these without a trick."""
STDS, SHARE = 2.0, 0.1
"""A cell agrees within so many published standard deviations, or within this share of the published mean."""
NONE = "–"
ROUNDING = 1e-9
"""Decimal numbers at the very edge still agree: 0.11 is within 10 % of 0.1."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: the mean over runs of the mean error of a kind's columns."""

    dataset: str
    model: str
    method: str
    kind: str
    mean: float
    std: float | None
    """Over the runs, with n - 1; None for a single one."""
    n: int
    epochs: int = 0
    """0 if nothing is trained."""

    @property
    def key(self) -> Key:
        """The cell's name within a table."""
        return self.dataset, self.model, self.method, self.kind


@dataclass(frozen=True)
class Published:
    """A cell as the paper prints it; the mean may be infinite, and then has no standard deviation."""

    mean: float
    std: float | None


@cache
def published_cells() -> dict[int, dict[Key, Published]]:
    """Return the paper's three tables, by percentage.

    Examples
    --------
    >>> published_cells()[20]["breast", "vae", "std-none", "discrete"]
    Published(mean=0.183, std=0.004)
    """
    source = resources.files("evenly") / "data" / "paper_tables.csv"
    tables: dict[int, dict[Key, Published]] = {}
    for row in csv.DictReader(source.read_text(encoding="utf-8").splitlines()):
        cell = Published(float(row["mean"]), float(row["std"]) if row["std"] else None)
        table = tables.setdefault(int(row["missing_percent"]), {})
        table[row["dataset"], row["model"], row["method"], row["kind"]] = cell
    return tables


# --- from records to cells ----------------------------------------------------------------------------------------


def percents(records: Sequence[Record], wanted: Sequence[int] | None = None) -> list[int]:
    """Return the percentages of finished runs, or those wanted among them."""
    there = sorted({int(one["run"]["percent"]) for one in records if "failed" not in one})
    if not there:
        got = f"{len(records)} records of runs that failed" if records else "no records"
        raise TableError(got, "expected some of finished runs", "run `evenly paper run` first")
    for percent in wanted or ():
        if percent not in there:
            raise TableError(f"no finished run with {percent} % hidden", f"expected {' or '.join(map(str, there))}")
    return list(dict.fromkeys(wanted or there))


def summarize(records: Sequence[Record], percent: int, protocol: str) -> list[Cell]:
    """Return the cells of a table: means and standard deviations over masks and seeds.

    Under the honest protocol methods are compared at equal epochs (`comparable`), and there are cells of the method
    `mean-or-mode` too, over the masks of the same runs. Under the as-published one each cell stands beside a published
    one, and its longest runs count. Failed runs are left out.

    Examples
    --------
    >>> run = {"dataset": "wine", "percent": 20, "model": "vae", "method": "std-none", "seed": 0, "epochs": 9}
    >>> record = {"run": run | {"mask": 1}, "kinds": ["real", "binary"], "as_published": [0.2, None]}
    >>> summarize([record, record | {"run": run | {"mask": 2}, "as_published": [0.4, None]}], 20, "as-published")[0]
    Cell(dataset='wine', model='vae', method='std-none', kind='continuous', mean=0.3..., std=0.1414..., n=2, epochs=9)
    >>> summarize([], 20, "honest")
    []
    """
    if protocol not in PROTOCOLS:
        raise TableError(f"protocol {protocol!r}", f"expected one of {', '.join(PROTOCOLS)}")
    errors: dict[Key, list[float]] = {}
    epochs: dict[tuple[str, str, str], int] = {}
    simple: dict[tuple[str, str, int], dict[str, float]] = {}
    for record in counted(records, percent, protocol):
        run = record["run"]
        block = run["dataset"], run["model"]
        epochs[*block, run["method"]] = run["epochs"]
        for kind, error in _means(record, protocol.replace("-", "_")).items():
            errors.setdefault((*block, run["method"], kind), []).append(error)
        if protocol == "honest" and (*block, run["mask"]) not in simple:  # the same in all runs with this mask
            simple[*block, run["mask"]] = _means(record, "mean_or_mode")
    for (dataset, model, _), means in simple.items():
        for kind, error in means.items():
            errors.setdefault((dataset, model, MEAN_OR_MODE, kind), []).append(error)
    cells = [
        Cell(
            *key,
            statistics.fmean(some),
            statistics.stdev(some) if len(some) > 1 else None,
            len(some),
            epochs.get(key[:3], 0),
        )
        for key, some in errors.items()
    ]
    return sorted(cells, key=lambda cell: place_of(cell.key))


def counted(records: Sequence[Record], percent: int, protocol: str) -> list[Record]:
    """Return the runs of a table: those of equal epochs or, as published, the longest of each cell."""
    some = [one for one in records if one["run"]["percent"] == percent and is_usual(one)]
    if protocol == "honest":
        return comparable(some)
    done = [one for one in some if "failed" not in one]
    most: dict[tuple[str, ...], int] = {}
    for run in (one["run"] for one in done):
        most[_cell(run)] = max(most.get(_cell(run), 0), run["epochs"])
    return [one for one in done if one["run"]["epochs"] == most[_cell(one["run"])]]


def is_usual(record: Record) -> bool:
    """Whether a run has the paper's optimizer and preset: others are compared among themselves."""
    run = record["run"]
    return bool(run.get("optimizer", "adam") == "adam" and run.get("preset", "paper") == "paper")


def comparable(records: Iterable[Record]) -> list[Record]:
    """Return the finished runs that may stand side by side: methods are compared at equal epochs.

    Of a data set, a model and a share of hidden cells these are the runs of as many epochs as most methods have; if two
    numbers of epochs have as many methods, the longer ones.

    Examples
    --------
    >>> shared = {"dataset": "wine", "model": "vae", "percent": 20}
    >>> some = [("std-none", 10), ("lip-none", 10), ("lip-none", 300)]
    >>> records = [{"run": {**shared, "method": method, "epochs": epochs}} for method, epochs in some]
    >>> [record["run"]["epochs"] for record in comparable([*records, {**records[2], "failed": "..."}])]
    [10, 10]
    """
    done = [one for one in records if "failed" not in one and is_usual(one)]
    methods: dict[tuple[str, str, int], dict[int, set[str]]] = {}
    for run in (one["run"] for one in done):
        methods.setdefault(_block(run), {}).setdefault(run["epochs"], set()).add(run["method"])
    most = {block: max((len(own), epochs) for epochs, own in some.items())[1] for block, some in methods.items()}
    return [one for one in done if one["run"]["epochs"] == most[_block(one["run"])]]


def _block(run: Mapping[str, Any]) -> tuple[str, str, int]:
    return run["dataset"], run["model"], run["percent"]


def _cell(run: Mapping[str, Any]) -> tuple[str, ...]:
    return run["dataset"], run["model"], run["method"]


def _means(record: Record, key: str) -> dict[str, float]:
    """Return a record's mean error by kind of the paper's tables; null is a column without a scored cell."""
    try:
        columns = [Column(name=str(j), kind=kind) for j, kind in enumerate(record["kinds"])]
        return mean_errors(columns, np.array(record[key], np.float64))
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(
            f"a record of {record['run']} without proper {key!r}", "expected one error a column"
        ) from error


def place_of(key: Key) -> tuple[Any, ...]:
    """Return a key to sort cells by: data sets as in the paper, then others; methods and models in their order."""
    datasets = list(dict.fromkeys(dataset for table in published_cells().values() for dataset, *_ in table))
    orders = datasets, PAPERS, (*METHODS, MEAN_OR_MODE), KINDS
    dataset, model, method, kind = (
        (order.index(part) if part in order else len(order), part) for part, order in zip(key, orders, strict=True)
    )
    return dataset, method, kind, model


def best(cells: Iterable[Cell]) -> set[Key]:
    """Return the cells with the least error of their data set, model and kind, as printed.

    No cell is best alone, and none is best of cells that were trained for different numbers of epochs.
    """
    blocks: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        blocks.setdefault((cell.dataset, cell.model, cell.kind), []).append(cell)
    found = set()
    for block in blocks.values():
        least = min(block, key=lambda cell: cell.mean)
        trained = {cell.epochs for cell in block if cell.method != MEAN_OR_MODE}
        if len(block) > 1 and len(trained) == 1:
            found |= {cell.key for cell in block if number(cell.mean) == number(least.mean)}
    return found


def number(value: float | None) -> str:
    """Return an error as printed, with three decimals as in the paper.

    Examples
    --------
    >>> number(0.0456), number(2.5e6), number(float("inf")), number(None)
    ('0.046', '2.5e+06', 'inf', '–')
    """
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.3f}" if abs(value) < 1000 or math.isinf(value) else f"{value:.3g}"


# --- agreement ----------------------------------------------------------------------------------------------------


def in_stds(cell: Cell | None, published: Published | None) -> float | None:
    """Return ours - published in published standard deviations; None where that has no meaning."""
    if cell is None or published is None or not published.std or math.isinf(published.mean):
        return None
    return (cell.mean - published.mean) / published.std


def published_beside(cells: Mapping[Key, Cell], percent: int) -> dict[Key, Published]:
    """Return the published cells of the data sets and the models that we have."""
    datasets, models = {key[0] for key in cells}, {key[1] for key in cells}
    table = published_cells().get(percent, {})
    return {key: cell for key, cell in table.items() if key[0] in datasets and key[1] in models}


@dataclass(frozen=True)
class Comparison:
    """One of our as-published cells and the published one."""

    percent: int
    ours: Cell
    published: Published

    @property
    def difference(self) -> float:
        """Ours - published."""
        return self.ours.mean - self.published.mean

    @property
    def within_share(self) -> bool:
        """Whether the difference is small beside the published mean."""
        return math.isfinite(self.difference) and abs(self.difference) <= SHARE * self.published.mean + ROUNDING

    @property
    def within_stds(self) -> bool:
        """Whether the difference is small beside the published standard deviation."""
        return math.isfinite(self.difference) and abs(self.difference) <= STDS * (self.published.std or 0.0) + ROUNDING

    @property
    def agrees(self) -> bool:
        """Whether the cells agree by one of the two."""
        return self.within_stds or self.within_share

    @property
    def says_little(self) -> bool:
        """Whether the cells agree only because two published standard deviations reach from the mean to 0."""
        return self.agrees and not self.within_share and STDS * (self.published.std or 0.0) >= self.published.mean


def cause_of(one: Comparison) -> str:
    """Return why a cell may differ from the published one, as far as the runs say."""
    dataset, _, _, kind = one.ours.key
    if one.ours.epochs < published_epochs(N_ROWS[dataset]):
        return "fewer epochs than published"
    if dataset == "adult" and kind == "continuous":
        return "capital gains of 99,999 are missing here"
    return "not explained" if one.ours.n > 1 else "a single run"


@dataclass(frozen=True)
class Agreement:
    """How our as-published cells compare with the published ones."""

    sound: list[Comparison]
    """Where the published code is sound: these count."""
    flawed: list[Comparison]
    """Where it is flawed: these do not."""
    infinite: list[Comparison]
    """Sound, but published as `inf`: these do not count either."""
    absent: int
    """Sound, finite published cells without a run of ours."""

    def counts(self, group: Callable[[Comparison], str]) -> dict[str, tuple[int, int]]:
        """Return, by group, how many cells agree and how many there are."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.sound:
            agreeing, n = found.get(group(one), (0, 0))
            found[group(one)] = agreeing + one.agrees, n + 1
        return found


def is_sound(dataset: str, method: str) -> bool:
    """Whether the published code could learn every column of a data set under a method."""
    return dataset not in FLAWED or not method.endswith("-none")


def agreement(records: Sequence[Record], wanted: Sequence[int] | None = None) -> Agreement:
    """Compare our as-published cells with the published ones, where there are both."""
    sound: list[Comparison] = []
    flawed: list[Comparison] = []
    infinite: list[Comparison] = []
    absent = 0
    for percent in percents(records, wanted):
        cells = {cell.key: cell for cell in summarize(records, percent, "as-published")}
        table = published_cells().get(percent, {})
        for key in sorted(table, key=place_of):
            counts = is_sound(key[0], key[2])
            finite = math.isfinite(table[key].mean)
            if key in cells:
                group = flawed if not counts else sound if finite else infinite
                group.append(Comparison(percent, cells[key], table[key]))
            else:
                absent += counts and finite
    if not (sound or flawed or infinite):
        names = ", ".join(sorted({key[0] for table in published_cells().values() for key in table}))
        raise TableError("no run of a published cell", f"expected records of {names} with 10, 20 or 50 % hidden")
    return Agreement(sound, flawed, infinite, absent)
