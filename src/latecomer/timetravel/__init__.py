"""Exact results for very late data, by replaying contexts in shifted time (TinTiN)."""

from latecomer.timetravel.holes import UNKNOWN, Anywhere, CustomHoles, Enumerator, HoleFunction, Holes, Period, holes_of
from latecomer.timetravel.settings import TimeTravel
from latecomer.timetravel.triggers import EAGER, LAZY, Trigger

__all__ = [
    "EAGER",
    "LAZY",
    "UNKNOWN",
    "Anywhere",
    "Enumerator",
    "HoleFunction",
    "Holes",
    "Period",
    "TimeTravel",
    "CustomHoles",
    "Trigger",
    "holes_of",
]
