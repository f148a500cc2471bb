"""Stand-ins for what a report is made of: the interfaces of a trial and a diagnosis, with made-up numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

METHODS = ("none", "std", "max", "iqr", "lip")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(2)</script>",
    "<a href='javascript:alert(3)'>link</a><b>bold</b>&amp;%{x}$x^2$",
    "emoji 🙂 and 👩‍👩‍👧",
    "مرحبا بالعالم",
    "n" * 500,
    " ",
    "tab\tand\x00control\u2028line",
)
"""Names that a column may have, and that must stay texts."""


@dataclass(frozen=True)
class ColumnTrial:
    column: str
    kind: str
    measure: str
    n_cells: int
    error: float
    low: float
    high: float
    baseline: float
    covered: float | None
    examples: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Trial:
    columns: tuple[ColumnTrial, ...]
    share: float
    model: str
    method: str
    seconds: float
    error: float
    baseline: float


@dataclass(frozen=True)
class ColumnBalance:
    column: str
    kind: str
    likelihood: str
    smoothness: Mapping[str, float]
    gradient_share: Mapping[str, float]


@dataclass(frozen=True)
class ShortTraining:
    method: str
    epochs: int
    log_likelihood: Mapping[str, tuple[float, ...]]
    baseline: Mapping[str, float]
    error: Mapping[str, float]
    baseline_error: Mapping[str, float]
    gradient_share: Mapping[str, float]
    overlooked: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosis:
    n_rows: int
    columns: tuple[ColumnBalance, ...]
    trainings: tuple[ShortTraining, ...]
    passed_through: Mapping[str, str]
    verdict: str


def make_trial(kinds: Mapping[str, str], seed: int = 0) -> Trial:
    """Score columns of some kinds, with made-up errors."""
    rng = np.random.default_rng(seed)
    columns = []
    for name, kind in kinds.items():
        classes = kind in ("binary", "categorical", "ordinal")
        baseline = float(rng.uniform(0.3, 0.6) if classes else rng.uniform(0.1, 0.25))
        error = baseline * float(rng.uniform(0.4, 1.05))
        examples = tuple(
            (f"class {a}", f"class {b}") if classes else (float(a), a + 0.25) for a, b in rng.integers(0, 5, (5, 2))
        )
        measure, covered = ("error rate", None) if classes else ("NRMSE", float(rng.uniform(0.84, 0.94)))
        scored = (60, error, 0.85 * error, 1.15 * error, baseline)
        columns.append(ColumnTrial(name, kind, measure, *scored, covered, examples))
    means = [float(np.mean([getattr(one, what) for one in columns])) for what in ("error", "baseline")]
    return Trial(tuple(columns), 0.2, "masked", "lip-none", 3.2, *means)


def make_diagnosis(kinds: Mapping[str, str], epochs: int = 30, seed: int = 0) -> Diagnosis:
    """Diagnose columns of some kinds: under std every third one is overlooked, under lip none is."""
    rng = np.random.default_rng(seed)
    names = list(kinds)
    loud = rng.lognormal(0.0, 2.0, len(names))
    smoothness = [{"none": 40 * x * x, "std": 10 * x, "max": x, "iqr": 12 * x, "lip": 5.0} for x in loud]
    total = {method: sum(one[method] for one in smoothness) for method in METHODS}
    columns = tuple(
        ColumnBalance(name, kinds[name], "normal", own, {m: own[m] / total[m] for m in METHODS})
        for name, own in zip(names, smoothness, strict=True)
    )
    overlooked = tuple(names[::3])
    time = np.arange(epochs)
    trainings = []
    for method, poor in (("std-none", overlooked), ("lip-none", ())):
        gains = {name: -0.02 if name in poor else float(rng.uniform(0.1, 0.6)) for name in names}
        curves = {
            name: tuple((-1.0 + gain - (1.5 + gain) * np.exp(-time / (1 + epochs / 8))).tolist())
            for name, gain in gains.items()
        }
        same = dict.fromkeys(names, -1.0)
        errors = {name: 0.4 if name in poor else 0.3 for name in names}
        shares = dict.fromkeys(names, 1.0 / len(names))
        trainings.append(ShortTraining(method, epochs, curves, same, errors, dict.fromkeys(names, 0.4), shares, poor))
    verdict = f"Under std, {len(overlooked)} of {len(names)} columns are overlooked; under lip none is."
    return Diagnosis(1000, columns, tuple(trainings), {}, verdict)


def make_table(n_rows: int = 400, seed: int = 0, missing: float = 0.15) -> tuple[Any, Any]:
    """Return a pandas table with missing cells and a complete one: usual columns, then those with hostile names."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    full = {
        "age": rng.integers(18, 90, n_rows).astype(float),
        "income": rng.lognormal(10.0, 1.0, n_rows),
        "children": rng.poisson(1.4, n_rows).astype(float),
        "smoker": rng.choice(["no", "yes"], n_rows, p=[0.8, 0.2]),
        "town": rng.choice(["Berne", "Lima", "Oslo", "Pune"], n_rows),
    }
    for j, name in enumerate(HOSTILE):
        full[name] = rng.normal(size=n_rows) if j % 2 else rng.choice(["<b>bold</b>", "</script>", "plain"], n_rows)
    filled = pd.DataFrame(full)
    return filled.mask(rng.random(filled.shape) < missing), filled
