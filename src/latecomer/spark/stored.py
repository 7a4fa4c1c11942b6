"""The settings a checkpoint was made with: written beside it, compared before a query starts.

Each start that changes them adds a record; the last one holds. A checkpoint is bound to shards, schema, roles and
strategies. What is done to rows before the strategy (`input`) changes no stored byte: it is compared too, and may
change where the user says so. What is a control value is changed with `lc.control`, which a refusal says. Before Spark
has planned the first batch nothing is bound.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from latecomer.contract import VERBS
from latecomer.control_file import FILE, Values, read_values
from latecomer.controls import Control, stage_control
from latecomer.errors import StateError, must
from latecomer.query_control import SETTINGS, is_stage
from latecomer.spark.records import Records, records_at

Stored = dict[str, Any]
INPUT = "input"  # what is done to rows before the strategy
SHARDS = "shards"
_OWN = ("id", "number")  # what a record has besides the settings


def fingerprint(stored: Stored) -> str:
    """A short name for settings: equal settings, equal name, whatever their control values and their input."""
    bound = {name: value for name, value in _without_controls(stored).items() if name != INPUT}
    return hashlib.sha256(_text(bound).encode()).hexdigest()[:16]


def question(stored: Stored) -> str:
    """A short name for all that a query asks; in how many shards it is answered changes no answer."""
    asked = {name: value for name, value in stored.items() if name != SHARDS}
    return hashlib.sha256(_text(asked).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Checkpoint:
    """What stands in a checkpoint before a query starts.

    id: made once, it marks the folders the query writes to. settings: the last record, None where there is none.
    planned: the last batch in Spark's offset log, -1 where there is none.
    """

    path: str
    id: str
    number: int
    settings: Stored | None
    planned: int

    @property
    def bound(self) -> bool:
        """Whether there are batches that depend on the settings."""
        return self.settings is not None and self.planned >= 0

    def must_be_written(self, spark: SparkSession, stored: Stored, *, from_here_on: bool) -> bool:
        """Whether new settings are to be stored; those that may not change are refused."""
        current = json.loads(_text(stored))  # as it would be read back: tuples are lists, durations are text
        if self.settings is None or current == self.settings:
            return self.settings is None
        values = read_values(control_file(spark, self.path))[1]
        if self.planned < 0 and not values:
            return True  # of a start that failed: nothing depends on them
        known = self.settings
        if known.get("stages") != current.get("stages"):
            known = _with_controls(known, values)
        if from_here_on:
            known = {**known, INPUT: current.get(INPUT)}
        for name in sorted(dict.fromkeys([*stored, *known]), key=INPUT.__eq__):  # first what may never change
            if known.get(name) != current.get(name):
                raise _refusal(self.path, _difference(name, known.get(name), current.get(name)), current)
        return from_here_on and self.settings.get(INPUT) != current.get(INPUT)

    def write(self, spark: SparkSession, stored: Stored) -> None:
        """Add a record of the settings; the control values they were made with stay as they are."""
        kept = {**self.settings, INPUT: stored[INPUT]} if self.settings and self.bound else stored
        record = {**json.loads(_text(kept)), "id": self.id, "number": self.number + 1}
        _records(spark, self.path).append(spark, f"{self.number + 1:06d}-{uuid.uuid4().hex[:8]}", record)


def find_checkpoint(spark: SparkSession, path: str, format: int | None) -> Checkpoint:
    """What stands in a checkpoint; one of another format, of another program, or a damaged one is refused."""
    records, planned = _records(spark, path).read(spark), last_planned(spark, path)
    if not records:
        if planned >= 0:
            advice = f"choose another: Spark has run a query there, and the folder {SETTINGS} of ours is missing"
            raise StateError(must("checkpoint", "be new, or one that latecomer made", path, advice))
        return Checkpoint(path, uuid.uuid4().hex, -1, None, planned)
    for record in records:
        if record.get("format") != format:
            advice = f"use the version of latecomer that wrote it, or another checkpoint ({path} is kept as it is)"
            raise StateError(must("checkpoint", f"have format {format}", record.get("format"), advice))
        _check_whole(path, record)
    last = max(records, key=lambda record: (record["number"], record["id"]))
    settings = {name: value for name, value in last.items() if name not in _OWN}
    return Checkpoint(path, last["id"], last["number"], settings, planned)


def last_planned(spark: SparkSession, path: str) -> int:
    """The last batch in Spark's offset log, -1 where there is none."""
    return last_batch(spark, records_at(spark, path.rstrip("/") + "/offsets"))


def last_batch(spark: SparkSession, log: Records) -> int:
    """The last batch in a log of Spark's, -1 where there is none."""
    found = (re.search(r"/(\d+)$", each) for each in log.paths(spark))
    return max((int(each[1]) for each in found if each), default=-1)


def _check_whole(path: str, record: Stored) -> None:
    stages = record.get("stages")
    parts = stages.values() if isinstance(stages, dict) else [None]
    whole = isinstance(record.get("id"), str) and isinstance(record.get("number"), int)
    if not whole or not all(map(is_stage, parts)):
        advice = "put back what was there, or start anew with another checkpoint (nothing was changed)"
        rule = "be what latecomer wrote"
        raise StateError(must(f"settings in {path}/{SETTINGS}", rule, _short(record), advice))


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


def _records(spark: SparkSession, checkpoint: str) -> Records:
    return records_at(spark, checkpoint.rstrip("/") + f"/{SETTINGS}")


def _refusal(checkpoint: str, difference: tuple[str, object, object], current: Stored) -> StateError:
    place, before, now = difference
    rule = f"go on with the settings of its checkpoint ({place}: {_short(before)})"
    anew = f"start anew with another checkpoint ({checkpoint} is kept as it is)"
    kind, _, rest = place.partition(".")
    change = _control_call(checkpoint, rest, difference, current) if kind == "stages" else None
    if change is not None:
        advice = f"change it with {change} and start again, set it back, or {anew}"
    elif kind == INPUT:
        advice = f"say start(..., from_here_on=True) if rows are to be taken so from here on, set it back, or {anew}"
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
    """Where the control values of a checkpoint that has settings are: Spark knows the whole path."""
    file = _records(spark, checkpoint).paths(spark)[0]
    return re.split(f"/{SETTINGS}/(?!.*/{SETTINGS}/)", file)[0] + f"/{FILE}"


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
