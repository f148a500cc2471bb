"""`evenly paper`: the paper's experiments."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenly._support import TableError, duration, require
from evenly.cli.app import app
from evenly.cli.options import choice, numbers
from evenly.cli.printing import printed_warnings, say, writing

if TYPE_CHECKING:
    from evenly.paper import Plan, Progress, Schedule

paper = typer.Typer(help="The paper's experiments: runs, tables, figures.", no_args_is_help=True)
app.add_typer(paper, name="paper")

RUNS = Path("paper_runs")
"""Where records are written and looked for by default."""
Records = Annotated[
    list[Path] | None,
    typer.Argument(metavar="RECORDS", help=f"Folders or files of records; default {RUNS}.", show_default=False),
]


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
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = RUNS,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets.")] = None,
    known: Annotated[list[Path] | None, typer.Option(help="More records not to repeat.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make failed runs again.")] = False,
    quick: Annotated[bool, typer.Option(help="A small synthetic table, few epochs.")] = False,
    design: Annotated[bool, typer.Option(help="Not the whole grid, but what tells scale and trick apart.")] = False,
    plan: Annotated[bool, typer.Option(help="Only print what would run and how long it takes.")] = False,
) -> None:
    """Run the grid; finished runs are never repeated, so that it can be killed and started again.

    Example: evenly paper run --dataset breast --model vae --missing 20 --masks 1-3 --out runs
    """
    if not plan:
        require("jax", "models")
    from evenly.paper import design_runs, make_schedule, read_records

    if quick and dataset:
        raise TableError("--quick and --dataset", "expected one of them", "--quick has a data set of its own")
    if not epochs_fraction > 0:
        raise TableError(f"--epochs-fraction {epochs_fraction}", "expected a positive number")
    choice([backend] if backend else None, ["dask", "ray"], "backend")
    asked = {"masks": masks, "models": model, "methods": method, "seeds": seeds, "epochs_fraction": epochs_fraction}
    chosen = make_plan(dataset, missing, asked, quick=quick)
    runs = design_runs(chosen, data) if design else chosen.runs(data)
    if not runs:
        given = ", ".join(method or chosen.datasets)
        raise TableError(f"no run for {given}", "expected a method that applies to the data set")
    with printed_warnings():
        records = read_records(*([out] if out.exists() else []), *(known or []))
    schedule = make_schedule(runs, records, retry_failed=retry_failed)
    show_schedule(schedule, retry_failed=retry_failed)
    if plan:
        show_coverage(runs, records)
    else:
        show_sweep(schedule, out, folder=data, jobs=jobs, backend=backend, retry_failed=retry_failed)
        print(f"records: {out}")


def make_plan(dataset: list[str] | None, missing: list[int] | None, asked: Mapping[str, Any], *, quick: bool) -> "Plan":
    """Read the options that choose runs; what is not given is all there is, or little if it is to be quick."""
    from evenly.models import PAPERS
    from evenly.paper import NAMES, PERCENTS, QUICK, Plan
    from evenly.scaling import METHODS

    masks, methods = asked["masks"], asked["methods"]
    return Plan(
        [QUICK] if quick else choice(dataset, NAMES, "data set"),
        percents=choice(missing or ([20] if quick else None), PERCENTS, "percentage"),
        masks=numbers("1" if masks is None else masks, "--masks") if quick or masks is not None else None,
        models=choice(asked["models"], PAPERS, "model"),
        methods=choice(methods, tuple(METHODS), "method") if methods else None,
        seeds=numbers(asked["seeds"], "--seeds"),
        epochs_fraction=asked["epochs_fraction"] * (0.02 if quick else 1.0),
    )


def show_schedule(schedule: "Schedule", *, retry_failed: bool) -> None:
    """Print which runs failed, how many are left, and how long they take."""
    from evenly.paper import describe_record

    for record in schedule.failed:
        say(describe_record(record) + ("; tried again" if retry_failed else "; --retry-failed tries again"))
    n_runs, n_left = len(schedule.runs), len(schedule.left)
    text = f"{n_runs} runs take {show_time(schedule.runs, schedule)}, one after the other. "
    text += f"{n_runs - n_left} of them are finished"
    if 0 < n_left < n_runs:
        text += f"; the other {n_left} take {show_time(schedule.left, schedule)}"
    say(f"{text}.")


def show_coverage(runs: Sequence[Any], records: Sequence[Mapping[str, Any]]) -> None:
    """Print, for each data set and model, what is done at the paper's epochs and what is not."""
    from evenly.paper import cover

    say("At the paper's epochs:")
    for one in cover(runs, records):
        text = f"{one.dataset} {one.model} ({one.epochs} epochs): {one.done} done"
        text += f", {one.shorter} with fewer epochs only, {one.left} not at all"
        if one.shorter + one.left > one.unknown:
            text += f"; {one.shorter + one.left - one.unknown} of them take {one.seconds / 3600:.1f} h"
        say(text + (f"; {one.unknown} an unknown time" if one.unknown else ""))


def show_time(runs: Sequence[Any], schedule: "Schedule") -> str:
    """Return how long runs take, and for how many nothing is known."""
    least, usual = (
        [value for run in runs if (value := seconds[run]) is not None]
        for seconds in (schedule.quickest, schedule.median)
    )
    if not least:
        return "an unknown time (no record of such a run)"
    text = f"some {duration(sum(least))} by the quickest recorded times, {duration(sum(usual))} by the median ones"
    unknown = len(runs) - len(least)
    return text + (f", and {unknown} of them an unknown time" if unknown else "")


def show_sweep(schedule: "Schedule", out: Path, *, folder: Path | None, **settings: Any) -> None:
    """Make the runs that are left, with a progress bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from evenly.paper import Progress as SweepProgress
    from evenly.paper import describe_record, load, run_sweep

    for name in dict.fromkeys(run.dataset for run in schedule.left):
        load(name, folder)  # a data set that is not there is downloaded, or refused, once and before anything runs
    progress = SweepProgress(schedule)
    begun = time.monotonic()
    # Not Rich's own time left: it forgets what ended more than 30 s ago, and a run takes longer.
    counts = TextColumn("{task.fields[done]}/{task.fields[runs]} {task.fields[rest]}")
    with Progress(TextColumn("runs"), BarColumn(), counts, console=Console()) as bar:
        task = bar.add_task("", total=progress.total, done=progress.done, runs=len(schedule.runs), rest="")
        for run, record in run_sweep(schedule.left, out, folder=folder, **settings):
            progress.add(run, record)
            if record is not None:
                bar.console.print(describe_record(record), markup=False, highlight=False, soft_wrap=True)
            left = progress.seconds_left(time.monotonic() - begun)
            rest = "" if left is None else f"some {duration(left)} left"
            bar.update(task, total=progress.total, completed=progress.completed, done=progress.done, rest=rest)
    show_elsewhere(progress, out)


def show_elsewhere(progress: "Progress", out: Path) -> None:
    """Print how many runs other processes made, and how many they are still at."""
    from evenly.paper import is_recorded

    ended = sum(is_recorded(out / f"{run.name}.json") for run in progress.elsewhere)
    if ended:
        print(f"{ended} runs were made by another process meanwhile")
    if len(progress.elsewhere) > ended:
        print(f"{len(progress.elsewhere) - ended} runs are with another process")


def read(places: Sequence[Path] | None) -> list[dict[str, Any]]:
    """Read the records that a command was given, or those of `evenly paper run` without --out."""
    from evenly.paper import read_records

    if not places and not RUNS.exists():
        hint = "run `evenly paper run` first, or name folders or files of records"
        raise TableError(f"no RECORDS, and no folder {RUNS} here", "expected one of them", hint)
    with printed_warnings():
        return read_records(*(places or [RUNS]))


@paper.command()
def pack(
    places: Annotated[list[Path], typer.Argument(help="Folders or files of records.")],
    out: Annotated[Path, typer.Option(help="The file to write: a record a line.")] = Path("paper_runs.jsonl"),
) -> None:
    """Put records into one compact file; of a run that failed and was finished later, the finished one.

    Example: evenly paper pack runs --out paper_runs.jsonl
    """
    from evenly.paper import pack_records

    with printed_warnings():
        records = pack_records(out, *places)
    failed = sum("failed" in record for record in records)
    print(f"{len(records)} records in {out}" + (f", {failed} of them of runs that failed" if failed else ""))


@paper.command()
def tables(
    places: Records = None,
    missing: Annotated[list[int] | None, typer.Option(help="Percentages hidden; default all there are.")] = None,
    protocol: Annotated[str, typer.Option(help="honest, as-published or both.")] = "honest",
    form: Annotated[str, typer.Option("--format", help="terminal, markdown, csv or latex.")] = "terminal",
    agreement: Annotated[bool, typer.Option("--agreement", help="Compare with the published tables.")] = False,
    out: Annotated[Path | None, typer.Option(help="The file to write; default print.")] = None,
) -> None:
    """Print the paper's tables from records, or how far they agree with the published ones.

    Example: evenly paper tables runs --missing 20 --protocol both --format markdown
    """
    from evenly._support import write_text
    from evenly.metrics import PROTOCOLS
    from evenly.paper import FORMATS, render_tables

    choice([protocol], (*PROTOCOLS, "both"), "protocol")
    choice([form], FORMATS, "format")
    chosen = PROTOCOLS if protocol == "both" else (protocol,)
    text = render_tables(read(places), missing=missing, protocols=chosen, form=form, agree=agreement)
    if out is None:
        print(text, end="")
        return
    with writing(out, "file"):
        write_text(out, text)
    print(out)


@paper.command()
def figures(
    places: Records = None,
    out: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("paper_figures"),
) -> None:
    """Draw the paper's figures from records.

    Example: evenly paper figures runs --out figures
    """
    require("matplotlib.figure", "tool")
    from evenly.paper import draw_figures

    records = read(places)
    with writing(out, "folder"):
        written = draw_figures(records, out)
    for path in written:
        print(path)
