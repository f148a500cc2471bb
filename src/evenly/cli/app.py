"""The application `evenly`, to which every module in `commands/` adds its command."""

import os
import pkgutil
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from evenly._version import __version__


class Alphabetical(TyperGroup):
    """Commands by name, whichever was imported first."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return sorted(super().list_commands(ctx))


app = typer.Typer(
    cls=Alphabetical,
    help="Impute mixed tables, and scale them for probabilistic models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"evenly {__version__}")
        raise typer.Exit


def _leave_colors_out(wanted: bool) -> None:
    if wanted:
        os.environ["NO_COLOR"] = "1"  # what Rich asks for, in this process and in those that it starts


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", callback=_leave_colors_out, is_eager=True, help="Print without colours.")
    ] = False,
) -> None:
    pass


def load_commands() -> None:
    """Import the modules in `commands/`; each registers its command when it is imported."""
    from evenly.cli import commands

    for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        import_module(module.name)
