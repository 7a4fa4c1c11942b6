"""Change a running query: `lc.control(checkpoint).set(latency="5 minutes")`.

Values are written to a small file in the checkpoint; the query reads them with its next micro-batch, in which they come
into force in all shards at once. They stay in force when the query is restarted.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from latecomer import basic, reorder, slack, tiers, timetravel
from latecomer.contract import VERBS
from latecomer.controls import Control, stage_control
from latecomer.errors import InputError, StateError, must

FILE, SETTINGS = "latecomer-control.json", "latecomer"
BUILT_IN = (basic, reorder, slack, tiers, timetravel)  # the strategies that are always known

Values = dict[str, int | str]


class _Controllable(NamedTuple):
    """A setting of a stage that can be changed: its name in headers, and how it is read."""

    stage: str
    header: str
    control: Control


def read_values(path: str) -> tuple[int, Values]:
    """The version and the control values that a file has; none where there is no such file."""
    try:
        data = _read(path)
    except FileNotFoundError:
        return 0, {}
    try:
        found = json.loads(data)
        version, values = int(found["version"]), dict(found["values"])
        if not all(isinstance(value, int | str) for value in values.values()):
            raise ValueError(values)
        return version, values
    except (ValueError, TypeError, KeyError) as error:
        advice = "delete it and set the values again"
        raise StateError(must("control file", "be what latecomer wrote", path, advice)) from error


def is_stage(stored: object) -> bool:
    """Whether a stage is as it was stored: its strategy and number, and a value for each that can be changed."""
    if not isinstance(stored, dict) or not isinstance(stored.get("number"), int):
        return False
    strategy = stored.get("strategy")
    settings = VERBS.get(strategy) if isinstance(strategy, str) else None
    controls = {} if settings is None else settings.controls
    return isinstance(strategy, str) and all(isinstance(stored.get(c.stored), int | str) for c in controls.values())


def write_values(path: str, values: Values) -> None:
    """Write control values as one file, which is there as a whole or not at all."""
    system, place = _opened(path)
    version = time.time_ns() // 1_000  # later than any that the query has seen, also if the file was lost
    new = f"{place}.{uuid.uuid4().hex[:8]}.new"  # two may write at once: a person, and what steers a query
    with system.open_output_stream(new) as stream:
        stream.write(json.dumps({"version": version, "values": values}).encode())
    system.move(new, place)


class Controlled:
    """A query that can be changed while it runs, by its checkpoint."""

    def __init__(self, checkpoint: str, stage: str | None = None) -> None:
        self._checkpoint = checkpoint.rstrip("/")
        self._file = f"{self._checkpoint}/{FILE}"
        self._stages = _stored_stages(self._checkpoint)
        if stage is not None and stage not in self._stages:
            rule = f"be one of {', '.join(self._stages)}"
            raise InputError(must("stage", rule, stage, "the stages are named after their strategies"))
        self._stage = stage

    def set(self, **values: Any) -> None:
        """Change settings: in force from the query's next micro-batch on, or, if it is not running, from its next."""
        if not values:
            raise InputError(must("set", "be given a setting", "none", f"{self._known()}"))
        _, written = read_values(self._file)
        for name, value in values.items():
            found = self._find(name)
            stored, now = self._stages[found.stage][found.control.stored], found.control.read(value)
            if not found.control.can_change(stored, now):
                rule = f"stay as the query began with it ({stored!r}), since it changes the columns"
                raise InputError(must(name, rule, value, "start anew with another checkpoint"))
            if found.control.check is not None:
                found.control.check(self._stages[found.stage], now)
            written[found.header] = now
        write_values(self._file, written)

    def values(self) -> dict[str, int | str]:
        """The settings that can be changed, as `stage.name`, and what was last set; durations in microseconds."""
        _, written = read_values(self._file)
        return {
            f"{each.stage}.{each.control.stored}": written.get(
                each.header, self._stages[each.stage][each.control.stored]
            )
            for each in self._controllable()
        }

    def _find(self, name: str) -> _Controllable:
        found = [each for each in self._controllable() if name == _name_of(each)]
        if not found:
            raise InputError(must("control", f"name a setting that can change ({self._known()})", name, "choose one"))
        if len(found) > 1:
            stages = ", ".join(each.stage for each in found)
            advice = f"e.g. stage={found[0].stage!r}, on the command line --stage {found[0].stage}"
            raise InputError(must(f"control of {name}", f"name a stage ({stages})", None, advice))
        return found[0]

    def _controllable(self) -> Iterator[_Controllable]:
        for stage, stored in self._stages.items():
            settings = VERBS.get(stored["strategy"])
            if settings is not None and self._stage in (None, stage):
                for control in settings.controls.values():
                    yield _Controllable(stage, stage_control(stored["number"], control.stored), control)

    def _known(self) -> str:
        known = [f"{_name_of(each)}: {each.control.does}" for each in self._controllable()]
        return "; ".join(known) or "this query has none"


def control(checkpoint: str | os.PathLike[str], *, stage: str | None = None) -> Controlled:
    """The query of a checkpoint, to be changed while it runs; `stage`: of several, by the name of its strategy."""
    return Controlled(os.fspath(checkpoint), stage)


def _name_of(found: _Controllable) -> str:
    """The name by which users know a control value."""
    return next(name for s in VERBS.values() for name, each in s.controls.items() if each is found.control)


def _stored_stages(checkpoint: str) -> dict[str, dict[str, Any]]:
    """What the query of a checkpoint was started with, stage by stage."""
    folder = f"{checkpoint}/{SETTINGS}"
    try:
        system, place = _opened(folder)
        found = system.get_file_info(fs.FileSelector(place, recursive=True))
        shown = [each.path for each in found if each.is_file and os.path.basename(each.path)[0] not in "._"]
        records = [json.loads(_read(path, system)) for path in shown]
        stages: dict[str, dict[str, Any]] = max(records, key=lambda record: record["number"])["stages"]
        if not all(map(is_stage, stages.values())):
            raise ValueError(stages)
        return dict(sorted(stages.items(), key=lambda stage: stage[1]["number"]))
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError, AttributeError):
        advice = "give the folder that .start(checkpoint=...) was given, on a file system that pyarrow knows"
        raise StateError(must("checkpoint", "be that of a query of this version", checkpoint, advice)) from None


def _read(path: str, system: fs.FileSystem | None = None) -> bytes:
    known, place = (system, path) if system is not None else _opened(path)
    with known.open_input_stream(place) as stream:
        data: bytes = stream.read()
    return data


def _opened(path: str) -> tuple[fs.FileSystem, str]:
    if path.startswith("file:"):
        return fs.LocalFileSystem(), "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path:
        system, place = fs.FileSystem.from_uri(path)
        return system, place
    return fs.LocalFileSystem(), os.path.abspath(path)
