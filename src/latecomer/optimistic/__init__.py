"""Optimistic processing: answer at once, take back what was wrong."""

from latecomer.optimistic.settings import Optimistic

__all__ = ["Optimistic"]
