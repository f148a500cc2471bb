"""Tables in and out: every container and type of cell, columns and rows as people have them."""

from __future__ import annotations

import copy
import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest
from imputers import TABLE, make_imputer, numbers_table, quick

from evenly import EvenlyWarning, Imputer, TableError

pytestmark = pytest.mark.usefixtures("small_chunks")


# --- types of cells and tables: one table in every container, so that all share one compilation ---


RNG = np.random.default_rng(0)

M = 40

GONE = np.random.default_rng(5).random((M, 9)) < 0.2

GONE[0], GONE[1] = False, True

CLASSES = ["x", "y", "z"]

COLUMNS: dict[str, list] = {
    "real": np.random.default_rng(6).normal(size=M).tolist(),
    "whole": np.random.default_rng(7).poisson(40.0, M).tolist(),
    "marked": np.random.default_rng(8).poisson(50.0, M).tolist(),
    "flag": [bool(i % 3) for i in range(M)],
    "other": [bool(i % 2) for i in range(M)],
    "color": [CLASSES[i % 3] for i in range(M)],
    "grade": [CLASSES[(i // 2) % 3] for i in range(M)],
    "word": [CLASSES[(i // 3) % 3] for i in range(M)],
    "label": [CLASSES[(i // 4) % 3] for i in range(M)],
}

HOLED = {
    name: [(-999 if name == "marked" else None) if gone else cell for cell, gone in zip(cells, GONE[:, j], strict=True)]
    for j, (name, cells) in enumerate(COLUMNS.items())
}

ENUM = pl.Enum(CLASSES)

CONTAINERS = {
    "pandas": lambda: pd.DataFrame(
        {
            "real": pd.array(HOLED["real"], dtype="float64"),
            "whole": pd.array(HOLED["whole"], dtype="Int64"),
            "marked": np.array(HOLED["marked"], np.int64),
            "flag": pd.array(HOLED["flag"], dtype="boolean"),
            "other": pd.array(HOLED["other"], dtype=object),
            "color": pd.Categorical(HOLED["color"], CLASSES),
            "grade": pd.Categorical(HOLED["grade"], CLASSES, ordered=True),
            # Before pandas 3, the type `str` would spell a missing cell.
            "word": pd.array(HOLED["word"], dtype="str" if int(pd.__version__.split(".")[0]) > 2 else object),
            "label": pd.array(HOLED["label"], dtype=object),
        },
        index=pd.Index(np.arange(M) // 2, name="twice"),
    ),
    "pandas on Arrow": lambda: pd.DataFrame(
        {
            "real": pd.array(HOLED["real"], dtype="float32"),
            "whole": pd.array(HOLED["whole"], dtype="int64[pyarrow]"),
            "marked": np.array(HOLED["marked"], np.int16),
            "flag": pd.array(HOLED["flag"], dtype="bool[pyarrow]"),
            "other": pd.array(HOLED["other"], dtype="boolean"),
            **{name: pd.array(HOLED[name], dtype="string") for name in ("color", "grade", "word", "label")},
        }
    ),
    "polars": lambda: pl.DataFrame(HOLED).with_columns(
        pl.col("real").cast(pl.Float32), pl.col("whole").cast(pl.UInt8), pl.col("color", "grade").cast(ENUM),
        pl.col("word").cast(pl.Categorical),
    ),
    "arrow": lambda: pa.table(HOLED).set_column(5, "color", pa.array(HOLED["color"]).dictionary_encode()),
    "objects": lambda: np.array(list(zip(*HOLED.values(), strict=True)), dtype=object),
}  # fmt: skip


def as_lists(table: object) -> list[list]:
    if isinstance(table, np.ndarray):
        return table.T.tolist()
    if isinstance(table, pd.DataFrame):
        return [table[name].tolist() for name in table]
    columns = table.get_columns() if isinstance(table, pl.DataFrame) else table.columns
    return [column.to_list() if isinstance(column, pl.Series) else column.to_pylist() for column in columns]


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_keeps_its_types(container):
    table = CONTAINERS[container]()
    before = copy.deepcopy(table)
    imputer = quick(missing=[-999] if container == "objects" else {"marked": [-999]})
    full = imputer.fit_transform(table)
    assert type(full) is type(table)
    kinds = [one.kind for one in imputer.schema_.columns]
    assert kinds[:6] == ["real", "count", "count", "binary", "binary", "categorical"]
    assert (kinds[6] == "ordinal") == (container == "pandas")
    if isinstance(table, pd.DataFrame):
        assert full.dtypes.equals(table.dtypes)
        assert full.index.equals(table.index)
        assert full.index.name == table.index.name
    elif isinstance(table, np.ndarray):
        assert full.dtype == object
    else:
        assert full.schema == table.schema
    cells, expected = as_lists(full), as_lists(before)
    assert str(as_lists(table)) == str(expected)  # the table itself is as it was
    for j, name in enumerate(COLUMNS):
        for cell, first, gone in zip(cells[j], expected[j], GONE[:, j], strict=True):
            if gone:
                assert cell in COLUMNS[name] if name not in ("real", "whole", "marked") else np.isfinite(cell)
                assert type(cell) is type(COLUMNS[name][0])
            else:
                assert (cell, type(cell)) == (first, type(first))
        if name in ("whole", "marked"):
            assert min(COLUMNS[name]) <= min(cells[j]) <= max(cells[j]) <= max(COLUMNS[name])


def test_new_rows_may_come_in_another_container(fitted):
    full, objects = fitted.transform(TABLE), TABLE.astype(object).where(TABLE.notna(), None).to_numpy()
    for given in (pl.from_pandas(TABLE), pa.Table.from_pandas(TABLE), objects):
        found = fitted.transform(given)
        assert isinstance(found, type(given))
        back = pd.DataFrame(found, columns=list(TABLE)) if isinstance(found, np.ndarray) else found
        back = back if isinstance(back, pd.DataFrame) else back.to_pandas()
        np.testing.assert_array_equal(back["real"].to_numpy(float), full["real"])
        assert [str(one) for one in back["grade"]] == [str(one) for one in full["grade"]]
        assert back["count"].astype(int).tolist() == full["count"].tolist()


def test_arrays_of_floats_and_of_texts():
    array = numbers_table().to_numpy()
    for dtype in (np.float64, np.float32):
        given = array.astype(dtype)
        full = quick().fit_transform(given)
        assert (full.dtype, full.shape) == (dtype, array.shape)
        np.testing.assert_array_equal(full[~np.isnan(given)], given[~np.isnan(given)])
        assert not np.isnan(full).any()
    texts = np.array([["x", "?"], ["?", "b"], ["y", "much longer"]] * 10)
    full = quick().fit_transform(texts)
    np.testing.assert_array_equal(full[texts != "?"], texts[texts != "?"])
    assert set(full[:, 0]) == {"x", "y"}
    assert set(full[:, 1]) == {"b", "much longer"}


def test_the_output_may_be_written_to():
    for table in (numbers_table(), numbers_table().fillna(0.5)):
        before = table.copy()
        full = quick().fit_transform(table)
        full.iloc[10:, :] = 99.0
        pd.testing.assert_frame_equal(table, before)
        array = table.to_numpy()
        quick().fit_transform(array)[:] = 99.0
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("given", ["pandas", "polars", "array"])
@pytest.mark.parametrize("wanted", ["pandas", "polars"])
def test_set_output(given, wanted):
    table = numbers_table()
    tables = {"pandas": table, "polars": pl.from_pandas(table), "array": table.to_numpy()}
    imputer = quick().set_output(transform=wanted)
    full = imputer.fit_transform(tables[given])
    assert isinstance(full, pd.DataFrame if wanted == "pandas" else pl.DataFrame)
    names = ["x0", "x1"] if given == "array" else ["a", "b"]
    assert list(full.columns) == list(imputer.get_feature_names_out()) == names
    np.testing.assert_array_equal(full.to_numpy(), quick().fit_transform(table).to_numpy())


@pytest.mark.parametrize("labels", [[1, 2], [1, "b"], [("p", 1), ("p", 2)], [1.5, 2]], ids=str)
def test_labels_need_not_be_text(labels, tmp_path):
    table = numbers_table()
    table.columns = pd.Index(labels, name=None if isinstance(labels[0], tuple) else "labels")
    imputer = quick().fit(table)
    full = imputer.transform(table)
    pd.testing.assert_index_equal(full.columns, table.columns, exact=True)
    pd.testing.assert_frame_equal(full.where(table.notna()), table, check_exact=True)
    imputer.save(tmp_path)
    pd.testing.assert_frame_equal(Imputer.load(tmp_path).transform(table), full, check_exact=True)


def test_a_repeated_name_is_refused():
    table = pd.DataFrame(np.ones((3, 2)), columns=["a", "a"])
    with pytest.raises(TableError, match="Column 'a': got the name more than once"):
        Imputer().fit(table)
    with pytest.raises(TableError, match="Column 'a': got the name more than once"):
        quick().fit(numbers_table()).transform(numbers_table().set_axis(["a", "a"], axis=1))


def test_columns_are_found_by_name(fitted):
    full = fitted.transform(TABLE)
    pd.testing.assert_frame_equal(fitted.transform(TABLE[list(TABLE)[::-1]]), full, check_exact=True)
    with pytest.warns(EvenlyWarning, match=r"not there in fit are left out: \['extra'\]"):
        pd.testing.assert_frame_equal(fitted.transform(TABLE.assign(extra=1)), full, check_exact=True)
    with pytest.raises(TableError, match="Column 'grade': got no such column"):
        fitted.transform(TABLE.drop(columns="grade"))


def test_a_table_fitted_as_an_array_keeps_the_names_of_new_rows():
    table = numbers_table()
    imputer = quick().fit(table.to_numpy())
    assert list(imputer.transform(table)) == ["a", "b"]
    assert imputer.transform(pl.from_pandas(table)).columns == ["a", "b"]
    assert imputer.transform(table).to_numpy().tobytes() == imputer.transform(table.to_numpy()).tobytes()


def test_columns_without_a_type_get_that_of_fit():
    table = pl.DataFrame({"s": ["x", "y", None, "x"] * 8, "v": [1.5, None, 2.5, -3.0] * 8})
    for given in (table, table.to_arrow(), table.to_pandas(), table.to_numpy()):
        imputer = quick().fit(given)
        for empty in (
            pl.DataFrame({"s": [None, None], "v": [None, None]}),
            pa.table({"s": pa.nulls(2), "v": pa.nulls(2)}),
            pd.DataFrame({"s": [None, None], "v": [None, None]}),
            np.full((2, 2), None),
        ):
            full = imputer.transform(empty)
            assert type(full) is type(empty)
            text, number = as_lists(full)
            assert set(text) <= {"x", "y"}
            assert [type(one) for one in number] == [float, float]


def test_decimals_stay_decimals():
    cells = [decimal.Decimal("1.50"), None, decimal.Decimal("2.25"), decimal.Decimal("-4.50")] * 8
    for table in (pd.DataFrame({"d": cells}), pl.DataFrame({"d": cells}), pa.table({"d": cells})):
        full = quick().fit_transform(table)
        assert {type(one) for one in as_lists(full)[0]} == {decimal.Decimal}
        if not isinstance(table, pd.DataFrame):
            assert full.schema == table.schema


def test_times_of_any_kind_pass_through_polars():
    table = pl.from_pandas(numbers_table()).with_columns(hour=pl.lit(datetime.time(12, 30)))
    with pytest.warns(EvenlyWarning, match="passed_through: 'hour'"):
        full = quick().fit_transform(table)
    polars.testing.assert_series_equal(full["hour"], table["hour"])


# --- columns and tables as people have them ---


def test_columns_that_are_no_variables_come_back_unchanged():
    table = numbers_table().assign(
        id=np.arange(30),
        wait=pd.timedelta_range("1s", periods=30).where(np.arange(30) > 5),
        words=[None, *(f"she said that number {i} was fine" for i in range(29))],
    )
    with pytest.warns(EvenlyWarning, match=r"passed_through: 'id' .*'wait' .*'words' "):
        imputer = quick().fit(table)
    full = imputer.transform(table)
    pd.testing.assert_frame_equal(full[["id", "wait", "words"]], table[["id", "wait", "words"]], check_exact=True)
    assert not full[["a", "b"]].isna().any(axis=None)
    assert list(imputer.distribution(table)) == ["a", "b"]
    assert np.isnan(imputer.predict_cells(table)[:, 2:]).all()


def test_constant_and_empty_columns(tmp_path):
    table = numbers_table().assign(same=7.0, word="w", nothing=np.nan)
    table.loc[:4, ["same", "word"]] = None
    with (
        pytest.warns(EvenlyWarning, match="constant: 'same', 'word'"),
        pytest.warns(EvenlyWarning, match="no_data: 'nothing'"),
    ):
        imputer = quick().fit(table)
    full = imputer.transform(table)
    assert set(full["same"]) == {7.0}
    assert set(full["word"]) == {"w"}
    assert full["nothing"].isna().all()
    assert all(one[["same", "word"]].equals(full[["same", "word"]]) for one in imputer.sample(table, 2))


def test_a_table_with_nothing_to_model(tmp_path):
    table = pd.DataFrame({"same": [7.0, np.nan, 7.0], "nothing": np.nan})
    with pytest.warns(EvenlyWarning, match="constant: 'same'"), pytest.warns(EvenlyWarning, match="no_data: 'nothing'"):
        imputer = quick().fit(table)
    imputer.save(tmp_path)
    for one in (imputer, Imputer.load(tmp_path)):
        full = one.transform(table)
        assert full["same"].tolist() == [7.0, 7.0, 7.0]
        assert full["nothing"].isna().all()
        assert one.sample(table, 1)[0].equals(full)
        assert (one.distribution(table), one.log_likelihood(table)) == ({}, {})
        assert np.isnan(one.score(table))


@pytest.mark.parametrize(
    "settings", [{"method": "std-none"}, {"method": "lip-gamma", "kinds": {"c": "count"}}], ids=["normal", "count"]
)
def test_a_column_too_far_from_zero_gets_its_median(settings):
    far = -1e9 + RNG.normal(size=30) if "kinds" not in settings else 1e9 + np.rint(10.0 * RNG.normal(size=30))
    table = numbers_table().assign(c=np.where(np.arange(30) < 5, np.nan, far))
    with pytest.warns(EvenlyWarning, match=r"too far from 0 for their spread: \['c'\]: the median is imputed"):
        full = quick(**settings).fit_transform(table)
    assert set(full["c"][:5]) == {float(np.median(far[5:]))}


@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.parametrize("kind", ["real", "positive"])
def test_the_largest_and_the_smallest_numbers(kind, size):
    column = size * (RNG.normal(size=30) if kind == "real" else RNG.random(30) + 0.1)
    table = numbers_table().assign(c=np.where(np.arange(30) < 5, np.nan, column))
    imputer = quick(method="lip-gamma").fit(table)
    for full in (imputer.transform(table), *imputer.sample(table, 2)):
        assert full["c"].between(column[5:].min(), column[5:].max()).all()
        assert not full.isna().any(axis=None)


def test_unseen_classes_are_left_as_they_are(fitted):
    new = TABLE.head(4).copy()
    new.loc[:3, "class"] = ["new", None, "a", "new"]
    with pytest.warns(EvenlyWarning, match="column 'class': 2 cells with classes not seen in fit, .*: 'new'.*stay as"):
        full = fitted.transform(new)
    assert full["class"].tolist()[::3] == ["new", "new"]
    assert full["class"].tolist()[1] in {"a", "b", "c"}
    # The model does without them: the other cells are imputed as if they were missing.
    unknown = fitted.transform(new.assign(**{"class": new["class"].mask(new["class"] == "new")}))
    pd.testing.assert_frame_equal(full.drop(columns="class"), unknown.drop(columns="class"), check_exact=True)


def test_a_row_without_any_observed_cell_is_imputed(fitted):
    nothing = TABLE.head(2).mask(np.ones((2, 6), bool))
    full = fitted.transform(nothing)
    assert not full.isna().any(axis=None)
    assert full.dtypes.equals(TABLE.dtypes)
    assert full.iloc[0].equals(full.iloc[1])


def test_strange_new_rows():
    imputer = quick(method="lip-gamma").fit(1e-3 * numbers_table())
    full = imputer.transform(pd.DataFrame({"a": [1e308, np.nan, -1e308], "b": [np.nan, 1e308, np.nan]}))
    assert np.isfinite(full).all(axis=None)
    assert full["b"][[0, 2]].abs().max() < 1.0


def test_few_rows_and_columns():
    table = numbers_table()
    with pytest.warns(EvenlyWarning, match="constant: 'a', 'b'"):
        pd.testing.assert_frame_equal(quick().fit_transform(table.iloc[10:11]), table.iloc[10:11])
    two = pd.DataFrame({"a": [1.5, -2.0], "b": [np.nan, 3.0]})
    with pytest.warns(EvenlyWarning, match="constant: 'b'"):
        assert quick().fit_transform(two).to_numpy().tolist() == [[1.5, 3.0], [-2.0, 3.0]]
    alone = quick().fit_transform(table[["a"]])
    assert not alone["a"].isna().any()


def test_one_row_and_a_column_of_one_value():
    table = pd.DataFrame({"a": [1.0], "b": [2.0]})
    with pytest.warns(EvenlyWarning):
        assert make_imputer(epochs=1, random_state=0).fit_transform(table).equals(table)


def test_a_table_without_missing_cells_comes_back_equal():
    table = numbers_table().dropna()
    pd.testing.assert_frame_equal(quick().fit_transform(table), table, check_exact=True)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (numbers_table().iloc[:0], "0 rows"),
        (np.empty((0, 2)), "0 sample"),
        (pl.DataFrame({"a": [], "b": []}), "0 rows"),
        (np.ones((3, 5)), "X has 5 features, but Imputer is expecting 2"),
        (None, "got a NoneType, but expected a dataframe"),
    ],
    ids=str,
)
def test_a_table_that_cannot_be_imputed_is_a_clear_error(table, message):
    imputer = quick().fit(numbers_table())
    with pytest.raises(ValueError, match=message):
        imputer.transform(table)


def test_infinite_values_are_named_in_fit():
    with pytest.raises(TableError, match="Column 'b': got 30 infinite values"):
        Imputer().fit(numbers_table().assign(b=np.inf))


def test_markers_are_missing_cells():
    table = numbers_table().fillna(-999.0).astype({"b": "float32"})
    full = quick(missing=[-999]).fit_transform(table)
    assert (full != -999.0).all(axis=None)
    assert full[table != -999.0].equals(table[table != -999.0])
