"""Whose rows stand in a lane's folder: owners, runs, repeated batches, restored checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import latecomer as lc
from tests.faults.stream import ask
from tests.spark.streams import LATENCY_US, SCHEMA, expected, make_events, write_in_parts

LATENCY = f"{LATENCY_US} us"


def declared(df: DataFrame) -> lc.Events:
    return lc.disordered(df, time="ts", key="key", source="source", arrival="arrival", order="id", shards=2)


def stream(spark: SparkSession, folder: Path, files: int = 1) -> lc.Events:
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(str(folder / "in"))
    return declared(df)


def run(result: lc.Result, folder: Path, name: str, **others: Any) -> None:
    options = {"checkpoint": folder / f"{name}-checkpoint", "available_now": True, **others}
    query = result.start(folder / name, **options)
    query.awaitTermination()
    assert query.exception() is None


def plain(folder: Path, lane: str) -> list[int]:
    """What a reader that knows nothing of us finds."""
    return sorted(pq.read_table(folder / lane)["id"].to_pylist())


def committed(spark: SparkSession, folder: Path, lane: str) -> list[int]:
    return sorted(row["id"] for row in lc.read(spark, folder, lane).select("id").collect())


def test_a_query_never_writes_into_the_folder_of_another(spark: SparkSession, tmp_path: Path) -> None:
    events = make_events(900, seed=2)
    write_in_parts(events, tmp_path / "in", 2)
    result = stream(spark, tmp_path).reorder(LATENCY)
    for name in ("one", "two"):
        run(result, tmp_path, name)
    before = plain(tmp_path / "one", "results")
    write_in_parts(make_events(300, seed=3), tmp_path / "in", 1, first=2)
    refused = "output folder must be empty, or filled by this very query; got '.*/one/results'"
    with pytest.raises(lc.InputError, match=refused):
        run(result, tmp_path, "one", checkpoint=tmp_path / "two-checkpoint")
    batch = declared(spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))).reorder(LATENCY)
    with pytest.raises(lc.InputError, match=refused):
        batch.write(tmp_path / "one")
    assert plain(tmp_path / "one", "results") == before == committed(spark, tmp_path / "one", "results")


def test_the_same_batch_written_again_replaces_itself_and_another_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_in_parts(make_events(400, seed=4), tmp_path / "in", 1)
    events = declared(spark.read.schema(SCHEMA).parquet(str(tmp_path / "in")))
    for _ in range(2):
        events.reorder(LATENCY).write(tmp_path / "out")
        assert plain(tmp_path / "out", "results") == committed(spark, tmp_path / "out", "results")
    rows = [*committed(spark, tmp_path / "out", "results"), *committed(spark, tmp_path / "out", "late")]
    assert sorted(rows) == list(range(400))
    with pytest.raises(lc.InputError, match="output folder must be empty, or filled by this very query"):
        events.where("id > 7").reorder(LATENCY).write(tmp_path / "out")


def test_a_batch_may_have_other_shards_and_more_input_but_no_other(spark: SparkSession, tmp_path: Path) -> None:
    events, out = make_events(400, seed=4), tmp_path / "out"
    write_in_parts(events.slice(0, 200), tmp_path / "in", 1)
    write_in_parts(events, tmp_path / "other", 1)

    def question(name: str, shards: int) -> lc.Result:
        df = spark.read.schema(SCHEMA).parquet(str(tmp_path / name))
        return lc.disordered(df, time="ts", key="key", arrival="arrival", order="id", shards=shards).reorder("1 hour")

    question("in", shards=2).write(out)
    write_in_parts(events.slice(200), tmp_path / "in", 1, first=1)
    question("in", shards=3).write(out)  # as another machine with other cores would
    with pytest.raises(lc.InputError, match=r"input of .*results must be what it was filled from \(file:.*/in\)"):
        question("other", shards=2).write(out)
    assert plain(out, "results") == committed(spark, out, "results") == list(range(400))


def test_lanes_keep_their_folders_and_columns(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(300, seed=4), tmp_path / "in", 1)
    run(stream(spark, tmp_path).pass_through(), tmp_path, "out")
    swapped = {"results": tmp_path / "out/late", "late": tmp_path / "out/results"}
    with pytest.raises(lc.InputError, match=r"folder of lane 'results' must be its own; got .*, of lane 'late'"):
        run(stream(spark, tmp_path).pass_through(), tmp_path, "out", sinks=swapped)
    windows = stream(spark, tmp_path).tumbling("1 s").pass_through()
    with pytest.raises(lc.InputError, match=r"columns of .*results must stay struct<id:bigint,.*; got '.*window_start"):
        run(windows, tmp_path, "out", from_here_on=True)
    write_in_parts(make_events(600, seed=4).slice(300), tmp_path / "in", 1, first=1)
    others = {lane: tmp_path / "windows" / lane for lane in ("results", "late", "quarantine")}
    run(windows, tmp_path, "out", from_here_on=True, sinks=others)
    assert {"window_start", "window_end"} < set(lc.read(spark, tmp_path / "windows", "results").columns)


def test_a_start_that_spark_refuses_disturbs_no_query_that_has_the_folders(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(make_events(300, seed=4), tmp_path / "in", 1)
    result, checkpoint = stream(spark, tmp_path).reorder(LATENCY), tmp_path / "checkpoint"
    changed = stream(spark, tmp_path).where("id >= 0").reorder(LATENCY)
    running = result.start(tmp_path / "out", checkpoint=checkpoint)

    def refuse(*arguments: Any) -> None:
        raise RuntimeError("not now")

    try:
        running.processAllAvailable()
        with monkeypatch.context() as patched:
            patched.setattr(DataStreamWriter, "start", refuse)
            with pytest.raises(RuntimeError, match="not now"):
                changed.start(tmp_path / "out", checkpoint=checkpoint, from_here_on=True)
        write_in_parts(make_events(600, seed=4).slice(300), tmp_path / "in", 1, first=1)
        running.processAllAvailable()
    finally:
        running.stop()
    rows = committed(spark, tmp_path / "out", "results")
    assert len(rows) > 100
    write_in_parts(make_events(900, seed=4).slice(600), tmp_path / "in", 1, first=2)
    run(result, tmp_path, "out", checkpoint=checkpoint)  # a later one goes on, with the input that is in force
    assert len(committed(spark, tmp_path / "out", "results")) > len(rows)


def test_a_checkpoint_from_an_older_copy_doubles_no_row(spark: SparkSession, tmp_path: Path) -> None:
    events = make_events(1_600, seed=5)
    given, late = expected(events)
    write_in_parts(events.slice(0, 800), tmp_path / "in", 2)
    run(stream(spark, tmp_path).reorder(LATENCY), tmp_path, "out")
    shutil.copytree(tmp_path / "out-checkpoint", tmp_path / "copy")
    write_in_parts(events.slice(800), tmp_path / "in", 4, first=2)
    run(stream(spark, tmp_path).reorder(LATENCY), tmp_path, "out")
    shutil.rmtree(tmp_path / "out-checkpoint")
    shutil.move(tmp_path / "copy", tmp_path / "out-checkpoint")
    run(stream(spark, tmp_path, files=4).reorder(LATENCY), tmp_path, "out")  # all that is left in one batch
    for lane in ("late", "results"):
        rows = plain(tmp_path / "out", lane)
        assert rows == committed(spark, tmp_path / "out", lane)
        assert rows == (late if lane == "late" else sorted(given[: len(rows)]))
    aside = pq.read_table(next((tmp_path / "out/results/_latecomer/aside").iterdir()))
    assert len(aside) > 0


def test_a_repeated_batch_whose_lanes_are_empty_now_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    events = make_events(1_200, seed=6)
    write_in_parts(events, tmp_path / "in", 2)
    run(stream(spark, tmp_path).reorder(LATENCY), tmp_path, "out")
    counts = {lane: len(plain(tmp_path / "out", lane)) for lane in ("results", "late")}
    seen: list[tuple[int, int]] = []
    (tmp_path / "out-checkpoint" / "commits" / "1").unlink()  # as if the driver had died before it
    (tmp_path / "out-checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    sinks = {"quarantine": lambda rows, batch: seen.append((batch, rows.count()))}
    none = stream(spark, tmp_path).where("id < 0").reorder(LATENCY)
    run(none, tmp_path, "out", from_here_on=True, sinks=sinks)
    late = pq.read_table(tmp_path / "out" / "late")
    assert len(late) < counts["late"]
    assert set(late["batch"].to_pylist()) == {0}
    assert committed(spark, tmp_path / "out", "late") == sorted(late["id"].to_pylist())
    assert seen == [(1, 0)], "a sink of the user's replaces its rows too"


def test_a_stale_run_can_neither_write_nor_harm(spark: SparkSession, tmp_path: Path) -> None:
    from latecomer.spark.lane_files import FileLane, announce_lane, take_over
    from latecomer.spark.lane_log import Claim
    from latecomer.spark.sinks import Files

    files, rows = Files(str(tmp_path / "lane")), spark.range(5)
    claim = Claim("me", "results", rows.schema.json(), "parquet")

    def begun(through: int) -> FileLane:
        lane = announce_lane(spark, files, claim)
        return take_over(spark, {"results": lane}, lambda: through)["results"]

    old = begun(-1)
    old(rows, 0)
    old.publish(spark, 0)
    old(spark.range(10, 15), 1)  # and then it is silent for long
    new = begun(1)
    new(spark.range(10, 15), 1)
    assert lc.read(spark, files.path).count() == 5
    new.publish(spark, 1)
    old.publish(spark, 1)
    with pytest.raises(lc.StateError, match=r"query of .*lane must be the last one that was started there; got 'run-"):
        old(rows, 2)
    new(spark.range(20, 25), 2)
    new.publish(spark, 2)
    assert [row["id"] for row in lc.read(spark, files.path).sort("id").collect()] == [
        *range(5),
        *range(10, 15),
        *range(20, 25),
    ]
    assert spark.read.parquet(files.path).count() == 15


def test_a_lane_without_rows_and_one_with_deleted_batches_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(600, seed=7), tmp_path / "in", 2)
    run(stream(spark, tmp_path).reorder("1 hour"), tmp_path, "out")
    late = lc.read(spark, tmp_path / "out", "late")
    assert late.count() == 0
    assert [*pa.schema(pq.read_schema(next((tmp_path / "out/late").rglob("part-*")))).names, "batch"] == late.columns
    shutil.rmtree(tmp_path / "out/results/batch=0")
    with pytest.warns(lc.LatecomerWarning, match="1 batches of .*results were deleted"):
        assert lc.read(spark, tmp_path / "out", "results").count() == 0
    with pytest.raises(lc.InputError, match="folder must be a lane that latecomer wrote"):
        lc.read(spark, tmp_path / "out")


def check_changes(changes: list[dict[str, Any]], place: tuple[str, ...]) -> None:
    """Followed in order, a place has at most one result: a -1 stands before the +1 that takes the void one's place."""
    standing: dict[Any, list[Any]] = {}
    voided = 0
    for row in changes:
        known = standing.setdefault(tuple(row[name] for name in place), [])
        values = {
            name: value for name, value in row.items() if name not in ("change", "pane", "final", "tier", "batch")
        }
        if row["change"] < 0:
            assert known == [values], "only what stands is void"
            known.clear()
            voided += 1
        else:
            assert known == []
            known.append(values)
    assert voided > 20


@pytest.mark.parametrize("strategy", ["tiers", "timetravel"])
def test_what_is_void_comes_before_what_takes_its_place(spark: SparkSession, tmp_path: Path, strategy: str) -> None:
    write_in_parts(make_events(800, seed=8), tmp_path / "in", 2)
    in_function = dict[int, list[dict[str, Any]]]()
    files = tmp_path / "changes"
    result = ask(stream(spark, tmp_path), strategy)

    def collect(rows: DataFrame, batch: int) -> None:
        in_function[batch] = [row.asDict() for row in rows.collect()]

    run(result, tmp_path, "out", sinks={"changes": collect})
    run(result, tmp_path, "again", sinks={"changes": files})
    in_files = [
        row
        for batch in sorted(in_function)
        for part in sorted(files.glob(f"batch={batch}/*/part-*"))
        for row in pq.read_table(part).to_pylist()
    ]
    place = ("window_start", "key")
    check_changes([row for batch in sorted(in_function) for row in in_function[batch]], place)
    check_changes(in_files, place)
