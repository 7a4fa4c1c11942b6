"""Right answers from late data, on Spark.

>>> import latecomer as lc
>>> lc.Hold("10 minutes").latency_us
600000000
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from latecomer.basic import Hold, PassThrough
from latecomer.errors import HeldError, InputError, LatecomerError, LatecomerWarning, StateError

if TYPE_CHECKING:
    from latecomer.spark.counters import read_counters
    from latecomer.spark.disordered import Events, disordered
    from latecomer.spark.result import Result
    from latecomer.spark.session import session
    from latecomer.spark.sinks import Discard, Files

__version__ = "0.1.0"

__all__ = [
    "Discard",
    "Events",
    "Files",
    "HeldError",
    "Hold",
    "InputError",
    "LatecomerError",
    "LatecomerWarning",
    "PassThrough",
    "Result",
    "StateError",
    "disordered",
    "read_counters",
    "session",
]

# What needs Spark is imported when it is first used: a machine runs, and the command line answers, without it.
_ON_SPARK = {
    "Discard": "sinks",
    "Events": "disordered",
    "Files": "sinks",
    "Result": "result",
    "disordered": "disordered",
    "read_counters": "counters",
    "session": "session",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_SPARK:
        raise AttributeError(f"module 'latecomer' has no attribute {name!r}")
    return getattr(import_module(f"latecomer.spark.{_ON_SPARK[name]}"), name)
