"""Tiers against their slow twin, and through the five invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.errors import HeldError, InputError
from latecomer.outputs import Output
from latecomer.testing import Run, check_machine, random_stream, run_machine
from latecomer.tiers import Tiers
from latecomer.windows import (
    Count,
    CountDistinct,
    Custom,
    First,
    Last,
    Max,
    Mean,
    Min,
    Quantile,
    TopK,
    Variance,
    Window,
)
from tests.naive import tier_of, tiers
from tests.outputs import said
from tests.property.streams import (
    ASKED,
    answer,
    between_ticks,
    draw_cuts,
    keyed,
    latencies_up_to,
    result_rows,
    stream_of,
)

WINDOWS = [
    Window("10 ms", "10 ms"),
    Window("20 ms", "10 ms"),
    Window("50 ms", "20 ms"),
    Window("120 ms", "10 ms"),
    Window("1 s", "1 s"),
]


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: f"{window.size}, {window.advance}")
@pytest.mark.parametrize("latencies", [("20 ms",), ("1 ms", "30 ms", "5 s")], ids=len)
def test_tiers_keep_the_five_invariants(window: Window, latencies: tuple[str, ...]) -> None:
    check_machine(Tiers(latencies, window, ASKED), runs=3, events=100)


def test_all_aggregates_keep_the_five_invariants() -> None:
    aggregates = (Mean("id"), First("id"), Last("id"), CountDistinct("source"), TopK("source"), Quantile("id"))
    check_machine(Tiers(("1 ms", "30 ms"), WINDOWS[0], aggregates), runs=3, events=100)


def test_sums_of_floats_are_voided_as_they_were_given() -> None:
    asked = Tiers(("1 ms", "30 ms", "5 s"), Window("120 ms", "10 ms"), (Variance("id"), Mean("id")))
    for seed in range(4):
        stream = random_stream(seed, 100)
        run_machine(asked, stream, cuts=between_ticks(stream)[::9]).results()


@given(
    seed=st.integers(0, 10_000),
    window=st.sampled_from(WINDOWS),
    latencies=latencies_up_to(3_000),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_every_tier_has_the_events_within_its_latency(
    seed: int, window: Window, latencies: tuple[str, ...], data: st.DataObject
) -> None:
    stream = random_stream(seed, 60)
    asked, events = Tiers(latencies, window, ASKED, lateness="event"), keyed(stream)
    run = run_machine(asked, stream, cuts=draw_cuts(data, stream, most=4))
    expected = tiers(events, asked.latencies_us, window.size_us, window.advance_us)
    for number, answers in enumerate(expected):
        assert _answers(run.outputs, number + 1) == {place: answer(ids) for place, ids in answers.items()}
    late = [event.value for event in events if tier_of(events, event, asked.latencies_us) == len(asked.latencies)]
    assert run.late_ids() == sorted(late)
    _check_promises(run, asked, window.size_us, expected)


def _answers(outputs: Sequence[Sequence[Output]], tier: int) -> dict[tuple[int, int], tuple[int, ...]]:
    """A tier's answers, each given once."""
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for row, change, output in result_rows(outputs):
        if said(output, "tier") == tier and change >= 0:
            place = (row["window_start"], row["key"])
            assert place not in found
            found[place] = (row["count"], row["sum_id"], row["min_id"], row["max_id"])
    return found


def _check_promises(run: Run, asked: Tiers, size_us: int, expected: list[dict[tuple[int, int], list[int]]]) -> None:
    """Answers come when the tier's punctuation has passed their window, no earlier and no later; the last are final."""
    for place, timeline in enumerate(run.timelines):
        for number, answers in enumerate(expected):
            punctuation_us = timeline.punctuation(asked.latencies_us[number])
            due = {at for at in answers if at[0] + size_us - 1 <= punctuation_us}
            assert set(_answers(run.outputs[: place + 1], number + 1)) == due
    for _, _, output in result_rows(run.outputs):
        assert said(output, "final") == (said(output, "tier") == len(asked.latencies))


def test_changes_tell_what_a_later_tier_corrects() -> None:
    stream = stream_of((0, 0), (20, 1), (5, 2), (40, 3), (100, 4))
    run = run_machine(Tiers(("10 us", "30 us"), Window(*_us(10, 10)), (Count(),)), stream, cuts=[1, 2, 3, 4])
    found = [
        (
            said(output, "tier"),
            change,
            row["window_start"],
            row["count"],
            str(said(output, "pane")),
            said(output, "final"),
        )
        for row, change, output in result_rows(run.outputs)
    ]
    assert found[:4] == [
        (1, 1, 0, 1, "early", False),
        (1, 1, 20, 1, "early", False),
        (2, -1, 0, 1, "revised", True),
        (2, 1, 0, 2, "revised", True),
    ]
    assert (2, 0, 20, 1, "on_time", True) in found


def test_zeros_of_either_sign_are_voided_as_they_were_given() -> None:
    stream = replace(
        stream_of((0, 0), (20, 1), (5, 2), (60, 3), (6, 4), (200, 5)), id=np.array([0.0, 1.0, -0.0, 1.0, 0.0, 1.0])
    )
    asked = Tiers(("10 us", "30 us", "90 us"), Window(*_us(10, 10)), (Min("id"), Max("id")))
    run = run_machine(asked, stream, cuts=[1, 2, 3, 4, 5])
    standing: Counter[str] = Counter()
    for row, change, _ in result_rows(run.outputs):
        standing[str(row)] += change
    assert set(standing.values()) == {0, 1}
    assert [row for row, count in standing.items() if count and "'min_id': -0.0, 'max_id': 0.0" in row]


def _us(*values: int) -> list[str]:
    return [f"{value} us" for value in values]


@pytest.mark.parametrize(
    ("latencies", "text"),
    [((), "at least one latency"), (("2 s", "1 s"), "increase"), (("1 s", "1 s"), "increase"), (("-1 s",), "latency")],
)
def test_latencies_that_are_none_are_refused(latencies: tuple[str, ...], text: str) -> None:
    with pytest.raises(InputError, match=text):
        Tiers(latencies, WINDOWS[0], ASKED)


def test_an_aggregate_without_a_merge_is_refused() -> None:
    own = Custom("id", lambda: 0, lambda state, value: state + value, None, lambda state: state, pa.int64())
    with pytest.raises(InputError, match="have a merge"):
        Tiers(("1 s",), WINDOWS[0], (own,))


def test_more_than_max_held_stops_the_query() -> None:
    with pytest.raises(HeldError):
        run_machine(Tiers(("10 s",), WINDOWS[0], ASKED, max_held=1), random_stream(3))
