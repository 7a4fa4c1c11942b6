"""Optimistic processing: answer at once, take back what was wrong."""

from latecomer.optimistic.settings import Optimistic
from latecomer.optimistic.windows import OptimisticSessions, OptimisticWindows

__all__ = ["Optimistic", "OptimisticSessions", "OptimisticWindows"]
