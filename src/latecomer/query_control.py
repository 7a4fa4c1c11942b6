"""Change a running query: `lc.control(checkpoint).set(latency="5 minutes")`.

Values are written to a small file in the checkpoint; the query reads them with its next micro-batch, in which they come
into force in all shards at once. They stay in force when the query is restarted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from latecomer import basic, reorder, slack, tiers, timetravel
from latecomer.contract import VERBS
from latecomer.control_file import FILE, opened, read_file, read_values, write_values
from latecomer.controls import Control, stage_control
from latecomer.errors import InputError, StateError, must

SETTINGS = "latecomer"
BUILT_IN = (basic, reorder, slack, tiers, timetravel)  # the strategies that are always known


class _Controllable(NamedTuple):
    """A setting of a stage that can be changed: its name in headers, and how it is read."""

    stage: str
    header: str
    control: Control


def is_stage(stored: object) -> bool:
    """Whether a stage is as it was stored: its strategy and number, and a value for each that can be changed."""
    if not isinstance(stored, dict) or not isinstance(stored.get("number"), int):
        return False
    strategy = stored.get("strategy")
    settings = VERBS.get(strategy) if isinstance(strategy, str) else None
    controls = {} if settings is None else settings.controls
    return isinstance(strategy, str) and all(isinstance(stored.get(c.stored), int | str) for c in controls.values())


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
        system, place = opened(folder)
        found = system.get_file_info(fs.FileSelector(place, recursive=True))
        shown = [each.path for each in found if each.is_file and os.path.basename(each.path)[0] not in "._"]
        records = [json.loads(read_file(path, system)) for path in shown]
        stages: dict[str, dict[str, Any]] = max(records, key=lambda record: record["number"])["stages"]
        if not all(map(is_stage, stages.values())):
            raise ValueError(stages)
        return dict(sorted(stages.items(), key=lambda stage: stage[1]["number"]))
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError, AttributeError):
        advice = "give the folder that .start(checkpoint=...) was given, on a file system that pyarrow knows"
        raise StateError(must("checkpoint", "be that of a query of this version", checkpoint, advice)) from None
