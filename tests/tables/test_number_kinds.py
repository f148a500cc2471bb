"""Numbers stay numbers, unless a name, the values or the other columns say that they are codes, keys or dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenly import EvenlyWarning, Imputer, LipschitzScaler, infer_schema, inspect_table
from evenly.tables import encode_columns, make_rules, open_table

RNG = np.random.default_rng(7)
N = 600


def column_of(values: object, name: str = "c"):
    return infer_schema(pd.DataFrame({name: values}))[name]


def cells(low: int, high: int, n: int = N) -> np.ndarray:
    """Whole numbers of which all occur."""
    return np.concatenate([np.arange(low, high + 1), RNG.integers(low, high + 1, n)])


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("race", cells(1, 5), "categorical"),
        ("marital_status", cells(0, 6), "categorical"),
        ("regionCode", cells(11, 19), "categorical"),
        ("Región", cells(1, 8), "categorical"),
        ("Familienstand", cells(1, 5), "categorical"),
        ("zip", RNG.integers(501, 99_950, N), "ignore"),
        ("zip", np.repeat(RNG.integers(501, 99_950, 12), 50), "categorical"),
        ("Telefon", RNG.integers(10**8, 10**9, N), "ignore"),
        ("county", cells(1, 58), "categorical"),
        ("commune", cells(1, 194), "ignore"),
        ("age_group", cells(1, 6), "categorical"),
        ("group_size", cells(1, 6), "count"),
        ("n_regions", cells(1, 6), "count"),
        ("Number of children", cells(0, 6), "count"),
        ("age", cells(24, 34), "count"),
        ("grade", cells(1, 3), "ordinal"),
        ("grade", cells(0, 18), "count"),
        ("race", cells(1, 5000), "positive"),  # too many to be races: a distance, perhaps
        ("income", cells(1, 4), "count"),
        ("fish", 1 + RNG.poisson(6.0, N), "count"),  # caught
        ("fish", np.repeat(np.arange(1, 51), 8), "ignore"),  # number 1 to 50
        ("litter", cells(3, 18), "count"),
        ("tree", np.repeat(np.arange(1, 6), 7), "categorical"),
        ("sold", 20_240_100 + cells(1, 28), "ignore"),  # a date
        ("sold", 20_240_100 + cells(1, 99), "count"),
    ],
)
def test_a_name_says_what_numbers_are(name, values, kind):
    assert column_of(values, name).kind == kind


@pytest.mark.parametrize("name", ["month", "Monat", "birth_month", "mes", "month_2"])
def test_months_by_number_are_classes_in_order(name):
    assert column_of(cells(1, 12), name).kind == "ordinal"
    assert column_of(cells(0, 60), name).kind == "count"  # a duration


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("year", cells(1968, 1979), "real"),
        ("Jahr", np.arange(1990, 2030), "real"),
        ("year", cells(0, 40), "count"),  # of schooling, or of two digits
        ("years", cells(1, 12), "count"),
        ("weekday", cells(0, 6), "ordinal"),
        ("quarter", cells(1, 4), "ordinal"),
        ("hour", cells(0, 23), "count"),
        ("day", cells(1, 31), "count"),
        ("TIME", np.arange(1, 41), "count"),
        ("week", np.arange(2, 80), "count"),
    ],
)
def test_parts_of_dates(name, values, kind):
    assert column_of(values, name).kind == kind


def test_keys_of_units_with_several_rows_are_no_quantity_and_said_to_be_groups():
    table = pd.DataFrame({"person": np.repeat(np.arange(1, 101), 6), "wave": np.tile(np.arange(6), 100)})
    schema = infer_schema(table)
    assert (schema["person"].kind, schema["person"].groups) == ("ignore", True)
    assert schema["person"].note == "100 units by number, with several rows each"
    assert not schema["wave"].groups
    found = inspect_table(table)["person"]
    assert found.groups
    assert "passed through untouched, but the imputer reads it as the key of rows that belong" in found.warnings[0]
    few = column_of(np.repeat(np.arange(1, 9), 100), "store_id")
    assert (few.kind, few.groups) == ("categorical", True)


def test_texts_of_a_key_are_units_too():
    texts = [f"P-{k:04}" for k in np.repeat(np.arange(90), 3)]
    for name in ("respondent id", "caseID", "uuid"):
        found = column_of(texts, name)
        assert (found.kind, found.groups) == ("ignore", True)
        assert found.note == "90 units, with several rows each"
    few = column_of([f"s{k}" for k in np.repeat(np.arange(8), 100)], "school_id")
    assert (few.kind, few.groups, few.alternative) == ("categorical", True, "ignore")
    assert column_of(texts, "respondent").kind == "categorical"  # names of persons are no numbers of persons
    assert column_of(texts, "group_id").kind == "categorical"
    assert column_of(["a", "b", "c", "c"] * 30, "blood").kind == "categorical"


def test_running_numbers_are_identifiers_and_numbers_of_something_are_not():
    assert column_of(np.repeat(np.arange(1, 151), 2), "Sample Number").kind == "ignore"
    assert column_of(np.array([*range(1, 12), *range(1, 7)]), "no.").kind == "ignore"
    assert column_of(np.repeat(np.arange(1, 101), 8), "nr").groups  # as often each: a panel
    assert column_of(cells(0, 9), "number").kind == "count"
    assert column_of(cells(0, 40), "num_visits").kind == "count"


def test_two_values_are_binary_also_if_they_have_decimals():
    standardized = np.where(RNG.random(N) < 0.4, -0.0446, 0.0507)
    assert column_of(standardized, "sex").kind == "binary"
    assert column_of([0.5, 1.5, 0.5], "x").kind == "positive"
    assert column_of(np.array([1999, 2008] * 20), "year").confidence == "likely"


def test_a_single_row_a_constant_and_a_missing_column():
    for values in ([3], [3] * 50, [None] * 5):
        assert column_of(pd.array(values, dtype="Int64"), "x").kind in ("count", "real")
        assert infer_schema(pd.DataFrame({"zip": pd.array(values, dtype="Int64")}))["zip"].confidence is not None


# --- what the other columns say -------------------------------------------------------------------------------------


def wages(n: int = 1500) -> pd.DataFrame:
    """Schooling with peaks at 12 and 16, which raises wages, and codes in random order, which decide them, too."""
    rng = np.random.default_rng(0)
    schooling = rng.choice(np.arange(5, 18), n, p=np.array([1, 1, 1, 3, 2, 3, 4, 30, 4, 8, 4, 24, 15]) / 100)
    x = rng.choice([1, 2, 3, 4, 5, 6], n)
    level = np.array([0.0, 2.5, -1.0, 0.5, 3.0, -2.0])[x - 1]
    wage = np.exp(0.1 * schooling + 0.4 * level + 0.4 * rng.normal(size=n))
    return pd.DataFrame(
        {
            "school": schooling,
            "x": x,
            "wage": wage,
            "hours": 40.0 - level + rng.normal(size=n),
            "rent": wage * rng.gamma(4.0, 0.2, n),
        }
    ).rename(columns={"school": "q1"})


LONG = [2**60 + i for i in range(40)]


LONG_CELLS = {
    "integers": lambda: pd.Series(LONG),
    "with gaps": lambda: pd.array([None, *LONG[1:]], "Int64"),
    "texts": lambda: pd.Series([str(cell) for cell in LONG]),
    "objects": lambda: pd.Series([64 * cell for cell in LONG], dtype=object),
    "polars integers": lambda: pl.Series(LONG),
    "polars texts": lambda: pl.Series([str(cell) for cell in LONG]),
}


@pytest.mark.parametrize("name", LONG_CELLS)
def test_whole_numbers_that_only_their_last_digits_tell_apart_are_identifiers(name):
    """Double precision rounds them to one number, which was called a constant."""
    make = pl.DataFrame if name.startswith("polars") else pd.DataFrame
    table = make({"a": LONG_CELLS[name](), "x": RNG.normal(size=40)})
    column = inspect_table(table).columns[0]
    assert column.kind == "ignore"
    assert column.note == "identifier: long whole numbers that differ in their last digits"
    with pytest.warns(EvenlyWarning, match="passed_through: 'a'"):
        full = Imputer("marginal").fit_transform(table)
    assert list(map(str, full["a"])) == list(map(str, table["a"]))


def test_long_numbers_of_a_masked_array_come_back_beside_scaled_features():
    whole = np.column_stack([2**63 - 1 - np.arange(40), np.arange(40) % 7])
    table = np.ma.array(whole, mask=np.zeros(whole.shape, bool))
    table[3, 0] = np.ma.masked
    with pytest.warns(EvenlyWarning, match="passed_through"):
        scaler = LipschitzScaler("std-none", passthrough="keep").fit(table)
    back = scaler.inverse_transform(scaler.transform(table))
    assert back[:, 0].tolist() == table[:, 0].tolist()


def test_long_numbers_that_double_precision_tells_apart_are_numbers():
    nanoseconds = 1_700_000_000_000_000_000 + RNG.integers(0, 10**15, 4000)
    assert column_of(nanoseconds).kind != "ignore"
    assert column_of([2**60] * 40).kind == "count"
    assert column_of(LONG * 2).note == "long whole numbers that differ in their last digits"


def test_schooling_with_peaks_is_a_number_and_codes_in_random_order_are_classes():
    schema = infer_schema(wages())
    assert (schema["q1"].kind, schema["q1"].confidence) == ("count", "likely")
    assert (schema["x"].kind, schema["x"].confidence, schema["x"].alternative) == ("categorical", "doubtful", "count")
    assert schema["x"].note.endswith("as their order means nothing to other columns")


def test_the_same_numbers_alone_say_nothing_and_are_doubtful():
    schema = infer_schema(wages()[["x"]])
    assert (schema["x"].kind, schema["x"].confidence, schema["x"].alternative) == ("count", "doubtful", "categorical")


@pytest.mark.parametrize("n", [1500, 12_000])
def test_rows_and_columns_in_another_order_give_the_same(n):
    """Above some thousand rows, those that are looked at are chosen by what is in them."""
    table = wages(n)
    again = table.sample(frac=1.0, random_state=1)[list(table.columns[::-1])]
    first, second = infer_schema(table), infer_schema(again)
    for name in table:
        assert first[name] == second[name]


def test_schema_scaler_imputer_and_inspection_agree():
    from evenly import Imputer

    table = wages(800)
    kinds = [column.kind for column in infer_schema(table).columns]
    assert kinds == ["count", "categorical", "positive", "positive", "positive"]
    assert [column.kind for column in LipschitzScaler(random_state=0).fit(table).schema_.columns] == kinds
    assert [column.kind for column in Imputer("marginal").fit(table).schema_.columns] == kinds
    assert [column.kind for column in inspect_table(pl.from_pandas(table)).columns] == kinds
    opened = open_table(table)
    assert [column.kind for column in encode_columns(opened, make_rules(opened))[0]] == kinds


def test_parts_that_agree_stay_what_they_are_together():
    table = wages(1600)
    whole = LipschitzScaler(random_state=0).fit(table).schema_
    parts = LipschitzScaler(random_state=0).fit(table[:800]) + LipschitzScaler(random_state=0).fit(table[800:])
    assert [one.kind for one in parts.schema_.columns] == [one.kind for one in whole.columns]


def test_a_declared_kind_is_sure():
    column = infer_schema(wages(), kinds={"x": "count"})["x"]
    assert (column.kind, column.confidence, column.alternative) == ("count", "sure", None)
