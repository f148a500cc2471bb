"""`evenly scale`: scaled features of a table or of files larger than memory."""

from typing import Annotated, Any

import typer

from evenly._support import TableError
from evenly.cli.app import app
from evenly.cli.checks import check_load, check_models, check_out, check_place
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
    Seed,
    Sheet,
    To,
    choice,
    is_large,
    read,
    settings_of,
)
from evenly.cli.printing import print_json, printed_warnings, say, say_files, writing

Tables = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A file of any format, - for standard input; or several Parquet files: a folder, or 'data/*.parquet'.",
        show_default=False,
    ),
]
Out = Annotated[
    str,
    typer.Option(
        "--out",
        "-o",
        help="The file to write, of any format, - for standard output; from an engine a new folder, or .parquet.",
        show_default=False,
    ),
]
Save = Annotated[
    str | None, typer.Option(help="Save the fitted scaler here, for `evenly unscale`.", show_default=False)
]
Load = Annotated[str | None, typer.Option(help="Use a saved scaler instead of fitting one.", show_default=False)]
Engine = Annotated[
    str | None,
    typer.Option(
        help="polars, duckdb, dask or spark: Parquet files that need not fit into memory; several files: polars.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Whole numbers that identify rows: noise is drawn by them.",
        show_default=False,
    ),
]
Noise = Annotated[
    str | None,
    typer.Option(
        metavar="NOISE",
        help="Of the methods that end in -gamma: mean, the default, or drawn, for training as in the paper.",
        show_default=False,
    ),
]


@app.command()
def scale(
    table: Tables,
    out: Out,
    method: Annotated[str, typer.Option(help="One of the seven methods.")] = "lip-gamma",
    save: Save = None,
    load: Load = None,
    engine: Engine = None,
    noise: Noise = None,
    key: Key = None,
    schema: Schema = None,
    kind: Kind = None,
    likelihood: Likelihoods = None,
    bounds: Bounds = None,
    missing: Missing = None,
    form: Form = None,
    sheet: Sheet = None,
    max_expansion: Expansion = 200.0,
    to: To = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Scale every column so that the smoothness of its log-likelihood is the same.

    Example: evenly scale survey.csv -o scaled.parquet --save scaler/

    Larger than memory: evenly scale 'data/*.parquet' -o scaled/ --engine duckdb
    """
    check_models([], [method])
    choice([noise] if noise else [], ("mean", "drawn"), "noise")
    engine = choose_engine(engine, table, {form, to})
    if engine is None:
        check_out(out, form=to)
    check_place(save)
    settings = settings_of(schema, kind, missing, likelihood, bounds)
    check_load(load, "scaler", save is not None or any(settings.values()))
    with printed_warnings():
        from evenly.scaling import LipschitzScaler

        scaler = LipschitzScaler(method, random_state=seed, **settings) if load is None else LipschitzScaler.load(load)
        scaler.set_params(passthrough="keep")  # what is no variable belongs to the file nevertheless
        if noise is not None:
            scaler.set_params(noise=noise)
        if engine is None and is_large(table, form, out, to):
            scale_text(table, scaler, out, key=key, how={"form": form, "max_expansion": max_expansion}, to=to)
        elif engine is None:
            scale_table(read(table, form, sheet, max_expansion), scaler, out, fit=load is None, key=key, to=to)
        else:
            from evenly.engines import scale_files

            scale_files(table, out, scaler, engine=engine, key=key)
        if save is not None:
            with writing(save, "folder"):
                scaler.save(save)
    if out != "-" and not (quiet and not as_json):
        show_scaler(scaler, {"out": out, "save": save, "engine": engine}, as_json=as_json)


def choose_engine(engine: str | None, table: str, formats: set[str | None]) -> str | None:
    """Return the engine: that which was named, or Polars for several files; None for a table in memory."""
    from evenly.io import is_many

    if engine is None and is_many(table):
        engine = "polars"
    if engine is not None and formats - {None, "parquet"}:
        raise TableError("--from or --to with an engine", "an engine reads and writes Parquet", "leave it out")
    return engine


def scale_table(opened: Any, scaler: Any, out: str, *, fit: bool, key: str | None, to: str | None) -> None:
    """Scale a table in memory, and write its features."""
    from evenly.io import write_table

    if fit:
        scaler.fit(opened)
    write_table(scaler.transform(opened, key=key), out, form=to)


def scale_text(table: str, scaler: Any, out: str, *, key: str | None, how: dict[str, Any], to: str | None) -> None:
    """Scale text that is not read as a whole, and write its features part by part."""
    from evenly.engines import scale_parts
    from evenly.io import as_parquet

    with as_parquet(table, **how) as files:
        scale_parts(files, out, scaler, key=key, form=to)


def show_scaler(scaler: Any, places: dict[str, str | None], *, as_json: bool) -> None:
    """Print what was scaled, and where it is."""
    n, out, engine = len(scaler.get_feature_names_out()), places["out"], places["engine"]
    if as_json:
        about = {"out": out, "n_features": n, "method": scaler.method, "target": scaler.target_}
        print_json(about | {"save": places["save"], "engine": engine})
        return
    by = f" on {engine}" if engine else ""
    say(f"{n} features of {len(scaler.schema_.columns)} columns by {scaler.method}{by}: {out}")
    say_files(("Scaler", places["save"]))
