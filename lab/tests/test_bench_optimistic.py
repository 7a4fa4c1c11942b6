"""The bench of optimistic processing, on few rows: its paths run, and its figures are there."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from latecomer.contract import Settings
from latecomer.events import EventBatch, users_columns
from latecomer.optimistic import Optimistic
from latecomer.outputs import Lane
from latecomer.runner import Between, Runner
from latecomer.windows import RunningSum, Scan
from latecomer_lab.optimistic.sorted_fold import SortedFold
from latecomer_lab.optimistic.speed import LAYOUT, OptimisticBench, run, stream


def test_the_bench_of_optimistic_processing_tells_its_targets() -> None:
    told: list[str] = []
    report = run(OptimisticBench(rows=8_000, keys=50, batches=4, rounds=1), told.append)
    assert len(report.results) == 9
    assert all(row["rows_per_second"] > 0 for row in report.results)
    names = [target.name for target in report.targets]
    assert names[0] == "in order against no history"
    assert names[-1] == "share of held bytes read by a row ten deep"
    assert 0 < report.targets[-1].value < 1
    assert told[0] == "round 0 of 1: fold without history"


def test_the_fold_that_is_measured_against_gives_what_optimistic_processing_gives_in_the_end() -> None:
    bench = OptimisticBench(rows=400, keys=20, batches=4)
    batches, step = stream(bench, bench.rows, late=0.2), Scan(RunningSum("n"))
    sorted_rows = given(SortedFold(step, "1000 s"), batches)
    final = given(Optimistic(step, "1000 s", barrier=True), batches)
    final = final.filter(pc.is_null(final.column("change"))).select(sorted_rows.column_names)
    assert sorted_rows.num_rows == bench.rows * bench.batches
    assert final.equals(sorted_rows)


def test_without_a_latency_rows_in_order_run_as_they_come() -> None:
    bench = OptimisticBench(rows=400, keys=20, batches=4)
    step, batches = Scan(RunningSum("n")), stream(bench, bench.rows)
    assert given(SortedFold(step), batches).equals(given(SortedFold(step, "1 s"), batches))


def given(settings: Settings, batches: list[EventBatch]) -> pa.Table:
    """All results of a machine, in the order in which they came."""
    runner = Runner(settings, LAYOUT, between=Between.REBUILD)
    outputs = [output for batch in batches for output in runner.push(batch).outputs]
    rows = [each.rows for each in (*outputs, *runner.finish()) if each.lane is Lane.RESULTS]
    return pa.Table.from_batches([users_columns(each) for each in rows])
