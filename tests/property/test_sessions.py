"""Sessions in tiers against their slow twin, and through the five invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import MANY, ChunkStore
from latecomer.errors import HeldError
from latecomer.events import FOREVER_US, TICK, EventBatch, Layout
from latecomer.headers import HeaderBuilder
from latecomer.outputs import Output, Pane
from latecomer.progress import Progress, Timeline
from latecomer.testing import LAYOUT, Run, check_machine, random_stream, run_machine
from latecomer.tiers import Tiers
from latecomer.windows import (
    AggregateFunction,
    Count,
    CountDistinct,
    Custom,
    First,
    Last,
    Mean,
    Min,
    Quantile,
    SessionWindow,
    Stddev,
    Sum,
    TopK,
    WindowFunction,
)
from latecomer.windows.fragments import cut_sessions
from tests.naive import Keyed, tier_of
from tests.outputs import plain, said
from tests.property.streams import (
    ASKED,
    answer,
    between_ticks,
    draw_cuts,
    keyed,
    latencies_up_to,
    result_rows,
    stream_of,
)

GAPS = ["1 us", "2 ms", "10 ms", "60 ms", "1 s"]


def _asked(
    latencies: Sequence[str], gap: str, aggregates: tuple[AggregateFunction, ...] = ASKED, max_held: int | None = None
) -> Tiers:
    return Tiers(tuple(latencies), SessionWindow(gap), aggregates, max_held)


class Row(NamedTuple):
    """A session as the user sees it."""

    start_us: int
    end_us: int
    key: int
    results: tuple[int, ...]


def sessions(events: Sequence[Keyed], gap_us: int) -> list[Row]:
    """The slow twin: per key, in order of time, an event joins the session before or begins one."""
    found: dict[int, list[list[Keyed]]] = {}
    for event in sorted(events):
        of_key = found.setdefault(event.key, [])
        if of_key and event.ts_us <= of_key[-1][-1].ts_us + gap_us:
            of_key[-1].append(event)
        else:
            of_key.append([event])
    return sorted(_row(session, gap_us) for of_key in found.values() for session in of_key)


def _row(session: list[Keyed], gap_us: int) -> Row:
    ids = [event.value for event in session]
    return Row(session[0].ts_us, session[-1].ts_us + gap_us, session[0].key, answer(ids))


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("latencies", [("20 ms",), ("1 ms", "30 ms", "5 s"), ("1 ms", "5 ms", "100 ms", "400 ms")])
def test_sessions_keep_the_five_invariants(gap: str, latencies: tuple[str, ...]) -> None:
    check_machine(_asked(latencies, gap), runs=3, events=100)


def test_all_aggregates_keep_the_five_invariants() -> None:
    own = Custom("id", int, lambda state, value: state + value, lambda one, other: one + other, int, pa.int64())
    spread = WindowFunction(["id", "ts"], lambda rows: rows.num_rows, pa.int64(), named="rows")
    kept = (CountDistinct("source"), TopK("source"), Quantile("id"), own, spread)
    check_machine(_asked(("1 ms", "30 ms"), "10 ms", (Mean("id"), First("id"), Last("id"), *kept)), runs=3, events=100)


@given(
    seed=st.integers(0, 10_000),
    gap=st.sampled_from(GAPS),
    latencies=latencies_up_to(600),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_every_tier_has_the_sessions_of_the_events_within_its_latency(
    seed: int, gap: str, latencies: tuple[str, ...], data: st.DataObject
) -> None:
    stream = random_stream(seed, 60)
    asked, events = replace(_asked(latencies, gap), lateness="event"), keyed(stream)
    run = run_machine(asked, stream, cuts=draw_cuts(data, stream, most=12), snapshot=data.draw(st.booleans()))
    tier = [tier_of(events, event, asked.latencies_us) for event in events]
    expected = [
        sessions([event for event, own in zip(events, tier, strict=True) if own <= number], SessionWindow(gap).gap_us)
        for number in range(len(asked.latencies))
    ]
    for number, wanted in enumerate(expected):
        assert sorted(_given(run.outputs, number + 1)) == wanted
    assert run.late_ids() == [
        event.value for event, own in zip(events, tier, strict=True) if own == len(asked.latencies)
    ]
    _check_times(run, asked, expected)
    _check_changes(run, expected)


@pytest.mark.parametrize("seed", range(6))
def test_voids_of_rounded_sums_are_what_was_given(seed: int) -> None:
    stream, rng = random_stream(seed), np.random.default_rng(seed)
    values: Any = rng.random(len(stream)) * 10.0 ** rng.integers(-3, 4, len(stream))
    asked = _asked(["1 ms", "30 ms", "300 ms"], "10 ms", (Sum("id"),))
    run_machine(asked, replace(stream, id=values), cuts=between_ticks(stream)[1::5]).results()


def _given_rows(outputs: Sequence[Sequence[Output]]) -> Iterator[tuple[Row, int, Output]]:
    """Every session of the lane `results` with its change."""
    for row, change, output in result_rows(outputs):
        start, end, key, *results = row.values()
        yield Row(start, end, key, tuple(results)), change, output


def _given(outputs: Sequence[Sequence[Output]], tier: int) -> list[Row]:
    """A tier's answers."""
    return [row for row, change, output in _given_rows(outputs) if said(output, "tier") == tier and change >= 0]


def _check_times(run: Run, asked: Tiers, expected: list[list[Row]]) -> None:
    """A session is given when the tier's punctuation has passed it, no earlier and no later."""
    for place, timeline in enumerate(run.timelines):
        for number, latency_us in enumerate(asked.latencies_us):
            due = [row for row in expected[number] if row.end_us <= timeline.punctuation(latency_us)]
            assert sorted(_given(run.outputs[: place + 1], number + 1)) == due


def _check_changes(run: Run, expected: list[list[Row]]) -> None:
    """Each tier says of every session of the tier before that it stands or is void; what stands never overlaps."""
    standing: Counter[Row] = Counter()
    for batch in run.outputs:
        for output in batch:
            for row, change, _ in _given_rows([[output]]):
                standing[row] += change
                assert standing[row] == (0 if change < 0 else 1)
                _check_flags(change, output, len(expected))
            _check_apart([row for row, count in standing.items() if count])
    assert sorted(+standing) == expected[-1]
    for number in range(1, len(expected)):
        judged = [
            row
            for row, change, output in _given_rows(run.outputs)
            if said(output, "tier") == number + 1 and change <= 0
        ]
        assert sorted(judged) == expected[number - 1]


def _check_flags(change: int, output: Output, tiers: int) -> None:
    first = Pane.ON_TIME if tiers == 1 else Pane.EARLY
    later = Pane.ON_TIME if change == 0 else Pane.REVISED
    assert said(output, "pane") == (first if said(output, "tier") == 1 else later)
    assert said(output, "final") == (said(output, "tier") == tiers)


def _check_apart(rows: list[Row]) -> None:
    ordered = sorted((row.key, row.start_us, row.end_us) for row in rows)
    for (key, _, end_us), (next_key, start_us, _) in pairwise(ordered):
        assert key != next_key or end_us <= start_us


def _changes(
    latencies: Sequence[str], gap: str, *events: tuple[int, int], lateness: str = "window"
) -> list[list[tuple[int, int, int, int, int]]]:
    """Per batch, one for each event and one for the end: (tier, change, start, end, count)."""
    asked = replace(_asked(latencies, gap, (Count(),)), lateness=lateness)
    run = run_machine(asked, stream_of(*events), cuts=range(1, len(events)))
    return [
        [
            (said(output, "tier"), change, row.start_us, row.end_us, row.results[0])
            for row, change, output in _given_rows([batch])
        ]
        for batch in run.outputs
    ]


def test_an_event_at_the_end_joins_the_session_as_in_spark() -> None:
    told = _changes(["1 us"], "10 us", (0, 0), (9, 1), (19, 2), (28, 3))
    assert told == [[], [], [], [], [(1, 1, 0, 38, 4)]]
    told = _changes(["1 us"], "10 us", (0, 0), (9, 1), (20, 2), (28, 3))
    assert told == [[], [], [(1, 1, 0, 19, 2)], [], [(1, 1, 20, 38, 2)]]


def test_a_session_is_given_when_the_punctuation_is_at_its_end() -> None:
    assert _changes(["5 us"], "10 us", (0, 0), (14, 1), (15, 2))[:3] == [[], [], [(1, 1, 0, 10, 1)]]
    told = _changes(["5 us"], "10 us", (0, 0), (12, 1), (25, 2), (27, 3))
    assert told == [[], [], [(1, 1, 0, 10, 1)], [(1, 1, 12, 22, 1)], [(1, 1, 25, 37, 2)]]


def test_a_late_event_between_two_given_sessions_makes_them_one() -> None:
    told = _changes(["1 us", "50 us"], "10 us", (0, 0), (15, 1), (40, 2), (8, 3), (100, 4))
    assert told[:4] == [[], [(1, 1, 0, 10, 1)], [(1, 1, 15, 25, 1)], []]
    void = [(2, -1, 0, 10, 1), (2, -1, 15, 25, 1)]
    assert told[4] == [(1, 1, 40, 50, 1), *void, (2, 1, 0, 25, 3), (2, 0, 40, 50, 1)]


def test_a_late_event_inside_a_session_voids_it_and_gives_it_anew() -> None:
    told = _changes(["1 us", "50 us"], "10 us", (0, 0), (9, 1), (40, 2), (5, 3), (100, 4))
    assert told[2] == [(1, 1, 0, 19, 2)]
    assert told[4][1:] == [(2, -1, 0, 19, 2), (2, 1, 0, 19, 3), (2, 0, 40, 50, 1)]


def test_a_late_event_that_changes_no_result_leaves_the_session_as_it_was() -> None:
    stream = stream_of((0, 0), (9, 1), (40, 2), (5, 3), (100, 4))
    run = run_machine(_asked(["1 us", "50 us"], "10 us", (Min("id"),)), stream, cuts=[1, 2, 3, 4])
    assert next(
        (change, row.start_us) for row, change, output in _given_rows(run.outputs) if said(output, "tier") == 2
    ) == (
        0,
        0,
    )


def test_a_session_open_in_the_first_tier_swallows_a_late_fragment_of_the_second() -> None:
    """The second tier's punctuation (70) has passed the late event at 30, but its session goes on in the first."""
    steady = [(9 * number, number) for number in range(12)]
    events = [*steady[:6], (30, 6), *((ts, tick + 1) for ts, tick in steady[6:])]
    told = _changes(["1 us", "29 us"], "10 us", *events, lateness="event")
    assert all(batch == [] for batch in told[:-1])
    assert told[-1] == [(1, 1, 0, 109, 12), (2, -1, 0, 109, 12), (2, 1, 0, 109, 13)]
    assert _changes(["1 us", "29 us"], "10 us", *events)[-1] == [(1, 1, 0, 109, 13), (2, 0, 0, 109, 13)]


def test_fragments_of_three_tiers_chain_into_one_session() -> None:
    told = _changes(["1 us", "20 us", "90 us"], "10 us", (0, 0), (18, 1), (40, 2), (27, 3), (9, 4), (200, 5))
    assert [change for batch in told for tier, change, *_ in batch if tier == 3] == [-1, -1, 1, 0, 0]
    assert (3, 1, 0, 37, 4) in told[5]


def test_stretches_inside_others_do_not_cut_a_session() -> None:
    owner, start, last = (np.array(column) for column in ([0, 0, 0, 1], [0, 2, 55, 56], [50, 3, 60, 57]))
    groups = cut_sessions(owner, start, last, 6)
    assert groups.order.tolist() == [0, 1, 2, 3]
    assert groups.starts.tolist() == [0, 3]


def test_sessions_of_no_key_and_of_keys_that_are_null() -> None:
    names, times = ["a", None, "a", None], [0, 3, 30, 35]
    rows = pa.RecordBatch.from_pydict(
        {"ts": pa.array(times, pa.timestamp("us", "UTC")), "name": pa.array(names), TICK: pa.array([0, 0, 0, 0])}
    )
    found = _pushed(EventBatch(rows, Layout("ts", ("name",))), (Count(), Stddev("_lc_tick")))
    assert found.schema.names == ["window_start", "window_end", "name", "count", "stddev__lc_tick"]
    assert found.schema.field("window_end").type == pa.timestamp("us", "UTC")
    assert sorted(found.column("name").to_pylist(), key=str) == [None, None, "a", "a"]
    found = _pushed(EventBatch(rows, Layout("ts")), (Count(),))
    assert found.column("window_start").cast(pa.int64()).to_pylist() == [0, 30]
    assert found.column("window_end").cast(pa.int64()).to_pylist() == [13, 45]
    assert found.column("count").to_pylist() == [2, 2]


def _pushed(batch: EventBatch, aggregates: tuple[AggregateFunction, ...]) -> pa.RecordBatch:
    """All results of one batch and the end."""
    machine = _asked(["1 s"], "10 us", aggregates).build(ChunkStore(), batch.layout)
    outputs = [*machine.push(batch, _timeline(batch)[1]), *machine.finish()]
    assert machine.held == 0
    return plain(outputs[0])


def _timeline(batch: EventBatch, progress: Progress | None = None) -> tuple[Progress, Timeline]:
    builder = HeaderBuilder(None)
    builder.add(batch.ts_us, batch.tick, pa.array(["one"] * len(batch)))
    return (progress or Progress()).advance([builder.build()])


@pytest.mark.parametrize("latencies", [("1 ms", "50 ms"), ("1 s", "2 s")])
def test_what_is_held_stays_small_in_many_batches(latencies: tuple[str, ...]) -> None:
    """An open session is one row, however many batches it lasts; the chunks are few."""
    stream = stream_of(*((1_000 * number, number) for number in range(200)))
    asked, store, progress = _asked(latencies, "2 ms"), ChunkStore(), Progress()
    for place in range(len(stream)):
        batch = stream.batch(np.array([place]))
        progress, timeline = _timeline(batch, progress)
        assert list(asked.build(store, LAYOUT).push(batch, timeline)) == []
        assert len(store.chunks) < 2 * MANY
    assert store.rows < 2 * MANY


def test_a_quiet_batch_reads_and_writes_nothing() -> None:
    asked, store = _asked(["1 ms", "1 s"], "10 ms"), ChunkStore()
    batch = stream_of((0, 0), (5_000, 1), (12_000, 2)).batch(np.arange(3))
    progress, timeline = _timeline(batch)
    assert list(asked.build(store, LAYOUT).push(batch, timeline)) == []
    before = store.chunks
    _, timeline = _timeline(batch.slice(0, 0), progress)
    assert list(asked.build(store, LAYOUT).push(batch.slice(0, 0), timeline)) == []
    assert store.chunks == before


def test_after_the_end_nothing_is_held() -> None:
    stream, asked, store = random_stream(5), _asked(["10 s", "20 s"], "10 ms"), ChunkStore()
    batch = stream.batch(np.arange(len(stream)))
    list(asked.build(store, LAYOUT).push(batch, _timeline(batch)[1]))
    assert store.rows > 0
    list(asked.build(store, LAYOUT).finish())
    assert store.rows == 0
    assert list(asked.build(store, LAYOUT).finish()) == []
    assert min(store.notes.values()) >= FOREVER_US


def test_more_than_max_held_stops_the_query() -> None:
    with pytest.raises(HeldError):
        run_machine(_asked(["10 s"], "1 ms", max_held=1), random_stream(3))
