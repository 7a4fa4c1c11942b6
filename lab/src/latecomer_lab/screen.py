"""A report on the terminal: its results and its targets as tables."""

from __future__ import annotations

from rich.table import Table

from latecomer.cli.screen import console
from latecomer.report.shape import Report


def show_report(report: Report) -> None:
    """Print results and targets as tables."""
    results = Table(title=f"bench {report.name}", title_justify="left", box=None, pad_edge=False)
    for name in report.results[0]:
        results.add_column(name, justify="left" if isinstance(report.results[0][name], str) else "right")
    for row in report.results:
        results.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()))
    console.print(results)
    console.print()
    show_targets(report)


def show_targets(report: Report) -> None:
    """Print what was to be reached."""
    targets = Table(title="targets", title_justify="left", box=None, pad_edge=False)
    for heading, side in (("figure", "left"), ("reached", "right"), ("wanted", "right"), ("", "left")):
        targets.add_column(heading, justify="right" if side == "right" else "left")
    for target in report.targets:
        wanted = f"{'>=' if target.at_least else '<='} {target.target}"
        met = "[green]met[/]" if target.met else "[red]missed[/]"
        targets.add_row(target.name, str(target.value), wanted, met)
    console.print(targets)
