"""Write the tables of `docs/results/paper_appendix.md` and its pictures from the first recorded runs beside it.

Run: python docs/make_paper_appendix.py. Text stays; what stands between `<!-- NAME -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from make_results import fill

from evenly._support import write_bytes, write_text
from evenly.metrics import GROUPS
from evenly.paper import figures, measures, tables
from evenly.paper.agreement import comparable, number
from evenly.paper.records import read_records

RESULTS = Path(__file__).parent / "results"
RUNS = RESULTS / "paper_runs_first.jsonl"
PAGE = RESULTS / "paper_appendix.md"
Record = Mapping[str, Any]
Measure = Callable[[Sequence[Record]], float]


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
    said: dict[str, set[str]] = {}
    for record in records:
        for text in record["warnings"]:
            said.setdefault(text, set()).add(f"{record['run']['dataset']} under {record['run']['method']}")
    return "\n".join([*lines, "", *(f"- {', '.join(sorted(runs))}: {text}" for text, runs in said.items())])


def honest(records: Sequence[Record]) -> str:
    """The honest table at each share of hidden cells."""
    shares = (20, *(percent for percent in measures.values_of(records, "percent") if percent != 20))
    return "\n\n".join(tables.to_markdown(tables.tabulate(records, share, "honest")) for share in shares)


def ratios(records: Sequence[Record]) -> str:
    """Honest error under lip-gamma divided by that under std-none, run by run with the same mask."""
    done = comparable(records)
    shares = measures.values_of(done, "percent")
    lines = [
        f"| data set | model | {' | '.join(f'{share} %' for share in shares)} |",
        "| --- | --- |" + " --- |" * len(shares),
    ]
    found: list[float] = []
    for dataset in measures.values_of(done, "dataset"):
        for model in measures.values_of(done, "model"):
            cells = []
            for share in shares:
                own = measures.those(done, dataset=dataset, model=model, percent=share)
                std, lip = (
                    {one["run"]["mask"]: measures.mean_error(one) for one in measures.those(own, method=method)}
                    for method in ("std-none", "lip-gamma")
                )
                both = [lip[mask] / std[mask] for mask in std if mask in lip]
                cells.append(f"{statistics.geometric_mean(both):.3f} [{len(both)}]" if both else "–")
                found += [statistics.geometric_mean(both)] if both else []
            lines.append(f"| {dataset} | {model} | {' | '.join(cells)} |")
    less, more = sum(one < 0.99 for one in found), sum(one > 1.01 for one in found)
    text = f"Of {len(found)}, {less} are lower by more than 1 %, {more} are higher by more than 1 %"
    return "\n".join([*lines, "", f"{text}, {len(found) - less - more} are in between."])


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


TIE = 0.01
"""A column whose error is within a hundredth of the mean's or the mode's is about as well off with them."""


def _normalized(some: Sequence[Record]) -> Any:
    return measures.mean_over_runs([measures.normalized(record) for record in some])


def overlooked(records: Sequence[Record]) -> str:
    """Columns whose honest error is no better than that of the mean or the mode; in brackets the ties among them."""

    def cell(some: Sequence[Record]) -> str:
        error = _normalized(some)
        scored = error[~np.isnan(error)]
        ties = int(((scored >= 1.0) & (scored <= 1.0 + TIE)).sum())
        return f"{int((scored >= 1.0).sum())} ({ties}) of {len(scored)}"

    return _by_method(_side_by_side(records), cell)


def _names(columns: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(f"`{name}`" for name in columns[:most])
    return shown + (f" and {len(columns) - most} more" if len(columns) > most else "") or "none"


def overlooked_by_name(records: Sequence[Record]) -> str:
    """Which columns are overlooked under std-none, under lip-gamma, and under both."""
    lines = [
        "| data set | model | under both | under std-none alone | under lip-gamma alone |",
        "| --- | --- | --- | --- | --- |",
    ]
    for dataset, model, std, lip in _pairs(records):
        columns = std[0]["columns"]
        one, other = (
            {name for name, error in zip(columns, _normalized(some), strict=True) if error >= 1.0}
            for some in (std, lip)
        )
        parts = [[name for name in columns if name in some] for some in (one & other, one - other, other - one)]
        lines.append(f"| {dataset} | {model} | {' | '.join(map(_names, parts))} |")
    return "\n".join(lines)


def overlooked_in_adult(records: Sequence[Record]) -> str:
    """The columns of adult that each method overlooks, by name."""

    def cell(some: Sequence[Record]) -> str:
        return _names([name for name, one in zip(some[0]["columns"], _normalized(some), strict=True) if one >= 1.0])

    return _by_method(measures.those(_side_by_side(records), dataset="adult"), cell)


def _side_by_side(records: Sequence[Record]) -> list[Record]:
    return measures.at_one_percent(comparable(records))


def _pairs(records: Sequence[Record]) -> Iterator[tuple[str, str, list[Record], list[Record]]]:
    """The runs of std-none and of lip-gamma, for each data set and model that has both."""
    shown = _side_by_side(records)
    for dataset in measures.values_of(shown, "dataset"):
        for model in measures.values_of(shown, "model"):
            own = measures.those(shown, dataset=dataset, model=model)
            std, lip = (measures.those(own, method=method) for method in ("std-none", "lip-gamma"))
            if std and lip:
                yield dataset, model, std, lip


def _median_spread(values: Iterable[Any]) -> float:
    """The spread over columns, its median over the recorded points."""
    spreads = np.concatenate([measures.variation(one) for one in values])
    finite = spreads[np.isfinite(spreads)]
    return float(np.median(finite)) if finite.size else math.nan


def first_gradients(some: Sequence[Record]) -> float:
    """The largest first gradient of a column, divided by the smallest."""
    first = [measures.numbers(record["gradients"])[0] for record in some]
    return float(np.median([one.max() / max(one.min(), 1e-300) for one in first]))


def gradient_changes(some: Sequence[Record]) -> float:
    """The spread of the change of gradients, relative to the first ones."""
    return _median_spread(measures.gradient_changes(record) for record in some)


def made_progress(some: Sequence[Record]) -> float:
    """The spread of the share of its gain that a column has made."""
    return _median_spread(measures.progress(record)[1:-1] for record in some)


def equation_4(some: Sequence[Record]) -> float:
    """The spread of the gain from point to point in units of the first log-likelihood."""
    return _median_spread(measures.improvements(record) for record in some)


def _gained(some: Sequence[Record]) -> float:
    """The share of columns that gained likelihood since the first recorded point."""
    return float(np.mean([(~np.isnan(measures.progress(record)[-1])).mean() for record in some]))


def _more_even(records: Sequence[Record], what: Mapping[str, Measure]) -> str:
    """Say where lip-gamma is more even than std-none."""
    pairs = list(_pairs(records))
    counts = []
    for name, measure in what.items():
        more = sum(measure(lip) < measure(std) for _, _, std, lip in pairs)
        counts.append(f"{name}: {more} of {len(pairs)}")
    return f"More even under lip-gamma than under std-none: {'; '.join(counts)}."


def balance(records: Sequence[Record]) -> str:
    """Spread of the columns' first gradients, and of the change of their gradients."""

    def cell(some: Sequence[Record]) -> str:
        return f"{first_gradients(some):.2g} · {gradient_changes(some):.2f}"

    counts = _more_even(records, {"first gradients": first_gradients, "change of gradients": gradient_changes})
    return _by_method(_side_by_side(records), cell) + "\n\n" + counts


def progress(records: Sequence[Record]) -> str:
    """Spread of the columns' progress, of how many, and by Equation 4 of the paper."""

    def cell(some: Sequence[Record]) -> str:
        made = f"{made_progress(some):.2f} of {_gained(some):.0%} · {equation_4(some):.2f}"
        return made.replace("nan", "–")  # a training that diverged

    counts = _more_even(records, {"progress": made_progress, "Equation 4": equation_4})
    return _by_method(_side_by_side(records), cell) + "\n\n" + counts


def log_likelihood(records: Sequence[Record]) -> str:
    """Log-likelihood of hidden cells: the mean of discrete columns, the median of continuous ones."""

    def cell(some: Sequence[Record]) -> str:
        found = measures.mean_over_runs([record["log_likelihood"] for record in some])
        discrete = np.array([kind in GROUPS["discrete"] for kind in some[0]["kinds"]])
        parts = (np.mean, found[discrete]), (np.median, found[~discrete])
        return " · ".join(f"{take(own):.2f}" if len(own) else "–" for take, own in parts)

    return _by_method(_side_by_side(records), cell)


def steadiness(records: Sequence[Record]) -> str:
    """Standard deviation of the honest error over masks, where there are three."""

    def cell(some: Sequence[Record]) -> str:
        errors = [measures.mean_error(record) for record in some]
        return f"{number(statistics.stdev(errors))} [{len(errors)}]" if len(errors) > 2 else "–"

    shown = _side_by_side(records)
    enough = [one for one in shown if len(measures.those(shown, **_without(one["run"], "mask", "seed"))) > 2]
    return _by_method(enough, cell)


def _without(run: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in run.items() if key not in keys}


SECTIONS = {
    "what was run": what_was_run,
    "honest": honest,
    "ratios": ratios,
    "as published": as_published,
    "agreement": agreement,
    "overlooked": overlooked,
    "overlooked by name": overlooked_by_name,
    "overlooked in adult": overlooked_in_adult,
    "balance": balance,
    "progress": progress,
    "log-likelihood": log_likelihood,
    "steadiness": steadiness,
}


def page(text: str, records: Sequence[Record]) -> str:
    """Return the page with its tables made again."""
    return fill(text, {name: make(records) for name, make in SECTIONS.items()})


def main() -> None:
    """Write the page and draw the pictures."""
    records = read_records(RUNS, revision=1)
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), records))
    drawn = {
        "error_by_model": figures.error_boxes(records),
        "error_by_percent": figures.error_boxes(records, by="percent"),
        "columns_adult": figures.column_bars(records, dataset="adult"),
        "columns_credit": figures.column_bars(records, dataset="credit"),
        "stars_letter": figures.stars(records, dataset="letter"),
        "balance_adult_vae": figures.balance(records, dataset="adult", model="vae"),
    }
    for name, figure in drawn.items():
        if figure is not None:
            write_bytes(RESULTS / "pictures" / f"{name}.png", figures.to_png(figure))


if __name__ == "__main__":
    main()
