"""Imputed cells can be shifted, to see what depends on them: numbers by an amount, classes by their log-odds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imputers import make_imputer

from evenly import Imputer, TableError, delta_sensitivity
from evenly.predictive import BinaryPredictive, CategoricalPredictive
from evenly.tables import Column

N = 200


def survey() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    table = pd.DataFrame(
        {
            "income": np.exp(8.0 + 0.5 * x + 0.3 * rng.normal(size=N)),
            "change": x + 0.5 * rng.normal(size=N),
            "visits": pd.array(rng.poisson(np.exp(1.0 + 0.4 * x)), dtype="Int64"),
            "smokes": np.where(x + rng.normal(size=N) > 0.5, "yes", "no"),
            "grade": np.array(["a", "b", "c"])[np.digitize(x, [-0.5, 0.5])],
        }
    )
    return table.mask(rng.random(table.shape) < 0.2)


TABLE = survey()
GONE = TABLE.isna()


@pytest.fixture(scope="module")
def marginal() -> Imputer:
    return Imputer("marginal", random_state=0).fit(TABLE)


def test_imputed_numbers_are_shifted_and_nothing_else(marginal):
    plain, shifted = marginal.transform(TABLE), marginal.transform(TABLE, delta={"change": -0.25})
    np.testing.assert_allclose(shifted["change"], plain["change"] - 0.25 * GONE["change"], rtol=1e-12)
    others = [name for name in TABLE if name != "change"]
    pd.testing.assert_frame_equal(shifted[others], plain[others])
    pd.testing.assert_frame_equal(marginal.transform(TABLE, delta={"change": 0}), plain)


def test_drawn_numbers_are_shifted_by_the_same_amount(marginal):
    plain, shifted = (marginal.sample(TABLE, 3, delta=delta) for delta in (None, {"change": 40.0}))
    for one, other in zip(plain, shifted, strict=True):
        np.testing.assert_allclose(other["change"] - one["change"], 40.0 * GONE["change"], atol=1e-12)


def test_whole_numbers_stay_whole_and_counts_stay_counts(marginal):
    shifted = marginal.transform(TABLE, delta={"visits": -1.6})["visits"][GONE["visits"]]
    assert str(shifted.dtype) == "Int64"
    assert (marginal.transform(TABLE, delta={"visits": -99})["visits"][GONE["visits"]] == 0).all()


def test_positive_numbers_stay_positive(marginal):
    shifted = marginal.transform(TABLE, delta={"income": -1e6})["income"][GONE["income"]]
    assert (shifted > 0.0).all()
    assert (shifted < TABLE["income"].min()).all()


def test_shifted_numbers_stay_within_declared_bounds():
    imputer = Imputer("marginal", bounds={"change": (-4.0, 9.0)}, random_state=0).fit(TABLE)
    assert (imputer.transform(TABLE, delta={"change": 50.0})["change"][GONE["change"]] == 9.0).all()


def test_log_odds_of_classes_are_shifted():
    smokes = Column(name="smokes", kind="binary", classes=["no", "yes"])
    found = BinaryPredictive(smokes, np.array([0.2, 0.7])).tilted(np.array([0.0, 0.5])).probability
    np.testing.assert_allclose(np.log(found / (1.0 - found)), np.log([0.2 / 0.8, 0.7 / 0.3]) + 0.5)
    grade = Column(name="grade", kind="categorical", classes=["a", "b", "c"])
    shares = CategoricalPredictive(grade, np.array([[0.5, 0.3, 0.2]])).tilted(np.array([0.0, np.log(2.0), 0.0]))
    np.testing.assert_allclose(shares.probabilities, [[0.5 / 1.3, 0.6 / 1.3, 0.2 / 1.3]])


def test_imputed_classes_follow_their_log_odds(marginal):
    assert (marginal.transform(TABLE, delta={"smokes": {"yes": 9.0}})["smokes"][GONE["smokes"]] == "yes").all()
    drawn = marginal.sample(TABLE, 1, delta={"grade": {"a": -50.0, "c": -50.0}})[0]
    assert (drawn["grade"][GONE["grade"]] == "b").all()


def test_files_are_shifted_like_tables(marginal, tmp_path):
    frame = pl.from_pandas(TABLE)
    frame.write_parquet(tmp_path / "in.parquet")
    imputer = Imputer("marginal", random_state=0).fit(frame)
    imputer.transform_file(tmp_path / "in.parquet", tmp_path / "out.parquet", delta={"change": 3.0})
    assert pl.read_parquet(tmp_path / "out.parquet").equals(imputer.transform(frame, delta={"change": 3.0}))


@pytest.mark.more
def test_later_cells_are_drawn_given_the_shifted_ones():
    """Income and change go together: where both are missing, a lower income makes a lower change."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    table = pd.DataFrame({"x": x, "twin": x + 0.05 * rng.normal(size=300)})
    table[:150] = np.nan
    imputer = make_imputer(epochs=40, hidden_size=16, n_networks=1, random_state=0).fit(table)
    drawn = imputer.sample(table, 1, delta={"x": 1.0})[0][:150]
    apart = drawn["twin"] - drawn["x"]
    # Half of the rows draw x first: their twin follows it up; in the others, x is shifted away from its twin.
    assert 0.25 < (apart > -0.5).mean() < 0.75


@pytest.mark.parametrize(
    ("delta", "says"),
    [
        (3.0, "delta = 3.0, but expected a mapping by column"),
        ({"nobody": 1.0}, "Column 'nobody': got delta for it, but expected one of"),
        ({"income": "a"}, "Column 'income': got delta = 'a', but expected a number"),
        ({"income": np.nan}, "Column 'income': got delta = nan"),
        ({"income": {"a": 1.0}}, "Column 'income': got delta = "),
        ({"smokes": 1.0}, "Column 'smokes': got delta = 1.0, but expected the shift of a class's log-odds"),
        ({"smokes": {"maybe": 1.0}}, "Column 'smokes': got delta of 'maybe', but its classes are \\['no', 'yes'\\]"),
        ({"smokes": {"yes": 500.0}}, "log-odds shift by 100 at most"),
    ],
)
def test_shifts_that_mean_nothing_are_refused(marginal, delta, says):
    with pytest.raises(TableError, match=says):
        marginal.transform(TABLE, delta=delta)
    with pytest.raises(TableError, match=says):
        marginal.sample(TABLE, 1, delta=delta)


def mean_change(table: pd.DataFrame) -> tuple[float, float]:
    return table["change"].mean(), table["change"].sem()


def test_an_analysis_is_pooled_under_each_shift(marginal):
    found = delta_sensitivity(marginal, TABLE, mean_change, {"change": [0.0, -1.0, -2.0]}, n=3, n_rows=N)
    means = [one.estimate for one in found.pooled]
    share = GONE["change"].mean()
    np.testing.assert_allclose(np.diff(means), -share, rtol=1e-9)
    frame = found.to_frame()
    assert frame["delta"].tolist() == [0.0, -1.0, -2.0]
    assert frame["estimate"].tolist() == means
    assert found.summary().splitlines()[0].split()[3:] == ["term", "estimate", "std_error", "p", "low", "high"]
    assert repr(found) == found.summary()
    classes = delta_sensitivity(marginal, TABLE, mean_change, {"smokes": [{"yes": 0.0}, {"yes": 1.0}]}, n=2)
    assert classes.to_frame()["delta"].tolist() == ["{'yes': 0.0}", "{'yes': 1.0}"]


@pytest.mark.parametrize("deltas", [3.0, {}, {"change": 1.0}, {"change": []}, {"change": [1.0], "income": [1.0]}])
def test_ranges_of_shifts_that_mean_nothing_are_refused(marginal, deltas):
    with pytest.raises(TableError, match=r"expected (one column with its shifts|a list of shifts)"):
        delta_sensitivity(marginal, TABLE, mean_change, deltas)
