"""Write the tables of `docs/results/default_method.md` and its picture from the record beside it.

Run: python docs/make_default_method.py. What stands between `<!-- NAME -->` and `<!-- end -->` is replaced. The
record is made by `python benchmarks/default_method.py --data uci/ --out docs/results/default_method.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from make_results import fill
from page_parts import as_png, table

from evenly._support import require, write_bytes, write_text

RESULTS = Path(__file__).parent / "results"
PAGE, RUNS = RESULTS / "default_method.md", RESULTS / "default_method.jsonl"
Record = dict[str, Any]
RIVAL, DRAWN = "one-hot, standardized", "lip-gamma, drawn"
LINEAR = "logistic regression"
COLORS = {LINEAR: "#0072b2", "15 neighbours": "#009e73", "network": "#d55e00"}


def read() -> list[Record]:
    """Return the record, a line for each result."""
    return [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()]


def part(records: Sequence[Record], name: str) -> list[Record]:
    """Return the results of one part of the benchmark."""
    return [one for one in records if one["part"] == name]


def distinct(records: Sequence[Record], what: str) -> list[str]:
    """Return the values of a field in the order in which they come."""
    return list(dict.fromkeys(one[what] for one in records))


def losses(records: Sequence[Record]) -> dict[tuple[str, str, str], float]:
    """Return the log-losses by table, preparation and classifier."""
    return {
        (one["table"], one["preparation"], one["classifier"]): one["log_loss"] for one in part(records, "pipelines")
    }


def ratios(records: Sequence[Record], preparation: str) -> list[float]:
    """Return the log-losses behind a preparation relative to the rival's, for each table and classifier."""
    found = losses(records)
    pairs = [(table, classifier) for table, own, classifier in found if own == preparation]
    return [found[table, preparation, classifier] / found[table, RIVAL, classifier] for table, classifier in pairs]


def answer(records: Sequence[Record]) -> str:
    """Say which method and which noise are the defaults, and what is better in front of a classifier."""
    moved = max(one["moved"] for one in part(records, "pipelines") if one["preparation"] == DRAWN)
    own = [name for name in distinct(part(records, "pipelines"), "preparation") if name != RIVAL]
    every = [ratio for name in own for ratio in ratios(records, name)]
    behind = ratios(records, "lip-gamma, standardized")
    return "\n".join(
        [
            '- **A scaler\'s default is `lip-gamma` with `noise="mean"`**: the features of a row then depend on that '
            "row alone. With "
            f"drawn noise, a classifier's probabilities for a row changed by up to {moved:.2f} when the row was "
            "predicted by itself "
            "instead of within its table.",
            "- **The mixture's default is `lip-none`**: under the Gamma trick, a mixture can split on a yes/no "
            "column and miss the "
            "clusters.",
            "- **In front of a classifier, one-hot encoding and standardizing is the better preparation**: it has "
            "the lower log-loss in "
            f"{sum(ratio > 1.0 for ratio in every)} of {len(every)} comparisons. A `StandardScaler` behind "
            "`lip-gamma` brings the "
            f"median ratio of log-losses from {np.median(ratios(records, 'lip-gamma, mean')):.2f} to "
            f"{np.median(behind):.2f}.",
        ]
    )


def classifiers(records: Sequence[Record]) -> str:
    """A table for each data set: log-losses behind each preparation, and their ratios to the rival's."""
    rows, found = part(records, "pipelines"), losses(records)
    names = distinct(rows, "classifier")
    blocks = []
    for data in distinct(rows, "table"):
        own = [one for one in rows if one["table"] == data]
        lines = []
        for what in distinct(own, "preparation"):
            cells = [
                f"{found[data, what, name]:.3f} ({found[data, what, name] / found[data, RIVAL, name]:.2f})"
                for name in names
            ]
            right = [f"{one['accuracy']:.3f}" for one in own if one["preparation"] == what]
            moved = max(one["moved"] for one in own if one["preparation"] == what)
            lines.append([what, *cells, " / ".join(right), f"{moved:.3f}"])
        header = ["preparation", *names, "accuracy", "row alone"]
        blocks.append(f"**{data}**, {own[0]['rows']} rows\n\n{table(header, lines)}")
    return "\n\n".join(blocks)


def findings(records: Sequence[Record]) -> str:
    """Compare mean and drawn noise, and the methods, in front of a linear classifier; and neighbours on heart."""
    found = losses(records)
    tables = distinct(part(records, "pipelines"), "table")

    def lower(first: str, second: str) -> int:
        return sum(found[data, first, LINEAR] <= found[data, second, LINEAR] for data in tables)

    right = {
        one["preparation"]: one["accuracy"]
        for one in part(records, "pipelines")
        if (one["table"], one["classifier"]) == ("heart", "15 neighbours")
    }
    of = f"of {len(tables)} tables"
    return "\n".join(
        [
            "- **Mean noise or noise by content?** In front of a logistic regression, the mean has the lower "
            "log-loss on "
            f"{lower('lip-gamma, mean', 'lip-gamma, by content')} {of}. With neighbours and networks, neither is "
            "better throughout. "
            "Noise adds nothing that the table does not have.",
            "- **Another method?** In front of a logistic regression, `lip-bern` has a lower log-loss than "
            "`lip-gamma` on "
            f"{lower('lip-bern', 'lip-gamma, mean')} {of}. But it leaves counts as they are: on heart, cholesterol "
            "then dominates the "
            f"distances, and neighbours are right in {right['lip-bern']:.2f} of the cases, against "
            f"{right['lip-gamma, mean']:.2f} behind `lip-gamma`. `lip-none` returns the classes of a column as one "
            "column of codes, "
            "which a classifier takes for numbers.",
        ]
    )


def mixture(records: Sequence[Record]) -> str:
    """What became of the true clusters under each method and remedy."""
    rows = part(records, "mixture")
    first = rows[0]["error"]
    lines = []
    for one in rows:
        cells = [f"{mean:.0f} ({std:.0f}), {share:.2f}" for mean, std, share in one["clusters"]]
        lines.append([one["remedy"], *cells, f"{one['error'] / first:.1f}"])
    header = [
        "method or remedy",
        "first cluster",
        "second cluster",
        f"error of the shares, relative to {rows[0]['remedy']}",
    ]
    return table([*header], [["the truth", "120 (12), 0.20", "150 (12), 0.70", ""], *lines])


def models(records: Sequence[Record]) -> str:
    """What the paper's models say of hidden cells, beside the truth and the marginals."""
    lines = []
    for one in part(records, "models"):
        gained = [f" ({share:.0%})" for share in one.get("gained", ())] or ["", ""]
        shares = ", ".join(f"{share:.2f}" for share in one.get("shares", ())) or "–"
        scores = [f"{one['log_loss']:.3f}{gained[0]}", f"{one['error']:.2f}{gained[1]}"]
        lines.append([one["model"], one.get("method", "–"), *scores, shares])
    header = ["model", "method", "log-loss of `smoker`", "error of `pressure`", "shares of smokers in the clusters"]
    return table(header, lines)


def picture(records: Sequence[Record]) -> bytes:
    """Draw the log-loss behind each preparation relative to one-hot encoding and standardizing."""
    rows, found = part(records, "pipelines"), losses(records)
    names = [name for name in distinct(rows, "preparation") if name != RIVAL]
    figure = require("matplotlib.figure", "tool").Figure(figsize=(8.0, 3.6), layout="constrained")
    ax = figure.subplots()
    ax.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    for shift, (classifier, color) in zip((-0.22, 0.0, 0.22), COLORS.items(), strict=True):
        for data, marker in zip(distinct(rows, "table"), "os^D", strict=True):
            own = [found[data, name, classifier] / found[data, RIVAL, classifier] for name in names]
            ax.scatter(own, np.arange(len(names)) + shift, c=color, marker=marker, s=22.0, alpha=0.85)
    for classifier, color in COLORS.items():
        ax.scatter([], [], c=color, marker="o", label=classifier)
    for data, marker in zip(distinct(rows, "table"), "os^D", strict=True):
        ax.scatter([], [], c="0.5", marker=marker, label=data)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(axis="y", color="0.93")
    ax.set_axisbelow(True)
    ax.set_xscale("log")
    ax.set_xticks([1, 2, 5, 10, 50, 200], ["1", "2", "5", "10", "50", "200"])
    ax.set_xlabel("log-loss / that behind one-hot encoding and standardizing")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return as_png(figure)


def page(text: str, records: Sequence[Record]) -> str:
    """Return the page with its tables made from the record."""
    makers = {
        "answer": answer,
        "classifiers": classifiers,
        "findings": findings,
        "mixture": mixture,
        "models": models,
    }
    return fill(text, {name: make(records) for name, make in makers.items()})


def main() -> None:
    """Write the page and draw its picture."""
    records = read()
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), records))
    write_bytes(RESULTS / "pictures" / "default_method.png", picture(records))


if __name__ == "__main__":
    main()
