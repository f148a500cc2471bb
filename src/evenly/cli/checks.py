"""What is refused before any long work starts."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evenly._support import TableError, require_later
from evenly.cli.options import choice


def check_out(*targets: Any, form: str | None = None) -> None:
    """Refuse tables that could not be written in the end."""
    from evenly.io import check_writable

    for target in targets:
        if target is not None:
            check_writable(str(target), form=form)


def check_place(*places: Path | str | None) -> None:
    """Refuse a place where no file can be written."""
    for place in places:
        if place is not None:
            path = Path(place)
            there = next(one for one in (path, *path.absolute().parents) if one.exists())
            if (there != path and not there.is_dir()) or not os.access(there, os.W_OK):
                raise TableError(f"the path {str(place)!r}", f"{str(there)!r} cannot be written to")


def check_models(
    names: Iterable[str], methods: Iterable[str], others: Iterable[str] = (), rules: Iterable[str] = ()
) -> None:
    """Refuse unknown models, methods and balancing rules.

    JAX is imported only for a rule that needs it. A rule is refused if none of the models has a place for it.
    """
    from evenly.models import SPECS, rule_for
    from evenly.scaling import METHODS

    names = list(names)
    choice(names, ("auto", *SPECS, *others), "model")
    choice(list(methods), ("auto", *METHODS), "method")
    specs = [SPECS["masked" if one == "auto" else one] for one in names if one not in others]
    for rule in rules:
        for spec in [one for one in specs if one.shared_output] or specs[:1]:
            rule_for(spec, rule)


def check_packages(models: Iterable[str]) -> None:
    """Refuse models whose packages are absent."""
    from evenly.models import SPECS

    if any(one == "auto" or SPECS[one].needs_jax for one in models):
        require_later("jax", "models")


def check_time_limit(seconds: float | None) -> None:
    """Refuse a limit that leaves no time."""
    if seconds is not None and not 0.0 < seconds < float("inf"):
        raise TableError(f"--time-limit {seconds:g}", "expected a number of seconds above 0", "--time-limit 60")


def check_rules(rules: list[str]) -> None:
    """Refuse rules that cannot be read."""
    from evenly.imputation import Rules

    Rules.read(rules)


def check_share(share: float, *, needed: bool = False) -> None:
    """Refuse a share of hidden cells that leaves too little to learn from, or none to compare on if some are needed."""
    if needed and not share:
        raise TableError("--share 0", "expected cells to compare on")
    if not 0.0 <= share <= 0.9:
        raise TableError(f"--share {share:g}", "expected a number from 0 to 0.9")


def check_load(load: str | None, what: str, fits: bool) -> None:
    """Refuse --load together with options of fitting."""
    if load is not None and fits:
        raise TableError("--load and an option of fitting", "expected one of them", f"a saved {what} is fitted already")


def check_deltas(opened: Any, settings: dict[str, Any], deltas: dict[str, Any]) -> None:
    """Refuse shifts of columns or classes that the table does not have."""
    if deltas:
        from evenly.imputation import read_deltas
        from evenly.tables import inspect_table

        columns = inspect_table(opened, **settings).schema.columns
        read_deltas(deltas, {one.name: one for one in columns if one.kind != "ignore"})


def check_cells(opened: Any, settings: dict[str, Any]) -> bool:
    """Refuse a table with nothing to learn from; returns whether some cell of a modelled column is missing."""
    from evenly.tables import inspect_table

    columns = [one for one in inspect_table(opened, **settings).columns if one.kind != "ignore"]
    if all(one.missing_share == 1.0 for one in columns):
        raise TableError(
            "a table without a known cell in a column of numbers or classes", "expected some to learn from"
        )
    return any(one.n_missing for one in columns)
