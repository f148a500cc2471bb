"""Workbooks and files of Stata and SPSS are read as the tables that people see in them, and written."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from commands import failed, run, succeeded
from polars.testing import assert_frame_equal

from evenly import EvenlyWarning, TableError, read_table, write_table

pytest.importorskip("fastexcel")
xlsxwriter = pytest.importorskip("xlsxwriter")
pyreadstat = pytest.importorskip("pyreadstat")

TABLE = pl.DataFrame(
    {
        "sex": pl.Series(["f", "m", None], dtype=pl.Enum(["m", "f"])),
        "age": [1, None, 3],
        "x": [0.1, None, 1 / 3],
        "day": [date(2024, 1, 31), None, date(1999, 12, 31)],
        "at": pl.Series([datetime(2024, 1, 31, 12, 30, 1, 500_000), None, None], dtype=pl.Datetime("ms")),
        "text": ["ü", "02139", None],
    }
)


def write_workbook(path: Path, sheets: Mapping[str, list[list[Any]]]) -> Path:
    with xlsxwriter.Workbook(path, {"strings_to_formulas": True, "default_date_format": "yyyy-mm-dd"}) as workbook:
        for name, rows in sheets.items():
            sheet = workbook.add_worksheet(name)
            for i, row in enumerate(rows):
                for j, cell in enumerate(row):
                    if cell is not None:
                        sheet.write(i, j, cell)
    return path


def write_open_document(path: Path, rows: str) -> Path:
    office, table, text = (f"urn:oasis:names:tc:opendocument:xmlns:{one}:1.0" for one in ("office", "table", "text"))
    content = (
        f'<office:document-content xmlns:office="{office}" xmlns:table="{table}" xmlns:text="{text}"><office:body>'
        f'<office:spreadsheet><table:table table:name="One">{rows}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content, zipfile.ZIP_DEFLATED)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return path


NAMES_OF_ODS = "<table:table-row>" + "".join(
    f'<table:table-cell office:value-type="string"><text:p>{name}</text:p></table:table-cell>' for name in "ab"
)
ROWS_OF_ODS = (
    '</table:table-row><table:table-row table:number-rows-repeated="{n}">'
    '<table:table-cell office:value-type="float" office:value="1.5"><text:p>1.5</text:p></table:table-cell>'
    '<table:table-cell office:value-type="string"><text:p>x</text:p></table:table-cell></table:table-row>'
    '<table:table-row table:number-rows-repeated="1048573"><table:table-cell table:number-columns-repeated="16384"/>'
    "</table:table-row>"
)


@pytest.mark.parametrize("name", ["a.xlsx", "a.dta", "a.sav"])
def test_types_come_back(name, tmp_path):
    write_table(TABLE, tmp_path / name)
    want = TABLE.with_columns(pl.col("sex").cast(pl.String)) if name == "a.xlsx" else TABLE
    back = read_table(tmp_path / name)
    assert_frame_equal(back.with_columns(pl.col("at").cast(pl.Datetime("ms"))), want)


@pytest.mark.parametrize("name", ["a.xlsx", "a.dta", "a.sav"])
def test_the_time_of_writing_is_not_in_the_file(name, tmp_path, monkeypatch):
    write_table(TABLE, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    write_table(TABLE, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    now = datetime.now()
    for form in ("%Y-%m-%dT", "%d %b %Y", "%d %b %y"):
        assert f"{now:{form}}".encode() not in first


# --- workbooks --------------------------------------------------------------------------------------------------


def test_the_first_sheet_with_a_table_is_read_and_others_are_named(tmp_path):
    sheets = {"Cover": [["About"]], "Empty": [], "2019": [["a", "b"], [1, "x"]], "2020": [["a", "b"], [2, "y"]]}
    path = write_workbook(tmp_path / "a.xlsx", sheets)
    with pytest.warns(EvenlyWarning, match=r"read from the sheet '2019'; not read: '2020'.*`--sheet`"):
        assert read_table(path).rows() == [(1, "x")]
    assert read_table(path, sheet="2020").rows() == [(2, "y")]
    assert read_table(path, sheet=4).rows() == [(2, "y")]
    for wrong in ("2021", 5, 0):
        with pytest.raises(TableError, match=r"expected one of 'Cover', 'Empty', '2019', '2020', or a number from 1"):
            read_table(path, sheet=wrong)
    write_table(TABLE, tmp_path / "a.csv")
    with pytest.raises(TableError, match="csv has no sheets"):
        read_table(tmp_path / "a.csv", sheet=1)


def test_titles_above_the_table_and_blank_rows_and_columns_are_left_out(tmp_path):
    rows = [["My survey"], [], [None, None, "Group"], [None, "id", "age", "note"], [None, 1, 31], [], [None, 2, 32.5]]
    path = write_workbook(tmp_path / "a.xlsx", {"S": [*rows, [], []]})
    with pytest.warns(EvenlyWarning, match=r"begins in row 4 of the sheet 'S'; above it: 'My survey', 'Group'"):
        table = read_table(path)
    assert table.to_dict(as_series=False) == {"id": [1, 2], "age": [31.0, 32.5], "note": [None, None]}


def test_types_of_a_sheet_are_decided_by_the_whole_column(tmp_path):
    rows = [["n", "zip", "mixed", "text"], *([i, "02139", i, str(i)] for i in range(1500)), [1, "1", "x", "2"]]
    table = read_table(write_workbook(tmp_path / "a.xlsx", {"S": rows}))
    assert table.dtypes == [pl.Int64, pl.String, pl.String, pl.Int64]
    assert table["mixed"][0] == "0"


def test_a_text_that_looks_like_a_formula_stays_text(tmp_path):
    table = pl.DataFrame({"a": ["=1+1", "http://x.org", "x"]})
    write_table(table, tmp_path / "a.xlsx")
    assert_frame_equal(read_table(tmp_path / "a.xlsx"), table)


def test_an_open_document_is_read(tmp_path):
    path = write_open_document(tmp_path / "a.ods", NAMES_OF_ODS + ROWS_OF_ODS.format(n=2))
    assert read_table(path).rows() == [(1.5, "x")] * 2


def test_a_cell_far_away_is_refused_before_it_fills_memory(tmp_path):
    far = write_workbook(tmp_path / "a.xlsx", {"S": [["a"], [1]]})
    with xlsxwriter.Workbook(far) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write(0, 0, "a")
        sheet.write(1_048_575, 16_383, 1)
    beyond = tmp_path / "b.xlsx"
    with zipfile.ZipFile(write_workbook(tmp_path / "c.xlsx", {"S": [["a"], [1]]})) as archive:
        parts = {name: archive.read(name).replace(b'"A2"', b'"A16777216"') for name in archive.namelist()}
    with zipfile.ZipFile(beyond, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    with pytest.raises(TableError, match="a cell beyond the end of a sheet"):
        read_table(beyond)
    with zipfile.ZipFile(beyond, "w") as archive:
        for name, part in parts.items():
            many = part.replace(b"A16777216", b"A2").replace(b'uniqueCount="1"', b'uniqueCount="8589934592"')
            archive.writestr(name, many)
    with pytest.raises(TableError, match="expand to 274,877,906,944"):
        read_table(beyond)
    often = write_open_document(tmp_path / "a.ods", NAMES_OF_ODS + ROWS_OF_ODS.format(n=200_000_000))
    for path in (far, often):
        with pytest.raises(TableError, match=r"expand to .* or more.*`--max-expansion`"):
            read_table(path)


def test_an_archive_that_expands_without_end_is_refused(tmp_path):
    path = write_workbook(tmp_path / "a.xlsx", {"S": [["a"], [1]]})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/bomb", bytes(3 << 24))
    with pytest.raises(TableError, match="expand to"):
        read_table(path)
    assert read_table(path, max_expansion=10_000).rows() == [(1,)]


def test_a_table_too_large_for_a_sheet_is_refused(tmp_path):
    with pytest.raises(TableError, match="a sheet holds 1,048,575 rows"):
        write_table(pl.DataFrame({"a": range(1 << 20)}), tmp_path / "a.xlsx")
    with pytest.raises(TableError, match=r"Column 'a': got a text of 40,000 characters, but Excel holds 32,767"):
        write_table(pl.DataFrame({"a": ["x" * 40_000]}), tmp_path / "a.xlsx")
    with pytest.raises(TableError, match=r"can only be read. Hint: write .xlsx"):
        write_table(TABLE, tmp_path / "a.ods")
    assert not list(tmp_path.iterdir())


# --- Stata and SPSS ---------------------------------------------------------------------------------------------


def test_labels_become_classes_and_missing_codes_missing_cells(tmp_path):
    raw = pl.DataFrame({"sex": [1.0, 2.0, 9.0], "income": [100.0, 250.5, -1.0], "n": [1.0, 2.0, None]})
    labels = {"sex": {1: "male", 2: "female", 9: "refused"}, "income": {-1: "refused"}}
    missing = {"sex": [9], "income": [-1]}
    path = tmp_path / "a.sav"
    pyreadstat.write_sav(raw, path, variable_value_labels=labels, missing_ranges=missing)
    table = read_table(path)
    assert table["sex"].to_list() == ["male", "female", None]
    assert table["sex"].dtype == pl.Enum(["male", "female", "refused"])
    assert table["income"].to_list() == [100.0, 250.5, None]
    assert table["n"].to_list() == [1, 2, None]


def test_numbers_of_which_some_have_labels_stay_numbers_and_it_is_said(tmp_path):
    raw = pl.DataFrame({"income": [100.0, 250.5, -1.0]})
    pyreadstat.write_dta(raw, tmp_path / "a.dta", variable_value_labels={"income": {-1: "refused"}})
    with pytest.warns(EvenlyWarning, match=r"Column 'income': only some values have labels .* refused"):
        assert read_table(tmp_path / "a.dta")["income"].to_list() == [100.0, 250.5, -1.0]


@pytest.mark.parametrize("name", ["a.dta", "a.sav"])
def test_what_the_program_cannot_hold_is_refused_by_column(name, tmp_path):
    for table in (
        pl.DataFrame({"a b": [1]}),
        pl.DataFrame({"x" * 65: [1]}),
        pl.DataFrame({"a": [2**60]}),
        pl.DataFrame({"a": ["\0"]}),
    ):
        with pytest.raises(TableError, match=f"Column '{table.columns[0]}'"):
            write_table(table, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a copy of the process")
def test_damage_that_crashes_the_reader_does_not_crash_the_process(tmp_path, monkeypatch):
    write_table(TABLE, tmp_path / "a.sav")
    monkeypatch.setattr(pyreadstat, "read_sav", lambda *_, **__: os.abort())
    with pytest.raises(TableError, match=r"a.sav, which is damaged"):
        read_table(tmp_path / "a.sav")


# --- the command line -------------------------------------------------------------------------------------------


def test_commands_read_and_write_them(tmp_path):
    rows = [["x", "n", "colour"], *([i / 7, i % 5, ["red", "blue"][i % 3 == 0]] for i in range(40)), [None, 3, "red"]]
    write_workbook(tmp_path / "a.xlsx", {"One": rows, "Two": rows[:20]})
    succeeded(run("inspect", "a.xlsx", "--sheet", "Two", folder=tmp_path))
    for form in ("dta", "xlsx"):
        fitted = ("--sheet", "One", "--model", "marginal", "--share", "0")
        succeeded(run("impute", "a.xlsx", *fitted, "-o", f"b.{form}", folder=tmp_path))
        assert read_table(tmp_path / f"b.{form}").null_count().sum_horizontal()[0] == 0


def test_without_the_packages_the_line_that_installs_them_is_named(tmp_path):
    write_table(TABLE, tmp_path / "a.xlsx")
    write_table(TABLE, tmp_path / "a.dta")
    write_table(TABLE, tmp_path / "a.csv")
    hidden = ["fastexcel", "pyreadstat", "xlsxwriter"]
    for name in ("a.xlsx", "a.dta"):
        failed(run("inspect", name, folder=tmp_path, without=hidden), 'pip install "evenly[files]"')
        failed(run("scale", "a.csv", "-o", name, folder=tmp_path, without=hidden), 'pip install "evenly[files]"')


# --- JSON -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1, "b": "x"}, {"a": 2.5, "b": null}]',
        '{"a": [1, 2.5], "b": ["x", null]}',
        '{"a": 1, "b": "x"}\n{"a": 2.5, "b": null}\n',
    ],
    ids=["rows", "columns", "lines"],
)
def test_json_of_every_shape_is_read(text, tmp_path):
    (tmp_path / "a.json").write_text(text)
    assert read_table(tmp_path / "a.json").rows() == [(1.0, "x"), (2.5, None)]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ('{"a": [1, 2], "b": [1]}', "Column 'b': got 1 cells, and 2 in 'a'"),
        ("[1, 2]", "item 1 of "),
        ("[]", "0 rows"),
        ("3", "which is 3"),
        ("[{", "expected an array of objects"),
        ("[" * 100_000, "expected an array of objects"),
        ('[{"a": 1, "a": 2}]', "Column 'a'"),
    ],
)
def test_other_json_is_refused(text, got, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(TableError, match=r".") as caught:
        read_table(tmp_path / "a.json")
    assert got in str(caught.value)


def test_lines_with_hardly_a_name_in_common_are_refused_before_they_fill_memory(tmp_path):
    text = "".join(f'{{"n{i}": {i}}}\n' for i in range(20_000))
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(TableError, match="expand to"):
        read_table(tmp_path / "a.jsonl")
