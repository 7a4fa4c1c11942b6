"""`latecomer advise`: which way to take for a stream and a query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latecomer.cli.compare import KEYS, recorded_stream
from latecomer.cli.screen import check_writable, console, counting
from latecomer.errors import InputError, must

if TYPE_CHECKING:
    from latecomer.advising import Advice


def advise(
    path: Annotated[
        Path | None, typer.Argument(help="A recorded stream: CSV, TSV, JSON lines or Parquet.", show_default=False)
    ] = None,
    window: Annotated[str, typer.Option(help="Size of the windows, e.g. '1 hour'.")] = "1 hour",
    advance: Annotated[str | None, typer.Option(help="How often a window begins [its size].")] = None,
    aggregate: Annotated[list[str] | None, typer.Option(help="count(), sum/min/max/mean of a column.")] = None,
    deadline: Annotated[str | None, typer.Option(help="An answer so soon after a window's end.")] = None,
    complete: Annotated[float | None, typer.Option(help="Per cent of the windows right in the end.")] = None,
    memory: Annotated[int | None, typer.Option(help="Hold at most so many events.")] = None,
    append_only: Annotated[bool, typer.Option(help="Results cannot be changed once they are written.")] = False,
    from_: Annotated[
        str | None, typer.Option("--from", help="The query in use: \"withWatermark('ts', '1 hour')\".")
    ] = None,
    time: Annotated[str, typer.Option(help="Column of the event time.")] = "ts",
    unit: Annotated[str, typer.Option(help="Unit of whole numbers: ps, ns, us, ms, s; or iso.")] = "us",
    arrival: Annotated[str | None, typer.Option(help="Column of the arrival time; else rows come in order.")] = None,
    key: Annotated[str | None, typer.Option(help="Column of the key.")] = None,
    tick: Annotated[str, typer.Option(help="Tick of the query.")] = "100 ms",
    max_ahead: Annotated[str | None, typer.Option(help="Set rows aside that are further ahead of arrival.")] = None,
    every: Annotated[str | None, typer.Option(help="How often each key reports, if you know.")] = None,
    preset: Annotated[str | None, typer.Option(help="Make this stream instead of reading one.")] = None,
    size: Annotated[int | None, typer.Option(help="Of a preset: events, meters, or seconds of traffic.")] = None,
    days: Annotated[int | None, typer.Option(help="Length of the preset meters.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a preset.")] = None,
    batches: Annotated[int, typer.Option(help="Into how many micro-batches the stream is cut.")] = 24,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Recommend a strategy for a windowed query on a stream like this one, say what will happen, and show the code.

    Candidates are rehearsed in this process, without Spark; `latecomer compare` runs the same on Spark.
    """
    check_writable(json)
    if complete is not None and not 0 < complete <= 100:
        raise InputError(must("--complete", "be per cent, above 0 and up to 100", complete, "e.g. --complete 99.9"))
    from latecomer.advising import advise as find
    from latecomer.report.advised import advice_report, show_advice

    data = recorded_stream(path, preset, {"size": size, "days": days, "seed": seed}, "advise")
    asked: dict[str, Any] = {"window": window, "advance": advance, "aggregates": aggregate or ["count()"]}
    asked |= {"time": time, "unit": unit, "arrival": arrival, "key": key or KEYS.get(preset or ""), "tick": tick}
    asked |= {"max_ahead": max_ahead, "every": every, "batches": batches, "deadline": deadline, "memory": memory}
    asked |= {"complete": None if complete is None else complete / 100, "sink": "append" if append_only else "any"}
    with counting("advise") as tell:
        found: Advice = find(data, **asked, today=from_, tell=tell)
    show_advice(found, console)
    if json is not None:
        advice_report(found, {"path": None if path is None else path.name, "preset": preset, **asked}).write(json)
        console.print(f"written to {json}", highlight=False, markup=False)
