"""`evenly impute`: fill missing cells, and say how well."""

from pathlib import Path
from typing import Annotated, Any

import typer

from evenly._support import TableError
from evenly.cli.app import app
from evenly.cli.checks import (
    check_load,
    check_models,
    check_packages,
    check_rules,
    check_share,
    check_time_limit,
)
from evenly.cli.imputing import Imputation, TableFile, Target
from evenly.cli.options import (
    AsJson,
    Balance,
    Bounds,
    Effort,
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
    TimeLimit,
    To,
    Verbose,
    auto,
    by_column,
    choice,
    read_deltas,
    settings_of,
    verbosity,
)

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
Predictors = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=COLUMNS", help="Predict a column from some only: income=age,job.", show_default=False),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that names persons, whose other rows predict; none: no column.",
        show_default=False,
    ),
]
Deltas = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=SHIFT",
        help="Shift imputed numbers (income=-5000), or the log-odds of an imputed class (smokes=yes:0.5).",
        show_default=False,
    ),
]
CHOICES = {
    "estimate": ("mean", "median", "mode"),
    "precision": ("column", "full"),
    "effort": ("quick", "default", "best"),
}
RuleTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help="What rows obey: 'bmi = weight / height**2', 'start <= end', \"visits only if insured == 'yes'\".",
        show_default=False,
    ),
]
RuleFile = Annotated[
    Path | None, typer.Option("--rules", help="A file of rules, one a line; # begins a remark.", show_default=False)
]


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
    balance: Balance = "auto",
    estimate: Annotated[str, typer.Option(help="Of numbers: mean, median or mode.")] = "mean",
    precision: Precision = None,
    predictors: Predictors = None,
    groups: Groups = None,
    delta: Deltas = None,
    rule: RuleTexts = None,
    rules: RuleFile = None,
    effort: Effort = "default",
    time_limit: TimeLimit = None,
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
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fill the missing cells of a table, after estimating the error of each column on held-out cells.

    For the estimate a share of the known cells is hidden, imputed and scored; --share 0 leaves it out.
    A folder of Parquet files, a pattern such as 'data/*.parquet', a Parquet file of many rows and a large file of CSV
    or TSV need not fit into memory; the estimate is made on a sample of their rows then. Once a first training is done,
    Ctrl-C ends with a complete table from what was learned so far.

    Example: evenly impute survey.csv -o full.csv --report report.html
    """
    check_models([model], [method], rules=[balance])
    check_packages([model])
    check_choices(estimate=estimate, precision=precision or "column", effort=effort)
    check_share(share)
    check_time_limit(time_limit)
    source = TableFile(table, form, sheet, max_expansion)
    target = Target(out, to, save, report, samples, not (quiet or as_json or out == "-"), as_json)
    target.check(streamed=source.dataset is not None)
    declared = settings_of(schema, kind, missing, likelihood, bounds)
    own = {"predictors": read_predictors(predictors), "groups": groups, "time_limit": time_limit}
    check_load(load, "imputer", fits([model, method, balance, effort], save, epochs, *own.values(), *declared.values()))
    chosen = given(precision=precision, rules=read_rules(rules, rule))
    shown = verbosity(prints=not (quiet or as_json), details=verbose)
    params = {"model": model, "method": method, "estimate": estimate, "random_state": seed, "verbose": shown, **chosen}
    params |= {**own, "effort": effort, "balance": balance, "groups": {None: "auto", "none": None}.get(groups, groups)}
    Imputation(params, declared, auto(epochs), share, load, chosen, read_deltas(delta)).run(source, target)


def fits(words: list[str], *others: object) -> bool:
    """Whether an option was given that only a fit can follow."""
    return any(one not in ("auto", "default") for one in words) or any(one is not None for one in others)


def check_choices(**chosen: str) -> None:
    """Refuse what is none of an option's choices."""
    for name, one in chosen.items():
        choice([one], CHOICES[name], name)


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: one for name, one in options.items() if one is not None}


def read_rules(file: Path | None, texts: list[str] | None) -> list[str] | None:
    """Return the rules in a file and those of the command, checked; None without any."""
    lines = [] if file is None else read_lines(file)
    rules = [*(line for line in lines if line and not line.startswith("#")), *(texts or ())]
    check_rules(rules)
    return rules or None


def read_lines(file: Path) -> list[str]:
    """Return the lines of a file of rules."""
    try:
        return [line.strip() for line in file.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise TableError(f"--rules {file}", f"it cannot be read: {why}", "expected a file of text") from None


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
