"""Write the tables of `docs/multiple_imputation.md` from the records of `benchmarks/pooling.py` and `correlations.py`.

Run: python docs/make_pooling.py. What stands between `<!-- NAME -->` and `<!-- end -->` is replaced, the rest stays.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from make_results import fill, table

from evenly._support import write_text

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import correlations as kept
from pooling import MECHANISMS, TERMS, read, summarize

PAGE = Path(__file__).parent / "multiple_imputation.md"
RECORDS = Path(__file__).parent / "results" / "pooling.jsonl"
CORRELATIONS = RECORDS.with_name("correlations.jsonl")
Record = Mapping[str, Any]
LABELS = {
    "complete": "the complete data",
    "complete cases": "complete cases only",
    "evenly": "`Imputer()`",
    "evenly-quick": '`Imputer(effort="quick")`',
    "evenly-quick-fixed": "the same without drawn parameters",
    "iterative": "scikit-learn's `IterativeImputer`",
    "miceforest": "miceforest",
}
WAYS = {
    ("pairs", "gaps"): "nothing imputed, pairs of visible cells",
    ("mean-or-mode", "points"): "means and modes",
    ("miceforest", "draws"): "miceforest, draws",
    ("miceforest", "points"): "miceforest, predictions",
    ("evenly", "draws"): "`Imputer()`, draws",
    ("evenly", "points"): "`Imputer()`, point estimates",
}
HIDDEN = {"mcar": "at random", "mar": "by w"}


def coverage(found: Sequence[Record]) -> str:
    """Return the table of coverage, widths and biases."""
    lines = []
    for one in found:
        worst = max(range(len(TERMS)), key=lambda i, bias=one["bias"]: abs(bias[i]))  # type: ignore[misc]  # a default
        lines.append(
            [
                HIDDEN[one["mechanism"]],
                LABELS[one["method"]],
                str(one["repetitions"]),
                f"{100 * one['covered']:.1f} ± {100 * one['sure']:.1f} %",
                f"{one['width']:.2f}",
                f"{one['bias'][worst]:+.2f} ({TERMS[worst]})",
                f"{one['correlations']:.3f}",
                f"{one['cpu_seconds']:.1f}",
            ]
        )
    header = [
        "hidden",
        "analysis of",
        "tables",
        "covered",
        "width",
        "largest bias",
        "correlations off by",
        "CPU seconds",
    ]
    return table(header, lines)


def correlations_table(found: Sequence[Record]) -> str:
    """Return how far correlations are off, with the slope in brackets, for each way to impute and data set."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    masks: dict[str, Sequence[int]] = {}
    for one in found:
        text = f"{one['off']:.3f} ({one['slope']:.2f})"
        cells.setdefault((one["method"], one["way"]), {})[one["dataset"]] = text
        masks[one["dataset"]] = one["masks"]
    datasets = [name for name in kept.DATASETS if name in cells.get(("evenly", "draws"), {})]
    lines = [[label, *(cells[way].get(name, "–") for name in datasets)] for way, label in WAYS.items() if way in cells]
    of = {name: f"mask{'s' * (len(masks[name]) > 1)} {', '.join(map(str, masks[name]))}" for name in datasets}
    header = [f"{name} ({of[name]})" for name in datasets]
    return table(["imputed", *header], lines)


def page(text: str, found: Sequence[Record]) -> str:
    """Return the page with its table made again."""
    ordered = sorted(found, key=lambda one: (MECHANISMS.index(one["mechanism"]), list(LABELS).index(one["method"])))
    return fill(text, {"coverage": coverage(ordered)})


def main() -> None:
    """Write the page."""
    text = page(PAGE.read_text(encoding="utf-8"), summarize(read(RECORDS)))
    write_text(PAGE, fill(text, {"correlations": correlations_table(kept.means(kept.read(CORRELATIONS)))}))


if __name__ == "__main__":
    main()
