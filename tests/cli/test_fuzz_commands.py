"""Damaged files through the commands themselves: a table or one sentence, never an error that nobody foresaw."""

from __future__ import annotations

import pytest
from commands import run
from sizes import examples
from test_fuzz import damaged, good_files

N_FILES = examples(170)


@pytest.mark.sized
@pytest.mark.parametrize("command", ["inspect", "scale", "diagnose"])
def test_a_damaged_file_is_used_or_refused_in_one_sentence(command, tmp_path):
    environment = {"EVENLY_TRACEBACK": "1"}  # an unforeseen error comes through as it is
    files, path = good_files(tmp_path), tmp_path / "damaged.csv"
    more = {"inspect": ["-q"], "scale": ["-q", "-o", "out.csv"], "diagnose": ["-q", "--no-train"]}
    for seed in range(N_FILES):
        path.write_bytes(damaged(files, seed))
        done = run(command, path, *more[command], folder=tmp_path, environment=environment)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("evenly: warning: ")]
        assert (done.returncode, len(lines)) in ((0, 0), (2, 1)), (seed, lines)
