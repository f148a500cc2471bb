"""`evenly report`: the table, how well it is imputed, and how it would be learned, on one page."""

from pathlib import Path
from typing import Annotated

import typer

from evenly._support import announce, require_later, showing
from evenly.cli.app import app
from evenly.cli.checks import check_cells, check_models, check_place, check_share
from evenly.cli.options import (
    AsJson,
    Bounds,
    Epochs,
    Expansion,
    Form,
    Kind,
    Likelihoods,
    Method,
    Missing,
    Model,
    Quiet,
    Schema,
    Seed,
    Share,
    Sheet,
    Source,
    Verbose,
    auto,
    read_opened,
    settings_of,
    title_of,
    verbosity,
)
from evenly.cli.printing import print_json, printed_warnings, say_files
from evenly.cli.results import fit_imputer, plan_imputation, show_trial, write_imputed_page


@app.command()
def report(
    table: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    share: Share = 0.1,
    model: Model = "auto",
    method: Method = "auto",
    epochs: Epochs = None,
    schema: Schema = None,
    kind: Kind = None,
    likelihood: Likelihoods = None,
    bounds: Bounds = None,
    missing: Missing = None,
    form: Form = None,
    sheet: Sheet = None,
    max_expansion: Expansion = 200.0,
    seed: Seed = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML file: what the table holds, how well cells are imputed, and which columns training overlooks.

    It is the report of impute and that of diagnose on one page; no table is written.

    Example: evenly report survey.csv -o report.html
    """
    require_later("jax", "models")
    check_models([model], [method])
    check_share(share)
    check_place(out)
    settings = settings_of(schema, kind, missing, likelihood, bounds)
    prints = not (quiet or as_json)
    params = {"model": model, "method": method, "random_state": seed, **settings}
    params["verbose"] = verbosity(prints=prints, details=verbose)
    training = {"epochs": auto(epochs)}
    with printed_warnings(), showing(params["verbose"]):
        announce(f"reading {title_of(table)}")
        opened = read_opened(table, form, sheet, max_expansion)
        check_cells(opened, settings)
        asked = {"share": share, "balance": True, "files": None}
        written = {"n_rows": opened.n_rows, "samples": 0, "report": True, "loaded": False}
        stages = plan_imputation(params, training, opened, **asked, **written)
        with stages.at("_fitting"):
            found = fit_imputer(params, training, opened, **asked, on_trial=show_trial if prints else None)
        with stages.at("_filling"):
            full = found.imputer.transform(opened)
        with stages.at("writing the report"):
            write_imputed_page(out, opened, full, found, title=title_of(table), seed=seed)
    if as_json:
        trial = found.trial and found.trial.to_plain()
        print_json({"out": str(out), "trial": trial, "diagnosis": found.diagnosis and found.diagnosis.to_plain()})
    elif not quiet:
        say_files(("Report", out))
