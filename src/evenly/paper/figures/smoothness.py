"""Smoothness: of a gamma by its shape, and of columns under each method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenly.likelihoods import GAMMA
from evenly.models import SPECS
from evenly.paper.agreement import comparable
from evenly.paper.figures.style import COLORS, INK, finish, label, legend_line, panels
from evenly.paper.measures import Record, at_one_percent, mean_over_runs, target_of, those, values_of
from evenly.scaling import scaled_smoothness, smoothness_by_parameter


def gamma_smoothness() -> Any:
    """Draw the smoothness of a standardized gamma against its shape: the estimator, the paper's bound, the floor."""
    figure, (ax,) = panels(1, 1, 7.0, 3.6)
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
    label(ax, "", "shape", "smoothness")
    note = (
        "At scale 1 the bound is twice the estimator. The paper draws 1 + (1 - shape) trigamma(shape), which comes "
        "from the entropy; the second derivative of the log-likelihood is trigamma(shape)."
    )
    return finish(figure, "Smoothness of a gamma of standard deviation 1", note, ())


def smoothness_by_method(records: Sequence[Record], *, model: str = "vae") -> Any:
    """Draw each column's smoothness as it is and after each method, on a log axis, with the targets."""
    done = those(comparable(records), model=model)
    if not done:
        return None
    datasets = values_of(done, "dataset")
    figure, axes = panels(len(datasets), 3, 4.2, 3.0)
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
        label(ax, dataset, y="smoothness (log scale)")
    note = (
        "A mark a column, in the order of the table; a column's features are summed. Open: before scaling, filled: "
        "after. Methods with a trick count the features that it makes, before too; discrete columns without a trick "
        "stay as they are. The target is what the paper's bound aims at: the estimator, drawn here, is lower. "
        f"Learning rate of the {model}: {SPECS[model].learning_rate:g}."
    )
    extra = [legend_line("target", color=INK, linestyle=":", linewidth=1.4)]
    title = f"Smoothness of each column before and after each method ({model})"
    return finish(figure, title, note, values_of(done, "method"), extra)
