"""`latecomer reproduce optimistic` as it is typed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from latecomer.cli.screen import check_writable, console, working
from latecomer.errors import InputError, must
from latecomer_lab.screen import show_targets


def reproduce_optimistic(
    rates: Annotated[str | None, typer.Option(help="Documents a second, with commas: 100,200,300,400,500,600.")] = None,
    workers: Annotated[int | None, typer.Option(min=2, max=20, help="The most workers of Figure 9: 10.")] = None,
    documents: Annotated[int | None, typer.Option(min=50, help="Documents of a run: 800.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, max=20, help="So many seeds, the worst counts: 3.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    texts: Annotated[Path | None, typer.Option(help="Take the texts of this folder as documents.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="300 documents, two seeds, fewer workers and rates.")] = False,
    json: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the figures to this file.")] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Draw what it does and costs as SVG.")] = None,
) -> None:
    """Answer at once and take back what was wrong, against a buffer before every step: 1 to 10 simulated workers."""
    from latecomer_lab.optimistic.experiments import QUICK, OptimisticExperiments, run
    from latecomer_lab.optimistic.page import write_page
    from latecomer_lab.optimistic.picture import draw
    from latecomer_lab.optimistic.show import show_found

    for path, option in ((json, "--json"), (html, "--html"), (picture, "--picture")):
        check_writable(path, option)
    asked: dict[str, Any] = {"documents": documents, "seeds": seeds, "rates": None if rates is None else _rates(rates)}
    asked["workers"] = None if workers is None else tuple(range(1, workers + 1))
    settings = replace(QUICK if quick else OptimisticExperiments(), seed=seed, texts=texts)
    settings = replace(settings, **{name: value for name, value in asked.items() if value is not None})
    with working("reproduce optimistic") as tell:
        report, found = run(settings, tell)
    show_found(found, console)
    show_targets(report)
    if json is not None:
        report.write(json)
    if html is not None:
        write_page(report, found, html)
    if picture is not None:
        picture.write_text(draw(found), encoding="utf-8")
    for written in filter(None, (json, html, picture)):
        console.print(f"written to {written}")


def _rates(text: str) -> tuple[float, ...]:
    """Numbers with commas between them.

    >>> _rates("100, 250")
    (100.0, 250.0)
    """
    try:
        rates = tuple(float(part) for part in text.split(","))
    except ValueError:
        rates = ()
    if not rates or not all(0 < rate < 1e6 for rate in rates):
        raise InputError(must("--rates", "be numbers above 0 with commas between", text, "e.g. --rates 100,200"))
    return rates
