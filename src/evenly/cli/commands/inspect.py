"""`evenly inspect`: what a table holds, and the schema to edit."""

from pathlib import Path
from typing import Annotated, Any

import typer

from evenly._support import announce, showing
from evenly.cli.app import app
from evenly.cli.checks import check_place
from evenly.cli.options import (
    AsJson,
    Bounds,
    Expansion,
    Form,
    Kind,
    Likelihoods,
    Missing,
    Quiet,
    Schema,
    Sheet,
    Source,
    read,
    settings_of,
    title_of,
    verbosity,
)
from evenly.cli.printing import console, print_json, printed_warnings, say, say_files, show_table, writing

WIDE = 120
"""Letters of a line that has room for notes."""


@app.command()
def inspect(
    table: Source,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the schema to this file, to edit.", show_default=False)
    ] = None,
    schema: Schema = None,
    kind: Kind = None,
    likelihood: Likelihoods = None,
    bounds: Bounds = None,
    missing: Missing = None,
    merge_classes: Annotated[
        bool, typer.Option("--merge-classes", help="Read classes that differ only by case or spaces as one.")
    ] = False,
    form: Form = None,
    sheet: Sheet = None,
    max_expansion: Expansion = 200.0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show kinds, likelihoods, missing cells and what looks wrong, column by column.

    Example: evenly inspect survey.csv -o schema.json
    """
    from evenly.tables import inspect_table

    check_place(out)
    settings = settings_of(schema, kind, missing, likelihood, bounds)
    with printed_warnings(), showing(verbosity(prints=not (quiet or as_json), details=False)):
        announce(f"reading {title_of(table)}")
        opened = read(table, form, sheet, max_expansion)
        announce("inspecting columns")
        found = inspect_table(opened, merge_classes=merge_classes, **settings)
    if out is not None:
        with writing(out, "file"):
            found.schema.save(out)
    if as_json:
        print_json(found.to_plain())
    elif not quiet:
        show_inspection(found)
        say_files(("Schema, to edit", out))


def show_inspection(found: Any) -> None:
    """Print a row a column, those of a doubtful kind first; then what may be otherwise, and what looks wrong.

    On a narrow terminal, likelihoods are left out, and notes are lines of their own.
    """
    wide = console().width >= WIDE
    rows = [
        {
            "column": one.name,
            "kind": one.kind,
            "confidence": one.confidence,
            "likelihood": one.likelihood or "",
            "missing": f"{one.missing_share:.1%}",
            "values": show_values(one),
            "note": one.note,
        }
        for one in found.by_doubt
    ]
    shown = [name for name in rows[0] if wide or name not in ("likelihood", "note")]
    show_table(
        shown,
        [[row[name] for name in shown] for row in rows],
        title=f"{found.n_rows:,} rows, {len(found.columns)} columns",
        right=("missing",),
    )
    for one in found.by_doubt:
        note = "" if wide else one.note.partition(";")[0] if "read as missing" in one.note else one.note
        if any(note.partition(";")[0] in line for line in one.warnings):
            note = ""
        for line in filter(None, (note, one.doubt, *one.warnings)):
            say(f"{one.name}: {line}")
    for warning in found.warnings:
        say(warning)


def show_values(column: Any) -> str:
    """Return a column's range, or how many distinct values it has."""
    if column.range is not None and column.kind not in ("binary", "categorical", "ordinal"):
        if isinstance(column.range[0], str):
            return " to ".join(column.range)
        return f"{column.range[0]:.6g} to {column.range[1]:.6g}"
    return "" if column.n_distinct is None else f"{column.n_distinct:,} distinct"
