"""Write the tables of `docs/results/peers.md` and its picture from the recorded runs beside it.

Run: python docs/make_peers.py. Text stays; what stands between `<!-- NAME -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from make_results import fill

from evenly._support import require
from evenly.files import write_bytes, write_text

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from peers import OWN, current

RESULTS = Path(__file__).parent / "results"
PAGE = RESULTS / "peers.md"
Record = dict[str, Any]
PEERS = (
    "mean-or-mode",
    "iterative",
    "knn",
    "miceforest",
    "hyperimpute",
    "missforest",
    "missforest-sqrt",
    "evenly",
    "evenly-inferred",
)
DATASETS = ("breast", "wine", "spam", "letter", "adult", "credit")
METHODS = ("lip-none", "std-none", "iqr-none", "max-none", "none")
COLORS = dict(
    zip(
        PEERS,
        ("0.6", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#e69f00", "#000000", "#cc79a7"),
        strict=True,
    )
)
FEWEST_CELLS = 50
"""A tenth with fewer cells is not drawn: chance alone moves it by a tenth and more."""


def read(name: str) -> list[Record]:
    """Return the records of a file beside the page."""
    path = RESULTS / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def rows(records: Sequence[Record]) -> list[tuple[tuple[str, int, str], dict[str, list[Record]]]]:
    """Group runs by mechanism, share and data set, then by peer."""
    groups: dict[tuple[str, int, str], dict[str, list[Record]]] = {}
    for one in records:
        key = (one["mechanism"], one["percent"], one["dataset"])
        groups.setdefault(key, {}).setdefault(one["peer"], []).append(one)
    order = ("mcar", "mar", "mnar")
    return sorted(groups.items(), key=lambda one: (order.index(one[0][0]), one[0][1], DATASETS.index(one[0][2])))


def on_the_same_masks(by: dict[str, list[Record]]) -> dict[str, list[Record]]:
    """Keep the masks of evenly, and the peers that ran on all of them."""
    masks = {one["mask"] for one in by.get("evenly", [])}
    kept = {peer: [one for one in runs if one["mask"] in masks] for peer, runs in by.items()}
    return {peer: runs for peer, runs in kept.items() if runs and {one["mask"] for one in runs} == masks}


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, or that there is nothing in it yet."""
    if not lines:
        return "No runs yet."
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines))


def errors(records: Sequence[Record]) -> str:
    """Mean honest errors, and the ratio to the best peer."""
    shown = [peer for peer in PEERS if any(one["peer"] == peer for one in records)]
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        kept = on_the_same_masks(by)
        mean = {peer: float(np.mean([one["error"] for one in runs])) for peer, runs in kept.items()}
        others = [value for peer, value in mean.items() if peer not in OWN]
        if "evenly" not in mean or not others:
            continue
        least = min(mean.values())
        cells = [
            ("**{:.4f}**" if mean[peer] == least else "{:.4f}").format(mean[peer]) if peer in mean else "–"
            for peer in shown
        ]
        masks = ", ".join(str(one["mask"]) for one in sorted(kept["evenly"], key=lambda one: one["mask"]))
        lines.append([f"{mechanism} {percent} %", dataset, masks, *cells, f"{mean['evenly'] / min(others):.3f}"])
    return table(["hidden", "data set", "masks", *shown, "evenly / best peer"], lines)


def cost(run: Record) -> str:
    """Return seconds by the clock, those of all cores, where they were recorded, and peak memory."""
    cpu = f" ({run['cpu_seconds']:.0f} CPU)" if "cpu_seconds" in run else ""
    return f"{run['seconds']:.0f} s{cpu}, {run['peak_gib']:.1f} GiB"


def costs(records: Sequence[Record]) -> str:
    """Seconds of fit and transform, and peak memory, at 20 % hidden completely at random."""
    shown = [peer for peer in PEERS if any(one["peer"] == peer for one in records)]
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        if (mechanism, percent) == ("mcar", 20):
            first = {peer: [one for one in runs if one["mask"] == 1] for peer, runs in by.items()}
            lines.append([dataset, *(cost(first[peer][0]) if first.get(peer) else "–" for peer in shown)])
    return table(["data set", *shown], lines)


def calibration(records: Sequence[Record]) -> str:
    """Coverage of central intervals, their width, and how far class probabilities are off."""
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        runs = [one for one in by.get("evenly", []) if one.get("covered")]
        if runs:
            covered = np.mean([one["covered"] for one in runs], axis=0)
            off = [one["class_off"] for one in runs if one["class_off"]]
            lines.append(
                [
                    f"{mechanism} {percent} %",
                    dataset,
                    *(f"{share:.1%}" for share in covered),
                    f"{np.mean([one['width'] for one in runs]):.3f}",
                    f"{np.mean(off):.3f}" if off else "–",
                ]
            )
    header = ["hidden", "data set", "in 50 %", "in 80 %", "in 90 %", "width of 90 % / range", "classes: off by"]
    return table(header, lines)


def worse(records: Sequence[Record]) -> str:
    """Columns that are worse than the mean or mode, for each peer."""
    lines = []
    for peer in PEERS[1:]:
        runs = [one for one in records if one["peer"] == peer]
        if runs:
            named = sorted({f"{one['dataset']}: {name}" for one in runs for name in one["worse"]})
            scored = sum(error is not None for one in runs for error in one["errors"])
            shown = "; ".join(named) if peer in OWN else ""
            lines.append([peer, f"{sum(len(one['worse']) for one in runs)} of {scored}", shown or "–"])
    return table(["peer", "columns worse", "which (evenly)"], lines)


def inferred(records: Sequence[Record]) -> str:
    """What evenly loses, or wins, where it is not told the kinds, and which it found instead."""
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        told = {one["mask"]: one for one in by.get("evenly", [])}
        runs = [one for one in by.get("evenly-inferred", []) if one["mask"] in told]
        if runs:
            ratio = np.mean([one["error"] for one in runs]) / np.mean([told[one["mask"]]["error"] for one in runs])
            changes: dict[str, list[str]] = {}
            for one in runs:
                for name, (kind, found) in one["other_kinds"].items():
                    names = changes.setdefault(f"{kind} as {found}", [])
                    names += [name] if name not in names else []
            kinds = "; ".join(f"{change}: {', '.join(names)}" for change, names in sorted(changes.items()))
            left = sorted({name for one in runs for name in one["left_missing"]})
            masks = ", ".join(str(one["mask"]) for one in sorted(runs, key=lambda one: one["mask"]))
            lines.append(
                [f"{mechanism} {percent} %", dataset, masks, f"{ratio:.3f}", kinds or "–", ", ".join(left) or "–"]
            )
    return table(["hidden", "data set", "masks", "inferred / told", "kinds", "left missing"], lines)


def balance(records: Sequence[Record]) -> str:
    """Errors of the same network under each method."""
    lines = []
    for dataset in DATASETS:
        by = {one["method"]: one for one in records if one["dataset"] == dataset}
        if by:
            least = min(one["error"] for one in by.values())
            cells = [
                ("**{:.4f}**" if by[method]["error"] == least else "{:.4f}").format(by[method]["error"])
                + f" ({by[method]['worst']:.2f})"
                if method in by
                else "–"
                for method in METHODS
            ]
            ratio = (
                f"{by['lip-none']['error'] / by['std-none']['error']:.3f}"
                if {"lip-none", "std-none"} <= set(by)
                else "–"
            )
            lines.append([dataset, *cells, ratio])
    return table(["data set", *METHODS, "lip / std"], lines)


def picture(records: Sequence[Record]) -> bytes:
    """Draw each peer's error relative to the mean or mode, by data set, at 20 % hidden completely at random."""
    figure = require("matplotlib.figure", "tool").Figure(figsize=(8.0, 3.6), layout="constrained")
    ax = figure.subplots()
    groups = {key[2]: by for key, by in rows(records) if key[:2] == ("mcar", 20)}
    shown = [peer for peer in PEERS[1:] if any(peer in by for by in groups.values())]
    for i, peer in enumerate(shown):
        for at, by in enumerate(groups.values()):
            runs = on_the_same_masks(by).get(peer, [])
            if runs:
                ratio = float(np.mean([one["error"] / one["baseline"] for one in runs]))
                place = at + 0.8 * (i - 0.5 * (len(shown) - 1)) / len(shown)
                ax.bar(place, ratio, 0.8 / len(shown), color=COLORS[peer], label=peer if at == 0 else None)
    ax.axhline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    ax.set_xticks(range(len(groups)), list(groups))
    ax.set_ylabel("error / mean or mode")
    ax.set_title("Honest error on 20 % hidden cells, relative to mean-or-mode imputation", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return as_png(figure)


def reliability(records: Sequence[Record]) -> bytes:
    """Draw how often imputed classes are right against how probable they were said to be, by data set."""
    figure = require("matplotlib.figure", "tool").Figure(figsize=(4.6, 4.0), layout="constrained")
    ax = figure.subplots()
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=1.0, linestyle=":")
    groups = {key[2]: by.get("evenly", []) for key, by in rows(records) if key[:2] == ("mcar", 20)}
    for (dataset, runs), marker in zip(groups.items(), "os^Dvp", strict=False):
        cells = np.array([one for run in runs if run["mask"] == 1 for one in run.get("reliability", ())])
        cells = cells[cells[:, 0] >= FEWEST_CELLS] if len(cells) else cells
        if len(cells):
            ax.plot(cells[:, 1], cells[:, 2], marker=marker, markersize=5.0, linewidth=1.0, label=dataset)
    ax.set_xlabel("probability of the imputed class")
    ax.set_ylabel("share of cells where it is right")
    ax.set_title("Reliability, mask 1, 20 % hidden", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return as_png(figure)


def as_png(figure: Any) -> bytes:
    """Return a picture that has the same bytes whenever it is drawn."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def page(text: str) -> str:
    """Return the page with its tables made again."""
    records = current(read("peers.jsonl"))
    makers = {"errors": errors, "costs": costs, "calibration": calibration, "inferred": inferred, "worse": worse}
    sections = {name: make(records) for name, make in makers.items()}
    return fill(text, sections | {"balance": balance(read("balance.jsonl"))})


def main() -> None:
    """Write the page and draw the picture."""
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8")))
    records = current(read("peers.jsonl"))
    write_bytes(RESULTS / "pictures" / "peers.png", picture(records))
    if any(one.get("reliability") for one in records):
        write_bytes(RESULTS / "pictures" / "reliability.png", reliability(records))


if __name__ == "__main__":
    main()
