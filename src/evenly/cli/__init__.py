"""The command `evenly`: parsing and printing only."""

import os
import sys
from typing import Any

from evenly._support import EvenlyError, require


def main() -> None:
    """Run the command line; whatever Evenly refuses ends in one line and exit code 2, never in a traceback.

    Ctrl-C ends with 130. An unexpected error ends with 1, and with its traceback if `EVENLY_TRACEBACK` is set.
    """
    try:
        require("typer", "tool")
        require("rich", "tool")
        from evenly.cli.app import app, load_commands

        load_commands()
        code = app(standalone_mode=False, prog_name="evenly")
        sys.exit(code if isinstance(code, int) else 0)
    except EvenlyError as error:
        _fail(str(error), 2)
    except BrokenPipeError:  # such as `evenly inspect survey.csv | head -3`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), 2)
    except KeyboardInterrupt:
        _fail("interrupted; nothing more was written", 130)
    except Exception as error:
        if hasattr(error, "format_message"):  # the command line itself is wrong: an unknown option, and the like
            message = error.format_message().rstrip(".")
            command = " ".join(["evenly", *_path(getattr(error, "ctx", None)).split()[1:]])
            _fail(f"{message}; see {command} --help", 2) if message else sys.exit(2)  # help was all it said
        if type(error).__name__ == "Abort":
            _fail("interrupted; nothing more was written", 130)
        if os.environ.get("EVENLY_TRACEBACK"):
            raise
        _fail(f"unexpected {type(error).__name__}: {error}; EVENLY_TRACEBACK=1 shows where", 1)


def _path(context: Any) -> str:
    """Return the command that options were read for, after the name of the program."""
    return str(context.command_path) if context is not None else ""


def _fail(message: str, code: int) -> None:
    print(f"evenly: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
