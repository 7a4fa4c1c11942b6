"""A stream in event-time order, after a fixed latency (the Impatience sort, on stored runs)."""

from latecomer.reorder.reorder import Reorder

__all__ = ["Reorder"]
