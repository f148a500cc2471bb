"""Pictures by matplotlib, which is imported only when one is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenly._support import new_axes, require
from evenly.scaling import get_method

BEFORE, AFTER = "#b45f06", "#0b5394"
"""An orange and a blue that differ in lightness too: readable without colour vision."""


def plot_smoothness(scaler: Any, ax: Any = None) -> Any:
    """Draw the smoothness of every column before and after scaling, on a log axis, with the target.

    Parameters
    ----------
    scaler : LipschitzScaler
        A fitted scaler; the features of a column are summed.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    Needs `pip install "evenly[tool]"`.

    >>> from evenly.scaling.scaler import LipschitzScaler
    >>> scaler = LipschitzScaler("lip-none").fit([[1.5, -1.0], [2.5, 0.3], [4.0, 2.0]])
    >>> plot_smoothness(scaler).get_xlabel()
    'smoothness (log scale)'
    """
    require("matplotlib", "tool")
    summary = scaler.summary_
    columns = list(dict.fromkeys(str(name) for name in summary["column"]))
    owner = np.array([str(name) for name in summary["column"]])
    sums = {
        when: np.array([np.asarray(summary[f"smoothness_{when}"], float)[owner == name].sum() for name in columns])
        for when in ("before", "after")
    }
    shown = [j for j in range(len(columns)) if sums["before"][j] > 0.0 and np.isfinite(sums["before"][j])]
    if ax is None:
        ax = new_axes(7.0, 1.2 + 0.3 * len(shown))
    rows = np.arange(len(shown))
    before, after = sums["before"][shown], sums["after"][shown]
    ax.hlines(rows, np.minimum(before, after), np.maximum(before, after), color="0.8", zorder=1)
    ax.scatter(before, rows, color=BEFORE, marker="o", label="before", zorder=2)
    ax.scatter(after, rows, color=AFTER, marker="D", label="after", zorder=2)
    if get_method(scaler.method).equalizes:
        ax.axvline(scaler.target_, color=AFTER, linestyle=":", linewidth=1, label=f"target {scaler.target_:.3g}")
    ax.set_yticks(rows, [columns[j] for j in shown])
    for label in ax.get_yticklabels():
        label.set_parse_math(False)  # a column may be called `$x$`
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlabel("smoothness (log scale)")
    ax.set_title(f"Smoothness of each column's log-likelihood, {scaler.method}", loc="left", fontsize="medium")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
