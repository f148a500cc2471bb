"""A likelihood of whole numbers from its formulas: against SciPy, and from the table to the imputed cells."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats as stats

from evenly import EvenlyWarning, Imputer, LipschitzScaler, Support, TableError, Training, define_likelihood
from evenly.likelihoods import Likelihood, get_likelihood

pytest.importorskip("jax")


def _statistic(x: Any, xp: Any) -> tuple[Any, ...]:
    return (1.0 * x,)


def _log_factorial(x: Any, xp: Any) -> Any:
    return -xp.gammaln(x + 1.0)


def _truncated(natural: Any, xp: Any) -> Any:
    rate = xp.exp(natural[..., 0])  # log(exp(rate) - 1), as single precision can hold it
    positive = xp.where(rate < 1e-3, rate * (1.0 - rate / 2.0 + rate**2 / 6.0), 1.0 - xp.exp(-rate))
    return rate + xp.log(positive)


POISSON: dict[str, Any] = {
    "support": Support(0.0, whole=True),
    "statistics": _statistic,
    "log_base": _log_factorial,
    "log_partition": lambda natural, xp: xp.exp(natural[..., 0]),
}
TRUNCATED = POISSON | {"support": Support(1.0, whole=True), "log_partition": _truncated}
"""A Poisson that is never 0: items of an order, say."""
BINOMIAL: dict[str, Any] = {
    "support": Support(0.0, 10.0, whole=True),
    "statistics": _statistic,
    "log_base": lambda x, xp: xp.gammaln(0.0 * x + 11.0) - xp.gammaln(x + 1.0) - xp.gammaln(11.0 - x),
    "log_partition": lambda natural, xp: 10.0 * xp.log(1.0 + xp.exp(natural[..., 0])),
}


def _reference(rate: float) -> Any:
    k = np.arange(1.0, 200.0)
    return stats.rv_discrete(values=(k, stats.poisson(rate).pmf(k) / -np.expm1(-rate)))


@pytest.fixture(scope="module")
def orders() -> Likelihood:
    return define_likelihood("orders", **TRUNCATED)


def check(likelihood: Likelihood, natural: np.ndarray, reference: Any) -> None:
    x = reference.ppf([0.01, 0.3, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(likelihood.log_density(x, natural), reference.logpmf(x), rtol=1e-9, atol=1e-9)
    assert float(likelihood.mean(natural)) == pytest.approx(reference.mean(), rel=1e-9)
    for level in (0.01, 0.3, 0.5, 0.77, 0.999):
        assert float(likelihood.quantile(natural, level)) == reference.ppf(level)
    mode = float(likelihood.mode(natural))
    assert reference.logpmf(mode) >= reference.logpmf(np.array([mode - 1.0, mode + 1.0])).max() - 1e-9
    assert float(likelihood.fisher(natural)[0, 0]) == pytest.approx(reference.var(), rel=1e-8)


@pytest.mark.parametrize("rate", [0.02, 1.0, 4.5, 60.0])
def test_a_truncated_poisson_is_what_it_should_be(orders: Likelihood, rate: float) -> None:
    check(orders, np.log([rate]), _reference(rate))
    assert orders.log_density(np.array([0.0, 1.5]), np.log([rate])).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("rate", [0.3, 50.0, 1e5])
def test_a_poisson_by_hand_is_the_poisson(rate: float) -> None:
    check(define_likelihood("my-poisson", **POISSON), np.log([rate]), stats.poisson(rate))


def test_very_large_counts_are_summed_in_steps() -> None:
    own, natural = define_likelihood("my-poisson", **POISSON), np.log([1e9])
    reference = stats.poisson(1e9)
    assert float(own.mean(natural)) == pytest.approx(1e9, rel=1e-9)
    for level in (0.05, 0.5, 0.95):
        assert abs(float(own.quantile(natural, level)) - reference.ppf(level)) < 0.1 * reference.std()


def test_a_bounded_support_works() -> None:
    own = define_likelihood("binomial-10", **BINOMIAL)
    check(own, np.array([0.4]), stats.binom(10, 1.0 / (1.0 + np.exp(-0.4))))


def test_fit_and_samples_agree(orders: Likelihood) -> None:
    natural = np.log([[0.5], [3.0]])
    drawn = orders.sample(np.random.default_rng(0), natural, (4000,))
    assert drawn.shape == (4000, 2)
    assert (drawn >= 1.0).all()
    assert (drawn == np.floor(drawn)).all()
    fitted = orders.fit(orders.statistics(drawn).mean(0))
    np.testing.assert_allclose(np.exp(fitted), np.exp(natural), rtol=0.1)
    np.testing.assert_allclose(orders.mean_statistics(fitted)[:, 0], drawn.mean(0), rtol=1e-12)


def test_formulas_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(TableError, match=r"got a density that sums to 0\.\d+, but 'bad' must sum to 1"):
        define_likelihood("bad", **TRUNCATED | {"log_partition": POISSON["log_partition"]})


def test_functions_of_a_module_can_be_pickled(orders: Likelihood) -> None:
    again = pickle.loads(pickle.dumps(orders))
    assert again.quantile(np.log([3.0]), 0.5) == orders.quantile(np.log([3.0]), 0.5)


# --- from the table to the imputed cells --------------------------------------------------------------------

N = 300
RNG = np.random.default_rng(1)
LATENT = RNG.normal(size=N)
TABLE = pd.DataFrame(
    {
        "age": 40.0 + 9.0 * LATENT + RNG.normal(size=N),
        "items": np.where(RNG.random(N) < 0.2, np.nan, 1.0 + RNG.poisson(np.exp(0.5 + 0.8 * LATENT))),
    }
)


@pytest.mark.parametrize("method", ["lip-none", "lip-gamma", "std-none"])
def test_a_scaler_passes_its_data_through(orders: Likelihood, method: str) -> None:
    """Under the Gamma trick too: its parameters do not follow from a mean and a variance."""
    scaler = LipschitzScaler(method, likelihoods={"items": orders}, random_state=0).fit(TABLE)
    row = scaler.summary_.set_index("column").loc["items"]
    assert (row["kind"], row["likelihood"], row["outcome"]) == ("count", "orders", "passed_through")
    natural = scaler.unscale(scaler.natural_)["items"]["natural_1"]
    assert float(orders.mean(np.array([natural]))) == pytest.approx(TABLE["items"].mean())
    np.testing.assert_array_equal(scaler.transform(TABLE)["items"], TABLE["items"])


@pytest.mark.more
@pytest.mark.parametrize("model", ["vae", "mixture"])
def test_missing_counts_are_imputed(orders: Likelihood, model: str) -> None:
    imputer = Imputer(model, "lip-none", likelihoods={"items": orders}, training=Training(epochs=80), random_state=0)
    gone = TABLE["items"].isna()
    filled = imputer.fit(TABLE).transform(TABLE)["items"]
    assert (filled >= 1.0).all()
    low, high = (end["items"][gone] for end in imputer.interval(TABLE, 0.8))
    assert (low >= 1.0).all()
    assert (low <= high).all()
    drawn = imputer.sample(TABLE, 1)[0]["items"]
    assert (drawn >= 1.0).all()
    assert (drawn == drawn.round()).all()


def test_declaring_it_makes_the_column_a_count(orders: Likelihood) -> None:
    assert get_likelihood("poisson").kinds == orders.kinds == ("count",)
    with pytest.raises(TableError, match="items"):
        LipschitzScaler(likelihoods={"items": orders}).fit(TABLE.assign(items=TABLE["items"] - 1.0))  # has zeros


def test_new_rows_are_moved_to_the_ends_of_a_bounded_count():
    trials = define_likelihood("trials", **BINOMIAL)
    seen = pd.DataFrame({"n": np.tile([2.0, 5.0, 7.0, 3.0], 10)})
    scaler = LipschitzScaler("lip-none", likelihoods={"n": trials}).fit(seen)
    new = pd.DataFrame({"n": [-3.0, 4.5, 99.0, 10.4]})
    with pytest.warns(
        EvenlyWarning, match="1 cell below 0, .*; 2 cells not whole, rounded; 1 cell above 10, used as 10"
    ):
        assert scaler.transform(new)["n"].tolist() == [0.0, 5.0, 10.0, 10.0]
    with pytest.raises(TableError, match="maximum 99, but trials expects whole numbers from 0 to 10"):
        LipschitzScaler("lip-none", likelihoods={"n": trials}).fit(pd.DataFrame({"n": [1.0, 99.0]}))
