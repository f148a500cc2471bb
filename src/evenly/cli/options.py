"""Options that several commands share, and how they are read."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from evenly._support import TableError

Source = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A file of CSV, TSV, Parquet, Arrow, Feather or JSON lines, compressed or not; - is standard input.",
        show_default=False,
    ),
]
Schema = Annotated[
    Path | None, typer.Option("--schema", help="A schema that `evenly inspect -o` wrote, edited.", show_default=False)
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="Declare a kind: real, positive, count, binary, categorical, ordinal or ignore.",
        show_default=False,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", metavar="VALUE", help="A value that means a missing cell, such as -999.", show_default=False
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FORMAT", help="The format of TABLE, if its name does not say it.", show_default=False
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="FORMAT", help="The format to write, if the name does not say it.", show_default=False
    ),
]
Model = Annotated[str, typer.Option(help="masked (auto), vae, mixture, factorization or marginal.")]
Method = Annotated[str, typer.Option(help="How columns are scaled; auto goes by the model.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**31 - 2, help="The same seed gives the same bytes.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show the ELBO and the column that is learned worst, too.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs", min=0, help="How often every row is seen; by default as the table needs.", show_default=False
    ),
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Write a report for the browser to this file.", show_default=False)
]
Share = Annotated[float, typer.Option("--share", help="The share of known cells to hide and score.")]


def settings_of(schema: Path | None, kind: Sequence[str] | None, missing: Sequence[str] | None) -> dict[str, Any]:
    """Return what is declared about columns, as `LipschitzScaler` and `Imputer` take it."""
    kinds = {}
    for one in kind or ():
        column, equals, name = one.rpartition("=")
        if not equals:
            raise TableError(f"--kind {one!r}", "expected COLUMN=KIND, such as --kind age=count")
        kinds[column] = name
    known = None
    if schema is not None:
        from evenly.tables import Schema as Saved

        known = Saved.load(schema)
    return {"schema": known, "kinds": kinds or None, "missing": list(missing) if missing else None}


def verbosity(*, prints: bool, details: bool) -> int:
    """Return how much progress is shown: nothing, stages, or the details of training, too."""
    return 1 + details if prints else 0


def auto(value: int | None) -> Any:
    """Return an option's number, or "auto" if it was not given."""
    return "auto" if value is None else value


def read(table: str, form: str | None) -> Any:
    """Read the table that a command was given."""
    from evenly.io import read_table

    return read_table(table, form=form)


def read_opened(table: str, form: str | None) -> Any:
    """Read the table that a command was given, and open it for all steps: each finds what those before it kept."""
    from evenly.tables import open_table

    return open_table(read(table, form), keep=True)


def title_of(table: str) -> str:
    """Return what to call a table in its report."""
    return "Standard input" if table == "-" else Path(table).name


def command_line() -> str:
    """Return the command as it was given, to repeat it."""
    return shlex.join(["evenly", *sys.argv[1:]])


def numbers(text: str, name: str) -> list[int]:
    """Read `1-3,5` as 1, 2, 3, 5.

    Examples
    --------
    >>> numbers("1-3,5", "--masks")
    [1, 2, 3, 5]
    """
    ends = [part.split("-") for part in text.split(",")]
    if any(len(part) > 2 or not all(end.strip().isdecimal() for end in part) for part in ends):
        raise TableError(f"{name} = {text!r}", "expected numbers such as 1-3 or 1,4")
    return [n for part in ends for n in range(int(part[0]), int(part[-1]) + 1)]


def choice(given: Any, known: Any, name: str) -> list[Any]:
    """Return what was chosen, or everything if nothing was."""
    for one in given or ():
        if one not in known:
            raise TableError(f"{name} {one!r}", f"expected one of {', '.join(map(str, known))}")
    return list(given or known)
