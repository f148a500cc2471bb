"""The commands for one's own tables, run as a person runs them: every command, every format, and bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from functools import partial, partialmethod
from pathlib import Path

import commands
import numpy as np
import polars as pl
import pytest
from commands import MAIN, failed, run, run_process, small_disk, succeeded

from evenly import EvenlyWarning, LipschitzScaler, read_table, write_table
from evenly.cli.commands.compare import choose_candidates
from evenly.evaluation import Forest, assessment

TINY = ("--epochs", "1", "--share", "0.2")
FORMATS = ("csv", "tsv", "parquet", "arrow", "feather", "jsonl", "csv.gz", "csv.zst", "jsonl.gz")
TRIED = {
    "inspect": FORMATS,
    "scale": FORMATS,
    "impute": FORMATS,
    "diagnose": ("csv", "parquet"),
    "compare": ("tsv", "jsonl"),
    "report": ("csv.gz", "feather"),
}
"""All formats, where a command also writes the table; of the others each takes some, and all read by one function."""


def each_format(command: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("form", TRIED[command])


@pytest.fixture
def evenly(tmp_path):
    return partial(run, folder=tmp_path)


def survey(n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.normal(10.0, 2.0, n)
    colours = np.array(["red", "blue, dark", '<b>"x"</b> 🎈'])[rng.integers(0, 3, n)]
    return pl.DataFrame(
        {
            "size": [None if i % 7 == 0 else float(x) for i, x in enumerate(size)],
            "people": [None if i % 5 == 0 else int(x) for i, x in enumerate(rng.poisson(6.0, n))],
            "colour": [None if i % 9 == 0 else str(c) for i, c in enumerate(colours)],
            "zip": [f"0{1000 + i}" for i in range(n)],
        }
    )


@pytest.fixture
def table(tmp_path):
    def write(form: str = "csv", frame: pl.DataFrame | None = None) -> Path:
        path = tmp_path / f"survey.{form}"
        write_table(survey() if frame is None else frame, path)
        return path

    return write


@pytest.fixture
def short_diagnosis(monkeypatch):
    """A report's diagnosis trains as long as the table needs, whatever `--epochs`: here, an epoch is enough."""
    monkeypatch.setattr(assessment, "diagnose", partial(assessment.diagnose, epochs=1))


# --- in this process as in one of its own -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("inspect", "survey.csv"),
        ("inspect", "absent.csv"),
        pytest.param(("scale", "-", "-o", "-"), marks=pytest.mark.more),
        pytest.param(("impute", "-", "-o", "-", *TINY, "--quiet"), marks=pytest.mark.more),
        pytest.param(("impute", "survey.csv", "-o", "absent.xyz"), marks=pytest.mark.more),
    ],
)
def test_a_command_ends_and_prints_as_in_a_process_of_its_own(evenly, table, arguments, tmp_path):
    given = table().read_bytes() if "-" in arguments else b""
    assert evenly(*arguments, given=given) == run_process(*arguments, given=given, folder=tmp_path)


def test_a_command_leaves_the_process_as_it_was(evenly, table, monkeypatch):
    def state():
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
        streams, filters = (sys.stdin, sys.stdout, sys.stderr), list(warnings.filters)
        return os.getcwd(), dict(os.environ), list(sys.argv), sys.modules["duckdb"], handlers, streams, filters

    pytest.importorskip("duckdb")
    path, before = table("parquet"), state()
    first = evenly("inspect", path)
    failed(evenly("scale", path, "-o", "out/", "--engine", "duckdb", without=["duckdb"]), "duckdb")

    def careless() -> None:
        os.chdir("/")
        os.environ["COLUMNS"] = "7"
        sys.argv.clear()
        sys.stdout = sys.stderr
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise ValueError("unforeseen")

    with monkeypatch.context() as patch:
        patch.setattr(commands, "main", careless)
        with pytest.raises(ValueError, match="unforeseen"):
            evenly("inspect", path)
    assert state() == before
    assert evenly("inspect", path) == first


# --- every command, every format ----------------------------------------------------------------------------------


@each_format("inspect")
def test_inspect_shows_kinds_and_writes_a_schema(evenly, table, form, tmp_path):
    shown = succeeded(evenly("inspect", table(form), "-o", "schema.json"))
    assert "60 rows, 4 columns" in shown
    assert "identifier" in shown
    schema = json.loads((tmp_path / "schema.json").read_text())
    assert [column["name"] for column in schema["columns"]] == ["size", "people", "colour", "zip"]
    plain = json.loads(succeeded(evenly("inspect", table(form), "--json")))
    assert plain["n_rows"] == 60


@each_format("scale")
def test_scale_and_unscale_give_the_table_back(evenly, table, form, tmp_path):
    out = f"scaled.{form}"
    assert out in succeeded(evenly("scale", table(form), "-o", out, "--save", "scaler/"))
    succeeded(evenly("unscale", out, "--load", "scaler/", "-o", f"again.{form}"))
    before, after = read_table(tmp_path / f"survey.{form}"), read_table(tmp_path / f"again.{form}")
    assert after.columns == before.columns
    np.testing.assert_allclose(after["size"].to_numpy(), before["size"].to_numpy(), rtol=1e-9)
    for column in ("people", "colour", "zip"):
        assert after[column].to_list() == before[column].to_list()


@each_format("impute")
def test_impute_fills_every_format_and_leaves_known_cells(evenly, table, form, tmp_path):
    shown = succeeded(evenly("impute", table(form), "-o", f"full.{form}", *TINY))
    assert "mean or mode" in shown
    before, after = read_table(tmp_path / f"survey.{form}"), read_table(tmp_path / f"full.{form}")
    assert after.schema == before.schema
    assert sum(after.null_count().row(0)) == 0
    for column in before.columns:
        known = before[column].is_not_null()
        assert after[column].filter(known).to_list() == before[column].filter(known).to_list()


@pytest.mark.parametrize(("source", "target"), [("csv", "parquet"), ("parquet", "jsonl"), ("arrow", "tsv")])
def test_one_format_in_another_out(evenly, table, source, target, tmp_path):
    succeeded(evenly("impute", table(source), "-o", f"full.{target}", "--epochs", "1", "--share", "0", "--quiet"))
    assert read_table(tmp_path / f"full.{target}").shape == (60, 4)


@pytest.mark.more
@each_format("diagnose")
def test_diagnose_gives_a_verdict(evenly, table, form):
    done = evenly("diagnose", table(form), "--epochs", "1", "--json")
    plain = json.loads(succeeded(done))
    assert [one["column"] for one in plain["columns"]] == ["size", "people", "colour"]
    assert plain["verdict"]
    assert [one["method"] for one in plain["trainings"]] == ["std-none", "lip-gamma"]
    shown = succeeded(evenly("diagnose", table(form), "--no-train"))
    assert "share of the gradient" in shown
    assert "Not modelled: zip" in shown


@pytest.mark.more
@each_format("compare")
def test_compare_puts_models_side_by_side(evenly, table, form, tmp_path):
    shown = succeeded(
        evenly("compare", table(form), "--model", "masked", "--model", "mixture", "-o", "errors.csv", *TINY)
    )
    assert "mean or mode" in shown
    errors = read_table(tmp_path / "errors.csv")
    assert errors.columns[3:] == ["masked lip-none", "masked std-none", "mixture lip-none"]
    assert errors["column"].to_list() == ["size", "people", "colour"]


def assert_one_page(path: Path) -> None:
    page = path.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "people" in page
    for raw in ('<b>"x"</b>', '<b>\\"x\\"</b>', "<b>&quot;x"):  # a class of `colour`, as it would be run
        assert raw not in page


@pytest.mark.usefixtures("short_diagnosis")
@each_format("report")
def test_report_is_one_page(evenly, table, form, tmp_path):
    succeeded(evenly("report", table(form), "-o", "page.html", *TINY))
    assert_one_page(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "the imputer&#39;s error is" in page
    assert "It is not the imputer that filled the table." in page


def test_the_report_of_a_diagnosis_has_its_verdict_and_no_imputer(evenly, table, tmp_path):
    succeeded(evenly("diagnose", table(), "--no-train", "--report", "page.html"))
    assert_one_page(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Verdict. " in page
    assert "the imputer" not in page.partition("<main")[2].partition("<script")[0]


def test_impute_reads_standard_input_and_writes_standard_output(evenly, table):
    done = evenly("impute", "-", "-o", "-", "--epochs", "1", "--share", "0", given=table().read_bytes())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "size,people,colour,zip"
    assert len(done.stdout.splitlines()) == 61


def test_saved_files_that_were_edited_are_refused_in_one_line(evenly, table, tmp_path):
    path = table("csv")
    succeeded(evenly("scale", path, "-o", "scaled.csv", "--save", "scaler.json"))
    succeeded(evenly("impute", path, "-o", "full.csv", "--model", "marginal", "--share", "0", "--save", "imputer"))
    for file, line in (
        ("scaler.json", ("unscale", "scaled.csv", "-o", "again.csv", "--load")),
        ("scaler.json", ("scale", path, "-o", "again.csv", "--load")),
        ("imputer", ("impute", path, "-o", "again.csv", "--load")),
    ):
        saved = tmp_path / file
        saved = saved / "imputer.safetensors" if saved.is_dir() else saved
        saved.write_bytes(saved.read_bytes().replace(b"red", b"rad"))
        failed(evenly(*line, file), "edited or damaged")
    assert not (tmp_path / "again.csv").exists()


def test_impute_saves_samples_reports_and_loads_for_new_rows(evenly, table, tmp_path):
    path = table()
    done = evenly(
        *("impute", path, "-o", "full.csv", "--samples", "2", "--save", "model/", "--report", "page.html"), *TINY
    )
    shown = succeeded(done)
    assert "cells that were hidden from it, the imputer's error is" in shown
    for name in ("full.csv", "full_1.csv", "full_2.csv", "page.html"):
        assert name in shown
        assert (tmp_path / name).exists()
    assert (tmp_path / "model" / "imputer.safetensors").exists()
    succeeded(evenly("impute", path, "-o", "again.csv", "--load", "model/"))
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "full.csv").read_bytes()


def test_the_same_seed_gives_the_same_bytes(evenly, table, tmp_path):
    path = table()
    for name in ("one.csv", "two.csv"):
        succeeded(evenly("impute", path, "-o", name, "--epochs", "1", "--share", "0", "--seed", "7"))
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_compare_has_imputers_of_scikit_learn(evenly, table, tmp_path, monkeypatch):
    monkeypatch.setattr(Forest, "__init__", partialmethod(Forest.__init__, n_trees=5, max_rounds=2))
    models = ("--model", "forest", "--model", "knn", "--model", "linear", "--model", "marginal")
    declared = ("--kind", "people=real", "--method", "std-none")
    done = evenly("compare", table(), *models, *declared, "-o", "errors.csv", "--report", "page.html")
    shown = succeeded(done)
    assert all(f"{name} scikit-learn" in shown for name in ("forest", "knn", "linear"))
    names = ["marginal std-none", "forest scikit-learn", "knn scikit-learn", "linear scikit-learn"]
    assert read_table(tmp_path / "errors.csv").columns[3:] == names
    assert "forest scikit-learn" in (tmp_path / "page.html").read_text()


def test_compare_says_which_candidates_a_wide_table_leaves_out():
    with pytest.warns(EvenlyWarning, match="forest: left out, as 101 columns .* --model forest"):
        assert "forest" not in dict(choose_candidates([], [], 101))
    assert "forest" in dict(choose_candidates(["forest"], [], 101))


def test_declared_kinds_and_markers_count(evenly, table):
    frame = survey().with_columns(people=pl.col("people").fill_null(-999))
    path = table("csv", frame)
    shown = succeeded(evenly("inspect", path))
    assert "--missing -999" in shown
    plain = json.loads(succeeded(evenly("inspect", path, "--missing", "-999", "--kind", "people=real", "--json")))
    people = plain["columns"][1]
    assert (people["kind"], people["n_missing"]) == ("real", 12)


def test_declared_likelihoods_bounds_and_markers_of_one_column_count(evenly, table, tmp_path):
    frame = survey().with_columns(people=pl.col("people").fill_null(-1), size=pl.col("size").fill_null(-999))
    path = table("csv", frame)
    declared = ("--missing", "people=-1", "--missing", "-999", "--bounds", "size=4:", "--likelihood", "size=gamma")
    done = evenly("inspect", path, *declared, "-o", "schema.json", "--json")
    size, people = json.loads(succeeded(done))["columns"][:2]
    assert (size["likelihood"], size["n_missing"], people["n_missing"]) == ("gamma", 9, 12)
    written = json.loads((tmp_path / "schema.json").read_text())["columns"]
    assert (written[0]["lower"], written[0]["missing"], written[1]["missing"]) == (4.0, ["-999"], ["-999", "-1"])
    impute = ("impute", path, "-o", "full.csv", "--model", "marginal", "--share", "0")
    succeeded(evenly(*impute, *declared[:-2], "--bounds", "people=0:40"))
    full = read_table(tmp_path / "full.csv")
    assert full["people"].min() >= 0
    failed(evenly(*impute, *declared[:-2], "--bounds", "people=0:3"), "'people'", "the schema declares 0.0 to 3.0")


def test_imputed_cells_are_shifted_and_predictors_chosen(evenly, table, tmp_path):
    path = table()
    impute = ("impute", path, "--model", "marginal", "--share", "0")
    succeeded(evenly(*impute, "-o", "plain.csv", "--samples", "1"))
    shifts = ("--delta", "size=-2.5", "--delta", "colour=red:60")
    succeeded(evenly(*impute, "-o", "full.csv", "--samples", "1", *shifts, "--predictors", "size=people"))
    gone, plain, full = (read_table(name) for name in (path, tmp_path / "plain.csv", tmp_path / "full.csv"))
    missing = gone["size"].is_null()
    np.testing.assert_allclose((plain["size"] - full["size"]).filter(missing), 2.5)
    for name in ("full.csv", "full_1.csv"):
        assert set(read_table(tmp_path / name)["colour"].filter(gone["colour"].is_null())) == {"red"}


def test_imputed_rows_obey_rules(evenly, table, tmp_path):
    path = table()
    (tmp_path / "rules.txt").write_text("# sizes grow with people\nsize >= people / 10\n\n")
    rules = ("--rules", "rules.txt", "--rule", "people <= 9")
    command = ("impute", path, "--model", "marginal", "--save", "model")
    succeeded(evenly(*command, "-o", "full.csv", "--samples", "1", *rules))
    succeeded(evenly("impute", path, "-o", "again.csv", "--load", "model"))
    succeeded(evenly("impute", path, "-o", "less.csv", "--load", "model", "--rule", "people <= 2"))
    gone = read_table(path)["people"].is_null()
    for name, most in (("full.csv", 9), ("full_1.csv", 9), ("again.csv", 9), ("less.csv", 2)):
        full = read_table(tmp_path / name)
        assert full["people"].filter(gone).max() <= most
    assert read_table(tmp_path / "again.csv").equals(read_table(tmp_path / "full.csv"))


def test_json_is_all_that_is_printed(evenly, table):
    done = evenly("impute", table(), "-o", "full.csv", "--json", *TINY)
    plain = json.loads(succeeded(done))
    assert [one["column"] for one in plain["trial"]["columns"]] == ["size", "people", "colour"]


@pytest.mark.usefixtures("short_diagnosis")
def test_a_report_speaks_json_too(evenly, table, tmp_path):
    plain = json.loads(succeeded(evenly("report", table("parquet"), "-o", "page.html", "--json", *TINY)))
    assert plain["out"] == "page.html"
    assert plain["diagnosis"]["verdict"]
    assert_one_page(tmp_path / "page.html")


def test_scaling_speaks_json_too(evenly, table, tmp_path):
    path = table("parquet")
    plain = json.loads(succeeded(evenly("scale", path, "-o", "scaled.csv", "--save", "scaler/", "--json")))
    assert plain["n_features"] == len(read_table(tmp_path / "scaled.csv").columns)
    plain = json.loads(succeeded(evenly("unscale", "scaled.csv", "--load", "scaler/", "-o", "again.csv", "--json")))
    assert plain == {"out": "again.csv", "n_columns": 4}


@pytest.mark.parametrize("command", ["inspect", "diagnose", "scale", "unscale", "impute", "compare", "report", "demo"])
def test_every_command_has_help_with_an_example(evenly, command):
    assert f"Example: evenly {command}" in succeeded(evenly(command, "--help"))


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (("--help",), ("jax", "numpy", "polars", "sklearn", "pydantic", "matplotlib")),
        (("inspect", "survey.csv"), ("jax", "sklearn", "scipy.stats", "pandas", "matplotlib")),
    ],
)
def test_a_quick_command_loads_nothing_heavy(table, arguments, heavy, tmp_path):
    table("csv")
    code = (
        f"import sys; sys.argv = {['evenly', *arguments]}\nfrom evenly.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]"


# --- bad input ----------------------------------------------------------------------------------------------------

COMMANDS = {
    "inspect": ("-o", "out.json"),
    "diagnose": ("--no-train",),
    "scale": ("-o", "out.csv"),
    "impute": ("-o", "out.csv", "--epochs", "1"),
    "compare": ("-o", "out.csv", "--epochs", "1"),
    "report": ("-o", "out.html", "--epochs", "1"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("absent.csv", None, "absent.csv"),
        ("empty.csv", b"", "empty"),
        ("header.csv", b"a,b\n", "row"),
        ("binary.csv", bytes(range(256)) * 20, "binary.csv"),
        ("cut.parquet", b"PAR1" + b"\x00" * 40, "cut.parquet"),
    ],
)
def test_files_that_are_no_tables_are_refused_in_one_sentence(evenly, command, name, content, says, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    failed(evenly(command, name, *COMMANDS[command]), says)
    assert not (tmp_path / "out.csv").exists()


def test_a_wrong_delimiter_is_found_out(evenly, tmp_path):
    (tmp_path / "semicolons.csv").write_text(survey().write_csv(separator=";"))
    assert "4 columns" in succeeded(evenly("inspect", "semicolons.csv"))


def test_another_encoding_is_read_and_said(evenly, tmp_path):
    (tmp_path / "old.csv").write_bytes("stadt,n\nMünchen,1\nKöln,2\n".encode("latin-1"))
    done = evenly("inspect", "old.csv")
    succeeded(done)
    assert done.stderr.startswith("evenly: warning: ")


def test_impute_refuses_a_table_with_nothing_to_learn_from(evenly, table, tmp_path):
    empty = pl.DataFrame({"a": [None, None], "b": [None, None]}, schema={"a": pl.Float64, "b": pl.String})
    failed(evenly("impute", table("parquet", empty), "-o", "out.csv"), "known")
    assert not (tmp_path / "out.csv").exists()


def test_impute_copies_a_complete_table_and_says_so(evenly, table, tmp_path):
    complete = survey().drop_nulls()
    says = succeeded(evenly("impute", table("parquet", complete), "-o", "out.parquet"))
    assert "Nothing to fill" in says
    assert "--missing" in says
    assert pl.read_parquet(tmp_path / "out.parquet").equals(complete)
    told = json.loads(succeeded(evenly("impute", table("parquet", complete), "-o", "out.csv", "--json")))
    assert told == {"out": "out.csv", "samples": [], "trial": None}
    assert pl.read_csv(tmp_path / "out.csv").height == complete.height


def test_a_complete_table_may_be_learned_from_for_new_rows(evenly, table, tmp_path):
    options = ("-o", "out.parquet", "--model", "marginal", "--share", "0", "--save", "saved.imputer")
    succeeded(evenly("impute", table("parquet", survey().drop_nulls()), *options))
    new = evenly("impute", table("csv"), "-o", "new.csv", "--load", "saved.imputer", "--precision", "full")
    succeeded(new)
    assert (tmp_path / "new.csv").exists()


def test_impute_keeps_the_precision_of_a_column_unless_told_otherwise(evenly, tmp_path):
    rng = np.random.default_rng(0)
    cells = [None if i % 7 == 0 else round(value, 1) for i, value in enumerate(rng.normal(37.5, 1.0, 50).tolist())]
    pl.DataFrame({"temperature": cells, "x": rng.normal(size=50)}).write_csv(tmp_path / "fever.csv")
    for options in ((), ("--precision", "full")):
        chosen = ("--model", "marginal", "--share", "0", *options)
        succeeded(evenly("impute", "fever.csv", "-o", "full.csv", *chosen))
        lines = (tmp_path / "full.csv").read_text().splitlines()[1:]
        decimals = {len(line.partition(",")[0].partition(".")[2]) for line in lines}
        assert (decimals == {1}) == (not options)
    failed(evenly("impute", "fever.csv", "-o", "full.csv", "--precision", "half"), "half")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--kind", "nothing=real"), "nothing"),
        (("--kind", "people"), "COLUMN=KIND"),
        (("--kind", "people=huge"), "huge"),
        (("--likelihood", "people=huge"), "huge"),
        (("--likelihood", "gamma"), "COLUMN=NAME"),
        (("--bounds", "people"), "COLUMN=LOW:HIGH"),
        (("--bounds", "people=3"), "COLUMN=LOW:HIGH"),
        (("--bounds", "people=a:b"), "COLUMN=LOW:HIGH"),
        (("--bounds", "people=9:1"), "the lower one first"),
        (("--bounds", "colour=0:1"), "'colour'"),
        (("--missing", "nothing=-1"), "nothing"),
        (("--delta", "size"), "COLUMN=NUMBER"),
        (("--delta", "size=much"), "COLUMN=NUMBER"),
        (("--delta", "zip=1"), "'zip'"),
        (("--delta", "colour=green:1"), "'green'"),
        (("--predictors", "size"), "COLUMN=COLUMNS"),
        (("--rule", "size = = 2"), "at '= 2' (character 8)"),
        (("--rules", "absent.txt"), "--rules absent.txt"),
        (("--effort", "most"), "quick, default"),
        (("--groups", "nobody"), "groups = 'nobody'"),
        (("--load", "model/", "--groups", "none"), "--load"),
        (("--time-limit", "0"), "--time-limit 0"),
        (("--load", "model/", "--effort", "best"), "--load"),
        (("--load", "model/", "--predictors", "size=people"), "--load"),
        (("--schema", "absent.json"), "absent.json"),
        (("--schema", "other.json"), "nobody"),
        (("--model", "forest"), "forest"),
        (("--method", "lip"), "lip"),
        (("--share", "1.5"), "1.5"),
        (("--estimate", "best"), "best"),
        (("-o", "folder/"), "folder"),
        (("-o", "full.xyz"), "full.xyz"),
        (("--load", "absent/"), "absent"),
        (("--load", "model/", "--epochs", "3"), "--load"),
    ],
)
def test_bad_options_fail_before_any_work(evenly, table, options, says, tmp_path):
    (tmp_path / "folder").mkdir()
    column = {"name": "nobody", "kind": "real"}
    (tmp_path / "other.json").write_text(json.dumps({"columns": [column]}))
    out = () if "-o" in options else ("-o", "out.csv")
    failed(evenly("impute", table(), *out, *options), says)


def test_a_full_disk_leaves_the_old_file_and_no_other(evenly, table, tmp_path):
    path = table("csv", survey(2000))
    (tmp_path / "out.csv").write_text("old")
    before = sorted(os.listdir(tmp_path))
    with small_disk(4096):
        done = evenly("scale", path, "-o", "out.csv")
    failed(done, "out.csv")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.more
def test_a_reader_that_stops_early_is_named(table):
    code = f"{sys.executable} -c {MAIN!r} scale {table('csv', survey(20_000))} -o - | head -1"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert "closed pipe" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("size,")


# --- many files, on an engine -------------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path):
    """A folder of three Parquet files."""
    folder = tmp_path / "data"
    folder.mkdir()
    for place in range(3):
        survey(90)[30 * place : 30 * place + 30].write_parquet(folder / f"{place}.parquet")
    return folder


def test_several_files_are_scaled_as_one_table_is(evenly, many, tmp_path):
    """In memory or on an engine, by position or by a key."""
    survey(90).write_parquet(tmp_path / "whole.parquet")
    kinds = ("--kind", "zip=ignore", "--kind", "people=count")
    options = (*kinds, "--missing", "-999", "--noise", "drawn", "--seed", "5", "--save", "s/")
    plain = json.loads(succeeded(evenly("scale", "data/*.parquet", "-o", "out/", *options, "--json")))
    assert (plain["out"], plain["engine"], plain["n_features"]) == ("out/", "polars", 6)
    succeeded(evenly("scale", "whole.parquet", "-o", "memory.parquet", "--load", "s/"))
    assert pl.read_parquet(tmp_path / "out").equals(pl.read_parquet(tmp_path / "memory.parquet"))
    keyed = ("-o", "one.parquet", "--load", "s/", "--engine", "duckdb", "--key", "people")
    shown = succeeded(evenly("scale", "data/", *keyed))
    assert shown == "6 features of 4 columns by lip-gamma on duckdb: one.parquet"
    got = pl.read_parquet(tmp_path / "one.parquet")
    expected = LipschitzScaler.load(tmp_path / "s").transform(survey(90), key="people")
    np.testing.assert_allclose(got[:, :5].to_numpy(), expected[:, :5].to_numpy(), rtol=1e-9)


def test_rows_are_scaled_on_their_own_unless_noise_is_asked_for(evenly, tmp_path):
    survey(90).write_parquet(tmp_path / "all.parquet")
    survey(90)[40:].write_parquet(tmp_path / "some.parquet")
    succeeded(evenly("scale", "all.parquet", "-o", "out.parquet", "--kind", "people=count", "--save", "s/"))
    succeeded(evenly("scale", "some.parquet", "-o", "mean.parquet", "--load", "s/"))
    succeeded(evenly("scale", "some.parquet", "-o", "drawn.parquet", "--load", "s/", "--noise", "drawn"))
    whole, mean, drawn = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("out", "mean", "drawn"))
    assert mean.equals(whole[40:])
    assert (drawn["people"] != mean["people"]).all()


def test_files_keep_every_column_whatever_a_saved_scaler_drops(evenly, tmp_path):
    """And new rows may hold anything: what was done is printed, and nothing fails."""
    kinds = {"zip": "ignore", "people": "count"}
    LipschitzScaler(kinds=kinds, missing=[-999], random_state=0).fit(survey(90)).save(f"{tmp_path}/s/")
    new = survey(20).with_columns(pl.lit(2.5).alias("people"), pl.lit("new").alias("colour"))
    new.write_parquet(tmp_path / "new.parquet")
    done = evenly("scale", "new.parquet", "-o", "scaled.parquet", "--load", "s/")
    assert "column 'people': 20 cells not whole, rounded" in " ".join(done.stderr.split())
    assert "zip" in pl.read_parquet(tmp_path / "scaled.parquet").columns
    shown = succeeded(evenly("unscale", "scaled.parquet", "-o", "again.parquet", "--load", "s/"))
    assert shown == f"{len(new.columns)} columns: again.parquet"
    again = pl.read_parquet(tmp_path / "again.parquet")
    assert again["zip"].equals(new["zip"])
    assert again["people"].to_list() == [3.0] * 20
    assert again["colour"].null_count() == 20


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nothing/*.parquet", "-o", "out/"), "the pattern 'nothing/*.parquet', which matches no file"),
        (("data/", "-o", "out/", "--engine", "excel"), "the engine 'excel', but expected one of dask, duckdb"),
        (("data/", "-o", "out/", "--engine", "duckdb"), "the package 'duckdb'. Install it with: pip install \"evenly"),
        (("data/*", "-o", "out/"), "Column 'zip': got String in 0.parquet and no such column in 3.parquet"),
        (("cut/", "-o", "out/"), "cut/cut.parquet'"),
        (("data/0.parquet", "-o", "data/", "--engine", "polars"), "the folder 'data/', which is not empty"),
        (("*.csv", "-o", "out/"), "expected Parquet, which declares the types of columns"),
        (("data/0.parquet", "-o", "out/", "--engine", "dask", "--noise", "drawn"), "--key"),
        (("data/", "-o", "out/", "--noise", "none"), "noise 'none', but expected one of mean, drawn"),
        (("data/0.parquet", "-o", "out/", "--engine", "polars", "--to", "csv"), "--to"),
    ],
)
def test_files_that_no_engine_can_take_are_refused_in_one_sentence(evenly, many, table, arguments, says, tmp_path):
    table("csv")
    if arguments[0] == "data/*":
        survey().drop("zip").write_parquet(many / "3.parquet")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "cut.parquet").write_bytes((many / "0.parquet").read_bytes()[:-9])
    before = sorted(map(str, tmp_path.rglob("*")))
    failed(evenly("scale", *arguments, without=["duckdb"]), says)
    assert sorted(map(str, tmp_path.rglob("*"))) == before


def test_inspect_names_repeated_rows_and_merges_classes_on_request(evenly, tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"smoker": ["Tea", "gin", "tea ", "gin", None] * 10, "x": rng.normal(size=50)})
    pl.concat([frame, frame.head(3)]).write_csv(tmp_path / "answers.csv")
    says = succeeded(evenly("inspect", "answers.csv"))
    assert "smoker: 'Tea' (11), 'tea ' (11) differ only by case or spaces" in says
    assert "3 rows repeat an earlier one" in says
    succeeded(evenly("inspect", "answers.csv", "--merge-classes", "-o", "schema.json"))
    options = ("--schema", "schema.json", "--model", "marginal", "--share", "0")
    succeeded(evenly("impute", "answers.csv", "-o", "full.csv", *options))
    full = pl.read_csv(tmp_path / "full.csv")["smoker"]
    assert full.null_count() == 0
    assert (full == "tea ").sum() == 11
    assert (full == "Tea").sum() == 21
