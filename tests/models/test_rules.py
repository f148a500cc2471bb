"""Balancing rules by name: which there are, where they go, and what is refused before any training."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")

from evenly import EvenlyError, Imputer, Training
from evenly.imputation.settings import resolve
from evenly.models import SPECS
from evenly.models.rules import get_rule, rule_for

PAGE = Path(__file__).parents[2] / "docs" / "balancing.md"
NAMES = [line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]


def test_the_page_lists_all_rules_and_which_heads_they_weigh():
    get_rule("none")
    from evenly.models.balancing import RULES

    assert sorted(NAMES) == sorted(RULES)
    weighted = {
        line.split("`")[1]: line.endswith("weighted |") for line in PAGE.read_text().splitlines() if line[:3] == "| `"
    }
    for name, rule in RULES.items():
        assert weighted[name] == (rule.weighs_heads and name != "none"), name


@pytest.mark.parametrize("name", NAMES)
def test_candidates_of_its_setting_are_allowed(name):
    for value in get_rule(name).candidates:
        assert get_rule(f"{name}:{value:g}") == type(get_rule(name))(value)


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        ("vae", "loudest", "balance = 'loudest', but expected one of auto, none, lip, uncertainty"),
        ("vae", 3, "balance = 3, but expected one of auto"),
        ("vae", "mgda:1", "mgda has no setting"),
        ("vae", "cagrad:wide", "expected c as a number from 0 to 10"),
        ("vae", "online:-1", "expected rate as a number from 0 to 1"),
        ("mixture", "mgda", "its columns share no output"),
        ("marginal", "lip", "it is not trained"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(model, given, message):
    with pytest.raises(EvenlyError, match=message):
        Imputer(model, balance=given).fit(np.zeros((0, 0)))


def test_the_rule_is_part_of_the_plan_of_a_training():
    plan = resolve(Imputer("vae", balance="famo:0.25")).plan(10, None, streamed=False)
    assert plan.rule == get_rule("famo:0.25")
    assert plan.weights == 1.0


def test_auto_is_what_it_was():
    assert resolve(Imputer()).balance == "lip"
    assert resolve(Imputer("masked", "std-none")).balance == "none"
    assert resolve(Imputer("vae")).balance == "none"
    assert resolve(Imputer("vae")).plan(10, None, streamed=False).rule is None
    assert rule_for(SPECS["masked"], "lip") is None
    assert rule_for(SPECS["marginal"], "auto") is None


@pytest.mark.more
@pytest.mark.parametrize("model", ["masked", "vae", "factorization", "hivae"])
def test_an_imputer_is_trained_under_a_rule_saved_and_loaded(model, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    table = np.column_stack([x, 2.0 * x + 0.1 * rng.normal(size=120)])
    table[:10, 1] = np.nan
    training = Training(epochs=4, n_networks=1, sizes={"hidden_size": 8} if model != "factorization" else None)
    imputer = Imputer(model, balance="cagrad:0.8", training=training, random_state=0).fit(table)
    plain = Imputer(model, balance="none", training=training, random_state=0).fit(table)
    assert (plain.history_["elbo"] != imputer.history_["elbo"]).any()
    imputer.save(tmp_path)
    again = Imputer.load(tmp_path)
    assert again.balance == "cagrad:0.8"
    np.testing.assert_array_equal(again.transform(table), imputer.transform(table))
