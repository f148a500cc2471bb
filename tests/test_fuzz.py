"""Damaged files are read and inspected, or refused in words: nothing else comes out, and nothing hangs."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable

import pytest
from sizes import examples

from evenly import EvenlyError, EvenlyWarning, inspect_table, load_heart, read_table, write_table

N_FILES = examples(500)
SECONDS = 5.0

TEXTS = (
    'id,name,"note, long",price,day\n'
    '1,Ärger 😀,"said ""no"", twice",3.14,2024-01-31\n'
    '2,O\'Neil,"two\nlines",,2024-02-01\n'
    '3,,"",-999,\n'
    "4,<b>x</b>,plain,1e300,2024-02-03\n"
) + "".join(f'{i},n{i % 7},"t {i}",{i / 3},2024-03-{i % 28 + 1:02}\n' for i in range(5, 60))
GERMAN = "Größe;Stadt;n\n" + "".join(f"{i / 7:.2f};Köln {i % 5};{i}\n".replace(".", ",") for i in range(60))


def good_files(folder) -> list[bytes]:
    write_table(load_heart(), folder / "heart.csv")
    heart = (folder / "heart.csv").read_bytes()
    return [heart, TEXTS.encode(), GERMAN.encode(), GERMAN.encode("cp1252"), TEXTS.encode("utf-16")]


def flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 20)):
        data[rng.randrange(len(data))] = rng.randrange(256)


def truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(1, len(data)) :]


def insert(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 8)):
        piece = rng.choice(
            [b'"', b",", b";", b"\t", b"|", b"\n", b"\r", b"\0", b'""', b'"\n', b"1e999", b"-", b"inf", b"\xff"]
        )
        where = rng.randrange(len(data) + 1)
        data[where:where] = piece


def repeat_lines(data: bytearray, rng: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    for _ in range(rng.randint(1, 5)):
        lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    data[:] = b"\n".join(lines)


def lose_piece(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.randint(1, 200)]


def mix_encodings(data: bytearray, rng: random.Random) -> None:
    where = rng.randrange(len(data))
    data[where:where] = "Ünïcödé €".encode(rng.choice(["utf-8", "cp1252", "utf-16"]))


def damage_header(data: bytearray, rng: random.Random) -> None:
    end = data.find(b"\n") + 1 or len(data)
    header = rng.choice(
        [b"", b"\n", b"a,a,a\n", b",,,,\n", b'"\n', b"x" * 500 + b"\n", b"sep=;\n", bytes(data[:end]) * 2]
    )
    data[:end] = header


DAMAGES: list[Callable[[bytearray, random.Random], None]] = [
    *(flip, truncate, insert, repeat_lines, lose_piece, mix_encodings, damage_header)
]


def damaged(files: list[bytes], seed: int) -> bytes:
    rng = random.Random(seed)
    data = bytearray(files[seed % len(files)])
    for damage in rng.choices(DAMAGES, k=rng.randint(1, 3)):
        if data:
            damage(data, rng)
    return bytes(data)


def test_the_good_files_are_good(tmp_path):
    for data in good_files(tmp_path):
        (tmp_path / "a.csv").write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvenlyWarning)
            assert inspect_table(read_table(tmp_path / "a.csv")).n_rows in (303, 59, 60)


@pytest.mark.sized
@pytest.mark.parametrize("which", range(5), ids=["heart", "texts", "german", "windows", "utf-16"])
def test_a_damaged_file_is_inspected_or_refused_in_words(which, tmp_path):
    files = good_files(tmp_path)
    path = tmp_path / "damaged.csv"
    outcomes = []
    for seed in range(which, N_FILES, len(files)):
        path.write_bytes(damaged(files, seed))
        start = time.perf_counter()
        outcomes.append(outcome(path))
        assert "\n" not in outcomes[-1], f"seed {seed}: {outcomes[-1]}"
        assert not outcomes[-1].startswith("Not in words"), f"seed {seed}: {outcomes[-1]}"
        assert time.perf_counter() - start < SECONDS, f"seed {seed}"
    assert 0 < outcomes.count("read") < len(outcomes)  # damage that is never or always noticed would test nothing


def outcome(path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EvenlyWarning)
        try:
            inspect_table(read_table(path))
        except EvenlyError as error:
            return str(error)
        except BaseException as error:  # Polars' panics are no exceptions
            return f"Not in words: {error!r}"
    return "read"
