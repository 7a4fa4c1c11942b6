"""Questions that are answered as rows are read behind the gate: `.slack(...)`, and joins of two sources.

Paper: Maximizing Determinism in Stream Processing Under Latency Constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.slack import Policy, Slack
from latecomer.spark.declare import Declared, Further
from latecomer.spark.planner import plan_query
from latecomer.spark.refusals import question_refusal
from latecomer.spark.result import Result
from latecomer.windows import Join, Operator

Asked = Declared | Further
_SHORTEST_HEARTBEAT_US = 500_000


class Gated(ABC):
    """What can be read behind the gate."""

    @abstractmethod
    def _read_behind_gate(self) -> tuple[Asked, Operator | None]:
        """The events, and the operator that runs on them, if one does."""

    def _named(self) -> str | None:
        """What the results are called as a source of a further stage."""
        return None

    def slack(
        self,
        slack: Duration | None = None,
        *,
        deadline: Duration | None = None,
        tuner: Policy | None = None,
        merge: bool = True,
        max_held: int | None = None,
    ) -> Result:
        """Read rows of several sources in order, and wait for those that lag, but only as long as slack allows.

        slack: how far, in event time, a row may be overtaken before it is read all the same; None waits for every
        source for ever. No row is refused: without an operator each says if it was read before every source had come
        so far (`slack_ready`) and if it came behind others (`out_of_order`); results of operators if they are `final`.
        deadline: rows are to be written so soon after their arrival; the slack then changes by itself, decided by
        `tuner` (lc.SlackTuner() if you name none) after every micro-batch. It needs `arrival=`, and implies
        `idle_after`. merge=False looks at the slack alone (K-slack). max_held: the most rows in one shard.
        slack can change while the query runs: `lc.control(checkpoint).set(slack="5 s")`.
        """
        declared, operator = self._read_behind_gate()
        settings = Slack(slack, operator, tuple(declared.feeds), merge, max_held, deadline, tuner, self._named())
        return Result(plan_query(_with_deadline(declared, settings), settings))


def _with_deadline(declared: Asked, settings: Slack) -> Asked:
    """The events with what a deadline needs: when rows came, and an end to the silence of sources."""
    if isinstance(declared, Further):
        return replace(declared, root=_declared_with_deadline(declared.root, settings))
    return _declared_with_deadline(declared, settings)


def _declared_with_deadline(declared: Declared, settings: Slack) -> Declared:
    if settings.deadline is None:
        return declared
    if declared.roles.arrival is None:
        advice = "name the column that says when a row came: lc.disordered(..., arrival=...)"
        raise InputError(must("deadline", "come with arrival=", None, advice))
    deadline_us, timing = duration_us(settings.deadline, "deadline"), declared.timing
    if deadline_us <= 2 * timing.tick_us:
        advice = f"the smallest possible is above {2 * timing.tick_us / 1e6:g} s and a micro-batch; make ticks shorter"
        raise InputError(must("deadline", "be longer than two ticks", settings.deadline, advice))
    implied = frozenset(name for name in ("idle_after_us", "heartbeat_us") if getattr(timing, name) is None)
    idle_us = timing.idle_after_us or max(deadline_us // 2, timing.tick_us)
    beat_us = timing.heartbeat_us or max(deadline_us // 4, _SHORTEST_HEARTBEAT_US)
    timing = replace(timing, idle_after_us=idle_us, heartbeat_us=beat_us, implied=implied)
    return replace(declared, timing=timing)


@dataclass(frozen=True)
class JoinQuery(Gated):
    """Pairs of rows of two sources of a disordered stream."""

    _declared: Asked
    _join: Join
    _name: str

    def _read_behind_gate(self) -> tuple[Asked, Operator | None]:
        return self._declared, self._join

    def _named(self) -> str | None:
        return self._name

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise question_refusal(name, "join")


def join_query(declared: Asked, join: Join, name: str | None) -> JoinQuery:
    """Ask for pairs of rows of two sources."""
    feeds = declared.feeds
    for source in map(str, join.sources):
        if feeds and source not in feeds:
            raise InputError(must("join", f"name declared sources ({', '.join(feeds)})", source, "check the name"))
    told = (declared.root if isinstance(declared, Further) else declared).roles.source  # by the names of columns
    columns = {source: tuple(name for name in feeds.get(str(source), ()) if name != told) for source in join.sources}
    return JoinQuery(
        declared, replace(join, columns=columns if feeds else None), name or "_".join(map(str, join.sources))
    )
