"""`latecomer bench`: the speed targets, each a ratio inside one run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from latecomer.cli.screen import check_writable, console, working
from latecomer.errors import InputError, must
from latecomer.report.shape import Report
from latecomer_lab.screen import show_report, show_targets

app = typer.Typer(help="Measure speed; every target is a ratio inside one run.", no_args_is_help=True)

JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the report as JSON to this file.")]
RowsOption = Annotated[int, typer.Option(help="Rows in all.")]
BatchOption = Annotated[int, typer.Option(min=1, help="Rows in a micro-batch.")]
RoundsOption = Annotated[int, typer.Option(min=1, help="How often every path runs.")]
WarmOption = Annotated[int, typer.Option(min=0, help="Rounds before them that do not count: a JVM goes on compiling.")]
RowSeedOption = Annotated[int, typer.Option(min=0, help="Seed of the rows.")]
EventsOption = Annotated[int, typer.Option(min=1_000, help="Events of each preset.")]
EventSeedOption = Annotated[int, typer.Option(min=0, help="Seed of the events.")]


@app.callback()
def _bench() -> None:
    """Measure speed; every target is a ratio inside one run."""


@app.command()
def operator(
    rows: RowsOption = 8_000_000,
    batch: BatchOption = 800_000,
    rounds: RoundsOption = 2,
    seed: RowSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """How fast rows cross the sharded operator (about 5 minutes)."""
    from latecomer_lab.operator import OperatorBench, run

    check_writable(json)
    _check_batches(rows, batch, rounds)
    with working("bench operator") as tell:
        report = run(OperatorBench(rows=rows, batch=batch, rounds=rounds, seed=seed), tell)
    _finish(report, json)


@app.command()
def reorder(
    rows: RowsOption = 8_000_000,
    batch: BatchOption = 800_000,
    rounds: RoundsOption = 2,
    warm: WarmOption = 3,
    seed: RowSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """How fast a stream is put in order on Spark (about 7 minutes)."""
    from latecomer_lab.reorder import ReorderBench, run

    check_writable(json)
    _check_batches(rows, batch, rounds)
    with working("bench reorder") as tell:
        report = run(ReorderBench(rows=rows, batch=batch, rounds=rounds, warm=warm, seed=seed), tell)
    _finish(report, json)


@app.command()
def slack(
    rows: Annotated[int, typer.Option(min=1_000, help="Rows in a micro-batch.")] = 200_000,
    rounds: RoundsOption = 3,
    seed: RowSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """What the gate costs beside the sort, and a second shard is worth to a join (about a minute)."""
    from latecomer_lab.slack.speed import SlackBench, run

    check_writable(json)
    with working("bench slack") as tell:
        report = run(SlackBench(rows=rows, rounds=rounds, seed=seed), tell)
    _finish(report, json)


@app.command()
def optimistic(
    rows: Annotated[
        int | None, typer.Option(min=8_000, help="Rows in a micro-batch; 400,000, on Spark 800,000.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="How often every path runs; 7, on Spark 2.")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Whole queries on Spark instead (about 14 minutes).")] = False,
    seed: RowSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """What results at once cost beside a fold that keeps no history (about two minutes)."""
    from latecomer_lab.optimistic import on_spark, speed

    check_writable(json)
    with working("bench optimistic") as tell:
        if spark:
            report = on_spark.run(on_spark.SparkBench(rows or 800_000, rounds=rounds or 2, seed=seed), tell)
        else:
            report = speed.run(speed.OptimisticBench(rows or 400_000, rounds=rounds or 7, seed=seed), tell)
    _finish(report, json)


@app.command()
def advise(
    file: Annotated[
        list[str] | None, typer.Option(help="Also PATH,TIME,ARRIVAL,KEY,WINDOW of a recorded stream, in microseconds.")
    ] = None,
    append_only: Annotated[bool, typer.Option("--append-only", help="For sinks that take no second answer.")] = False,
    windows: Annotated[
        float | None, typer.Option("--deadline-windows", min=0.1, help="With a deadline of so many windows.")
    ] = None,
    seed: EventSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """What advice promises against what happens on Spark, on six made streams (about 15 minutes)."""
    from latecomer_lab.advised import AdviseBench, run

    check_writable(json)
    for text in file or []:
        if text.count(",") != 4:
            advice = "e.g. --file readings.parquet,ts,received_at,meter,'1 hour'"
            raise InputError(must("--file", "be PATH,TIME,ARRIVAL,KEY,WINDOW", text, advice))
    with working("bench advise") as tell:
        settings = AdviseBench(24, 12, seed, "append" if append_only else "any", windows, tuple(file or ()))
        report = run(settings, tell)
    _finish(report, json)


@app.command()
def backlog(
    rows: Annotated[int, typer.Option(help="Rows in the one micro-batch.")] = 50_000_000,
    seed: RowSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Hold one huge micro-batch and account for every row (about 2 minutes)."""
    from latecomer_lab.backlog import BacklogBench, run

    check_writable(json)
    if rows < 1_000:
        raise InputError(must("--rows", "be at least 1000", rows, "e.g. --rows 50000000"))
    with working("bench backlog") as tell:
        report = run(BacklogBench(rows=rows, seed=seed), tell)
    _finish(report, json)


@app.command()
def profile(
    events: EventsOption = 20_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="The fastest of so many counts.")] = 3,
    seed: EventSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """How fast the four measures of disorder are, against numpy's stable argsort (about a minute)."""
    from latecomer_lab.measures import MeasuresBench, run_speed

    check_writable(json)
    with working("bench profile") as tell:
        report = run_speed(MeasuresBench(events, rounds, seed), tell)
    _finish(report, json)


@app.command()
def presets(events: EventsOption = 20_000_000, seed: EventSeedOption = 0, json: JsonOption = None) -> None:
    """How near cloudlog and androidlog come to the Impatience paper's Tables I and II (about a minute)."""
    from latecomer_lab.measures import MeasuresBench, run_presets

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
    from latecomer_lab.pacing import PacingBench, measure_pacing

    check_writable(json)
    with working("bench pacing") as tell:
        report = measure_pacing(PacingBench(seconds=seconds, speed=speed), tell)
    _finish(report, json)


@app.command()
def window(
    rows: RowsOption = 8_000_000,
    batch: BatchOption = 800_000,
    rounds: RoundsOption = 2,
    warm: WarmOption = 1,
    seed: RowSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """How fast hopping windows are on Spark, against Spark's own (about 16 minutes)."""
    from latecomer_lab.window import WindowBench, run

    check_writable(json)
    _check_batches(rows, batch, rounds)
    with working("bench window") as tell:
        report = run(WindowBench(rows=rows, batch=batch, rounds=rounds, warm=warm, seed=seed), tell)
    _finish(report, json)


@app.command()
def tiers(
    events: EventsOption = 20_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often every form runs.")] = 3,
    seed: EventSeedOption = 0,
    json: JsonOption = None,
) -> None:
    """What several latencies at once cost and save: the paper's Q1 to Q4 on both logs (about 20 minutes)."""
    from latecomer_lab.tiers import TiersBench, run

    check_writable(json)
    with working("bench tiers") as tell:
        report = run(TiersBench(events, rounds, seed), tell)
    _finish(report, json)


@app.command()
def timetravel(
    meters: Annotated[int, typer.Option(min=1, help="Meters, each with a reading an hour.")] = 1_000,
    days: Annotated[int, typer.Option(min=2, help="Days of readings; from 40 on, windows that wait close.")] = 55,
    rounds: RoundsOption = 3,
    warm: WarmOption = 6,
    batch_days: Annotated[int, typer.Option(min=1, help="Days of readings in a micro-batch.")] = 7,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the readings.")] = 0,
    keys: Annotated[
        int | None,
        typer.Option(min=100, help="Instead: what a batch costs that touches 1 % of so many keys (a minute)."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Alerts on meters whose readings come up to 40 days late: repaired, discarded, waited for (about 15 minutes)."""
    from latecomer_lab.timetravel.bench import TimeTravelBench, run
    from latecomer_lab.timetravel.keys import KeysBench, run_keys

    check_writable(json)
    if keys is not None:
        with working("bench timetravel --keys") as tell:
            report = run_keys(KeysBench(keys, seed=seed), tell)
        _finish(report, json)
        return
    settings = TimeTravelBench(meters, days, batch_days, rounds, warm, seed)
    with working("bench timetravel") as tell:
        report = run(settings, tell)
    _finish(report, json)


@app.command()
def sort(
    events: EventsOption = 20_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often the faster competitors run.")] = 3,
    cell_seconds: Annotated[float, typer.Option(min=0.1, help="After so long a competitor stops.")] = 30.0,
    only: Annotated[str | None, typer.Option(help="synthetic, cloudlog or androidlog.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="As --events 1000000 --rounds 1 --cell-seconds 2.")] = False,
    seed: EventSeedOption = 0,
    json: JsonOption = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the paper's figures to this file.")] = None,
) -> None:
    """How fast the sorter is against the paper's competitors and today's libraries (about half an hour)."""
    from latecomer_lab.sorting.bench import QUICK, SortBench, run
    from latecomer_lab.sorting.data import LATENCY_US
    from latecomer_lab.sorting.page import write_page
    from latecomer_lab.sorting.show import show_measured

    check_writable(json)
    check_writable(html, "--html")
    if only is not None and only not in LATENCY_US:
        raise InputError(must("--only", f"be one of {', '.join(LATENCY_US)}", only, "or leave it out"))
    chosen = (only,) if only else tuple(LATENCY_US)
    asked = SortBench(events, rounds, cell_seconds, seed, chosen)
    settings = replace(QUICK, seed=seed, only=chosen) if quick else asked
    with working("bench sort") as tell:
        report, found = run(settings, tell)
    show_measured(found, console)
    show_targets(report)
    _write(report, json)
    if html is not None:
        write_page(report, found, html)
        console.print(f"written to {html}")


def _check_batches(rows: int, batch: int, rounds: int) -> None:
    """Enough micro-batches that some count after the first ones."""
    if batch < 2 or rounds < 1 or rows < 6 * batch:
        advice = "e.g. --rows 8000000 --batch 800000 --rounds 2"
        raise InputError(
            must("--rows", "be at least 6 micro-batches, --rounds at least 1", (rows, batch, rounds), advice)
        )


def _finish(report: Report, json: Path | None) -> None:
    show_report(report)
    _write(report, json)


def _write(report: Report, json: Path | None) -> None:
    if json is not None:
        report.write(json)
        console.print(f"\nwritten to {json}")
