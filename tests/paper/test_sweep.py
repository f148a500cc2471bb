"""The paper's sweep: it can be killed, shared and spread over a cluster; every run is performed once, and recorded."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
from commands import MAIN, Done, refused, run_process

pytest.importorskip("jax")
pytest.importorskip("polars")

from imputers import make_imputer

import evenly
from evenly import MissingExtraError, TableError
from evenly.paper import performing, records, sweep
from evenly.paper.datasets import NAMES, QUICK, DataSet, as_table, hidden_mask, schema, synthetic
from evenly.paper.grid import Plan, design_runs
from evenly.paper.records import Run, describe_record, pack_records, read_records, to_text
from evenly.paper.schedule import project
from evenly.paper.sweep import perform_and_record


def plan(datasets: Any, folder: Path | None = None, **settings: Any) -> list[Run]:
    return Plan(datasets, **settings).runs(folder)


TINY = Run(QUICK, 20, 1, "mixture", "lip-bern", 3, 25)
"""The run that is really performed, here and in other processes: to compile it takes longest."""

STAND_IN = '''
"""Python imports this on its own: runs that only sleep, in every process, whoever starts it."""
import importlib.machinery, os, sys, time

def perform(run, data):
    handle = os.open(os.environ["SWEEP_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{run.name}\\n".encode())
    os.close(handle)
    time.sleep(float(os.environ.get("SWEEP_SLEEP", "0.05")))
    if run.method == os.environ.get("SWEEP_FAIL"):
        raise ValueError("as asked for")
    seconds = {"fit": 0.5 * run.epochs, "predict": 0.0}
    from evenly.paper.records import heading
    return {**heading(run), "seconds": seconds, "honest": [run.mask / 7], "mean_or_mode": [1.0]}

class AfterImport:
    def find_spec(self, name, path=None, target=None):
        if name != "evenly.paper.sweep":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            module.perform = perform
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, AfterImport())
'''


class Cheap:
    """Runs that only sleep, here and in all processes started from here, and the log of those begun."""

    def __init__(self, folder: Path) -> None:
        self.log, self.out = folder / "log", folder / "runs"

    def begun(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def cheap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cheap:
    stand_in = tmp_path / "stand_in"
    stand_in.mkdir()
    (stand_in / "sitecustomize.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(stand_in), os.environ.get("PYTHONPATH")])))
    found = Cheap(tmp_path)
    monkeypatch.setenv("SWEEP_LOG", str(found.log))
    scope: dict[str, Any] = {"__name__": "stand_in"}
    before = list(sys.meta_path)
    exec(STAND_IN, scope)
    sys.meta_path[:] = before
    monkeypatch.setattr(sweep, "perform", scope["perform"])
    return found


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes that train: what one of them compiled, the next ones read."""
    folder = tmp_path_factory.mktemp("compiled")
    kept = {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2"}
    return {**os.environ, **kept}


def start(*arguments: object, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `evenly paper run` in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, "paper", "run", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**(env or os.environ), "COLUMNS": "200"},
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def command(*arguments: object) -> Done:
    """Run `evenly paper ...` here."""
    return commands.run("paper", *arguments, environment={"COLUMNS": "200"})


def assert_one_line(done: Done, start: str) -> None:
    """On standard error: of a plan, something was printed before."""
    assert done.returncode == 2
    assert done.stderr.startswith(f"evenly: {start}")
    assert done.stderr.count("\n") == 1


def wait_for(process: subprocess.Popen[str], happened: Callable[[], object], seconds: float = 240.0) -> None:
    until = time.monotonic() + seconds
    while not happened() and process.poll() is None:
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and all that it started, at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(0.05)  # its workers are not our children: nobody says when they are gone


def contents(out: Path) -> dict[str, tuple[int, bytes]]:
    """Every record's file, and when it was written."""
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in out.glob("*.json")}


def written(out: Path) -> dict[str, bytes]:
    """Every record's file."""
    return {name: content for name, (_, content) in contents(out).items()}


def some_runs(n: int, **changes: Any) -> list[Run]:
    run = Run(QUICK, 20, 1, "mixture", "std-none", 0, 2)
    return [dataclasses.replace(run, mask=mask, **changes) for mask in range(1, n + 1)]


def made_up(run: Run, **content: Any) -> dict[str, Any]:
    return {"run": dataclasses.asdict(run), "revision": records.REVISION, **content}


# --- killed and started again ---------------------------------------------------------------------------------


@pytest.mark.more
def test_killed_five_times_it_loses_and_repeats_nothing(cheap):
    """At random moments; alone, or with the two processes that work for it."""
    rng = random.Random(20)
    options = ("--quick", "--model", "mixture", "--masks", "1-12", "--out", cheap.out)
    kept: dict[str, tuple[int, bytes]] = {}
    for jobs in (1, 2, 1, 2, 1):
        before = len(cheap.begun())
        process = start(*options, "--jobs", jobs)
        wait_for(process, lambda before=before: len(cheap.begun()) > before)
        time.sleep(rng.uniform(0.0, 0.3))
        kill(process)
        now = contents(cheap.out)
        assert kept.items() <= now.items()
        kept = now
        assert len(read_records(cheap.out)) == len(kept)  # every file is whole
    assert 0 < len(kept) < 84
    known_before = len(cheap.begun())
    printed = command("run", *options).stdout
    assert f" {len(kept)} of them are finished" in " ".join(printed.split())
    now = contents(cheap.out)
    assert kept.items() <= now.items()
    assert len(now) == 84
    planned = plan([QUICK], percents=[20], masks=range(1, 13), models=["mixture"])
    assert len(planned) == 84
    runs = {Run(**one["run"]) for one in read_records(cheap.out)}
    assert {(run.mask, run.method) for run in runs} == {(run.mask, run.method) for run in planned}
    again = cheap.begun()[known_before:]
    assert not {f"{name}.json" for name in again} & set(kept)
    assert len(again) == len(set(again)) == 84 - len(kept)
    assert "84 of them are finished" in " ".join(command("run", *options).stdout.split())
    assert contents(cheap.out) == now


@pytest.mark.more
def test_killed_while_training_it_goes_on(tmp_path, compiled):
    out = tmp_path / "runs"
    small = ("--quick", "--model", "mixture", "--method", TINY.method, "--masks", "1-3", "--epochs-fraction", 0.4)
    options = (*small, "--out", out)
    process = start(*options, env=compiled)
    wait_for(process, lambda: contents(out))
    time.sleep(random.Random(5).uniform(0.0, 0.2))
    kill(process)
    kept = contents(out)
    assert kept
    assert f" {len(kept)} of them are finished" in " ".join(finish(start(*options, env=compiled)).split())
    assert kept.items() <= contents(out).items()
    records = read_records(out)
    assert len(records) == 3
    assert not any("failed" in one for one in records)
    # What another process wrote after all this is what is computed here.
    there = records[-1]
    here = json.loads(to_text(sweep.perform(Run(**there["run"]), synthetic())))
    assert {**here, "seconds": None} == {**there, "seconds": None}


def test_a_file_that_a_kill_left_half_written_is_no_record(cheap):
    run, other = some_runs(2)
    cheap.out.mkdir()
    (cheap.out / f".{run.name}.json.abc123").write_text('{"run":{"data')
    (cheap.out / "claims").mkdir()
    (cheap.out / "claims" / run.name).touch()
    assert [one.mask for one, record in sweep.run_sweep([run, other], cheap.out) if record] == [1, 2]
    assert len(read_records(cheap.out)) == 2
    assert list((cheap.out / "claims").iterdir()) == []


def test_an_interrupted_training_leaves_no_record(tmp_path, monkeypatch):
    """Training ends early at Ctrl-C and keeps what it learned: for a record, that would be a lie."""

    def interrupted(run: Run, data: DataSet) -> dict[str, Any]:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return made_up(run)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(sweep, "perform", interrupted)
        with pytest.raises(KeyboardInterrupt):
            perform_and_record(some_runs(1)[0], tmp_path)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(tmp_path.glob("*.json")) == []
    assert list((tmp_path / "claims").iterdir()) == []


@pytest.mark.more
def test_a_killed_worker_ends_the_sweep_in_words(tmp_path, cheap, monkeypatch):
    monkeypatch.setenv("SWEEP_SLEEP", "0.3")
    process = start("--quick", "--model", "mixture", "--masks", "1-9", "--jobs", 2, "--out", cheap.out)
    wait_for(process, cheap.begun)
    workers = [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and _is_worker(folder, process.pid)
    ]
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err.startswith("evenly: a process was killed, perhaps for want of memory")
    assert err.count("\n") == 1
    read_records(cheap.out)


def _is_worker(folder: Path, group: int) -> bool:
    try:
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return os.getpgid(int(folder.name)) == group and "popen_loky" in command
    except OSError:
        return False


# --- two at once ----------------------------------------------------------------------------------------------


@pytest.mark.more
def test_two_sweeps_share_the_runs(cheap, monkeypatch):
    monkeypatch.setenv("SWEEP_SLEEP", "0.02")
    options = ("--quick", "--model", "mixture", "--masks", "1-8", "--out", cheap.out)
    for process in [start(*options), start(*options)]:
        finish(process)
    assert len(contents(cheap.out)) == 56
    assert set(Counter(cheap.begun()).values()) == {1}
    assert len(cheap.begun()) == 56


def test_runs_of_another_process_are_counted_and_not_waited_for(cheap, monkeypatch):
    options = ("--quick", "--model", "mixture", "--masks", "1-2", "--method", "std-none", "--method", "lip-none")
    one, two, three, four = plan(
        [QUICK], percents=[20], masks=[1, 2], models=["mixture"], methods=["std-none", "lip-none"], epochs_fraction=0.02
    )
    perform = sweep.perform

    def meanwhile(run: Run, data: DataSet) -> dict[str, Any]:
        """While the first one is performed, another process finishes the second one."""
        assert run != two
        if run == one:
            (cheap.out / f"{two.name}.json").write_text(to_text({**perform(two, data)}) + "\n")
        return perform(run, data)

    monkeypatch.setattr(sweep, "perform", meanwhile)
    with sweep.claimed(cheap.out / "claims" / three.name):
        printed = command("run", *options, "--out", cheap.out).stdout
    assert sorted(cheap.begun()) == sorted(run.name for run in (one, two, four))
    assert "1 runs were made by another process meanwhile\n1 runs are with another process\n" in printed
    assert "2/4" in printed
    assert "another process" not in command("run", *options, "--out", cheap.out).stdout


@pytest.mark.more
def test_the_bar_goes_by_the_time_of_the_runs(cheap, monkeypatch):
    """Two runs, of which the first is projected to take a tenth of the second: it is not half of the work."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # or only the last state is printed
    monkeypatch.setenv("SWEEP_SLEEP", "1")
    run = dataclasses.replace(some_runs(1)[0], mask=9)
    known = cheap.out.parent / "known.jsonl"
    times = {"std-none": 10.0, "lip-none": 100.0}
    records = [
        made_up(dataclasses.replace(run, method=one), seconds={"fit": s, "predict": 0}) for one, s in times.items()
    ]
    known.write_text("".join(to_text(one) + "\n" for one in records))
    options = ("--method", "std-none", "--method", "lip-none", "--known", known, "--out", cheap.out)
    printed = command("run", "--quick", "--model", "mixture", *options).stdout
    left = [int(one) for one in re.findall(r"1/2 some (\d+) s left", printed)]
    assert left
    assert min(left) >= 9  # ten times what the first one took, at least a second
    assert "2/2" in printed


def test_several_threads_share_the_runs(cheap, monkeypatch):
    """As the threads of a cluster's worker do; here they surely meet."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setenv("SWEEP_SLEEP", "0.002")
    runs = some_runs(30)
    with ThreadPoolExecutor(4) as pool:
        done = [one for one in pool.map(lambda run: perform_and_record(run, cheap.out), runs * 4) if one is not None]
    assert len(done) == len(read_records(cheap.out)) == 30
    assert sorted(cheap.begun()) == sorted(run.name for run in runs)


@pytest.mark.more
def test_a_claim_is_free_again_when_its_process_was_killed(tmp_path):
    path = tmp_path / "claims" / "a run"
    code = (
        "import sys, time; from pathlib import Path; from evenly.paper.sweep import claimed\n"
        "with claimed(Path(sys.argv[1])) as mine:\n    print(mine, flush=True)\n    time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        with sweep.claimed(path) as mine:
            assert not mine
        assert path.exists()  # asking for it does not take it away from the other
        other.kill()
    with sweep.claimed(path) as mine:
        assert mine
    assert not path.exists()


def test_a_claim_that_was_given_up_meanwhile_is_not_taken_twice(tmp_path, monkeypatch):
    """Opened, then removed by its owner, then claimed anew by a third: two would hold locks, of two files."""
    path = tmp_path / "a run"
    lock = fcntl.flock

    def late(file: Any, how: int) -> None:
        path.unlink()
        path.touch()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with sweep.claimed(path) as mine:
        assert not mine
    assert path.exists()  # the third's


def test_a_folder_without_locks_is_an_error_and_not_a_claim(tmp_path, monkeypatch):
    def refuse(file: Any, how: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="not implemented"), sweep.claimed(tmp_path / "a run"):
        pass


# --- failures -------------------------------------------------------------------------------------------------


def test_a_failing_run_is_recorded_and_does_not_stop_the_others(cheap, monkeypatch):
    monkeypatch.setenv("SWEEP_FAIL", "iqr-none")
    options = ("--quick", "--model", "mixture", "--out", cheap.out)
    printed = command("run", *options).stdout
    assert "mixture iqr-none: FAILED: ValueError: as asked for" in printed
    assert "7/7" in printed
    failed = [one for one in read_records(cheap.out) if "failed" in one]
    assert [one["failed"] for one in failed] == ["ValueError: as asked for"]
    assert failed[0]["versions"]["evenly"] == evenly.__version__
    # It would fail again, unless something else has changed.
    begun, kept = cheap.begun(), contents(cheap.out)
    assert "as asked for; --retry-failed tries again" in command("run", *options).stdout
    command("run", *options, "--retry-failed", "--plan")
    assert cheap.begun() == begun
    assert contents(cheap.out) == kept
    command("run", *options, "--retry-failed")
    assert cheap.begun() == [*begun, Run(**failed[0]["run"]).name]
    assert [one for one in read_records(cheap.out) if "failed" in one] == failed
    monkeypatch.delenv("SWEEP_FAIL")
    assert " 6 of them are finished" in " ".join(command("run", *options, "--retry-failed").stdout.split())
    assert cheap.begun() == [*begun, *[Run(**failed[0]["run"]).name] * 2]
    assert not any("failed" in one for one in read_records(cheap.out))


def test_a_packed_failure_is_tried_again_too(cheap, tmp_path):
    run = dataclasses.replace(some_runs(1)[0], epochs=60)
    packed = tmp_path / "packed.jsonl"
    packed.write_text(to_text(made_up(run, failed="ValueError: no")) + "\n")
    options = ("--quick", "--model", "mixture", "--method", "std-none", "--out", cheap.out, "--known", packed)
    command("run", *options)
    assert cheap.begun() == []
    command("run", *options, "--retry-failed")
    assert cheap.begun() == [run.name]
    # What is finished is not hidden by the failure that is still there.
    assert not any("failed" in one for one in read_records(packed, cheap.out))


def test_a_failure_that_another_process_is_at_is_left_to_it(tmp_path):
    run = some_runs(1)[0]
    file = tmp_path / f"{run.name}.json"
    file.write_text(to_text(made_up(run, failed="ValueError: no")) + "\n")
    with sweep.claimed(tmp_path / "claims" / run.name) as mine:
        assert mine
        sweep.forget_failed([run], tmp_path)
        assert file.exists()
    sweep.forget_failed([run], tmp_path)
    assert not file.exists()


def test_runs_of_another_revision_are_made_again(cheap, monkeypatch):
    options = ("--quick", "--model", "mixture", "--method", "std-none", "--masks", "1-2", "--out", cheap.out)
    command("run", *options)
    first = cheap.begun()
    assert len(first) == 2
    monkeypatch.setattr(records, "REVISION", records.REVISION + 1)
    done = command("run", *options)
    assert f"the records of 2 runs are of revision {records.REVISION - 1} and not counted" in done.stderr
    assert " 0 of them are finished" in " ".join(done.stdout.split())
    assert cheap.begun() == first * 2
    assert [one["revision"] for one in read_records(cheap.out)] == [records.REVISION] * 2
    done = command("run", *options)
    assert done.stderr == ""
    assert cheap.begun() == first * 2


def test_a_machine_without_the_data_set_is_no_failure_of_the_run(tmp_path):
    run = dataclasses.replace(some_runs(1)[0], dataset="breast")
    with pytest.raises(TableError, match="there is none"):
        list(sweep.run_sweep([run], tmp_path / "runs", folder=tmp_path / "nowhere"))
    assert read_records(tmp_path / "runs") == []


# --- the plan -------------------------------------------------------------------------------------------------

PAPER = {
    "adult": "std-none max-none iqr-none lip-none lip-bern std-gamma lip-gamma",
    "breast": "std-none std-gamma lip-gamma",
    "credit": "std-none max-none iqr-none lip-none lip-bern std-gamma lip-gamma",
    "letter": "std-none lip-bern std-gamma lip-gamma",
    "spam": "std-none max-none iqr-none lip-none std-gamma lip-gamma",
    "wine": "std-none max-none iqr-none lip-none std-gamma lip-gamma",
}
"""The rows of the paper's tables."""
EPOCHS = {"adult": 400, "breast": 3000, "credit": 400, "letter": 400, "spam": 2000, "wine": 2000}


def test_the_plan_is_the_papers_grid(monkeypatch, tmp_path):
    monkeypatch.setenv("EVENLY_DATA", str(tmp_path))
    runs = plan(PAPER)
    cells = {(run.percent, run.dataset, run.model, run.method) for run in runs}
    assert len(cells) == 297  # the paper's tables have as many combinations
    assert len(runs) == len({run.name for run in runs}) == 2970  # ten masks each: none are given
    for name, methods in PAPER.items():
        own = [run for run in runs if run.dataset == name]
        assert list(dict.fromkeys(run.method for run in own)) == methods.split()
        assert {run.model for run in own} == {"mixture", "factorization", "vae"}
        assert {run.percent for run in own} == {10, 20, 50}
        assert {run.epochs for run in own} == {EPOCHS[name]}


def test_the_plan_is_that_of_the_published_cells(data_directory):
    import csv

    file = data_directory.parent / "paper" / "tables.csv"
    if not file.exists():
        pytest.skip("no published tables beside the data sets")
    with file.open() as rows:
        published = {
            (int(row["missing_percent"]), row["dataset"], row["model"], row["method"]) for row in csv.DictReader(rows)
        }
    assert {(run.percent, run.dataset, run.model, run.method) for run in plan(PAPER)} == published


def test_all_given_masks_are_planned_without_reading_the_table(tmp_path):
    (tmp_path / "wine").mkdir()
    given = {f"missing_{percent}": np.zeros((percent // 5, 1, 1), bool) for percent in (10, 20, 50)}
    np.savez(tmp_path / "wine" / "masks.npz", **given)
    runs = plan(["wine"], models=["vae"], methods=["std-none"], folder=tmp_path)
    assert {percent: sum(run.percent == percent for run in runs) for percent in (10, 20, 50)} == {10: 2, 20: 4, 50: 10}
    (tmp_path / "wine" / "masks.npz").write_text("no masks")
    with pytest.raises(TableError, match="expected the arrays missing_10"):
        plan(["wine"], folder=tmp_path)


def test_first_masks_come_first():
    masks = [run.mask for run in plan(PAPER)]
    assert masks == sorted(masks)
    first = plan(PAPER)[:297]
    assert len({(run.percent, run.dataset, run.model, run.method) for run in first}) == 297


def test_the_plan_is_what_is_asked_for():
    asked = plan(PAPER, percents=[50], masks=[2, 4], models=["vae"], methods=["lip-bern", "std-none"], seeds=[3, 5])
    assert len(asked) == (6 + 3) * 2 * 2  # the Bernoulli trick applies to three data sets
    assert {(run.percent, run.model) for run in asked} == {(50, "vae")}
    assert {run.mask for run in asked} == {2, 4}
    assert {run.seed for run in asked} == {3, 5}
    assert {run.epochs for run in plan(PAPER, epochs_fraction=0.1)} == {40, 200, 300}
    assert {run.epochs for run in plan(PAPER, epochs_fraction=1e-9)} == {1}
    assert len(plan(PAPER, masks=[1, 1], models=["vae", "vae"])) == 99  # nothing twice


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"masks": []}, r"the masks \[\], but expected one or more numbers from 1"),
        ({"masks": [0, 1]}, "the masks"),
        ({"seeds": []}, "the seeds"),
        ({"seeds": [2**32]}, "the seeds"),
        ({"epochs_fraction": 0.0}, "fraction of 0.0"),
        ({"epochs_fraction": float("inf")}, "fraction of inf"),
        ({"epochs_fraction": float("nan")}, "fraction of nan"),
    ],
)
def test_a_plan_of_nothing_is_refused(settings, says):
    with pytest.raises(TableError, match=says):
        plan(PAPER, **settings)


def test_time_is_projected_from_the_records_most_alike():
    vae = Run("breast", 20, 1, "vae", "std-none", 0, 3000)

    def took(seconds: float, **changes: Any) -> dict[str, Any]:
        return made_up(dataclasses.replace(vae, **changes), seconds={"fit": seconds, "predict": 9.0})

    records = [took(300.0), took(120.0, mask=2, epochs=600), took(60.0, method="lip-gamma", epochs=100)]
    records.append(made_up(vae, failed="ValueError"))
    whole, alike, rows, none = (
        dataclasses.replace(vae, mask=3),
        dataclasses.replace(vae, method="std-gamma"),
        dataclasses.replace(vae, dataset="adult", epochs=400),
        dataclasses.replace(vae, model="mixture"),
    )
    seconds = project([whole, alike, rows, none], records)
    assert seconds[whole] == pytest.approx(3000 * 0.1 + 9)  # 0.1 and 0.2 s an epoch
    assert seconds[alike] == pytest.approx(3000 * 0.1 + 9)  # 0.1, 0.2 and 0.6
    assert seconds[rows] == pytest.approx((400 * 0.1 + 9) * 32561 / 699)
    assert seconds[none] is None
    usual = project([whole, alike, rows, none], records, median=True)
    assert usual[whole] == pytest.approx(3000 * 0.15 + 9)
    assert usual[alike] == pytest.approx(3000 * 0.2 + 9)
    assert usual[rows] == pytest.approx((400 * 0.2 + 9) * 32561 / 699)
    assert usual[none] is None


def test_records_of_a_data_set_of_ones_own_tell_nothing_of_others():
    own, other = some_runs(1, dataset="mine")[0], some_runs(1)[0]
    record = made_up(own, seconds={"fit": 8.0, "predict": 1.0})
    assert project([own, other], [record]) == {own: 9.0, other: None}


def test_the_plan_is_printed_and_nothing_runs(cheap):
    done = Run(QUICK, 20, 1, "mixture", "std-none", 0, 60)
    record = made_up(done, seconds={"fit": 30.0, "predict": 1.0})
    cheap.out.mkdir()
    (cheap.out / f"{done.name}.json").write_text(to_text(record) + "\n")
    printed = command("run", "--quick", "--model", "mixture", "--masks", "1-2", "--plan", "--out", cheap.out).stdout
    # 31 s each, by the one that is there.
    times = "some 7 min by the quickest recorded times, 7 min by the median ones"
    expected = f"14 runs take {times}, one after the other. 1 of them are finished; the other 13 take {times}."
    assert expected in " ".join(printed.split())
    both = command("run", "--quick", "--model", "mixture", "--model", "vae", "--plan", "--out", cheap.out).stdout
    assert "4 min by the median ones, and 7 of them an unknown time, one after the other." in " ".join(both.split())
    none = command("run", "--quick", "--model", "vae", "--plan", "--out", cheap.out).stdout
    assert "7 runs take an unknown time (no record of such a run), one after the other." in " ".join(none.split())
    assert " 0 s" not in none
    assert cheap.begun() == []
    assert list(contents(cheap.out)) == [f"{done.name}.json"]


def test_the_plan_reads_no_data_set(tmp_path, monkeypatch):
    monkeypatch.setenv("EVENLY_DATA", str(tmp_path / "nowhere"))
    done = command("run", "--plan", "--data", tmp_path / "nowhere either", "--out", tmp_path / "runs")
    assert done.returncode == 0
    assert done.stdout.startswith("2970 runs take an unknown time")
    assert_one_line(command("run", "--out", tmp_path / "runs"), f"got the folder {tmp_path / 'nowhere'}, but there is")
    assert not (tmp_path / "runs").exists()


# --- a record -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def performed() -> dict[str, Any]:
    return sweep.perform(TINY, synthetic())


@pytest.fixture(scope="module")
def record(performed: dict[str, Any]) -> dict[str, Any]:
    """As it is read again."""
    read: dict[str, Any] = json.loads(to_text(performed))
    return read


def test_a_record_has_what_the_tables_and_figures_need(record, tmp_path):
    data = synthetic()
    assert Run(**record["run"]) == TINY
    assert record["revision"] == records.REVISION
    assert record["columns"] == data.columns
    assert record["kinds"] == list(data.kinds.values())
    for name in ("honest", "as_published", "mean_or_mode", "log_likelihood"):
        assert len(record[name]) == 10
        assert all(isinstance(value, float) for value in record[name])
    assert record["points"] == [0, 1, 2, 4, 8, 16, 25]
    assert np.shape(record["elbo"]) == (6,)
    assert np.shape(record["history"]) == (7, 10)
    assert np.shape(record["gradients"]) == np.shape(record["gradient_changes"]) == (7, 10)
    assert all(isinstance(one, int) for one in record["far_off"])
    assert len(record["inferred"]["honest"]) == len(record["inferred"]["far_off"]) == 10
    assert record["not_finite"] == 0
    settings = record["settings"]
    assert (settings["preset"], settings["optimizer"], settings["seed"]) == ("paper", "adam", TINY.seed)
    assert (settings["learning_rate"], settings["batch_size"], settings["epochs"]) == (1e-3, 1024, 25)
    assert settings["sizes"] == {"n_clusters": 5}
    assert list(settings["scales"]) == data.columns
    assert record["tuning"] == {}
    assert record["modelled"] == data.columns
    assert set(record["seconds"]) == {"fit", "predict"}
    assert min(record["seconds"].values()) > 0
    assert {"evenly", "commit", "python", "jax", "numpy"} <= set(record["versions"])
    assert np.shape(record["smoothness"]["before"]) == np.shape(record["smoothness"]["after"]) == (10,)
    assert list(record["marginals"]) == data.columns
    for shares in record["marginals"].values():
        assert sum(shares["data"]) == pytest.approx(1.0, abs=1e-4)
        assert sum(shares["model"]) <= 1.0 + 1e-4
        assert len(shares["ends"]) == len(shares["data"]) + 1
    # At the last point a column's log-likelihood is what the imputer predicts of its observed cells.
    hidden = hidden_mask(data, 20, 1)
    visible = as_table(data, hidden=hidden)
    expected = performing.make_imputer(TINY, data, hidden).fit(visible).log_likelihood(visible)
    assert record["history"][-1] == pytest.approx([expected[name] for name in data.columns], rel=1e-4)
    assert "synthetic 20 % mask 1 mixture lip-bern: honest error 0." in describe_record(record)
    file = tmp_path / "a.json"
    file.write_text(to_text(record) + "\n")
    assert read_records(file) == [record]


def test_the_same_seed_gives_the_same_record(performed):
    again = sweep.perform(TINY, synthetic())
    assert to_text({**again, "seconds": 0}) == to_text({**performed, "seconds": 0})
    other = sweep.perform(dataclasses.replace(TINY, seed=4), synthetic())
    assert to_text({"x": other["elbo"]}) != to_text({"x": performed["elbo"]})


def test_the_errors_are_those_of_the_imputed_table(record):
    """By another way: the table that a user gets, scored by the public function."""
    data = synthetic()
    hidden = hidden_mask(data, 20, 1)
    declared = schema(data, hidden=hidden, zeros="clip")
    imputer = make_imputer("mixture", "lip-bern", preset="paper", schema=declared, epochs=25, random_state=3)
    visible = as_table(data, hidden=hidden)
    imputed = imputer.fit(visible).transform(visible)
    scored = evenly.imputation_error(as_table(data), imputed, hidden, schema=declared)
    rows = {row["column"]: row for row in scored.to_dicts()}
    counts = {"count_1", "count_2"}  # a user gets whole numbers; the record has the model's own
    for j, name in enumerate(data.columns):
        if name not in counts:
            assert record["honest"][j] == pytest.approx(rows[name]["error"], rel=1e-5), name
        assert record["mean_or_mode"][j] == pytest.approx(rows[name]["baseline"], rel=1e-5), name
    for name, kind in (("group", "categorical"), ("answer", "binary")):
        assert rows[name]["kind"] == kind
        own = hidden[:, data.columns.index(name)]
        wrong = imputed[name].to_numpy()[own] != data.values[own, data.columns.index(name)]
        assert record["honest"][data.columns.index(name)] == pytest.approx(wrong.mean(), rel=1e-5)
    # The published way: only the split column differs, the NRMSE of whose codes it is; it is the last one, so that no
    # column before it is scored on another's cells.
    assert record["as_published"][:-1] == record["honest"][:-1]
    assert record["as_published"][-1] != record["honest"][-1]
    # Log-likelihoods of the hidden cells, by the distributions that a user gets.
    found = imputer.distribution(visible)
    own = hidden[:, 0]
    mean, std = (found["real_1"].parameters[name][own] for name in ("mean", "std"))
    x = data.values[own, 0]
    by_hand = np.mean(-0.5 * ((x - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi))
    assert record["log_likelihood"][0] == pytest.approx(by_hand, rel=1e-4)


@pytest.mark.more
def test_without_pictures_a_record_is_small(performed):
    """Only those of the first mask have any: there are thousands of records."""
    assert performed["marginals"]
    assert len(to_text({**performed, "marginals": {}})) < 8000


def test_numbers_keep_six_digits_and_what_is_no_number_is_null():
    text = to_text(
        {
            "a": np.array([1 / 3, np.nan, -np.inf, 123456789.0, 1.5e-12]),
            "b": (np.float32(0.1), np.int64(3), 2, None, "ö", True),
            3: np.arange(2),
        }
    )
    assert text == '{"a":[0.333333,null,null,123457000.0,1.5e-12],"b":[0.1,3,2,null,"ö",true],"3":[0,1]}'
    assert to_text(json.loads(text)) == text


# --- reading and packing --------------------------------------------------------------------------------------


def test_packed_runs_are_not_repeated(cheap, tmp_path):
    options = ("--quick", "--model", "mixture")
    command("run", *options, "--method", "std-none", "--method", "lip-gamma", "--out", cheap.out)
    packed = tmp_path / "packed.jsonl"
    done = command("pack", cheap.out, "--out", packed)
    assert done.stdout == f"2 records in {packed}\n"
    assert len(packed.read_text().splitlines()) == 2
    assert read_records(packed) == read_records(cheap.out)
    begun = cheap.begun()
    elsewhere = tmp_path / "elsewhere"
    printed = command("run", *options, "--known", packed, "--out", elsewhere).stdout
    assert " 2 of them are finished" in " ".join(printed.split())
    new = cheap.begun()[len(begun) :]
    assert len(new) == 5
    assert not set(new) & set(begun)
    assert sorted(contents(elsewhere)) == sorted(f"{name}.json" for name in new)


def test_packing_sorts_keeps_failures_and_repeats_nothing(tmp_path):
    one, two, three = some_runs(3)
    (tmp_path / "a").mkdir()
    for run, content in ((two, {"x": 0.1234567}), (one, {"x": None}), (three, {"failed": "ValueError: no"})):
        (tmp_path / "a" / f"{run.name}.json").write_text(json.dumps(made_up(run, **content)) + "\n")
    assert len(pack_records(tmp_path / "p.jsonl", tmp_path / "a")) == 3
    first = (tmp_path / "p.jsonl").read_bytes()
    assert [json.loads(line).get("x", "failed") for line in first.splitlines()] == [None, 0.123457, "failed"]
    assert (
        len(pack_records(tmp_path / "q.jsonl", tmp_path / "p.jsonl", tmp_path / "a")) == 3
    )  # of equal runs the first counts
    assert (tmp_path / "q.jsonl").read_bytes() == first


def test_a_text_may_hold_any_character(tmp_path):
    """Some of them end a line elsewhere."""
    record = made_up(some_runs(1)[0], warnings=["a\u2028b\x85c\nd\x1ce"])
    file = tmp_path / "a.jsonl"
    file.write_bytes((to_text(record) + "\n" + to_text(record) + "\n").encode())
    assert read_records(file) == [record]


GOOD = to_text(made_up(some_runs(1)[0]))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"{",
        GOOD[:40].encode(),
        b"\xff\xfe\x00",
        b"[]",
        b"3",
        b"null",
        b"{}",
        b'{"run":{"dataset":"adult"}}',
        b'{"run":3}',
        (GOOD + "\n" + GOOD[:-5]).encode(),
        (GOOD + "\n\n" + GOOD).encode(),
    ],
    ids=lambda content: repr(content[:12]),
)
def test_a_damaged_file_is_named(content, tmp_path):
    file = tmp_path / "a.json"
    file.write_bytes(content)
    where, what = (", line 2", "this line") if content.startswith(GOOD.encode()) else ("", "it")
    for place in (tmp_path, file):
        with pytest.raises(
            TableError, match=rf"a\.json{where}: .*expected a record of a run\. Hint: remove {what}: "
        ) as raised:
            read_records(place)
        assert "\n" not in str(raised.value)


def test_a_finished_record_counts_before_a_failed_one_of_the_same_run(tmp_path):
    run = Run("breast", 20, 1, "vae", "std-none", 0, 30)
    for name, record in (("a", made_up(run, failed="ValueError")), ("b", made_up(run))):
        (tmp_path / f"{name}.jsonl").write_text(to_text(record) + "\n")
    for places in (("a", "b"), ("b", "a")):
        packed = pack_records(tmp_path / "all.jsonl", *(tmp_path / f"{name}.jsonl" for name in places))
        assert packed == read_records(tmp_path / "all.jsonl") == [made_up(run)]


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(TableError, match="run `evenly paper run` first"):
        read_records(tmp_path / "nothing")
    (tmp_path / "a.json").mkdir()
    with pytest.raises(TableError, match="IsADirectory"):
        read_records(tmp_path)


# --- clusters -------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(cheap: Cheap) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.mark.more
def test_a_dask_cluster_performs_every_run_once(cluster, cheap, tmp_path, monkeypatch):
    """And with a worker killed in the middle it performs those again that were lost with it: records are the same."""
    runs, more = some_runs(12), some_runs(24, seed=1)
    assert len(list(sweep.run_sweep(runs, tmp_path / "alone"))) == 12
    cheap.log.unlink()
    monkeypatch.chdir(tmp_path)  # the workers were started elsewhere
    done = list(sweep.run_sweep(runs, "runs", backend="dask"))
    assert sorted(run for run, _ in done) == runs
    assert all(record is not None and Run(**record["run"]) == run for run, record in done)
    assert sorted(cheap.begun()) == sorted(run.name for run in runs)
    assert written(cheap.out) == written(tmp_path / "alone")
    assert list(sweep.run_sweep(runs, "runs", backend="dask")) == []

    assert len(list(sweep.run_sweep(more, tmp_path / "alone"))) == 24
    cheap.log.unlink()
    found = []
    for i, (run, record) in enumerate(sweep.run_sweep(more, "runs", backend="dask")):
        found.append((run, record))
        if i == 2:
            os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)
    assert sorted(run for run, _ in found) == more
    # A record that was written, but not yet handed over, is not reported.
    assert sum(record is not None for _, record in found) >= 24 - 2
    assert {Run(**one["run"]) for one in read_records("runs")} == {*runs, *more}
    assert written(cheap.out) == written(tmp_path / "alone")
    begun = Counter(cheap.begun())
    assert set(begun) == {run.name for run in more}
    assert sum(begun.values()) <= 24 + 1  # the one that the killed worker was at


def test_without_a_dask_cluster_it_says_what_to_set(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    with pytest.raises(TableError, match=r"no Dask cluster, but expected a client of one.*DASK_SCHEDULER_ADDRESS"):
        list(sweep.run_sweep(some_runs(1), tmp_path, backend="dask"))


@pytest.mark.parametrize(
    ("backend", "package", "line"),
    [("ray", "ray", '"evenly[ray]"'), ("dask", "distributed", '"evenly[engines]"')],
)
def test_a_missing_backend_names_the_line_that_installs_it(backend, package, line, tmp_path, monkeypatch):
    for name in [one for one in sys.modules if one.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Without(package), *sys.meta_path])
    with pytest.raises(MissingExtraError, match=f"the package '{package}'") as raised:
        list(sweep.run_sweep(some_runs(1), tmp_path, backend=backend))
    assert str(raised.value).endswith(f"pip install {line}")


class _Without:
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


# --- the command line -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("--dataset iris", "got data set 'iris', but expected one of adult, breast"),
        ("--quick --model svm", "got model 'svm', but expected one of "),
        ("--quick --method lip", "got method 'lip', but expected one of std-none"),
        ("--quick --missing 33", "got percentage 33, but expected one of 10, 20, 50"),
        ("--quick --masks x", "got --masks = 'x', but expected numbers such as 1-3"),
        ("--quick --masks 1-2-3", "got --masks = '1-2-3', but expected numbers such as 1-3"),
        ("--quick --dataset adult", "got --quick and --dataset, but expected one of them"),
        ("--quick --masks 0", "got the masks [0], but expected one or more numbers from 1"),
        ("--quick --seeds=-1", "got --seeds = '-1', but expected numbers"),
        ("--quick --epochs-fraction 0", "got --epochs-fraction 0.0, but expected a positive number"),
        ("--quick --epochs-fraction inf", "got an epochs fraction of inf, but expected a positive number"),
        ("--quick --jobs 0", "got 0 jobs, but expected 1 or more"),
        ("--quick --backend slurm", "got backend 'slurm', but expected one of dask, ray"),
        ("--quick --known nowhere.jsonl", "got nowhere.jsonl, but expected a folder or a file of records"),
    ],
)
def test_bad_options_end_in_one_line(options, start, tmp_path):
    assert_one_line(command("run", *options.split(), "--out", tmp_path / "runs"), start)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("out", ["a file/runs", "records.jsonl"])
def test_a_folder_that_cannot_be_made_ends_in_one_line(out, tmp_path):
    (tmp_path / "a file").write_text("kept")
    (tmp_path / "records.jsonl").write_text(GOOD + "\n")
    done = command("run", "--quick", "--out", tmp_path / out)
    assert_one_line(done, f"got the folder {tmp_path / out}, but expected one that can be written to")
    assert (tmp_path / "a file").read_text() == "kept"


def test_packing_to_where_nothing_can_be_written_ends_in_one_line(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(GOOD + "\n")
    done = command("pack", file, "--out", file / "x.jsonl")
    assert_one_line(done, f"got {file}/x.jsonl, but expected a file that can be written to")


@pytest.mark.more
def test_a_process_ends_in_one_line_too(tmp_path):
    """The whole way, from a process of its own."""
    refused(run_process("paper", "run", "--masks", "x", "--quick", "--out", tmp_path / "runs"), "got --masks = 'x'")


# --- the design that tells scale and trick apart --------------------------------------------------------------------


def test_the_design_has_every_pair_of_scale_and_trick_on_the_same_masks_and_seeds() -> None:
    runs = design_runs(Plan(NAMES))
    cells: dict[tuple[Any, ...], set[str]] = {}
    for run in runs:
        cells.setdefault((run.dataset, run.model, run.mask, run.seed, run.epochs, run.optimizer), set()).add(run.method)
    for (dataset, *_), methods in cells.items():
        four = {"std-none", "std-gamma", "lip-gamma"} | ({"lip-none"} if dataset not in ("breast", "letter") else set())
        assert methods >= four
    counts = Counter((run.dataset, run.optimizer, run.epochs) for run in runs if run.method == "lip-gamma")
    assert counts == {
        **{(name, "adam", epochs): 2 * 5 * 2 for name, epochs in (("breast", 3000), ("wine", 2000), ("spam", 2000))},
        **{(name, "adam", 100): 2 * 3 for name in ("letter", "adult", "credit")},
        **{(name, "adam", 400): 2 for name in ("letter", "adult", "credit")},
        **{("breast", "sgd", 3000): 1, ("wine", "sgd", 2000): 1, ("adult", "sgd", 100): 1},
    }
    assert len(set(runs)) == len({run.name for run in runs}) == len(runs)


def test_the_plan_of_the_design_counts_what_has_the_papers_epochs(tmp_path: Path) -> None:
    runs = [run for run in design_runs(Plan(["adult"], masks=[1], models=["vae"])) if run.optimizer == "adam"]
    made = [
        next(run for run in runs if (run.epochs, run.method) == one) for one in ((400, "std-none"), (100, "lip-none"))
    ]
    (tmp_path / "runs").mkdir()
    for run in made:
        text = to_text(made_up(run, seconds={"fit": 9.0 * run.epochs, "predict": 0.0}))
        (tmp_path / "runs" / f"{run.name}.json").write_text(text + "\n")
    options = ("--design", "--dataset", "adult", "--model", "vae", "--masks", "1", "--out", tmp_path / "runs")
    printed = " ".join(command("run", *options, "--plan").stdout.split())
    # Seven methods by Adam and four by gradient descent: 400 epochs of 9 s are an hour.
    assert "adult vae (400 epochs): 1 done, 1 with fewer epochs only, 9 not at all; 10 of them take 10.0 h" in printed


@pytest.mark.more
def test_the_rate_of_gradient_descent_is_tuned_on_validation_cells_alone() -> None:
    data = synthetic()
    run = Run(QUICK, 20, 1, "vae", "std-none", 0, 20, "sgd")
    hidden = hidden_mask(data, 20, 1)
    errors = performing.tune(run, data, hidden)
    assert list(errors) == list(performing.RATES)
    other = dataclasses.replace(data, values=np.where(hidden, np.nan, data.values))  # nothing that is scored later
    assert performing.tune(run, other, hidden) == errors
    record = sweep.perform(run, data)
    best = min(errors, key=errors.__getitem__)
    assert record["settings"]["learning_rate"] == best
    assert list(record["tuning"]) == [f"{rate:g}" for rate in performing.RATES]
