"""A user's project, as mypy sees it in strict mode: every call of the README with its types."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc


def start(spark: SparkSession, folder: str) -> StreamingQuery:
    readings: DataFrame = spark.readStream.schema("ts timestamp, meter int, kwh double").parquet(folder)
    events: lc.Events = lc.disordered(readings, time="ts", key="meter", max_ahead="1 hour")
    result: lc.Result = events.where("kwh >= 0").reorder("10 minutes", late="drop")
    result.explain()
    return result.start("out", checkpoint="checkpoint", every="10 seconds", tune=False)


def tiers(events: lc.Events) -> DataFrame:
    answers: lc.Result = (
        events.tumbling("1 hour").aggregate(lc.count(), lc.max("kwh").alias("most")).tiers("1 s", "1 h")
    )
    return answers.tier(1).unionByName(answers.results.drop("tier"))


def stages(events: lc.Events) -> lc.Result:
    return events.reorder("1 s").by("area").tumbling("1 hour").aggregate(lc.sum("kwh")).tiers("1 s")


def repaired(events: lc.Events) -> dict[str, int]:
    result = events.hopping("2 hours", "1 hour").aggregate(lc.first("kwh")).timetravel("40 days", every="1 hour")
    return result.write("out", sinks={"changes": "corrections"})


def held(query: StreamingQuery) -> int:
    counters: dict[str, int] | None = lc.read_counters(query.lastProgress)
    return 0 if counters is None else counters["held"]


def change(checkpoint: str) -> None:
    lc.control(checkpoint).set(latency="5 minutes")


def made() -> int:
    rows: int = lc.preset("synthetic", events=1_000, seed=7).table().num_rows
    return rows


try:
    print(held(start(lc.session(), "readings")))
except lc.LatecomerError as error:
    print(error)
