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
    assert "times as curved as" in done.stdout
    assert (tmp_path / "out" / "smoothness.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "schema.json").exists()


def test_bad_options_end_in_one_line():
    done = evenly("demo", "--method", "lip")
    assert done.returncode == 2
    assert done.stderr.startswith("evenly: got the method 'lip', but expected one of std-none")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("package", ["typer", "rich", "matplotlib"])
def test_a_missing_extra_names_the_line_that_installs_it(package, tmp_path):
    done = evenly("demo", "--out", str(tmp_path), block=package)
    assert done.returncode == 1
    assert (
        done.stderr.strip()
        == f'evenly: this needs the package {package!r}. Install it with: pip install "evenly[tool]"'
    )


def test_help_and_version():
    assert "demo" in evenly("--help").stdout
    assert evenly("--version").stdout.startswith("evenly 0.")
