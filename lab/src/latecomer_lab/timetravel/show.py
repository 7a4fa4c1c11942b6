"""The evaluation on a terminal of 80 columns; its tables are those of the page too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from latecomer.quality import SHARES
from latecomer.report.shape import Report
from latecomer_lab.timetravel.figures import SHARE_NAMES
from latecomer_lab.timetravel.paper import TABLE_2, TABLE_3, nearest_size

NOTE = (
    "Table 3: alerts against the sorted run; a class in brackets is what of it stands in the end. 5a, 5b: one machine "
    "without Spark, means of all runs. 5c: from an alert's hour to the mark at which it was right. 5d: from a late "
    "reading's arrival; once ready: from when all that touches its results has come and is complete. Late readings "
    "near the end of the stream do not count."
)
_SHARES = [f"{share:g} %" if share < 100 else "all" for share in SHARES]
_DATA = {"readings": "readings", "late": "late readings", "holes": "holes", "contexts": "contexts with holes"}

Row = dict[str, Any]


class Shown(NamedTuple):
    """A table: title, headings, rows of text."""

    title: str
    headings: Sequence[str]
    rows: list[list[str]]


def tables(report: Report) -> dict[str, Shown]:
    """All tables by the paper's number."""
    rows = report.results
    shown = {"2": _table_2(rows), "3": _table_3(rows)}
    shown["5a"] = _plain("5a: readings a second", _of(rows, "5a"), "readings_per_s", "day_s", "spread")
    shown["5b"] = _plain("5b: ms of an hour's micro-batch", _of(rows, "5b"), "batch_ms", "added_ms", "slowest_run_ms")
    shown["5c"] = _plain("5c: logical latency, hours", _of(rows, "5c"), "count", *SHARE_NAMES)
    shown["5d"] = _plain("5d: responsiveness, hours", _of(rows, "5d"), "to", "count", "never", *SHARE_NAMES)
    shown["5e"] = _plain(
        "5e: readings held", _of(rows, "5e"), "held", "at_end", "at_end_per_meter", "less", "less_at_end"
    )
    on_spark = [row for row in rows if row.get("on") == "spark"]
    if on_spark:
        columns = ("batch_s", "rows_per_s", "share_of_light", "peak_mb")
        shown["spark"] = _plain("on Spark", [{**row, "form": row["path"]} for row in on_spark], *columns)
    return shown


def show_results(report: Report, console: Console) -> None:
    """Print everything but the targets."""
    for shown in tables(report).values():
        table = Table(title=shown.title, title_justify="left", box=None, pad_edge=False)
        for place, heading in enumerate(shown.headings):
            table.add_column(heading, justify="right" if place else "left", overflow="fold")
        for row in shown.rows:
            table.add_row(*row)
        console.print(table)
        console.print()
    console.print(f"{NOTE}\n", highlight=False)


def _of(rows: Iterable[Row], figure: str) -> list[Row]:
    return [row for row in rows if row.get("figure") == figure and "on" not in row]


def _table_2(rows: Iterable[Row]) -> Shown:
    """Here, and the paper's for as many meters."""
    found, shown = [row for row in rows if row.get("table") == "2"], []
    for row in found:
        size = nearest_size(row["meters"])
        for name, words in _DATA.items():
            there = round(getattr(TABLE_2[size], name) * row["meters"] / size)
            shown.append([f"{row['meters']:,} meters: {words}", text(row[name]), text(there)])
        shown.append([f"{row['meters']:,} meters: seconds of this run", text(row["run_s"]), ""])
        shown.append([f"{row['meters']:,} meters: peak memory, MB", text(row["peak_mb"]), ""])
    scaled = ", scaled" if any(row["meters"] not in TABLE_2 for row in found) else ""
    return Shown("Table 2: the readings", ("", "here", f"the paper{scaled}"), shown)


def _table_3(rows: Iterable[Row]) -> Shown:
    """Here, and the paper's for the nearest number of meters."""
    shown = []
    for row in (row for row in rows if row.get("table") == "3"):
        size = nearest_size(row["meters"])
        shown.append([f"{row['form']}, {row['meters']:,}", *_classes(row)])
        there = TABLE_3[size].get(row["form"])
        if there is not None:
            counts = (there.exact, there.omitted, 0, there.duplicate)
            shown.append([f"  the paper, {size:,}", *map(text, counts), ""])
    headings = ("form, meters", "exact", "omitted", "different", "duplicate", "spurious")
    return Shown("Table 3: alerts", headings, shown)


def _classes(row: Row) -> list[str]:
    different, spurious = (f"{row[name]:,} ({row[f'{name}_left']:,})" for name in ("different", "spurious"))
    return [text(row["exact"]), text(row["omitted"]), different, text(row["duplicate"]), spurious]


def _plain(title: str, rows: list[Row], *names: str) -> Shown:
    words = {**dict(zip(SHARE_NAMES, _SHARES, strict=True)), "readings_per_s": "readings/s", "rows_per_s": "rows/s"}
    several = len({row["meters"] for row in rows}) > 1
    headings = ["form", *(words.get(name, name.replace("_", " ")) for name in names)]
    shown = [
        [f"{row['form']}, {row['meters']:,}" if several else row["form"], *(text(row.get(name)) for name in names)]
        for row in rows
    ]
    return Shown(title, headings, shown)


def text(value: object) -> str:
    """A value as it is shown."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".") if value < 1_000 else f"{value:,.0f}"
    return "" if value is None else str(value)
