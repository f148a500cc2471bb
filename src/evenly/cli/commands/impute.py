"""`evenly impute`: fill missing cells, and say how well."""

import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from evenly._support import InterruptedWarning, Stages, TableError, announce, finishing, showing
from evenly.cli.app import app
from evenly.cli.checks import check_cells, check_load, check_models, check_out, check_packages, check_place, check_share
from evenly.cli.options import (
    AsJson,
    Epochs,
    Form,
    Kind,
    Method,
    Missing,
    Model,
    Quiet,
    Report,
    Schema,
    Seed,
    Share,
    Source,
    To,
    Verbose,
    auto,
    choice,
    read_opened,
    settings_of,
    title_of,
    verbosity,
)
from evenly.cli.printing import print_json, printed_warnings, say_files, writing
from evenly.cli.results import fit_imputer, plan_imputation, show_trial, write_page

Out = Annotated[
    str,
    typer.Option("--out", "-o", help="The complete table, of any format; - is standard output.", show_default=False),
]


class Target(NamedTuple):
    """Where the results go."""

    out: str
    form: str | None
    save: str | None
    report: Path | None
    samples: int

    @property
    def sampled(self) -> list[str]:
        """Where sampled tables go: beside the complete one."""
        path = Path(self.out)
        stem, dot, rest = path.name.partition(".")
        return [str(path.with_name(f"{stem}_{i + 1}{dot}{rest}")) for i in range(self.samples)]

    def planned(self, opened: Any, files: str | None) -> dict[str, Any]:
        """Return what is to be written, for the plan of stages."""
        from evenly.io import open_parquet

        n_rows = opened.n_rows if files is None else open_parquet(files).n_rows
        return {"n_rows": n_rows, "samples": self.samples, "report": self.report is not None}

    def say(self, *, complete: bool) -> None:
        """Print where the results are; if not all is complete, only the table and the imputer are there."""
        report, sampled = (self.report, self.sampled) if complete else (None, [])
        say_files(("Complete table", self.out), ("Imputer", self.save), ("Report", report))
        say_files(*(("Sampled table", name) for name in sampled))

    def check(self, *, streamed: bool) -> None:
        """Refuse places that cannot be written to and, for files read piece by piece, what needs the whole table."""
        check_out(self.out, form=self.form)
        check_place(self.save, self.report)
        if self.samples and self.out == "-":
            raise TableError("--samples with -o -", "expected a file", "-o full.csv")
        given = {"--samples": self.samples, "--report": self.report is not None, "-o -": self.out == "-"}
        for name, asked in given.items():
            if streamed and asked:
                got = f"{name} for Parquet files that are read piece by piece"
                raise TableError(got, "expected one table in memory", "leave it out")


@app.command()
def impute(
    table: Source,
    out: Out,
    samples: Annotated[int, typer.Option(min=0, help="Also write so many sampled tables beside it.")] = 0,
    save: Annotated[str | None, typer.Option(help="Save the fitted imputer here.", show_default=False)] = None,
    load: Annotated[str | None, typer.Option(help="Use a saved imputer for new rows.", show_default=False)] = None,
    report: Report = None,
    model: Model = "auto",
    method: Method = "auto",
    estimate: Annotated[str, typer.Option(help="Of numbers: mean, median or mode.")] = "mean",
    epochs: Epochs = None,
    share: Share = 0.1,
    schema: Schema = None,
    kind: Kind = None,
    missing: Missing = None,
    form: Form = None,
    to: To = None,
    seed: Seed = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fill the missing cells of a table, after estimating the error of each column on held-out cells.

    For the estimate a share of the known cells is hidden, imputed and scored; --share 0 leaves it out.
    A folder of Parquet files, a pattern such as 'data/*.parquet' and a Parquet file of many rows need not fit into
    memory; the estimate is made on a sample of their rows then. Once a first training is done, Ctrl-C ends with a
    complete table from what was learned so far.

    Example: evenly impute survey.csv -o full.csv --report report.html
    """
    check_models([model], [method])
    check_packages([model])
    choice([estimate], ("mean", "median", "mode"), "estimate")
    check_share(share)
    files = find_dataset(table, form)
    target = Target(out, to, save, report, samples)
    target.check(streamed=files is not None)
    settings = settings_of(schema, kind, missing)
    fits = (model, method) != ("auto", "auto") or any(one is not None for one in (save, epochs, *settings.values()))
    check_load(load, "imputer", fits)
    prints = not (quiet or as_json or out == "-")
    params = {"model": model, "method": method, "estimate": estimate, "random_state": seed, **settings}
    params["verbose"] = verbosity(prints=not (quiet or as_json), details=verbose)
    training, asked = {"epochs": auto(epochs)}, {"share": share, "balance": report is not None, "files": files}
    with printed_warnings(), showing(params["verbose"]):
        announce(f"reading {title_of(table)}")
        saved = None if load is None else load_imputer(load, params["verbose"])
        opened = read_opened(table, form) if files is None else read_sample(files, seed)
        check_cells(opened, settings if saved is None else {"schema": saved.imputer.schema_}, filled=files is None)
        planned = target.planned(opened, files) | {"loaded": saved is not None}
        stages = plan_imputation(params, training, opened, **asked, **planned)
        with stages.at("_fitting"):
            found = saved or fit_imputer(params, training, opened, **asked, on_trial=show_trial if prints else None)
        complete = write_results(found, opened, files, target, stages, {"title": title_of(table), "seed": seed})
    if as_json and out != "-":
        print_json({"out": out, "samples": target.sampled, "trial": found.trial and found.trial.to_plain()})
    elif prints:
        target.say(complete=complete)


def find_dataset(table: str, form: str | None) -> str | None:
    """Return the table's name if it is Parquet files to be read piece by piece."""
    from evenly.io import is_dataset

    return table if form is None and is_dataset(table) else None


def read_sample(files: str, seed: int) -> Any:
    """Read a sample of the rows of Parquet files, and open it for all steps."""
    from evenly.io import open_parquet
    from evenly.tables import open_table

    return open_table(open_parquet(files).sample(seed), keep=True)


def load_imputer(path: str, verbose: int) -> Any:
    """Read a saved imputer, of which nothing more is known."""
    from evenly.evaluation import Assessment
    from evenly.imputation import Imputer

    return Assessment(Imputer.load(path).set_params(verbose=verbose))


def write_results(
    found: Any, opened: Any, files: str | None, target: Target, stages: Stages, about: dict[str, Any]
) -> bool:
    """Fill the table, and write whatever was asked for; returns whether all of it was, despite Ctrl-C."""
    from evenly.io import write_table

    imputer, full = found.imputer, None
    with finishing("the table is filled and written first"):
        if files is not None:
            with stages.at("_filling"):
                imputer.transform_file(files, target.out, form=target.form)
        else:
            with stages.at("_filling"):
                full = imputer.transform(opened)
            with stages.at("writing the table"):
                write_table(full, target.out, form=target.form)
        if target.save is not None:
            with writing(target.save, "folder"):
                imputer.save(target.save)
    try:
        with stages.at("writing the report"):
            write_page(target.report, opened, filled=full, **vars(found), **about)
        with stages.at("_sampling"):
            sampled = imputer.sample(opened, target.samples) if target.samples else ()
        for name, one in zip(target.sampled, sampled, strict=True):
            write_table(one, name, form=target.form)
    except KeyboardInterrupt:
        message = "interrupted: the complete table is written, but not all else that was asked for"
        warnings.warn(message, InterruptedWarning, stacklevel=2)
        return False
    return True
