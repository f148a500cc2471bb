"""Write the tables of `docs/multiple_imputation.md` from the recorded repetitions of `benchmarks/pooling.py`.

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
from pooling import MECHANISMS, TERMS, read, summarize

PAGE = Path(__file__).parent / "multiple_imputation.md"
RECORDS = Path(__file__).parent / "results" / "pooling.jsonl"
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


def page(text: str, found: Sequence[Record]) -> str:
    """Return the page with its table made again."""
    ordered = sorted(found, key=lambda one: (MECHANISMS.index(one["mechanism"]), list(LABELS).index(one["method"])))
    return fill(text, {"coverage": coverage(ordered)})


def main() -> None:
    """Write the page."""
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), summarize(read(RECORDS))))


if __name__ == "__main__":
    main()
