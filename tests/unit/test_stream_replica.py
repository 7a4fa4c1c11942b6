"""The replica that is a stream: what comes out of it, when, and what its map remembers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import ChunkStore
from latecomer.errors import InputError
from latecomer.events import FOREVER_US, Layout
from latecomer.timetravel.stream import StreamReplica
from latecomer.windows import Chain, Count, Sum, Window, WindowAggregation

LAYOUT = Layout("ts")


def us(number: int) -> str:
    """So many microseconds."""
    return f"{number} us"


CHAIN = Chain(
    WindowAggregation(Window(us(4), us(2)), (Sum("value", named="s"),)),
    WindowAggregation(Window(us(3)), (Sum("s"), Count())),
)
REACH = 7


def rows(times: list[int]) -> pa.RecordBatch:
    """Events at these times, each worth its time."""
    return pa.RecordBatch.from_pydict({"ts": pa.array(times, pa.int64()), "value": pa.array(times, pa.int64())})


def alone(times: list[int], late: list[int]) -> list[dict[str, int]]:
    """What an application of its own gives of a context: the results that a late event touches."""
    found, _ = CHAIN.build(ChunkStore(), LAYOUT).push(rows(times), FOREVER_US)
    assert found is not None
    return [
        row for row in found.to_pylist() if any(row["window_start"] <= m < row["window_start"] + REACH for m in late)
    ]


def contexts() -> st.SearchStrategy[list[tuple[list[int], list[int]]]]:
    """Contexts that overlap and come in any order, with some of their events late."""
    times = st.lists(st.integers(-50, 200), min_size=1, max_size=12).map(sorted)
    one = times.flatmap(lambda each: st.tuples(st.just(each), st.lists(st.sampled_from(each), min_size=1, max_size=3)))
    return st.lists(one, min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(contexts(), st.integers(1, 5))
def test_every_context_gives_what_an_application_of_its_own_gives(
    given_contexts: list[tuple[list[int], list[int]]], map_limit: int
) -> None:
    replica = StreamReplica(CHAIN, LAYOUT, rows([0]), map_limit=map_limit)
    found: list[dict[str, int]] = []
    wanted: list[dict[str, int]] = []
    for times, late in given_contexts:
        came = replica.replay(rows(times), np.array(late))
        found += [] if came is None else came.to_pylist()
        wanted += alone(times, late)
        assert len(replica.slots) <= map_limit + 1
    left = replica.flush()
    found += [] if left is None else left.to_pylist()
    assert found == wanted
    assert replica.slots == []


def test_a_context_stays_inside_until_something_follows_it() -> None:
    replica = StreamReplica(CHAIN, LAYOUT, rows([3]))
    assert replica.replay(rows([10, 11, 12]), np.array([11])) is None or len(replica.slots) == 1
    came = replica.flush()
    assert came is not None
    assert came.to_pylist()[-1]["window_start"] <= 11


def test_the_map_forgets_contexts_that_can_give_nothing_more() -> None:
    replica = StreamReplica(CHAIN, LAYOUT, rows([0]))
    for _ in range(50):
        replica.replay(rows([5, 6, 7]), np.array([6]))
    assert len(replica.slots) <= 2


def test_periods_of_the_application_are_kept() -> None:
    replica = StreamReplica(CHAIN, LAYOUT, rows([0]), periodicity=us(24))
    for times in ([1, 2], [100, 101], [3, 4]):
        replica.replay(rows(times), np.array(times[:1]))
    assert all(slot.shift_us % 24 == 0 for slot in replica.slots)


@pytest.mark.parametrize(
    ("flush", "map_limit", "text"), [([], 10, "flush must have rows"), ([1], 0, "map_limit must be above zero")]
)
def test_what_cannot_be_is_refused(flush: list[int], map_limit: int, text: str) -> None:
    with pytest.raises(InputError, match=text):
        StreamReplica(CHAIN, LAYOUT, rows(flush), map_limit=map_limit)
