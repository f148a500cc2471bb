"""The place where rules weigh columns: what it passes on, against the gradient of the whole objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from model_data import LAYOUT, two_columns

jax = pytest.importorskip("jax")

import jax.numpy as jnp

from evenly import EvenlyWarning
from evenly.models.balancing import RULES, Rule
from evenly.models.base import Plan
from evenly.models.bbvi import objective, start, step
from evenly.models.factorization import Factorization
from evenly.models.hivae import HIVAE
from evenly.models.masked import Masked
from evenly.models.shared_output import Balancing, SharesOutput
from evenly.models.spec import SPECS
from evenly.models.vae import VAE
from evenly.models.wiring import wire

MODELS = [
    *(pytest.param(one, marks=pytest.mark.more) for one in (VAE(3, 8), VAE(3, 8, masked=True), HIVAE(3, 2, 2))),
    *(Masked(8, 1, 4), Factorization(2)),
]


def rules(*quick):
    """All rules; those that are not named are tried in the longer tests."""
    return [pytest.param(one, marks=[] if one in quick else pytest.mark.more) for one in RULES]


HEADS = {"vae": "decoder/3", "hivae": "heads/of_cluster", "masked": "last", "factorization": "mean"}
DATA = two_columns(16)
ROWS = np.arange(16, dtype=np.int32)


@dataclass(frozen=True)
class Seen(Rule):
    """Remembers what it sees, and weighs the first column three times as much as the second."""

    reads_gradients: ClassVar = True

    def start(self, n_columns: int, dtype: Any) -> dict[str, Any]:
        return {"gram": np.zeros((n_columns, n_columns), dtype), "losses": np.zeros(n_columns, dtype)}

    def weigh(self, memory: Any, signals: Any) -> tuple[Any, Any]:
        return jnp.array([1.5, 0.5]), {"gram": signals.gram, "losses": signals.losses}


@dataclass(frozen=True)
class Uneven(Rule):
    def weigh(self, memory: Any, signals: Any) -> tuple[Any, Any]:
        return jnp.array([1.5, 0.5]), memory


@dataclass(frozen=True)
class UnevenTrunk(Uneven):
    weighs_heads: ClassVar = False


def gradient(model, rule, weights=1.0):
    """Return the negative ELBO, its terms, the gradient and what the rule remembers; without a rule, the plain ones."""
    state = start(model, LAYOUT, DATA, 0, 1e-3, weights)
    wiring, key = wire(LAYOUT), jax.random.wrap_key_data(state.key)
    at = (model, wiring, (state.shared, state.local), key, DATA, state, np.arange(16) < 13)
    if rule is None:
        (value, terms), found = jax.jit(jax.value_and_grad(objective, argnums=2, has_aux=True), static_argnums=0)(*at)
        return value, terms, found, None
    return jax.jit(Balancing.start(rule, LAYOUT, np.float32).gradients, static_argnums=0)(*at)


def assert_same(found, expected):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-6)


def head_of(model, shared):
    for name in HEADS[model.spec.name].split("/"):
        shared = shared[name]
    return shared["weight"] if isinstance(shared, dict) else shared


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_even_weights_pass_on_the_gradient_of_the_objective(model):
    value, _, expected, _ = gradient(model, None)
    balanced = gradient(model, RULES["none"]())
    assert_same(balanced.to_variables, expected)
    assert float(balanced.value) == pytest.approx(float(value), rel=1e-5)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_weights_are_those_of_losses_and_heads_get_them_if_the_rule_weighs_losses(model):
    _, _, weighted, _ = gradient(model, None, [1.5, 0.5])
    assert_same(gradient(model, Uneven()).to_variables, weighted)
    found = gradient(model, UnevenTrunk()).to_variables
    if model.spec.name != "factorization":  # whose heads have a prior, too
        assert_same(head_of(model, found[0]), head_of(model, gradient(model, None)[2][0]))
    assert_same(found[1], weighted[1])  # variables of rows are the trunk of a factorization
    if model.spec.name == "vae":
        assert_same(found[0]["encoder"], weighted[0]["encoder"])


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_rules_see_the_products_of_the_columns_gradients_at_the_shared_output(model):
    state, wiring = start(model, LAYOUT, DATA, 0, 1e-3), wire(LAYOUT)
    key, valid = jax.random.wrap_key_data(state.key), np.arange(16) < 13
    shared = {**state.shared, **state.fixed}
    place = model.share(shared, state.local, key, wiring, DATA, state.epoch)

    def by_column(output):
        raw = model.head(shared, key, wiring)(output)
        seen = place.weight * wiring.log_likelihood(raw, DATA.targets, place.scored)
        return jnp.where(valid[:, None], seen, 0.0).sum(0) / valid.sum()

    rows = jax.jacrev(by_column)(place.output).reshape(2, -1)
    seen = gradient(model, Seen()).balancing.memory
    np.testing.assert_allclose(seen["gram"], rows @ rows.T, rtol=1e-4, atol=1e-8)
    cells = (place.scored & valid[:, None]).sum(0)
    np.testing.assert_allclose(seen["losses"], -by_column(place.output) * 13 / cells / place.weight, rtol=1e-4)


def test_models_that_share_an_output_declare_it():
    for name, spec in SPECS.items():
        assert spec.shared_output == issubclass(spec.load(), SharesOutput), name


def spoiled():
    """The table with a cell of the first column that no likelihood explains."""
    targets = DATA.targets.copy()
    targets[3, LAYOUT.places[0][0]] = np.inf
    return DATA._replace(targets=targets)


def trained(model, rule, data, epochs=3):
    return model.fit(LAYOUT, data, 0, Plan(1e-2, epochs, 8, rule=rule))


@pytest.mark.parametrize("name", rules("famo"))
def test_a_loss_that_is_infinite_leaves_its_column_out_and_the_rule_goes_on(name):
    with pytest.warns(EvenlyWarning, match=f"balance='{name}'.* left out of steps: '0' of [0-9]; the others went on"):
        found = trained(Factorization(2), RULES[name](), spoiled())
    assert np.isfinite(found.history.elbo).all()
    assert all(np.isfinite(one).all() for one in jax.tree.leaves(found.shared))
    assert found.history.not_finite == 0  # the learning rate stays


@pytest.mark.parametrize("name", rules("cagrad"))
def test_a_column_with_one_observed_cell_and_a_constant_one_are_trained(name):
    mask, targets = DATA.mask.copy(), DATA.targets.copy()
    mask[1:, 0], targets[:, LAYOUT.places[2][0]] = False, 1.0
    found = trained(Factorization(2), RULES[name](), DATA._replace(mask=mask, targets=targets))
    assert np.isfinite(found.history.elbo).all()
    assert all(np.isfinite(one).all() for one in jax.tree.leaves(found.shared))


@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.more) for one in ("pcgrad", "uncertainty")])
def test_the_same_seed_gives_the_same_bytes(name):
    first, again = (trained(VAE(3, 8), RULES[name](), DATA) for _ in range(2))
    for one, other in zip(jax.tree.leaves(first.shared), jax.tree.leaves(again.shared), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.more
def test_a_rule_changes_what_is_learned():
    plain, other = (trained(VAE(3, 8), rule, DATA) for rule in (None, RULES["mgda"]()))
    assert (plain.shared["encoder"]["0"]["weight"] != other.shared["encoder"]["0"]["weight"]).any()
    state = start(VAE(3, 8), LAYOUT, DATA, 0, 1e-3)
    balanced = state._replace(balancing=Balancing.start(RULES["none"](), LAYOUT, np.float32))
    compiled = jax.jit(step, static_argnums=0)
    one, two = (compiled(VAE(3, 8), wire(LAYOUT), DATA, each, ROWS)[0] for each in (state, balanced))
    assert_same(one.shared, two.shared)
