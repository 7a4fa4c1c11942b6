"""Random streams of events, out of order, with what a strategy may be fed: ends of sources, controls, retractions."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from latecomer.contract import Settings
from latecomer.controls import ControlStep
from latecomer.durations import Duration, duration_us
from latecomer.events import EVENT_CHANGE, TICK, EventBatch, Int8s, Int64s, Layout
from latecomer.headers import Header, HeaderBuilder

LAYOUT = Layout(time="ts", key=("key",), source="source", order=("id",))


@dataclass
class ManualClock:
    """A clock that moves when it is told to."""

    now_us: int = 0

    def advance(self, by: Duration) -> int:
        """Move on by a duration; returns the new time."""
        self.now_us += duration_us(by, "by")
        return self.now_us


@dataclass(frozen=True)
class Stream:
    """Events in plain arrays, in arrival order.

    id: of each event, its position unless given. change: -1 for a retraction. ends: the ticks and sources of ends.
    controls: control values, each in a tick without events.
    """

    ts_us: Int64s
    tick: Int64s
    key: Int64s
    source: Int64s
    id: Int64s | None = None
    change: Int8s | None = None
    ends: tuple[tuple[int, int], ...] = ()
    controls: tuple[ControlStep, ...] = ()

    def __len__(self) -> int:
        return len(self.ts_us)

    @property
    def ids(self) -> Int64s:
        """The id of each event."""
        return np.arange(len(self)) if self.id is None else self.id

    def batch(self, chosen: Int64s) -> EventBatch:
        """Some of the events, by position; a row's `id` is its position in the stream unless the stream says."""
        columns = {
            "id": pa.array(self.ids[chosen]),
            "ts": pa.array(self.ts_us[chosen]),
            "key": pa.array(self.key[chosen]),
            "source": pa.array(self.source[chosen]),
            TICK: pa.array(self.tick[chosen]),
        }
        if self.change is not None:
            columns[EVENT_CHANGE] = pa.array(self.change[chosen], pa.int8())
        return EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)

    def take(self, chosen: Int64s) -> Stream:
        """The stream of some of the events only, by position."""
        ids, change = None if self.id is None else self.id[chosen], None if self.change is None else self.change[chosen]
        ts_us, tick, key, source = (column[chosen] for column in (self.ts_us, self.tick, self.key, self.source))
        return replace(self, ts_us=ts_us, tick=tick, key=key, source=source, id=ids, change=change)

    def header(self, chosen: Int64s, after: int, upto: int, idle_ticks: int | None) -> Header:
        """What a task says of these events, and of the ends and control values after one tick and up to another."""
        builder, batch = HeaderBuilder(idle_ticks), self.batch(chosen)
        builder.add(batch.ts_us, batch.tick, batch.rows.column("source"))
        ends = [end for end in self.ends if after < end[0] <= upto]
        if ends:
            ticks, sources = (np.array(column, dtype=np.int64) for column in zip(*ends, strict=True))
            builder.add_ends(ticks, len(ends), pa.array(sources))
        steps = tuple(step for step in self.controls if after < step.tick <= upto)
        return replace(builder.build(), controls=steps)


def random_stream(seed: int, events: int = 200) -> Stream:
    """A small stream with late, equal and far-off times, several keys and sources, and silences."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(0, events + 1))
    steps = rng.choice([0, 0, 0, 1, 1, 2, 40], size=count)
    tick = np.cumsum(steps).astype(np.int64) + 1_000
    delay = rng.choice([0, 0, 1, 5, 30, 500], size=count) * rng.integers(0, 1_000, size=count)
    ts_us = tick * 1_000 - delay
    keys, sources = rng.integers(1, 8), rng.integers(1, 4)
    return Stream(ts_us, tick, rng.integers(0, keys, size=count), rng.integers(0, sources, size=count))


def stream_for(settings: Settings, seed: int, events: int) -> Stream:
    """A random stream with sources that end; with what the strategy takes of control values and retractions."""
    stream, rng = random_stream(seed, events), np.random.default_rng([seed, 2])
    if len(stream) == 0:
        return stream
    if settings.takes_changes and rng.random() < 0.5:
        stream = _with_retractions(stream, rng)
    if rng.random() < 0.5:
        stream = replace(stream, ends=_random_ends(stream, rng))
    steps = []
    for tick in _ticks_between(stream, rng, most=4):
        for control in settings.controls.values():
            value = control.read(control.tried[int(rng.integers(len(control.tried)))])
            steps.append(ControlStep(tick, control.stored, json.dumps(value)))
    return replace(stream, controls=tuple(steps))


def _with_retractions(stream: Stream, rng: np.random.Generator) -> Stream:
    """Some of the events are taken back at the end of the stream."""
    void = np.sort(rng.choice(len(stream), size=int(rng.integers(0, len(stream) // 2 + 1)), replace=False))
    chosen = np.append(np.arange(len(stream)), void)
    tick = np.append(stream.tick, stream.tick[-1] + 1 + np.arange(len(void)) // 3)
    change = np.repeat(np.array([1, -1], dtype=np.int8), [len(stream), len(void)])
    return Stream(stream.ts_us[chosen], tick, stream.key[chosen], stream.source[chosen], chosen, change)


def _random_ends(stream: Stream, rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """Some or all sources end, after all of them have spoken: one that nobody knows yet has not ended."""
    _, first = np.unique(stream.source, return_index=True)
    last, sources = int(stream.tick[-1]), np.unique(stream.source).tolist()
    start = int(stream.tick[first.max()])
    ending = sources if rng.random() < 0.5 else sources[1:]
    return tuple((int(rng.integers(start, last + 3)), source) for source in ending)


def _ticks_between(stream: Stream, rng: np.random.Generator, most: int) -> list[int]:
    """Some ticks without events, in order."""
    free = np.setdiff1d(np.arange(stream.tick[0], stream.tick[-1]), stream.tick)
    free = free[~np.isin(free, [tick for tick, _ in stream.ends])]
    count = min(len(free), int(rng.integers(0, most + 1)))
    return sorted(rng.choice(free, size=count, replace=False).tolist()) if count else []
