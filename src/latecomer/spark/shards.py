"""How many shards, and which shard keys, so that every partition has exactly one."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from latecomer.errors import InputError, must

MOST_SHARDS = 4096


def default_shards(spark: SparkSession) -> int:
    """As many as the session runs tasks at once."""
    ids = spark.range(0, 1 << 16).select(F.spark_partition_id().alias("task"))
    return ids.distinct().count()


def check_shards(shards: int) -> int:
    """A number Spark can make partitions of."""
    if not isinstance(shards, int) or isinstance(shards, bool) or not 1 <= shards <= MOST_SHARDS:
        raise InputError(must("shards", f"be a whole number from 1 to {MOST_SHARDS}", shards, "try your cores"))
    return shards


def shard_keys(spark: SparkSession, shards: int) -> tuple[int, ...]:
    """One integer for each partition that Spark's own hash sends there."""
    tried = 64 * shards + 64
    rows = spark.sql(
        f"SELECT transform(sequence(0, {tried}), i -> pmod(hash(CAST(i AS INT)), {shards})) AS places"
    ).collect()
    found: dict[int, int] = {}
    for candidate, place in enumerate(rows[0]["places"]):
        found.setdefault(place, candidate)
    if len(found) < shards:
        raise InputError(must("shards", "each find a key", shards, "use fewer shards"))
    return tuple(found[place] for place in range(shards))
