"""What the commands share: their options, reading and checking them, printing, and errors of writing."""

import json
import os
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from evenly._support import EvenlyWarning, TableError, to_plain

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
        "--from", metavar="FORMAT", help="The format of TABLE, if its name does not tell.", show_default=False
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="FORMAT", help="The format to write, if the name does not tell.", show_default=False),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**31 - 2, help="The same seed gives the same bytes.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]
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
    """Return what is declared of columns, as `LipschitzScaler` and `Imputer` take it."""
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


def read(table: str, form: str | None) -> Any:
    """Read the table that a command was given."""
    from evenly.io import read_table

    return read_table(table, form=form)


def title_of(table: str) -> str:
    """Return what to call a table in its report."""
    return "Standard input" if table == "-" else Path(table).name


def command_line() -> str:
    """Return the command as it was given, to repeat it."""
    return shlex.join(["evenly", *sys.argv[1:]])


def check_out(*targets: Any, form: str | None = None) -> None:
    """Refuse, before any work, what cannot be written in the end."""
    from evenly.io import check_writable

    for target in targets:
        if target is not None:
            check_writable(str(target), form=form)


def check_place(*places: Path | str | None) -> None:
    """Refuse, before any work, a place where no file can be written."""
    for place in places:
        if place is not None:
            path = Path(place)
            there = next(one for one in (path, *path.absolute().parents) if one.exists())
            if (there != path and not there.is_dir()) or not os.access(there, os.W_OK):
                raise TableError(f"the path {str(place)!r}", f"{str(there)!r} cannot be written to")


def check_models(names: Iterable[str], methods: Iterable[str]) -> None:
    """Refuse unknown models and methods before anything heavy is imported."""
    from evenly.models import MODELS
    from evenly.scaling import METHODS

    choice(list(names), ("auto", *MODELS), "model")
    choice(list(methods), ("auto", *METHODS), "method")


def check_share(share: float) -> None:
    """Refuse a share of hidden cells that leaves nothing to learn from or nothing to score."""
    if not 0.0 <= share <= 0.9:
        raise TableError(f"--share {share:g}", "expected a number from 0 to 0.9")


@contextmanager
def warnings_told() -> Iterator[None]:
    """Print each of our warnings once, as one line; others are no user's business."""
    said: set[str] = set()

    def show(message: Any, category: type[Warning], *rest: Any) -> None:
        if issubclass(category, EvenlyWarning) and str(message) not in said:
            said.add(str(message))
            print(f"evenly: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvenlyWarning)
        warnings.showwarning = show  # type: ignore[assignment]  # it takes more
        yield


def print_json(content: Any) -> None:
    """Print what a machine reads: one line of JSON; what is no finite number is null."""
    print(json.dumps(to_plain(content), ensure_ascii=False, allow_nan=False))


def show_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", right: Sequence[str] = ()
) -> None:
    """Print a table; nothing in its cells is markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in headers:
        wraps = name in ("column", "note", "worst column")
        table.add_column(
            name, justify="right" if name in right else "left", overflow="fold", no_wrap=not wraps, header_style="bold"
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def console() -> Any:
    """Return where people read what a command found."""
    from rich.console import Console

    return Console(highlight=False)


def say(text: str) -> None:
    """Print a line as it is, however long."""
    console().print(text, markup=False, soft_wrap=True)


@contextmanager
def writing(out: Path | str, what: str) -> Iterator[None]:
    """Say in one line where nothing can be written."""
    try:
        yield
    except OSError as error:
        expected = f"expected a {what} that can be written to ({error.strerror or error})"
        raise TableError(f"--out {str(out)!r}", expected) from None


def numbers(text: str, name: str) -> list[int]:
    """Read `1-3,5` as 1, 2, 3, 5."""
    ends = [part.split("-") for part in text.split(",")]
    if any(len(part) > 2 or not all(end.strip().isdecimal() for end in part) for part in ends):
        raise TableError(f"{name} = {text!r}", "expected numbers such as 1-3 or 1,4")
    return [n for part in ends for n in range(int(part[0]), int(part[-1]) + 1)]


def choice(given: Any, known: Any, name: str) -> list[Any]:
    """Return what was chosen, or all there is."""
    for one in given or ():
        if one not in known:
            raise TableError(f"{name} {one!r}", f"expected one of {', '.join(map(str, known))}")
    return list(given or known)


def duration(seconds: float) -> str:
    """Say how long something takes."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if seconds >= 90 else f"{seconds:.0f} s"
