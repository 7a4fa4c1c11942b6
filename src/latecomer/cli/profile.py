"""`latecomer profile`: how disordered a recorded stream is."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.markup import escape

from latecomer.cli.screen import check_writable, console, working
from latecomer.extras import needed_for


def profile(
    path: Annotated[Path, typer.Argument(help="CSV, TSV, JSON lines or Parquet, plain or .gz; a file or a folder.")],
    time: Annotated[str, typer.Option(help="Column of the event time; a number is a place from 0.")],
    unit: Annotated[
        str, typer.Option(help="Unit of whole numbers: ps, ns, us, ms, s; or iso for dates as text.")
    ] = "us",
    arrival: Annotated[str | None, typer.Option(help="Column of the arrival time, in the same unit.")] = None,
    key: Annotated[str | None, typer.Option(help="Column of the key.")] = None,
    source: Annotated[str | None, typer.Option(help="Column of the source.")] = None,
    period: Annotated[str | None, typer.Option(help="How often each key reports, e.g. '1 hour': finds holes.")] = None,
    tick: Annotated[
        str | None, typer.Option(help="With --arrival: tick of the query [100 ms]; '0 s': each row by itself.")
    ] = None,
    max_ahead: Annotated[
        str | None, typer.Option(help="With --arrival: set rows aside that are further ahead of it, e.g. '1 hour'.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="csv, tsv, json or parquet; else by the ending.")] = None,
    separator: Annotated[str | None, typer.Option(help="Of CSV.")] = None,
    header: Annotated[bool | None, typer.Option(help="Whether CSV has a header.")] = None,
    quarantine: Annotated[bool, typer.Option(help="Count rows without a usable time instead of stopping.")] = False,
    engine: Annotated[str, typer.Option(help="auto (by size), python or spark.")] = "auto",
    json: Annotated[Path | None, typer.Option("--json", help="Write the numbers to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with pictures to this file.")] = None,
) -> None:
    """Measure the disorder of a recorded stream: lateness, what a wait would keep, runs, inversions, sources, holes.

    Rows come in file order, or by --arrival. All numbers are exact.
    """
    from latecomer.recordings import profile as measure
    from latecomer.report.terminal import show_profile

    check_writable(json)
    check_writable(html, "--html")
    if html is not None:
        with needed_for("--html"):
            import_module("latecomer.report.charts")  # what draws is wanted before the work, not after it
            from latecomer.report.html import write_html
    with working("profile") as tell:
        tell("measuring")
        found = measure(
            path,
            time=int(time) if time.isdecimal() else time,
            unit=unit,
            arrival=arrival,
            key=key,
            source=source,
            period=period,
            tick=tick,
            max_ahead=max_ahead,
            format=cast(Any, check_format(format)),
            separator=separator,
            header=header,
            quarantine=quarantine,
            engine=cast(Any, engine),
        )
        if json is not None:
            found.write(json)
        if html is not None:
            tell("drawing")
            write_html(found, html)
    show_profile(found, console)
    for file in (json, html):
        if file is not None:
            console.print(f"written to {escape(str(file))}", highlight=False)


def check_format(format: str | None) -> str | None:
    """One of the formats, or an error that lists them."""
    from latecomer.errors import InputError, must

    if format not in (None, "csv", "tsv", "json", "parquet"):
        raise InputError(must("--format", "be csv, tsv, json or parquet", format, "choose one"))
    return format
