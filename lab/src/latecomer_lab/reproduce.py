"""`latecomer reproduce`: the papers' experiments, named after a table, a figure or the paper; most are benches."""

from __future__ import annotations

from collections.abc import Callable

import typer
from rich.table import Table

from latecomer.cli.screen import console
from latecomer_lab import bench
from latecomer_lab.optimistic.command import reproduce_optimistic
from latecomer_lab.papers.catalogue import CATALOGUE, Entry
from latecomer_lab.papers.command import reproduce_all, reproduce_disorder
from latecomer_lab.slack.command import reproduce_slack
from latecomer_lab.timetravel.command import reproduce_timetravel

HELP = "Repeat the experiments of the papers; without a name, list them."


_RUN: dict[str, Callable[..., None]] = {
    "disorder": reproduce_disorder,
    "table1": bench.presets,
    "figure7": bench.sort,
    "figure10": bench.tiers,
    "slack": reproduce_slack,
    "optimistic": reproduce_optimistic,
    "timetravel": reproduce_timetravel,
}

app = typer.Typer(help=HELP, invoke_without_command=True)


@app.callback()
def _list(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        show_reproductions()


def show_reproductions() -> None:
    """What there is, in a table."""
    table = Table(box=None, pad_edge=False)
    for heading in ("command", "paper", "shows"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "command")
    table.add_column("minutes", justify="right")
    for each in CATALOGUE:
        table.add_row(each.command, each.paper, each.shows, str(each.minutes))
    console.print(table)


def _add(each: Entry) -> None:
    minutes = "a minute" if each.minutes == 1 else f"{each.minutes} minutes"
    app.command(each.name, help=f"{each.paper}, {each.shows} (about {minutes}).")(_RUN[each.name])


for _each in CATALOGUE:
    _add(_each)
app.command("all", help="All of these in one report (hours; with --quick within 10 minutes).")(reproduce_all)
