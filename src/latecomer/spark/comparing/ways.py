"""The ways to run a windowed query: the strategies as users call them, and Spark's own `withWatermark`.

Every way is run by `start`, gets the same sink for what it gives, and says what it held and which rows it set aside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.durations import duration_us
from latecomer.errors import InputError, must
from latecomer.gives import CHANGES
from latecomer.spark.calls import Call, read_call
from latecomer.spark.comparing.question import Question
from latecomer.spark.comparing.recorded import RecordedStream
from latecomer.spark.disordered import disordered
from latecomer.spark.result import Result
from latecomer.spark.session import changed_settings
from latecomer.spark.shards import default_shards
from latecomer.spark.sinks import Discard
from latecomer.spark.stream_files import END
from latecomer.windows import WINDOW_END, WINDOW_START

WATERMARK, REORDER = "withWatermark", "reorder"
STRATEGIES = ("tiers", "optimistic", "timetravel", "slack", REORDER)
_YEARS_US = 36_500 * 86_400_000_000  # how far after the stream the row stands that lets Spark give what it holds

Sink = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class Way:
    """A call that answers the question, as it is written in code."""

    text: str
    call: Call

    @property
    def is_spark(self) -> bool:
        """Whether it is Spark's own."""
        return self.call.name == WATERMARK

    @property
    def wait_us(self) -> int:
        """The longest that it lets an answer wait; what repairs answers does not wait."""
        if self.exact:
            return duration_us(self.call.keywords.get("wait") or "0 s", "wait", zero=True)
        waits = [each for each in self.call.arguments if each is not None]
        return max((duration_us(each, self.call.name, zero=True) for each in waits), default=0)

    @property
    def revises(self) -> bool:
        """Whether it may give a window a second answer."""
        return self.exact or len(self.call.arguments) > 1 or self.call.keywords.get("mode") == "update"

    @property
    def exact(self) -> bool:
        """Whether it promises the sorted run's results where no row is later than its bound."""
        return self.call.name in ("optimistic", "timetravel")


def read_way(text: str) -> Way:
    """Read a way as it is written in code.

    >>> read_way("withWatermark('10 minutes', mode='update')").is_spark
    True
    """
    call = read_call(text, "--way")
    if call.name not in (WATERMARK, *STRATEGIES):
        rule = f"be one of {', '.join((WATERMARK, *STRATEGIES))}"
        raise InputError(must("--way", rule, call.name, "e.g. --way \"tiers('1 second', '1 hour')\""))
    if call.name == WATERMARK:
        watermark_of(call)
    elif call.name == REORDER and (len(call.arguments) != 1 or call.keywords):
        raise InputError(must("--way reorder", "be given a latency", text, "e.g. \"reorder('10 minutes')\""))
    return Way(text.strip().lstrip("."), call)


def watermark_of(call: Call) -> tuple[str, str]:
    """The delay and the output mode."""
    mode = call.keywords.get("mode", "append")
    if len(call.arguments) != 1 or set(call.keywords) - {"mode"} or mode not in ("append", "update"):
        advice = f"e.g. \"{WATERMARK}('10 minutes', mode='update')\""
        got = f"{call.name}{call.arguments} {call.keywords or ''}".strip()
        raise InputError(must(f"--way {WATERMARK}", "be given a delay, and a mode of append or update", got, advice))
    duration_us(call.arguments[0], "delay", zero=True)
    return str(call.arguments[0]), mode


@dataclass(frozen=True)
class Asked:
    """What is asked of every way."""

    question: Question
    stream: RecordedStream
    max_ahead: str | None = None


def start_way(way: Way, asked: Asked, df: DataFrame, checkpoint: str, sink: Sink) -> StreamingQuery:
    """Start a way on the stream; what it gives goes to the sink."""
    if way.is_spark:
        return _start_spark(way, asked, df, checkpoint, sink)
    result = _planned(way, asked, df)
    given = CHANGES if CHANGES in result.planned.lanes.names else "results"
    sinks: dict[str, Any] = {**dict.fromkeys(("results", "late", "quarantine"), Discard()), given: sink}
    return result.start(checkpoint=checkpoint, sinks=sinks, available_now=True)


def _planned(way: Way, asked: Asked, df: DataFrame) -> Result:
    """The result of a strategy on the stream."""
    roles = asked.stream.roles
    tick, ahead = f"{asked.stream.tick_us} us", asked.max_ahead
    events = disordered(
        df,
        time=roles.time,
        key=roles.key,
        source=roles.source,
        arrival=roles.arrival,
        end=END,
        tick=tick,
        max_ahead=ahead,
    )
    return ask(way, asked, events)


def ask(way: Way, asked: Asked, events: Any) -> Result:
    """Ask the question of events, in this way."""
    (name, arguments, keywords), question = way.call, asked.question
    try:
        if name == REORDER:
            in_order = events.reorder(*arguments).by(*asked.stream.roles.key)
            result: Result = _windows(in_order, question).tiers("1 us")
        else:
            result = getattr(_windows(events, question), name)(*arguments, **keywords)
    except TypeError as error:
        raise InputError(must(f"--way {way.text}", "be a call that it takes", str(error), "see the docs")) from None
    return result


def _windows(events: Any, question: Question) -> Any:
    window = question.window
    cut = events.tumbling(window.size) if window.advance is None else events.hopping(window.size, window.advance)
    return cut.aggregate(*question.all_aggregates)


def _start_spark(way: Way, asked: Asked, df: DataFrame, checkpoint: str, sink: Sink) -> StreamingQuery:
    """Spark's own query; one row from the far future ends the stream, as `end=` does for ours."""
    delay, mode = watermark_of(way.call)
    roles, window = asked.stream.roles, asked.question.window
    if asked.max_ahead is not None and roles.arrival is not None:
        ahead_us = duration_us(asked.max_ahead, "max_ahead", zero=True)
        sane = F.col(roles.time) <= F.col(roles.arrival) + F.expr(f"INTERVAL {ahead_us} MICROSECONDS")
        df = df.where(sane | F.col(END))
    first_us, last_us = asked.stream.span_us
    last = F.timestamp_micros(F.lit(last_us + _YEARS_US))
    rows = df.withColumn(roles.time, F.when(F.col(END), last).otherwise(F.col(roles.time)))
    span = F.window(roles.time, f"{window.size_us} microseconds", f"{window.advance_us} microseconds")
    waited = rows.withWatermark(roles.time, f"{duration_us(delay, 'delay', zero=True)} microseconds")
    grouped = waited.groupBy(span, *roles.key)
    of_stream = (F.col("window.end") > F.timestamp_micros(F.lit(first_us))) & (
        F.col("window.start") <= F.timestamp_micros(F.lit(last_us))
    )
    given = grouped.agg(*asked.question.spark_columns()).where(of_stream)
    times = F.col("window.start").alias(WINDOW_START), F.col("window.end").alias(WINDOW_END)
    names = [each.name for each in asked.question.all_aggregates]
    shown = given.select(*times, *roles.key, *names)
    writer = shown.writeStream.outputMode(mode).foreachBatch(sink).trigger(availableNow=True)
    settings = {"spark.sql.shuffle.partitions": str(default_shards(df.sparkSession))}
    with changed_settings(df.sparkSession, settings):
        return writer.option("checkpointLocation", checkpoint).start()
