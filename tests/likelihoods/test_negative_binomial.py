"""A likelihood that is no exponential family, from the table to the imputed cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imputers import make_imputer
from scipy import stats

from evenly import LipschitzScaler
from evenly.likelihoods import get_likelihood

FAMILY = get_likelihood("negative-binomial")
N = 400
RNG = np.random.default_rng(0)
LATENT = RNG.normal(size=N)
MEANS = np.exp(1.5 + LATENT)
TABLE = pd.DataFrame(
    {
        "height": 170.0 + 8.0 * LATENT + RNG.normal(size=N),
        "visits": np.where(RNG.random(N) < 0.2, np.nan, RNG.negative_binomial(3.0, 3.0 / (3.0 + MEANS))),
    }
)
DECLARED = {"visits": "negative-binomial"}


def test_without_dispersion_it_is_a_poisson() -> None:
    x = np.arange(40.0)
    natural = FAMILY.to_natural(np.array([9.0, 1e-7]))
    np.testing.assert_allclose(FAMILY.log_density(x, natural), stats.poisson(9.0).logpmf(x), rtol=1e-5)
    assert FAMILY.fit(np.array([9.0, 85.0]))[1] == pytest.approx(np.log(1e-6))  # a variance of 4: less than a Poisson's


@pytest.mark.parametrize("method", ["lip-none", "std-none", "lip-bern"])
def test_its_data_are_passed_through(method: str) -> None:
    scaler = LipschitzScaler(method, likelihoods=DECLARED).fit(TABLE)
    row = scaler.summary_.set_index("column").loc["visits"]
    assert (row["kind"], row["scale"], row["outcome"]) == ("count", 1.0, "passed_through")
    mean, variance = TABLE["visits"].mean(), TABLE["visits"].var(ddof=0)
    usual = scaler.unscale(scaler.natural_)["visits"]
    assert usual["mean"] == pytest.approx(mean)
    assert usual["dispersion"] == pytest.approx((variance - mean) / mean**2)


def test_a_trick_leaves_its_mean_and_a_dispersion() -> None:
    """The gamma that stands for it has the counts' mean, and its shape says how much they vary."""
    scaler = LipschitzScaler("lip-gamma", likelihoods=DECLARED, random_state=0).fit(TABLE)
    usual = scaler.unscale(scaler.natural_)["visits"]
    assert set(usual) == {"mean", "dispersion"}
    assert usual["mean"] == pytest.approx(TABLE["visits"].mean(), rel=1e-9)
    assert 0.3 < usual["dispersion"] < 1.5  # 1/3 given the mean, and the means vary


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_of_a_table_merge(parts: int) -> None:
    whole = LipschitzScaler("lip-none", likelihoods=DECLARED).fit(TABLE)
    merged = LipschitzScaler("lip-none", likelihoods=DECLARED)
    for part in np.array_split(np.arange(N), parts):
        merged.partial_fit(TABLE.iloc[part])
    np.testing.assert_allclose(merged.natural_["visits"], whole.natural_["visits"], rtol=1e-12)


@pytest.mark.more
@pytest.mark.parametrize(("model", "method"), [("vae", "lip-none"), ("mixture", "lip-gamma"), ("masked", "lip-none")])
@pytest.mark.filterwarnings("ignore:mixture under lip-gamma")  # the warning has tests of its own
def test_missing_counts_are_imputed(model: str, method: str) -> None:
    pytest.importorskip("jax")
    settings = {"epochs": 150, "n_networks": 1} if model == "masked" else {"epochs": 150}
    imputer = make_imputer(model, method, likelihoods=DECLARED, random_state=0, **settings).fit(TABLE)
    gone = TABLE["visits"].isna()
    filled = imputer.transform(TABLE)["visits"]
    assert (filled[gone] >= 0.0).all()
    assert np.corrcoef(np.log(filled[gone] + 1.0), LATENT[gone])[0, 1] > 0.5
    low, high = (end["visits"][gone] for end in imputer.interval(TABLE, 0.9))
    assert (low <= high).all()
    assert (high - low).mean() > 5.0  # a Poisson's would be some 4 * sqrt(7)
    drawn = imputer.sample(TABLE, 1)[0]["visits"][gone]
    assert (drawn == drawn.round()).all()
    assert (drawn >= 0.0).all()
    assert np.isfinite(imputer.log_likelihood(TABLE)["visits"])
