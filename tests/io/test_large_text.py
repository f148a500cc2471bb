"""Text that is read in parts: the same table, warnings and errors as at once, whatever the parts are."""

from __future__ import annotations

import gzip
import random
import warnings
from pathlib import Path

import polars as pl
import pytest
from commands import run, succeeded
from polars.testing import assert_frame_equal
from sizes import examples

from evenly import EvenlyWarning, TableError, read_table, write_table
from evenly.io import as_parquet, delimited, is_large_text, large_text

CELLS = ("1", "2.5", "-7", "", "NA", "nan", "inf", "1e400", "02139", "9007199254740993", "x", '"a,""b"', '"two\nlines"')
CELLS = (*CELLS, "1,5", "1.234,5", " 3 ", "é", '5" pipe', "99999999999999999999", "0.1", "true")


def read_in_parts(path: Path) -> pl.DataFrame:
    with as_parquet(path) as made:
        return pl.read_parquet(made)


def outcome(read, path: Path) -> tuple[object, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EvenlyWarning)
        try:
            found: object = read(path)
        except TableError as error:
            found = str(error)
    return found, sorted(str(one.message) for one in caught)


@pytest.mark.sized
@pytest.mark.parametrize("piece", [64, 1 << 10])
def test_parts_give_the_table_and_the_words_of_the_whole(piece, tmp_path, monkeypatch):
    monkeypatch.setattr(large_text, "PIECE", piece)
    monkeypatch.setattr(delimited, "HEAD", 50)
    rng, outcomes = random.Random(piece), []
    for case in range(examples(250)):
        delimiter, end = rng.choice(",;"), rng.choice(("\n", "\n", "\r\n"))
        width = rng.choice((1, 2, 3))
        kinds = [rng.sample(CELLS, rng.choice((1, 2, 4))) for _ in range(width)]
        lines = [delimiter.join("abc"[:width])]
        for _ in range(rng.choice((1, 5, 80))):
            lines.append(delimiter.join(rng.choice(kind) for kind in kinds))
            if rng.random() < 0.01:
                lines.append(rng.choice(("", "x" + delimiter * 5, '"open', "  ")))
        text = end.join(lines) + rng.choice(("", end, end * 2, "\x1a"))
        encoding = rng.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"))
        path = tmp_path / "a.csv"
        path.write_bytes(text.encode(encoding))
        whole, parts = outcome(read_table, path), outcome(read_in_parts, path)
        assert parts[1] == whole[1], (case, text)
        if isinstance(whole[0], str):
            assert parts[0] == whole[0], (case, text)
        else:
            assert isinstance(parts[0], pl.DataFrame), (case, parts[0], text)
            assert_frame_equal(parts[0], whole[0])
        outcomes.append(type(whole[0]).__name__)
    assert 0 < outcomes.count("str") < len(outcomes) / 2


@pytest.mark.parametrize("name", ["a.tsv", "a.csv.gz", "a.csv.zst"])
def test_other_delimiters_and_compressed_files_are_read_in_parts(name, tmp_path, monkeypatch):
    monkeypatch.setattr(large_text, "PIECE", 100)
    monkeypatch.setattr(delimited, "HEAD", 50)
    table = pl.DataFrame({"n": range(500), "t": [f"a\t{i}" for i in range(500)]})
    write_table(table, tmp_path / name)
    assert_frame_equal(read_in_parts(tmp_path / name), table)


def test_a_file_that_expands_out_of_proportion_is_refused_in_parts_too(tmp_path, monkeypatch):
    monkeypatch.setattr("evenly.io.formats.FREE", 1 << 16)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,1\n" * (1 << 18)))
    with pytest.raises(TableError, match="expand to"):
        read_in_parts(tmp_path / "a.csv.gz")


def test_only_large_files_of_text_are_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(large_text, "LARGE", 1000)
    (tmp_path / "small.csv").write_text("a,b\n1,2\n")
    (tmp_path / "large.csv").write_text("a,b\n" + "1,2\n" * 500)
    write_table(pl.DataFrame({"a": range(5000)}), tmp_path / "a.parquet")
    (tmp_path / "parquet.csv").write_bytes((tmp_path / "a.parquet").read_bytes())
    (tmp_path / "large.dat").write_text("a,b\n" + "1,2\n" * 500)
    found = {path.name for path in tmp_path.iterdir() if is_large_text(path)}
    assert found == {"large.csv"}
    assert is_large_text(tmp_path / "large.dat", "csv")


def write_survey(path: Path) -> None:
    rng = random.Random(0)
    rows = [
        f"{rng.gauss(3, 2):.4f},{rng.randrange(6)},{rng.choice(['red', 'blue', 'a, b'])!r}\n".replace("'", '"')
        for _ in range(400)
    ]
    path.write_text("x,n,colour\n" + "".join(rows) + ',3,"red"\n')


def test_commands_on_large_text_give_what_they_give_in_memory(tmp_path, monkeypatch):
    write_survey(tmp_path / "a.csv")
    commands = {
        "scaled": ("scale", "a.csv", "--method", "lip-gamma"),
        "full": ("impute", "a.csv", "--model", "marginal", "--share", "0"),
    }
    for name, command in commands.items():
        succeeded(run(*command, "-o", f"{name}.csv", folder=tmp_path))
    monkeypatch.setattr(large_text, "LARGE", 1000)
    monkeypatch.setattr(large_text, "PIECE", 1000)
    monkeypatch.setattr(delimited, "HEAD", 1000)
    for name, command in commands.items():
        for form in ("csv", "jsonl.gz", "xlsx"):  # the last one is written as a whole
            succeeded(run(*command, "-o", f"{name}_parts.{form}", folder=tmp_path))
            parts, whole = read_table(tmp_path / f"{name}_parts.{form}"), read_table(tmp_path / f"{name}.csv")
            assert_frame_equal(parts, whole, check_exact=False, rel_tol=1e-6, check_dtypes=False)
    succeeded(run(*commands["full"], "-o", "-", folder=tmp_path))
