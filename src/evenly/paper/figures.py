"""The paper's figures, drawn from the records of runs: matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evenly._support import TableError, require, write_bytes
from evenly.likelihoods import GAMMA
from evenly.metrics import GROUPS, PROTOCOLS
from evenly.paper.agreement import comparable
from evenly.paper.grid import MODELS
from evenly.paper.measures import (
    Record,
    at_one_percent,
    band,
    bars,
    gradient_changes,
    grouped,
    improvements,
    mean_error,
    mean_over_runs,
    normalized_means,
    numbers,
    progress,
    shared_by_methods,
    target_of,
    those,
    values_of,
    variation,
)
from evenly.scaling import scaled_smoothness, smoothness_by_parameter
from evenly.tables import Floats

COLORS = {
    "std-none": "#e69f00",
    "max-none": "#cc79a7",
    "iqr-none": "#4d4d4d",
    "lip-none": "#56b4e9",
    "lip-bern": "#009e73",
    "std-gamma": "#d55e00",
    "lip-gamma": "#0072b2",
}
"""One colour a method in every figure, after Okabe and Ito: told apart with any colour vision."""
MARKERS = dict(zip(COLORS, "ovs^PXD", strict=True))
"""One marker a method, where colour alone would not do."""
DARK = ("iqr-none", "std-gamma", "lip-gamma")
"""The methods whose colour is a background for white."""
INK, DATA, BASELINE = "#222222", "#c8c8c8", "#222222"
DPI = 110
LEAST_WIDTH = 8.0
"""Inches: room for a title and the legend."""

INTRODUCED = ("std-none", "std-gamma", "lip-gamma")
"""The methods of the paper's first two figures."""
MOST_PANELS = 24
"""Of a table with more columns the figure of histograms shows the first ones."""
TOP = 2.5
"""Where axes of normalized errors end at the latest; what is beyond is told as a number."""
OUTSIDE = 0.02
"""A larger share of draws beyond the data's range is told."""
WHISKER = 1.5
"""How many interquartile ranges the whiskers of a box reach at most: dots are beyond."""
FENCE = 3.0
"""How many interquartile ranges of all runs of a panel its axis reaches beyond their quartiles at most."""


# --- drawing ------------------------------------------------------------------------------------------------------


def plain(text: object) -> str:
    """Return a text that matplotlib draws as it is: a dollar sign would begin a formula.

    Examples
    --------
    >>> print(plain("char_freq_$"))
    char_freq_\\$
    """
    return str(text).replace("$", r"\$")


def _figure(width: float, height: float) -> Any:
    return require("matplotlib.figure", "tool").Figure(figsize=(width, height), layout="constrained")


def _grid(n: int, across: int, width: float, height: float, **settings: Any) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, row by row; those beyond n are removed."""
    across = min(across, n)
    down = -(-n // across)
    figure = _figure(max(width * across + 1.6, LEAST_WIDTH), height * down + 1.2)
    axes = figure.subplots(down, across, squeeze=False, **settings).ravel()
    for ax in axes[n:]:
        ax.remove()
    for ax in axes[:n]:
        _clean(ax)
    return figure, list(axes[:n])


def _clean(ax: Any) -> None:
    if ax.name != "polar":
        ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def _say(ax: Any, title: object, x: str = "", y: str = "", pad: float = 6.0) -> None:
    ax.set_title(plain(title), loc="left", fontsize=10, pad=pad)
    ax.set_xlabel(x, fontsize=9)
    ax.set_ylabel(y, fontsize=9)


def _finish(figure: Any, title: str, note: str, methods: Sequence[str], extra: Sequence[Any] = ()) -> Any:
    """Add the title, a note below, and the legend of the methods."""
    line = require("matplotlib.lines", "tool").Line2D
    handles = [line([], [], color=COLORS[one], marker=MARKERS[one], linestyle="-", label=one) for one in methods]
    if handles or extra:
        figure.legend(handles=[*handles, *extra], loc="outside right upper", frameon=False, fontsize=9)
    width = figure.get_figwidth()  # in which so many characters an inch fit, the legend's place left free
    figure.suptitle(textwrap.fill(plain(title), int((width - 1.7) * 10.5)), x=0.01, ha="left", fontsize=12)
    figure.supxlabel(textwrap.fill(plain(note), int(width * 15)), x=0.01, ha="left", fontsize=8.5, color=INK)
    return figure


def _plain_log_axis(axis: Any) -> None:
    """Label a log axis of less than two decades with plain numbers."""
    low, high = axis.get_view_interval()
    if high > 100.0 * low:
        return
    ticker = require("matplotlib.ticker", "tool")
    subs = (1.0, 2.0, 5.0) if high > 10.0 * low else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    axis.set_major_locator(ticker.LogLocator(subs=subs))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _line(label: str, **style: Any) -> Any:
    return require("matplotlib.lines", "tool").Line2D([], [], label=label, **style)


BASELINE_STYLE = {"color": BASELINE, "linestyle": ":", "linewidth": 1.3}
BASELINE_LABEL = "mean or mode"


def _runs(groups: Iterable[Sequence[Record]]) -> str:
    """Say how many runs each mean is taken over."""
    sizes = sorted({len(group) for group in groups})
    low, high = sizes[0], sizes[-1]
    return f"{high} run{'s' if high > 1 else ''}" if low == high else f"{low} to {high} runs"


# --- the figures --------------------------------------------------------------------------------------------------


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
    dataset = _pick(there, dataset, ("adult",))
    shown = at_one_percent(those(there, dataset=dataset))
    if not shown:
        return None
    one = {method: those(shown, method=method)[0] for method in values_of(shown, "method")}
    run, kinds = shown[0]["run"], dict(zip(shown[0]["columns"], shown[0]["kinds"], strict=True))
    names = [name for name in kinds if all(name in record["marginals"] for record in one.values())]
    # Continuous ones first, as the paper has them on the left.
    names.sort(key=lambda name: kinds[name] not in GROUPS["continuous"])
    figure, axes = _grid(len(names[:MOST_PANELS]), 4, 2.9, 2.1)
    for ax, name in zip(axes, names, strict=False):
        for i, (method, record) in enumerate(one.items()):
            ends, data, drawn = bars(kinds[name], record["marginals"][name])
            if i == 0:
                ax.stairs(data, ends, fill=True, color=DATA)
            width, style = (2.0, "-") if method == "lip-gamma" else (1.5, ("--", (0, (1, 1)))[i % 2])
            ax.stairs(drawn, ends, color=COLORS[method], linewidth=width, linestyle=style, fill=False)
            outside = 1.0 - numbers(record["marginals"][name]["model"]).sum()
            if outside > OUTSIDE:
                place = {"transform": ax.transAxes, "ha": "right", "va": "top", "fontsize": 7.5}
                ax.text(0.99, 0.98 - 0.12 * i, f"{100 * outside:.0f} % outside", color=COLORS[method], **place)
        _say(ax, f"{name} ({kinds[name]})", y="share of a value" if kinds[name] == "count" else "share")
        # Room above the bars for what is told there.
        ax.set_ylim(0.0, ax.get_ylim()[1] * (1.4 if ax.texts else 1.0))
        if kinds[name] in ("binary", "categorical", "ordinal"):
            ax.set_xlabel("class", fontsize=9)
            ax.set_xticks(np.arange(len(ends) - 1, step=max(1, len(ends) // 8)))
    left_out = f" The first {MOST_PANELS} of {len(names)} columns." if len(names) > MOST_PANELS else ""
    note = (
        f"Grey: the data. Lines: one draw a row from the trained model. Mask {run['mask']}, {run['percent']} % of the "
        f"cells hidden. Draws beyond the data's range are in no bar; their share is told if it is more than "
        f"{100 * OUTSIDE:g} %.{left_out}"
    )
    return _finish(figure, f"Histograms of {dataset}: the data and the {model}", note, list(one))


def _pick(records: Sequence[Record], dataset: str | None, wanted: Sequence[str]) -> str | None:
    """Return the data set to draw: as given, or the first of the wanted ones that is there, or the first of all."""
    there = values_of(records, "dataset")
    return dataset or next((name for name in wanted if name in there), there[0] if there else None)


def error_boxes(records: Sequence[Record], *, by: str = "model", protocol: str = "honest") -> Any:
    """Draw boxes of the runs' mean errors: a panel a data set, a group a model (or a percent), a box a method.

    Parameters
    ----------
    by : {"model", "percent"}
        What makes a group; all runs of the others are in it.
    protocol : {"honest", "as-published"}
        The second is for comparing with the paper's figure only, and the title says so.
    """
    if by not in ("model", "percent") or protocol not in PROTOCOLS:
        raise TableError(f"by={by!r}, protocol={protocol!r}", f"expected model or percent, and one of {PROTOCOLS}")
    scored = [record for record in comparable(records) if not np.isnan(mean_error(record, protocol))]
    if not scored:
        return None
    done = shared_by_methods(scored, by)
    alone = len(scored) - len(done)
    datasets = values_of(done, "dataset")
    figure, axes = _grid(len(datasets), 3, 4.2, 2.9)
    above = 0
    for ax, dataset in zip(axes, datasets, strict=True):
        above += _error_panel(ax, those(done, dataset=dataset), by, protocol)
        _say(ax, dataset, y="error, mean over the columns", pad=13.0)
    failed = sum("failed" in record for record in records)
    other_lengths = len(records) - failed - len(comparable(records))
    shares = ", ".join(map(str, values_of(done, "percent")))
    pooled = "of models" if by == "percent" else "at shares of hidden cells"
    other = "of all models" if by == "percent" else f"at all shares of hidden cells ({shares} %)"
    note = (
        f"A box: the quartiles and the median over the runs {other}. Whiskers end at the last run within {WHISKER} "
        f"interquartile ranges of the box; runs beyond are dots. An axis ends at most {FENCE:g} interquartile ranges "
        f"above the upper quartile of all its runs; ▲n: n runs of the method are above it, {above} in all. "
        f"{len(done)} runs{f'; failed, and not shown: {failed}' if failed else ''}"
        f"{f'; of other epochs, and not shown: {other_lengths}' if other_lengths else ''}"
        f"{f'; {pooled} that not all methods have runs of, and not shown: {alone}' if alone else ''}."
    )
    honest = protocol == "honest"
    how = "each column on its own hidden cells" if honest else "AS PUBLISHED: flawed, to compare with the paper only"
    extra = [_line(f"{BASELINE_LABEL},\nmean of the runs", **BASELINE_STYLE)] if honest else []
    title = f"Imputation error by data set and {'model' if by == 'model' else 'share of hidden cells'}; {how}"
    return _finish(figure, title, note, values_of(done, "method"), extra)


def _error_panel(ax: Any, records: Sequence[Record], by: str, protocol: str) -> int:
    """Draw the boxes of one data set; returns how many runs are above the axis."""
    groups, methods = values_of(records, by), values_of(records, "method")
    errors = np.array([mean_error(record, protocol) for record in records])
    low, high = np.quantile(errors, [0.25, 0.75])
    top, bottom = errors.max() if high == low else min(errors.max(), high + FENCE * (high - low)), errors.min()
    if protocol == "honest":
        baseline = float(np.mean([mean_error({"honest": record["mean_or_mode"]}) for record in records]))
        if max(top, baseline) - min(bottom, baseline) <= 2.0 * (top - bottom) or top == bottom:
            top, bottom = max(top, baseline), min(bottom, baseline)
            ax.axhline(baseline, zorder=0, **BASELINE_STYLE)
        else:  # a line so far away would leave the boxes less than half of the panel
            place = {"transform": ax.transAxes, "ha": "right", "va": "top" if baseline > top else "bottom"}
            arrow = "↑" if baseline > top else "↓"
            ax.text(
                0.99, 0.98 if baseline > top else 0.02, f"{BASELINE_LABEL}: {baseline:.3g} {arrow}", fontsize=8, **place
            )
    margin = 0.06 * (top - bottom) or 0.05 * abs(top) or 0.01
    top, bottom = top + margin, bottom - margin
    step = len(methods) + 1.5
    for i, group in enumerate(groups):
        for k, method in enumerate(methods):
            own = [mean_error(one, protocol) for one in those(records, method=method, **{by: group})]
            if not own:
                continue
            at, ink = i * step + k, {"color": COLORS[method]}
            ax.boxplot(
                [own],
                positions=[at],
                widths=0.75,
                whis=WHISKER,
                manage_ticks=False,
                patch_artist=True,
                boxprops={"facecolor": COLORS[method] + "55", "edgecolor": COLORS[method]},
                whiskerprops=ink,
                capprops=ink,
                medianprops={**ink, "linewidth": 2.2},
                flierprops={"marker": ".", "markersize": 4, "markeredgecolor": COLORS[method]},
            )
            above = sum(error > top for error in own)
            if above:
                ax.text(at, top, f"▲{above}", ha="center", va="bottom", fontsize=7, **ink)
    ax.set_ylim(bottom, top)
    ax.set_xlim(-1.0, (len(groups) - 1) * step + len(methods))
    centres = np.arange(len(groups)) * step + (len(methods) - 1) / 2
    ax.set_xticks(centres, [f"{group} %" if by == "percent" else group for group in groups])
    return int((errors > top).sum())


def stars(records: Sequence[Record], *, dataset: str | None = None) -> Any:
    """Draw a star a model: a ray a column, a line a method, at the normalized error; letter by default."""
    done = comparable(records)
    dataset = _pick(done, dataset, ("letter",))
    shown = at_one_percent(those(done, dataset=dataset))
    if not shown:
        return None
    models, names = values_of(shown, "model"), shown[0]["columns"]
    figure, axes = _grid(len(models), 3, 4.6, 4.0, subplot_kw={"projection": "polar"})
    angles = np.linspace(0.0, 2.0 * np.pi, len(names), endpoint=False)
    means = normalized_means(shown)
    top = _top(means.values())
    for ax, model in zip(axes, models, strict=True):
        round_trip = np.linspace(0.0, 2.0 * np.pi, 181)
        ax.plot(round_trip, np.ones_like(round_trip), **BASELINE_STYLE)
        for method in values_of(those(shown, model=model), "method"):
            radii = np.minimum(means[model, method], top)
            closed = np.append(radii, radii[:1])
            style = {"color": COLORS[method], "marker": MARKERS[method], "markersize": 3.5}
            ax.plot(np.append(angles, angles[:1]), closed, linewidth=2.2 if method == "lip-gamma" else 1.2, **style)
        ax.set_theta_zero_location("N")
        ax.set_theta_direction(-1)
        ax.set_rlim(0.0, top)
        ax.set_rticks([0.5, 1.0, *[tick for tick in (1.5, 2.0) if tick < top]])
        ax.set_rlabel_position(180.0 / len(names))
        ax.set_xticks(angles, [plain(_two_lines(name)) for name in names])
        for label, angle in zip(ax.get_xticklabels(), angles, strict=True):
            label.set_ha("center" if abs(np.sin(angle)) < 0.1 else "left" if angle < np.pi else "right")
        _clean(ax)
        ax.set_title(model, fontsize=10, pad=14)
    beyond = sum(int((mean > top).sum()) for mean in means.values())
    note = (
        f"Normalized error: error / error of the mean or the mode, whose circle is 1; closer to the centre is better. "
        f"Mean of {_runs(grouped(shown).values())}, {shown[0]['run']['percent']} % of the cells hidden."
        + (f" {beyond} of all values are beyond {top:.3g} and drawn there." if beyond else "")
    )
    extra = [_line(BASELINE_LABEL, **BASELINE_STYLE)]
    return _finish(figure, f"Normalized error of each column of {dataset}", note, values_of(shown, "method"), extra)


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
    figure = _figure(max(8.0, min(2.0 + 0.085 * len(names) * (len(methods) + 1), 30.0)), 1.4 + 2.2 * len(models))
    axes = figure.subplots(len(models), 1, squeeze=False, sharex=True).ravel()
    width, places = 0.84 / len(methods), np.arange(len(names))
    for ax, model in zip(axes, models, strict=True):
        _clean(ax)
        own = [(k, method) for k, method in enumerate(methods) if (model, method) in means]
        top = _top(means[model, method] for _, method in own)
        for k, method in own:
            heights, at = means[model, method], places + (k - (len(methods) - 1) / 2) * width
            ax.bar(at, np.minimum(heights, top), width * 0.94, color=COLORS[method], zorder=2)
            for x, height in zip(at, heights, strict=True):
                if height > top:
                    style = {"rotation": 90, "ha": "center", "va": "top", "fontsize": 6.5, "zorder": 4}
                    ink = "white" if method in DARK else "black"
                    ax.text(x, top * 0.98, f"{height:.3g}", color=ink, **style)
        ax.axhline(1.0, zorder=3, **BASELINE_STYLE)
        ax.set_ylim(0.0, top)
        ax.set_xlim(-0.6, len(names) - 0.4)
        _say(ax, model, y="normalized error")
    axes[-1].set_xticks(places, [plain(name) for name in names], rotation=40, ha="right", rotation_mode="anchor")
    note = (
        f"Normalized error: error / error of the mean or the mode, the line at 1; lower is better. Mean of "
        f"{_runs(grouped(shown).values())}, {shown[0]['run']['percent']} % of the cells hidden. A number in a bar: "
        "its height, beyond the axis."
    )
    extra = [_line(BASELINE_LABEL, **BASELINE_STYLE)]
    return _finish(figure, f"Normalized error of each column of {dataset}", note, methods, extra)


def gamma_smoothness() -> Any:
    """Draw the smoothness of a standardized gamma against its shape: the estimator, the paper's bound, the floor."""
    figure, (ax,) = _grid(1, 1, 7.0, 3.6)
    shapes = np.geomspace(0.3, 1000.0, 200)
    # A rate of sqrt(shape) gives a standard deviation of 1.
    naturals = [GAMMA.to_natural(np.array([shape, np.sqrt(shape)])) for shape in shapes]
    rows = np.array([smoothness_by_parameter(GAMMA, natural) for natural in naturals])
    bound = [scaled_smoothness(GAMMA, natural, 1.0, "paper") for natural in naturals]
    floor = np.array([GAMMA.fisher(natural)[0, 0] for natural in naturals])
    published = 1.0 + (1.0 - shapes) * floor
    ax.plot(shapes, bound, color=COLORS["std-gamma"], linestyle="--", label="the paper's bound")
    ax.plot(shapes, rows.sum(axis=1), color=INK, linewidth=2.2, label="smoothness: the estimator")
    ax.plot(shapes, floor, color=COLORS["lip-gamma"], linestyle="-.", label="of it, what no scale changes: trigamma")
    ax.plot(shapes, published, color=COLORS["max-none"], linestyle=":", label="that part as the paper draws it")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(0.3, 1000.0)
    ax.set_ylim(1e-3, 60.0)
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.set_yticks([0.001, 0.01, 0.1, 1, 10], ["0.001", "0.01", "0.1", "1", "10"])
    ax.legend(frameon=False, fontsize=9, loc="lower left")
    _say(ax, "", "shape", "smoothness")
    note = (
        "At scale 1 the bound is twice the estimator. The paper draws 1 + (1 - shape) trigamma(shape), which comes "
        "from the entropy; the second derivative of the log-likelihood is trigamma(shape)."
    )
    return _finish(figure, "Smoothness of a gamma of standard deviation 1", note, ())


def smoothness_by_method(records: Sequence[Record], *, model: str = "vae") -> Any:
    """Draw each column's smoothness as it is and after each method, on a log axis, with the targets."""
    done = those(comparable(records), model=model)
    if not done:
        return None
    datasets = values_of(done, "dataset")
    figure, axes = _grid(len(datasets), 3, 4.2, 3.0)
    for ax, dataset in zip(axes, datasets, strict=True):
        shown = at_one_percent(those(done, dataset=dataset))
        methods = values_of(shown, "method")
        for i, method in enumerate(methods):
            own = those(shown, method=method)
            values = {when: mean_over_runs(one["smoothness"][when] for one in own) for when in ("before", "after")}
            for shift, when, fill in ((-0.2, "before", "none"), (0.2, "after", COLORS[method])):
                known = values[when] > 0.0
                # Columns side by side in the order of the table, so that no dot hides another.
                at = i + shift + np.linspace(-0.14, 0.14, len(known))[known]
                style = {"edgecolors": COLORS[method], "facecolors": fill, "linewidths": 0.8, "zorder": 2}
                ax.scatter(at, values[when][known], s=13, **style)
            target = target_of(own[0])
            if target is not None:
                ax.hlines(target, i - 0.45, i + 0.45, color=INK, linestyle=":", linewidth=1.4, zorder=3)
        ax.set_yscale("log")
        ax.set_xlim(-0.6, len(methods) - 0.4)
        ax.set_xticks(range(len(methods)), methods, rotation=30, ha="right", rotation_mode="anchor")
        _say(ax, dataset, y="smoothness (log scale)")
    note = (
        "A mark a column, in the order of the table; a column's features are summed. Open: before scaling, filled: "
        "after. Methods with a trick count the features that it makes, before too; discrete columns without a trick "
        "stay as they are. The target is what the paper's bound aims at: the estimator, drawn here, is lower. "
        f"Learning rate of the {model}: {MODELS[model].learning_rate:g}."
    )
    extra = [_line("target", color=INK, linestyle=":", linewidth=1.4)]
    title = f"Smoothness of each column before and after each method ({model})"
    return _finish(figure, title, note, values_of(done, "method"), extra)


QUANTITIES: tuple[tuple[str, Callable[[Record], Floats], int, str], ...] = (
    ("gain from point to point\n/ |log-likelihood at the first|", improvements, 2, "symlog"),
    ("share of the whole gain\nin log-likelihood", progress, 1, "linear"),
    ("change of the gradient\n/ gradient at the start", gradient_changes, 0, "log"),
)
"""What balanced learning would make equal between columns: the words, the numbers, their first point, the axis."""


def balance(records: Sequence[Record], *, dataset: str, model: str) -> Any:
    """Draw how evenly the columns learn under each method.

    Rows: the paper's goal, the gain in log-likelihood from point to point relative to the first; ours, the share of the
    whole gain; the paper's other goal, the relative change of gradients. A panel a method: the columns' 10 % to 90 %
    band and median; on the right, the coefficient of variation between columns. Below, the gradients at the start.
    """
    shown = at_one_percent(those(comparable(records), dataset=dataset, model=model))
    n_points = max((len(record["points"]) for record in shown), default=0)
    # A training that was stopped has fewer points; with two or less there is nothing between them.
    shown = [record for record in shown if len(record["points"]) == n_points == len(record["history"]) + 1]
    if n_points < 3 or not shown:
        return None
    methods, names = values_of(shown, "method"), shown[0]["modelled"]
    epochs = numbers(shown[0]["points"])
    figure = _figure(1.75 * len(methods) + 4.4, 9.6)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=[3.0, 1.0])
    places = upper.subgridspec(3, len(methods) + 1, width_ratios=[1.0] * len(methods) + [1.7])
    for row, (words, quantity, first, scale) in enumerate(QUANTITIES):
        spread = figure.add_subplot(places[row, -1])
        left = None
        for i, method in enumerate(methods):
            values = [quantity(record) for record in those(shown, method=method)]
            low, middle, high = band(np.concatenate(values, axis=1))
            ax = figure.add_subplot(places[row, i], sharey=left)
            ax.fill_between(epochs[first:], low, high, color=COLORS[method], alpha=0.3, linewidth=0.0)
            ax.plot(epochs[first:], middle, color=COLORS[method])
            # At the ends every column has made none and all of its own gain.
            inner = slice(1, -1) if quantity is progress else slice(None)
            between = mean_over_runs(map(variation, values))[inner]
            style = {"color": COLORS[method], "marker": MARKERS[method], "markersize": 3.5, "linewidth": 1.2}
            spread.plot(epochs[first:][inner], between, **style)
            _clean(ax)
            _say(ax, method if row == 0 else "", x="epochs" if row == 2 else "")
            if left is None:
                left = ax
                ax.set_ylabel(words, fontsize=9)
            else:
                ax.tick_params(labelleft=False)
            ax.set_xlim(0.0, epochs[-1])
        assert left is not None
        left.set_yscale(scale, **({"linthresh": 1e-3} if scale == "symlog" else {}))
        if scale == "symlog":
            ticks = [sign * size for sign in (-1, 1) for size in (0.001, 0.01, 0.1, 1.0)]
            left.set_yticks([0.0, *ticks], [f"{tick:g}" for tick in (0.0, *ticks)])
        if scale == "linear":
            left.set_ylim(-0.5, 1.5)
        _clean(spread)
        spread.set_yscale("log")
        _plain_log_axis(spread.yaxis)
        spread.set_xlim(0.0, epochs[-1] * 1.02)
        _say(spread, "spread between columns" if row == 0 else "", "epochs" if row == 2 else "", "std / |mean|")
    ax = figure.add_subplot(lower)
    for i, method in enumerate(methods):
        norms = mean_over_runs(record["gradients"][0] for record in those(shown, method=method))
        at = np.arange(len(names)) + (i - (len(methods) - 1) / 2) * 0.09
        known = norms > 0.0
        ax.plot(at[known], norms[known], MARKERS[method], color=COLORS[method], markersize=4)
    _clean(ax)
    ax.set_yscale("log")
    _plain_log_axis(ax.yaxis)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_xticks(range(len(names)), [plain(name) for name in names], rotation=40, ha="right", rotation_mode="anchor")
    if len(names) > 30:
        ax.tick_params(axis="x", labelsize=6)
    _say(ax, "Gradients at the start", y="norm of the gradient\n(log scale)")
    note = (
        "Bands: 10 % to 90 % of the columns; lines: the median. First row: the paper's balanced learning asks for "
        "equal values; they depend on the columns' units, and a log-likelihood near 0 makes them large. The "
        "log-likelihood before the training is not recorded: the first point is after "
        f"{epochs[1]:.0f} epochs. Second row: ours, free of units; 0 and 1 at the ends by definition, cut at -0.5 and "
        "1.5. Third row: by one step on the same rows and draws; the paper asks for equal values. Right: lower is more "
        "even; where the mean is near 0 it says little. "
        f"{_runs(grouped(shown).values())} a method, {shown[0]['run']['percent']} % of the cells hidden."
    )
    return _finish(figure, f"How evenly the columns of {dataset} learn ({model})", note, methods)


# --- all of them --------------------------------------------------------------------------------------------------


def draw_all(records: Sequence[Record], out: Path) -> list[Path]:
    """Draw every figure that there are records for; returns the PNG files.

    Parameters
    ----------
    records : sequence of records
        Failed runs are left out, and those of other epochs than most methods of the same model and data set.
    out : path
        The folder to write to; files of the same name are replaced.
    """
    done = comparable(records)
    if not done:
        raise TableError(
            f"{len(records)} records, none of a finished run", "expected some", "run `evenly paper run` first"
        )
    datasets, models = values_of(done, "dataset"), values_of(done, "model")
    figures: dict[str, Callable[[], Any]] = {"marginals": partial(marginals, done)}
    for protocol in PROTOCOLS:
        for by in ("model", "percent"):
            name = f"error_by_{by}" + ("" if protocol == "honest" else "_as_published")
            figures[name] = partial(error_boxes, records, by=by, protocol=protocol)
    figures["stars"] = partial(stars, done)
    paper = [name for name in ("adult", "credit", "letter") if name in datasets]
    for dataset in paper or datasets[:1]:
        figures[f"columns_{dataset}"] = partial(column_bars, done, dataset=dataset)
    figures["gamma_smoothness"] = gamma_smoothness
    for model in models:
        figures[f"smoothness_{model}"] = partial(smoothness_by_method, done, model=model)
        for dataset in datasets:
            figures[f"balance_{dataset}_{model}"] = partial(balance, done, dataset=dataset, model=model)
    written = []
    for name, draw in figures.items():
        figure = draw()
        if figure is not None:
            path = Path(out) / f"{name}.png"
            write_bytes(path, to_png(figure))
            written.append(path)
    return written


def to_png(figure: Any) -> bytes:
    """Return a figure as a PNG file; the same figure is the same file, so matplotlib's version is not in it."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DPI, metadata={"Software": None})
    return content.getvalue()
