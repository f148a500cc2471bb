"""`evenly impute` and `evenly report`: fill missing cells, and tell how well."""

import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from evenly._support import TableError, require_later
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
    Share,
    Source,
    To,
    check_models,
    check_out,
    check_place,
    check_share,
    choice,
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

Model = Annotated[str, typer.Option(help="masked (auto), vae, mixture or factorization.")]
Method = Annotated[str, typer.Option(help="How columns are scaled; auto goes by the model.")]


def impute(
    table: Source,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="The complete table, of any format; - is standard output.", show_default=False
        ),
    ],
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
    """Fill the missing cells of a table, after an honest estimate of the error of each column.

    For the estimate a share of the known cells is hidden, imputed and scored; --share 0 leaves it out.
    A folder of Parquet files, a pattern such as 'data/*.parquet' and a Parquet file of many rows need not fit into
    memory; the estimate is made on a sample of their rows then.

    Example: evenly impute survey.csv -o full.csv --report report.html
    """
    if model != "marginal":
        require_later("jax", "models")
    from evenly.io import is_dataset, write_table

    check_models([model], [method])
    choice([estimate], ("mean", "median", "mode"), "estimate")
    check_share(share)
    check_out(out, form=to)
    check_place(save, report)
    targets = sample_names(out, samples)
    settings = settings_of(schema, kind, missing)
    fits = (model, method) != ("auto", "auto") or any(one is not None for one in (save, epochs, *settings.values()))
    if load is not None and fits:
        raise TableError("--load and an option of fitting", "expected one of them", "a saved imputer is fitted already")
    spoken = not (quiet or as_json or out == "-")
    files = table if form is None and is_dataset(table) else None
    if files is not None:
        refuse_for_files(samples=samples, report=report, out=out)
    with warnings_told():
        fitted = load_imputer(load) if load is not None else None
        opened = read(table, form) if files is None else read_some(files, seed)
        check_cells(opened, {"schema": fitted.schema_} if fitted else settings, filled=files is None)
        learned = (
            Learned(fitted)
            if fitted
            else learn(
                opened,
                (model, method, estimate, epochs, seed),
                settings,
                share=share,
                spoken=spoken,
                bar=not (quiet or as_json),
                balance=report is not None,
                files=files,
            )
        )
        if files is not None:
            learned.imputer.transform_file(files, out, form=to)
        else:
            full = learned.imputer.transform(opened)
            write_table(full, out, form=to)
        if save is not None:
            with writing(save, "folder"):
                learned.imputer.save(save)
        if report is not None:
            write_page(report, opened, full, learned, seed, title=title_of(table))
        for name, sampled in zip(targets, learned.imputer.sample(opened, samples) if samples else (), strict=True):
            write_table(sampled, name, form=to)
    if as_json and out != "-":
        trial = learned.trial and learned.trial.to_plain()
        print_json({"out": out, "samples": targets, "trial": trial})
    elif spoken:
        for what, where in (("Complete table", out), ("Imputer", save), ("Report", report)):
            if where is not None:
                say(f"{what}: {where}")
        for name in targets:
            say(f"Sampled table: {name}")


def report(
    table: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    model: Model = "auto",
    method: Method = "auto",
    epochs: Epochs = None,
    share: Share = 0.1,
    schema: Schema = None,
    kind: Kind = None,
    missing: Missing = None,
    form: Form = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML file that tells what the table is, who would be overlooked, and how well cells are imputed.

    Example: evenly report survey.csv -o report.html
    """
    require_later("jax", "models")

    check_models([model], [method])
    check_share(share)
    check_place(out)
    settings = settings_of(schema, kind, missing)
    with warnings_told():
        opened = read(table, form)
        check_cells(opened, settings, filled=False)
        choices = (model, method, "mean", epochs, seed)
        spoken = not (quiet or as_json)
        learned = learn(opened, choices, settings, share=share, spoken=spoken, bar=spoken, balance=True)
        write_page(out, opened, learned.imputer.transform(opened), learned, seed, title=title_of(table))
    if as_json:
        trial = learned.trial and learned.trial.to_plain()
        print_json({"out": str(out), "trial": trial, "diagnosis": learned.diagnosis.to_plain()})
    elif not quiet:
        say(f"Report: {out}")


def load_imputer(path: str) -> Any:
    """Read a saved imputer."""
    from evenly.imputation import Imputer

    return Imputer.load(path)


class Learned(NamedTuple):
    """A fitted imputer, its honest error and the table's diagnosis, where they were asked for."""

    imputer: Any
    trial: Any = None
    diagnosis: Any = None


def learn(
    opened: Any,
    choices: tuple[str, str, str, int | None, int],
    settings: dict[str, Any],
    *,
    share: float,
    spoken: bool,
    bar: bool,
    balance: bool,
    files: str | None = None,
    n_networks: Any = "auto",
) -> Learned:
    """Estimate the error of an imputer, diagnose the table if asked to, and fit the imputer to all of it.

    Of Parquet `files`, the table is a sample; the imputer is fitted to the files.
    """
    from evenly.evaluation import diagnose
    from evenly.imputation import Imputer

    model, method, estimate, epochs, seed = choices
    imputer = Imputer(
        model,
        method,
        estimate=estimate,  # type: ignore[arg-type]  # checked before
        epochs="auto" if epochs is None else epochs,
        n_networks=n_networks,
        random_state=seed,
        verbose=int(bar),
        **settings,
    )
    trial = estimate_error(imputer, opened, share, seed, spoken)
    diagnosis = diagnose(opened, random_state=seed, verbose=int(bar), **settings) if balance else None
    return Learned(imputer.fit(opened if files is None else files), trial, diagnosis)


def refuse_for_files(*, samples: int, report: Path | None, out: str) -> None:
    """Refuse what needs the whole table in memory."""
    given = {"--samples": samples, "--report": report is not None, "-o -": out == "-"}
    for name, asked in given.items():
        if asked:
            raise TableError(
                f"{name} for Parquet files that are read piece by piece", "expected one table in memory", "leave it out"
            )


def read_some(files: str, seed: int) -> Any:
    """Read a sample of the rows of Parquet files."""
    from evenly.io import open_parquet

    return open_parquet(files).sample(seed)


def write_page(path: Path, opened: Any, full: Any, learned: Learned, seed: int, *, title: str) -> None:
    """Write the report."""
    from evenly.report import write_report

    with writing(path, "file"):
        write_report(
            path,
            opened,
            filled=full,
            imputer=learned.imputer,
            trial=learned.trial,
            diagnosis=learned.diagnosis,
            title=title,
            command=command_line(),
            seed=seed,
        )


def sample_names(out: str, samples: int) -> list[str]:
    """Return where sampled tables go: beside the complete one."""
    if samples and out == "-":
        raise TableError("--samples with -o -", "expected a file", "-o full.csv")
    path = Path(out)
    stem, dot, rest = path.name.partition(".")
    return [str(path.with_name(f"{stem}_{i + 1}{dot}{rest}")) for i in range(samples)]


def check_cells(opened: Any, settings: dict[str, Any], *, filled: bool = True) -> None:
    """Refuse a table with nothing to learn from, or, where cells are to be `filled`, nothing to fill."""
    from evenly.tables import inspect_table

    columns = [one for one in inspect_table(opened, **settings).columns if one.kind != "ignore"]
    if filled and not any(one.n_missing for one in columns):
        raise TableError(
            "a table without missing cells",
            "expected some to fill",
            "if a value such as -999 means missing, give it with --missing",
        )
    if all(one.missing_share == 1.0 for one in columns):
        raise TableError(
            "a table without a known cell in a column of numbers or classes", "expected some to learn from"
        )


def estimate_error(imputer: Any, opened: Any, share: float, seed: int, spoken: bool) -> Any:
    """Try the imputer on hidden cells, and print the errors; None if that is not wanted or cannot be done."""
    if not share:
        return None
    from evenly.evaluation import try_imputer

    try:
        trial = try_imputer(imputer, opened, share=share, random_state=seed)
    except TableError as error:  # too few cells to hide any: no reason not to fill the others
        print(f"evenly: warning: no error estimate: {error}", file=sys.stderr)
        return None
    if spoken:
        show_trial(trial)
    return trial


def show_trial(trial: Any) -> None:
    """Print the error of each column on hidden cells, beside that of its mean or most frequent class."""
    show_table(
        ("column", "measure", "error", "90 % interval", "mean or mode", "covered"),
        [
            (
                one.column,
                one.measure,
                f"{one.error:.4f}",
                f"{one.low:.3f} to {one.high:.3f}",
                f"{one.baseline:.4f}",
                "" if one.covered is None else f"{one.covered:.0%}",
            )
            for one in trial.columns
        ],
        title=f"Honest error on the {trial.share:.0%} of known cells that were hidden ({trial.model}, {trial.method})",
        right=("error", "90 % interval", "mean or mode", "covered"),
    )
    say(
        f"Mean over columns: {trial.error:.4f}; of the mean or the most frequent class: {trial.baseline:.4f}. "
        "Covered: numbers inside their own 90 % intervals."
    )
