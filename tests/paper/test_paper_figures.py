"""The paper's figures: what is drawn, at which height, from which records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("matplotlib")

from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex

from evenly._support.errors import TableError
from evenly.likelihoods.continuous import GAMMA
from evenly.models import SPECS
from evenly.paper import figures, measures
from evenly.paper.agreement import comparable
from evenly.paper.datasets import as_table, schema, synthetic
from evenly.paper.figures.columns import TOP
from evenly.paper.figures.histograms import INTRODUCED
from evenly.paper.figures.style import COLORS, MARKERS, plain
from evenly.scaling.methods import METHODS
from evenly.scaling.scaler import LipschitzScaler
from evenly.scaling.smoothness import smoothness_at

COLUMNS = {"price_$": "positive", "cost_$": "real", "visits": "count", "group": "categorical"}
POINTS = [0, 10, 20, 30]


def record(
    method: str = "std-none",
    model: str = "vae",
    dataset: str = "letter",
    *,
    percent: int = 20,
    mask: int = 1,
    epochs: int = 30,
    honest: Any = (0.1, 0.2, 0.3, 0.4),
    **more: Any,
) -> dict[str, Any]:
    """A record as a sweep leaves it; by default each column's baseline is 0.2."""
    run = {"dataset": dataset, "percent": percent, "mask": mask, "model": model, "method": method, "seed": 0}
    continuous = {"ends": [0.0, 1.0, 2.0], "data": [0.6, 0.4], "model": [0.5, 0.25]}
    counts = {"ends": [0.0, 1.5, 3.0], "data": [0.5, 0.5], "model": [1.0, 0.0]}
    classes = {"ends": [-0.5, 0.5, 1.5], "data": [0.3, 0.7], "model": [0.2, 0.8]}
    return {
        "run": run | {"epochs": epochs},
        "columns": list(COLUMNS),
        "kinds": list(COLUMNS.values()),
        "honest": list(honest),
        "as_published": [0.0, 0.0, 0.1, 0.1],
        "mean_or_mode": [0.2] * 4,
        "modelled": list(COLUMNS),
        "points": POINTS,
        "history": [[-4.0, -2.0, -1.0, 2.0], [-3.0, -1.0, -1.5, 3.0], [-2.0, -1.0, -3.0, 4.0]],
        "gradients": [[1.0, 2.0, 4.0, 8.0]] * 4,
        "gradient_changes": [[1.0, 2.0, 4.0, 8.0], [0.5, 1.0, 2.0, 4.0], [0.1, 0.2, 0.8, 0.8], [0.1, None, 0.4, 0.8]],
        "smoothness": {"before": [100.0, 10.0, 1.0, 0.5], "after": [20.0, 21.0, 22.0, 0.0]},
        "marginals": dict(zip(COLUMNS, (continuous, continuous, counts, classes), strict=True)) if mask == 1 else {},
        **more,
    }


def failed(**settings: Any) -> dict[str, Any]:
    return {"run": record(**settings)["run"], "failed": "ValueError: no"}


def texts(figure: Any) -> str:
    return f"{figure.get_suptitle()} {figure.get_supxlabel()}".replace("\n", " ")


def labels(figure: Any) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def drawn(figure: Any) -> bytes:
    """The picture; text that matplotlib takes for a broken formula fails here."""
    png = figures.to_png(figure)
    assert png.startswith(b"\x89PNG")
    return png


# --- which records ------------------------------------------------------------------------------------------------


def test_every_method_has_its_own_colour_and_marker():
    assert list(COLORS) == list(METHODS)
    assert len(set(COLORS.values())) == len(set(MARKERS.values())) == len(METHODS)


def test_failed_and_shorter_runs_are_left_out():
    """As the tables do: by data set, model and share of hidden cells."""
    records = [record(epochs=30), record(epochs=5), record(dataset="adult", epochs=5), failed(mask=2)]
    assert comparable(records) == [records[0], records[2]]
    other = [record(model="mixture", epochs=5), record(percent=50, epochs=5)]
    assert comparable([*records, *other]) == [records[0], records[2], *other]


def test_values_come_in_the_order_of_the_paper_and_unknown_ones_last():
    records = [record("lip-gamma", "vae", "synthetic"), record("std-none", "mixture", "wine"), record(dataset="adult")]
    assert measures.values_of(records, "dataset") == ["adult", "wine", "synthetic"]
    assert measures.values_of(records, "model") == ["mixture", "vae"]
    assert measures.values_of(records, "method") == ["std-none", "lip-gamma"]


def test_single_columns_are_drawn_at_20_percent_or_else_at_the_first():
    records = [record(percent=10), record(percent=20), record(percent=50)]
    assert measures.at_one_percent(records) == [records[1]]
    assert measures.at_one_percent(records[::2]) == [records[0]]


@pytest.mark.parametrize("method", ["lip-none", "lip-bern", "lip-gamma"])
def test_the_target_is_the_scalers(method):
    data = synthetic(200)
    declared = schema(data)
    scaler = LipschitzScaler(method, learning_rate=SPECS["vae"].learning_rate, schema=declared, random_state=0)
    scaler.fit(as_table(data))
    names = [column.name for column in declared.columns]
    kinds = [column.kind for column in declared.columns]
    found = measures.target_of(
        {"run": {"model": "vae", "method": method}, "columns": names, "kinds": kinds} | {"modelled": names}
    )
    assert found == pytest.approx(scaler.target_)


def test_methods_without_a_target_have_none():
    assert measures.target_of(record("std-gamma")) is None
    only_counts = record("lip-none") | {"kinds": ["count"] * 4}
    assert measures.target_of(only_counts) is None


# --- one figure after the other -----------------------------------------------------------------------------------


def test_marginals_draw_the_data_once_and_a_line_a_method():
    records = [record(method, dataset="adult") for method in METHODS] + [record(dataset="adult", mask=2)]
    figure = figures.marginals(records)
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        r"price_\$ (positive)",
        r"cost_\$ (real)",
        "visits (count)",
        "group (categorical)",
    ]
    price, _, visits, group = figure.axes
    data, *lines = price.patches
    assert data.get_fill()
    assert [to_hex(line.get_edgecolor()) for line in lines] == [COLORS[one] for one in INTRODUCED]
    np.testing.assert_array_equal(data.get_data().values, [0.6, 0.4])
    np.testing.assert_array_equal(lines[2].get_data().values, [0.5, 0.25])
    # A quarter of the draws is beyond the data's range.
    assert [text.get_text() for text in price.texts] == ["25 % outside"] * 3
    assert [text.get_text() for text in group.texts] == []
    # 0 and 1 share the first bar, 2 and 3 the second.
    np.testing.assert_array_equal(visits.patches[0].get_data().edges, [-0.5, 1.5, 3.5])
    np.testing.assert_array_equal(visits.patches[1].get_data().values, [0.5, 0.0])
    assert labels(figure) == list(INTRODUCED)
    drawn(figure)


def test_marginals_take_adult_or_else_the_first_and_only_one_draw_of_the_model_asked_for():
    records = [record(dataset="wine"), record(dataset="adult")]
    assert "adult" in texts(figures.marginals(records))
    assert "wine" in texts(figures.marginals(records[:1]))
    assert figures.marginals([record(model="mixture"), record("max-none"), record(mask=2)]) is None


def test_a_count_gets_bars_between_whole_numbers_with_equal_heights_for_equal_shares():
    """Ten values, equally frequent, in twenty bars or in seven: no comb."""
    values = np.arange(1.0, 11.0)
    for n_bars in (20, 7):
        counts, ends = np.histogram(values, np.linspace(1.0, 10.0, n_bars + 1))
        edges, data, _ = measures.bars("count", {"ends": ends, "data": counts / 10, "model": counts / 10})
        np.testing.assert_allclose(data, 0.1)
        assert edges[0] == 0.5
        assert edges[-1] == 10.5
        np.testing.assert_allclose((np.diff(edges) * data).sum(), 1.0)


def boxes(ax: Any) -> list[tuple[str, float]]:
    """The colour and the median of each box, from the left."""
    medians = [line for line in ax.lines if line.get_linewidth() == 2.2]
    medians.sort(key=lambda line: float(np.mean(line.get_xdata())))
    return [(line.get_color(), float(line.get_ydata()[0])) for line in medians]


def test_boxes_are_over_all_runs_of_a_model_and_a_method():
    records = [
        record("std-none", "mixture", honest=[0.1] * 4),
        record("std-none", "mixture", percent=50, honest=[0.2, 0.4, None, None]),
        record("lip-gamma", "mixture", honest=[0.4] * 4),
        record("lip-gamma", "mixture", percent=50, honest=[0.6] * 4),
        record("std-none", "vae", honest=[0.15] * 4),
        record("std-none", "vae", "wine"),
        failed(mask=2),
    ]
    figure = figures.error_boxes(records)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["letter", "wine"]
    std, lip = COLORS["std-none"], COLORS["lip-gamma"]
    assert [color for color, _ in boxes(figure.axes[0])] == [std, lip, std]
    assert [median for _, median in boxes(figure.axes[0])] == pytest.approx([0.2, 0.5, 0.15])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["mixture", "vae"]
    assert "each column on its own hidden cells" in texts(figure)
    assert "6 runs; failed, and not shown: 1." in texts(figure)
    assert "(20, 50 %)" in texts(figure)
    # The mean or the mode: 0.2 in every run.
    assert [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linestyle() == ":"] == pytest.approx([0.2])


def test_boxes_compare_methods_on_the_same_tasks():
    """What only one method has runs of, half of the cells hidden or another model, does not shift its box."""
    both = [record("std-none", honest=[0.1] * 4), record("lip-gamma", honest=[0.3] * 4)]
    for alone, by in ((record("std-none", percent=50), "model"), (record("lip-gamma", "mixture"), "percent")):
        figure = figures.error_boxes([*both, alone], by=by)
        assert [median for _, median in boxes(figure.axes[0])] == pytest.approx([0.1, 0.3])
        assert "that not all methods have runs of, and not shown: 1." in texts(figure)


def test_boxes_by_percent_are_over_all_models():
    records = [record(model="mixture", honest=[0.1] * 4), record(honest=[0.3] * 4), record(percent=50)]
    figure = figures.error_boxes(records, by="percent")
    assert [median for _, median in boxes(figure.axes[0])] == pytest.approx([0.2, 0.25])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["20 %", "50 %"]


def test_the_published_protocol_is_named_and_has_no_baseline():
    figure = figures.error_boxes([record()], protocol="as-published")
    assert "AS PUBLISHED" in texts(figure)
    assert [median for _, median in boxes(figure.axes[0])] == pytest.approx([0.05])
    assert labels(figure) == ["std-none"]
    assert "AS PUBLISHED" not in texts(figures.error_boxes([record()]))


def test_runs_above_the_axis_are_counted():
    """Quartiles at 0.1 and 0.3, so that the axis ends near 0.3 + 3 * 0.2; two runs of one method are above."""
    honest = {"std-none": [0.1] * 5 + [0.3] * 5, "max-none": [9.0, 8.0]}
    records = [
        record(method, mask=i + 1, honest=[error] * 4)
        for method, errors in honest.items()
        for i, error in enumerate(errors)
    ]
    figure = figures.error_boxes(records)
    (ax,) = figure.axes
    assert [(text.get_text(), text.get_color()) for text in ax.texts] == [("▲2", COLORS["max-none"])]
    assert 0.9 < ax.get_ylim()[1] < 1.0
    assert "2 in all" in texts(figure)
    drawn(figure)


def test_a_baseline_far_from_all_boxes_is_written_instead_of_drawn():
    """Runs from 0.10 to 0.12, and a mean or mode at 0.2 or at 0.13."""
    records = [record(mask=i + 1, honest=[error] * 4) for i, error in enumerate([0.10, 0.11, 0.12])]
    (ax,) = figures.error_boxes(records).axes
    assert [text.get_text() for text in ax.texts] == ["mean or mode: 0.2 ↑"]
    assert ax.get_ylim()[1] < 0.13
    assert not [line for line in ax.lines if line.get_linestyle() == ":"]
    (ax,) = figures.error_boxes([one | {"mean_or_mode": [0.13] * 4} for one in records]).axes
    assert not ax.texts
    assert [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"] == pytest.approx([0.13])


def test_boxes_refuse_what_they_do_not_know():
    with pytest.raises(TableError, match="expected model or percent"):
        figures.error_boxes([record()], by="mask")
    with pytest.raises(TableError, match="protocol='published'"):
        figures.error_boxes([record()], protocol="published")


def test_stars_have_a_closed_line_a_method_and_a_circle_at_1():
    records = [
        record("std-none"),
        record("std-none", mask=2, honest=[0.3, None, 0.3, 0.4]),
        record("lip-gamma", honest=[0.0, 0.1, 0.2, 2.0]),
        record("std-none", "mixture"),
        record("std-none", dataset="adult"),
    ]
    figure = figures.stars(records)
    mixture, vae = figure.axes
    assert [ax.name for ax in figure.axes] == ["polar", "polar"]
    assert (mixture.get_title(), vae.get_title()) == ("mixture", "vae")
    circle, std, lip = vae.lines
    assert set(circle.get_ydata()) == {1.0}
    np.testing.assert_allclose(std.get_ydata(), [1.0, 1.0, 1.5, 2.0, 1.0])
    np.testing.assert_allclose(lip.get_ydata(), [0.0, 0.5, 1.0, TOP, 0.0])
    np.testing.assert_allclose(lip.get_xdata(), [0.0, np.pi / 2, np.pi, 1.5 * np.pi, 0.0])
    assert [label.get_text() for label in vae.get_xticklabels()] == [plain(name) for name in COLUMNS]
    assert "Mean of 1 to 2 runs" in texts(figure)
    assert "1 of all values are beyond 2.5" in texts(figure)
    drawn(figure)


def test_long_names_around_a_star_take_two_lines():
    long = record() | {"columns": ["cell_size_uniformity", "x_box", "nounderscoreatall", "cost_$"]}
    (ax,) = figures.stars([long]).axes
    expected = ["cell_size_\nuniformity", "x_box", "nounderscoreatall", r"cost_\$"]
    assert [label.get_text() for label in ax.get_xticklabels()] == expected


def test_bars_are_as_high_as_the_normalized_error_and_say_what_is_beyond_the_axis():
    records = [
        record("std-none"),
        record("lip-gamma", honest=[0.05, None, 0.2, 3.0]),
        record("std-none", "mixture", honest=[0.2] * 4),
        record("std-none", percent=50, honest=[0.9] * 4),
    ]
    figure = figures.column_bars(records, dataset="letter")
    mixture, vae = figure.axes
    assert [bar.get_height() for bar in mixture.patches] == [1.0] * 4
    assert [bar.get_height() for bar in vae.patches[:4]] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose([bar.get_height() for bar in vae.patches[4:]], [0.25, np.nan, 1.0, 2.5])
    assert to_hex(vae.patches[4].get_facecolor()) == COLORS["lip-gamma"]
    assert [text.get_text() for text in vae.texts] == ["15"]
    assert vae.get_ylim() == (0.0, 2.5)
    assert [list(line.get_ydata()) for line in vae.lines] == [[1.0, 1.0]]
    assert [label.get_text() for label in vae.get_xticklabels()][:2] == [r"price_\$", r"cost_\$"]
    assert labels(figure) == ["std-none", "lip-gamma", "mean or mode"]
    drawn(figure)


def test_the_gammas_bound_is_twice_the_estimator_and_the_floor_is_below():
    figure = figures.gamma_smoothness()
    bound, estimator, floor, published = (np.asarray(line.get_ydata()) for line in figure.axes[0].lines)
    shapes = figure.axes[0].lines[0].get_xdata()
    np.testing.assert_allclose(bound, 2.0 * estimator)
    assert (floor < estimator).all()
    # A standard deviation of 1: trigamma(1) = pi^2 / 6, cross terms 1, variance 1; the paper draws 1 there.
    assert np.interp(1.0, shapes, floor) == pytest.approx(np.pi**2 / 6, rel=1e-3)
    assert np.interp(1.0, shapes, estimator) == pytest.approx(np.pi**2 / 6 + 3.0, rel=1e-3)
    assert np.interp(1.0, shapes, published) == pytest.approx(1.0, rel=1e-3)
    natural = GAMMA.to_natural(np.array([shapes[50], np.sqrt(shapes[50])]))
    assert estimator[50] == smoothness_at(GAMMA, natural)


def test_smoothness_is_a_mark_a_column_before_and_after_with_the_targets_of_methods_that_have_one():
    records = [record("std-none"), record("lip-gamma"), record("lip-gamma", mask=2), record(dataset="wine")]
    records[2]["smoothness"] = {"before": [300.0, 10.0, 1.0, 0.5], "after": [None, 23.0, 22.0, 0.0]}
    figure = figures.smoothness_by_method(records)
    letter, wine = figure.axes
    assert (letter.get_title(loc="left"), wine.get_title(loc="left")) == ("letter", "wine")
    marks = [one for one in letter.collections if isinstance(one, PathCollection)]
    heights = [list(np.asarray(one.get_offsets())[:, 1]) for one in marks]
    # Of two runs the mean; a column without smoothness has no mark.
    expected = [[100.0, 10.0, 1.0, 0.5], [20.0, 21.0, 22.0], [200.0, 10.0, 1.0, 0.5], [20.0, 22.0, 22.0]]
    assert heights == expected
    (target,) = (one for one in letter.collections if not isinstance(one, PathCollection))
    # Four columns at a learning rate of 0.001.
    assert target.get_segments()[0][:, 1] == pytest.approx([250.0, 250.0])
    assert letter.get_yscale() == "log"
    assert [label.get_text() for label in letter.get_xticklabels()] == ["std-none", "lip-gamma"]
    assert figures.smoothness_by_method(records, model="mixture") is None
    drawn(figure)


@pytest.mark.more
def test_balance_draws_bands_and_spreads_of_all_three_quantities_and_the_first_gradients():
    figure = figures.balance([record("std-none"), record("lip-gamma"), record(mask=2)], dataset="letter", model="vae")
    # By row: the spread, then a panel a method; last, the gradients.
    assert len(figure.axes) == 3 * (1 + 2) + 1
    gains, progress, changes = (figure.axes[i : i + 3] for i in (0, 3, 6))
    (median,) = gains[1].lines
    assert median.get_color() == COLORS["std-none"]
    np.testing.assert_array_equal(median.get_xdata(), [20, 30])
    # Gains of 1/4, 1/2, -1/2, 1/2 and 1/4, 0, -3/2, 1/2, of two runs alike.
    np.testing.assert_allclose(median.get_ydata(), [0.375, 0.125])
    # 1/2, 1, 1/2 of the way after 20 epochs, and the third gets worse; nothing and all of it at the ends, where no
    # spread is drawn.
    np.testing.assert_allclose(progress[1].lines[0].get_ydata(), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(progress[0].lines[0].get_xdata(), [20])
    shares = np.array([0.5, 1.0, 0.5])
    np.testing.assert_allclose(progress[0].lines[0].get_ydata(), [shares.std() / shares.mean()])
    np.testing.assert_allclose(changes[1].lines[0].get_ydata(), [1.0, 0.5, 0.1, 0.1])
    np.testing.assert_allclose(changes[0].lines[0].get_ydata()[:2], [0.0, 0.0])
    np.testing.assert_array_equal(changes[0].lines[0].get_xdata(), POINTS)
    gradients = figure.axes[-1]
    assert [list(line.get_ydata()) for line in gradients.lines] == [[1.0, 2.0, 4.0, 8.0]] * 2
    assert [label.get_text() for label in gradients.get_xticklabels()] == [plain(name) for name in COLUMNS]
    assert "the first point is after 10 epochs" in texts(figure)
    assert "depend on the columns' units" in texts(figure)
    drawn(figure)


def test_the_band_is_over_the_columns_that_have_a_number():
    values = np.array([np.arange(11.0), [np.nan] * 11, [3.0] + [np.nan] * 10])
    np.testing.assert_allclose(measures.band(values), [[1.0, np.nan, 3.0], [5.0, np.nan, 3.0], [9.0, np.nan, 3.0]])


def test_balance_leaves_out_runs_that_were_stopped_and_needs_three_points():
    stopped = record("lip-gamma") | {"points": [0, 10], "history": [[-1.0] * 4], "gradients": [[1.0] * 4] * 2}
    figure = figures.balance([record(), stopped], dataset="letter", model="vae")
    assert labels(figure) == ["std-none"]
    assert figures.balance([stopped], dataset="letter", model="vae") is None


def test_balance_from_the_start_has_an_axis_of_logarithms_and_no_word_of_a_missing_start():
    points = [0, 1, 2, 4, 8, 30]
    history = [[-5.0 + step, -4.0 + 0.5 * step, -1.0 + step, 2.0 + step] for step in range(6)]
    whole = {"points": points, "history": history, "gradients": [[1.0] * 4] * 6, "gradient_changes": [[0.5] * 4] * 6}
    figure = figures.balance([record() | whole, record("lip-gamma") | whole], dataset="letter", model="vae")
    assert "is not recorded" not in texts(figure)
    first = figure.axes[1]
    assert first.get_xscale() == "symlog"
    (line,) = first.get_lines()
    np.testing.assert_allclose(line.get_xdata(), points[1:])
    # Gains of 1, 0.5, 1 and 1 from point to point, over starts of 5, 4, 1 and 2.
    np.testing.assert_allclose(line.get_ydata(), np.median([1 / 5, 0.5 / 4, 1.0, 1 / 2]))
    drawn(figure)


def test_ratios_are_drawn_with_their_intervals_and_need_two_masks():
    errors = {"std-none": (0.2, 0.2), "lip-gamma": (0.1, 0.4)}
    some = [record(m, mask=i + 1, honest=[e] * 4) for m, own in errors.items() for i, e in enumerate(own)]
    figure = figures.ratios([*some, failed()])
    (ends, point, *_) = figure.axes[0].get_lines()
    assert point.get_xdata()[0] == pytest.approx(1.0)  # the geometric mean of 0.5 and 2
    assert ends.get_xdata()[0] < 0.5 < 2.0 < ends.get_xdata()[1]
    drawn(figure)
    assert figures.ratios(some[::2]) is None


# --- all of them --------------------------------------------------------------------------------------------------


@pytest.mark.more
def test_draw_all_writes_every_figure_the_same_bytes_again(tmp_path, monkeypatch):
    monkeypatch.setattr("evenly.paper.figures.style.DPI", 40)  # smaller, so sooner
    records = [record(method, dataset="letter") for method in ("std-none", "lip-gamma")] + [failed()]
    written = figures.draw_figures(records, tmp_path)
    assert sorted(path.name for path in (tmp_path).iterdir()) == sorted(path.name for path in written)
    assert [path.stem for path in written] == [
        "marginals",
        "error_by_model",
        "error_by_percent",
        "error_by_model_as_published",
        "error_by_percent_as_published",
        "stars",
        "columns_letter",
        "gamma_smoothness",
        "smoothness_vae",
        "balance_letter_vae",
    ]
    for path in written:
        assert b"matplotlib" not in path.read_bytes().lower()
    again = {
        "marginals": figures.marginals(records),
        "error_by_model": figures.error_boxes(records),
        "balance_letter_vae": figures.balance(records, dataset="letter", model="vae"),
    }
    for name, figure in again.items():
        assert (tmp_path / f"{name}.png").read_bytes() == drawn(figure)


def test_draw_all_skips_what_there_are_no_records_for(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "to_png", lambda figure: b"picture")
    stopped = {"points": [0], "history": [], "gradients": [[1.0] * 4], "gradient_changes": [[1.0] * 4]}
    written = figures.draw_figures([record(model="mixture", dataset="wine") | stopped], tmp_path)
    assert {path.stem for path in written} == {
        "error_by_model",
        "error_by_percent",
        "error_by_model_as_published",
        "error_by_percent_as_published",
        "stars",
        "columns_wine",
        "gamma_smoothness",
        "smoothness_mixture",
    }


@pytest.mark.more
def test_draw_all_draws_bars_of_the_papers_three_data_sets(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "to_png", lambda figure: b"picture")
    records = [record(dataset=dataset) for dataset in ("letter", "credit", "breast", "adult")]
    names = [path.stem for path in figures.draw_figures(records, tmp_path)]
    assert [name for name in names if name.startswith("columns")] == [
        "columns_adult",
        "columns_credit",
        "columns_letter",
    ]
    assert "balance_breast_vae" in names


@pytest.mark.parametrize("records", [[], [failed()]])
def test_nothing_to_draw_is_an_error(tmp_path, records):
    with pytest.raises(TableError, match="none of a finished run"):
        figures.draw_figures(records, tmp_path / "out")
    assert not (tmp_path / "out").exists()
