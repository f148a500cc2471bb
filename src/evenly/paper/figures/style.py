"""What all figures share: colours, axes, titles, legends. Matplotlib is imported only when something is drawn."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from evenly._support import require
from evenly.paper.measures import Record, values_of

COLORS = {
    "std-none": "#e69f00",
    "max-none": "#cc79a7",
    "iqr-none": "#4d4d4d",
    "lip-none": "#56b4e9",
    "lip-bern": "#009e73",
    "std-gamma": "#d55e00",
    "lip-gamma": "#0072b2",
}
"""One colour a method in every figure, after Okabe and Ito: distinct with any colour vision."""
MARKERS = dict(zip(COLORS, "ovs^PXD", strict=True))
"""One marker a method, where colour alone would not do."""
DARK = ("iqr-none", "std-gamma", "lip-gamma")
"""The methods whose colour is a background for white."""
INK, DATA = "#222222", "#c8c8c8"
BASELINE_STYLE = {"color": INK, "linestyle": ":", "linewidth": 1.3}
BASELINE_LABEL = "mean or mode"
DPI = 110
LEAST_WIDTH = 8.0
"""Inches: wide enough for a title and the legend."""


def plain(text: object) -> str:
    """Return a text that matplotlib draws as it is: a dollar sign would begin a formula.

    Examples
    --------
    >>> print(plain("char_freq_$"))
    char_freq_\\$
    """
    return str(text).replace("$", r"\$")


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, in inches, that knows nothing of pyplot."""
    return require("matplotlib.figure", "tool").Figure(figsize=(width, height), layout="constrained")


def panels(n: int, across: int, width: float, height: float, **settings: Any) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, row by row; those beyond n are removed."""
    across = min(across, n)
    down = -(-n // across)
    figure = new_figure(max(width * across + 1.6, LEAST_WIDTH), height * down + 1.2)
    axes = figure.subplots(down, across, squeeze=False, **settings).ravel()
    for ax in axes[n:]:
        ax.remove()
    for ax in axes[:n]:
        clean(ax)
    return figure, list(axes[:n])


def clean(ax: Any) -> None:
    """Remove the frame that carries no numbers."""
    if ax.name != "polar":
        ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def label(ax: Any, title: object, x: str = "", y: str = "", pad: float = 6.0) -> None:
    """Write the title of a panel and the names of its axes."""
    ax.set_title(plain(title), loc="left", fontsize=10, pad=pad)
    ax.set_xlabel(x, fontsize=9)
    ax.set_ylabel(y, fontsize=9)


def finish(figure: Any, title: str, note: str, methods: Sequence[str], extra: Sequence[Any] = ()) -> Any:
    """Add the title, a note below, and the legend of the methods."""
    handles = [legend_line(one, color=COLORS[one], marker=MARKERS[one], linestyle="-") for one in methods]
    if handles or extra:
        figure.legend(handles=[*handles, *extra], loc="outside right upper", frameon=False, fontsize=9)
    width = figure.get_figwidth()  # in which so many characters an inch fit, the legend's place left free
    figure.suptitle(textwrap.fill(plain(title), int((width - 1.7) * 10.5)), x=0.01, ha="left", fontsize=12)
    figure.supxlabel(textwrap.fill(plain(note), int(width * 15)), x=0.01, ha="left", fontsize=8.5, color=INK)
    return figure


def plain_log_axis(axis: Any) -> None:
    """Label a log axis of less than two decades with plain numbers."""
    low, high = axis.get_view_interval()
    if high > 100.0 * low:
        return
    ticker = require("matplotlib.ticker", "tool")
    subs = (1.0, 2.0, 5.0) if high > 10.0 * low else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    axis.set_major_locator(ticker.LogLocator(subs=subs))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def legend_line(name: str, **style: Any) -> Any:
    """Return a line that stands in the legend only."""
    return require("matplotlib.lines", "tool").Line2D([], [], label=name, **style)


def count_runs(groups: Iterable[Sequence[Record]]) -> str:
    """Return how many runs each mean is taken over."""
    sizes = sorted({len(group) for group in groups})
    low, high = sizes[0], sizes[-1]
    return f"{high} run{'s' if high > 1 else ''}" if low == high else f"{low} to {high} runs"


def pick_dataset(records: Sequence[Record], dataset: str | None, wanted: Sequence[str]) -> str | None:
    """Return the data set to draw: as given, or the first of the wanted ones that is there, or the first of all."""
    there = values_of(records, "dataset")
    return dataset or next((name for name in wanted if name in there), there[0] if there else None)


def to_png(figure: Any) -> bytes:
    """Return a figure as a PNG file; the same figure is the same file, so matplotlib's version is not in it."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DPI, metadata={"Software": None})
    return content.getvalue()
