"""Windows and macOS: nothing that only Linux has stands on the main paths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "evenly"
ONLY_POSIX = "|".join(
    (
        r"^\s*(?:import|from) (?:fcntl|resource|pwd|grp|termios|tty|pty|posix|syslog)\b",
        r"\bos\.(?:fork|getuid|geteuid|setsid|killpg|uname|sysconf|mkfifo|chown)\b",
        r"\bsignal\.(?:SIGKILL|SIGALRM|SIGHUP|SIGUSR\d|alarm|setitimer)\b",
        r"[\"']/(?:dev|proc|tmp|usr|etc|var)/",
    )
)
KNOWN = {
    "models/cache.py": {'"/proc/'},  # read where it is there, and done without elsewhere
    "io/formats.py": {'"/dev/'},  # names that mean standard input and output where there are such files
    "io/trial.py": {"os.fork", "signal.SIGKILL"},  # behind `hasattr(os, "fork")`
}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_asks_for_nothing_that_only_one_system_has(path):
    found = set(re.findall(ONLY_POSIX, path.read_text(encoding="utf-8"), re.MULTILINE))
    assert found == KNOWN.get(path.relative_to(SOURCE).as_posix(), set())


@pytest.mark.parametrize(
    "line", ["import fcntl", "from resource import getrusage", "    os.fork()", "signal.alarm(3)", "open('/tmp/x')"]
)
def test_such_a_line_would_be_found(line):
    assert re.search(ONLY_POSIX, line, re.MULTILINE)
