"""The comparison with other imputers: hidden cells, the peers, scores, records and the page of results."""

from __future__ import annotations

import doctest
import importlib.util
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import evenly
from evenly.evaluation.peers import how_far
from evenly.metrics import baseline_errors, column_errors
from evenly.paper.datasets import DataSet, schema, synthetic
from evenly.tables import Column, infer_schema

ROOT = Path(__file__).parents[2]


def load_script(path: str):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script
    spec.loader.exec_module(script)
    return script


sys.path.append(str(ROOT / "benchmarks"))
peers = load_script("benchmarks/peers.py")
imputers, meter = sys.modules["peer_imputers"], sys.modules["meter"]


@pytest.fixture(scope="module")
def data() -> DataSet:
    """A table whose first column has classes, like that of letter."""
    made = synthetic(400)
    order = [9, *range(9)]
    return replace(made, columns=[made.columns[j] for j in order], values=made.values[:, order])


# --- which cells are hidden ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("percent", [10, 50, 80])
@pytest.mark.parametrize("mechanism", peers.MECHANISMS)
def test_every_mechanism_hides_the_asked_share_of_known_cells(data, mechanism, percent):
    hidden = peers.hide(data, percent, 1, mechanism)
    assert not (hidden & ~data.known).any()
    shares = hidden.sum(0) / data.known.sum(0)
    may = np.arange(len(shares)) != (peers.find_driver(data) if mechanism == "mar" else -1)
    assert np.abs(shares[may] - percent / 100).max() <= 1 / 300
    assert not shares[~may].any()
    assert (hidden == peers.hide(data, percent, 1, mechanism)).all()
    assert (hidden != peers.hide(data, percent, 2, mechanism)).any()


def test_the_driver_is_a_number_that_is_never_missing(data):
    assert data.columns[peers.find_driver(data)] == "real_1"
    values = data.values.copy()
    values[0, 1] = np.nan
    assert data.columns[peers.find_driver(replace(data, values=values))] == "real_2"
    values[1] = np.nan
    assert data.columns[peers.find_driver(replace(data, values=values))] == "real_1"
    assert peers.find_driver(replace(data, columns=["group"], values=data.values[:, :1])) == 0


# --- the peers ----------------------------------------------------------------------------------------------------


def hide_some(data: DataSet, mechanism: str = "mcar"):
    hidden = peers.hide(data, 20, 1, mechanism)
    columns = list(schema(data, hidden=hidden).columns)
    truth = peers.codes_of(data, columns)
    return columns, truth, np.where(hidden, np.nan, truth), hidden


@pytest.mark.parametrize("forest", [imputers.MissForest, imputers.MissForestSqrt])
def test_missforest_fills_every_cell_and_beats_the_mean_where_columns_depend(data, forest):
    columns, truth, visible, hidden = hide_some(data)
    full = forest(n_trees=5, max_rounds=2).impute(columns, visible.copy()).values
    assert (full[~np.isnan(visible)] == visible[~np.isnan(visible)]).all()
    assert np.isfinite(full).all()
    errors, simple = column_errors(columns, truth, full, hidden), baseline_errors(columns, truth, hidden)
    strong = [data.columns.index(name) for name in ("real_1", "real_2", "group", "answer")]
    assert (errors[strong] < 0.8 * simple[strong]).all()


@pytest.mark.more
def test_missforest_stops_when_neither_numbers_nor_classes_converge(monkeypatch, data):
    columns, _, visible, _ = hide_some(data)
    tables = []

    def moved(before, after, classes):
        tables.append(after.copy())
        return next(moves)

    monkeypatch.setattr("evenly.evaluation.peers.how_far", moved)
    moves = iter(np.array([[3.0, 3.0], [4.0, 2.0], [4.0, 3.0], [0.0, 0.0]]))
    full = imputers.MissForest(n_trees=1).impute(columns, visible.copy()).values
    assert len(tables) == 3
    assert (full == tables[1]).all()
    moves = iter(np.array([[3.0, 3.0], [4.0, 4.0]]))
    assert (imputers.MissForest(1, max_rounds=2).impute(columns, visible.copy()).values == tables[-1]).all()


def test_moves_of_numbers_are_relative_to_all_numbers():
    before, after = np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([[1.0, 1.0], [3.0, 1.0]])
    assert how_far(before, after, np.array([False, True])).tolist() == [0.1, 0.5]
    assert how_far(before, after, np.array([False, False])).tolist() == [2 / 12, 0.0]


def test_neighbours_vote_for_classes_instead_of_averaging_their_codes():
    columns = [Column(name="x", kind="real"), Column(name="color", kind="categorical", classes=[0, 1, 2])]
    near = [[0.0, 0.0], [0.1, 0.0], [0.2, 2.0], [0.3, 2.0], [0.4, 2.0]]
    visible = np.array([*near, [0.2, np.nan], *([9.0, 1.0] for _ in range(6))])
    full = imputers.NearestNeighbours().impute(columns, visible).values
    assert full[5, 1] == 2.0
    known = ~np.isnan(visible)
    assert full[known] == pytest.approx(visible[known])


def test_neighbours_fill_every_cell(data):
    columns, truth, visible, hidden = hide_some(data)
    errors = column_errors(columns, truth, imputers.NearestNeighbours().impute(columns, visible).values, hidden)
    assert peers.scored_mean(errors) < 0.8 * peers.scored_mean(baseline_errors(columns, truth, hidden))


class Echo:
    """An imputer that returns the truth, but leaves one column as it is."""

    truth, left = None, "count_1"

    def __init__(self, random_state):
        self.history_, self.ensemble_ = {"elbo": np.zeros(7)}, SimpleNamespace(networks=[0, 0, 0])

    def fit(self, frame):
        self.schema_ = infer_schema(frame)
        return self

    def transform(self, frame):
        return self.truth.assign(**{self.left: frame[self.left]})


def test_codes_survive_a_table_of_texts_and_inferred_kinds_are_recorded(data, monkeypatch):
    columns, truth, visible, hidden = hide_some(data)
    table = imputers.as_people_have_it(columns, visible)
    assert set(table["group"].dropna()) == {"c0", "c1", "c2", "c3"}
    assert table["real_1"].dtype == float
    np.testing.assert_array_equal(imputers.as_codes(columns, table), visible)
    monkeypatch.setattr(Echo, "truth", imputers.as_people_have_it(columns, truth))
    monkeypatch.setattr(evenly, "Imputer", Echo)
    made = imputers.EvenlyInferred().impute(columns, visible.copy())
    errors = column_errors(columns, truth, made.values, hidden)
    simple = baseline_errors(columns, truth, hidden)
    at = data.columns.index("count_1")
    assert errors[at] == pytest.approx(simple[at])
    assert not np.delete(errors, at).any()
    assert made.notes["left_missing"] == ["amount_3", "count_1"]  # the first has cells that are missing to begin with
    assert (made.notes["epochs"], made.notes["networks"]) == (7, 3)
    kinds = {column.name: column.kind for column in Echo(0).fit(table).schema_.columns}
    others = {column.name: [column.kind, kinds[column.name]] for column in columns}
    assert made.notes["other_kinds"] == {name: pair for name, pair in others.items() if pair[0] != pair[1]}


# --- how runs are scored ------------------------------------------------------------------------------------------


def test_a_column_without_hidden_cells_is_not_in_the_mean(data):
    columns, truth, visible, hidden = hide_some(data, "mar")
    errors = column_errors(columns, truth, imputers.MeanOrMode().impute(columns, visible).values, hidden)
    assert np.isnan(errors).sum() == 1
    assert peers.scored_mean(errors) == pytest.approx(peers.scored_mean(baseline_errors(columns, truth, hidden)))
    assert np.isfinite(peers.scored_mean(errors))


class Certain:
    """An imputer with all numbers in bins, and every truth in the middle of its distribution."""

    def __init__(self, columns, shape):
        self.bins_ = {column.name: self for column in columns if not column.has_classes}
        self.found = {name: SimpleNamespace(parameters={"probabilities": np.ones(shape)}) for name in self.bins_}

    def distribution(self, frame):
        return self.found

    def ranks(self, shares, truth, rng):
        return np.full(len(truth), 0.5)

    def quantiles(self, shares, level):
        return np.full(len(shares), level)


def test_a_column_without_hidden_cells_is_not_in_the_calibration(data):
    columns, truth, _, hidden = hide_some(data, "mar")
    made = peers.calibration(columns, truth, hidden, Certain(columns, truth.shape), None)
    assert made["covered"] == [1.0, 1.0, 1.0]
    assert np.isfinite(made["width"])


def test_an_error_where_the_mode_makes_none_is_worse():
    column = Column(name="kind", kind="categorical", classes=[0, 1])
    truth, hidden = np.zeros((100, 1)), np.arange(100)[:, None] < 20
    wrong = truth.copy()
    wrong[3] = 1.0
    assert peers.clearly_worse([column], truth, truth, hidden) == []
    assert peers.clearly_worse([column], truth, wrong, hidden) == ["kind (no error by the mean or mode)"]


def test_many_errors_are_worse_than_the_few_of_the_mode():
    column = Column(name="kind", kind="categorical", classes=[0, 1])
    truth, hidden = np.zeros((400, 1)), np.arange(400)[:, None] < 200
    truth[3] = 1.0
    wrong = np.zeros((400, 1))
    wrong[10:40] = 1.0
    assert peers.clearly_worse([column], truth, wrong, hidden) == ["kind +3000.0%"]
    wrong[11:40] = 0.0
    assert peers.clearly_worse([column], truth, wrong, hidden) == []


@pytest.mark.more
def test_costs_include_those_of_children():
    spend = "import time; x = b'1' * 2**28; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    with meter.Meter() as one:
        subprocess.run([sys.executable, "-c", spend + "time.sleep(0.3)"], check=True)
    with meter.Meter() as two:
        waiting = subprocess.Popen([sys.executable, "-c", spend + "print(); input()"], stdin=-1, stdout=-1)
        waiting.stdout.readline()
    waiting.communicate(b"\n")
    for measured in (one, two):
        costs = measured.costs()
        assert set(costs) == {"seconds", "cpu_seconds", "load", "peak_gib"}
        assert 0.25 < costs["cpu_seconds"] < costs["seconds"] + 0.1
    assert one.peak_gib > meter.resident_bytes() / 2**30 + 0.2


# --- which runs count ---------------------------------------------------------------------------------------------


def record(peer: str, error: float, mask: int = 1, dataset: str = "wine", mechanism: str = "mcar", **more):
    asked = dict(zip(peers.KEYS, (dataset, 20, mask, mechanism, peer), strict=True))
    costs = {"seconds": 10.0, "peak_gib": 0.5, "worse": [], "errors": [error, None], "baseline": 0.5}
    return {**asked, "error": error, "revision": peers.revision(asked), **costs, **more}


def test_records_of_other_code_do_not_count():
    old = [{k: v for k, v in record(peer, 0.1).items() if k != "revision"} for peer in ("iterative", "evenly")]
    driven = {**record("iterative", 0.1, mechanism="mar"), "revision": "1.1"}
    new = record("evenly", 0.2)
    assert peers.current([*old, driven, new]) == [old[0], new]
    assert peers.summary([*old, new]) == ["mcar 20 wine 1: evenly 2.000 x iterative"]


def test_runs_that_were_not_made_again_yet_are_shown_and_told_apart(monkeypatch):
    monkeypatch.setattr(peers.PEERS["evenly"], "still_shown", peers.PEERS["evenly"].revision - 1)
    before = peers.revision(record("evenly", 0.1), before=True)
    old = [{**record("evenly", 0.1, mask=mask), "revision": before} for mask in (1, 2)]
    older, new = {**record("evenly", 0.3, mask=3), "revision": "1.1"}, record("evenly", 0.2)
    assert peers.shown([*old, older, new]) == ([new, old[1]], [old[1]])
    assert peers.current([*old, older, new]) == [new]


def test_what_is_recorded_by_the_same_code_is_not_run_again(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        peers, "start", lambda settings, *_: asked.append(settings["peer"]) or settings | {"reason": "none"}
    )
    out = tmp_path / "peers.jsonl"
    lines = [record("iterative", 0.1), {**record("evenly", 0.1), "revision": "1.1"}]
    out.write_text("".join(json.dumps(one) + "\n" for one in lines))
    command = ["peers.py", "--out", str(out), "--dataset", "wine", "--peer", "iterative", "evenly"]
    monkeypatch.setattr(sys, "argv", command)
    peers.main()
    assert asked == ["evenly"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_record_names_evenlys_commit_or_else_its_version(monkeypatch, tmp_path):
    monkeypatch.setattr(evenly, "__file__", str(tmp_path / "__init__.py"))
    assert imputers.commit() == evenly.__version__
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    (tmp_path / "__init__.py").write_text("")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True, capture_output=True)
    clean = imputers.commit()
    assert 7 <= len(clean) <= 12
    (tmp_path / "__init__.py").write_text("1")
    assert imputers.commit() == f"{clean}+"


# --- side by side -------------------------------------------------------------------------------------------------


@pytest.fixture
def make_peers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return load_script("docs/make_peers.py")


def wine() -> list[dict]:
    """Evenly on three masks, the strongest peer on one of them, and a weak one on all."""
    return [
        *(record("evenly", error, mask, cpu_seconds=30.0) for mask, error in enumerate((0.20, 0.22, 0.24), 1)),
        *(record("iterative", 0.4, mask) for mask in (1, 2, 3)),
        record("missforest", 0.198, 2, seconds=40.0, cpu_seconds=20.0),
        record("missforest", 0.198, 7),
    ]


def cells_of(made: str) -> list[dict[str, str]]:
    header, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in made.splitlines()]
    return [dict(zip(header, cells, strict=True)) for cells in lines]


def test_a_peer_that_was_run_on_some_masks_is_compared_on_these(make_peers):
    (row,) = cells_of(make_peers.errors([*wine(), record("evenly-inferred", 0.1)]))
    assert row["masks"] == "1, 2, 3"
    assert (row["iterative"], row["evenly"]) == ("0.4000", "0.2200")
    assert (row["missforest"], row["evenly-inferred"]) == ("**0.1980** (1)", "0.1000 (1)")
    assert (row["worst ratio"], row["to"], row["on masks"]) == ("1.111", "missforest", "1")


def test_peers_are_shown_where_evenly_was_not_run(make_peers):
    one, two = cells_of(make_peers.errors([*wine(), record("iterative", 0.3, 4, "adult")]))
    assert (one["data set"], two["data set"], two["masks"]) == ("wine", "adult", "4")
    assert (two["iterative"], two["missforest"], two["evenly"], two["worst ratio"]) == ("0.3000", "–", "–", "–")


def test_every_mask_has_its_ratio_to_its_best_peer(make_peers):
    (row,) = cells_of(make_peers.by_mask(wine()))
    assert list(row.values())[-1] == "1: 0.500 iterative; 2: 1.111 missforest; 3: 0.600 iterative"


def test_data_sets_are_counted_in_sentences(make_peers):
    breast = [record("evenly", 0.102, dataset="breast"), record("knn", 0.1, dataset="breast")]
    spam = [record("evenly", 0.1, dataset="spam"), record("knn", 0.2, dataset="spam")]
    assert make_peers.counts([*wine(), *breast, *spam, record("knn", 0.1, dataset="adult")]) == (
        "mcar 20 %: evenly has the least error of all peers that were run on 1 (spam) of 3 data sets, and is within 3 "
        "% of the least on 1 (breast) more. It takes less time than missforest on 1 of 1, and up to 3 % more on 0 "
        "(wine 0.25). It takes less CPU time than missforest on 0 of 1, and up to 3 % more on 0 (wine 1.50)."
    )
    assert make_peers.counts([record("knn", 0.1)]) == "No runs yet."


def test_the_answer_says_where_evenly_is_ahead_and_where_it_is_not(make_peers):
    breast = [record("evenly", 0.102, dataset="breast"), record("knn", 0.1, dataset="breast")]
    spam = [record("evenly", 0.1, dataset="spam"), record("missforest", 0.2, dataset="spam")]
    letter = [record("evenly", 0.18, dataset="letter"), record("missforest-sqrt", 0.2, dataset="letter")]
    adult = [record("evenly", 0.3, dataset="adult"), record("knn", 0.4, dataset="adult")]
    assert make_peers.answer([*breast, *spam, *letter, *adult]) == (
        "- 20 % of the cells hidden at random: evenly has the least error on 3 of 4 data sets, by 10 to 50 %; no "
        "forest was run on adult (25 %); on breast, knn has 2.0 % less."
    )
    assert make_peers.answer([record("knn", 0.1)]) == "No runs yet."


def test_columns_without_a_score_are_not_counted_as_scored(make_peers):
    assert "| iterative | 0 of 3 | – |" in make_peers.worse(wine())


def test_what_was_inferred_is_listed(make_peers):
    kinds = {"quality": ["count", "ordinal"], "ph": ["real", "ignore"], "age": ["count", "ordinal"]}
    made = record("evenly-inferred", 0.21, 1, other_kinds=kinds, left_missing=["ph"])
    (row,) = cells_of(make_peers.inferred([*wine(), made]))
    assert row["inferred / declared"] == "1.050"
    assert row["kinds"] == "count as ordinal: quality, age; real as ignore: ph"
    assert row["left missing"] == "ph"


def test_the_picture_is_drawn_with_peers_on_some_masks(make_peers):
    pytest.importorskip("matplotlib")
    assert make_peers.picture(wine()).startswith(b"\x89PNG")


# --- a new peer -----------------------------------------------------------------------------------------------------


@pytest.fixture
def toy():
    """A peer that is declared in one class, and nowhere else."""

    class Toy(imputers.Peer):
        name, label, note = "toy", "Toy 2", "imputes zeros"
        revision = 7
        color = "#123456"
        kinds = frozenset({"real", "positive", "categorical"})
        compare_time = True

        def impute(self, columns, visible):
            return imputers.Filled(np.nan_to_num(visible), {"zeros": True})

    yield Toy
    del imputers.PEERS["toy"]


def ask(monkeypatch, out: Path, *options: str) -> list[str]:
    """Run the script with runs made in this process; return the peers that were run."""
    asked = []

    def start(settings, folder, limit):
        asked.append(settings["peer"])
        return peers.run(settings, folder)

    monkeypatch.setattr(peers, "start", start)
    monkeypatch.setattr(sys, "argv", ["peers.py", "--out", str(out), "--dataset", "iris", *options])
    peers.main()
    return asked


def test_a_new_peer_is_one_class_for_the_benchmark(toy, tmp_path, monkeypatch, capsys):
    out = tmp_path / "peers.jsonl"
    assert ask(monkeypatch, out, "--peer", "mean-or-mode", "toy") == ["mean-or-mode", "toy"]
    made = json.loads(out.read_text().splitlines()[-1])
    assert (made["peer"], made["revision"], made["zeros"]) == ("toy", "1.7", True)
    assert made["error"] > made["baseline"]
    assert ask(monkeypatch, out, "--peer", "mean-or-mode", "toy") == []
    monkeypatch.setattr(toy, "revision", 8)
    assert ask(monkeypatch, out, "--peer", "mean-or-mode", "toy") == ["toy"]
    capsys.readouterr()
    assert list(imputers.PEERS)[-1] == "toy"
    assert peers.summary([record("evenly", 0.1), record("toy", 0.2)]) == ["mcar 20 wine 1: evenly 0.500 x toy"]


def test_why_a_peer_gave_no_result_is_recorded_and_it_is_not_run_again(toy, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(toy, "unable", "it has no weights", raising=False)
    out = tmp_path / "peers.jsonl"
    monkeypatch.setattr(sys, "argv", ["peers.py", "--out", str(out), "--dataset", "iris", "--peer", "toy"])
    for said in ("iris 20 1 mcar toy failed: it has no weights", ""):
        peers.main()
        assert said in capsys.readouterr().out
    (made,) = map(json.loads, out.read_text().splitlines())
    assert (made["peer"], made["reason"], made["revision"]) == ("toy", "it has no weights", "1.7")
    assert peers.current([made]) == []
    assert peers.failures([made]) == [made]


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started():
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", child]) as process:
        assert peers._wait(process, meter.cpu_seconds() + 0.5)
        assert process.returncode


def test_drawn_tables_are_averaged_and_classes_voted_for():
    columns = [Column(name="x", kind="real"), Column(name="color", kind="categorical", classes=[0, 1, 2])]
    tables = [np.array([[1.0, 2.0]]), np.array([[2.0, 0.0]]), np.array([[6.0, 2.4]])]
    assert imputers.average_tables(columns, tables).tolist() == [[3.0, 2.0]]
    assert imputers.average_tables(columns, [np.array([[1.0, 7.0]])]).tolist() == [[1.0, 2.0]]


def test_a_peer_is_not_run_on_kinds_that_it_cannot_impute(toy, monkeypatch):
    settings = dict(zip(peers.KEYS, ("iris", 20, 1, "mcar", "toy"), strict=True))
    assert peers.run(settings, None)["zeros"]
    monkeypatch.setattr(toy, "kinds", frozenset({"real", "positive"}))
    with pytest.raises(ValueError, match=r"^toy cannot impute columns of these kinds: target \(categorical\)$"):
        peers.run(settings, None)


def test_forest_diffusion_is_not_run_where_it_would_take_more_than_an_hour():
    columns = [Column(name=f"x{j}", kind="real") for j in range(13)]
    few, many = np.zeros((700, 13)), np.zeros((6497, 13))
    assert imputers.ForestDiffusion.why_not(columns, few) is None
    assert imputers.ForestDiffusion.why_not(columns, many) == (
        "its trees would take 1.2 hours of one core, by the time of one of their 650 fits"
    )


def test_a_new_peer_is_one_class_for_the_page(toy, make_peers, monkeypatch):
    costs = {"seconds": 40.0, "cpu_seconds": 20.0, "worse": ["ph +9.0%"]}
    records = [*wine(), *(record("toy", 0.1, mask, **costs) for mask in (1, 2))]
    (row,) = cells_of(make_peers.errors(records))
    assert (row["Toy 2"], row["worst ratio"], row["to"]) == ("**0.1000** (2)", "2.100", "Toy 2")
    assert "1: 2.000 Toy 2; 2: 2.200 Toy 2" in make_peers.by_mask(records)
    assert "less time than Toy 2 on 1 of 1, and up to 3 % more on 0 (wine 0.25)" in make_peers.counts(records)
    assert cells_of(make_peers.costs(records))[0]["Toy 2"] == "40 s (20 CPU), 0.5 GiB"
    assert "| Toy 2 | 2 of 2 | – |" in make_peers.worse(records)
    monkeypatch.setattr(make_peers, "read", lambda name: records if name == "peers.jsonl" else [])
    text = make_peers.PAGE.read_text(encoding="utf-8")
    assert "- Toy 2: imputes zeros\n" in make_peers.page(f"{text}<!-- peers -->\n<!-- end -->\n")
    assert "imputes zeros" not in make_peers.page(text)


def test_a_new_peer_has_dots_of_one_color(toy, make_peers, monkeypatch):
    pytest.importorskip("matplotlib")
    colors = pytest.importorskip("matplotlib.colors")
    monkeypatch.setattr(make_peers, "as_png", lambda figure: figure)
    records = [*wine(), *(record("toy", 0.1, dataset=dataset) for dataset in ("wine", "adult"))]
    for declared, drawn in (("#123456", "#123456"), (None, "C3")):
        monkeypatch.setattr(toy, "color", declared)
        (ax,) = make_peers.picture(records).axes
        dots = next(dots for dots in ax.collections if dots.get_label() == "Toy 2")
        assert {colors.to_hex(color) for color in dots.get_facecolors()} == {colors.to_hex(drawn)}
        assert len(dots.get_offsets()) == 2


def test_names_of_peers_are_not_taken_twice(toy):
    with pytest.raises(ValueError, match="Two peers have the name 'toy'"):
        type("Other", (imputers.Peer,), {"name": "toy"})
    assert imputers.PEERS["toy"] is toy


def test_a_base_of_peers_is_no_peer(toy):
    before = list(imputers.PEERS)
    type("Base", (toy,), {})
    assert list(imputers.PEERS) == before


def test_records_of_a_peer_that_is_gone_are_read(make_peers):
    gone = record("gone", 0.1)
    assert gone["revision"] == "1.1"
    assert peers.current([gone]) == [gone]
    (row,) = cells_of(make_peers.errors([*wine(), gone]))
    assert (row["to"], "gone" in row) == ("gone", False)


def test_the_example_of_a_peer_runs():
    assert doctest.testmod(imputers, raise_on_error=True).attempted >= 3
    assert "median" not in imputers.PEERS


# --- small tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", peers.SMALL)
def test_small_tables_have_codes_of_classes_and_their_own_missing_cells(name):
    data = peers.load_small(name)
    columns = list(schema(data).columns)
    assert [column.name for column in columns] == data.columns
    for j, column in enumerate(columns):
        if column.has_classes:
            assert set(data.values[data.known[:, j], j]) == set(range(data.classes[column.name]))
    assert (~data.known).sum() == (6 if name == "heart" else 0)
    assert peers.hide(data, 20, 1, "mcar").sum() == pytest.approx(0.2 * data.known.sum(), rel=0.02)
