"""A latency and a policy that change while a stream is put in order, against the definition, tick by tick."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.errors import LateError
from latecomer.headers import HeaderBuilder
from latecomer.outputs import Lane
from latecomer.reorder import Reorder
from latecomer.runner import Between, Runner
from latecomer.testing import LAYOUT, Stream

NEVER = -(2**62)


@dataclass
class Twin:
    """The definition: every tick judges its events by the punctuation before it, then moves the punctuation on."""

    latency: int
    policy: str = "side"
    mark: int = NEVER
    passed: int = NEVER
    held: list[tuple[int, int]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    dropped: int = 0

    def tick(self, events: list[tuple[int, int]]) -> list[int]:
        """The ids that leave after a tick, in order of time."""
        for ts, number in events:
            if ts > self.passed:
                self.held.append((ts, number))
            elif self.policy == "side":
                self.late.append(number)
            else:
                self.dropped += 1
        self.mark = max([self.mark, *(ts for ts, _ in events)])
        self.passed = max(self.passed, self.mark - self.latency)
        leaving = sorted(event for event in self.held if event[0] <= self.passed)
        self.held = [event for event in self.held if event[0] > self.passed]
        return [number for _, number in leaving]


BATCHES = st.lists(
    st.tuples(
        st.none() | st.tuples(st.integers(1, 60), st.sampled_from(["side", "drop"])),
        st.lists(st.lists(st.integers(0, 80), min_size=1, max_size=4), max_size=4),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 60), BATCHES, st.sampled_from(list(Between)))
def test_a_latency_that_changes_is_longer_from_now_on_and_shorter_at_once(
    latency: int, batches: list[tuple[tuple[int, str] | None, list[list[int]]]], between: Between
) -> None:
    twin, runner = Twin(latency), Runner(Reorder(f"{latency} us"), LAYOUT, between=between)
    tick, number, given_ids = 0, 0, 0
    for change, ticks in batches:
        builder, wanted, rows = HeaderBuilder(), [], []
        if change is not None:
            builder.control("latency_us", json.dumps(change[0]))
            builder.control("late", json.dumps(change[1]))
            twin.latency, twin.policy = change
            tick += 1  # it closes a tick of its own
            wanted += twin.tick([])
        for delays in ticks:
            tick += 1
            events = [(tick * 5 + 100 - delay, number + place) for place, delay in enumerate(delays)]
            number += len(delays)
            rows += [(ts, tick, each) for ts, each in events]
            wanted += twin.tick(events)
        columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)] or [
            np.zeros(0, np.int64)
        ] * 3
        zeros = np.zeros(len(rows), dtype=np.int64)
        batch = Stream(columns[0], columns[1], zeros, zeros, id=columns[2]).batch(np.arange(len(rows)))
        builder.add(batch.ts_us, batch.tick, batch.rows.column("source"))
        pushed = runner.push(batch, builder.build())
        found = [
            each for output in pushed.outputs if output.lane is Lane.RESULTS for each in output.rows["id"].to_pylist()
        ]
        assert found == wanted
        assert pushed.held == len(twin.held)
        assert runner.machine.punctuation(pushed.timeline) == max(twin.passed, NEVER)
        given_ids += len(found)
    assert given_ids + len(twin.held) + len(twin.late) + twin.dropped == number
    assert runner.dropped == twin.dropped


def test_a_policy_that_comes_to_stop_the_query_stops_it() -> None:
    runner = Runner(Reorder("1 us"), LAYOUT)
    zeros = np.zeros(2, dtype=np.int64)
    runner.push(Stream(np.array([100, 1]), np.array([1, 2]), zeros, zeros).batch(np.arange(2)))
    builder = HeaderBuilder()
    builder.control("late", '"raise"')
    late = Stream(np.array([2]), np.array([4]), zeros[:1], zeros[:1]).batch(np.arange(1))
    builder.add(late.ts_us, late.tick, late.rows.column("source"))
    with pytest.raises(LateError, match="1 too late, the first at 2 us"):
        runner.push(late, builder.build())
