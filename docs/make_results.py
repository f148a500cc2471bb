"""Write the tables of `docs/results/paper.md` and its pictures from the recorded runs beside it.

Run: python docs/make_results.py. Text stays; what stands between `<!-- NAME -->` and `<!-- end -->` is replaced. What
there are no records for is untested, and says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenly._support import TableError, write_bytes, write_text
from evenly.paper import claims, figures, measures
from evenly.paper.agreement import agreement, cause_of, comparable, is_usual, number
from evenly.paper.datasets import NAMES
from evenly.paper.grid import FOUR, Plan, design_runs
from evenly.paper.records import read_records
from evenly.paper.schedule import cover

RESULTS = Path(__file__).parent / "results"
RUNS = RESULTS / "paper_runs.jsonl"
PAGE = RESULTS / "paper.md"
UNTESTED = "Untested: there are no records of such runs yet."
Record = Mapping[str, Any]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; without rows, that it is untested."""
    if not rows:
        return UNTESTED
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def claim_table(records: Sequence[Record]) -> str:
    """Each claim of the paper: whether it holds, and the evidence."""
    checked = claims.check_claims(records)
    rows = [[one.claim.text, f"{one.claim.first} / {one.claim.second}", one.verdict, one.evidence] for one in checked]
    counts = Counter(one.verdict for one in checked)
    held, failed, untested = (counts[verdict] for verdict in ("holds", "does not hold", "untested"))
    said = f"Of the {len(checked)} claims, {held} hold, {failed} do not hold, and {untested} are untested."
    return table(["claim", "methods", "verdict", "ratio [interval]"], rows) + f"\n\n{said}"


def answer(records: Sequence[Record]) -> str:
    """Which claims hold, which do not, and which are untested."""
    checked = claims.check_claims(records)
    if all(one.verdict == "untested" for one in checked):
        return UNTESTED
    heads = {"holds": "Holds", "does not hold": "Does not hold", "untested": "Untested, or the runs cannot tell"}
    lines = []
    for verdict, head in heads.items():
        texts = [one.claim.text for one in checked if one.verdict == verdict]
        if texts:
            lines.append(f"- **{head}** ({len(texts)} of {len(checked)}): {'; '.join(texts)}.")
    return "\n".join(lines)


def coverage(records: Sequence[Record]) -> str:
    """What is done of the design at the paper's epochs, and what is not."""
    rows = []
    for one in cover(design_runs(Plan(NAMES)), records):
        counts = [str(n) for n in (one.done, one.shorter, one.left)]
        known = one.shorter + one.left - one.unknown
        hours = f"{one.seconds / 3600:.1f}" if known and not one.unknown else "unknown" if one.unknown else "0"
        rows.append([one.dataset, one.model, str(one.epochs), *counts, hours])
    header = ["data set", "model", "the paper's epochs", "done", "with fewer epochs", "not made", "hours to make"]
    return table(header, rows)


def methods(records: Sequence[Record]) -> str:
    """The honest error under each of the four methods, and the ratios to std-none with intervals."""
    shown = measures.those(comparable(records), percent=measures.PERCENT)
    blocks = figures.ratios_by_block(shown)
    rows = []
    for dataset in measures.values_of(shown, "dataset"):
        for model in measures.values_of(shown, "model"):
            own = measures.those(shown, dataset=dataset, model=model)
            cells = [measures.those(own, method=method) for method in FOUR]
            if any(cells):
                errors = [
                    float(np.mean([measures.bounded_error(one) for one in some])) if some else None for some in cells
                ]
                most = max(map(len, cells))
                ratio = blocks.get((dataset, model), {}).get("lip-gamma")
                interval = f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else "untested"
                rows.append([dataset, model, str(most), *map(number, errors), interval])
    return table(["data set", "model", "runs", *FOUR, "lip-gamma / std-none"], rows)


BALANCE: dict[str, Callable[[Record], float]] = {
    "Equation 4": claims.equation_4,
    "Equation 5": claims.equation_5,
    "50 % of the gain": claims.half_gains,
    "90 % of the gain": claims.most_gains,
}


def balance(records: Sequence[Record]) -> str:
    """How much columns differ while they learn, under each of the four methods: medians over runs."""
    shown = measures.those(comparable(records), percent=measures.PERCENT)
    rows = []
    for dataset in measures.values_of(shown, "dataset"):
        for model in measures.values_of(shown, "model"):
            for name, measure in BALANCE.items():
                own = measures.those(shown, dataset=dataset, model=model)
                found = [[measure(one) for one in measures.those(own, method=method)] for method in FOUR]
                if any(found):
                    cells = [f"{np.nanmedian(some):.2f}" if np.isfinite(some).any() else "–" for some in found]
                    rows.append([dataset, model, name, *cells])
    return table(["data set", "model", "spread between columns", *FOUR], rows)


def steadiness(records: Sequence[Record]) -> str:
    """How many runs had a loss or a parameter that was not finite, and cells farther off than their column's range."""
    shown = [one for one in records if is_usual(one)]
    rows = []
    for model in measures.values_of(shown, "model"):
        for method in measures.values_of(shown, "method"):
            own = measures.those(shown, model=model, method=method)
            done = [one for one in own if "failed" not in one]
            if own:
                stopped = sum(one["not_finite"] > 0 for one in done)
                far = [sum(one["far_off"]) for one in done]
                cells = [str(len(own)), str(len(own) - len(done)), str(stopped), f"{np.mean(far or [0]):.1f}"]
                rows.append([model, method, *cells])
    header = ["model", "method", "runs", "failed", "not finite at some time", "cells far off, mean of a run"]
    return table(header, rows)


def published(records: Sequence[Record]) -> str:
    """How many cells agree with the published ones, and the causes of the others."""
    try:
        found = agreement([one for one in records if is_usual(one)])
    except TableError:
        return UNTESTED
    agreeing = sum(one.agrees for one in found.sound)
    causes = Counter(cause_of(one) for one in found.sound if not one.agrees)
    text = f"{agreeing} of {len(found.sound)} cells agree (within two published standard deviations, or 10 %); "
    text += f"{found.absent} more are untested."
    return "\n".join([text, "", *(f"- {n} that do not agree: {cause}" for cause, n in causes.most_common())]).rstrip()


def pictures(records: Sequence[Record]) -> dict[str, Any]:
    """Return the page's pictures by name; None without records for one."""
    done = comparable(records)
    adult = measures.those(done, dataset="adult")
    return {
        "marginals_adult": figures.marginals(adult, dataset="adult") if adult else None,
        "ratios": figures.ratios([one for one in records if is_usual(one)]),
        "balance_adult": figures.balance(adult, dataset="adult", model="vae") if adult else None,
    }


def _picture(name: str, caption: str) -> Callable[[Sequence[Record]], str]:
    def make(records: Sequence[Record]) -> str:
        there = (RESULTS / "pictures" / f"{name}.png").exists() and records
        return f"![{caption}](pictures/{name}.png)" if there else UNTESTED

    return make


SECTIONS: dict[str, Callable[[Sequence[Record]], str]] = {
    "answer": answer,
    "claims": claim_table,
    "figures": _picture("marginals_adult", "Histograms of adult: the data, and what the VAE draws under each method"),
    "methods": methods,
    "ratios": _picture("ratios", "Errors relative to those under std-none, with intervals"),
    "balance": balance,
    "steadiness": steadiness,
    "agreement": published,
    "coverage": coverage,
}


def fill(text: str, sections: Mapping[str, str]) -> str:
    """Return a page with what stands between its marks replaced."""
    for name, made in sections.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"the page has no place for {name!r}")
        text = pattern.sub(lambda found, made=made: f"{found[1]}\n{made.strip()}\n\n{found[2]}", text)  # type: ignore[misc]  # a default is no annotation
    return text


def read() -> list[dict[str, Any]]:
    """Return the recorded runs, if there are any."""
    return read_records(RUNS) if RUNS.exists() else []


def page(text: str, records: Sequence[Record]) -> str:
    """Return the page with its tables made again."""
    return fill(text, {name: make(records) for name, make in SECTIONS.items()})


def main() -> None:
    """Write the page and draw the pictures."""
    records = read()
    for name, figure in pictures(records).items():
        path = RESULTS / "pictures" / f"{name}.png"
        if figure is not None:
            write_bytes(path, figures.to_png(figure))
        else:
            path.unlink(missing_ok=True)
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), records))


if __name__ == "__main__":
    main()
