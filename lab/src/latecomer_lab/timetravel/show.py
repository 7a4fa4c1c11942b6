"""The bench on a terminal of 80 columns: speed, classes of results, delays."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from latecomer.quality import SHARES
from latecomer_lab.report import Report

NOTE = (
    "Classes of the alerts given, against the sorted run; a class in brackets is what of it stands in the end. Held: "
    "the most readings at a time; less: how many times fewer than 1,920 per meter, which waiting holds. Latency: from "
    "an alert's hour to the mark at which it was right; answer: from a late reading to the first replay of anything it "
    "touches, and to the replay of all of it, which the live instance must have given before."
)
_CLASSES = ("exact", "omitted", "different", "duplicate", "spurious")


def show_results(report: Report, console: Console) -> None:
    """Print everything but the targets."""
    for title, rows in (
        ("speed on Spark", [row for row in report.results if "path" in row]),
        ("alerts", [_classes(row) for row in report.results if "exact" in row]),
        ("delays in hours", [_delay(row) for row in report.results if "delay" in row]),
    ):
        console.print(_table(title, rows))
        console.print()
    console.print(f"{NOTE}\n", highlight=False)


def _classes(row: dict[str, Any]) -> dict[str, Any]:
    shown = {"form": row["form"], **{name: row[name] for name in _CLASSES}}
    for name in ("different", "spurious"):
        shown[name] = f"{row[name]:,} ({row[f'{name}_left']:,})"
    return {**shown, "held": row.get("held"), "less": row.get("less"), "cpu_s": row["cpu_s"]}


def _delay(row: dict[str, Any]) -> dict[str, Any]:
    shares = {"most" if share == 100 else f"{share} %": row[f"p{share}_h"] for share in SHARES}
    return {"": f"{row['delay']}, {row['form']}", "of": row["count"], **shares}


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*map(_text, row.values()))
    return table


def _text(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)
