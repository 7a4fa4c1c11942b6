"""Joins by known cases: what they give, count, keep, refuse and quarantine."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import latecomer as lc
from latecomer.chunks import ChunkStore, Store
from latecomer.errors import InputError
from latecomer.events import FOREVER_US, NEVER_US, TICK, Layout
from latecomer.gives import Tally
from latecomer.testing import Stream, check_machine, run_machine
from latecomer.tiers import Ordered
from latecomer.windows import Chain, Clocks, Count, Join, Window, WindowAggregation
from latecomer.windows.operators import OrderedRows, Running

TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema([("ts", TIME), ("area", pa.string()), ("feed", pa.string()), ("flow", pa.int64())])
LAYOUT = Layout("ts", ("area",), "feed")
Event = tuple[int, str | None, str, int]
MIXED: list[Event] = [(10, "x", "bus", 1), (11, "y", "scats", 2), (12, "x", "scats", 3), (14, "x", "bus", 4)]


def rows_of(events: list[Event], schema: pa.Schema = ROWS) -> pa.RecordBatch:
    columns = [[event[place] for event in events] for place in range(4)]
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def flows(given: OrderedRows) -> list[tuple[int, int]]:
    """The pairs, each by the flows of its two rows."""
    rows = [] if given.rows is None else given.rows.to_pylist()
    return [(row["bus_flow"], row["scats_flow"]) for row in rows]


def flat(number: int, feed: str) -> list[Event]:
    return [(ts, "x", feed, ts) for ts in range(number)]


def test_pairs_have_the_key_the_later_time_and_the_columns_of_both_sources() -> None:
    join = Join("bus", "scats", "2 us")
    given = join.build(ChunkStore(), LAYOUT).push(rows_of(MIXED), Clocks.both(14))
    assert given.clocks == Clocks.both(14)
    assert given.quarantined is None
    assert given.rows is not None
    names = ["area", "ts", "bus_ts", "bus_feed", "bus_flow", "scats_ts", "scats_feed", "scats_flow"]
    assert given.rows.schema.names == names == join.output(ROWS, LAYOUT).names
    found = [
        column.cast(pa.int64()).to_pylist() if column.type == TIME else column.to_pylist() for column in given.rows
    ]
    assert list(zip(*found, strict=True)) == [
        ("x", 12, 10, "bus", 1, 12, "scats", 3),
        ("x", 14, 14, "bus", 4, 12, "scats", 3),
    ]
    assert given.rows.schema.field("ts").type == TIME


def test_columns_that_a_source_does_not_have_are_left_out() -> None:
    join = Join("bus", "scats", "2 us", columns={"bus": ("ts", "area"), "scats": ("flow",), "other": ("feed",)})
    assert join.output(ROWS, LAYOUT).names == ["area", "ts", "bus_ts", "scats_flow"]
    given = join.build(ChunkStore(), LAYOUT).push(rows_of(MIXED), Clocks.both(14))
    assert given.rows is not None
    assert given.rows.column("scats_flow").to_pylist() == [3, 3]
    assert given.rows.schema.names == ["area", "ts", "bus_ts", "scats_flow"]


def test_a_pair_has_the_tick_of_the_row_that_was_read_last() -> None:
    running = Join("bus", "scats", "5 us").build(ChunkStore(), LAYOUT)
    running.push(rows_of([(10, "x", "bus", 1)]).append_column(TICK, pa.array([7])), Clocks(10, 0))
    behind = rows_of([(8, "x", "scats", 2), (12, "x", "scats", 3)]).append_column(TICK, pa.array([8, 9]))
    given = running.push(behind, Clocks(12, 0))
    assert given.rows is not None
    times = given.rows.column("ts").cast(pa.int64())
    assert list(zip(times.to_pylist(), given.rows.column(TICK).to_pylist(), strict=True)) == [(10, 8), (12, 9)]
    assert Join("bus", "scats", "5 us").output(behind.schema, LAYOUT).names[-1] == TICK


def test_the_layout_after_has_no_source() -> None:
    assert Join("bus", "scats", "5 us").layout_after(LAYOUT) == Layout("ts", ("area",))


def test_rows_without_a_key_all_meet_and_a_null_key_is_a_key() -> None:
    events: list[Event] = [(1, "x", "bus", 1), (2, None, "scats", 2), (3, None, "bus", 3), (4, "y", "scats", 4)]
    found = {}
    for name, key in (("none", ()), ("area", ("area",))):
        running = Join("bus", "scats", "9 us").build(ChunkStore(), Layout("ts", key, "feed"))
        found[name] = flows(running.push(rows_of(events), Clocks.both(4)))
    assert found == {"none": [(1, 2), (3, 2), (1, 4), (3, 4)], "area": [(3, 2)]}


def test_keys_that_are_zero_or_not_a_number_are_one_key() -> None:
    schema = ROWS.set(1, pa.field("area", pa.float64()))
    events: list[Any] = [(1, 0.0, "bus", 1), (2, float("nan"), "bus", 2), (3, -0.0, "scats", 3)]
    events.append((4, -float("nan"), "scats", 4))
    given = Join("bus", "scats", "9 us").build(ChunkStore(), LAYOUT).push(rows_of(events, schema), Clocks.both(4))
    assert flows(given) == [(1, 3), (2, 4)]
    assert given.rows is not None
    assert repr(given.rows.column("area").to_pylist()) == "[0.0, nan]"


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_sources_may_be_wide_text_or_dictionaries(kind: pa.DataType) -> None:
    rows = rows_of(MIXED, ROWS.set(2, pa.field("feed", kind)))
    store, found = ChunkStore(), []
    for piece in (rows.slice(0, 2), rows.slice(2)):
        found += flows(Join("bus", "scats", "2 us").build(store, LAYOUT).push(piece, Clocks(14, 0)))
        store = ChunkStore.restore(store.snapshot())
    assert found == [(1, 3), (4, 3)]


def test_sources_may_be_whole_numbers() -> None:
    schema = ROWS.set(2, pa.field("feed", pa.int32()))
    events: list[Any] = [(1, "x", 7, 1), (2, "x", 8, 2)]
    given = Join(7, 8, "9 us").build(ChunkStore(), LAYOUT).push(rows_of(events, schema), Clocks.both(2))
    assert given.rows is not None
    assert given.rows.select(["7_flow", "8_flow"]).to_pylist() == [{"7_flow": 1, "8_flow": 2}]


def test_a_keys_own_reads_evict_and_rows_that_may_have_missed_pairs_are_counted() -> None:
    running = Join("bus", "scats", "5 us").build(ChunkStore(), LAYOUT)
    running.push(rows_of([(10, "x", "bus", 10), (10, "y", "bus", 11), (20, "x", "bus", 20)]), Clocks(20, 0))
    given = running.push(rows_of([(11, "x", "scats", 1), (11, "y", "scats", 2), (18, "x", "scats", 3)]), Clocks(20, 0))
    assert flows(given) == [(11, 2), (20, 3)], "of x, what is older than 15 is gone"
    assert running.counters() == {"comparisons": 2, "cut_short": 2}


def test_kept_rows_find_partners_that_are_read_behind_for_so_long() -> None:
    store = ChunkStore()
    running = Join("bus", "scats", "5 us", keep="20 us").build(store, LAYOUT)
    running.push(rows_of([(10, "x", "bus", 10), (20, "x", "bus", 20)]), Clocks(25, 0))
    assert flows(running.push(rows_of([(11, "x", "scats", 1)]), Clocks(30, 0))) == [(10, 1)]
    assert running.counters()["cut_short"] == 0
    assert flows(running.push(rows_of([(11, "x", "scats", 2), (16, "x", "scats", 3)]), Clocks(30, 0))) == [(20, 3)]
    assert running.counters() == {"comparisons": 2, "cut_short": 1}
    assert store.rows == 4, "all but the one at 10"


def test_rows_of_dead_keys_leave_when_it_is_certain() -> None:
    store = ChunkStore()
    running = Join("bus", "scats", "5 us").build(store, LAYOUT)
    running.push(rows_of([(ts, f"key {ts}", "bus", ts) for ts in range(100)]), Clocks(99, 0))
    assert store.rows == 100
    held = []
    for certain_us in (4, 5, 50, 104):
        running.push(None, Clocks(200, certain_us))
        held.append(store.rows)
    assert held == [100, 99, 54, 0]


def test_what_a_key_has_read_past_does_not_pile_up_while_nothing_is_certain() -> None:
    store, most = ChunkStore(), 0
    with patch("latecomer.windows.join_state._FEW", 50):
        for start in range(0, 2_000, 20):
            events: list[Event] = [(ts, "x", "bus", ts) for ts in range(start, start + 20)]
            Join("bus", "scats", "5 us").build(store, LAYOUT).push(rows_of(events), Clocks(start + 19, NEVER_US))
            store = ChunkStore.restore(store.snapshot())
            most = max(most, store.rows)
    assert 20 <= most <= 150


def test_a_push_reads_what_it_can_reach() -> None:
    for keep in (None, "1 hour"):
        join, store = Join("bus", "scats", "5 us", keep=keep), ChunkStore()
        for start in (0, 100, 200):
            events: list[Event] = [(start + ts, "x", feed, ts) for ts in range(10) for feed in ("bus", "scats")]
            join.build(store, LAYOUT).push(rows_of(events), Clocks(start + 9, NEVER_US))
        with patch.object(store, "read", wraps=store.read) as reading:
            join.build(store, LAYOUT).push(rows_of([(212, "x", "bus", 1)]), Clocks(212, NEVER_US))
        assert {call.args[0].ts_min_us // 100 for call in reading.call_args_list} == {2}


def congested(pairs: pa.RecordBatch) -> pa.Array:
    return pc.greater(pairs.column("scats_flow"), pc.multiply(pairs.column("bus_flow"), 10))


def test_a_predicate_sees_pairs_and_chooses() -> None:
    running = Join("bus", "scats", "9 us", when=congested).build(ChunkStore(), LAYOUT)
    events: list[Event] = [(1, "x", "bus", 1), (2, "x", "bus", 9), (3, "x", "scats", 50), (4, "x", "bus", 5)]
    assert flows(running.push(rows_of(events), Clocks.both(4))) == [(1, 50)]
    assert running.counters()["comparisons"] == 3


@pytest.mark.parametrize(
    "give",
    [
        lambda count: pa.array([None] * (count - 1) + [True], pa.bool_()),
        lambda count: pa.chunked_array([[False] * (count - 1), [True]], pa.bool_()),
        lambda count: np.arange(count) == count - 1,
    ],
    ids=["arrow", "chunked", "numpy"],
)
def test_a_predicate_may_give_arrow_or_numpy_and_null_is_false(give: Any) -> None:
    running = Join("bus", "scats", "9 us", when=lambda pairs: give(pairs.num_rows)).build(ChunkStore(), LAYOUT)
    assert flows(running.push(rows_of([*flat(4, "bus"), (5, "x", "scats", 5)]), Clocks.both(5))) == [(3, 5)]


@pytest.mark.parametrize(
    ("give", "got"),
    [
        (lambda pairs: np.ones(pairs.num_rows + 1, dtype=np.bool_), "got '3 values for 2 pairs'"),
        (lambda pairs: pa.array([1] * pairs.num_rows), "got 'Int64Array of int64'"),
        (lambda pairs: np.ones((pairs.num_rows, 1), dtype=np.bool_), "got 'ndarray of bool'"),
        (lambda pairs: np.ones(pairs.num_rows), "got 'ndarray of float64'"),
        (lambda pairs: True, "got 'bool'"),
        (lambda pairs: None, "got 'NoneType'"),
    ],
)
def test_a_predicate_that_gives_something_else_is_an_error(give: Any, got: str) -> None:
    running = Join("bus", "scats", "9 us", when=give).build(ChunkStore(), LAYOUT)
    with pytest.raises(InputError, match=rf"when of join must return a boolean .*value for each pair; {got}"):
        running.push(rows_of([*flat(2, "bus"), (5, "x", "scats", 5)]), Clocks.both(5))


def inverse(pairs: pa.RecordBatch) -> pa.Array:
    """Fails for a bus with flow 0; Arrow itself says how."""
    return pc.less(pc.divide(100, pairs.column("bus_flow")), pairs.column("scats_flow"))


def test_a_row_for_which_the_predicate_fails_goes_to_quarantine() -> None:
    running = Join("bus", "scats", "9 us", when=inverse).build(ChunkStore(), LAYOUT)
    events: list[Event] = [(1, "x", "scats", 60), (2, "x", "bus", 2), (3, "x", "bus", 0), (4, "x", "scats", 70)]
    rows = rows_of(events).append_column(TICK, pa.array([1, 1, 1, 2]))
    given = running.push(rows, Clocks.both(4))
    assert flows(given) == [(2, 60), (2, 70)], "the failing bus is not kept"
    assert given.quarantined is not None
    assert given.quarantined.schema.names == [*ROWS.names, TICK, "reason"]
    assert given.quarantined.select(["flow", "reason"]).to_pylist() == [
        {"flow": 0, "reason": "when: ArrowInvalid: divide by zero"}
    ]
    assert running.counters()["comparisons"] == 3


def test_a_row_that_fails_late_gives_no_pairs_at_all() -> None:
    def fails_late(pairs: pa.RecordBatch) -> pa.Array:
        if 7 in pairs.column("bus_flow").to_pylist():
            raise KeyError("seven")
        return pa.array([True] * pairs.num_rows)

    with patch("latecomer.windows.join_candidates.MOST_PAIRS", 3):
        running = Join("bus", "scats", "20 us", when=fails_late).build(ChunkStore(), LAYOUT)
        events: list[Event] = [*flat(10, "bus"), (11, "x", "scats", 11), (12, "y", "bus", 12), (13, "y", "scats", 13)]
        given = running.push(rows_of(events), Clocks(13, 0))
    assert flows(given) == [(12, 13)]
    assert given.quarantined is not None
    assert given.quarantined.column("reason").to_pylist() == ["when: KeyError: 'seven'"]
    assert running.counters()["comparisons"] == 11


def test_a_row_in_quarantine_still_counts_as_read() -> None:
    store = ChunkStore()
    join = Join("bus", "scats", "9 us", when=inverse)
    join.build(store, LAYOUT).push(rows_of([(1, "x", "scats", 60), (8, "x", "bus", 0)]), Clocks(8, NEVER_US))
    store = ChunkStore.restore(store.snapshot())
    running = join.build(store, LAYOUT)
    running.push(rows_of([(7, "x", "bus", 1)]), Clocks(8, NEVER_US))
    assert running.counters() == {"comparisons": 1, "cut_short": 1}


def test_a_predicate_that_runs_out_of_memory_stops_the_join() -> None:
    def greedy(pairs: pa.RecordBatch) -> pa.Array:
        raise MemoryError

    running = Join("bus", "scats", "9 us", when=greedy).build(ChunkStore(), LAYOUT)
    with pytest.raises(MemoryError):
        running.push(rows_of([(1, "x", "scats", 60), (8, "x", "bus", 0)]), Clocks(8, NEVER_US))


def test_candidates_are_made_a_piece_at_a_time() -> None:
    sizes = []

    def none(pairs: pa.RecordBatch) -> pa.Array:
        sizes.append(pairs.num_rows)
        return np.zeros(pairs.num_rows, dtype=np.bool_)

    with patch("latecomer.windows.join_candidates.MOST_PAIRS", 100):
        events: list[Event] = sorted([*flat(90, "bus"), *flat(90, "scats")])
        running = Join("bus", "scats", "1 s", when=none).build(ChunkStore(), LAYOUT)
        assert running.push(rows_of(events), Clocks.both(90)).rows is None
    assert sizes == [100] * 81
    assert running.counters()["comparisons"] == 8_100


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Join("bus", "bus", "1 s"), "join must have two different sources; got 'bus'"),
        (lambda: Join(None, "bus", "1 s"), "left of join must name a source; got None"),  # type: ignore[arg-type]
        (lambda: Join("bus", True, "1 s"), "right of join must name a source; got True"),
        (lambda: Join("bus", "scats", "0 s"), "within of join must be longer than zero"),
        (lambda: Join("bus", "scats", "5 s", keep="4 s"), "keep of join must be at least within .5 s.; got '4 s'"),
        (lambda: Join("bus", "scats", "5 s", when="flow > 5"), "when of join must be given a function"),  # type: ignore[arg-type]
    ],
)
def test_a_join_that_cannot_be_is_refused(make: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()


@pytest.mark.parametrize(
    ("join", "layout", "says"),
    [
        (Join("bus", "scats", "1 s"), Layout("ts"), "join must know the source of each row"),
        (Join(1, 2, "1 s"), LAYOUT, "source of join must be of type string; got 1"),
        (Join("bus", "scats", "1 s", columns={"bus": ("nix",)}), LAYOUT, "columns of bus must be among ts.*got 'nix'"),
        (Join("bus", "scats", "1 s"), Layout("ts", ("bus_ts",), "feed"), "different names; got 'bus_ts'"),
        (Join("bus", "bus_a", "1 s"), LAYOUT, "results of join must have different names; got 'bus_a_b'"),
        (Join("bus", "BUS", "1 s"), LAYOUT, "results of join must have different names"),
    ],
)
def test_columns_that_do_not_fit_are_refused(join: Join, layout: Layout, says: str) -> None:
    columns = pa.schema(
        [*ROWS, pa.field("bus_ts", pa.string()), pa.field("a_b", pa.int64()), pa.field("b", pa.int64())]
    )
    with pytest.raises(InputError, match=says):
        join.output(columns, layout)


@pytest.mark.parametrize("feed", ["tram", None])
def test_rows_of_other_sources_are_refused(feed: str) -> None:
    running = Join("bus", "scats", "1 s").build(ChunkStore(), LAYOUT)
    with pytest.raises(InputError, match=rf"rows of join must be of the sources 'bus' and 'scats'; got {feed!r}"):
        running.push(rows_of([(1, "x", feed, 1)]), Clocks.both(1))


def test_rows_of_a_push_that_are_out_of_order_are_refused() -> None:
    running = Join("bus", "scats", "1 s").build(ChunkStore(), LAYOUT)
    with pytest.raises(InputError, match="rows of a push of join must be in order of time"):
        running.push(rows_of([(2, "x", "bus", 1), (1, "x", "scats", 1)]), Clocks.both(2))


def test_a_row_whose_time_has_left_meets_what_is_there_and_is_met_by_none() -> None:
    for keep in (None, "5 us"):
        running = Join("bus", "scats", "5 us", keep=keep).build(ChunkStore(), LAYOUT)
        running.push(rows_of([(20, "y", "bus", 20)]), Clocks(20, 20))
        late = rows_of([(14, "x", "bus", 14), (15, "x", "scats", 15), (16, "y", "scats", 16), (17, "x", "bus", 17)])
        assert flows(running.push(late, Clocks(20, 20))) == [(20, 16)]
        assert running.counters() == {"comparisons": 1, "cut_short": 4}


def test_what_a_join_says_of_itself() -> None:
    join = Join("bus", "scats", "5 s", when=congested, keep="1 minute")
    assert join.sources == ("bus", "scats")
    assert join.describe() == {
        "operator": "join",
        "sources": ["bus", "scats"],
        "within_us": 5_000_000,
        "keep_us": 60_000_000,
        "when": "congested",
    }
    assert join.shown() == "bus with scats within 5 s when congested, kept for 1 minute"
    assert Join("bus", "scats", "5 s").shown() == "bus with scats within 5 s"
    assert Join("bus", "scats", "5 s", when=partial(congested)).describe()["when"] == "partial"
    assert dict(join.counters) == {"comparisons": Tally.SUM, "cut_short": Tally.SUM}
    assert lc.Join is Join


def test_a_join_takes_every_row_and_gives_results_as_far_as_rows_have_come() -> None:
    join, times = Join("bus", "scats", "5 s"), np.array([NEVER_US, 5, FOREVER_US])
    assert join.takes_from(100) == NEVER_US
    assert join.passed(times).tolist() == times.tolist()
    assert Chain(join, WindowAggregation(Window("10 us"), (Count(),))).takes_from(25) == 20


def test_windows_count_pairs() -> None:
    store = ChunkStore()
    chain = Chain(Join("bus", "scats", "2 us"), WindowAggregation(Window("10 us"), (Count(),)))
    assert chain.output(ROWS, LAYOUT).names == ["window_start", "window_end", "area", "count"]
    running = chain.build(store, LAYOUT)
    given = running.push(rows_of(MIXED), Clocks(19, 12))
    assert given.clocks == Clocks(10, 3)
    assert given.rows is not None
    assert given.rows.select(["area", "count"]).to_pylist() == [{"area": "x", "count": 2}]
    assert running.counters() == {"comparisons": 2, "cut_short": 0}


class OfTwo(Join):
    """A join that leaves rows of other sources out."""

    def build(self, store: Store, layout: Layout) -> Running:
        return _OfTwo(super().build(store, layout))


class _OfTwo(Running):
    def __init__(self, joining: Running) -> None:
        self._joining = joining

    def push(self, rows: pa.RecordBatch | None, clocks: Clocks) -> OrderedRows:
        some = None if rows is None else rows.filter(pc.less(rows.column("source"), 2))
        return self._joining.push(some, clocks)


@pytest.mark.parametrize("keep", [None, "5 ms"])
def test_a_join_on_rows_in_order_keeps_the_invariants(keep: str | None) -> None:
    check_machine(Ordered(("2 ms", "40 ms"), OfTwo(0, 1, "3 ms", keep=keep)), runs=6)


def test_where_there_is_no_quarantine_a_predicate_that_fails_stops_the_query() -> None:
    def failing(pairs: pa.RecordBatch) -> pa.Array:
        raise ZeroDivisionError("bad")

    stream = Stream(np.array([5, 6]), np.array([5, 6]), np.zeros(2, np.int64), np.array([0, 1]))
    with pytest.raises(
        InputError, match="operator must be able to use all rows here; got 'when: ZeroDivisionError: bad'"
    ):
        run_machine(Ordered(("1 us",), Join(0, 1, "3 ms", when=failing)), stream)
