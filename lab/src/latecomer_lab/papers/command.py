"""`latecomer reproduce all` and `reproduce disorder` as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from latecomer.cli.screen import check_writable, console, working
from latecomer.errors import InputError, must
from latecomer_lab.papers.catalogue import CATALOGUE
from latecomer_lab.screen import show_report

if TYPE_CHECKING:
    from latecomer_lab.papers.experiments import Done


def reproduce_all(
    out: Annotated[Path, typer.Option(help="A folder for the report: index.html, and a page for each experiment.")],
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: within ten minutes instead of hours.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="An experiment alone; may be given again.")] = None,
) -> None:
    """Every table and figure of the five papers in one report, the paper's number beside ours."""
    from latecomer_lab.papers.contents import write_contents
    from latecomer_lab.papers.experiments import run

    names = [each.name for each in CATALOGUE]
    for name in only or []:
        if name not in names:
            raise InputError(must("--only", f"be one of {', '.join(names)}", name, "or leave it out"))
    if out.exists() and not out.is_dir():
        raise InputError(must("--out", "name a folder", str(out), "e.g. --out papers"))
    out.mkdir(parents=True, exist_ok=True)
    chosen = tuple(each for each in CATALOGUE if not only or each.name in only)
    done: list[Done] = []
    with working("reproduce all") as tell:
        for each in run(chosen, quick=quick, tell=tell):
            done.append(each)
            write_contents(done, chosen[len(done) :], out, quick=quick)
    _show(done)
    console.print(f"\nwritten to {out / 'index.html'}")


def _show(done: list[Done]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading, side in (("experiment", "left"), ("shows", "left"), ("targets met", "right"), ("seconds", "right")):
        table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    for each in done:
        targets = each.made.report.targets
        met = f"{sum(target.met for target in targets)} of {len(targets)}"
        table.add_row(each.entry.name, each.entry.shows, met, f"{each.seconds:,.0f}")
    console.print(table)


def reproduce_disorder(
    events: Annotated[int, typer.Option(min=1_000, help="Events of the source.")] = 200_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the delays.")] = 0,
    json: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON to this file.")] = None,
) -> None:
    """Streams with a share of late events, by law of delay: asked for, and made."""
    from latecomer_lab.papers.factor import FactorBench, run

    check_writable(json)
    with working("reproduce disorder") as tell:
        report = run(FactorBench(events, seed), tell)
    show_report(report)
    if json is not None:
        report.write(json)
        console.print(f"\nwritten to {json}")
