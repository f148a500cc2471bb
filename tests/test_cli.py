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


def test_the_demo_prints_the_summary_and_draws(tmp_path: Path):
    done = evenly("demo", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "303 heart patients" in done.stdout
    assert "reached" in done.stdout
    assert (tmp_path / "out" / "smoothness.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "schema.json").exists()


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("lip-none", "Before scaling, the log-likelihood of 'cholesterol' is 1,951 times as curved as"),
        ("lip-bern", "Under the Bernoulli trick, before scaling, the log-likelihood of 'cholesterol' is 1,951 times"),
        ("lip-gamma", "Under the Gamma trick, before scaling, the log-likelihood of 'cholesterol' is 7,826 times"),
    ],
)
def test_the_demo_says_of_which_likelihoods_it_compares_the_curvature(method, says, tmp_path):
    """A count is a Poisson as it is and a gamma under the trick: the ratio differs, so the sentence must."""
    printed = " ".join(evenly("demo", "--out", str(tmp_path), "--method", method).stdout.split())
    assert says in printed
    assert (f"{method} does not scale the 13 discrete columns." in printed) == (method != "lip-gamma")


def test_the_demo_needs_no_dataframe_library(tmp_path):
    done = evenly("demo", "--out", str(tmp_path), block="pandas polars")
    assert done.returncode == 0, done.stderr


def assert_one_line(done: subprocess.CompletedProcess[str], start: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"evenly: {start}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "value", "start"),
    [
        ("--method", "lip", "got the method 'lip', but expected one of std-none"),
        ("--seed", "-1", "got the seed -1, but expected a whole number from 0"),
    ],
)
def test_bad_options_end_in_one_line(option, value, start, tmp_path):
    assert_one_line(evenly("demo", "--out", str(tmp_path / "out"), option, value), start)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["a file", "a file/out"])
def test_a_folder_that_cannot_be_made_ends_in_one_line(out, tmp_path):
    (tmp_path / "a file").write_text("kept")
    done = evenly("demo", "--out", str(tmp_path / out))
    assert_one_line(done, f"got --out {str(tmp_path / out)!r}, but expected a folder that can be written to")
    assert (tmp_path / "a file").read_text() == "kept"


@pytest.mark.parametrize("taken", ["smoothness.png", "schema.json"])
def test_a_file_that_cannot_be_written_ends_in_one_line(taken, tmp_path):
    (tmp_path / taken).mkdir()
    assert_one_line(evenly("demo", "--out", str(tmp_path)), f"got --out {str(tmp_path)!r}, but expected a folder")


def test_a_folder_may_have_any_name(tmp_path):
    """Rich would read brackets as styles."""
    done = evenly("demo", "--out", str(tmp_path / "[/x]"))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "[/x]" / "schema.json") in done.stdout


@pytest.mark.parametrize("package", ["typer", "rich", "matplotlib"])
def test_a_missing_extra_names_the_line_that_installs_it(package, tmp_path):
    done = evenly("demo", "--out", str(tmp_path / "out"), block=package)
    assert done.returncode == 1
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()
    assert (
        done.stderr.strip()
        == f'evenly: this needs the package {package!r}. Install it with: pip install "evenly[tool]"'
    )


def test_help_and_version():
    assert "demo" in evenly("--help").stdout
    assert evenly("--version").stdout.startswith("evenly 0.")
