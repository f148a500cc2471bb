"""Pictures of an imputer by matplotlib: imputed against observed cells, intervals, learning curves."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenly.tables import Column, Floats, days_of, make_dates

OBSERVED, IMPUTED = "0.55", "#b45f06"
"""A grey and an orange that differ in lightness too."""
MOST_BINS, FEWEST_BINS = 40, 8
MOST_CLASSES = 20
MOST_NAMED = 8
"""Learning curves that have a colour and a name of their own, those that gain least; the others are grey."""
SMOOTHED = 12
"""Learning curves are averages over this part of the epochs: a twelfth."""
MOST_CELLS = 400
"""Intervals that are drawn, evenly spaced among all."""


def draw_imputed(ax: Any, column: Column, observed: Floats, imputed: Floats) -> None:
    """Draw how observed cells are distributed, and how imputed ones that were drawn at random are."""
    labels = [f"{len(observed):,} observed", f"{len(imputed):,} imputed, drawn at random"]
    if column.has_classes:
        _draw_classes(ax, column, [observed, imputed], labels)
        ax.legend(frameon=False)
    else:
        _draw_numbers(ax, column, [observed, imputed], labels)
        _legend_above(ax)
    _finish(ax, column.name, "Observed and imputed cells")


def _draw_classes(ax: Any, column: Column, cells: Sequence[Floats], labels: Sequence[str]) -> None:
    classes = column.classes or []
    counts = [np.bincount(one.astype(np.intp), minlength=len(classes)) for one in cells]
    shown = np.sort(np.argsort(-(counts[0] + counts[1]), kind="stable")[:MOST_CLASSES])
    rows = np.arange(len(shown))
    for one, label, color, shift in zip(counts, labels, (OBSERVED, IMPUTED), (-0.2, 0.2), strict=True):
        ax.barh(rows + shift, one[shown] / max(one.sum(), 1), 0.38, color=color, label=label)
    ax.set_yticks(rows, [str(classes[k]) for k in shown])
    _without_maths(ax.get_yticklabels())
    ax.invert_yaxis()
    ax.set_xlabel("share of cells")


def _draw_numbers(ax: Any, column: Column, cells: Sequence[Floats], labels: Sequence[str]) -> None:
    known = np.concatenate(cells)
    n_bins = int(np.clip(np.sqrt(len(known)), FEWEST_BINS, MOST_BINS))
    if len(known) and np.ptp(known) < MOST_BINS and (np.rint(known) == known).all():
        edges = np.arange(known.min() - 0.5, known.max() + 1.0)  # a bin for each whole number
    else:
        edges = np.histogram_bin_edges(known, n_bins)
    for one, label, color in zip(cells, labels, (OBSERVED, IMPUTED), strict=True):
        heights = np.histogram(one, edges)[0] / max(len(one), 1) / np.diff(edges)
        ax.stairs(heights, on_axis(column, edges), color=color, label=label, fill=color == OBSERVED, linewidth=2)
    ax.set_ylabel("density")


def draw_intervals(ax: Any, column: Column, middle: Floats, ends: Sequence[Floats], level: float) -> None:
    """Draw the estimates of missing cells in order, each with its interval."""
    order = np.argsort(middle, kind="stable")
    if len(order) > MOST_CELLS:
        order = order[np.linspace(0, len(order) - 1, MOST_CELLS).round().astype(int)]
    at = np.arange(len(order))
    low, high, middle = (on_axis(column, one[order]) for one in (*ends, middle))
    ax.vlines(at, low, high, color=OBSERVED, linewidth=1, label=f"{level:.0%} interval")
    ax.plot(at, middle, ".", color=IMPUTED, markersize=4, label="estimate")
    ax.set_xlabel(f"{len(order):,} missing cells, by estimate")
    _legend_above(ax)
    _finish(ax, column.name, "Intervals of missing cells")


def draw_curves(ax: Any, curves: Mapping[str, Floats], baseline: Mapping[str, float]) -> None:
    """Draw by how much each column's log-likelihood exceeds that of its own distribution, averaged over some epochs."""
    gains = {name: trailing_mean(np.asarray(curve) - baseline[name]) for name, curve in curves.items()}
    last = {name: one[np.isfinite(one)][-1] if np.isfinite(one).any() else -np.inf for name, one in gains.items()}
    named = sorted(gains, key=lambda name: last[name])[:MOST_NAMED]
    for name, gain in gains.items():
        if name not in named:
            ax.plot(np.arange(1, len(gain) + 1), gain, color="0.8", linewidth=1)
    for name in named:
        ax.plot(np.arange(1, len(gains[name]) + 1), gains[name], label=name)
    ax.axhline(0.0, color="0.3", linestyle=":", linewidth=1)
    ax.set_xlabel("epoch")
    ax.set_ylabel("gain over its own distribution, nats a cell")
    ax.set_title("What each column has learned from the others", loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    if named:
        legend = ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        _without_maths(legend.get_texts())


def trailing_mean(curve: Floats) -> Floats:
    """Return the mean over a twelfth of all epochs up to each one: one epoch has few cells of a small table.

    Examples
    --------
    >>> trailing_mean(np.array([1.0, np.nan, 3.0])).tolist(), float(trailing_mean(np.arange(24.0))[-1])
    ([1.0, nan, 3.0], 22.5)
    """
    n = max(1, len(curve) // SMOOTHED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # epochs in which a column had no cell
        return np.array([np.nanmean(curve[max(0, i - n + 1) : i + 1]) for i in range(len(curve))])


def on_axis(column: Column, values: Floats) -> Any:
    """Return values as an axis shows them: dates of a column of dates, other numbers as they are."""
    return make_dates(values + days_of(column.origin)) if column.kind == "date" else values


def _legend_above(ax: Any) -> None:
    """Put the legend into a strip above what is drawn, so that it hides none of it."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.16 * (high - low))
    ax.legend(loc="upper right", ncols=2, frameon=False)


def _finish(ax: Any, name: str, title: str) -> None:
    ax.set_title(f"{title}: {name}", loc="left", fontsize="medium").set_parse_math(False)
    ax.spines[["top", "right"]].set_visible(False)


def _without_maths(texts: Sequence[Any]) -> None:
    for one in texts:
        one.set_parse_math(False)  # a column may be called `$x$`
