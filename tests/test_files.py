"""Files are written whole or not at all; the embedded table is what it says."""

from __future__ import annotations

import os

import pytest

from evenly import load_heart
from evenly.files import write_text


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
