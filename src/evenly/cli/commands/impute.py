"""`evenly impute`: fill missing cells, and say how well."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from evenly._support import TableError
from evenly.cli.app import app
from evenly.cli.checks import (
    check_cells,
    check_deltas,
    check_load,
    check_models,
    check_out,
    check_packages,
    check_place,
    check_share,
)
from evenly.cli.options import (
    AsJson,
    Bounds,
    Epochs,
    Expansion,
    Form,
    Kind,
    Likelihoods,
    Method,
    Missing,
    Model,
    Quiet,
    Report,
    Schema,
    Seed,
    Share,
    Sheet,
    Source,
    To,
    auto,
    by_column,
    choice,
    is_large,
    read_deltas,
    read_opened,
    settings_of,
    title_of,
)
from evenly.cli.printing import print_json, printed_warnings, say, say_files, writing
from evenly.cli.results import fit_imputer, show_trial, write_imputed_page

Out = Annotated[
    str,
    typer.Option("--out", "-o", help="The complete table, of any format; - is standard output.", show_default=False),
]

Precision = Annotated[
    str | None,
    typer.Option(
        help="Of numbers: column (38.4 among numbers of one decimal; the default) or full.", show_default=False
    ),
]
COMPLETE = (
    "Nothing to fill: no cell in a column of numbers or classes is missing, and the table is written as it is. "
    "If a value such as -999 means missing, give it with --missing."
)


Predictors = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=COLUMNS", help="Predict a column from some only: income=age,job.", show_default=False),
]
Deltas = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=SHIFT",
        help="Shift imputed numbers (income=-5000), or the log-odds of an imputed class (smokes=yes:0.5).",
        show_default=False,
    ),
]


class Target(NamedTuple):
    """Where the results go."""

    out: str
    form: str | None
    save: str | None
    report: Path | None
    samples: int

    @property
    def asks_for_model(self) -> bool:
        """Whether a model is needed even if no cell is missing."""
        return self.save is not None or self.report is not None or self.samples > 0

    @property
    def sampled(self) -> list[str]:
        """Where sampled tables go: beside the complete one."""
        path = Path(self.out)
        stem, dot, rest = path.name.partition(".")
        return [str(path.with_name(f"{stem}_{i + 1}{dot}{rest}")) for i in range(self.samples)]

    @property
    def files(self) -> list[tuple[str, Any]]:
        """What is written, and where."""
        named = [("Complete table", self.out), ("Imputer", self.save), ("Report", self.report)]
        return [*named, *(("Sampled table", name) for name in self.sampled)]

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
    precision: Precision = None,
    predictors: Predictors = None,
    delta: Deltas = None,
    epochs: Epochs = None,
    share: Share = 0.1,
    schema: Schema = None,
    kind: Kind = None,
    likelihood: Likelihoods = None,
    bounds: Bounds = None,
    missing: Missing = None,
    form: Form = None,
    sheet: Sheet = None,
    max_expansion: Expansion = 200.0,
    to: To = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fill the missing cells of a table, after estimating the error of each column on held-out cells.

    For the estimate a share of the known cells is hidden, imputed and scored; --share 0 leaves it out.
    A folder of Parquet files, a pattern such as 'data/*.parquet', a Parquet file of many rows and a large file of CSV
    or TSV need not fit into memory; the estimate is made on a sample of their rows then.

    Example: evenly impute survey.csv -o full.csv --report report.html
    """
    check_models([model], [method])
    check_packages([model])
    choice([estimate], ("mean", "median", "mode"), "estimate")
    choice([precision or "column"], ("column", "full"), "precision")
    check_share(share)
    files = find_dataset(table, form)
    target = Target(out, to, save, report, samples)
    target.check(streamed=files is not None)
    settings = settings_of(schema, kind, missing, likelihood, bounds)
    settings["predictors"] = read_predictors(predictors)
    deltas = read_deltas(delta)
    fits = (model, method) != ("auto", "auto") or any(one is not None for one in (save, epochs, *settings.values()))
    check_load(load, "imputer", fits)
    prints = not (quiet or as_json or out == "-")
    chosen = {} if precision is None else {"precision": precision}
    params = {"model": model, "method": method, "estimate": estimate, "random_state": seed, **chosen, **settings}
    asked = {"share": share, "on_trial": show_trial if prints else None}
    asks_whole = bool(samples) or report is not None  # which needs the table in memory, however large
    with printed_warnings(), ExitStack() as stack:
        if files is None and not asks_whole and is_large(table, form, out, to):
            files = stack.enter_context(convert(table, form, max_expansion))
        saved = None if load is None else load_imputer(load, chosen)
        opened = read_opened(table, form, sheet, max_expansion) if files is None else read_sample(files, seed)
        gaps = check_table(opened, settings if saved is None else {"schema": saved.imputer.schema_}, deltas)
        if not (gaps or files or saved or target.asks_for_model):
            copy_table(opened, target, prints=prints, as_json=as_json)
            return
        params["verbose"] = int(not (quiet or as_json))
        found = saved or fit_imputer(params, {"epochs": auto(epochs)}, opened, files=files, **asked)
        write_results(found, opened, files, target, deltas, {"title": title_of(table), "seed": seed})
    if as_json and out != "-":
        print_json({"out": out, "samples": target.sampled, "trial": found.trial and found.trial.to_plain()})
    elif prints:
        say_files(*target.files)


def read_predictors(given: list[str] | None) -> dict[str, list[str]] | None:
    """Read `COLUMN=COLUMN,COLUMN`.

    Examples
    --------
    >>> read_predictors(["income=age,job"])
    {'income': ['age', 'job']}
    """
    expected = "COLUMN=COLUMNS, such as --predictors income=age,job"
    named = by_column(given, "--predictors", expected).items()
    return {column: [one for one in text.split(",") if one] for column, text in named} or None


def check_table(opened: Any, settings: dict[str, Any], deltas: dict[str, Any]) -> bool:
    """Refuse a table with nothing to learn from, and shifts of cells that it does not have.

    Returns whether some cell of a modelled column is missing.
    """
    declared = {name: one for name, one in settings.items() if name != "predictors"}
    gaps = check_cells(opened, declared)
    check_deltas(opened, declared, deltas)
    return gaps


def find_dataset(table: str, form: str | None) -> str | None:
    """Return the table's name if it is Parquet files to be read piece by piece."""
    from evenly.io import is_dataset

    return table if form is None and is_dataset(table) else None


@contextmanager
def convert(table: str, form: str | None, max_expansion: float) -> Iterator[str]:
    """Give text that is not read as a whole as a Parquet file, for the time being."""
    from evenly.io import as_parquet

    with as_parquet(table, form=form, max_expansion=max_expansion) as path:
        yield str(path)


def read_sample(files: str, seed: int) -> Any:
    """Read a sample of the rows of Parquet files, and open it for all steps."""
    from evenly.io import open_parquet
    from evenly.tables import open_table

    return open_table(open_parquet(files).sample(seed), keep=True)


def load_imputer(path: str, chosen: dict[str, Any]) -> Any:
    """Read a saved imputer, of which nothing more is known, and choose how it fills cells."""
    from evenly.evaluation import Assessment
    from evenly.imputation import Imputer

    return Assessment(Imputer.load(path).set_params(**chosen))


def copy_table(opened: Any, target: Target, *, prints: bool, as_json: bool) -> None:
    """Write a table without missing cells as it is, and say so; nothing is learned from it."""
    from evenly.io import write_table

    write_table(opened.native, target.out, form=target.form)
    if as_json and target.out != "-":
        print_json({"out": target.out, "samples": [], "trial": None})
    elif prints:
        say(COMPLETE)
        say_files(("Complete table", target.out))


def write_results(
    found: Any, opened: Any, files: str | None, target: Target, deltas: dict[str, Any], about: dict[str, Any]
) -> None:
    """Fill the table, and write whatever was asked for."""
    from evenly.io import write_table

    imputer, full = found.imputer, None
    if files is not None:
        imputer.transform_file(files, target.out, form=target.form, delta=deltas)
    else:
        full = imputer.transform(opened, delta=deltas)
        write_table(full, target.out, form=target.form)
    if target.save is not None:
        with writing(target.save, "folder"):
            imputer.save(target.save)
    write_imputed_page(target.report, opened, full, found, **about)
    sampled = imputer.sample(opened, target.samples, delta=deltas) if target.samples else ()
    for name, one in zip(target.sampled, sampled, strict=True):
        write_table(one, name, form=target.form)
