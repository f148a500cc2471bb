"""The contracts of import-linter hold, and each is broken by an import that it forbids, in a copy of the source."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import evenly

SOURCE = Path(evenly.__file__).parent
SETTINGS = Path(__file__).parents[1] / "pyproject.toml"
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
LAYERS = "Folders import only from the folders before them on the way of the data"
JAX = "JAX is behind the models' face"
FOLDERS = sorted(one.name for one in SOURCE.iterdir() if one.is_dir() and (one / "__init__.py").exists())
BEHIND = {name: sorted(one.stem for one in (SOURCE / name).glob("[a-z]*.py")) for name in FOLDERS}
"""The modules behind each folder's face."""

pytest.importorskip("importlinter")
Broken = Callable[[str, str], set[str]]


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    """Add code to a file of a copy of the source; return the names of the contracts that are broken then."""

    def lint(file: str, code: str) -> set[str]:
        copy = tmp_path / "evenly"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        (copy / file).parent.mkdir(exist_ok=True)
        with open(copy / file, "a", encoding="utf-8") as end:
            end.write(f"\n{code}\n")
        # The copy comes first: `-c` puts the working directory at the start of the path.
        command = [sys.executable, "-c", LINT, "--no-cache", "--config", str(SETTINGS)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        found = re.findall(r"^(.+) (KEPT|BROKEN)$", done.stdout, re.MULTILINE)
        assert found, done.stdout + done.stderr
        wrong = {name for name, outcome in found if outcome == "BROKEN"}
        assert done.returncode == int(bool(wrong))
        return wrong

    return lint


def test_the_source_keeps_every_contract(broken):
    assert broken("scaling/solver.py", "") == set()


@pytest.mark.parametrize(
    ("file", "code", "contract"),
    [
        ("scaling/solver.py", "from evenly.imputation import Imputer", LAYERS),
        ("_support/errors.py", "def late():\n    import evenly.tables", LAYERS),
        ("tables/schema.py", "if TYPE_CHECKING:\n    from evenly.report import make_report", LAYERS),
        ("extra/__init__.py", "from evenly.tables import Column", LAYERS),
        (
            "imputation/fitting.py",
            "from evenly.scaling.solver import solve_scale",
            "Others see the face of scaling alone",
        ),
        ("imputation/gaussian.py", "import jax.numpy as jnp", JAX),
        ("models/layout.py", "def late():\n    import optax", JAX),
        ("models/spec.py", "from evenly.models import vae", JAX),
    ],
    ids=[
        "upward",
        "in a function",
        "for types",
        "a folder without a place",
        "behind a face",
        "JAX",
        "Optax",
        "a model",
    ],
)
def test_an_import_that_is_forbidden_breaks_its_contract(broken, file, code, contract):
    assert contract in broken(file, code)


def test_an_import_behind_any_face_breaks_the_contract_of_that_folder(broken):
    """All but the last folder, which no other may import, and those without a module behind their face."""
    inside = {name: modules[0] for name, modules in BEHIND.items() if modules and name != "cli"}
    code = "\n".join(f"import evenly.{name}.{module}" for name, module in inside.items())
    assert {f"Others see the face of {name} alone" for name in inside} <= broken("cli/app.py", code)
    assert {"likelihoods", "tables", "scaling", "models", "imputation", "evaluation"} <= set(inside)
