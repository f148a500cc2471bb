"""`evenly paper`: the paper's experiments."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from evenly._support import TableError, require
from evenly.cli.console import choice, duration, numbers, warnings_told, writing

paper = typer.Typer(help="The paper's experiments: runs, tables, figures.", no_args_is_help=True)

RUNS = Path("paper_runs")
"""Where records are written, and looked for, unless somebody says otherwise."""
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
    plan: Annotated[bool, typer.Option(help="Only print what would run and how long it takes.")] = False,
) -> None:
    """Run the grid; what is finished is never repeated, so that it can be killed and started again.

    Example: evenly paper run --dataset breast --model vae --missing 20 --masks 1-3 --out runs
    """
    if not plan:
        require("jax", "models")
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from evenly.paper import grid
    from evenly.paper.datasets import NAMES, PERCENTS, QUICK, load
    from evenly.paper.records import Run, is_recorded, project, read_records, tell, weigh
    from evenly.scaling import METHODS

    if quick and dataset:
        raise TableError("--quick and --dataset", "expected one of them", "--quick has a data set of its own")
    names = [QUICK] if quick else choice(dataset, NAMES, "data set")
    if not epochs_fraction > 0:
        raise TableError(f"--epochs-fraction {epochs_fraction}", "expected a positive number")
    choice([backend] if backend else None, ["dask", "ray"], "backend")
    runs = grid.plan(
        names,
        percents=choice(missing or ([20] if quick else None), PERCENTS, "percentage"),
        masks=numbers("1" if masks is None else masks, "--masks") if quick or masks is not None else None,
        models=choice(model, tuple(grid.MODELS), "model"),
        methods=choice(method, tuple(METHODS), "method") if method else None,
        seeds=numbers(seeds, "--seeds"),
        epochs_fraction=epochs_fraction * (0.02 if quick else 1.0),
        folder=data,
    )
    if not runs:
        raise TableError(f"no run for {', '.join(method or names)}", "expected a method that applies to the data set")
    places = [*([out] if out.exists() else []), *(known or [])]
    with warnings_told():
        records = read_records(*places)
    finished = {Run(**record["run"]) for record in records if not (retry_failed and "failed" in record)}
    left = [run for run in runs if run not in finished]
    console = Console()
    for record in records:
        if "failed" in record and Run(**record["run"]) in set(runs):
            told = tell(record) + ("; tried again" if retry_failed else "; --retry-failed tries again")
            console.print(told, markup=False, highlight=False, soft_wrap=True)
    quickest, median = project(runs, records), project(runs, records, median=True)
    told = f"{len(runs)} runs take {_time(runs, quickest, median)}, one after the other. "
    told += f"{len(runs) - len(left)} of them are finished"
    if 0 < len(left) < len(runs):
        told += f"; the other {len(left)} take {_time(left, quickest, median)}"
    console.print(f"{told}.")
    if plan:
        return
    from evenly.paper.sweep import sweep

    for name in dict.fromkeys(run.dataset for run in left):
        load(name, data)  # what is not there is said, or downloaded, once and before anything runs
    weights = weigh(median)
    total, completed, done = sum(weights[run] for run in left), 0.0, len(runs) - len(left)
    elsewhere: list[Run] = []
    begun = time.monotonic()
    # Not Rich's own time left: it forgets what ended more than 30 s ago, and a run takes longer.
    counts = TextColumn("{task.fields[done]}/{task.fields[runs]} {task.fields[rest]}")
    with Progress(TextColumn("runs"), BarColumn(), counts, console=console) as bar:
        task = bar.add_task("", total=total, done=done, runs=len(runs), rest="")
        for run, new in sweep(left, out, folder=data, jobs=jobs, backend=backend, retry_failed=retry_failed):
            if new is None:  # not to be waited for, and not done by us: that would make us seem quicker than we are
                elsewhere.append(run)
                total -= weights[run]
            else:
                done += 1
                completed += weights[run]
                bar.console.print(tell(new), markup=False, highlight=False, soft_wrap=True)
            waiting = len(runs) - done - len(elsewhere)
            took = time.monotonic() - begun
            rest = f"some {duration((total / completed - 1.0) * took)} left" if waiting and completed else ""
            bar.update(task, total=total, completed=completed, done=done, rest=rest)
    ended = sum(is_recorded(out / f"{run.name}.json") for run in elsewhere)
    if ended:
        print(f"{ended} runs were made by another process meanwhile")
    if len(elsewhere) > ended:
        print(f"{len(elsewhere) - ended} runs are with another process")
    print(f"records: {out}")


def _read(places: Sequence[Path] | None) -> list[dict[str, Any]]:
    """Read the records that a command was given, or those of `evenly paper run` without --out."""
    from evenly.paper.records import read_records

    if not places and not RUNS.exists():
        hint = "run `evenly paper run` first, or name folders or files of records"
        raise TableError(f"no RECORDS, and no folder {RUNS} here", "expected one of them", hint)
    with warnings_told():
        return read_records(*(places or [RUNS]))


def _time(runs: Sequence[Any], quickest: Mapping[Any, float | None], median: Mapping[Any, float | None]) -> str:
    """Say how long runs take, and how many nobody can tell."""
    least, usual = ([value for run in runs if (value := seconds[run]) is not None] for seconds in (quickest, median))
    unknown = len(runs) - len(least)
    if not least:
        return "an unknown time (no record of such a run)"
    told = f"some {duration(sum(least))} by the quickest recorded times, {duration(sum(usual))} by the median ones"
    return told + (f", and {unknown} of them an unknown time" if unknown else "")


@paper.command()
def pack(
    places: Annotated[list[Path], typer.Argument(help="Folders or files of records.")],
    out: Annotated[Path, typer.Option(help="The file to write: a record a line.")] = Path("paper_runs.jsonl"),
) -> None:
    """Put records into one compact file; of a run that failed and was finished later, the finished one.

    Example: evenly paper pack runs --out paper_runs.jsonl
    """
    from evenly.paper.records import pack

    with warnings_told():
        records = pack(out, *places)
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
    from evenly.paper.tables import FORMATS, render

    choice([protocol], (*PROTOCOLS, "both"), "protocol")
    choice([form], FORMATS, "format")
    chosen = PROTOCOLS if protocol == "both" else (protocol,)
    text = render(_read(places), missing=missing, protocols=chosen, form=form, agree=agreement)
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
    from evenly.paper.figures import draw_all

    records = _read(places)
    with writing(out, "folder"):
        written = draw_all(records, out)
    for path in written:
        print(path)
