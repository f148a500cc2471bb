"""Axes to draw on, by matplotlib, which is imported only when something is drawn."""

from __future__ import annotations

import sys
from typing import Any

from evenly._support.optional import require


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure of that size in inches.

    In a notebook, and wherever pyplot is in use, the figure is one of pyplot's, so that it is shown. Elsewhere nothing
    global changes and nothing stays open.

    Examples
    --------
    Needs `pip install "evenly[tool]"`.

    >>> new_axes(4.0, 3.0).figure.get_size_inches().tolist()
    [4.0, 3.0]
    """
    figure = require("matplotlib.figure", "tool").Figure
    if "matplotlib.pyplot" in sys.modules or _in_a_notebook():
        figure = require("matplotlib.pyplot", "tool").figure
    return figure(figsize=(width, height), layout="constrained").subplots()


def _in_a_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
