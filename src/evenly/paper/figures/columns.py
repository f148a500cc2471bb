"""Errors of single columns: stars and bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evenly.paper.agreement import comparable
from evenly.paper.figures.style import (
    BASELINE_LABEL,
    BASELINE_STYLE,
    COLORS,
    DARK,
    MARKERS,
    clean,
    count_runs,
    finish,
    label,
    legend_line,
    new_figure,
    panels,
    pick_dataset,
    plain,
)
from evenly.paper.measures import Record, at_one_percent, grouped, normalized_means, those, values_of
from evenly.tables import Floats

TOP = 2.5
"""Where axes of normalized errors end at the latest; larger values are written as numbers."""


def stars(records: Sequence[Record], *, dataset: str | None = None) -> Any:
    """Draw a star a model: a ray a column, a line a method, at the normalized error; letter by default."""
    done = comparable(records)
    dataset = pick_dataset(done, dataset, ("letter",))
    shown = at_one_percent(those(done, dataset=dataset))
    if not shown:
        return None
    models, names = values_of(shown, "model"), shown[0]["columns"]
    figure, axes = panels(len(models), 3, 4.6, 4.0, subplot_kw={"projection": "polar"})
    means = normalized_means(shown)
    top = _top(means.values())
    for ax, model in zip(axes, models, strict=True):
        methods = values_of(those(shown, model=model), "method")
        _star(ax, {method: np.minimum(means[model, method], top) for method in methods}, names, top)
        ax.set_title(model, fontsize=10, pad=14)
    beyond = sum(int((mean > top).sum()) for mean in means.values())
    note = (
        f"Normalized error: error / error of the mean or the mode, whose circle is 1; closer to the centre is better. "
        f"Mean of {count_runs(grouped(shown).values())}, {shown[0]['run']['percent']} % of the cells hidden."
        + (f" {beyond} of all values are beyond {top:.3g} and drawn there." if beyond else "")
    )
    return _finish(figure, dataset, note, values_of(shown, "method"))


def _finish(figure: Any, dataset: str | None, note: str, methods: Sequence[str]) -> Any:
    extra = [legend_line(BASELINE_LABEL, **BASELINE_STYLE)]
    return finish(figure, f"Normalized error of each column of {dataset}", note, methods, extra)


def _star(ax: Any, radii: Mapping[str, Floats], names: Sequence[str], top: float) -> None:
    """Draw one model: the radii of each method's rays."""
    angles = np.linspace(0.0, 2.0 * np.pi, len(names), endpoint=False)
    round_trip = np.linspace(0.0, 2.0 * np.pi, 181)
    ax.plot(round_trip, np.ones_like(round_trip), **BASELINE_STYLE)
    for method, own in radii.items():
        closed = np.append(own, own[:1])
        style = {"color": COLORS[method], "marker": MARKERS[method], "markersize": 3.5}
        ax.plot(np.append(angles, angles[:1]), closed, linewidth=2.2 if method == "lip-gamma" else 1.2, **style)
    ax.set_theta_zero_location("N")
    ax.set_theta_direction(-1)
    ax.set_rlim(0.0, top)
    ax.set_rticks([0.5, 1.0, *[tick for tick in (1.5, 2.0) if tick < top]])
    ax.set_rlabel_position(180.0 / len(names))
    ax.set_xticks(angles, [plain(_two_lines(name)) for name in names])
    for text, angle in zip(ax.get_xticklabels(), angles, strict=True):
        text.set_ha("center" if abs(np.sin(angle)) < 0.1 else "left" if angle < np.pi else "right")
    clean(ax)


def _two_lines(name: str, most: int = 12) -> str:
    """Break a long name at the underscore nearest to its middle."""
    places = [i for i, character in enumerate(name) if character == "_"]
    if len(name) <= most or not places:
        return name
    at = min(places, key=lambda i: abs(i - len(name) / 2)) + 1
    return f"{name[:at]}\n{name[at:]}"


def _top(means: Iterable[Floats]) -> float:
    """Return where an axis of normalized errors ends."""
    values = np.concatenate(list(means))
    largest = values[np.isfinite(values)].max(initial=1.1)
    return float(min(largest * 1.04, TOP))


def column_bars(records: Sequence[Record], *, dataset: str) -> Any:
    """Draw a bar a column and method at the normalized error, a row a model; a line at 1 is the mean or the mode."""
    shown = at_one_percent(those(comparable(records), dataset=dataset))
    if not shown:
        return None
    models, methods, names = values_of(shown, "model"), values_of(shown, "method"), shown[0]["columns"]
    means = normalized_means(shown)
    figure = new_figure(max(8.0, min(2.0 + 0.085 * len(names) * (len(methods) + 1), 30.0)), 1.4 + 2.2 * len(models))
    axes = figure.subplots(len(models), 1, squeeze=False, sharex=True).ravel()
    for ax, model in zip(axes, models, strict=True):
        clean(ax)
        _bars(ax, {method: means[model, method] for method in methods if (model, method) in means}, methods)
        ax.set_xlim(-0.6, len(names) - 0.4)
        label(ax, model, y="normalized error")
    places = np.arange(len(names))
    axes[-1].set_xticks(places, [plain(name) for name in names], rotation=40, ha="right", rotation_mode="anchor")
    note = (
        f"Normalized error: error / error of the mean or the mode, the line at 1; lower is better. Mean of "
        f"{count_runs(grouped(shown).values())}, {shown[0]['run']['percent']} % of the cells hidden. A number in a "
        "bar: its height, beyond the axis."
    )
    return _finish(figure, dataset, note, methods)


def _bars(ax: Any, heights: Mapping[str, Floats], methods: Sequence[str]) -> None:
    """Draw one model: the heights of each method's bars, with a number in those beyond the axis."""
    top, width = _top(heights.values()), 0.84 / len(methods)
    for method, own in heights.items():
        at = np.arange(len(own)) + (methods.index(method) - (len(methods) - 1) / 2) * width
        ax.bar(at, np.minimum(own, top), width * 0.94, color=COLORS[method], zorder=2)
        for x, height in zip(at, own, strict=True):
            if height > top:
                style = {"rotation": 90, "ha": "center", "va": "top", "fontsize": 6.5, "zorder": 4}
                ax.text(x, top * 0.98, f"{height:.3g}", color="white" if method in DARK else "black", **style)
    ax.axhline(1.0, zorder=3, **BASELINE_STYLE)
    ax.set_ylim(0.0, top)
