"""What pytest leaves out where an extra is absent: modules that are made of it, and pages that use it."""

from importlib.util import find_spec

ABSENT = [name for name in ("numpyro", "pyro", "pymc") if find_spec(name) is None]
"""Packages that modules of `evenly.integrations` are named after."""

collect_ignore_glob = [f"src/evenly/integrations/{name}*.py" for name in ABSENT]
collect_ignore: list[str] = []
if ABSENT:
    collect_ignore.append("docs/programs.md")
if find_spec("mkdocs") is None:
    collect_ignore.append("docs/site_build.py")
