"""Several stages in one query: reorder by one key, windows by another, against the same computed row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import latecomer as lc
from latecomer.basic import PassThrough
from latecomer.contract import Settings
from latecomer.errors import InputError, LatecomerError
from latecomer.events import EVENT_CHANGE_FIELD
from latecomer.gives import Tally
from latecomer.outputs import Lane
from latecomer.reorder import Reorder
from latecomer.spark.declare import Further
from latecomer.spark.frames import Kind, read_frames
from latecomer.spark.further import further_stage
from latecomer.spark.packed import check_counters
from latecomer.tiers import Tiers
from latecomer.windows import Count, Sum, Window
from tests.spark.simulated import batch_of, counts, lane_rows, simulated, split_at, ticks_of, two_stages

LATENCY, SIZE, WAIT = 20, 10, 5


def windows() -> Tiers:
    return Tiers((f"{WAIT} us",), Window(f"{SIZE} us"), (Count(), Sum("id")))


def expected(rows: list[dict[str, Any]], *, finished: bool) -> tuple[Counter[Any], list[int]]:
    """Event by event: what is too late, and the windows of the others that have closed, by area."""
    mark = -(2**62)
    accepted: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    for tick in sorted({row["arrival"] for row in rows}):
        now = [row for row in rows if row["arrival"] == tick]
        for row in now:
            (late if row["ts"] <= mark - LATENCY else accepted).append(row)
        mark = max(mark, *(row["ts"] for row in now))
    found: dict[tuple[int, Any], list[int]] = {}
    for row in accepted:
        found.setdefault((row["ts"] // SIZE * SIZE, row["area"]), []).append(row["id"])
    passed = 2**62 if finished else mark - LATENCY - WAIT
    closed = {place: ids for place, ids in found.items() if place[0] + SIZE - 1 <= passed}
    answers = Counter({(start, area, len(ids), sum(ids)): 1 for (start, area), ids in closed.items()})
    return answers, sorted(row["id"] for row in late)


def results_of(packed: Any) -> Counter[Any]:
    rows = lane_rows(packed, Lane.RESULTS)
    return Counter((row["window_start"], row["area"], row["count"], row["sum_id"]) for row in rows)


EVENTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(EVENTS, st.data())
def test_windows_after_a_sort_equal_those_of_the_definition(
    events: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    arrival = np.cumsum([step for _, step, _ in events]) + 1
    ts = [int(at) + 40 - behind for at, (behind, _, _) in zip(arrival, events, strict=True)]
    rows = batch_of(ts, arrival.tolist(), [key for _, _, key in events], 0)
    places = (np.flatnonzero(np.diff(ticks_of(rows))) + 1).tolist()
    cuts = sorted(data.draw(st.lists(st.sampled_from(places), max_size=5, unique=True))) if places else []
    finished = data.draw(st.booleans()) and not cuts
    query = simulated(
        two_stages(Reorder(f"{LATENCY} us"), windows(), ("area",)), 1 + len(events) % 3, finishing=finished
    )
    rng = np.random.default_rng(len(events))
    answers: Counter[Any] = Counter()
    late: list[int] = []
    held = given_before = 0
    for piece in split_at(rows, cuts):
        if data.draw(st.booleans()) and not finished:
            query.crash(piece, 2, rng)
        packed = query.run(piece, 1 + len(piece) % 3, rng)
        answers += results_of(packed)
        late += [row["id"] for row in lane_rows(packed, Lane.LATE)]
        first, second = counts(packed, 0), counts(packed, 1)
        assert first["seen"] == len(piece) == first["late"] + first["accepted"]
        assert second["seen"] == first["given"] == second["accepted"]
        assert first["held"] == held + first["accepted"] - first["given"]
        held, given_before = first["held"], given_before + first["given"]
    wanted, too_late = expected(rows.to_pylist(), finished=finished)
    assert answers == wanted
    assert sorted(late) == too_late


def test_a_frame_that_is_missing_is_an_error() -> None:
    stages = two_stages(Reorder("1 us"), windows(), ("area",))
    query, rng = simulated(stages, 2), np.random.default_rng(0)
    frames = query.packed(batch_of(range(50), range(50), [0] * 50, 0), 1, rng)
    sent = [*query.held(query.holds[0], frames)]
    own = [frame[(frame["shard"] == 100)] for frame in sent]
    assert read_frames(own, 2).timeline is not None
    rows = next(frame for frame in own if (frame["kind"] == Kind.EVENTS).any())
    lost = [frame if frame is not rows else frame[frame["kind"] != Kind.EVENTS] for frame in own]
    with pytest.raises(LatecomerError, match="a stage must get all frames of the one before it"):
        read_frames(lost, 2)
    with pytest.raises(LatecomerError, match="a stage must get all frames of the one before it"):
        read_frames(own, 3)


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (Tiers(("1 us", "2 us"), Window("10 us"), (Count(),)), "stage tiers must give results that do not change"),
    ],
)
def test_results_that_change_are_refused_by_a_further_stage(first: Settings, text: str) -> None:
    with pytest.raises(InputError, match=text):
        two_stages(first, windows(), ())


def test_a_further_stage_knows_no_sources_and_takes_no_retractions() -> None:
    @dataclass(frozen=True)
    class PerSource(Reorder):
        per_source: ClassVar[bool] = True

    with pytest.raises(InputError, match="stage reorder must know every source by itself; got 'a further stage'"):
        two_stages(PassThrough(), PerSource("1 us"), ())
    (first, _) = two_stages(PassThrough(), PassThrough(), ())
    changing = replace(first, columns=first.columns.append(EVENT_CHANGE_FIELD))
    with pytest.raises(InputError, match="reorder must be fed events only; got 'the retractions of pass_through'"):
        further_stage(Further(cast(Any, None), (changing,), ()), Reorder("1 us"))


def test_windows_of_windows() -> None:
    """A window's time is its start; a further stage sees it when the window has closed."""
    first, second = (
        Tiers(("1 us",), Window(f"{size} us"), (each,)) for size, each in ((10, Count()), (20, Sum("count")))
    )
    stages = two_stages(first, second, ())
    query, rng = simulated(stages, 2), np.random.default_rng(0)
    packed = query.run(batch_of(range(100), range(100), [0] * 100, 0), 2, rng)
    found = {row["window_start"]: row["sum_count"] for row in lane_rows(packed, Lane.RESULTS)}
    assert found == {0: 20, 20: 20, 40: 20, 60: 20}
    assert pa.types.is_int64(stages[1].gives.columns.field("window_start").type)


def test_names_that_stages_need_are_refused(spark: SparkSession) -> None:
    df = spark.range(3).selectExpr("id AS ts", "id % 2 AS key", "'x' AS Stage", "map('a', id) AS m")
    result = lc.disordered(df, time="ts", key="key", shards=1).reorder("1 s")
    with pytest.raises(InputError, match="columns of several stages must not be named stage; got 'Stage'"):
        result.by("key").pass_through()
    with pytest.raises(InputError, match="have a hash, which maps and variants lack"):
        result.by("m")
    windows = lc.disordered(df, time="ts", key="key", shards=1).tumbling("1 s").aggregate(lc.count()).tiers("1 s")
    with pytest.raises(InputError, match="by must name a column; got 'pane'; the columns are window_start"):
        windows.by("pane")


def test_a_batch_of_retractions_alone_is_written(spark: SparkSession, tmp_path: Path) -> None:
    seen: dict[str, list[tuple[int, int]]] = {"results": [], "changes": []}
    rows = spark.createDataFrame([(1, -1), (2, 0), (3, None)], "ts bigint, op int")
    result = lc.disordered(rows, time="ts", change="op", shards=1).pass_through()

    def sink(name: str) -> Any:
        return lambda df, batch: seen[name].extend((row["ts"], row["change"]) for row in df.collect())

    sinks = {"results": sink("results"), "changes": sink("changes"), "late": lc.Discard(), "quarantine": lc.Discard()}
    counted = result.write(sinks=sinks)
    assert seen == {"results": [(1, -1)], "changes": [(1, -1)]}
    assert (counted["quarantined"], counted["given"], counted["accepted"]) == (2, 0, 1)
    with pytest.raises(InputError, match=r"reorder must be fed events only; got .change='op'.*pass_through"):
        lc.disordered(rows, time="ts", change="op", shards=1).reorder("1 s")


@pytest.mark.parametrize("name", ["held", "n", "views", "stage", "a b"])
def test_counters_of_a_strategy_have_names_of_their_own(name: str) -> None:
    with pytest.raises(InputError, match="counters of a strategy must have names of their own"):
        check_counters({name: Tally.SUM})
