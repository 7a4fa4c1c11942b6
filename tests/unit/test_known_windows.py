"""Windows against the known cases of other projects' own tests (`known_windows.py`)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from latecomer.chunks import ChunkStore
from latecomer.contract import Settings
from latecomer.events import NEVER_US
from latecomer.outputs import Lane, Output
from latecomer.testing import LAYOUT, Run, Stream, run_machine
from latecomer.tiers import Ordered, Tiers
from latecomer.windows import Clocks, Sum, Window, WindowAggregation
from tests.property.streams import result_rows
from tests.unit.known_windows import CLOCK, SESSIONS, WINDOWS, Case, Event, Row, Step, tumbling

ASKED = (Sum("id"),)


@pytest.mark.parametrize("snapshot", [False, True], ids=["kept", "restored"])
@pytest.mark.parametrize("case", [*WINDOWS, *SESSIONS], ids=lambda case: case.name)
def test_tiers_give_the_known_windows(case: Case, snapshot: bool) -> None:
    _check(case, _run(case, Tiers(case.latencies, case.window, ASKED), snapshot=snapshot))


@pytest.mark.parametrize("case", [*WINDOWS, *SESSIONS], ids=lambda case: case.name)
def test_tiers_that_judge_events_give_the_known_windows(case: Case) -> None:
    settings = Tiers(case.latencies, case.window, ASKED, lateness="event")
    _check(case.strict, _run(case.strict, settings))


ONE_TIER = [case.strict for case in WINDOWS if not case.lateness]


@pytest.mark.parametrize("case", ONE_TIER, ids=lambda case: case.name)
def test_an_aggregation_behind_a_sort_gives_the_known_windows(case: Case) -> None:
    assert isinstance(case.window, Window)
    _check(case, _run(case, Ordered(case.latencies, WindowAggregation(case.window, ASKED))))


@pytest.mark.parametrize("case", ONE_TIER, ids=lambda case: case.name)
def test_an_aggregation_on_sorted_input_gives_the_known_windows(case: Case) -> None:
    assert isinstance(case.window, Window)
    running = WindowAggregation(case.window, ASKED).build(ChunkStore(), LAYOUT)
    waiting: list[Event] = []
    mark, passed = NEVER_US, NEVER_US
    for step in case.steps:
        waiting = sorted([*waiting, *(event for event in step.events if not event.late)])
        mark = max([mark, *(event.ts for event in step.events)])
        passed = max(passed, mark - case.latency) if step.watermark is None else step.watermark
        ready = [event for event in waiting if event.ts <= passed]
        waiting = waiting[len(ready) :]
        rows = running.push(_rows(ready), Clocks.both(passed)).rows
        assert _answers(case, [] if rows is None else [Output(Lane.RESULTS, rows)]) == _due(case, step)


def _rows(events: list[Event]) -> pa.RecordBatch:
    ts, value, key = ([event[place] for event in events] for place in range(3))
    columns = [pa.array(column, pa.int64()) for column in (value, ts, key)]
    return pa.RecordBatch.from_arrays(columns, names=["id", "ts", "key"])


def _run(case: Case, settings: Settings, *, snapshot: bool = False) -> Run:
    """A batch for each step, and the end."""
    rows: list[tuple[int, int, int, int]] = []
    cuts = []
    for tick, step in enumerate(case.steps):
        rows += [(ts, value, key, tick) for ts, value, key, _ in step.events]
        if step.watermark is not None:
            rows.append((step.watermark + case.latency, 0, CLOCK, tick))
        cuts.append(len(rows))
    ts_us, values, keys, ticks = np.array(rows, dtype=np.int64).T
    return run_machine(settings, Stream(ts_us, ticks, keys, keys * 0, id=values), cuts=cuts[:-1], snapshot=snapshot)


def _check(case: Case, run: Run) -> None:
    """Each step gives what is due, and nothing else; the late events are in the lane `late`."""
    for outputs, step in zip(run.outputs, case.steps, strict=False):
        assert _answers(case, outputs) == _due(case, step)
    late = run.rows(Lane.LATE)
    expected = sorted(event.ts for step in case.steps for event in step.events if event.late)
    assert ([] if late is None else sorted(late.column("ts").to_pylist())) == expected


def _answers(case: Case, outputs: list[Output]) -> list[Row]:
    """The windows that are given anew."""
    found = [tuple(row.values()) for row, change, _ in result_rows([outputs]) if change > 0]
    return sorted(row for row in found if row[2] != CLOCK and case.only in (None, row[0]))


def _due(case: Case, step: Step) -> list[Row]:
    size_us = case.window.size_us if isinstance(case.window, Window) else 0
    return sorted((start, end or start + size_us, key, value) for start, end, key, value in step.given)


SPARK = {case.name.removeprefix("spark "): case for case in WINDOWS if case.name.startswith("spark ")}


@pytest.mark.parametrize(
    ("name", "watermarks"), [("event time and watermark metrics", [0, 5, 5]), ("Trigger.Once", [0, 5, 5, 15, 40])]
)
def test_punctuations_are_sparks_watermarks(name: str, watermarks: list[int]) -> None:
    """Spark says 0 where there is none yet."""
    case = SPARK[name]
    run = _run(case, Tiers(case.latencies, tumbling(5), ASKED))
    for tick, (timeline, watermark) in enumerate(zip(run.timelines, watermarks, strict=True)):
        passed = timeline.punctuation_before(np.array([tick]), case.latency).item()
        assert max(0, passed + 1) == watermark


def test_as_many_windows_are_held_as_spark_has_state_rows() -> None:
    case = SPARK["append mode"]
    assert _run(case, Tiers(case.latencies, tumbling(5), ASKED)).held[1:] == [2, 2]


@pytest.mark.parametrize("count", range(1, 6))
def test_with_a_long_latency_the_end_has_what_sparks_complete_mode_has(count: int) -> None:
    batches = ["10 11 12 ;", "25 ;", "25 ;", "10 ;", "25 ;"][:count]
    table = ["10=3", "10=3 25=1", "10=3 25=2", "10=4 25=2", "10=4 25=3"][count - 1]
    case = Case("complete mode", tumbling(5), " ".join([*batches, table]))
    run = _run(case, Tiers(case.latencies, tumbling(5), ASKED))
    assert _answers(case, run.outputs[-1]) == _due(case, case.steps[-1])
