"""Kinds are inferred as a person would, explained, overridden by column, and saved as JSON."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenly import Column, Schema, TableError, infer_schema, inspect_table, load_heart
from evenly.tables.cells import decode, encode
from evenly.tables.declarations import make_rules
from evenly.tables.frames import open_table

RNG = np.random.default_rng(1)
N = 500


def kind_of(values: object, name: str = "c") -> str:
    return infer_schema(pd.DataFrame({name: values}))[name].kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (RNG.normal(size=N), "real"),
        (RNG.lognormal(size=N), "positive"),
        (RNG.poisson(4.0, N), "count"),
        (RNG.poisson(4.0, N).astype(float), "count"),
        (np.where(RNG.random(N) < 0.1, np.nan, RNG.poisson(4.0, N)), "count"),
        (pd.array(RNG.poisson(4.0, N), dtype="Int64"), "count"),
        (RNG.poisson(4.0, N).astype(str), "count"),
        (RNG.integers(18, 90, N), "count"),
        (RNG.integers(0, 10**6, N), "positive"),
        (RNG.integers(-1000, 1000, N), "real"),
        (RNG.integers(-2, 3, N), "ordinal"),
        (RNG.random(N) < 0.5, "binary"),
        (RNG.integers(0, 2, N), "binary"),
        (RNG.integers(1, 3, N), "binary"),
        (RNG.integers(0, 2, N).astype(float), "binary"),
        (RNG.choice(["yes", "no"], N), "binary"),
        (RNG.choice(["a", "b", "c"], N), "categorical"),
        (RNG.choice([1, 2, 3, 4, 5], N, p=[0.4, 0.05, 0.3, 0.05, 0.2]), "count"),  # peaks are no evidence of codes
        (np.repeat(np.arange(1, 11), [100, 10, 10, 10, 30, 10, 5, 10, 5, 60]), "count"),
        (pd.Categorical(RNG.choice(["a", "b", "c"], N)), "categorical"),
        (pd.Categorical(RNG.choice(["a", "b", "c"], N), ordered=True), "ordinal"),
        (pd.Categorical(RNG.choice([1.0, 2.5], N)), "binary"),
        (np.arange(N), "ignore"),
        (RNG.permutation(N) + 1000, "ignore"),
        ([f"{i:05d}-x" for i in range(N)], "ignore"),
        (pd.date_range("2000", periods=N), "date"),
        ([f"{i % 12 + 1}/{i % 28 + 1}/2020" for i in range(N)], "date"),
        ([f"class {i % 150}" for i in range(N)], "ignore"),
        ([f"2020/01/{i % 28 + 1:02d}" for i in range(N)], "date"),
        (np.arange(1990, 2020), "count"),
        ([f"{i % 7:03d}" for i in range(N)], "categorical"),
        (["1_000", "2_000", "3_000"] * 20, "categorical"),
    ],
)
def test_kinds_are_inferred(values, kind):
    assert kind_of(values) == kind


def test_whole_numbers_that_all_differ_are_identifiers_only_if_consecutive_or_named_so():
    values = np.sort(RNG.choice(10**6, N, replace=False))
    assert kind_of(values, "amount") == "positive"
    assert kind_of(values, "customer_id") == "ignore"
    assert kind_of(values, "CustomerId") == "ignore"


def test_pandas_and_polars_agree_on_a_real_table():
    heart = load_heart()
    assert infer_schema(heart) == infer_schema(pl.from_pandas(heart))


def test_each_kind_gets_the_papers_likelihood():
    table = pd.DataFrame(
        {
            "real": RNG.normal(size=N),
            "positive": RNG.lognormal(size=N),
            "count": RNG.poisson(4.0, N),
            "binary": RNG.random(N) < 0.5,
            "categorical": RNG.choice(["a", "b", "c"], N),
        }
    )
    names = [column.likelihood for column in infer_schema(table).columns]
    assert names == ["normal", "log-normal", "poisson", "bernoulli", "categorical"]


# --- zeros ---


def test_zeros_in_a_positive_column_are_shifted_by_the_smallest_positive_value():
    column = infer_schema(pd.DataFrame({"c": [0.0, 0.25, 3.5, 0.0]}))["c"]
    assert (column.kind, column.shift, column.clip) == ("positive", 0.25, None)


def test_the_shift_is_no_less_than_a_millionth_of_the_maximum():
    column = infer_schema(pd.DataFrame({"c": [0.0, 1e-300, 1.5]}))["c"]
    assert column.shift == pytest.approx(1.5e-6)


def test_an_exponential_has_a_density_at_zero_and_needs_no_shift():
    column = infer_schema(pd.DataFrame({"c": [0.0, 0.25, 3.5]}), likelihoods={"c": "exponential"})["c"]
    assert (column.kind, column.shift) == ("positive", 0.0)


def test_the_papers_clip_is_an_option():
    column = infer_schema(pd.DataFrame({"c": [0.0, 0.25, 3.5]}), zeros="clip")["c"]
    assert (column.shift, column.clip) == (0.0, 1e-30)


@pytest.mark.parametrize(("n_rows", "n_classes", "kind"), [(300, 30, "categorical"), (300, 300, "ignore")])
def test_a_category_with_hardly_a_cell_for_each_class_is_passed_through(n_rows, n_classes, kind):
    """As the same cells are as texts; what somebody made a category of a hundred classes is one."""
    cells = pd.Categorical([f"u{i % n_classes}" for i in range(n_rows)])
    (column,) = infer_schema(pd.DataFrame({"c": cells})).columns
    assert column.kind == kind
    (declared,) = infer_schema(pd.DataFrame({"c": cells}), kinds={"c": "categorical"}).columns
    assert len(declared.classes or []) == n_classes


# --- missing cells ---


@pytest.mark.parametrize("marker", ["?", " ?", "NA", "", "N/A", "null", "NaN"])
def test_markers_are_understood_and_said(marker):
    table = pd.DataFrame({"n": ["1.5", marker, "2.5", "-3"] * 5, "c": ["x", "y", marker, "x"] * 5})
    schema = infer_schema(table)
    assert schema["n"].kind == "real"
    assert schema["n"].missing == [marker]
    assert schema["c"].classes == ["x", "y"]
    cells = open_table(table).columns
    assert np.isnan(encode(schema["n"], cells[0])[0]).sum() == 5
    assert np.isnan(encode(schema["c"], cells[1])[0]).sum() == 5
    assert repr(marker) in str(schema)


def test_numbers_are_markers_only_where_declared():
    table = pd.DataFrame({"a": [1.5, -999.0, 2.5], "b": [1.5, -999.0, 2.5]})
    schema = infer_schema(table, missing={"a": [-999]})
    assert schema["a"].missing == [-999]
    assert schema["a"].kind == "positive"
    assert schema["b"].kind == "real"
    assert np.isnan(encode(schema["a"], open_table(table).columns[0])[0]).tolist() == [False, True, False]


@pytest.mark.parametrize("classes", [[0, 1], ["0", "1"], ["x", "1"]], ids=str)
def test_a_declared_marker_is_no_class_however_the_classes_are_written(classes):
    column = {"name": "c", "kind": "categorical", "classes": classes, "missing": [-999]}
    schema = Schema.model_validate({"columns": [column]})
    for cells in ([1, -999, 1], [1.0, -999.0, 1.0]):
        codes, unknown = encode(schema["c"], open_table(pd.DataFrame({"c": cells})).columns[0])
        np.testing.assert_array_equal(codes, [1.0, np.nan, 1.0])
        assert unknown == []


# --- overriding ---


def test_every_choice_can_be_overridden():
    table = pd.DataFrame({"age": [20.5, 30.5, 41.0], "code": [1, 2, 5], "id": [7, 8, 9]})
    schema = infer_schema(
        table,
        kinds={"code": "categorical", "id": "ignore"},
        likelihoods={"age": "gamma"},
        bounds={"age": (0.0, 120.0)},
    )
    assert schema["age"].likelihood == "gamma"
    assert (schema["age"].lower, schema["age"].upper) == (0.0, 120.0)
    assert schema["code"].classes == [1, 2, 5]
    assert schema["id"].kind == "ignore"


def test_values_outside_declared_bounds_are_errors():
    from evenly import LipschitzScaler

    table = pd.DataFrame({"age": [20.5, 30.5, 41.0]})
    schema = infer_schema(table, bounds={"age": (18.0, 40.0)})
    with pytest.raises(
        TableError, match=r"Column 'age': got values from 20.5 to 41, but the schema declares 18.0 to 40.0"
    ):
        LipschitzScaler(schema=schema).fit(table)


# --- codes ---


@pytest.mark.parametrize(
    "cells",
    [
        ["b", "a", None, "c"],
        [2, 1, None, 7],
        [2.5, 1.0, None, 7.0],
        [True, False, None, True],
        pd.Categorical(["b", "a", None, "c"], ["c", "b", "a"]),
        pd.Categorical([2, 1, None, 7]),
    ],
    ids=str,
)
def test_classes_survive_the_way_to_codes_and_back(cells):
    table = pd.DataFrame({"c": cells})
    schema = infer_schema(table, kinds={"c": "categorical"})
    codes, unknown = encode(schema["c"], open_table(table).columns[0])
    assert unknown == []
    back = decode(schema["c"], codes)
    assert [None if pd.isna(v) else v for v in cells] == back.tolist()


def test_an_edited_file_may_name_numbers_as_texts():
    """JSON written by hand: the classes of a number column as texts are the same classes."""
    table = pd.DataFrame({"c": [1, 2, 2, 1]})
    schema = Schema.model_validate(
        {"columns": [{"name": "c", "kind": "binary", "likelihood": "bernoulli", "classes": ["2", "1"]}]}
    )
    codes, unknown = encode(schema["c"], open_table(table).columns[0])
    assert codes.tolist() == [1.0, 0.0, 0.0, 1.0]
    assert unknown == []


# --- the file ---


def test_a_schema_survives_its_file(tmp_path):
    schema = infer_schema(load_heart())
    schema.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == schema
    first = json.loads((tmp_path / "schema.json").read_text())["columns"][1]
    assert first == {"name": "sex", "kind": "binary", "classes": ["female", "male"]}


REAL = {"name": "a", "kind": "real"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "no JSON at line 1, column 1"),
        ("[" * 100_000, "JSON that is nested too deeply in .*schema.json, but expected a schema"),
        ("[]", "expected an object"),
        (b"\xff\xfe", "no UTF-8"),
        ('{"columns": [{"name": "a", "name": "b", "kind": "real"}]}', "the key 'name' twice"),
        ('{"columns": [{"name": "a", "kind": "real", "lower": NaN}]}', "NaN, which is no number in JSON"),
        ('{"columns": [{"name": "a", "kind": "positive", "clip": 1e999}]}', "Column 'a': got clip = inf"),
        ([3], "Column '0': got value = 3"),
        ([{"kind": "real"}], "Column '0': got no field 'name'"),
        ([REAL, REAL], "the column 'a' is there twice"),
        ([REAL | {"kind": "float"}], "Column 'a': got kind = 'float' .*expected 'real', 'positive'"),
        ([REAL | {"likelyhood": "normal"}], "Column 'a': got the field 'likelyhood' .*Hint: likelihood, perhaps"),
        ([REAL | {"shift": "1"}], "Column 'a': got shift = '1' .* a valid number"),
        ([REAL | {"lower": 2, "upper": 1}], "Column 'a': .*lower = 2 lies above"),
        ([REAL | {"missing": [10**30]}], "Column 'a': .*expected 64 bits"),
        ([REAL | {"kind": "binary", "classes": ["x", "x"]}], "Column 'a': .*classes must differ"),
        ([REAL | {"kind": "ordinal", "classes": list(range(20_000))}], "Column 'a': got 20000 classes"),
    ],
)
def test_a_wrong_file_is_a_clear_error(content, message, tmp_path):
    text = json.dumps({"columns": content}) if isinstance(content, list) else content
    (tmp_path / "schema.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TableError, match=message) as caught:
        Schema.load(tmp_path / "schema.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_a_mark_that_editors_write_at_the_start_of_a_file_is_no_error(tmp_path):
    (tmp_path / "schema.json").write_text('\ufeff{"columns": [{"name": "a", "kind": "real"}]}', encoding="utf-8")
    assert Schema.load(tmp_path / "schema.json")["a"].likelihood == "normal"


def test_a_printed_schema_tells_shifts_clips_bounds_and_markers():
    schema = Schema(
        columns=[
            Column(name="a", kind="positive", shift=0.5, lower=0.0, upper=9.0),
            Column(name="b", kind="positive", clip=1e-30, missing=[-9]),
            Column(name="c", kind="categorical", classes=["u", "v", "w", "x", "y"]),
        ]
    )
    lines = str(schema).splitlines()
    assert "shift 0.5, from 0.0 to 9.0" in lines[1]
    assert "clip 1e-30, missing: -9" in lines[2]
    assert "u | v | w | x | ... (5)" in lines[3]


def test_a_column_that_is_not_in_the_schema_or_is_there_twice_is_an_error():
    with pytest.raises(KeyError, match="b"):
        Schema(columns=[Column(name="a", kind="real")])["b"]
    with pytest.raises(ValueError, match="the column 'a' is there twice"):
        Schema(columns=[Column(name="a", kind="real"), Column(name="a", kind="count")])


def test_what_to_do_with_zeros_and_a_kind_beside_a_likelihood_are_checked():
    table = pd.DataFrame({"a": [0.0, 1.5, 2.5]})
    with pytest.raises(TableError, match="zeros = 'drop', but expected 'shift' or 'clip'"):
        infer_schema(table, zeros="drop")
    with pytest.raises(TableError, match="Column 'a': got the kind 'count' and the likelihood 'normal'"):
        infer_schema(table, kinds={"a": "count"}, likelihoods={"a": "normal"})


# --- bounds and markers among the settings ------------------------------------------------------------------------


COUNTED = pd.DataFrame({"age": [20, -1, 30, 40, -999, 50], "weight": [60.5, -1.0, -999.0, 80.5, 70.5, 75.5]})


def test_markers_of_all_columns_and_of_one_go_together():
    found = infer_schema(COUNTED, missing=[-999, {"age": [-1]}])
    assert found["age"].missing == [-999, -1]
    assert found["weight"].missing == [-999]
    with pytest.raises(TableError, match="Column 'nobody': got missing for it"):
        infer_schema(COUNTED, missing=[-999, {"nobody": [-1]}])
    with pytest.raises(TableError, match="missing = -1, but expected a list of markers"):
        infer_schema(COUNTED, missing=[-999, {"age": -1}])


def test_bounds_and_markers_of_the_settings_add_to_a_schema():
    schema = Schema(columns=[Column(name="age", kind="count", lower=10.0, missing=[-1])])
    rules = make_rules(open_table(COUNTED), schema=schema, bounds={"age": (0, 120)}, missing=[-999])
    column, _ = rules[0].infer(open_table(COUNTED).columns[0], lambda: None)
    assert (column.lower, column.upper, column.missing) == (0.0, 120.0, [-1, -999])
    found = inspect_table(COUNTED, schema, bounds={"age": (0, 120)}, missing=[-999])
    assert (found.schema["age"].upper, found["age"].n_missing) == (120.0, 2)


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({"sex": (0, 1)}, "Column 'sex': got bounds for a column of the kind 'binary'"),
        ({"height": (2, 1)}, "expected the lower one first"),
        ({"height": 2}, "bounds = 2, but expected \\(lower, upper\\)"),
        ({"height": ("0", "1")}, "expected \\(lower, upper\\)"),
        ({"height": (float("nan"), 1)}, "expected \\(lower, upper\\)"),
        ({"nobody": (0, 1)}, "Column 'nobody'"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(bounds, says):
    table = pd.DataFrame({"height": [1.5, 1.7, 1.8], "sex": ["f", "m", "f"]})
    with pytest.raises(TableError, match=says):
        infer_schema(table, bounds=bounds)


def test_an_open_end_of_the_bounds_stays_open():
    found = infer_schema(pd.DataFrame({"height": [1.5, 1.7, 1.8]}), bounds={"height": (None, np.inf)})["height"]
    assert (found.lower, found.upper) == (None, None)
