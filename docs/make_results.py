"""Write the tables of `docs/results/paper.md` and its pictures from the recorded runs beside it.

Run: python docs/make_results.py. Text stays; what stands between `<!-- NAME -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenly.files import write_bytes, write_text
from evenly.paper import figures, measures, tables
from evenly.paper.agreement import comparable
from evenly.paper.sweep import read_records

RESULTS = Path(__file__).parent / "results"
RUNS = RESULTS / "paper_runs.jsonl"
PAGE = RESULTS / "paper.md"
Record = Mapping[str, Any]


def what_was_run(records: Sequence[Record]) -> str:
    """Count the runs: data set, share of hidden cells, model, methods, masks, epochs, time."""
    lines = [
        "| data set | hidden | model | methods | masks | epochs | minutes |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for dataset in measures.values_of(records, "dataset"):
        for percent in measures.values_of(records, "percent"):
            for model in measures.values_of(records, "model"):
                some = measures.those(records, dataset=dataset, percent=percent, model=model)
                if some:
                    methods = ", ".join(measures.values_of(some, "method"))
                    masks = ", ".join(map(str, measures.values_of(some, "mask")))
                    epochs = ", ".join(map(str, measures.values_of(some, "epochs")))
                    minutes = sum(sum(record["seconds"].values()) for record in some) / 60
                    lines.append(
                        f"| {dataset} | {percent} % | {model} | {methods} | {masks} | {epochs} | {minutes:.0f} |"
                    )
    return "\n".join(lines)


def honest(records: Sequence[Record]) -> str:
    """The honest table at 20 %."""
    return tables.to_markdown(tables.tabulate(records, 20, "honest"))


def as_published(records: Sequence[Record]) -> str:
    """The as-published table at 20 %, beside the paper's."""
    return tables.to_markdown(tables.tabulate(records, 20, "as-published"))


def agreement(records: Sequence[Record]) -> str:
    """How many cells agree with the paper's, and which do not."""
    return "\n\n".join(tables.to_markdown(grid) for grid in tables.tabulate_agreement(records))


def _by_method(records: Sequence[Record], cell: Any) -> str:
    """A table with a line for each data set and model, a column for each method."""
    methods = measures.values_of(records, "method")
    lines = [f"| data set | model | {' | '.join(methods)} |", "| --- | --- |" + " --- |" * len(methods)]
    for dataset in measures.values_of(records, "dataset"):
        for model in measures.values_of(records, "model"):
            own = measures.those(records, dataset=dataset, model=model)
            groups = [measures.those(own, method=method) for method in methods]
            if own:
                lines.append(f"| {dataset} | {model} | {' | '.join(cell(some) if some else '–' for some in groups)} |")
    return "\n".join(lines)


def overlooked(records: Sequence[Record]) -> str:
    """Columns whose honest error is no better than that of the mean or the mode."""

    def cell(some: Sequence[Record]) -> str:
        error = measures.mean_over_runs([measures.normalized(record) for record in some])
        scored = error[~np.isnan(error)]
        return f"{int((scored >= 1.0).sum())} of {len(scored)}"

    return _by_method(measures.at_one_percent(comparable(records)), cell)


def overlooked_in_adult(records: Sequence[Record]) -> str:
    """The same by name, on adult."""

    def cell(some: Sequence[Record]) -> str:
        error = measures.mean_over_runs([measures.normalized(record) for record in some])
        names = [f"`{name}`" for name, one in zip(some[0]["columns"], error, strict=True) if one >= 1.0]
        return ", ".join(names) or "none"

    return _by_method(measures.those(measures.at_one_percent(comparable(records)), dataset="adult"), cell)


def balance(records: Sequence[Record]) -> str:
    """Spread over columns: of their progress, of the change of their gradients, and of their first gradients."""

    def median(values: Any) -> float:
        values = np.concatenate([measures.variation(one) for one in values])
        finite = values[np.isfinite(values)]
        return float(np.median(finite)) if finite.size else math.nan

    def cell(some: Sequence[Record]) -> str:
        made = median([measures.progress(record)[1:-1] for record in some])
        changed = median([measures.gradient_changes(record) for record in some])
        first = [measures.numbers(record["gradients"])[0] for record in some]
        spread = np.median([one.max() / max(one.min(), 1e-300) for one in first])
        return f"{made:.2f} · {changed:.2f} · {spread:.2g}".replace("nan", "–")  # a training that diverged

    return _by_method(measures.at_one_percent(comparable(records)), cell)


SECTIONS = {
    "what was run": what_was_run,
    "honest": honest,
    "as published": as_published,
    "agreement": agreement,
    "overlooked": overlooked,
    "overlooked in adult": overlooked_in_adult,
    "balance": balance,
}


def fill(text: str, sections: Mapping[str, str]) -> str:
    """Return a page with what stands between its marks replaced."""
    for name, made in sections.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"the page has no place for {name!r}")
        text = pattern.sub(lambda found, made=made: f"{found[1]}\n{made.strip()}\n\n{found[2]}", text)  # type: ignore[misc]  # a default is no annotation
    return text


def page(text: str, records: Sequence[Record]) -> str:
    """Return the page with its tables made again."""
    return fill(text, {name: make(records) for name, make in SECTIONS.items()})


def main() -> None:
    """Write the page and draw the pictures."""
    records = read_records(RUNS)
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), records))
    done = comparable(records)
    drawn = {
        "error_by_model": figures.error_boxes(done),
        "columns_adult": figures.column_bars(done, dataset="adult"),
        "balance_adult_vae": figures.balance(done, dataset="adult", model="vae"),
    }
    for name, figure in drawn.items():
        if figure is not None:
            write_bytes(RESULTS / "pictures" / f"{name}.png", figures.to_png(figure))


if __name__ == "__main__":
    main()
