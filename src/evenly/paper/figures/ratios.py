"""Errors under one method relative to another, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenly.paper.claims import Ratio, compare
from evenly.paper.figures.style import COLORS, INK, MARKERS, clean, finish, label, new_figure
from evenly.paper.measures import Record, bounded_error, those, values_of

AGAINST = "std-none"
COMPARED = ("lip-none", "std-gamma", "lip-gamma")
"""What the scale does, what the Gamma trick does, and both."""


def ratios_by_block(records: Sequence[Record]) -> dict[tuple[str, str], dict[str, Ratio]]:
    """Return the ratios of errors to those under std-none: by data set and model, and by method.

    Those with pairs of two or more masks; intervals are of 95 % each, not corrected for their number.
    """
    found: dict[tuple[str, str], dict[str, Ratio]] = {}
    for dataset in values_of(records, "dataset"):
        for model in values_of(records, "model"):
            own = those(records, dataset=dataset, model=model)
            for method in COMPARED:
                ratio = compare(own, method, AGAINST, bounded_error)
                if ratio is not None:
                    found.setdefault((dataset, model), {})[method] = ratio
    return found


def ratios(records: Sequence[Record]) -> Any:
    """Draw the ratios of errors to those under std-none with their intervals; None without any."""
    blocks = ratios_by_block([one for one in records if "failed" not in one])
    if not blocks:
        return None
    figure = new_figure(8.0, 1.6 + 0.55 * len(blocks))
    ax = figure.subplots()
    for row, by_method in enumerate(blocks.values()):
        for i, (method, one) in enumerate(by_method.items()):
            y = row + 0.22 * (i - 1)
            ax.plot([one.low, one.high], [y, y], color=COLORS[method], linewidth=1.6)
            ax.plot([one.ratio], [y], MARKERS[method], color=COLORS[method], markersize=5)
    clean(ax)
    ax.axvline(1.0, color=INK, linewidth=0.8)
    ax.set_yticks(range(len(blocks)), [f"{dataset}, {model}" for dataset, model in blocks])
    ax.invert_yaxis()
    label(ax, "", x=f"honest error / that under {AGAINST}")
    methods = [method for method in COMPARED if any(method in one for one in blocks.values())]
    n_pairs = [one.n_pairs for by_method in blocks.values() for one in by_method.values()]
    note = (
        f"Geometric means of {min(n_pairs)} to {max(n_pairs)} pairs of runs with the same mask and seed, 20 % of the "
        "cells hidden; bars: 95 % bootstrap intervals over masks, each by itself. Left of 1 is better."
    )
    return finish(figure, "Error under each method, relative to std-none", note, methods)
