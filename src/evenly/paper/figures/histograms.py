"""Histograms of the data and of what models draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenly.metrics import GROUPS
from evenly.paper.agreement import comparable
from evenly.paper.figures.style import COLORS, DATA, finish, label, panels, pick_dataset
from evenly.paper.measures import Record, at_one_percent, bars, numbers, those, values_of

INTRODUCED = ("std-none", "std-gamma", "lip-gamma")
"""The methods of the paper's first two figures."""
MOST_PANELS = 24
"""Of a table with more columns the first ones are shown."""
OUTSIDE = 0.02
"""A larger share of draws beyond the data's range is written into the panel."""


def marginals(records: Sequence[Record], *, dataset: str | None = None, model: str = "vae") -> Any:
    """Draw the histogram of each column in the data and in a model's draws, by method.

    Parameters
    ----------
    dataset : str, optional
        By default adult if it is there, otherwise the first that is.

    Returns
    -------
    matplotlib.figure.Figure or None
        None without a record to draw; so do the other figures.
    """
    there = [
        record
        for record in those(comparable(records), model=model)
        if record.get("marginals") and record["run"]["method"] in INTRODUCED
    ]
    dataset = pick_dataset(there, dataset, ("adult",))
    shown = at_one_percent(those(there, dataset=dataset))
    if not shown:
        return None
    one = {method: those(shown, method=method)[0] for method in values_of(shown, "method")}
    run, kinds = shown[0]["run"], dict(zip(shown[0]["columns"], shown[0]["kinds"], strict=True))
    names = [name for name in kinds if all(name in record["marginals"] for record in one.values())]
    # Continuous ones first, as the paper has them on the left.
    names.sort(key=lambda name: kinds[name] not in GROUPS["continuous"])
    figure, axes = panels(len(names[:MOST_PANELS]), 4, 2.9, 2.1)
    for ax, name in zip(axes, names, strict=False):
        _histograms(ax, name, kinds[name], {method: record["marginals"][name] for method, record in one.items()})
    left_out = f" The first {MOST_PANELS} of {len(names)} columns." if len(names) > MOST_PANELS else ""
    note = (
        f"Grey: the data. Lines: one draw a row from the trained model. Mask {run['mask']}, {run['percent']} % of the "
        f"cells hidden. Draws beyond the data's range are in no bar; their share is shown if it is more than "
        f"{100 * OUTSIDE:g} %.{left_out}"
    )
    return finish(figure, f"Histograms of {dataset}: the data and the {model}", note, list(one))


def _histograms(ax: Any, name: str, kind: str, by_method: Mapping[str, Any]) -> None:
    """Draw one column: the data filled, each method's draws as a line."""
    ends = np.zeros(0)
    for i, (method, marginal) in enumerate(by_method.items()):
        ends, data, drawn = bars(kind, marginal)
        if i == 0:
            ax.stairs(data, ends, fill=True, color=DATA)
        width, style = (2.0, "-") if method == "lip-gamma" else (1.5, ("--", (0, (1, 1)))[i % 2])
        ax.stairs(drawn, ends, color=COLORS[method], linewidth=width, linestyle=style, fill=False)
        outside = 1.0 - numbers(marginal["model"]).sum()
        if outside > OUTSIDE:
            place = {"transform": ax.transAxes, "ha": "right", "va": "top", "fontsize": 7.5}
            ax.text(0.99, 0.98 - 0.12 * i, f"{100 * outside:.0f} % outside", color=COLORS[method], **place)
    label(ax, f"{name} ({kind})", y="share of a value" if kind == "count" else "share")
    # Space above the bars for what is written there.
    ax.set_ylim(0.0, ax.get_ylim()[1] * (1.4 if ax.texts else 1.0))
    if kind in ("binary", "categorical", "ordinal"):
        ax.set_xlabel("class", fontsize=9)
        ax.set_xticks(np.arange(len(ends) - 1, step=max(1, len(ends) // 8)))
