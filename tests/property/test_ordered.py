"""Events in order per tier, and the operators that run on them, against slow twins and against each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import ChunkStore
from latecomer.errors import InputError
from latecomer.events import FOREVER_US, TICK, EventBatch, Layout, Stretches
from latecomer.headers import HeaderBuilder
from latecomer.outputs import Lane, Output
from latecomer.progress import Progress
from latecomer.testing import Run, Stream, check_machine, random_stream, run_machine
from latecomer.tiers import Ordered, Tiers
from latecomer.windows import Chain, Clocks, Count, Max, Min, Operator, Pattern, Step, Sum, Window, WindowAggregation
from tests.naive import Event, Keyed, tier_of, total_order, windows_of
from tests.outputs import changes, plain, said
from tests.property.streams import stream_of

Function = Callable[[pa.RecordBatch], pa.RecordBatch]
LATENCIES = st.lists(st.integers(1, 3_000), min_size=1, max_size=3, unique=True).map(sorted)
COUNTS = WindowAggregation(Window("20 ms", "10 ms"), (Count(), Sum("id")))


@pytest.mark.parametrize("latencies", [("20 ms",), ("1 ms", "30 ms", "5 s")], ids=len)
@pytest.mark.parametrize("operator", [None, COUNTS, Pattern("source", 0, 1, "15 ms")], ids=lambda o: type(o).__name__)
def test_ordered_tiers_keep_the_five_invariants(operator: Operator | None, latencies: tuple[str, ...]) -> None:
    check_machine(Ordered(latencies, operator), runs=3, events=80)


@given(seed=st.integers(0, 10_000), latencies_ms=LATENCIES, data=st.data())
@settings(max_examples=40, deadline=None)
def test_every_tier_has_the_events_within_its_latency_in_order(
    seed: int, latencies_ms: list[int], data: st.DataObject
) -> None:
    stream = random_stream(seed, 60)
    asked = Ordered(tuple(f"{latency} ms" for latency in latencies_ms))
    run = run_machine(asked, stream, cuts=_cuts(stream, data))
    for number in range(len(latencies_ms)):
        assert _ids(run, number + 1) == _sorted_ids(stream, asked.latencies_us[: number + 1])
    given_once = run.given()
    assert sorted([] if given_once is None else given_once.column("id").to_pylist()) == sorted(
        _sorted_ids(stream, asked.latencies_us)
    )


@given(seed=st.integers(0, 10_000), latencies_ms=LATENCIES, data=st.data())
@settings(max_examples=30, deadline=None)
def test_the_basic_form_gives_the_answers_of_the_advanced_one(
    seed: int, latencies_ms: list[int], data: st.DataObject
) -> None:
    stream, latencies = random_stream(seed, 60), tuple(f"{latency} ms" for latency in latencies_ms)
    cuts = _cuts(stream, data)
    basic = run_machine(Ordered(latencies, COUNTS), stream, cuts=cuts)
    own = run_machine(
        Ordered(
            latencies,
            COUNTED,
            partial=count_per_window,
            merge=add_up,
            returns=COUNTED_ROWS,
            align=Stretches(10_000),
            lateness="event",
        ),
        stream,
        cuts=cuts,
    )
    advanced = run_machine(Tiers(latencies, COUNTS.window, COUNTS.aggregates, lateness="event"), stream, cuts=cuts)
    for number in range(len(latencies)):
        wanted = _answers(advanced, number + 1)
        assert _answers(basic, number + 1) == wanted
        assert [row[:4] for row in _answers(own, number + 1)] == [row[:4] for row in wanted]
    assert basic.results() == advanced.results()


COUNTED_ROWS = pa.schema([("ts", pa.int64()), ("key", pa.int64()), ("n", pa.int64())])
COUNTED = WindowAggregation(Window("20 ms", "10 ms"), (Sum("n").alias("count"),))


def count_per_window(rows: pa.RecordBatch) -> pa.RecordBatch:
    """How many events of each key, per 10 ms."""
    ones = pa.array(np.ones(rows.num_rows, dtype=np.int64))
    return add_up(pa.RecordBatch.from_arrays([rows.column("ts"), rows.column("key"), ones], schema=COUNTED_ROWS))


def add_up(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Counts of one key in the same 10 ms, as one."""
    starts = pa.array(rows.column("ts").to_numpy() // 10_000 * 10_000)
    table = pa.table([starts, rows.column("key"), rows.column("n")], schema=COUNTED_ROWS)
    found = (
        table.group_by(["ts", "key"], use_threads=False).aggregate([("n", "sum")]).rename_columns(["ts", "key", "n"])
    )
    return found.sort_by("ts").combine_chunks().to_batches()[0]


def _cuts(stream: Stream, data: st.DataObject) -> list[int]:
    places = [0, *(np.flatnonzero(np.diff(stream.tick)) + 1).tolist()]
    return sorted(data.draw(st.lists(st.sampled_from(places), max_size=4, unique=True)))


def _rows(run: Run, tier: int) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    for output in (output for batch in run.outputs for output in batch):
        if output.lane is Lane.RESULTS and said(output, "tier") == tier:
            rows = plain(output).to_pylist()
            found += [row for row, change in zip(rows, changes(output), strict=True) if change >= 0]
    return found


def _ids(run: Run, tier: int) -> list[int]:
    return [row["id"] for row in _rows(run, tier)]


def _answers(run: Run, tier: int) -> list[tuple[int, ...]]:
    return sorted(tuple(row.values()) for row in _rows(run, tier))


def _sorted_ids(stream: Stream, latencies_us: list[int]) -> list[int]:
    """The ids of the events that are less late than the last of these latencies, in the total order."""
    columns = (stream.ts_us.tolist(), stream.tick.tolist(), stream.key.tolist(), range(len(stream)))
    events = [Keyed(*row) for row in zip(*columns, strict=True)]
    chosen = [event.value for event in events if tier_of(events, event, latencies_us) < len(latencies_us)]
    source, tick, ts_us = stream.source.tolist(), stream.tick.tolist(), stream.ts_us.tolist()
    return total_order([Event(ts_us[i], source[i], tick[i], i) for i in chosen])


ROWS = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("ad", pa.string())])
LAYOUT = Layout("ts", ("user",))
CLICKS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("ab"), st.sampled_from("XYZ")), max_size=40).map(
    lambda clicks: sorted(clicks, key=lambda click: click[0])
)


def _run(operator: Operator, rows: list[tuple[int, str, str]], cuts: list[int]) -> list[tuple[object, ...]]:
    """Feed rows in order, cut at some times."""
    store, found = ChunkStore(), []
    for start, stop in zip([-1, *cuts], [*cuts, FOREVER_US], strict=True):
        piece = [row for row in rows if start < row[0] <= stop]
        columns = [pa.array([row[place] for row in piece], ROWS.field(place).type) for place in range(3)]
        batch = pa.RecordBatch.from_arrays(columns, schema=ROWS) if piece else None
        store = ChunkStore.restore(store.snapshot())
        given_rows = operator.build(store, LAYOUT).push(batch, Clocks.both(stop)).rows
        if given_rows is not None:
            found += [tuple(row.values()) for row in given_rows.to_pylist()]
    assert store.rows == 0
    return found


@given(clicks=CLICKS, cuts=st.lists(st.integers(0, 60), max_size=3, unique=True).map(sorted), within=st.integers(1, 30))
@settings(max_examples=80, deadline=None)
def test_a_pattern_is_the_nearest_first_before_each_then(
    clicks: list[tuple[int, str, str]], cuts: list[int], within: int
) -> None:
    expected = []
    for place, (ts_us, user, ad) in enumerate(clicks):
        before = [t for t, other, what in clicks[:place] if other == user and what == "X" and ts_us - t <= within]
        if ad == "Y" and before:
            expected.append((user, before[-1], ts_us))
    found = _run(Pattern("ad", "X", "Y", f"{within} us"), clicks, cuts)
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert [row[2] for row in found] == sorted(ts_us for _, _, ts_us in expected)


def test_a_pattern_may_be_the_same_thing_twice() -> None:
    clicks = [(1, "a", "X"), (3, "a", "X"), (9, "a", "X")]
    assert _run(Pattern("ad", "X", "X", "5 us"), clicks, [2]) == [("a", 1, 3)]


@given(clicks=CLICKS, cuts=st.lists(st.integers(0, 60), max_size=3, unique=True).map(sorted))
@settings(max_examples=60, deadline=None)
def test_a_chain_feeds_the_results_of_one_aggregate_to_the_next(
    clicks: list[tuple[int, str, str]], cuts: list[int]
) -> None:
    counts: dict[tuple[int, str], int] = {}
    for ts_us, user, _ in clicks:
        counts[ts_us // 5 * 5, user] = counts.get((ts_us // 5 * 5, user), 0) + 1
    doubled = {place: 2 * count for place, count in counts.items()}
    expected: dict[tuple[int, str], list[int]] = {}
    for (start, user), count in doubled.items():
        for window in windows_of(start, 20, 10):
            expected.setdefault((window, user), []).append(count)
    few = WindowAggregation(Window("5 us", "5 us"), (Count(),))
    more = WindowAggregation(Window("20 us", "10 us"), (Max("count"), Min("count")))
    double = Step(_doubled, few.output(ROWS, LAYOUT), "double")
    chain = Chain(few, double, more)
    assert chain.output(ROWS, LAYOUT).names == ["window_start", "window_end", "user", "max_count", "min_count"]
    found = _run(chain, clicks, cuts)
    assert {(row[0], row[2]): row[3:] for row in found} == {
        place: (max(values), min(values)) for place, values in expected.items()
    }
    assert len(found) == len(expected)


def _doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.set_column(3, "count", pa.array(2 * rows.column("count").to_numpy()))


def test_a_step_that_does_not_keep_its_promises_is_refused() -> None:
    rows = [(1, "a", "X"), (2, "a", "Y")]
    with pytest.raises(InputError, match="keep the columns ts, user"):
        Step(lambda batch: batch, pa.schema([("ad", pa.string())])).output(ROWS, LAYOUT)
    with pytest.raises(InputError, match="return a RecordBatch"):
        _run(Step(lambda batch: batch.select(["ts"]), ROWS), rows, [])
    with pytest.raises(InputError, match="in order of time"):
        _run(Step(lambda batch: batch.take([1, 0]), ROWS), rows, [])


def _back(rows: pa.RecordBatch, by_us: int = 5) -> pa.RecordBatch:
    """The rows at earlier times."""
    return rows.set_column(0, "ts", pa.array(rows.column("ts").to_numpy() - by_us))


def test_a_step_may_not_move_rows_to_times_that_have_passed() -> None:
    rows = [(1, "a", "X"), (12, "a", "Y")]
    assert _run(Step(_back, ROWS), rows, []) == [(-4, "a", "X"), (7, "a", "Y")]
    assert _run(Step(_back, ROWS), rows, [6]) == [(-4, "a", "X"), (7, "a", "Y")]
    for cuts in ([7], [8], [2, 10]):
        with pytest.raises(InputError, match=r"step step must not move rows back in time.*leave times as they are"):
            _run(Step(_back, ROWS), rows, cuts)


@pytest.mark.parametrize("name", ["partial", "merge"])
def test_functions_may_not_move_rows_to_times_that_have_passed(name: str) -> None:
    stream = stream_of((0, 0), (20, 1), (22, 2), (60, 3))
    columns = stream.batch(np.arange(0)).user_rows.schema

    def moved(rows: pa.RecordBatch) -> pa.RecordBatch:
        place = rows.schema.get_field_index("ts")
        return rows.set_column(place, "ts", pa.array(rows.column("ts").to_numpy() - 15))

    partial, merge = (moved if each == name else _as_is for each in ("partial", "merge"))
    asked = Ordered(("5 us", "30 us"), partial=partial, merge=merge, returns=columns)
    with pytest.raises(InputError, match=f"{name} must not move rows back in time.*tumbling"):
        run_machine(asked, stream, cuts=[1, 2, 3], snapshot=True)


def _as_is(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda rows: rows.set_column(1, "user", pa.array([b"\xff"] * rows.num_rows)), "step mine must return values"),
        (lambda rows: rows.set_column(0, "ts", pa.array([None] * rows.num_rows, pa.int64())), "step mine must.*a time"),
    ],
)
def test_wrong_values_name_the_function(function: Function, text: str) -> None:
    with pytest.raises(InputError, match=text):
        _run(Step(function, ROWS, "mine"), [(1, "a", "X")], [])


def test_functions_keep_the_types_of_keys() -> None:
    wide = pa.schema([("ts", pa.int64()), ("user", pa.large_string())])
    Step(_as_is, wide).output(ROWS, LAYOUT)
    with pytest.raises(InputError, match="user in what step step returns must be of type string; got DataType"):
        Step(_as_is, pa.schema([("ts", pa.int64()), ("user", pa.int64())])).output(ROWS, LAYOUT)


def test_events_that_a_later_tier_adds_are_revised() -> None:
    stream = stream_of((0, 0), (20, 1), (5, 2), (60, 3), (100, 4))
    run = run_machine(Ordered(("10 us", "40 us")), stream, cuts=[1, 2, 3, 4])
    told = [told for batch in run.outputs for output in batch for told in _panes(output)]
    assert [row for row in told if row[0] == 1] == [(1, ts_us, "early") for ts_us in (0, 20, 60, 100)]
    assert [row for row in told if row[0] == 2] == [
        (2, 0, "on_time"),
        (2, 5, "revised"),
        *((2, ts_us, "on_time") for ts_us in (20, 60, 100)),
    ]
    alone = run_machine(Ordered(("40 us",)), stream)
    assert {pane for batch in alone.outputs for output in batch for _, _, pane in _panes(output)} == {"on_time"}


def _panes(output: Output) -> list[tuple[int, int, str]]:
    columns = (output.rows[name].to_pylist() for name in ("tier", "ts", "pane"))
    return list(zip(*columns, strict=True))


def test_text_may_come_narrow_batch_after_batch() -> None:
    store, progress, found = ChunkStore(), Progress(), []
    for tick, times in enumerate(([3], [1, 50])):
        rows = [{"ts": ts_us, "user": "a", "ad": str(ts_us), TICK: tick} for ts_us in times]
        batch = EventBatch(pa.RecordBatch.from_pylist(rows), LAYOUT)
        builder = HeaderBuilder(None)
        builder.add(batch.ts_us, batch.tick, None)
        progress, timeline = progress.advance([builder.build()])
        machine = Ordered(("10 us", "20 us")).build(store, LAYOUT)
        found += [row["ad"] for output in machine.push(batch, timeline) for row in output.rows.to_pylist()]
    assert found == ["1", "3"] * 2


def test_aggregates_may_be_any_sequence() -> None:
    def asked(aggregates: Any) -> WindowAggregation:
        return WindowAggregation(COUNTS.window, aggregates)

    assert asked(list(COUNTS.aggregates)) == COUNTS
    with pytest.raises(InputError, match="be a sequence of aggregates"):
        asked(Count())


def test_functions_come_together() -> None:
    with pytest.raises(InputError, match="be given together"):
        Ordered(("1 s",), partial=add_up)


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (Pattern("advert", "X", "Y", "1 s"), "be one of ts, user, ad"),
        (Pattern("ts", "X", "Y", "1 s"), "be of type int64"),
        (WindowAggregation(Window("1 s", "1 s"), (Count(), Count())), "different names"),
        (WindowAggregation(Window("1 s", "1 s"), (Sum("ad"),)), "a number type"),
    ],
)
def test_what_an_operator_cannot_do_is_refused_before_it_starts(operator: Operator, text: str) -> None:
    with pytest.raises(InputError, match=text):
        operator.output(ROWS, LAYOUT)


def _tied_stream(seed: int, events: int = 60) -> Stream:
    """Few times, so that many events have the same, from several sources, ids in no order."""
    rng = np.random.default_rng(seed)
    tick = np.sort(rng.integers(0, 30, events)) + 1_000
    ts_us = tick * 1_000 - rng.choice([0, 0, 2_000, 8_000], events)
    keys, sources = rng.integers(0, 3, events), rng.integers(0, 3, events)
    return Stream(ts_us, tick, keys, sources, id=rng.permutation(events))


def _some(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Those of three keys in four, by what is dropped then."""
    return rows.filter(pa.array(rows.column("id").to_numpy() % 4 != 0)).drop_columns(["id", "source"])


@pytest.mark.parametrize("returns", [["id", "ts", "key", "source"], ["key", "ts"]], ids=len)
@given(seed=st.integers(0, 10_000), latencies_ms=LATENCIES, data=st.data())
@settings(max_examples=30, deadline=None)
def test_rows_that_functions_keep_come_in_the_order_of_the_basic_form(
    returns: list[str], seed: int, latencies_ms: list[int], data: st.DataObject
) -> None:
    stream, latencies = _tied_stream(seed), tuple(f"{latency} ms" for latency in latencies_ms)
    cuts = _cuts(stream, data)
    columns = stream.batch(np.arange(0)).user_rows.schema
    own = pa.schema([columns.field(name) for name in returns])
    partial = _as_is if len(returns) == 4 else _some
    basic = run_machine(Ordered(latencies), stream, cuts=cuts)
    kept = run_machine(Ordered(latencies, partial=partial, merge=_as_is, returns=own), stream, cuts=cuts, snapshot=True)
    for tier in range(1, len(latencies) + 1):
        wanted = [row for row in _rows(basic, tier) if partial is _as_is or row["id"] % 4]
        assert [tuple(row[name] for name in returns) for row in _rows(kept, tier)] == [
            tuple(row[name] for name in returns) for row in wanted
        ]


@given(seed=st.integers(0, 10_000), data=st.data())
@settings(max_examples=30, deadline=None)
def test_a_pattern_after_functions_finds_what_it_finds_in_the_basic_form(seed: int, data: st.DataObject) -> None:
    stream, latencies = _tied_stream(seed), ("2 ms", "10 ms")
    cuts, pattern = _cuts(stream, data), Pattern("source", 0, 1, "2 ms")
    own = pa.schema([(name, pa.int64()) for name in ("source", "ts", "key")])
    basic = run_machine(Ordered(latencies, pattern), stream, cuts=cuts)
    kept = run_machine(Ordered(latencies, pattern, partial=_as_is, merge=_as_is, returns=own), stream, cuts=cuts)
    for tier in (1, 2):
        assert _answers(kept, tier) == _answers(basic, tier)


def test_functions_before_an_operator_that_needs_order_must_keep_the_number_of_rows() -> None:
    stream = stream_of((0, 0), (20, 1), (60, 3))
    own = pa.schema([("ts", pa.int64()), ("key", pa.int64())])

    def selected(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.select(own.names)

    def numbered(rows: pa.RecordBatch) -> pa.RecordBatch:
        return selected(rows).append_column("_lc_row", pa.array([7] * rows.num_rows))

    def added(rows: pa.RecordBatch) -> pa.RecordBatch:
        return selected(rows).append_column("_lc_row", pa.nulls(rows.num_rows, pa.int64()))

    def run(function: Function, operator: Operator | None) -> Run:
        return run_machine(Ordered(("5 us",), operator, partial=function, merge=function, returns=own), stream)

    pattern = Pattern("key", 0, 0, "1 s")
    with pytest.raises(InputError, match=r"partial must return the column _lc_row.*Pattern.*without select"):
        run(selected, pattern)
    with pytest.raises(InputError, match="_lc_row of partial must be the number of a row it was given, or null; got 7"):
        run(numbered, pattern)
    assert len(_rows(run(selected, None), 1)) == 3
    assert len(_rows(run(added, pattern), 1)) == 2
