"""`evenly diagnose`: how unevenly the columns would be learned."""

from typing import Annotated

import typer

from evenly._support import announce, require_later, showing
from evenly.cli.app import app
from evenly.cli.checks import check_models, check_place
from evenly.cli.options import (
    AsJson,
    Bounds,
    Epochs,
    Expansion,
    Form,
    Kind,
    Likelihoods,
    Missing,
    Quiet,
    Report,
    Schema,
    Seed,
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
from evenly.cli.results import show_diagnosis, write_page


@app.command()
def diagnose(
    table: Source,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Methods to train under; default std-none and lip-gamma.", show_default=False),
    ] = None,
    model: Annotated[str, typer.Option(help="The model of the short trainings.")] = "vae",
    train: Annotated[bool, typer.Option(help="Whether to train; without, only smoothness is shown.")] = True,
    epochs: Epochs = None,
    report: Report = None,
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
    """Show which columns gradient training would learn, and which it would overlook.

    Example: evenly diagnose survey.csv --report diagnosis.html
    """
    from evenly.evaluation import diagnose as run

    check_models([model], method or [])
    check_place(report)
    if train:
        require_later("jax", "models")
    settings = settings_of(schema, kind, missing, likelihood, bounds)
    shown = verbosity(prints=not (quiet or as_json), details=verbose)
    with printed_warnings(), showing(shown):
        announce(f"reading {title_of(table)}")
        opened = read_opened(table, form, sheet, max_expansion)
        found = run(
            opened,
            methods=tuple(method or ("std-none", "lip-gamma")),
            model=model,
            train=train,
            epochs=auto(epochs),
            random_state=seed,
            verbose=shown,
            **settings,
        )
        write_page(report, opened, diagnosis=found, title=title_of(table), seed=seed)
    if as_json:
        print_json(found.to_plain())
    elif not quiet:
        show_diagnosis(found)
        say_files(("Report", report))
