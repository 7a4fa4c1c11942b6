"""`latecomer reproduce timetravel` as it is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latecomer.cli.screen import check_writable, console, working
from latecomer.errors import InputError, must
from latecomer_lab.screen import show_targets


def reproduce_timetravel(
    meters: Annotated[
        int | None, typer.Option(min=20, help="Meters, each with a reading an hour: 1,000; with --spark 10,000.")
    ] = None,
    days: Annotated[int, typer.Option(min=3, help="Days of readings; late ones come up to 40 days later.")] = 55,
    runs: Annotated[int, typer.Option(min=1, help="Runs of what is timed; their means count.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the readings.")] = 0,
    full: Annotated[
        bool, typer.Option("--full", help="The paper's sizes, 10,000 to 50,000 meters: 57 M readings, hours.")
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also on Spark: a day a micro-batch, and the whole run's memory.")
    ] = False,
    json: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write tables and figures to this file.")] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Draw the main result as SVG.")] = None,
) -> None:
    """Alerts on smart meters whose readings come up to 40 days late, against discarding, waiting and sorted input."""
    from latecomer_lab.timetravel.experiments import FULL, TimeTravelExperiments, run
    from latecomer_lab.timetravel.page import write_page
    from latecomer_lab.timetravel.picture import draw
    from latecomer_lab.timetravel.show import show_results

    for path, option in ((json, "--json"), (html, "--html"), (picture, "--picture")):
        check_writable(path, option)
    if full and meters is not None:
        raise InputError(must("--meters", "not be given with --full", meters, "leave one of them out"))
    sizes = FULL if full else (meters or (10_000 if spark else 1_000),)
    settings = TimeTravelExperiments(sizes, days, seed, runs, spark=spark)
    if not full and sizes[-1] <= 1_000:
        console.print(
            f"{sizes[-1]:,} meters, about two minutes; the paper has 10,000 to 50,000: --full", highlight=False
        )
    with working("reproduce timetravel") as tell:
        report, found = run(settings, tell)
    show_results(report, console)
    show_targets(report)
    if json is not None:
        report.write(json)
    if html is not None:
        write_page(report, html)
    if picture is not None:
        picture.write_text(draw(found.largest), encoding="utf-8")
    for written in filter(None, (json, html, picture)):
        console.print(f"written to {written}")
