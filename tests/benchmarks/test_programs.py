"""The benchmark of probabilistic programs: what it measures of chains, which runs it makes again, and its page."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def load_script(path: str):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script  # its dataclasses look there
    spec.loader.exec_module(script)
    return script


@pytest.fixture
def programs(monkeypatch):
    pytest.importorskip("numpyro")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return load_script("benchmarks/programs.py")


@pytest.fixture
def make_programs(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return load_script("docs/make_programs.py")


def test_effective_draws_are_those_of_an_autoregression_and_r_hat_sees_chains_apart(programs):
    from program_chains import quality

    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 4000, 2))
    draws = noise.copy()
    for t in range(1, 4000):
        draws[:, t, 1] = 0.8 * draws[:, t - 1, 1] + 0.6 * noise[:, t, 1]
    found = quality(np.exp(draws))  # ranks know nothing of the exponential
    assert abs(found["ess"] / (8000 * 0.2 / 1.8) - 1.0) < 0.15
    assert abs(found["r_hat"] - 1.0) < 0.01
    apart = draws + np.array([0.0, 3.0])[:, None, None]
    assert quality(apart)["r_hat"] > 1.5


def test_a_run_that_the_file_has_is_not_made_again(programs, monkeypatch, tmp_path):
    out, made = tmp_path / "runs.jsonl", []

    def measure(group, seed):
        made.append((group["model"], seed))
        return {**group, "seed": seed, "ess": 1.0, "gradients": 2, "r_hat": 1.0, "cpu_seconds": 0.0}

    monkeypatch.setattr(programs, "measure", measure)
    common = ["--parts", "nuts", "--methods", "lip", "--masses", "dense", "--warmups", "100", "--out", str(out)]
    for models, seeds in ((["factor"], ["0"]), (["factor", "smooth"], ["0", "1"]), (["smooth"], ["1"])):
        monkeypatch.setattr(sys, "argv", ["programs.py", *common, "--models", *models, "--seeds", *seeds])
        programs.main()
    assert made == [("factor", 0), ("smooth", 0), ("smooth", 1), ("factor", 1)]
    assert len(out.read_text().splitlines()) == 4


def test_the_whole_design_is_what_the_page_says(programs, make_programs):
    groups = list(programs.groups(programs.arguments([])))
    assert len({json.dumps(one) for one in groups}) == len(groups)
    for part, whole in make_programs.DESIGN.items():
        assert 10 * sum(one["part"] == part for one in groups) == whole


@pytest.mark.more
@pytest.mark.parametrize("model", ["regression", "varying", "factor"])
def test_programs_whose_priors_are_not_carried_along_are_refused(programs, monkeypatch, model):
    import program_coordinates
    import program_models

    found = program_coordinates.coordinates(model, "lip", 20)
    families = program_models.MODELS[model].families.values()
    assert np.unique(found.factor.round(6)).size == 1 + sum("normal" in one for one in families)  # all others keep 1
    program_coordinates.coordinates.cache_clear()
    monkeypatch.setattr(program_models, "rescale_prior", lambda prior, *_, **__: prior)
    with pytest.raises(SystemExit, match=f"{model}: .* of lip are not those of the raw program"):
        program_coordinates.coordinates(model, "lip", 20)


@pytest.mark.more
def test_a_latent_variable_and_its_loadings_have_one_sign_and_the_same_density(programs):
    from program_chains import FOLDED, ROWS, fold
    from program_coordinates import density
    from program_models import load

    for model in FOLDED:
        raw = density(model, "raw", ROWS, programs.jax.random.key(0))
        z = np.asarray(raw.center) + 0.1 * np.random.default_rng(1).normal(size=raw.center.size)
        signs = {float(raw.unravel(one)["loading_max_hr"][0] > 0.0) for one in fold(model, np.array([z, -z]))}
        energies = [float(raw.potential(load(model, ROWS), one)) for one in (z, fold(model, z))]
        assert signs == {1.0}
        assert np.isclose(energies[0], energies[1], rtol=1e-5)


@pytest.mark.more
def test_a_chain_and_a_fit_are_measured(programs):
    what = "--parts nuts svi --models regression heart-factors --methods lip --masses identity --optimizers adam"
    sizes = "--warmups 20 --draws 20 --steps 20 --every 10 --rates 2"
    options = programs.arguments([*what.split(), *sizes.split()])
    chain, fit = ([programs.measure(group, seed) for seed in (0, 1)] for group in programs.groups(options))
    assert [one["seed"] for one in chain] == [0, 1]
    assert all(one["gradients"] > one["gradients_of_warmup"] >= 40 for one in chain)
    assert chain[0]["ess"] != chain[1]["ess"]
    assert np.shape(fit[0]["curves"]) == (3, 5)
    assert np.isfinite(fit[0]["curves"]).all()
    assert fit[0]["curves"] != fit[1]["curves"]


# --- the page ---------------------------------------------------------------------------------------------------------


def chain(model, method, seed, ess, *, r_hat=1.0):
    settings = {"mass": "diagonal", "warmup": 100, "draws": 250, "chains": 2, "depth": 10}
    found = {"gradients": 1000, "step_size": 0.1, "divergences": 0, "r_hat": r_hat, "spread_ratio": 3.0}
    return {"part": "nuts", "model": model, "method": method, "seed": seed, "settings": settings, "ess": ess, **found}


def test_the_page_is_made_from_the_records(make_programs):
    text = make_programs.PAGE.read_text(encoding="utf-8")
    assert make_programs.page(text, make_programs.read()) == text
    assert "Untested" in make_programs.page(text, [])


@pytest.mark.parametrize(
    ("better", "worse", "verdict"),
    [(3, 2, "the aim is met"), (2, 3, "the aim is missed"), (2, 0, "too few models to tell")],
)
def test_an_aim_is_met_on_most_models_or_missed(make_programs, better, worse, verdict):
    records = [
        chain(f"model {i}", method, seed, ess)
        for i in range(better + worse)
        for seed in range(2)
        for method, ess in (("raw", 10.0), ("std", 10.0), ("lip", 30.0 if i < better else 10.0))
    ]
    (line,) = make_programs.answer_nuts(records)
    assert line.count(verdict) == 2
    assert f"2 times or more on {better}; an interval above 1 on {better}" in line
    found = [one.ratio("raw") for one in make_programs.chains(records, "nuts")]
    assert [round(one.mean, 6) for one in found] == [3.0] * better + [1.0] * worse


def test_ratios_compare_the_seeds_that_both_have_and_have_intervals_by_student(make_programs):
    logs = np.log([2.0, 4.0, 8.0])
    records = [chain("one", "raw", seed, 10.0) for seed in range(3)]
    records += [chain("one", "lip", seed, 10.0 * np.exp(one)) for seed, one in enumerate(logs)]
    records.append(chain("one", "lip", 9, 1e6))
    ratio = make_programs.chains(records, "nuts")[0].ratio("raw")
    assert np.isclose(ratio.mean, 4.0)
    assert np.isclose(ratio.high, 4.0 * np.exp(2.9199856 * np.log(2.0) / np.sqrt(3.0)))  # t with 2 degrees of freedom
    assert ratio.n == 3


def test_parameters_with_the_same_factors_share_a_line(make_programs):
    def scales(method, **factors):
        found = {"factors": factors, "multiplied": len(factors), "parameters": 9}
        return {"part": "scales", "model": "m", "method": method, "settings": {}, "seed": 0, **found}

    records = [scales("std", a=0.5, b=0.5, c=4.0), scales("lip", a=0.25, b=0.25, c=5.0)]
    text = make_programs.scales_table(records)
    assert "| `m: a`, `m: b` | 0.5 | 0.25 | 0.50 |" in text
    assert "| `m: c` | 4 | 5 | 1.25 |" in text
    (line,) = make_programs.answer_scales(records)
    assert "multiplies 3 to 3" in line
    assert "divides by 2 to 4; lip's factors are 0.5 to 1.2 times" in line


def test_runs_on_fewer_patients_replace_older_ones_once_all_programs_have_them(make_programs):
    older = [chain("one", method, 0, 10.0) for method in ("raw", "std", "lip")]
    later = [{**one, "ess": 20.0, "settings": {**one["settings"], "rows": 100}} for one in older]
    found = make_programs.chains([*older, *later[:2]], "nuts")
    assert [one.rows for one in found] == [303, 100]
    (found,) = make_programs.chains([*older, *later], "nuts")
    assert found.rates("lip") == {0: 20.0}


def test_chains_that_have_not_met_are_named(make_programs):
    records = [
        chain("one", method, 0, 10.0, r_hat=2.0 if method == "raw" else 1.05) for method in ("raw", "std", "lip")
    ]
    (line,) = make_programs.answer_nuts(records)
    assert line.endswith("Some chains had not converged (R-hat above 1.1): one raw.")


def test_the_worst_column_is_compared_with_the_best_that_any_fit_ended_with(make_programs):
    def fit(method, optimizer, *curves):
        settings = {"optimizer": optimizer, "steps": 20, "every": 10, "rates": 2}
        found = {"columns": ["a", "b"], "curves": curves, "rate": 0.1}
        return {"part": "svi", "model": "m", "method": method, "seed": 0, "settings": settings, **found}

    records = [
        fit("raw", "adam", [-9.0, -9.0], [-3.0, -2.0], [-2.5, -1.5]),
        fit("lip", "adam", [-9.0, -9.0], [-2.2, -1.3], [-2.1, -1.0]),
        fit("lip", "momentum", [-9.0, -9.0], [-8.0, -8.0], [-2.0, -3.0]),
    ]
    adam, momentum = make_programs.fits(records)
    assert np.isclose(adam.gaps("raw")[0], 0.5)
    assert np.isclose(adam.gaps("lip")[0], 0.1)
    assert np.isclose(momentum.gaps("lip")[0], 2.0)
    assert (adam.steps("raw"), adam.steps("lip"), momentum.steps("lip")) == ([np.inf], [10.0], [np.inf])
    (line,) = make_programs.answer_svi(records)
    assert "ends 0.100 nats below its best: 80% nearer than under raw, 0.500" in line
    assert "(20 % nearer was the aim: uncertain)" in line
    several = [{**one, "seed": seed} for seed in (0, 1) for one in records[:2]]
    several[2]["curves"] = [[-9.0, -9.0], [-2.0, -1.0], [-2.0, -1.0]]  # nothing is left to gain for one seed
    (line,) = make_programs.answer_svi(several)
    # Distances are 0.5 and 0 under raw, 0 and 0.1 under lip: 0.2 less on average, of 0.25.
    assert "80% [-" in line
    assert "nearer than under raw, 0.250" in line
