"""The command `evenly` in this process: as a person would run it and see it, without the seconds that imports take.

A process of its own is for what nothing else can show: a signal, a closed pipe, how it starts and ends.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import BinaryIO
from unittest import mock

from evenly.cli import main

MAIN = "import sys; from evenly.cli import main; sys.argv[0] = 'evenly'; main()"
"""The code of a process that is the command."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP)


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(
    *arguments: object,
    given: bytes = b"",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
) -> Done:
    """Run `evenly` with arguments, with `given` as its standard input, in a folder, without some packages.

    Whatever it changes of the process is as before when it returns. An error that would end in a traceback is raised
    here. A warning that the command neither prints nor silences is an error, as everywhere in the tests.
    """
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["evenly", *map(str, arguments)]))
        # By this Typer distinguishes `evenly` from `python -m evenly`.
        stack.enter_context(mock.patch.object(sys.modules["__main__"], "__package__", None))
        stack.enter_context(mock.patch.dict(os.environ, {"COLUMNS": "150", **(environment or {})}))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(_place(folder))
        stack.enter_context(_signals())
        stack.enter_context(_without(without))
        out, err = stack.enter_context(streams(given))
        try:
            main()
            code: int | str | None = 0
        except SystemExit as ended:
            code = ended.code
        done = Done(int(code or 0), *(printed(file).decode("utf-8", "replace") for file in (out, err)))
    assert "Traceback" not in done.stderr
    return done


def run_process(*arguments: object, given: bytes = b"", folder: Path | None = None) -> Done:
    """Run `evenly` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        input=given,
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, "COLUMNS": "150"},
        timeout=300,
    )
    assert b"Traceback" not in done.stderr
    return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode())


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """Let no file grow beyond some bytes: writing fails as on a full disk, in the middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def streams(given: bytes) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Standard input, output and error as files, for libraries that write past Python's own streams too."""
    kept = sys.stdin, sys.stdout, sys.stderr
    for stream in kept[1:]:
        stream.flush()
    descriptors = [os.dup(number) for number in range(3)]
    with TemporaryFile() as source, TemporaryFile() as out, TemporaryFile() as err:
        source.write(given)
        source.seek(0)
        for number, file in enumerate((source, out, err)):
            os.dup2(file.fileno(), number)
        # Not closed: what holds on to one of them writes where the process writes by then.
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        try:
            yield out, err
        finally:
            sys.stdin, sys.stdout, sys.stderr = kept
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)


def printed(file: BinaryIO) -> bytes:
    """Return what was printed to one of these files so far."""
    sys.stdout.flush()
    sys.stderr.flush()
    file.seek(0)
    return file.read()


@contextmanager
def _place(folder: Path | None) -> Iterator[None]:
    before = Path.cwd()
    try:
        os.chdir(folder or before)
        yield
    finally:
        os.chdir(before)


@contextmanager
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


@contextmanager
def _without(packages: Sequence[str]) -> Iterator[None]:
    """Hide packages: what is imported meanwhile stays, since few libraries can be imported twice."""
    modules: dict[str, ModuleType | None] = dict(sys.modules)
    hidden = [*packages, *(name for name in modules if name.partition(".")[0] in packages)]
    try:
        for name in hidden:
            sys.modules[name] = None  # type: ignore[assignment]  # so that importing it fails
        yield
    finally:
        for name in hidden:
            if (module := modules.get(name)) is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def succeeded(done: Done) -> str:
    """Return what was printed, on one line."""
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def failed(done: Done, *says: str) -> None:
    """One clear sentence on standard error, and nothing else."""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("evenly: warning: ")]
    assert done.returncode not in (0, 1), (done.stdout, done.stderr)
    assert done.stdout == ""
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("evenly: ")
    for one in says:
        assert one in lines[0]


def refused(done: Done, start: str) -> None:
    """One sentence that starts with these words, without a warning before it."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith(f"evenly: {start}")
    assert done.stderr.count("\n") == 1
