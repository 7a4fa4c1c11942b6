"""One question with several latencies: early answers that get better (the Impatience framework)."""

from latecomer.tiers.ordered import Ordered
from latecomer.tiers.tiers import Tiers

__all__ = ["Ordered", "Tiers"]
