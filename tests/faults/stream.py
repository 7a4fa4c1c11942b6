"""A stream to be killed: reads files one at a time, holds, writes all lanes, says when it is done."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

import latecomer as lc
from tests.spark.streams import LATENCY_US, SCHEMA


def main(folder: str, out: str, strategy: str) -> None:
    spark = lc.session("latecomer-faults", memory="1g")
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    events = lc.disordered(
        df, time="ts", key="key", source="source", arrival="arrival", order="id", max_ahead="1 hour", shards=2
    )
    events = events.where("key <> 3")
    sinks = {} if strategy == "reorder" else {"changes": f"{folder}/{out}/changes"}
    result = ask(events, strategy)
    query = result.start(f"{folder}/{out}", checkpoint=f"{folder}/{out}-checkpoint", sinks=sinks, available_now=True)
    query.awaitTermination()
    print("done", flush=True)


def ask(events: lc.Events, strategy: str) -> lc.Result:
    """One of the strategies on the same events."""
    if strategy == "reorder":
        return events.reorder(f"{LATENCY_US} us")
    asked = (lc.count(), lc.max("id"))
    if strategy == "stages":
        sources = events.reorder(f"{LATENCY_US} us").by("source").hopping("3 seconds", "1 second")
        return sources.aggregate(*asked).tiers("1 ms")
    if strategy == "tiers":
        return (
            events.hopping("3 seconds", "1 second").aggregate(*asked).tiers(f"{LATENCY_US // 4} us", f"{LATENCY_US} us")
        )
    chain = lc.Chain(lc.WindowAggregation(lc.Window("3 seconds", "1 second"), asked))
    return events.app(chain).timetravel("4 seconds", holes=anywhere)


def anywhere(before: pa.RecordBatch, after: pa.RecordBatch) -> pa.Array:
    """Between any two events any number may be missing."""
    return pa.array(np.full(before.num_rows, -1))


if __name__ == "__main__":
    main(*sys.argv[1:])
