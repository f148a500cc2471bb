"""What rules do to filled tables: formulas, orders and skip patterns, in every way that cells are filled."""

from __future__ import annotations

import warnings
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imputers import make_imputer

from evenly import EvenlyWarning, Imputer, TableError, try_imputer

N = 200
BMI, ORDER, SKIP = "bmi = weight / height**2", "start <= end", "visits only if sex == 'female'"


def survey(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    height, weight = np.round(rng.normal(1.7, 0.1, n), 2), np.round(rng.normal(75.0, 12.0, n))
    sex = rng.choice(["female", "male"], n)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    return pd.DataFrame(
        {
            "height": height,
            "weight": weight,
            "bmi": np.round(weight / height**2, 1),
            "sex": sex,
            "visits": np.where(sex == "female", rng.poisson(2.0, n), np.nan),
            "start": start,
            "end": start + pd.to_timedelta(rng.integers(0, 60, n), unit="D"),
        }
    )


FULL = survey()
GONE = FULL.mask(np.random.default_rng(1).random(FULL.shape) < 0.25)


def fitted(rules: list[str], table: pd.DataFrame = GONE, **settings: object) -> Imputer:
    return Imputer("marginal", rules=rules, random_state=0, **settings).fit(table)


def only(table: pd.DataFrame, **cells: object) -> pd.DataFrame:
    """One row of a table, with other cells."""
    return table[:1].assign(**cells)


def test_a_missing_result_is_computed_to_the_precision_of_its_column():
    full = fitted([BMI]).transform(GONE)
    np.testing.assert_allclose(full["bmi"], (full["weight"] / full["height"] ** 2).round(1), atol=0.0501)
    known = GONE[["height", "weight"]].notna().all(axis=1)
    np.testing.assert_array_equal(full["bmi"][known], FULL["bmi"][known])


def test_without_rounding_it_is_exact():
    full = fitted([BMI], precision="full").transform(GONE)
    gone = GONE["bmi"].isna()
    np.testing.assert_allclose(full["bmi"][gone], (full["weight"] / full["height"] ** 2)[gone], rtol=1e-12)


@pytest.mark.parametrize(
    ("formula", "name", "expected"),
    [
        ("y = a + b - 2", "a", 10.0 - 3.0 + 2.0),
        ("y = b - a", "a", 3.0 - 10.0),
        ("y = a * b", "a", 10.0 / 3.0),
        ("y = b / a", "a", 0.3),
        ("y = a / b", "a", 30.0),
        ("y = a ** 2 - b", "a", np.sqrt(13.0)),
        ("y = 2 ** a", "a", np.log2(10.0)),
        ("y = log(a) + b", "a", np.exp(7.0)),
        ("y = -a", "a", -10.0),
        ("y = a ** 3 + a", "a", 2.0),
        ("y = sqrt(a + b)", "b", 100.0 - 5.0),
    ],
)
def test_one_missing_input_is_solved_for(formula, name, expected):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0.1, 4.0, 60), "b": rng.uniform(1.0, 4.0, 60), "y": rng.normal(8, 2, 60)})
    imputer = Imputer("marginal", rules=[formula]).fit(table)
    given = {"a": 5.0, "b": 3.0, "y": 10.0, name: np.nan}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a negative number in a positive column
        found = imputer.set_params(precision="full").transform(only(table, **given))[name].item()
    if formula in ("y = b - a", "y = -a"):  # which a positive column cannot hold
        assert found > 0.0
    else:
        assert found == pytest.approx(expected, rel=1e-9)


def test_solved_inputs_have_as_many_decimals_as_the_rule_needs_and_others_those_of_the_column():
    imputer = fitted([BMI])
    full = imputer.transform(GONE)
    solved = GONE["height"].isna() & GONE[["weight", "bmi"]].notna().all(axis=1)
    guessed = GONE["height"].isna() & GONE[["weight", "bmi"]].isna().all(axis=1)
    assert (full["height"][solved].round(4) == full["height"][solved]).all()
    assert (full["height"][guessed].round(2) == full["height"][guessed]).all()
    assert guessed.any()


def test_cells_that_follow_are_learned_from():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    table["total"] = np.where(np.arange(N) < 5, table["a"] + table["b"], np.nan)
    plain, ruled = (Imputer("marginal", rules=one).fit(table) for one in (None, ["total = a + b"]))
    spread = {id(one): one.distribution(table)["total"].parameters["std"][0] for one in (plain, ruled)}
    assert spread[id(ruled)] != spread[id(plain)]
    assert spread[id(ruled)] == pytest.approx((table["a"] + table["b"]).std(), rel=0.1)


def test_several_missing_inputs_of_a_known_result_are_made_to_fit():
    table = pd.DataFrame(np.random.default_rng(0).poisson(4.0, (N, 3)).astype(float), columns=["a", "b", "c"])
    table["total"] = table.sum(axis=1)
    gone = table.assign(a=np.nan).mask(np.random.default_rng(1).random(table.shape) < 0.4)
    gone.loc[:9, "a"] = table.loc[:9, "a"]
    imputer = fitted(["total = a + b + c"], gone)
    for full in (imputer.transform(gone), *imputer.sample(gone, 3)):
        assert (full["total"] == full[["a", "b", "c"]].sum(axis=1)).all()
        assert (full >= 0).all(axis=None)
        assert (full == full.round()).all(axis=None)


def test_observed_cells_that_contradict_are_kept_and_named():
    table = FULL.drop(columns="visits")
    table.loc[[7, 30], "bmi"] += 5.0
    table.loc[12, "weight"] = np.nan
    message = r"rule 'bmi = weight / height\*\*2' contradicts observed cells, .* in 2 rows \(7, 30\)\. Rows are counted"
    with pytest.warns(EvenlyWarning, match=message):
        full = fitted([BMI], table).transform(table)
    assert full["weight"][12] == FULL["weight"][12]
    pd.testing.assert_frame_equal(full.drop(12), table.drop(12))


def test_orders_hold_in_estimates_draws_and_intervals():
    imputer = fitted([ORDER, "end <= start + 60"])
    for full in (imputer.transform(GONE), *imputer.sample(GONE, 3), *imputer.interval(GONE)):
        assert (full["start"] <= full["end"]).all()
        assert (full["end"] <= full["start"] + pd.Timedelta(days=60)).all()
        assert (full["end"] == full["end"].dt.normalize()).all()


def test_a_limited_cell_is_drawn_from_the_cut_distribution_and_not_piled_up_at_the_limit():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"low": rng.normal(size=2000), "high": rng.normal(size=2000)})
    table["low"], table["high"] = table.min(axis=1), table.max(axis=1)
    gone = table.assign(high=table["high"].mask(table.index < 1000))
    drawn = fitted(["low <= high"], gone).sample(gone, 1)[0][:1000]
    room = drawn["high"] - drawn["low"]
    assert (room >= 0.0).all()
    assert (room < 1e-3).mean() < 0.05


def test_strict_orders_leave_a_step_between():
    table = pd.DataFrame({"a": [3, 5, 7, 4] * 10, "b": [4, 6, 9, 8] * 10}).astype(float)
    full = fitted(["a < b"], table, kinds={"a": "count", "b": "count"}).transform(only(table, a=9.0, b=np.nan))
    assert full["b"].item() == 10.0


def test_what_was_not_asked_stays_missing():
    imputer = fitted([SKIP])
    for full in (imputer.transform(GONE), *imputer.sample(GONE, 2), *imputer.interval(GONE)):
        assert (full["visits"].isna() == (full["sex"] != "female")).all()
        assert (full["sex"][GONE["visits"].notna()] == "female").all()  # who was asked is known


def test_what_was_not_asked_gets_its_value():
    full = fitted([SKIP + " else 0"]).transform(GONE)
    assert (full["visits"][full["sex"] == "male"] == 0.0).all()
    assert full["visits"].notna().all()


def test_skip_patterns_in_a_row_and_compound_conditions():
    table = pd.DataFrame(
        {
            "age": [10, 20, 30, 40] * 10,
            "smokes": [None, "yes", "no", "yes"] * 10,
            "cigarettes": [None, 10, None, 20] * 10,
        }
    )
    rules = ["cigarettes only if smokes == 'yes'", "smokes only if age >= 18"]
    full = fitted(rules, table).transform(table.assign(smokes=None, cigarettes=None).astype(table.dtypes))
    assert full["smokes"].notna().tolist() == [False, True, True, True] * 10
    assert (full["cigarettes"].notna() == (full["smokes"] == "yes")).all()


def test_a_class_that_an_answer_needs_is_filled_in():
    table = GONE.assign(sex=GONE["sex"].mask(GONE["visits"].notna()))
    full = fitted([SKIP]).transform(table)
    assert (full["sex"][GONE["visits"].notna()] == "female").all()


def test_other_tables_and_arrays_obey():
    frame = pl.from_pandas(GONE)
    full = fitted([BMI, ORDER, SKIP], frame).transform(frame)
    assert full.select(((pl.col("bmi") - pl.col("weight") / pl.col("height") ** 2).abs() < 0.0501).all()).item()
    array = GONE[["height", "weight", "bmi"]].to_numpy()
    filled = fitted(["x2 = x1 / x0**2"], array).transform(array)
    assert (np.abs(filled[:, 2] - filled[:, 1] / filled[:, 0] ** 2) < 0.0501).all()


def test_files_obey_and_their_rows_are_counted_through(tmp_path, monkeypatch):
    monkeypatch.setattr("evenly.imputation.ensemble.SMALL_CHUNK", 32)
    monkeypatch.setattr("evenly.imputation.ensemble.CHUNK", 32)
    table = GONE.assign(start=GONE["start"].dt.date, end=GONE["end"].dt.date)
    table.loc[[3, 150], ["height", "weight", "bmi"]] = [2.0, 80.0, 30.0]
    frame = pl.from_pandas(table)
    frame.write_parquet(tmp_path / "some.parquet", row_group_size=50)
    imputer = fitted([BMI, ORDER, SKIP], frame)
    with pytest.warns(EvenlyWarning, match=r"in 2 rows \(3, 150\)"):
        imputer.transform_file(tmp_path / "some.parquet", tmp_path / "full.parquet")
    with pytest.warns(EvenlyWarning, match=r"in 2 rows \(3, 150\)"):
        assert pl.read_parquet(tmp_path / "full.parquet").equals(imputer.transform(frame))


def test_a_saved_imputer_obeys(tmp_path):
    imputer = fitted([BMI, ORDER, SKIP])
    imputer.save(tmp_path)
    again = Imputer.load(tmp_path)
    assert again.rules == [BMI, ORDER, SKIP]
    pd.testing.assert_frame_equal(again.transform(GONE), imputer.transform(GONE))


def test_saved_rules_of_other_columns_are_refused(tmp_path):
    imputer = fitted([ORDER]).set_params(rules=["begin <= end"])
    imputer.save(tmp_path)
    with pytest.raises(TableError, match="the name 'begin'"):
        Imputer.load(tmp_path)


def test_rules_can_change_after_fit():
    imputer = Imputer("marginal", random_state=0).fit(GONE).set_params(rules=[ORDER])
    full = imputer.transform(GONE)
    assert (full["start"] <= full["end"]).all()


def test_a_trial_obeys_rules():
    plain, ruled = (try_imputer(Imputer("marginal", rules=one), FULL).columns for one in (None, [BMI, ORDER, SKIP]))
    errors = [{column.column: column.error for column in one} for one in (plain, ruled)]
    assert errors[1]["bmi"] < 0.5 * errors[0]["bmi"]
    assert all(np.isfinite(list(errors[1].values())))


def test_columns_that_are_passed_through_are_read():
    table = FULL.assign(person=[f"p{i:04d}" for i in range(N)], site=["north", "south"] * (N // 2))
    gone = table.assign(weight=table["weight"].mask(table.index < 50))
    imputer = fitted(["visits only if site == 'north'"], gone, kinds={"site": "ignore", "person": "ignore"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = imputer.transform(gone.assign(visits=np.nan))
    assert (full["visits"].notna() == (full["site"] == "north")).all()


def test_computed_dates_and_ages():
    birth = pd.Timestamp("1980-01-01") + pd.to_timedelta(np.arange(N) * 37, unit="D")
    table = pd.DataFrame({"birth": birth, "seen": pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(N), unit="D")})
    table["age"] = np.floor((table["seen"] - table["birth"]).dt.days / 365.25)
    table["due"] = table["seen"] + pd.Timedelta(days=14)
    gone = table.assign(age=table["age"].mask(table.index % 3 == 0), due=table["due"].mask(table.index % 4 == 0))
    full = fitted(["age = floor((seen - birth) / 365.25)", "due = seen + 14"], gone).transform(gone)
    pd.testing.assert_frame_equal(full, table)


def test_conditions_on_dates():
    table = GONE.assign(visits=FULL["visits"].fillna(1.0).mask(GONE["visits"].isna()))
    rule = "visits only if start >= '2024-06-01'"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = fitted([rule], table).transform(table)
    gone = table["visits"].isna()
    assert (full["visits"].notna() == (full["start"] >= datetime(2024, 6, 1)))[gone].all()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["bmi = wieght / height**2"], r"the name 'wieght' \(character 7\) .* did you mean 'weight'\?"),
        (["weight = sex + 1"], r"Column 'sex': got classes such as 'female', 'male' in the rule"),
        (["sex = weight"], r"Column 'sex': got classes on the left"),
        (["start = weight"], r"Column 'start': got a date that is computed as a number"),
        (["bmi = start + end"], r"date \+ date .* there are differences"),
        (["start <= weight"], r"a date beside a number"),
        (["visits only if sex == 'femal'"], r"the class 'femal' .* did you mean 'female'\?"),
        (["visits only if sex >= 'female'"], r">= of classes"),
        (["visits only if weight == 'heavy'"], r"Column 'weight': got the text 'heavy'"),
        (["visits only if start > '1st of May'"], r"the date '1st of May'"),
        (["visits only if sex == 'male' else 'none'"], r"Column 'visits'"),
        (["bmi = weight", "weight = bmi"], r"rules that go round in a circle: .*bmi -> weight -> bmi"),
        (["bmi = bmi + 1"], r"circle"),
        (["bmi = weight", "bmi = height"], r"one rule for each column"),
        (["bmi = 3"], "expected a column in it"),
        (["1 <= 2"], "expected a column in it"),
        ("bmi = weight", "expected a list of texts"),
        ([3], "the rule 3"),
    ],
)
def test_rules_that_a_table_cannot_obey_are_refused(rules, message):
    with pytest.raises(TableError, match=message):
        fitted(rules)


def test_syntax_is_checked_before_any_work():
    with pytest.raises(TableError, match="character"):
        Imputer(rules=["a = = b"]).check_settings()


def test_a_column_that_is_no_variable_is_not_filled():
    table = FULL.assign(person=[f"p{i:04d}" for i in range(N)])
    with pytest.raises(TableError, match=r"Column 'person': got a column that is passed through"):
        fitted(["person = weight"], table, kinds={"person": "ignore"})


def test_infeasible_rows_are_named():
    imputer = fitted(["weight * 0 > 1"])
    with pytest.warns(EvenlyWarning) as caught:
        imputer.transform(GONE)
    n = int(GONE["weight"].isna().sum())
    messages = [str(one.message) for one in caught]
    assert f"rule 'weight * 0 > 1' could not be followed in filling {n} rows (" in messages[1]
    assert f"contradicts observed cells, which stay as they are, in {N - n} rows (" in messages[0]


def test_no_rules_change_nothing():
    plain, ruled = (Imputer("marginal", rules=one, random_state=0).fit(GONE) for one in (None, []))
    pd.testing.assert_frame_equal(plain.transform(GONE), ruled.transform(GONE))


@pytest.mark.more
@pytest.mark.parametrize("model", ["masked", "vae", "mixture"])
def test_every_model_obeys(model):
    settings = {"epochs": 5, "hidden_size": 16} if model != "mixture" else {"epochs": 5}
    imputer = make_imputer(model, rules=[BMI, ORDER, SKIP], random_state=0, **settings).fit(GONE)
    for full in (imputer.transform(GONE), *imputer.sample(GONE, 2)):
        assert ((full["bmi"] - full["weight"] / full["height"] ** 2).abs() < 0.0501).all()
        assert (full["start"] <= full["end"]).all()
        assert (full["visits"].isna() == (full["sex"] != "female")).all()
    low, high = imputer.interval(GONE)
    assert (low["start"] <= low["end"]).all()
    assert (high["start"] <= high["end"]).all()
    assert (low["bmi"] <= high["bmi"]).all()
