"""What is compared, without Spark: calls read from text, the stream cut into micro-batches, the usual ways."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from latecomer.durations import duration_us
from latecomer.errors import InputError
from latecomer.events import int64_view
from latecomer.quality import MARK
from latecomer.spark.comparing import Pace, Question, RecordedStream, Roles, read_way, recorded, usual_ways

ROLES = Roles("ts", ("key",), "arrival")


def stream(ts: list[int], arrival: list[int] | None = None, batches: int = 2, tick_us: int = 1) -> RecordedStream:
    """Rows of one key; times in microseconds."""
    table = pa.table({"ts": ts, "key": [7] * len(ts)} | ({} if arrival is None else {"arrival": arrival}))
    times = (np.array(ts), None if arrival is None else np.array(arrival))
    roles = ROLES if arrival is not None else Roles("ts", ("key",))
    return recorded(table, roles, times, Pace(tick_us, batches))


def test_rows_come_in_order_of_arrival_and_are_cut_between_ticks() -> None:
    found = stream([5, 1, 2, 9], [40, 30, 30, 50], batches=3)
    assert found.ts_us.tolist() == [1, 2, 5, 9]
    assert found.cuts.tolist() == [2, 4]  # the first two came in one tick, and the cut after row 1 moves behind it
    assert found.marks_us.tolist() == [2, 9]


def test_without_arrival_a_micro_batch_is_a_tick() -> None:
    found = stream([1, 5, 3, 4], batches=2)
    assert found.tick.tolist() == [0, 0, 1, 1]
    late = found.stream().late
    assert (int64_view(late["ts"].combine_chunks()).tolist(), late[MARK].to_pylist()) == ([3, 4], [5, 5])


def test_a_trigger_cuts_by_arrival_between_ticks() -> None:
    arrival = np.array([0, 4, 9, 10, 11, 19, 40])
    table = pa.table({"ts": arrival, "key": [7] * 7, "arrival": arrival})
    found = recorded(table, ROLES, (arrival, arrival), Pace(5, trigger_us=10))
    assert found.cuts.tolist() == [3, 6, 7]
    assert found.batch_us == (10 + 21) // 2
    by_day = recorded(table, ROLES, (arrival, arrival), Pace(8, trigger_us=10))
    assert by_day.cuts.tolist() == [5, 6, 7]  # the tick from 8 to 15 is not cut


def test_a_trigger_needs_arrival_and_not_too_many_micro_batches() -> None:
    ts = np.arange(30_000)
    table = pa.table({"ts": ts, "key": ts, "arrival": ts})
    with pytest.raises(InputError, match="trigger must come with arrival and without batches"):
        recorded(table, Roles("ts", ("key",)), (ts, None), Pace(1, trigger_us=10))
    with pytest.raises(InputError, match="trigger must make at most 20,000 micro-batches; got '30,000'"):
        recorded(table, ROLES, (ts, ts), Pace(1, trigger_us=1))


def test_rows_count_in_each_of_their_windows() -> None:
    question = Question.read("10 us", "4 us", ("count()",))
    assert question.windows_of(np.arange(8)).tolist() == [3, 3, 2, 2, 3, 3, 2, 2]


@pytest.mark.parametrize("batches", [1, 5, 91])
def test_a_stream_is_cut_into_at_least_two_and_at_most_as_many_as_it_has_rows(batches: int) -> None:
    with pytest.raises(InputError, match="batches must be from 2 to 4"):
        stream([1, 2, 3, 4], batches=batches)


def test_the_truth_is_the_question_on_sorted_rows() -> None:
    found = stream([25, 3, 14, 1], [1, 2, 3, 4])
    truth = Question.read("10 us", None, ("max('key')",)).truth(found.rows, found.ts_us, ROLES.layout)
    assert int64_view(truth["window_start"].combine_chunks()).tolist() == [0, 10, 20]
    assert truth["latecomer_rows"].to_pylist() == [2, 1, 1]


def test_the_usual_ways_wait_for_nine_of_ten_late_events_and_for_all() -> None:
    ts = np.arange(1_000) * 1_000_000
    delay = np.where(np.arange(1_000) % 10 == 0, np.where(np.arange(1_000) % 200 == 0, 70, 4), 0) * 1_000_000
    found = stream(ts.tolist(), (ts + delay).tolist(), batches=10)
    ways = usual_ways(found, Question.read("10 seconds", None, ("count()",)), "every='1 hour'")
    names = [way.call.name for way in ways]
    assert names == [*["withWatermark"] * 3, "reorder", "tiers", "optimistic", "timetravel", "timetravel"]
    assert ways[4].text == "tiers('5 seconds', '2 minutes')"
    short, long = (duration_us(text, "wait") for text in ways[4].call.arguments)
    late_us = found.stream().late[MARK].to_numpy() - int64_view(found.stream().late["ts"].combine_chunks())
    assert np.mean(late_us < short) >= 0.9
    assert late_us.max() < long


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wait('1 hour')", "--way must be one of withWatermark, tiers, optimistic, timetravel, slack, reorder"),
        ("tiers(", "--way must be a call with plain values"),
        ("tiers(__import__('os'))", "--way must be a call with plain values"),
        ("tiers(*x)", "--way must be a call with plain values"),
        ("timetravel('1 day', **x)", "--way must be a call with plain values"),
        ("withWatermark('1 hour', mode='complete')", "a delay, and a mode of append or update"),
        ("withWatermark()", "a delay, and a mode of append or update"),
        ("withWatermark('soon')", "delay must be a duration"),
        ("reorder()", "--way reorder must be given a latency"),
    ],
)
def test_a_way_that_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_way(text)


@pytest.mark.parametrize("text", ["median('kwh')", "max('a', 'b')", "max(column='kwh')"])
def test_an_aggregate_that_cannot_be_compared_is_named(text: str) -> None:
    with pytest.raises(InputError, match="--aggregate must be one of count, max, mean, min, sum of a column"):
        Question.read("1 hour", None, (text,))
