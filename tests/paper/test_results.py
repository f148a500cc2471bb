"""The page of results holds what its recorded runs say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from evenly.paper.claims import CLAIMS
from evenly.paper.records import REVISION, Run, read_records

DOCS = Path(__file__).parents[2] / "docs"


def load_script(name: str = "make_results"):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_page_is_made_from_the_recorded_runs():
    script = load_script()
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, script.read()) == text


def test_the_appendix_is_made_from_the_first_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("make_paper_appendix")
    text = script.PAGE.read_text(encoding="utf-8")
    records = read_records(script.RUNS, revision=1)
    assert script.page(text, records) == text
    assert all("failed" not in record for record in records)
    assert len({Run(**record["run"]) for record in records}) == len(records)


def test_without_records_everything_is_untested():
    script = load_script()
    made = {name: make([]) for name, make in script.SECTIONS.items()}
    assert made["claims"].count("| untested |") == len(CLAIMS)
    assert f"Of the {len(CLAIMS)} claims, 0 hold, 0 do not hold, and {len(CLAIMS)} are untested." in made["claims"]
    for name in ("figures", "methods", "ratios", "balance", "steadiness", "agreement"):
        assert made[name] == script.UNTESTED
    # Four methods and three masks, three more methods, and four methods by gradient descent.
    assert "| adult | vae | 400 | 0 | 0 | 19 | unknown |" in made["coverage"]
    assert set(script.pictures([]).values()) == {None}


def run_record(dataset: str, method: str, mask: int, error: float) -> dict[str, Any]:
    """A run of two columns; under lip-gamma they learn at one rate, under the others one learns ten times as slowly."""
    slow = 1.0 if method == "lip-gamma" else 0.1
    epochs = {"breast": 3000, "wine": 2000, "adult": 100}[dataset]
    run = {"dataset": dataset, "percent": 20, "mask": mask, "model": "vae", "method": method, "seed": 0}
    history = [[-2.0, -2.0], [-1.8, -2.0 + 0.2 * slow], [-1.0, -1.0]]
    return {
        "run": run | {"epochs": epochs},
        "revision": REVISION,
        "columns": ["a", "b"],
        "kinds": ["count", "binary"],
        "modelled": ["a", "b"],
        "honest": [error, error],
        "as_published": [error, error],
        "mean_or_mode": [0.3, 0.3],
        "far_off": [mask, 0],
        "not_finite": 0,
        "points": [0, 1, epochs],
        "history": history,
        "gradients": [[1.0, 1.0]] * 3,
        "gradient_changes": [[0.2, 0.2 * slow]] * 3,
        "seconds": {"fit": 36.0 * epochs, "predict": 0.0},
    }


def test_the_page_says_what_records_say():
    script = load_script()
    errors = {"std-none": 0.2, "std-gamma": 0.2, "lip-gamma": 0.1}
    records = [
        run_record(dataset, method, mask, error)
        for dataset in ("breast", "wine", "adult")
        for method, error in errors.items()
        for mask in (1, 2, 3)
    ]
    made = {name: make(records) for name, make in script.SECTIONS.items()}
    lines = {line.split(" | ")[0].strip("| "): line for line in made["claims"].splitlines()}
    proof = "0.500 [0.500, 0.500]; 9 pairs of breast, wine, adult"
    assert f"| holds | error: {proof} |" in lines["Lipschitz scales and the Gamma trick lower the error"]
    assert "| does not hold |" in lines["the Gamma trick lowers the error of standardized columns"]
    assert "| untested | no pairs of runs |" in lines["Lipschitz scales alone do not raise the error"]
    assert "| breast | vae | 3 | 0.200 | – | 0.200 | 0.100 | 0.500 [0.500, 0.500] |" in made["methods"]
    # By hand: changes of 0.2 and 0.02 differ by 0.09 around a mean of 0.11.
    assert f"| breast | vae | Equation 5 | {0.09 / 0.11:.2f} | – | 0.82 | 0.00 |" in made["balance"]
    assert "| vae | lip-gamma | 9 | 0 | 0 | 2.0 |" in made["steadiness"]
    assert "more are untested." in made["agreement"]
    assert "fewer epochs than published" in made["agreement"]
    # Masks 1 to 3 of 3 methods with one of two seeds, of 5 masks and 2 seeds, and one mask by gradient descent.
    assert "| breast | vae | 3000 | 9 | 0 | 24 | " in made["coverage"]
    assert "| adult | vae | 400 | 0 | 9 | 10 | " in made["coverage"]
    drawn = script.figures.ratios(records)
    assert [text.get_text() for text in drawn.axes[0].get_yticklabels()] == ["adult, vae", "breast, vae", "wine, vae"]


def test_the_page_of_peers_is_made_from_the_recorded_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("make_peers")
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_the_costs_of_engines_are_made_from_the_recorded_jobs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("make_engines")
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, script.read(), script.read(script.IMPUTED)) == text


def test_projected_costs_are_those_of_a_straight_line(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("make_engines")

    def cost(rows: int, columns: int) -> float:
        return 3.0 + rows * (2e-7 + 5e-8 * columns)

    measured = [(1_000_000, 12), (4_000_000, 12), (1_000_000, 48)]
    records = [
        {"job": "a", "rows": rows, "columns": columns, "fit": 1.0, "write": cost(rows, columns) - 1.0}
        for rows, columns in measured
    ]
    for rows, columns in ((20_000_000, 12), (10**9, 1000)):
        assert abs(script.project(records, "a", rows, columns) / cost(rows, columns) - 1.0) < 1e-9
    assert script.project(records[:2], "a", 10**9, 1000) is None
