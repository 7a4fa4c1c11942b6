"""What Spark does to a stream before it is declared: steps with a state drop rows that no lane and no counter sees.

Spark shows its steps as text only, that of `explain`, in a classic session and over Connect alike; what it says there
is the plan of the DataFrame, not what ran before it (another query, a table). A watermark is also in the schema.
"""

from __future__ import annotations

import io
import re
import sys
import threading
import warnings
from contextlib import redirect_stdout
from threading import Lock

from pyspark.sql import DataFrame

from latecomer.errors import LatecomerWarning
from latecomer.spark.counters import PREFIX

_WATERMARK = "spark.watermarkDelayMs"
_NODE = re.compile(r"^[\s:+|-]*(?:\*?\(\d+\) )?\*?(\w+)")
_CALLS = {
    "EventTimeWatermark": "withWatermark",
    "UpdateEventTimeWatermarkColumn": "withWatermark",
    "StateStoreRestore": "groupBy",
    "StateStoreSave": "groupBy",
    "SessionWindowStateStoreRestore": "groupBy",
    "SessionWindowStateStoreSave": "groupBy",
    "StreamingDeduplicate": "dropDuplicates",
    "StreamingDeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
    "StreamingSymmetricHashJoin": "join",
    "StreamingGlobalLimit": "limit",
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithState": "transformWithState",
    "TransformWithStateInPySpark": "transformWithState",
    "TransformWithStateInPandas": "transformWithStateInPandas",
}


def warn_of_dropped(df: DataFrame, stacklevel: int) -> None:
    """Say where Spark may drop rows before they are seen; nothing of a batch, which has no watermark."""
    if not df.isStreaming:
        return
    found = steps_before(plan_of(df))
    if not found and any(_WATERMARK in (field.metadata or {}) for field in df.schema.fields):
        found = ["withWatermark"]
    if found:
        warnings.warn(_text(found), LatecomerWarning, stacklevel=stacklevel + 1)


def _text(found: list[str]) -> str:
    if found == ["withWatermark"]:
        return (
            "withWatermark stands before disordered, where it does nothing: latecomer measures lateness itself; "
            "leave it out"
        )
    if "withWatermark" in found:
        others = ", ".join(name for name in found if name != "withWatermark")
        return (
            f"{others} with a watermark stands before disordered: rows that come later than the watermark are dropped "
            f"there, in no lane and in no counter; declare the stream first, and do it with its results"
        )
    return (
        f"{', '.join(found)} with a state of Spark's stands before disordered: rows that are dropped there are in no "
        "lane and in no counter; if that is what you want, filter this warning out"
    )


def steps_before(plan: str) -> list[str]:
    """The calls of a plan that have a state or a watermark, by the names they are called by."""
    found = []
    for line in plan.splitlines():
        node = _NODE.match(line)
        if node is not None and (node[1] in _CALLS or " state info [ checkpoint" in line):
            found.append(_CALLS.get(node[1], node[1]))
    if f"CollectMetrics {PREFIX}" in plan:  # results of ours, whose rows have lanes and counters
        found = [name for name in found if name != "transformWithState"]
    return sorted(set(found), key=lambda name: (name != "withWatermark", found.index(name)))


_one_at_a_time = Lock()  # the standard output is one for all threads


def plan_of(df: DataFrame) -> str:
    """What `explain` prints of a DataFrame; nothing where a platform does not explain streams."""
    with _one_at_a_time:
        return _explained(df)


def _explained(df: DataFrame) -> str:
    mine = _Mine()
    try:
        with redirect_stdout(mine):
            df.explain()
    except Exception:  # platforms have errors of their own for this
        return ""
    return mine.getvalue()


class _Mine(io.StringIO):
    """Takes what this thread prints; what others print meanwhile goes where it should."""

    def __init__(self) -> None:
        super().__init__()
        self._thread, self._others = threading.get_ident(), sys.stdout

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread:
            return super().write(text)
        return self._others.write(text)
