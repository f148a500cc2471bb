"""Write the tables of `docs/results/balance.md` and its picture from the recorded runs beside it.

Run: python docs/make_balance.py. What stands between `<!-- NAME -->` and `<!-- end -->` is replaced. What there are no
records for is untested, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from make_results import UNTESTED, fill, table
from page_parts import as_png
from scipy import stats

from evenly._support import require, write_bytes, write_text
from evenly.metrics import GROUPS
from evenly.models import published_epochs
from evenly.paper.agreement import FLAWED, published_cells
from evenly.paper.datasets import N_ROWS
from evenly.paper.originals import ORIGINS, declared_kinds

RESULTS = Path(__file__).parent / "results"
PAGE = RESULTS / "balance.md"
RUNS, OF_HIVAE = RESULTS / "balance_rules.jsonl", RESULTS / "hivae.jsonl"
Record = Mapping[str, Any]
Block = tuple[str, str]
"""A data set and a model: what is compared is run on the same."""

STD, LIPSCHITZ, PLAIN = "std-none", ("lip-none", "lip-gamma"), "none"
OURS = ("lip", "online")
"""Rules that go by smoothness; the others are multitask rules."""
RULES = ("lip", "online", "uncertainty", "priority", "famo", "gradnorm", "mgda", "nash", "pcgrad", "cagrad", "imtl")
MODELS = ("vae", "factorization", "hivae", "masked")
DATASETS = ("adult", "breast", "credit", "letter", "spam", "wine")
BY_RATE = ("none", "lip", "mgda", "nash", "pcgrad", "imtl")
"""Rules without a setting."""
WORTH = 0.01
"""What counts as a difference."""
KINDS = GROUPS["continuous"], GROUPS["discrete"]


class Runs:
    """Records by data set, model, method, rule and mask: those of the longest trainings of a model on a data set."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._by: dict[tuple[str, str, str, str], dict[int, Record]] = {}
        longest: dict[Block, int] = {}
        for one in records:
            block = one["dataset"], one["model"]
            longest[block] = max(one["epochs"], longest.get(block, 0))
        for one in records:
            key = one["dataset"], one["model"], one["method"], one["rule"]
            if one["epochs"] == longest[key[:2]]:
                self._by.setdefault(key, {})[one["mask"]] = one

    @property
    def blocks(self) -> list[Block]:
        """Data sets and models that have runs, in the order of the page."""
        found = {key[:2] for key in self._by}
        return [(dataset, model) for dataset in DATASETS for model in MODELS if (dataset, model) in found]

    def of(self, block: Block, method: str, rule: str) -> dict[int, Record]:
        """Return the records of a cell by mask."""
        return self._by.get((*block, method, rule), {})

    def all_of(self, block: Block) -> list[Record]:
        """Return all records of a data set and a model."""
        return [one for key, masks in self._by.items() if key[:2] == block for one in masks.values()]

    def chosen(self, block: Block, methods: Sequence[str], rules: Sequence[str]) -> dict[int, Record]:
        """Return, for each mask, the run with the least error of validation cells among methods and rules."""
        found: dict[int, Record] = {}
        for method in methods:
            for rule in rules:
                for mask, one in self.of(block, method, rule).items():
                    if mask not in found or validated(one) < validated(found[mask]):
                        found[mask] = one
        return found


def validated(one: Record) -> float:
    """Return the error of validation cells, under the chosen setting."""
    return float(min(one["validation"].values()))


def log_ratios(own: Mapping[int, Record], rival: Mapping[int, Record]) -> dict[int, float]:
    """Return the log of the ratio of errors, by mask."""
    return {mask: float(np.log(own[mask]["ratio"] / rival[mask]["ratio"])) for mask in own.keys() & rival.keys()}


def summary(by_block: Sequence[Mapping[int, float]]) -> str:
    """Return the geometric mean of ratios over blocks, with an interval if there are several masks.

    The interval is Student's over the means of masks that all blocks have; it is about these tables.
    """
    some = [one for one in by_block if one]
    if not some:
        return "untested"
    ratio = np.exp(np.mean([np.mean(list(one.values())) for one in some]))
    common = sorted(set.intersection(*(set(one) for one in some)))
    if len(common) < 2:
        return f"{ratio:.3f}"
    means = np.array([np.mean([one[mask] for one in some]) for mask in common])
    away = stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    low, high = np.exp(means.mean() + np.array([-away, away]))
    return f"{ratio:.3f} [{low:.3f}, {high:.3f}]"


def mean_ratio(by_block: Sequence[Mapping[int, float]]) -> float:
    """Return the geometric mean of ratios over blocks."""
    return float(np.exp(np.mean([np.mean(list(one.values())) for one in by_block if one])))


def multitask(runs: Runs) -> list[str]:
    """Return the multitask rules that were run."""
    return [rule for rule in RULES if rule not in OURS and any(runs.of(b, STD, rule) for b in runs.blocks)]


WAYS: dict[str, Callable[[Runs, Block], dict[int, Record]]] = {
    "Lipschitz standardization alone": lambda runs, block: runs.chosen(block, LIPSCHITZ, [PLAIN]),
    "a multitask rule alone": lambda runs, block: runs.chosen(block, [STD], multitask(runs)),
    "both": lambda runs, block: runs.chosen(block, LIPSCHITZ, multitask(runs)),
}


def gains(runs: Runs) -> dict[str, list[dict[int, float]]]:
    """Return the log-ratios of each way to neither, on the data sets and models where all ways were run."""
    found: dict[str, list[dict[int, float]]] = {way: [] for way in WAYS}
    for block in runs.blocks:
        neither = runs.of(block, STD, PLAIN)
        own = {way: log_ratios(choose(runs, block), neither) for way, choose in WAYS.items()}
        if all(own.values()):
            for way, one in own.items():
                found[way].append(one)
    return found


def verdict(alone: float, rule: float, both: float) -> str:
    """Return the answer, given mean ratios to neither.

    Examples
    --------
    >>> verdict(0.95, 0.96, 0.95)
    'Lipschitz standardization replaces the multitask rules'
    >>> verdict(1.0, 0.999, 0.995), verdict(0.97, 0.97, 0.94)
    ('neither is worth it', 'Lipschitz standardization adds to the multitask rules')
    >>> verdict(0.98, 1.02, 1.0)
    'Lipschitz standardization gains something, and the multitask rules do not'
    >>> verdict(0.99, 0.95, 0.96)
    'Lipschitz standardization does not replace the multitask rules'
    """
    if min(alone, rule, both) > 1.0 - WORTH:
        return "neither is worth it"
    if both < min(alone, rule) * (1.0 - WORTH):
        return "Lipschitz standardization adds to the multitask rules"
    if rule > 1.0 - WORTH:
        return "Lipschitz standardization gains something, and the multitask rules do not"
    if alone <= rule * (1.0 + WORTH):
        return "Lipschitz standardization replaces the multitask rules"
    return "Lipschitz standardization does not replace the multitask rules"


def answer(runs: Runs) -> str:
    """Return the answer, and what it rests on."""
    found = gains(runs)
    n = len(found["both"])
    if not n:
        return UNTESTED
    said = verdict(*map(mean_ratio, found.values()))
    rows = []
    for way, by_block in found.items():
        means = np.exp([np.mean(list(one.values())) for one in by_block])
        better, worse = int((means < 1.0 - WORTH).sum()), int((means > 1.0 + WORTH).sum())
        rows.append([way, summary(by_block), f"{better} of {n}", f"{worse} of {n}"])
    header = ["way", "error relative to neither", f"better by more than {WORTH:.0%}", "worse by more"]
    basis = f"{n} pair{'s' * (n > 1)} of data set and model, in short trainings"
    known = multitask(runs)
    untested = [rule for rule in RULES if rule not in (*OURS, *known)]
    limits = f"Multitask rules that were run: {', '.join(f'`{rule}`' for rule in known)}"
    limits += f"; untested: {', '.join(f'`{rule}`' for rule in untested)}." if untested else "."
    if all(len(one) < 2 for one in found["both"]):
        limits += " There is one mask for each, and so no interval: this is a first indication."
    return "\n\n".join([f"**On the tables that were run, {said}** ({basis}). {limits}", table(header, rows)])


def picture(runs: Runs) -> bytes:
    """Draw the error of each way relative to neither: a dot for each data set and model, a line at their mean."""
    figure = require("matplotlib.figure", "tool").Figure(figsize=(8.0, 2.4), layout="constrained")
    ax = figure.subplots()
    ax.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    found = gains(runs)
    for at, by_block in enumerate(found.values()):
        ratios = np.exp([np.mean(list(one.values())) for one in by_block])
        ax.scatter(ratios, np.full(len(ratios), at), s=36.0, color="#0072b2", alpha=0.6)
        if len(ratios):
            ax.scatter([mean_ratio(by_block)], [at], s=420.0, color="#d55e00", marker="|", linewidth=2.5)
    ax.set_yticks(range(len(found)), list(found))
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.set_xlabel("error / error without either; dots: data sets and models, line: geometric mean")
    ax.spines[["top", "right"]].set_visible(False)
    return as_png(figure)


def by_rule(runs: Runs) -> str:
    """Return each rule's error relative to the plain sum under the same method, and its gain in log-likelihood."""
    rows = []
    for rule in RULES:
        line = [f"`{rule}`"]
        for method in (STD, *LIPSCHITZ):
            pairs = [(runs.of(block, method, rule), runs.of(block, method, PLAIN)) for block in runs.blocks]
            found = [one for one in (log_ratios(*pair) for pair in pairs) if one]
            line.append(f"{summary(found)} ({len(found)})" if found else "untested")
        gained = [
            own[mask]["log_likelihood"] - plain[mask]["log_likelihood"]
            for block in runs.blocks
            for method in (STD, *LIPSCHITZ)
            for own, plain in [(runs.of(block, method, rule), runs.of(block, method, PLAIN))]
            for mask in own.keys() & plain.keys()
        ]
        rows.append([*line, f"{np.median(gained):+.3f}" if gained else "untested"])
    header = [
        "rule",
        *(f"under {method}" for method in (STD, *LIPSCHITZ)),
        "log-likelihood of a hidden cell, nats, median",
    ]
    return table(header, rows)


def by_table(runs: Runs) -> str:
    """Return the error relative to the mean or the mode of each data set and model, and the rule that was chosen."""
    rows = []
    for block in runs.blocks:
        cells = [_error(runs.of(block, method, PLAIN)) for method in (STD, *LIPSCHITZ)]
        for method in ([STD], LIPSCHITZ):
            best = runs.chosen(block, method, multitask(runs))
            names = ", ".join(dict.fromkeys(f"{one['rule']} under {one['method']}" for one in best.values()))
            cells.append(f"{_error(best)} ({names})" if best else "untested")
        rows.append([*block, *cells])
    header = ["data set", "model", *(f"{method}, plain" for method in (STD, *LIPSCHITZ))]
    return table([*header, "std-none, rule of least validation error", "lip-none or lip-gamma, the same"], rows)


def _error(runs: Mapping[int, Record]) -> str:
    return f"{np.mean([one['ratio'] for one in runs.values()]):.3f}" if runs else "untested"


def overlooked(runs: Runs) -> str:
    """Return the columns that are overlooked in some run, by name, and under which method and rules."""
    rows = []
    for block in runs.blocks:
        where: dict[str, dict[str, list[str]]] = {}
        for one in runs.all_of(block):
            for column in one["overlooked"]:
                where.setdefault(column, {}).setdefault(one["method"], []).append(f"`{one['rule']}`")
        for column, methods in sorted(where.items()):
            shown = "; ".join(
                f"{method}: {', '.join(dict.fromkeys(methods[method]))}"
                for method in (STD, *LIPSCHITZ)
                if method in methods
            )
            rows.append([*block, f"`{column}`", shown])
    return table(["data set", "model", "column", "overlooked under"], rows) if rows else "No column, in no run."


def coverage(runs: Runs) -> str:
    """Return what was run and what was not."""
    rows = []
    for block in runs.blocks:
        own = runs.all_of(block)
        rules = {one["rule"] for one in own}
        lacking = [f"`{rule}`" for rule in RULES if rule not in rules]
        epochs = ", ".join(map(str, sorted({one["epochs"] for one in own})))
        masks = ", ".join(map(str, sorted({one["mask"] for one in own})))
        rows.append([*block, epochs, masks, str(len(own)), ", ".join(lacking) or "–"])
    tested = {dataset for dataset, _ in runs.blocks}
    missing = ", ".join(one for one in DATASETS if one not in tested)
    lines = [table(["data set", "model", "epochs", "masks", "runs", "rules not run"], rows)]
    fast = [one["chosen"]["factor"] for block in runs.blocks for one in runs.all_of(block) if one["rule"] in BY_RATE]
    if high := sum(factor > 1.0 for factor in fast):
        lines.append(
            f"Of {len(fast)} runs that tuned their learning rate, {high} chose the highest: longer trainings "
            "could change ranks."
        )
    lines.append(f"Untested: {missing}; longer trainings; calibration under the rules.")
    return "\n\n".join(lines)


def of_hivae(records: Sequence[Record]) -> str:
    """Return errors by HI-VAE's own measure: means over masks, of all, continuous and discrete columns.

    Below them stand the published cells of the paper's VAE, where its code can learn all columns.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for one in records:
        groups.setdefault((one["dataset"], one["model"]), []).append(one)
    rows = []
    for dataset in dict.fromkeys(name for name, _ in groups):
        kinds = declared_kinds(ORIGINS[dataset].columns)[0]
        for (name, model), own in groups.items():
            for estimate in ("mode", "mean"):
                if name == dataset and estimate in own[0]:
                    trained = own[0]["trained_epochs"]
                    about = [estimate, str(trained)] if trained else ["mean or mode", "–"]
                    means = [_mean_error(own, estimate, kinds, some) for some in (sum(GROUPS.values(), ()), *KINDS)]
                    rows.append([dataset, model, *about, str(len(own)), *means])
        if dataset not in FLAWED:
            rows += [_published(dataset, method) for method in (STD, "lip-gamma")]
    header = ["data set", "model", "estimate of numbers", "epochs", "masks"]
    return table([*header, "error", "continuous columns", "discrete ones"], rows)


def _mean_error(runs: Sequence[Record], estimate: str, kinds: Mapping[str, str], some: Sequence[str]) -> str:
    """Return the mean error over the columns of some kinds and over masks."""
    own = [error for one in runs for name, error in one[estimate]["columns"].items() if kinds[name] in some]
    return f"{np.mean(own):.4f}" if own else "–"


def _published(dataset: str, method: str) -> list[str]:
    cells = published_cells()[20]
    means = [f"{cells[dataset, 'vae', method, kind].mean:.3f}" for kind in ("continuous", "discrete")]
    return [dataset, f"vae, {method}, as published", "mode", str(published_epochs(N_ROWS[dataset])), "10", "–", *means]


def read(path: Path) -> list[Record]:
    """Return recorded runs, if there are any."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def page(text: str, records: Sequence[Record], more: Sequence[Record]) -> str:
    """Return the page with its tables made from the records, of the rules and of HI-VAE by its own measure."""
    runs = Runs(records)
    makers = {
        "answer": answer,
        "by_rule": by_rule,
        "by_table": by_table,
        "overlooked": overlooked,
        "coverage": coverage,
    }
    return fill(text, {name: make(runs) for name, make in makers.items()} | {"hivae": of_hivae(more)})


def main() -> None:
    """Write the page and draw its picture."""
    records = read(RUNS)
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), records, read(OF_HIVAE)))
    write_bytes(RESULTS / "pictures" / "balance.png", picture(Runs(records)))


if __name__ == "__main__":
    main()
