"""The rooms import only upwards, packages only where they belong, and the core loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evenly

SOURCE = Path(evenly.__file__).parent

ORDER = [
    "_version",
    "_support",
    "arrays",
    "likelihoods",
    "custom",
    "files",
    "delimited",
    "formats",
    "tables",
    "sources",
    "parquet",
    "lazy",
    "facts",
    "kinds",
    "schema",
    "cells",
    "statistics",
    "engines",
    "merging",
    "tricks",
    "inspection",
    "bins",
    "twins",
    "smoothness",
    "scaling",
    "expressions",
    "recover",
    "scaler",
    "scaled_files",
    "budget",
    "models",
    "metrics",
    "choosing",
    "features",
    "joint",
    "streaming",
    "settling",
    "held_out",
    "imputer",
    "trial",
    "diagnosis",
    "balance",
    "pooling",
    "plots",
    "report",
    "paper",
    "cli",
]
"""A room imports only rooms before it. `__init__` names what is public. Some rooms are folders."""

CORE = {"numpy", "scipy", "sklearn", "narwhals", "pydantic"}
ALLOWED = {
    # Special functions and array libraries; JAX and PyTorch arrive through `require`.
    "arrays": {"numpy", "scipy", "narwhals"},
    "likelihoods": {"numpy"},
    "custom": {"numpy", "scipy"},
    "files": {"numpy", "pandas", "polars"},
    "delimited": {"numpy"},
    "formats": {"polars"},
    "tables": {"numpy", "scipy", "narwhals", "sklearn", "pandas", "polars", "pyarrow"},
    "parquet": {"numpy"},
    "lazy": {"numpy", "narwhals"},
    "facts": {"numpy"},
    "kinds": {"numpy"},
    "schema": {"numpy", "pydantic"},
    "cells": {"numpy"},
    "choosing": {"numpy", "sklearn"},
    "statistics": {"numpy", "narwhals"},
    "engines": {"numpy", "narwhals"},
    "merging": {"numpy"},
    "tricks": {"numpy", "scipy"},
    "inspection": {"numpy"},
    "smoothness": {"numpy", "scipy"},
    "scaling": {"numpy", "scipy"},
    "expressions": {"numpy", "narwhals"},
    "recover": {"numpy"},
    "scaler": {"numpy", "narwhals", "sklearn"},
    "metrics": {"numpy"},
    "features": {"numpy"},
    "joint": {"numpy", "scipy"},
    "bins": {"numpy"},
    "twins": {"numpy"},
    "streaming": {"numpy"},
    "settling": {"numpy"},
    "held_out": {"numpy"},
    "imputer": {"numpy", "sklearn"},
    "trial": {"numpy", "sklearn"},
    "balance": {"numpy", "sklearn"},
    "pooling": {"numpy", "scipy"},
    "plots": {"numpy"},
}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


ROOMS = sorted(path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__")


def test_every_room_has_a_place():
    assert {*ROOMS, "models", "report", "paper", "cli"} == set(ORDER)


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_rooms_before_them(room):
    own = {name.split(".")[1] for name in imported(SOURCE / f"{room}.py") if name.startswith("evenly.")}
    assert own <= set(ORDER[: ORDER.index(room)])


@pytest.mark.parametrize("room", ROOMS)
def test_packages_are_imported_only_where_they_belong(room):
    outside = {name.partition(".")[0] for name in imported(SOURCE / f"{room}.py")} - set(sys.stdlib_module_names)
    assert outside - {"evenly"} <= ALLOWED.get(room, set())


MODEL_ROOMS = sorted((SOURCE / "models").glob("*.py"))


@pytest.mark.parametrize("path", MODEL_ROOMS, ids=lambda path: path.stem)
def test_models_see_likelihoods_and_the_loop_only(path):
    names = imported(path)
    own = {name for name in names if name.partition(".")[0] == "evenly"}
    free = ["layout", "base", "marginal", "__init__"]
    order = [*free, "cache", "wiring", "bbvi", "mixture", "factorization", "vae", "masked", "fitting"]
    before = {f"evenly.models.{other}" for other in order[: order.index(path.stem)]}
    # A model's `fit` is that of the loop, which knows models: it is asked for when it is called.
    later = {"evenly.models.fitting"} if path.stem == "bbvi" else set()
    assert own <= before | later | {"evenly._support", "evenly.arrays", "evenly.likelihoods"}
    outside = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"evenly"}
    allowed = {"numpy"} if path.stem in free else {"jax", "numpy", "optax"}
    assert outside <= allowed | ({"platformdirs"} if path.stem == "cache" else set())


PAPER_ROOMS = sorted((SOURCE / "paper").glob("*.py"))


@pytest.mark.parametrize("path", PAPER_ROOMS, ids=lambda path: path.stem)
def test_the_papers_rooms_import_only_rooms_before_them(path):
    order = [
        "__init__",
        "originals",
        "datasets",
        "records",
        "grid",
        "sweep",
        "agreement",
        "tables",
        "measures",
        "figures",
    ]
    own = {name for name in imported(path) if name.startswith("evenly.")}
    within = {name.split(".")[2] for name in own if name.startswith("evenly.paper.")}
    assert within <= set(order[: order.index(path.stem)])
    assert {name.split(".")[1] for name in own} <= set(ORDER[: ORDER.index("paper") + 1])


COMMANDS = sorted((SOURCE / "cli").glob("*.py"))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_commands_import_typer_and_rich_only(path):
    outside = {name.partition(".")[0] for name in imported(path)} - set(sys.stdlib_module_names)
    assert outside <= {"evenly", "typer", "rich"}


@pytest.mark.parametrize("path", sorted((SOURCE / "report").glob("*.py")), ids=lambda path: path.stem)
def test_the_reports_rooms_import_only_rooms_before_them(path):
    order = ["markup", "distributions", "facts", "charts", "sections", "__init__"]
    names = imported(path)
    own = {name for name in names if name.startswith("evenly.")}
    within = {name.split(".")[2] for name in own if name.startswith("evenly.report.")}
    assert within <= set(order[: order.index(path.stem)])
    assert {name.split(".")[1] for name in own} <= set(ORDER[: ORDER.index("report") + 1])
    assert {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"evenly"} <= {"numpy"}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_evenly_loads_neither_jax_nor_matplotlib():
    code = (
        "import sys, evenly, evenly.scaler; evenly.LipschitzScaler; evenly.Imputer('vae').set_params(epochs=3);"
        "print([m for m in ('jax', 'matplotlib', 'torch', 'polars', 'typer') if m in sys.modules])"
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
