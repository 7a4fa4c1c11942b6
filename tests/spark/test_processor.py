"""The processor alone, without a JVM."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from latecomer.codec import batch_from_bytes, batch_to_bytes, bytes_to_text, rows_from_bytes, text_to_bytes
from latecomer.errors import StateError
from latecomer.events import Layout
from latecomer.gives import Tally
from latecomer.outputs import Lane
from latecomer.reorder import Reorder
from latecomer.spark import workers
from latecomer.spark.hold import HoldPlan
from latecomer.spark.pack import PackPlan, packer
from latecomer.spark.packed import COUNTS_LANE, counters_of
from latecomer.spark.processor import HoldProcessor
from latecomer.spark.session import _socket_settings
from latecomer.spark.state import FORMAT_VERSION, SMALL
from tests.spark.simulated import ProcessorTester

COLUMNS = ("ts", "id")


def frames(ts_us: list[int], ids: list[int]) -> Iterator[pd.DataFrame]:
    """What pack sends for one micro-batch of one task and one shard."""
    plan = PackPlan(
        shard_keys=(7,),
        time="ts",
        stamp=None,
        source=None,
        columns=COLUMNS,
        user_columns=COLUMNS,
        filtering=False,
        beating=False,
        controlled=False,
        ending=False,
        tick_us=1,
        idle_ticks=None,
        earliest_us=0,
        latest_us=2**60,
        max_ahead_us=None,
    )
    shard = pa.array(np.zeros(len(ids), dtype=np.int32))
    rows = pa.RecordBatch.from_pydict(
        {"ts": pa.array(ts_us, pa.int64()), "id": pa.array(ids, pa.int64()), "_lc_shard": shard}
    )
    for frame in packer(plan)(iter([rows])):
        yield frame.to_pandas()


def processor(fingerprint: str = "one") -> HoldProcessor:
    return HoldProcessor(HoldPlan(Reorder("10 us"), Layout("ts"), fingerprint, counters_of({"runs": Tally.LEVEL})))


def shard(fingerprint: str = "one", entries: dict[Any, Any] | None = None) -> ProcessorTester:
    return ProcessorTester(processor(fingerprint), 7, entries)


def push(tester: ProcessorTester, ts_us: list[int], ids: list[int]) -> dict[int, list[int]]:
    """Ids by lane, and the counters of the batch under the lane of counts."""
    rows = pd.concat(frames(ts_us, ids), ignore_index=True)
    given = tester.run(rows)
    lanes: dict[int, list[int]] = {}
    for _, row in given.iterrows():
        if row["lane"] == COUNTS_LANE:
            lanes[COUNTS_LANE] = [row["seen"], row["given"], row["held"], row["late"]]
        else:
            found = rows_from_bytes(row["blob"]).column("id").to_pylist()
            lanes.setdefault(row["lane"], []).extend(found)
    return lanes


def test_state_is_kept_between_batches_and_released_in_order() -> None:
    one = shard()
    assert push(one, [5, 1, 9], [1, 2, 3]) == {COUNTS_LANE: [3, 0, 3, 0]}
    assert push(one, [15, 4], [4, 5]) == {Lane.RESULTS: [2, 5, 1], COUNTS_LANE: [2, 3, 2, 0]}
    assert push(one, [30, 5], [6, 7]) == {Lane.LATE: [7], Lane.RESULTS: [3, 4], COUNTS_LANE: [2, 2, 1, 1]}


def test_an_empty_batch_releases_nothing_and_counts_nothing() -> None:
    one = shard()
    push(one, [5], [1])
    assert push(one, [], []) == {COUNTS_LANE: [0, 0, 1, 0]}


def test_state_of_another_query_is_refused() -> None:
    one = shard()
    push(one, [5], [1])
    kept = dict(one.state.entries)
    other = shard("two", kept)
    with pytest.raises(StateError, match="stored state must belong to this query"):
        push(other, [6], [2])
    size, text = kept[SMALL]
    small = batch_from_bytes(text_to_bytes(text, size))
    data = batch_to_bytes(small.set_column(0, "format", pa.array([0])))
    old = shard(entries={SMALL: (len(data), bytes_to_text(data))})
    with pytest.raises(StateError, match=f"stored state must have format {FORMAT_VERSION}; got 0"):
        push(old, [6], [2])


def test_a_missing_chunk_is_named() -> None:
    one = shard()
    push(one, [5], [1])
    kept = dict(one.state.entries)
    damaged = shard(entries={SMALL: kept[SMALL]})
    with pytest.raises(StateError, match="stored state must hold chunk 0/0; got None"):
        push(damaged, [60], [2])
    half = shard(entries={key: (size, text[: size // 2]) for key, (size, text) in kept.items()})
    with pytest.raises(StateError, match="the checkpoint is damaged"):
        push(half, [60], [2])


def test_what_workers_have_loaded_is_set_aside_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    workers.end_task()
    assert gc.get_freeze_count() == 0, "not in a task"
    monkeypatch.setattr("latecomer.spark.workers.TaskContext.get", lambda: "a task")
    monkeypatch.setattr(workers, "_times", 0)
    try:
        frozen = []
        for _ in range(10):  # every task brings tables of its own, in a cycle
            table: list[object] = [[] for _ in range(30_000)]
            table.append(table)
            workers.end_task()
            frozen.append(gc.get_freeze_count())
        assert frozen[0] > 30_000
        assert max(frozen) < frozen[0] + 30_000, "the tables of earlier tasks must not stay"
    finally:
        gc.unfreeze()


FAULTS = """
import resource, sys
import numpy as np
import pyarrow as pa
from latecomer.spark.workers import keep_memory
if keep_memory() is not (sys.argv[1] == "kept"):
    sys.exit("not what was expected")
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        pa.array(np.ones(3_000_000)).take(pa.array(np.arange(3_000_000)))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(), faults()
print(faults())
"""


def test_memory_that_a_worker_has_freed_is_not_asked_for_again_unless_the_user_says_how() -> None:
    def faults(expected: str, **settings: str) -> int:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "ARROW_"))}
        command = [sys.executable, "-c", FAULTS, expected]
        done = subprocess.run(command, env={**environment, **settings}, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("kept") < faults("left", ARROW_DEFAULT_MEMORY_POOL="mimalloc") / 2


def test_sockets_are_used_where_their_names_are_short_enough() -> None:
    assert _socket_settings("/tmp/latecomer-x")["spark.python.unix.domain.socket.dir"] == "/tmp/latecomer-x"
    assert _socket_settings("/" + "x" * 60) == {}
