"""Parquet files read in pieces: every row comes once and in its place, however the rows are cut into files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenly.io import parquet
from evenly.io.parquet import Parquet, open_parquet

N = 1_000
TABLE = pl.DataFrame({"row": np.arange(N), "half": np.arange(N) / 2.0, "text": [f"row {i}" for i in range(N)]})


@pytest.fixture(params=[(1, N, 64), (3, 70, 64), (3, 70, 35), (4, 250, 1_000)], ids=str)
def source(request, tmp_path: Path, monkeypatch) -> Parquet:
    """The same rows in some files of row groups of some size, read in pieces of at most so many rows."""
    n_files, group, piece = request.param
    monkeypatch.setattr(parquet, "PIECE", piece)
    monkeypatch.setattr(parquet, "BATCH", 150)
    monkeypatch.setattr(parquet, "SAMPLE", 90)
    size = -(-N // n_files)
    for k in range(n_files):
        TABLE[k * size : (k + 1) * size].write_parquet(tmp_path / f"{k}.parquet", row_group_size=group)
    return open_parquet(tmp_path)


def test_pieces_hold_every_row_in_order_and_know_their_place(source):
    pieces = list(source.pieces(source.names))
    assert source.n_rows == N
    assert pl.concat([piece.frame for piece in pieces]).equals(TABLE)
    for piece in pieces:
        assert 0 < len(piece.frame) <= parquet.PIECE
        assert piece.frame["row"][0] == piece.first


def test_shuffled_pieces_hold_every_row_once_and_know_their_place(source):
    pieces = list(source.shuffled(["row"], np.random.default_rng(0)))
    assert sorted(row for piece in pieces for row in piece.frame["row"]) == list(range(N))
    assert all(piece.frame["row"][0] == piece.first for piece in pieces)


def test_columns_come_in_the_order_they_are_asked_for(source):
    assert next(source.pieces(["text", "row"])).frame.columns == ["text", "row"]


def test_batches_hold_every_row_in_order(source):
    batches = list(source.batches(source.names))
    assert pl.concat(batches).equals(TABLE)
    assert len(batches) > 1


def test_a_sample_is_rows_of_the_table_in_order_the_same_for_the_same_seed(source):
    sample = source.sample(3)
    assert len(sample) == 90
    assert sample.equals(TABLE[sample["row"].to_list()])
    assert sample["row"].is_sorted()
    assert sample.equals(source.sample(3))
    assert not sample.equals(source.sample(4))
