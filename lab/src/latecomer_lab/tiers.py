"""The paper's section VI-D: what the framework costs and saves, on the four queries Q1 to Q4 and both logs.

`advanced` holds partial results and folds every event once; `basic` holds events and runs the query on every tier;
`min` and `max` sort with the shortest and the longest latency alone and run the query once. All are machines over a
store in memory, pushed 10,000 events and one punctuation at a time; memory is the bytes of state, the most there were.
Only the columns that a query needs are pushed. The clock is the processor's, around `push` and `finish`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.disorder.presets import preset
from latecomer.errors import LatecomerError
from latecomer.events import TICK_FIELD, EventBatch, Int64s, Layout, int64_view, take_rows
from latecomer.outputs import TIER, Lane, Output, changes_of, plain_results
from latecomer.report.shape import Report, Target
from latecomer.runner import Runner
from latecomer.tiers import Ordered, Tiers
from latecomer.windows import AggregateFunction, Count, TopK, Window, WindowAggregation

EVERY = 10_000
LATENCIES = {"cloudlog": ("1 second", "1 minute", "1 hour"), "androidlog": ("10 minutes", "1 hour", "1 day")}
WINDOWS = {"cloudlog": "2 minutes", "androidlog": "1 hour"}
COMPLETE = {"cloudlog": {0: 98.1, 2: 100.0}, "androidlog": {0: 20.5, 2: 92.2}}  # Table II, percent by tier
FORMS = ("advanced", "basic", "min", "max")
_FASTER = {"cloudlog": (2.8, 2.7, 2.3, 2.8), "androidlog": (1.9, 1.9, 1.9, 1.9)}
_SMALLER = {"cloudlog": (29.8, 29.2, 29.2, 31.5), "androidlog": (1.9, 1.9, 1.9, 1.9)}
_TO_MAX, _SMALLER_THAN_MAX = 0.9, 27.0
_MIXER = np.uint64(0x9E3779B97F4A7C15)


class Query(NamedTuple):
    """One of the paper's queries: what to count per window, and by what."""

    name: str
    groups: int | None
    key: tuple[str, ...]
    aggregates: tuple[AggregateFunction, ...]


QUERIES = (
    Query("Q1", None, (), (Count(),)),
    Query("Q2", 100, ("group",), (Count(),)),
    Query("Q3", 1_000, ("group",), (Count(),)),
    Query("Q4", 100, (), (TopK("group", 5),)),
)


@dataclass(frozen=True)
class TiersBench:
    """Sizes of the run."""

    events: int = 20_000_000
    rounds: int = 3
    seed: int = 0


class Measured(NamedTuple):
    """One run of a query in one form."""

    seconds: float
    most_bytes: int
    late: int
    folded: list[int]  # events in the answers of each tier, where they are counted
    checksums: list[int]  # of the answers of each tier


def run(settings: TiersBench, tell: Callable[[str], None]) -> Report:
    """All queries in all forms on both logs."""
    report = Report("tiers", {**asdict(settings), "every": EVERY, "latencies": LATENCIES, "windows": WINDOWS})
    for name in LATENCIES:
        ts_us, number = _log(name, settings)
        for query in QUERIES:
            for form in FORMS:
                measure(name, query, form, ts_us[: 2 * EVERY], number[: 2 * EVERY])  # to compile and to warm up
            found: dict[str, list[Measured]] = {form: [] for form in FORMS}
            for place in range(settings.rounds):
                for form in FORMS:
                    tell(f"{name}, {query.name}, round {place + 1} of {settings.rounds}: {form}")
                    found[form].append(measure(name, query, form, ts_us, number))
            check_same(name, query, found)
            report.results += [_row(name, query, form, len(ts_us), found[form]) for form in FORMS]
            report.targets += _targets(name, query, found)
            if query is QUERIES[0]:
                report.settings[f"events_by_tier_{name}"] = found["advanced"][0].folded
        report.targets += _completeness(name, len(ts_us), report.settings[f"events_by_tier_{name}"])
    return report


def _log(name: str, settings: TiersBench) -> tuple[Int64s, Int64s]:
    """Times in order of arrival, and a number per event to group by."""
    table = preset(name, events=settings.events, seed=settings.seed).table()
    return int64_view(table["ts"].combine_chunks()), table[table.column_names[-1]].combine_chunks().to_numpy()


def _settings(name: str, query: Query, form: str) -> Tiers | Ordered:
    latencies, window = LATENCIES[name], Window(WINDOWS[name], WINDOWS[name])
    if form == "advanced":
        return Tiers(latencies, window, query.aggregates, lateness="event")  # the paper's split, as the basic form
    chosen = {"basic": latencies, "min": latencies[:1], "max": latencies[-1:]}[form]
    return Ordered(chosen, WindowAggregation(window, query.aggregates))


def measure(name: str, query: Query, form: str, ts_us: Int64s, number: Int64s) -> Measured:
    """Push the events of a log through one form of a query."""
    settings, layout = _settings(name, query, form), Layout("ts", query.key)
    runner = Runner(settings, layout)
    seconds, most_bytes, late = 0.0, 0, 0
    folded, checksums = [0] * len(settings.latencies), [0] * len(settings.latencies)
    for batch in _batches(query, layout, ts_us, number):
        pushed = runner.push(batch)
        seconds += pushed.seconds
        most_bytes = max(most_bytes, sum(chunk.size for chunk in runner.store.chunks))
        late += _count(pushed.outputs, folded, checksums)
    started = time.process_time()
    outputs = runner.finish()
    seconds += time.process_time() - started
    _count(outputs, folded, checksums)
    return Measured(seconds, most_bytes, late, folded, checksums)


def _batches(query: Query, layout: Layout, ts_us: Int64s, number: Int64s) -> Iterator[EventBatch]:
    for tick, start in enumerate(range(0, len(ts_us), EVERY)):
        piece = slice(start, start + EVERY)
        columns = {"ts": pa.array(ts_us[piece])}
        if query.groups is not None:
            columns["group"] = pa.array((number[piece] % query.groups).astype(np.int32))
        rows = pa.RecordBatch.from_pydict(columns)
        yield EventBatch(rows.append_column(TICK_FIELD, pa.array(np.full(rows.num_rows, tick))), layout)


def _count(outputs: list[Output], folded: list[int], checksums: list[int]) -> int:
    """Add up how many events the answers of each tier tell of, and their checksums; how many are late."""
    late = 0
    for output in outputs:
        if output.lane is Lane.LATE:
            late += len(output)
            continue
        rows = take_rows(output.rows, np.flatnonzero(changes_of(output.rows) >= 0))
        if rows.num_rows == 0:
            continue
        place = int(rows.column(TIER)[0].as_py()) - 1  # an output is of one tier
        answers = plain_results(rows)
        checksums[place] = (checksums[place] + checksum(answers)) % 2**64
        if "count" in answers.schema.names:
            folded[place] += int(answers.column("count").to_numpy().sum())
    return late


def checksum(rows: pa.RecordBatch) -> int:
    """A number that depends on all values of all rows, but not on the order of the rows."""
    mixed = np.zeros(rows.num_rows, dtype=np.uint64)
    for column in rows.columns:
        mixed = (mixed ^ _numbers(column)) * _MIXER
        mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))


def _numbers(column: pa.Array) -> npt.NDArray[np.uint64]:
    """A number for each value: whole numbers are their own."""
    if pa.types.is_integer(column.type) and column.null_count == 0:
        whole: npt.NDArray[np.uint64] = column.to_numpy().astype(np.int64).view(np.uint64)
        return whole
    return np.array([crc32(repr(value).encode()) for value in column.to_pylist()], dtype=np.uint64)


def check_same(name: str, query: Query, found: dict[str, list[Measured]]) -> None:
    """All forms must give the same answers, in every round: those with one latency are the first and the last tier."""
    first = found["advanced"][0]
    tiers = {"advanced": first.checksums, "basic": first.checksums}
    tiers |= {"min": first.checksums[:1], "max": first.checksums[-1:]}
    for form, runs in found.items():
        late = {run.late for run in runs} if form == "min" else {first.late}  # the shortest latency has more of them
        if any(each.checksums != tiers[form] or each.late not in late for each in runs):
            raise LatecomerError(
                f"advanced and {form} give different answers on {name}, {query.name}; the bench is void"
            )


def _row(name: str, query: Query, form: str, events: int, found: list[Measured]) -> dict[str, object]:
    rates = [events / each.seconds for each in found]
    return {
        "log": name,
        "query": query.name,
        "form": form,
        "events_per_s": round(statistics.median(rates)),
        "spread": f"{min(rates) / 1e6:.2f}-{max(rates) / 1e6:.2f} M",
        "state_bytes": found[0].most_bytes,
        "late": found[0].late,
    }


def _targets(name: str, query: Query, found: dict[str, list[Measured]]) -> list[Target]:
    seconds = {form: statistics.median(each.seconds for each in runs) for form, runs in found.items()}
    size = {form: max(1, runs[0].most_bytes) for form, runs in found.items()}
    place = QUERIES.index(query)
    label = f"{name} {query.name}: advanced against"
    targets = [
        Target(f"{label} basic, throughput", round(seconds["basic"] / seconds["advanced"], 2), _FASTER[name][place]),
        Target(f"{label} basic, memory", round(size["basic"] / size["advanced"], 1), _SMALLER[name][place]),
    ]
    if name == "cloudlog":
        to_max = round(seconds["max"] / seconds["advanced"], 2)
        targets.append(Target(f"{label} longest latency, throughput", to_max, _TO_MAX))
        less = round(size["max"] / size["advanced"], 1)
        targets.append(Target(f"{label} longest latency, memory", less, _SMALLER_THAN_MAX))
    return targets


def _completeness(name: str, events: int, folded: list[int]) -> list[Target]:
    """Table II: how many percent of all events each tier has, against the paper's."""
    found = []
    for tier, percent in COMPLETE[name].items():
        off = abs(100 * folded[tier] / events - percent)
        found.append(Target(f"{name} tier {tier + 1}: points off Table II", round(off, 2), 0.5, at_least=False))
    return found
