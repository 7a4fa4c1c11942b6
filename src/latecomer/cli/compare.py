"""`latecomer compare`: one stream, one question, several ways to live with disorder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from latecomer.cli.screen import check_writable, console, counting
from latecomer.cli.stream_options import (
    AdvanceOption,
    AggregateOption,
    AheadOption,
    ArrivalOption,
    BatchesOption,
    DaysOption,
    EveryOption,
    Given,
    JsonOption,
    KeyOption,
    PathArgument,
    PresetOption,
    ProfileOption,
    SeedOption,
    SizeOption,
    TickOption,
    TimeOption,
    TriggerOption,
    UnitOption,
    WindowOption,
)
from latecomer.extras import needed_for


def compare(
    path: PathArgument = None,
    window: WindowOption = "1 hour",
    advance: AdvanceOption = None,
    aggregate: AggregateOption = None,
    way: Annotated[list[str] | None, typer.Option(help="A way as written in code; may be repeated.")] = None,
    time: TimeOption = "ts",
    unit: UnitOption = "us",
    arrival: ArrivalOption = None,
    key: KeyOption = None,
    source: Annotated[str | None, typer.Option(help="Column of the source; adds slack.")] = None,
    tick: TickOption = "100 ms",
    max_ahead: AheadOption = None,
    every: EveryOption = None,
    preset: PresetOption = None,
    profile: ProfileOption = None,
    size: SizeOption = None,
    days: DaysOption = None,
    seed: SeedOption = None,
    trigger: TriggerOption = None,
    batches: BatchesOption = None,
    engine: Annotated[str, typer.Option(help="spark, or python: soon, without figures on speed.")] = "spark",
    json: JsonOption = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with pictures to this file.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw how soon and how right each way is.")] = None,
) -> None:
    """Run one windowed query in several ways on Spark and score each against the sorted stream.

    A way is written as in code: --way "withWatermark('10 minutes', mode='update')", --way "tiers('1 s', '1 hour')",
    --way "timetravel('40 days', every='1 hour', trigger='eager')". Without one, Spark's watermark and all strategies
    run with waits that fit the stream.
    """
    check_writable(json)
    check_writable(html, "--html")
    check_writable(svg, "--svg")
    if html is not None or svg is not None:
        with needed_for("--html" if html is not None else "--svg"):  # wanted before the work, not after it
            from latecomer.report.comparison_page import draw_comparison, write_comparison
    from latecomer.comparison import compare as run
    from latecomer.report.scoreboard import comparison_report, show_comparison

    given = Given(path, preset, profile, {"size": size, "days": days, "seed": seed})
    data = given.stream("compare")
    columns = {"time": time, "unit": unit, "source": source, **given.known(arrival, key, every)}
    asked: dict[str, Any] = {
        "window": window,
        "advance": advance,
        "aggregates": aggregate or ["count()"],
    }
    asked |= {"tick": tick, "max_ahead": max_ahead, "trigger": trigger, "batches": batches, "engine": engine, **columns}
    with counting("compare") as tell:
        found = run(data, **asked, ways=way, tell=tell)
    show_comparison(found, console)
    report = comparison_report(found, {**given.named, **asked})
    for target in report.targets:
        if not target.met:
            console.print(f"[red]not kept:[/] {escape(target.name)}: {target.value:g}", highlight=False)
    if json is not None:
        report.write(json)
    if html is not None:
        write_comparison(found, html)
    if svg is not None:
        draw_comparison(found, svg)
    for file in (json, html, svg):
        if file is not None:
            console.print(f"written to {escape(str(file))}", highlight=False)
    if not all(target.met for target in report.targets):
        raise typer.Exit(1)
