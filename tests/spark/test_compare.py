"""Several ways on one stream, on Spark: what each promises is what its scores say."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import latecomer as lc
from latecomer.comparison import compare
from latecomer.disorder.presets.model import START_US
from latecomer.errors import InputError
from latecomer.report.comparison_page import comparison_page
from latecomer.report.scoreboard import comparison_report, show_comparison
from latecomer.spark.comparing import Compared, Comparison

WAYS = [
    "withWatermark('2 minutes')",
    "withWatermark('2 minutes', mode='update')",
    "reorder('2 minutes')",
    "tiers('2 minutes', '1 hour')",
    "optimistic('1 hour')",
    "timetravel('1 hour', holes='anywhere')",
]


def late_readings() -> pa.Table:
    """A reading a second of five meters; of twenty, one comes up to half an hour late."""
    rng = np.random.default_rng(5)
    ts_us = START_US + np.arange(4_000) * 1_000_000
    late_us = np.where(rng.random(4_000) < 0.05, rng.integers(0, 1_800_000_000, 4_000), 0)
    stamps = {"ts": ts_us, "arrival": ts_us + late_us}
    times = {name: pa.array(us).view(pa.timestamp("us", "UTC")) for name, us in stamps.items()}
    return pa.table({**times, "meter": pa.array(np.arange(4_000) % 5), "kwh": pa.array(rng.random(4_000))})


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Comparison:
    """The readings, through all ways."""
    return compare(late_readings(), ways=WAYS, spark=spark, **ASKED)


ASKED: Any = {
    "window": "1 minute",
    "aggregates": ["count()", "max('kwh')", "mean('kwh')"],
    "key": "meter",
    "arrival": "arrival",
    "batches": 7,
}


def by_name(found: Comparison) -> dict[str, Compared]:
    return {way.way.text: way for way in found.ways}


def test_strategies_lose_no_row_and_spark_does(found: Comparison) -> None:
    rows = len(found.asked.stream.ts_us)
    for text, way in by_name(found).items():
        doors = way.doors
        assert doors.answered + doors.late + doors.quarantined + doors.gone == rows, text
        assert (doors.gone == 0) == (not way.way.is_spark), text


def test_what_repairs_is_exact_in_the_end_and_what_waits_is_not(found: Comparison) -> None:
    ways = by_name(found)
    exact = {text for text, way in ways.items() if way.scores.exact}
    assert exact == {*WAYS[3:]}
    late = ways["reorder('2 minutes')"]
    assert late.doors.late > 0
    assert late.scores.revisions == 0
    assert late.scores.classes.omitted + late.scores.classes.different_left > 0


def test_answers_come_sooner_where_they_may_be_wrong(found: Comparison) -> None:
    ways = {text: way.scores for text, way in by_name(found).items()}
    soonest = ways["optimistic('1 hour')"]
    assert all((soonest.first[0] or 0) <= (scores.first[0] or 0) for scores in ways.values())
    assert soonest.revisions > ways["tiers('2 minutes', '1 hour')"].revisions > 0
    assert all(len(scores.completeness) == found.asked.stream.batches for scores in ways.values())


def test_a_rehearsal_gives_what_spark_gave(found: Comparison) -> None:
    """Scores and doors; and nearly what is held: how many partial results, depends on shards and tasks."""
    rehearsed = compare(late_readings(), ways=WAYS, engine="python", **ASKED)
    for one, other in zip(found.ways, rehearsed.ways, strict=True):
        assert (one.scores, one.doors) == (other.scores, other.doors), one.way.text
        assert one.way.is_spark or one.held == pytest.approx(other.held, rel=0.05), one.way.text


def test_the_report_holds_what_was_found(found: Comparison, tmp_path: Path) -> None:
    report = comparison_report(found, {"window": "1 minute"})
    report.write(tmp_path / "report.json")
    read = json.loads((tmp_path / "report.json").read_text())
    assert [row["way"] for row in read["results"]] == WAYS
    assert read["targets"]
    assert all(target["met"] for target in read["targets"])


def test_the_terminal_shows_a_line_for_each_way_in_eighty_columns(found: Comparison) -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    show_comparison(found, console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "rows/s" in text


def test_the_page_is_one_file_that_says_it_without_scripts(found: Comparison) -> None:
    page = comparison_page(found)
    before_scripts = page[: page.index("<script>")]
    assert "optimistic(&#39;1 hour&#39;)" in before_scripts
    assert before_scripts.count("<svg") == 4
    assert "src=" not in before_scripts
    assert "href=" not in before_scripts


def test_rows_in_file_order_are_compared_too(spark: SparkSession) -> None:
    """Without arrival; Spark's watermark, and one of ours that waits as long."""
    ts = pa.array([0, 10, 20, 35, 12, 60, 5, 90], pa.int64()).cast(pa.timestamp("s", "UTC"))
    table = pa.table({"ts": ts, "n": pa.array([1.5] * 8)})
    ways = ["withWatermark('20 seconds')", "tiers('20 seconds')", "optimistic('5 minutes')"]
    found = compare(table, window="10 seconds", aggregates=["sum('n')"], ways=ways, batches=4, spark=spark)
    gone = {text: way.doors.gone for text, way in by_name(found).items()}
    assert gone == {ways[0]: 1, ways[1]: 0, ways[2]: 0}
    assert by_name(found)[ways[2]].scores.exact


def test_a_call_that_a_way_does_not_take_is_named(spark: SparkSession) -> None:
    meters = lc.preset("meters", meters=10, days=4)
    with pytest.raises(InputError, match=r"tiers.*must be a call that it takes"):
        compare(meters, window="1 hour", key="meter", ways=["tiers('1 hour', wait='2 s')"], batches=3, spark=spark)
    with pytest.raises(InputError, match="compare must name columns of the stream; got 'meeter'"):
        compare(meters, window="1 hour", key="meeter", ways=["tiers('1 hour')"], spark=spark)
