"""All commands in one place."""

from typing import Annotated

import typer

from evenly._version import __version__
from evenly.cli.compare import compare
from evenly.cli.demo import demo
from evenly.cli.diagnose import diagnose
from evenly.cli.impute import impute, report
from evenly.cli.inspect import inspect
from evenly.cli.paper import paper
from evenly.cli.scale import scale, unscale

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


for command in (inspect, diagnose, scale, unscale, impute, compare, report, demo):
    app.command()(command)
app.add_typer(paper, name="paper")
