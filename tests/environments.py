"""The environments that an installation gives, imitated: packages that it would not install cannot be imported.

Pages say what their examples need by an install line in a sentence with `needs`; several lines are alternatives:

    Needs `pip install ".[tool]"` or `pip install . pandas`.

It holds until the next heading, or the next paragraph that starts in bold; below the title, for the whole page.
Examples that use names of others that cannot run are left out with them, but for imports of what is there.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import evenly

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENVIRONMENTS = {
    "core": ". ",
    "core+pandas": ". pandas",
    "tool": '".[tool]"',
    "tool+pandas": '".[tool]" pandas',
    "demo": '".[models,tool]"',
    "demo+pandas": '".[models,tool]" pandas',
    "all": '".[all]"',
    "programs": '".[all,numpyro,pyro,pymc]"',
}
"""What is installed in each: the lines of README's section on that, as `make demo` does it, and with pandas beside."""
CHILD = """
import json, sys
given = json.load(sys.stdin)
class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in given["absent"]:
            return self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Without, sys.meta_path)
import doctest, importlib, warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", r"\\s*ArviZ is undergoing a major refactor", FutureWarning)
warnings.filterwarnings("ignore", "PyTensor could not link to a BLAS installation", UserWarning)
flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
runner, names = doctest.DocTestRunner(optionflags=flags), {"__name__": "__main__"}
for page, text in given["pages"]:
    runner.run(doctest.DocTestParser().get_doctest(text, dict(names), page, page, 0), clear_globs=False)
for module, name, wanted in given["documented"]:
    module = importlib.import_module(module)
    for test in doctest.DocTestFinder().find(getattr(module, name), name, module):
        if test.name in wanted:
            runner.run(test)
sys.exit(bool(runner.failures))
"""


class Installed(NamedTuple):
    """What an install line names: extras of this project, and other packages."""

    extras: frozenset[str]
    packages: frozenset[str]

    def __le__(self, other: Any) -> bool:
        """Whether all of it is there in what the other line installs."""
        return self.extras <= other.extras and self.packages <= closure(other)


@cache
def installed(line: str) -> Installed:
    """Read an install line: `".[models,tool]" pandas`."""
    extras: set[str] = set()
    packages = set()
    for word in line.replace('"', "").split():
        if word.startswith((".", "evenly")):
            extras |= set(_own_extras(word))
        else:
            packages.add(canonicalize_name(word))
    return Installed(frozenset(extras), frozenset(packages))


def _own_extras(word: str) -> Iterator[str]:
    """List the extras of `.[all]`, and those that they consist of."""
    for extra in re.findall(r"[a-z]+", word.partition("[")[2]):
        yield extra
        for one in PROJECT["optional-dependencies"][extra]:
            if one.startswith("evenly["):
                yield from _own_extras(one)


@cache
def closure(given: Installed) -> frozenset[str]:
    """Return the distributions that pip would install, of those that are installed here."""
    wanted = [*PROJECT["dependencies"], *given.packages]
    wanted += [one for extra in given.extras for one in PROJECT["optional-dependencies"][extra]]
    found: set[tuple[str, str]] = set()
    left = [Requirement(one) for one in wanted if not one.startswith("evenly[")]
    while left:
        one = left.pop()
        name = canonicalize_name(one.name)
        for extra in ("", *one.extras):
            if (name, extra) not in found:
                found.add((name, extra))
                left += _needed(name, extra)
    return frozenset(name for name, _ in found)


def _needed(name: str, extra: str) -> list[Requirement]:
    try:
        listed = [Requirement(one) for one in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:  # for another platform, or an extra that is not installed here
        return []
    return [one for one in listed if one.marker is None or one.marker.evaluate({"extra": extra})]


@cache
def absent_modules(environment: str) -> frozenset[str]:
    """Return the modules that are installed here and would not be there."""
    there = closure(installed(ENVIRONMENTS[environment])) | {"evenly"}
    return frozenset(module for module, owners in _owners().items() if not there & owners)


@cache
def _owners() -> dict[str, set[str]]:
    """Return the distributions of each module that is installed here; takes a second or two."""
    return {
        module: {canonicalize_name(one) for one in owners}
        for module, owners in metadata.packages_distributions().items()
    }


# --- pages --------------------------------------------------------------------------------------------------------


class Example(NamedTuple):
    """One example of a page, and what it needs: any of these."""

    page: str
    example: doctest.Example
    needs: tuple[tuple[Installed, ...], ...]

    def runs_in(self, environment: str) -> bool:
        """Whether all that it needs is installed there."""
        there = installed(ENVIRONMENTS[environment])
        return all(any(one <= there for one in either) for either in self.needs)


def read_examples(page: Path) -> list[Example]:
    """List the examples of a page in their order."""
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    whole: tuple[Any, ...] = ()
    section: tuple[Any, ...] = ()
    titled, needs = True, []
    for i, line in enumerate(lines):
        titled = titled and not line.startswith("##")
        if line.startswith(("#", "**")):
            section = ()
        if line.startswith("```") or i == 0:
            needs.append((i, (*whole, *section)))
        if re.search(r"\bneeds?\b", line, re.IGNORECASE):
            either = tuple(map(installed, re.findall(r"`pip install ([^`]+)`", " ".join(lines[i : i + 2]))))
            if either and titled and not line.startswith("**"):
                whole = (*whole, either)
            elif either:
                section = (*section, either)
    return [
        Example(page.name, one, [had for at, had in needs if at <= one.lineno][-1])
        for one in doctest.DocTestParser().get_examples(text)
    ]


def runnable(examples: Iterable[Example], environment: str) -> list[Example]:
    """List the examples that run in an environment: all that they need is there, other examples included."""
    lost: set[str] = set()
    absent, found = absent_modules(environment), []
    for one in examples:
        used, made = _names(one.example.source)
        if _imports_only(one.example.source, absent) or (one.runs_in(environment) and not used & lost):
            found.append(one)
            lost -= made
        else:
            lost |= made
    return found


def _imports_only(source: str, absent: frozenset[str]) -> bool:
    """Whether an example imports modules that are there, and does nothing else."""
    statements = ast.parse(source).body
    if not all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in statements):
        return False
    modules = [one.module or "" for one in statements if isinstance(one, ast.ImportFrom)]
    modules += [alias.name for one in statements if isinstance(one, ast.Import) for alias in one.names]
    return not any(module.partition(".")[0] in absent or module.startswith("evenly.") for module in modules)


def _names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that an example uses, and those that it makes."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    used = {one.id for one in names if isinstance(one.ctx, ast.Load)}
    made = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    made |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    made |= {(node.asname or node.name).partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
    return used, made


def run(pages: Iterable[Path], environment: str) -> subprocess.CompletedProcess[str]:
    """Run the examples of pages that an environment has all packages for, in a process that imports no others."""
    texts = []
    for page in pages:
        some = runnable(read_examples(page), environment)
        texts.append((page.name, "\n".join(_text(one.example) for one in some)))
    return _run_apart(environment, pages=texts)


def _run_apart(environment: str, **what: Any) -> subprocess.CompletedProcess[str]:
    given = {"absent": sorted(absent_modules(environment)), "pages": [], "documented": [], **what}
    command = [sys.executable, "-c", CHILD]
    return subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)


def run_docstrings(environment: str) -> subprocess.CompletedProcess[str]:
    """Run the examples of all public names that an environment has all packages for."""
    documented = []
    for name in evenly.__all__:
        public = getattr(evenly, name)
        module = getattr(public, "__module__", None) or ""
        module = "evenly._support.errors" if module == "evenly" else module
        if module.startswith("evenly."):
            tests = doctest.DocTestFinder().find(public, name, importlib.import_module(module))
            documented.append((module, name, [one.name for one in tests if _documented_for(one, environment)]))
    return _run_apart(environment, documented=documented)


def _documented_for(test: doctest.DocTest, environment: str) -> bool:
    """Whether all that a docstring says its examples need is installed there."""
    text = test.docstring or ""
    either = [installed(one) for one in re.findall(r"`pip install ([^`]+)`", text) if "Needs `pip" in text]
    there = installed(ENVIRONMENTS[environment])
    return not either or any(one <= there for one in either)


def _text(example: doctest.Example) -> str:
    """Return an example as a page has it."""
    first, *more = example.source.splitlines()
    shown = "\n".join([f">>> {first}", *(f"... {line}" for line in more)])
    if example.exc_msg is not None:
        return f"{shown}\nTraceback (most recent call last):\n{example.exc_msg}\n"
    return f"{shown}\n{example.want}"


if __name__ == "__main__":
    done = run([Path(one) for one in sys.argv[2:]], sys.argv[1])
    print(done.stdout[-6000:], done.stderr[-3000:], done.returncode)
