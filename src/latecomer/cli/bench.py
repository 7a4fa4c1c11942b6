"""`latecomer bench`: the speed targets, each a ratio inside one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latecomer.cli.screen import check_writable, console, show_report, working
from latecomer.errors import InputError, must
from latecomer.experiments.report import Report

app = typer.Typer(help="Measure speed; every target is a ratio inside one run.", no_args_is_help=True)

JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the report as JSON to this file.")]


@app.callback()
def _bench() -> None:
    """Measure speed; every target is a ratio inside one run."""


@app.command()
def operator(
    rows: Annotated[int, typer.Option(help="Rows in all.")] = 8_000_000,
    batch: Annotated[int, typer.Option(help="Rows in a micro-batch.")] = 800_000,
    rounds: Annotated[int, typer.Option(help="How often every path runs.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rows.")] = 0,
    json: JsonOption = None,
) -> None:
    """How fast rows cross the sharded operator (about 5 minutes)."""
    from latecomer.experiments.operator import OperatorBench, run

    check_writable(json)
    if batch < 2 or rounds < 1 or rows < 6 * batch:
        advice = "e.g. --rows 8000000 --batch 800000 --rounds 2"
        raise InputError(
            must("--rows", "be at least 6 micro-batches, --rounds at least 1", (rows, batch, rounds), advice)
        )
    with working("bench operator") as tell:
        report = run(OperatorBench(rows=rows, batch=batch, rounds=rounds, seed=seed), tell)
    _finish(report, json)


@app.command()
def backlog(
    rows: Annotated[int, typer.Option(help="Rows in the one micro-batch.")] = 50_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rows.")] = 0,
    json: JsonOption = None,
) -> None:
    """Hold one huge micro-batch and account for every row (about 2 minutes)."""
    from latecomer.experiments.backlog import BacklogBench, run

    check_writable(json)
    if rows < 1_000:
        raise InputError(must("--rows", "be at least 1000", rows, "e.g. --rows 50000000"))
    with working("bench backlog") as tell:
        report = run(BacklogBench(rows=rows, seed=seed), tell)
    _finish(report, json)


EventsOption = Annotated[int, typer.Option(min=1_000, help="Events of each preset.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of the events.")]


@app.command()
def profile(
    events: EventsOption = 20_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="The fastest of so many counts.")] = 3,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """How fast the four measures of disorder are, against numpy's stable argsort (about a minute)."""
    from latecomer.experiments.measures import MeasuresBench, run_speed

    check_writable(json)
    with working("bench profile") as tell:
        report = run_speed(MeasuresBench(events, rounds, seed), tell)
    _finish(report, json)


@app.command()
def presets(events: EventsOption = 20_000_000, seed: SeedOption = 0, json: JsonOption = None) -> None:
    """How near cloudlog and androidlog come to the Impatience paper's Tables I and II (about a minute)."""
    from latecomer.experiments.measures import MeasuresBench, run_presets

    check_writable(json)
    with working("bench presets") as tell:
        report = run_presets(MeasuresBench(events, seed=seed), tell)
    _finish(report, json)


@app.command()
def pacing(
    seconds: Annotated[float, typer.Option(min=1, help="How long to play.")] = 6.0,
    speed: Annotated[float, typer.Option(min=0.01, help="Speed factor.")] = 1.0,
    json: JsonOption = None,
) -> None:
    """How exactly playback keeps time, at the source and at the sink (about half a minute)."""
    from latecomer.experiments.pacing import PacingBench, measure_pacing

    check_writable(json)
    with working("bench pacing") as tell:
        report = measure_pacing(PacingBench(seconds=seconds, speed=speed), tell)
    _finish(report, json)


def _finish(report: Report, json: Path | None) -> None:
    show_report(report)
    if json is not None:
        report.write(json)
        console.print(f"\nwritten to {json}")
