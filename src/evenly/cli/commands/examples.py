"""`evenly examples`: a table to try, and commands to try on it."""

from pathlib import Path
from typing import Annotated

import typer

from evenly._support import write_bytes
from evenly.cli.app import app
from evenly.cli.checks import check_place
from evenly.cli.printing import say, writing

COMMANDS = (
    ("what is in the table", "evenly inspect {table} -o schema.json"),
    ("fill missing cells, with a report", "evenly impute {table} -o full.csv --report report.html"),
    ("the same in a hurry", "evenly impute {table} -o full.csv --effort quick"),
    ("which imputer suits it", "evenly compare {table}"),
    ("which columns a model would overlook", "evenly diagnose {table}"),
    ("scale it, and back", "evenly scale {table} -o scaled.csv --save scaler/"),
    ("", "evenly unscale scaled.csv --load scaler/ -o again.csv"),
)
"""What one would like to do, and the command."""


@app.command()
def examples(
    copy: Annotated[Path | None, typer.Option(help="Write the table to this file, to try commands on it.")] = None,
) -> None:
    """Show the embedded table and commands to try on it.

    Example: evenly examples --copy heart.csv
    """
    from importlib.resources import files

    table = files("evenly.data") / "heart.csv"
    if copy is not None:
        check_place(copy)
        with writing(copy, "file"):
            write_bytes(copy, table.read_bytes())
    place = str(table if copy is None else copy)
    quoted = f'"{place}"' if " " in place else place
    say("303 heart patients, 14 columns of mixed kinds, six cells missing:")
    say(f"  {place}")
    say("")
    for what, command in COMMANDS:
        if what:
            say(f"# {what}")
        say(command.format(table=quoted))
