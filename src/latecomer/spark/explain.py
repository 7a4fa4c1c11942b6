"""`explain()`: where the sort stands, which steps run before it, and what that saves."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.errors import InputError, must
from latecomer.gives import Gives, Line, Tally
from latecomer.spark.counters import read_counters, total
from latecomer.spark.packed import LANE_COUNTERS, LANES
from latecomer.spark.refusals import STEPS, strategies
from latecomer.spark.waiting import Waiting, WaitsFor, waiting_in
from latecomer.windows import Window

if TYPE_CHECKING:
    from latecomer.spark.result import Result

WIDTH, _WORD, _EFFECT = 80, 16, 24
_MOST_LINES = 4
WINDOWS = ("tumbling", "hopping", "session")

Measured = StreamingQuery | Mapping[str, Any] | None


@dataclass(frozen=True)
class Story:
    """What happened to a stream up to a stage.

    moved: the columns that go through it. controls: the settings that may have changed since the query was started.
    """

    name: str
    read: T.StructType
    time: str
    steps: tuple[Line, ...]
    moved: tuple[T.StructField, ...]
    gives: Gives
    controls: tuple[str, ...] = ()


def columns_text(count: int) -> str:
    """A number of columns."""
    return "1 column" if count == 1 else f"{count} columns"


def window_step(word: str, window: Window) -> Line:
    """The step of a window."""
    return Line(word, window.shown(), "adds window_start, window_end")


def events_text(read: T.StructType, steps: tuple[Line, ...]) -> str:
    """The story of events for which no strategy is chosen yet."""
    lines = [*_read(read), *_section("steps so far", steps)]
    lines += ["no sort yet: nothing is sorted before you choose a strategy"]
    wide = max(len(call) for call in strategies())
    lines += [f"  .{call:<{wide}}  {what}" for call, what in strategies().items()]
    return "\n".join(lines)


def result_text(
    stories: Sequence[Story], measured: Mapping[str, int] | None = None, values: Mapping[str, Any] | None = None
) -> str:
    """The story of a result, stage by stage; with counters, what was measured too.

    values: the counters of the last micro-batch, with those of sources.
    """
    several, lines = len(stories) > 1, _read(stories[0].read)
    for number, story in enumerate(stories):
        own = _of_stage(measured, story.name) if several else measured
        if several:
            lines.append(f"stage {number + 1}: {story.name}")
        lines += _stage_lines(story, own, first=number == 0, last=number + 1 == len(stories))
        waiting = waiting_in(values or {}, story.name if several else None)
        lines += [] if waiting is None else _section("sources", _waiting(waiting))
    return "\n".join(lines)


def _waiting(waiting: Waiting) -> Iterator[Line]:
    """The source that holds things up, and for how long; the declared ones that never came."""
    if waiting.waits_for is None:
        yield Line("waits for", "no source")
    else:
        yield Line("waits for", _awaited(waiting.waits_for))
    if waiting.unseen:
        yield Line("never seen", ", ".join(waiting.unseen), "declared")


def _awaited(found: WaitsFor) -> str:
    behind = "which has not begun" if found.behind_us is None else f"{_span(found.behind_us)} behind the furthest"
    silent = f", silent for {_span(found.silent_us)}" if found.silent_us else ""
    return f"{'null' if found.source is None else found.source}, {behind}{silent}"


def _span(us: int) -> str:
    """A duration for people."""
    if us < 60_000_000:
        return f"{us / 1_000_000:.3g} s"
    return str(timedelta(seconds=us // 1_000_000))


def _of_stage(measured: Mapping[str, int] | None, stage: str) -> dict[str, int] | None:
    prefix = f"{stage}."
    found = {name.removeprefix(prefix): n for name, n in (measured or {}).items() if name.startswith(prefix)}
    return found or None


def _stage_lines(story: Story, measured: Mapping[str, int] | None, *, first: bool, last: bool) -> list[str]:
    said = story.gives.explained
    steps = [step for step in story.steps if step.word not in WINDOWS or not said.own_windows]
    own = [line._replace(effect=line.effect.replace("{time}", story.time)) for line in said.lines]
    if story.controls:
        text = f"{' and '.join(story.controls)} may have changed since the start: lc.control(checkpoint).values()"
        own.append(Line("control", text))
    lines = _section(f"before {said.place}", steps) + _section(said.heading, own)
    lines += [f"after {said.place}", *_lanes(story.gives, measured, last=last)]
    if said.saves and first:
        lines += _section("saved", _saved(story, measured))
    return lines


def _read(read: T.StructType) -> list[str]:
    return ["read", *_lines(None, ", ".join(read.names), columns_text(len(read.names)))]


def _section(heading: str, steps: Iterable[Line]) -> list[str]:
    rows = [line for step in steps for line in _lines(*step)]
    return [heading, *(rows or ["  nothing"])]


def _lines(word: str | None, text: str, effect: str = "") -> list[str]:
    """One step in columns, long text on several lines."""
    start = _WORD if word is not None else 2
    room = WIDTH - start - (_EFFECT + 2 if effect else 0)
    middle = textwrap.wrap(" ".join(text.split()), room, max_lines=_MOST_LINES, placeholder=" ...") or [""]
    right = textwrap.wrap(effect, _EFFECT)
    left = [f"  {word or ''}".ljust(start)] + [" " * start] * max(len(middle), len(right))
    middle += [""] * (len(right) - len(middle))
    right += [""] * (len(middle) - len(right))
    return [f"{a}{b:<{room}}  {c}".rstrip() for a, b, c in zip(left, middle, right, strict=False)]


def _lanes(gives: Gives, measured: Mapping[str, int] | None, *, last: bool) -> list[str]:
    counted = list(LANES)
    if measured is not None:
        counts = {lane: sum(measured.get(name, 0) for name in names) for lane, names in LANE_COUNTERS.items()}
        counted = [f"{lane}: {count:,}" for lane, count in counts.items()]
    lines = ["  " + (", " if measured is None else "   ").join(counted)]
    if gives.views and last:
        lines += _lines(None, ", ".join(gives.views), "other sinks of .start")
    return lines


def _saved(story: Story, measured: Mapping[str, int] | None) -> Iterator[Line]:
    facts = [*_rows(story, measured), *_columns(story, measured)]
    yield from facts or [Line("nothing", f"{STEPS[0]}, {STEPS[1]} or {STEPS[3]} before the sort make it cheaper")]
    if measured is not None:
        counter, what = story.gives.explained.held_in or ("", "")
        held_in = f" in {_counted(measured[counter], what)}" if measured.get(counter) else ""
        yield Line("sorted", f"{_counted(measured['accepted'], 'row')}; {measured['held']:,} held now{held_in}")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _rows(story: Story, measured: Mapping[str, int] | None) -> Iterator[Line]:
    if measured is not None:
        seen, filtered = measured["seen"], measured["filtered"]
        yield Line("rows", f"{filtered:,} of {seen:,} ({100 * filtered / max(1, seen):.1f} %) filtered before the sort")
    elif any(step.word == "where" for step in story.steps):
        yield Line("rows", "those that fail a where are neither sorted nor held")


def _columns(story: Story, measured: Mapping[str, int] | None) -> Iterator[Line]:
    """Columns that need not move, and those that must in addition."""
    read, moved = list(story.read.fields), list(story.moved)
    behind, added = _without(read, moved), _without(moved, read)
    if behind:
        stays = "stays" if len(behind) == 1 else "stay"
        less = f", {_size(_bytes(behind) * measured['accepted'])} in all" if measured is not None else ""
        yield Line("columns", f"{_names(behind)} {stays} behind: {_width(behind)}{less}")
    if added:
        yield Line("" if behind else "columns", f"{_names(added)} must move too: {_width(added)} more")


def _without(fields: list[T.StructField], others: list[T.StructField]) -> list[T.StructField]:
    """The fields that have no partner of the same name, whatever its case, among the others."""
    partners = [field.name.lower() for field in others]
    found = []
    for field in fields:
        if field.name.lower() in partners:
            partners.remove(field.name.lower())
        else:
            found.append(field)
    return found


def _names(fields: Sequence[T.StructField]) -> str:
    return ", ".join(field.name for field in fields)


_OFFSET = 4  # what Arrow keeps per value of no fixed size, beside the value itself
_BYTES: dict[type[T.DataType], int] = {
    **dict.fromkeys((T.BooleanType, T.ByteType), 1),
    T.ShortType: 2,
    **dict.fromkeys((T.IntegerType, T.FloatType, T.DateType), 4),
    **dict.fromkeys((T.LongType, T.DoubleType, T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType), 8),
    T.DecimalType: 16,
}


def _bytes(fields: Sequence[T.StructField]) -> int:
    return sum(_BYTES.get(type(field.dataType), _OFFSET) for field in fields)


def _width(fields: Sequence[T.StructField]) -> str:
    least = "" if all(type(field.dataType) in _BYTES for field in fields) else "at least "
    return f"{least}{_size(_bytes(fields))} a row"


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return "1 byte" if count == 1 else f"{count} bytes"


def measured(counters: Measured, tallies: Mapping[str, Tally], result: Result) -> Mapping[str, int] | None:
    """The counters of a result in what the user gave: a query, a progress event, or counters."""
    if counters is None:
        return None
    if isinstance(counters, Mapping):
        if "seen" in counters:
            return counters
        if "observedMetrics" in counters:
            return read_counters(counters, result)
    elif hasattr(counters, "recentProgress"):  # a query, classic or over Connect
        batches = [read_counters(event, result) for event in counters.recentProgress]
        found = [batch for batch in batches if batch is not None]
        return total(found, tallies) if found else None
    advice = "give a StreamingQuery, its lastProgress, or what .write gave"
    raise InputError(must("explain", "be given counters", type(counters).__name__, advice))
