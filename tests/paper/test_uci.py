"""Whole tables: on the six UCI data sets and on random ones, every column ends at the target, and comes back."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from evenly._support.errors import EvenlyWarning
from evenly.scaling.scaler import LipschitzScaler
from evenly.tables import infer_schema

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

EPS = np.finfo(np.float64).eps
DATA_SETS = ["adult", "breast", "credit", "letter", "spam", "wine"]
CONTINUOUS = ("real", "positive")
each_set = pytest.mark.parametrize(
    "name", [name if name == "breast" else pytest.param(name, marks=pytest.mark.more) for name in DATA_SETS]
)


class DataSet:
    """A data set with the kinds that are declared for it; fitted once for each method and bound."""

    def __init__(self, folder: Path) -> None:
        declared = pd.read_csv(folder / "kinds.csv")
        self.kinds: dict[str, str] = dict(zip(declared["column"], declared["kind"], strict=True))
        self.table = pd.read_csv(folder / "data.csv")
        self._fitted: dict[tuple[str, str], LipschitzScaler] = {}

    def fit(self, method: str, bound: Any) -> LipschitzScaler:
        if (method, bound) not in self._fitted:
            scaler = LipschitzScaler(method, kinds=self.kinds, bound=bound, noise="drawn", random_state=0)
            self._fitted[method, bound] = scaler.fit(self.table)
        return self._fitted[method, bound]


_OPENED: dict[str, DataSet] = {}


@pytest.fixture
def data_set(data_directory: Path, name: str) -> DataSet:
    if not (data_directory / name / "data.csv").is_file():
        pytest.skip(f"no {name}/data.csv in {data_directory}")
    if name not in _OPENED:
        _OPENED[name] = DataSet(data_directory / name)
    return _OPENED[name]


def rows_by_column(scaler: LipschitzScaler) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in scaler.summary_.to_dict("records"):
        rows[row["column"]].append(row)
    return rows


# --- the target -----------------------------------------------------------------------------------


@each_set
@pytest.mark.parametrize("method", ["lip-none", "lip-bern", "lip-gamma"])
@pytest.mark.parametrize("bound", ["exact", "paper"])
def test_every_scaled_column_ends_at_the_target(data_set: DataSet, method: str, bound: str) -> None:
    scaler = data_set.fit(method, bound)
    # Without the Gamma trick, discrete columns are left as they are.
    scaled = {column for column, kind in data_set.kinds.items() if method == "lip-gamma" or kind in CONTINUOUS}
    assert scaler.target_ == pytest.approx(1.0 / (max(len(scaled), 1) * 1e-3), rel=1e-14)
    measure = "smoothness_after" if bound == "exact" else "bound_after"
    rows = rows_by_column(scaler)
    assert set(rows) == set(data_set.table.columns)
    for column, features in rows.items():
        outcomes = {row["outcome"] for row in features}
        if column in scaled:
            assert outcomes == {"reached"}
            assert math.fsum(row[measure] for row in features) == pytest.approx(scaler.target_, rel=1e-8)
        else:
            assert outcomes == {"passed_through"}
            assert {row["scale"] for row in features} == {1.0}


@each_set
@pytest.mark.parametrize("method", ["lip-none", "lip-gamma"])
def test_the_scaled_table_itself_has_the_target_smoothness(data_set: DataSet, method: str) -> None:
    """From the scaled cells alone, by the closed form for normals, and by sampling for gammas with drawn noise."""
    scaler = data_set.fit(method, "exact")
    scaled = scaler.transform(data_set.table)
    for column, features in rows_by_column(scaler).items():
        kind = data_set.kinds[column]
        if kind in CONTINUOUS:
            x = scaled[column].dropna().to_numpy()
            x = np.log(x) if kind == "positive" else x  # a positive column is a normal in logs
            mean, variance = float(x.mean()), float(x.var())
            found = variance + 4.0 * abs(mean) * variance + 2.0 * variance**2 + 4.0 * mean**2 * variance
            assert found == pytest.approx(scaler.target_, rel=1e-8)
        elif method == "lip-gamma":
            # Variance alone is most of it; the noise that was drawn is one of many that might have been.
            for row in features:
                x = scaled[row["feature"]].dropna().to_numpy()
                natural = scaler.natural_[row["feature"]]
                mean = (natural[0] + 1.0) / -natural[1]
                error = row["scale"] * math.sqrt(0.0011 / len(x))  # the noise's variance is 0.00106
                assert abs(float(x.mean()) - mean) < 5.0 * error


# --- pandas and Polars ----------------------------------------------------------------------------


@each_set
@pytest.mark.parametrize("method", ["lip-gamma", "std-none"])
def test_pandas_and_polars_agree(data_set: DataSet, method: str) -> None:
    one = data_set.fit(method, "exact")
    table = pl.from_pandas(data_set.table)
    two = LipschitzScaler(method, kinds=data_set.kinds, noise="drawn", random_state=0).fit(table)
    assert two.target_ == one.target_
    assert two.summary_["feature"].to_list() == one.summary_["feature"].to_list()
    for what in ("scale", "smoothness_before", "smoothness_after"):
        assert two.summary_[what].to_numpy() == pytest.approx(one.summary_[what].to_numpy(), rel=1e-9)
    ours, theirs = one.transform(data_set.table), two.transform(table)
    assert isinstance(theirs, pl.DataFrame)
    assert theirs.columns == list(ours.columns)
    for name in theirs.columns:
        cells = theirs[name].cast(pl.Float64).to_numpy()
        assert np.allclose(cells, ours[name].to_numpy(float), rtol=1e-9, atol=0.0, equal_nan=True)


# --- and back -------------------------------------------------------------------------------------


def assert_restored(scaler: LipschitzScaler, table: Any) -> None:
    """Check that cells come back: discrete ones exactly, continuous ones to the rounding of their scaling."""
    back = scaler.inverse_transform(scaler.transform(table))
    assert list(back.columns) == list(table.columns)
    assert (back.dtypes == table.dtypes).all()
    rows = rows_by_column(scaler)
    for column in scaler.schema_.columns:
        here, there = table[column.name], back[column.name]
        assert (here.isna() == there.isna()).all()
        here, there = here.dropna(), there.dropna()
        if column.kind not in CONTINUOUS:
            assert (here == there).all()
            continue
        x, y = here.to_numpy(float), there.to_numpy(float)
        shifted = np.abs(x) + column.shift
        # A product rounds once, and once on the way back. A power x^s rounds too, and taking the root multiplies
        # that by 1/s; inside a power, log x is rounded, which counts as often as it is large.
        times = np.full(len(x), 4.0)
        if column.likelihood == "log-normal":
            times = 4.0 + 4.0 / rows[column.name][0]["scale"] + 4.0 * np.abs(np.log(shifted))
        assert (np.abs(x - y) <= EPS * times * shifted).all()


@each_set
@pytest.mark.parametrize("method", ["std-none", "iqr-none", "lip-none", "lip-bern", "std-gamma", "lip-gamma"])
def test_inverse_transform_restores_the_table(data_set: DataSet, method: str) -> None:
    if method == "iqr-none":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvenlyWarning)  # some columns have equal quartiles
            scaler = data_set.fit(method, "exact")
    else:
        scaler = data_set.fit(method, "exact")
    assert_restored(scaler, data_set.table)


# --- random tables --------------------------------------------------------------------------------


def _cells(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw a column of a kind, of a random size and shape."""
    size = 10.0 ** rng.uniform(-4.0, 4.0)
    if kind == "real":
        return size * rng.normal(rng.uniform(-50.0, 50.0), 1.0, n)
    if kind == "positive":
        return size * np.exp(rng.normal(0.0, rng.uniform(0.1, 2.0), n))
    if kind == "count":
        return rng.poisson(10.0 ** rng.uniform(-1.0, 3.0), n).astype(float)
    n_classes = 2 if kind == "binary" else int(rng.integers(2, 8))
    return rng.choice(n_classes, n, p=rng.dirichlet(np.ones(n_classes))).astype(float)


@st.composite
def random_tables(draw: Any) -> tuple[Any, dict[str, str]]:
    kinds = draw(
        st.lists(
            st.sampled_from(["real", "positive", "count", "binary", "categorical", "ordinal"]),
            min_size=1,
            max_size=6,
        )
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(20, 120))
    missing = draw(st.sampled_from([0.0, 0.1, 0.5]))
    table = {}
    for j, kind in enumerate(kinds):
        cells = _cells(kind, rng, n)
        cells[rng.random(n) < missing] = np.nan
        cells[0] = 0.0 if kind != "positive" else 1.0  # a column of missing cells only has no kind
        table[f"{kind} {j}"] = cells
    return pd.DataFrame(table), {f"{kind} {j}": kind for j, kind in enumerate(kinds)}


@settings(deadline=None, derandomize=True, database=None, max_examples=examples(60))
@given(random_tables(), st.floats(-1.0, 4.0), st.sampled_from(["exact", "paper"]))
def test_random_tables_end_at_the_target_and_come_back(
    drawn: tuple[Any, dict[str, str]], log_target: float, bound: Any
) -> None:
    table, kinds = drawn
    target = 10.0**log_target
    settings = {"target": target, "kinds": kinds, "bound": bound, "random_state": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)  # constant columns and targets below a floor are allowed
        scaler = LipschitzScaler("lip-gamma", **settings).fit(table)
        polars = LipschitzScaler("lip-gamma", **settings).fit(pl.from_pandas(table))
    measure = "smoothness_after" if bound == "exact" else "bound_after"
    for column, features in rows_by_column(scaler).items():
        outcomes = {row["outcome"] for row in features}
        assert outcomes <= {"reached", "below_floor", "constant"}
        assert ("constant" in outcomes) == (table[column].nunique() == 1)
        total = math.fsum(row[measure] for row in features)
        if outcomes == {"reached"}:
            assert total == pytest.approx(target, rel=1e-8)
        elif outcomes <= {"reached", "below_floor"}:
            assert total > target
            assert kinds[column] not in CONTINUOUS  # a normal has no floor
        for row in features:
            if row["outcome"] == "reached":
                assert row[measure] == pytest.approx(target / len(features), rel=1e-8)
    assert polars.summary_["scale"].to_numpy() == pytest.approx(scaler.summary_["scale"].to_numpy(), rel=1e-9)
    assert_restored(scaler, table)


@pytest.mark.more
def test_most_kinds_are_inferred_as_a_person_declared_them(data_directory: Path) -> None:
    """Whole numbers that are codes cannot all be distinguished from counts: six columns in seven is what to expect."""
    agree = []
    for name in DATA_SETS:
        folder = data_directory / name
        if (folder / "data.csv").is_file():
            declared = pd.read_csv(folder / "kinds.csv").set_index("column")["kind"]
            inferred = infer_schema(pd.read_csv(folder / "data.csv"))
            agree += [column.kind == declared[column.name] for column in inferred.columns]
    if not agree:
        pytest.skip(f"no data sets in {data_directory}")
    assert np.mean(agree) > 6 / 7
