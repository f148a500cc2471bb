"""Damaged and hostile files: refused in one sentence, in little time and memory, with nothing else printed."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import lzma
import os
import random
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from commands import failed, printed, run, streams
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sizes import examples

from evenly import TableError, read_table, write_table
from evenly.io import formats
from evenly.io.errors import without_panics

zstandard = pytest.importorskip("zstandard")

TABLE = pl.DataFrame(
    {
        "x": [1.5, None, 3.0] * 20,
        "text": ["x", "yy", None] * 20,
        "class": pl.Series(["u", "v", "u"] * 20, dtype=pl.Categorical),
        "list": [[1, 2], [], None] * 20,
    }
)


# --- Arrow and Parquet ------------------------------------------------------------------------------------------

WRITERS = {
    "arrow": lambda file: TABLE.write_ipc(file, compression="zstd"),
    "arrows": lambda file: TABLE.write_ipc_stream(file, compression="zstd"),
    "feather": lambda file: TABLE.write_ipc(file, compression="lz4"),
    "ipc": lambda file: TABLE.write_ipc(file),
    "parquet": lambda file: TABLE.write_parquet(file, row_group_size=20),
}
HUGE = (2**63 - 1, 7061644215716937736, 2**62, 2**40, 2**33, 2**32 - 1, 2**31 - 1, -1, -8, 2**24)


def damage(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, replace lengths, cut: mostly where the metadata are, at both ends."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        near = min(len(made) - 8, 1500)
        at = rng.choice((rng.randrange(len(made) - 8), rng.randrange(near), len(made) - 8 - rng.randrange(near)))
        how = rng.randrange(5)
        if how == 0:
            made[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            made[at & ~7 : (at & ~7) + 8] = struct.pack("<q", rng.choice(HUGE))
        elif how == 2:
            made[at & ~3 : (at & ~3) + 4] = struct.pack("<I", rng.choice(HUGE) & 0xFFFFFFFF)
        elif how == 3:
            del made[at : at + rng.randint(1, 16)]
        elif rng.random() < 0.3:
            del made[max(at, 20) :]
        if len(made) < 30:
            break
    return bytes(made)


EVERY = """
import io, sys
from test_damaged import WRITERS, read_or_refuse
for form in WRITERS:
    file = io.BytesIO()
    WRITERS[form](file)
    data = file.getvalue()
    for at in range(int(sys.argv[1]), len(data), 8):
        for other in (0xFF, 0x00, data[at] ^ 0x80, data[at] ^ 0x01):
            print(form, at, other, flush=True)
            read_or_refuse(data[:at] + bytes([other]) + data[at + 1 :], form)
"""
CHILD = """
import random, sys, warnings
from test_damaged import WRITERS, damage, read_or_refuse
import io
for form in WRITERS:
    file = io.BytesIO()
    WRITERS[form](file)
    for seed in range(int(sys.argv[1])):
        print(form, seed, flush=True)
        read_or_refuse(damage(file.getvalue(), random.Random(f"{form} {seed}")), form)
"""


def read_or_refuse(data: bytes, form: str) -> None:
    """Read a file and look at every cell, or be refused in words."""
    path = f"damaged.{form}"
    with open(path, "wb") as file:
        file.write(data)
    try:
        read_table(path).rows()
        message = ""
    except TableError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 1000


@pytest.mark.more
def test_no_wrong_byte_of_many_ends_the_process_or_prints_anything(tmp_path):
    run_child(EVERY, tmp_path, "3")


@pytest.mark.sized
def test_no_damaged_file_ends_the_process_or_prints_anything(tmp_path):
    """In a process of its own, since an allocation that cannot be made would end this one."""
    run_child(CHILD, tmp_path, str(examples(400)))


def run_child(code: str, folder: Path, *given: str) -> None:
    """Run code of this module in a process of its own; it ends well, and prints no error."""
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, *given],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b""), (done.stdout.splitlines()[-1], done.stderr[:500])


@pytest.mark.parametrize("form", ["arrow", "arrows"])
def test_a_length_beyond_all_memory_is_refused_before_it_is_allocated(form, tmp_path):
    file = io.BytesIO()
    WRITERS[form](file)
    data = file.getvalue()
    lengths = [at for at in range(8, len(data) - 8, 8) if data[at : at + 8] == struct.pack("<q", 480)]
    assert lengths  # of 60 numbers, before they were compressed
    for at in lengths:
        broken = data[:at] + struct.pack("<q", 7061644215716937736) + data[at + 8 :]
        (tmp_path / f"a.{form}").write_bytes(broken)
        with pytest.raises(TableError, match=r"expand to 7,061,644,215|do not fit its content"):
            read_table(tmp_path / f"a.{form}")


def fail(message: bytes) -> None:
    os.write(2, message)
    raise OSError("bad file")


def test_a_panic_is_not_printed_but_other_messages_are():
    with streams(b"") as (_, err):
        with without_panics():
            os.write(2, b"a message\n")
        with pytest.raises(OSError, match="bad file"), without_panics():
            fail(b"thread panicked\n")
        late = threading.Timer(0.03, os.write, (2, b"another thread panicked\n"))
        late.start()
        with pytest.raises(OSError, match="bad file"), without_panics():
            fail(b"thread panicked\n")
        late.join()
        assert printed(err) == b"a message\n"


# --- expansion --------------------------------------------------------------------------------------------------

COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("how", COMPRESS)
def test_a_file_that_expands_out_of_proportion_is_refused_in_little_memory(how, tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "FREE", 1 << 20)
    path = tmp_path / f"a.csv.{how}"
    size = 1 << (27 if how in ("gz", "zst") else 21)
    path.write_bytes(COMPRESS[how](b"1,1\n" * (size // 4)))
    tracemalloc.start()
    with pytest.raises(TableError, match=r"bytes expand to .* or more, .* 200 times .*`--max-expansion`"):
        read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 << 20


def test_more_expansion_is_an_option(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "FREE", 1 << 16)
    text = b"a,b\n" + b"1,1\n" * (1 << 16)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    failed(run("inspect", "a.csv.gz", folder=tmp_path), "--max-expansion")
    assert read_table(tmp_path / "a.csv.gz", max_expansion=2000).height == 1 << 16


def test_an_ordinary_compressed_table_of_any_size_passes(tmp_path):
    rng = random.Random(0)
    rows = "".join(f"{rng.random():.3f},{rng.randrange(9)},red\n" for _ in range(4_000))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(("x,n,c\n" + rows * 8).encode()))
    assert read_table(tmp_path / "a.csv.gz").height == 32_000


# --- text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        ",".join(f"x{i}" for i in range(20_000)) + "\n" + "1,2\n" * 5_000,
        "," * 20_000 + "\n" + '"1",2\n' * 5_000,
        ",".join(f'"x{i}"' for i in range(5_000)) + "\n" + '"1"\n' * 5_000,
        "a,b\n" + "1," * 100_000 + "\n",
    ],
    ids=["short", "unnamed", "quoted", "long"],
)
@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_a_wide_file_of_rows_of_different_lengths_is_refused_in_no_time(text, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    start = time.process_time()
    with pytest.raises(TableError, match="in line 2"):
        read_table(tmp_path / "a.csv")
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", f"a,{'x' * 5000},{'x' * 5000}\n1,2,3\n"),
        ("a.csv", f"{';'.join('x' * 5000)}\n" * 3),
        ("a.jsonl", '{"a": 1}\n' + '{"a" ' + "x" * 5000),
        ("a.json", f'["{"x" * 5000}"]'),
        ("a.jsonl", f'{{"{"x" * 5000}": 1, "{"x" * 5000}": 2}}'),
        ("a.tsv", f"{'x,' * 5000}y\n" * 3),
    ],
)
def test_what_an_error_quotes_is_cut(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(TableError) as caught:
        read_table(tmp_path / name)
    assert len(str(caught.value)) < 800


def test_a_second_byte_order_mark_hides_no_zero_byte(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf\xef\xbb\xbfa,b\n1,\0\n")
    with pytest.raises(TableError, match="a zero byte in line 2"):
        read_table(tmp_path / "a.csv")


def test_a_cell_longer_than_pythons_own_limit_is_read(tmp_path):
    table = pl.DataFrame({"a": ["x" * 300_000 + "\ry", "b"], "b": ["1", "c"]})
    write_table(table, tmp_path / "a.csv")
    assert_frame_equal(read_table(tmp_path / "a.csv"), table)


# --- whatever is written can be read ----------------------------------------------------------------------------

letters = st.characters(exclude_categories=("Cs",)) | st.sampled_from('",;\t|\n\r\0\x1a\ufeff =NA')
texts = st.text(letters, min_size=1, max_size=12)
names = texts | st.sampled_from(["PAR1", "BZh", "a;b", "sep=;", "<html", "%PDF", "{", "[{", "ARROW1", "\ufeffa", "NA"])


def done_or_refused(action: Callable[..., object], *given: object) -> str:
    try:
        action(*given)
    except TableError as error:
        return str(error)
    return ""


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=st.lists(names, min_size=1, max_size=4, unique=True).flatmap(
        lambda given: st.fixed_dictionaries({one: st.lists(st.none() | texts, min_size=2, max_size=2) for one in given})
    ),
    form=st.sampled_from(["csv", "tsv", "jsonl", "json", "parquet", "arrow", "xlsx"]),
)
@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_whatever_is_written_is_read_back(table, form, tmp_path):
    frame = pl.DataFrame(table, schema=dict.fromkeys(table, pl.String))
    path = tmp_path / f"a.{form}"
    refused = done_or_refused(write_table, frame, path)
    if refused:
        everything = "".join([*table, *(cell or "" for cells in table.values() for cell in cells)])
        same = len({" ".join(name.split()) for name in table}) < len(table)
        assert same or "\0" in everything, refused
        return
    blank = all(not (cell or "").strip() for cells in table.values() for cell in cells)
    refused = done_or_refused(read_table, path)
    if refused:  # a workbook without a cell below its header has no table in it
        assert (form, blank) == ("xlsx", True), refused
        return
    back = read_table(path)
    assert back.width == frame.width or form == "xlsx"
    for column, own in zip(back.get_columns(), frame.get_columns(), strict=form != "xlsx"):
        if column.dtype == pl.String and form != "xlsx":
            assert column.to_list() == own.to_list()


def test_scaled_tables_with_odd_names_and_texts_come_back(tmp_path):
    rows = "".join(f'{{"a;b": "x;y{i % 3}", "n": {i}, "p|q": "1|{i}"}}\n' for i in range(60))
    (tmp_path / "a.jsonl").write_text(rows)
    for name in ("b.csv", "b.tsv"):
        assert run("scale", "a.jsonl", "-o", name, "-q", "--kind", "p|q=ignore", folder=tmp_path).returncode == 0
        assert run("inspect", name, "-q", folder=tmp_path).returncode == 0
        assert read_table(tmp_path / name).height == 60
    (tmp_path / "z.jsonl").write_text(rows.replace("x;y1", "x\\u0000y"))
    failed(run("scale", "z.jsonl", "-o", "z.csv", "--kind", "a;b=ignore", folder=tmp_path), "a zero byte in row 2")
    assert not (tmp_path / "z.csv").exists()


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("a\0", ["x"]),
        pl.Series("a\0", [1.5]),
        pl.Series("a", ["\0"]),
        pl.Series("a", ["\0"], dtype=pl.Categorical),
    ],
    ids=["name of texts", "name of numbers", "text", "class"],
)
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_a_zero_byte_is_not_written_into_delimited_text(column, form, tmp_path):
    with pytest.raises(TableError, match=r"a zero byte in (row 1|its name)"):
        write_table(pl.DataFrame([column]), tmp_path / f"a.{form}")
    assert not any(tmp_path.iterdir())


# --- dates ------------------------------------------------------------------------------------------------------

STRANGE = {
    "date": pl.Series("when", [0, None, 2**30], dtype=pl.Int32).cast(pl.Date),
    "year 12921": pl.Series("when", [0, None, 4_000_000], dtype=pl.Int32).cast(pl.Date),
    "time": pl.Series("when", [0, None, 2**60]).cast(pl.Datetime("ms")),
    "time with a zone": pl.Series("when", [0, None, 2**60]).cast(pl.Datetime("ms", "Europe/Berlin")),
}


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
@pytest.mark.parametrize("which", STRANGE)
def test_dates_that_no_calendar_has_are_refused_when_they_are_read(which, form, tmp_path):
    frame = STRANGE[which].to_frame()
    {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "arrows": frame.write_ipc_stream}[form](
        tmp_path / f"a.{form}"
    )
    done = run("inspect", f"a.{form}", folder=tmp_path)
    failed(done, "Column 'when': got row 3, which is no date, but expected years from 1 to 9999")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("form", ["csv", "jsonl", "xlsx"])
@pytest.mark.parametrize("which", STRANGE)
def test_dates_that_no_calendar_has_are_refused_before_they_are_written(which, form, tmp_path, capfd):
    with pytest.raises(TableError, match="'when': got row 3"):
        write_table(STRANGE[which].to_frame(), tmp_path / f"a.{form}")
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr().err == ""


def test_the_first_and_the_last_day_of_the_calendar_are_dates(tmp_path):
    frame = pl.DataFrame({"when": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]})
    write_table(frame, tmp_path / "a.parquet")
    write_table(read_table(tmp_path / "a.parquet"), tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv")["when"].to_list() == ["0001-01-01", "9999-12-31", None]


def test_a_parquet_footer_of_lists_within_lists_is_refused(tmp_path):
    footer = bytes([0x19]) + bytes([0x19]) * 5000  # a field that is a list of one list of one list ...
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")
    failed(run("inspect", path.name, folder=tmp_path), "a.parquet, whose sizes do not fit its content")
