"""Damaged files of every format through the commands: a table that reads back, or one sentence; nothing else.

`run_case(seed)` damages one small file and says in a line what went wrong, or nothing. To try the seeds 0 to 999:

    python benchmarks/fuzz_files.py 1000
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import os
import random
import re
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from unittest import mock

import polars as pl
import zstandard

from evenly.cli import main as evenly
from evenly.io import write_table

SECONDS = 10.0
"""What a case may take of the processor's time."""
MOST_LETTERS = 1000
"""Letters of a message."""
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
TEXTS = ("csv", "tsv", "jsonl", "json")
BINARIES = ("parquet", "arrow", "arrows", "xlsx", "ods", "dta", "sav", "feather", "pq")
TARGETS = (*TEXTS, "parquet", "arrow", "arrows", "xlsx", "csv.gz", "jsonl.zst", "dta", "sav")
PIECES = (b'"', b",", b";", b"\t", b"|", b"\n", b"\r", b"\0", b'""', b'"\n', b"1e999", b"-", b"inf", b"\xff", b"\\u0")
MORE = (b"{", b"}", b"[", b"]", b":", b"<", b">", b"&", b"\xef\xbb\xbf", b"\x1a", b" ", b"NaN", b"9" * 400)
HUGE = (2**63 - 1, 7061644215716937736, 2**62, 2**40, 2**33, 2**32 - 1, 2**31 - 1, -1, -8, 2**24, 0)


# --- sound files ------------------------------------------------------------------------------------------------


@cache
def tables() -> tuple[pl.DataFrame, ...]:
    """Return a table of every type, one of odd names and texts, and a wide one."""
    n = 24
    usual = pl.DataFrame(
        {
            "id": [f"{i:05}" for i in range(n)],
            "age": [None if i % 7 == 0 else 20 + i % 9 for i in range(n)],
            "x": [i / 7 - 1 if i % 5 else None for i in range(n)],
            "sex": [("m", "f", None)[i % 3] for i in range(n)],
            "day": [date(2024, 1, 1) + timedelta(i) for i in range(n)],
            "yes": [(True, False, None)[i % 3] for i in range(n)],
            "city": pl.Series([("Köln", "Ulm")[i % 2] for i in range(n)], dtype=pl.Enum(["Ulm", "Köln"])),
        }
    )
    odd = pl.DataFrame(
        {
            "a;b": [f"x;{i % 4}" for i in range(n)],
            "p|q": ["two\nlines" if i % 2 else 'say "no"' for i in range(n)],
            "tab\tname": [f" {i} , {i}" for i in range(n)],
            "n, m": [i % 3 for i in range(n)],
            "z": [("NA", "?", "-999", "x")[i % 4] for i in range(n)],
        }
    )
    wide = pl.DataFrame({f"column_{j}": [(i * j) % 5 for i in range(4)] for j in range(60)})
    return usual, odd, wide


@cache
def sound(form: str, which: int) -> bytes:
    """Return a sound file."""
    frame = tables()[which]
    if form == "ods":
        return open_document(frame)
    if form in ("dta", "sav"):
        frame = frame.rename({name: re.sub(r"\W", "_", name) for name in frame.columns})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{form}"
        if form == "feather":
            frame.write_ipc(path, compression="zstd")
        elif form == "pq":
            frame.write_parquet(path, compression="snappy", row_group_size=9)
        elif form == "arrows":
            frame.write_ipc_stream(path, compression="zstd")
        else:
            write_table(frame, path)
        return path.read_bytes()


def open_document(frame: pl.DataFrame) -> bytes:
    """Return a workbook of LibreOffice."""

    def cell(value: object) -> str:
        text = str(value).replace("&", "&amp;").replace("<", "&lt;")
        if value is None:
            return "<table:table-cell/>"
        kind = f'float" office:value="{text}' if isinstance(value, (int, float)) else "string"
        return f'<table:table-cell office:value-type="{kind}"><text:p>{text}</text:p></table:table-cell>'

    rows = "".join(
        f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in (frame.columns, *frame.rows())
    )
    office, table, text = (f"urn:oasis:names:tc:opendocument:xmlns:{one}:1.0" for one in ("office", "table", "text"))
    content = (
        f'<office:document-content xmlns:office="{office}" xmlns:table="{table}" xmlns:text="{text}"><office:body>'
        f'<office:spreadsheet><table:table table:name="One">{rows}<table:table-row table:number-rows-repeated="1048">'
        '<table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table></office:spreadsheet>'
        "</office:body></office:document-content>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content, zipfile.ZIP_DEFLATED)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return file.getvalue()


# --- damage -----------------------------------------------------------------------------------------------------


def flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 12)):
        data[rng.randrange(len(data))] = rng.randrange(256)


def flip_a_bit(data: bytearray, rng: random.Random) -> None:
    data[place(data, rng)] ^= 1 << rng.randrange(8)


def truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(1, len(data) + 1) :]


def insert(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data) + 1)
        data[at:at] = rng.choice((*PIECES, *MORE))


def repeat_lines(data: bytearray, rng: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    for _ in range(rng.randint(1, 5)):
        lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    data[:] = b"\n".join(lines)


def lose_piece(data: bytearray, rng: random.Random) -> None:
    start = place(data, rng)
    del data[start : start + rng.choice((1, 2, 4, 8, rng.randint(1, 200)))]


def repeat_piece(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    piece = data[start : start + rng.randint(1, 50)]
    data[start:start] = piece * rng.choice((1, 2, 10, 200))


def mix_encodings(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = "Ünïcödé €".encode(rng.choice(["utf-8", "cp1252", "utf-16", "utf-32"]))


def encode_anew(data: bytearray, rng: random.Random) -> None:
    data[:] = data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-32", "utf-8-sig", "utf-16-le"]))


def damage_header(data: bytearray, rng: random.Random) -> None:
    end = data.find(b"\n") + 1 or len(data)
    wide = rng.choice((b",", b"x,", b'"",', b"x\t", b"x;")) * rng.choice((100, 3000)) + b"\n"
    short = (b"", b"\n", b"a,a,a\n", b",,,,\n", b'"\n', b"x" * 5000 + b"\n", b"sep=;\n", bytes(data[:end]) * 2)
    data[:end] = rng.choice((wide, *short))


def lengthen_line(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice((b"x", b"1,", b'"', b"\t", b"[", b'{"a":', b"\0", b" ")) * rng.choice((200, 20_000))


def replace_length(data: bytearray, rng: random.Random) -> None:
    size, form = rng.choice(((8, "<q"), (4, "<i"), (2, "<h"), (4, ">i")))
    at = place(data, rng) // size * size
    number = rng.choice(HUGE) & (1 << 8 * size) - 1
    data[at : at + size] = struct.pack(form, number - (1 << 8 * size) if number >> 8 * size - 1 else number)


def replace_number(data: bytearray, rng: random.Random) -> None:
    numbers = list(re.finditer(rb"[0-9]+", bytes(data[:200_000])))
    if numbers:
        found = rng.choice(numbers)
        data[found.start() : found.end()] = str(rng.choice((*HUGE, 1048576, 16384, 10**30))).encode()


def place(data: bytearray, rng: random.Random) -> int:
    """Choose a place, mostly near an end, where binary formats have their metadata."""
    near = min(len(data), 1500)
    return rng.choice((rng.randrange(len(data)), rng.randrange(near), len(data) - 1 - rng.randrange(near)))


ANYWHERE = (flip, flip_a_bit, truncate, insert, lose_piece, repeat_piece)
DAMAGES = {
    "text": (*ANYWHERE, repeat_lines, mix_encodings, encode_anew, damage_header, lengthen_line, replace_number),
    "binary": (*ANYWHERE, replace_length, replace_length),
    "xml": (*ANYWHERE, replace_number, replace_number, lengthen_line),
}


def damage(data: bytes, kind: str, rng: random.Random) -> bytes:
    made = bytearray(data)
    for how in rng.choices(DAMAGES[kind], k=rng.randint(1, 3)):
        if made:
            how(made, rng)
    return bytes(made)


def damage_inside(data: bytes, rng: random.Random) -> bytes:
    """Damage a part of a workbook, in an archive that is sound."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    content = [name for name in parts if "sheet" in name or "content" in name or "sharedStrings" in name]
    chosen = rng.choice((rng.choice(content), rng.choice(list(parts))))
    parts[chosen] = damage(parts[chosen], "xml", rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


def make_case(rng: random.Random) -> tuple[str, bytes]:
    """Return a file's name and its damaged content."""
    form, which = rng.choice((*TEXTS, *TEXTS, *BINARIES)), rng.choice((0, 0, 1, 2))
    data = sound(form, which)
    if form in ("xlsx", "ods"):
        made = damage_inside(data, rng) if rng.random() < 0.7 else damage(data, "binary", rng)
    elif form in TEXTS:
        made = damage(data, "text", rng)
        how = rng.choice((*[""] * 4, *COMPRESS))
        if how:
            form = f"{form}.{how}"
            made = COMPRESS[how](damage(data, "text", rng))
            made = damage(made, "binary", rng) if rng.random() < 0.5 else made
            if rng.random() < 0.05:
                made = COMPRESS[how](bytes(1 << 26) if how in ("gz", "zst") else bytes(1 << 20))
    else:
        made = damage(data, "binary", rng)
    return f"damaged.{rng.choice((form, form, form, form, 'dat', 'csv'))}", made


# --- commands ---------------------------------------------------------------------------------------------------


@contextmanager
def captured() -> Iterator[tuple[io.BufferedRandom, io.BufferedRandom]]:
    """Standard output and error as files, for libraries that print past Python too."""
    kept = sys.stdout, sys.stderr
    for stream in kept:
        stream.flush()
    before = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        try:
            yield out, err
        finally:
            sys.stdout, sys.stderr = kept
            for number, old in zip((1, 2), before, strict=True):
                os.dup2(old, number)
                os.close(old)


def run(*arguments: str) -> tuple[int, str]:
    """Run the command in this process; return its exit code and what it printed on standard error."""
    with (
        captured() as (_, err),
        mock.patch.object(sys, "argv", ["evenly", *arguments]),
        mock.patch.dict(os.environ, {"EVENLY_TRACEBACK": ""}),
        warnings.catch_warnings(),
    ):
        try:
            evenly()
            code: object = 0
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
        err.seek(0)
        return int(str(code or 0)), err.read().decode("utf-8", "replace")


def complaint(code: int, printed: str, target: Path | None = None) -> str | None:
    """Say what is wrong with the way a command ended."""
    lines = [line for line in printed.splitlines() if not line.startswith("evenly: warning: ")]
    long = max((len(line) for line in printed.splitlines()), default=0)
    shown = " / ".join(lines)[:300]
    if "panicked" in printed or "Traceback" in printed:
        return f"printed a panic or a traceback: {shown}"
    if long > MOST_LETTERS:
        return f"a message of {long} letters: {max(printed.splitlines(), key=len)[:200]}"
    if code == 0:
        return f"succeeded, but printed: {shown}" if lines else None
    if code != 2:
        return f"exit code {code}: {shown}"
    if len(lines) != 1 or not lines[0].startswith("evenly: "):
        return f"not one sentence: {shown}"
    if target is not None and target.exists():
        return f"refused, but {target.name} was written: {shown}"
    return None


def run_case(seed: int) -> str | None:
    """Damage a file by a seed, run commands on it, and say in a line what went wrong; None if all was as promised."""
    rng = random.Random(seed)
    name, data = make_case(rng)
    start, before = time.process_time(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path(name).write_bytes(data)
            wrong = use(name, rng)
            left = {one.name for one in Path().iterdir()} - {name, "scaler.json", "back.csv"}
            strange = [one for one in left if not one.startswith("out.")]
            wrong = wrong or (f"left {strange}" if strange else None)
        except BaseException as error:  # whatever comes out is to be reported
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong = f"raised {type(error).__name__}: {str(error)[:300]}"
        finally:
            os.chdir(before)
    seconds = time.process_time() - start
    if wrong is None and seconds > SECONDS:
        wrong = f"took {seconds:.0f} s"
    return None if wrong is None else f"seed {seed}, {name}: {' '.join(wrong.split())}"


def use(name: str, rng: random.Random) -> str | None:
    """Inspect a file, or scale it, read that back, and unscale it."""
    if rng.random() < 0.3:
        return complaint(*run("inspect", name, "-q"))
    target = f"out.{rng.choice(TARGETS)}"
    code, printed = run("scale", name, "-o", target, "-q", "--save", "scaler.json")
    wrong = complaint(code, printed, Path(target))
    if wrong or code:
        return wrong and f"scale -o {target}: {wrong}"
    code, printed = run("inspect", target, "-q")
    if code:
        return f"{target} was written by scale, but cannot be read: {printed[:300]}"
    wrong = complaint(code, printed)
    if wrong:
        return f"inspect {target}: {wrong}"
    code, printed = run("unscale", target, "--load", "scaler.json", "-o", "back.csv", "-q")
    wrong = complaint(code, printed, Path("back.csv"))
    return wrong and f"unscale {target}: {wrong}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, help="how many seeds to try")
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    start, seen = time.perf_counter(), Counter[str]()
    for seed in range(options.first, options.first + options.n):
        wrong = run_case(seed)
        seen["wrong" if wrong else "as promised"] += 1
        if wrong:
            print(wrong, flush=True)
    print(f"{dict(seen)} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
