"""Exact results for very late data, by replaying contexts in shifted time (TinTiN)."""

from latecomer.timetravel.firing import EAGER, LAZY
from latecomer.timetravel.holes import UNKNOWN, Enumerator, Holes, Period, Told
from latecomer.timetravel.settings import TimeTravel

__all__ = ["EAGER", "LAZY", "UNKNOWN", "Enumerator", "Holes", "Period", "TimeTravel", "Told"]
