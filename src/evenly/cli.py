"""The command `evenly`: parsing and printing only."""

# No `from __future__ import annotations` here: Typer reads the annotations, which name what a function imports.
import sys
from pathlib import Path
from typing import Annotated, Any

from evenly._support import EvenlyError, MissingExtraError, require
from evenly._version import __version__


def main() -> None:
    """Run the command line; bad input ends in one line and exit code 2, never in a traceback."""
    try:
        require("typer", "tool")
        require("rich", "tool")
        _app()()
    except MissingExtraError as error:
        sys.exit(f"evenly: {error}")
    except EvenlyError as error:
        print(f"evenly: {error}", file=sys.stderr)
        sys.exit(2)


def _app() -> Any:
    import typer

    app = typer.Typer(
        help="Make probabilistic models learn every column of a mixed table.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            print(f"evenly {__version__}")
            raise typer.Exit

    @app.callback()
    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        pass

    @app.command()
    def demo(
        out: Annotated[Path, typer.Option(help="Folder for the picture and the schema.")] = Path("demo"),
        method: Annotated[str, typer.Option(help="One of the seven methods.")] = "lip-gamma",
        seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    ) -> None:
        """Scale the embedded table of 303 heart patients and draw smoothness before and after.

        Example: evenly demo --out demo
        """
        _demo(out, method, seed)

    return app


def _demo(out: Path, method: str, seed: int) -> None:
    from rich.console import Console
    from rich.table import Table

    from evenly.files import load_heart
    from evenly.plots import plot_smoothness
    from evenly.scaler import LipschitzScaler

    console = Console()
    heart = load_heart()
    scaler = LipschitzScaler(method, random_state=seed).fit(heart)
    summary = scaler.summary_
    n_columns = len(scaler.schema_.columns)
    console.print(f"The embedded table: {heart.shape[0]} heart patients, {n_columns} columns of mixed kinds.\n")
    shown = Table(title=f"What {method} does to each feature (target {scaler.target_:.4g})", title_justify="left")
    for name in summary.columns:
        numeric = name in ("smoothness_before", "scale", "smoothness_after")
        shown.add_column(name.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in zip(*(summary[name] for name in summary.columns), strict=True):
        shown.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    console.print(shown)
    _verdict(console, scaler)
    out.mkdir(parents=True, exist_ok=True)
    picture, schema = out / "smoothness.png", out / "schema.json"
    plot_smoothness(scaler).figure.savefig(picture, dpi=150)
    scaler.schema_.save(schema)
    console.print(f"\nPicture: {picture}\nSchema, to edit by hand: {schema}")


def _verdict(console: Any, scaler: Any) -> None:
    """Say in one sentence what a newcomer should see."""
    summary = scaler.summary_
    totals: dict[str, list[float]] = {}
    for column, before, after in zip(
        summary["column"], summary["smoothness_before"], summary["smoothness_after"], strict=True
    ):
        total = totals.setdefault(str(column), [0.0, 0.0])
        total[0] += float(before)
        total[1] += float(after)
    loud, quiet = max(totals, key=lambda c: totals[c][0]), min(totals, key=lambda c: totals[c][0])
    ratio = totals[loud][0] / totals[quiet][0]
    after = [total[1] for total in totals.values()]
    console.print(
        f"\nBefore, the log-likelihood of {loud!r} is {ratio:,.0f} times as curved as that of {quiet!r}: gradient "
        f"training would listen to the first and overlook the second.\nAfter, the largest ratio between two columns is "
        f"{max(after) / min(after):,.2f}."
    )
