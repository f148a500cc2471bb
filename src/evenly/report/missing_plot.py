"""The picture of what is missing together, by matplotlib, which is imported only when it is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenly._support import TableError, new_axes, require
from evenly.report.cells import read_cells
from evenly.report.missingness import find_missingness
from evenly.tables import Schema, infer_schema

MISSING, THERE = "#b45f06", "0.92"


def plot_missing(table: Any, *, schema: Schema | None = None, ax: Any = None) -> Any:
    """Draw the most frequent patterns of missing cells: a row a pattern, with its number of rows of the table.

    Parameters
    ----------
    table : dataframe or array
        With missing cells; a table without any is an error.
    schema : Schema, optional
        Says which values mean a missing cell; inferred by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    Needs `pip install "evenly[tool]"`.

    >>> import numpy as np
    >>> ax = plot_missing([[1.5, 2.5], [np.nan, 1.0], [np.nan, 4.5]])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['2', '1']
    """
    require("matplotlib", "tool")
    found = find_missingness(read_cells(table, None, None, infer_schema(table) if schema is None else schema))
    if found is None:
        raise TableError("a table without missing cells", "expected some to draw")
    cells = np.array([one.missing for one in found.patterns], float)
    names = [name if len(name) <= 24 else f"{name[:23]}…" for name in found.columns]
    if ax is None:
        ax = new_axes(1.8 + 0.42 * len(names), 1.6 + 0.3 * len(cells))
    colors = require("matplotlib.colors", "tool").ListedColormap([THERE, MISSING])
    ax.pcolormesh(cells, cmap=colors, vmin=0.0, vmax=1.0, edgecolors="white", linewidth=2)
    ax.set_xticks(np.arange(len(names)) + 0.5, names, rotation=40, ha="left", rotation_mode="anchor")
    for label in ax.get_xticklabels():
        label.set_parse_math(False)  # a column may be called `$x$`
    ax.set_yticks(np.arange(len(cells)) + 0.5, [f"{one.n_rows:,}" for one in found.patterns])
    ax.xaxis.tick_top()
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.set_ylabel("rows")
    more = found.n_patterns - len(cells)
    rest = f"; {more:,} more {'pattern is' if more == 1 else 'patterns are'} rarer" if more else ""
    ax.set_xlabel(f"orange: missing{rest}")
    ax.spines[:].set_visible(False)
    return ax
