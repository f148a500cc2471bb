"""What pytest leaves out where an extra is absent: modules that are made of it, and pages that use it."""

from importlib.util import find_spec

PROGRAMS = {"numpyro": "numpyro", "pyro": "pyro", "pymc": "pymc"}
"""Modules of `evenly.integrations`, and the packages that they need."""
ABSENT = [module for module, package in PROGRAMS.items() if find_spec(package) is None]

collect_ignore_glob = [f"src/evenly/integrations/{module}*.py" for module in ABSENT]
collect_ignore: list[str] = []
if {"numpyro", "pyro"} & {*ABSENT}:
    collect_ignore.append("docs/programs.md")
