"""All commands in one place."""

from typing import Annotated

import typer

from evenly._version import __version__
from evenly.cli.demo import demo
from evenly.cli.paper import paper

app = typer.Typer(
    help="Make probabilistic models learn every column of a mixed table.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"evenly {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command()(demo)
app.add_typer(paper, name="paper")
