"""What three papers say of their tables and figures in numbers, and beside it what an experiment's report has.

The other two have statements of their own: `optimistic/statements.py`, `timetravel/statements.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from latecomer.report.shape import Report
from latecomer_lab.slack.prediction import HALVES, MOVED
from latecomer_lab.slack.tuning import TUNER
from latecomer_lab.statements import Statement

_MODELS = {"gaussian": (10, 25), "linear": (20, 26), "isotonic": (19, 26), "svm": (15, 25)}  # Table 1, in per cent
_ONLINE = {"synthetic": (1.3, 2.1), "cloudlog": (1.3, 4.4), "androidlog": (1.3, 7.9)}
_OFFLINE = {"cloudlog": 36, "androidlog": 25}
_QUERIES = ("Q1", "Q2", "Q3", "Q4")
_ADVANCED = (
    ("cloudlog", "throughput", "2.8, 2.7, 2.3, 2.8 times the throughput"),
    ("cloudlog", "memory", "29.8, 29.2, 29.2, 31.5 times less memory"),
    ("androidlog", "throughput", "1.9 to 2.2 times the throughput"),
    ("androidlog", "memory", "1.9 times less memory"),
)


def of_disorder(report: Report) -> list[Statement]:
    """The poster's generator."""
    hit = [row for row in report.results if row["reach"] == "hit"]
    off = max(abs(row["late_percent"] - row["asked_percent"]) for row in hit)
    far = max(hit, key=lambda row: row["delayed_percent"] - row["late_percent"])
    short = sorted((row for row in report.results if row["reach"] != "hit"), key=lambda row: row["late_percent"])
    unreached = (
        f" {len(short)} cannot: short delays overtake few events, {short[0]['distribution']} "
        f"{short[0]['late_percent']:g} % at most, and it says so."
        if short
        else ""
    )
    return [
        Statement(
            "the factor",
            "A stream with a target out-of-order factor, a law of delay, its bounds and a seed.",
            f"{len(hit)} of {len(report.results)} streams have the share that was asked for, within {off:.2f} points; "
            f"for {far['asked_percent']:g} % late with {far['distribution']}, {far['delayed_percent']:g} % are "
            f"delayed.{unreached}",
        ),
        Statement(
            "the seed",
            "The same configuration makes the same stream.",
            "Made twice, the rows were the same." if report.targets[-1].met else "Made twice, some differ.",
        ),
    ]


def of_logs(report: Report) -> list[Statement]:
    """Tables I and II of Impatience."""
    return [
        Statement(
            "Table II" if row["measure"].startswith("kept") else "Table I",
            f"{row['preset']}, {row['measure']}: {row['paper']:,}",
            f"{row['ours']:,}",
        )
        for row in report.results
    ]


def of_sort(report: Report) -> list[Statement]:
    """Figures 7 to 9 of Impatience."""
    found = _by_name(report)
    said = []
    for stream, (least, most) in _ONLINE.items():
        ours = [found[f"impatience / paper's best, {stream} online, {end}"] for end in ("least", "most")]
        paper = f"{stream}, online: {least:g} to {most:g} times as fast as the best of the others."
        said.append(Statement("Figure 8", paper, f"{ours[0]:g} to {ours[1]:g} times."))
    for stream, percent in _OFFLINE.items():
        lead = found[f"impatience / paper's best, {stream} offline"]
        said.append(Statement("Figure 7", f"{stream}, offline: {percent} % ahead.", f"{100 * (lead - 1):.0f} %."))
    for name, words in (("Huffman merge (HM)", "30 %"), ("speculative run selection (SRS)", "15 %")):
        gain = 100 * (found[f"{name}, largest gain"] - 1)
        said.append(Statement("Figure 7", f"{name}: up to {words} faster.", f"Up to {gain:.0f} %."))
    for what, times in (("selection", 7), ("projection", 1.5), ("window", 2.4)):
        gain = found[f"{what} before the sort, largest gain"]
        said.append(Statement("Figure 9", f"{what} before the sort: up to {times:g} times faster.", f"{gain:g} times."))
    return said


def of_tiers(report: Report) -> list[Statement]:
    """Figure 10 of Impatience."""
    found, said = _by_name(report), []
    for log, what, paper in _ADVANCED:
        ours = ", ".join(f"{found[f'{log} {query}: advanced against basic, {what}']:g}" for query in _QUERIES)
        said.append(Statement("Figure 10", f"{log}, advanced against basic, Q1 to Q4: {paper}.", f"{ours}."))
    return said


def of_slack(report: Report) -> list[Statement]:
    """Table 1 and Figures 8, 12 and 13 of Slack-ScaleGate."""
    said = [_model(report.results, *each) for each in _MODELS.items()]
    slowest = max(row["read_ms"] for row in report.results if row.get("figure") == "8")
    said.append(
        Statement("Figure 8", "A read takes less than 0.002 ms with 1 to 8 readers.", f"{slowest:.5f} ms at most.")
    )
    for figure, name in (("Figure 12", "zipf"), ("Figure 13", "constant")):
        found = _by_name(report)
        broken = found[f"{name}: deadline violated, % of intervals"]
        rows, events = (found[f"{name}: {what} / best policy that holds"] for what in ("slack-ready rows", "events"))
        said.append(
            Statement(
                figure,
                f"{name}: the tuner keeps the deadline, and finds most events of all policies that do.",
                f"Broken in {broken:g} % of the intervals; {rows:g} times the uncertain rows of the best policy that "
                f"keeps it, {events:g} times its events ({TUNER}).",
            )
        )
    return said


def _model(results: Iterable[dict[str, Any]], model: str, paper: tuple[int, int]) -> Statement:
    errors = {
        row["tested_on"]: f"{row['latency_error']:.1f} and {row['ready_error']:.1f} %"
        for row in results
        if row.get("figure") == "table 1" and (row["scenario"], row["model"], row["features"]) == ("zipf", model, "all")
    }
    return Statement(
        "Table 1",
        f"{model}: errors of {paper[0]} % (latency) and {paper[1]} % (slack-ready rows).",
        f"{errors[HALVES]} on random halves, as there; {errors[MOVED]} on other days with the pattern moved.",
    )


def _by_name(report: Report) -> dict[str, float]:
    return {target.name: target.value for target in report.targets}
