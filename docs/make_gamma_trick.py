"""Write the tables of `docs/results/gamma_trick.md` and its picture from the record beside it.

Run: python docs/make_gamma_trick.py. What stands between `<!-- NAME -->` and `<!-- end -->` is replaced. The record is
made by `python benchmarks/gamma_trick.py --seed 0 --out docs/results/gamma_trick.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from make_results import fill
from page_parts import as_png, table

from evenly._support import require, write_bytes, write_text

RESULTS = Path(__file__).parent / "results"
PAGE, RUNS = RESULTS / "gamma_trick.md", RESULTS / "gamma_trick.jsonl"
Record = dict[str, Any]
OURS, THEIRS = "#0072b2", "#d55e00"


def read() -> list[Record]:
    """Return the record: a line for each group of distributions and number of draws."""
    return [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()]


def nearest(records: Sequence[Record]) -> dict[str, Record]:
    """Return, for each group, the number of draws whose expected error is nearest to the paper's."""
    groups = {one["group"] for one in records}
    return {
        group: min((one for one in records if one["group"] == group), key=lambda one: abs(one["away"]))
        for group in sorted(groups)
    }


def answer(records: Sequence[Record]) -> str:
    """Say what the paper's two numbers are."""
    near = nearest(records)
    own = " and ".join(f"{one['paper']:.4f} ({group})" for group, one in near.items())
    draws = {one["draws"] for one in near.values()}
    away = " and ".join(f"{abs(one['away']):.1f}" for one in near.values())
    others = min(abs(one["away"]) for one in records if one["draws"] not in draws)
    apart = max(abs(one["matched"] / one["plain"] - 1.0) for one in records)
    return (
        f"The paper reports errors of {own}. They are what the mean of about "
        f"{', '.join(f'{n:,}' for n in sorted(draws))} draws "
        f"is off by anyway: {away} standard deviations from the expected sampling noise, and more than {int(others)} "
        "from that of "
        f"the other numbers of draws. With the gamma or without it, the error is the same to {100.0 * apart:.0f} %."
    )


def errors(records: Sequence[Record]) -> str:
    """The errors with a gamma and without, what sampling noise alone would give, and the paper's number."""
    lines = [
        [
            one["group"],
            f"{one['draws']:,}",
            f"{one['matched']:.5f} ({one['matched_std']:.5f})",
            f"{one['plain']:.5f} ({one['plain_std']:.5f})",
            f"{one['matched'] / one['plain']:.3f}",
            f"{one['expected']:.5f} ({one['deviation']:.5f})",
            f"{one['paper']:.4f} ({one['away']:+.1f})",
        ]
        for one in records
    ]
    header = ["distribution", "draws", "matched gamma", "plain mean", "ratio", "sampling noise", "paper"]
    return table(header, lines)


def fits(records: Sequence[Record]) -> str:
    """Say in how many fits the fitted mean was compared with the sample mean."""
    count = sum(one["fits"] for one in records)
    return (
        f"In all {count:,} fits the mean of the fitted gamma is the sample mean, to a relative difference of less "
        "than 1e-9; the "
        "script stops if it is not. That is how maximum likelihood fits a gamma, whatever the data are."
    )


def picture(records: Sequence[Record]) -> bytes:
    """Draw the errors by the number of draws, with the paper's numbers as lines."""
    figure = require("matplotlib.figure", "tool").Figure(figsize=(8.0, 3.2), layout="constrained")
    for ax, group in zip(figure.subplots(1, 2), nearest(records), strict=True):
        own = [one for one in records if one["group"] == group]
        draws = [one["draws"] for one in own]
        ax.plot(draws, [one["expected"] for one in own], color="0.6", label="expected sampling noise of a mean")
        ax.plot(
            draws, [one["plain"] for one in own], "o", color="k", markersize=9.0, fillstyle="none", label="plain mean"
        )
        ax.plot(draws, [one["matched"] for one in own], "x", color=OURS, markersize=7.0, label="Gamma trick")
        ax.axhline(own[0]["paper"], color=THEIRS, linestyle="--", label="reported in the paper")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("draws")
        ax.set_title(group, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("mean absolute error")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return as_png(figure)


def page(text: str, records: Sequence[Record]) -> str:
    """Return the page with its tables made from the record."""
    return fill(text, {"answer": answer(records), "errors": errors(records), "fits": fits(records)})


def main() -> None:
    """Write the page and draw its picture."""
    records = read()
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), records))
    write_bytes(RESULTS / "pictures" / "gamma_trick.png", picture(records))


if __name__ == "__main__":
    main()
