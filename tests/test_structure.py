"""Files and functions stay small enough to be read in one sitting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenly

SOURCE = Path(evenly.__file__).parent
MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 400, 60, 7
FAMILIES = ("likelihoods/continuous.py", "likelihoods/discrete.py", "likelihoods/base.py")
"""Likelihood families stand side by side, each a page: they may be many."""
BY_NAME = {
    "evaluation/diagnosis.py": {"diagnose"},
    "likelihoods/custom.py": {"define_likelihood"},
    "report/page.py": {"make_report"},
}
"""Public functions whose many options are all optional and given by name: an object would only rename them."""
FILES = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))


def functions(name: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse((SOURCE / name).read_text())):
        if isinstance(node, ast.FunctionDef):
            yield node


@pytest.mark.parametrize("name", FILES)
def test_no_file_is_too_long(name):
    assert name in FAMILIES or len((SOURCE / name).read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", FILES)
def test_no_function_is_too_long(name):
    long = {one.name: n for one in functions(name) if (n := one.end_lineno - one.lineno + 1) > MOST_FUNCTION_LINES}
    assert not long


@pytest.mark.parametrize("name", FILES)
def test_no_function_takes_too_many_parameters(name):
    """Except constructors, whose settings scikit-learn takes by name, and commands, whose options Typer does."""
    many = {}
    for one in functions(name):
        given = one.args
        n = len([a for a in (*given.posonlyargs, *given.args, *given.kwonlyargs) if a.arg not in ("self", "cls")])
        excused = one.name == "__init__" or one.name in BY_NAME.get(name, ()) or name.startswith("cli/")
        if n > MOST_PARAMETERS and not excused:
            many[one.name] = n
    assert not many
