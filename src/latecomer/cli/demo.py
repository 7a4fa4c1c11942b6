"""`latecomer demo`: late data handled on Spark, on one screen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from latecomer.cli.screen import console, working
from latecomer.errors import InputError, must

if TYPE_CHECKING:
    from latecomer.spark.demo import DemoRun

_COLUMNS = {
    "seen": "came",
    "filtered": "filtered",
    "quarantined": "quarantine",
    "late": "too late",
    "given": "given",
    "held": "held",
}


def demo(
    rows: Annotated[int, typer.Option(help="How many readings.")] = 200_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the readings.")] = 7,
    keep: Annotated[Path | None, typer.Option(help="Keep input, lanes and checkpoint in this new folder.")] = None,
) -> None:
    """Send a small disordered stream through the operator and show what left through which door."""
    from latecomer.spark.demo import LATENCY, Demo, run

    if rows < 1_000:
        raise InputError(must("--rows", "be at least 1000", rows, "e.g. --rows 200000"))
    if keep is not None and keep.exists():
        raise InputError(must("--keep", "name a folder that does not exist yet", str(keep), "choose another"))
    if keep is not None and not keep.resolve().parent.is_dir():
        raise InputError(must("--keep", "lie in a folder that exists", str(keep), "make the folder first"))
    with tempfile.TemporaryDirectory(prefix="latecomer-demo-", ignore_cleanup_errors=True) as scratch:
        folder = keep or Path(scratch)
        with working("demo") as tell:
            result = run(Demo(rows, seed), folder.resolve(), tell)
        _show(result, rows, LATENCY)
    if keep is not None:
        console.print(f"Everything is kept in {keep}.", highlight=False)


def _show(result: DemoRun, rows: int, latency: str) -> None:
    console.print(f"\n[bold]{rows:,} meter readings[/], put in order after {latency} on Spark\n", highlight=False)
    table = Table(box=None, pad_edge=False, show_footer=True)
    total = result.total
    table.add_column("micro-batch", footer="all")
    for name, heading in _COLUMNS.items():
        table.add_column(heading, footer=f"[bold]{total[name]:,}[/]", justify="right")
    for number, batch in enumerate(result.batches):
        table.add_row(str(number), *(f"{batch[name]:,}" for name in _COLUMNS))
    console.print(table)
    doors = sum(total[name] for name in ("filtered", "quarantined", "late", "given", "held"))
    agree = "[green]every row has one door[/]" if doors == total["seen"] == rows else "[red]rows are missing[/]"
    order = "[green]in event-time order[/]" if result.in_order else "[red]not in order[/]"
    written = result.written
    console.print(
        f"\n{doors:,} of {rows:,} rows accounted for: {agree}.\n"
        f"{written['results']:,} results written, {order} within each shard.\n"
        f"{written['late']:,} rows came {latency} late or later: lane `late`, with how late and why.\n"
        "Spark's withWatermark would have dropped such rows without a word.\n"
        f"{written['quarantine']:,} rows had no time, or one far in the future: lane `quarantine`.",
        highlight=False,
    )
