"""Edits saved scalers, schemas and imputers at random, loads and uses them: none may crash, hang or quietly differ.

    python benchmarks/fuzz_saved.py --cases 2000

A saved scaler or imputer that was edited must be refused in one sentence, unless the edit changes nothing. One whose
checksum was computed anew, and a schema, which people edit by hand, must be refused in one sentence or be usable.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import struct
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from safetensors.numpy import load, save

import evenly
from evenly._support.files import read_json, read_tensors, seal

LONGEST = 1_000
"""The largest number of characters of a sentence."""
NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 10**6, 2**31, 2**63, 10**30, -(10**9), 0.5, -0.5, 1e-320, 1e308, -1e308,
    float("nan"), float("inf"), -float("inf"), "", "a", "NaN", "1", "real", "count", "binary", "categorical", "ignore",
    "gamma", "normal", "bernoulli", "masked", "marginal", "lip-none", "iqr-none", "polars", "numpy", "Int64", "\ud800",
    "\u0000", "../x", "x" * 3_000, [], [1], [0.5, 0.5], ["a", "a"], [[1.0, 2]], [None], {}, {"a": 1}, {"name": "a"},
    list(range(300)),
)  # fmt: skip
"""What a value is replaced by."""


class Original(NamedTuple):
    """A saved object, and how to use it."""

    data: bytes
    load: Callable[[Path], Any]
    use: Callable[[Any], bytes]
    result: bytes
    edits: tuple[Callable[[Original, random.Random, Path], bool], ...]
    """Each writes an edited copy, and says whether its checksum is right, if it needs one."""


def table() -> pl.DataFrame:
    """A small table of all kinds of columns, with missing cells."""
    rng = np.random.default_rng(0)
    n = 48
    x = rng.normal(50.0, 9.0, n)
    return pl.DataFrame(
        {
            "real": np.where(rng.random(n) < 0.1, np.nan, x - 50.0).round(2),
            "positive": np.where(rng.random(n) < 0.1, 0.0, np.exp(x / 20.0)).round(3),
            "count": [None if i % 9 == 0 else int(v) for i, v in enumerate(rng.poisson(3.0, n))],
            "binary": ["yes" if v > 50.0 else "no" for v in x],
            "class": [None if i % 7 == 0 else "abc"[int(v) % 3] for i, v in enumerate(x)],
            "when": pl.Series(["2020-01-01"] * n).str.to_date(),
        },
        nan_to_null=True,
    )


def as_bytes(*frames: Any) -> bytes:
    """Return tables as bytes, to compare."""
    return "".join(f"{frame.schema}{frame.rows()}" for frame in frames).encode()


def use_scaler(scaler: Any) -> bytes:
    """Scale the table, and bring it back."""
    scaled = scaler.transform(table())
    usual = scaler.unscale(scaler.natural_)
    return as_bytes(scaled, scaler.inverse_transform(scaled), scaler.summary_) + repr(usual).encode()


def use_imputer(imputer: Any) -> bytes:
    """Fill the table, once by estimates and once by draws."""
    return as_bytes(imputer.transform(table()), *imputer.sample(table(), 1), *imputer.interval(table()))


def use_schema(schema: Any) -> bytes:
    """Fit a scaler by the schema, and use that."""
    return use_scaler(evenly.LipschitzScaler("lip-none", schema=schema, random_state=0).fit(table()))


@cache
def originals() -> dict[str, Original]:
    """The saved objects, made once a process."""
    given, found = table(), {}
    tiny = evenly.Training(epochs=3, n_networks=2, sizes={"hidden_size": 8})
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "saved"
        for method in ("lip-gamma", "iqr-none", "lip-bern"):
            evenly.LipschitzScaler(method, random_state=0, kinds={"count": "count"}).fit(given).save(path)
            read: Any = evenly.LipschitzScaler.load
            edits = (edit_bytes, edit_text, edit_sealed)
            found[method] = Original(path.read_bytes(), read, use_scaler, use_scaler(read(path)), edits)
        for model, imputer in (
            ("marginal", evenly.Imputer("marginal", random_state=0)),
            ("masked", evenly.Imputer("masked", random_state=0, training=tiny)),
        ):
            imputer.fit(pl.concat([given] * 3)).save(path)  # near-duplicates, for the index of neighbours
            read = evenly.Imputer.load
            some = (edit_bytes, edit_header, edit_content, edit_content_sealed, edit_tensors, edit_tensors_sealed)
            found[model] = Original(path.read_bytes(), read, use_imputer, use_imputer(read(path)), some)
        evenly.infer_schema(given).save(path)
        read = evenly.Schema.load
        found["schema"] = Original(path.read_bytes(), read, use_schema, use_schema(read(path)), (edit_bytes, edit_text))
    return found


# --- edits: each writes the edited file, and says whether its checksum was computed anew --------------------------


def edit_bytes(original: Original, rng: random.Random, path: Path) -> bool:
    """Flip, cut, insert, repeat or overwrite bytes."""
    data, at = bytearray(original.data), rng.randrange(len(original.data))
    way = rng.randrange(6)
    if way == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif way == 1:
        del data[at:]
    elif way == 2:
        data[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
    elif way == 3:
        del data[at : at + rng.choice((1, 4, 100))]
    elif way == 4:
        data[at:at] = data[at : at + 50]
    else:
        data = bytearray(rng.choice((b"[" * 100_000, b'{"a":' * 100_000, b"\xff" * 9, b"null", b"9" * 5_000, b"")))
    path.write_bytes(data)
    return False


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header of a safetensors file, and the rest."""
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def edit_header(original: Original, rng: random.Random, path: Path) -> bool:
    """Let the header of a safetensors file claim something else."""
    header, rest = split(original.data)
    if rng.random() < 0.2:
        claimed = rng.choice((0, 1, 8, len(original.data), 2**31, 2**63, 2**64 - 1))
        path.write_bytes(struct.pack("<Q", claimed) + original.data[8:])
        return False
    text = json.dumps(edit_tree(header, rng)).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + rest)
    return False


def edit_text(original: Original, rng: random.Random, path: Path) -> bool:
    """Edit the JSON of a scaler, or of a schema."""
    path.write_text(json.dumps(edit_tree(json.loads(original.data), rng), indent=rng.choice((None, 1))))
    return False


def edit_sealed(original: Original, rng: random.Random, path: Path) -> bool:
    """Edit the JSON of a scaler, with the right checksum."""
    path.write_bytes(original.data)
    content = edit_tree(read_json(path, "LipschitzScaler"), rng, keep=("saved",))
    path.write_text(json.dumps(seal(content, {})))
    return True


def edit_content(original: Original, rng: random.Random, path: Path) -> bool:
    """Edit the JSON of an imputer."""
    content = json.loads(split(original.data)[0]["__metadata__"]["evenly"])
    _write(path, edit_tree(content, rng), load(original.data))
    return False


def edit_content_sealed(original: Original, rng: random.Random, path: Path) -> bool:
    """Edit the JSON of an imputer, with the right checksum."""
    path.write_bytes(original.data)
    content, tensors = read_tensors(path, "Imputer")
    _write(path, seal(edit_tree(content, rng, keep=("saved",)), tensors), tensors)
    return True


def edit_tensors(original: Original, rng: random.Random, path: Path) -> bool:
    """Edit an array of an imputer."""
    content = json.loads(split(original.data)[0]["__metadata__"]["evenly"])
    _write(path, content, _edit_arrays(load(original.data), rng))
    return False


def edit_tensors_sealed(original: Original, rng: random.Random, path: Path) -> bool:
    """Edit an array of an imputer, with the right checksum and, mostly, the right note of shapes."""
    path.write_bytes(original.data)
    content, tensors = read_tensors(path, "Imputer")
    tensors = _edit_arrays(tensors, rng)
    if rng.random() < 0.8:
        content["shapes"] = {name: list(one.shape) for name, one in tensors.items()}
    _write(path, seal(content, tensors), tensors)
    return True


def _write(path: Path, content: Any, tensors: dict[str, Any]) -> None:
    path.write_bytes(save(tensors, {"evenly": json.dumps(content)}))


def _edit_arrays(tensors: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    found = {name: one.copy() for name, one in tensors.items()}
    name, other = rng.choice(sorted(found)), rng.choice(sorted(found))
    one = found[name]
    way = rng.randrange(10)
    if way == 0:
        found[name], found[other] = found[other], one
    elif way == 1:
        del found[name]
    elif way == 2:
        found[rng.choice(("new", "network9/raw", "gaussian_mean", "neighbours", "network0/first/more"))] = one
    elif way == 3:
        found[name] = one.astype(rng.choice(("f4", "f8", "f2", "i4", "i8", "u1", "bool")))
    elif way == 4:
        found[name] = one.reshape(rng.choice(((-1,), (1, *one.shape), (*one.shape, 1), one.shape[::-1])))
    elif way == 5:
        found[name] = one[: len(one) // 2] if one.ndim else one
    elif way == 6:
        found[name] = np.concatenate([one, one]) if one.ndim else one
    elif one.size and way == 7:
        one.flat[rng.randrange(one.size)] = rng.choice((0, 1, -1, 120)) if one.dtype.kind in "iu" else np.nan
    elif one.size and way == 8:
        one.flat[rng.randrange(one.size)] = rng.choice((0, 1, -1, 99, 10**6)) * (1 if one.dtype.kind in "iu" else 1e30)
    else:
        with np.errstate(all="ignore"):
            found[name] = (one * rng.choice((0, -1, 3))).astype(one.dtype)
    return {each: np.ascontiguousarray(array) for each, array in found.items()}


def edit_tree(tree: Any, rng: random.Random, keep: tuple[str, ...] = ()) -> Any:
    """Return JSON with one to three values, types, keys or items edited, or with one nested deeply."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = [place for place in _places(tree) if place[1] not in keep]
        if not places:
            return tree
        parent, key = rng.choice(places)
        value, way = parent[key], rng.randrange(9)
        if way <= 2:
            parent[key] = copy.deepcopy(rng.choice(NASTY))
        elif way == 3 and isinstance(value, (int, float)) and not isinstance(value, bool):
            parent[key] = value * rng.choice((-1, 2, 10, 1.5, 1e9, 1e-9)) + rng.choice((0, 1, -1))
        elif way == 4:
            del parent[key]
        elif way == 5 and isinstance(parent, dict):
            parent[rng.choice(("more", "x", "Name", "name", "kind"))] = value
        elif way == 5:
            parent.insert(key, copy.deepcopy(value))
        elif way == 6:
            other, there = rng.choice(places)
            parent[key], other[there] = copy.deepcopy(other[there]), copy.deepcopy(value)
        elif way == 7:
            parent[key] = [value] if rng.random() < 0.5 else str(value)
        else:
            for _ in range(rng.choice((2, 150, 400))):
                value = [value] if rng.random() < 0.5 else {"a": value}
            parent[key] = value
            return tree  # deeper, copying it would take too many calls
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """List the places of all values: what holds each, and its key there."""
    found, left = [], [tree]
    while left:
        one = left.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            left.append(one[key])
    return found


# --- cases --------------------------------------------------------------------------------------------------------


def run_case(seed: int) -> str | None:
    """Edit a saved object, load it and use it; returns None, or one line that says what went wrong."""
    return _run(seed)[1]


def _run(seed: int) -> tuple[str, str | None]:
    rng = random.Random(seed)
    kind, original = rng.choice(sorted(originals().items()))
    edit = rng.choice(original.edits)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        path = Path(folder) / "saved"
        lenient = edit(original, rng, path) or kind == "schema"
        outcome, wrong = _judge(original, path, lenient)
    return outcome, wrong and f"seed {seed}: {kind}, {edit.__name__}: {wrong}"


def _judge(original: Original, path: Path, lenient: bool) -> tuple[str, str | None]:
    """Load and use an edited file: what became of it, and what is wrong with that."""
    try:
        loaded = original.load(path)
    except evenly.TableError as error:
        wrong = "\n" in str(error) or len(str(error)) >= LONGEST
        return "refused", f"not one sentence: {str(error)[:200]!r}" if wrong else None
    except Exception as error:
        return "crashed", f"{type(error).__name__} at load: {' '.join(str(error).split())[:200]}"
    try:
        result = original.use(loaded)
    except evenly.TableError as error:
        return "refused in use", None if lenient else f"loads, but is refused in use: {str(error)[:200]}"
    except Exception as error:
        return "crashed", f"{type(error).__name__} in use: {' '.join(str(error).split())[:200]}"
    if result == original.result:
        return "the same", None
    return "usable", None if lenient else "loads, and gives something else"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    originals()
    outcomes, slowest, start = Counter[str](), (0.0, 0), time.perf_counter()
    for seed in range(given.first, given.first + given.cases):
        before = time.perf_counter()
        outcome, wrong = _run(seed)
        outcomes[outcome] += 1
        slowest = max(slowest, (time.perf_counter() - before, seed))
        if wrong:
            outcomes["wrong"] += 1
            print(wrong, flush=True)
    took = (time.perf_counter() - start) / max(given.cases, 1)
    print(f"{1e3 * took:.0f} ms a case, at most {slowest[0]:.1f} s (seed {slowest[1]}); outcomes: {dict(outcomes)}")


if __name__ == "__main__":
    main()
