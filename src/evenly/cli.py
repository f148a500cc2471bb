"""The command `evenly`: parsing and printing only."""

# No `from __future__ import annotations` here: Typer reads the annotations, which name what a function imports.
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from evenly._support import EvenlyError, MissingExtraError, TableError, require
from evenly._version import __version__


def main() -> None:
    """Run the command line; what Evenly refuses ends in one line and exit code 2, never in a traceback."""
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

    paper = typer.Typer(help="The paper's experiments: runs, tables, figures.", no_args_is_help=True)
    app.add_typer(paper, name="paper")

    @paper.command()
    def run(
        dataset: Annotated[list[str] | None, typer.Option(help="Data sets; default all six.")] = None,
        missing: Annotated[list[int] | None, typer.Option(help="Percentages hidden; default 10, 20, 50.")] = None,
        masks: Annotated[str | None, typer.Option(help="Which masks, such as 1-3 or 1,4; default all.")] = None,
        model: Annotated[list[str] | None, typer.Option(help="Models; default all.")] = None,
        method: Annotated[list[str] | None, typer.Option(help="Methods; default those that apply.")] = None,
        seeds: Annotated[str, typer.Option(help="Seeds, such as 0-2.")] = "0",
        epochs_fraction: Annotated[float, typer.Option(help="Share of the paper's epochs.")] = 1.0,
        jobs: Annotated[int, typer.Option(help="Runs at a time.")] = 1,
        backend: Annotated[str | None, typer.Option(help="dask or ray: an existing cluster.")] = None,
        out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("paper_runs"),
        data: Annotated[Path | None, typer.Option(help="Folder of the data sets.")] = None,
        known: Annotated[list[Path] | None, typer.Option(help="More records not to repeat.")] = None,
        quick: Annotated[bool, typer.Option(help="A small synthetic table, few epochs.")] = False,
        plan: Annotated[bool, typer.Option(help="Only print what would run and how long it takes.")] = False,
    ) -> None:
        """Run the grid; what is finished is never repeated, so that it can be killed and started again.

        Example: evenly paper run --dataset breast --model vae --missing 20 --masks 1-3 --out runs
        """
        _paper_run(
            dataset, missing, masks, model, method, seeds, epochs_fraction, jobs, backend, out, data, known, quick, plan
        )

    @paper.command()
    def pack(
        places: Annotated[list[Path], typer.Argument(help="Folders or files of records.")],
        out: Annotated[Path, typer.Option(help="The file to write: a record a line.")] = Path("paper_runs.jsonl"),
    ) -> None:
        """Put finished records into one compact file.

        Example: evenly paper pack runs --out paper_runs.jsonl
        """
        from evenly.paper.sweep import pack

        print(f"{pack(out, *places)} records in {out}")

    @paper.command()
    def tables(
        places: Annotated[list[Path], typer.Argument(metavar="RECORDS...", help="Folders or files of records.")],
        missing: Annotated[list[int] | None, typer.Option(help="Percentages hidden; default all there are.")] = None,
        protocol: Annotated[str, typer.Option(help="honest, as-published or both.")] = "honest",
        form: Annotated[str, typer.Option("--format", help="terminal, markdown, csv or latex.")] = "terminal",
        agreement: Annotated[bool, typer.Option("--agreement", help="Compare with the published tables.")] = False,
        out: Annotated[Path | None, typer.Option(help="The file to write; default print.")] = None,
    ) -> None:
        """Print the paper's tables from records, or how far they agree with the published ones.

        Example: evenly paper tables runs --missing 20 --protocol both --format markdown
        """
        _paper_tables(places, missing, protocol, form, agreement, out)

    @paper.command()
    def figures(
        places: Annotated[list[Path], typer.Argument(metavar="RECORDS...", help="Folders or files of records.")],
        out: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("paper_figures"),
    ) -> None:
        """Draw the paper's figures from records.

        Example: evenly paper figures runs --out figures
        """
        _paper_figures(places, out)

    return app


@contextmanager
def _writing(out: Path, what: str) -> Iterator[None]:
    """Say in one line where nothing can be written."""
    try:
        yield
    except OSError as error:
        expected = f"expected a {what} that can be written to ({error.strerror or error})"
        raise TableError(f"--out {str(out)!r}", expected) from None


def _numbers(text: str, name: str) -> list[int]:
    """Read `1-3,5` as 1, 2, 3, 5."""
    ends = [part.split("-") for part in text.split(",")]
    if any(len(part) > 2 or not all(end.strip().isdecimal() for end in part) for part in ends):
        raise TableError(f"{name} = {text!r}", "expected numbers such as 1-3 or 1,4")
    return [n for part in ends for n in range(int(part[0]), int(part[-1]) + 1)]


def _choice(given: Any, known: Any, name: str) -> list[Any]:
    """Return what was chosen, or all there is."""
    for one in given or ():
        if one not in known:
            raise TableError(f"{name} {one!r}", f"expected one of {', '.join(map(str, known))}")
    return list(given or known)


def _paper_run(
    dataset: list[str] | None,
    missing: list[int] | None,
    masks: str | None,
    model: list[str] | None,
    method: list[str] | None,
    seeds: str,
    epochs_fraction: float,
    jobs: int,
    backend: str | None,
    out: Path,
    data: Path | None,
    known: list[Path] | None,
    quick: bool,
    plan: bool,
) -> None:
    require("jax", "models")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from evenly.models import PAPERS
    from evenly.paper import sweep
    from evenly.paper.datasets import NAMES, PERCENTS
    from evenly.scaling import METHODS

    if quick and dataset:
        raise TableError("--quick and --dataset", "expected one of them", "--quick has a data set of its own")
    names = [sweep.QUICK] if quick else _choice(dataset, NAMES, "data set")
    if not epochs_fraction > 0:
        raise TableError(f"--epochs-fraction {epochs_fraction}", "expected a positive number")
    _choice([backend] if backend else None, ["dask", "ray"], "backend")
    runs = sweep.plan(
        {name: sweep.load(name, data) for name in names},
        percents=_choice(missing or ([20] if quick else None), PERCENTS, "percentage"),
        masks=_numbers("1" if masks is None else masks, "--masks") if quick or masks is not None else None,
        models=_choice(model, PAPERS, "model"),
        methods=_choice(method, tuple(METHODS), "method") if method else None,
        seeds=_numbers(seeds, "--seeds"),
        epochs_fraction=epochs_fraction * (0.02 if quick else 1.0),
    )
    if not runs:
        raise TableError(f"no run for {', '.join(method or names)}", "expected a method that applies to the data set")
    places = [*([out] if out.exists() else []), *(known or [])]
    records = sweep.read_records(*places)
    finished = {sweep.Run(**record["run"]) for record in records}
    left = [run for run in runs if run not in finished]
    console = Console()
    for record in records:
        if "failed" in record and sweep.Run(**record["run"]) in set(runs):
            told = f"{sweep.tell(record)}; remove its record to try again"
            console.print(told, markup=False, highlight=False, soft_wrap=True)
    seconds = sweep.project(left, records)
    total = sum(filter(None, seconds.values()))
    unknown = sum(value is None for value in seconds.values())
    tail = f", and {unknown} runs of models without a record" if unknown else ""
    console.print(
        f"{len(runs)} runs, {len(runs) - len(left)} of them finished; the others take some {_duration(total)}{tail}, "
        "one after the other, by the times recorded."
    )
    if plan:
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("runs", total=len(runs), completed=len(runs) - len(left))
        for record in sweep.sweep(left, out, folder=data, jobs=jobs, backend=backend):
            bar.advance(task)
            bar.console.print(sweep.tell(record), markup=False, highlight=False, soft_wrap=True)
    print(f"records: {out}")


def _paper_tables(
    places: list[Path], missing: list[int] | None, protocol: str, form: str, agreement: bool, out: Path | None
) -> None:
    from evenly.files import write_text
    from evenly.metrics import PROTOCOLS
    from evenly.paper.tables import FORMATS, render

    _choice([protocol], (*PROTOCOLS, "both"), "protocol")
    _choice([form], FORMATS, "format")
    require("jax", "models")
    from evenly.paper.sweep import read_records

    chosen = PROTOCOLS if protocol == "both" else (protocol,)
    text = render(read_records(*places), missing=missing, protocols=chosen, form=form, agree=agreement)
    if out is None:
        print(text, end="")
        return
    with _writing(out, "file"):
        write_text(out, text)
    print(out)


def _paper_figures(places: list[Path], out: Path) -> None:
    require("jax", "models")
    require("matplotlib.figure", "tool")
    from evenly.paper.figures import draw_all
    from evenly.paper.sweep import read_records

    records = read_records(*places)
    with _writing(out, "folder"):
        written = draw_all(records, out)
    for path in written:
        print(path)


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if seconds >= 90 else f"{seconds:.0f} s"


def _demo(out: Path, method: str, seed: int) -> None:
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
    with _writing(out, "folder"):
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
