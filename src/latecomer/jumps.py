"""Jumps of the mark: is it a clock that is wrong, or a stream that went on after a gap?

A jump is the last large rise of the mark in one tick (in a stream's first, from the least time of its first micro-batch
to the largest of the tick). It stands until the mark has gone on as far beyond it as it was long. After a gap, rows go
on beyond the jump. A clock that is wrong leaves them behind: they lie between where the mark was and where it is, newer
than all before and yet too late. So rows are counted on both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import NEVER_US, EventBatch, Int64s
from latecomer.timeline import Timeline

LEAST_BEHIND, MOST_SHARE = 100, 10  # rows behind; how many behind for each beyond


class Jump(NamedTuple):
    """The mark rose from one time to another in one tick."""

    tick: int = NEVER_US
    from_us: int = NEVER_US
    to_us: int = NEVER_US

    @property
    def us(self) -> int:
        """How far it went."""
        return self.to_us - self.from_us

    def after(self, timeline: Timeline) -> Jump:
        """The jump that stands after a micro-batch."""
        found = np.array(self, dtype=np.int64)
        _follow(timeline.tick, timeline.mark_us, found)
        return Jump(*found.tolist())

    def sides(self, batch: EventBatch, punctuation_us: int) -> tuple[int, int]:
        """Of the events that came after it, how many are behind it and passed already, and how many beyond it."""
        if punctuation_us <= self.from_us or self.us == 0:
            return 0, 0
        later = batch.ts_us[batch.tick > self.tick]
        behind = (later > self.from_us) & (later <= min(self.to_us, punctuation_us))
        return int(behind.sum()), int((later > self.to_us).sum())


def looks_wrong(behind: int, beyond: int) -> bool:
    """Whether so many rows came behind a jump, and so few beyond it, that it was probably a mistake.

    >>> looks_wrong(99, 0), looks_wrong(100, 0), looks_wrong(100, 11), looks_wrong(10_000, 100)
    (False, True, False, True)
    """
    return behind >= max(LEAST_BEHIND, MOST_SHARE * beyond)


@kernel
def _follow(tick: Int64s, mark_us: Int64s, jump: Int64s) -> None:
    """Take in marks after ticks; `jump` is (tick, from, to)."""
    for i in range(1, len(tick)):
        before, now = mark_us[i - 1], mark_us[i]
        if before == NEVER_US or now == before:
            continue
        size = jump[2] - jump[1]
        if now - jump[2] < size:
            continue
        on_top = size > 0 and before - jump[2] < size and now - before > size
        jump[0], jump[2] = tick[i], now
        if not on_top:
            jump[1] = before
