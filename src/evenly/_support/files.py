"""Files written all or nothing, and fitted objects in JSON and safetensors: loading one runs none of its code."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenly._support.errors import TableError
from evenly._support.optional import require
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


def write_json(path: str | Path, content: dict[str, Any]) -> None:
    """Write a JSON file, all or nothing."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, default=_plain_number) + "\n")


def _plain_number(value: Any) -> Any:
    """Turn a NumPy number into Python's, for JSON."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be saved")


def read_json(path: str | Path, saved: str) -> dict[str, Any]:
    """Read a JSON file that holds a saved object of that name."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        content = None
    if not isinstance(content, dict) or content.get("saved") != saved:
        raise TableError(f"{path}", f"expected a file that {saved}.save wrote")
    return content


@contextmanager
def readable(file: str | Path, saved: dict[str, Any]) -> Iterator[None]:
    """Turn any error in the contents of a saved object into one that names the file and both versions."""
    try:
        yield
    except TableError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise TableError(
            f"{file}, saved by evenly {saved.get('evenly')}",
            f"evenly {__version__} cannot read it: {type(error).__name__} {error}",
        ) from error


def write_tensors(path: str | Path, content: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Write arrays and a JSON text about them to one safetensors file, all or nothing."""
    numpy = require("safetensors.numpy", "models")
    text = json.dumps(content, ensure_ascii=False, default=_plain_number)
    write_bytes(path, numpy.save({name: tensors[name] for name in sorted(tensors)}, {"evenly": text}))


def read_tensors(path: str | Path, saved: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `write_tensors` wrote for a saved object of that name; no code of the file is run."""
    safetensors = require("safetensors", "models")
    try:
        with safetensors.safe_open(path, framework="np") as file:
            content = json.loads((file.metadata() or {}).get("evenly", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
    except (safetensors.SafetensorError, json.JSONDecodeError):
        content, tensors = None, {}
    if not isinstance(content, dict) or content.get("saved") != saved:
        raise TableError(f"{path}", f"expected a file that {saved}.save wrote")
    return content, tensors
