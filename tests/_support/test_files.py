"""Files are written whole or not at all, and read only if they are what they say; so is the embedded table."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import polars as pl
import pytest

from evenly import LipschitzScaler, TableError, load_heart
from evenly._support.files import read_json, read_tensors, write_json, write_tensors, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_written_file_is_readable_as_any_other(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("x")
    write_text(tmp_path / "whole", "x")
    assert (tmp_path / "whole").stat().st_mode == plain.stat().st_mode


def test_the_embedded_table_has_its_missing_cells():
    heart = load_heart()
    assert heart.shape == (303, 14)
    assert heart.isna().sum().sum() == 6
    assert heart["vessels"].isna().sum() == 4
    assert heart["thal"].isna().sum() == 2
    assert set(heart["disease"]) == {"no", "yes"}


def test_without_pandas_the_embedded_table_is_a_polars_frame_and_without_both_an_array(monkeypatch):
    whole = load_heart()
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = load_heart()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == list(whole.columns)
    assert frame.shape == whole.shape
    assert frame.null_count().sum_horizontal().item() == 6
    monkeypatch.setitem(sys.modules, "polars", None)
    array = load_heart()
    assert (array.shape, array.dtype) == (whole.shape, object)
    assert sum(cell is None for row in array for cell in row) == 6


@pytest.mark.parametrize(
    "content", [b"", b'{"saved": "LipschitzScaler", ', b"\xff\xfe\x00", b"[1]", b'{"saved": "Imputer"}']
)
def test_a_file_that_is_no_saved_scaler_is_refused_by_name(content, tmp_path):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(TableError, match=r"a\.json, but expected a file that LipschitzScaler\.save wrote"):
        LipschitzScaler.load(tmp_path / "a.json")


def test_arrays_and_their_text_come_back_and_other_files_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    tensors = {"b": np.arange(6.0, dtype=np.float32).reshape(2, 3), "a": np.array([1, 2])}
    write_tensors(path, {"saved": "Imputer", "n": np.int64(3), "x": np.float32(0.5)}, tensors)
    content, found = read_tensors(path, "Imputer")
    assert content == {"saved": "Imputer", "n": 3, "x": 0.5}
    assert sorted(found) == ["a", "b"]
    for name, array in tensors.items():
        np.testing.assert_array_equal(found[name], array)
    with pytest.raises(TypeError, match="object cannot be saved"):
        write_tensors(path, {"saved": "Imputer", "what": object()}, tensors)
    assert read_tensors(path, "Imputer")[0] == content  # the old file stays
    for wrong, name in ((path, "LipschitzScaler"), (tmp_path / "b", "Imputer")):
        (tmp_path / "b").write_bytes(b"no tensors")
        with pytest.raises(TableError, match=rf"expected a file that {name}\.save wrote"):
            read_tensors(wrong, name)


# --- saved objects that were edited ---

SAVED = {"saved": "Thing", "n": 3, "x": [0.5, float("nan")], "by": {"a": "Köln", "b": None}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.5", "0.50000000000000011"),
        ('"n": 3', '"n": 3.0'),
        ('"a"', '"A"'),
        ("null", "0"),
        ("NaN", "Infinity"),
        ('"checksum": "', '"checksum": "0'),
        ('"n": 3,', '"n": 3, "more": 1,'),
        ('"n": 3,', '"n": 3, "n": 3,'),
        ("null", 60_000 * "[" + 60_000 * "]"),
        ('"n": 3', '"n": ' + 5_000 * "9"),
    ],
)
def test_an_edited_object_is_refused_in_one_sentence(old, new, tmp_path):
    path = tmp_path / "thing.json"
    write_json(path, SAVED)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(TableError, match=r"thing\.json") as caught:
        read_json(path, "Thing")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_spaces_and_the_order_of_the_first_keys_are_no_edit(tmp_path):
    path = tmp_path / "thing.json"
    write_json(path, SAVED)
    plain = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(dict(reversed(plain.items()))))
    assert repr(sorted(read_json(path, "Thing").items())) == repr(sorted(SAVED.items()))


@pytest.mark.parametrize("form", [None, 1, 3, "2", [2]])
def test_another_format_is_named(form, tmp_path):
    path = tmp_path / "thing.json"
    write_json(path, SAVED)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"format": form}))
    with pytest.raises(TableError, match=r"saved in format .*reads format 2\. Hint: fit and save again"):
        read_json(path, "Thing")


@pytest.mark.parametrize(
    "edit",
    [
        lambda one: {"a": one["a"] + 1, "b": one["b"]},
        lambda one: {"a": one["b"], "b": one["a"]},
        lambda one: {"a": one["a"].astype(np.float32), "b": one["b"]},
        lambda one: {"a": one["a"].reshape(3, 1), "b": one["b"]},
        lambda one: {"a": one["a"]},
        lambda one: one | {"c": one["a"]},
    ],
    ids=["other numbers", "swapped", "another type", "another shape", "one less", "one more"],
)
def test_edited_arrays_are_refused(edit, tmp_path):
    from safetensors import safe_open
    from safetensors.numpy import save_file

    path, tensors = tmp_path / "a", {"a": np.arange(3.0), "b": np.arange(3.0) + 7.0}
    write_tensors(path, SAVED, tensors)
    with safe_open(path, framework="np") as file:
        text = file.metadata()
    save_file(edit(tensors), path, text)
    with pytest.raises(TableError, match=r"which was edited or damaged since Thing\.save wrote it"):
        read_tensors(path, "Thing")


def test_a_part_of_an_array_is_saved_as_it_is(tmp_path):
    table = np.arange(12.0).reshape(3, 4)
    tensors = {"some": table[:, :2], "turned": table.T, "one": np.array(3.0)}
    write_tensors(tmp_path / "a", SAVED, tensors)
    for name, one in read_tensors(tmp_path / "a", "Thing")[1].items():
        np.testing.assert_array_equal(one, tensors[name])


def test_arrays_of_a_type_that_numpy_does_not_have_are_refused(tmp_path):
    header = b'{"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}'
    (tmp_path / "a").write_bytes(len(header).to_bytes(8, "little") + header + b"0")
    with pytest.raises(TableError, match=r"expected a file that Thing\.save wrote"):
        read_tensors(tmp_path / "a", "Thing")
