"""The diagnosis: smoothness and gradient shares against closed forms and autodiff, and what a short training says."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import polygamma

from evenly import Imputer, LipschitzScaler, Schema, TableError, Training, diagnose
from evenly.evaluation.diagnosis_results import SCALINGS, Diagnosis, ShortTraining, give_verdict
from evenly.evaluation.short_training import FEWEST, LEAST_GAIN, Coded, _overlooked, hide_cells, short_epochs
from evenly.metrics import mean_or_mode
from evenly.tables.frames import open_table
from evenly.tables.schema import Column

N = 400
RNG = np.random.default_rng(7)
LATENT = RNG.normal(size=N)
MIXED = pd.DataFrame(
    {
        "height": 170.0 + 8.0 * LATENT + RNG.normal(size=N),
        "change": RNG.normal(-0.2, 3.0, N),
        "income": np.exp(8.0 + 0.7 * RNG.normal(size=N)),
        "wait": RNG.exponential(4.0, N),
        "load": RNG.gamma(3.0, 20.0, N),
        "visits": RNG.poisson(np.exp(1.0 + 0.5 * LATENT)),
        "smokes": np.where(RNG.random(N) < 0.3, "yes", "no"),
        "city": RNG.choice(["Bonn", "Jena", "Kiel", "Ulm"], N, p=[0.5, 0.3, 0.15, 0.05]),
    }
)
SETTINGS = {
    "kinds": {"height": "real"},
    "likelihoods": {"wait": "exponential", "load": "gamma"},
}
RATE = 1e-3


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    return diagnose(MIXED, train=False, **SETTINGS)


# --- smoothness and shares: independent formulas ------------------------------------------------------------------


def normal_fisher(x):
    """Of a normal fitted to x; that of a scaled column is that of the scaled values."""
    m, v = x.mean(), x.var()
    return np.array([[v, 2 * m * v], [2 * m * v, 2 * v**2 + 4 * m**2 * v]])


def exponential_fisher(x):
    return np.array([[x.mean() ** 2]])


def gamma_fisher(x):
    a, _, scale = stats.gamma.fit(x, floc=0)
    return np.array([[polygamma(1, a), scale], [scale, a * scale**2]])


def class_fisher(cells):
    p = pd.Series(cells).value_counts(normalize=True).to_numpy()
    return np.diag(p) - np.outer(p, p)


def scaled(values, scaling):
    """Scale by NumPy's own summaries."""
    low, high = np.quantile(values, [0.25, 0.75])
    by = {"none": 1.0, "std": values.std(), "max": np.abs(values).max(), "iqr": high - low}
    return values / by[scaling]


FISHERS = {
    "height": lambda by: normal_fisher(scaled(MIXED["height"].to_numpy(), by)),
    "change": lambda by: normal_fisher(scaled(MIXED["change"].to_numpy(), by)),
    "income": lambda by: normal_fisher(scaled(np.log(MIXED["income"].to_numpy()), by)),
    "wait": lambda by: exponential_fisher(scaled(MIXED["wait"].to_numpy(), by)),
    "load": lambda by: gamma_fisher(scaled(MIXED["load"].to_numpy(), by)),
    "visits": lambda by: np.array([[MIXED["visits"].mean()]]),
    "smokes": lambda by: np.array([[np.prod(MIXED["smokes"].value_counts(normalize=True))]]),
    "city": lambda by: class_fisher(MIXED["city"]),
}


@pytest.mark.parametrize("scaling", ["none", "std", "max", "iqr"])
def test_smoothness_is_the_sum_of_absolute_fisher_entries_of_the_scaled_column(found, scaling):
    ours = {one.column: one.smoothness[scaling] for one in found.columns}
    theirs = {name: np.abs(fisher(scaling)).sum() for name, fisher in FISHERS.items()}
    assert list(ours) == list(MIXED.columns)
    assert ours == pytest.approx(theirs, rel=1e-6)  # SciPy's gamma fit ends at about 1e-8


@pytest.mark.parametrize("scaling", ["none", "std", "max", "iqr"])
def test_gradient_shares_go_by_the_root_of_the_fisher_trace(found, scaling):
    roots = {name: np.sqrt(np.trace(fisher(scaling))) for name, fisher in FISHERS.items()}
    ours = {one.column: one.gradient_share[scaling] for one in found.columns}
    assert ours == pytest.approx({name: root / sum(roots.values()) for name, root in roots.items()}, rel=1e-6)


def test_under_lip_every_column_has_the_target_and_the_features_of_lip_gamma(found):
    target = 1.0 / (len(MIXED.columns) * RATE)
    assert [one.smoothness["lip"] for one in found.columns] == pytest.approx([target] * len(MIXED.columns), rel=1e-9)
    scaler = LipschitzScaler("lip-gamma", learning_rate=RATE, **SETTINGS).fit(MIXED)
    traces = {}
    for fitted in scaler.columns_:
        parts = [one.likelihood.fisher(fit.natural) for one, fit in zip(fitted.features, fitted.fits, strict=True)]
        traces[fitted.column.name] = np.sqrt(sum(np.trace(part) for part in parts))
    ours = {one.column: one.gradient_share["lip"] for one in found.columns}
    assert ours == pytest.approx({name: one / sum(traces.values()) for name, one in traces.items()}, rel=1e-9)


@pytest.mark.parametrize("method", ["std-none", "max-none", "iqr-none", "lip-gamma"])
def test_smoothness_agrees_with_the_scaler_of_that_method(found, method):
    summary = LipschitzScaler(method, learning_rate=RATE, **SETTINGS).fit(MIXED).summary_
    sums = summary.groupby("column", sort=False)["smoothness_after"].sum().to_dict()
    by = method.partition("-")[0]
    assert {one.column: one.smoothness[by] for one in found.columns} == pytest.approx(sums, rel=1e-12)


DENSITIES = {
    "normal": lambda jnp, gammaln, x, n: (
        n[0] * x + n[1] * x**2 + n[0] ** 2 / (4 * n[1]) + 0.5 * jnp.log(-2 * n[1]) - 0.5 * jnp.log(2 * jnp.pi)
    ),
    "exponential": lambda jnp, gammaln, x, n: n[0] * x + jnp.log(-n[0]),
    "gamma": lambda jnp, gammaln, x, n: n[0] * jnp.log(x) + n[1] * x - gammaln(n[0] + 1) + (n[0] + 1) * jnp.log(-n[1]),
    "poisson": lambda jnp, gammaln, x, n: n[0] * x - jnp.exp(n[0]) - gammaln(x + 1),
    "bernoulli": lambda jnp, gammaln, x, n: n[0] * x - jnp.log1p(jnp.exp(n[0])),
}
"""Log-densities in natural parameters, written out here once more."""


def drawn_columns():
    """Values drawn from each column's own fit, standardized where they can be: (density, natural, draws)."""
    rng, n = np.random.default_rng(11), 200_000
    height = scaled(MIXED["height"].to_numpy(), "std")
    wait = scaled(MIXED["wait"].to_numpy(), "std")
    shape, _, size = stats.gamma.fit(scaled(MIXED["load"].to_numpy(), "std"), floc=0)
    rate = MIXED["visits"].mean()
    p = (MIXED["smokes"] == "yes").mean()
    m, v = height.mean(), height.var()
    return {
        "height": ("normal", [m / v, -0.5 / v], rng.normal(m, np.sqrt(v), n)),
        "wait": ("exponential", [-1.0 / wait.mean()], rng.exponential(wait.mean(), n)),
        "load": ("gamma", [shape - 1.0, -1.0 / size], rng.gamma(shape, size, n)),
        "visits": ("poisson", [np.log(rate)], rng.poisson(rate, n)),
        "smokes": ("bernoulli", [np.log(p / (1 - p))], rng.random(n) < p),
    }


def test_gradient_shares_are_the_sizes_of_gradients_that_autodiff_finds(found):
    """Root mean square of one cell's gradient, relative to another column's; five standard errors of the draws."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        sizes, errors = {}, {}
        for name, (density, natural, draws) in drawn_columns().items():
            slope = jax.grad(
                lambda eta, x, density=density: DENSITIES[density](jax.numpy, jax.scipy.special.gammaln, x, eta)
            )
            gradients = jax.vmap(slope, (None, 0))(jax.numpy.asarray(natural), jax.numpy.asarray(draws, float))
            squares = (np.asarray(gradients) ** 2).sum(-1)
            sizes[name] = np.sqrt(squares.mean())
            errors[name] = 0.5 * squares.std() / np.sqrt(len(squares)) / squares.mean()
    shares = {one.column: one.gradient_share["std"] for one in found.columns}
    for name in sizes:
        ratio = (shares[name] / shares["visits"]) / (sizes[name] / sizes["visits"])
        assert abs(ratio - 1.0) < 5.0 * np.hypot(errors[name], errors["visits"]), name


def test_shares_add_up_and_units_matter_only_where_nothing_is_scaled(found):
    for scaling in SCALINGS:
        assert sum(one.gradient_share[scaling] for one in found.columns) == pytest.approx(1.0, abs=1e-12)
    other = diagnose(MIXED.assign(height=1000.0 * MIXED["height"]), train=False, **SETTINGS)
    for scaling in SCALINGS:
        same = [one.gradient_share[scaling] for one in found.columns] == pytest.approx(
            [one.gradient_share[scaling] for one in other.columns], rel=1e-9
        )
        assert same == (scaling != "none")


# --- tables as people have them -----------------------------------------------------------------------------------


TABLES = {
    "polars": pl.DataFrame(MIXED.to_dict("list")),
    "arrow": pa.table(MIXED.to_dict("list")),
    "pandas, nullable": MIXED.convert_dtypes(),
    "pandas, categories": MIXED.astype({"city": "category"}),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_every_kind_of_table_gives_the_same_diagnosis(found, table):
    other = diagnose(table, train=False, **SETTINGS)
    assert (other.n_rows, other.verdict, other.passed_through) == (N, found.verdict, found.passed_through)
    for one, same in zip(other.columns, found.columns, strict=True):
        assert (one.column, one.kind, one.likelihood) == (same.column, same.kind, same.likelihood)
        assert one.smoothness == pytest.approx(same.smoothness, rel=1e-9)
        assert one.gradient_share == pytest.approx(same.gradient_share, rel=1e-9)


def test_arrays_have_columns_by_place():
    other = diagnose(MIXED[["height", "change"]].to_numpy(), train=False, kinds={0: "real"})
    assert [one.column for one in other.columns] == ["x0", "x1"]


def test_columns_that_are_not_modelled_are_listed_with_their_reason():
    table = MIXED[["height"]].assign(
        same=1.0,
        empty=np.nan,
        nothing=pd.Series([None] * N, dtype=object),
        row_id=np.arange(N),
        day=pd.date_range("2020-01-01", periods=N),
        words=[f"a text of its own, number {i}" for i in range(N)],
        unwanted=RNG.normal(size=N),
    )
    listed = diagnose(table, train=False, kinds={"unwanted": "ignore"}).passed_through
    assert {name: reason.partition(":")[0] for name, reason in listed.items()} == {
        "same": "constant",
        "empty": "no data",
        "nothing": "no data",
        "row_id": "identifier",
        "day": "dates or times",
        "words": "free text",
        "unwanted": "declared `ignore`",
    }


NOTHING = {
    "one row": pd.DataFrame({"a": [1.5], "b": ["x"]}),
    "all constant": pd.DataFrame({"a": [2.0, 2.0, 2.0], "b": ["x", "x", "x"]}),
    "all missing": pd.DataFrame({"a": [np.nan, np.nan], "b": [None, None]}),
    "dates only": pd.DataFrame({"a": pd.date_range("2020-01-01", periods=30)}),
}


@pytest.mark.parametrize("table", NOTHING.values(), ids=NOTHING.keys())
def test_a_table_without_anything_to_model_is_no_error(table):
    nothing = diagnose(table)
    assert (nothing.columns, nothing.trainings, list(nothing.passed_through)) == ((), (), list(table.columns))
    assert nothing.verdict == "Nothing can be learned: the table has no column to model."
    assert str(nothing).startswith(nothing.verdict)


def test_an_empty_table_is_refused():
    with pytest.raises(TableError, match="0 rows"):
        diagnose(pd.DataFrame({"a": []}))


def test_one_column_has_all_of_the_gradient():
    alone = diagnose(MIXED[["change"]], train=False)
    assert alone.columns[0].gradient_share == dict.fromkeys(SCALINGS, 1.0)
    assert alone.verdict == "'change' is the only column to model: it gets all of the gradient."


EXTREMES = {
    "1e300": RNG.normal(size=N) * 1e300,
    "1e-300": RNG.random(N) * 1e-300,
    "the largest numbers": RNG.choice([-1.7e308, 0.5, 1.7e308], N),
    "1e-300 to 1e300": 10.0 ** RNG.uniform(-300, 300, N),
    "offset 1e15": 1e15 + RNG.normal(size=N),
    "offset -1e15": -1e15 + RNG.normal(size=N),
    "nearly constant": np.where(np.arange(N) == 0, 1.0, 0.0),
}


@pytest.mark.parametrize("values", EXTREMES.values(), ids=EXTREMES.keys())
def test_extreme_values_give_finite_numbers(values):
    extreme = diagnose(MIXED[["change", "city"]].assign(strange=values), train=False)
    for one in extreme.columns:
        assert not any(np.isnan(value) for value in one.smoothness.values())
        assert all(0.0 <= value <= 1.0 for value in one.gradient_share.values())
    assert {one.column for one in extreme.columns} | set(extreme.passed_through) == {"change", "city", "strange"}
    assert json.loads(json.dumps(extreme.to_plain(), allow_nan=False))["n_rows"] == N


def test_hostile_names_come_back_as_they_are():
    names = ["<script>alert(1)</script>", 'a,"b"', "😀"]
    table = MIXED[["height", "change", "city"]].set_axis(names, axis=1)
    assert [one["column"] for one in diagnose(table, train=False).to_plain()["columns"]] == names


BAD = {
    "share": ({"share": 1.0}, "share = 1.0"),
    "method": ({"methods": ["std"]}, "the method 'std'"),
    "no method": ({"methods": []}, "no methods"),
    "model": ({"model": "tree"}, "model = 'tree'"),
    "epochs": ({"epochs": 2.5}, "epochs = 2.5"),
    "learning rate": ({"learning_rate": -1}, "learning_rate = -1"),
    "kind": ({"kinds": {"height": "tall"}}, "the kind 'tall'"),
}


@pytest.mark.parametrize(("settings", "message"), BAD.values(), ids=BAD.keys())
def test_bad_settings_are_refused_before_anything_is_trained(settings, message):
    with pytest.raises(TableError, match=message):
        diagnose(MIXED, **settings)


@pytest.mark.more
def test_without_jax_everything_but_the_training_works():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import evenly
print(len(evenly.diagnose(evenly.load_heart(), train=False).columns))
try:
    evenly.diagnose(evenly.load_heart())
except evenly.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "14",
        "this needs the package 'jax'. Install it with: pip install \"evenly[models]\"",
    ]


# --- which cells are hidden ---------------------------------------------------------------------------------------


def test_a_training_sees_all_but_the_hidden_cells():
    table = MIXED.assign(city=MIXED["city"].where(RNG.random(N) < 0.8), row_id=np.arange(N))
    columns = LipschitzScaler("iqr-none", **SETTINGS | {"kinds": {"row_id": "ignore"}}).fit(table).columns_
    trial = hide_cells(open_table(table), columns, set(MIXED.columns), 0.2, 3)
    shown = trial.table.columns[list(table.columns).index("city")].numbers
    codes = table["city"].map({"Bonn": 0.0, "Jena": 1.0, "Kiel": 2.0, "Ulm": 3.0}).to_numpy()
    hidden = trial.hidden[:, list(table.columns).index("city")]
    assert not (hidden & table["city"].isna().to_numpy()).any()
    np.testing.assert_array_equal(shown, np.where(hidden, np.nan, codes))
    assert not trial.hidden[:, -1].any()
    assert trial.columns[-1].kind == "ignore"


def test_long_tables_are_trained_on_some_of_their_rows():
    table = np.random.default_rng(0).normal(size=(25_000, 2))
    trial = hide_cells(open_table(table), LipschitzScaler("iqr-none").fit(table).columns_, {"x0", "x1"}, 0.1, 0)
    assert trial.truth.shape == (20_000, 2)
    assert np.isin(trial.truth[:, 0], table[:, 0]).all()
    assert len(np.unique(trial.truth[:, 0])) == 20_000


def test_short_trainings_have_as_many_steps_whatever_the_rows():
    for n_rows, size in ((100, 128), (1999, 128), (2000, 256), (20_000, 256)):
        steps = short_epochs(n_rows, size) * -(-n_rows // size)
        assert 450 <= steps <= 550


# --- who is overlooked --------------------------------------------------------------------------------------------


def trial_of(n_hidden: int = 100) -> tuple[Coded, np.ndarray]:
    """A number and a class, and predictions that are right."""
    rng = np.random.default_rng(5)
    columns = [Column(name="x", kind="real"), Column(name="c", kind="categorical", classes=[0, 1, 2])]
    truth = np.column_stack([rng.normal(size=1000), rng.integers(0, 3, 1000).astype(float)])
    hidden = np.zeros(truth.shape, bool)
    hidden[:n_hidden] = True
    return Coded(columns, None, truth, hidden, {}, {}), truth.copy()


BASELINE = {"x": -1.4, "c": -1.1}


def overlooked(trial, predicted, gain):
    return _overlooked(trial, predicted, {name: (-9.0, BASELINE[name] + gain) for name in BASELINE}, BASELINE)


def test_overlooked_needs_both_a_poor_log_likelihood_and_a_poor_error():
    trial, right = trial_of()
    average = mean_or_mode(trial.columns, trial.truth, trial.hidden)
    assert overlooked(trial, right, +1.0) == ()
    assert overlooked(trial, right, -1.0) == ()
    assert overlooked(trial, average, +1.0) == ()
    assert overlooked(trial, average, -1.0) == ("x", "c")
    assert overlooked(trial, average + np.array([5.0, 0.0]), -1.0) == ("x", "c")


def test_a_gain_within_chance_does_not_count():
    trial, _ = trial_of()
    average = mean_or_mode(trial.columns, trial.truth, trial.hidden)
    chance = LEAST_GAIN + 1.0 / 900  # 900 of 1,000 cells are visible
    assert overlooked(trial, average, 0.99 * chance) == ("x", "c")
    assert overlooked(trial, average, 1.01 * chance) == ()


def test_an_error_must_be_smaller_by_a_standard_error():
    """With one of 100 cells right and one more wrong the difference is 0 with spread; with all right it is clear."""
    trial, right = trial_of()
    average = mean_or_mode(trial.columns, trial.truth, trial.hidden)
    wrong = np.flatnonzero(average[:100, 1] != trial.truth[:100, 1])
    hit = np.flatnonzero(average[:100, 1] == trial.truth[:100, 1])
    balanced = average.copy()
    balanced[wrong[:5], 1] = trial.truth[wrong[:5], 1]
    balanced[hit[:5], 1] = (trial.truth[hit[:5], 1] + 1) % 3
    assert "c" in overlooked(trial, balanced, -1.0)
    few, right = trial_of(FEWEST - 1)
    assert overlooked(few, right, -1.0) == ("x", "c")  # nine cells say nothing


def test_a_column_that_the_training_could_not_explain_is_overlooked():
    trial, _ = trial_of()
    average = mean_or_mode(trial.columns, trial.truth, trial.hidden)
    assert _overlooked(trial, average, {"x": (0.0,)}, {"x": -1.4}) == ("c",)


# --- the verdict --------------------------------------------------------------------------------------------------


def training(method, *names):
    return ShortTraining(method, 1, 10, {}, {}, {}, {}, {}, {}, names)


VERDICTS = {
    "nothing": (
        [training("std-none"), training("lip-gamma")],
        "Nothing is overlooked: in a short training under std-none and lip-gamma every column is learned better than "
        "its own average.",
    ),
    "lip helps": (
        [training("std-none", "a", "b"), training("lip-gamma")],
        "A short training under std-none overlooks 'a' and 'b'; lip-gamma overlooks nothing.",
    ),
    "lip helps some": (
        [training("std-none", "a", "b", "c"), training("lip-gamma", "b")],
        "A short training under std-none overlooks 'a', 'b' and 'c'; lip-gamma learns 'a' and 'c', but overlooks 'b' "
        "too.",
    ),
    "lip does not help": (
        [training("std-none", "a"), training("lip-gamma", "a")],
        "A short training under std-none overlooks 'a'; lip-gamma overlooks 'a' too.",
    ),
    "lip hurts": (
        [training("std-none"), training("lip-gamma", "a")],
        "A short training under std-none overlooks nothing; lip-gamma overlooks 'a', which std-none does not.",
    ),
    "all of it": (
        [training("std-none", "a", "b"), training("lip-gamma", "b", "c")],
        "A short training under std-none overlooks 'a' and 'b'; lip-gamma learns 'a', but overlooks 'b' too and "
        "overlooks 'c', which std-none does not.",
    ),
    "many": (
        [training("std-none", *"abcdefghij")],
        "A short training under std-none overlooks 'a', 'b', 'c', 'd', 'e', 'f' and 4 more.",
    ),
}


@pytest.mark.parametrize(("trainings", "sentence"), VERDICTS.values(), ids=VERDICTS.keys())
def test_the_verdict_is_one_sentence_that_names_columns(found, trainings, sentence):
    assert give_verdict(found.columns, trainings) == sentence


def test_without_a_training_the_verdict_compares_the_largest_and_the_smallest_share(found):
    ordered = sorted(found.columns, key=lambda one: one.gradient_share["std"])
    assert found.verdict.startswith(f"Standardized, {ordered[-1].column!r} would get ")
    assert f" and {ordered[0].column!r} " in found.verdict


# --- a short training ---------------------------------------------------------------------------------------------

SMALL = MIXED[["height", "visits", "city"]].assign(
    city=MIXED["city"].where(np.arange(N) % 5 > 0), day=pd.date_range("2020-01-01", periods=N)
)


@pytest.fixture(scope="module")
def trained() -> Diagnosis:
    return diagnose(SMALL, kinds={"height": "real"}, epochs=3, share=0.2, random_state=4)


def test_a_training_reports_every_column(trained):
    assert [one.method for one in trained.trainings] == ["std-none", "lip-gamma"]
    for one in trained.trainings:
        for mapping in (one.log_likelihood, one.baseline, one.error, one.baseline_error, one.gradient_share):
            assert list(mapping) == ["height", "visits", "city"]
        assert {len(curve) for curve in one.log_likelihood.values()} == {one.epochs} == {3}
        assert one.scored == {"height": 80, "visits": 80, "city": 64}  # a fifth of what is observed
        assert sum(one.gradient_share.values()) == pytest.approx(1.0)
        assert one.n_rows == N
    assert list(trained.passed_through) == ["day"]


@pytest.fixture(scope="module")
def trial() -> Coded:
    """The same cells hidden."""
    columns = LipschitzScaler("iqr-none", kinds={"height": "real", "day": "ignore"}).fit(SMALL).columns_
    seed = int(np.random.RandomState(4).randint(2**31 - 1))
    return hide_cells(open_table(SMALL), columns, {"height", "visits", "city"}, 0.2, seed)


def test_baselines_are_those_of_the_visible_cells(trained, trial):
    """Against NumPy: the mean and the most frequent class of the visible cells, on the hidden ones."""
    one = trained.trainings[0]
    for j, name in enumerate(["height", "visits"]):
        x, away = SMALL[name].to_numpy(float), trial.hidden[:, j]
        expected = np.sqrt(np.mean((x[away] - x[~away].mean()) ** 2)) / np.ptp(x)
        assert one.baseline_error[name] == pytest.approx(expected, rel=1e-12)
    city, away = SMALL["city"], trial.hidden[:, 2]
    assert one.baseline_error["city"] == pytest.approx((city[away] != city[~away].mode()[0]).mean(), rel=1e-12)
    height = SMALL["height"].to_numpy()[~trial.hidden[:, 0]]
    alone = stats.norm.logpdf(height, height.mean(), height.std()).mean()
    assert one.baseline["height"] == pytest.approx(alone, abs=1e-4)  # single precision


def test_errors_are_those_of_an_imputer_that_never_saw_the_hidden_cells(trained, trial):
    seed = int(np.random.RandomState(4).randint(2**31 - 1))
    short = Training(epochs=3, batch_size=128)
    imputer = Imputer("vae", "std-none", schema=Schema(columns=trial.columns), training=short, precision="full")
    full = pd.DataFrame(imputer.set_params(random_state=seed).fit_transform(trial.table), columns=trial.table.names)
    one = trained.trainings[0]
    for j, name in enumerate(["height", "visits"]):
        x, away = SMALL[name].to_numpy(float), trial.hidden[:, j]
        error = np.sqrt(np.mean((full[name].to_numpy()[away] - x[away]) ** 2)) / np.ptp(x)
        assert one.error[name] == pytest.approx(error, rel=1e-9)
    away = trial.hidden[:, 2]
    assert one.error["city"] == pytest.approx((full["city"] != trial.truth[:, 2])[away].mean(), rel=1e-12)


def test_the_same_seed_gives_the_same_diagnosis_and_another_one_another(trained):
    again, other = (diagnose(SMALL, kinds={"height": "real"}, epochs=3, share=0.2, random_state=s) for s in (4, 5))
    assert json.dumps(again.to_plain()) == json.dumps(trained.to_plain())
    assert str(again) == str(trained)
    assert other.trainings != trained.trainings


def test_arrow_and_polars_are_trained_on_the_same_cells(trained):
    for table in (pl.from_pandas(SMALL), pa.Table.from_pandas(SMALL)):
        other = diagnose(table, kinds={"height": "real"}, epochs=3, share=0.2, random_state=4, methods="std-none")
        assert other.trainings[0].baseline_error == trained.trainings[0].baseline_error
        assert other.trainings[0].error == pytest.approx(trained.trainings[0].error, rel=1e-6)


def test_printing_shows_the_verdict_first_and_every_column(trained):
    text = str(trained)
    assert text.startswith(trained.verdict)
    assert "A short training under lip-gamma, 3 epochs of 400 rows:" in text
    for one in trained.trainings:
        assert text.count(" overlooked\n") + text.endswith(" overlooked") >= len(one.overlooked)
    assert "Not modelled:\n  day: dates or times" in text


def test_a_plain_diagnosis_is_json_and_complete(trained):
    plain = json.loads(json.dumps(trained.to_plain(), allow_nan=False))
    assert set(plain) == {field.name for field in dataclasses.fields(Diagnosis)}
    assert set(plain["trainings"][0]) == {field.name for field in dataclasses.fields(ShortTraining)}
    assert plain["trainings"][1]["overlooked"] == list(trained.trainings[1].overlooked)


def test_a_column_too_far_from_zero_is_named_and_not_hidden_in_silence():
    table = SMALL[["height", "visits", "city"]].assign(far=1e9 + RNG.normal(size=N))
    (one,) = diagnose(table, kinds={"far": "real"}, epochs=1, methods="std-none", random_state=0).trainings
    assert "far" in one.overlooked
    assert "far" not in one.log_likelihood
    assert any("'far'" in note for note in one.notes)


@pytest.mark.more
def test_a_likelihood_of_ones_own_is_trained_too(pareto):
    table = MIXED[["height", "visits"]].assign(size=1.0 + np.exp(RNG.normal(size=N)))
    own = diagnose(table, likelihoods={"size": pareto}, kinds={"height": "real"}, epochs=1, methods="lip-none")
    assert own.columns[2].likelihood == "pareto"
    assert "size" in own.trainings[0].log_likelihood


@pytest.mark.more
def test_a_model_that_predicts_cell_by_cell_is_assessed_by_its_errors_alone():
    """Columns that have nothing to do with each other: whatever an epoch's log-likelihood happens to be."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200), "c": rng.choice(list("abc"), 200)})
    (one,) = diagnose(table, model="masked", methods="std-none", epochs=2, share=0.3, random_state=0).trainings
    worse = {name for name in table if one.error[name] >= one.baseline_error[name]}
    assert worse
    assert worse <= set(one.overlooked)


# --- adult --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adult(data_directory):
    from evenly.paper.datasets import as_table, load_dataset, schema

    data = load_dataset("adult", data_directory)
    return as_table(data), schema(data)


def test_adult_is_unbalanced_standardized_and_balanced_under_lip(adult):
    table, schema = adult
    columns = {one.column: one for one in diagnose(table, schema=schema, train=False).columns}
    logs = np.log(table["fnlwgt"].to_numpy())
    fisher = normal_fisher(logs / logs.std())
    assert columns["fnlwgt"].smoothness["std"] == pytest.approx(np.abs(fisher).sum(), rel=1e-9)
    sex = table["sex"].drop_nulls().to_numpy()
    p = (sex == sex.max()).mean()
    assert columns["sex"].smoothness["std"] == pytest.approx(p * (1 - p), rel=1e-9)
    ratio = columns["fnlwgt"].gradient_share["std"] / columns["sex"].gradient_share["std"]
    assert ratio == pytest.approx(np.sqrt(np.trace(fisher) / (p * (1 - p))), rel=1e-9)
    smoothness = [one.smoothness["lip"] for one in columns.values()]
    assert smoothness == pytest.approx([1.0 / (12 * RATE)] * 12, rel=1e-9)


@pytest.mark.more
def test_adult_has_columns_that_std_overlooks_and_the_verdict_names_them(adult):
    table, schema = adult
    found = diagnose(table, schema=schema, random_state=0)
    std, lip = found.trainings
    assert "fnlwgt" in std.overlooked
    for name in std.overlooked:
        assert f"'{name}'" in found.verdict
    for one in (std, lip):
        for name in one.overlooked:
            assert one.log_likelihood[name][-1] <= one.baseline[name] + LEAST_GAIN + 1e-4
    quiet = min(std.gradient_share.values()) / max(std.gradient_share.values())
    assert quiet < 0.01 < min(lip.gradient_share.values()) / max(lip.gradient_share.values())
