"""The command `evenly`, run as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def evenly(*arguments: str, block: str = "") -> subprocess.CompletedProcess[str]:
    hide = f"import sys; [sys.modules.__setitem__(name, None) for name in {block.split()!r}]; "
    code = hide + "from evenly.cli import main; sys.argv[0] = 'evenly'; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
    )


def test_the_demo_tells_who_is_overlooked_and_how_well_cells_are_imputed(tmp_path: Path):
    done = evenly("demo", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "303 heart patients" in shown
    assert "share of the gradient" in shown
    assert "std-none, " in shown
    assert "lip-gamma, " in shown
    assert "Honest error" in shown
    full = (tmp_path / "out" / "full.csv").read_text().splitlines()
    assert len(full) == 304
    assert not any(",," in line for line in full)
    assert (tmp_path / "out" / "schema.json").exists()
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!DOCTYPE html>")


def assert_one_line(done: subprocess.CompletedProcess[str], start: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"evenly: {start}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (("demo", "--seed", "-1"), "Invalid value for '--seed'"),
        (("demo", "--nothing"), "No such option: --nothing; see evenly --help"),
        (("nothing",), "No such command 'nothing'"),
        (("impute", "survey.csv"), "Missing option '--out'"),
    ],
)
def test_bad_options_end_in_one_line(arguments, start):
    assert_one_line(evenly(*arguments), start)


@pytest.mark.parametrize("out", ["a file", "a file/out"])
def test_a_folder_that_cannot_be_made_ends_in_one_line_before_any_work(out, tmp_path):
    (tmp_path / "a file").write_text("kept")
    done = evenly("demo", "--out", str(tmp_path / out))
    assert_one_line(done, f"got the path {str(tmp_path / out / 'report.html')!r}, but")
    assert (tmp_path / "a file").read_text() == "kept"


@pytest.mark.parametrize("package", ["typer", "rich", "plotly"])
def test_a_missing_extra_names_the_line_that_installs_it(package, tmp_path):
    done = evenly("demo", "--out", str(tmp_path / "out"), block=package)
    assert done.returncode == 2
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()
    assert (
        done.stderr.strip()
        == f'evenly: this needs the package {package!r}. Install it with: pip install "evenly[tool]"'
    )


def test_help_and_version():
    assert "demo" in evenly("--help").stdout
    assert evenly("--version").stdout.startswith("evenly 0.")
