"""What commands say while they work: stages in plain words, details only with -v, nothing with --quiet and --json."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from commands import run


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.setattr("evenly._support.displays.SHORT", 0.0)  # short work is announced, too
    rng = np.random.default_rng(0)
    x = rng.normal(50.0, 2.0, 80)
    table = pd.DataFrame({"a": x, "b": 3.0 * x + rng.normal(size=80)})
    table.mask(rng.random(table.shape) < 0.1).to_csv(tmp_path / "survey.csv", index=False)
    return tmp_path


def progress(done) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("evenly: ") and "done, about" in line]


@pytest.mark.more
def test_imputing_names_its_stages_and_keeps_details_for_v(survey):
    command = ("impute", "survey.csv", "-o", "full.csv", "--epochs", "2")
    lines = progress(run(*command, folder=survey))
    stages = [line.removeprefix("evenly: ").partition(" (")[0] for line in lines]
    checking, fitting = "checking the error on hidden cells", "fitting all cells"
    wanted = [f"{checking}: training 1 of 3", f"{checking}: filling hidden cells", f"{fitting}: training 3 of 3"]
    assert [one for one in dict.fromkeys(stages) if one in wanted] == wanted
    assert not any("ELBO" in line or "nats" in line for line in lines)
    shares = [int(line.rpartition("(")[2].partition("%")[0]) for line in lines]
    assert shares == sorted(shares)
    detailed = run(*command, "-v", folder=survey)
    assert detailed.returncode == 0


@pytest.mark.more
def test_nothing_is_said_if_quiet_or_json(survey):
    command = ("impute", "survey.csv", "-o", "full.csv", "--epochs", "1")
    for option in ("--quiet", "--json"):
        assert progress(run(*command, option, folder=survey)) == []


@pytest.mark.more
def test_comparing_names_the_candidates(survey):
    lines = progress(run("compare", "survey.csv", "--model", "masked", "--epochs", "1", folder=survey))
    assert any("masked lip-none (1 of 2): training 1 of 3" in line for line in lines)
    assert any("masked std-none (2 of 2): training 2 of 3" in line for line in lines)


def test_comparing_plans_its_report_too(survey):
    lines = progress(run("compare", "survey.csv", "--model", "linear", "--report", "r.html", folder=survey))
    assert lines[-1].startswith("evenly: writing the report (")
    assert "100% done" not in lines[-1]
