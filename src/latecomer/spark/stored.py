"""The settings a checkpoint was made with: written beside it, compared before a query starts.

They are written and read by Spark itself, so any file system Spark knows will do, over Connect too. A checkpoint is
bound to shards, schema, roles and strategies; what changes no stored byte (`max_held`, sinks, `where`) may change. What
is a control value is changed with `lc.control`, which a refusal says.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from latecomer.contract import VERBS
from latecomer.controls import Control, stage_control
from latecomer.errors import StateError, must
from latecomer.query_control import FILE, SETTINGS, Values, read_values

Stored = dict[str, Any]


def fingerprint(stored: Stored) -> str:
    """A short name for settings: equal settings, equal name, whatever their control values."""
    return hashlib.sha256(_text(_without_controls(stored)).encode()).hexdigest()[:16]


def _controls(stage: Stored) -> dict[str, Control]:
    """The control values of a stage, by their stored names."""
    settings = VERBS.get(stage["strategy"])
    named = {} if settings is None else settings.controls
    return {each.stored: each for each in named.values()}


def _without_controls(stored: Stored) -> Stored:
    stages = {
        name: {each: value for each, value in stage.items() if each not in _controls(stage)}
        for name, stage in stored["stages"].items()
    }
    return {**stored, "stages": stages}


def _with_controls(stored: Stored, values: Values) -> Stored:
    """The settings with the control values that were set since."""
    stages = {}
    for name, stage in stored["stages"].items():
        known = {each: values.get(stage_control(stage["number"], each), stage[each]) for each in _controls(stage)}
        stages[name] = {**stage, **known}
    return {**stored, "stages": stages}


def _text(stored: Stored) -> str:
    return json.dumps(stored, sort_keys=True, default=str)


def _path(checkpoint: str) -> str:
    return checkpoint.rstrip("/") + f"/{SETTINGS}"


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
    if current == found:
        return True
    changed = _with_controls(found, read_values(control_file(spark, checkpoint))[1])
    for name in dict.fromkeys([*stored, *changed]):
        if changed.get(name) != current.get(name):
            raise _refusal(checkpoint, _difference(name, changed.get(name), current.get(name)), current)
    return True


def _refusal(checkpoint: str, difference: tuple[str, object, object], current: Stored) -> StateError:
    place, before, now = difference
    rule = f"go on with the settings of its checkpoint ({place}: {_short(before)})"
    anew = f"start anew with another checkpoint ({checkpoint} is kept as it is)"
    kind, _, rest = place.partition(".")
    change = _control_call(checkpoint, rest, difference, current) if kind == "stages" else None
    if change is not None:
        advice = f"change it with {change} and start again, set it back, or {anew}"
    else:
        advice = f"set {kind} back, or {anew}"
    return StateError(must("query", rule, _short(now), advice))


def _control_call(checkpoint: str, place: str, difference: tuple[str, object, object], current: Stored) -> str | None:
    """The call that changes a setting of a stage while the query runs, if there is one."""
    stage, _, name = place.partition(".")
    _, before, now = difference
    settings = VERBS.get(current["stages"].get(stage, {}).get("strategy", ""))
    for known, each in () if settings is None else settings.controls.items():
        if each.stored == name and each.can_change(before, now):
            value = f"{now} us" if isinstance(now, int) else now
            of = f", stage={stage!r}" if len(current["stages"]) > 1 else ""
            return f"lc.control({checkpoint!r}{of}).set({known}={value!r})"
    return None


def control_file(spark: SparkSession, checkpoint: str) -> str:
    """Where the control values of a checkpoint that is bound are: Spark knows the whole path."""
    file = spark.read.text(_path(checkpoint)).inputFiles()[0]
    return unquote(file.rsplit("/", 2)[0]) + f"/{FILE}"


def bind(spark: SparkSession, checkpoint: str, stored: Stored) -> None:
    """Write the settings beside a new checkpoint."""
    frame = spark.createDataFrame([(_text(stored),)], "value string")
    frame.coalesce(1).write.mode("overwrite").text(_path(checkpoint))


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
