"""A further stage that knows every source by itself: results are one, and others are passed on beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.contract import Settings
from latecomer.errors import InputError
from latecomer.events import Layout
from latecomer.gives import Gives
from latecomer.outputs import Lane
from latecomer.progress import Measure
from latecomer.reorder import Reorder
from latecomer.slack import Slack
from latecomer.spark.declare import Further, Stage
from latecomer.spark.further import check_all_taken, check_sources, further_stage
from latecomer.spark.pack import END
from latecomer.spark.schema import spark_schema
from latecomer.windows import Join
from tests.spark.gate import Gate, Said, two_gates
from tests.spark.simulated import counts, lane_rows, simulated

COLUMNS = pa.schema(
    [
        ("ts", pa.int64()),
        ("arrival", pa.int64()),
        ("key", pa.int64()),
        ("feed", pa.string()),
        ("id", pa.int64()),
        ("heat", pa.string()),
    ]
)
OF_A = ("ts", "arrival", "key", "feed", "id")
FEEDS = {"a": OF_A, "b": OF_A, "c": (*OF_A, "heat")}


def first_stage(first: Settings, columns: pa.Schema = COLUMNS) -> Stage:
    layout = Layout("ts", ("key",), "feed", ("id",))
    gives = first.gives(columns, layout)
    return Stage(first.name, first, layout, columns, spark_schema(columns), gives, (), feeds=FEEDS)


def stages(first: Settings, second: Settings, key: tuple[str, ...] = ("id",)) -> tuple[Stage, ...]:
    one = first_stage(first)
    return one, further_stage(Further(cast(Any, None), (one,), key), second)


def rows_of(said: list[Said]) -> pa.RecordBatch:
    """Rows, with a column of their own for the third source; the key of a row follows from its id."""
    columns = [
        pa.array([each.ts or 0 for each in said], pa.int64()),
        pa.array([each.tick for each in said], pa.int64()),
        pa.array([each.id % 3 for each in said], pa.int64()),
        pa.array([each.source for each in said], pa.string()),
        pa.array([each.id for each in said], pa.int64()),
        pa.array([f"heat {each.id}" if each.source == "c" else None for each in said], pa.string()),
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=COLUMNS)
    return rows.append_column(END, pa.array([each.ts is None for each in said], pa.bool_()))


def said_of(stream: list[tuple[int, str, int | None]]) -> list[Said]:
    """A stream by ticks; a source that has ended is silent."""
    tick = 1
    said: list[Said] = []
    for number, (step, source, ts) in enumerate(stream):
        tick += step
        if not any(each.source == source and each.ts is None for each in said):
            said.append(Said(tick, source, ts, number))
    return said


STREAMS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.none() | st.integers(0, 40)), min_size=1, max_size=40
)


@settings(max_examples=150, deadline=None)
@given(STREAMS, st.sampled_from([None, 3, 6]), st.data())
def test_two_gates_one_after_the_other_are_those_of_the_definition(
    stream: list[tuple[int, str, int | None]], idle: int | None, data: st.DataObject
) -> None:
    said = said_of(stream)
    ticks = sorted({each.tick for each in said})
    cuts = sorted(data.draw(st.lists(st.sampled_from(ticks), max_size=4, unique=True)))
    shards, rng = data.draw(st.integers(1, 3)), np.random.default_rng(len(stream))
    measure = Measure(idle, per_source=True, declared=("a", "b", "c"))
    last = Gate("all", keep=("id", "heat"))
    query = simulated(stages(Gate("ab", ("c",)), last), shards, measure=measure, ending=True)
    first: dict[int, int] = {}
    second: dict[int, int] = {}
    rows: dict[int, dict[str, Any]] = {}
    for after, upto in zip([0, *cuts], [*cuts, ticks[-1]], strict=True):
        mine = [each for each in said if after < each.tick <= upto]
        if not mine:
            continue
        if data.draw(st.booleans()):
            query.crash(rows_of(mine), 2, rng)
        packed = query.run(rows_of(mine), 1 + len(mine) % 3, rng)
        one, two = counts(packed, 0), counts(packed, 1)
        assert one["seen"] == one["accepted"] == sum(each.ts is not None for each in mine)
        assert one["given"] == two["seen"] == two["accepted"]
        for row in lane_rows(packed, Lane.RESULTS):
            assert row["id"] not in second
            assert row["heat"] == (None if row["given_ab"] is not None else f"heat {row['id']}")
            rows[row["id"]], second[row["id"]] = row, row["given_all"]
            if row["given_ab"] is not None:
                first[row["id"]] = row["given_ab"]
    wanted_first, wanted_second = two_gates(said, "c", idle)
    assert second == wanted_second
    assert first == {number: tick for number, tick in wanted_first.items() if number in second}
    assert {number for number, row in rows.items() if row["given_ab"] is None} == {
        each.id for each in said if each.source == "c" and each.id in second
    }


def test_at_the_end_of_a_batch_both_gates_open() -> None:
    said = [Said(1, "a", 10, 0), Said(1, "c", 3, 1), Said(2, "c", 50, 2), Said(3, "a", 20, 3)]
    query = simulated(
        stages(Gate("ab", ("c",)), Gate("all")), 2, finishing=True, measure=Measure(per_source=True, declared=("b",))
    )
    packed = query.run(rows_of(said).drop_columns([END]), 2, np.random.default_rng(0))
    given = {row["id"]: (row["given_ab"], row["given_all"]) for row in lane_rows(packed, Lane.RESULTS)}
    assert given == {0: (-1, -1), 3: (-1, -1), 1: (None, -1), 2: (None, -1)}  # b never spoke


def test_lateness_in_a_further_stage_is_against_the_results_and_what_was_passed_on() -> None:
    """The third source is at 100 before the results have come to 15: they are late for a sort that waits 50."""
    said = [Said(1, "a", 10, 0), Said(1, "b", 20, 1), Said(2, "c", 100, 2), Said(3, "a", 15, 3), Said(4, "c", 70, 4)]
    one = stages(Gate("ab", ("c",)), Reorder("50 us"))
    query = simulated(one, 2, measure=Measure(per_source=True, declared=("a", "b", "c")))
    packed = query.run(rows_of(said).drop_columns([END]), 2, np.random.default_rng(0))
    assert {row["id"]: row["lateness_us"] for row in lane_rows(packed, Lane.LATE)} == {3: 85}
    assert [row["id"] for row in lane_rows(packed, Lane.RESULTS)] == [0]
    more = [Said(5, "b", 40, 5), Said(6, "a", 30, 6), Said(7, "a", 40, 7)]
    packed = query.run(rows_of(more).drop_columns([END]), 2, np.random.default_rng(0))
    late = {row["id"]: row["lateness_us"] for row in lane_rows(packed, Lane.LATE)}
    assert late == {1: 80, 6: 70, 5: 60, 7: 60}


def test_a_stream_that_idled_is_released_in_a_further_stage_and_stays_so() -> None:
    """All are silent from the third tick on: what was passed on leaves, though the results had come to 10 only."""
    measure = Measure(3, per_source=True, declared=("a", "b", "c"))
    query = simulated(stages(Gate("ab", ("c",)), Reorder("50 us")), 2, measure=measure)
    batches: tuple[tuple[list[Said], list[int], list[int]], ...] = (
        ([Said(1, "a", 10, 0), Said(1, "b", 10, 1), Said(2, "c", 100, 2)], [0, 1], []),
        ([Said(50, "a", 11, 3)], [2], [3]),
        ([Said(51, "b", 12, 4), Said(51, "a", 12, 5)], [], [4, 5]),
    )
    for said, results, late in batches:
        packed = query.run(rows_of(said).drop_columns([END]), 2, np.random.default_rng(0))
        assert sorted(row["id"] for row in lane_rows(packed, Lane.RESULTS)) == results
        assert sorted(row["id"] for row in lane_rows(packed, Lane.LATE)) == late


def test_the_columns_of_a_further_stage_are_those_of_the_results_and_of_what_is_passed_on() -> None:
    _, second = stages(Gate("ab", ("c",)), Gate("all"))
    assert second.user.names == ["ts", "key", "id", "given_ab", "arrival", "feed", "heat"]
    assert second.feeds == {"ab": ("ts", "key", "id", "given_ab"), "c": ("ts", "arrival", "key", "feed", "id", "heat")}
    assert (second.layout.source, second.layout.key) == ("_lc_source", ("id",))
    assert [line.text for line in second.steps] == ["ab, c"]


@dataclass(frozen=True)
class Other(Gate):
    """A gate whose results have a time of another name, and a column of another type."""

    name: ClassVar[str] = "other"
    time: str = "moment"
    heat: pa.DataType = field(default_factory=pa.string)

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        found = pa.schema([(self.time, pa.int64()), ("id", pa.int64()), ("heat", self.heat)])
        return Gives(found, super().gives(columns, layout).explained, time=self.time)


@pytest.mark.parametrize(
    ("first", "key", "message"),
    [
        (Other("ab", ("c",), heat=pa.int32()), (), "column 'heat' must have one type in a further stage"),
        (Other("ab", ("c",), time="arrival"), (), "columns of source 'c' must not be named arrival"),
        (Gate("ab", ("c",)), ("given_ab",), "by must name a column of every source; got 'given_ab'; source 'c' has ts"),
    ],
)
def test_what_does_not_fit_into_a_further_stage_is_refused(first: Gate, key: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stages(first, Gate("all"), key)


def test_results_with_a_time_of_another_name_and_what_is_passed_on_share_a_column() -> None:
    _, second = stages(Other("ab", ("c",)), Gate("all"), ())
    assert second.layout.time == "moment"
    assert second.feeds["c"] == (*FEEDS["c"], "moment")


@pytest.mark.parametrize(
    ("settings", "merged", "message"),
    [
        (
            Gate("ab", ("d",)),
            False,
            "stage gate must pass on sources that are declared; got 'd'; the sources are a, b, c",
        ),
        (Gate("c", ("c",)), False, "results of stage gate must have a name of their own; got 'c'"),
        (Gate(" "), False, "results of stage gate must have a name of their own; got ' '"),
        (Gate("ab", ("c",)), True, "stage gate must measure the progress of its own sources; got 'merged'"),
        (Gate(cast(Any, None), ("c",)), False, "stage gate must name its results beside sources that it passes on"),
    ],
)
def test_sources_that_cannot_go_on_are_refused(settings: Gate, merged: bool, message: str) -> None:
    stage = first_stage(settings)
    with pytest.raises(InputError, match=message):
        check_sources(stage, merged=merged)


def test_a_last_stage_takes_all_sources() -> None:
    check_all_taken(first_stage(Gate("ab")))
    with pytest.raises(InputError, match="stage gate must take all sources where it is the last; got 'c'; add a stage"):
        check_all_taken(first_stage(Gate("ab", ("c",))))


def test_a_gate_does_not_wait_for_sources_that_it_passes_on() -> None:
    """Without slack rows come when every source has passed them: pairs of a and b when both have, c beside them."""
    first = Slack(None, Join("a", "b", "5 us", keep="50 us"), ("a", "b", "c"), named="ab")
    second = Slack(None, None, ("ab", "c"))
    query = simulated(stages(first, second, ("key",)), 2, measure=Measure(per_source=True, declared=("a", "b", "c")))
    said = [Said(1, "a", 10, 0), Said(1, "b", 12, 3), Said(2, "a", 40, 6), Said(2, "b", 40, 9), Said(3, "c", 30, 12)]
    packed = query.run(rows_of(said).drop_columns([END]), 2, np.random.default_rng(0))
    found = [(row["ts"], row["a_id"], row["b_id"], row["slack_ready"]) for row in lane_rows(packed, Lane.RESULTS)]
    assert sorted(found, key=str) == [(12, 0, 3, False), (30, None, None, False)]
