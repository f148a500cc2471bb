"""The gallery: every script is short, runs, draws its picture, and stands on the page as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
NEEDS = {"numpyro_model": "numpyro", "torch_network": "torch", "multiple_imputation": "statsmodels"}


def test_there_are_ten():
    assert len(SCRIPTS) == 10


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_is_short_and_stands_on_the_page(script):
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert text[text.index('"""', 3) + 3 :].strip() in page
    assert (ROOT / "docs" / "pictures" / "gallery" / f"{script.stem}.png").exists()


@pytest.mark.more
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_draws_its_picture(script, tmp_path):
    pytest.importorskip(NEEDS.get(script.stem, "matplotlib"))
    command = [sys.executable, "-W", "error::FutureWarning", str(script), str(tmp_path / "picture.png")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert done.stdout
