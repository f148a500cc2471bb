"""The picture of the smoothness shows the numbers of the summary."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from evenly import LipschitzScaler
from evenly.report.smoothness_plot import plot_smoothness

TABLE = pd.DataFrame(
    {
        "$x$": [0.5, -1.5, 2.0, 9.0, 3.5] * 8,
        "color": ["red", "blue", "green", "blue", "red"] * 8,
        "note": [f"row {i} says something else" for i in range(40)],
    }
)


def points(ax) -> dict[str, np.ndarray]:
    """Return where the points lie, by what the legend calls them."""
    return {
        str(drawn.get_label()): np.asarray(drawn.get_offsets()) for drawn in ax.collections if len(drawn.get_offsets())
    }


@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_each_column_has_the_sum_over_its_features_before_and_after():
    scaler = LipschitzScaler("lip-gamma").fit(TABLE)
    ax = plot_smoothness(scaler)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$x$", "color"]  # no row for what is passed through
    sums = scaler.summary_.groupby("column", sort=False)[["smoothness_before", "smoothness_after"]].sum()
    drawn = points(ax)
    for when in ("before", "after"):
        np.testing.assert_allclose(drawn[when][:, 0], sums.loc[["$x$", "color"], f"smoothness_{when}"])
        assert drawn[when][:, 1].tolist() == [0, 1]
    assert [line.get_xdata()[0] for line in ax.lines] == [scaler.target_]
    assert (ax.get_xscale(), ax.get_title(loc="left")) == (
        "log",
        "Smoothness of each column's log-likelihood, lip-gamma",
    )


def test_methods_without_a_target_show_none_and_axes_of_ones_own_are_drawn_into():
    own = Figure().subplots()
    assert plot_smoothness(LipschitzScaler("std-none").fit(TABLE[["$x$"]]), ax=own) is own
    assert not own.lines
    assert {"before", "after"} <= set(points(own))


def test_names_are_drawn_as_they_are(tmp_path):
    """As mathematics, `$x$` would lose its signs, and `$\\no$` would not be drawn at all."""
    odd = TABLE[["$x$"]].rename(columns={"$x$": r"$\\no$"})
    plot_smoothness(LipschitzScaler("std-none").fit(odd)).figure.savefig(tmp_path / "odd.png")
    assert (tmp_path / "odd.png").stat().st_size > 0
