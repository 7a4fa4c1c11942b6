"""`explain()`: where the sort stands, which steps run before it, and what that saves."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from latecomer import windows
from latecomer.basic import PassThrough
from latecomer.contract import Settings
from latecomer.durations import Duration
from latecomer.errors import InputError, must
from latecomer.reorder import Reorder
from latecomer.spark.counters import read_counters, total
from latecomer.spark.frames import LANES, ROWS_OF
from latecomer.spark.refusals import STEPS, STRATEGIES
from latecomer.tiers import Ordered, Tiers
from latecomer.timetravel import Enumerator, Holes, Period, TimeTravel
from latecomer.windows import WINDOW_START, Chain, Operator, SessionWindow, Window, WindowAggregation

WIDTH, _WORD, _EFFECT = 80, 16, 24
_MOST_LINES = 4
WINDOWS = ("tumbling", "hopping", "session")
_LATE = {"side": "aside", "drop": "dropped", "adjust": "moved up", "raise": "stop the query"}

Measured = StreamingQuery | Mapping[str, Any] | None


class Step(NamedTuple):
    """Something done to the stream: the call, its arguments as text, what it does to the sort."""

    word: str
    text: str
    effect: str = ""


@dataclass(frozen=True)
class Story:
    """What happened to a stream up to its strategy; `moved` are the columns that go through it."""

    read: T.StructType
    time: str
    steps: tuple[Step, ...]
    moved: tuple[T.StructField, ...]
    settings: Settings


def columns_text(count: int) -> str:
    """A number of columns."""
    return "1 column" if count == 1 else f"{count} columns"


def window_step(word: str, size: Duration, advance: Duration | None = None) -> Step:
    """The step of a window."""
    return Step(word, str(size) if advance is None else f"{size}, every {advance}", "adds window_start")


def events_text(read: T.StructType, steps: tuple[Step, ...]) -> str:
    """The story of events for which no strategy is chosen yet."""
    lines = [*_read(read), *_section("steps so far", steps)]
    lines += ["no sort yet: nothing is sorted before you choose a strategy"]
    lines += [f"  .{call:<25}  {what}" for call, what in STRATEGIES.items()]
    return "\n".join(lines)


def result_text(story: Story, counters: Measured = None) -> str:
    """The story of a result; with counters, what was measured too."""
    measured = _measured(counters)
    lines = _read(story.read)
    if isinstance(story.settings, Reorder):
        lines += _section("before the sort", story.steps) + _section("the sort", _sort(story, story.settings))
        lines += ["after the sort", *_lanes(story.settings, measured)]
        lines += _section("saved", _saved(story, measured))
    else:
        heading = _HEADINGS.get(type(story.settings), "the strategy")
        own = isinstance(story.settings, Tiers | TimeTravel)  # windows of their own
        steps = [step for step in story.steps if step.word not in WINDOWS or not own]
        lines += _section("before it", steps) + _section(heading, _strategy(story.settings))
        lines += ["after it", *_lanes(story.settings, measured)]
    return "\n".join(lines)


def _read(read: T.StructType) -> list[str]:
    return ["read", *_lines(None, ", ".join(read.names), columns_text(len(read.names)))]


def _section(heading: str, steps: Iterable[Step]) -> list[str]:
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


def _strategy(settings: Settings) -> Iterator[Step]:
    if isinstance(settings, Tiers):
        yield Step("tiers", _latencies(settings.latencies), "holds partial results")
        yield Step("windows", _window(settings.window))
        yield Step("results", ", ".join(aggregate.name for aggregate in settings.aggregates))
    elif isinstance(settings, Ordered):
        holds = "holds events" if settings.partial is None else "holds partial results"
        yield Step("tiers", _latencies(settings.latencies), holds)
        if settings.partial is not None:
            yield Step("functions", "partial on what a tier adds, merge with the tiers before")
        if settings.operator is not None:
            yield from _runs(settings.operator, "on every tier, in order")
    elif isinstance(settings, TimeTravel):
        yield from _runs(settings.operator, "live, and as a replica for replays")
        yield Step("repairs", f"rows up to {settings.bound} late, {_holes(settings.holes)}", "holds what is near holes")
        trigger = settings.trigger if isinstance(settings.trigger, str) else "when your function says"
        yield Step("replays", f"{trigger}, in shifted time" if settings.shifted else trigger)
    else:
        yield _any_strategy(settings)


_HEADINGS: dict[type[Settings], str] = {
    PassThrough: "no sort",
    Tiers: "no sort: partial results are folded as they come",
    Ordered: "a sort per tier",
    TimeTravel: "no sort: results at once, repaired by replays",
}


def _runs(operator: Operator, effect: str) -> Iterator[Step]:
    """The parts of an application, one after the other."""
    first, *others = operator.operators if isinstance(operator, Chain) else (operator,)
    yield Step("runs", _operator(first), effect)
    for other in others:
        yield Step("then", _operator(other))


def _operator(operator: Operator) -> str:
    if isinstance(operator, WindowAggregation):
        names = ", ".join(aggregate.name for aggregate in operator.aggregates)
        return f"{names} over {_window(operator.window)}"
    return operator.name if isinstance(operator, windows.Step) else type(operator).__name__


def _holes(holes: Holes) -> str:
    if isinstance(holes, Period):
        return f"where one is missing every {holes.every}"
    return f"where {holes.column} jumps" if isinstance(holes, Enumerator) else "where your function sees a hole"


def _latencies(latencies: Sequence[Duration]) -> str:
    return ", ".join(str(latency) for latency in latencies)


def _window(window: Window | SessionWindow) -> str:
    if isinstance(window, SessionWindow):
        return f"sessions until nothing comes for {window.gap}"
    return str(window.size) if window.slices == 1 else f"{window.size}, every {window.advance}"


def _any_strategy(settings: Settings) -> Step:
    told = {name: value for name, value in settings.describe().items() if name != "strategy" and value is not None}
    text = ", ".join(f"{name} {value}" for name, value in told.items())
    return Step(settings.name, text or STRATEGIES.get(f"{settings.name}()", ""))


def _sort(story: Story, settings: Reorder) -> Iterator[Step]:
    text = f"latency {settings.latency}, late rows {_LATE.get(settings.late, settings.late)}"
    if settings.max_held is not None:
        text += f", at most {settings.max_held:,} held in a shard"
    order = f"order by {story.time}" if settings.align_us is None else f"by {WINDOW_START}, then {story.time}"
    yield Step(settings.name, text, order)
    if settings.total:
        yield Step("total", "each micro-batch becomes one partition in total order")


def _lanes(settings: Settings, measured: Mapping[str, int] | None) -> list[str]:
    counted = list(LANES) if measured is None else [f"{lane}: {measured[ROWS_OF[lane]]:,}" for lane in LANES]
    lines = ["  " + (", " if measured is None else "   ").join(counted)]
    if settings.revises:
        tiers = [f"tier_{number}" for number in range(1, settings.tiers + 1)]
        lines += _lines(None, ", ".join([*tiers, "changes"]), "other sinks of .start")
    return lines


def _saved(story: Story, measured: Mapping[str, int] | None) -> Iterator[Step]:
    facts = [*_rows(story, measured), *_columns(story, measured)]
    yield from facts or [Step("nothing", f"{STEPS[0]}, {STEPS[1]} or {STEPS[3]} before the sort make it cheaper")]
    if measured is not None:
        runs = f" in {_counted(measured['runs'], 'sorted run')}" if measured.get("runs") else ""
        yield Step("sorted", f"{_counted(measured['accepted'], 'row')}; {measured['held']:,} held now{runs}")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _rows(story: Story, measured: Mapping[str, int] | None) -> Iterator[Step]:
    if measured is not None:
        seen, filtered = measured["seen"], measured["filtered"]
        yield Step("rows", f"{filtered:,} of {seen:,} ({100 * filtered / max(1, seen):.1f} %) filtered before the sort")
    elif any(step.word == "where" for step in story.steps):
        yield Step("rows", "those that fail a where are neither sorted nor held")


def _columns(story: Story, measured: Mapping[str, int] | None) -> Iterator[Step]:
    """Columns that need not move, and those that must in addition."""
    read, moved = list(story.read.fields), list(story.moved)
    behind, added = _without(read, moved), _without(moved, read)
    if behind:
        stays = "stays" if len(behind) == 1 else "stay"
        less = f", {_size(_bytes(behind) * measured['accepted'])} in all" if measured is not None else ""
        yield Step("columns", f"{_names(behind)} {stays} behind: {_width(behind)}{less}")
    if added:
        yield Step("" if behind else "columns", f"{_names(added)} must move too: {_width(added)} more")


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


def _measured(counters: Measured) -> Mapping[str, int] | None:
    """The counters in what the user gave: a query, a progress event, or counters."""
    if counters is None:
        return None
    if isinstance(counters, Mapping):
        if "seen" in counters:
            return counters
        if "observedMetrics" in counters:
            return read_counters(counters)
    elif hasattr(counters, "recentProgress"):  # a query, classic or over Connect
        batches = [read_counters(event) for event in counters.recentProgress]
        found = [batch for batch in batches if batch is not None]
        return total(found) if found else None
    advice = "give a StreamingQuery, its lastProgress, or what .write gave"
    raise InputError(must("explain", "be given counters", type(counters).__name__, advice))
