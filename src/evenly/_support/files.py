"""Files written all or nothing, and fitted objects in JSON and safetensors: loading one runs none of its code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenly._support.errors import MissingExtraError, TableError
from evenly._support.optional import require
from evenly._support.strict_json import one_line, parse_json, read_limited, show
from evenly._version import __version__


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, all or nothing.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "a.txt", "all of it")
    ...     (Path(folder) / "a.txt").read_text()
    'all of it'
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never half of it."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary file to write to, which replaces another file if nothing goes wrong.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['a.txt']
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield Path(temporary)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder to write to, which becomes a new folder, or replaces an empty one, if nothing goes wrong.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing_folder(Path(folder) / "out") as temporary:
    ...         _ = (temporary / "a.txt").write_text("all of it")
    ...     sorted(path.name for path in (Path(folder) / "out").iterdir())
    ['a.txt']
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        yield Path(temporary)
        os.chmod(temporary, 0o777 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def saved_path(path: str | Path, name: str) -> Path:
    """Return where a fitted object is saved: the path itself, or the file of that name in a folder."""
    text, path = str(path), Path(path)
    return path / name if path.is_dir() or text.endswith(("/", os.sep)) else path


FORMAT = 2
"""Of saved objects; a file of another one is refused. Format 1 had no checksum."""


def write_json(path: str | Path, content: dict[str, Any]) -> None:
    """Write a saved object to a JSON file, with its checksum, all or nothing."""
    write_text(path, json.dumps(seal(content, {}), indent=1, ensure_ascii=False) + "\n")


def write_tensors(path: str | Path, content: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Write arrays and a JSON text about them to one safetensors file, with their checksum, all or nothing."""
    import numpy as np  # here, for commands that read no saved object

    safe = require("safetensors.numpy", "models")
    # Of an array that is a part of another, safetensors would write the memory of the other.
    whole = {name: np.asarray(tensors[name], order="C") for name in sorted(tensors)}
    text = json.dumps(seal(content, whole), ensure_ascii=False)
    write_bytes(path, safe.save(whole, {"evenly": text}))


def read_json(path: str | Path, saved: str) -> dict[str, Any]:
    """Read a saved object of that name from a JSON file that `write_json` wrote; refuse one that was edited since."""
    try:
        content = parse_json(read_limited(path), constants=True)
    except ValueError:
        content = None
    return unseal(path, content, {}, saved)


def read_tensors(path: str | Path, saved: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `write_tensors` wrote for a saved object of that name; no code of the file is run."""
    safetensors = require("safetensors", "models")
    try:
        with safetensors.safe_open(path, framework="np") as file:
            content = parse_json((file.metadata() or {}).get("evenly", "null").encode(), constants=True)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
    except OSError:
        raise
    except Exception:  # a header may claim anything, such as a type that NumPy does not have
        content, tensors = None, {}
    return unseal(path, content, tensors, saved), tensors


def seal(content: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """Return content as JSON holds it, with the number of the format and the checksum."""
    plain = json.loads(json.dumps(content, default=_plain_number))
    first = {name: plain.pop(name) for name in ("evenly", "saved") if name in plain}
    plain = {**first, "format": FORMAT, **plain}
    return {**plain, "checksum": checksum(plain, tensors)}


def unseal(path: str | Path, content: Any, tensors: dict[str, Any], saved: str) -> dict[str, Any]:
    """Return the content of a saved object as it was before `seal`; refuse anything else."""
    if not isinstance(content, dict) or content.get("saved") != saved:
        raise TableError(f"{path}", f"expected a file that {saved}.save wrote")
    found = content.pop("format", 1)
    if found != FORMAT:
        raise TableError(
            f"{path}, saved in format {show(found)} by evenly {show(content.get('evenly'))}",
            f"evenly {__version__} reads format {FORMAT}",
            "fit and save again",
        )
    given = content.pop("checksum", None)
    if given != checksum({**content, "format": found}, tensors):
        raise TableError(
            f"{path}, which was edited or damaged since {saved}.save wrote it",
            "expected its checksum to match its content",
            "restore the file, or fit and save again",
        )
    return content


def checksum(content: dict[str, Any], tensors: dict[str, Any]) -> str:
    """Return the SHA-256 of plain content, but for the order of its first keys, and of arrays with their types.

    It finds accidents; it is no signature.

    Examples
    --------
    >>> checksum({"a": 1, "b": 2.0}, {}) == checksum({"b": 2.0, "a": 1}, {}) != checksum({"a": 1, "b": 2}, {})
    True
    """
    found = hashlib.sha256(json.dumps(sorted(content.items(), key=lambda item: item[0])).encode())
    for name in sorted(tensors):
        found.update(json.dumps([name, tensors[name].dtype.str, tensors[name].shape]).encode())
        found.update(tensors[name].tobytes())
    return found.hexdigest()


def _plain_number(value: Any) -> Any:
    """Turn a NumPy number into Python's, for JSON."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be saved")


@contextmanager
def readable(file: str | Path, saved: dict[str, Any]) -> Iterator[None]:
    """Turn any error in the contents of a saved object into one that names the file and both versions.

    Any: contents may be nonsense in ways that show only in the arithmetic of other libraries.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except Exception as error:
        what = error if isinstance(error, (TableError, ValueError)) else f"{type(error).__name__} {error}"
        raise TableError(
            f"{file}, saved by evenly {show(saved.get('evenly'))}",
            f"evenly {__version__} cannot read it: {one_line(what).rstrip('.')}",
        ) from error
