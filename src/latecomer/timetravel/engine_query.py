"""Time travel for a query that the engine runs itself: a function of tables, not rewritten.

The machine runs nothing. It gives the rows that the function is to be called with, each in a slot: those of windows
that have newly closed, and the contexts of late events as they were before and as they are now. What is left to do
(`Gives.after`) calls the function, and takes the difference.

Paper: TinTiN (Van Rooij, Gulisano, Papatriantafilou), sections 6.3 and 6.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings, check_max_held
from latecomer.durations import Duration, duration_us
from latecomer.events import FOREVER_US, NEVER_US, Layout, Stretches
from latecomer.gives import STANDING, After, Explained, Gives, Line, revised_views, with_revisions
from latecomer.outputs import FINAL
from latecomer.timetravel.engine_machine import EngineTraveller
from latecomer.timetravel.holes import Holes
from latecomer.timetravel.reach import Reach, check_step
from latecomer.timetravel.repairs import Repairs
from latecomer.timetravel.triggers import LAZY, Trigger
from latecomer.windows.window import Window


@dataclass(frozen=True)
class EngineQuery:
    """What is known of a query: its windows from the first to the last, and which events its results depend on.

    A result with time s depends on events in [s - before, s + after). All such times lie on `grid`. columns: of the
    results. after: what calls the function; shards do not need it.
    """

    name: str
    windows: tuple[Window, ...]
    before_us: int
    after_us: int
    grid: Stretches
    columns: pa.Schema = field(compare=False)
    after: After | None = field(default=None, compare=False)

    def closed(self, punctuation_us: int) -> int:
        """The last time of which results have all their events when everything up to a punctuation has come."""
        if punctuation_us in (NEVER_US, FOREVER_US):
            return punctuation_us
        return punctuation_us - self.after_us + 1

    def describe(self) -> dict[str, Any]:
        """What is stored with the state and compared on restart."""
        windows = [window.describe() for window in self.windows]
        reads = {"before_us": self.before_us, "after_us": self.after_us, "grid": list(self.grid)}
        return {"function": self.name, "windows": windows, **reads, "returns": str(self.columns.remove_metadata())}


@dataclass(frozen=True)
class EngineTravel(Repairs):
    """A query of the engine's own whose results are repaired when late events fill holes, up to a bound.

    The other arguments are those of `TimeTravel`.
    """

    query: EngineQuery
    bound: Duration
    holes: Holes
    trigger: Trigger = LAZY
    periodicity: Duration | None = None
    max_held: int | None = None
    name: ClassVar[str] = "timetravel"

    def __post_init__(self) -> None:
        check_max_held(self.max_held)
        check_step(self.query.windows, self._periodicity_us)
        self.check_repairs()

    @property
    def _periodicity_us(self) -> int:
        return 1 if self.periodicity is None else duration_us(self.periodicity, "periodicity")

    @cached_property
    def reach(self) -> Reach:
        """The windows; twice those of which it is not known on which side of a result's time its events lie."""
        windows = self.query.windows
        one_sided = self.query.before_us + self.query.after_us <= sum(window.size_us for window in windows)
        return Reach(windows if one_sided else windows * 2, self._periodicity_us, adds_up=True)

    @property
    def at_work(self) -> Settings:
        return replace(self, query=replace(self.query, after=None))

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return EngineTraveller(self, store, layout)

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        self.holes.check(columns)
        shown = ", then ".join(window.shown() for window in self.query.windows)
        trigger = self.trigger if isinstance(self.trigger, str) else "when your function says"
        lines = (
            Line("function", f"{self.query.name}: windows of {shown}", "called once for each micro-batch"),
            Line("repairs", f"rows up to {self.bound} late, {self.holes.shown()}", "holds what is near holes"),
            Line("replays", f"{trigger}, in shifted time, before and after"),
        )
        explained = Explained("no sort: results at once, repaired by replays", lines, own_windows=True)
        given = with_revisions(self.query.columns)
        given = given.remove(given.get_field_index(FINAL))
        views, after = revised_views(), self.query.after
        return Gives(given, explained, views, STANDING, by_key=True, net=True, after=after)

    def describe(self) -> dict[str, Any]:
        return {
            "strategy": self.name,
            "query": self.query.describe(),
            "bound_us": self.bound_us,
            "holes": self.holes.describe(),
            "trigger": self.trigger if isinstance(self.trigger, str) else "function",
            "periodicity": None if self.periodicity is None else self._periodicity_us,
        }
