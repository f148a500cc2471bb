"""Evenly's imputer against those that people use today: error on hidden cells, time, peak memory, calibration.

Run: python benchmarks/peers.py [--data DIR] [--out FILE] [--dataset wine ...] [--peer missforest ...] [--masks 1-3]
[--percents 10 20] [--mechanism mcar ...] [--limit 600]. Every run has its own process and becomes one line of FILE
(JSON), which says why if it failed or took more CPU seconds than the limit; runs that FILE already has from the same
code (`REVISIONS`) are not repeated. At the end it prints the ratio of evenly's error to
that of the best peer on the same cells. All peers get the same cells and are scored by `evenly.metrics.column_errors`,
numbers without rounding.

The peers are the classes in `peer_imputers.py`; packages of some are installed into environments of their own
(`peer_environments.py`). Besides the paper's
data sets there are small tables that need no download: --dataset iris cultivars diabetes tumours heart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from meter import Meter, cpu_seconds
from peer_environments import Failed
from peer_imputers import PEERS, Flags, Floats, Record, own_names

import evenly
from evenly.metrics import baseline_errors, column_errors, hide_by_rank, mean_or_mode
from evenly.paper.datasets import NAMES, DataSet, hidden_mask, load_dataset, schema
from evenly.tables import CLASS_KINDS, Column

MECHANISMS = ("mcar", "mar", "mnar")
LEVELS = (0.5, 0.8, 0.9)
KEYS = ("dataset", "percent", "mask", "mechanism", "peer")
"""These name a run; one that was made by the same code need not be made again."""
REVISIONS = {"mar": 2, "mnar": 2}
"""Revisions of the mechanisms, 1 where none is given; those of the peers stand in their classes (`Peer.revision`).

Raise a mechanism's when it hides other cells. Records have the revision of both, or none, which means 1 and 1. Those of
other revisions stay in the file, are left out of every comparison, and are run again.
"""


def revision(one: Mapping[str, Any], *, before: bool = False) -> str:
    """Return the revision of a run if it were made now: that of its mechanism and that of its peer.

    Or that of the peer before, if its records are still shown.
    """
    peer = PEERS.get(one["peer"])
    of_peer = 1 if peer is None else peer.still_shown if before else peer.revision
    return f"{REVISIONS.get(one['mechanism'], 1)}.{of_peer}"


def current(records: Iterable[Record]) -> list[Record]:
    """Return the records of runs with a result that were made by the code as it is now."""
    return [one for one in _of_now(records) if "reason" not in one]


def shown(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """Return the records to show, and which of them are of a revision before: those that were not made again yet."""
    new = current(records)
    made = {tuple(one[key] for key in KEYS) for one in new}
    old = [
        one
        for one in records
        if "reason" not in one
        and one.get("revision") == revision(one, before=True)
        and tuple(one[key] for key in KEYS) not in made
    ]
    return new + old, old


def failures(records: Iterable[Record]) -> list[Record]:
    """Return the records of runs without a result; each has the reason."""
    return [one for one in _of_now(records) if "reason" in one]


def _of_now(records: Iterable[Record]) -> list[Record]:
    return [one for one in records if one.get("revision", "1.1") == revision(one)]


# --- small tables that need no download ---------------------------------------------------------------------------

BUNDLED = {"iris": "load_iris", "cultivars": "load_wine", "diabetes": "load_diabetes", "tumours": "load_breast_cancer"}
"""The functions of scikit-learn that load them; `cultivars` is its wine data, which is not the paper's."""
SMALL = (*BUNDLED, "heart")


def load_small(name: str) -> DataSet:
    """Load a small table, with the kinds that evenly infers from it."""
    if name == "heart":
        frame = evenly.load_heart()
    else:
        from sklearn import datasets

        found = getattr(datasets, BUNDLED[name])(as_frame=True)
        frame = found.frame
        if hasattr(found, "target_names"):
            frame = frame.assign(target=[str(found.target_names[code]) for code in frame["target"]])
    columns = evenly.infer_schema(frame).columns
    values = np.empty((len(frame), len(columns)))
    for j, column in enumerate(columns):
        cells = frame[column.name]
        codes = {cell: float(code) for code, cell in enumerate(column.classes or ())}
        values[:, j] = (cells.map(codes) if column.has_classes else cells).to_numpy(dtype=float, na_value=np.nan)
    classes = {column.name: len(column.classes or ()) for column in columns if column.has_classes}
    kinds = {column.name: column.kind for column in columns}
    return DataSet(name, [column.name for column in columns], values, kinds, classes, dict.fromkeys(classes, 0))


# --- which cells are hidden ---------------------------------------------------------------------------------------


def hide(data: DataSet, percent: int, run: int, mechanism: str) -> Flags:
    """Hide cells: completely at random, by the value of another column, or by the cell's own value.

    In `mar` one column, the driver, is never hidden, and the probability that another cell is hidden grows linearly
    with the row's rank in the driver, from 1/3 of the share asked for to 5/3. In `mnar` it grows in the same way with
    the cell's own rank. Every column but the driver has the share asked for of its known cells hidden, up to rounding.
    """
    if mechanism == "mcar":
        return hidden_mask(data, percent, run)
    name = zlib.crc32(data.name.encode())
    rng = np.random.default_rng([run, percent, name, MECHANISMS.index(mechanism)])
    driver = find_driver(data) if mechanism == "mar" else None
    return hide_by_rank(data.values, percent / 100, rng, driver=driver)


def find_driver(data: DataSet) -> int:
    """Return the first column of numbers without missing cells, or else the first of numbers, or else the first.

    Numbers, because classes have no order to rank rows by.
    """
    numeric = np.array([data.kinds[column] not in CLASS_KINDS for column in data.columns])
    return int(np.argmax(2 * numeric + (numeric & data.known.all(0))))


# --- one run ------------------------------------------------------------------------------------------------------


def codes_of(data: DataSet, columns: list[Column]) -> Floats:
    """Return the values with classes as codes from 0, and make these codes the classes of the columns."""
    values = data.values.copy()
    for j, column in enumerate(columns):
        if column.has_classes:
            first = data.first_codes[data.columns[j]]
            values[:, j] -= first
            column.classes = list(range(len(column.classes or ())))
    return values


def scored_mean(errors: Floats) -> float:
    """Return the mean over the columns with hidden cells: the driver of `mar` has none."""
    return float(errors[~np.isnan(errors)].mean())


def losses(column: Column, truth: Floats, predicted: Floats) -> Floats:
    """Return the loss of every cell: whether a class is wrong, or the squared error of a number."""
    return (truth != predicted).astype(float) if column.has_classes else (truth - predicted) ** 2


def clearly_worse(columns: list[Column], truth: Floats, predicted: Floats, hidden: Flags) -> list[str]:
    """Name the columns that are worse than the mean or mode by more than 2 % and two bootstrap standard errors.

    Where the mean or mode makes no error at all, any error is worse.
    """
    simple = mean_or_mode(columns, truth, hidden)
    rng = np.random.default_rng(0)
    found = []
    for j, column in enumerate(columns):
        scored = hidden[:, j] & ~np.isnan(truth[:, j])
        own, other = (losses(column, truth[scored, j], table[scored, j]) for table in (predicted, simple))
        if not len(own):
            continue
        root = (lambda x: x) if column.has_classes else np.sqrt
        error, base = root(own.mean()), root(other.mean())
        if not base:
            found += [f"{column.name} (no error by the mean or mode)"] if error else []
            continue
        drawn = rng.integers(len(own), size=(200, len(own)))
        # Of the difference, not of the ratio: where the mode is rarely wrong, it makes no error in some samples.
        spread = (root(own[drawn].mean(1)) - root(other[drawn].mean(1))).std()
        if error > 1.02 * base and error - base > 2.0 * spread:
            found.append(f"{column.name} {error / base - 1.0:+.1%}")
    return found


def calibration(columns: list[Column], truth: Floats, hidden: Flags, imputer: Any, frame: Any) -> Record:
    """Return the coverage of central intervals, their width, and how far off the probabilities of classes are."""
    found = imputer.distribution(frame)
    rng = np.random.default_rng(0)
    covered, widths, off = [], [], []
    curve = np.zeros((10, 3))
    for j, column in enumerate(columns):
        scored = hidden[:, j] & ~np.isnan(truth[:, j])
        if not scored.any():
            continue
        if column.name in imputer.bins_:
            shares, bins = found[column.name].parameters["probabilities"][scored], imputer.bins_[column.name]
            away = np.abs(bins.ranks(shares, truth[scored, j], rng) - 0.5)
            covered.append([(away <= 0.5 * level).mean() for level in LEVELS])
            width = bins.quantiles(shares, 0.95) - bins.quantiles(shares, 0.05)
            widths.append(width.mean() / (np.nanmax(truth[:, j]) - np.nanmin(truth[:, j])))
        elif column.has_classes and column.name in found:
            sure = found[column.name].probabilities[scored]
            best, right = sure.max(1), sure.argmax(1) == truth[scored, j]
            place = np.minimum((best * 10).astype(int), 9)
            own = np.array([[(at := place == k).sum(), best[at].sum(), right[at].sum()] for k in range(10)], float)
            off.append(np.abs(own[:, 1] - own[:, 2]).sum() / max(len(best), 1))
            curve += own
    mean = np.mean(covered, 0).tolist() if covered else []
    return {
        "covered": mean,
        "width": float(np.mean(widths)) if widths else None,
        "class_off": off and float(np.mean(off)),
        # By tenths of the imputed class's probability, over all columns: cells, mean probability, share that is right.
        "reliability": [[int(n), round(p / n, 4), round(r / n, 4)] for n, p, r in curve if n],
    }


def run(settings: Record, folder: str | None) -> Record:
    """Hide cells of a data set, let a peer impute them, and return the record of it."""
    name, peer = settings["dataset"], PEERS[settings["peer"]]
    data = load_small(name) if name in SMALL else load_dataset(name, folder)
    hidden = hide(data, settings["percent"], settings["mask"], settings["mechanism"])
    columns = list(schema(data, hidden=hidden).columns)
    truth = codes_of(data, columns)
    visible = np.where(hidden, np.nan, truth)
    if reason := peer.why_not(columns, visible):
        raise ValueError(reason)
    with warnings.catch_warnings(), Meter() as meter:
        warnings.simplefilter("ignore")
        filled = peer().impute(columns, visible.copy())
    errors = column_errors(columns, truth, filled.values, hidden)
    record = {
        **settings,
        "revision": revision(settings),
        "error": scored_mean(errors),
        "errors": [None if np.isnan(error) else round(error, 6) for error in errors.tolist()],
        "baseline": scored_mean(baseline_errors(columns, truth, hidden)),
        "worse": clearly_worse(columns, truth, filled.values, hidden),
        **meter.costs(),
        **filled.notes,
    }
    return record | (calibration(columns, truth, hidden, *filled.fitted) if filled.fitted else {})


# --- all of them --------------------------------------------------------------------------------------------------


def numbers(text: str) -> list[int]:
    """Return the numbers of a range such as 1-3, or of a single one."""
    low, _, high = text.partition("-")
    return list(range(int(low), int(high or low) + 1))


def summary(records: Sequence[Record]) -> list[str]:
    """Return a line for each mechanism, share, data set and mask: evenly's error as a ratio to the best peer's."""
    cells: dict[tuple[Any, ...], dict[str, float]] = {}
    for one in current(records):
        key = (one["mechanism"], one["percent"], one["dataset"], one["mask"])
        cells.setdefault(key, {})[one["peer"]] = one["error"]
    lines = []
    for key, errors in sorted(cells.items()):
        peers = {peer: error for peer, error in errors.items() if peer not in own_names()}
        best = min(peers, key=lambda peer: peers[peer], default=None)
        for own in own_names():
            if best and own in errors:
                lines.append(" ".join(map(str, key)) + f": {own} {errors[own] / peers[best]:.3f} x {best}")
    return lines


def line(record: Record) -> str:
    """Return the line that is printed for a run."""
    parts = [
        f"{' '.join(str(record[key]) for key in KEYS)} error {record['error']:.4f} (mean or mode "
        f"{record['baseline']:.4f})",
        f"{record['seconds']:.0f} s",
        f"{record['peak_gib']:.2f} GiB",
    ]
    if record.get("covered"):
        parts.append(f"covered {[round(share, 3) for share in record['covered']]}")
    if record["worse"]:
        parts.append(f"worse than mean or mode: {record['worse']}")
    return ", ".join(parts)


def start(settings: Record, folder: str | None, limit: float = np.inf) -> Record:
    """Make a run in a new process, so that memory is measured for it alone; return its record, or one with the reason.

    Parameters
    ----------
    limit : float
        The most CPU seconds, with those of all processes that it starts.
    """
    try:
        PEERS[settings["peer"]].prepare()
    except Failed as failed:
        return settings | {"revision": revision(settings), "reason": str(failed)}
    command = [sys.executable, __file__, "--one", json.dumps(settings), *(["--data", folder] if folder else [])]
    begun = cpu_seconds()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with subprocess.Popen(command, stdout=out, stderr=err) as process:
            late = _wait(process, begun + limit)
        if process.returncode == 0:
            out.seek(0)
            record: Record = json.loads(out.read().splitlines()[-1])
            return record
        err.seek(0)
        last = err.read().strip().splitlines()[-1:] or [f"ended with {process.returncode}"]
    reason = f"more than {limit / 60.0:.0f} CPU minutes" if late else last[0].split(": ", 1)[-1]
    return settings | {"revision": revision(settings), "reason": reason}


def _wait(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait for a process; end it with all that it started when their CPU seconds reach a limit; return whether it was.

    Those of this process count, too, so the limit is that of their sum.
    """
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
            return False
        if cpu_seconds() > limit:
            own = psutil.Process(process.pid)
            for one in (*own.children(recursive=True), own):
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            process.wait()
            return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("EVENLY_DATA"))
    parser.add_argument("--out", type=Path, default=Path("peers.jsonl"))
    parser.add_argument("--dataset", nargs="*", default=list(NAMES))
    parser.add_argument("--peer", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--masks", default="1")
    parser.add_argument("--percents", nargs="*", type=int, default=[20])
    parser.add_argument("--mechanism", nargs="*", default=["mcar"], choices=MECHANISMS)
    parser.add_argument("--limit", type=float, default=np.inf, help="CPU seconds of a run")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run(json.loads(given.one), given.data)))
        return
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    known: list[Record] = [json.loads(line) for line in lines]
    records = current(known)
    done = {tuple(one[key] for key in KEYS) for one in (*records, *failures(known))}
    asked = product(given.dataset, given.mechanism, given.percents, numbers(given.masks), given.peer)
    for dataset, mechanism, percent, mask, peer in asked:
        settings = dict(zip(KEYS, (dataset, percent, mask, mechanism, peer), strict=True))
        if tuple(settings.values()) in done:
            continue
        record = start(settings, given.data, given.limit)
        with given.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        if "reason" in record:
            print(*settings.values(), "failed:", record["reason"], flush=True)
            continue
        records.append(record)
        print(line(record), flush=True)
    print(*summary(records), sep="\n")


if __name__ == "__main__":
    main()
