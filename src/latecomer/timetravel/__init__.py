"""Exact results for very late data, by replaying contexts in shifted time (TinTiN)."""

from latecomer.timetravel.engine_query import EngineQuery, EngineTravel
from latecomer.timetravel.holes import UNKNOWN, Anywhere, CustomHoles, Enumerator, HoleFunction, Holes, Period, holes_of
from latecomer.timetravel.settings import TimeTravel
from latecomer.timetravel.triggers import EAGER, LAZY, Trigger

__all__ = [
    "EAGER",
    "LAZY",
    "UNKNOWN",
    "EngineQuery",
    "EngineTravel",
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
