"""Draw the folders and the way of the data into `docs/pictures/folders.png`, and list the folders in `docs/design.md`.

Run: python docs/make_design_picture.py. Names and order come from import-linter's contracts in `pyproject.toml`,
purposes from the docstrings of the folders: the picture cannot say anything else than the code.
"""

from __future__ import annotations

import ast
import io
import json
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from make_results import fill
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from evenly._support import write_bytes, write_text

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "evenly"
PAGE = DOCS / "design.md"
PICTURE = DOCS / "pictures" / "folders.png"

ENTRANCES = {"tables": "dataframes, arrays", "io": "files", "engines": "lazy frames"}
"""Where tables come in, by what they are."""
PASSED = {
    "tables": "named columns of numbers",
    "scaling": "scaled features",
    "models": "natural parameters",
    "imputation": "distributions, complete table",
    "evaluation": "errors, verdicts",
}
"""What a step hands to the next ones."""
EXITS = {"report": "an HTML page", "paper": "tables, figures", "cli": "the terminal, files"}
"""Where results go out."""
WAY = {*ENTRANCES, *PASSED, *EXITS}

ROW, GAP, LETTERS, DPI = 0.5, 0.14, 76, 170
"""The height of a card and the space between two, in inches; the letters of a line."""
SPINE, LEFT, RIGHT = 2.25, 2.5, 9.5
"""Where the way of the data and the two ends of the cards are."""
INK, PALE, BLUE, ORANGE = "#24292f", "#6e7781", "#0072b2", "#d55e00"
BADGE = "JAX begins here"


@dataclass(frozen=True)
class Folder:
    """A folder of the source."""

    name: str
    purpose: str
    """The first sentence of its docstring."""
    has_jax: bool
    """Whether some of its modules import JAX."""


def read_folders() -> list[Folder]:
    """Return the folders in the order of the data: each imports only from those before it."""
    pyproject = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = pyproject["tool"]["importlinter"]["contracts"]
    layers = _contract(contracts, "layers")["layers"]
    without_jax = _contract(contracts, "forbidden")["source_modules"]
    names = [name for name in reversed(layers) if (SOURCE / name).is_dir()]
    return [Folder(name, purpose(name), _has_jax(f"evenly.{name}", without_jax)) for name in names]


def _contract(contracts: Sequence[Mapping[str, Any]], kind: str) -> Mapping[str, Any]:
    return next(one for one in contracts if one["type"] == kind)


def _has_jax(folder: str, without: Sequence[str]) -> bool:
    """Whether only single modules of a folder are kept from JAX."""
    return folder not in without and any(one.startswith(f"{folder}.") for one in without)


def purpose(folder: str) -> str:
    """Return the first sentence of a folder's docstring, without its end."""
    module = ast.parse((SOURCE / folder / "__init__.py").read_text(encoding="utf-8"))
    first = (ast.get_docstring(module) or "").split("\n\n")[0].replace("\n", " ")
    return first.removesuffix(".")


# --- the page ---------------------------------------------------------------------------------------------------------


def listing(folders: Sequence[Folder]) -> str:
    """Return the folders as a Markdown table."""
    lines = [f"| [`{one.name}/`](../src/evenly/{one.name}) | {one.purpose} |" for one in folders]
    return "\n".join(["| folder | what it holds |", "| --- | --- |", *lines])


def page(text: str, folders: Sequence[Folder]) -> str:
    """Return the page with its list of folders made again."""
    return fill(text, {"folders": listing(folders)})


# --- the picture ------------------------------------------------------------------------------------------------------


def draw(folders: Sequence[Folder]) -> Figure:
    """Draw the folders from top to bottom, and beside them what goes from one to the next."""
    height = len(folders) * (ROW + GAP)
    figure = Figure(figsize=(10.0, height + 0.5))
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set(xlim=(0.0, 10.0), ylim=(-height - 0.1, 0.4))
    ax.axis("off")
    ax.text(SPINE + 0.1, 0.13, "the way of the data", fontsize=9.5, color=PALE, ha="right")
    ax.text(LEFT + 0.14, 0.13, "the folders of src/evenly", fontsize=9.5, color=PALE)
    heights = {one.name: -(i + 0.5) * (ROW + GAP) for i, one in enumerate(folders)}
    for one in folders:
        draw_card(ax, one, heights[one.name])
    draw_way(ax, {name: y for name, y in heights.items() if name in WAY})
    low, high = min(heights.values()) - 0.5 * ROW, max(heights.values()) + 0.5 * ROW
    draw_arrow(ax, (RIGHT + 0.18, low), (RIGHT + 0.18, high), PALE)
    said = "a folder imports only from the folders above it"
    ax.text(RIGHT + 0.34, 0.5 * (low + high), said, fontsize=9, color=PALE, ha="center", va="center", rotation=90)
    return figure


def draw_card(ax: Axes, folder: Folder, y: float) -> None:
    """Draw the card of a folder: its name, its purpose, and a badge where JAX begins."""
    color = "#fdeee3" if folder.has_jax else "#e8f1f8" if folder.name in WAY else "#f3f4f6"
    rounded = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((LEFT, y - 0.5 * ROW), RIGHT - LEFT, ROW, rounded, linewidth=0, facecolor=color))
    ax.text(LEFT + 0.14, y, folder.name, fontsize=10.5, family="monospace", weight="bold", color=INK, va="center")
    wide = LETTERS - (len(BADGE) if folder.has_jax else 0)
    said = textwrap.fill(folder.purpose.replace("`", ""), wide)
    ax.text(LEFT + 1.36, y, said, fontsize=9.2, color=INK, va="center", linespacing=1.25)
    if folder.has_jax:
        box = {"boxstyle": "round,pad=0.35", "facecolor": ORANGE, "edgecolor": "none"}
        style: dict[str, Any] = {"fontsize": 8, "color": "white", "weight": "bold", "bbox": box}
        ax.text(RIGHT - 0.14, y, BADGE, ha="right", va="center", **style)


def draw_way(ax: Axes, heights: Mapping[str, float]) -> None:
    """Draw what comes in, what goes from folder to folder, and what goes out."""
    top, *_, end = heights.values()
    ax.plot([SPINE, SPINE], [top, end], color=BLUE, linewidth=2.2, solid_capstyle="round")
    beside: dict[str, Any] = {"fontsize": 9, "ha": "right", "va": "center"}
    for name, y in heights.items():
        ax.plot([SPINE, LEFT], [y, y], color=BLUE, linewidth=2.2)
        ax.plot([SPINE], [y], marker="o", markersize=8.5, color=BLUE, markeredgecolor="white", zorder=5)
        if name in PASSED:
            below = y - 0.5 * (ROW + GAP)
            ax.text(SPINE - 0.16, below, PASSED[name], color=BLUE, style="italic", **beside)
            ax.plot([SPINE], [below], marker="v", markersize=7.5, color=BLUE, zorder=5)
        if name in ENTRANCES or name in EXITS:
            outside, inside = (SPINE - 0.5, y), (SPINE - 0.12, y)
            draw_arrow(ax, *((outside, inside) if name in ENTRANCES else (inside, outside)), INK)
            ax.text(SPINE - 0.56, y, ENTRANCES.get(name) or EXITS[name], color=INK, **beside)


def draw_arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    """Draw a straight arrow."""
    style = {"arrowstyle": "-|>,head_width=0.22,head_length=0.42", "color": color, "linewidth": 1.3}
    ax.annotate("", xy=end, xytext=start, arrowprops={**style, "shrinkA": 0, "shrinkB": 0})


def described(folders: Sequence[Folder]) -> str:
    """Return all that the picture says, as it is kept in the file: tests compare it with the sources."""
    return json.dumps([asdict(one) for one in folders])


def main() -> None:
    """Draw the picture and write the page's list."""
    folders = read_folders()
    stream = io.BytesIO()
    draw(folders).savefig(stream, format="png", dpi=DPI, metadata={"Software": None, "Description": described(folders)})
    write_bytes(PICTURE, stream.getvalue())
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), folders))


if __name__ == "__main__":
    main()
