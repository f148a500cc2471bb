"""Importing loads nothing heavy, and every public name is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evenly


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_evenly_loads_neither_jax_nor_matplotlib():
    code = (
        "import sys, evenly, evenly.integrations; evenly.LipschitzScaler; evenly.Imputer('vae').set_params(epochs=3);"
        "heavy = ('jax', 'matplotlib', 'torch', 'polars', 'typer', 'numpyro', 'pyro', 'pymc');"
        "print([m for m in heavy if m in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_the_scaler_works_with_the_core_alone():
    """Without pandas, Polars or any extra: an array in, an array and a record array out."""
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars", "pyarrow", "jax", "torch", "matplotlib", "typer", "rich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import evenly
heart = evenly.load_heart()
scaler = evenly.LipschitzScaler(random_state=0).fit(heart)
print(type(heart).__name__, scaler.transform(heart).shape, len(scaler.summary_), scaler.summary_["outcome"][0])
"""
    assert run(code).strip() == "ndarray (303, 23) 23 reached"


def test_every_public_name_exists_and_is_documented():
    for name in evenly.__all__:
        value = getattr(evenly, name)
        assert name == "__version__" or value.__doc__
    with pytest.raises(AttributeError, match="nothing_like_this"):
        evenly.nothing_like_this  # noqa: B018  (the access itself is the test)
