"""`events.aggregate(...)`: a question asked of windows, and how long to wait for its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from latecomer.durations import Duration
from latecomer.impatience import Tiers
from latecomer.spark.declare import Declared
from latecomer.spark.planner import Planner
from latecomer.spark.result import Result
from latecomer.windows import WINDOW_START, Aggregate, Window


@dataclass(frozen=True)
class Aggregated:
    """Aggregates per key and window of a disordered stream."""

    _declared: Declared
    _window: Window
    _aggregates: tuple[Aggregate, ...]

    def tiers(self, *latencies: Duration, max_held: int | None = None) -> Result:
        """Answer once for each latency, the shortest first: early answers that get better.

        The answer of a tier has every event that is less late than its latency. `.down` has the answers of all tiers,
        with the number of the tier; `.tier(i)` those of one; `.changes` what each tier changes in those before it.
        Partial results are held, not events. max_held: the most of them in one shard; past it the query stops.
        """
        settings = Tiers(tuple(latencies), self._window, self._aggregates, max_held)
        return Planner(self._without_start(), settings).result()

    def _without_start(self) -> Declared:
        """The events without the column that the window added: the result has its own."""
        declared = self._declared
        columns = tuple(name for name in declared.columns if name != WINDOW_START)
        return replace(declared, df=declared.df.drop(WINDOW_START), columns=columns)
