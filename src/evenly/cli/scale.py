"""`evenly scale` and `evenly unscale`."""

from typing import Annotated

import typer

from evenly._support import TableError
from evenly.cli.console import (
    AsJson,
    Form,
    Kind,
    Missing,
    Quiet,
    Schema,
    Seed,
    Source,
    To,
    check_models,
    check_out,
    check_place,
    print_json,
    read,
    say,
    settings_of,
    warnings_told,
    writing,
)

Out = Annotated[
    str, typer.Option("--out", "-o", help="The file to write, of any format; - is standard output.", show_default=False)
]


def scale(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A file of any format, - for standard input; or several Parquet files: a folder, or 'data/*.parquet'.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help="The file to write, of any format, - for standard output; from an engine a new folder, or .parquet.",
            show_default=False,
        ),
    ],
    method: Annotated[str, typer.Option(help="One of the seven methods.")] = "lip-gamma",
    save: Annotated[
        str | None, typer.Option(help="Save the fitted scaler here, for `evenly unscale`.", show_default=False)
    ] = None,
    load: Annotated[
        str | None, typer.Option(help="Use a saved scaler instead of fitting one.", show_default=False)
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="polars, duckdb, dask or spark: Parquet files that need not fit into memory; several files: polars.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Whole numbers that tell rows apart: noise goes by them, not by a row's position.",
            show_default=False,
        ),
    ] = None,
    schema: Schema = None,
    kind: Kind = None,
    missing: Missing = None,
    form: Form = None,
    to: To = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Scale every column so that the smoothness of its log-likelihood is the same.

    Example: evenly scale survey.csv -o scaled.parquet --save scaler/

    Larger than memory: evenly scale 'data/*.parquet' -o scaled/ --engine duckdb
    """
    from evenly.io import is_many, write_table
    from evenly.scaling import LipschitzScaler

    check_models([], [method])
    if engine is None and is_many(table):
        engine = "polars"
    if engine is None:
        check_out(out, form=to)
    elif {form, to} - {None, "parquet"}:
        raise TableError("--from or --to with an engine", "an engine reads and writes Parquet", "leave it out")
    check_place(save)
    settings = settings_of(schema, kind, missing)
    if load is not None and (save is not None or any(settings.values())):
        raise TableError("--load and an option of fitting", "expected one of them", "a saved scaler is fitted already")
    with warnings_told():
        scaler = LipschitzScaler(method, random_state=seed, **settings) if load is None else LipschitzScaler.load(load)
        if engine is not None:
            from evenly.engines import scale_files

            scale_files(table, out, scaler, engine=engine, key=key)
        else:
            opened = read(table, form)
            scaler = scaler.fit(opened) if load is None else scaler
            write_table(scaler.transform(opened, key=key), out, form=to)
        if save is not None:
            with writing(save, "folder"):
                scaler.save(save)
    if out == "-":
        return
    n = len(scaler.get_feature_names_out())
    if as_json:
        print_json(
            {
                "out": out,
                "n_features": n,
                "method": scaler.method,
                "target": scaler.target_,
                "save": save,
                "engine": engine,
            }
        )
    elif not quiet:
        by = f" on {engine}" if engine else ""
        say(f"{n} features of {len(scaler.schema_.columns)} columns by {scaler.method}{by}: {out}")
        if save is not None:
            say(f"Scaler: {save}")


def unscale(
    table: Source,
    out: Out,
    load: Annotated[str, typer.Option(help="The scaler that `evenly scale --save` wrote.", show_default=False)],
    form: Form = None,
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
    with warnings_told():
        scaler = LipschitzScaler.load(load)
        write_table(scaler.inverse_transform(read(table, form)), out, form=to)
    if as_json and out != "-":
        print_json({"out": out, "n_columns": len(scaler.schema_.columns)})
    elif not quiet and out != "-":
        say(f"{len(scaler.schema_.columns)} columns: {out}")
