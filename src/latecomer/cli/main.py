"""The command `latecomer`. Errors go to stderr with exit code 2; a traceback only with `--debug`."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Annotated

import typer
from rich.markup import escape

from latecomer._version import __version__
from latecomer.cli import advise, compare, control, demo, generate, profile, tour
from latecomer.cli.extra import add_commands
from latecomer.cli.screen import errors
from latecomer.errors import LatecomerError, LatecomerWarning
from latecomer.extras import needed_for

app = typer.Typer(
    name="latecomer",
    help="Right answers from late data, on Spark.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo.demo)
app.command()(tour.tour)
app.command(help=generate.HELP)(generate.generate)
app.command()(profile.profile)
app.command()(compare.compare)
app.command()(advise.advise)
app.command()(control.control)
add_commands(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"latecomer {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    os.environ["LATECOMER_DEBUG"] = "1" if debug else ""


def main() -> None:
    """Run the command line."""
    logging.getLogger("SQLQueryContextLogger").disabled = True
    warnings.simplefilter("ignore", LatecomerWarning)
    try:
        with needed_for("this command"):
            app()
    except LatecomerError as error:
        if os.environ.get("LATECOMER_DEBUG"):
            raise
        errors.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False)
        sys.exit(2)
