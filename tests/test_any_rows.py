"""Tables split at random into rows to fit and rows to come: nothing of what people have in tables breaks a pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sizes import examples
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from evenly import EvenlyWarning, Imputer, LipschitzScaler, Training

N = 60
SPLITS = 50
"""Of each of ten tables; two in the quick tests."""


def rarely(rng: np.random.Generator, values: Any, odd: Any, n: int = 2) -> np.ndarray:
    """Put an odd cell into a few rows, which a split may leave to the rows to come."""
    cells = np.array(values, dtype=object)
    cells[rng.choice(N, n, replace=False)] = odd
    return cells


def as_stored(cells: np.ndarray) -> Any:
    return pd.Series(cells).infer_objects()


KINDS: dict[str, Callable[[np.random.Generator], Any]] = {
    "real": lambda rng: rng.normal(3.0, 2.0, N),
    "positive": lambda rng: rng.lognormal(1.0, 0.7, N),
    "a zero": lambda rng: as_stored(rarely(rng, rng.lognormal(1.0, 0.7, N), 0.0)),
    "a negative": lambda rng: as_stored(rarely(rng, rng.gamma(2.0, 1.0, N), -1.0)),
    "count": lambda rng: rng.poisson(4.0, N),
    "half a count": lambda rng: as_stored(rarely(rng, rng.poisson(4.0, N), 2.5)),
    "less than no count": lambda rng: as_stored(rarely(rng, rng.poisson(30.0, N), -1)),
    "huge": lambda rng: as_stored(rarely(rng, rng.poisson(4.0, N), 10**12)),
    "text among numbers": lambda rng: rarely(rng, rng.normal(size=N).round(1), "abc"),
    "rare class": lambda rng: rarely(rng, rng.choice(["a", "b", "c"], N), "rare", 1),
    "rare third": lambda rng: rarely(rng, rng.choice(["yes", "no"], N), "perhaps", 1),
    "rare code": lambda rng: as_stored(rarely(rng, rng.choice([1, 2, 7], N, p=[0.5, 0.1, 0.4]), 9, 1)),
    "many classes": lambda rng: rng.choice([f"town {k}" for k in range(20)], N),
    "ordered": lambda rng: pd.Categorical(rng.choice(["lo", "mid", "hi"], N), ["lo", "mid", "hi"], ordered=True),
    "flag": lambda rng: rng.random(N) < 0.03,
    "nearly constant": lambda rng: rarely(rng, ["same"] * N, "other", 1),
    "identifier": lambda rng: np.arange(N) + 7,
    "date": lambda rng: pd.date_range("2024-01-01", periods=N),
    "free text": lambda rng: [f"a remark on row {k}, of some length" for k in range(N)],
    "empty": lambda rng: np.full(N, np.nan),
}


@cache
def table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Eight to twelve kinds of columns, always with a class, and what to predict."""
    rng = np.random.default_rng((seed, 1))
    chosen = ["real", "rare class", *rng.permutation([*KINDS])[: rng.integers(6, 11)]]
    frame = pd.DataFrame({name: KINDS[name](rng) for name in dict.fromkeys(chosen)})
    wanted = (frame["real"] + rng.normal(size=N) > 3.0).to_numpy(copy=True)
    wanted[:4] = [True, True, False, False]
    return frame, wanted


def splits(seed: int, n: int | None = None) -> ShuffleSplit:
    few = examples(SPLITS) < SPLITS
    return ShuffleSplit(n or (2 if few else SPLITS), test_size=0.3, random_state=seed)


@pytest.mark.sized
@pytest.mark.parametrize("seed", range(10))
def test_every_split_of_a_table_scores(seed):
    """Texts among numbers are missing cells to a classifier, so it has an imputer before it."""
    frame, wanted = table(seed)
    pipeline = make_pipeline(
        LipschitzScaler(("lip-gamma", "lip-bern", "std-none")[seed % 3], random_state=seed),
        SimpleImputer(keep_empty_features=True),
        GaussianNB(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        scores = cross_val_score(pipeline, frame, wanted, cv=splits(seed), error_score="raise")
    assert len(scores) == splits(seed).get_n_splits()
    assert np.isfinite(scores).all()


@pytest.mark.sized
@pytest.mark.parametrize("seed", range(10))
def test_every_split_of_a_table_without_unreadable_cells_gives_finite_features(seed):
    frame = table(seed)[0].drop(columns=["text among numbers"], errors="ignore")
    for seen, new in splits(seed).split(frame):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvenlyWarning)
            scaler = LipschitzScaler(("lip-gamma", "lip-none")[seed % 2], random_state=0).fit(frame.iloc[seen])
            scaled = scaler.transform(frame.iloc[new])
        assert all(dtype.kind == "f" for dtype in scaled.dtypes)
        assert np.isfinite(scaled).all(axis=None)


@pytest.mark.sized
@pytest.mark.parametrize("seed", range(10))
def test_every_split_of_a_table_is_imputed(seed):
    frame = table(seed)[0].drop(columns=["empty"], errors="ignore")
    gone = np.random.default_rng(seed).random(frame.shape) < 0.1
    for seen, new in splits(seed).split(frame):
        holed = frame.iloc[new].mask(gone[new])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvenlyWarning)
            imputer = Imputer("marginal", random_state=0).fit(frame.iloc[seen].mask(gone[seen]))
            full = imputer.transform(holed)
        assert_imputed(imputer, holed, full)


@pytest.mark.more
@pytest.mark.parametrize(("model", "seed"), [*(("masked", seed) for seed in range(5)), ("vae", 5), ("vae", 6)])
def test_a_network_imputes_rows_of_a_table(model, seed):
    frame = table(seed)[0].drop(columns=["empty"], errors="ignore")
    gone = np.random.default_rng(seed).random(frame.shape) < 0.1
    for seen, new in splits(seed, 2).split(frame):
        holed = frame.iloc[new].mask(gone[new])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvenlyWarning)
            training = Training(epochs=1, n_networks=1, sizes={"hidden_size": 4})
            imputer = Imputer(model, training=training, random_state=0).fit(frame.iloc[seen].mask(gone[seen]))
            full = imputer.transform(holed)
            assert np.isfinite(imputer.score(holed))
        assert_imputed(imputer, holed, full)


def assert_imputed(imputer: Imputer, holed: pd.DataFrame, full: pd.DataFrame) -> None:
    """Observed cells are as they were; variables have no missing cell left."""
    for name in holed:
        observed = holed[name].notna()
        assert full[name][observed].tolist() == holed[name][observed].tolist()
        if imputer.schema_[name].kind != "ignore":
            assert not full[name].isna().any()


def test_a_grid_search_has_a_score_for_every_fold():
    frame, wanted = table(0)
    pipeline = make_pipeline(LipschitzScaler(random_state=0), SimpleImputer(), LogisticRegression(solver="liblinear"))
    grid = {"lipschitzscaler__method": ["lip-gamma", "lip-none"], "logisticregression__C": [0.1, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(pipeline, grid, cv=3, error_score=np.nan).fit(frame, wanted)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert np.isfinite([search.cv_results_[f"split{k}_test_score"] for k in range(3)]).all()
