"""The records of runs are read, packed and shown without what makes them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("polars")

from evenly._support.errors import EvenlyWarning, TableError
from evenly.paper import records
from evenly.paper.records import pack_records, read_records
from evenly.paper.tables import render_tables

WITHOUT_JAX = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "optax", "equinox", "filelock"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import evenly.paper.figures
from evenly.cli import main
for command in sys.argv[1:]:
    sys.argv = ["evenly", "paper", *command.split("|")]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (command, ended.code)
"""


CURRENT = records.REVISION


@pytest.fixture(autouse=True)
def first_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that do not tell are of the first revision, which is the current one in these tests."""
    monkeypatch.setattr(records, "REVISION", 1)


def record_of(mask: int = 1, **content: Any) -> dict[str, Any]:
    run = {"dataset": "breast", "percent": 20, "mask": mask, "model": "vae", "method": "std-none", "seed": 0}
    scored = {"kinds": ["count"], "honest": [0.25], "as_published": [0.25], "mean_or_mode": [0.5]}
    return {"run": {**run, "epochs": 3000}, **scored, "seconds": {"fit": 60.0, "predict": 1.0}, **content}


def write(folder: Path, *records: dict[str, Any]) -> Path:
    folder.mkdir()
    for i, record in enumerate(records):
        (folder / f"{i}.json").write_text(json.dumps(record) + "\n")
    return folder


@pytest.mark.more
def test_without_jax_records_are_packed_shown_and_planned_with(tmp_path):
    made = [record_of(mask, revision=CURRENT) for mask in (1, 2)]
    runs, packed = write(tmp_path / "runs", *made), tmp_path / "packed.jsonl"
    plan = f"run|--quick|--model|vae|--plan|--out|{runs}"
    commands = [f"pack|{runs}|--out|{packed}", f"tables|{packed}", plan]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAX, *commands], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"2 records in {packed}\n")
    assert "0.250" in done.stdout
    assert "7 runs" in done.stdout


# --- revisions ----------------------------------------------------------------------------------------------------


def test_records_of_other_revisions_are_left_out_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "REVISION", 3)
    some = (record_of(1), record_of(2, revision=3), record_of(3, revision=2), record_of(4, revision=2, failed="x"))
    runs = write(tmp_path / "runs", *some)
    with pytest.warns(EvenlyWarning, match=r"of 3 runs are of revision 1, 2 and not counted: revision 3 .* again"):
        assert [one["run"]["mask"] for one in read_records(runs)] == [2]


def test_a_record_that_does_not_tell_is_of_the_first_revision(tmp_path, monkeypatch):
    runs = write(tmp_path / "runs", record_of(1), record_of(2, revision=1))
    assert len(read_records(runs)) == 2
    monkeypatch.setattr(records, "REVISION", 2)
    with pytest.warns(EvenlyWarning, match="of 2 runs are of revision 1 "):
        assert read_records(runs) == []


def test_a_run_that_was_made_again_counts_without_a_word(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "REVISION", 2)
    old, new = write(tmp_path / "old", record_of(1)), write(tmp_path / "new", record_of(1, revision=2))
    assert read_records(old, new) == read_records(new, old) == [record_of(1, revision=2)]
    assert len(pack_records(tmp_path / "packed.jsonl", old, new)) == 1


# --- packing ------------------------------------------------------------------------------------------------------


def test_tables_of_packed_records_say_which_runs_failed(tmp_path):
    failed = {"run": record_of(2)["run"], "failed": "ValueError: no"}
    runs, packed = write(tmp_path / "runs", record_of(1), failed), tmp_path / "packed.jsonl"
    assert pack_records(packed, runs) == [record_of(1), failed]
    assert "Left out, runs that failed: breast vae std-none (1)." in render_tables(read_records(packed))


def test_nothing_is_packed_of_nothing(tmp_path):
    with pytest.raises(TableError, match="no record of a run, but expected some"):
        pack_records(tmp_path / "packed.jsonl", write(tmp_path / "runs"))
