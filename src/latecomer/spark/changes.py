"""The results that stand, from a DataFrame of changes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from latecomer.errors import InputError, must
from latecomer.outputs import CHANGE, REVISION_COLUMNS
from latecomer.spark.declare import quoted

_HOW = (*REVISION_COLUMNS, "batch")  # when and how a row was given, not what it says


def consolidate_frame(changes: DataFrame) -> DataFrame:
    """Sum changes by all other columns: every result that stands, as often as it does."""
    if CHANGE not in changes.columns:
        advice = "give the view `changes`, or the files it was written to"
        raise InputError(must("consolidate", f"find a column {CHANGE}", changes.columns, advice))
    if changes.isStreaming:
        raise InputError(must("consolidate", "be given a batch DataFrame", "a stream", "write it to files first"))
    names = [name for name in changes.columns if name not in _HOW]
    counts = changes.groupBy(*[quoted(name) for name in names]).agg(
        F.sum(F.coalesce(F.col(CHANGE).cast("bigint"), F.lit(0))).alias(CHANGE)
    )
    text = must(
        "changes", "void only results that were given", "one void too many", "give all changes, from the first on"
    )
    checked = F.when(F.col(CHANGE) < 0, F.raise_error(F.lit(text)).cast("bigint")).otherwise(F.col(CHANGE))
    repeated = F.explode(F.array_repeat(F.lit(1), checked.cast("int"))).alias(CHANGE)
    return counts.select(*[quoted(name) for name in names], repeated).drop(CHANGE)
