"""Speed of the gate and its structures, at a size that shows only that everything is counted."""

from __future__ import annotations

from latecomer_lab.slack.speed import SlackBench, run
from latecomer_lab.slack.structures import figure_8, figures_9_and_10


def test_the_bench_names_all_paths_and_two_targets() -> None:
    report = run(SlackBench(rows=2_000, batches=2, rounds=1, comparisons=5), lambda text: None)
    assert [row["path"] for row in report.results] == ["reorder", "gate", "join, one shard", "join, two shards"]
    assert [target.target for target in report.targets] == [1.25, 1.6]


def test_every_reader_reads_every_tuple_that_is_ready_or_slack_ready() -> None:
    found = figure_8(tuples=2_000, most_readers=2)
    assert [row["readers"] for row in found] == [1, 2]
    assert found[1]["reads"] == 2 * found[0]["reads"] == 2 * 3_950


def test_nodes_share_the_comparisons() -> None:
    found = figures_9_and_10(rows=20_000, batches=2)
    assert [row["nodes"] for row in found] == [1, 2, 4, 8]
    assert all(row["comparisons_per_second"] > 0 for row in found)
