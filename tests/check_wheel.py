"""Install the built wheel in clean environments, one for each Python and extra, and use it as a new user would.

Run: make dist && python tests/check_wheel.py [--python 3.12] [--extra tool ...]. It takes minutes and, for the heavier
extras, downloads hundreds of megabytes; `tests/test_wheel.py` checks what needs no download.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12")
EXTRAS = (
    "",
    "models",
    "tool",
    "models,tool",
    "tool,files",
    "engines",
    "spark",
    "ray",
    "torch",
    "numpyro",
    "pyro",
    "pymc",
    "all",
)
"""What is installed beside Evenly; two of them bring PyTorch, of which a version is chosen first that needs no CUDA."""
BEFORE = {name: ["torch==2.13.0"] for name in ("torch", "pyro")}
SCALE = """
import sys, numpy as np, evenly
scaled = evenly.LipschitzScaler().fit_transform(np.random.default_rng(0).normal(size=(50, 2)))
assert np.isfinite(scaled).all()
assert not {"jax", "matplotlib", "torch"} & sys.modules.keys()
for name in evenly.__all__:
    try:
        getattr(evenly, name)
    except evenly.MissingExtraError:
        pass
print(evenly.__version__)
"""


def find_python(version: str) -> str | None:
    """Return the interpreter of a version, if there is one on the path or in a folder of pyenv."""
    places = [shutil.which(f"python{version}"), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    return next((str(one) for one in places if one is not None and runs(str(one))), None)


def runs(python: str) -> bool:
    """Whether an interpreter starts: pyenv leaves names on the path that do not, for versions that are not chosen."""
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


def check(python: str, wheel: Path, extra: str) -> str:
    """Install the wheel with an extra and use it; returns what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        bin = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        pip = [str(bin / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if extra in BEFORE:
            subprocess.run([*pip, *BEFORE[extra]], check=True)
        subprocess.run([*pip, f"{wheel}[{extra}]" if extra else str(wheel)], check=True)
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        run = {"check": True, "capture_output": True, "text": True, "cwd": folder, "env": kept}
        printed = subprocess.run([bin / "python", "-W", "error", "-c", SCALE], **run).stdout.strip()  # type: ignore[call-overload]
        if "tool" in extra or extra == "all":
            assert subprocess.run([bin / "evenly", "--version"], **run).stdout.split() == ["evenly", printed]  # type: ignore[call-overload]
        if extra in ("models,tool", "all"):
            subprocess.run([bin / "evenly", "demo", "--out", "demo", "--quiet"], **run)  # type: ignore[call-overload]
            made = {one.name: one.read_bytes() for one in (Path(folder) / "demo").iterdir()}
            assert {"full.csv", "report.html", "schema.json"} <= made.keys()
            assert not any(one.endswith(b".") and one.startswith(b"\x80") for one in made.values())  # no pickles
        return str(printed)


def main() -> None:
    """Check every environment that was asked for; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", default=PYTHONS)
    parser.add_argument("--extra", nargs="*", default=EXTRAS)
    asked = parser.parse_args()
    wheels = sorted((ROOT / "dist").glob("evenly-*.whl"))
    if not wheels:
        sys.exit("no wheel in dist/: run `make dist` first")
    for version in asked.python:
        python = find_python(version)
        if python is None:
            print(f"Python {version}: not on this machine, left out")
            continue
        for extra in asked.extra:
            print(
                f"Python {version}, {f'[{extra}]' if extra else 'no extra'}: {check(python, wheels[-1], extra)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
