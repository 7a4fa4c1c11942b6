"""The classes of results against a slow twin that goes through them one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from latecomer.quality import Classes, ResultColumns, classify

Place = tuple[int, int]
Row = tuple[int, int, int, int]  # time, key, value, change

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
