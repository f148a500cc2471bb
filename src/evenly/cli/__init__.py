"""The command `evenly`: parsing and printing only."""

import sys

from evenly._support import EvenlyError, MissingExtraError, require


def main() -> None:
    """Run the command line; what Evenly refuses ends in one line and exit code 2, never in a traceback."""
    try:
        require("typer", "tool")
        require("rich", "tool")
        from evenly.cli.app import app

        app()
    except MissingExtraError as error:
        sys.exit(f"evenly: {error}")
    except EvenlyError as error:
        print(f"evenly: {error}", file=sys.stderr)
        sys.exit(2)
