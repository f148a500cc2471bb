"""Boxes of the runs' errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.metrics import PROTOCOLS
from evenly.paper.agreement import comparable
from evenly.paper.figures.style import BASELINE_LABEL, BASELINE_STYLE, COLORS, finish, label, legend_line, panels
from evenly.paper.measures import Record, mean_error, shared_by_methods, those, values_of
from evenly.tables import Floats

WHISKER = 1.5
"""How many interquartile ranges the whiskers of a box reach at most; runs beyond are dots."""
FENCE = 3.0
"""How many interquartile ranges above the upper quartile of all its runs the axis of a panel ends at most."""


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
    datasets = values_of(done, "dataset")
    figure, axes = panels(len(datasets), 3, 4.2, 2.9)
    above = 0
    for ax, dataset in zip(axes, datasets, strict=True):
        above += _error_panel(ax, those(done, dataset=dataset), by, protocol)
        label(ax, dataset, y="error, mean over the columns", pad=13.0)
    failed = sum("failed" in record for record in records)
    left_out = {
        "failed, and not shown": failed,
        "of other epochs, and not shown": len(records) - failed - len(comparable(records)),
        f"{'of models' if by == 'percent' else 'at shares of hidden cells'} that not all methods have runs of, and "
        "not shown": len(scored) - len(done),
    }
    honest = protocol == "honest"
    how = "each column on its own hidden cells" if honest else "AS PUBLISHED: flawed, to compare with the paper only"
    extra = [legend_line(f"{BASELINE_LABEL},\nmean of the runs", **BASELINE_STYLE)] if honest else []
    title = f"Imputation error by data set and {'model' if by == 'model' else 'share of hidden cells'}; {how}"
    note = _note(done, by, above) + "".join(f"; {what}: {n}" for what, n in left_out.items() if n) + "."
    return finish(figure, title, note, values_of(done, "method"), extra)


def _note(done: Sequence[Record], by: str, above: int) -> str:
    shares = ", ".join(map(str, values_of(done, "percent")))
    other = "of all models" if by == "percent" else f"at all shares of hidden cells ({shares} %)"
    return (
        f"A box: the quartiles and the median over the runs {other}. Whiskers end at the last run within {WHISKER} "
        f"interquartile ranges of the box; runs beyond are dots. An axis ends at most {FENCE:g} interquartile ranges "
        f"above the upper quartile of all its runs; ▲n: n runs of the method are above it, {above} in all. "
        f"{len(done)} runs"
    )


def _error_panel(ax: Any, records: Sequence[Record], by: str, protocol: str) -> int:
    """Draw the boxes of one data set; returns how many runs are above the axis."""
    groups, methods = values_of(records, by), values_of(records, "method")
    errors = np.array([mean_error(record, protocol) for record in records])
    low, high = np.quantile(errors, [0.25, 0.75])
    top, bottom = errors.max() if high == low else min(errors.max(), high + FENCE * (high - low)), errors.min()
    if protocol == "honest":
        baseline = float(np.mean([mean_error({"honest": record["mean_or_mode"]}) for record in records]))
        bottom, top = _draw_baseline(ax, baseline, bottom, top)
    margin = 0.06 * (top - bottom) or 0.05 * abs(top) or 0.01
    top, bottom = top + margin, bottom - margin
    step = len(methods) + 1.5
    for i, group in enumerate(groups):
        for k, method in enumerate(methods):
            own = np.array([mean_error(one, protocol) for one in those(records, method=method, **{by: group})])
            if len(own):
                _draw_box(ax, own, i * step + k, method, top)
    ax.set_ylim(bottom, top)
    ax.set_xlim(-1.0, (len(groups) - 1) * step + len(methods))
    centres = np.arange(len(groups)) * step + (len(methods) - 1) / 2
    ax.set_xticks(centres, [f"{group} %" if by == "percent" else group for group in groups])
    return int((errors > top).sum())


def _draw_baseline(ax: Any, baseline: float, bottom: float, top: float) -> tuple[float, float]:
    """Draw the error of the mean or the mode as a line, or write it if it is far away; returns the axis' ends."""
    if max(top, baseline) - min(bottom, baseline) <= 2.0 * (top - bottom) or top == bottom:
        ax.axhline(baseline, zorder=0, **BASELINE_STYLE)
        return min(bottom, baseline), max(top, baseline)
    # A line so far away would leave the boxes less than half of the panel.
    y, va, arrow = (0.98, "top", "↑") if baseline > top else (0.02, "bottom", "↓")
    place = {"transform": ax.transAxes, "ha": "right", "va": va}
    ax.text(0.99, y, f"{BASELINE_LABEL}: {baseline:.3g} {arrow}", fontsize=8, **place)
    return bottom, top


def _draw_box(ax: Any, errors: Floats, at: float, method: str, top: float) -> None:
    """Draw one box, and write how many of its runs are above the axis."""
    ink = {"color": COLORS[method]}
    ax.boxplot(
        [errors],
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
    above = int((errors > top).sum())
    if above:
        ax.text(at, top, f"▲{above}", ha="center", va="bottom", fontsize=7, **ink)
