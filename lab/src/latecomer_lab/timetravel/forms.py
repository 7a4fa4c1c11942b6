"""The forms that are compared: time travel with both triggers and a fresh replica, discarding, waiting, sorted input.

Each is a machine's settings. Those of time travel say in which tick a replay gave a row, in a column that no one else
gets: what a machine gives depends on ticks and not on micro-batches, so delays can be told to the tick from
micro-batches of a day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings
from latecomer.durations import duration_us
from latecomer.events import Layout
from latecomer.lateness import BY_EVENT
from latecomer.outputs import Output, Pane
from latecomer.tiers import Ordered
from latecomer.timetravel import EAGER, LAZY, Period, TimeTravel
from latecomer.timetravel.comparison import Changes
from latecomer.timetravel.contexts import Contexts
from latecomer.timetravel.final_results import Finality
from latecomer.timetravel.machine import TimeTraveller, result_outputs
from latecomer.timetravel.reach import Reach, reach_of
from latecomer_lab.timetravel.application import EVERY, HOUR_US, SEASON, application

BOUND = "40 days"
BOUND_US = duration_us(BOUND, "bound")
DAY_US = 24 * HOUR_US
GIVEN_TICK = "given_tick"
SORTED, DISCARD, WAIT, FRESH = "sorted", "discard", "wait", "fresh"
TRIGGERS = (EAGER, LAZY)

REACH: Reach = reach_of(application())


@dataclass(frozen=True)
class StampedTravel(TimeTravel):
    """Time travel that says in which tick a row of a replay is given."""

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return StampedTraveller(self, store, layout)


class StampedTraveller(TimeTraveller):
    """Its machine; it does not say what is final."""

    def _replay_output(self, changes: Changes | None, contexts: Contexts, finality: Finality) -> Iterator[Output]:
        if changes is not None and len(changes.context):
            results, context, change = changes
            rows = results.rows.append_column(GIVEN_TICK, pa.array(contexts.tick[context]))
            yield from result_outputs(rows, change, Pane.REVISED, np.zeros(len(context), dtype=np.bool_))


def alert_forms() -> dict[str, Settings]:
    """The application as it would run, on the readings as they arrive."""
    chain, every = application(), Period(EVERY)
    travels = {name: StampedTravel(chain, BOUND, every, name, SEASON) for name in TRIGGERS}
    return {**travels, DISCARD: in_order_form(), WAIT: Ordered((BOUND,), chain)}


def in_order_form(*, alerts_only: bool = True) -> Settings:
    """The application on what is not late; on sorted readings, what is to be reached."""
    return Ordered(("1 microsecond",), application(alerts_only=alerts_only), lateness=BY_EVENT)


def fresh_form() -> Settings:
    """Lazy with an application of its own for every replay; its state is that of lazy."""
    return TimeTravel(application(), BOUND, Period(EVERY), LAZY, SEASON, shifted=False)


def plain_forms() -> dict[str, Settings]:
    """The paper's plain behaviour, nothing voided and every replay given again, with what is known of every day."""
    chain = application(alerts_only=False)
    return {name: StampedTravel(chain, BOUND, Period(EVERY), name, SEASON, retract=False) for name in TRIGGERS}


def latency_us(form: Settings) -> int:
    """How long the live instance waits for events."""
    return duration_us(form.latencies[-1], "latency") if isinstance(form, Ordered) else 1
