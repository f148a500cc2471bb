"""`evenly demo`: the main job on the embedded table."""

from pathlib import Path
from typing import Annotated

import typer

from evenly._support import require_later
from evenly.cli.console import Quiet, Seed, check_place, duration, say, warnings_told, writing
from evenly.cli.diagnose import show_diagnosis
from evenly.cli.impute import learn, show_trial, write_page


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

    check_place(out / "report.html")
    begun = time.perf_counter()
    heart = load_heart()
    if not quiet:
        say(
            f"The embedded table: {heart.shape[0]} heart patients, {heart.shape[1]} columns of mixed kinds, six cells "
            "missing.\nA model is trained shortly on standardized columns and on Lipschitz-standardized ones ..."
        )
    with warnings_told():
        # One network shows all there is to see; on a table of your own three are averaged if its rows are few.
        choices = ("auto", "auto", "mean", None, seed)
        learned = learn(heart, choices, {}, share=0.1, spoken=False, bar=False, balance=True, n_networks=1)
        full = learned.imputer.transform(heart)
        with writing(out, "folder"):
            write_table(full, out / "full.csv")
            learned.imputer.schema_.save(out / "schema.json")
        write_page(out / "report.html", heart, full, learned, seed, title="Heart patients")
    if quiet:
        return
    show_diagnosis(learned.diagnosis)
    say("")
    show_trial(learned.trial)
    say(
        f"\nComplete table: {out / 'full.csv'}\nSchema, to edit by hand: {out / 'schema.json'}\n"
        f"Report, to open in a browser: {out / 'report.html'}\nThat took {duration(time.perf_counter() - begun)}. "
        "Your own table: evenly impute survey.csv -o full.csv --report report.html"
    )
