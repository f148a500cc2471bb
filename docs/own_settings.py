"""Tables of `docs/results/peers.md` about evenly alone: settings that were tried, and what balance brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from page_parts import table

Record = dict[str, Any]
METHODS = ("lip-none", "std-none", "iqr-none", "max-none", "none")


def balance(records: Sequence[Record], datasets: Sequence[str]) -> str:
    """Errors of the same network under each scaling method."""
    lines = []
    for dataset in datasets:
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


def balance_answer(records: Sequence[Record], datasets: Sequence[str]) -> str:
    """Say in sentences what equal smoothness and what any scaling gain over standardizing and over none."""
    sets = {name: {one["method"]: one["error"] for one in records if one["dataset"] == name} for name in datasets}
    whole = {name: by for name, by in sets.items() if {"lip-none", "std-none", "none"} <= set(by)}
    gains = {name: 100.0 * (1.0 - by["lip-none"] / by["std-none"]) for name, by in whole.items()}
    losses = {name: 100.0 * (by["none"] / by["lip-none"] - 1.0) for name, by in whole.items()}
    return (
        "Relative to standardizing, equal smoothness changes the error by "
        f"{', '.join(f'{-gain:+.1f} % on {name}' for name, gain in gains.items())}: balance is not what puts this "
        "network ahead of "
        "its peers. But some scaling is needed: with numbers left in their units, the error changes by "
        f"{', '.join(f'{loss:+.0f} % on {name}' for name, loss in losses.items())}."
    )


def settings(records: Sequence[Record], datasets: Sequence[str]) -> str:
    """Errors on held-out cells under each setting that was tried; of equal ones the last counts."""
    last = {(one["dataset"], one["setting"]): one for one in records}
    lines = []
    for (dataset, setting), one in sorted(last.items(), key=lambda item: datasets.index(item[0][0])):
        alone = f"{one['network_alone']:.4f}" if "network_alone" in one else "–"
        scores = [f"{one['error']:.4f}", f"{one['without_twins']:.4f}", alone]
        lines.append([dataset, f"`{setting}`", str(one["epochs"]), *scores])
    header = ["data set", "setting", "epochs trained", "error", "without near-duplicates", "network alone"]
    return table(header, lines)
