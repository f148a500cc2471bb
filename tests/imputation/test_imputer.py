"""Imputer as people use it: any table in, the same table without missing cells out, the same bytes for a seed."""

from __future__ import annotations

import copy
import datetime
import decimal
import math
import os
import pickle
import signal
import threading

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest
from imputers import make_imputer
from scipy import stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from evenly import (
    Column,
    EvenlyWarning,
    Imputer,
    LipschitzScaler,
    Schema,
    TableError,
    Training,
    imputation_error,
)
from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.models import MODELS, PAPERS, loop
from evenly.models.budget import MASKED, PAPER, published_epochs
from evenly.scaling.methods import METHODS
from evenly.tables.frames import open_table

N = 80
RNG = np.random.default_rng(0)
SMALL = {"epochs": 2, "hidden_size": 8, "random_state": 0}


def mixed_table(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Columns that go together, of every kind; a fifth of the cells of each is missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "real": 3.0 + 2.0 * x,
            "positive": np.exp(0.5 * x + 0.3 * rng.normal(size=n)),
            "count": pd.array(rng.poisson(np.exp(1.0 + 0.5 * x)), dtype="Int64"),
            "binary": pd.array(x + 0.3 * rng.normal(size=n) > 0.0, dtype="boolean"),
            "class": np.array(["a", "b", "c"])[np.digitize(x, [-0.5, 0.5])],
            "grade": pd.Categorical.from_codes(np.digitize(x, [-0.5, 0.5]), ["lo", "mid", "hi"], ordered=True),
        }
    )
    return table.mask(rng.random(table.shape) < 0.2)


def quick(**settings: object) -> Imputer:
    """The imputer that compiles fastest: what it says without training will do where types and bounds are tested."""
    given = {"model": "vae", "method": "std-none", "epochs": 0, "hidden_size": 4, "random_state": 0}
    return make_imputer(**given | settings)


def numbers_table(n: int = 30) -> pd.DataFrame:
    x = np.random.default_rng(1).normal(size=n)
    table = pd.DataFrame({"a": x, "b": 2.0 * x + np.random.default_rng(2).normal(size=n)})
    table.loc[:3, "a"] = np.nan
    table.loc[2:6, "b"] = np.nan
    return table


TABLE = mixed_table()


@pytest.fixture(scope="module", autouse=True)
def small_chunks():
    """Three chunks of rows in most tables, and less to compute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenly.imputation.ensemble.CHUNK", 32)
        patch.setattr("evenly.imputation.ensemble.SMALL_CHUNK", 32)
        yield


EACH = [pytest.param(name, marks=[pytest.mark.more] if name in PAPERS else []) for name in MODELS]
"""Every model; each of the paper's takes its time to compile."""


@pytest.fixture(scope="module", params=EACH)
def fitted(request) -> Imputer:
    return make_imputer(request.param, **SMALL).fit(TABLE)


# --- what every model of the registry keeps ---


def test_observed_cells_and_types_stay_and_no_cell_is_missing(fitted):
    full = fitted.transform(TABLE)
    assert full.dtypes.equals(TABLE.dtypes)
    assert not full.isna().any(axis=None)
    pd.testing.assert_frame_equal(full.where(TABLE.notna()), TABLE, check_exact=True)
    assert TABLE.isna().any().all()


def test_imputed_cells_lie_where_the_observed_ones_do(fitted):
    for full in (fitted.transform(TABLE), *fitted.sample(TABLE, 3)):
        for name in ("real", "positive", "count"):
            assert full[name].between(TABLE[name].min(), TABLE[name].max()).all()
        assert set(full["class"]) == {"a", "b", "c"}


def test_fit_transform_is_fit_and_transform_and_the_seed_gives_the_bytes(fitted):
    again = make_imputer(fitted.model, **SMALL).fit_transform(TABLE)
    pd.testing.assert_frame_equal(again, fitted.transform(TABLE), check_exact=True)
    other = make_imputer(fitted.model, **SMALL | {"random_state": 1}).fit_transform(TABLE)
    assert other.equals(again) == (fitted.model == "marginal")  # nothing is drawn there


def test_a_row_does_not_go_by_the_rows_around_it(fitted):
    numbers = ["real", "positive"]
    full = fitted.transform(TABLE)
    order = np.random.default_rng(3).permutation(N)
    for rows in (order, order[:7], order[:1]):
        part = fitted.transform(TABLE.iloc[rows])
        np.testing.assert_allclose(part[numbers], full[numbers].iloc[rows], rtol=1e-5)
        assert part.drop(columns=numbers).equals(full.drop(columns=numbers).iloc[rows])


@pytest.mark.parametrize("name", ["", "some.file"])
def test_a_loaded_imputer_gives_the_same_bytes(fitted, name, tmp_path):
    fitted.save(tmp_path / name)
    file = tmp_path / (name or "imputer.safetensors")
    assert [one.name for one in tmp_path.iterdir()] == [file.name]
    again = Imputer.load(tmp_path / name)
    pd.testing.assert_frame_equal(again.transform(TABLE), fitted.transform(TABLE), check_exact=True)
    for one, other in zip(again.sample(TABLE, 2), fitted.sample(TABLE, 2), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    expected = fitted.distribution(TABLE)
    for column, cells in again.distribution(TABLE).items():
        usual, wanted = cells.parameters, expected[column].parameters
        assert usual.keys() == wanted.keys()
        assert all(np.array_equal(usual[each], wanted[each]) for each in usual)
    for one in (again, fitted):
        one.settings = {**one.get_params(deep=False), "training": one.training.get_params()}
    assert again.settings == fitted.settings
    assert again.baseline_ == fitted.baseline_
    assert again.history_["elbo"].tolist() == fitted.history_["elbo"].tolist()
    assert {k: v.tolist() for k, v in again.history_["log_likelihood"].items()} == {
        k: v.tolist() for k, v in fitted.history_["log_likelihood"].items()
    }


def test_a_saved_file_holds_arrays_and_a_text_only(fitted, tmp_path):
    from safetensors import safe_open

    fitted.save(tmp_path)
    with safe_open(tmp_path / "imputer.safetensors", framework="np") as file:
        assert file.metadata().keys() == {"evenly"}
        kinds = {file.get_tensor(name).dtype.kind for name in file.keys()}  # noqa: SIM118  (not a mapping)
    assert kinds <= {"f", "i"}
    with pytest.raises((pickle.UnpicklingError, ValueError, EOFError, IndexError)):  # by the first byte
        pickle.loads((tmp_path / "imputer.safetensors").read_bytes())


def test_samples_differ_keep_observed_cells_and_come_again(fitted):
    drawn = fitted.sample(TABLE, 3)
    assert len(drawn) == 3
    for one in drawn:
        assert one.dtypes.equals(TABLE.dtypes)
        assert not one.isna().any(axis=None)
        pd.testing.assert_frame_equal(one.where(TABLE.notna()), TABLE, check_exact=True)
    assert not drawn[0].equals(drawn[1])
    assert not drawn[1].equals(drawn[2])
    for one, other in zip(drawn, fitted.sample(TABLE, 4), strict=False):
        assert one.equals(other)


def test_every_epoch_is_in_the_history(fitted):
    n_epochs = 0 if fitted.model == "marginal" else 2
    assert fitted.history_["elbo"].shape == (n_epochs,)
    assert list(fitted.history_["log_likelihood"]) == list(TABLE) == list(fitted.baseline_)
    for curve in fitted.history_["log_likelihood"].values():
        assert curve.shape == (n_epochs,)
        assert np.isfinite(curve).all()


def closed_form(usual: dict[str, np.ndarray], name: str, which: str) -> np.ndarray:
    """The estimate by SciPy."""
    if name == "real":
        return usual["mean"]
    if name == "positive":
        law = stats.lognorm(usual["log_std"], -usual.get("shift", 0.0), np.exp(usual["log_mean"]))
        mode = np.exp(usual["log_mean"] - usual["log_std"] ** 2) - usual.get("shift", 0.0)
        return {"mean": law.mean, "median": law.median, "mode": lambda: mode}[which]()
    law = stats.poisson(usual["rate"])
    return {"mean": law.mean, "median": law.median, "mode": lambda: np.floor(usual["rate"])}[which]()


@pytest.fixture(scope="module")
def explaining(fitted) -> Imputer:
    """The models that explain numbers by their own likelihood; the others use bins."""
    if fitted.model in ("masked", "marginal"):
        pytest.skip("bins are tested in test_masked.py")
    return fitted


@pytest.mark.parametrize("which", ["mean", "median", "mode"])
def test_estimates_are_those_of_the_distribution(explaining, which):
    fitted = explaining
    imputer = copy.copy(fitted).set_params(estimate=which)
    full, found = imputer.transform(TABLE), imputer.distribution(TABLE)
    for name in ("real", "positive", "count"):
        gone = TABLE[name].isna().to_numpy()
        low, high = float(TABLE[name].min()), float(TABLE[name].max())
        expected = np.clip(closed_form(found[name].parameters, name, which), low, high)
        expected = np.rint(expected) if name == "count" else expected
        np.testing.assert_allclose(full[name].to_numpy(float)[gone], expected[gone], rtol=1e-6)
    gone, likely = TABLE["class"].isna().to_numpy(), found["class"].probabilities.argmax(-1)
    assert full["class"][gone].tolist() == np.array(["a", "b", "c"])[likely][gone].tolist()
    gone = TABLE["binary"].isna().to_numpy()
    assert full["binary"][gone].tolist() == (found["binary"].probability > 0.5)[gone].tolist()
    gone, shares = TABLE["grade"].isna().to_numpy(), found["grade"].probabilities
    codes = (shares.cumsum(-1) < 0.5).sum(-1) if which == "median" else shares.argmax(-1)
    assert full["grade"].cat.codes[gone].tolist() == codes[gone].tolist()


def test_distributions_and_scores_are_those_of_scipy(explaining):
    fitted = explaining
    cells, scores = fitted.distribution(TABLE), fitted.log_likelihood(TABLE)
    assert list(cells) == list(scores) == list(TABLE)
    assert fitted.score(TABLE) == pytest.approx(np.mean(list(scores.values())))
    found = {name: one.parameters for name, one in cells.items()}
    assert all(len(value) == N for usual in found.values() for value in usual.values() if np.ndim(value))
    for name in ("class", "grade"):
        np.testing.assert_allclose(found[name]["probabilities"].sum(-1), 1.0)
    by_hand = stats.norm(found["real"]["mean"], found["real"]["std"]).logpdf(TABLE["real"])
    assert scores["real"] == pytest.approx(np.nanmean(by_hand), rel=1e-9)
    seen = TABLE["class"].notna().to_numpy()
    codes = np.array([["a", "b", "c"].index(one) for one in TABLE["class"][seen]])
    shares = np.clip(found["class"]["probabilities"][seen], 1e-6, 1.0 - 1e-6)
    shares = shares / shares.sum(-1, keepdims=True)
    assert scores["class"] == pytest.approx(np.log(shares[np.arange(len(codes)), codes]).mean(), rel=1e-6)


def test_predicted_cells_are_the_estimates_of_all(fitted):
    predicted, full = fitted.predict_cells(TABLE), fitted.transform(TABLE)
    assert predicted.shape == TABLE.shape
    gone = TABLE["real"].isna().to_numpy()
    np.testing.assert_array_equal(predicted[gone, 0], full["real"][gone])
    assert not np.array_equal(predicted[~gone, 0], full["real"][~gone])
    gone = TABLE["grade"].isna().to_numpy()
    assert full["grade"].cat.codes[gone].tolist() == predicted[gone, 5].tolist()


def test_columns_are_found_by_name(fitted):
    full = fitted.transform(TABLE)
    pd.testing.assert_frame_equal(fitted.transform(TABLE[list(TABLE)[::-1]]), full, check_exact=True)
    with pytest.warns(EvenlyWarning, match=r"not there in fit are left out: \['extra'\]"):
        pd.testing.assert_frame_equal(fitted.transform(TABLE.assign(extra=1)), full, check_exact=True)
    with pytest.raises(TableError, match="Column 'grade': got no such column"):
        fitted.transform(TABLE.drop(columns="grade"))


def test_a_row_without_any_observed_cell_is_imputed(fitted):
    nothing = TABLE.head(2).mask(np.ones((2, 6), bool))
    full = fitted.transform(nothing)
    assert not full.isna().any(axis=None)
    assert full.dtypes.equals(TABLE.dtypes)
    assert full.iloc[0].equals(full.iloc[1])


def test_unseen_classes_are_left_as_they_are(fitted):
    new = TABLE.head(4).copy()
    new.loc[:3, "class"] = ["new", None, "a", "new"]
    with pytest.warns(EvenlyWarning, match=r"column 'class': classes not seen in fit are left as they are.*\['new'\]"):
        full = fitted.transform(new)
    assert full["class"].tolist()[::3] == ["new", "new"]
    assert full["class"].tolist()[1] in {"a", "b", "c"}
    # The model does without them: the other cells are imputed as if they were missing.
    unknown = fitted.transform(new.assign(**{"class": new["class"].mask(new["class"] == "new")}))
    pd.testing.assert_frame_equal(full.drop(columns="class"), unknown.drop(columns="class"), check_exact=True)


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


# --- types of cells and tables: one table in every container, so that all share one compilation ---

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
            "word": pd.array(HOLED["word"], dtype="str"),
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


def test_a_name_that_is_there_twice_is_refused():
    table = pd.DataFrame(np.ones((3, 2)), columns=["a", "a"])
    with pytest.raises(TableError, match="Column 'a': got the name more than once"):
        Imputer().fit(table)
    with pytest.raises(TableError, match="Column 'a': got the name more than once"):
        quick().fit(numbers_table()).transform(numbers_table().set_axis(["a", "a"], axis=1))


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


def test_classes_that_json_cannot_hold(tmp_path):
    table = pd.DataFrame({"c": pd.cut(np.linspace(0.0, 1.0, 30), 3), "v": RNG.normal(size=30)})
    table.loc[:4, "c"] = np.nan
    imputer = quick().fit(table)
    full = imputer.transform(table)
    assert full["c"].dtype == table["c"].dtype
    assert not full["c"].isna().any()
    imputer.save(tmp_path)
    pd.testing.assert_frame_equal(Imputer.load(tmp_path).transform(table), full, check_exact=True)


# --- columns and tables as people have them ---


def test_columns_that_are_no_variable_come_back_as_they_are():
    table = numbers_table().assign(
        id=np.arange(30),
        day=pd.date_range("2020", periods=30).where(np.arange(30) > 5),
        words=[None, *(f"she said that number {i} was fine" for i in range(29))],
    )
    with pytest.warns(EvenlyWarning, match=r"passed_through: 'id' .*'day' .*'words' "):
        imputer = quick().fit(table)
    full = imputer.transform(table)
    pd.testing.assert_frame_equal(full[["id", "day", "words"]], table[["id", "day", "words"]], check_exact=True)
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


def test_a_table_without_missing_cells_comes_back_equal():
    table = numbers_table().dropna()
    pd.testing.assert_frame_equal(quick().fit_transform(table), table, check_exact=True)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (numbers_table().iloc[:0], "0 rows"),
        (np.empty((0, 2)), "0 sample"),
        (pl.DataFrame({"a": [], "b": []}), "0 rows"),
        (numbers_table().assign(b=np.inf), "Column 'b': got .*infinite values"),
        (np.ones((3, 5)), "X has 5 features, but Imputer is expecting 2"),
        (None, "got a NoneType, but expected a dataframe"),
        (numbers_table().assign(b="text"), "Column 'b': got the text 'text', but real expects numbers"),
    ],
    ids=str,
)
def test_what_cannot_be_imputed_is_a_clear_error(table, message):
    imputer = quick().fit(numbers_table())
    with pytest.raises(ValueError, match=message):
        imputer.transform(table)


def test_infinite_values_are_named_in_fit():
    with pytest.raises(TableError, match="Column 'b': got 30 infinite values"):
        Imputer().fit(numbers_table().assign(b=np.inf))


def test_declared_bounds_hold_and_whole_columns_stay_whole():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": 50.0 * rng.normal(size=30), "b": np.rint(5.0 * rng.normal(size=30))})
    table.loc[:9, "a"], table.loc[5:14, "b"] = np.nan, np.nan
    seen = table["a"].dropna()
    bounds = {"lower": float(seen.min()) - 30.0, "upper": float(seen.max()) + 1.0}
    columns = [{"name": "a", "kind": "real", **bounds}, {"name": "b", "kind": "real"}]
    schema = Schema.model_validate({"columns": columns})
    imputer = quick(schema=schema).fit(table)
    drawn = pd.concat(imputer.sample(table, 200))
    assert drawn["a"].between(*bounds.values()).all()
    assert drawn["a"].min() < seen.min()  # bounds count, where they are declared, rather than the observed range
    assert drawn["b"].between(table["b"].min(), table["b"].max()).all()
    assert (drawn["b"] == np.rint(drawn["b"])).all()
    with pytest.raises(TableError, match="Column 'a': got values from"):
        imputer.transform(table.fillna({"a": 1e4}))


def test_markers_are_missing_cells():
    table = numbers_table().fillna(-999.0).astype({"b": "float32"})
    full = quick(missing=[-999]).fit_transform(table)
    assert (full != -999.0).all(axis=None)
    assert full[table != -999.0].equals(table[table != -999.0])


# --- learning ---


@pytest.mark.more
def test_strong_dependences_are_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    truth = pd.DataFrame({"x": x, "y": 3.0 * x + 0.1 * rng.normal(size=400), "side": np.where(x > 0, "right", "left")})
    hidden = np.zeros(truth.shape, bool)
    hidden[np.arange(400), rng.integers(0, 3, 400)] = rng.random(400) < 0.6
    imputer = make_imputer(epochs=400, hidden_size=32, batch_size=100, random_state=0)
    errors = imputation_error(truth, imputer.fit_transform(truth.mask(hidden)), hidden)
    assert errors["scored"].min() > 50
    assert errors["normalized"].max() < 0.3
    assert imputer.history_["elbo"][-1] > imputer.history_["elbo"][0]
    gains = {name: curve[-1] - imputer.baseline_[name] for name, curve in imputer.history_["log_likelihood"].items()}
    assert gains["x"] > 0.5
    assert gains["y"] > 0.5


def test_a_unit_changes_nothing_but_the_unit():
    """Scaled by 1/std, x and 1000 x are the same feature: the density of 1000 x is 1/1000 of that of x."""
    tables = (numbers_table(), numbers_table().assign(b=lambda table: 1000.0 * table["b"]))
    imputers = [quick(epochs=5).fit(one) for one in tables]
    curves = [one.history_["log_likelihood"] for one in imputers]
    np.testing.assert_allclose(curves[1]["b"], curves[0]["b"] - np.log(1000.0), atol=1e-4)
    np.testing.assert_allclose(curves[1]["a"], curves[0]["a"], atol=1e-4)
    assert imputers[1].baseline_["b"] == pytest.approx(imputers[0].baseline_["b"] - np.log(1000.0), abs=1e-4)
    full = [one.transform(given) for one, given in zip(imputers, tables, strict=True)]
    np.testing.assert_allclose(full[1]["b"], 1000.0 * full[0]["b"], rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(full[1]["a"], full[0]["a"], rtol=1e-3, atol=1e-5)


def test_the_baseline_is_the_log_likelihood_of_each_column_alone():
    table = numbers_table()
    baseline = quick(epochs=0).fit(table).baseline_
    for name in table:
        seen = table[name].dropna()
        assert baseline[name] == pytest.approx(stats.norm(seen.mean(), seen.std(ddof=0)).logpdf(seen).mean(), rel=1e-5)


def test_an_encoder_sees_the_same_under_every_method():
    found = []
    for method in METHODS:
        columns = LipschitzScaler(method, random_state=0).fit(TABLE).columns_
        values = [one.encode(cells)[0] for one, cells in zip(columns, open_table(TABLE).columns, strict=True)]
        specs = [describe(one, own) for one, own in zip(columns, values, strict=True)]
        found.append(EncodedTable(tuple(map(EncodedColumn, specs, values)), lay_out(specs)).data(seed=0).inputs)
    assert len({inputs.tobytes() for inputs in found}) == 1
    inputs = found[0]
    assert inputs.shape == (N, 1 + 1 + 1 + 1 + 3 + 3)
    for j, name in enumerate([*list(TABLE)[:4], *["class"] * 3, *["grade"] * 3]):
        seen = TABLE[name].notna().to_numpy()
        assert (inputs[~seen, j] == 0.0).all()
        assert inputs[seen, j].mean() == pytest.approx(0.0, abs=1e-6)
        assert inputs[seen, j].std() == pytest.approx(1.0, abs=1e-6)


def test_the_mean_of_many_samples_is_that_of_the_distribution():
    """A mixture of one cluster starts at the columns' own normals; its parameters' posterior is narrow."""
    table = numbers_table()
    bounds = {"lower": -1e6, "upper": 1e6}  # instead of the observed range
    schema = Schema.model_validate({"columns": [{"name": name, "kind": "real", **bounds} for name in table]})
    imputer = quick(model="mixture", n_clusters=1, schema=schema).fit(table)
    usual, gone = imputer.distribution(table)["b"].parameters, table["b"].isna().to_numpy()
    mean, std = usual["mean"][gone][0], usual["std"][gone][0]
    assert (usual["mean"] == mean).all()
    assert (mean, std) == pytest.approx((table["b"].mean(), table["b"].std(ddof=0)), rel=0.1)
    drawn = np.concatenate([one["b"][gone] for one in imputer.sample(table, 400)])
    # Four standard errors; the parameters' draws, 0.01 around theirs, widen a cell's spread by less than a tenth.
    assert abs(drawn.mean() - mean) < 4.0 * 1.1 * std / math.sqrt(len(drawn))
    assert drawn.std() == pytest.approx(std, rel=4.0 / math.sqrt(2.0 * len(drawn)) + 0.02)
    assert stats.kstest((drawn - mean) / std, "norm").pvalue > 1e-3


# --- training, settings and conventions ---


def test_an_interrupt_keeps_a_usable_imputer(monkeypatch):
    # A process started in the background of a shell ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    run, calls = loop.compiled_epoch, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            timer = threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            timer.join()
        return run(*arguments)

    monkeypatch.setattr(loop, "compiled_epoch", interrupted)
    table = numbers_table()
    try:
        with pytest.warns(EvenlyWarning, match="interrupted"):
            imputer = quick(epochs=100_000, n_networks=2).fit(table)  # the second one is not begun
    finally:
        signal.signal(signal.SIGINT, before)
    assert 3 <= len(imputer.history_["elbo"]) <= 10
    assert not imputer.transform(table).isna().any(axis=None)


def test_progress_names_the_column_that_learns_least(capsys):
    table = numbers_table().rename(columns={"a": "[bold]a[/bold]", "b": "[/b\\"})
    quick(epochs=3, verbose=1).fit(table)
    shown = "".join(capsys.readouterr().err.split())
    assert "3/3epochs" in shown
    assert "worstcolumn[bold]a[/bold](" in shown or "worstcolumn[/b\\(" in shown
    quick(epochs=3).fit(table)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "forest"},
        {"method": "lip"},
        {"estimate": "best"},
        {"preset": "pap"},
        {"epochs": -1},
        {"epochs": 2.5},
        {"epochs": "many"},
        {"learning_rate": 0.0},
        {"learning_rate": np.nan},
        {"learning_rate": "fast"},
        {"batch_size": 0},
        {"batch_size": "big"},
        {"n_networks": 0},
        {"latent_size": 0},
        {"n_clusters": 1.5},
        {"hidden_size": None},
        {"bound": "tight"},
        {"target": -1.0},
        {"kinds": {"typo": "real"}},
    ],
    ids=str,
)
def test_settings_of_no_sense_are_named(settings):
    imputer = make_imputer(**settings)
    (name,) = settings
    with pytest.raises(TableError, match="typo" if name == "kinds" else name):
        imputer.fit(numbers_table())
    assert not hasattr(imputer, "scaler_")


def test_a_number_of_samples_of_no_sense_is_named():
    with pytest.raises(TableError, match="n = 0"):
        quick().fit(numbers_table()).sample(numbers_table(), 0)


def test_a_failed_fit_changes_nothing():
    table = numbers_table()
    imputer = quick().fit(table)
    expected = imputer.transform(table)
    with pytest.raises(TableError):
        imputer.fit(table.assign(b=np.inf))
    pd.testing.assert_frame_equal(imputer.transform(table), expected, check_exact=True)


def test_init_only_stores():
    training = Training(epochs=-3, target="x")
    settings = {"model": "forest", "training": training, "kinds": {"a": "real"}, "missing": [-9]}
    imputer = Imputer(**settings)
    assert {name: imputer.get_params()[name] for name in settings} == settings
    assert imputer.get_params()["kinds"] is settings["kinds"]
    again = clone(imputer)
    assert again.training.get_params() == training.get_params()
    assert again.training is not training
    assert imputer.set_params(training__epochs=5).training.epochs == 5
    assert Imputer().set_params(training__epochs=5).training.epochs == 5
    with pytest.raises(NotFittedError):
        Imputer().transform([[1.0]])
    for call in ("sample", "distribution", "score", "predict_cells"):
        with pytest.raises(NotFittedError):
            getattr(Imputer(), call)([[1.0]])


def test_epochs_follow_the_number_of_rows():
    assert [published_epochs(n) for n in (683, 4_600, 32_000)] == [3000, 2000, 400]
    assert [PAPER.epochs(n, 1024) for n in (1, 1024, 1025, 10_240, 10**7)] == [1000, 1000, 1000, 300, 20]


def test_a_masked_network_never_sees_a_larger_table_more_often_nor_more_than_six_million_rows():
    rows = np.arange(2_000, 700_000, 250)
    epochs = np.array([MASKED.epochs(int(n), 256) for n in rows])
    assert (np.diff(epochs) <= 0).all()
    assert (epochs * rows).max() == 6_000_000


def test_auto_epochs_are_what_is_trained(monkeypatch):
    seen = []

    def fit_model(model, layout, data, seed, plan, *rest):
        seen.append(plan.epochs)
        raise KeyError

    monkeypatch.setattr("evenly.models.fitting.fit_model", fit_model)
    for settings in ({}, {"preset": "paper"}, {"epochs": 7}, {"preset": "paper", "epochs": 1}):
        with pytest.raises(KeyError):
            make_imputer("mixture", **settings).fit(numbers_table())
    assert seen == [1000, 3000, 7, 1]


def test_the_papers_preset():
    table = numbers_table().assign(c=np.where(np.arange(30) % 3 == 0, 0.0, np.random.default_rng(4).lognormal(size=30)))
    table.loc[25:, "c"] = np.nan
    imputer = quick(preset="paper", estimate="mean").fit(table)
    assert imputer.scaler_.bound == "paper"
    assert imputer.schema_["c"].clip == 1e-30
    full, usual = imputer.transform(table), imputer.distribution(table)["c"].parameters
    mode = np.exp(usual["log_mean"] - usual["log_std"] ** 2)
    np.testing.assert_allclose(full["c"][25:], mode[25:], rtol=1e-6)
    drawn = pd.concat(imputer.sample(table, 50))
    assert drawn["c"].max() > table["c"].max()  # cut to the support only
    assert drawn["c"].min() >= 0.0
    assert np.isfinite(drawn).all(axis=None)


def test_works_in_a_pipeline_and_a_column_transformer():
    table = numbers_table()
    reduced = make_pipeline(quick(), LinearRegression()).fit(table, np.arange(30)).predict(table)
    assert np.isfinite(reduced).all()
    parts = ColumnTransformer([("impute", quick(), ["a", "b"])], remainder="drop")
    full = parts.set_output(transform="pandas").fit_transform(table.assign(other="x"))
    assert list(full) == ["impute__a", "impute__b"]
    assert not full.isna().any(axis=None)


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


def test_pickles_and_clones():
    table = numbers_table()
    imputer = quick().fit(table)
    again = pickle.loads(pickle.dumps(imputer))
    pd.testing.assert_frame_equal(again.transform(table), imputer.transform(table), check_exact=True)
    assert not hasattr(clone(imputer), "scaler_")


@pytest.mark.parametrize("preset", [None, "paper"])
def test_an_open_end_of_the_support_is_never_imputed(preset):
    """A gamma of a shape below 1 has its mode at 0, where it has no density."""
    table = pd.DataFrame({"a": np.random.default_rng(0).gamma(0.3, size=30) + 1e-3, "b": np.arange(30.0) + 0.5})
    table.loc[:4, "a"] = np.nan
    schema = Schema(columns=[Column(name="a", kind="positive", likelihood="gamma", lower=0.0)])
    imputer = quick(schema=schema, estimate="mode", preset=preset).fit(table)
    assert (imputer.distribution(table)["a"].parameters["shape"][:5] < 1.0).any()
    assert (imputer.transform(table)["a"] > 0.0).all()


# --- saving ---


def test_what_is_no_saved_imputer_is_a_clear_error(tmp_path):
    quick().fit(numbers_table()).save(tmp_path)
    whole = (tmp_path / "imputer.safetensors").read_bytes()
    LipschitzScaler().fit(numbers_table()).save(tmp_path / "scaler.json")
    file = tmp_path / "some"
    for content in (b"", b"garbage", 100 * b"{}", whole[:-50], whole[:500], (tmp_path / "scaler.json").read_bytes()):
        file.write_bytes(content)
        with pytest.raises(TableError, match=r"expected a file that Imputer\.save wrote"):
            Imputer.load(file)
    with pytest.raises(TableError, match=r"expected a file that LipschitzScaler\.save wrote"):
        LipschitzScaler.load(tmp_path / "imputer.safetensors")


@pytest.mark.parametrize("model", ["marginal", "masked"])
def test_a_file_that_lacks_an_array_or_has_another_shape_is_refused(model, tmp_path):
    from evenly._support.files import read_tensors, write_tensors

    file = tmp_path / "imputer.safetensors"
    make_imputer(model, **SMALL).fit(TABLE).save(file)
    content, tensors = read_tensors(file, "Imputer")
    learned = sorted(name for name in tensors if name.startswith("network0/"))
    for name in (learned[0], learned[-1]):
        for some in ({}, {name: tensors[name][..., :-1]}):
            write_tensors(file, content, {other: tensors[other] for other in tensors if other != name} | some)
            with pytest.raises(TableError, match=rf"cannot read it: .*{name}"):
                Imputer.load(file)


def test_a_damaged_file_is_a_clear_error(tmp_path):
    from evenly._support.files import read_tensors, write_tensors

    quick().fit(numbers_table()).save(tmp_path)
    content, tensors = read_tensors(tmp_path / "imputer.safetensors", "Imputer")
    for name in ("settings", "model", "columns", "calibrations", "scaler", "baseline"):
        broken = {key: value for key, value in content.items() if key != name}
        write_tensors(tmp_path / "broken", broken, tensors)
        with pytest.raises(TableError, match="cannot read it"):
            Imputer.load(tmp_path / "broken")
    write_tensors(tmp_path / "broken", content, {"elbo": tensors["elbo"]})
    with pytest.raises(TableError, match="cannot read it"):
        Imputer.load(tmp_path / "broken")


def test_an_own_likelihood_is_needed_again(pareto, tmp_path):
    table = numbers_table().assign(b=lambda t: 1.0 + t["b"] ** 2)
    imputer = quick(likelihoods={"b": pareto}).fit(table)
    full = imputer.transform(table)
    assert not full.isna().any(axis=None)
    imputer.save(tmp_path)
    with pytest.raises(TableError, match="the likelihood 'pareto' of your own"):
        Imputer.load(tmp_path)
    again = Imputer.load(tmp_path, likelihoods=[pareto])
    pd.testing.assert_frame_equal(again.transform(table), full, check_exact=True)
    assert again.likelihoods == {"b": pareto}


def test_dates_of_any_kind_pass_through_polars():
    table = pl.from_pandas(numbers_table()).with_columns(day=pl.lit(datetime.date(2020, 1, 1)))
    with pytest.warns(EvenlyWarning, match="passed_through: 'day'"):
        full = quick().fit_transform(table)
    polars.testing.assert_series_equal(full["day"], table["day"])


# --- scikit-learn's own checks ---


@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_scikit_learns_estimator_checks_pass():
    """Without training, which every shape of table would compile anew."""
    results = estimator_checks.check_estimator(quick(hidden_size=2, random_state=None), on_fail=None, on_skip=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    # The one expected failure: it subtracts scores, and ours are a dict, one of each column.
    assert failed == {}
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= {"check_array_api_input"}


@pytest.mark.more
@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
@pytest.mark.parametrize("model", EACH)
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_transformer_general,
        estimator_checks.check_methods_sample_order_invariance,
        estimator_checks.check_methods_subset_invariance,
    ],
)
def test_a_trained_model_passes_the_checks_that_depend_on_it(model, check):
    check("Imputer", quick(model=model, epochs=1, hidden_size=2, n_clusters=2, latent_size=1))


# --- likelihoods of the user's own ---


@pytest.mark.parametrize("model", EACH)
def test_a_likelihood_of_ones_own_is_learned_saved_and_loaded_by_every_model(model, pareto, tmp_path):
    rng = np.random.default_rng(0)
    table = np.column_stack([1.0 + rng.pareto(3.0, 60), rng.normal(size=60)])
    table[:4, 0] = np.nan
    imputer = make_imputer(model, likelihoods={"x0": pareto}, n_networks=1, **SMALL).fit(table)
    full = imputer.transform(table)
    assert np.isfinite(full).all()
    assert (full[:4, 0] >= 1.0).all()
    imputer.save(tmp_path / "own")
    again = Imputer.load(tmp_path / "own", likelihoods=[pareto])
    np.testing.assert_array_equal(again.transform(table), full)


def test_masked_is_the_default_and_the_papers_model_that_of_its_preset():
    assert Imputer().model_name == "masked"
    assert Imputer(preset="paper").model_name == "vae"


def test_one_row_and_a_column_of_one_value():
    table = pd.DataFrame({"a": [1.0], "b": [2.0]})
    with pytest.warns(EvenlyWarning):
        assert make_imputer(epochs=1, random_state=0).fit_transform(table).equals(table)
