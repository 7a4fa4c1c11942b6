"""The classes of results, and how soon late events are replayed, against slow twins that go through them one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from latecomer.events import FOREVER_US
from latecomer.quality import MARK, Classes, ResultColumns, classify, exact_marks, responsiveness

Place = tuple[int, int]
Row = tuple[int, int, int, int]  # time, key, value, change
Marked = tuple[int, int, int]  # time, key, mark

COLUMNS = ResultColumns("ts", ("key",))

ROWS = st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 2), st.sampled_from([1, 1, 0, -1]))


def slow_classes(rows: list[Row], wanted: dict[Place, int]) -> Classes:
    """The definitions of the paper, with a memory of what stands in each place."""
    standing: dict[Place, int] = {}
    exact: set[Place] = set()
    kinds: Counter[str] = Counter()
    for ts_us, key, value, change in rows:
        place = (ts_us, key)
        if change < 0:
            if standing.get(place) == value:
                del standing[place]
            continue
        standing[place] = value
        if place not in wanted:
            kinds["spurious"] += 1
        elif wanted[place] != value:
            kinds["different"] += 1
        else:
            kinds["duplicate" if place in exact else "exact"] += 1
            exact.add(place)
    return Classes(
        exact=kinds["exact"],
        omitted=len(wanted.keys() - standing.keys()),
        different=kinds["different"],
        duplicate=kinds["duplicate"],
        spurious=kinds["spurious"],
        different_left=sum(standing[place] != wanted[place] for place in wanted.keys() & standing.keys()),
        spurious_left=len(standing.keys() - wanted.keys()),
    )


def table(rows: list[Any], *names: str) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(column, pa.int64()) for column in columns], names=list(names))


@given(st.lists(ROWS, max_size=30), st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 1)), st.integers(0, 2)))
def test_classes_are_those_of_the_slow_twin(rows: list[Row], wanted: dict[Place, int]) -> None:
    truth = table([(*place, value) for place, value in wanted.items()], "ts", "key", "value")
    found = classify(table(rows, "ts", "key", "value", "change"), truth, ResultColumns("ts", ("key",)))
    assert found == slow_classes(rows, wanted)


LATE = st.tuples(st.integers(0, 12), st.integers(0, 1), st.integers(0, 9))  # time, key, mark
REPLAYS = st.lists(LATE, max_size=30)


def slow_replays(event: Marked, replays: list[Marked], reach_us: int) -> list[int]:
    """Of each result that an event touches, from the mark that it met to the first replay after it came."""
    ts_us, key, met_us = event
    firsts: dict[int, int] = {}
    for start_us, of_key, mark_us in sorted(replays, key=lambda row: row[2]):
        if of_key == key and ts_us - reach_us < start_us <= ts_us and mark_us >= met_us:
            firsts.setdefault(start_us, mark_us - met_us)
    return list(firsts.values())


@given(st.lists(LATE, max_size=8), REPLAYS, st.integers(1, 6))
def test_responsiveness_is_that_of_the_slow_twin(late: list[Marked], replays: list[Marked], reach_us: int) -> None:
    events, given_again, columns = table(late, "at", "key", MARK), table(replays, "ts", "key", MARK), COLUMNS
    found = [slow_replays(event, replays, reach_us) for event in late]
    for first, choose in ((True, min), (False, max)):
        delays = responsiveness(events, given_again, columns, reach_us, late_time="at", first=first)
        assert delays.tolist() == [choose(each, default=FOREVER_US) for each in found]


@given(st.lists(ROWS, max_size=30), st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 1)), st.integers(0, 2)))
def test_results_are_right_for_good_as_the_slow_twin_says(rows: list[Row], wanted: dict[Place, int]) -> None:
    right: dict[Place, int] = {}
    standing: dict[Place, int] = {}
    for mark, (ts_us, key, value, change) in enumerate(rows):
        place = (ts_us, key)
        if change >= 0:
            standing[place] = value
        elif wanted.get(place) == value or standing.get(place) == value:
            standing.pop(place, None)
        if standing.get(place) != wanted.get(place, -1):
            right.pop(place, None)
        else:
            right.setdefault(place, mark)
    truth = table([(*place, value) for place, value in wanted.items()], "ts", "key", "value")
    given_rows = table([(*row, mark) for mark, row in enumerate(rows)], "ts", "key", "value", "change", MARK)
    expected = [right.get(place, FOREVER_US) for place in wanted]
    assert exact_marks(given_rows, truth, COLUMNS).tolist() == expected
