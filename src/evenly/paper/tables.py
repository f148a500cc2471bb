"""The paper's tables from records of runs, and their agreement with the published ones, as texts.

Cells are laid out in grids, and a grid is written as plain text, Markdown or LaTeX; CSV has one row a cell.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenly._support import TableError
from evenly.paper.agreement import (
    FLAWED,
    MEAN_OR_MODE,
    NONE,
    SHARE,
    STDS,
    Cell,
    Comparison,
    Key,
    Published,
    Record,
    agreement,
    best,
    counted,
    in_stds,
    number,
    percents,
    place_of,
    published_beside,
    summarize,
)

FORMATS = ("terminal", "markdown", "csv", "latex")
TITLES = {
    "honest": "honest protocol",
    "as-published": "as-published protocol, for comparing with the paper's tables only",
}
EXPLAINED = {
    "honest": "Error rate of classes, root mean square error / range of numbers, each column on its own hidden cells.",
    "as-published": "With two flaws of the paper's evaluation: where a column is split into features, its codes are "
    "scored as numbers, and it and those after it mostly on cells that the model saw: no imputation errors there. The "
    "range of adult's capital_gain is that with the marker 99999, as in the paper's data.",
}
FLAWED_NOTE = (
    "Published *-none cells on adult, credit and letter: the published code is flawed there, plain categorical columns "
    "cannot learn in it; ours can."
)


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
    """Rows and columns of the cells to mark."""
    starts: frozenset[int] = frozenset()
    """Rows that begin a block."""
    notes: list[str] = field(default_factory=list)


def _mean_and_std(cell: Cell | Published | None) -> str:
    if cell is None:
        return NONE
    return number(cell.mean) + ("" if cell.std is None else f" ({number(cell.std)})")


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
    theirs = published_beside(cells, percent) if protocol == "as-published" else {}
    marked = best(cells.values())
    most = max(cell.n for cell in cells.values())
    columns = list(dict.fromkeys((kind, model) for _, model, _, kind in sorted(cells, key=_by_column)))
    labels = ["data set", "method", *([""] if theirs else [])]
    rows: list[list[str]] = []
    bold, starts = set(), set()
    last = None
    for dataset, method in dict.fromkeys((key[0], key[2]) for key in sorted({*cells, *theirs}, key=place_of)):
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
    return place_of(key)[2:]


def _notes(records: Sequence[Record], percent: int, protocol: str, most: int, beside: set[str]) -> list[str]:
    over = "One run a cell." if most == 1 else f"Mean (standard deviation) over {most} runs, or fewer: [n]."
    notes = [EXPLAINED[protocol], f"{over} Marked: the least error of a data set, model and kind, at equal epochs."]
    if protocol == "honest":
        notes.append(f"{MEAN_OR_MODE}: the mean of numbers, the most frequent class, of the visible cells; no model.")
    if beside:
        notes.append(
            f"difference: ours - published, in published standard deviations; {NONE} where that is 0.000 or a cell is "
            "inf or missing."
        )
    if beside & {*FLAWED}:
        notes.append(FLAWED_NOTE)
    return notes + _run_notes(records, [percent], protocol)


def _run_notes(records: Sequence[Record], chosen: Sequence[int], protocol: str) -> list[str]:
    """Return notes on how long models were trained, and on which runs are left out."""
    of_table = [one for one in records if one["run"]["percent"] in chosen]
    failed = Counter("{dataset} {model} {method}".format(**one["run"]) for one in of_table if "failed" in one)
    shown = [one for percent in chosen for one in counted(records, percent, protocol)]
    names = {id(one) for one in shown}
    others = [one["run"] for one in of_table if "failed" not in one and id(one) not in names]
    left = Counter("{dataset} {model} of {epochs} epochs".format(**run) for run in others)
    notes = [f"Epochs: {'; '.join(_epochs(shown))}."]
    for what, some in (("of other lengths", left), ("that failed", failed)):
        if some:
            notes.append(f"Left out, runs {what}: {', '.join(f'{name} ({n})' for name, n in some.items())}.")
    return notes


def _epochs(records: Sequence[Record]) -> list[str]:
    """Return how long each data set was trained on, model by model where they differ."""
    found: dict[str, dict[str, set[int]]] = {}
    for run in sorted((one["run"] for one in records), key=lambda run: (run["dataset"], run["epochs"])):
        found.setdefault(run["dataset"], {}).setdefault(run["model"], set()).add(run["epochs"])
    said = []
    for dataset, models in found.items():
        texts = {model: " or ".join(map(str, sorted(some))) for model, some in models.items()}
        same = len(set(texts.values())) == 1
        each = [f"{text} ({model})" for model, text in texts.items()]
        said.append(f"{dataset} {next(iter(texts.values())) if same else ', '.join(each)}")
    return said


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
        *_run_notes(records, percents(records, wanted), "as-published"),
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


NAMED = ("missing_percent", "dataset", "method", "model", "kind")
OURS = ("mean", "std", "n", "epochs")
PUBLISHED_COLUMNS = ("published_mean", "published_std", "difference_in_std")


def to_csv(records: Sequence[Record], chosen: Sequence[int], protocols: Sequence[str]) -> str:
    """Write one row a cell, as-published ones with the published cell; empty where there is none, `*` for the best."""
    rows: list[Sequence[Any]] = [(*NAMED, "protocol", *OURS, "best", *PUBLISHED_COLUMNS)]
    for percent in percents(records, chosen):
        for protocol in protocols:
            cells = {cell.key: cell for cell in summarize(records, percent, protocol)}
            theirs = published_beside(cells, percent) if protocol == "as-published" else {}
            marked = best(cells.values())
            for key in sorted({*cells, *theirs}, key=place_of):
                dataset, model, method, kind = key
                ours, other = cells.get(key), theirs.get(key)
                mine = (ours.mean, ours.std, ours.n, ours.epochs or None) if ours else (None, None, 0, None)
                named = (percent, dataset, method, model, kind, protocol)
                beside = (other.mean, other.std) if other else (None, None)
                rows.append((*named, *mine, "*" if key in marked else "", *beside, in_stds(ours, other)))
    return _csv(rows)


def agreement_to_csv(records: Sequence[Record], chosen: Sequence[int] | None = None) -> str:
    """Write one row a compared cell: `agrees` is yes or no, or why it does not count."""
    found = agreement(records, chosen)
    rows: list[Sequence[Any]] = [(*NAMED, *OURS, *PUBLISHED_COLUMNS, "agrees")]
    for compared, why in (
        (found.sound, ""),
        (found.infinite, "published inf"),
        (found.flawed, "published code flawed"),
    ):
        for one in compared:
            ours, other = one.ours, one.published
            numbers = (ours.mean, ours.std, ours.n, ours.epochs, other.mean, other.std, in_stds(ours, other))
            agrees = why or ("yes" if one.agrees else "no")
            rows.append((one.percent, ours.dataset, ours.method, ours.model, ours.kind, *numbers, agrees))
    return _csv(rows)


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([f"{one:.6g}" if isinstance(one, float) else one for one in row] for row in rows)
    return text.getvalue()


def render_tables(
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
