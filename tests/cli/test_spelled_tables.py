"""A CSV with every spelling of numbers, dates and words goes through `evenly`, and comes out in the same spelling."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from commands import run

from evenly.tables.formats import get_format

N = 80
RNG = np.random.default_rng(0)
NUMBERS = {
    "percent": "0.0 %", "share": "0,#%", "dollars": "$#,##0.00", "accounting": "$#,##0;($#,##0)",
    "euros": "#.##0,00 EUR",
    "pounds": "\u00a30", "kronor": "# ##0 kr", "german": "#.##0,0", "english": "#,##0.0", "swiss": "#'##0",
    "weight": "0 kg", "age": "0 years|1 year", "growth": "+0.0 %",
}  # fmt: skip
DATES = {
    "iso": "%Y-%m-%d", "european": "%d.%m.%Y", "american": "%m/%d/%Y", "british": "%d/%m/%Y", "words": "%b %-d, %Y",
    "month": "%Y-%m", "moment": "%Y-%m-%d %H:%M:%S", "zulu": "%Y-%m-%dT%H:%M:%SZ", "quarter": "%Y-Q%q",
}  # fmt: skip
WORDS = {
    "smokes": ["no", "yes"], "bool": ["False", "True"], "letters": ["N", "Y"], "ja": ["nein", "ja"],
    "risk": ["Low", "Medium", "High"], "agrees": ["Strongly disagree", "Neutral", "Agree", "Strongly agree"],
    "size": ["S", "M", "L", "XL"], "band": ["<18", "18-24", "25-64", "65+"], "grade": ["F", "C", "B+", "A"],
    "born": ["January", "May", "December"], "on": ["Mon", "Tue", "Sun"],
}  # fmt: skip
PASSED = {
    "zip": lambda i: f"{i * 7 % 90:05}",
    "phone": lambda i: f"+49170{i * 7919 % 10**7:07}",
    "id": lambda i: f"u-{i}",
}


def cells() -> dict[str, list[str]]:
    """Return the texts of every column, some of them missing."""
    hidden = np.random.default_rng(1)
    found = {}
    for name, pattern in NUMBERS.items():
        low = (
            1.0 if name in ("age", "weight") else -3000.0 if name == "accounting" else -9.0 if name == "growth" else 0.0
        )
        numbers = RNG.uniform(low, 5000.0 if "##0" in pattern else 90.0, N)
        found[name] = [get_format(pattern).write(float(one)) for one in numbers]
    for name, pattern in DATES.items():
        days = 19_000 + RNG.integers(0, 1000, N) + (RNG.integers(0, 86_400, N) / 86_400 if "%H" in pattern else 0.0)
        found[name] = [get_format(pattern).write(float(one)) for one in days]
    found |= {name: [*RNG.choice(classes, N - len(classes)), *classes] for name, classes in WORDS.items()}
    found = {name: ["" if hidden.random() < 0.15 else cell for cell in column] for name, column in found.items()}
    return found | {name: [make(i) for i in range(N)] for name, make in PASSED.items()}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("spelled") / "table.csv"
    columns = cells()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "x"])
        writer.writerows([*row, f"{x:.3f}"] for *row, x in zip(*columns.values(), RNG.normal(size=N), strict=True))
    return path, columns


def read(path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))


def check(full: dict[str, list[str]], columns: dict[str, list[str]]) -> None:
    """Check that known cells are as they were, and filled ones are spelled like them."""
    for name, before in columns.items():
        assert [cell for cell, old in zip(full[name], before, strict=True) if old] == [old for old in before if old]
        new = [cell for cell, old in zip(full[name], before, strict=True) if not old]
        assert all(new)
        if name in NUMBERS or name in DATES:
            form = get_format({**NUMBERS, **DATES}[name])
            known = [form.read(old) for old in before if old]
            assert all(form.write(form.read(cell)) == cell for cell in new)
            assert all(min(known) <= form.read(cell) <= max(known) for cell in new)
        elif name in WORDS:
            assert set(new) <= set(WORDS[name])


def test_inspect_shows_what_every_column_is(table, tmp_path):
    path, _ = table
    done = run("inspect", path, "-o", tmp_path / "schema.json")
    assert done.returncode == 0, done.stderr
    schema = {one["name"]: one for one in json.loads((tmp_path / "schema.json").read_text())["columns"]}
    for name, pattern in NUMBERS.items():
        assert (schema[name]["kind"], schema[name]["format"]) == (
            "real" if name in ("accounting", "growth") else schema[name]["kind"],
            pattern,
        )
        assert schema[name]["kind"] in ("real", "positive", "count")
    for name, pattern in DATES.items():
        known = "%Y-%m-%d %H:%M:%S" if name == "moment" else pattern
        assert schema[name]["kind"] == "date"
        assert schema[name].get("format", known) == pattern
    for name, classes in WORDS.items():
        assert schema[name]["classes"] == classes
    assert {schema[name]["kind"] for name in PASSED} == {"ignore"}
    assert "amounts of money" in done.stdout
    assert "2022-01-" in done.stdout  # the first of the dates


def test_impute_gives_every_column_back_in_its_spelling(table, tmp_path):
    path, columns = table
    out = tmp_path / "full.csv"
    done = run("impute", path, "-o", out, "--model", "marginal", "--save", tmp_path / "imputer", "--quiet")
    assert done.returncode == 0, done.stderr
    check(read(out), columns)
    again = tmp_path / "again.csv"
    done = run("impute", path, "-o", again, "--load", tmp_path / "imputer", "--quiet")
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == out.read_bytes()


def test_a_schema_that_inspect_wrote_gives_the_same(table, tmp_path):
    path, columns = table
    assert run("inspect", path, "-o", tmp_path / "schema.json", "--quiet").returncode == 0
    options = ("--model", "marginal", "--share", 0, "--quiet")
    for name, more in (("a.csv", ()), ("b.csv", ("--schema", tmp_path / "schema.json"))):
        done = run("impute", path, "-o", tmp_path / name, *options, *more)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    check(read(tmp_path / "b.csv"), columns)


def test_scale_and_unscale_give_spelled_numbers_back(table, tmp_path):
    path, columns = table
    done = run("scale", path, "-o", tmp_path / "scaled.csv", "--save", tmp_path / "scaler.json", "--quiet")
    assert done.returncode == 0, done.stderr
    done = run(
        "unscale", tmp_path / "scaled.csv", "-o", tmp_path / "back.csv", "--load", tmp_path / "scaler.json", "--quiet"
    )
    assert done.returncode == 0, done.stderr
    back = read(tmp_path / "back.csv")
    for name, before in columns.items():
        assert back[name] == before
