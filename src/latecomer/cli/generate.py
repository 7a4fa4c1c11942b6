"""`latecomer generate`: reproducible disorder from any data set, or a made stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.markup import escape
from rich.table import Table

from latecomer.cli.screen import console, stepping
from latecomer.errors import InputError, must
from latecomer.report.words import duration

if TYPE_CHECKING:
    from latecomer.disorder.generate import Outcome
    from latecomer.recordings import Engine

HELP = """Make a stream come out of order, reproducibly, and hit the asked share of late events.

CONFIG is JSON or TOML with the fields of the poster or friendlier names:

source (dataSource): path (file), format (csv, tsv, json, parquet), separator, header, device (a column, for batched,
outage and drift), bad_rows (error or quarantine), time: field (timeIndex; a name, or a place from 0) and unit
(sourceTimeUnit; ps, ns, us, ms, s, iso).

experiments (experimentDataConfigurations), a list: factor (targetOutOfOrderFactor; per cent of late events), min_delay
and max_delay (minDelay, maxDelay; ms, or text such as "2 s"), seed (delaySeed), name, and distribution: uniform,
half-normal (deviation), exponential (mean), zipf (exponent, ranks), pareto (shape, scale), constant, drift, empirical
(profile), batched, outage (catch_up).

Or name a preset instead: synthetic, cloudlog, androidlog (--events), meters (--meters, --days), traffic (--seconds,
--policy zipf or constant)."""


def generate(
    config: Annotated[Path | None, typer.Argument(help="Configuration, JSON or TOML.", show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder to write to.")] = Path("disorder"),
    format: Annotated[str, typer.Option(help="parquet or csv.")] = "parquet",
    arrival: Annotated[str, typer.Option(help="Name of the added column of arrival times.")] = "arrival",
    event_time: Annotated[str, typer.Option(help="Name of the added column of event times.")] = "event_time",
    engine: Annotated[str, typer.Option(help="auto (by size), python or spark.")] = "auto",
    preset: Annotated[str | None, typer.Option(help="Make this stream instead.")] = None,
    events: Annotated[int | None, typer.Option(help="Size of synthetic, cloudlog, androidlog.")] = None,
    meters: Annotated[int | None, typer.Option(help="Size of meters.")] = None,
    days: Annotated[int | None, typer.Option(help="Length of meters.")] = None,
    seconds: Annotated[int | None, typer.Option(help="Length of traffic.")] = None,
    policy: Annotated[str | None, typer.Option(help="Delays of traffic: zipf or constant.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a preset.")] = None,
) -> None:
    settings = {"events": events, "meters": meters, "days": days, "seconds": seconds, "policy": policy, "seed": seed}
    given = {name: value for name, value in settings.items() if value is not None}
    if (config is None) == (preset is None):
        got = None if config is None else str(config)
        raise InputError(must("generate", "be given a CONFIG or a --preset", got, "give one of the two"))
    if preset is not None:
        if arrival != "arrival" or event_time != "event_time":
            got = arrival if arrival != "arrival" else event_time
            raise InputError(
                must("--arrival and --event-time", "come with a CONFIG", got, "a preset has its own columns")
            )
        _preset(preset, given, out, format, engine)
        return
    if given:
        raise InputError(
            must(f"--{next(iter(given))}", "come with --preset", next(iter(given.values())), "leave it out")
        )
    _experiments(cast(Path, config), out, {"format": format, "arrival": arrival, "event_time": event_time}, engine)


def _preset(name: str, settings: dict[str, Any], out: Path, format: str, engine: str) -> None:
    from latecomer.recordings import generate as write_stream
    from latecomer.recordings import preset

    made = preset(name, **settings)
    with stepping(f"generate {name}", 2) as tell:
        folder = write_stream(made, out, format=cast(Any, format), engine=cast("Engine", engine), tell=tell)
    console.print(f"{made.rows:,} rows asked, written in order of arrival to {escape(str(folder))}", highlight=False)
    command = f"latecomer profile {escape(str(folder))} --time ts --arrival arrival"
    console.print(f"look at them: {command}", highlight=False, soft_wrap=True)  # whole, to be copied


def _experiments(config: Path, out: Path, options: dict[str, Any], engine: str) -> None:
    from latecomer.disorder.config import load_config
    from latecomer.recordings import generate as write_streams

    steps = 1 + 2 * len(load_config(config).experiments)
    with stepping("generate", steps) as tell:
        outcomes = write_streams(config, out, engine=cast("Engine", engine), tell=tell, **options)
    show_outcomes(outcomes)
    report = escape(str(out / "report.json"))
    console.print(f"\nwritten to {escape(str(out))}, one folder each; the figures are in {report}", highlight=False)
    bad = out / "quarantine.parquet"
    if bad.exists():
        console.print(f"[yellow]bad rows are in {escape(str(bad))}[/]", highlight=False)


def show_outcomes(outcomes: list[Outcome]) -> None:
    """What was asked and what came out, and why where the two differ."""
    table = Table(box=None, pad_edge=False)
    table.add_column("experiment", overflow="fold")
    for heading in ("events", "asked %", "late %", "delayed", "mean delay", "max late"):
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in outcomes:
        came = f"{outcome.late_percent:.2f}"
        table.add_row(
            outcome.name,
            f"{outcome.events:,}",
            f"{outcome.asked_percent:g}",
            f"[green]{came}[/]" if outcome.reachable else f"[yellow]{came}[/]",
            f"{outcome.delayed:,}",
            duration(outcome.delay_mean_us),
            duration(outcome.lateness_max_us),
        )
    console.print(table)
    for outcome in outcomes:
        if not outcome.reachable:
            console.print(f"[yellow]{outcome.name}[/]: {explain(outcome)}", highlight=False)


def explain(outcome: Outcome) -> str:
    """Why the asked share was not reached."""
    low, high = (f"{100.0 * count / outcome.events:.2f} %" for count in outcome.around)
    asked = f"{outcome.asked_percent:g} %"
    if outcome.reach == "below own":
        own = 100.0 * outcome.late_in_source / outcome.events
        return f"{asked} is below what is late in the source itself, {own:.2f} %"
    if outcome.reach == "coarse":
        return f"events are delayed many at a time, and no choice makes {asked}; the nearest found are {low} and {high}"
    return (
        f"{asked} cannot be reached with these delays; the reachable maximum is {outcome.late_percent:.2f} % "
        "(longer delays, or a denser stream, make more events late)"
    )
