"""`latecomer advise`: which way to take for a stream and a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from latecomer.errors import InputError, must

if TYPE_CHECKING:
    from latecomer.advising import Advice


def advise(
    path: PathArgument = None,
    window: WindowOption = "1 hour",
    advance: AdvanceOption = None,
    aggregate: AggregateOption = None,
    deadline: Annotated[str | None, typer.Option(help="An answer so soon after a window's end.")] = None,
    complete: Annotated[float | None, typer.Option(help="Per cent of the windows right in the end.")] = None,
    memory: Annotated[int | None, typer.Option(help="Hold at most so many events.")] = None,
    append_only: Annotated[bool, typer.Option(help="Results cannot be changed once they are written.")] = False,
    from_: Annotated[
        str | None, typer.Option("--from", help="The query in use: \"withWatermark('ts', '1 hour')\".")
    ] = None,
    time: TimeOption = "ts",
    unit: UnitOption = "us",
    arrival: ArrivalOption = None,
    key: KeyOption = None,
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
    json: JsonOption = None,
) -> None:
    """Recommend a strategy for a windowed query on a stream like this one, say what will happen, and show the code.

    Candidates are rehearsed in this process, without Spark; `latecomer compare` runs the same on Spark.
    """
    check_writable(json)
    if complete is not None and not 0 < complete <= 100:
        raise InputError(must("--complete", "be per cent, above 0 and up to 100", complete, "e.g. --complete 99.9"))
    from latecomer.advising import advise as find
    from latecomer.report.advised import advice_report, show_advice

    given = Given(path, preset, profile, {"size": size, "days": days, "seed": seed})
    data = given.stream("advise")
    asked: dict[str, Any] = {"window": window, "advance": advance, "aggregates": aggregate or ["count()"]}
    asked |= {"time": time, "unit": unit, "tick": tick, **given.known(arrival, key, every)}
    asked |= {"max_ahead": max_ahead, "trigger": trigger, "batches": batches, "deadline": deadline}
    asked["memory"] = memory
    asked |= {"complete": None if complete is None else complete / 100, "sink": "append" if append_only else "any"}
    with counting("advise") as tell:
        found: Advice = find(data, **asked, today=from_, tell=tell)
    show_advice(found, console)
    if json is not None:
        advice_report(found, {**given.named, **asked}).write(json)
        console.print(f"written to {json}", highlight=False, markup=False)
