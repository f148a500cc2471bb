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
        help="A file of CSV, TSV, JSON, Parquet, Arrow, Excel, OpenDocument, Stata or SPSS; - is standard input.",
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
        help="Declare a kind: real, positive, count, binary, categorical, ordinal, date or ignore.",
        show_default=False,
    ),
]
Likelihoods = Annotated[
    list[str] | None,
    typer.Option(
        "--likelihood",
        metavar="COLUMN=NAME",
        help="Declare a likelihood, such as income=log-normal or visits=negative-binomial.",
        show_default=False,
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds",
        metavar="COLUMN=LOW:HIGH",
        help="Declare the numbers that a column may hold, such as age=0:120; an end may be left open, as in age=0:.",
        show_default=False,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="[COLUMN=]VALUE",
        help="A value that means a missing cell, such as -999, or age=-1 for one column.",
        show_default=False,
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FORMAT", help="The format of TABLE, if its name does not say it.", show_default=False
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        metavar="NAME",
        help="The sheet of a workbook, by name or number; by default the first table.",
        show_default=False,
    ),
]
Expansion = Annotated[
    float,
    typer.Option(
        "--max-expansion", min=1.0, help="How many times larger than itself a compressed file may be, beyond 32 MiB."
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="FORMAT", help="The format to write, if the name does not say it.", show_default=False
    ),
]
Model = Annotated[str, typer.Option(help="masked (auto), vae, mixture, factorization, hivae or marginal.")]
Method = Annotated[str, typer.Option(help="How columns are scaled; auto goes by the model.")]
Balance = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="How columns' gradients are weighed: none, lip, mgda, cagrad:0.8, ...; auto goes by the model.",
    ),
]
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
Effort = Annotated[str, typer.Option(help="How much work: quick, default or best.")]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit", metavar="SECONDS", help="How long learning may take, its estimate included.", show_default=False
    ),
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Write a report for the browser to this file.", show_default=False)
]
Share = Annotated[float, typer.Option("--share", help="The share of known cells to hide and score.")]


def settings_of(
    schema: Path | None,
    kind: Sequence[str] | None,
    missing: Sequence[str] | None,
    likelihood: Sequence[str] | None = None,
    bounds: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return what is declared about columns, as `LipschitzScaler` and `Imputer` take it."""
    known = None
    if schema is not None:
        from evenly.tables import Schema as Saved

        known = Saved.load(schema)
    return {
        "schema": known,
        "kinds": by_column(kind, "--kind", "COLUMN=KIND, such as --kind age=count") or None,
        "likelihoods": by_column(likelihood, "--likelihood", "COLUMN=NAME, such as --likelihood age=gamma") or None,
        "bounds": {
            column: read_bounds(given, f"--bounds {column}={given}")
            for column, given in by_column(bounds, "--bounds", EXPECTED_BOUNDS).items()
        }
        or None,
        "missing": read_markers(missing or ()) or None,
    }


EXPECTED_BOUNDS = "COLUMN=LOW:HIGH, such as --bounds age=0:120"


def by_column(given: Sequence[str] | None, option: str, expected: str) -> dict[str, str]:
    """Read `COLUMN=VALUE`; the last `=` separates, since a column's name may contain others.

    Examples
    --------
    >>> by_column(["age=count", "a=b=real"], "--kind", "COLUMN=KIND")
    {'age': 'count', 'a=b': 'real'}
    """
    found = {}
    for one in given or ():
        column, equals, value = one.rpartition("=")
        if not (equals and column):
            raise TableError(f"{option} {one!r}", f"expected {expected}")
        found[column] = value
    return found


def read_bounds(text: str, option: str) -> tuple[float | None, float | None]:
    """Read `0:120`, `0:` or `:120`.

    Examples
    --------
    >>> read_bounds("0:", "--bounds age=0:")
    (0.0, None)
    """
    try:
        low, high = (float(end) if end.strip() else None for end in text.split(":"))
    except ValueError:
        raise TableError(option, f"expected {EXPECTED_BOUNDS}") from None
    return low, high


def read_deltas(given: Sequence[str] | None) -> dict[str, Any]:
    """Read shifts of imputed cells: `COLUMN=NUMBER`, or `COLUMN=CLASS:NUMBER` of a class's log-odds.

    Examples
    --------
    >>> read_deltas(["income=-5000", "smokes=yes:0.5"])
    {'income': -5000.0, 'smokes': {'yes': 0.5}}
    """
    found: dict[str, Any] = {}
    for one in given or ():
        expected = "COLUMN=NUMBER or COLUMN=CLASS:NUMBER, such as --delta income=-5000"
        ((column, text),) = by_column([one], "--delta", expected).items()
        name, colon, amount = text.rpartition(":")
        try:
            shift = float(amount)
        except ValueError:
            raise TableError(f"--delta {one}", f"expected {expected}") from None
        if colon:
            earlier = found.get(column)
            found[column] = {**(earlier if isinstance(earlier, dict) else {}), name: shift}
        else:
            found[column] = shift
    return found


def read_markers(given: Sequence[str]) -> list[Any]:
    """Read markers of missing cells: `VALUE` for all columns, `COLUMN=VALUE` for one, `=VALUE` if it contains `=`.

    Examples
    --------
    >>> read_markers(["-999", "age=-1", "age=-2", "=n=a"])
    ['-999', 'n=a', {'age': ['-1', '-2']}]
    """
    common: list[Any] = [one.removeprefix("=") for one in given if one.startswith("=") or "=" not in one]
    own: dict[str, list[str]] = {}
    for one in given:
        column, _, value = one.rpartition("=")
        if "=" in one and not one.startswith("="):
            own.setdefault(column, []).append(value)
    return [*common, own] if own else common


def verbosity(*, prints: bool, details: bool) -> int:
    """Return how much progress is shown: nothing, stages, or the details of training, too."""
    return 1 + details if prints else 0


def auto(value: int | None) -> Any:
    """Return an option's number, or "auto" if it was not given."""
    return "auto" if value is None else value


def read(table: str, form: str | None, sheet: str | None = None, max_expansion: float = 200.0) -> Any:
    """Read the table that a command was given."""
    from evenly.io import read_table

    return read_table(table, form=form, sheet=sheet, max_expansion=max_expansion)


def read_opened(table: str, form: str | None, sheet: str | None = None, max_expansion: float = 200.0) -> Any:
    """Read the table that a command was given, and open it for all steps: each finds what those before it kept."""
    from evenly.tables import open_table

    return open_table(read(table, form, sheet, max_expansion), keep=True)


def is_large(table: str, form: str | None, out: str, to: str | None) -> bool:
    """Whether a table is text that is better not read as a whole, and its results can be written part by part."""
    from evenly.io import is_large_text, writes_parts

    return is_large_text(table, form) and writes_parts(out, to)


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
