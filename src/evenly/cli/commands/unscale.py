"""`evenly unscale`: the way back from scaled features."""

from typing import Annotated

import typer

from evenly.cli.app import app
from evenly.cli.checks import check_out
from evenly.cli.options import AsJson, Expansion, Form, Quiet, Sheet, Source, To, read
from evenly.cli.printing import print_json, printed_warnings, say


@app.command()
def unscale(
    table: Source,
    out: Annotated[
        str,
        typer.Option("--out", "-o", help="The file to write, of any format; - is standard output.", show_default=False),
    ],
    load: Annotated[str, typer.Option(help="The scaler that `evenly scale --save` wrote.", show_default=False)],
    form: Form = None,
    sheet: Sheet = None,
    max_expansion: Expansion = 200.0,
    to: To = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Undo `evenly scale`: bring scaled features back to the table's columns and units.

    Example: evenly unscale scaled.parquet --load scaler/ -o again.csv
    """
    from evenly.io import write_table
    from evenly.scaling import LipschitzScaler

    check_out(out, form=to)
    with printed_warnings():
        scaler = LipschitzScaler.load(load)
        restored = scaler.inverse_transform(read(table, form, sheet, max_expansion))
        write_table(restored, out, form=to)
    n_columns = restored.shape[1]
    if as_json and out != "-":
        print_json({"out": out, "n_columns": n_columns})
    elif not quiet and out != "-":
        say(f"{n_columns} columns: {out}")
