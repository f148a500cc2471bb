"""Environments of peers: made once, run through files, and clear about why they cannot."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import peer_environments as environments
from peer_environments import Environment, Failed

WORKER = """
import json, os, sys
import numpy as np
job, folder = sys.argv[1:]
assert "PYTHONPATH" not in os.environ
if job == "fail":
    raise ValueError("no such job")
settings = json.load(open(folder + "/settings.json"))
visible = np.load(folder + "/visible.npy")
np.save(folder + "/filled.npy", [np.nan_to_num(visible, nan=i) for i in range(settings["tables"])])
json.dump({"package": job}, open(folder + "/notes.json", "w"))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An environment that is this one, with a worker that fills in the number of the table."""
    monkeypatch.setattr(environments, "WORKER", tmp_path / "worker.py")
    monkeypatch.setattr(Environment, "make", lambda self: Path(sys.executable))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "worker.py").write_text(WORKER)
    return Environment("here", ())


def test_tables_and_notes_come_back_from_the_worker(here):
    tables, notes = here.impute("count", np.array([[1.0, np.nan]]), {"tables": 2})
    assert [one.tolist() for one in tables] == [[[1.0, 0.0]], [[1.0, 1.0]]]
    assert notes == {"package": "count"}


def test_a_worker_that_fails_says_why_in_one_line(here):
    with pytest.raises(Failed, match=r"^here: ValueError: no such job$"):
        here.impute("fail", np.zeros((1, 1)), {})


def test_an_environment_is_made_once_and_again_only_if_it_was_not_completed(tmp_path, monkeypatch):
    monkeypatch.setenv("EVENLY_ENVIRONMENTS", str(tmp_path))
    made: list[str] = []

    def run(command, what):
        made.append(what)
        one.folder.mkdir(exist_ok=True)
        if what == "pip" and len(made) < 3:
            raise Failed("pip: no such package")

    monkeypatch.setattr(environments, "run", run)
    one = Environment("numbers", ("numpy==2.0.0",))
    with pytest.raises(Failed, match="no such package"):
        one.make()
    assert one.make() == one.make() == one.folder / "bin" / "python"
    assert made == ["venv", "pip"] * 2
    assert one.folder != Environment("numbers", ("numpy==2.1.0",)).folder


def test_the_worker_knows_the_job_of_every_peer():
    from peer_imputers import PEERS, Elsewhere
    from peer_worker import JOBS

    jobs = {peer.job for peer in PEERS.values() if issubclass(peer, Elsewhere) and not peer.unable}
    assert jobs == set(JOBS)
    settings = [peer.settings for peer in PEERS.values() if issubclass(peer, Elsewhere)]
    assert all(json.dumps(dict(one)) for one in settings)
