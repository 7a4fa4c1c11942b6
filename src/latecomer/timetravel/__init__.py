"""Exact results for very late data, by replaying contexts in shifted time (TinTiN)."""

from latecomer.timetravel.firing import EAGER, LAZY, Trigger
from latecomer.timetravel.holes import UNKNOWN, Enumerator, HoleFunction, Holes, Period, Told, holes_of
from latecomer.timetravel.settings import TimeTravel

__all__ = [
    "EAGER",
    "LAZY",
    "UNKNOWN",
    "Enumerator",
    "HoleFunction",
    "Holes",
    "Period",
    "TimeTravel",
    "Told",
    "Trigger",
    "holes_of",
]
