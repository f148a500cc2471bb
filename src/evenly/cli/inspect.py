"""`evenly inspect`: what a table holds, and the schema to edit."""

from pathlib import Path
from typing import Annotated, Any

import typer

from evenly.cli.console import (
    AsJson,
    Form,
    Kind,
    Missing,
    Quiet,
    Schema,
    Source,
    check_place,
    print_json,
    read,
    say,
    settings_of,
    show_table,
    warnings_told,
    writing,
)


def inspect(
    table: Source,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the schema to this file, to edit.", show_default=False)
    ] = None,
    schema: Schema = None,
    kind: Kind = None,
    missing: Missing = None,
    form: Form = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tell kinds, likelihoods, missing cells and what looks wrong, column by column.

    Example: evenly inspect survey.csv -o schema.json
    """
    from evenly.tables import inspect_table

    check_place(out)
    settings = settings_of(schema, kind, missing)
    with warnings_told():
        found = inspect_table(read(table, form), **settings)
    if out is not None:
        with writing(out, "file"):
            found.schema.save(out)
    if as_json:
        print_json(found.to_plain())
    elif not quiet:
        show_table(
            ("column", "kind", "likelihood", "missing", "values", "note"),
            [
                (one.name, one.kind, one.likelihood or "", f"{one.missing_share:.1%}", values(one), one.note)
                for one in found.columns
            ],
            title=f"{found.n_rows:,} rows, {len(found.columns)} columns",
            right=("missing",),
        )
        for one in found.columns:
            for warning in one.warnings:
                say(f"{one.name}: {warning}")
        if out is not None:
            say(f"Schema, to edit: {out}")


def values(column: Any) -> str:
    """Say what a column's cells are, in a few words."""
    if column.range is not None and column.kind not in ("binary", "categorical", "ordinal"):
        return f"{column.range[0]:.6g} to {column.range[1]:.6g}"
    return "" if column.n_distinct is None else f"{column.n_distinct:,} distinct"
