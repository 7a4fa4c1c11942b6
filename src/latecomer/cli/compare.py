"""`latecomer compare`: one stream, one question, several ways to live with disorder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from latecomer.cli.screen import check_writable, console, counting
from latecomer.errors import InputError, must
from latecomer.extras import needed_for

if TYPE_CHECKING:
    from latecomer.recordings import MadeStream

KEYS = {"synthetic": "key", "cloudlog": "server", "androidlog": "phone", "meters": "meter", "traffic": "area"}
_SIZES = {"meters": "meters", "traffic": "seconds"}


def compare(
    path: Annotated[
        Path | None, typer.Argument(help="A recorded stream: CSV, TSV, JSON lines or Parquet.", show_default=False)
    ] = None,
    window: Annotated[str, typer.Option(help="Size of the windows, e.g. '1 hour'.")] = "1 hour",
    advance: Annotated[str | None, typer.Option(help="How often a window begins [its size].")] = None,
    aggregate: Annotated[
        list[str] | None, typer.Option(help="count(), sum/min/max/mean of a column [count()].")
    ] = None,
    way: Annotated[list[str] | None, typer.Option(help="A way as written in code; may be repeated.")] = None,
    time: Annotated[str, typer.Option(help="Column of the event time.")] = "ts",
    unit: Annotated[str, typer.Option(help="Unit of whole numbers: ps, ns, us, ms, s; or iso.")] = "us",
    arrival: Annotated[str | None, typer.Option(help="Column of the arrival time; else rows come in order.")] = None,
    key: Annotated[str | None, typer.Option(help="Column of the key.")] = None,
    source: Annotated[str | None, typer.Option(help="Column of the source; adds slack.")] = None,
    tick: Annotated[str, typer.Option(help="Tick of the query.")] = "100 ms",
    max_ahead: Annotated[str | None, typer.Option(help="Set rows aside that are further ahead of arrival.")] = None,
    every: Annotated[str | None, typer.Option(help="How often each key reports: for time travel.")] = None,
    preset: Annotated[str | None, typer.Option(help="Make this stream instead of reading one.")] = None,
    size: Annotated[int | None, typer.Option(help="Of a preset: events, meters, or seconds of traffic.")] = None,
    days: Annotated[int | None, typer.Option(help="Length of the preset meters.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a preset.")] = None,
    batches: Annotated[int, typer.Option(help="Into how many micro-batches the stream is cut.")] = 24,
    engine: Annotated[str, typer.Option(help="spark, or python: soon, without figures on speed.")] = "spark",
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with pictures to this file.")] = None,
) -> None:
    """Run one windowed query in several ways on Spark and score each against the sorted stream.

    A way is written as in code: --way "withWatermark('10 minutes', mode='update')", --way "tiers('1 s', '1 hour')",
    --way "timetravel('40 days', every='1 hour', trigger='eager')". Without one, Spark's watermark and all strategies
    run with waits that fit the stream.
    """
    check_writable(json)
    check_writable(html, "--html")
    if html is not None:
        with needed_for("--html"):  # what draws is wanted before the work, not after it
            from latecomer.report.comparison_page import write_comparison
    from latecomer.comparison import compare as run
    from latecomer.report.scoreboard import comparison_report, show_comparison

    data = recorded_stream(path, preset, {"size": size, "days": days, "seed": seed}, "compare")
    columns = {"time": time, "unit": unit, "arrival": arrival, "key": key or KEYS.get(preset or ""), "source": source}
    asked: dict[str, Any] = {
        "window": window,
        "advance": advance,
        "aggregates": aggregate or ["count()"],
        "every": every,
    }
    asked |= {"tick": tick, "max_ahead": max_ahead, "batches": batches, "engine": engine, **columns}
    with counting("compare") as tell:
        found = run(data, **asked, ways=way, tell=tell)
    show_comparison(found, console)
    report = comparison_report(found, {"path": None if path is None else path.name, "preset": preset, **asked})
    for target in report.targets:
        if not target.met:
            console.print(f"[red]not kept:[/] {escape(target.name)}: {target.value:g}", highlight=False)
    if json is not None:
        report.write(json)
    if html is not None:
        write_comparison(found, html)
    for file in (json, html):
        if file is not None:
            console.print(f"written to {escape(str(file))}", highlight=False)


def recorded_stream(path: Path | None, preset: str | None, made: dict[str, Any], command: str) -> Path | MadeStream:
    """The file, or the made stream."""
    if (path is None) == (preset is None):
        got = None if path is None else str(path)
        raise InputError(must(command, "be given a PATH or a --preset", got, "give one of the two"))
    given = {name: value for name, value in made.items() if value is not None}
    if path is not None:
        if given:
            raise InputError(must(f"--{next(iter(given))}", "come with --preset", str(path), "leave it out"))
        return path
    from latecomer.recordings import preset as make

    if "size" in given:
        given[_SIZES.get(str(preset), "events")] = given.pop("size")
    return make(str(preset), **given)
