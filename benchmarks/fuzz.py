"""Damaged files, hostile tables and edited saved objects, by the thousand: what fails, and how long each case takes.

Run: python benchmarks/fuzz.py [--files N] [--tables N] [--saved N] [--seed N] [--patience SECONDS]
[--only PART SEED]. Cases are made from
seeds by the modules `fuzz_files`, `fuzz_tables` and `fuzz_saved`; each returns what went wrong, or None. They run in
worker processes. A case fails as well if its process crashes, if it and its children take more than SECONDS of the
processor's time, so that a busy machine changes nothing, if it waits for PATIENCE seconds, or if it takes more than
MEMORY. First the harness itself is checked: it must notice a case of each of these sorts. Ends with exit code 1 if
any case fails; `--only files 17` runs one case again, here, with its traceback.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import queue
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS = {"files": 10_000, "tables": 2_000, "saved": 3_000}
"""How many cases each part has by default."""
SECONDS = 20.0
"""What a case may take of the processor's time."""
PATIENCE = 200.0
"""Seconds after which a case that has given no answer is taken to hang; more where it hardly gets a processor."""
MEMORY = 1 << 30
"""Bytes by which a case may raise its process's largest memory so far."""
START = 120.0
"""Seconds that a worker may take to import what it needs and run its first case."""


@dataclass(frozen=True)
class Result:
    """How a case ended."""

    part: str
    seed: int
    problem: str | None
    """What went wrong, in a line."""
    seconds: float
    """What it took of the processor's time."""
    memory: int
    """Bytes by which it raised the largest memory of its process."""


class Worker:
    """A process that runs cases of a part one after another, replaced whenever a case ends it."""

    def __init__(self, part: str, seconds: float, memory: int, patience: float = PATIENCE) -> None:
        self.part, self.seconds, self.memory, self.patience = part, seconds, memory, patience
        self.process: subprocess.Popen[str] | None = None

    def run(self, seed: int) -> Result:
        """Run a case; a crash or a timeout is a result too."""
        fresh = self.process is None
        if self.process is None:
            command = [sys.executable, __file__, "--worker", self.part, str(self.seconds)]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        start = time.perf_counter()
        self.process.stdin.write(f"{seed}\n")
        ready, _, _ = select.select(
            [self.process.stdout], [], [], max(START, self.patience) if fresh else self.patience
        )
        line = self.process.stdout.readline() if ready else ""
        seconds = time.perf_counter() - start
        if not line:
            problem = f"no answer after {seconds:.0f} s" if not ready else f"crash, {self._ending()}"
            self.close()
            return Result(self.part, seed, problem, seconds, 0)
        found = json.loads(line)
        problem = found["problem"]
        # The first case pays for imports; a later one is to blame for what it takes itself.
        if problem is None and not fresh and found["seconds"] > self.seconds:
            problem = f"took {found['seconds']:.0f} s of the processor's time"
        if problem is None and not fresh and found["memory"] > self.memory:
            problem = f"took {found['memory'] / 2**20:.0f} MiB more than any case before it"
        return Result(self.part, seed, problem, found["seconds"], 0 if fresh else found["memory"])

    def _ending(self) -> str:
        assert self.process is not None
        code = self.process.wait()
        if code == -signal.SIGXCPU:
            return f"stopped after more than {self.seconds:.0f} s of the processor's time"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def work(part: str, seconds: float) -> None:
    """Answer seeds on standard input with results on standard output; whatever cases print goes nowhere."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    # An absurd allocation fails at once instead of swapping. The limit is high: libraries map much that they never use.
    resource.setrlimit(resource.RLIMIT_AS, (32 << 30, resource.RLIM_INFINITY))
    run_case = load_case(part)
    allowed = START
    for line in sys.stdin:
        before, start = _peak(), _spent()
        # Twice the limit ends the process; what stays below is measured.
        soft = int(time.process_time() + max(2.0 * seconds, allowed)) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
        allowed = 0.0
        try:
            problem = run_case(int(line))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"[:500]
        spent = {"seconds": _spent() - start, "memory": _peak() - before}
        answers.write(json.dumps({"problem": problem, **spent}) + "\n")


def _spent() -> float:
    """Return what this process and its children took of the processor's time."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def load_case(part: str) -> Any:
    """Return the function that runs a case of a part by its seed."""
    if part == "self-check":
        return self_check_case
    sys.path.insert(0, str(Path(__file__).parent))
    return importlib.import_module(f"fuzz_{part}").run_case


def self_check_case(seed: int) -> str | None:
    """Behave, or fail in one of the ways that must be noticed."""
    if seed == 1:
        return "a problem"
    if seed == 2:
        raise ValueError("an exception")
    if seed == 3:
        os.abort()
    if seed == 4:
        time.sleep(60.0)
    if seed == 8:
        while True:
            pass
    if seed == 9:
        end = time.process_time() + 0.7
        while time.process_time() < end:
            pass
    if seed == 5:
        return None if bytearray(os.urandom(1 << 10)) * (40 << 10) else "unreachable"
    return None


def check_harness(patience: float) -> None:
    """Raise an error unless every way to fail is noticed."""
    ways = {1: "a problem", 2: "ValueError", 9: "took", 3: "crash", 6: None, 8: "stopped", 10: None, 5: "MiB"}
    for cases, waits in (({0: None, **ways}, patience), ({0: None, 4: "no answer", 7: None}, 3.0)):
        worker = Worker("self-check", seconds=0.5, memory=20 << 20, patience=waits)
        for seed, part in cases.items():
            problem = worker.run(seed).problem
            if problem is not part and (part is None or problem is None or part not in problem):
                raise AssertionError(f"the harness says {problem!r} of a case that should give {part!r}")
        worker.close()


def run_all(part: str, seeds: Iterable[int], n_workers: int, patience: float = PATIENCE) -> Iterator[Result]:
    """Run cases in several workers, and yield results as they come."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    results: queue.SimpleQueue[Result | None] = queue.SimpleQueue()
    for seed in seeds:
        waiting.put(seed)

    def drain() -> None:
        worker = Worker(part, SECONDS, MEMORY, patience)
        try:
            while True:
                results.put(worker.run(waiting.get_nowait()))
        except queue.Empty:
            pass
        finally:
            worker.close()
            results.put(None)

    for _ in range(n_workers):
        threading.Thread(target=drain, daemon=True).start()
    running = n_workers
    while running:
        result = results.get()
        if result is None:
            running -= 1
        else:
            yield result


def report(part: str, seed: int, n: int, n_workers: int, patience: float) -> int:
    """Run the cases of a part, print what fails and a summary, and return the number of failures."""
    start, failed = time.perf_counter(), 0
    slowest = largest = Result(part, seed, None, 0.0, 0)
    for result in run_all(part, range(seed, seed + n), n_workers, patience):
        slowest = max(slowest, result, key=lambda one: one.seconds)
        largest = max(largest, result, key=lambda one: one.memory)
        if result.problem is not None:
            failed += 1
            print(f"{part} {result.seed}: {result.problem}", flush=True)
    print(
        f"{part}: {n} cases, seeds {seed} to {seed + n - 1}: {failed} failed; "
        f"{time.perf_counter() - start:.0f} s in all, at most {slowest.seconds:.1f} s (seed {slowest.seed}) and "
        f"{largest.memory / 2**20:.0f} MiB (seed {largest.seed}) a case",
        flush=True,
    )
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for part, n in PARTS.items():
        parser.add_argument(f"--{part}", type=int, default=n, help=f"cases of {part} (default {n:,})")
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next ones follow it")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds that a case may wait (default 200)")
    parser.add_argument("--only", nargs=2, metavar=("PART", "SEED"), help="run this case alone, in this process")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.worker[0], float(given.worker[1]))
        return
    if given.only:
        print(load_case(given.only[0])(int(given.only[1])))
        return
    check_harness(given.patience)
    chosen = [part for part in PARTS if getattr(given, part)]
    failed = sum(report(part, given.seed, getattr(given, part), given.workers, given.patience) for part in chosen)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
