"""`evenly impute`: fill missing cells, and say how well."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from evenly._support import TableError
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
    auto,
    choice,
    read_opened,
    settings_of,
    title_of,
)
from evenly.cli.printing import print_json, printed_warnings, say_files, writing
from evenly.cli.results import fit_imputer, show_trial, write_imputed_page

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
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fill the missing cells of a table, after estimating the error of each column on held-out cells.

    For the estimate a share of the known cells is hidden, imputed and scored; --share 0 leaves it out.
    A folder of Parquet files, a pattern such as 'data/*.parquet' and a Parquet file of many rows need not fit into
    memory; the estimate is made on a sample of their rows then.

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
    asked = {"share": share, "on_trial": show_trial if prints else None}
    with printed_warnings():
        saved = None if load is None else load_imputer(load)
        opened = read_opened(table, form) if files is None else read_sample(files, seed)
        check_cells(opened, settings if saved is None else {"schema": saved.imputer.schema_}, filled=files is None)
        params["verbose"] = int(not (quiet or as_json))
        found = saved or fit_imputer(params, {"epochs": auto(epochs)}, opened, files=files, **asked)
        write_results(found, opened, files, target, {"title": title_of(table), "seed": seed})
    if as_json and out != "-":
        print_json({"out": out, "samples": target.sampled, "trial": found.trial and found.trial.to_plain()})
    elif prints:
        say_files(("Complete table", out), ("Imputer", save), ("Report", report))
        say_files(*(("Sampled table", name) for name in target.sampled))


def find_dataset(table: str, form: str | None) -> str | None:
    """Return the table's name if it is Parquet files to be read piece by piece."""
    from evenly.io import is_dataset

    return table if form is None and is_dataset(table) else None


def read_sample(files: str, seed: int) -> Any:
    """Read a sample of the rows of Parquet files, and open it for all steps."""
    from evenly.io import open_parquet
    from evenly.tables import open_table

    return open_table(open_parquet(files).sample(seed), keep=True)


def load_imputer(path: str) -> Any:
    """Read a saved imputer, of which nothing more is known."""
    from evenly.evaluation import Assessment
    from evenly.imputation import Imputer

    return Assessment(Imputer.load(path))


def write_results(found: Any, opened: Any, files: str | None, target: Target, about: dict[str, Any]) -> None:
    """Fill the table, and write whatever was asked for."""
    from evenly.io import write_table

    imputer, full = found.imputer, None
    if files is not None:
        imputer.transform_file(files, target.out, form=target.form)
    else:
        full = imputer.transform(opened)
        write_table(full, target.out, form=target.form)
    if target.save is not None:
        with writing(target.save, "folder"):
            imputer.save(target.save)
    write_imputed_page(target.report, opened, full, found, **about)
    sampled = imputer.sample(opened, target.samples) if target.samples else ()
    for name, one in zip(target.sampled, sampled, strict=True):
        write_table(one, name, form=target.form)
