"""Sorted runs of events in a store, and merging them: what every strategy that holds events shares."""

from latecomer.runs.merging import merge_events
from latecomer.runs.stored_runs import StoredRuns

__all__ = ["StoredRuns", "merge_events"]
