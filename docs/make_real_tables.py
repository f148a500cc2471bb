"""Write the tables of `docs/results/real_tables.md` and its picture from the recorded runs beside it.

Run: python docs/make_real_tables.py. What stands between `<!-- NAME -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from make_results import fill
from page_parts import as_png, table

from evenly._support import require, write_bytes, write_text

RESULTS = Path(__file__).parent / "results"
PAGE, RUNS = RESULTS / "real_tables.md", RESULTS / "real_tables.jsonl"
Record = dict[str, Any]
EVENLY, LABELLED, FOREST, BASELINE = "evenly", "evenly-labelled", "missforest-sqrt", "mean-or-mode"
MECHANISMS = {"mcar": "completely at random", "mar": "by another column", "mnar": "by their own value"}
MANY_ROWS, FEW_ROWS = 500, 5_000
COVERED = (0.86, 0.94)
"""Where the coverage of 90 % intervals is to lie on tables of more than 500 rows."""
AHEAD, BEHIND = "#0072b2", "#d55e00"


@dataclass(frozen=True)
class Row:
    """The runs on one table, with cells hidden by one mechanism: the mean over masks of each peer."""

    table: str
    n_rows: int
    own: Record
    labelled: Record | None
    peers: Mapping[str, Record]

    @property
    def best(self) -> str:
        """The peer with the least error."""
        return min(self.peers, key=lambda peer: self.peers[peer]["error"])

    @property
    def ratio(self) -> float:
        """Evenly's error relative to the best peer's."""
        return float(self.own["error"] / self.peers[self.best]["error"])


def read() -> list[Record]:
    """Return the recorded runs."""
    return [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()] if RUNS.exists() else []


def rows(records: Sequence[Record], mechanism: str = "mcar") -> list[Row]:
    """Return the tables on which evenly and some peer were run on the same cells, the best for evenly first."""
    groups: dict[str, dict[str, dict[int, Record]]] = {}
    for one in records:
        if one["mechanism"] == mechanism:
            groups.setdefault(one["table"], {}).setdefault(one["peer"], {})[one["mask"]] = one
    found = []
    for name, by in groups.items():
        masks = set(by.get(EVENLY, {}))
        if not masks:
            continue
        whole = {peer: _mean([runs[mask] for mask in sorted(masks)]) for peer, runs in by.items() if masks <= set(runs)}
        peers = {peer: one for peer, one in whole.items() if peer not in (EVENLY, LABELLED) and _alike(one, by[EVENLY])}
        if peers:
            found.append(Row(name, whole[EVENLY]["rows"], whole[EVENLY], whole.get(LABELLED), peers))
    return sorted(found, key=lambda one: one.ratio)


def _alike(one: Record, own: Mapping[int, Record]) -> bool:
    """Whether a run was scored on the same columns in the same way: labels may have changed since."""
    (first, *_) = own.values()
    return all(one.get(name) == first.get(name) for name in ("columns", "classes"))


def _mean(runs: Sequence[Record]) -> Record:
    """Return a record with the means over masks of errors and costs, and the coverage and bad columns of all."""
    numbers = {name: float(np.mean([one[name] for one in runs])) for name in ("error", "seconds", "cpu_seconds")}
    covered = [one["covered"] for one in runs if one.get("covered")]
    return {
        **runs[0],
        **numbers,
        "covered": np.mean(covered, 0).tolist() if covered else [],
        "worse": [column for one in runs for column in one["worse"]],
    }


def answer(records: Sequence[Record]) -> str:
    """Return the answer in sentences."""
    found = rows(records)
    if not found:
        return "No runs are recorded."
    ratios = np.array([one.ratio for one in found])
    close = ((ratios >= 1.0) & (ratios <= 1.01)).sum()
    behind = [f"{one.table} ({one.ratio - 1.0:.0%})" for one in found if one.ratio > 1.01]
    covered = [one.own["covered"][2] for one in found if one.own["covered"] and one.n_rows > MANY_ROWS]
    inside = sum(COVERED[0] <= share <= COVERED[1] for share in covered)
    worse = [f"{column} of {one.table}" for one in found for column in one.own["worse"]]
    timed = [one for one in found if FOREST in one.peers and one.n_rows < FEW_ROWS]
    quick = sum(one.own["cpu_seconds"] <= one.peers[FOREST]["cpu_seconds"] for one in timed)
    level = f", and on {close} more it is at most 1 % behind the best" if close else ""
    lines = [
        f"On {(ratios < 1.0).sum()} of {len(found)} tables evenly has less error than any other imputer{level}. "
        f"The median of the ratios is {np.median(ratios):.3f}.",
        f"It is more than 1 % behind on: {', '.join(behind)}." if behind else "",
        f"90 % intervals cover 86 to 94 % of the hidden numbers on {inside} of {len(covered)} tables of more than "
        f"{MANY_ROWS} rows.",
        f"Columns worse than the mean or mode by 2 % and two standard errors: {', '.join(worse) or 'none'}.",
        f"On {quick} of {len(timed)} tables of fewer than {FEW_ROWS:,} rows evenly takes at most the CPU time of "
        f"`{FOREST}`.",
    ]
    return "\n".join(f"- {line}" for line in lines if line)


def by_table(records: Sequence[Record]) -> str:
    """Return a table of errors and costs, cells hidden completely at random."""
    header = ["table", "rows", "columns", "evenly", "best peer", "its error", "evenly / best", "kinds declared / best"]
    header += ["90 % cover", "seconds, CPU", "of the best peer", f"of {FOREST}"]
    return table(header, [_line(one) for one in rows(records)])


def _line(one: Row) -> list[str]:
    best = one.peers[one.best]
    told = f"{one.labelled['error'] / best['error']:.3f}" if one.labelled else "–"
    covered = f"{one.own['covered'][2]:.3f}" if one.own["covered"] else "–"
    costs = [_cost(run) for run in (one.own, best, one.peers.get(FOREST))]
    size = [f"{one.n_rows:,}", str(len(one.own["columns"]))]
    ratio = f"**{one.ratio:.3f}**" if one.ratio < 1.0 else f"{one.ratio:.3f}"
    errors = [f"{one.own['error']:.4f}", one.best, f"{best['error']:.4f}", ratio, told, covered]
    return [one.table, *size, *errors, *costs]


def _cost(run: Record | None) -> str:
    return "–" if run is None else f"{run['seconds']:.0f}, {run['cpu_seconds']:.0f}"


def by_peer(records: Sequence[Record]) -> str:
    """Return evenly's error relative to each peer's, by table."""
    found = rows(records)
    peers = sorted({peer for one in found for peer in one.peers})
    lines = []
    for one in found:
        errors = [one.peers[peer]["error"] if peer in one.peers else None for peer in peers]
        lines.append([one.table, *(f"{one.own['error'] / error:.3f}" if error else "–" for error in errors)])
    return table(["table", *peers], lines)


def other_mechanisms(records: Sequence[Record]) -> str:
    """Return a table of the runs with cells that are not hidden completely at random."""
    lines = [
        [one.table, MECHANISMS[mechanism], f"{one.own['error']:.4f}", one.best, f"{one.ratio:.3f}"]
        for mechanism in ("mar", "mnar")
        for one in rows(records, mechanism)
    ]
    return table(["table", "hidden", "evenly", "best peer", "evenly / best"], lines) if lines else "None was run."


def picture(records: Sequence[Record]) -> bytes:
    """Draw evenly's error relative to the best peer's: a dot a table."""
    found = rows(records)
    height = 1.0 + 0.17 * len(found)
    figure = require("matplotlib.figure", "tool").Figure(figsize=(8.0, height), layout="constrained")
    ax = figure.subplots()
    ratios = [one.ratio for one in found]
    ax.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    ax.scatter(ratios, range(len(found)), c=[AHEAD if ratio < 1.0 else BEHIND for ratio in ratios], zorder=3)
    ax.set_yticks(range(len(found)), [f"{one.table} ({one.best})" for one in found], fontsize=8)
    ax.margins(y=0.03)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    ax.set_xlabel("error of evenly / error of the best other imputer, which is named in brackets")
    ax.set_title("Left of the line, evenly has less error than every other imputer", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    return as_png(figure)


def page(text: str, records: Sequence[Record]) -> str:
    """Return the page with its tables made from the records."""
    makers = {"answer": answer, "by_table": by_table, "by_peer": by_peer, "mechanisms": other_mechanisms}
    return fill(text, {name: make(records) for name, make in makers.items()})


def main() -> None:
    """Write the page and draw its picture."""
    records = read()
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), records))
    write_bytes(RESULTS / "pictures" / "real_tables.png", picture(records))


if __name__ == "__main__":
    main()
