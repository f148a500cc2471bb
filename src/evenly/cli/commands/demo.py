"""`evenly demo`: diagnosis, imputation and report of the embedded table."""

from pathlib import Path
from typing import Annotated

import typer

from evenly._support import duration, require_later, showing
from evenly.cli.app import app
from evenly.cli.checks import check_place
from evenly.cli.options import Quiet, Seed
from evenly.cli.printing import printed_warnings, say, writing
from evenly.cli.results import fit_imputer, show_diagnosis, show_trial, write_imputed_page


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the complete table, the schema and the report.")] = Path("demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Diagnose and impute the embedded table of 303 heart patients, and write a report for the browser.

    Example: evenly demo --out demo
    """
    require_later("jax", "models")
    require_later("plotly", "tool")
    import time

    from evenly.data import load_heart
    from evenly.io import write_table
    from evenly.tables import open_table

    check_place(out / "report.html")
    begun = time.perf_counter()
    heart = load_heart()
    if not quiet:
        say(
            f"The embedded table: {heart.shape[0]} heart patients, {heart.shape[1]} columns of mixed kinds, six cells "
            "missing.\nTraining a model briefly on standardized columns, and on Lipschitz-standardized ones ..."
        )
    with printed_warnings(), showing(int(not quiet)):
        # One network is enough for a demo; your own table gets the average of three if it has few rows.
        opened = open_table(heart, keep=True)
        found = fit_imputer({"random_state": seed}, {"n_networks": 1}, opened, balance=True)
        full = found.imputer.transform(opened)
        with writing(out, "folder"):
            write_table(full, out / "full.csv")
            found.imputer.schema_.save(out / "schema.json")
        write_imputed_page(out / "report.html", opened, full, found, title="Heart patients", seed=seed)
    if quiet:
        return
    show_diagnosis(found.diagnosis)
    say("")
    show_trial(found.trial)
    say(
        f"\nComplete table: {out / 'full.csv'}\nSchema, to edit by hand: {out / 'schema.json'}\n"
        f"Report, to open in a browser: {out / 'report.html'}\nThat took {duration(time.perf_counter() - begun)}. "
        "Your own table: evenly impute survey.csv -o full.csv --report report.html"
    )
