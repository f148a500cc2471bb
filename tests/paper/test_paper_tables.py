"""The paper's tables from hand-made records: means, marks, formats, and the agreement with the published cells."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from commands import Done, refused, run

pytest.importorskip("jax")
from evenly import TableError
from evenly.paper.agreement import (
    MEAN_OR_MODE,
    Cell,
    Comparison,
    Published,
    agreement,
    best,
    is_sound,
    percents,
    published_cells,
    summarize,
)
from evenly.paper.records import REVISION
from evenly.paper.tables import (
    NAMED,
    OURS,
    PUBLISHED_COLUMNS,
    Grid,
    render_tables,
    tabulate,
    tabulate_agreement,
    to_latex,
    to_markdown,
    to_terminal,
)

KINDS = ["real", "positive", "count", "binary"]


def record(method, errors, *, dataset="wine", percent=20, mask=1, model="vae", seed=0, epochs=10, kinds=KINDS, **more):
    """A record whose two protocols have the same errors, and whose simple imputation errs by 0.5 everywhere."""
    run = {"dataset": dataset, "percent": percent, "mask": mask, "model": model, "method": method}
    return {
        "run": {**run, "seed": seed, "epochs": epochs},
        "revision": REVISION,
        "columns": [f"x{j}" for j in range(len(kinds))],
        "kinds": kinds,
        "honest": errors,
        "as_published": errors,
        "mean_or_mode": [0.5] * len(kinds),
        **more,
    }


def failed(method, **more):
    one = record(method, [], **more)
    return {"run": one["run"], "revision": REVISION, "failed": "FloatingPointError: the loss is not finite"}


RECORDS = [
    record("std-none", [0.1, 0.3, 0.6, None]),
    record("std-none", [0.2, 0.4, 0.2, None], mask=2),
    record("lip-gamma", [0.1, 0.1, 0.5, 0.3]),
    record("lip-gamma", [0.12, 0.2, 0.5, 0.3], mask=2),
    record("std-none", [0.3, 0.3, 0.3, 0.3], model="mixture"),
]


def by_key(cells):
    return {cell.key: cell for cell in cells}


# --- cells --------------------------------------------------------------------------------------------------------


def test_cells_are_means_over_runs_of_means_over_columns():
    cells = by_key(summarize(RECORDS, 20, "as-published"))
    # Continuous: (0.1 + 0.3) / 2 and (0.2 + 0.4) / 2. Discrete: only the count was scored.
    continuous = cells["wine", "vae", "std-none", "continuous"]
    assert (continuous.mean, continuous.n) == (pytest.approx(0.25), 2)
    assert continuous.std == pytest.approx(0.05 * 2**0.5)
    assert cells["wine", "vae", "std-none", "discrete"].mean == pytest.approx(0.4)
    assert cells["wine", "vae", "std-none", "all"].mean == pytest.approx((1.0 / 3 + 0.8 / 3) / 2)
    assert cells["wine", "mixture", "std-none", "all"] == Cell("wine", "mixture", "std-none", "all", 0.3, None, 1, 10)
    assert len(cells) == 9


def test_protocols_are_kept_apart():
    one = record("std-none", [0.1] * 4, as_published=[0.2] * 4)
    assert by_key(summarize([one], 20, "honest"))["wine", "vae", "std-none", "all"].mean == pytest.approx(0.1)
    assert by_key(summarize([one], 20, "as-published"))["wine", "vae", "std-none", "all"].mean == pytest.approx(0.2)
    with pytest.raises(TableError, match="got protocol 'both'"):
        summarize([one], 20, "both")


def test_the_simple_imputation_counts_once_a_mask_and_only_honestly():
    more = [record("max-none", [0.1] * 4, mask=2, mean_or_mode=[0.7] * 4), record("std-none", [0.1] * 4)]
    cells = by_key(summarize([*more, record("lip-none", [0.1] * 4)], 20, "honest"))
    simple = cells["wine", "vae", MEAN_OR_MODE, "all"]
    assert (simple.mean, simple.n) == (pytest.approx(0.6), 2)
    assert not any(cell.method == MEAN_OR_MODE for cell in summarize(more, 20, "as-published"))


def test_failed_shorter_and_other_runs_are_left_out():
    more = [
        failed("std-none", mask=3),
        record("std-none", [9.0] * 4, mask=4, epochs=5),
        record("std-none", [9.0] * 4, percent=10),
    ]
    assert summarize([*RECORDS, *more], 20, "honest") == summarize(RECORDS, 20, "honest")
    notes = " ".join(tabulate([*RECORDS, *more], 20, "honest").notes)
    assert "Left out, runs of other lengths: wine vae of 5 epochs (1)." in notes
    assert "Left out, runs that failed: wine vae std-none (1)." in notes
    assert "Epochs: wine 10." in notes


def test_methods_are_compared_at_the_epochs_that_most_of_them_have_and_published_cells_with_the_longest():
    """A longer run of one method must not empty the others' cells, nor stand beside them as if it were their like."""
    longer = record("std-none", [0.01] * 4, epochs=400)
    assert summarize([*RECORDS, longer], 20, "honest") == summarize(RECORDS, 20, "honest")
    cells = by_key(summarize([*RECORDS, longer], 20, "as-published"))
    assert cells["wine", "vae", "std-none", "all"].epochs == 400
    assert {cell.epochs for key, cell in cells.items() if key[2] != "std-none"} == {10}
    notes = " ".join(tabulate([*RECORDS, longer], 20, "as-published").notes)
    assert "Epochs: wine 10 or 400 (vae), 10 (mixture)." in notes
    mixture = record("std-none", [0.1] * 4, model="mixture", epochs=90)
    assert "Epochs: wine 10 (vae), 90 (mixture)." in " ".join(tabulate([*RECORDS, mixture], 20, "honest").notes)


def test_a_kind_without_columns_has_no_cell():
    kinds = ["count", "binary"]
    cells = summarize([record("std-none", [0.1, 0.2], dataset="breast", kinds=kinds)], 20, "as-published")
    assert [cell.kind for cell in cells] == ["discrete", "all"]


def test_bad_records_are_named():
    with pytest.raises(TableError, match=r"without proper 'honest'.*expected one error a column"):
        summarize([record("std-none", [0.1])], 20, "honest")


def test_cells_stand_in_the_papers_order():
    names = ["synthetic", "breast", "credit", "wine"]
    methods = ["lip-gamma", "std-none"]
    grid = tabulate([record(method, [0.1] * 4, dataset=name) for name in names for method in methods], 20, "honest")
    assert [row[0] for row in grid.rows if row[0]] == ["credit", "wine", "breast", "synthetic"]
    assert [row[1] for row in grid.rows[:3]] == ["std-none", "lip-gamma", MEAN_OR_MODE]


def test_percentages_that_are_not_there_are_refused():
    assert percents(RECORDS) == [20]
    with pytest.raises(TableError, match="no finished run with 50 % hidden, but expected 20"):
        percents(RECORDS, [50])
    with pytest.raises(TableError, match=r"no records.*evenly paper run"):
        percents([])
    with pytest.raises(TableError, match="1 records of runs that failed"):
        percents([failed("std-none")])


# --- marks --------------------------------------------------------------------------------------------------------


def cell(method, mean, *, model="vae", kind="all", std=None, n=1, dataset="wine", epochs=0):
    return Cell(dataset, model, method, kind, mean, std, n, epochs)


def test_the_least_of_each_block_is_best_and_so_is_what_prints_the_same():
    cells = [cell("std-none", 0.2), cell("lip-none", 0.1004), cell("lip-gamma", 0.0996)]
    alone = [cell("std-none", 0.2, model="mixture")]
    other = [cell("std-none", 0.2, kind="discrete"), cell("lip-none", 0.3, kind="discrete")]
    assert best([*cells, *alone, *other]) == {cells[1].key, cells[2].key, other[0].key}


def test_none_is_best_of_cells_with_different_epochs():
    cells = [cell("std-none", 0.2, epochs=100), cell("lip-gamma", 0.1, epochs=400)]
    assert best(cells) == set()
    assert best([cells[1], cell("std-none", 0.2, epochs=400)]) == {cells[1].key}


def test_the_simple_imputation_can_be_best():
    cells = summarize([record("std-none", [0.6] * 4)], 20, "honest")
    assert {key[2] for key in best(cells)} == {MEAN_OR_MODE}


# --- formats ------------------------------------------------------------------------------------------------------


def test_the_honest_grid():
    grid = tabulate(RECORDS, 20, "honest")
    assert grid.over == [("", 2), ("discrete", 2), ("continuous", 2), ("all", 2)]
    assert grid.header == ["data set", "method", *["mixture", "vae"] * 3]
    assert grid.rows[0] == [
        *("wine", "std-none", "0.300 [1]", "0.400 (0.283)", "0.300 [1]", "0.250 (0.071)", "0.300 [1]", "0.300 (0.047)")
    ]
    assert grid.rows[1] == ["", "lip-gamma", "–", "0.400 (0.000)", "–", "0.130 (0.042)", "–", "0.265 (0.021)"]
    assert grid.rows[2][1:4] == [MEAN_OR_MODE, "0.500 [1]", "0.500 (0.000)"]
    assert grid.best == {(0, 2), (0, 3), (1, 3), (0, 4), (1, 5), (0, 6), (1, 7)}
    assert "honest protocol" in grid.title
    assert "published" not in "".join(grid.title)


def test_the_as_published_grid_has_the_published_cells_and_the_difference_beside_ours():
    grid = tabulate(RECORDS, 20, "as-published")
    assert "as-published protocol, for comparing with the paper's tables only" in grid.title
    rows = [row[3:] for row in grid.rows if row[1] == "std-none"] + [row[3:] for row in grid.rows[1:3]]
    # Published for wine, 20 %: mixture 0.107 (0.007) and VAE 0.089 (0.002); 0.094 (0.001) and 0.076 (0.002).
    assert rows[1] == ["0.107 (0.007)", "0.089 (0.002)", "0.094 (0.001)", "0.076 (0.002)", "–", "–"]
    assert rows[2][:4] == ["+27.6", "+155.5", "+206.0", "+87.0"]
    assert [row[2] for row in grid.rows[:3]] == ["ours", "published", "difference"]
    assert {row[1] for row in grid.rows if row[1]} == {key[2] for key in published_cells()[20] if key[0] == "wine"}
    without = next(i for i, row in enumerate(grid.rows) if row[1] == "iqr-none")
    assert set(grid.rows[without][3:]) == set(grid.rows[without + 2][3:]) == {"–"}
    assert not any("flawed there" in note for note in grid.notes)


def test_published_infinities_are_shown_as_printed():
    grid = tabulate([record("std-gamma", [0.1] * 4, dataset="adult")], 20, "as-published")
    first = next(i for i, row in enumerate(grid.rows) if row[1] == "std-gamma")
    assert [row[4] for row in grid.rows[first : first + 3]] == ["0.100", "inf", "–"]
    assert any("flawed there" in note for note in grid.notes)
    assert r"$\infty$" in to_latex(grid)


@pytest.mark.parametrize("protocol", ["honest", "as-published"])
@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "latex"])
def test_nothing_prints_nan(form, protocol):
    text = render_tables(RECORDS, protocols=[protocol], form=form)
    assert "nan" not in text.lower()
    assert "None" not in text


def test_terminal_columns_line_up():
    text = to_terminal(tabulate(RECORDS, 20, "honest"))
    lines = text.splitlines()
    start = lines[3].index("vae")
    assert lines[5][start:].startswith("0.400 (0.283)*")
    assert lines[6][start:].startswith("0.400 (0.000)*")
    assert lines[2][lines[3].index("mixture") :].startswith("discrete")
    assert all(line == line.rstrip() for line in lines)


def test_markdown_has_a_table_of_one_shape():
    grid = tabulate(RECORDS, 20, "honest")
    lines = [line for line in to_markdown(grid).splitlines() if line.startswith("|")]
    cells = [[text.strip() for text in line.strip("|").split("|")] for line in lines]
    assert {len(row) for row in cells} == {len(grid.header)}
    assert len(cells) == len(grid.rows) + 2
    assert cells[0][:4] == ["data set", "method", "discrete mixture", "discrete vae"]
    assert set(cells[1]) == {"---"}
    assert cells[2][3] == "**0.400 (0.283)**"


def test_markdown_escapes_pipes_and_stars():
    text = to_markdown(Grid("*-none", ["a|b"], [["x|y\nz"]], best=frozenset({(0, 0)})))
    assert r"**\*-none**" in text
    assert r"| a\|b |" in text
    assert r"| **x\|y z** |" in text


def test_latex_has_as_many_cells_as_columns():
    grid = tabulate(RECORDS, 20, "as-published")
    text = to_latex(grid)
    columns = re.search(r"\\begin\{tabular\}\{(l+)\}", text)
    assert columns is not None
    assert len(columns[1]) == len(grid.header)
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == len(grid.rows) + 2
    for row in rows:
        spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
        assert len(re.split(r"(?<!\\)&", row)) - len(spans) + sum(spans) == len(grid.header)
    assert r"\textbf{0.400 (0.283)}" in text
    assert r"20 \% hidden" in text
    assert text.count("{") == text.count("}")
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1


def test_latex_escapes():
    text = to_latex(Grid("50 % of a_b & c#d", ["$x^2$"], [["{~}\\"], ["–"]]))
    assert r"\caption{50 \% of a\_b \& c\#d}" in text
    assert r"\$x\textasciicircum{}2\$ \\" in text
    assert r"\{\textasciitilde{}\}\textbackslash{} \\" in text
    assert "-- \\\\" in text


def test_csv_has_a_row_a_cell():
    rows = list(csv.DictReader(io.StringIO(render_tables(RECORDS, protocols=["honest", "as-published"], form="csv"))))
    assert tuple(rows[0]) == (*NAMED, "protocol", *OURS, "best", *PUBLISHED_COLUMNS)
    ours = {(row["protocol"], row["model"], row["method"], row["kind"]): row for row in rows}
    assert len(ours) == len(rows)
    one = ours["as-published", "vae", "std-none", "continuous"]
    assert (float(one["mean"]), float(one["std"]), one["n"], one["best"]) == (0.25, 0.0707107, "2", "")
    assert (one["published_mean"], one["published_std"], float(one["difference_in_std"])) == ("0.076", "0.002", 87.0)
    assert ours["honest", "vae", "lip-gamma", "continuous"]["best"] == "*"
    assert ours["honest", "vae", "lip-gamma", "continuous"]["published_mean"] == ""
    absent = ours["as-published", "vae", "iqr-none", "continuous"]
    assert (absent["mean"], absent["std"], absent["n"], absent["published_mean"]) == ("", "", "0", "0.074")


# --- agreement ----------------------------------------------------------------------------------------------------


def test_the_published_tables_are_whole():
    tables = published_cells()
    assert {percent: len(table) for percent, table in tables.items()} == {10: 177, 20: 177, 50: 177}
    assert tables[20]["credit", "factorization", "std-none", "discrete"] == Published(float("inf"), None)
    assert tables[10]["credit", "factorization", "std-none", "discrete"] == Published(4.448, 7.0)


def test_plain_categoricals_are_where_the_published_code_is_flawed():
    assert is_sound("breast", "std-none")
    assert is_sound("adult", "lip-gamma")
    assert not is_sound("letter", "std-none")


@pytest.mark.parametrize(
    ("ours", "published", "std", "agrees", "says_little"),
    [
        (0.104, 0.1, 0.002, True, False),  # both at the very edge: two standard deviations, and less than 10 %
        (0.11, 0.1, 0.0, True, False),  # 10 %, where the standard deviation is printed as 0.000
        (0.111, 0.1, 0.005, False, False),
        (0.089, 0.1, 0.005, False, False),
        (0.12, 0.1, 0.01, True, False),  # two standard deviations, more than 10 %
        (0.15, 0.476, 1.0, True, True),  # anything would agree
        (0.47, 0.476, 1.0, True, False),
        (0.1, float("inf"), None, False, False),
    ],
)
def test_when_a_cell_agrees(ours, published, std, agrees, says_little):
    one = Comparison(20, cell("std-none", ours), Published(published, std))
    assert (one.agrees, one.says_little) == (agrees, says_little)


BREAST = {"dataset": "breast", "kinds": ["count", "binary"]}
COMPARED = [
    record("std-none", [0.18, 0.19], **BREAST),  # published 0.183 (0.004): agrees
    record("lip-gamma", [0.3, 0.3], **BREAST),  # published 0.198 (0.006): does not
    record("std-gamma", [0.09, 0.09, 0.2, 0.2], dataset="adult"),  # continuous inf; discrete 0.163 (0.033): agrees
    record("std-none", [0.09, 0.09, 0.3, 0.3], dataset="adult"),  # flawed
    record("std-none", [0.1] * 4, dataset="synthetic"),
    record("std-none", [0.2, 0.2], percent=50, **BREAST),
]


def test_agreement_counts_sound_finite_cells():
    found = agreement(COMPARED, [20])
    assert [(one.ours.dataset, one.ours.method, one.agrees) for one in found.sound] == [
        ("adult", "std-gamma", True),
        ("breast", "std-none", True),
        ("breast", "lip-gamma", False),
    ]
    assert [one.ours.key for one in found.infinite] == [("adult", "vae", "std-gamma", "continuous")]
    assert [one.ours.method for one in found.flawed] == ["std-none"] * 2
    assert found.counts(lambda one: one.ours.dataset) == {"adult": (1, 1), "breast": (1, 2)}
    sound = [cell for key, cell in published_cells()[20].items() if is_sound(key[0], key[2])]
    assert found.absent + 3 == sum(cell.mean != float("inf") for cell in sound)
    assert len(agreement(COMPARED).sound) == 4


def test_the_agreement_is_listed():
    counts, apart, infinite, flawed = tabulate_agreement(COMPARED, [20])
    rows = {tuple(row[:2]): row[2:] for row in counts.rows}
    assert rows["all", ""] == ["2", "3", "67 %"]
    assert rows["hidden", "20 %"] == ["2", "3", "67 %"]
    assert rows["data set and model", "breast vae"] == ["1", "2", "50 %"]
    assert rows["method", "lip-gamma"] == ["0", "1", "0 %"]
    assert rows["kind", "discrete"] == ["2", "3", "67 %"]
    assert "published as inf, 1;" in " ".join(counts.notes)
    assert apart.rows == [
        ["20 %", "breast", "vae", "lip-gamma", "discrete", "0.300", "1", "0.198 (0.006)", "+0.102", "+17.0"]
    ]
    assert infinite.rows[0][5:] == ["0.090", "1", "inf", "–", "–"]
    assert [row[3] for row in flawed.rows] == ["std-none"] * 2
    assert "Published code flawed there" in flawed.title


def test_the_agreement_in_every_format():
    for form in ("terminal", "markdown", "latex"):
        assert "Published code flawed there" in render_tables(COMPARED, agree=True, form=form)
    rows = list(csv.DictReader(io.StringIO(render_tables(COMPARED, missing=[20], agree=True, form="csv"))))
    assert [row["agrees"] for row in rows] == ["yes", "yes", "no", "published inf", *["published code flawed"] * 2]
    assert rows[3]["published_mean"] == "inf"


def test_the_agreement_where_nothing_counts():
    flawed = agreement([COMPARED[3]])
    assert flawed.sound == []
    assert "None." in render_tables([COMPARED[3]], agree=True)
    with pytest.raises(TableError, match=r"no run of a published cell.*adult, breast, credit, letter, spam, wine"):
        agreement([COMPARED[4]])


# --- the command --------------------------------------------------------------------------------------------------


def evenly(*arguments: object) -> Done:
    return run("paper", *arguments, environment={"COLUMNS": "100"})


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> tuple[Path, Path]:
    """A folder of single records and a file of packed ones."""
    folder = tmp_path_factory.mktemp("records")
    (folder / "one.json").write_text(json.dumps(RECORDS[0]) + "\n")
    packed = folder / "more.jsonl"
    packed.write_text("".join(json.dumps(one) + "\n" for one in [*RECORDS, COMPARED[-1]]))
    return folder, packed


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "latex"])
def test_the_command_prints_every_format(form, places):
    done = evenly("tables", *places, "--missing", 20, "--protocol", "both", "--format", form)
    assert done.returncode == 0, done.stderr
    assert done.stdout == render_tables(RECORDS, protocols=["honest", "as-published"], form=form)


def test_the_command_prints_the_agreement(places):
    done = evenly("tables", places[1], "--agreement")
    assert done.returncode == 0, done.stderr
    assert done.stdout == render_tables([*RECORDS, COMPARED[-1]], agree=True)


def test_the_command_writes_a_file(places, tmp_path):
    out = tmp_path / "new" / "table.md"
    done = evenly("tables", places[1], "--format", "markdown", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out}\n"
    assert out.read_text(encoding="utf-8") == render_tables([*RECORDS, COMPARED[-1]], form="markdown")
    assert [path.name for path in out.parent.iterdir()] == ["table.md"]


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["--missing", 10], "got no finished run with 10 % hidden, but expected 20 or 50."),
        (["--protocol", "fair"], "got protocol 'fair', but expected one of honest, as-published, both."),
        (["--format", "html"], "got format 'html', but expected one of terminal, markdown, csv, latex."),
        (["--out", "."], "got --out '.', but expected a file that can be written to"),
    ],
)
def test_bad_options_end_in_one_line(arguments, start, places):
    refused(evenly("tables", places[1], *arguments), start)


@pytest.mark.parametrize("command", ["tables", "figures"])
def test_absent_records_end_in_one_line(command, tmp_path):
    gone = tmp_path / "gone"
    refused(evenly(command, gone), f"got {gone}, but expected a folder or a file of records.")


def test_without_a_place_the_folder_of_runs_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(evenly("tables"), "got no RECORDS, and no folder paper_runs here, but expected one of them. Hint:")
    refused(evenly("figures"), "got no RECORDS, and no folder paper_runs here, but expected one of them. Hint:")
    (tmp_path / "paper_runs").mkdir()
    for i, record in enumerate(RECORDS):
        (tmp_path / "paper_runs" / f"{i}.json").write_text(json.dumps(record) + "\n")
    done = evenly("tables")
    assert done.returncode == 0, done.stderr
    assert done.stdout == render_tables(RECORDS)


def test_an_empty_folder_ends_in_one_line(tmp_path):
    refused(evenly("tables", tmp_path), "got no records, but expected some of finished runs.")
