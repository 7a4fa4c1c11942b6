"""`latecomer reproduce`: the papers' experiments, named after a table, a figure or the paper; most are benches."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import typer
from rich.table import Table

from latecomer.cli.screen import console
from latecomer_lab import bench
from latecomer_lab.optimistic.command import reproduce_optimistic
from latecomer_lab.slack.command import reproduce_slack
from latecomer_lab.timetravel.command import reproduce_timetravel

HELP = "Repeat the experiments of the papers; without a name, list them."


class Reproduction(NamedTuple):
    """An experiment of a paper: what is shown there, the bench that it is, and how long that takes."""

    name: str
    paper: str
    shows: str
    run: Callable[..., None]
    minutes: int

    @property
    def command(self) -> str:
        """As it is typed."""
        return f"latecomer reproduce {self.name}"


REPRODUCTIONS = (
    Reproduction("table1", "Impatience", "Tables I and II: disorder of the two logs", bench.presets, 1),
    Reproduction("figure7", "Impatience", "Figures 5 and 7 to 9: the sort and its competitors", bench.sort, 30),
    Reproduction("figure10", "Impatience", "Figure 10, Table II: Q1 to Q4 with several latencies", bench.tiers, 20),
    Reproduction(
        "slack",
        "Slack-ScaleGate",
        "Figures 1 to 4 and 8 to 13, Table 1: the tuner and four policies",
        reproduce_slack,
        3,
    ),
    Reproduction(
        "optimistic",
        "FlameStream",
        "Figures 9 to 12: what is done twice, and latencies beside buffers",
        reproduce_optimistic,
        3,
    ),
    Reproduction(
        "timetravel",
        "TinTiN",
        "Tables 2 and 3, Figure 5: alerts of smart meters, 40 days late",
        reproduce_timetravel,
        2,
    ),
)

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
    for each in REPRODUCTIONS:
        table.add_row(each.command, each.paper, each.shows, str(each.minutes))
    console.print(table)


def _add(each: Reproduction) -> None:
    minutes = "a minute" if each.minutes == 1 else f"{each.minutes} minutes"
    app.command(each.name, help=f"{each.paper}, {each.shows} (about {minutes}).")(each.run)


for _each in REPRODUCTIONS:
    _add(_each)
