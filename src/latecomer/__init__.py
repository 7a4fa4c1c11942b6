"""Right answers from late data, on Spark.

>>> import latecomer as lc
>>> lc.Reorder("10 minutes").latency_us
600000000
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latecomer.basic import PassThrough
    from latecomer.disorder.presets import preset
    from latecomer.errors import (
        HeldError,
        InputError,
        LatecomerError,
        LatecomerWarning,
        LateError,
        OrderSensitiveError,
        StateError,
    )
    from latecomer.experiments.disorder import generate, generate_preset, profile_path
    from latecomer.impatience import ImpatienceSorter, Released, Reorder
    from latecomer.report import to_html
    from latecomer.spark.counters import read_counters
    from latecomer.spark.disordered import Events, disordered
    from latecomer.spark.generating import preset_frame
    from latecomer.spark.playback import playback, register_playback
    from latecomer.spark.profiling import profile
    from latecomer.spark.result import Result
    from latecomer.spark.session import session
    from latecomer.spark.sinks import Discard, Files

__version__ = "0.1.0"

__all__ = [
    "Discard",
    "Events",
    "Files",
    "HeldError",
    "ImpatienceSorter",
    "InputError",
    "LateError",
    "LatecomerError",
    "LatecomerWarning",
    "OrderSensitiveError",
    "PassThrough",
    "Released",
    "Reorder",
    "Result",
    "StateError",
    "disordered",
    "generate",
    "generate_preset",
    "playback",
    "preset",
    "preset_frame",
    "profile",
    "profile_path",
    "read_counters",
    "register_playback",
    "session",
    "to_html",
]

# Names are imported when they are first used: Spark's workers and the command line start without what they don't need.
_HOMES = {
    "Discard": "spark.sinks",
    "Events": "spark.disordered",
    "Files": "spark.sinks",
    "HeldError": "errors",
    "ImpatienceSorter": "impatience",
    "InputError": "errors",
    "LateError": "errors",
    "LatecomerError": "errors",
    "LatecomerWarning": "errors",
    "OrderSensitiveError": "errors",
    "PassThrough": "basic",
    "Released": "impatience",
    "Reorder": "impatience",
    "Result": "spark.result",
    "StateError": "errors",
    "disordered": "spark.disordered",
    "generate": "experiments.disorder",
    "generate_preset": "experiments.disorder",
    "playback": "spark.playback",
    "preset": "disorder.presets",
    "preset_frame": "spark.generating",
    "profile": "spark.profiling",
    "profile_path": "experiments.disorder",
    "read_counters": "spark.counters",
    "register_playback": "spark.playback",
    "session": "spark.session",
    "to_html": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'latecomer' has no attribute {name!r}")
    return getattr(import_module(f"latecomer.{_HOMES[name]}"), name)
