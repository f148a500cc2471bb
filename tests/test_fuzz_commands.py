"""Damaged files through the commands themselves: a table or one sentence, never an error that nobody foresaw."""

from __future__ import annotations

import sys

import pytest
from test_fuzz import damaged, good_files

from evenly.cli import main

N_FILES = 170


@pytest.mark.parametrize("command", ["inspect", "scale", "diagnose"])
def test_a_damaged_file_is_used_or_refused_in_one_sentence(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EVENLY_TRACEBACK", "1")  # an unforeseen error comes through as it is
    files, path = good_files(tmp_path), tmp_path / "damaged.csv"
    more = {"inspect": ["-q"], "scale": ["-q", "-o", str(tmp_path / "out.csv")], "diagnose": ["-q", "--no-train"]}
    for seed in range(N_FILES):
        path.write_bytes(damaged(files, seed))
        monkeypatch.setattr(sys, "argv", ["evenly", command, str(path), *more[command]])
        with pytest.raises(SystemExit) as ended:
            main()
        said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("evenly: warning: ")]
        assert (ended.value.code, len(said)) in ((0, 0), (2, 1)), (seed, said)
