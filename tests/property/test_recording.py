"""Recordings against their slow twin, which holds every row in a list."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.disorder.player import Player
from latecomer.disorder.recording import open_recording, read_span
from latecomer.disorder.ticks import Ticks

TICK_US = 10

steps = st.lists(st.sampled_from([0, 0, 1, 3, 10, 47]), min_size=1, max_size=40)
speeds = st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(5, 2), None])


def write(folder: Path, stamps: list[int], files: list[int], group: int, *, statistics: bool) -> None:
    """The rows in files that end at the given rows."""
    cuts = [0, *sorted(cut for cut in files if cut < len(stamps)), len(stamps)]
    for number in range(len(cuts) - 1):
        part = stamps[cuts[number] : cuts[number + 1]]
        ids = pa.array(range(cuts[number], cuts[number + 1]), pa.int64())
        table = pa.table({"id": ids, "arrival": pa.array(part, pa.int64())})
        pq.write_table(table, folder / f"{number:02d}.parquet", row_group_size=group, write_statistics=statistics)


def naive_due(stamps: list[int], start: int, limit: int | None, reached_us: float | Fraction) -> int:
    """Tick after tick: as long as all its events are due and the rows stay within the limit."""
    stop = start
    while stop < len(stamps):
        tick = [row for row, stamp in enumerate(stamps) if stamp // TICK_US == stamps[stop] // TICK_US]
        after = tick[-1] + 1
        if stamps[tick[-1]] > reached_us or (limit is not None and after - start > limit and stop > start):
            break
        stop = after
    return stop


@settings(deadline=None, max_examples=60)
@given(
    steps,
    st.lists(st.integers(0, 40), max_size=3),
    st.integers(1, 7),
    st.booleans(),
    speeds,
    st.sampled_from([None, 1, 3, 10]),
    st.lists(st.integers(0, 60), min_size=1, max_size=30),
)
def test_a_playback_equals_its_twin(
    drawn: list[int],
    files: list[int],
    group: int,
    statistics: bool,
    speed: Fraction | None,
    limit: int | None,
    waits: list[int],
) -> None:
    stamps = list(accumulate(drawn, initial=995))[1:]
    now, begin, start, played = 0, None, 0, []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), stamps, files, group, statistics=statistics)
        ticks = Ticks(open_recording(folder, "arrival"), TICK_US)
        player = Player(ticks, speed, lambda: now * 1_000)
        for wait in waits:
            now += wait
            begin = now if begin is None else begin
            reached = float("inf") if speed is None else stamps[0] + (now - begin) * speed
            stop = player.due(start, limit)
            assert stop == naive_due(stamps, start, limit, reached)
            spans = ticks.spans(start, stop)
            played += [row for span in spans for batch in read_span(span, "arrival") for row in batch["id"].to_pylist()]
            start = stop
        ticks.close()
    assert played == list(range(start))


@settings(deadline=None, max_examples=40)
@given(steps, st.lists(st.integers(0, 40), max_size=3), st.integers(1, 7), st.booleans(), st.integers(940, 1500))
def test_the_index_equals_its_twin(
    drawn: list[int], files: list[int], group: int, statistics: bool, stamp: int
) -> None:
    stamps = list(accumulate(drawn, initial=995))[1:]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), stamps, files, group, statistics=statistics)
        ticks = Ticks(open_recording(folder, "arrival"), TICK_US)
        assert [ticks.arrival_us(row) for row in range(ticks.rows)] == stamps
        assert ticks.rows_until(stamp) == sum(1 for value in stamps if value <= stamp)
        assert ticks.last_us == stamps[-1]
        numbers = [value // TICK_US for value in stamps]
        borders = [0, *(row for row in range(1, len(stamps)) if numbers[row] != numbers[row - 1]), len(stamps)]
        for row in range(len(stamps) + 2):
            assert ticks.border(row) == max(border for border in borders if border <= row)
        ticks.close()
