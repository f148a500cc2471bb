"""`evenly demo`: the method on the embedded table."""

import io
from pathlib import Path
from typing import Annotated, Any

import typer

from evenly._support import TableError, require
from evenly.cli.console import writing


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the schema.")] = Path("demo"),
    method: Annotated[str, typer.Option(help="One of the seven methods.")] = "lip-gamma",
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
) -> None:
    """Scale the embedded table of 303 heart patients and draw smoothness before and after.

    Example: evenly demo --out demo
    """
    require("matplotlib.figure", "tool")  # before any work, not after half of it is printed
    from rich.console import Console

    from evenly.files import load_heart
    from evenly.scaler import LipschitzScaler
    from evenly.scaling import get_method

    if not 0 <= seed < 2**32:
        raise TableError(f"the seed {seed}", "expected a whole number from 0 to 4294967295")
    heart = load_heart()
    scaler = LipschitzScaler(method, random_state=seed).fit(heart)
    written = _write_demo(out, scaler)
    console = Console()
    n_columns = len(scaler.schema_.columns)
    console.print(f"The embedded table: {heart.shape[0]} heart patients, {n_columns} columns of mixed kinds.\n")
    totals = _show_summary(console, scaler)
    loud, quiet = max(totals, key=lambda c: totals[c][0]), min(totals, key=lambda c: totals[c][0])
    before, after = (max(t[i] for t in totals.values()) / min(t[i] for t in totals.values()) for i in (0, 1))
    # The features of a trick have likelihoods of their own: the ratio is theirs, not that of the columns as they are.
    when = {"none": "Before", "bern": "Under the Bernoulli trick, before", "gamma": "Under the Gamma trick, before"}
    console.print(
        f"{when[get_method(method).trick]} scaling, the log-likelihood of {loud!r} is {before:,.0f} times as curved as "
        f"that of {quiet!r}: gradient training would listen to the first and overlook the second.\nAfter scaling, the "
        f"largest ratio between two columns is {after:,.2f}."
    )
    outcomes = zip(scaler.summary_["column"], scaler.summary_["outcome"], strict=True)
    unscaled = {column for column, outcome in outcomes if outcome == "passed_through"}
    if unscaled:
        console.print(f"{method} does not scale the {len(unscaled)} discrete columns.")
    console.print(f"\n{written}", markup=False, soft_wrap=True)


def _write_demo(out: Path, scaler: Any) -> str:
    """Write the picture and the schema; return the lines that say where they are."""
    from evenly.files import write_bytes
    from evenly.plots import plot_smoothness

    picture, schema = out / "smoothness.png", out / "schema.json"
    drawn = io.BytesIO()
    plot_smoothness(scaler).figure.savefig(drawn, format="png", dpi=150)
    with writing(out, "folder"):
        write_bytes(picture, drawn.getvalue())
        scaler.schema_.save(schema)
    return f"Picture: {picture}\nSchema, to edit by hand: {schema}"


def _show_summary(console: Any, scaler: Any) -> dict[str, tuple[float, float]]:
    """Print the summary, a line a feature below its column; return each column's smoothness before and after."""
    from rich.markup import escape
    from rich.table import Table

    from evenly.scaler import SUMMARY_COLUMNS

    title = f"Smoothness of each log-likelihood before and after {scaler.method}, target {scaler.target_:.4g}"
    shown = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("column", "kind", "likelihood", "before", "scale", "after", "outcome"):
        numeric = name in ("before", "scale", "after")
        shown.add_column(name, justify="right" if numeric else "left", no_wrap=name != "column", overflow="fold")
    summary = scaler.summary_
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for row in zip(*(list(summary[name]) for name in SUMMARY_COLUMNS), strict=True):
        rows.setdefault(str(row[0]), []).append(row)
    totals = {}
    for column, features in rows.items():
        before, after = (sum(float(row[i]) for row in features) for i in (4, 6))
        totals[column] = (before, after)
        first = features[0]
        if len(features) == 1:
            shown.add_row(
                escape(column), first[2], first[3], f"{before:.4g}", f"{first[5]:.4g}", f"{after:.4g}", first[7]
            )
            continue
        shown.add_row(escape(column), first[2], "", f"{before:.4g}", "", f"{after:.4g}", "")
        for row in features:
            label = "  " + escape(str(row[1]).removeprefix(column))
            shown.add_row(label, "", row[3], f"{row[4]:.4g}", f"{row[5]:.4g}", f"{row[6]:.4g}", row[7], style="dim")
    console.print(shown)
    console.print()
    return totals
