"""The examples, and the parts of the documentation that need PyTorch or Equinox, run where these are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {"torch_vae.py": "torch", "equinox_vae.py": "equinox"}
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "heads.md").read_text(encoding="utf-8"), re.DOTALL)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT / "examples", capture_output=True, text=True, check=False
    )


@pytest.mark.more
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_the_errors_of_every_column(name):
    pytest.importorskip(EXAMPLES[name])
    done = run(name, "--epochs", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + 1 + 14 + 1  # names, the name of the index, columns, the mean
    errors = [float(one) for line in lines[2:-1] for one in line.split()[-3:]]
    assert all(0.0 <= one < 1.0 for one in errors)


@pytest.mark.more
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_names_the_line_that_installs_what_it_lacks(name):
    hide = f"import sys, runpy; sys.path.insert(0, '.'); sys.modules[{EXAMPLES[name]!r}] = None; "
    done = run("-c", hide + f"runpy.run_path({name!r}, run_name='__main__')")
    assert done.returncode == 1
    assert "Install it with: pip install" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name):
    assert len((ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()) < 80


@pytest.mark.more
@pytest.mark.parametrize("block", BLOCKS, ids=["torch", "equinox"])
def test_the_page_of_heads_runs(block):
    pytest.importorskip(re.match(r"import (\w+)", block)[1])
    names: dict[str, object] = {}
    exec(block, names)
    assert names["thal"].shape == (303, 3)
