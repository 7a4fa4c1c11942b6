"""Hill climbing: raise one stage's slack at a time, as long as the deadline holds.

At each step every stage is tried one step higher. Of the raises with which the deadline still holds, the one that
leaves the fewest slack-ready rows is made. The paper stops where no raise leaves fewer; with `plateaus` the climb goes
on while the deadline holds, since one step makes no difference where the lag is many steps above the slack: stopping
there costs twice the slack-ready rows of the best fixed slack.

Paper: Slack-ScaleGate, section 5.2.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

_EQUAL = 1e-6  # rows


class Expected(NamedTuple):
    """What is expected with one slack for each stage: the latency from end to end, and all slack-ready rows."""

    latency: float
    ready: float


class Land(Protocol):
    """What a climb goes over: places are numbers of slacks, the smallest first."""

    def at(self, places: Mapping[str, int]) -> Expected:
        """What is expected where each stage has one of its slacks."""

    @property
    def top(self) -> int:
        """The place of the largest slack."""


def climb(land: Land, begin: Mapping[str, int], deadline: float, *, plateaus: bool = True) -> dict[str, int]:
    """The places of the slacks at the end of a climb; where the deadline does not hold at first, they stay."""
    places = dict(begin)
    here = land.at(places)
    if here.latency >= deadline:
        return places
    while True:
        raised = _best_raise(land, places, deadline)
        if raised is None or (not plateaus and raised[0] >= here.ready - _EQUAL):
            return places
        here = here._replace(ready=raised[0])
        places[raised[2]] += 1


def _best_raise(land: Land, places: dict[str, int], deadline: float) -> tuple[float, int, str] | None:
    """The slack-ready rows after the best raise, and its stage; of equal ones that of the least slack."""
    found = []
    for stage, place in places.items():
        if place < land.top:
            expected = land.at({**places, stage: place + 1})
            if expected.latency < deadline:
                found.append((round(expected.ready, 6), place, stage))
    return min(found, default=None)
