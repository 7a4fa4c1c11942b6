"""The experiments on a terminal of 80 columns: policies by scenario, and Table 1."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from latecomer_lab.slack.experiments import Found
from latecomer_lab.slack.prediction import MOVED, OTHER_DAYS, of_table
from latecomer_lab.slack.streams import SECOND_US
from latecomer_lab.slack.tuning import Day

NOTE = (
    "Violated: the share of seconds in which a result took longer than the deadline. Slack-ready: rows read before it "
    "was certain that nothing earlier would come. Times best: against the best slack that never changes and holds the "
    "deadline. The tuner has learnt from other days. Errors: root mean square by the range, in per cent."
)


def show_found(found: Found, console: Console) -> None:
    """Print everything but the targets."""
    for days in found.days.values():
        console.print(_policies(days[0]))
        console.print()
    console.print(_models(found))
    console.print()
    console.print(_structures(found))
    if found.live:
        console.print()
        console.print(_live(found))
    console.print(f"\n{NOTE}\n", highlight=False)


def _table(title: str, headings: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    return table


def _policies(day: Day) -> Table:
    title = f"{day.scenario}, deadline {day.deadline_us / SECOND_US:g} s, day {day.seed}"
    table = _table(title, ("policy", "violated", "slack-ready", "times best", "events", "latency"))
    for each in day.tuned.values():
        latency = f"{int(each.intervals.latency_us.max()) / SECOND_US:.2f} s"
        ready, events = f"{each.slack_ready:,}", f"{each.events:,}"
        times = f"{day.times_best(each.policy):.2f}" if each.holds else "-"
        table.add_row(each.policy, f"{100 * each.violated:.1f} %", ready, times, events, latency)
    return table


def _models(found: Found) -> Table:
    headings = ("Table 1, zipf", "features", "other days", "moved 17 s", "fit")
    table = _table("errors of latency / slack-ready rows, %", headings)
    for features in ("all", "paper"):
        moved = of_table(found.scores["zipf"], MOVED, features)
        for model, each in of_table(found.scores["zipf"], OTHER_DAYS, features).items():
            errors = (f"{one.latency_error:.1f} / {one.ready_error:.1f}" for one in (each, moved[model]))
            table.add_row(model, features, *errors, f"{each.seconds_a_fit:.2f} s")
    return table


def _structures(found: Found) -> Table:
    """Figures 8 to 10, side by side: both have as many readers as nodes."""
    headings = ("readers or nodes", "ms a read", "rows/s", "comparisons/s")
    table = _table("Figures 8 to 10: reads from the gate, and a join on several nodes", headings)
    reads = {row["readers"]: row for row in found.structures if row["figure"] == "8"}
    nodes = {row["nodes"]: row for row in found.structures if row["figure"] == "9 and 10"}
    for number, each in nodes.items():
        rows, comparisons = f"{each['rows_per_second']:,}", f"{each['comparisons_per_second']:,}"
        table.add_row(str(number), f"{reads[number]['read_ms']:.5f}", rows, comparisons)
    return table


def _live(found: Found) -> Table:
    first = found.live[0]
    title = f"live on Spark, two stages, deadline {first['deadline_s']:g} s, {first['rows_per_second']:,} rows a second"
    table = _table(title, ("policy", "micro-batches", "violated", "certain", "latency"))
    for row in found.live:
        latency = f"{max(row['latency_s'][-row['micro_batches'] :], default=0.0):.2f} s"
        shares = (f"{row['violated_percent']:.1f} %", f"{row['certain_percent']:.1f} %")
        table.add_row(row["policy"], str(row["micro_batches"]), *shares, latency)
    return table
