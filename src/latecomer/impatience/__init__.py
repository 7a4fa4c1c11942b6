"""Impatience sort: runs with descending tails, heads cut at a punctuation, the smallest merged first."""

from latecomer.impatience.ordered import Ordered
from latecomer.impatience.policy import Late
from latecomer.impatience.reorder import Reorder
from latecomer.impatience.sorter import ImpatienceSorter, Released
from latecomer.impatience.tiers import Tiers

__all__ = ["ImpatienceSorter", "Late", "Ordered", "Released", "Reorder", "Tiers"]
