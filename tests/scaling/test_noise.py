"""The noise of the Gamma trick: by default its mean, so that a row's features depend on that row alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenly import LipschitzScaler, TableError, load_heart, scale_files
from evenly.scaling.methods import METHODS
from evenly.scaling.tricks import NOISE_MEAN

HEART = load_heart()
GAMMA = [name for name, method in METHODS.items() if method.trick == "gamma"]


@pytest.mark.parametrize("method", METHODS)
def test_the_features_of_a_row_do_not_depend_on_the_rows_around_it(method):
    scaler = LipschitzScaler(method).fit(HEART)
    whole = scaler.transform(HEART)
    shuffled = HEART.sample(frac=1.0, random_state=3)
    for rows in (HEART.iloc[[5]], HEART.iloc[100:103], shuffled):
        pd.testing.assert_frame_equal(scaler.transform(rows), whole.loc[rows.index])
    pd.testing.assert_frame_equal(pd.concat(scaler.transform_parts([HEART[:7], HEART[7:]])), whole)


def test_a_classifier_behind_it_gives_a_row_the_same_probabilities_alone_and_in_a_batch():
    table, disease = HEART.dropna().drop(columns="disease"), HEART.dropna()["disease"]
    pipeline = make_pipeline(LipschitzScaler(), StandardScaler(), LogisticRegression()).fit(table, disease)
    together = pipeline.predict_proba(table)
    alone = np.concatenate([pipeline.predict_proba(table.iloc[[i]]) for i in range(0, len(table), 30)])
    np.testing.assert_allclose(alone, together[::30], atol=1e-12)


def test_two_scalers_with_other_seeds_scale_alike_unless_noise_is_drawn():
    mean = [LipschitzScaler(random_state=seed).fit_transform(HEART) for seed in (0, 1)]
    drawn = [LipschitzScaler(random_state=seed, noise="drawn").fit_transform(HEART) for seed in (0, 1)]
    pd.testing.assert_frame_equal(*mean)
    assert (drawn[0]["sex"] != drawn[1]["sex"]).all()


@pytest.mark.parametrize("method", GAMMA)
def test_the_mean_of_the_noise_is_what_many_draws_average_to(method):
    table = pd.DataFrame({"n": np.tile([0, 3, 1, 2, 7], 8000), "yes": np.tile([True, False], 20_000)})
    mean = LipschitzScaler(method, kinds={"n": "count"}).fit(table)
    drawn = LipschitzScaler(method, kinds={"n": "count"}, noise="drawn", random_state=0).fit(table)
    scales = mean.summary_["scale"].to_numpy()
    np.testing.assert_array_equal(scales, drawn.summary_["scale"])
    np.testing.assert_allclose(mean.transform(table)[:5]["n"], (np.array([0, 3, 1, 2, 7]) + 1 + NOISE_MEAN) * scales[0])
    apart = (drawn.transform(table) - mean.transform(table)).mean() / scales
    assert np.abs(apart).max() < 5.0 * 0.0326 / np.sqrt(len(table))  # the standard deviation of the noise


@pytest.mark.parametrize("noise", ["mean", "drawn"])
@pytest.mark.parametrize("method", GAMMA)
def test_the_table_comes_back(method, noise):
    scaler = LipschitzScaler(method, noise=noise, random_state=0).fit(HEART)
    pd.testing.assert_frame_equal(scaler.inverse_transform(scaler.transform(HEART)), HEART)


def test_a_key_asks_for_drawn_noise():
    keyed = HEART.reset_index(names="patient")
    mean, drawn = (
        LipschitzScaler(noise=noise, kinds={"patient": "ignore"}, random_state=0).fit(keyed)
        for noise in ("mean", "drawn")
    )
    by_key = mean.transform(keyed, key="patient")
    pd.testing.assert_frame_equal(by_key, drawn.transform(keyed, key="patient"))
    assert (by_key["sex"] != mean.transform(keyed)["sex"]).all()


def test_scikit_learn_is_told_that_only_drawn_noise_is_not_deterministic():
    told = {
        (method, noise): LipschitzScaler(method, noise=noise).__sklearn_tags__().non_deterministic
        for method in METHODS
        for noise in ("mean", "drawn")
    }
    assert {pair for pair, random in told.items() if random} == {(method, "drawn") for method in GAMMA}


def test_a_saved_scaler_remembers_whether_its_noise_is_drawn(tmp_path):
    for noise in ("mean", "drawn"):
        scaler = LipschitzScaler(noise=noise, random_state=0).fit(HEART)
        scaler.save(tmp_path / noise)
        again = LipschitzScaler.load(tmp_path / noise)
        assert again.noise == noise
        pd.testing.assert_frame_equal(again.transform(HEART), scaler.transform(HEART))


def test_another_word_for_noise_is_refused():
    with pytest.raises(TableError, match="noise = 'none', but expected 'mean' or 'drawn'"):
        LipschitzScaler(noise="none").fit(HEART)


def test_a_lazy_frame_and_files_need_no_key_unless_noise_is_drawn(tmp_path):
    table = pl.from_pandas(HEART)
    scaler = LipschitzScaler().fit(table.lazy())
    expected = scaler.transform(table)
    np.testing.assert_allclose(scaler.transform(table.lazy()).collect(), expected, rtol=1e-12)
    table.write_parquet(tmp_path / "heart.parquet")
    scale_files(tmp_path / "heart.parquet", tmp_path / "out.parquet", scaler, engine="duckdb")
    np.testing.assert_allclose(pl.read_parquet(tmp_path / "out.parquet"), expected, rtol=1e-12)
    with pytest.raises(TableError, match=r'has no row numbers.*noise="mean"'):
        LipschitzScaler(noise="drawn").fit(table.lazy()).transform(table.lazy())
