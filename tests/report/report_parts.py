"""What a report is made of: a trial and a diagnosis with made-up numbers, and a table with hostile names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import numpy as np

from evenly.evaluation.diagnosis_results import SCALINGS, ColumnBalance, Diagnosis, ShortTraining
from evenly.evaluation.trial_results import ColumnTrial, Trial

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


class Page(HTMLParser):
    """The elements of a page, its texts, and what its scripts hold."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside != "style":
            (self.scripts if self._inside == "script" else self.texts).append(data)

    @property
    def text(self) -> str:
        """All texts, without breaks."""
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def anchors(self) -> set[str]:
        """The identifiers of elements."""
        return {attributes["id"] or "" for _, attributes in self.elements if "id" in attributes}


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
        ratio = error / baseline
        columns.append(ColumnTrial(name, kind, measure, *scored, covered, examples, 0.98 * ratio, 1.02 * ratio))
    return Trial(tuple(columns), 0.2, "masked", "lip-none", 3.2)


def make_diagnosis(kinds: Mapping[str, str], epochs: int = 30, seed: int = 0) -> Diagnosis:
    """Diagnose columns of some kinds: under std every third one is overlooked, under lip none is."""
    rng = np.random.default_rng(seed)
    names = list(kinds)
    loud = rng.lognormal(0.0, 2.0, len(names))
    smoothness = [{"none": 40 * x * x, "std": 10 * x, "max": x, "iqr": 12 * x, "lip": 5.0} for x in loud]
    total = {method: sum(one[method] for one in smoothness) for method in SCALINGS}
    columns = tuple(
        ColumnBalance(name, kinds[name], "normal", own, {m: own[m] / total[m] for m in SCALINGS})
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
        alone, scored = dict.fromkeys(names, 0.4), dict.fromkeys(names, 100)
        trainings.append(ShortTraining(method, epochs, 1000, curves, same, errors, alone, scored, shares, poor))
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
