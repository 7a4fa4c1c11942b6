"""`run_chain` and `check_chain`: whole queries without Spark, right ones pass, wrong ones are named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.outputs import ITEM
from latecomer.spark.disordered import Events
from latecomer.testing import check_chain, run_chain
from latecomer.testing.declared_rows import Question, Roled
from latecomer.windows.hashing import hash_rows
from tests.naive_optimistic import By, Event, Fold, Map
from tests.naive_optimistic import Optimistic as Naive

TICK = 100_000
PLACE = pa.schema([("document", pa.string()), ("place", pa.int64())])
SIZE = pa.schema([("size", pa.int64())])
HALF = pa.schema([("half", pa.int64())])


def words(seed: int, size: int = 60) -> pa.RecordBatch:
    """Words of documents as they come, some of them late, some of them too late."""
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(0, 40, size)) * TICK
    late = rng.choice([0, 0, 0, 2, 5, 8, 15], size) * TICK
    columns = {
        "at": (arrival - late + 40 * TICK) // 50_000 * 50_000,
        "arrival": arrival,
        "word": np.array(["cat", "dog", "owl"])[rng.integers(0, 3, size)],
        "document": np.array(["one", "two", "six", "ten"])[rng.integers(0, 4, size)],
        "id": np.arange(size),
    }
    return pa.RecordBatch.from_pydict(columns)


def place(state: int, row: Any) -> tuple[int, list[tuple[str, int]]]:
    if row.id % 13 == 4:
        raise ValueError("a bad word")
    return state + 1, [(row.document, state + 1)]


def half(row: Any) -> list[tuple[int]]:
    if row.place % 4 == 3:
        raise ValueError(f"place {row.place}")
    return [(row.place // 2,)]


def index(events: Events) -> lc.Result:
    """Two steps and a map, all of which raise for some."""
    places = events.scan(lc.Fold(place, 0, state=pa.int64(), returns=PLACE))
    sizes = places.by("document").scan(lc.row_number(), lc.running_sum("place"))
    return sizes.map(half, returns=HALF).optimistic("900 ms", barrier=True)


QUESTIONS: dict[str, Question] = {
    "a chain of folds and maps": index,
    "one step": lambda events: events.scan(lc.lag("id")).optimistic("900 ms", barrier=True),
    "a sort, then windows": lambda events: (
        events.reorder("300 ms").by("document").tumbling("1 second").aggregate(lc.count()).tiers("200 ms")
    ),
    "windows in tiers": lambda events: (
        events.tumbling("1 second").aggregate(lc.count(), lc.sum("id")).tiers("1 second", "10 seconds")
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_right_question_passes(name: str) -> None:
    for seed in (1, 2):
        check_chain(QUESTIONS[name], words(seed, 40), time="at", key="word", arrival="arrival", runs=3)


def test_rows_without_a_stamp_come_one_by_one_and_sources_and_retractions_are_known() -> None:
    rows = words(3).drop_columns(["arrival"])
    again = rows.append_column("sign", pa.array(np.ones(rows.num_rows, dtype=np.int64)))
    void = again.slice(5, 20).set_column(4, "sign", pa.array(np.full(20, -1)))
    signed = pa.Table.from_batches([again, void])
    check_chain(index, signed, time="at", key="word", change="sign", runs=3)
    check_chain(index, words(4), time="at", key="word", source="document", progress="merged", order="id", runs=3)


def test_at_the_end_of_the_stream_all_that_the_twin_has_is_final_or_in_quarantine() -> None:
    rows = words(5)
    run = run_chain(index, rows, time="at", key="word", arrival="arrival", tick="1 us", shards=3, cuts=[20, 41])
    twin = Naive(
        [
            *(Fold(lambda s, row: place(s, _named(row)), 0), By(lambda pair: pair[0])),
            *(Fold(lambda s, pair: (s + 1, [{"row_number": s + 1, "place": pair[1]}]), 0), Map(_naive_half)),
        ],
        900_000,
    )
    hashes = hash_rows(rows.columns, rows.num_rows).tolist()
    for row, order in zip(rows.to_pylist(), hashes, strict=True):
        twin.push([Event(row["at"], 0, row["arrival"], order, row["word"], row)])
    twin.finish()
    assert sorted(row["half"] for row in run.rows("final")) == sorted(item.payload for item in twin.released)
    assert len(run.rows("quarantine")) == len(twin.quarantined) > 5
    items = [row for row in run.rows("quarantine") if row[ITEM] is not None]
    assert run.counters["quarantined_items"] == len(items) == sum(each.step > 1 for each in twin.quarantined)
    assert run.counters["late"] == len(twin.late) > 0


class _named:
    def __init__(self, row: dict[str, Any]) -> None:
        self.__dict__.update(row)


def _naive_half(row: dict[str, int]) -> Iterator[int]:
    yield from (each for (each,) in half(_named(row)))


COUNTED = iter(range(10**9))


def counted(state: int, row: Any) -> tuple[int, list[tuple[int]]]:
    """What it says depends on how often it has been called."""
    return state, [(next(COUNTED),)]


def test_a_function_that_depends_on_more_than_its_rows_is_found() -> None:
    fold = lc.Fold(counted, 0, state=pa.int64(), returns=SIZE)
    with pytest.raises(AssertionError, match="other than in order: what stands: 2 rows too many"):
        check_chain(lambda events: events.scan(fold).optimistic("1 s"), [{"at": 1}, {"at": 2}], time="at")


def late_words(events: Events) -> lc.Result:
    return events.scan(lc.lag("id")).optimistic("900 ms")


def no_question(events: Events) -> Any:
    return events


def filtered(events: Events) -> lc.Result:
    return late_words(events.where("id > 1"))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda rows: run_chain(late_words, rows, time="at", cuts=[9, 3]),
            "cuts must be positions in the rows",
        ),
        (
            lambda rows: run_chain(late_words, rows, time="at", crashes=[1]),
            "crashes must be numbers of micro",
        ),
        (lambda rows: run_chain(late_words, [], time="at"), "rows must be a table of Arrow's or a list of dicts"),
        (lambda rows: run_chain(late_words, rows, time="when"), "time= must name a column; got 'when'"),
        (lambda rows: run_chain(no_question, rows, time="at"), "question must make a result of events; got"),
        (lambda rows: run_chain(filtered, rows, time="at"), "where must be done by Spark"),
        (
            lambda rows: run_chain(lambda events: events.tumbling("1 s").reorder("1 s"), rows, time="at"),
            "a window before reorder must be done by Spark; got 'rows in memory'; do it to the rows before",
        ),
        (
            lambda rows: check_chain(late_words, rows.take([3, 1, 0]), time="at", arrival="arrival"),
            "rows must be in the order of their arrival",
        ),
        (lambda rows: run_chain(late_words, rows, time="at").rows("final"), "rows must be those of results, late"),
    ],
)
def test_wrong_calls_are_named(ask: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask(words(1, 12))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_any_unit_mean_the_same(unit: str) -> None:
    times = pa.array([0, 60, 10], pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
    rows = pa.table({"at": times, "k": ["a", "a", "a"], "n": [1, 2, 3]})
    run = run_chain(lambda events: events.scan(lc.running_sum("n")).optimistic("10 seconds"), rows, time="at", key="k")
    assert [len(run.rows(name)) for name in ("results", "late", "quarantine")] == [2, 1, 0]


def test_rows_that_lack_a_column_have_null_there_and_cuts_are_in_the_rows() -> None:
    rows = [{"at": 1, "k": "a"}, {"at": 2, "k": "a", "n": 5}]

    def question(events: Any) -> Any:
        return events.scan(lc.running_sum("n").alias("total")).optimistic("1 hour")

    run = run_chain(question, rows, time="at", key="k")
    assert [row["total"] for row in run.rows("results")] == [None, 5]
    for cuts in ([-1], [3]):
        with pytest.raises(lc.InputError, match="cuts must be positions in the rows"):
            run_chain(question, rows, time="at", key="k", cuts=cuts)


def test_rows_too_far_ahead_are_set_aside_as_on_spark() -> None:
    rows = [{"at": second * 1_000_000, "came": second * 1_000_000, "n": second} for second in range(60)]
    rows[20]["at"] += 7_200_000_000
    known: Roled = {"time": "at", "arrival": "came", "max_ahead": "1 hour"}
    run = run_chain(lambda events: events.reorder("5 seconds"), rows, **known)
    assert [row["n"] for row in run.rows("quarantine")] == [20]
    assert len(run.rows("results")) == 59
    check_chain(lambda events: events.reorder("5 seconds"), rows, **known)
    with pytest.raises(InputError, match="max_ahead must come with arrival"):
        run_chain(lambda events: events.reorder("5 seconds"), rows, time="at", max_ahead="1 hour")
