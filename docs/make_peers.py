"""Write the tables of `docs/results/peers.md` and its pictures from the recorded runs beside it.

Run: python docs/make_peers.py. What stands between `<!-- NAME -->` and `<!-- end -->` is replaced, the rest stays. The
classes in `benchmarks/peer_imputers.py` say which peers there are and what to call them; none needs to be installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from make_results import fill
from own_settings import balance, balance_answer, settings
from page_parts import as_png, table

from evenly._support import require, write_bytes, write_text

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from peer_imputers import PEERS, Evenly, EvenlyInferred, Peer, own_names
from peers import SMALL, current, failures, shown

RESULTS = Path(__file__).parent / "results"
PAGE = RESULTS / "peers.md"
Record = dict[str, Any]
Runs = Mapping[int, Record]
"""Runs of one peer, by mask."""
Group = dict[str, dict[int, Record]]
"""Runs of a data set, by the peer's name and mask."""
DATASETS = ("breast", "wine", "spam", "letter", "adult", "credit", *SMALL)
CLOSE = 0.03
"""Errors and times that are larger by at most this share count as close."""
FEWEST_CELLS = 50
"""A tenth of the probabilities with fewer cells is not drawn: chance alone would move it by a tenth or more."""


def read(name: str) -> list[Record]:
    """Return the records of a file beside the page."""
    path = RESULTS / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def rows(records: Sequence[Record]) -> list[tuple[tuple[str, int, str], Group]]:
    """Group runs by mechanism, share and data set, then by peer and mask; of equal ones the last counts."""
    groups: dict[tuple[str, int, str], Group] = {}
    for one in records:
        key = (one["mechanism"], one["percent"], one["dataset"])
        groups.setdefault(key, {}).setdefault(one["peer"], {})[one["mask"]] = one
    order = ("mcar", "mar", "mnar")
    return sorted(groups.items(), key=lambda one: (order.index(one[0][0]), one[0][1], DATASETS.index(one[0][2])))


def run_peers(records: Sequence[Record]) -> list[type[Peer]]:
    """Return the peers that have runs."""
    names = {one["peer"] for one in records}
    return [peer for name, peer in PEERS.items() if name in names]


def label(name: str) -> str:
    """Return what the page calls a peer; one that only records know is called by its name."""
    return PEERS[name].label if name in PEERS else name


def compared_masks(by: Group) -> list[int]:
    """Return the masks that evenly was run on, or all masks if it was run on none."""
    return sorted(by.get(Evenly.name) or {mask for runs in by.values() for mask in runs})


def mean_of(runs: Runs, masks: Iterable[int], what: str = "error") -> float:
    """Return the mean over runs."""
    return float(np.mean([runs[mask][what] for mask in masks]))


def ratio(own: Runs, other: Runs, what: str = "error") -> tuple[float, int] | None:
    """Return the ratio of two peers' means on the masks that both have, and how many these are; None without any."""
    common = [mask for mask in own if mask in other and what in own[mask] and what in other[mask]]
    return (mean_of(own, common, what) / mean_of(other, common, what), len(common)) if common else None


def worst_ratio(by: Group) -> tuple[float, int, str] | None:
    """Return the largest ratio of evenly's error to a peer's, on how many masks, and that peer's name.

    Each peer is compared on the masks that it shares with evenly, so that a strong peer that was too slow for all of
    them still counts.
    """
    pairs = [(name, ratio(by.get(Evenly.name, {}), runs)) for name, runs in by.items() if name not in own_names()]
    return max(((*found, name) for name, found in pairs if found), default=None)


def errors(records: Sequence[Record]) -> str:
    """Mean errors with the number of masks in brackets, and evenly's ratio to the peer that it compares worst with."""
    shown = run_peers(records)
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        masks, worst = compared_masks(by), worst_ratio(by)
        best = None if worst is None else Evenly.name if worst[0] < 1.0 else worst[2]
        cells = []
        for peer in shown:
            own = [mask for mask in masks if mask in by.get(peer.name, {})]
            text = f"{mean_of(by[peer.name], own):.4f}" if own else "–"
            cells.append(
                (f"**{text}**" if peer.name == best else text) + (f" ({len(own)})" if 0 < len(own) < len(masks) else "")
            )
        compared = [f"{worst[0]:.3f}", label(worst[2]), str(worst[1])] if worst else ["–"] * 3
        lines.append([f"{mechanism} {percent} %", dataset, ", ".join(map(str, masks)), *cells, *compared])
    labels = [peer.label for peer in shown]
    return table(["hidden", "data set", "masks", *labels, "worst ratio", "to", "on masks"], lines)


def by_mask(records: Sequence[Record]) -> str:
    """Evenly's ratio to the best peer, mask by mask."""
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        cells = []
        for mask in sorted(by.get(Evenly.name, {})):
            worst = worst_ratio({name: {mask: runs[mask]} for name, runs in by.items() if mask in runs})
            if worst:
                cells.append(f"{mask}: {worst[0]:.3f} {label(worst[2])}")
        if cells:
            lines.append([f"{mechanism} {percent} %", dataset, "; ".join(cells)])
    return table(["hidden", "data set", "mask: evenly / the best peer of the mask"], lines)


HIDDEN = {"mcar": "hidden at random", "mar": "hidden by another column", "mnar": "hidden by their own value"}


def answer(records: Sequence[Record]) -> str:
    """Say, in a line for each way to hide cells, where evenly is ahead and behind, and by how much."""
    groups: dict[tuple[str, int], dict[str, Group]] = {}
    for (mechanism, percent, dataset), by in rows(records):
        if worst_ratio(by):
            groups.setdefault((mechanism, percent), {})[dataset] = by
    lines = [
        f"- {percent} % of the cells {HIDDEN[name]}: {ahead_and_behind(s)}" for (name, percent), s in groups.items()
    ]
    return "\n".join(lines) or "No runs yet."


def ahead_and_behind(sets: Mapping[str, Group]) -> str:
    """Say on how many data sets evenly has the least error, and by how much; those without a forest by themselves."""
    ratios = {dataset: found for dataset, by in sets.items() if (found := worst_ratio(by))}
    gains = {dataset: 100.0 * (1.0 - found[0]) for dataset, found in ratios.items() if found[0] < 1.0}
    tested = [gain for dataset, gain in gains.items() if has_forest(sets[dataset])]
    parts = [f"evenly has the least error on {len(gains)} of {len(ratios)} data sets"]
    if tested:
        parts[0] += f", by {min(tested):.0f} to {max(tested):.0f} %"
    if bare := [f"{dataset} ({gain:.0f} %)" for dataset, gain in gains.items() if not has_forest(sets[dataset])]:
        parts.append(f"no forest was run on {', '.join(bare)}")
    for dataset, (worst, _, peer) in ratios.items():
        if worst >= 1.0:
            parts.append(f"on {dataset}, {PEERS[peer].label} has {100.0 * (1.0 - 1.0 / worst):.1f} % less")
    return "; ".join(parts) + "."


def has_forest(by: Group) -> bool:
    """Whether a forest was run on cells that evenly was run on."""
    return any(name.startswith("missforest") and ratio(by.get(Evenly.name, {}), runs) for name, runs in by.items())


def counts(records: Sequence[Record]) -> str:
    """Say in sentences on how many data sets evenly has the least error, and takes less time than a peer."""
    groups: dict[str, dict[str, Group]] = {}
    for (mechanism, percent, dataset), by in rows(records):
        if worst_ratio(by):
            groups.setdefault(f"{mechanism} {percent} %", {})[dataset] = by
    sentences = [f"{hidden}: {count_errors(sets)}{count_times(sets)}" for hidden, sets in groups.items()]
    return "\n\n".join(sentences) or "No runs yet."


def count_errors(sets: Mapping[str, Group]) -> str:
    """Count the data sets where evenly has the least error, and those where it is close to the least."""
    worst = {dataset: found[0] for dataset, by in sets.items() if (found := worst_ratio(by))}
    least = [dataset for dataset, found in worst.items() if found < 1.0]
    close = [dataset for dataset, found in worst.items() if 1.0 <= found <= 1.0 + CLOSE]
    return (
        f"evenly has the least error of all peers that were run on {named(least)} of {len(worst)} data sets, "
        f"and is within {100 * CLOSE:.0f} % of the least on {named(close)} more."
    )


def count_times(sets: Mapping[str, Group]) -> str:
    """Count the data sets where evenly takes less time than the peers that ask for it, by the clock and by CPU time."""
    sentences = ""
    for peer in (peer for peer in PEERS.values() if peer.compare_time):
        for what, unit in (("seconds", "time"), ("cpu_seconds", "CPU time")):
            pairs = {name: ratio(by.get(Evenly.name, {}), by.get(peer.name, {}), what) for name, by in sets.items()}
            ratios = {name: found[0] for name, found in pairs.items() if found}
            if ratios:
                each = ", ".join(f"{name} {found:.2f}" for name, found in ratios.items())
                less = sum(found < 1.0 for found in ratios.values())
                close = sum(1.0 <= found <= 1.0 + CLOSE for found in ratios.values())
                sentences += (
                    f" It takes less {unit} than {peer.label} on {less} of {len(ratios)}, and up to "
                    f"{100 * CLOSE:.0f} % more on {close} ({each})."
                )
    return sentences


def named(datasets: Sequence[str]) -> str:
    """Return how many data sets there are, with their names if there are any."""
    return f"{len(datasets)} ({', '.join(datasets)})" if datasets else "0"


def cost(run: Record) -> str:
    """Return the seconds by the clock, the CPU seconds if they were recorded, and the peak memory."""
    cpu = f" ({run['cpu_seconds']:.0f} CPU)" if "cpu_seconds" in run else ""
    return f"{run['seconds']:.0f} s{cpu}, {run['peak_gib']:.1f} GiB"


def costs(records: Sequence[Record]) -> str:
    """Seconds of fit and transform, and peak memory, at 20 % hidden completely at random."""
    shown = run_peers(records)
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        if (mechanism, percent) == ("mcar", 20):
            runs = [by.get(peer.name, {}) for peer in shown]
            lines.append([dataset, *(cost(own[1]) if 1 in own else "–" for own in runs)])
    return table(["data set", *(peer.label for peer in shown)], lines)


def calibration(records: Sequence[Record]) -> str:
    """Coverage of central intervals, their width, and how far off the probabilities of classes are."""
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        runs = [one for one in by.get(Evenly.name, {}).values() if one.get("covered")]
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
    """Columns that are worse than the mean or mode, peer by peer."""
    lines = []
    for peer in run_peers(records):
        if not peer.baseline:
            runs = [one for one in records if one["peer"] == peer.name]
            columns = sorted({f"{one['dataset']}: {name}" for one in runs for name in one["worse"]})
            scored = sum(error is not None for one in runs for error in one["errors"])
            which = "; ".join(columns) if peer.own else ""
            lines.append([peer.label, f"{sum(len(one['worse']) for one in runs)} of {scored}", which or "–"])
    return table(["peer", "columns worse", "which (evenly)"], lines)


def inferred(records: Sequence[Record]) -> str:
    """Evenly's error without declared kinds relative to that with them, and which other kinds it inferred."""
    lines = []
    for (mechanism, percent, dataset), by in rows(records):
        runs = by.get(EvenlyInferred.name, {})
        found = ratio(runs, by.get(Evenly.name, {}))
        if found:
            changes: dict[str, list[str]] = {}
            for one in runs.values():
                for name, (kind, other) in one["other_kinds"].items():
                    names = changes.setdefault(f"{kind} as {other}", [])
                    names += [name] if name not in names else []
            kinds = "; ".join(f"{change}: {', '.join(names)}" for change, names in sorted(changes.items()))
            left = sorted({name for one in runs.values() for name in one["left_missing"]})
            cells = [f"{found[0]:.3f}", str(found[1]), kinds or "–", ", ".join(left) or "–"]
            lines.append([f"{mechanism} {percent} %", dataset, *cells])
    return table(["hidden", "data set", "inferred / declared", "on masks", "kinds", "left missing"], lines)


def notes(records: Sequence[Record]) -> str:
    """Say what the peers are that have runs."""
    return "\n".join(f"- {peer.label}: {peer.note}" for peer in run_peers(records))


def not_run(records: Sequence[Record]) -> str:
    """Say why peers have no result, by data set and share."""
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for one in records:
        cells = f"{one['dataset']} ({one['mechanism']} {one['percent']} %)"
        reasons.setdefault((label(one["peer"]), one["reason"]), {})[cells] = None
    lines = [[peer, ", ".join(cells), reason] for (peer, reason), cells in sorted(reasons.items())]
    return table(["peer", "not on", "why"], lines)


def picture(records: Sequence[Record]) -> bytes:
    """Draw each peer's error relative to the mean or mode, by data set, at 20 % hidden completely at random."""
    figure = require("matplotlib.figure", "tool").Figure(figsize=(8.0, 3.8), layout="constrained")
    ax = figure.subplots()
    groups = {key[2]: by for key, by in rows(records) if key[:2] == ("mcar", 20)}
    runs = [one for by in groups.values() for own in by.values() for one in own.values()]
    shown = [peer for peer in run_peers(runs) if not peer.baseline]
    for i, peer in enumerate(shown):
        places, errors = [], []
        for at, by in enumerate(groups.values()):
            own = [one for mask, one in by.get(peer.name, {}).items() if mask in compared_masks(by)]
            if own:
                places.append(at + 0.6 * ((i + 0.5) / len(shown) - 0.5))
                errors.append(float(np.mean([one["error"] / one["baseline"] for one in own])))
        if places:
            look = (
                {"s": 70.0, "marker": "D", "zorder": 4}
                if peer.name == Evenly.name
                else {"s": 32.0, "marker": "o", "zorder": 3}
            )
            ax.scatter(errors, places, color=peer.color or f"C{i}", label=peer.label, **look)
    ax.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    ax.set_yticks(range(len(groups)), list(groups))
    ax.set_yticks(np.arange(len(groups) - 1) + 0.5, minor=True)
    ax.grid(axis="y", which="minor", color="0.85")
    ax.tick_params(axis="y", which="both", length=0.0)
    ax.invert_yaxis()
    ax.set_xlabel("error / that of the mean or mode (dotted); further left is better")
    ax.set_title("Error on 20 % of the cells, hidden at random", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return as_png(figure)


def reliability(records: Sequence[Record]) -> bytes:
    """Draw how often imputed classes are right against their predicted probabilities, by data set."""
    figure = require("matplotlib.figure", "tool").Figure(figsize=(4.6, 4.0), layout="constrained")
    ax = figure.subplots()
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=1.0, linestyle=":")
    groups = {key[2]: by.get(Evenly.name, {}) for key, by in rows(records) if key[:2] == ("mcar", 20)}
    for (dataset, runs), marker in zip(groups.items(), "os^Dvp", strict=False):
        cells = np.array(runs.get(1, {}).get("reliability", ()))
        cells = cells[cells[:, 0] >= FEWEST_CELLS] if len(cells) else cells
        if len(cells):
            ax.plot(cells[:, 1], cells[:, 2], marker=marker, markersize=5.0, linewidth=1.0, label=dataset)
    ax.set_xlabel("probability of the imputed class")
    ax.set_ylabel("share of cells where it is right")
    ax.set_title("Reliability, mask 1, 20 % hidden", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return as_png(figure)


def earlier(records: Sequence[Record]) -> str:
    """Name the runs of evenly that were made by an earlier revision of its code."""
    if not records:
        return "All of evenly's runs are by its present code."
    named: dict[str, dict[str, set[int]]] = {}
    for one in records:
        cells = f"{one['percent']} % {one['mechanism']}"
        named.setdefault(one["dataset"], {}).setdefault(cells, set()).add(one["mask"])
    listed = []
    for name, some in sorted(named.items()):
        masks = {cells: " and ".join(map(str, sorted(own))) for cells, own in sorted(some.items())}
        listed.append(f"{name} ({', '.join(f'{cells} on mask {own}' for cells, own in masks.items())})")
    return f"Evenly's runs by an earlier version of its code, to be made again: {'; '.join(listed)}."


def page(text: str) -> str:
    """Return the page with its tables made from the records, and notes on the peers if it has a place for them."""
    every = read("peers.jsonl")
    records, old = shown(every)
    makers = {
        "answer": answer,
        "counts": counts,
        "errors": errors,
        "by_mask": by_mask,
        "costs": costs,
        "calibration": calibration,
        "inferred": inferred,
        "worse": worse,
    }
    if "<!-- peers -->" in text:
        makers["peers"] = notes
    sections = {name: make(records) for name, make in makers.items()}
    if "<!-- not_run -->" in text:
        sections["not_run"] = not_run(failures(every))
    if "<!-- earlier -->" in text:
        sections["earlier"] = earlier(old)
    small = current(read("small.jsonl"))
    sections |= {"small": errors(small), "small_calibration": calibration(small)}
    sections |= {"settings": settings(read("settings.jsonl"), DATASETS)}
    balanced = read("balance.jsonl")
    return fill(
        text, sections | {"balance": balance(balanced, DATASETS), "balance_answer": balance_answer(balanced, DATASETS)}
    )


def main() -> None:
    """Write the page and draw its pictures."""
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8")))
    records, _ = shown(read("peers.jsonl"))
    write_bytes(RESULTS / "pictures" / "peers.png", picture(records))
    if any(one.get("reliability") for one in records):
        write_bytes(RESULTS / "pictures" / "reliability.png", reliability(records))


if __name__ == "__main__":
    main()
