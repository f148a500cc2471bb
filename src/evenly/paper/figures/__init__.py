"""The paper's figures, drawn from the records of runs: a module for each family of figures."""

from evenly.paper.figures.columns import column_bars, stars
from evenly.paper.figures.errors import error_boxes
from evenly.paper.figures.gallery import draw_figures
from evenly.paper.figures.histograms import marginals
from evenly.paper.figures.learning import balance
from evenly.paper.figures.ratios import ratios, ratios_by_block
from evenly.paper.figures.smoothness import gamma_smoothness, smoothness_by_method
from evenly.paper.figures.style import to_png

__all__ = [
    "balance",
    "column_bars",
    "draw_figures",
    "error_boxes",
    "gamma_smoothness",
    "marginals",
    "ratios",
    "ratios_by_block",
    "smoothness_by_method",
    "stars",
    "to_png",
]
