"""The slow twin of optimistic processing against the paper, FlameStream's own tests, and what holds for any stream."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive_optimistic import (
    By,
    Event,
    Fold,
    Group,
    Item,
    Map,
    Optimistic,
    Seen,
    Step,
    bits,
    depth,
    identity,
    in_order,
    minus,
    net,
    run_sorted,
    trace,
)
from tests.unit.optimistic_items import BALANCE, EVEN_ODD, LAG, LONG, MAX, SUM, at, dated, even_or_odd, item, said, void

Matrix = tuple[tuple[int, ...], ...]

# The paper's own cases.


def test_groups_of_three_even_and_odd_numbers_are_those_of_section_v_b() -> None:
    assert said(run_sorted([Group(3)], even_or_odd(range(1, 9)))) == EVEN_ODD


def test_even_and_odd_numbers_give_the_same_groups_in_any_order_of_arrival() -> None:
    for seed in range(20):
        numbers = random.Random(seed).sample(range(1, 9), 8)
        twin = Optimistic([Group(3)], LONG)
        for number in numbers:
            twin.push([at(number, number, number % 2)])
        assert said(twin.standing) == EVEN_ODD
        assert said(twin.finish()) == EVEN_ODD


def test_a_complete_window_is_given_before_item_11_and_final_with_it_as_in_figure_4() -> None:
    twin = Optimistic([Group(3, "full")], bound_us=0)
    twin.push([at(8, 8), at(9, 9)])
    assert twin.push([at(10, 10)]) == ([], twin.standing)
    assert said(twin.standing) == [(8, 9, 10)]
    assert twin.barrier() == []
    twin.push([at(11, 11)])
    assert said(twin.barrier()) == [(8, 9, 10)]


def test_outputs_follow_their_input_and_precede_the_next_as_in_figure_5() -> None:
    inputs = [item(1, "x1"), item(2, "x2"), item(3, "x3")]
    derived = run_sorted([Map(lambda x: [] if x == "x2" else [f"F({x})", f"G({x})"])], inputs)
    assert said(in_order([*derived, *inputs])) == ["x1", "F(x1)", "G(x1)", "x2", "x3", "F(x3)", "G(x3)"]
    twice = run_sorted([Map(lambda x: [x, x]), Map(lambda x: [x + "a", x + "b"])], inputs[:1])
    assert [each.position[5:] for each in twice] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def multiply(left: Matrix, right: Matrix) -> Matrix:
    return tuple(
        tuple(sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*right, strict=True))
        for row in left
    )


def product(state: Matrix | None, matrix: Matrix) -> tuple[Matrix, list[Matrix]]:
    state = matrix if state is None else multiply(state, matrix)
    return state, [state]


A: Matrix = ((1, 2, 0), (0, 1, 0), (0, 0, 1))
B: Matrix = ((1, 0, 0), (3, 1, 0), (0, 0, 1))
C: Matrix = ((0, 1, 0), (1, 0, 0), (0, 0, 2))
AB: Matrix = ((7, 2, 0), (3, 1, 0), (0, 0, 1))
ABC: Matrix = ((2, 7, 0), (1, 3, 0), (0, 0, 2))
AC: Matrix = ((2, 1, 0), (1, 0, 0), (0, 0, 2))
BC: Matrix = ((0, 1, 0), (1, 3, 0), (0, 0, 2))


def test_matrices_are_multiplied_in_order_as_in_figure_7() -> None:
    items = [item(1, A, 3), item(2, B, 3), item(3, C, 3), item(2, ((5,),), 1)]
    assert [each.payload for each in run_sorted([Fold(product)], items) if each.key == 3] == [A, AB, ABC]
    assert multiply(B, A) != AB


def test_a_late_factor_voids_the_products_after_it() -> None:
    twin = Optimistic([Fold(product)], LONG)
    twin.push([at(1, A), at(3, C)])
    tombstones, new = twin.push([at(2, B)])
    assert (dated(tombstones), dated(new)) == ([(3, AC)], [(2, AB), (3, ABC)])
    twin = Optimistic([Fold(product)], LONG)
    twin.push([at(2, B), at(3, C)])
    tombstones, new = twin.push([at(1, A)])
    assert (dated(tombstones), dated(new)) == ([(2, B), (3, BC)], [(1, A), (2, AB), (3, ABC)])


class State(NamedTuple):
    """A state item of the cycle."""

    value: Any


def test_a_fold_is_a_grouping_of_two_and_a_combining_map_with_a_cycle_as_in_section_v_c() -> None:
    items, looped = [item(1, A), item(2, B), item(3, C)], list[Item]()
    for _ in range(2 * len(items)):
        groups = run_sorted([Group(2)], [*items, *looped])
        fresh = [group for group in groups if not isinstance(group.payload[-1], State)]
        looped = []
        for group in fresh:
            before = group.payload[0].value if isinstance(group.payload[0], State) else None
            looped.append(group._replace(payload=State(product(before, group.payload[-1])[0])))
    assert [state.payload.value for state in looped] == said(run_sorted([Fold(product)], items)) == [A, AB, ABC]


# FlameStream's own tests of grouping: the window, what becomes of short groups, items as they come, what stands.

ANY = 2**31 - 1
FLAMESTREAM = {
    "without reordering": (2, "keep", "v1@1 v2@2 v3@3", "v1 v1|v2 v2|v3"),
    "group with successor": (2, "keep", "v5@2 v5S@2.0 x0@1 x0S@1.0 S@2.0.0", "x0 x0|x0S x0S|v5 v5|v5S v5S|S"),
    "cycle simulation": (2, "keep", "v1@1 v2@2 S@1.0", "v1 v1|S S|v2"),
    "head reordering": (2, "keep", "v2@2 v1@1 v3@3", "v1 v1|v2 v2|v3"),
    "tail reordering": (2, "keep", "v1@1 v3@3 v2@2", "v1 v1|v2 v2|v3"),
    "reverse reordering": (2, "keep", "v3@3 v2@2 v1@1", "v1 v1|v2 v2|v3"),
    "undo, any size, in order": (ANY, "undo", "1@1 2@2 3@3", "1|2|3"),
    "undo, any size, out of order": (ANY, "undo", "2@2 1@1 3@3", "1|2|3"),
    "undo, size 2, in order": (2, "undo", "1@1 2@2 3@3", "1|2 2|3"),
    "undo, size 2, out of order": (2, "undo", "3@3 2@2 1@1", "1|2 2|3"),
    "undo, size 3, in order": (3, "undo", "1@1 2@2 3@3 4@4", "1|2|3 2|3|4"),
    "undo, size 3, out of order": (3, "undo", "4@4 3@3 2@2 1@1", "1|2|3 2|3|4"),
}


def parsed(text: str) -> list[Item]:
    """Items written as payload@time.child.child."""
    pairs = [each.split("@") for each in text.split()]
    places = [[int(number) for number in place.split(".")] for _, place in pairs]
    return [item(place[0], payload, children=place[1:]) for (payload, _), place in zip(pairs, places, strict=True)]


@pytest.mark.parametrize("name", FLAMESTREAM)
def test_what_is_left_after_tombstones_is_what_flamestream_expects(name: str) -> None:
    n, partial, arriving, expected = FLAMESTREAM[name]
    items, left = parsed(arriving), list[Item]()
    for number in range(len(items)):
        stood = run_sorted([Group(n, partial)], items[:number])
        tombstones, new = net(stood, run_sorted([Group(n, partial)], items[: number + 1]))
        assert not minus(tombstones, left)
        left = [*minus(left, tombstones), *new]
    assert ["|".join(each.payload) for each in in_order(left)] == expected.split()


def test_a_voided_item_leaves_the_groups_without_it() -> None:
    twin = Optimistic([Group(2)], LONG)
    twin.push([at(1, "v1"), at(2, "v2"), at(3, "v3")])
    tombstones, new = twin.push([void(at(3, "v3"))])
    assert (said(tombstones), new) == ([("v2", "v3")], [])
    assert said(twin.standing) == [("v1",), ("v1", "v2")]


def test_a_thousand_shuffled_items_give_every_window_of_the_sorted_list() -> None:
    numbers = random.Random(1).sample(range(1000), 1000)
    twin = Optimistic([Group(6)], LONG)
    for first in range(0, 1000, 250):
        twin.push([at(number, number) for number in numbers[first : first + 250]])
    assert said(twin.standing) == [tuple(range(max(0, last - 5), last + 1)) for last in range(1000)]


# What holds for any stream.

ROWS = st.tuples(st.integers(0, 30), st.integers(0, 1), st.integers(0, 2), st.integers(-3, 3), st.sampled_from("ab"))
UNDO: list[Step] = [Group(3, "undo")]
CHAINS: list[list[Step]] = [
    [SUM],
    [LAG],
    [BALANCE],
    UNDO,
    [Group(2, "full"), Map(lambda pair: [sum(pair)] * (sum(pair) % 3)), By(lambda n: n % 2), BALANCE],
]


def events_of(rows: Sequence[tuple[int, int, int, int, str]], changes: Sequence[bool]) -> list[Event]:
    """Events of which three come in each tick; some are retracted later."""
    events = [Event(ts, source, 0, order, key, n) for ts, source, order, n, key in rows]
    events += [void(event) for event, retracted in zip(events, changes, strict=False) if retracted]
    return [event._replace(tick=number // 3) for number, event in enumerate(events)]


@given(chain=st.sampled_from(CHAINS), rows=st.lists(ROWS, max_size=18), changes=st.lists(st.booleans()), data=st.data())
@settings(max_examples=80, deadline=None)
def test_changes_add_up_and_cuts_between_ticks_do_not_matter(
    chain: list[Step], rows: list[tuple[int, int, int, int, str]], changes: list[bool], data: st.DataObject
) -> None:
    events = events_of(rows, changes)
    bound_us, forget_us = data.draw(st.integers(0, 30)), data.draw(st.none() | st.integers(1, 20))
    whole = Optimistic(chain, bound_us, forget_after_us=forget_us)
    whole.push(events)
    twin, left = Optimistic(chain, bound_us, forget_after_us=forget_us), list[Item]()
    for tick in sorted({event.tick for event in events}):
        tombstones, new = twin.push([event for event in events if event.tick == tick])
        assert not minus(tombstones, left)
        assert not minus(twin.released, minus(left, tombstones))
        left = [*minus(left, tombstones), *new]
        final = twin.barrier()
        assert final == in_order(final)
    for each in (whole, twin):
        each.finish()
    assert twin.standing == whole.standing == in_order(left) == run_sorted(chain, twin.accepted, forget_us)
    assert in_order(twin.released) == twin.standing
    assert chain == UNDO or twin.released == twin.standing
    assert sorted(twin.quarantined, key=repr) == sorted(whole.quarantined, key=repr)
    assert sorted(twin.late, key=repr) == sorted(whole.late, key=repr)
    assert twin.given - twin.voided == len(twin.standing)


def walked(step: Fold, before: Sequence[Seen], after: Sequence[Item]) -> int:
    """How many items a machine runs again that knows the state before each, and stops where states meet."""
    stored, stays = {identity(seen.item): seen.before for seen in before}, {identity(each) for each in after}
    union = {identity(each): each for each in [*(seen.item for seen in before), *after]}
    state, differs, again = step.initial, False, 0
    for name in sorted(union):
        if name in stored:
            differs = differs and bits(stored[name]) != bits(state)
            again += differs and name in stays
        if name in stays:
            state = step.step(state, union[name].payload)[0]
        differs = differs or name not in stays or name not in stored
    return again


@given(
    step=st.sampled_from([SUM, MAX, LAG]),
    old=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), max_size=10, unique_by=lambda row: row[0]),
    new=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), max_size=10, unique_by=lambda row: row[0]),
    kept=st.integers(0, 10),
)
@settings(max_examples=200, deadline=None)
def test_depth_is_what_a_machine_runs_that_stops_where_states_meet(
    step: Fold, old: list[tuple[int, int]], new: list[tuple[int, int]], kept: int
) -> None:
    before, after = [item(*row) for row in old], [item(*row) for row in {**dict(old[:kept]), **dict(new)}.items()]
    seen, now = ([each for some in trace([step], some).seen[0].values() for each in some] for some in (before, after))
    assert depth(seen, now) == walked(step, seen, after)


def slide(bucket: list[Item], items: Sequence[Item], n: int) -> set[tuple[Any, ...]]:
    """The groups of a bucket that intersect some items (Algorithm 2), as what they say."""
    groups = [bucket[max(0, last - n + 1) : last + 1] for last in range(len(bucket))]
    return {tuple(said(group)) for group in groups if any(each in items for each in group)}


@given(times=st.lists(st.integers(0, 50), unique=True, max_size=12), n=st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_new_groups_are_those_that_hold_the_new_item_as_in_algorithm_2(times: list[int], n: int) -> None:
    twin, bucket = Optimistic([Group(n)], LONG), list[Item]()
    for ts_us in times:
        fresh = item(ts_us, ts_us)
        bucket = in_order([*bucket, fresh])
        tombstones, new = twin.push([at(ts_us, ts_us)])
        assert set(said(new)) == slide(bucket, [fresh], n)
        assert [each.ts_us for each in tombstones] == [each.ts_us for each in new[1:]]
        assert twin.recomputed[0] == twin.voided
