"""An inspection says what each column is, and warns of what would spoil a model, with the remedy."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import date, timedelta
from datetime import time as clock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imputers import make_imputer

from evenly import Schema, TableError, infer_schema, inspect_table, load_heart, read_table, write_table
from evenly.tables import as_column

RNG = np.random.default_rng(0)
AGES = RNG.integers(12, 88, 200).tolist()


def warned(cells, **settings) -> str:
    return " / ".join(inspect_table(pl.DataFrame({"a": cells}, strict=False), **settings)["a"].warnings)


def test_the_schema_is_the_inferred_one():
    heart = load_heart()
    inspection = inspect_table(heart)
    assert inspection.schema == infer_schema(heart)
    assert inspection.n_rows == 303
    for column, declared in zip(inspection.columns, inspection.schema.columns, strict=True):
        assert (column.name, column.kind, column.likelihood) == (declared.name, declared.kind, declared.likelihood)
        assert column.n_missing == heart[column.name].isna().sum()
        assert column.missing_share == column.n_missing / 303
        assert column.warnings == ()
        if column.range is not None:
            assert column.range == (heart[column.name].min(), heart[column.name].max())
        if column.n_distinct is not None:
            assert column.n_distinct == heart[column.name].nunique()


def test_polars_and_pandas_are_inspected_alike():
    table = {"n": [str(age) for age in AGES[:-2]] + ["NA", " ? "], "t": ["x", "none"] * 100, "x": [1.5, np.nan] * 100}
    assert inspect_table(pl.DataFrame(table, nan_to_null=True)) == inspect_table(pd.DataFrame(table))


@pytest.mark.parametrize("marker", [-9, -99, -999, -9999, 999, 9999, 99999])
def test_a_code_far_from_the_other_values_is_named_with_its_remedy(marker):
    found = warned([*AGES, *[marker] * 20])
    assert found == (
        f"{marker} appears 20 times, apart from the other values (12 to 87): "
        f"if it means missing, give it as `missing=[{marker}]` (`--missing {marker}`)"
    )
    declared = inspect_table(pl.DataFrame({"a": [*AGES, *[marker] * 20]}), missing=[marker])["a"]
    assert (declared.warnings, declared.n_missing, declared.kind) == ((), 20, "count")


def test_two_codes_are_both_named():
    assert warned([*AGES, -99, -999]).count("appears 1 time,") == 2


def test_a_code_is_found_among_texts_of_numbers_and_fractions():
    assert "-999 appears 2 times" in warned([*(f"{age}" for age in AGES), "-999", "-999", "NA"])
    assert "-999 appears 1 time" in warned([age / 7 for age in AGES] + [-999.0])


@pytest.mark.parametrize(
    "cells",
    [
        [*AGES, 99],  # people grow that old
        [*range(2000), 999],
        [*np.round(RNG.normal(0.0, 500.0, 300)), -999.0],
        [99, 98, 97, 96, 95, 94],
        [999, 999, 999, 999, 999, 999, 999],
        [1, 99],
    ],
    ids=["ages", "in the middle", "negative anyway", "dense", "constant", "too few"],
)
def test_nines_that_belong_to_the_values_are_left_alone(cells):
    assert "means missing" not in warned(cells)


@pytest.mark.parametrize("text", ["unknown", "Unknown", "-", "none", "missing", "not available", "na", "k. A."])
def test_a_text_that_may_mean_missing_is_named_with_its_remedy(text):
    quoted = f"'{text}'" if " " in text else text
    assert warned(["red", "green", text] * 20) == (
        f"{text!r} appears 20 times: if it means missing, give it as `missing=[{text!r}]` (`--missing {quoted}`)"
    )
    assert warned(["red", "green", text] * 20, missing=[text]) == ""


def test_markers_that_the_schema_knows_are_only_counted():
    column = inspect_table(pl.DataFrame({"a": ["red", "green", "n/a", "?", "NA", None] * 20}))["a"]
    assert (column.n_missing, column.warnings, column.n_distinct) == (80, (), 2)


def test_texts_that_keep_a_column_from_being_numbers_are_named():
    cells = [f"{age / 7:.4f}" for age in AGES]
    assert "numbers, except for 'low' (3 cells)" in warned([*cells, *["low"] * 3])
    found = warned([*cells, "<5", "not seen"])
    assert "numbers, except for '<5', 'not seen' (2 cells)" in found
    assert "give them as `missing=['<5', 'not seen']` (`--missing '<5' --missing 'not seen'`)" in found
    assert inspect_table(pl.DataFrame({"a": [*cells, "<5"]}), missing=["<5"])["a"].kind == "positive"
    assert "numbers, except" not in warned(["1", "2", "low", "high"] * 10)


def test_columns_that_are_no_variable_are_said_to_be_passed_through():
    n = 300
    table = pl.DataFrame(
        {
            "patient id": range(n),
            "uuid": [f"x{i:x}y" for i in range(n)],
            "day": [f"{i % 24:02}:{i % 28 + 10:02}" for i in range(n)],
            "story": [f"it was {i} and a day" for i in range(n)],
            "city": [f"city{i % 120}" for i in range(n)],
            "stamp": [timedelta(minutes=i) for i in range(n)],
        }
    )
    inspection = inspect_table(table)
    for name, what in {
        "patient id": "identifier: whole numbers that all differ",
        "uuid": "identifier: nearly every cell differs",
        "day": "dates or times",
        "story": "free text",
        "city": "120 classes in 300 cells",
        "stamp": "dates or times",
    }.items():
        assert inspection[name].kind == "ignore"
        assert inspection[name].warnings[0].startswith(f"{what}: passed through untouched")
    assert "(`--kind 'patient id=count'`)" in inspection["patient id"].warnings[0]
    assert "`kinds={'city': 'categorical'}`" in inspection["city"].warnings[0]
    assert inspect_table(table, kinds={"uuid": "ignore"})["uuid"].warnings == ()
    assert inspect_table(table, kinds={"city": "categorical"})["city"].warnings == ()


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        ([3, 3, None], "constant: every observed cell is 3,"),
        (["x", "x"], "constant: every observed cell is 'x',"),
        ([1e300, 1e300], "constant: every observed cell is 1e+300,"),
        ([None, None], "no data"),
        (["", "?"], "no data"),
        ([float("nan"), None], "no data"),
        ([True, True], "constant"),
    ],
)
def test_a_column_without_information_is_named(cells, what):
    found = inspect_table(pl.DataFrame({"a": cells, "b": range(len(cells))}))["a"].warnings
    assert len(found) == 1
    assert found[0].startswith(what)


def test_infinities_are_counted_and_the_rest_is_inspected():
    for cells in ([1.5, -2.5, float("inf"), None], ["1.5", "-2.5", "1e999", None]):
        column = inspect_table(pl.DataFrame({"a": cells}))["a"]
        assert (column.kind, column.range, column.n_missing) == ("real", (-2.5, 1.5), 1)
        assert column.warnings[0].startswith("1 infinite cell: ")
    assert inspect_table(pl.DataFrame({"a": [float("inf")] * 2}))["a"].warnings[-1].startswith("no data")


def test_missing_dates_are_counted():
    column = inspect_table(pl.DataFrame({"day": [date(2024, 1, 1), None, None]}))["day"]
    assert (column.kind, column.n_missing) == ("date", 2)
    column = inspect_table(pl.DataFrame({"time": [clock(12, 30), None, None]}))["time"]
    assert (column.kind, column.n_missing) == ("ignore", 2)


def test_a_schema_comes_before_what_is_seen():
    table = pl.DataFrame({"a": AGES, "b": ["x", "y", "-", "z"] * 50})
    schema = infer_schema(table, kinds={"a": "real", "b": "ordinal"}, missing={"b": ["-"]})
    inspection = inspect_table(table, schema)
    assert inspection.schema == schema
    assert inspection["b"].n_missing == 50
    assert inspect_table(table, schema, kinds={"a": "count"})["a"].kind == "count"
    partial = Schema(columns=[schema["a"]])
    assert inspect_table(table, partial)["b"].kind == "categorical"
    schema["b"].classes = ["x", "y"]
    assert inspect_table(table, schema)["b"].warnings == ("none of the schema's classes, so read as missing: 'z'",)


def test_a_schema_that_does_not_go_with_the_table_is_refused():
    table = pl.DataFrame({"a": [-1.5, 2.5], "b": ["x", "y"]})
    for columns, what in [
        ([{"name": "absent", "kind": "real"}], "Column 'absent'"),
        ([{"name": "b", "kind": "real"}], "Column 'b': got the text 'x'"),
        ([{"name": "a", "kind": "positive"}], "Column 'a': got minimum -1.5"),
    ]:
        with pytest.raises(TableError, match=what):
            inspect_table(table, Schema.model_validate({"columns": columns}))
    with pytest.raises(TableError, match="expected a Schema"):
        inspect_table(table, "schema.json")
    with pytest.raises(TableError, match="Column 'absent'"):
        inspect_table(table, kinds={"absent": "real"})


def test_an_inspection_is_plain_data():
    plain = inspect_table(load_heart()).to_plain()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["n_columns"] == 14
    assert set(plain["columns"][0]) == {
        *("name", "kind", "likelihood", "n_missing", "missing_share", "n_distinct", "range", "note", "warnings"),
        *("confidence", "alternative", "groups"),
    }


def test_hostile_names_and_cells_are_inspected():
    table = pl.DataFrame({"<script>alert(1)</script>": ['"', "😀", "a,b"] * 5, "ü;|": [1, 2, 3] * 5})
    assert [column.name for column in inspect_table(table).columns] == table.columns
    with pytest.raises(TableError, match="0 rows"):
        inspect_table(table.clear())
    assert inspect_table(table.head(1)).n_rows == 1


def test_inspecting_loads_no_jax():
    code = "import sys, evenly; evenly.inspect_table(evenly.load_heart()); print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"


def test_texts_of_numbers_are_read_at_once_as_they_are_one_by_one():
    texts = ["1", "-2.50", ".5", "5.", "1e3", " 7 ", "NA", "?", None, "+4"]
    numbers, markers = as_column("a", pl.Series(texts)).spelled_numbers({"NA", "?"})
    expected = [np.nan if text is None or text in ("NA", "?") else float(text) for text in texts]
    np.testing.assert_array_equal(numbers, expected)
    assert markers == ["NA", "?"]
    for other in (["1", "x"], ["02139"], ["NA"], ["1_0"], [None]):
        assert as_column("a", pl.Series(other, dtype=pl.String)).spelled_numbers({"NA"}) is None


@pytest.mark.more
def test_a_column_of_numbers_with_markers_is_filled_with_numbers(tmp_path):
    """Read, filled and written, the table has no marker left, and its numbers are numbers when it is read again."""
    pytest.importorskip("jax")
    ages = ["NA" if i % 9 == 0 else str(age) for i, age in enumerate(AGES)]
    heights = ["?" if i % 7 == 0 else f"{150 + age / 3:.1f}" for i, age in enumerate(AGES)]
    (tmp_path / "a.csv").write_text("age,height\n" + "\n".join(map(",".join, zip(ages, heights, strict=True))) + "\n")
    table = read_table(tmp_path / "a.csv")
    assert [(c.kind, c.n_missing) for c in inspect_table(table).columns] == [("count", 23), ("positive", 29)]
    write_table(make_imputer(epochs=1, random_state=0).fit_transform(table), tmp_path / "full.csv")
    full = read_table(tmp_path / "full.csv")
    assert full.dtypes == [pl.Int64, pl.Float64]
    assert full.null_count().row(0) == (0, 0)
    for column, cells in (("age", ages), ("height", heights)):
        kept = [float(cell) for cell in cells if cell not in ("NA", "?")]
        assert [x for x, cell in zip(full[column], cells, strict=True) if cell not in ("NA", "?")] == kept


def test_a_long_table_is_inspected_fast():
    """A tenth of a million rows in far less than a tenth of ten seconds each for numbers, markers and identifiers."""
    n = 100_000
    x = RNG.normal(size=n)
    table = pl.DataFrame(
        {"x": x, "n": RNG.integers(0, 99, n), "marked": [*map(str, x[:-1]), "NA"], "id": [f"u{i}" for i in range(n)]}
    )
    start = time.process_time()
    kinds = [column.kind for column in inspect_table(table).columns]
    assert time.process_time() - start < 3.0
    assert kinds == ["real", "count", "real", "ignore"]


@pytest.mark.parametrize("as_table", [lambda frame: frame, lambda frame: frame.to_arrow()])
def test_dates_beyond_pythons_calendar_are_compared_like_any_others(as_table, capfd):
    days = pl.Series([0, 2**30, 4_000_000, None] * 10, dtype=pl.Int32).cast(pl.Date)
    times = pl.Series([0, 2**60, 2**60, None] * 10).cast(pl.Datetime("ms"))
    clock = pl.Series([0, 1, 2, None] * 10).cast(pl.Time)
    table = as_table(pl.DataFrame({"day": days, "time": times, "clock": clock}))
    assert inspect_table(table).n_duplicates == 36
    assert capfd.readouterr().err == ""
