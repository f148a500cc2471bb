"""The protocol with published figures: its cells are those of the published runs, its scores count what they should."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "docs")]
protocol, make_published = import_module("published_protocol"), import_module("make_published")


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_random_words_are_those_of_the_generators_known_answers(counter, key, words):
    """Of Random123, the library of the generator's authors."""
    assert tuple(int(one) for one in protocol.philox(counter, key)) == words


@pytest.fixture(scope="module")
def breast_runs() -> list[dict]:
    return [protocol.run("breast", seed, "knn") for seed in protocol.SEEDS]


def test_the_nearest_neighbour_has_the_published_error_on_breast(breast_runs):
    assert "published 0.063083212" in protocol.check("breast", breast_runs)
    other = [{**one, "scores": {"tables": [one["scores"]["tables"][0] + 1e-6] * 2}} for one in breast_runs]
    with pytest.raises(SystemExit, match="published is"):
        protocol.check("breast", other)
    with pytest.raises(SystemExit, match="2 of 3 seeds"):
        protocol.check("breast", breast_runs[:2])


def test_a_fifth_of_the_cells_is_hidden_but_none_of_the_target():
    task = protocol.make_task("breast", 0)
    assert task.complete.shape == (455, 31)
    assert task.hidden[:, :-1].mean() == pytest.approx(0.2, abs=0.01)
    assert not task.hidden[:, -1].any()
    assert np.isnan(task.gaps).sum() == task.hidden.sum()
    assert [column.kind for column in task.columns] == ["real"] * 30 + ["binary"]


def small_task() -> protocol.Task:
    """Ranges of 10, 2 and 1; three hidden cells."""
    complete = np.array([[0.0, 1.0, 0.0], [10.0, 3.0, 1.0], [5.0, 2.0, 1.0]])
    hidden = np.array([[True, True, False], [False, False, False], [True, False, False]])
    return protocol.Task(["a", "b", "target"], complete, hidden, target_is_class=False)


def test_errors_are_relative_to_ranges_and_the_best_table_is_chosen_row_by_row():
    task = small_task()
    one, two = task.complete.copy(), task.complete.copy()
    one[0] = [4.0, 1.0, 0.0]  # off by 0.4 and 0
    one[2] = [5.0, 9.0, 9.0]  # only seen cells differ, which do not count
    two[0] = [1.0, 1.4, 0.0]  # off by 0.1 and 0.2
    two[2] = [7.0, 2.0, 1.0]  # off by 0.2
    average, least = protocol.scores(task, [one, two])
    assert average == pytest.approx((0.4 + 0.1 + 0.2 + 0.2) / 2 / 3)
    assert least == pytest.approx(0.3 / 3)
    assert protocol.scores(task, [one]) == pytest.approx((0.4 / 3,) * 2)


def test_the_mean_is_that_of_visible_cells():
    (filled,) = protocol.by_mean(small_task(), 0)["tables"]
    assert filled.tolist() == [[10.0, 2.5, 0.0], [10.0, 3.0, 1.0], [10.0, 2.0, 1.0]]


def evenly_runs(scores: dict) -> list[dict]:
    return [{"table": "breast", "seed": seed, "method": "evenly", "scores": scores} for seed in protocol.SEEDS]


def test_the_page_has_published_figures_and_runs_on_all_seeds(breast_runs):
    scores = {"means": [0.0182, 0.0182], "medians": [0.0364, 0.0364], "draws": [0.05, 0.0294477]}
    runs = [*breast_runs, *evenly_runs(scores)]
    found = make_published.all_seeds(runs)
    said = make_published.answer(found)
    assert "AvgMAE of evenly's means, against the best published figure: breast (diagnostic) -50 % (missForest)" in said
    assert "MinMAE of evenly's draws, against the best published figure: breast (diagnostic) -0 % (miceforest)" in said
    assert "AvgMAE of evenly's draws, against the best published figure of drawn tables: breast" in said
    assert said.endswith("(diagnostic) +26 % (miceforest).")
    made = make_published.figures(found)
    assert "| evenly, draws | here | – | – | 0.0500 / 0.0294 |" in made
    assert "| evenly, means | here | – | – | 0.0182 / – |" in made
    assert "| missForest | published | 0.0624 / 0.0531 | 0.0509 / 0.0437 | 0.0364 / 0.0329 |" in made
    assert make_published.answer(make_published.all_seeds(runs[:-1])) == "No runs yet."
    marks = "<!-- published_answer -->\nold\n<!-- end -->\n<!-- published -->\nold\n<!-- end -->"
    assert "old" not in make_published.page(marks, runs)


def test_every_published_imputer_has_a_label_and_every_figure():
    assert set(make_published.LABELS) == set(protocol.PUBLISHED)
    assert all(set(figures) == set(protocol.TABLES) for figures in protocol.PUBLISHED.values())
    assert {method for method, _ in make_published.RUN_HERE} == set(protocol.METHODS)
