"""Made streams, each with a size and a seed."""

from __future__ import annotations

from inspect import signature
from typing import Any

from latecomer.disorder.presets.logs import AndroidLog, CloudLog, Synthetic
from latecomer.disorder.presets.meters import Meters
from latecomer.disorder.presets.model import Preset
from latecomer.disorder.presets.traffic import Traffic
from latecomer.errors import InputError, must

PRESETS: dict[str, type[Preset]] = {
    "synthetic": Synthetic,
    "cloudlog": CloudLog,
    "androidlog": AndroidLog,
    "meters": Meters,
    "traffic": Traffic,
}


def preset(name: str, **settings: Any) -> Preset:
    """A made stream by name, with its size and seed.

    >>> preset("synthetic", events=1_000, seed=7).table().num_rows
    1000
    """
    if name not in PRESETS:
        raise InputError(must("preset", f"be one of {', '.join(PRESETS)}", name, "choose one"))
    kind = PRESETS[name]
    known = signature(kind).parameters
    for setting in settings:
        if setting not in known:
            raise InputError(must(f"preset {name}", f"be set by {', '.join(known)}", setting, "leave it out"))
    return kind(**settings)


__all__ = ["PRESETS", "Preset", "preset", "AndroidLog", "CloudLog", "Meters", "Synthetic", "Traffic"]
