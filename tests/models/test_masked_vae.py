"""The VAE trained by hiding cells: it is stopped by cells that it does not see, and averages over its latent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from imputers import make_imputer

from evenly import TableError

SETTINGS: dict[str, Any] = {"model": "vae", "masked_training": True, "hidden_size": 16, "random_state": 0}


def holed_table(n_rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    z = rng.normal(size=n_rows)
    table = pd.DataFrame(
        {
            "a": z + 0.3 * rng.normal(size=n_rows),
            "b": 2.0 * z + 0.5 * rng.normal(size=n_rows),
            "c": np.where(z + 0.5 * rng.normal(size=n_rows) > 0, "yes", "no"),
        }
    )
    return table.mask(rng.random(table.shape) < 0.2)


@pytest.mark.more
def test_it_stops_where_held_out_cells_say_so() -> None:
    """Columns of noise: there is nothing to be learned, and the more it is trained the worse it gets."""
    noise = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 4)), columns=list("abcd"))
    for masked, stops in ((True, True), (False, False)):
        settings = SETTINGS | {"masked_training": masked, "hidden_size": 64, "learning_rate": 1e-2}
        imputer = make_imputer(epochs=300, **settings).fit(noise)
        assert (len(imputer.history_["elbo"]) < 300) == stops


@pytest.mark.more
def test_columns_that_say_a_little_of_each_other_are_learned() -> None:
    """At least half of what a straight line through all other columns would gain over the mean is gained."""
    rng = np.random.default_rng(0)
    covariance = np.full((6, 6), 0.3) + 0.7 * np.eye(6)
    whole = rng.multivariate_normal(np.zeros(6), covariance, 1500)
    hidden = rng.random(whole.shape) < 0.1
    imputer = make_imputer(epochs=150, **SETTINGS | {"hidden_size": 64}).fit(np.where(hidden, np.nan, whole))
    found = imputer.transform(np.where(hidden, np.nan, whole))
    left = np.sqrt(np.mean((found - whole)[hidden] ** 2)) / whole[hidden].std()
    line = np.sqrt(1.0 - covariance[0, 1:] @ np.linalg.solve(covariance[1:, 1:], covariance[1:, 0]))
    assert left < 0.5 * (1.0 + line)


@pytest.mark.more
def test_held_out_cells_are_not_shown_when_they_are_judged() -> None:
    imputer = make_imputer(epochs=2, **SETTINGS).fit(holed_table())
    ensemble, rng = imputer.ensemble_, np.random.default_rng(0)
    layout = ensemble.layout
    data = layout.empty(5, "float32")
    data.inputs[:, : len(layout.inputs)] = rng.normal(size=(5, len(layout.inputs)))
    data.mask[:] = np.arange(layout.sizes.columns) != 1
    others = data.inputs.copy()
    others[:, np.flatnonzero(np.array(layout.inputs) == 1)] = 9.0

    def predicted(**parts: np.ndarray) -> list[np.ndarray]:
        return ensemble.model.predict_natural(layout, ensemble.networks[0], data._replace(**parts))

    for one, other in zip(predicted(), predicted(inputs=others), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (predicted(mask=np.ones_like(data.mask))[0] != predicted()[0]).any()


@pytest.mark.more
def test_a_prediction_is_the_average_over_draws_of_the_latent() -> None:
    """The share of a class among many sampled tables is its probability, up to the noise of so many draws."""
    table, n = holed_table(60), 600
    gone = table["c"].isna().to_numpy()
    imputer = make_imputer(method="lip-none", epochs=100, n_draws=400, **SETTINGS).fit(table)
    averaged = imputer.distribution(table)["c"].probability[gone]
    yes = np.mean([(one["c"] == "yes").to_numpy()[gone] for one in imputer.sample(table, n)], axis=0)
    noise = np.sqrt(0.25 / n + 0.25 / 400)
    assert np.abs(yes - averaged).max() < 4.0 * noise
    at_the_mean = imputer.set_params(training__n_draws=0).distribution(table)["c"].probability[gone]
    assert np.mean((yes - averaged) ** 2) < np.mean((yes - at_the_mean) ** 2)


@pytest.mark.more
@pytest.mark.parametrize("model", ["vae", "mixture", "factorization"])
def test_what_a_row_gets_is_its_own_whatever_the_number_of_draws(model: str) -> None:
    table = holed_table(90)
    imputer = make_imputer(model, epochs=3, n_draws=3, random_state=0).fit(table)
    full = imputer.transform(table)
    pd.testing.assert_frame_equal(imputer.transform(table.iloc[40:]), full.iloc[40:])
    pd.testing.assert_frame_equal(imputer.transform(table), full)
    assert not full.isna().any().any()
    assert not full.equals(imputer.set_params(training__n_draws=0).transform(table))


def test_a_strange_number_of_draws_is_an_error() -> None:
    with pytest.raises(TableError, match=r"n_draws = -1.*whole number from 0"):
        make_imputer(n_draws=-1).fit(holed_table())
