"""Which way to take: candidates that fit a stream are rehearsed, and the best that grants every wish is recommended.

A rehearsal gives what Spark would give (`rehearsal`), so what is promised is what a run of the same micro-batches did.
Many micro-batches take long: then all candidates are rehearsed in few of them first, and the best of these in all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Literal, Unpack

from latecomer.comparison import Data, Recorded, Tell, ask_of, holes_of, nobody, texts_of
from latecomer.durations import DEFAULT_TICK, duration_text, duration_us
from latecomer.errors import InputError, must
from latecomer.extras import needed_for

if TYPE_CHECKING:
    from latecomer.spark.comparing import Asked, Compared, Comparison, Way

SinkKind = Literal["any", "append"]
_SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)  # of the late events, which waits are tried for
_BATCHES = 120  # what is found is no finer than micro-batches
_FIRST_BATCHES, _FINALISTS = 24, 4  # all candidates in few of them, and the best in all
_NEAR = 1.5  # wishes that are missed by so many times as much as by the nearest way are missed alike
_CALL = re.compile(
    r"withWatermark\(\s*(?:(?:eventTime\s*=\s*)?(['\"])([^'\"]+)\1\s*,\s*)?"
    r"(?:delayThreshold\s*=\s*)?(['\"])([^'\"]+)\3\s*(,\s*mode\s*=[^)]*)?\)"
)


@dataclass(frozen=True)
class Wishes:
    """What the user wants.

    deadline_us: nine of ten windows have an answer so soon after their end. complete: this share of all windows is
    right in the end. memory: so many events, or partial results, are held at most. sink: "append" takes no row back
    and no second answer.
    """

    deadline_us: int | None = None
    complete: float | None = None
    memory: int | None = None
    sink: SinkKind = "any"

    def missed(self, way: Compared) -> dict[str, float]:
        """The wishes that a way does not grant, and how far it is from each: 1 is at the limit."""
        first_s, found = way.scores.first[1], dict[str, float]()
        if self.deadline_us is not None and (first_s is None or 1e6 * first_s > self.deadline_us):
            found["deadline"] = inf if first_s is None else 1e6 * first_s / self.deadline_us
        if self.complete is not None and way.scores.right_share < self.complete:
            found["complete"] = 1 + self.complete - way.scores.right_share
        if self.memory is not None and way.held > self.memory:
            found["memory"] = way.held / self.memory
        return found


@dataclass(frozen=True)
class Advice:
    """The way to take, what it will do, and what else was tried.

    missed: the wishes that no way grants together, of the one that is nearest. today: what the query that is in use
    gives. code: what to write.
    """

    asked: Asked
    wishes: Wishes
    best: Compared
    others: list[Compared]
    missed: tuple[str, ...]
    today: Compared | None
    code: str


def advise(
    data: Data,
    *,
    window: str,
    advance: str | None = None,
    aggregates: Sequence[str] = ("count()",),
    deadline: str | None = None,
    complete: float | None = None,
    memory: int | None = None,
    sink: SinkKind = "any",
    today: str | None = None,
    every: str | None = None,
    tell: Tell = nobody,
    **recorded: Unpack[Recorded],
) -> Advice:
    """Recommend a way to run a windowed query on a stream like the recorded one, and say what will happen.

    data, window, advance, aggregates, every, recorded: as in `lc.compare`. deadline: how soon after its end a window
    must have an answer. complete: the share of windows that must be right in the end, e.g. 0.999. memory: the most that
    may be held. sink: "append" where the results cannot be changed once written. today: the query in use, as
    `"withWatermark('ts', '10 minutes')"`: what it loses is told too. It runs nothing on Spark.
    """
    with needed_for("advise"):
        from latecomer.rehearsal import rehearse
        from latecomer.spark.comparing import read_way
    wishes = Wishes(None if deadline is None else duration_us(deadline, "deadline"), complete, memory, sink)
    _check(wishes)
    in_use = None if today is None else read_way(_watermark(today, recorded.get("time", "ts")))
    asked = ask_of(data, (window, advance, texts_of(aggregates, "aggregates")), recorded, _BATCHES)
    candidates = candidates_for(asked, wishes, holes_of(asked.stream, every), in_use)
    if asked.stream.batches > 2 * _FIRST_BATCHES:
        first = replace(asked, stream=asked.stream.recut(_FIRST_BATCHES))
        candidates = [way.way for way in _ranked(rehearse(first, candidates, tell), wishes)[:_FINALISTS]]
    tried = rehearse(asked, [*candidates, *([] if in_use is None else [in_use])], tell)
    best, *others = _ranked(tried, wishes)
    now = next((way for way in tried.ways if way.way.is_spark), None)
    return Advice(asked, wishes, best, others, tuple(wishes.missed(best)), now, code_of(best.way, asked))


def candidates_for(asked: Asked, wishes: Wishes, holes: str, in_use: Way | None) -> list[Way]:
    """Ways that fit the stream, and of those what the sink can take."""
    from latecomer.spark.comparing import bound_of, read_way, round_waits, rounded

    tried = {rounded(asked.stream.tick_us), *round_waits(asked.stream, _SHARES)}
    if in_use is not None and in_use.wait_us > 0:
        tried.add(duration_text(in_use.wait_us))
    waits = sorted(tried, key=lambda wait: duration_us(wait, "wait"))
    texts = [f"tiers('{wait}')" for wait in waits]
    if wishes.sink == "any":
        bound = bound_of(asked.stream, asked.question)
        texts += [f"tiers('{wait}', '{waits[-1]}')" for wait in waits[:-1]]
        travel = f"timetravel('{bound}', {holes}"
        texts += [f"optimistic('{bound}')", f"{travel}, trigger='eager')", f"{travel})"]
    return [read_way(text) for text in dict.fromkeys(texts)]


def _ranked(tried: Comparison, wishes: Wishes) -> list[Compared]:
    """The strategies, the best first."""
    ways = [way for way in tried.ways if not way.way.is_spark]
    nearest = min(_missed(way, wishes) for way in ways)
    return sorted(ways, key=lambda way: _rank(way, wishes, nearest))


def _missed(way: Compared, wishes: Wishes) -> tuple[int, float]:
    """How many wishes are missed, and by how much."""
    missed = wishes.missed(way)
    return len(missed), sum(missed.values())


def _rank(way: Compared, wishes: Wishes, nearest: tuple[int, float]) -> tuple[float, ...]:
    """Fewest wishes missed, and by least; then most windows right, soonest right, fewest revisions, least held.

    A deadline that no way keeps, because micro-batches are longer, must not cost windows for being missed by less.
    """
    (count, by), scores = _missed(way, wishes), way.scores
    alike = count == nearest[0] and by <= _NEAR * nearest[1]
    right_s = inf if scores.right[1] is None else scores.right[1]
    return (count, nearest[1] if alike else by, -scores.right_share, right_s, scores.revisions, way.held)


def code_of(way: Way, asked: Asked) -> str:
    """What to write in place of the query."""
    roles, question = asked.stream.roles, asked.question
    known = {
        "time": roles.time,
        "key": roles.key[0] if len(roles.key) == 1 else list(roles.key),
        "arrival": roles.arrival,
    }
    known |= {"source": roles.source, "max_ahead": asked.max_ahead}
    if roles.arrival is not None and asked.stream.tick_us != duration_us(DEFAULT_TICK, "tick"):
        known["tick"] = duration_text(asked.stream.tick_us)
    declared = ", ".join(f"{name}={value!r}" for name, value in known.items() if value)
    window = question.window
    cut = f"tumbling({window.size!r})" if window.advance is None else f"hopping({window.size!r}, {window.advance!r})"
    aggregates = ", ".join(
        f"lc.{each.kind}({'' if each.column is None else repr(each.column)})" for each in question.aggregates
    )
    return f"events = lc.disordered(df, {declared})\nresult = events.{cut}.aggregate({aggregates}).{way.text}"


def _watermark(text: str, time: str) -> str:
    """Spark's own call names the column first.

    >>> _watermark("df.withWatermark('ts', '10 minutes').groupBy('k')", "ts")
    "withWatermark('10 minutes')"
    >>> _watermark("withWatermark(eventTime='ts', delayThreshold='1 hour')", "ts")
    "withWatermark('1 hour')"
    """
    found = _CALL.search(text)
    if found is None:
        advice = "e.g. \"withWatermark('ts', '10 minutes')\""
        raise InputError(must("today's query", "have a call of withWatermark with plain values", text, advice))
    _, column, _, delay, mode = found.groups()
    if column is not None and column != time:
        raise InputError(must("today's query", f"wait by the column {time!r}", column, "or name that column as time"))
    return f"withWatermark({delay!r}{mode or ''})"


def _check(wishes: Wishes) -> None:
    for name in ("complete", "memory"):
        value = getattr(wishes, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(must(name, "be a number", value, "e.g. 0.999" if name == "complete" else "e.g. 1000000"))
    if wishes.complete is not None and not 0 < wishes.complete <= 1:
        raise InputError(must("complete", "be a share above 0, up to 1", wishes.complete, "e.g. 0.999"))
    if wishes.memory is not None and wishes.memory < 1:
        raise InputError(must("memory", "be at least one event", wishes.memory, "e.g. 1000000"))
    if wishes.sink not in ("any", "append"):
        raise InputError(must("sink", "be any or append", wishes.sink, "choose one"))
