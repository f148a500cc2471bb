"""Tables are read from and written to every format, completely; an error says in a sentence what is wrong."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import threading
import time
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from commands import printed, small_disk, streams
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sizes import examples

from evenly import EvenlyWarning, TableError, load_heart
from evenly.io import check_writable, read_table, write_table
from evenly.io.delimited import infer_types, read_delimited, sniff
from evenly.io.formats import FORMATS, form_of, parse_form

LIMITED = ("ods", "dta", "sav")
"""Formats that are only read, or cannot hold every name and number; they have tests of their own."""
WRITTEN = [form for form in FORMATS if form != "ods"]
NAMES = [
    *(f"a{extension}" for form in FORMATS.values() for extension in form.extensions if form.name not in LIMITED),
    *(f"a.{form.name}.{how}" for form in FORMATS.values() if form.text for how in ("gz", "bz2", "xz", "zst")),
]

HOSTILE = pl.DataFrame(
    {
        "zip": ["02139", "10115", None, "00000"],
        "x": [0.1, None, 1e300, -1 / 3],
        "n": [1, None, -(2**63), 2**63 - 1],
        "huge": ["123456789012345678901234567890", "1", None, "2"],
        "text, with comma": ['say "hi"', "a,b;c|d\te", None, " 😀 <b>&amp;</b> "],
        "lines": ["one\ntwo", "a\r\nb", "ö", None],
        "day": ["2024-01-31", "2024-02-01", None, "2024-02-02"],
        "mixed": ["1", "two", "3.0", None],
        "nothing": pl.Series([None] * 4, dtype=pl.String),
    }
)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_table_back(name, tmp_path):
    write_table(HOSTILE, tmp_path / name)
    assert_frame_equal(read_table(tmp_path / name), HOSTILE)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_table_is_written_as_the_same_bytes(name, tmp_path):
    for folder in ("one", "two"):
        write_table(HOSTILE, tmp_path / folder / name)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("how", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)], ids=["gz", "bz2", "xz"]
)
def test_files_that_others_compressed_are_read(how, compress, tmp_path):
    path = tmp_path / f"a.csv.{how}"
    path.write_bytes(compress(b"a,b\n1,x\n"))
    assert read_table(path).rows() == [(1, "x")]
    path.rename(tmp_path / "a.csv")  # the bytes count more than the name
    assert read_table(tmp_path / "a.csv").rows() == [(1, "x")]


def test_arrow_files_of_another_library_are_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [1, None], "b": ["x", "y"]})
    with pa.OSFile(str(tmp_path / "a.zst.csv"), "wb") as file, pa.CompressedOutputStream(file, "zstd") as out:
        out.write(b"a,b\r\n1,x\r\n,y\r\n")
    with pa.OSFile(str(tmp_path / "a.feather"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write(table)
    with pa.OSFile(str(tmp_path / "a.arrows"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write(table)
    for path in tmp_path.iterdir():
        assert read_table(path).rows() == [(1, "x"), (None, "y")]


finite = st.floats(allow_nan=False) | st.none()


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(finite, min_size=1, max_size=20).filter(lambda cells: any(c is not None for c in cells)))
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_number_is_read_back_to_the_last_bit(cells, name, tmp_path):
    table = pl.DataFrame({"x": pl.Series(cells, dtype=pl.Float64), "y": ["t"] * len(cells)})
    write_table(table, tmp_path / name)
    back = read_table(tmp_path / name)["x"]
    assert back.is_null().to_list() == [cell is None for cell in cells]
    if back.dtype != pl.String:  # infinities alone are texts
        want = np.array([np.nan if c is None else c for c in cells])
        np.testing.assert_array_equal(back.cast(pl.Float64).fill_null(float("nan")).to_numpy(), want)


printable = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from('",;\t|\n'), min_size=1).filter(
    lambda text: any(c.isalpha() for c in text) and text.lower().strip() not in ("nan", "inf", "infinity")
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(st.none() | printable, min_size=1, max_size=8), name=st.sampled_from(["a.csv", "a.tsv"]))
def test_a_text_is_read_back_letter_by_letter(cells, name, tmp_path):
    table = pl.DataFrame({"a": pl.Series(cells, dtype=pl.String), "b": ["t"] * len(cells)})
    write_table(table, tmp_path / name)
    assert_frame_equal(read_table(tmp_path / name), table)


def test_one_column_with_missing_cells_is_read_back(tmp_path):
    for cells in ([1, None, 3, None], [None, 2], [1]):
        table = pl.DataFrame({"a": pl.Series(cells, dtype=pl.Int64)})
        write_table(table, tmp_path / "a.csv")
        assert_frame_equal(read_table(tmp_path / "a.csv"), table)


def test_the_embedded_table_keeps_its_types(tmp_path):
    heart = pl.DataFrame(load_heart())
    write_table(load_heart(), tmp_path / "heart.csv")  # a pandas frame
    back = read_table(tmp_path / "heart.csv")
    assert back.columns == heart.columns
    for name in heart.columns:
        assert (back[name].cast(heart[name].dtype) == heart[name]).all()


# --- delimited text --------------------------------------------------------------------------------------------


def read(text: str | bytes, tmp_path: Path, name: str = "a.csv") -> pl.DataFrame:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(tmp_path / name)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter, tmp_path):
    rows = [["name", "x", "note"], ["A", "1", "some, text"], ["B", "2", "a;b|c\td"]]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    assert read(text.getvalue(), tmp_path).rows() == [("A", 1, "some, text"), ("B", 2, "a;b|c\td")]


def test_one_column_needs_no_delimiter(tmp_path):
    assert read("height\n1.5\n\n2\n", tmp_path).rows() == [(1.5,), (None,), (2.0,)]
    assert read('"Income, USD"\n1\n2\n', tmp_path).rows() == [(1,), (2,)]
    assert sniff(b"height") == ","


def test_a_line_that_names_the_delimiter_for_excel_is_understood(tmp_path):
    assert read("sep=|\na|b,c\n1|2\n", tmp_path).rows() == [(1, 2)]


def test_decimal_commas_are_read_as_numbers_and_said(tmp_path):
    text = "Größe;Betrag;Datum;Wert;n;Liste\n1,75;1.234.567,50;31.12.2024;1,5;1;1,2,3\n1,8;-2,00;1.1.2025;k. A.;2;4\n"
    with pytest.warns(EvenlyWarning, match=r"decimal comma in 'Größe', 'Betrag', 'Wert' .* written with a point"):
        table = read(text, tmp_path)
    assert table["Größe"].to_list() == [1.75, 1.8]
    assert table["Betrag"].to_list() == [1234567.5, -2.0]
    assert table["Wert"].to_list() == [
        "1.5",
        "k. A.",
    ]  # texts of numbers: the schema reads them, once the marker is declared
    assert table["Datum"].to_list() == ["31.12.2024", "1.1.2025"]
    assert table["n"].to_list() == [1, 2]
    assert table["Liste"].to_list() == ["1,2,3", "4"]


def test_a_file_delimited_by_something_else_than_its_name_says_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"one column called 'a,b'.* delimited by ',' rather than '\\t'"):
        read("a,b\n1,2\n", tmp_path, "a.tsv")


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("a,b\n1,2\n3\n4,5\n", "1 cell in line 3"),
        ("a,b\n1,2\n3,4,5\n4,5\n", "3 cells in line 3"),
        ('a,b\n"x\ny",2\n\n3\n', "1 cell in line 5"),
        ("a,b\r\n1,2\r\n3\r\n", "1 cell in line 3"),
        ("sep=,\na,b\n1\n", "1 cell in line 3"),
        ("a,b\n1\n3,4,", "1 cell in line 2"),
        ("a,b\n1,2\n\n3,4,", "3 cells in line 4"),
        ('a,b\n1,2\n3,"x\n4,5\n', "a quote in line 3"),
        ('a,"b\n1,2\n', "a quote in the header"),
        ("a,b,a\n1,2,3\n", "Column 'a': got the name 2 times"),
        ("a, a\n1,2\n", "Column 'a': got the name 2 times"),
        ("a,b\n", "a header of 2 columns and 0 rows"),
        ("a\n\n\n", "a header of 1 columns and 0 rows"),
        ("", "without any content"),
        ("\n\n \n", "without any content"),
        ("a,b\n1,2\n3,\0\n", "a zero byte in line 3"),
        (b"a,b\n1,\x81\n", "byte 0x81 in line 2"),
        (b"\xff\xfea\0,\0b\0\n\0\x01", "is damaged"),
        (np.random.default_rng(0).bytes(1000).replace(b"\0", b""), "a.csv with byte"),
        (b"PK\x03\x04 and so on", "a zip archive"),
        ("<!DOCTYPE html><p>Not found", "a web page"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(text, got, tmp_path):
    with pytest.raises(TableError, match=r".") as caught:
        read(text, tmp_path)
    assert got in str(caught.value)
    assert "\n" not in str(caught.value)


def test_stray_quotes_within_cells_are_just_quotes(tmp_path):
    assert read('a,b\n5" pipe,2\n3" x 4",5\n7,8\n', tmp_path)["a"].to_list() == ['5" pipe', '3" x 4"', "7"]


def test_rows_are_those_that_pythons_own_reader_finds():
    """Wherever Polars or the careful way reads a text, in two columns of letters, Python's reader agrees."""
    rng = random.Random(0)
    outcomes = []
    for _ in range(3000):
        pieces = ['"a"', '""', '"a,\n""a"', "a", "é", " ", '"', *[","] * 5, *["\n"] * 3]
        text = "a,b\n" + "".join(rng.choices(pieces, k=rng.randint(1, 16)))
        rows = [
            cells for cells in csv.reader(io.StringIO(text, newline="")) if "".join(cells).strip() or len(cells) > 1
        ]
        try:
            found = read_delimited(text.encode(), "a.csv", ",").rows()
        except TableError as error:
            never_closed, no_rows = "never closed" in str(error), len(rows) == 1
            assert never_closed or no_rows or any(len(cells) != 2 for cells in rows), text
            outcomes.append("refused")
            continue
        assert found == [tuple(cell or None for cell in cells) for cells in rows[1:]], text
        outcomes.append("read")
    assert min(outcomes.count("read"), outcomes.count("refused")) > 200


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_is_read(end, tmp_path):
    assert read(end.join(["a,b", "1,x", "2,y", "", ""]), tmp_path).rows() == [(1, "x"), (2, "y")]


def test_blank_lines_between_rows_are_skipped(tmp_path):
    assert read("\na,b\n\n1,x\n  \n2,y", tmp_path).rows() == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_of_every_width_is_read(encoding, tmp_path):
    assert read("größe,b\n1,😀\n".encode(encoding), tmp_path).to_dict(as_series=False) == {"größe": [1], "b": ["😀"]}


def test_text_that_is_not_unicode_is_read_as_windows_text_and_said(tmp_path):
    with pytest.warns(EvenlyWarning, match=r"byte 0xf6 in line 2 is not UTF-8; .* Windows-1252"):
        assert read("a,b\n1,Köln €\n".encode("cp1252"), tmp_path)["b"].to_list() == ["Köln €"]


def test_columns_without_a_name_get_one_and_it_is_said(tmp_path):
    with pytest.warns(EvenlyWarning, match=r"2 of 4 columns have no name; called 'column_1', 'column_3_'"):
        assert read(",a,,column_3\n1,2,3,4\n", tmp_path).columns == ["column_1", "a", "column_3_", "column_3"]


def test_a_first_line_of_numbers_is_mentioned(tmp_path):
    with pytest.warns(EvenlyWarning, match="the first line holds numbers only"):
        read("5.1,3.5\n4.9,3.0\n", tmp_path)


def test_a_type_is_decided_by_the_whole_column(tmp_path):
    rows = ["1,1,1,0"] * 5000
    table = read("\n".join(["a,b,c,d", *rows, "x,2.5,,007"]), tmp_path)
    assert table.dtypes == [pl.String, pl.Float64, pl.Int64, pl.String]


@pytest.mark.parametrize(
    ("cells", "want"),
    [
        (["1", "2"], [1, 2]),
        (["+1", " 2 ", ""], [1, 2, None]),
        (["1.50", ".5", "5.", "-1e-3"], [1.5, 0.5, 5.0, -0.001]),
        (["1.5", "NaN", "-Inf"], [1.5, None, -np.inf]),
        (["1", "nan"], [1, None]),
        (["02139", "1"], None),
        (["-01", "1"], None),
        (["9223372036854775808", "1"], None),
        (["12345678901234567", "0.5"], None),
        (["1e400", "0.5"], None),
        (["1_000", "2"], None),
        (["0x10", "2"], None),
        (["1e", "2"], None),
        (["1,5", "2"], None),
        (["٣", "2"], None),
        (["true", "false"], None),
        (["NaN", "nan"], None),
        (["inf", "inf"], None),
        (["2024-01-31", "2024-02-01"], None),
        (["1", "NA"], None),
        (["1", "?"], None),
        (["1", "-999"], [1, -999]),
    ],
)
def test_only_a_column_of_numbers_becomes_numbers(cells, want):
    column = infer_types(pl.DataFrame({"a": cells}))["a"].to_list()
    assert column == ([cell or None for cell in cells] if want is None else want)


@pytest.mark.more
def test_a_wide_table_is_read(tmp_path):
    names = [f"gene_{j}_expression" for j in range(10_000)]
    assert read(",".join(names) + "\n" + ",".join(["1"] * 10_000) + "\n", tmp_path).shape == (1, 10_000)


def test_a_long_table_is_read_fast_and_whole(tmp_path):
    """Ten times fewer rows than a million, in a tenth of what people wait for; blank cells at the ends of rows too."""
    rng = np.random.default_rng(0)
    n = 100_000
    table = pl.DataFrame(
        {f"x{j}": rng.normal(size=n) for j in range(6)}
        | {f"n{j}": rng.integers(0, 1000, n) for j in range(4)}
        | {f"t{j}": rng.choice(["red", "a, b", 'q"', None], n) for j in range(2)}
    )
    write_table(table, tmp_path / "a.csv")
    start = time.process_time()
    assert_frame_equal(read_table(tmp_path / "a.csv"), table)
    assert time.process_time() - start < 3.0


# --- JSON lines -------------------------------------------------------------------------------------------------


def test_json_lines_keep_what_they_hold(tmp_path):
    text = '{"a": 1, "zip": "02139"}\n\n{"a": 2.5, "new": null}\n{"zip": "7", "big": 12345678901234567890123}\n'
    table = read(text, tmp_path, "a.jsonl")
    assert table.to_dict(as_series=False) == {
        "a": [1.0, 2.5, None],
        "zip": ["02139", None, "7"],
        "new": [None, None, None],
        "big": [None, None, "12345678901234567890123"],
    }


@pytest.mark.parametrize("beside", ["1", "true"], ids=["alike", "mixed"])
def test_whole_numbers_of_json_beyond_64_bits_keep_their_digits(beside, tmp_path):
    """A mixed column beside them has the lines read one by one."""
    text = f'{{"n": 18446744073709551616, "b": {beside}}}\n{{"n": 1, "b": 2}}\n'
    assert read(text, tmp_path, "a.jsonl")["n"].to_list() == ["18446744073709551616", "1"]


def test_mixed_json_cells_become_text(tmp_path):
    table = read('{"a": true, "b": [1]}\n{"a": 3, "b": {"c": 1}}\n{"a": "x"}\n', tmp_path, "a.jsonl")
    assert table.rows() == [("true", "[1]"), ("3", '{"c": 1}'), ("x", None)]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ('{"a": 1}\nxx\n', "line 2"),
        ('{"a": 1}\n[1]\n', "line 2"),
        ('{"a": 1', "line 1"),
        ('{"a": 1, "a": 2}\n', "Column 'a'"),
        ("{}\n", "0 columns"),
        ("[[" * 5000, "line 1"),
    ],
)
def test_damaged_json_lines_are_refused(text, got, tmp_path):
    with pytest.raises(TableError, match=got):
        read(text, tmp_path, "a.jsonl")


def test_an_infinity_that_json_cannot_hold_is_said(tmp_path):
    table = pl.DataFrame({"a": [1.0, float("inf"), float("nan")]})
    with pytest.warns(EvenlyWarning, match="Column 'a': 1 infinite cells are written as missing"):
        write_table(table, tmp_path / "a.jsonl")
    assert read_table(tmp_path / "a.jsonl")["a"].to_list() == [1.0, None, None]


# --- names, and binary formats ----------------------------------------------------------------------------------


def test_formats_are_known_by_their_names():
    assert str(form_of("A.CSV.GZ")) == "csv.gz"
    assert str(form_of("-")) == "csv"
    assert str(parse_form(".ndjson")) == "jsonl"
    for wrong in ("a", "a.doc", "a.gz", "csv"):
        with pytest.raises(TableError, match="expected one of csv, tsv"):
            form_of(wrong)
    with pytest.raises(TableError, match="parquet files are compressed inside"):
        form_of("a.parquet.gz")


def test_a_name_that_says_nothing_leaves_it_to_the_bytes(tmp_path):
    write_table(HOSTILE, tmp_path / "a.parquet")
    for name in ("b", "b.dat", "b.csv"):
        (tmp_path / name).write_bytes((tmp_path / "a.parquet").read_bytes())
        assert_frame_equal(read_table(tmp_path / name), HOSTILE)
    assert read("a\tb\n1\t2\n", tmp_path, "c.txt").rows() == [(1, 2)]
    assert read('{"a": 1}\n', tmp_path, "d").rows() == [(1,)]
    with pytest.raises(TableError, match=r"which is parquet, but the format csv was asked for"):
        read_table(tmp_path / "b", form="csv")


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.feather", "a.xlsx", "a.dta", "a.sav", "a.csv.gz", "a.csv.bz2", "a.csv.xz", "a.csv.zst"]
)
def test_a_truncated_file_is_refused(name, tmp_path):
    write_table(HOSTILE.select("zip", "x", "lines"), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    for n in (7, len(whole) // 2, len(whole) - 9):
        (tmp_path / name).write_bytes(whole[:n])
        with pytest.raises(TableError) as caught:
            read_table(tmp_path / name)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path):
    with pytest.raises(TableError, match="expected parquet"):
        read("a,b\n1,2\n", tmp_path, "a.parquet")


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(TableError, match="no file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(TableError, match="a folder"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="cannot be read"):
        read_table("a\0.csv")
    with pytest.raises(TableError, match="the format 'excel'"):
        read_table("a.csv", form="excel")


def test_a_name_is_never_taken_for_a_pattern(tmp_path):
    write_table(HOSTILE, tmp_path / "a[1]*.parquet")
    assert_frame_equal(read_table(tmp_path / "a[1]*.parquet"), HOSTILE)


# --- writing ----------------------------------------------------------------------------------------------------


def test_cells_that_a_text_cannot_hold_are_refused_by_column(tmp_path):
    table = pl.DataFrame({"a": [1], "b": [[1, 2]]})
    with pytest.raises(TableError, match="Column 'b': got cells of type List"):
        write_table(table, tmp_path / "a.csv")
    with pytest.raises(TableError, match="Column 'b'"):
        write_table(pl.DataFrame({"b": [b"x"]}), tmp_path / "a.jsonl")
    assert not list(tmp_path.iterdir())
    write_table(table, tmp_path / "a.jsonl")
    assert read_table(tmp_path / "a.jsonl")["b"].to_list() == [[1, 2]]


def test_dates_are_written_as_people_read_them(tmp_path):
    write_table(pl.DataFrame({"day": [date(2024, 1, 31)]}), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "day\n2024-01-31\n"


def test_a_missing_number_is_written_as_an_empty_cell(tmp_path):
    write_table(pl.DataFrame({"a": [float("nan"), 1.0], "b": [1, None]}), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "a,b\n,1\n1.0,\n"


def test_what_is_no_table_is_not_written(tmp_path):
    with pytest.raises(TableError, match="a table of type object"):
        write_table(object(), tmp_path / "a.csv")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_table(HOSTILE, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert_frame_equal(read_table(tmp_path / "real.csv"), HOSTILE)


@pytest.mark.parametrize(
    "target",
    ["a.doc", "a.ods", "folder.csv", "file.csv/b.csv", "/proc/no_such_folder/a.csv", "/sys/a.csv", "a.parquet.gz"],
)
def test_a_target_that_cannot_be_written_is_refused_before_and_after_the_work(target, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file.csv").write_text("old")
    for refuse in (check_writable, lambda path: write_table(HOSTILE, path)):
        with pytest.raises(TableError) as caught:
            refuse(tmp_path / target)
        assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file.csv", "folder.csv"]
    assert (tmp_path / "file.csv").read_text() == "old"


def test_a_good_target_passes_and_is_left_alone(tmp_path):
    for target in ("a.csv", "new/folder/a.parquet", "-", "/dev/null"):
        check_writable(tmp_path / target if target[0] not in "-/" else target)
    check_writable(tmp_path / "a.dat", form="csv.xz")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything is writable for root")
def test_a_read_only_file_or_folder_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "a.csv").chmod(0o400)
    with pytest.raises(TableError, match="may not be written"):
        check_writable(tmp_path / "a.csv")
    tmp_path.chmod(0o500)
    with pytest.raises(TableError, match="Permission denied"):
        check_writable(tmp_path / "b.csv")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("name", [*(f"a.{form}" for form in WRITTEN), "a.csv.gz", "a.csv.xz", "a.csv.zst"])
def test_a_full_disk_leaves_the_old_file_as_it_was(name, tmp_path):
    (tmp_path / name).write_text("old")
    table = pl.DataFrame({"a": [f"{i * 2654435761 % 2**32}" for i in range(30_000)]})
    with small_disk(10_000), pytest.raises(TableError, match=r"could not be written.*(too large|to write)") as raised:
        write_table(table, tmp_path / name)
    assert "\n" not in str(raised.value)
    assert (tmp_path / name).read_text() == "old"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", WRITTEN)
def test_a_full_device_is_said(form):
    with pytest.raises(TableError, match="No space left on device"):
        write_table(HOSTILE.select("zip", "x"), "/dev/full", form=form)


# --- pipes --------------------------------------------------------------------------------------------------------


def test_a_named_pipe_is_read_and_written(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=write_table, args=(HOSTILE, tmp_path / "pipe"), kwargs={"form": "parquet"})
    writer.start()
    assert_frame_equal(read_table(tmp_path / "pipe"), HOSTILE)
    writer.join()
    assert (tmp_path / "pipe").is_fifo()


def through(source: str, target: str, form: str, sent: bytes) -> tuple[bytes, bytes]:
    with streams(sent) as (out, err):
        write_table(read_table(source), target, form=form or None)
        return printed(out), printed(err)


def through_a_process(source: str, target: str, form: str, sent: bytes) -> tuple[bytes, bytes]:
    names = f"{source!r}), {target!r}, form={form or None!r}"
    code = f"import evenly; evenly.write_table(evenly.read_table({names})"
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=False)
    return done.stdout, done.stderr


@pytest.mark.parametrize("carry", [through, pytest.param(through_a_process, marks=pytest.mark.more)])
@pytest.mark.parametrize(("source", "target"), [("-", "-"), ("/dev/stdin", "/dev/stdout")])
@pytest.mark.parametrize("form", ["", "parquet", "arrow", "arrows", "jsonl", "csv.gz", "tsv.zst"])
def test_standard_input_and_output_carry_every_format(form, source, target, carry, tmp_path):
    write_table(HOSTILE, tmp_path / "a", form=form or "csv")
    sent = (tmp_path / "a").read_bytes()
    assert carry(source, target, form, sent) == (sent, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_leaves_early_is_no_traceback(unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    code = """
import polars as pl
from evenly import TableError, write_table
try:
    write_table(pl.DataFrame({"a": range(1_000_000)}), "-")
except TableError as error:
    import sys
    print(error, file=sys.stderr)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        message = process.stderr.read().decode()
    assert message.startswith("got a closed pipe as standard output")
    assert message.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_takes_more_than_a_pipe_holds(unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    code = "import polars as pl, evenly; evenly.write_table(pl.DataFrame({'a': range(100_000)}), '-')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["a", *map(str, range(100_000))]


def test_no_warning_without_a_cause(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_table(HOSTILE, tmp_path / "a.csv")
        read_table(tmp_path / "a.csv")


def test_pandas_tables_are_written_without_pyarrow_too(tmp_path, monkeypatch):
    days = pd.to_datetime(["2020-01-01", None, "2021-05-06"])
    table = pd.DataFrame(
        {
            "text": ["a", None, "c"],
            "class": pd.Categorical(["x", "y", None]),
            "whole": [1, 2, 3],
            "real": [1.5, np.nan, 2.0],
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "day": days,
            "zoned": days.tz_localize("Europe/Berlin"),
        }
    )
    write_table(table, tmp_path / "with.parquet")

    def absent(*arguments, **settings):
        raise ImportError("pyarrow is required for converting a pandas dataframe to Polars")

    monkeypatch.setattr("polars._utils.construction.dataframe.import_optional", absent, raising=False)
    monkeypatch.setattr("polars.dataframe.frame.pandas_to_pydf", absent)
    write_table(table, tmp_path / "without.parquet")
    found, expected = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("without", "with"))
    assert found.schema == expected.schema
    assert found.to_dicts() == expected.to_dicts()
