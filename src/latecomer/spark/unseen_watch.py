"""A warning where a source that is declared never comes: the others wait for it, often because of a name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from latecomer.errors import LatecomerWarning
from latecomer.spark.waiting import WAITING, waiting_in

PATIENCE = 10  # micro-batches with rows, in which sources that start later than others have had their time
_SEEN = "seen"


class UnseenWatch:
    """Counts the micro-batches in which a declared source that was never seen was waited for, and warns once.

    stages: those whose sources are followed; None for the only one of a query.
    """

    def __init__(self, stages: Sequence[str | None]) -> None:
        self._stages, self._waited = stages, dict.fromkeys(stages, 0)

    @property
    def counters(self) -> tuple[str, ...]:
        """What it looks at."""
        return (_SEEN, *(WAITING if stage is None else f"{stage}.{WAITING}" for stage in self._stages))

    def look(self, counters: Mapping[str, Any]) -> None:
        """Take in the counters of a micro-batch."""
        for stage in self._stages:
            waiting = waiting_in(counters, stage)
            if waiting is None or waiting.waits_for is None or waiting.waits_for.behind_us is not None:
                self._waited[stage] = 0
            elif counters[_SEEN]:
                self._waited[stage] += 1
                if self._waited[stage] == PATIENCE:
                    warnings.warn(_text(waiting.unseen), LatecomerWarning, stacklevel=2)


def _text(unseen: Sequence[str]) -> str:
    names = ", ".join(map(repr, unseen))
    one = len(unseen) == 1
    return (
        f"{'source' if one else 'sources'} {names} {'is' if one else 'are'} declared and in {PATIENCE} micro-batches "
        f"never came, so the others wait for {'it' if one else 'them'}: look at the names in the column of source=, or "
        "give idle_after= so that a silent source is not waited for"
    )
