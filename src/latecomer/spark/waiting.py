"""Which source the others wait for, how far behind it is, and which declared ones have never been seen.

It travels as one text in Spark's progress events: every shard knows the progress of all sources, so all say the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.codec import integers
from latecomer.events import NEVER_US, Bools, Int64s
from latecomer.progress import Measure, Progress
from latecomer.sources import SourceSteps

WAITING = "source_waiting"


class WaitsFor(NamedTuple):
    """The source that holds the others up.

    behind_us: how far its latest time is behind the largest of all; None where it is declared and has never been seen.
    silent_us: for how long it has said nothing, in time of arrival, or for which the query ran; None where that is not
    known: in a further stage.
    """

    source: str | None
    behind_us: int | None
    silent_us: int | None


class Waiting(NamedTuple):
    """What the stream waits for, if for anything; and the declared sources that have never been seen."""

    waits_for: WaitsFor | None = None
    unseen: tuple[str, ...] = ()

    def counters(self) -> dict[str, str]:
        """As it travels."""
        return {WAITING: json.dumps(self)}


def waiting_in(values: Mapping[str, Any], stage: str | None = None) -> Waiting | None:
    """What was waited for, among the counters of a micro-batch; None where nobody asked."""
    text = values.get(WAITING if stage is None else f"{stage}.{WAITING}")
    if not text:
        return None
    waits_for, unseen = json.loads(text)
    return Waiting(None if waits_for is None else WaitsFor(*waits_for), tuple(unseen))


class _Sources(NamedTuple):
    """Where each source stands."""

    names: pa.Array
    latest_us: Int64s
    there: Bools  # it neither idles nor has ended
    declared: tuple[str, ...]

    def waiting(self, silent_us: Int64s | None) -> Waiting:
        spoke = self.latest_us > NEVER_US
        declared = pa.array(self.declared, self.names.type)
        unseen = ~spoke & (integers(pc.is_in(self.names, value_set=declared)) > 0)
        names = tuple(self.names.filter(pa.array(unseen)).to_pylist())
        found = np.flatnonzero(self.there & (unseen if (self.there & unseen).any() else spoke))
        if len(found) == 0:
            return Waiting(None, names)
        place = int(found[np.argmin(self.latest_us[found])])
        behind_us = int(self.latest_us.max() - self.latest_us[place]) if spoke[place] else None
        silent = None if silent_us is None else int(silent_us[place])
        held = WaitsFor(self.names[place].as_py(), behind_us, silent)
        return Waiting(None if behind_us == 0 else held, names)


def waiting_at(progress: Progress, measure: Measure, passing: tuple[str, ...] = ()) -> Waiting:
    """What a stream waits for, where its sources are followed; those that are passed on are not waited for."""
    mine = integers(pc.is_in(progress.names, value_set=pa.array(passing, progress.names.type))) == 0
    there = (progress.idle == 0) & (progress.ended == 0)
    names = progress.names.filter(pa.array(mine))
    sources = _Sources(names, progress.latest_us[mine], there[mine], measure.declared)
    return sources.waiting(_silence_us(progress, measure)[mine])


def waiting_after(steps: SourceSteps) -> Waiting:
    """What a further stage waits for, after the steps of its sources."""
    latest_us = np.full(len(steps.names), NEVER_US)
    np.maximum.at(latest_us, steps.source, steps.latest_us)
    idle, ended = steps.last()
    return _Sources(steps.names, latest_us, (idle == 0) & (ended == 0), steps.declared).waiting(None)


def _silence_us(progress: Progress, measure: Measure) -> Int64s:
    """For how long each source has said nothing; one that never did, since the stream began."""
    since = np.where(progress.last_tick > NEVER_US, progress.last_tick, progress.begun_tick)
    stamped = progress.closed_tick - since if measure.stamped else np.zeros(len(since), dtype=np.int64)
    quiet = progress.quiet_tick > NEVER_US
    ran = np.where(quiet, progress.ran_tick - progress.quiet_tick, 0)
    silence_us: Int64s = np.maximum(stamped, ran) * measure.tick_us
    return silence_us
