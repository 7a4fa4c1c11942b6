"""What each source and each key of a stream is like, merged from parts that tasks saw."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from latecomer.codec import integers
from latecomer.disorder.profile import Holes, SourceProfile
from latecomer.disorder.profiler import encode, key_gaps, worst_first
from latecomer.events import Int64s
from latecomer.spark.profiling.blocks import Batches, Blocks
from latecomer.spark.profiling.lateness import lateness_of

KEYS_PART = 1 << 21  # about how many rows of some keys are looked at together
_SEEN = (
    "source string, block bigint, events bigint, late bigint, lateness_us string, most_us bigint, "
    "first_us bigint, last_us bigint, silence_us bigint"
)
_MERGED = "source string, events bigint, late bigint, mean_us bigint, most_us bigint, last_us bigint, silence_us bigint"
_GAPS = "missing bigint, gaps bigint, longest_us bigint, filled bigint"


def per_source(blocks: Blocks) -> list[SourceProfile]:
    """Each source by itself, the one that lags most first."""
    walker, arriving = blocks.walker(), blocks.wide is not None
    end_us = blocks.wide[1] if blocks.wide is not None else blocks.span[1]

    def task(batches: Batches) -> Batches:
        waiting: list[tuple[pa.Array, Int64s, Int64s]] = []
        number = -1
        for piece, late_us in lateness_of(walker, batches):
            if piece.at.number != number and waiting:
                yield _seen(number, waiting)
                waiting = []
            number = piece.at.number
            clock_us = piece.batch["arrival_us"].to_numpy() if arriving else piece.ts_us + late_us
            waiting.append((piece.batch["source"], clock_us, late_us))
        if waiting:
            yield _seen(number, waiting)

    rows = (
        blocks.pick("source", *(["arrival_us"] if arriving else []))
        .mapInArrow(task, _SEEN)
        .groupBy("source")
        .applyInArrow(_merge, _MERGED)
        .collect()
    )
    found = [
        SourceProfile(
            name=row["source"],
            events=row["events"],
            late=row["late"],
            mean_lateness_us=row["mean_us"],
            max_lateness_us=row["most_us"],
            longest_silence_us=row["silence_us"],
            silent_at_end_us=end_us - row["last_us"],
        )
        for row in rows
    ]
    return sorted(found, key=worst_first)


def _seen(number: int, waiting: list[tuple[pa.Array, Int64s, Int64s]]) -> pa.RecordBatch:
    """What one block saw of each source."""
    names, codes = encode(pa.concat_arrays([source for source, _, _ in waiting]))
    clock_us = np.concatenate([clock for _, clock, _ in waiting])
    late_us = np.concatenate([late for _, _, late in waiting])
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    columns: dict[str, list[object]] = {name.split()[0]: [] for name in _SEEN.split(", ")}
    for code, rows in zip(present, np.split(order, starts[1:]), strict=True):
        at, late = clock_us[rows], late_us[rows]
        values = (names[code], number, len(rows), int(np.count_nonzero(late)), str(int(late.sum(dtype=object))))
        silence = int(np.diff(at).max(initial=0))
        for name, value in zip(columns, (*values, int(late.max()), int(at[0]), int(at[-1]), silence), strict=True):
            columns[name].append(value)
    kinds = {"source": pa.string(), "lateness_us": pa.string()}
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values, kinds.get(name, pa.int64())) for name, values in columns.items()}
    )


def _merge(table: pa.Table) -> pa.Table:
    """One source over all blocks: silences also lie between blocks."""
    rows = table.sort_by("block").to_pydict()
    events = sum(rows["events"])
    between = [later - last for last, later in zip(rows["last_us"], rows["first_us"][1:], strict=False)]
    values = {
        "source": pa.array(rows["source"][:1], pa.string()),
        "events": [events],
        "late": [sum(rows["late"])],
        "mean_us": [sum(map(int, rows["lateness_us"])) // events],
        "most_us": [max(rows["most_us"])],
        "last_us": [rows["last_us"][-1]],
        "silence_us": [max([*rows["silence_us"], *between])],
    }
    return pa.table(values)


def key_holes(blocks: Blocks, period_us: int) -> Holes:
    """Where keys' readings, one every period, are missing."""
    parts = max(1, -(-blocks.events // KEYS_PART))
    rows = blocks.rows if blocks.has_key else blocks.rows.withColumn("key", F.lit(None).cast("string"))
    picked = rows.select(F.pmod(F.xxhash64("key"), F.lit(parts)).alias("bucket"), "part", "place", "ts_us", "key")

    def gaps(table: pa.Table) -> pa.Table:
        order = np.lexsort((integers(table["place"]), integers(table["part"])))
        _, codes = encode(table["key"].combine_chunks())
        found = key_gaps(table["ts_us"].to_numpy()[order], codes[order], period_us)
        return pa.table({name: getattr(found, name) for name in ("missing", "gaps", "longest_us", "filled")})

    keys = picked.groupBy("bucket").applyInArrow(gaps, _GAPS).persist()
    try:
        total = keys.agg(
            F.count("*").alias("keys"),
            F.sum("missing").alias("missing"),
            F.sum("gaps").alias("gaps"),
            F.count_if(F.col("gaps") > 0).alias("with_gaps"),
            F.max("longest_us").alias("longest_us"),
            F.sum("filled").alias("filled"),
        ).collect()[0]
        worst = keys.orderBy(F.desc("missing")).limit(-(-total["keys"] // 10)).agg(F.sum("missing")).collect()[0][0]
    finally:
        keys.unpersist()
    missing = int(total["missing"] or 0)
    return Holes(
        period_us=period_us,
        missing=missing,
        gaps=int(total["gaps"] or 0),
        keys_with_gaps=total["with_gaps"],
        longest_us=int(total["longest_us"] or 0),
        filled_late=int(total["filled"] or 0),
        in_worst_tenth=int(worst or 0) / missing if missing else 0.0,
    )
