"""A warning where one row with a clock that is wrong makes all others late."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import timedelta

from latecomer.errors import LatecomerWarning
from latecomer.jumps import looks_wrong

JUMP_COUNTERS = ("behind_jump", "beyond_jump", "jump_us")


class JumpWatch:
    """Adds up, micro-batch by micro-batch, the rows on both sides of the last jump, and warns once."""

    def __init__(self, *, guarded: bool) -> None:
        self._said, self._jump_us, self._behind, self._beyond = guarded, 0, 0, 0

    @property
    def counters(self) -> tuple[str, ...]:
        """What it looks at."""
        return JUMP_COUNTERS

    def look(self, counters: Mapping[str, int]) -> None:
        """Take in the counters of a micro-batch."""
        if self._said:
            return
        behind, beyond, jump_us = (counters[name] for name in JUMP_COUNTERS)
        if jump_us != self._jump_us:
            self._jump_us, self._behind, self._beyond = jump_us, 0, 0
        self._behind, self._beyond = self._behind + behind, self._beyond + beyond
        if looks_wrong(self._behind, self._beyond):
            self._said = True
            warnings.warn(self._text(), LatecomerWarning, stacklevel=2)

    def _text(self) -> str:
        size = timedelta(microseconds=self._jump_us)
        return (
            f"the mark rose by {size} at once, and of the rows since, {self._behind:,} came behind it and are late, "
            f"{self._beyond:,} beyond it: if one row's clock is wrong, max_ahead='1 hour' sets such rows aside in the "
            "lane quarantine (with a new checkpoint: the mark does not go back); if rows had to wait, a longer latency "
            "or progress='merged' waits for them"
        )
