"""Write the section of `docs/results/peers.md` on the protocol with published figures, from the records beside it.

Run: python docs/make_published.py. What stands between `<!-- NAME -->` and `<!-- end -->` is replaced, the rest stays.
`benchmarks/published_protocol.py` makes the records, and has the published figures.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from make_results import fill, table

from evenly._support import write_text

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from published_protocol import PUBLISHED, SEEDS, TABLES, means, read

RESULTS = Path(__file__).parent / "results"
PAGE, RECORDS = RESULTS / "peers.md", RESULTS / "published.jsonl"
Record = dict[str, Any]
LABELS = {
    "knn": "nearest neighbour",
    "miceforest": "miceforest",
    "missforest": "missForest",
    "gain": "GAIN",
    "forestdiffusion": "ForestDiffusion",
    "repaint": "ForestDiffusion, repainted",
    "utrees": "UnmaskingTrees",
    "utrees-later": "UnmaskingTrees, a later version",
}
TITLES = {"red": "red wine", "white": "white wine", "breast": "breast (diagnostic)"}
RUN_HERE = {
    ("mean", "tables"): "mean",
    ("knn", "tables"): "nearest neighbour",
    ("missforest", "tables"): "missForest",
    ("evenly", "means"): "evenly, means",
    ("evenly", "medians"): "evenly, medians",
    ("evenly", "draws"): "evenly, draws",
}
DRAWN = ("miceforest", "forestdiffusion", "repaint", "utrees", "utrees-later")
"""Those whose five tables are draws, as evenly's are."""
SINGLE = ("mean", "knn", "means", "medians")
"""Methods, and ways to impute, that make one table only: its MinMAE is its AvgMAE, and is not compared."""
Scores = Mapping[tuple[str, str, str], tuple[float, float, int]]


def all_seeds(records: Sequence[Record]) -> Scores:
    """Return the scores of what was run on all seeds."""
    return {key: found for key, found in means(records).items() if found[2] == len(SEEDS)}


def answer(found: Scores) -> str:
    """Say how evenly's point estimates compare with the best published figure, and its draws with the best drawn."""
    asked = (
        ("AvgMAE", "medians", 0, tuple(PUBLISHED)),
        ("AvgMAE", "means", 0, tuple(PUBLISHED)),
        ("MinMAE", "draws", 1, tuple(PUBLISHED)),
        ("AvgMAE", "draws", 0, DRAWN),
    )
    lines = []
    for name, way, at, peers in asked:
        parts = []
        for one in TABLES:
            if (one, "evenly", way) in found:
                figures = {peer: PUBLISHED[peer][one][at] for peer in peers}
                best = min(figures, key=figures.__getitem__)
                change = 100.0 * (found[one, "evenly", way][at] / figures[best] - 1.0)
                parts.append(f"{TITLES[one]} {change:+.0f} % ({LABELS[best]})")
        if parts:
            rival = "the best published figure" + (" of drawn tables" if peers == DRAWN else "")
            lines.append(f"- {name} of evenly's {way}, against {rival}: {', '.join(parts)}.")
    return "\n".join(lines) or "No runs yet."


def pair(average: float, least: float, single: bool) -> str:
    """Return AvgMAE / MinMAE."""
    return f"{average:.4f} / {'–' if single else f'{least:.4f}'}"


def figures(found: Scores) -> str:
    """The published figures and, below, those of runs on the same cells."""
    lines = []
    for peer, label in LABELS.items():
        cells = [pair(*PUBLISHED[peer][one], single=peer == "knn") for one in TABLES]
        lines.append([label, "published", *cells])
    for (method, way), label in RUN_HERE.items():
        runs = [found.get((one, method, way)) for one in TABLES]
        if any(runs):
            single = method in SINGLE or way in SINGLE
            lines.append([label, "here", *("–" if run is None else pair(*run[:2], single=single) for run in runs)])
    return table(["imputer", "run", *(TITLES[one] for one in TABLES)], lines)


def page(text: str, records: Sequence[Record]) -> str:
    """Return the page with this section made again."""
    found = all_seeds(records)
    return fill(text, {"published_answer": answer(found), "published": figures(found)})


def main() -> None:
    """Write the page."""
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), read(RECORDS)))


if __name__ == "__main__":
    main()
