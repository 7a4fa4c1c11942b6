"""The settings a checkpoint was made with: written beside it, compared before a query starts.

They are written and read by Spark itself, so any file system Spark knows will do, over Connect too. A checkpoint is
bound to shards, schema, roles and strategy; what changes no stored byte (`max_held`, sinks, `where`) may change.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from latecomer.errors import StateError, must

Stored = dict[str, Any]


def fingerprint(stored: Stored) -> str:
    """A short name for settings: equal settings, equal name."""
    return hashlib.sha256(_text(stored).encode()).hexdigest()[:16]


def _text(stored: Stored) -> str:
    return json.dumps(stored, sort_keys=True, default=str)


def _path(checkpoint: str) -> str:
    return checkpoint.rstrip("/") + "/latecomer"


def is_bound(spark: SparkSession, checkpoint: str, stored: Stored) -> bool:
    """Whether a checkpoint exists; one that was made with other settings is refused."""
    found = _read(spark, checkpoint)
    if found is None:
        return False
    if found.get("format") != stored.get("format"):
        advice = f"use the version of latecomer that wrote it, or another checkpoint ({checkpoint} is kept as it is)"
        rule = f"have format {stored.get('format')}"
        raise StateError(must("checkpoint", rule, found.get("format"), advice))
    current = json.loads(_text(stored))  # as it would be read back: tuples are lists, durations are text
    for name in dict.fromkeys([*stored, *found]):
        if found.get(name) != current.get(name):
            place, before, now = _difference(name, found.get(name), current.get(name))
            rule = f"go on with the settings its checkpoint was made with ({place}: {_short(before)})"
            advice = f"set {name} back, or start anew with another checkpoint ({checkpoint} is kept as it is)"
            raise StateError(must("query", rule, _short(now), advice))
    return True


def bind(spark: SparkSession, checkpoint: str, stored: Stored) -> None:
    """Write the settings beside a new checkpoint."""
    frame = spark.createDataFrame([(_text(stored),)], "value string")
    frame.coalesce(1).write.mode("overwrite").text(_path(checkpoint))


def is_local(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a checkpoint that is bound lies on a disk of this machine: Spark knows, whatever its path looks like."""
    return all(file.startswith("file:") for file in spark.read.text(_path(checkpoint)).inputFiles())


def _difference(place: str, before: object, now: object) -> tuple[str, object, object]:
    """Where two settings differ, as deep inside as both have names, and how."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*before, *now]):
            if before.get(name) != now.get(name):
                return _difference(f"{place}.{name}", before.get(name), now.get(name))
    return place, before, now


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _read(spark: SparkSession, checkpoint: str) -> Stored | None:
    try:
        rows = spark.read.text(_path(checkpoint)).collect()
    except AnalysisException:  # the path does not exist: a new checkpoint
        return None
    if not rows:
        return None
    found: Stored = json.loads(rows[0]["value"])
    return found
