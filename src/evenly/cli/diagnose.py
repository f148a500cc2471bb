"""`evenly diagnose`: how unbalanced learning would be."""

from typing import Annotated, Any

import typer

from evenly._support import require_later
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
    Source,
    check_models,
    check_place,
    command_line,
    print_json,
    read,
    say,
    settings_of,
    show_table,
    title_of,
    warnings_told,
    writing,
)


def diagnose(
    table: Source,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Methods to train under; default std-none and lip-gamma.", show_default=False),
    ] = None,
    model: Annotated[str, typer.Option(help="The model of the short trainings.")] = "vae",
    train: Annotated[bool, typer.Option(help="Whether to train at all; without, smoothness alone is told.")] = True,
    epochs: Epochs = None,
    report: Report = None,
    schema: Schema = None,
    kind: Kind = None,
    missing: Missing = None,
    form: Form = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tell which columns gradient training would listen to and which it would overlook.

    Example: evenly diagnose survey.csv --report diagnosis.html
    """
    from evenly.evaluation import diagnose as run

    check_models([model], method or [])
    check_place(report)
    if train:
        require_later("jax", "models")
    settings = settings_of(schema, kind, missing)
    with warnings_told():
        opened = read(table, form)
        found = run(
            opened,
            methods=tuple(method or ("std-none", "lip-gamma")),
            model=model,
            train=train,
            epochs="auto" if epochs is None else epochs,
            random_state=seed,
            verbose=not quiet and not as_json,
            **settings,
        )
        if report is not None:
            from evenly.report import write_report

            with writing(report, "file"):
                write_report(report, opened, diagnosis=found, title=title_of(table), command=command_line(), seed=seed)
    if as_json:
        print_json(found.to_plain())
    elif not quiet:
        show_diagnosis(found)
        if report is not None:
            say(f"Report: {report}")


def show_diagnosis(found: Any) -> None:
    """Print a diagnosis: smoothness and share of the gradient, what short trainings learned, and the verdict."""
    if found.columns:
        show_table(
            ("column", "likelihood", *(f"L {name}" for name in SHOWN), *(f"% {name}" for name in SHOWN)),
            [
                (
                    one.column,
                    one.likelihood,
                    *(f"{one.smoothness[name]:.3g}" for name in SHOWN),
                    *(f"{100.0 * one.gradient_share[name]:.1f}" for name in SHOWN),
                )
                for one in found.columns
            ],
            title="Smoothness (L) of each column, and its share of the gradient (%)",
            right=tuple(f"{what} {name}" for name in SHOWN for what in ("L", "%")),
        )
    for one in found.trainings:
        errors, alone = (mean(list(of.values())) for of in (one.error, one.baseline_error))
        say(
            f"{one.method}, {one.epochs} epochs: overlooks {', '.join(one.overlooked) or 'none'}; error on hidden "
            f"cells {errors:.3f}, of the mean or the most frequent class {alone:.3f}"
        )
    for column, why in found.passed_through.items():
        say(f"Not modelled: {column} ({why})")
    say(found.verdict)


def mean(values: list[float]) -> float:
    """Return the mean, or NaN of nothing."""
    return sum(values) / len(values) if values else float("nan")


SHOWN = ("none", "std", "lip")
"""The scalings that a terminal has room for; --json and the report have all five."""
