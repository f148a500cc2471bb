"""The paper's tables from records of runs, and how far they agree with the published ones.

Records are summarized to cells, cells are laid out in grids, and a grid is written as plain text, Markdown or LaTeX;
CSV has one row a cell.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from evenly._support import TableError
from evenly.metrics import PROTOCOLS, mean_errors
from evenly.scaling import METHODS
from evenly.schema import Column

Record = Mapping[str, Any]
Key = tuple[str, str, str, str]

KINDS = ("discrete", "continuous", "all")
MEAN_OR_MODE = "mean-or-mode"
"""The row of the simple imputation: the mean of numbers, the most frequent class."""
ORDER_OF_MODELS = ("mixture", "factorization", "vae")
FORMATS = ("terminal", "markdown", "csv", "latex")
FLAWED = ("adult", "credit", "letter")
"""Data sets with columns of more than two classes: the published code cannot learn these without a trick."""
STDS, SHARE = 2.0, 0.1
"""A cell agrees within so many published standard deviations, or within this share of the published mean."""
NONE = "–"
ROUNDING = 1e-9
"""Decimal numbers at the very edge still agree: 0.11 is within 10 % of 0.1."""
TITLES = {
    "honest": "honest protocol",
    "as-published": "as-published protocol, for comparing with the paper's tables only",
}
EXPLAINED = {
    "honest": "Error rate of classes, root mean square error / range of numbers, each column on its own hidden cells.",
    "as-published": "With two flaws of the paper's evaluation: where a column is split into features, its codes are "
    "scored as numbers, and it and those after it mostly on cells that the model saw: no imputation errors there.",
}
FLAWED_NOTE = (
    "Published *-none cells on adult, credit and letter: the published code is flawed there, plain categorical columns "
    "cannot learn in it; ours can."
)


@dataclass(frozen=True)
class Cell:
    """A cell of a table: the mean over runs of the mean error of a kind's columns."""

    dataset: str
    model: str
    method: str
    kind: str
    mean: float
    std: float | None
    """Over the runs, with n - 1; None for a single one."""
    n: int

    @property
    def key(self) -> Key:
        """What names the cell within a table."""
        return self.dataset, self.model, self.method, self.kind


@dataclass(frozen=True)
class Published:
    """A cell as the paper prints it; the mean may be infinite, and then has no standard deviation."""

    mean: float
    std: float | None


@cache
def published_cells() -> dict[int, dict[Key, Published]]:
    """Return the paper's three tables, by percentage.

    Examples
    --------
    >>> published_cells()[20]["breast", "vae", "std-none", "discrete"]
    Published(mean=0.183, std=0.004)
    """
    source = resources.files("evenly") / "data" / "paper_tables.csv"
    tables: dict[int, dict[Key, Published]] = {}
    for row in csv.DictReader(source.read_text(encoding="utf-8").splitlines()):
        cell = Published(float(row["mean"]), float(row["std"]) if row["std"] else None)
        table = tables.setdefault(int(row["missing_percent"]), {})
        table[row["dataset"], row["model"], row["method"], row["kind"]] = cell
    return tables


# --- from records to cells ----------------------------------------------------------------------------------------


def percents(records: Sequence[Record], wanted: Sequence[int] | None = None) -> list[int]:
    """Return the percentages of finished runs, or those wanted among them."""
    there = sorted({int(one["run"]["percent"]) for one in records if "failed" not in one})
    if not there:
        got = f"{len(records)} records of runs that failed" if records else "no records"
        raise TableError(got, "expected some of finished runs", "run `evenly paper run` first")
    for percent in wanted or ():
        if percent not in there:
            raise TableError(f"no finished run with {percent} % hidden", f"expected {' or '.join(map(str, there))}")
    return list(dict.fromkeys(wanted or there))


def summarize(records: Sequence[Record], percent: int, protocol: str) -> list[Cell]:
    """Return the cells of a table: means and standard deviations over masks and seeds.

    Runs of a data set and a model are compared at equal epochs: those of the longest trainings count. Failed runs are
    left out. The honest table also has cells of the method `mean-or-mode`, over the masks of the same runs.

    Examples
    --------
    >>> run = {"dataset": "wine", "percent": 20, "model": "vae", "method": "std-none", "seed": 0, "epochs": 9}
    >>> record = {"run": run | {"mask": 1}, "kinds": ["real", "binary"], "as_published": [0.2, None]}
    >>> summarize([record, record | {"run": run | {"mask": 2}, "as_published": [0.4, None]}], 20, "as-published")[0]
    Cell(dataset='wine', model='vae', method='std-none', kind='continuous', mean=0.3..., std=0.1414..., n=2)
    >>> summarize([], 20, "honest")
    []
    """
    if protocol not in PROTOCOLS:
        raise TableError(f"protocol {protocol!r}", f"expected one of {', '.join(PROTOCOLS)}")
    errors: dict[Key, list[float]] = {}
    simple: dict[tuple[str, str, int], dict[str, float]] = {}
    for record in _longest(records, percent):
        run = record["run"]
        block = run["dataset"], run["model"]
        for kind, error in _means(record, protocol.replace("-", "_")).items():
            errors.setdefault((*block, run["method"], kind), []).append(error)
        if protocol == "honest" and (*block, run["mask"]) not in simple:  # the same in all runs with this mask
            simple[*block, run["mask"]] = _means(record, "mean_or_mode")
    for (dataset, model, _), means in simple.items():
        for kind, error in means.items():
            errors.setdefault((dataset, model, MEAN_OR_MODE, kind), []).append(error)
    cells = [
        Cell(*key, statistics.fmean(some), statistics.stdev(some) if len(some) > 1 else None, len(some))
        for key, some in errors.items()
    ]
    return sorted(cells, key=lambda cell: _place(cell.key))


def _longest(records: Sequence[Record], percent: int) -> list[Record]:
    """Return the finished runs with that percentage, of each data set and model those with the most epochs."""
    finished = [one for one in records if "failed" not in one and one["run"]["percent"] == percent]
    most: dict[tuple[str, str], int] = {}
    for run in (one["run"] for one in finished):
        block = run["dataset"], run["model"]
        most[block] = max(most.get(block, 0), run["epochs"])
    return [one for one in finished if one["run"]["epochs"] == most[one["run"]["dataset"], one["run"]["model"]]]


def _means(record: Record, key: str) -> dict[str, float]:
    """Return a record's mean error by kind of the paper's tables; null is a column without a scored cell."""
    try:
        columns = [Column(name=str(j), kind=kind) for j, kind in enumerate(record["kinds"])]
        return mean_errors(columns, np.array(record[key], np.float64))
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(
            f"a record of {record['run']} without proper {key!r}", "expected one error a column"
        ) from error


def _place(key: Key) -> tuple[Any, ...]:
    """Where a cell stands: data sets as in the paper, then others; methods and models in their order."""
    datasets = list(dict.fromkeys(dataset for table in published_cells().values() for dataset, *_ in table))
    orders = datasets, ORDER_OF_MODELS, (*METHODS, MEAN_OR_MODE), KINDS
    dataset, model, method, kind = (
        (order.index(part) if part in order else len(order), part) for part, order in zip(key, orders, strict=True)
    )
    return dataset, method, kind, model


def best(cells: Iterable[Cell]) -> set[Key]:
    """Return the cells with the least error of their data set, model and kind, as printed; no cell is best alone."""
    blocks: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        blocks.setdefault((cell.dataset, cell.model, cell.kind), []).append(cell)
    found = set()
    for block in blocks.values():
        least = min(block, key=lambda cell: cell.mean)
        if len(block) > 1:
            found |= {cell.key for cell in block if number(cell.mean) == number(least.mean)}
    return found


# --- grids --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """A table to be printed, of texts."""

    title: str
    header: list[str]
    rows: list[list[str]]
    over: list[tuple[str, int]] = field(default_factory=list)
    """Headings above the header, each with the number of columns it spans."""
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of what is marked."""
    starts: frozenset[int] = frozenset()
    """Rows that begin a block."""
    notes: list[str] = field(default_factory=list)


def number(value: float | None) -> str:
    """Return an error as printed, with three decimals as in the paper.

    Examples
    --------
    >>> number(0.0456), number(2.5e6), number(float("inf")), number(None)
    ('0.046', '2.5e+06', 'inf', '–')
    """
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.3f}" if abs(value) < 1000 or math.isinf(value) else f"{value:.3g}"


def _mean_and_std(cell: Cell | Published | None) -> str:
    if cell is None:
        return NONE
    return number(cell.mean) + ("" if cell.std is None else f" ({number(cell.std)})")


def in_stds(cell: Cell | None, published: Published | None) -> float | None:
    """Return ours - published in published standard deviations; None where that has no meaning."""
    if cell is None or published is None or not published.std or math.isinf(published.mean):
        return None
    return (cell.mean - published.mean) / published.std


def _signed(value: float | None, decimals: int) -> str:
    if value is None:
        return NONE
    return f"{value:+.{decimals}f}" if abs(value) < 1000 else f"{value:+.2g}"


def tabulate(records: Sequence[Record], percent: int, protocol: str) -> Grid:
    """Lay out one of the paper's tables: rows are methods within data sets, columns are models within kinds.

    The as-published one has three rows a method: ours, the published cells, and the difference in units of the
    published standard deviation.
    """
    cells = {cell.key: cell for cell in summarize(records, percent, protocol)}
    if not cells:
        percents(records, [percent])
        raise TableError("records without a scored cell", "expected errors of hidden cells")
    theirs = _published_beside(cells, percent) if protocol == "as-published" else {}
    marked = best(cells.values())
    most = max(cell.n for cell in cells.values())
    columns = list(dict.fromkeys((kind, model) for _, model, _, kind in sorted(cells, key=_by_column)))
    labels = ["data set", "method", *([""] if theirs else [])]
    rows: list[list[str]] = []
    bold, starts = set(), set()
    last = None
    for dataset, method in dict.fromkeys((key[0], key[2]) for key in sorted({*cells, *theirs}, key=_place)):
        keys = [(dataset, model, method, kind) for kind, model in columns]
        found = [cells.get(key) for key in keys]
        if dataset != last:
            starts.add(len(rows))
        bold |= {(len(rows), len(labels) + j) for j, key in enumerate(keys) if key in marked}
        shown = [_mean_and_std(cell) + (f" [{cell.n}]" if cell is not None and cell.n < most else "") for cell in found]
        head = [dataset if dataset != last else "", method]
        rows.append([*head, *(["ours"] if theirs else []), *shown])
        if any(key in theirs for key in keys):
            beside = [theirs.get(key) for key in keys]
            apart = [_signed(in_stds(ours, other), 1) for ours, other in zip(found, beside, strict=True)]
            rows += [["", "", "published", *map(_mean_and_std, beside)], ["", "", "difference", *apart]]
        last = dataset
    over = [("", len(labels))] + [(kind, n) for kind, n in Counter(kind for kind, _ in columns).items()]
    return Grid(
        f"Imputation error, {percent} % hidden: {TITLES[protocol]}",
        [*labels, *(model for _, model in columns)],
        rows,
        over,
        frozenset(bold),
        frozenset(starts),
        _notes(records, percent, protocol, most, {key[0] for key in theirs}),
    )


def _by_column(key: Key) -> tuple[Any, ...]:
    return _place(key)[2:]


def _published_beside(cells: Mapping[Key, Cell], percent: int) -> dict[Key, Published]:
    """Return the published cells of the data sets and the models that we have."""
    datasets, models = {key[0] for key in cells}, {key[1] for key in cells}
    table = published_cells().get(percent, {})
    return {key: cell for key, cell in table.items() if key[0] in datasets and key[1] in models}


def _notes(records: Sequence[Record], percent: int, protocol: str, most: int, beside: set[str]) -> list[str]:
    over = "One run a cell." if most == 1 else f"Mean (standard deviation) over {most} runs, or fewer: [n]."
    notes = [EXPLAINED[protocol], f"{over} Marked: the least error of a data set, model and kind."]
    if protocol == "honest":
        notes.append(f"{MEAN_OR_MODE}: the mean of numbers, the most frequent class, of the visible cells; no model.")
    if beside:
        notes.append(
            f"difference: ours - published, in published standard deviations; {NONE} where that is 0.000 or a cell is "
            "inf or missing."
        )
    if beside & {*FLAWED}:
        notes.append(FLAWED_NOTE)
    return notes + _run_notes(records, [percent])


def _run_notes(records: Sequence[Record], chosen: Sequence[int]) -> list[str]:
    """Say how long was trained, and what was left out."""
    of_table = [one for one in records if one["run"]["percent"] in chosen]
    failed = Counter("{dataset} {model} {method}".format(**one["run"]) for one in of_table if "failed" in one)
    counted = [one for percent in chosen for one in _longest(records, percent)]
    epochs: dict[str, set[int]] = {}
    for run in (one["run"] for one in counted):
        epochs.setdefault(run["dataset"], set()).add(run["epochs"])
    said = ", ".join(f"{name} {' or '.join(map(str, sorted(some)))}" for name, some in sorted(epochs.items()))
    notes = [f"Epochs: {said}."]
    shorter = len(of_table) - failed.total() - len(counted)
    if shorter:
        notes.append(f"Left out, runs of fewer epochs: {shorter}.")
    if failed:
        listed = ", ".join(f"{name} ({n})" for name, n in failed.items())
        notes.append(f"Left out, runs that failed: {listed}.")
    return notes


# --- agreement ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """One of our as-published cells and the published one."""

    percent: int
    ours: Cell
    published: Published

    @property
    def difference(self) -> float:
        """Ours - published."""
        return self.ours.mean - self.published.mean

    @property
    def within_share(self) -> bool:
        """Whether the difference is small beside the published mean."""
        return math.isfinite(self.difference) and abs(self.difference) <= SHARE * self.published.mean + ROUNDING

    @property
    def within_stds(self) -> bool:
        """Whether the difference is small beside the published standard deviation."""
        return math.isfinite(self.difference) and abs(self.difference) <= STDS * (self.published.std or 0.0) + ROUNDING

    @property
    def agrees(self) -> bool:
        """Whether the cells agree by one of the two."""
        return self.within_stds or self.within_share

    @property
    def says_little(self) -> bool:
        """Whether the cells agree only because two published standard deviations reach from the mean to 0."""
        return self.agrees and not self.within_share and STDS * (self.published.std or 0.0) >= self.published.mean


@dataclass(frozen=True)
class Agreement:
    """How our as-published cells compare with the published ones."""

    sound: list[Comparison]
    """Where the published code is sound: these count."""
    flawed: list[Comparison]
    """Where it is flawed: these do not."""
    infinite: list[Comparison]
    """Sound, but published as `inf`: these do not count either."""
    absent: int
    """Sound, finite published cells without a run of ours."""

    def counts(self, group: Callable[[Comparison], str]) -> dict[str, tuple[int, int]]:
        """Return, by group, how many cells agree and how many there are."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.sound:
            agreeing, n = found.get(group(one), (0, 0))
            found[group(one)] = agreeing + one.agrees, n + 1
        return found


def is_sound(dataset: str, method: str) -> bool:
    """Whether the published code could learn every column of a data set under a method."""
    return dataset not in FLAWED or not method.endswith("-none")


def agreement(records: Sequence[Record], wanted: Sequence[int] | None = None) -> Agreement:
    """Compare our as-published cells with the published ones, where there are both."""
    sound: list[Comparison] = []
    flawed: list[Comparison] = []
    infinite: list[Comparison] = []
    absent = 0
    for percent in percents(records, wanted):
        cells = {cell.key: cell for cell in summarize(records, percent, "as-published")}
        table = published_cells().get(percent, {})
        for key in sorted(table, key=_place):
            counts = is_sound(key[0], key[2])
            finite = math.isfinite(table[key].mean)
            if key in cells:
                group = flawed if not counts else sound if finite else infinite
                group.append(Comparison(percent, cells[key], table[key]))
            else:
                absent += counts and finite
    if not (sound or flawed or infinite):
        names = ", ".join(sorted({key[0] for table in published_cells().values() for key in table}))
        raise TableError("no run of a published cell", f"expected records of {names} with 10, 20 or 50 % hidden")
    return Agreement(sound, flawed, infinite, absent)


def tabulate_agreement(records: Sequence[Record], wanted: Sequence[int] | None = None) -> list[Grid]:
    """Lay out the agreement: counts, the cells that do not agree, and those that do not count."""
    found = agreement(records, wanted)
    groups: dict[str, Callable[[Comparison], str]] = {
        "all": lambda one: "",
        "hidden": lambda one: f"{one.percent} %",
        "data set and model": lambda one: f"{one.ours.dataset} {one.ours.model}",
        "method": lambda one: one.ours.method,
        "kind": lambda one: one.ours.kind,
    }
    rows: list[list[str]] = []
    starts = set()
    for name, group in groups.items():
        starts.add(len(rows))
        for which, (agreeing, n) in found.counts(group).items():
            rows.append([name, which, str(agreeing), str(n), f"{100 * agreeing / n:.0f} %"])
    apart = [one for one in found.sound if not one.agrees]
    close = sum(one.within_share for one in found.sound)
    little = sum(one.says_little for one in found.sound)
    notes = [
        f"A cell agrees within {STDS:.0f} published standard deviations or within {100 * SHARE:.0f} % of the published "
        "mean.",
        f"{close} of {len(found.sound)} agree within {100 * SHARE:.0f} %; {little} agree only because "
        f"{STDS:.0f} published standard deviations are as large as the published mean, or larger.",
        f"Cells not counted: published as inf, {len(found.infinite)}; without a run of ours, {found.absent}; where the "
        f"published code is flawed, {len(found.flawed)}.",
        *_run_notes(records, percents(records, wanted)),
    ]
    header = ["by", "", "agree", "of", "share"]
    title = "Cells of the as-published protocol that agree with the paper's tables, where the published code is sound"
    return [
        Grid(title, header, rows, starts=frozenset(starts), notes=notes),
        _listing("Cells that do not agree", apart),
        _listing("Published as inf, not counted", found.infinite),
        _listing("Published code flawed there (*-none on adult, credit, letter), not counted", found.flawed),
    ]


def _listing(title: str, compared: Sequence[Comparison]) -> Grid:
    header = ["hidden", "data set", "model", "method", "kind", "ours", "runs", "published", "difference", "in std"]
    rows = [
        [
            f"{one.percent} %",
            *(one.ours.dataset, one.ours.model, one.ours.method, one.ours.kind),
            *(_mean_and_std(one.ours), str(one.ours.n), _mean_and_std(one.published)),
            _signed(one.difference if math.isfinite(one.difference) else None, 3),
            _signed(in_stds(one.ours, one.published), 1),
        ]
        for one in compared
    ]
    return Grid(title, header, rows, notes=[] if rows else ["None."])


# --- formats ------------------------------------------------------------------------------------------------------


def to_terminal(grid: Grid) -> str:
    """Write a grid as plain text; `*` marks the best."""
    rows = [
        [text + "*" if (i, j) in grid.best else text for j, text in enumerate(row)] for i, row in enumerate(grid.rows)
    ]
    lines = [grid.title, ""]
    if rows:
        widths = [max(map(len, column)) for column in zip(grid.header, *rows, strict=True)]

        def line(texts: Sequence[str]) -> str:
            return "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip()

        if grid.over:
            lines.append(line([text for name, n in grid.over for text in (name, *[""] * (n - 1))]))
        lines += [line(grid.header), "-" * (sum(widths) + 2 * len(widths) - 2)]
        for i, row in enumerate(rows):
            lines += ([""] if i in grid.starts and i else []) + [line(row)]
        lines.append("")
    return "\n".join([*lines, *grid.notes]).rstrip() + "\n"


def to_markdown(grid: Grid) -> str:
    """Write a grid as Markdown; the best is bold."""

    def line(texts: Iterable[str]) -> str:
        return "| " + " | ".join(texts) + " |"

    lines = [f"**{_markdown(grid.title)}**", ""]
    if grid.rows:
        kinds = [name for name, n in grid.over for _ in range(n)] or [""] * len(grid.header)
        lines.append(line(_markdown(f"{kind} {text}".strip()) for kind, text in zip(kinds, grid.header, strict=True)))
        lines.append(line("---" for _ in grid.header))
        for i, row in enumerate(grid.rows):
            texts = [_markdown(text) for text in row]
            lines.append(line(f"**{text}**" if (i, j) in grid.best else text for j, text in enumerate(texts)))
        lines.append("")
    return "\n".join([*lines, *(f"- {_markdown(note)}" for note in grid.notes)]).rstrip() + "\n"


def _markdown(text: str) -> str:
    return "".join("\\" + one if one in "\\|*_`<" else one for one in " ".join(text.split()))


LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    NONE: "--",
    **{one: "\\" + one for one in "%_&#${}"},
}


def _latex(text: str) -> str:
    if text == "inf":
        return r"$\infty$"
    return "".join(LATEX.get(one, one) for one in text)


def to_latex(grid: Grid) -> str:
    """Write a grid as a LaTeX table for the package booktabs; the best is bold."""
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_latex(grid.title)}}}"]
    if grid.rows:
        lines += [rf"\begin{{tabular}}{{{'l' * len(grid.header)}}}", r"\toprule"]
        if grid.over:
            lines.append(" & ".join(rf"\multicolumn{{{n}}}{{l}}{{{_latex(name)}}}" for name, n in grid.over) + r" \\")
        lines += [" & ".join(map(_latex, grid.header)) + r" \\", r"\midrule"]
        for i, row in enumerate(grid.rows):
            texts = [_latex(text) for text in row]
            bold = (rf"\textbf{{{text}}}" if (i, j) in grid.best else text for j, text in enumerate(texts))
            lines += ([r"\midrule"] if i in grid.starts and i else []) + [" & ".join(bold) + r" \\"]
        lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\small {_latex(note)}" for note in grid.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


CELL_COLUMNS = ("missing_percent", "dataset", "method", "model", "kind", "protocol", "mean", "std", "n", "best")
PUBLISHED_COLUMNS = ("published_mean", "published_std", "difference_in_std")


def to_csv(records: Sequence[Record], chosen: Sequence[int], protocols: Sequence[str]) -> str:
    """Write one row a cell, as-published ones with the published cell; empty where there is none, `*` for the best."""
    rows: list[Sequence[Any]] = [(*CELL_COLUMNS, *PUBLISHED_COLUMNS)]
    for percent in percents(records, chosen):
        for protocol in protocols:
            cells = {cell.key: cell for cell in summarize(records, percent, protocol)}
            theirs = _published_beside(cells, percent) if protocol == "as-published" else {}
            marked = best(cells.values())
            for key in sorted({*cells, *theirs}, key=_place):
                dataset, model, method, kind = key
                ours, other = cells.get(key), theirs.get(key)
                mine = (ours.mean, ours.std, ours.n) if ours else (None, None, 0)
                named = (percent, dataset, method, model, kind, protocol)
                beside = (other.mean, other.std) if other else (None, None)
                rows.append((*named, *mine, "*" if key in marked else "", *beside, in_stds(ours, other)))
    return _csv(rows)


def agreement_to_csv(records: Sequence[Record], chosen: Sequence[int] | None = None) -> str:
    """Write one row a compared cell: `agrees` is yes or no, or why it does not count."""
    found = agreement(records, chosen)
    header = ("missing_percent", "dataset", "method", "model", "kind", "mean", "std", "n", *PUBLISHED_COLUMNS, "agrees")
    rows: list[Sequence[Any]] = [header]
    for compared, why in (
        (found.sound, ""),
        (found.infinite, "published inf"),
        (found.flawed, "published code flawed"),
    ):
        for one in compared:
            ours, other = one.ours, one.published
            numbers = (ours.mean, ours.std, ours.n, other.mean, other.std, in_stds(ours, other))
            agrees = why or ("yes" if one.agrees else "no")
            rows.append((one.percent, ours.dataset, ours.method, ours.model, ours.kind, *numbers, agrees))
    return _csv(rows)


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([f"{one:.6g}" if isinstance(one, float) else one for one in row] for row in rows)
    return text.getvalue()


def render(
    records: Sequence[Record],
    *,
    missing: Sequence[int] | None = None,
    protocols: Sequence[str] = ("honest",),
    form: str = "terminal",
    agree: bool = False,
) -> str:
    """Return the paper's tables, or with `agree` their agreement with the published ones, in one of the formats.

    Parameters
    ----------
    missing : sequence of int, optional
        Percentages hidden; by default all there are.
    """
    chosen = percents(records, missing)
    if form not in FORMATS:
        raise TableError(f"format {form!r}", f"expected one of {', '.join(FORMATS)}")
    if form == "csv":
        return agreement_to_csv(records, chosen) if agree else to_csv(records, chosen, protocols)
    if agree:
        grids = tabulate_agreement(records, chosen)
    else:
        grids = [tabulate(records, percent, protocol) for percent in chosen for protocol in protocols]
    write = {"terminal": to_terminal, "markdown": to_markdown, "latex": to_latex}[form]
    return "\n".join(map(write, grids))
