"""The work of `evenly impute`: read a table, learn from it, fill it, and write whatever was asked for."""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evenly._support import InterruptedWarning, Stages, TableError, announce, finishing, showing
from evenly.cli.checks import check_cells, check_deltas, check_out, check_place
from evenly.cli.options import is_large, read_opened, title_of
from evenly.cli.printing import print_json, printed_warnings, say, say_files, writing
from evenly.cli.results import fit_imputer, plan_imputation, show_trial, write_imputed_page

COMPLETE = (
    "Nothing to fill: no cell in a column of numbers or classes is missing, and the table is written as it is. "
    "If a value such as -999 means missing, give it with --missing."
)


class TableFile(NamedTuple):
    """The table to fill, and how to read it."""

    table: str
    form: str | None
    sheet: str | None
    max_expansion: float

    @property
    def dataset(self) -> str | None:
        """The table's name if it is Parquet files to be read piece by piece."""
        from evenly.io import is_dataset

        return self.table if self.form is None and is_dataset(self.table) else None

    @contextmanager
    def as_files(self, target: "Target") -> Iterator[str | None]:
        """Give Parquet files to read piece by piece; text is converted to one for the time being, if it is large.

        None is a table to be read as a whole.
        """
        if (
            self.dataset is not None
            or target.needs_memory
            or not is_large(self.table, self.form, target.out, target.form)
        ):
            yield self.dataset
            return
        from evenly.io import as_parquet

        with as_parquet(self.table, form=self.form, max_expansion=self.max_expansion) as path:
            yield str(path)

    def open(self, files: str | None, seed: int) -> Any:
        """Read the table, or a sample of the rows of its files, and open it for all steps."""
        if files is None:
            return read_opened(*self)
        from evenly.io import open_parquet
        from evenly.tables import open_table

        return open_table(open_parquet(files).sample(seed), keep=True)


@dataclass(frozen=True)
class Target:
    """Where the results go, and what is printed."""

    out: str
    form: str | None
    save: str | None
    report: Path | None
    samples: int
    prints: bool
    as_json: bool

    @property
    def needs_memory(self) -> bool:
        """Whether the table must be in memory, however large."""
        return self.samples > 0 or self.report is not None

    @property
    def needs_model(self) -> bool:
        """Whether a model is needed even if no cell is missing."""
        return self.save is not None or self.needs_memory

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

    def say(self, trial: Any, *, complete: bool = True) -> None:
        """Print where the results are; if not all is complete, only the table and the imputer are there."""
        report, sampled = (self.report, self.sampled) if complete else (None, [])
        if self.as_json and self.out != "-":
            print_json({"out": self.out, "samples": sampled, "trial": trial and trial.to_plain()})
        elif self.prints:
            say_files(("Complete table", self.out), ("Imputer", self.save), ("Report", report))
            say_files(*(("Sampled table", name) for name in sampled))


@dataclass(frozen=True)
class Imputation:
    """What fills the table: an imputer with these parameters, or a saved one."""

    params: dict[str, Any]
    """Of the imputer."""
    declared: dict[str, Any]
    """Those that say what columns are."""
    epochs: Any
    share: float
    load: str | None
    chosen: dict[str, Any] = field(default_factory=dict)
    """Parameters for filling only, which a saved imputer takes, too."""
    deltas: dict[str, Any] = field(default_factory=dict)

    @property
    def training(self) -> dict[str, Any]:
        """The settings of training."""
        return {"epochs": self.epochs}

    def load_imputer(self) -> Any:
        """Read a saved imputer, of which nothing more is known, and choose how it fills cells."""
        if self.load is None:
            return None
        from evenly.evaluation import Assessment
        from evenly.imputation import Imputer

        return Assessment(Imputer.load(self.load).set_params(verbose=self.params["verbose"], **self.chosen))

    def check(self, opened: Any, saved: Any) -> bool:
        """Refuse a table with nothing to learn from, and shifts of cells that it does not have.

        Returns whether some cell of a modelled column is missing.
        """
        declared = self.declared if saved is None else {"schema": saved.imputer.schema_}
        gaps = check_cells(opened, declared)
        check_deltas(opened, declared, self.deltas)
        return gaps

    def plan(self, opened: Any, files: str | None, target: Target) -> Stages:
        """Plan the stages of learning, filling and writing."""
        from evenly.io import open_parquet

        return plan_imputation(
            {**self.params, **self.declared},
            self.training,
            opened,
            share=self.share,
            balance=False,
            files=files,
            n_rows=opened.n_rows if files is None else open_parquet(files).n_rows,
            samples=target.samples,
            report=target.report is not None,
            loaded=self.load is not None,
        )

    def run(self, source: TableFile, target: Target) -> None:
        """Fill the table, and write and print whatever was asked for."""
        seed, title = self.params["random_state"], title_of(source.table)
        with printed_warnings(), showing(self.params["verbose"]), ExitStack() as stack:
            announce(f"reading {title}")
            files = stack.enter_context(source.as_files(target))
            saved, opened = self.load_imputer(), source.open(files, seed)
            gaps = self.check(opened, saved)
            if not (gaps or files or saved or target.needs_model):
                copy_table(opened, target)
                return
            stages = self.plan(opened, files, target)
            asked = {"share": self.share, "files": files, "on_trial": show_trial if target.prints else None}
            with stages.at("_fitting"):
                found = saved or fit_imputer({**self.params, **self.declared}, self.training, opened, **asked)
            with finishing("the table is filled and written first"):
                full = self.fill(found.imputer, opened if files is None else files, target, stages)
            about = {"title": title, "seed": seed}
            complete = self.write_others(found, opened, full, target, stages, about)
        target.say(found.trial, complete=complete)

    def fill(self, imputer: Any, table: Any, target: Target, stages: Stages) -> Any:
        """Write the complete table and the imputer; returns the table unless it is read piece by piece."""
        from evenly.io import write_table

        full = None
        with stages.at("_filling"):
            if isinstance(table, str):
                imputer.transform_file(table, target.out, form=target.form, delta=self.deltas)
            else:
                full = imputer.transform(table, delta=self.deltas)
        with stages.at("writing the table"):
            if full is not None:
                write_table(full, target.out, form=target.form)
        if target.save is not None:
            with writing(target.save, "folder"):
                imputer.save(target.save)
        return full

    def write_others(
        self, found: Any, opened: Any, full: Any, target: Target, stages: Stages, about: dict[str, Any]
    ) -> bool:
        """Write the report and sampled tables; returns whether all are written, despite Ctrl-C."""
        from evenly.io import write_table

        try:
            with stages.at("writing the report"):
                write_imputed_page(target.report, opened, full, found, deltas=self.deltas, **about)
            with stages.at("_sampling"):
                tables = found.imputer.sample(opened, target.samples, delta=self.deltas) if target.samples else ()
            for name, one in zip(target.sampled, tables, strict=True):
                write_table(one, name, form=target.form)
        except KeyboardInterrupt:
            message = "interrupted: the complete table is written, but not all else that was asked for"
            warnings.warn(message, InterruptedWarning, stacklevel=2)
            return False
        return True


def copy_table(opened: Any, target: Target) -> None:
    """Write a table without missing cells as it is, and say so; nothing is learned from it."""
    from evenly.io import write_table

    write_table(opened.native, target.out, form=target.form)
    if target.prints:
        say(COMPLETE)
    target.say(None)
