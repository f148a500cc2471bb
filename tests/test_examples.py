"""The examples of README and of the documentation run in every environment that the section on installing names.

README is run in three environments by `make test`, where its examples do not run otherwise; all else is for
`make test-more`.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import environments
import pytest
from environments import ENVIRONMENTS, ROOT, absent_modules, closure, installed, read_examples, runnable

README = ROOT / "README.md"
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if ">>> " in page.read_text(encoding="utf-8"))
LONG = (
    "balancing.md",
    "diagnosis.md",
    "five_minutes.md",
    "how_it_works.md",
    "imputer.md",
    "multiple_imputation.md",
    "programs.md",
    "scaling_out.md",
)
"""Pages that train models: in the smallest environment that they name, and in the largest."""


def check(pages: list[Path], environment: str) -> None:
    """Run the examples of pages in an environment; of `programs`, those pages that show more there than elsewhere."""
    if environment == "programs":
        if not all(map(find_spec, ("numpyro", "pyro", "pymc"))):
            pytest.skip("no NumPyro, no Pyro or no PyMC")
        read = {page: read_examples(page) for page in pages}
        pages = [page for page, some in read.items() if len(runnable(some, "programs")) > len(runnable(some, "all"))]
        if not pages:
            pytest.skip("the same examples as with all other packages")
    done = environments.run(pages, environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("environment", ["core", pytest.param("demo", marks=pytest.mark.more)])
def test_readme_runs_where_its_install_lines_lead(environment):
    check([README], environment)


@pytest.mark.more
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_page_runs_where_it_says(environment):
    """One process for each environment: importing takes longer than the examples."""
    readme = [] if environment in ("core", "demo") else [README]
    check([*readme, *(page for page in PAGES if page.name not in LONG)], environment)


@pytest.mark.more
@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("page", [page for page in PAGES if page.name in LONG], ids=lambda page: page.name)
def test_every_long_page_runs_where_it_says(page, environment):
    examples = read_examples(page)
    counts = {name: len(runnable(examples, name)) for name in ENVIRONMENTS}
    before = list(ENVIRONMENTS)[: list(ENVIRONMENTS).index(environment)]
    if counts[environment] in [counts[name] for name in before]:
        pytest.skip("the same examples as in a smaller environment")
    check([page], environment)


@pytest.mark.more
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_docstrings_of_public_names_run_where_they_say(environment):
    done = environments.run_docstrings(environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_example_runs_with_all_packages():
    """So that no install line is missing in the section on installing."""
    for page in (README, *PAGES):
        examples = read_examples(page)
        assert len(runnable(examples, "programs")) == len(examples), page.name
        assert page.name == "programs.md" or len(runnable(examples, "all")) == len(examples), page.name


def test_readme_shows_something_in_every_environment():
    found = {name: len(runnable(read_examples(README), name)) for name in ENVIRONMENTS}
    assert found["core"] >= 4
    assert found["core"] < found["tool"] == found["core+pandas"] < found["demo"] == found["all"]


def test_readme_names_the_environments():
    section = README.read_text(encoding="utf-8").partition("## Install")[2].partition("\n## ")[0]
    asked = [one.partition("#")[0] for one in re.findall(r"pip install (.+)", section)]
    lines = {installed(one) for one in asked if ".whl" not in one}
    others = {installed('".[tool,files]"')}  # no page but that of formats has examples that need it
    assert lines == others | {installed(ENVIRONMENTS[name]) for name in ("core", "tool", "demo", "all", "programs")}


def test_an_environment_lacks_what_pip_would_not_install():
    assert {"numpy", "pydantic", "typing-extensions"} <= closure(installed("."))
    assert {"pandas", "polars", "jax", "pytest"} <= absent_modules("core")
    assert {"pandas", "pyarrow"} <= absent_modules("demo")
    assert not {"polars", "jax", "safetensors"} & absent_modules("demo")
    assert "pandas" not in absent_modules("tool+pandas")
    assert "duckdb" not in absent_modules("all")


def test_a_page_that_does_not_say_what_it_needs_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```pycon\n>>> import polars\n>>> x = polars.Series([1])\n\n```\n")
    assert environments.run([page], "core").returncode == 1
    page.write_text('# A page\n\nIt needs `pip install ".[tool]"`.\n\n```pycon\n>>> import polars\n\n```\n')
    assert environments.run([page], "core").returncode == 0
    assert runnable(read_examples(page), "core") == []
