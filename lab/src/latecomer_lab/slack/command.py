"""`latecomer reproduce slack` as it is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latecomer.cli.screen import check_writable, console, working
from latecomer_lab.screen import show_targets


def reproduce_slack(
    days: Annotated[int, typer.Option(min=1, max=50, help="Days to tune on, for each scenario.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="One day, shorter, without other tuners.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Run a query on Spark too: five minutes more.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The day before the first that is tuned on.")] = 0,
    json: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the pictures to this file.")] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Draw the first day of rush as SVG.")] = None,
) -> None:
    """Hold a deadline with as few uncertain rows as possible: the paper's policies and tuner, in simulated time."""
    from latecomer_lab.slack.experiments import SlackExperiments, run
    from latecomer_lab.slack.page import write_page
    from latecomer_lab.slack.show import show_found

    check_writable(json)
    check_writable(html, "--html")
    check_writable(picture, "--picture")
    settings = SlackExperiments(seed, 1 if quick else days, quick, live)
    with working("reproduce slack") as tell:
        report, found = run(settings, tell)
    show_found(found, console)
    show_targets(report)
    if json is not None:
        report.write(json)
        console.print(f"\nwritten to {json}")
    if html is not None:
        write_page(report, found, html)
        console.print(f"written to {html}")
    if picture is not None:
        from latecomer_lab.slack.picture import draw_day

        picture.write_text(draw_day(found.days["rush"][0]))
        console.print(f"written to {picture}")
