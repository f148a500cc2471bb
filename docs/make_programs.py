"""Write the tables of `docs/results/programs.md` and its picture from the recorded runs beside it.

Run: python docs/make_programs.py. What stands between `<!-- NAME -->` and `<!-- end -->` is replaced. The runs are
those of `benchmarks/programs.py`; what there are none of is untested, and said to be.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from make_results import UNTESTED, fill
from page_parts import as_png, table
from scipy import stats

from evenly._support import require, write_bytes, write_text

RESULTS = Path(__file__).parent / "results"
PAGE, RUNS = RESULTS / "programs.md", RESULTS / "programs.jsonl"
Record = dict[str, Any]
METHODS = ("raw", "std", "lip")
AIMS = {"raw": 2.0, "std": 1.2}
"""How many times the effective draws by gradient of either lip was to have on most models, at warm-ups up to SHORT."""
SHORT = 300
MET = 1.1
"""The largest R-hat of chains that have met."""
ALL_ROWS = 303
"""How many patients there are in records that do not say it."""
N_MODELS = 5
"""The models of the design for chains."""
NEARER = 0.2
"""The share by which the worst column was to be nearer to its optimum under SVI."""
DESIGN = {"nuts": 5 * 3 * 3 * 3 * 10, "svi": 3 * 3 * 2 * 10, "hmc": 5 * 3 * 3 * 3 * 10, "sgld": 5 * 3 * 10}
"""How many runs there are with ten seeds."""
COLORS = {"raw": "#d55e00", "std": "#0072b2"}


class Interval(NamedTuple):
    """A mean over seeds, with a 90 % interval."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]" if self.n > 1 else f"{self.mean:.3g}"


def interval(values: Sequence[float], *, log: bool = False) -> Interval:
    """Return a mean, or a geometric one, with its 90 % interval by Student's t."""
    some = np.log(values) if log else np.asarray(values, float)
    mean, n = float(some.mean()), len(some)
    half = float(stats.t.ppf(0.95, n - 1) * some.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    low, high = mean - half, mean + half
    if log:
        mean, low, high = (float(np.exp(one)) for one in (mean, low, high))
    return Interval(mean, low, high, n)


def read() -> list[Record]:
    """Return the recorded runs."""
    return [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()] if RUNS.exists() else []


# --- chains -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chains:
    """The runs of one sampler on one model with the same settings, by method and seed."""

    sampler: str
    model: str
    mass: str
    warmup: int
    rows: int
    runs: dict[str, dict[int, Record]]

    def rates(self, method: str) -> dict[int, float]:
        """Return the smallest effective sample size by 1,000 gradients, by seed."""
        return {seed: 1000.0 * one["ess"] / one["gradients"] for seed, one in self.runs.get(method, {}).items()}

    def ratio(self, method: str) -> Interval | None:
        """Return how many times the rate of another method lip has; None without runs of both."""
        own, other = self.rates("lip"), self.rates(method)
        seeds = sorted(own.keys() & other.keys())
        return interval([own[one] / other[one] for one in seeds], log=True) if seeds else None


def chains(records: Sequence[Record], sampler: str) -> list[Chains]:
    """Return the recorded chains of a sampler; of models that were run on fewer patients later, only these."""
    found: dict[tuple[str, str, int, int], Chains] = {}
    for one in records:
        if one["part"] == sampler:
            settings = one["settings"]
            key = (one["model"], settings["mass"], settings["warmup"], settings.get("rows", ALL_ROWS))
            group = found.setdefault(key, Chains(sampler, *key, {}))
            group.runs.setdefault(one["method"], {})[one["seed"]] = one
    whole = {key for key, one in found.items() if one.runs.keys() >= set(METHODS)}
    older = {key for key in found if any(key[:3] == other[:3] and other[3] < key[3] for other in whole)}
    kept = [one for key, one in found.items() if key not in older]
    return sorted(kept, key=lambda one: (one.warmup, ["identity", "diagonal", "dense"].index(one.mass)))


def chain_table(records: Sequence[Record], sampler: str) -> str:
    """Return what was measured of a sampler."""
    lines = []
    for group in chains(records, sampler):
        for method in METHODS:
            runs = list(group.runs.get(method, {}).values())
            if runs:
                of = {
                    name: [one[name] for one in runs] for name in ("step_size", "divergences", "r_hat", "spread_ratio")
                }
                lines.append(
                    [
                        group.model,
                        str(group.rows),
                        group.mass,
                        str(group.warmup),
                        method,
                        str(interval(list(group.rates(method).values()))),
                        f"{np.median(of['step_size']):.2g}",
                        f"{np.mean(of['divergences']):.1f}",
                        f"{np.max(of['r_hat']):.2f}",
                        f"{np.median(of['spread_ratio']):.0f}",
                        str(len(runs)),
                    ]
                )
    header = [
        "model",
        "patients",
        "mass matrix",
        "warm-up",
        "program",
        "smallest ESS by 1,000 gradients",
        "step size",
        "divergences",
    ]
    return table([*header, "largest R-hat", "widest / narrowest", "seeds"], lines) if lines else UNTESTED


def ratios(records: Sequence[Record]) -> str:
    """Return how many times the effective draws by gradient lip has, by model."""
    lines = [
        [one.sampler.upper(), one.mass, str(one.warmup), one.model, *(str(one.ratio(other) or "–") for other in AIMS)]
        for sampler in ("nuts", "hmc")
        for one in chains(records, sampler)
        if any(one.ratio(other) for other in AIMS)
    ]
    header = ["sampler", "mass matrix", "warm-up", "model", *(f"lip / {other}" for other in AIMS)]
    return table(header, lines) if lines else UNTESTED


def answer_nuts(records: Sequence[Record]) -> Iterator[str]:
    """Yield the answer for NUTS, by mass matrix and warm-up, with what becomes of the aims."""
    groups = chains(records, "nuts")
    for mass, warmup in dict.fromkeys((one.mass, one.warmup) for one in groups):
        own = [one for one in groups if (one.mass, one.warmup) == (mass, warmup)]
        said = []
        for other, aim in AIMS.items():
            found = [one.ratio(other) for one in own]
            known = [one for one in found if one is not None]
            if known:
                middle = np.exp(np.mean(np.log([one.mean for one in known])))
                reached = sum(one.mean >= aim for one in known)
                verdict = f"; {_verdict(reached, len(known))}" if warmup <= SHORT else ""
                above = sum(one.low > 1.0 for one in known)
                counts = f"{aim:g} times or more on {reached}; an interval above 1 on {above}"
                said.append(f"{middle:.2g} times those of {other} ({counts}{verdict})")
                models = f"{len(known)} model{'s' if len(known) > 1 else ''}"
        if said:
            head = f"**NUTS, {mass} mass matrix, warm-up {warmup}**, {models}, geometric means:"
            yield f"{head} the effective draws for each gradient under lip are {' and '.join(said)}.{_apart(own)}"


def _apart(groups: Sequence[Chains]) -> str:
    """Say which chains have not met, whose effective sample size says little."""
    apart = [
        f"{group.model} {method}"
        for group in groups
        for method, runs in group.runs.items()
        if max(one["r_hat"] for one in runs.values()) > MET
    ]
    return f" Some chains had not converged (R-hat above {MET:g}): {', '.join(apart)}." if apart else ""


def _verdict(reached: int, known: int) -> str:
    """Say what becomes of an aim on most models."""
    if reached > N_MODELS / 2:
        return "the aim is met"
    return "the aim is missed" if reached + N_MODELS - known <= N_MODELS / 2 else "too few models to tell"


# --- SVI --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fits:
    """The fits of one model by one optimizer, by method and seed, and the best that any fit of the model ended with."""

    model: str
    optimizer: str
    runs: dict[str, dict[int, Record]]
    best: dict[int, Any]
    """By seed: log-likelihoods by column."""

    @property
    def columns(self) -> list[str]:
        """The columns that are scored."""
        return list(next(one for runs in self.runs.values() for one in runs.values())["columns"])

    def gaps(self, method: str, moment: int = -1) -> dict[int, float]:
        """Return how far the worst column is below its best, in nats a cell, by seed."""
        runs = self.runs.get(method, {})
        return {seed: float(np.max(self.best[seed] - np.array(one["curves"][moment]))) for seed, one in runs.items()}

    def steps(self, method: str) -> list[float]:
        """Return the steps to 95 % of the way from the start to the best, all columns together, by seed."""
        found = []
        for seed, one in self.runs.get(method, {}).items():
            curve = np.mean(one["curves"], axis=1)
            start = np.median([np.mean(runs[seed]["curves"][0]) for runs in self.runs.values() if seed in runs])
            there = curve >= start + 0.95 * (np.mean(self.best[seed]) - start)
            found.append(float(one["settings"]["every"] * there.argmax()) if there.any() else np.inf)
        return found


def fits(records: Sequence[Record]) -> list[Fits]:
    """Return the recorded fits."""
    found: dict[tuple[str, str], Fits] = {}
    best: dict[str, dict[int, Any]] = {}
    for one in records:
        if one["part"] == "svi":
            key = (one["model"], one["settings"]["optimizer"])
            group = found.setdefault(key, Fits(*key, {}, best.setdefault(one["model"], {})))
            group.runs.setdefault(one["method"], {})[one["seed"]] = one
            last = np.array(one["curves"][-1])
            group.best[one["seed"]] = np.maximum(group.best.get(one["seed"], last), last)
    return list(found.values())


def svi_table(records: Sequence[Record]) -> str:
    """Return what was measured of SVI: the worst column, and the steps it takes."""
    lines = []
    for group in fits(records):
        for method in METHODS:
            runs = list(group.runs.get(method, {}).values())
            if runs:
                early = [
                    interval(list(group.gaps(method, moment).values())) for moment in (len(runs[0]["curves"]) // 5, -1)
                ]
                steps = np.median(group.steps(method))
                rate = np.median([one["rate"] for one in runs])
                told = "never" if np.isinf(steps) else f"{steps:g}"
                lines.append(
                    [group.model, group.optimizer, method, f"{rate:.2g}", *map(str, early), told, str(len(runs))]
                )
    header = ["model", "optimizer", "program", "learning rate", "worst column below its best, at a fifth of the steps"]
    return table([*header, "at the end", "steps to 95 %", "seeds"], lines) if lines else UNTESTED


def svi_columns(records: Sequence[Record]) -> str:
    """Return log-likelihoods by column at the end."""
    lines = []
    for group in fits(records):
        for k, column in enumerate(group.columns):
            cells = []
            for method in METHODS:
                runs = group.runs.get(method, {}).values()
                cells.append(str(interval([one["curves"][-1][k] for one in runs])) if runs else "–")
            lines.append([group.model, group.optimizer, column, *cells])
    return table(["model", "optimizer", "column", *METHODS], lines) if lines else UNTESTED


def nearer(group: Fits, other: str) -> Interval | None:
    """Return by which share of the other's mean distance the worst column ends nearer to its best under lip."""
    own, others = group.gaps("lip"), group.gaps(other)
    seeds = sorted(own.keys() & others.keys())
    if not seeds:
        return None
    usual = float(np.mean([others[one] for one in seeds])) + 1e-4  # of one seed it may be 0: the best column there is
    return interval([(others[one] - own[one]) / usual for one in seeds])


def say_share(found: Interval) -> str:
    """Return how much nearer or farther, with the interval if there is one."""
    sign, word = (1.0, "nearer") if found.mean >= 0.0 else (-1.0, "farther")
    low, high = sorted((sign * found.low, sign * found.high))
    return f"{abs(found.mean):.0%} [{low:.0%}, {high:.0%}] {word}" if found.n > 1 else f"{abs(found.mean):.0%} {word}"


def answer_svi(records: Sequence[Record]) -> Iterator[str]:
    """Yield the answer for SVI, by model and optimizer."""
    for group in fits(records):
        said = []
        for other in AIMS:
            found = nearer(group, other)
            if found is not None:
                verdict = "met" if found.low >= NEARER else "missed" if found.mean < NEARER else "uncertain"
                share = say_share(found)
                end = np.mean(list(group.gaps(other).values()))
                said.append(f"{share} than under {other}, {end:.3f} (20 % nearer was the aim: {verdict})")
        if said:
            end = np.mean(list(group.gaps("lip").values()))
            head = f"**SVI, {group.model}, {group.optimizer}.** Under lip the worst column ends {end:.3f} nats"
            yield f"{head} below its best: {', and '.join(said)}."


# --- SGLD, and the page -----------------------------------------------------------------------------------------------


def sgld_table(records: Sequence[Record]) -> str:
    """Return the least errors of SGLD over its step sizes."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for one in records:
        if one["part"] == "sgld":
            groups.setdefault((one["model"], one["method"]), []).append(one)
    lines = []
    for (model, method), runs in groups.items():
        errors = np.array([[np.inf if e is None else e for e in one["mean_error"]] for one in runs])
        spreads = np.array([[np.inf if e is None else e for e in one["spread_error"]] for one in runs])
        at = int(errors.mean(axis=0).argmin())
        cells = [str(interval(list(some[:, at]))) for some in (errors, spreads)]
        lines.append([model, method, f"{runs[0]['rates'][at]:.0e}", *cells, str(len(runs))])
    header = [
        "model",
        "program",
        "step size",
        "error of means, in posterior deviations",
        "log error of deviations",
        "seeds",
    ]
    return table(header, lines) if lines else UNTESTED


def factors(records: Sequence[Record]) -> dict[tuple[str, str], dict[str, float]]:
    """Return the factors by which std and lip multiply unconstrained parameters, by model and site."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for one in records:
        if one["part"] == "scales":
            for site, factor in one["factors"].items():
                found.setdefault((one["model"], site), {})[one["method"]] = factor
    return {place: both for place, both in found.items() if {"std", "lip"} <= both.keys()}


def scales_table(records: Sequence[Record]) -> str:
    """Return which parameters are multiplied, one line for all parameters of the same factors."""
    places: dict[tuple[float, float], list[str]] = {}
    for (model, site), both in factors(records).items():
        places.setdefault((both["std"], both["lip"]), []).append(f"{model}: {site}")
    lines = [
        [", ".join(f"`{one}`" for one in some), f"{std:.3g}", f"{lip:.3g}", f"{lip / std:.2f}"]
        for (std, lip), some in places.items()
    ]
    return table(["parameters", "std", "lip", "lip / std"], lines) if lines else UNTESTED


def answer_scales(records: Sequence[Record]) -> Iterator[str]:
    """Yield what a scale changes at all."""
    known = factors(records)
    own = [one for one in records if one["part"] == "scales" and one["method"] == "lip"]
    if known and own:
        ratio = [both["lip"] / both["std"] for both in known.values()]
        raw = [max(both["std"], 1.0 / both["std"]) for both in known.values()]
        few, many = (pick(one["multiplied"] for one in own) for pick in (min, max))
        less, more = (pick(one["parameters"] for one in own) for pick in (min, max))
        yield (
            f"**What a scale changes.** Of the {less} to {more} unconstrained parameters of {len(own)} models, "
            f"standardizing multiplies {few} to {many}: means of normal and log-normal columns, their slopes and "
            "loadings. All others keep their gradients, whatever the scale. Std multiplies or divides by "
            f"{min(raw):.2g} to {max(raw):.2g}; lip's factors are {min(ratio):.2g} to {max(ratio):.2g} times those of "
            "std, and no difference between the two can come from anything else."
        )


def coverage(records: Sequence[Record]) -> str:
    """Return how much of the design was run."""
    counts = Counter(one["part"] for one in records)
    lines = [[part.upper(), str(counts[part]), str(whole)] for part, whole in DESIGN.items()]
    return table(["part", "runs recorded", "runs of the whole design, with ten seeds"], lines)


def answer(records: Sequence[Record]) -> str:
    """Return the answer in sentences."""
    lines = [*answer_scales(records), *answer_nuts(records), *answer_svi(records)]
    return "\n".join(f"- {line}" for line in lines) if lines else UNTESTED


def picture(records: Sequence[Record]) -> bytes:
    """Draw how many times the effective draws by gradient of raw and of std lip has, a row a model and mass matrix."""
    groups = [one for one in chains(records, "nuts") if one.ratio("raw") or one.ratio("std")]
    size = (7.5, 1.9 + 0.32 * len(groups))
    figure = require("matplotlib.figure", "tool").Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    for place, group in enumerate(groups):
        for offset, other in ((-0.14, "raw"), (0.14, "std")):
            found = group.ratio(other)
            if found is not None:
                ends = np.clip([[found.mean / found.low], [found.high / found.mean]], 1.0, 1e3)
                bars = [[found.mean - found.mean / ends[0][0]], [found.mean * ends[1][0] - found.mean]]
                ax.errorbar(found.mean, place + offset, xerr=bars, fmt="o", color=COLORS[other], capsize=2)
    for other, aim in AIMS.items():
        ax.axvline(aim, color=COLORS[other], linestyle=":", label=f"aim against {other}")
        ax.plot([], [], "o", color=COLORS[other], label=f"lip / {other}")
    ax.axvline(1.0, color="0.3", linewidth=1.0)
    ax.set_xscale("log")
    ax.set_yticks(range(len(groups)), [f"{one.model}, {one.mass}, {one.warmup}" for one in groups], fontsize=8)
    ax.set_xlabel("effective draws by gradient under lip, relative to the same model raw or under std")
    ax.set_title("NUTS: model, mass matrix, steps of warm-up", fontsize=10)
    ax.set_ylim(len(groups) - 0.5, -0.5)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4)
    ax.spines[["top", "right"]].set_visible(False)
    return as_png(figure)


def page(text: str, records: Sequence[Record]) -> str:
    """Return the page with its tables made from the records."""
    made = {
        "answer": answer(records),
        "scales": scales_table(records),
        "ratios": ratios(records),
        "nuts": chain_table(records, "nuts"),
        "svi": svi_table(records),
        "columns": svi_columns(records),
        "hmc": chain_table(records, "hmc"),
        "sgld": sgld_table(records),
        "coverage": coverage(records),
    }
    return fill(text, made)


def main() -> None:
    """Write the page and draw its picture."""
    records = read()
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), records))
    write_bytes(RESULTS / "pictures" / "programs.png", picture(records))


if __name__ == "__main__":
    main()
