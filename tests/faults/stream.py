"""A stream to be killed: reads files one at a time, holds, writes all lanes, says when it is done."""

from __future__ import annotations

import sys

import latecomer as lc
from tests.spark.streams import LATENCY_US, SCHEMA


def main(folder: str, out: str, strategy: str) -> None:
    spark = lc.session("latecomer-faults", memory="1g")
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    events = lc.disordered(
        df, time="ts", key="key", source="source", arrival="arrival", order="id", max_ahead="1 hour", shards=2
    )
    events = events.where("key <> 3")
    if strategy == "reorder":
        result = events.reorder(f"{LATENCY_US} us")
    else:
        asked = events.hopping("3 seconds", "1 second").aggregate(lc.count(), lc.max("id"))
        result = asked.tiers(f"{LATENCY_US // 4} us", f"{LATENCY_US} us")
    query = result.start(f"{folder}/{out}", checkpoint=f"{folder}/{out}-checkpoint", available_now=True)
    query.awaitTermination()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
