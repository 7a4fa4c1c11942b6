"""The counters of a query: how many rows went through which door, in Spark's own progress events.

A query of several stages has each stage's counters too, under `<stage>.<name>`. The plain names then mean the whole
query: rows come in and are filtered, quarantined and accepted in the first stage, results are given by the last;
`late`, `dropped` and what is held are those of all stages.

Every plan has a name of its own for its counters, so that several results can be parts of one query of Spark's:
`latecomer-<result>-<plan>`. Whoever reads them looks for the prefix, and for the result where there are several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US
from latecomer.gives import Tally
from latecomer.spark.packed import counters_of, nothing_counted
from latecomer.spark.source_counters import ABOUT_SOURCES, Sources, sources_in

if TYPE_CHECKING:
    import pandas as pd

    from latecomer.spark.result import Result

PREFIX = "latecomer-"
_OF_LAST = ("given", "punctuation_us")
_OF_ALL = ("late", "dropped", "held")


@dataclass(frozen=True)
class Counters:
    """The counters of a query's stages, by their names: those that every stage has, and its strategy's own."""

    stages: Mapping[str, Mapping[str, Tally]]

    @property
    def packed(self) -> dict[str, Tally]:
        """What packed rows have columns for."""
        return {name: tally for own in self.stages.values() for name, tally in counters_of(own).items()}

    @property
    def tallies(self) -> dict[str, Tally]:
        """All counters that the query shows, and how each is put together."""
        found = dict(counters_of({name: tally for own in self.stages.values() for name, tally in own.items()}))
        if len(self.stages) > 1:
            for stage, own in self.stages.items():
                found.update({f"{stage}.{name}": tally for name, tally in counters_of(own).items()})
        return found

    def columns(self, names: Sequence[str] | None = None) -> list[Column]:
        """The aggregates that turn packed rows into counters, all or some."""
        chosen = self.tallies if names is None else {name: self.tallies[name] for name in names}
        return [F.expr(self._aggregate(name, tally)) for name, tally in chosen.items()]

    def observed(self, packed: DataFrame, name: str) -> DataFrame:
        """Let the counters ride along, under a name that only this plan has."""
        first, *rest = self.columns()
        return packed.observe(f"{name}-{_unique()}", first, *rest)

    def counted(self, packed: pd.DataFrame) -> dict[str, Any]:
        """All counters of packed rows that are in memory."""
        found = {}
        for name, tally in self.tallies.items():
            stage, _, plain = name.rpartition(".")
            number = self._only_of(stage, plain)
            values = packed[plain] if number is None else packed[plain][packed["stage"] == number]
            how = {Tally.LARGEST: max, Tally.LEAST: min, Tally.TEXT: max}.get(tally, sum)
            found[name] = how([nothing_counted(tally), *values.tolist()])
        return found

    def _aggregate(self, name: str, tally: Tally) -> str:
        stage, _, plain = name.rpartition(".")
        function = {Tally.LARGEST: "max", Tally.LEAST: "min", Tally.TEXT: "max"}.get(tally, "sum")
        number, nothing = self._only_of(stage, plain), "''" if tally is Tally.TEXT else f"{nothing_counted(tally)}L"
        counted = plain if number is None else f"if(stage = {number}, {plain}, {nothing})"
        return f"coalesce({function}({counted}), {nothing}) AS `{name}`"

    def _only_of(self, stage: str, name: str) -> int | None:
        """The number of the stage that a counter is of; None for all."""
        if stage:
            return list(self.stages).index(stage)
        if name in ABOUT_SOURCES:
            return 0
        own = any(name in counters for counters in self.stages.values())
        if len(self.stages) == 1 or own or name in _OF_ALL:
            return None
        return len(self.stages) - 1 if name in _OF_LAST else 0


def metric_name() -> str:
    """A name for the counters of a result."""
    return f"{PREFIX}{_unique()}"


def _unique() -> str:
    return uuid4().hex[:8]


def read_counters(progress: Any, result: Result | None = None) -> dict[str, int] | None:
    """The counters of a query's last micro-batch, or those in one of its progress events; None where there are none.

    While nothing comes, Spark's progress events have no counters: the query still says what is held and how far it is.
    result: whose counters, where a query of Spark's has those of several (`a.results.join(b.results, ...)`).
    """
    values = _values(progress, result)
    if values is None:
        return None
    return {name: int(value) for name, value in values.items() if name.rpartition(".")[2] not in ABOUT_SOURCES}


def read_sources(progress: Any, result: Result | None = None) -> Sources | None:
    """The counters of the sources that are furthest behind, and how many `hidden` others there are.

    Of a query's last micro-batch, of one of its progress events, or of what `.write` gave. `waits_for`: the source that
    holds the others up; `unseen`: the declared ones that never came. None where the stream was declared without
    `count_sources=True` and no source is waited for. result: as in `read_counters`.
    """
    values = read_values(progress, result)
    return None if values is None else sources_in(values)


def read_values(progress: Any, result: Result | None = None) -> Mapping[str, Any] | None:
    """All that is counted, text too, in what `read_sources` takes."""
    given = isinstance(progress, Mapping) and "seen" in progress
    return progress if given else _values(progress, result)


def _values(progress: Any, result: Result | None) -> dict[str, Any] | None:
    """What the last progress event that has counters says."""
    if hasattr(progress, "recentProgress"):  # a query, classic or over Connect
        events = (_values(event, result) for event in reversed(progress.recentProgress))
        return next((values for values in events if values is not None), None)
    if progress is not None and not (isinstance(progress, Mapping) and "observedMetrics" in progress):
        advice = "give a query, or one of its progress events"
        raise InputError(must("counters", "be read from a query", type(progress).__name__, advice))
    observed = {} if progress is None else progress["observedMetrics"]
    found = {name: row for name, row in observed.items() if name.startswith(PREFIX) and row is not None}
    if result is not None and len({_result_of(name) for name in found}) > 1:
        found = {name: row for name, row in found.items() if _result_of(name) == result.metric}
    results = {_result_of(name) for name in found}
    if len(results) > 1:
        advice = "say whose you want: lc.read_counters(progress, result)"
        raise InputError(must("progress event", "have the counters of one result", f"those of {len(results)}", advice))
    return _as_dict(next(iter(found.values()))) if found else None


def _result_of(metric: str) -> str:
    return metric.rpartition("-")[0]


def _as_dict(row: Any) -> dict[str, Any]:
    """Classic Spark gives a Row of counters; Connect a Row of two fields, `values` and `schema`."""
    values: dict[str, Any] = row.asDict()
    if "schema" in values:
        names = [column["name"] for column in values["schema"]["fields"]]
        values = dict(zip(names, values["values"], strict=True))
    return values


def final_through(progress: Any, result: Result | None = None) -> datetime | None:
    """The time up to which the answers of a query, or of one of its progress events, are final; None before any is.

    Results made of events up to this time only, of whatever key, will not change any more; the largest time there is
    when all sources have ended. result: whose answers, where a query of Spark's has those of several.
    """
    counters = read_counters(progress, result)
    if counters is None or counters["punctuation_us"] == NEVER_US:
        return None
    if counters["punctuation_us"] == FOREVER_US:
        return datetime.max.replace(tzinfo=UTC)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=counters["punctuation_us"])


def total(batches: Sequence[Mapping[str, int]], tallies: Mapping[str, Tally] | None = None) -> dict[str, int]:
    """The counters of several batches together; what is held and the progress are those of the last.

    tallies: how each is put together, where strategies have counters of their own.
    """
    known = {**counters_of({}), **(tallies or {})}
    if not batches:
        return dict.fromkeys(known, 0)
    found = {}
    for name, last in batches[-1].items():
        over = _OVER_BATCHES.get(known.get(name) or known.get(name.rpartition(".")[2], Tally.LEVEL))
        found[name] = last if over is None else over(batch[name] for batch in batches)
    return found


_OVER_BATCHES: dict[Tally, Callable[[Iterable[int]], int]] = {Tally.SUM: sum, Tally.LARGEST: max, Tally.LEAST: min}


def unaccounted(counters: Mapping[str, int]) -> int:
    """Rows seen that left through no door: always 0."""
    first = next((name.removesuffix("seen") for name in counters if name.endswith(".seen")), "")
    doors = ("filtered", "quarantined", "late", "dropped", "accepted")
    return counters["seen"] - sum(counters[first + door] for door in doors)
