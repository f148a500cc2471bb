"""`evenly compare`: models and methods side by side on the user's own table."""

import warnings
from typing import Annotated, Any

import typer

from evenly._support import EvenlyWarning, TableError, require, require_later
from evenly.cli.console import (
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
    check_models,
    check_out,
    check_place,
    check_share,
    command_line,
    duration,
    print_json,
    read,
    say,
    settings_of,
    show_table,
    title_of,
    warnings_told,
    writing,
)

DEFAULTS = (
    ("masked", "lip-none"),
    ("masked", "std-none"),
    ("vae", "lip-gamma"),
    ("vae", "std-none"),
    ("factorization", "lip-gamma"),
    ("mixture", "lip-gamma"),
    ("marginal", "lip-none"),
)


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
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare models and methods by their honest error on the same hidden cells of your table.

    Example: evenly compare survey.csv --model masked --model vae --method lip-none --method std-none
    """
    if model != ["marginal"]:
        require_later("jax", "models")
    check_models(model or [], method or [])
    check_share(share)
    if not share:
        raise TableError("--share 0", "expected cells to compare on")
    check_out(out)
    check_place(report)
    settings = settings_of(schema, kind, missing)
    pairs = candidates(model, method)
    spoken = not (quiet or as_json)
    trials: list[Any] = []
    with warnings_told():
        opened = read(table, form)
        from evenly.evaluation import compare_imputers
        from evenly.imputation import Imputer

        imputers = [
            Imputer(
                *pair, epochs="auto" if epochs is None else epochs, random_state=seed, verbose=int(spoken), **settings
            )
            for pair in pairs
        ]
        try:
            for trial in compare_imputers(imputers, opened, share=share, random_state=seed):
                trials.append(trial)
                if spoken:
                    say(f"{trial.model} {trial.method}: {trial.error:.4f} in {duration(trial.seconds)}")
        except KeyboardInterrupt:
            if not trials:
                raise
            warnings.warn(
                f"interrupted: the first {len(trials)} of {len(pairs)} candidates are compared",
                EvenlyWarning,
                stacklevel=2,
            )
        if out is not None:
            write_errors(trials, out)
        if report is not None:
            from evenly.report import write_report

            rows = [(f"{one.model} {one.method}", one.error, one.baseline, one.seconds) for one in trials]
            best = min(trials, key=lambda trial: trial.error)
            about = {"title": title_of(table), "command": command_line(), "seed": seed}
            with writing(report, "file"):
                write_report(report, opened, trial=best, comparison=rows, **about)
    if as_json:
        print_json([trial.to_plain() for trial in trials])
    elif spoken:
        show_trials(trials)
        for what, where in (("Errors", out), ("Report", report)):
            if where is not None:
                say(f"{what}: {where}")


def candidates(model: list[str] | None, method: list[str] | None) -> list[tuple[str, str]]:
    """Return the pairs of model and method to compare."""
    if method:
        return [(one, other) for one in model or dict(DEFAULTS) for other in method]
    return [pair for pair in DEFAULTS if not model or pair[0] in model] or [(one, "auto") for one in model or ()]


def write_errors(trials: list[Any], out: str) -> None:
    """Write the error of each column under each candidate."""
    from evenly.io import write_table

    polars = require("polars", "tool")
    first = trials[0].columns
    errors = {f"{trial.model} {trial.method}": [one.error for one in trial.columns] for trial in trials}
    write_table(
        polars.DataFrame(
            {
                "column": [one.column for one in first],
                "measure": [one.measure for one in first],
                "mean or mode": [one.baseline for one in first],
                **errors,
            }
        ),
        out,
    )


def show_trials(trials: list[Any]) -> None:
    """Print the candidates from the best to the worst, beside the mean or the most frequent class."""
    rows = [
        (
            trial.model,
            trial.method,
            f"{trial.error:.4f}",
            f"{trial.error / trial.baseline:.2f}" if trial.baseline else "",
            worst(trial),
            duration(trial.seconds),
        )
        for trial in sorted(trials, key=lambda trial: trial.error)
    ]
    rows.append(("mean or mode", "", f"{trials[0].baseline:.4f}", "1.00", "", ""))
    n_cells = sum(one.n_cells for one in trials[0].columns)
    show_table(
        ("model", "method", "error", "/ mean or mode", "worst column", "time"),
        rows,
        title=f"Honest error, mean over columns, on the same {n_cells:,} hidden cells",
        right=("error", "/ mean or mode", "time"),
    )


def worst(trial: Any) -> str:
    """Name the column that gains least over its mean or most frequent class."""
    ratios = {one.column: one.error / one.baseline for one in trial.columns if one.baseline}
    if not ratios:
        return ""
    column = max(ratios, key=lambda name: ratios[name])
    return f"{column} ({ratios[column]:.2f})"
