"""The paper's data sets: where they are looked for, how the originals are coded, what is hidden, what is refused.

The rows of the small originals here are made up; only their format is that of the UCI repository.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evenly._support.errors import MissingExtraError, TableError
from evenly.paper import datasets, originals
from evenly.paper.datasets import (
    NAMES,
    PERCENTS,
    DataSet,
    as_table,
    hidden_mask,
    load_dataset,
    schema,
    synthetic,
)
from evenly.paper.originals import ORIGINS
from evenly.scaling.scaler import LipschitzScaler

NAN = np.nan

ADULT = """\
41, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, Cuba, <=50K
22, Private, 123456, HS-grad, 9, Married-AF-spouse, Armed-Forces, Unmarried, Black, Female, 99999, 0, 12, ?, >50K
70, ?, 1234567, 1st-4th, 2, Divorced, ?, Wife, Other, Female, 0, 1902, 8, India, <=50K
18, Never-worked, 251585, 10th, 6, Never-married, ?, Own-child, White, Male, 0, 0, 40, United-States, <=50K

"""
BREAST = "17,5,1,1,1,2,1,3,1,1,2\n18,8,10,10,8,7,?,9,7,1,4\n"
LETTER = "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\nA,1,1,3,2,1,8,2,2,2,8,2,8,1,6,2,7\nZ" + ",15" * 16 + "\n"
SPAM = ",".join(["0", "0.64", *["0"] * 49, "0.778", "0", "0", "102.666", "61", "278", "1"]) + "\n"
WINE = (
    '"fixed acidity";"volatile acidity";"citric acid";"residual sugar";"chlorides";"free sulfur dioxide";'
    '"total sulfur dioxide";"density";"pH";"sulphates";"alcohol";"quality"\n'
)
WHITE = WINE + "7;0.27;0.36;20.7;0.045;45;170;1.03898;3;0.45;9.53333333333333;6\n"
RED = WINE + "7.4;0.7;0;1.9;0.076;11;34.5;0.9978;3.51;0.56;9.4;5\n"
CREDIT_NAMES = [
    *["ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0", *[f"PAY_{i}" for i in range(2, 7)]],
    *[f"BILL_AMT{i}" for i in range(1, 7)],
    *[f"PAY_AMT{i}" for i in range(1, 7)],
    "default payment next month",
]
CREDIT_ROW = [7, 20000, 2, 0, 1, 24, 2, 2, -1, -1, -2, 8, 964511, -165580, 689, 0, 0, 0, 0, 1684259, 0, 0, 0, 0, 1]

RAW: dict[str, tuple[dict[str, bytes], list[list[float]]]] = {
    "adult": (
        {"adult.data": ADULT.encode()},
        [
            [41, 6, 77516, 13, 3, 9, 4, 1, 1, 2174, 0, 40],
            [22, 1, 123460, 9, 7, 14, 6, 5, 2, NAN, 0, 12],
            [70, NAN, 1234600, 2, 2, NAN, 1, 4, 2, 0, 1902, 8],
            [18, NAN, 251580, 6, 3, NAN, 2, 1, 1, 0, 0, 40],  # a tie goes to the even digit
        ],
    ),
    "breast": (
        {"breast-cancer-wisconsin.data": BREAST.encode()},
        [[5, 1, 1, 1, 2, 1, 3, 1, 1, 1], [8, 10, 10, 8, 7, NAN, 9, 7, 1, 2]],
    ),
    "letter": (
        {"letter-recognition.data": LETTER.encode()},
        [
            [20, 2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8],
            [1, 1, 1, 3, 2, 1, 8, 2, 2, 2, 8, 2, 8, 1, 6, 2, 7],
            [26, *[15] * 16],
        ],
    ),
    "spam": (
        {"spambase.data": SPAM.encode()},
        [[0, 0.64, *[0] * 49, 0.778, 0, 0, 102.67, 61, 278, 1]],
    ),
    "wine": (
        {"winequality-red.csv": RED.encode(), "winequality-white.csv": WHITE.encode()},
        [
            [7, 0.27, 0.36, 20.7, 0.045, 45, 170, 1.039, 3, 0.45, 9.5333, 6, 2],
            [7.4, 0.7, 0.001, 1.9, 0.076, 11, 34.5, 0.9978, 3.51, 0.56, 9.4, 5, 1],
        ],
    ),
}
CREDIT_FILE = "default of credit card clients.xls"


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, raw: Mapping[str, bytes], n_rows: int) -> None:
    """Let files of a test's own be the known original of a data set."""
    files = {file: hashlib.sha256(content).hexdigest() for file, content in raw.items()}
    monkeypatch.setitem(ORIGINS, name, replace(ORIGINS[name], files=files, n_rows=n_rows))


def put(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def breast_files(clump: int = 5, **changes: str) -> dict[str, str]:
    columns = ORIGINS["breast"].columns
    data = f"{','.join(columns)}\n{clump},1,1,1,2,1,3,1,1,1\n8,10,10,8,7,,9,7,1,2\n"
    return {"data.csv": data, "kinds.csv": datasets._kinds_text(columns)} | changes


def refuse_download(*args: Any, **kwargs: Any) -> dict[str, bytes]:
    raise AssertionError("the network was asked")


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Neither the user's folders nor the network: an empty cache."""
    monkeypatch.delenv("EVENLY_DATA", raising=False)
    cache = tmp_path / "cache"
    monkeypatch.setattr(datasets, "_cache", lambda: cache)
    monkeypatch.setattr(datasets, "_fetch", refuse_download)
    return cache


# --- the coding of the originals ------------------------------------------------------------------


@pytest.mark.parametrize("name", RAW)
def test_an_original_is_coded_as_in_the_paper(name, tmp_path, monkeypatch):
    raw, expected = RAW[name]
    pretend(monkeypatch, name, raw, len(expected))
    put(tmp_path / name, raw)
    data = load_dataset(name, tmp_path)
    assert data.columns == list(ORIGINS[name].columns)
    np.testing.assert_array_equal(data.values, expected)
    assert data.masks == {}


def test_the_spreadsheet_of_credit_is_read_as_it_is(tmp_path, monkeypatch):
    rows = [["", *[f"X{i}" for i in range(1, 24)], "Y"], [*CREDIT_NAMES], [float(cell) for cell in CREDIT_ROW]]
    sheet = SimpleNamespace(nrows=3, row_values=lambda i: rows[i])
    book = SimpleNamespace(sheet_by_index=lambda i: sheet)
    monkeypatch.setitem(sys.modules, "xlrd", SimpleNamespace(open_workbook=lambda file_contents: book))
    pretend(monkeypatch, "credit", {CREDIT_FILE: b"spreadsheet"}, 1)
    put(tmp_path / "credit", {CREDIT_FILE: b"spreadsheet"})
    np.testing.assert_array_equal(load_dataset("credit", tmp_path).values, [CREDIT_ROW[1:]])
    rows[1][2] = "GENDER"
    with pytest.raises(TableError, match="another header"):
        load_dataset("credit", tmp_path)


def test_a_real_spreadsheet_can_be_read(tmp_path):
    pytest.importorskip("xlrd")
    xlwt = pytest.importorskip("xlwt")
    book = xlwt.Workbook()
    sheet = book.add_sheet("Data")
    for i, row in enumerate([["", *range(24)], CREDIT_NAMES, CREDIT_ROW]):
        for j, cell in enumerate(row):
            sheet.write(i, j, cell)
    book.save(tmp_path / "credit.xls")
    values = originals._credit({CREDIT_FILE: (tmp_path / "credit.xls").read_bytes()})
    np.testing.assert_array_equal(values, [CREDIT_ROW[1:]])


def test_without_a_spreadsheet_reader_the_message_says_which(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlrd", None)
    pretend(monkeypatch, "credit", {CREDIT_FILE: b"spreadsheet"}, 1)
    put(tmp_path / "credit", {CREDIT_FILE: b"spreadsheet"})
    with pytest.raises(MissingExtraError, match=r"evenly\[tool\]"):
        load_dataset("credit", tmp_path)


def test_another_original_is_refused(tmp_path, monkeypatch):
    put(tmp_path / "breast", {"breast-cancer-wisconsin.data": BREAST})
    with pytest.raises(TableError, match=r"with the SHA-256 .* but expected 402c58"):
        load_dataset("breast", tmp_path)
    pretend(monkeypatch, "breast", {"breast-cancer-wisconsin.data": BREAST.encode()}, 699)
    with pytest.raises(TableError, match=r"got a table of \(2, 10\), but expected \(699, 10\)"):
        load_dataset("breast", tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("adult", "adult.data", ADULT.replace("State-gov", "Pirate"), "'workclass': got 'Pirate' in row 1 of adult"),
        ("adult", "adult.data", "1, 2\n", "2 cells in row 1 of adult.data, but expected 12"),
        ("letter", "letter-recognition.data", LETTER.replace("T,", "t,"), "'letter': got 't'"),
        ("spam", "spambase.data", "", "no rows in spambase.data"),
        ("spam", "spambase.data", SPAM.replace("61", "inf"), "infinite cells"),
        ("wine", "winequality-white.csv", WHITE.replace("pH", "acid"), "another header in winequality-white.csv"),
        ("wine", "winequality-white.csv", b"\xff\xfe\x00", "winequality-white.csv that is no text"),
    ],
)
def test_a_broken_original_is_named(name, file, content, message, tmp_path, monkeypatch):
    raw = RAW[name][0] | {file: content if isinstance(content, bytes) else content.encode()}
    pretend(monkeypatch, name, raw, 1)
    put(tmp_path / name, raw)
    with pytest.raises(TableError, match=message.replace("(", r"\(")):
        load_dataset(name, tmp_path)


# --- where it is looked for -----------------------------------------------------------------------


def test_the_folder_comes_first_then_the_environment_then_the_cache_then_the_network(tmp_path, monkeypatch, own_places):
    put(tmp_path / "one" / "breast", breast_files(1))
    put(tmp_path / "two" / "breast", breast_files(2))
    put(own_places / "breast", breast_files(3))
    monkeypatch.setenv("EVENLY_DATA", str(tmp_path / "two"))

    def found(folder: Path | None = None) -> tuple[float, str]:
        data = load_dataset("breast", folder)
        return data.values[0, 0], data.source

    assert found(tmp_path / "one") == (1.0, str(tmp_path / "one" / "breast"))
    assert found(str(tmp_path / "one"))[0] == 1.0
    assert found() == (2.0, str(tmp_path / "two" / "breast"))
    empty = tmp_path / "empty"
    empty.mkdir()
    assert found(empty)[0] == 2.0  # the folder has other data sets only
    monkeypatch.setenv("EVENLY_DATA", "")
    assert found(empty) == found() == (3.0, str(own_places / "breast"))


def test_a_download_is_kept_and_asked_for_once(monkeypatch, own_places):
    raw, expected = RAW["breast"]
    pretend(monkeypatch, "breast", raw, len(expected))
    asked = []

    def fetch(name: str, folder: Path) -> dict[str, bytes]:
        asked.append((name, folder))
        return dict(raw)

    monkeypatch.setattr(datasets, "_fetch", fetch)
    first, second = load_dataset("breast"), load_dataset("breast")
    assert asked == [("breast", own_places / "breast")]
    assert sorted(path.name for path in (own_places / "breast").iterdir()) == ["data.csv", "kinds.csv"]
    np.testing.assert_array_equal(first.values, expected)
    np.testing.assert_array_equal(second.values, expected)
    assert (first.kinds, first.classes) == (second.kinds, second.classes)
    assert first.source == str(own_places / "breast")


@pytest.mark.parametrize("name", ["adult", "spam", "wine"])
def test_the_cache_keeps_every_bit(name, monkeypatch):
    raw, expected = RAW[name]
    pretend(monkeypatch, name, raw, len(expected))
    monkeypatch.setattr(datasets, "_fetch", lambda name, folder: dict(raw))
    np.testing.assert_array_equal(load_dataset(name).values, np.array(expected))


@pytest.fixture
def fetch(monkeypatch) -> Any:
    """The real download, with a stand-in for pooch."""
    monkeypatch.undo()
    asked: list[tuple[str, str]] = []

    def retrieve(url: str, known_hash: str, fname: str, path: Path) -> str:
        asked.append((url, known_hash))
        if "spambase" in url:
            raise OSError("no route to host")
        (path / fname).write_bytes(b"content")
        return str(path / fname)

    monkeypatch.setitem(sys.modules, "pooch", SimpleNamespace(retrieve=retrieve))
    return SimpleNamespace(asked=asked)


def test_files_are_asked_for_with_their_checksums(fetch, tmp_path):
    assert datasets._fetch("credit", tmp_path) == {CREDIT_FILE: b"content"}
    ((url, known_hash),) = fetch.asked
    assert url == f"{originals.UCI}/00350/default%20of%20credit%20card%20clients.xls"
    assert known_hash == f"sha256:{ORIGINS['credit'].files[CREDIT_FILE]}"
    assert set(datasets._fetch("wine", tmp_path)) == {"winequality-white.csv", "winequality-red.csv"}


def test_without_a_network_the_message_says_what_to_do(fetch, tmp_path):
    with pytest.raises(TableError, match=r"spambase.data .*no route to host.*Hint: set EVENLY_DATA"):
        datasets._fetch("spam", tmp_path)


def test_every_checksum_is_one():
    for origin in ORIGINS.values():
        for sha256 in origin.files.values():
            assert len(bytes.fromhex(sha256)) == 32


# --- what is refused ------------------------------------------------------------------------------


def test_unknown_names_and_folders_are_refused(tmp_path, monkeypatch):
    with pytest.raises(TableError, match="'iris', but expected one of adult, breast, credit, letter, spam, wine"):
        load_dataset("iris")
    with pytest.raises(TableError, match="there is none"):
        load_dataset("breast", tmp_path / "nowhere")
    monkeypatch.setenv("EVENLY_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(TableError, match=r"nowhere, but there is none.*breast/data.csv"):
        load_dataset("breast")


def test_an_incomplete_folder_is_refused(tmp_path):
    put(tmp_path / "breast", {"data.csv": breast_files()["data.csv"]})
    with pytest.raises(TableError, match=r"without all its files, but expected data.csv and kinds.csv, or breast-"):
        load_dataset("breast", tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data.csv": "a,b\n1,2\n"}, "'clump_thickness': got another header"),
        ({"data.csv": ""}, "another header"),
        ({"data.csv": breast_files()["data.csv"].replace("\n8,", "\nx,")}, "'x' in row 2 of data.csv"),
        ({"data.csv": breast_files()["data.csv"].replace("\n8,", "\n")}, "9 cells in row 2 of data.csv"),
        ({"data.csv": breast_files()["data.csv"].replace("9,7,1,2", "9,7,1,4")}, "'class': got the code 4"),
        ({"data.csv": breast_files()["data.csv"].replace("9,7,1,2", "9,7,1,1.5")}, "expected 2 classes, 1 to 2"),
        ({"kinds.csv": "column,kind\n"}, "other columns"),
        ({"kinds.csv": ""}, "other columns"),
        (
            {"kinds.csv": breast_files()["kinds.csv"].replace("class,binary,2", "class,binary,")},
            "'class': got the kind",
        ),
        (
            {"kinds.csv": breast_files()["kinds.csv"].replace("mitoses,count", "mitoses,many")},
            "'mitoses': got the kind",
        ),
    ],
)
def test_wrong_contents_are_named(changes, message, tmp_path):
    put(tmp_path / "breast", breast_files() | changes)
    with pytest.raises(TableError, match=message):
        load_dataset("breast", tmp_path)


@pytest.mark.parametrize("fault", ["shape", "type", "absent", "no archive", "one array", "empty"])
def test_wrong_masks_are_named(fault, tmp_path):
    folder = put(tmp_path / "breast", breast_files())
    mask = np.zeros((5, 2, 9 if fault == "shape" else 10), float if fault == "type" else bool)
    np.savez(folder / "masks.npz", **{f"missing_{p}": mask for p in PERCENTS[: 2 if fault == "absent" else 3]})
    if fault in ("no archive", "empty"):
        (folder / "masks.npz").write_bytes(b"" if fault == "empty" else b"no archive")
    if fault == "one array":
        with (folder / "masks.npz").open("wb") as file:
            np.save(file, mask)
    with pytest.raises(TableError, match=r"masks\.npz.*expected"):
        load_dataset("breast", tmp_path)


# --- what is hidden -------------------------------------------------------------------------------


def test_given_masks_are_used_first_and_never_hide_a_missing_cell(tmp_path):
    folder = put(tmp_path / "breast", breast_files())
    np.savez(folder / "masks.npz", **{f"missing_{percent}": np.ones((5, 2, 10), bool) for percent in PERCENTS})
    data = load_dataset("breast", tmp_path)
    given = hidden_mask(data, 20, run=5)
    assert (given == data.known).all()
    given[:] = False
    assert data.masks[20][4].any()  # it was a copy
    assert hidden_mask(data, 20, run=6).sum() < data.known.sum()  # beyond them, generated


@pytest.mark.parametrize("percent", PERCENTS)
def test_a_generated_mask_hides_the_share_of_each_columns_known_cells(percent):
    data = synthetic()
    hidden = hidden_mask(data, percent, run=1)
    assert not (hidden & ~data.known).any()
    np.testing.assert_array_equal(hidden.sum(axis=0), np.round(data.known.sum(axis=0) * percent / 100))


def test_a_generated_mask_depends_on_seed_name_percent_and_run_only():
    data = synthetic()
    one = hidden_mask(data, 20, run=1, seed=3)
    np.testing.assert_array_equal(one, hidden_mask(replace(data, values=data.values + 1.0), 20, run=1, seed=3))
    for other in (
        hidden_mask(data, 20, run=1),
        hidden_mask(data, 20, run=2, seed=3),
        hidden_mask(data, 21, run=1, seed=3),
        hidden_mask(replace(data, name="another"), 20, run=1, seed=3),
    ):
        assert (one != other).any()


@pytest.mark.parametrize(("percent", "run"), [(0, 1), (100, 1), (20, 0)])
def test_impossible_masks_are_refused(percent, run):
    with pytest.raises(TableError, match="expected"):
        hidden_mask(synthetic(), percent, run)


# --- the schema -----------------------------------------------------------------------------------


def fit(data: DataSet, hidden: Any = None) -> LipschitzScaler:
    pytest.importorskip("polars")
    return LipschitzScaler(schema=schema(data, hidden=hidden), random_state=0).fit(as_table(data, hidden=hidden))


def test_the_synthetic_table_is_the_same_for_a_seed_and_can_be_fitted():
    data, again, other = synthetic(), synthetic(), synthetic(seed=1)
    np.testing.assert_array_equal(data.values, again.values)
    assert (data.values[:, 0] != other.values[:, 0]).all()
    assert data.values.shape == (700, 10)
    assert not data.known.all()
    fitted = fit(data, hidden_mask(data, 50, 1)).schema_
    assert {column.name: column.kind for column in fitted.columns} == data.kinds
    assert fitted["group"].classes == [1, 2, 3, 4]
    assert synthetic(n_rows=3).values.shape == (3, 10)
    with pytest.raises(TableError, match="n_rows = 0"):
        synthetic(n_rows=0)


def test_columns_of_the_synthetic_table_tell_of_each_other():
    """Each column but the noise: a linear model on the others explains more than a quarter of it."""
    values = synthetic().values
    values = values[~np.isnan(values).any(axis=1)]
    logs = np.column_stack([np.log(c) if (c > 0).all() else c for c in values.T])
    for j, y in enumerate(logs.T):
        design = np.column_stack([np.ones(len(logs)), np.delete(logs, j, axis=1), np.delete(logs, j, axis=1) ** 2])
        residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        assert residual.var() < 0.75 * y.var()


def test_declared_classes_need_not_occur(tmp_path):
    values = np.array([CREDIT_ROW[1:], [*CREDIT_ROW[1:2], 1, *CREDIT_ROW[3:]]], float)
    columns = ORIGINS["credit"].columns
    put(
        tmp_path / "credit",
        {"data.csv": datasets._data_text(columns, values), "kinds.csv": datasets._kinds_text(columns)},
    )
    data = load_dataset("credit", tmp_path)
    declared = schema(data)
    assert declared["sex"].classes == [0, 1, 2]
    assert declared["pay_6"].classes == list(range(-2, 9))
    assert declared["default"].classes == [0, 1]
    assert data.classes["education"] == 7


def test_the_shift_comes_from_visible_cells_only():
    data = synthetic()
    values = data.values.copy()
    values[0, 3], values[1, 3] = 0.0, 1e-5
    data = replace(data, values=values)
    hidden = np.zeros(values.shape, bool)
    assert schema(data)["amount_1"].shift == pytest.approx(values[:, 3].max() * 1e-6, rel=1.0)
    hidden[1, 3] = True
    visible = np.delete(values[:, 3], 1)
    assert schema(data, hidden=hidden)["amount_1"].shift == visible[visible > 0].min()
    assert schema(data, zeros="clip")["amount_1"].clip == 1e-30


# --- the real ones --------------------------------------------------------------------------------


@pytest.fixture
def real(data_directory: Path, name: str) -> DataSet:
    if not (data_directory / name / "data.csv").is_file():
        pytest.skip(f"no {name}/data.csv in {data_directory}")
    return load_dataset(name, data_directory)


@pytest.mark.parametrize("name", NAMES)
def test_a_real_data_set_is_as_declared(real, name):
    origin = ORIGINS[name]
    assert real.values.shape == (origin.n_rows, len(origin.columns))
    assert (real.kinds, real.classes) == originals.declared_kinds(origin.columns)
    missing = (~real.known).sum(axis=0)
    expected = {"adult": {"workclass": 1843, "occupation": 1843, "capital_gain": 159}, "breast": {"bare_nuclei": 16}}
    found = {column: int(n) for column, n in zip(real.columns, missing, strict=True) if n}
    assert found == expected.get(name, {})
    assert real.published_ranges == ({"capital_gain": (0.0, 99999.0)} if name == "adult" else {})
    for percent in real.masks:
        for run in range(1, len(real.masks[percent]) + 1):
            hidden = hidden_mask(real, percent, run)
            assert not (hidden & ~real.known).any()
            assert hidden.sum() == pytest.approx(percent / 100 * real.known.sum(), rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_a_real_data_set_is_fitted_with_every_kind_as_declared(real, name):
    hidden = hidden_mask(real, 20, 1)
    fitted = fit(real, hidden).schema_
    assert {column.name: column.kind for column in fitted.columns} == real.kinds
    for column in fitted.columns:
        if column.name in real.classes:
            assert len(column.classes or []) == real.classes[column.name]


@pytest.mark.parametrize("name", ["adult", "spam", "wine"])
def test_five_digits_are_all_that_the_real_ones_have(real, name):
    np.testing.assert_array_equal(originals._five_digits(real.values), real.values)


@pytest.mark.parametrize("name", NAMES)
def test_the_cache_would_keep_a_real_one_as_it_is(real, name, tmp_path):
    columns = ORIGINS[name].columns
    texts = {"data.csv": datasets._data_text(columns, real.values), "kinds.csv": datasets._kinds_text(columns)}
    put(tmp_path / name, texts)
    again = load_dataset(name, tmp_path)
    np.testing.assert_array_equal(again.values, real.values)
    assert (again.kinds, again.classes) == (real.kinds, real.classes)
