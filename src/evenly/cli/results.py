"""Results that several commands need, print, or write as a report."""

from pathlib import Path
from typing import Any

from evenly._support import Stages
from evenly.cli.options import command_line
from evenly.cli.printing import say, show_table, writing

SCALINGS_SHOWN = ("none", "std", "lip")
"""The scalings that fit on a terminal; --json and the report have all five."""


def fit_imputer(params: dict[str, Any], training: dict[str, Any], table: Any, **asked: Any) -> Any:
    """Fit an imputer with these parameters to a table, and assess it; the rest is as in `fit_and_assess`."""
    from evenly.evaluation import fit_and_assess, fits_once
    from evenly.imputation import Imputer, Training

    imputer = Imputer(**params, training=Training(**training))
    if imputer.time_limit and asked.get("share", 1.0) and not fits_once(table, asked.get("files")):
        imputer.set_params(time_limit=imputer.time_limit / 2.0)  # the estimate is a fit of its own
    return fit_and_assess(imputer, table, **asked)


def plan_imputation(params: dict[str, Any], training: dict[str, Any], table: Any, **asked: Any) -> Stages:
    """Plan the stages of a command that fits an imputer, fills a table and writes results.

    Parameters
    ----------
    asked
        `share` and `balance` of `fit_and_assess`, `files`, `n_rows` to fill, the number of `samples`, `report` or not,
        and whether the imputer was `loaded`.
    """
    from evenly.evaluation import assessment_seconds
    from evenly.imputation import Imputer, Training, fill_seconds

    imputer, files = Imputer(**params, training=Training(**training)), asked["files"]
    fitting = {"share": asked["share"], "balance": asked["balance"], "files": files}
    n_columns = len(table.columns)
    return Stages(
        {
            "_fitting": 0.01 if asked["loaded"] else assessment_seconds(imputer, table, **fitting),
            "_filling": fill_seconds(asked["n_rows"], n_columns) + 0.01,
            "writing the table": 2e-7 * asked["n_rows"] * n_columns + 0.01,
            "writing the report": report_seconds(table) * asked["report"],
            "_sampling": asked["samples"] * fill_seconds(asked["n_rows"], n_columns),
        }
    )


def report_seconds(table: Any) -> float:
    """Return the expected number of seconds of writing a report."""
    n_cells: int = table.n_rows * len(table.columns)
    return 2.0 + 1e-6 * n_cells


def write_page(path: Path | None, table: Any, **parts: Any) -> None:
    """Write a report to a file, if one is named."""
    if path is None:
        return
    from evenly.report import write_report

    with writing(path, "file"):
        write_report(path, table, command=command_line(), **parts)


def write_imputed_page(
    path: Path | None, table: Any, full: Any, found: Any, *, deltas: dict[str, Any] | None = None, **about: Any
) -> None:
    """Write a report on a table and the imputer that filled it, if a file is named; cells are drawn only then."""
    if path is None:
        return
    from evenly.evaluation import draw_cells

    drawn = draw_cells(found.imputer, table, delta=deltas)
    write_page(path, table, filled=full, draws=drawn, **vars(found), **about)


def show_trial(trial: Any) -> None:
    """Print the error of each column on hidden cells, worst first, relative to its mean or most frequent class."""
    show_table(
        ("column", "measure", "error", "mean or mode", "ratio", "90 % interval", "covered"),
        [
            (
                one.column,
                one.measure,
                f"{one.error:.4f}",
                f"{one.baseline:.4f}",
                f"{one.normalized:.2f}",
                f"{one.normalized_low:.2f} to {one.normalized_high:.2f}" if one.baseline else "",
                "" if one.covered is None else f"{one.covered:.0%}",
            )
            for one in sorted(trial.columns, key=lambda one: -one.normalized)
        ],
        title=f"Held-out error on the {trial.share:.0%} of known cells that were hidden "
        f"({trial.model}, {trial.method})",
        right=("error", "mean or mode", "ratio", "90 % interval", "covered"),
    )
    say(str(trial))
    say(
        "Ratio: error / error of the mean or the most frequent class, below 1 is better, with its 90 % interval. "
        "Covered: numbers inside their own 90 % intervals."
    )
    if trial.final:
        say("The same imputer fills the table: it was not trained again on the hidden cells.")


def show_diagnosis(found: Any) -> None:
    """Print a diagnosis: smoothness and share of the gradient, what short trainings learned, and the verdict."""
    if found.columns:
        show_table(
            ("column", "likelihood", *(f"{what} {name}" for what in ("L", "%") for name in SCALINGS_SHOWN)),
            [
                (
                    one.column,
                    one.likelihood,
                    *(f"{one.smoothness[name]:.3g}" for name in SCALINGS_SHOWN),
                    *(f"{100.0 * one.gradient_share[name]:.1f}" for name in SCALINGS_SHOWN),
                )
                for one in found.columns
            ],
            title="Smoothness (L) of each column, and its share of the gradient (%)",
            right=tuple(f"{what} {name}" for name in SCALINGS_SHOWN for what in ("L", "%")),
        )
    for one in found.trainings:
        errors, alone = (_mean(list(of.values())) for of in (one.error, one.baseline_error))
        say(
            f"{one.method}, {one.epochs} epochs: overlooks {', '.join(one.overlooked) or 'none'}; error on hidden "
            f"cells {errors:.3f}, of the mean or the most frequent class {alone:.3f}"
        )
    for column, why in found.passed_through.items():
        say(f"Not modelled: {column} ({why})")
    say(found.verdict)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
