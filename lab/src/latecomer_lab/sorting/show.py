"""The cells on a terminal of 80 columns: a table per stream, rates in millions of events per second."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from latecomer.report.words import counted, duration, short_number
from latecomer_lab.sorting.bench import Measured
from latecomer_lab.sorting.cells import Cell
from latecomer_lab.sorting.competitors import COMPETITORS, IMPATIENCE, PRODUCT, Kind
from latecomer_lab.sorting.operators import Gain

LEADS = (
    (IMPATIENCE, "impatience / paper", (Kind.PAPER,)),
    (PRODUCT, "latecomer / any", (Kind.PAPER, Kind.MODERN)),
)
NOTE = (
    "Millions of events per second, the median of the rounds; ± is half the distance from the slowest to the fastest "
    "in per cent; * did not get to the end. A lead compares what both have done. No lead counts `from end` (merges in "
    "place) and `carrying` (impatience with payloads moving along)."
)


def show_measured(found: Measured, console: Console) -> None:
    """Print everything but the targets."""
    for stream in dict.fromkeys(cell.stream for cell in found.cells):
        late = counted(found.removed[stream], "event")
        console.print(_table(stream, late, [cell for cell in found.cells if cell.stream == stream]))
        console.print()
    console.print(f"{NOTE}\n", highlight=False)
    console.print(_gains(found.gains))
    console.print()


def _table(stream: str, late: str, cells: list[Cell]) -> Table:
    title = f"{stream}, events per punctuation ({late} too late)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1))
    table.add_column("")
    for cell in cells:
        table.add_column("offline" if cell.every is None else short_number(cell.every), justify="right")
    for each in COMPETITORS:
        if each.online:
            table.add_row(each.name, *(_rate(cell, each.name) for cell in cells))
    table.add_section()
    for name, heading, kinds in LEADS:
        table.add_row(heading, *(f"{cell.lead(name, kinds):.2f}" for cell in cells), style="bold")
    return table


def _rate(cell: Cell, name: str) -> str:
    if name not in cell.runs:
        return ""
    rates = cell.rates(name)
    median = cell.rate(name)
    spread = f"±{50 * (max(rates) - min(rates)) / median:.0f}" if len(rates) > 1 else ""
    stopped = "" if all(run.whole for run in cell.runs[name]) else "*"
    return f"{short_rate(median)}{spread}{stopped}"


def short_rate(rate: float) -> str:
    """Millions per second, two figures at least.

    >>> [short_rate(rate) for rate in (51_200_000, 4_560_000, 51_000)]
    ['51', '4.6', '0.05']
    """
    millions = rate / 1e6
    return f"{millions:.{0 if millions >= 10 else 1 if millions >= 1 else 2}f}"


def _gains(gains: list[Gain]) -> Table:
    """Figure 9: a row per operator and setting, a column per stream."""
    streams = list(dict.fromkeys(gain.stream for gain in gains))
    title = "operator before the sort: times faster the sort is (offline)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("", "", *streams):
        table.add_column(heading, justify="right" if heading else "left")
    for operator, setting in dict.fromkeys((gain.operator, gain.setting) for gain in gains):
        found = {gain.stream: gain.speedup for gain in gains if (gain.operator, gain.setting) == (operator, setting)}
        table.add_row(operator, in_words(operator, setting), *(f"{found[stream]:.2f}" for stream in streams))
    return table


def in_words(operator: str, setting: float) -> str:
    """A setting of an operator as people say it.

    >>> in_words("selection", 0.05), in_words("projection", 1), in_words("window", 10_000)
    ('5 % kept', '1 of 4 fields', '10 ms')
    """
    if operator.startswith("selection"):
        return f"{100 * setting:g} % kept"
    return f"{setting:g} of 4 fields" if operator.startswith("projection") else duration(int(setting))
