"""`evenly compare`: models and methods side by side on the user's own table."""

import warnings
from typing import Annotated, Any

import typer

from evenly._support import EvenlyWarning, TableError, announce, duration, require, showing
from evenly.cli.app import app
from evenly.cli.checks import check_models, check_out, check_packages, check_place, check_share
from evenly.cli.options import (
    AsJson,
    Epochs,
    Form,
    Kind,
    Missing,
    Quiet,
    Report,
    Schema,
    Seed,
    Share,
    Source,
    Verbose,
    auto,
    read_opened,
    settings_of,
    title_of,
    verbosity,
)
from evenly.cli.printing import print_json, printed_warnings, say, say_files, show_table
from evenly.cli.results import write_page


@app.command()
def compare(
    table: Source,
    model: Annotated[list[str] | None, typer.Option(help="Models; default all.", show_default=False)] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Methods; default one or two of each model.", show_default=False)
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the errors as a table, a row a column.", show_default=False)
    ] = None,
    report: Report = None,
    epochs: Epochs = None,
    share: Share = 0.1,
    schema: Schema = None,
    kind: Kind = None,
    missing: Missing = None,
    form: Form = None,
    seed: Seed = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare models and methods by their held-out error, on the same hidden cells of your table.

    Example: evenly compare survey.csv --model masked --model vae --method lip-none --method std-none
    """
    check_models(model or [], method or [])
    check_packages(model or ["auto"])
    check_share(share)
    if not share:
        raise TableError("--share 0", "expected cells to compare on")
    check_out(out)
    check_place(report)
    settings = settings_of(schema, kind, missing)
    prints = not (quiet or as_json)
    params = {"random_state": seed, "verbose": verbosity(prints=prints, details=verbose), **settings}
    with printed_warnings(), showing(params["verbose"]):
        announce(f"reading {title_of(table)}")
        opened = read_opened(table, form)
        imputers = make_imputers(model or [], method or [], epochs, params)
        trials = run_trials(imputers, opened, share, seed, prints=prints)
        write_errors(trials, out)
        rows = [(f"{one.model} {one.method}", one.error, one.baseline, one.seconds) for one in trials]
        best = min(trials, key=lambda trial: trial.error)
        write_page(report, opened, trial=best, comparison=rows, title=title_of(table), seed=seed)
    if as_json:
        print_json([trial.to_plain() for trial in trials])
    elif prints:
        show_trials(trials)
        say_files(("Errors", out), ("Report", report))


def make_imputers(models: list[str], methods: list[str], epochs: int | None, params: dict[str, Any]) -> list[Any]:
    """Make the imputers to compare."""
    from evenly.evaluation import candidates
    from evenly.imputation import Imputer, Training

    training = Training(epochs=auto(epochs))
    return [Imputer(*pair, training=training, **params) for pair in candidates(models, methods)]


def run_trials(imputers: list[Any], opened: Any, share: float, seed: int, *, prints: bool) -> list[Any]:
    """Try every imputer; Ctrl-C ends with those that are done."""
    from evenly.evaluation import compare_imputers

    trials: list[Any] = []
    try:
        for trial in compare_imputers(imputers, opened, share=share, random_state=seed):
            trials.append(trial)
            if prints:
                say(f"{trial.model} {trial.method}: {trial.error:.4f} in {duration(trial.seconds)}")
    except KeyboardInterrupt:
        if not trials:
            raise
    if len(trials) < len(imputers):
        text = f"interrupted: the first {len(trials)} of {len(imputers)} candidates are compared"
        warnings.warn(text, EvenlyWarning, stacklevel=2)
    return trials


def write_errors(trials: list[Any], out: str | None) -> None:
    """Write the error of each column under each candidate to a file, if one is named."""
    if out is None:
        return
    from evenly.evaluation import errors_by_column
    from evenly.io import write_table

    write_table(require("polars", "tool").DataFrame(errors_by_column(trials)), out)


def show_trials(trials: list[Any]) -> None:
    """Print the candidates from the best to the worst, beside the mean or the most frequent class."""
    rows = [
        (
            trial.model,
            trial.method,
            f"{trial.error:.4f}",
            f"{trial.error / trial.baseline:.2f}" if trial.baseline else "",
            show_worst(trial),
            duration(trial.seconds),
        )
        for trial in sorted(trials, key=lambda trial: trial.error)
    ]
    rows.append(("mean or mode", "", f"{trials[0].baseline:.4f}", "1.00", "", ""))
    n_cells = sum(one.n_cells for one in trials[0].columns)
    show_table(
        ("model", "method", "error", "/ mean or mode", "worst column", "time"),
        rows,
        title=f"Held-out error, mean over columns, on the same {n_cells:,} hidden cells",
        right=("error", "/ mean or mode", "time"),
    )


def show_worst(trial: Any) -> str:
    """Name the column that gains least, with its error relative to that of the mean or the mode."""
    from evenly.evaluation import worst_column

    worst = worst_column(trial)
    return "" if worst is None else f"{worst[0]} ({worst[1]:.2f})"
