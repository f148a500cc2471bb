"""Models are known by their specs, without JAX; adding one takes one class."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import commands
import numpy as np
import pandas as pd
import pytest

from evenly import Imputer, TableError, Training, compare_imputers, try_imputer
from evenly.evaluation.comparison import candidates
from evenly.likelihoods.bounds import constrain
from evenly.models import MODELS, PAPERS, SPECS, Fitted, History, Model, ModelSpec, Trace, spec
from evenly.models.base import NOBODY


@pytest.fixture
def toy() -> Iterator[type[Model]]:
    """A model in one class, without JAX: each column as it is in the first rows. Forgotten afterwards."""

    @dataclass(frozen=True)
    class Toy(Model):
        n_first: int = 10
        spec: ClassVar = ModelSpec("toy", ("n_first",), method="std-none", needs_jax=False, trains=False)

        @classmethod
        def of_size(cls, n_rows, n_columns, sizes):
            return cls(min(n_rows, sizes.get("n_first", 10)))

        def fit(self, layout, data, seed, plan, watchers=NOBODY, stream=None):
            nothing = np.zeros((0, layout.n_columns))
            known = {"raw": layout.constant(data.rows(slice(self.n_first)))}
            return Fitted(known, History(np.zeros(0), nothing), Trace(np.zeros(0), nothing, nothing))

        def predict_natural(self, layout, shared, data, draw=None, *, alike=False):
            raws = layout.by_feature(shared["raw"])
            naturals = [constrain(one, raw) for one, raw in zip(layout.likelihoods, raws, strict=True)]
            return [np.broadcast_to(one, (len(data.mask), *one.shape)) for one in naturals]

    yield Toy
    del SPECS["toy"], spec._CLASSES["toy"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(-3.0, 2.0, 120), "c": rng.choice(["no", "yes"], 120, p=[0.7, 0.3])})
    return table.mask(rng.random(table.shape) < 0.2)


@pytest.mark.usefixtures("toy")
def test_a_new_model_imputes_samples_and_gives_intervals(table):
    assert list(MODELS) == [*SPECS] == ["mixture", "factorization", "vae", "hivae", "masked", "marginal", "toy"]
    imputer = Imputer("toy", random_state=0)
    full, gone = imputer.fit_transform(table), table["x"].isna()
    first = table["x"][:10].dropna()
    np.testing.assert_allclose(full["x"][gone], first.mean(), rtol=1e-6)
    cells = imputer.distribution(table)["x"]
    np.testing.assert_allclose(cells.parameters["std"], first.std(ddof=0), rtol=1e-5)
    low, high = imputer.interval(table, 0.9)
    assert (low["x"] < full["x"])[gone].all()
    assert (full["x"] < high["x"])[gone].all()
    one, other = imputer.sample(table, 2)
    assert not one.isna().any(axis=None)
    assert not one.equals(other)
    assert imputer.scaler_.method == "std-none"  # by its spec


@pytest.mark.usefixtures("toy")
def test_a_new_model_has_its_own_sizes_and_is_saved_and_loaded(table, tmp_path):
    imputer = Imputer("toy", training=Training(sizes={"n_first": 50}), random_state=0).fit(table)
    full = imputer.transform(table)
    np.testing.assert_allclose(full["x"][table["x"].isna()], table["x"][:50].mean(), rtol=1e-6)
    imputer.save(tmp_path)
    again = Imputer.load(tmp_path)
    assert again.ensemble_.model == imputer.ensemble_.model
    pd.testing.assert_frame_equal(again.transform(table), full, check_exact=True)


@pytest.mark.usefixtures("toy")
def test_a_new_model_is_tried_and_compared(table):
    trial = try_imputer(Imputer("toy"), table)
    assert (trial.model, trial.method) == ("toy", "std-none")
    assert np.isfinite(trial.error)
    both = [Imputer(*pair) for pair in candidates(["marginal", "toy"])]
    assert [one.model for one in compare_imputers(both, table)] == ["marginal", "toy"]


@pytest.mark.usefixtures("toy")
def test_the_commands_know_a_new_model(table, tmp_path):
    source, out = tmp_path / "table.csv", tmp_path / "full.csv"
    table.to_csv(source, index=False)
    commands.succeeded(commands.run("impute", source, "-o", out, "--model", "toy", "--share", 0, without=["jax"]))
    full = pd.read_csv(out)
    np.testing.assert_allclose(full["x"][table["x"].isna()], table["x"][:10].mean(), rtol=1e-6)
    shown = commands.succeeded(commands.run("compare", source, "--model", "toy", "--model", "marginal"))
    assert "toy" in shown
    assert "marginal" in shown


def test_a_model_that_is_gone_is_unknown(table, tmp_path):
    assert "toy" not in MODELS
    with pytest.raises(TableError, match=r"model = 'toy', but expected one of auto, mixture, .*marginal"):
        Imputer("toy").fit(table)
    source = tmp_path / "table.csv"
    table.to_csv(source, index=False)
    commands.refused(commands.run("impute", source, "-o", tmp_path / "full.csv", "--model", "toy"), "got model 'toy'")


def test_a_model_without_a_spec_is_not_registered():
    """Such as the common part of several models."""
    before = dict(SPECS), dict(spec._CLASSES)

    class Common(Model):
        """Abstract."""

    assert before == (SPECS, spec._CLASSES)
    with pytest.raises(TypeError, match="abstract"):
        Common()


@pytest.mark.parametrize("name", SPECS)
def test_a_model_takes_the_sizes_that_its_spec_names(name):
    own = SPECS[name]
    model = own.load()
    assert model is MODELS[name]
    assert model.spec is own
    sizes = dict.fromkeys(own.sizes, 3)
    made = model.of_size(100, 4, sizes)
    assert {size: getattr(made, size) for size in own.sizes} == sizes
    assert made != model.of_size(100, 4, {}) or not sizes


def test_the_papers_models_have_the_papers_learning_rates():
    assert {name: SPECS[name].learning_rate for name in PAPERS} == {"mixture": 1e-3, "factorization": 1e-2, "vae": 1e-3}


def test_specs_are_known_without_jax():
    """What lists, plans or checks models imports none of them; neither does the model that needs no JAX."""
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "optax"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import numpy as np
from evenly import Imputer, MissingExtraError, Training
from evenly.models import MODELS, SPECS
for name in SPECS:
    Imputer(name, training=Training(sizes={size: 2 for size in SPECS[name].sizes})).check_settings()
full = Imputer("marginal").fit_transform(np.array([[1.0, 5.0], [np.nan, 7.0], [4.4, 6.5]]))
print(len(SPECS), list(MODELS) == list(SPECS), full[1, 0], "jax" in sys.modules)
try:
    MODELS["vae"]
except MissingExtraError as error:
    print(str(error).split()[-1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["6", "True", "2.7", "False", '"evenly[models]"']
