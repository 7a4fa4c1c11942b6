"""Options of the commands that read a recorded stream, or make one, and ask a windowed query of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latecomer.errors import InputError, must

if TYPE_CHECKING:
    from latecomer.recordings import MadeStream

KEYS = {"synthetic": "key", "cloudlog": "server", "androidlog": "phone", "meters": "meter", "traffic": "area"}
_SIZES = {"meters": "meters", "traffic": "seconds"}

PathArgument = Annotated[
    Path | None, typer.Argument(help="A recorded stream: CSV, TSV, JSON lines or Parquet.", show_default=False)
]
WindowOption = Annotated[str, typer.Option(help="Size of the windows, e.g. '1 hour'.")]
AdvanceOption = Annotated[str | None, typer.Option(help="How often a window begins [its size].")]
AggregateOption = Annotated[list[str] | None, typer.Option(help="count(), sum/min/max/mean of a column [count()].")]
TimeOption = Annotated[str, typer.Option(help="Column of the event time.")]
UnitOption = Annotated[str, typer.Option(help="Unit of whole numbers: ps, ns, us, ms, s; or iso.")]
ArrivalOption = Annotated[str | None, typer.Option(help="Column of the arrival time; else rows come in order.")]
KeyOption = Annotated[str | None, typer.Option(help="Column of the key.")]
TickOption = Annotated[str, typer.Option(help="Tick of the query.")]
AheadOption = Annotated[str | None, typer.Option(help="Set rows aside that are further ahead of arrival.")]
EveryOption = Annotated[str | None, typer.Option(help="How often each key reports, if you know: for time travel.")]
PresetOption = Annotated[str | None, typer.Option(help="Make this stream instead of reading one.")]
SizeOption = Annotated[int | None, typer.Option(help="Of a preset: events, meters, or seconds of traffic.")]
DaysOption = Annotated[int | None, typer.Option(help="Length of the preset meters.")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of a preset.")]
TriggerOption = Annotated[str | None, typer.Option(help="How often the query runs: cuts micro-batches by arrival.")]
BatchesOption = Annotated[int | None, typer.Option(help="Or into how many micro-batches the stream is cut.")]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")]


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
