"""The marginal model: what each column is alone, without JAX and without training."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenly import Imputer, compare_imputers
from evenly.metrics import errors as metrics


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    table = pd.DataFrame(
        {
            "real": 3.0 + 2.0 * x,
            "count": pd.array(rng.poisson(4.0, 400), dtype="Int64"),
            "yes": x > 0.7,
            "class": rng.choice(["a", "b", "c"], 400, p=[0.2, 0.5, 0.3]),
        }
    ).astype({"yes": "boolean"})
    return table.mask(rng.random(table.shape) < 0.2)


def test_it_imputes_the_mean_the_median_or_the_most_frequent_class(table):
    seen = table["real"].dropna()
    for which, expected in (("mean", seen.mean()), ("median", seen.median())):
        full = Imputer("marginal", estimate=which).fit_transform(table)
        gone = table["real"].isna()
        np.testing.assert_allclose(full["real"][gone], expected, atol=0.1 * seen.std() if which == "median" else 1e-6)
        assert set(full["class"][table["class"].isna()]) == {"b"}
        assert not full["yes"][table["yes"].isna()].any()
    assert full["count"].dtype == "Int64"


def test_its_error_is_that_of_mean_or_mode(table):
    hidden = table.notna().to_numpy() & (np.random.default_rng(1).random(table.shape) < 0.2)
    imputer = Imputer("marginal").fit(table.mask(hidden))
    codes = np.column_stack(
        [
            table["real"],
            table["count"].astype(float),
            table["yes"].astype(float),
            table["class"].map({"a": 0.0, "b": 1.0, "c": 2.0}),
        ]
    )
    columns = imputer.schema_.columns
    expected = metrics.baseline_errors(columns, codes, hidden)
    found = metrics.column_errors(columns, codes, imputer.predict_cells(table.mask(hidden)), hidden)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_intervals_are_the_quantiles_of_the_column_and_draws_follow_it(table):
    imputer = Imputer("marginal", random_state=0).fit(table)
    low, high = imputer.interval(table, 0.9)
    gone, seen = table["real"].isna(), table["real"].dropna()
    np.testing.assert_allclose(low["real"][gone], seen.quantile(0.05), atol=0.1 * seen.std())
    np.testing.assert_allclose(high["real"][gone], seen.quantile(0.95), atol=0.1 * seen.std())
    drawn = np.concatenate([one["real"][gone] for one in imputer.sample(table, 5)])
    assert stats.ks_2samp(drawn, seen).pvalue > 0.01
    shares = imputer.distribution(table)["class"].probabilities
    np.testing.assert_allclose(
        shares, np.tile(table["class"].value_counts(normalize=True)[list("abc")], (400, 1)), rtol=1e-6
    )


def test_it_is_compared_with_the_others_as_any_model_is(table):
    (trial,) = compare_imputers([Imputer("marginal")], table[["real", "yes", "class"]])
    assert (trial.model, trial.error) == ("marginal", pytest.approx(trial.baseline, rel=1e-6))


def test_there_is_nothing_to_wait_for(table, capsys):
    Imputer("marginal", verbose=1).fit(table)
    assert capsys.readouterr().err == ""


@pytest.mark.more
def test_it_needs_no_jax():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "optax"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import tempfile, numpy as np, evenly
table = np.random.default_rng(0).normal(size=(50, 2)); table[0, 0] = np.nan
imputer = evenly.Imputer("marginal").fit(table)
with tempfile.TemporaryDirectory() as folder:
    imputer.save(folder)
    print(np.isnan(evenly.Imputer.load(folder).transform(table)).any(), len(imputer.sample(table, 2)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["False", "2"]), done.stderr
