"""Options of the commands that read a recorded stream, or make one, and ask a windowed query of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from latecomer.errors import InputError, must

if TYPE_CHECKING:
    import pyarrow as pa

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
ProfileOption = Annotated[
    Path | None, typer.Option(help="Make a stream as late as this file of latecomer profile --json says.")
]
SizeOption = Annotated[int | None, typer.Option(help="Of a preset: events, meters, or seconds of traffic.")]
DaysOption = Annotated[int | None, typer.Option(help="Length of the preset meters.")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of a preset.")]
TriggerOption = Annotated[str | None, typer.Option(help="How often the query runs: cuts micro-batches by arrival.")]
BatchesOption = Annotated[int | None, typer.Option(help="Or into how many micro-batches the stream is cut.")]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")]


class Given(NamedTuple):
    """Where a stream comes from: a file, a preset with its sizes and seed, or a profile."""

    path: Path | None
    preset: str | None
    profile: Path | None
    made: dict[str, Any]

    def stream(self, command: str) -> Path | MadeStream | pa.Table:
        """The file, or the stream that is made."""
        sources = [str(each) for each in (self.path, self.preset, self.profile) if each is not None]
        if len(sources) != 1:
            rule = "be given a PATH, a --preset or a --profile"
            raise InputError(must(command, rule, " and ".join(sources) or None, "give one of them"))
        given = {name: value for name, value in self.made.items() if value is not None}
        if self.preset is None and given:
            raise InputError(must(f"--{next(iter(given))}", "come with --preset", sources[0], "leave it out"))
        if self.path is not None:
            return self.path
        if self.profile is not None:
            from latecomer.disorder.like_profile import like_profile

            return like_profile(self.profile)
        from latecomer.recordings import preset as make

        if "size" in given:
            given[_SIZES.get(str(self.preset), "events")] = given.pop("size")
        return make(str(self.preset), **given)

    def known(self, arrival: str | None, key: str | None, every: str | None) -> dict[str, str | None]:
        """The columns of arrival and key, and how often keys report, where that is known."""
        if self.profile is None:
            return {"arrival": arrival, "key": key or KEYS.get(self.preset or ""), "every": every}
        from latecomer.disorder.like_profile import every_of_profile

        return {"arrival": "arrival", "key": "key", "every": every or every_of_profile(self.profile)}

    @property
    def named(self) -> dict[str, str | None]:
        """What it is called in a report."""
        names = {"path": self.path, "profile": self.profile}
        return {**{name: None if each is None else each.name for name, each in names.items()}, "preset": self.preset}
