"""The wheel and the source distribution: what is in them, and that the wheel works without the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with both, built from what git tracks and what it does not ignore."""
    hatchling = pytest.importorskip("hatchling.build")
    out = tmp_path_factory.mktemp("dist")
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        hatchling.build_wheel(str(out))
        hatchling.build_sdist(str(out))
    finally:
        os.chdir(before)
    return out


def names_of(built: Path, pattern: str) -> list[str]:
    (one,) = built.glob(pattern)
    if one.suffix == ".whl":
        return zipfile.ZipFile(one).namelist()
    with tarfile.open(one) as archive:
        return archive.getnames()


def test_the_wheel_has_the_package_and_nothing_else(built):
    names = names_of(built, "*.whl")
    assert all(re.match(r"evenly/|evenly-[\w.]+\.dist-info/", name) for name in names)
    there = {str(one.relative_to(ROOT / "src")) for one in (ROOT / "src").rglob("*") if one.is_file()}
    wanted = {name for name in there if "__pycache__" not in name}
    assert wanted <= set(names)
    assert "evenly/py.typed" in names
    assert "evenly/data/heart.csv" in names


def test_no_data_set_of_others_is_distributed(built):
    for pattern in ("*.whl", "*.tar.gz"):
        found = [
            name
            for name in names_of(built, pattern)
            if re.search(r"(adult|credit|letter|spam|wine|breast)\w*\.(csv|npz)", name)
        ]
        assert found == []


@pytest.mark.more
def test_the_demo_of_the_wheel_imputes_and_shows_who_is_overlooked_without_the_checkout(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "import evenly, sys; from evenly.cli import main; "
        "assert evenly.__file__.startswith(sys.argv.pop()); sys.argv[1:] = ['demo', '--out', 'out']; main()"
    )
    kept = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "site")]
    done = subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    for words in ("303 heart patients", "share of the gradient", "std-none, ", "lip-gamma, ", "Held-out error"):
        assert words in shown
    made = tmp_path / "out"
    assert {one.name for one in made.iterdir()} == {"full.csv", "schema.json", "report.html"}
    full = (made / "full.csv").read_text().splitlines()
    assert len(full) == 304
    assert not any(",," in line for line in full)
    assert (made / "report.html").read_text().startswith("<!DOCTYPE html>")
