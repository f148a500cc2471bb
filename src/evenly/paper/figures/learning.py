"""How evenly the columns learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evenly.paper.agreement import comparable
from evenly.paper.figures.style import (
    COLORS,
    MARKERS,
    clean,
    count_runs,
    finish,
    label,
    new_figure,
    plain,
    plain_log_axis,
)
from evenly.paper.measures import (
    Record,
    at_one_percent,
    band,
    gradient_changes,
    grouped,
    improvements,
    mean_over_runs,
    numbers,
    progress,
    those,
    values_of,
    variation,
)
from evenly.tables import Floats


class Quantity(NamedTuple):
    """A number that balanced learning would make equal between columns: its name, values at the last points, axis."""

    name: str
    values: Callable[[Record], Floats]
    scale: str


QUANTITIES = (
    Quantity("gain from point to point\n/ |log-likelihood at the start|", improvements, "symlog"),
    Quantity("share of the whole gain\nin log-likelihood", progress, "linear"),
    Quantity("change of the gradient\n/ gradient at the start", gradient_changes, "log"),
)


def balance(records: Sequence[Record], *, dataset: str, model: str) -> Any:
    """Draw how evenly the columns learn under each method.

    Rows: the paper's goal, the gain in log-likelihood from point to point relative to the first; ours, the share of the
    whole gain; the paper's other goal, the relative change of gradients. A panel a method: the columns' 10 % to 90 %
    band and median; on the right, the coefficient of variation between columns. Below, the gradients at the start.
    """
    shown = at_one_percent(those(comparable(records), dataset=dataset, model=model))
    n_points = max((len(record["points"]) for record in shown), default=0)
    # A training that was stopped has fewer points; with two or less there is nothing between them.
    shown = [record for record in shown if len(record["points"]) == n_points and len(record["history"]) > n_points - 2]
    if n_points < 3 or not shown:
        return None
    by_method = {method: those(shown, method=method) for method in values_of(shown, "method")}
    epochs = numbers(shown[0]["points"])
    whole = len(shown[0]["history"]) == n_points
    figure = new_figure(1.75 * len(by_method) + 4.4, 9.6)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=[3.0, 1.0])
    places = upper.subgridspec(3, len(by_method) + 1, width_ratios=[1.0] * len(by_method) + [1.7])
    for row, quantity in enumerate(QUANTITIES):
        _draw_row(figure, [places[row, i] for i in range(len(by_method) + 1)], quantity, by_method, epochs)
    _draw_gradients(figure.add_subplot(lower), by_method, shown[0]["modelled"])
    start = "" if whole else f"The start is not recorded: the first point is after {epochs[1]:.0f} epochs. "
    note = (
        "Bands: 10 % to 90 % of the columns; lines: the median. First row: the paper's balanced learning asks for "
        f"equal values; they depend on the columns' units, and a log-likelihood near 0 makes them large. {start}"
        "Second row: ours, free of units; 0 and 1 at the ends by definition, cut at -0.5 and "
        "1.5. Third row: by one step on the same rows and draws; the paper asks for equal values. Right: lower is more "
        "even; where the mean is near 0 it says little. "
        f"{count_runs(grouped(shown).values())} a method, {shown[0]['run']['percent']} % of the cells hidden."
    )
    return finish(figure, f"How evenly the columns of {dataset} learn ({model})", note, list(by_method))


def _draw_row(
    figure: Any,
    places: Sequence[Any],
    quantity: Quantity,
    by_method: Mapping[str, Sequence[Record]],
    epochs: Floats,
) -> None:
    """Draw a quantity: a panel a method, and on the right how much the columns differ."""
    top, bottom = quantity is QUANTITIES[0], quantity is QUANTITIES[-1]
    # At the ends every column has made none and all of its own gain.
    inner = slice(1, -1) if quantity.values is progress else slice(None)
    spread = figure.add_subplot(places[-1])
    left = None
    for place, (method, records) in zip(places, by_method.items(), strict=False):
        values = [quantity.values(record) for record in records]
        low, middle, high = band(np.concatenate(values, axis=1))
        points = epochs[-len(middle) :]
        ax = figure.add_subplot(place, sharey=left)
        ax.fill_between(points, low, high, color=COLORS[method], alpha=0.3, linewidth=0.0)
        ax.plot(points, middle, color=COLORS[method])
        style = {"color": COLORS[method], "marker": MARKERS[method], "markersize": 3.5, "linewidth": 1.2}
        spread.plot(points[inner], mean_over_runs(map(variation, values))[inner], **style)
        clean(ax)
        label(ax, method if top else "", x="epochs" if bottom else "")
        if left is None:
            left = ax
            ax.set_ylabel(quantity.name, fontsize=9)
        else:
            ax.tick_params(labelleft=False)
        _scale_epochs(ax, epochs)
    _scale_axis(left, quantity.scale)
    clean(spread)
    if any((line.get_ydata() > 0.0).any() for line in spread.get_lines()):  # else all columns learn alike
        spread.set_yscale("log")
        plain_log_axis(spread.yaxis)
    _scale_epochs(spread, epochs)
    label(spread, "spread between columns" if top else "", "epochs" if bottom else "", "std / |mean|")


def _scale_epochs(ax: Any, epochs: Floats) -> None:
    """Scale an axis of epochs: by logarithms if the points are spaced so."""
    if len(epochs) > 2 and epochs[2] - epochs[1] < 0.1 * epochs[-1]:
        ax.set_xscale("symlog", linthresh=1.0)
        ticks = [one for one in (1, 10, 100, 1000) if one <= epochs[-1]]
        ax.set_xticks([0, *ticks], [f"{tick}" for tick in (0, *ticks)])
        ax.minorticks_off()
    ax.set_xlim(0.0, epochs[-1] * 1.02)


def _scale_axis(ax: Any, scale: str) -> None:
    """Scale the axis that a row's panels share."""
    ax.set_yscale(scale, **({"linthresh": 1e-3} if scale == "symlog" else {}))
    if scale == "symlog":
        ticks = [sign * size for sign in (-1, 1) for size in (0.001, 0.01, 0.1, 1.0)]
        ax.set_yticks([0.0, *ticks], [f"{tick:g}" for tick in (0.0, *ticks)])
    if scale == "linear":
        ax.set_ylim(-0.5, 1.5)


def _draw_gradients(ax: Any, by_method: Mapping[str, Sequence[Record]], names: Sequence[str]) -> None:
    """Draw the size of each column's gradient at the start."""
    for i, (method, records) in enumerate(by_method.items()):
        norms = mean_over_runs(record["gradients"][0] for record in records)
        at = np.arange(len(names)) + (i - (len(by_method) - 1) / 2) * 0.09
        known = norms > 0.0
        ax.plot(at[known], norms[known], MARKERS[method], color=COLORS[method], markersize=4)
    clean(ax)
    ax.set_yscale("log")
    plain_log_axis(ax.yaxis)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_xticks(range(len(names)), [plain(name) for name in names], rotation=40, ha="right", rotation_mode="anchor")
    if len(names) > 30:
        ax.tick_params(axis="x", labelsize=6)
    label(ax, "Gradients at the start", y="norm of the gradient\n(log scale)")
