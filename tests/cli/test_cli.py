"""The command `evenly`: bad options, and what it says without its extra."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.resources import files

import pytest
from commands import refused, run


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (("demo", "--seed", "-1"), "Invalid value for '--seed'"),
        (("demo", "--nothing"), "No such option: --nothing; see evenly demo --help"),
        (("nothing",), "No such command 'nothing'"),
        (("impute", "survey.csv"), "Missing option '--out'"),
    ],
)
def test_bad_options_end_in_one_line(arguments, start):
    refused(run(*arguments), start)


def test_the_package_runs_as_the_command():
    done = subprocess.run([sys.executable, "-m", "evenly", "nothing"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "evenly: No such command 'nothing'; see evenly --help\n"


@pytest.mark.parametrize("out", ["a file", "a file/out"])
def test_a_folder_that_cannot_be_made_ends_in_one_line_before_any_work(out, tmp_path):
    (tmp_path / "a file").write_text("kept")
    done = run("demo", "--out", str(tmp_path / out))
    refused(done, f"got the path {str(tmp_path / out / 'report.html')!r}, but")
    assert (tmp_path / "a file").read_text() == "kept"


@pytest.mark.parametrize("package", ["typer", "rich", "plotly"])
def test_a_missing_extra_names_the_line_that_installs_it(package, tmp_path):
    done = run("demo", "--out", str(tmp_path / "out"), without=[package])
    assert done.returncode == 2
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()
    assert (
        done.stderr.strip()
        == f'evenly: this needs the package {package!r}. Install it with: pip install "evenly[tool]"'
    )


def test_help_and_version():
    assert "demo" in run("--help").stdout
    assert run("--version").stdout.startswith("evenly 0.")


def test_examples_can_be_tried_as_they_are_printed(tmp_path):
    done = run("examples", "--copy", "my table.csv", folder=tmp_path)
    assert done.returncode == 0
    commands = [shlex.split(line) for line in done.stdout.splitlines() if line.startswith("evenly ")]
    assert {command[1] for command in commands} >= {"inspect", "impute", "compare", "diagnose", "scale", "unscale"}
    quick = [command[1:] for command in commands if command[1] in ("inspect", "scale", "unscale")]
    for command in quick:
        assert run(*command, folder=tmp_path).returncode == 0
    assert (tmp_path / "again.csv").exists()
    for command in commands:  # of the longer ones, that they have the options
        told = run(command[1], "--help").stdout
        assert all(option in told for option in command if option.startswith("--"))


def test_without_colours_nothing_is_coloured(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = {"FORCE_COLOR": "1"}
    assert "\x1b[" in run("--help", environment=coloured).stdout
    plain = run("--no-color", "inspect", files("evenly.data") / "heart.csv", environment=coloured).stdout
    assert "\x1b[3" not in plain
