"""Joins against their slow twin: whatever the order in which rows are read, and wherever it is cut into pushes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import ChunkStore
from latecomer.events import FOREVER_US, NEVER_US, TICK, Int64s, Layout
from latecomer.windows import Clocks, Join
from latecomer.windows.operators import Stretch
from tests.naive_join import NaiveJoin, Pair, Row

LAYOUT = Layout("ts", ("key",), "source")
SCHEMA = pa.schema([("ts", pa.int64()), ("key", pa.string()), ("source", pa.string()), ("number", pa.int64())])
Pushed = tuple[list[Row], int, int]
Given = list[tuple[Any, ...]]
KEYS: list[list[str | None]] = [["x"], ["x", None], ["x", "y", "z", None]]


@dataclass(frozen=True)
class Question:
    """A join, and the same for the twin."""

    within: int = 10
    keep: int | None = None
    when: Callable[[pa.RecordBatch], Any] | None = None
    twins_when: Callable[[Row, Row], bool] | None = None

    @property
    def join(self) -> Join:
        keep = None if self.keep is None else f"{self.keep} us"
        return Join("a", "b", f"{self.within} us", self.when, keep)

    @property
    def twin(self) -> NaiveJoin:
        return NaiveJoin(self.within, self.keep, self.twins_when)


@dataclass
class Answer:
    """What pushes gave, one after the other."""

    pairs: list[Given] = field(default_factory=list)
    quarantined: list[list[tuple[int, str]]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)


def some_pairs(pairs: pa.RecordBatch) -> pa.Array:
    left, right = (pairs.column(name).to_numpy() for name in ("a_number", "b_number"))
    return pa.array((left + right) % 3 != 0, mask=(left + right) % 5 == 0)


def failing_pairs(pairs: pa.RecordBatch) -> Any:
    left, right = (pairs.column(name).to_numpy() for name in ("a_number", "b_number"))
    if bool(((left * right) % 7 == 3).any()):
        raise ZeroDivisionError("bad")
    return (left + right) % 3 != 0


def is_some(left: Row, right: Row) -> bool:
    together = left.number + right.number
    return together % 3 != 0 and together % 5 != 0


def is_failing(left: Row, right: Row) -> bool:
    if (left.number * right.number) % 7 == 3:
        raise ZeroDivisionError("bad")
    return (left.number + right.number) % 3 != 0


PREDICATES = {"all": (None, None), "some": (some_pairs, is_some), "failing": (failing_pairs, is_failing)}


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    columns = [[row.ts for row in rows], [row.key for row in rows], [row.source for row in rows]]
    columns.append([row.number for row in rows])
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, SCHEMA, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    return batch.append_column(TICK, pa.array([1000 + row.number for row in rows], pa.int64()))


def as_given(pair: Pair) -> tuple[Any, ...]:
    left, right = pair.of("a"), pair.of("b")
    return (left.key, pair.time, left.ts, "a", left.number, right.ts, "b", right.number, 1000 + pair.then.number)


def answer(question: Question, pushes: list[Pushed], *, restored: bool = False) -> Answer:
    """What the join gives; a machine is built anew for each push if it is restored."""
    store, found = ChunkStore(), Answer()
    running = question.join.build(store, LAYOUT)
    for rows, read_us, certain_us in pushes:
        given = running.push(batch_of(rows) if rows else None, Clocks(read_us, certain_us))
        found.pairs.append([] if given.rows is None else [tuple(row.values()) for row in given.rows.to_pylist()])
        unused = [] if given.quarantined is None else given.quarantined.to_pylist()
        found.quarantined.append([(row["number"], row["reason"]) for row in unused])
        found.held.append(store.rows)
        if restored:
            found.counters = together(found.counters, running.counters())
            store = ChunkStore.restore(store.snapshot())
            running = question.join.build(store, LAYOUT)
    found.counters = together(found.counters, running.counters())
    return found


def at_once(question: Question, pushes: list[Pushed], first: int) -> Answer:
    """What the join gives where it takes the first pushes in at once, and then the others."""
    store, found = ChunkStore(), Answer()
    running = question.join.build(store, LAYOUT)
    stretches = [Stretch(batch_of(rows) if rows else None, Clocks(*clocks)) for rows, *clocks in pushes]
    for push in chain(running.push_stretches(stretches[:first]), running.push_stretches(stretches[first:])):
        found.pairs.append([] if push.rows is None else [tuple(row.values()) for row in push.rows.to_pylist()])
        unused = [] if push.quarantined is None else push.quarantined.to_pylist()
        found.quarantined.append([(row["number"], row["reason"]) for row in unused])
    found.counters = running.counters()
    return found


def together(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other[name] for name in other}


def slow_answer(question: Question, pushes: list[Pushed]) -> Answer:
    twin, found = question.twin, Answer()
    for rows, read_us, certain_us in pushes:
        given = twin.push(rows, read_us, certain_us)
        found.pairs.append([as_given(pair) for pair in given.pairs])
        found.quarantined.append([(row.number, reason) for row, reason in given.quarantined])
        found.held.append(len(twin.kept))
    found.counters = {"comparisons": twin.comparisons, "cut_short": twin.cut_short}
    return found


@st.composite
def readings(draw: st.DrawFn, *, in_order: bool = False) -> list[Pushed]:
    """Pushes of rows, each in order, with clocks that never go back; a row may be behind them."""
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=8))
    count, keys = sum(sizes), draw(st.sampled_from(KEYS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ts: Int64s = np.cumsum(rng.integers(0, draw(st.sampled_from([2, 6, 15])), size=count))
    if in_order:
        ts += np.repeat(np.arange(len(sizes)), sizes)  # nothing comes at a time that has been read
    else:
        ts -= rng.choice([0, 0, 0, 1, 8, 40], size=count) * rng.integers(0, 3, size=count)
    rows = [Row(int(at), keys[rng.integers(len(keys))], "ab"[rng.integers(2)], number) for number, at in enumerate(ts)]
    pushes, read_us, certain_us = list[Pushed](), NEVER_US, NEVER_US
    for start, stop in zip([0, *accumulate(sizes)][:-1], accumulate(sizes), strict=True):
        piece = sorted(rows[start:stop], key=lambda row: (row.ts, row.source))
        read_us = max([read_us, *(row.ts for row in piece)])
        behind = int(rng.choice([0, 0, 5, 30]))
        certain_us = max(certain_us, read_us if in_order else read_us - behind)
        pushes.append((piece, read_us, certain_us))
    return [*pushes, ([], FOREVER_US, FOREVER_US)]


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("keep", [None, 10, 25, 1_000])
@settings(max_examples=30, deadline=None)
@given(pushes=readings(), piece=st.sampled_from([1, 3, 1 << 17]))
def test_a_join_is_its_slow_twin(predicate: str, keep: int | None, pushes: list[Pushed], piece: int) -> None:
    question = Question(10, keep, *PREDICATES[predicate])
    slow = slow_answer(question, pushes)
    with patch("latecomer.windows.join_candidates.MOST_PAIRS", piece):
        fast = answer(question, pushes)
    assert fast.pairs == slow.pairs
    assert fast.quarantined == slow.quarantined
    assert fast.counters == slow.counters
    assert fast.held[-1] == 0
    if keep is not None:
        assert fast.held == slow.held


@pytest.mark.parametrize("keep", [None, 25])
@settings(max_examples=25, deadline=None)
@given(pushes=readings(), predicate=st.sampled_from(sorted(PREDICATES)))
def test_a_join_that_is_restored_goes_on_alike(keep: int | None, pushes: list[Pushed], predicate: str) -> None:
    question = Question(10, keep, *PREDICATES[predicate])
    assert answer(question, pushes, restored=True) == answer(question, pushes)


@pytest.mark.parametrize("keep", [None, 10, 25, 1_000])
@settings(max_examples=40, deadline=None)
@given(
    pushes=readings(),
    first=st.integers(0, 3),
    piece=st.sampled_from([1, 3, 1 << 17]),
    predicate=st.sampled_from(sorted(PREDICATES)),
)
def test_pushes_that_are_taken_in_at_once_give_the_same(
    keep: int | None, pushes: list[Pushed], first: int, piece: int, predicate: str
) -> None:
    question = Question(10, keep, *PREDICATES[predicate])
    slow = slow_answer(question, pushes)
    with patch("latecomer.windows.join_candidates.MOST_PAIRS", piece):
        fast = at_once(question, pushes, first)
    assert (fast.pairs, fast.quarantined, fast.counters) == (slow.pairs, slow.quarantined, slow.counters)


@pytest.mark.parametrize("keep", [None, 25])
@settings(max_examples=25, deadline=None)
@given(pushes=readings(), predicate=st.sampled_from(sorted(PREDICATES)))
def test_how_rows_are_stored_changes_nothing(keep: int | None, pushes: list[Pushed], predicate: str) -> None:
    question = Question(10, keep, *PREDICATES[predicate])
    whole = answer(question, pushes)
    with patch("latecomer.chunks.CHUNK_BYTES", 100), patch("latecomer.windows.join_state._FEW", 0):
        in_pieces = answer(question, pushes)
    with patch("latecomer.chunks.MANY", 2):
        united = answer(question, pushes)
    for other in (in_pieces, united):
        assert (other.pairs, other.quarantined, other.counters) == (whole.pairs, whole.quarantined, whole.counters)


@pytest.mark.parametrize("keep", [None, 1_000])
@settings(max_examples=30, deadline=None)
@given(pushes=readings(), predicate=st.sampled_from(sorted(PREDICATES)), data=st.data())
def test_rows_in_order_may_be_cut_anywhere(
    keep: int | None, pushes: list[Pushed], predicate: str, data: st.DataObject
) -> None:
    question = Question(10, keep, *PREDICATES[predicate])
    whole = [(rows, read_us, NEVER_US) for rows, read_us, _ in pushes if read_us < FOREVER_US]
    cut: list[Pushed] = []
    for rows, read_us, certain_us in whole:
        at = data.draw(st.integers(0, len(rows)))
        cut += [(rows[:at], read_us, certain_us), (rows[at:], read_us, certain_us)]
    one, other = answer(question, whole), answer(question, cut)
    assert other.counters == one.counters
    assert sorted(chain(*one.pairs), key=repr) == sorted(chain(*other.pairs), key=repr)
    assert sorted(chain(*one.quarantined)) == sorted(chain(*other.quarantined))


def all_pairs(pushes: list[Pushed], within: int) -> list[tuple[int, int]]:
    rows = [row for push in pushes for row in push[0]]
    pairs = [(left, right) for left in rows for right in rows if (left.source, right.source) == ("a", "b")]
    near = [(one, other) for one, other in pairs if one.key == other.key and abs(one.ts - other.ts) <= within]
    return sorted((left.number, right.number) for left, right in near)


def numbers(found: Answer) -> list[tuple[int, int]]:
    return sorted((pair[4], pair[7]) for given_pairs in found.pairs for pair in given_pairs)


@settings(max_examples=30, deadline=None)
@given(pushes=readings())
def test_kept_long_enough_all_pairs_are_found(pushes: list[Pushed]) -> None:
    uncertain = [(rows, read_us, NEVER_US) for rows, read_us, _ in pushes if read_us < FOREVER_US]
    assert numbers(answer(Question(10, 100_000), uncertain)) == all_pairs(uncertain, 10)


@settings(max_examples=30, deadline=None)
@given(pushes=readings(in_order=True), predicate=st.sampled_from(sorted(PREDICATES)))
def test_in_order_both_evictions_give_the_same_pairs(pushes: list[Pushed], predicate: str) -> None:
    evicting, keeping = (answer(Question(10, keep, *PREDICATES[predicate]), pushes) for keep in (None, 10))
    assert (evicting.pairs, evicting.quarantined) == (keeping.pairs, keeping.quarantined)
    if predicate == "all":
        assert numbers(evicting) == all_pairs(pushes, 10)
