"""The log-likelihoods of columns that a training traces are in the table's units, whatever the method."""

from __future__ import annotations

import numpy as np
import pytest
from imputers import TABLE, make_imputer
from scipy import stats

from evenly import GradientTrace

pytestmark = pytest.mark.usefixtures("small_chunks")


def traced(model: str, method: str, epochs: int = 4):
    trace = GradientTrace("log", trace_likelihoods=True)
    sizes = {"mixture": {"n_clusters": 2}, "vae": {"latent_size": 2, "hidden_size": 4}}[model]
    settings = {"preset": "paper", "epochs": epochs, "random_state": 0, "callbacks": [trace], **sizes}
    return make_imputer(model, method, **settings).fit(TABLE), trace


@pytest.mark.more
@pytest.mark.parametrize("method", ["std-none", "lip-gamma"])
def test_the_last_point_is_what_the_fitted_imputer_predicts(method) -> None:
    imputer, trace = traced("mixture", method)
    assert trace.epochs.tolist() == [0, 1, 2, 4]
    assert trace.log_likelihood.shape == trace.gradients.shape == (4, 6)
    expected = imputer.log_likelihood(TABLE)
    np.testing.assert_allclose(trace.log_likelihood[-1], [expected[name] for name in TABLE], rtol=1e-5)
    assert trace.not_finite == 0


@pytest.mark.more
@pytest.mark.parametrize("method", ["std-none", "std-gamma"])
def test_a_count_is_scored_by_its_poisson_under_a_trick_too(method) -> None:
    imputer, trace = traced("mixture", method, epochs=1)
    rates = imputer.distribution(TABLE)["count"].parameters["rate"]
    cells = TABLE["count"].astype(float)
    by_scipy = stats.poisson.logpmf(cells, np.maximum(rates, 1e-6))[cells.notna()].mean()
    assert trace.log_likelihood[-1][list(TABLE).index("count")] == pytest.approx(by_scipy, rel=1e-5)


@pytest.mark.more
def test_the_first_point_is_that_of_the_untrained_model() -> None:
    _, trace = traced("vae", "std-none", epochs=2)
    untrained = make_imputer(
        "vae", "std-none", preset="paper", epochs=0, random_state=0, latent_size=2, hidden_size=4
    ).fit(TABLE)
    expected = untrained.log_likelihood(TABLE)
    np.testing.assert_allclose(trace.log_likelihood[0], [expected[name] for name in TABLE], rtol=1e-4)
