"""Classes that differ only by case or spaces are named and can be read as one; rows that repeat others are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pydantic import ValidationError

from evenly import Imputer, LipschitzScaler, Schema, infer_schema, inspect_table
from evenly.tables import Column

RNG = np.random.default_rng(0)
N = 60
ANSWERS = ["Tea", "gin", "tea ", "TEA", None, "gin"] * (N // 6)
OTHER = RNG.normal(size=N)
FRAMES = {
    "pandas": lambda: pd.DataFrame({"smoker": ANSWERS, "x": OTHER}),
    "pandas category": lambda: pd.DataFrame({"smoker": pd.Categorical(ANSWERS), "x": OTHER}),
    "polars": lambda: pl.DataFrame({"smoker": ANSWERS, "x": OTHER}),
    "arrow": lambda: pa.table({"smoker": ANSWERS, "x": OTHER}),
}


def answers(table: object) -> list[object]:
    column = table["smoker"]
    return column.to_pylist() if isinstance(table, pa.Table) else list(column)


@pytest.mark.parametrize("container", FRAMES)
def test_classes_that_differ_only_by_case_or_spaces_are_named_with_the_command(container):
    column = inspect_table(FRAMES[container]())["smoker"]
    (warning,) = column.warnings
    assert warning.startswith("'Tea' (10), 'tea ' (10), 'TEA' (10) differ only by case or spaces")
    assert "evenly inspect TABLE --merge-classes -o schema.json" in warning
    merged = inspect_table(FRAMES[container](), merge_classes=True)
    assert merged["smoker"].warnings == ()
    assert merged["smoker"].kind == "binary"
    assert merged.schema["smoker"].same == {"tea ": "Tea", "TEA": "Tea"}


@pytest.mark.parametrize("container", FRAMES)
def test_merged_classes_are_one_in_the_model_and_as_they_are_in_the_table(container, tmp_path):
    table = FRAMES[container]()
    infer_schema(table, merge_classes=True).save(tmp_path / "schema.json")
    imputer = Imputer("marginal", schema=tmp_path / "schema.json").fit(table)
    assert imputer.schema_["smoker"].classes == ["Tea", "gin"]
    full = answers(imputer.transform(table))
    assert [cell for cell, first in zip(full, ANSWERS, strict=True) if first is None] == ["Tea"] * 10
    assert [cell for cell, first in zip(full, ANSWERS, strict=True) if first is not None] == [*filter(None, ANSWERS)]
    chance = imputer.distribution(table)["smoker"].parameters["probability"]
    assert chance == pytest.approx(0.4)  # of "gin"
    scaler = LipschitzScaler("lip-none", schema=tmp_path / "schema.json").fit(table)
    back = answers(scaler.inverse_transform(scaler.transform(table)))
    assert [cell for cell, first in zip(back, ANSWERS, strict=True) if first == "tea "] == ["Tea"] * 10


def test_lazy_frames_read_merged_classes_too():
    table = FRAMES["polars"]().with_columns(id=pl.Series(range(N)))
    schema = infer_schema(table, kinds={"id": "ignore"}, merge_classes=True)
    eager = LipschitzScaler("lip-bern", schema=schema).fit(table)
    lazy = LipschitzScaler("lip-bern", schema=schema).fit(table.lazy())
    scaled = lazy.transform(table.lazy(), key="id").collect()
    assert scaled["smoker"].null_count() == 10
    np.testing.assert_allclose(scaled["smoker"], eager.transform(table, key="id")["smoker"])


def test_a_schema_with_spellings_is_read_edited_and_checked(tmp_path):
    schema = infer_schema(FRAMES["pandas"](), merge_classes=True)
    schema.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == schema
    assert "same: 'tea ' = 'Tea' 'TEA' = 'Tea'" in str(schema)
    # Without classes, they are those of the table.
    column = Column(name="smoker", kind="binary", same={"tea ": "Tea", "TEA": "Tea"})
    scaler = LipschitzScaler("lip-none", schema=Schema(columns=[column])).fit(FRAMES["pandas"]())
    assert scaler.schema_["smoker"].classes == ["Tea", "gin"]
    # An overriding kind keeps them.
    scaler = LipschitzScaler("lip-none", schema=schema, kinds={"smoker": "categorical"}).fit(FRAMES["pandas"]())
    assert scaler.schema_["smoker"].same == {"tea ": "Tea", "TEA": "Tea"}
    for same in ({"TEA": "Maybe"}, {"gin": "Tea"}):
        with pytest.raises(ValidationError, match="`same` reads"):
            Column(name="a", kind="binary", classes=["Tea", "gin"], same=same)


def test_nothing_is_merged_where_nothing_differs_so():
    table = pd.DataFrame({"a": ["x", "y"] * 30, "b": RNG.normal(size=N)})
    assert infer_schema(table, merge_classes=True) == infer_schema(table)


# --- rows -------------------------------------------------------------------------------------------------------------


def twice(n: int = 5) -> pd.DataFrame:
    table = pd.DataFrame({"x": RNG.normal(size=50), "n": RNG.poisson(3.0, 50), "c": RNG.choice(["a", "b"], 50)})
    table.loc[3, "x"] = np.nan
    table["when"] = pd.date_range("2024", periods=50)
    table["list"] = [[i] for i in range(50)]
    return pd.concat([table, table.iloc[:n]], ignore_index=True)


def test_rows_that_repeat_an_earlier_one_are_counted():
    found = inspect_table(twice())
    assert found.n_duplicates == 5
    (warning,) = found.warnings
    assert warning.startswith("5 rows repeat an earlier one in all columns (9.1 % of all)")
    assert "drop_duplicates()" in warning
    assert found.to_plain()["n_duplicates"] == 5
    assert inspect_table(twice(0)).warnings == ()
    for table in (pl.from_pandas(twice()), pa.Table.from_pandas(twice(), preserve_index=False)):
        assert inspect_table(table).n_duplicates == 5


def test_identifiers_do_not_make_rows_differ():
    table = twice(1).assign(id=range(51))
    found = inspect_table(table)
    assert found.warnings[0].startswith("1 row repeats an earlier one in all columns but 'id'")


def test_rows_of_few_classes_may_repeat():
    """Two coins thrown a hundred times fall alike again and again."""
    coins = pd.DataFrame({"a": RNG.choice(["h", "t"], 100), "b": RNG.choice(["h", "t"], 100)})
    found = inspect_table(coins)
    assert found.n_duplicates == 96
    assert found.warnings == ()


def test_large_identifiers_are_told_apart():
    table = np.column_stack([2**60 + np.arange(30) // 2 * 2, np.tile([1, 2, 3], 10)])
    assert inspect_table(table).n_duplicates == 0
    assert inspect_table(table + np.array([1, 0])).n_duplicates == 0
