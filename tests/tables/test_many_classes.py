"""Columns with many classes: which columns are such, the order of their classes, and what is modelled of them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenly import LipschitzScaler, Schema, TableError, infer_schema
from evenly.tables.columns import TableColumn
from evenly.tables.many_classes import by_frequency
from evenly.tables.profile import profile_column
from evenly.tables.schema import Column


def towns(n_classes: int, n_cells: int, seed: int = 0) -> np.ndarray:
    """Draw towns of which some are far more frequent than others; each occurs."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1.0, n_classes + 1.0)
    drawn = rng.choice(n_classes, n_cells - n_classes, p=shares / shares.sum())
    cells = rng.permutation(np.concatenate([np.arange(n_classes), drawn]))
    return np.array([f"town {(7 * code) % n_classes}" for code in cells], object)


@pytest.mark.parametrize(
    ("n_classes", "n_cells", "kind"),
    [(100, 1000, "categorical"), (101, 404, "categorical"), (101, 403, "ignore"), (400, 2000, "categorical")],
)
@pytest.mark.filterwarnings("ignore:passed_through")  # the warning has tests of its own
def test_classes_that_repeat_are_classes_however_many(n_classes, n_cells, kind):
    cells = towns(n_classes, n_cells)
    for made in (cells, pd.Categorical(cells), pl.Series(cells).cast(pl.Enum(sorted(set(cells))))):
        column = infer_schema(
            pd.DataFrame({"town": made}) if not isinstance(made, pl.Series) else made.to_frame("town")
        )
        assert column.columns[0].kind == kind
    lazy = pl.DataFrame({"town": cells}).lazy()
    assert LipschitzScaler("lip-none", passthrough="keep").fit(lazy).schema_["town"].kind == kind


def test_many_classes_are_listed_by_frequency_and_few_by_name():
    cells = towns(300, 3000)
    table = pd.DataFrame({"town": cells, "few": np.where(cells == "town 0", "z", "a")})
    schema = infer_schema(table)
    counts = pd.Series(cells).value_counts()
    listed = counts[schema["town"].classes].to_numpy()
    assert (np.diff(listed) <= 0).all()
    assert listed.sum() == len(cells)
    assert schema["town"].note == "300 classes: the 100 most frequent are modelled one by one"
    assert infer_schema(table.assign(few=list("zabc") * 750))["few"].classes == ["a", "b", "c", "z"]
    lazy = LipschitzScaler("lip-none").fit(pl.from_pandas(table).lazy())
    assert lazy.schema_["town"].classes == schema["town"].classes


def test_numbers_that_are_declared_classes_are_listed_by_frequency_too():
    rng = np.random.default_rng(0)
    codes = rng.integers(10_000, 99_999, 150)[np.minimum(rng.geometric(0.02, 3000) - 1, 149)]
    column = infer_schema(pd.DataFrame({"zip": codes}), kinds={"zip": "categorical"})["zip"]
    counts = pd.Series(codes).value_counts()
    assert (np.diff(counts[column.classes].to_numpy()) <= 0).all()
    with pytest.raises(
        TableError, match=r"Column 'id': got 10001 distinct numbers, but expected at most 10,000 classes"
    ):
        infer_schema(pd.DataFrame({"id": np.arange(10_001)}), kinds={"id": "categorical"})


def test_a_saved_schema_lists_all_classes_and_may_be_reordered(tmp_path):
    cells = towns(300, 3000)
    table = pd.DataFrame({"town": cells})
    path = tmp_path / "schema.json"
    infer_schema(table).save(path)
    schema = json.loads(path.read_text())
    assert len(schema["columns"][0]["classes"]) == 300
    assert Schema.load(path) == infer_schema(table)
    last = schema["columns"][0]["classes"].pop()
    schema["columns"][0]["classes"].insert(0, last)
    path.write_text(json.dumps(schema))
    scaler = LipschitzScaler("lip-bern", schema=path).fit(table)
    assert next(iter(scaler.transform(table).columns)) == f"town={last}"


def test_what_is_told_apart():
    few, many = (Column(name="c", kind="categorical", classes=[*range(n)]) for n in (100, 101))
    ordered = Column(name="c", kind="ordinal", classes=[*range(200)])
    assert [(one.n_single, one.n_outcomes, one.has_rest) for one in (few, many, ordered)] == [
        (100, 100, False),
        (100, 101, True),
        (200, 200, False),
    ]
    codes = np.array([0.0, 99.0, 100.0, np.nan])
    np.testing.assert_array_equal(few.lump(codes), codes)


def test_frequencies_of_numbers_that_are_not_counted_one_by_one():
    cells = TableColumn("n", np.array([5.5, 7e9, 7e9, np.nan, 5.5, 7e9]))
    assert by_frequency([5.5, 7000000000], profile_column(cells)) == [7000000000, 5.5]
