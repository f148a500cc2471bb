"""Draw the pictures of the documentation into `docs/pictures`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import polygamma

import evenly
from evenly.scaling import ball_smoothness, smoothness_at

PICTURES = Path(__file__).parent / "pictures"
DPI = 110
INK = "#333333"
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072b2", "#d55e00", "#009e73", "#aa4499", "#56b4e9"
"""After Okabe and Ito: distinct with any colour vision; line styles and labels differ too."""

STANDARDIZED: dict[str, tuple[str, tuple[float, ...], str, Any]] = {
    "normal, mean 3": ("normal", (3.0, 1.0), PURPLE, (0, (1, 1))),
    "normal, mean 0": ("normal", (0.0, 1.0), BLUE, "-"),
    "exponential": ("exponential", (1.0,), ORANGE, "--"),
    "gamma, shape 4": ("gamma", (4.0, 2.0), GREEN, "-."),
    "inverse Gaussian, mean 2": ("inverse-gaussian", (2.0, 8.0), SKY, (0, (5, 1))),
}
"""Likelihoods of standard deviation 1 with usual parameters, a colour and a line style."""


def new_figure() -> tuple[Figure, Axes]:
    """Return a new figure and its axes."""
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    ax = figure.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    return figure, ax


def draw_smoothness() -> Figure:
    """Draw the smoothness of the embedded table's columns before and after scaling."""
    scaler = evenly.LipschitzScaler("lip-gamma", random_state=0).fit(evenly.load_heart())
    figure: Figure = evenly.plot_smoothness(scaler).figure
    return figure


def distance_to_edge(family: evenly.Likelihood, natural: np.ndarray) -> float:
    """Return how far the parameters are from the nearest end of their domain."""
    low, high = np.transpose(family.natural_bounds)
    return float(np.minimum(natural - low, high - natural).min())


def draw_ball() -> Figure:
    """Draw how far the smoothness over a ball exceeds the estimator at its centre."""
    figure, ax = new_figure()
    shares = np.linspace(0.0, 0.6, 61)
    for label, (name, usual, color, style) in STANDARDIZED.items():
        family = evenly.get_likelihood(name)
        natural = family.to_natural(np.array(usual))
        edge, centre = distance_to_edge(family, natural), smoothness_at(family, natural)
        ratios = [ball_smoothness(family, natural, share * edge) / centre for share in shares]
        ax.plot(shares, ratios, color=color, linestyle=style, label=label)
    ax.set_yscale("log")
    ax.set_yticks([1, 2, 3, 5, 10], ["1", "2", "3", "5", "10"])
    ax.minorticks_off()
    ax.set_xlim(0.0, 0.6)
    ax.set_ylim(1.0, 14.0)
    ax.set_xlabel("radius of the ball, as a share of the distance to the edge of the domain")
    ax.set_ylabel("smoothness over the ball\n/ estimator at its centre")
    ax.set_title("How far the estimator carries", loc="left", fontsize="medium")
    ax.legend(frameon=False, loc="upper left")
    return figure


def draw_gamma_shape() -> Figure:
    """Draw the smoothness of a standardized gamma against its shape."""
    figure, ax = new_figure()
    shape = np.geomspace(0.3, 1000.0, 200)
    trigamma, cross = polygamma(1, shape), shape**-0.5
    first, second = trigamma + cross, 1.0 + cross
    ax.plot(shape, first + second, color=INK, label="smoothness: both rows")
    ax.plot(shape, second, color=BLUE, linestyle="--", label="second row: 1 + 1/√shape")
    ax.plot(shape, first, color=GREEN, linestyle="-.", label="first row: trigamma + 1/√shape")
    published = np.abs(1.0 + (1.0 - shape) * trigamma) + cross
    ax.plot(shape, published, color=ORANGE, linestyle=":", label="first row by the paper's appendix")
    ax.plot(shape, shape * trigamma, color=PURPLE, linestyle=(0, (5, 1)), label="first row by the paper's Table 1")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(0.3, 1000.0)
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.set_xlabel("shape")
    ax.set_ylabel("smoothness")
    ax.set_title("A gamma of standard deviation 1", loc="left", fontsize="medium")
    ax.legend(frameon=False, loc="upper right", fontsize="small")
    return figure


def draw_data_flow() -> Figure:
    """Draw the way of a continuous and of a discrete column to the model and back."""
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.5])
    draw_loop(
        left,
        "continuous column",
        [("$x$", "column"), (r"$\tilde{x}$", "scaled feature")],
        ["scale"],
        ["unscale"],
    )
    draw_loop(
        right,
        "discrete column",
        [("$x$", "column"), (r"$\bar{x}$", "features"), (r"$\tilde{x}$", "scaled features")],
        ["trick", "scale"],
        ["undo trick", "unscale"],
    )
    return figure


def draw_loop(
    ax: Axes, title: str, nodes: list[tuple[str, str]], there: list[str], back: list[str], step: float = 2.0
) -> None:
    """Draw data along the top from left to right, parameters along the bottom from right to left."""
    top, bottom, last = 1.0, -1.0, step * (len(nodes) - 1)
    for i, (symbol, word) in enumerate(nodes):
        x = step * i
        ax.text(x, top, symbol, ha="center", va="center", fontsize=17, color=INK)
        ax.text(x, top + 0.42, word, ha="center", va="center", fontsize=9, color=INK)
        ax.text(x, bottom, symbol.replace("x", r"\eta"), ha="center", va="center", fontsize=17, color=INK)
        below = "parameters" if i == 0 else f"of the {word}"
        ax.text(x, bottom - 0.46, below, ha="center", va="center", fontsize=9, color=INK)
    for i, (one, other) in enumerate(zip(there, back, strict=True)):
        draw_arrow(ax, (step * i + 0.4, top), (step * (i + 1) - 0.4, top), INK)
        draw_arrow(ax, (step * (i + 1) - 0.4, bottom), (step * i + 0.4, bottom), INK)
        ax.text(step * (i + 0.5), top + 0.16, one, ha="center", fontsize=9, color=INK)
        ax.text(step * (i + 0.5), bottom + 0.13, other, ha="center", fontsize=9, color=INK)
    draw_arrow(ax, (last + 0.4, top), (last + 0.4, bottom), ORANGE, bend=-0.45)
    draw_arrow(ax, (-0.4, bottom), (-0.4, top), BLUE, bend=-0.45)
    ax.text(last + 0.22, 0.0, "the model\nlearns", ha="center", va="center", fontsize=9, color=ORANGE)
    ax.text(-0.25, 0.0, "impute,\nscore", ha="center", va="center", fontsize=9, color=BLUE)
    ax.set_title(title, loc="left", fontsize="medium")
    ax.set_xlim(-1.2, last + 1.2)
    ax.set_ylim(-1.8, 1.75)
    ax.axis("off")


def draw_arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], color: str, bend: float = 0.0) -> None:
    """Draw an arrow, straight or bent."""
    style = {"arrowstyle": "-|>", "color": color, "connectionstyle": f"arc3,rad={bend}", "linewidth": 1.3}
    ax.annotate("", xy=end, xytext=start, arrowprops={**style, "shrinkA": 0, "shrinkB": 0})


def main() -> None:
    """Draw all pictures."""
    PICTURES.mkdir(exist_ok=True)
    pictures = {
        "smoothness": draw_smoothness,
        "ball": draw_ball,
        "gamma_shape": draw_gamma_shape,
        "data_flow": draw_data_flow,
    }
    for name, draw in pictures.items():
        # Without the version of matplotlib in it, the same picture is the same file.
        draw().savefig(PICTURES / f"{name}.png", dpi=DPI, metadata={"Software": None})


if __name__ == "__main__":
    main()
