"""`evenly compare`: models and methods side by side on the user's own table."""

import warnings
from typing import Annotated, Any

import typer

from evenly._support import EvenlyWarning, Stages, TableError, announce, duration, require, showing
from evenly.cli.app import app
from evenly.cli.checks import check_models, check_out, check_packages, check_place, check_share
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
from evenly.cli.printing import print_json, printed_warnings, say, say_files, show_table
from evenly.cli.results import report_seconds, write_page

Rows = Annotated[
    str, typer.Option(metavar="N", help="Rows to compare on, drawn at random, or all; auto: all if they are few.")
]


@app.command()
def compare(
    table: Source,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Models, and scikit-learn's forest, knn and linear; default all.", show_default=False),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Methods; default one or two of each model.", show_default=False)
    ] = None,
    balance: Annotated[
        list[str] | None,
        typer.Option(help="Balancing rules, such as lip and mgda; default that of the model.", show_default=False),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the errors as a table, a row a column.", show_default=False)
    ] = None,
    report: Report = None,
    epochs: Epochs = None,
    share: Share = 0.1,
    rows: Rows = "auto",
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
    """Compare models and methods by their held-out error, on the same hidden cells of your table.

    Example: evenly compare survey.csv --model masked --model vae --method lip-none --method std-none
    """
    check_candidates(model or ["auto"], method or [], balance or [])
    check_share(share, needed=True)
    check_out(out)
    check_place(report)
    params = settings_of(schema, kind, missing, likelihood, bounds)
    prints, on_rows = not (quiet or as_json), read_rows(rows)
    params |= {"random_state": seed, "verbose": verbosity(prints=prints, details=verbose)}
    with printed_warnings(), showing(params["verbose"]):
        announce(f"reading {title_of(table)}")
        opened = read_opened(table, form, sheet, max_expansion)
        pairs = choose_candidates(model or [], method or [], len(opened.columns))
        imputers = make_imputers(pairs, balance, epochs, params)
        stages = plan_comparison(imputers, opened, on_rows, report=report is not None)
        with stages.at("_comparing"):
            trials = run_trials(imputers, opened, share, on_rows, params, prints=prints)
        write_errors(trials, out)
        with stages.at("writing the report"):
            write_page(report, opened, comparison=trials, title=title_of(table), seed=seed)
    if as_json:
        print_json([trial.to_plain() for trial in trials])
    elif prints:
        show_trials(trials, opened.n_rows)
        say_files(("Errors", out), ("Report", report))


def check_candidates(models: list[str], methods: list[str], rules: list[str]) -> None:
    """Refuse unknown models, methods and balancing rules, and models whose packages are missing."""
    from evenly.evaluation import PEER_IMPUTERS

    check_models(models, methods, others=tuple(PEER_IMPUTERS), rules=rules)
    check_packages([one for one in models if one not in PEER_IMPUTERS])


def choose_candidates(models: list[str], methods: list[str], n_columns: int) -> list[tuple[str, str]]:
    """Return the pairs of model and method to compare; warns of those that are left out."""
    from evenly.evaluation import candidates, too_wide_for

    left = [] if models or methods else too_wide_for(n_columns)
    for name in left:
        text = f"{name}: left out, as {n_columns} columns would take it long; --model {name} compares it all the same"
        warnings.warn(text, EvenlyWarning, stacklevel=2)
    return candidates(models, methods, n_columns)


def make_imputers(
    pairs: list[tuple[str, str]], rules: list[str] | None, epochs: int | None, params: dict[str, Any]
) -> list[Any]:
    """Make the imputers to compare; those of scikit-learn are made by their names.

    A model with a place for balancing rules is compared under each of them, others as they are.
    """
    from evenly.evaluation import PEER_IMPUTERS
    from evenly.imputation import Imputer, Training
    from evenly.models import SPECS

    params = {**params, "training": Training(epochs=auto(epochs))}
    found: list[Any] = []
    for model, method in pairs:
        if model in PEER_IMPUTERS:
            found.append(model)
        elif model == "auto" or SPECS[model].shared_output:
            found += [Imputer(model, method, balance=rule, **params) for rule in rules or ["auto"]]
        else:
            found.append(Imputer(model, method, **params))
    return found


def read_rows(text: str) -> Any:
    """Read on how many rows to compare.

    Examples
    --------
    >>> read_rows("all"), read_rows("20000")
    ('all', 20000)
    """
    if text not in ("auto", "all") and not (text.isdecimal() and int(text) > 0):
        raise TableError(f"--rows {text}", "expected a number of rows from 1, or all", "leave it out for the usual one")
    return int(text) if text.isdecimal() else text


def plan_comparison(imputers: list[Any], opened: Any, rows: Any, *, report: bool) -> Stages:
    """Plan the stages: the trials, and a report if one is asked for."""
    from evenly.evaluation import comparison_seconds

    seconds = comparison_seconds(imputers, opened.n_rows, len(opened.columns), rows)
    return Stages({"_comparing": seconds, "writing the report": report_seconds(opened) * report})


def run_trials(
    imputers: list[Any], opened: Any, share: float, rows: Any, params: dict[str, Any], *, prints: bool
) -> list[Any]:
    """Try every imputer; Ctrl-C ends with those that are done."""
    from evenly.evaluation import compare_imputers
    from evenly.imputation import Imputer

    asked = {"share": share, "rows": rows, "random_state": params["random_state"], "like": Imputer(**params)}
    trials: list[Any] = []
    try:
        for trial in compare_imputers(imputers, opened, **asked):
            trials.append(trial)
            if prints:
                say(f"{trial.name}: {trial.normalized:.3f} of the error of mean or mode, in {duration(trial.seconds)}")
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


def show_trials(trials: list[Any], n_rows: int) -> None:
    """Print the candidates from the best to the worst, beside the mean or the most frequent class."""
    from evenly.evaluation import rank_trials, say_winner

    ranked = rank_trials(trials)
    rows = [
        (
            trial.model,
            trial.name.removeprefix(trial.model).strip(),
            f"{value:.3f}",
            f"{low:.3f} to {high:.3f}",
            show_worst(trial),
            duration(trial.seconds),
        )
        for trial in ranked
        for value, low, high in [trial.normalized_interval]
    ]
    rows.append(("mean or mode", "", "1.000", "", "", ""))
    n_cells, sampled = sum(one.n_cells for one in trials[0].columns), trials[0].n_rows
    of_rows = "" if sampled is None else f" of {sampled:,} of {n_rows:,} rows"
    show_table(
        ("model", "method", "ratio", "90 % interval", "worst column", "time"),
        rows,
        title=f"Held-out error / error of mean or mode, mean over columns, on {n_cells:,} hidden cells{of_rows}",
        right=("ratio", "90 % interval", "time"),
    )
    say(say_winner(ranked))


def show_worst(trial: Any) -> str:
    """Name the column that gains least, with its error relative to that of the mean or the mode."""
    from evenly.evaluation import worst_column

    worst = worst_column(trial)
    return "" if worst is None else f"{worst[0]} ({worst[1]:.2f})"
