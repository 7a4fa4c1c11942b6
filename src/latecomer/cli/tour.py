"""`latecomer tour`: smart meters whose readings come late, through every way to live with that, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from latecomer.cli.screen import check_writable, console, counting
from latecomer.extras import needed_for
from latecomer.report.scoreboard import delay, show_comparison

if TYPE_CHECKING:
    from latecomer.spark.comparing import Comparison

WINDOW, EVERY = "6 hours", "1 hour"
WAYS = (
    "withWatermark('1 hour')",
    "withWatermark('1 hour', mode='update')",
    "reorder('1 hour')",
    "tiers('1 hour', '10 days')",
    "optimistic('10 days')",
    "timetravel('10 days', every='1 hour')",
)


def tour(
    meters: Annotated[int, typer.Option(min=20, help="How many meters.")] = 300,
    days: Annotated[int, typer.Option(min=4, help="For how long.")] = 5,
    batches: Annotated[int, typer.Option(help="Into how many micro-batches the stream is cut.")] = 8,
    seed: Annotated[int, typer.Option(help="Seed of the readings.")] = 3,
    engine: Annotated[str, typer.Option(help="spark, or python: soon, without figures on speed.")] = "spark",
    html: Annotated[Path, typer.Option("--html", help="The report with pictures.")] = Path("report.html"),
) -> None:
    """Send smart meters' readings, some days late, through Spark's watermark and the strategies for one feed."""
    check_writable(html, "--html")
    with needed_for("tour"):
        from latecomer.comparison import compare
        from latecomer.recordings import preset
        from latecomer.report.comparison_page import write_comparison
    console.print(
        f"{meters} meters send a reading an hour for {days} days; some lose contact, and send them when "
        f"it is back.\nHow many readings has each meter in every {WINDOW}? Six ways to ask Spark.",
        highlight=False,
    )
    with counting("tour") as tell:
        made = preset("meters", meters=meters, days=days, seed=seed)
        asked: dict[str, Any] = {"window": WINDOW, "every": EVERY, "key": "meter", "batches": batches, "engine": engine}
        found = compare(made, **asked, aggregates=["count()", "max('reading')"], ways=WAYS, tell=tell)
    show_comparison(found, console)
    write_comparison(found, html)
    for line in _ending(found, html):
        console.print(line, highlight=False)


def _ending(found: Comparison, html: Path) -> list[str]:
    """What it comes to, and what to try next."""
    spark, ours = found.ways[0], found.ways[-1]
    soon = [delay(way.scores.first[1]) for way in (spark, ours)]
    return [
        f"\nSpark's watermark left {spark.doors.gone:,} readings out without a word, and nine of ten windows waited "
        f"{soon[0]} for it.",
        f"Time travel answered within {soon[1]}; {'every window' if ours.scores.exact else 'not every one'} is right.",
        f"Pictures to point at: [bold]{escape(str(html))}[/]",
        "Next, your own stream: [bold]latecomer advise FILE --time ts --arrival came --key id[/]",
    ]
