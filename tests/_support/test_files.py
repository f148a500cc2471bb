"""Files are written whole or not at all, and read only if they are what they say; so is the embedded table."""

from __future__ import annotations

import os
import sys

import numpy as np
import polars as pl
import pytest

from evenly import LipschitzScaler, TableError, load_heart
from evenly._support.files import read_tensors, write_tensors, write_text


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
