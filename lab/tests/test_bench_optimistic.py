"""The bench of optimistic processing, on few rows: its paths run, and its figures are there."""

from __future__ import annotations

from latecomer_lab.optimistic.speed import OptimisticBench, run


def test_the_bench_of_optimistic_processing_tells_its_targets() -> None:
    told: list[str] = []
    report = run(OptimisticBench(rows=8_000, keys=50, batches=4, rounds=1), told.append)
    assert len(report.results) == 7
    assert all(row["rows_per_second"] > 0 for row in report.results)
    names = [target.name for target in report.targets]
    assert names[0] == "in order against no history"
    assert names[-1] == "share of held bytes read by a row ten deep"
    assert 0 < report.targets[-1].value < 1
    assert told[0] == "round 0 of 1: fold without history"
