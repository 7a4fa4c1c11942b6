"""The experiments on a terminal of 80 columns: ratios by workers and rate, and latencies of both models."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from latecomer_lab.optimistic.cluster import CHEAP_MESSAGE_US, MESSAGE_US
from latecomer_lab.optimistic.figures import compared, points
from latecomer_lab.optimistic.trials import MANY, OPTIMISTIC, SOME, USUAL_LOAD, Measured

NOTE = (
    "Ratio: (valid + invalid + tombstones) / valid items at the barrier, the largest of all seeds; a dash: load above "
    "1. Latency: from a document's arrival to its update, the median of the seeds. Load: the share of its time that "
    "the busiest worker needs when nothing is done twice."
)

LATENCY_HEADINGS = ("documents/s", "load", "p50", "p75", "p95", "p99")


def show_found(found: Sequence[Measured], console: Console) -> None:
    """Print everything but the targets."""
    console.print(_ratios(found))
    for workers in (MANY, SOME):
        for message_us in (MESSAGE_US, CHEAP_MESSAGE_US):
            console.print()
            console.print(_latencies(found, workers, message_us))
    console.print(f"\n{NOTE}\n", highlight=False)


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def ratio_rows(found: Sequence[Measured]) -> tuple[list[str], list[list[str]]]:
    """Figure 9 as a table: headings, and a row for each number of workers."""
    by_workers = {
        workers: {point.trial.at: point for point in points(found, OPTIMISTIC, workers, MESSAGE_US)}
        for workers in sorted({each.trial.workers for each in found if each.trial.model == OPTIMISTIC})
    }
    ordered = sorted((point.rate, at) for each in by_workers.values() for at, point in each.items() if "/s" in at)
    columns = [*dict.fromkeys(at for _, at in ordered), f"load {USUAL_LOAD:g}"]
    rows = [
        [str(workers), *(f"{each[at].ratio:.3f}" if at in each else "-" for at in columns)]
        for workers, each in by_workers.items()
    ]
    return ["workers", *columns], rows


def _ratios(found: Sequence[Measured]) -> Table:
    headings, rows = ratio_rows(found)
    table = _table("Figure 9: ratio by workers and documents a second", headings)
    for row in rows:
        table.add_row(*row)
    return table


def latency_rows(found: Sequence[Measured], workers: int, message_us: float) -> list[list[str]]:
    """Figure 10 or 12 as a table: rate, load, and percentiles of both models."""
    return [
        [
            f"{ours.rate:.0f}",
            f"{ours.load:.2f}",
            *(_pair(one, other) for one, other in zip(ours.latency_ms, theirs.latency_ms, strict=True)),
        ]
        for ours, theirs in compared(found, workers, message_us)
    ]


def _pair(ours_ms: float, theirs_ms: float) -> str:
    return f"{_short(ours_ms)} / {_short(theirs_ms)}"


def _short(value_ms: float) -> str:
    return f"{value_ms:.1f}" if value_ms < 100 else f"{value_ms:,.0f}"


def _latencies(found: Sequence[Measured], workers: int, message_us: float) -> Table:
    figure = "10" if workers == MANY else "12"
    title = f"Figure {figure}: {workers} workers, messages of {message_us:g} us, ms: optimistic / buffering"
    table = _table(title, LATENCY_HEADINGS)
    for row in latency_rows(found, workers, message_us):
        table.add_row(*row)
    return table
