"""Impatience sort in memory: runs with descending tails, heads cut at a punctuation, the smallest merged first."""

from latecomer.sorter.policy import Late
from latecomer.sorter.sorter import ImpatienceSorter, Released

__all__ = ["ImpatienceSorter", "Late", "Released"]
