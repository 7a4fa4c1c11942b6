"""The slow twin of optimistic processing in small cases, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.naive_optimistic import By, Event, Fold, Group, Map, Optimistic, Step, bits, run_sorted
from tests.unit.optimistic_items import BALANCE, EVEN_ODD, LAG, LONG, MAX, SUM, at, dated, even_or_odd, item, said, void

# Changes, and how much is run again.


def test_a_late_item_in_the_middle_changes_what_comes_after_it_only() -> None:
    twin = Optimistic([SUM], LONG)
    assert dated(twin.push([at(1, 10), at(2, 20), at(4, 40)])[1]) == [(1, 10), (2, 30), (4, 70)]
    tombstones, new = twin.push([at(3, 30)])
    assert (dated(tombstones), dated(new)) == ([(4, 70)], [(3, 60), (4, 100)])
    assert (twin.given, twin.voided, twin.recomputed) == (5, 1, [1])


def test_an_item_in_order_runs_nothing_again() -> None:
    twin = Optimistic([SUM], LONG)
    for number in range(5):
        assert twin.push([at(number, 1)])[0] == []
    assert (twin.given, twin.voided, twin.recomputed) == (5, 0, [0])


def test_keys_do_not_know_of_each_other() -> None:
    twin = Optimistic([SUM], LONG)
    twin.push([at(1, 1, "a"), at(3, 3, "a"), at(3, 30, "b")])
    tombstones, new = twin.push([at(2, 2, "a")])
    assert [(each.key, each.payload) for each in [*tombstones, *new]] == [("a", 4), ("a", 3), ("a", 6)]
    assert twin.recomputed == [1]


@pytest.mark.parametrize(
    ("step", "late", "expected"),
    [(SUM, 5, 4), (SUM, 0, 0), (MAX, 1, 0), (MAX, 35, 3), (LAG, 5, 1), (Group(3), 5, 2), (Group(3, "full"), 5, 2)],
)
def test_items_are_run_again_until_the_state_is_what_it_was(step: Step, late: int, expected: int) -> None:
    twin = Optimistic([step], LONG)
    twin.push([at(10 * number, 10 * number) for number in (1, 2, 3, 4, 5)])
    twin.push([at(15, late)])
    assert twin.recomputed == [expected]


def test_two_late_items_count_the_items_after_each_once() -> None:
    twin = Optimistic([LAG], LONG)
    twin.push([at(10 * number, number) for number in (1, 2, 3, 4, 5)])
    twin.push([at(15, 7), at(16, 8), at(35, 9)])
    assert twin.recomputed == [2]
    twin = Optimistic([SUM], LONG)
    twin.push([at(10 * number, number) for number in (1, 2, 3, 4, 5)])
    twin.push([at(15, 7), at(35, -7)])
    assert twin.recomputed == [2]


def test_a_deleted_item_runs_the_items_after_it_again() -> None:
    twin = Optimistic([SUM], LONG)
    twin.push([at(1, 1), at(2, 2), at(3, 3), at(4, 4)])
    tombstones, new = twin.push([void(at(2, 2))])
    assert (dated(tombstones), dated(new)) == ([(2, 3), (3, 6), (4, 10)], [(3, 4), (4, 8)])
    assert twin.recomputed == [2]


def test_what_comes_and_goes_within_a_micro_batch_changes_nothing() -> None:
    twin = Optimistic([SUM], LONG)
    twin.push([at(1, 1), at(3, 3)])
    assert twin.push([at(2, 2, tick=5), void(at(2, 2, tick=6))]) == ([], [])
    assert (twin.voided, twin.recomputed) == (0, [0])


def test_equal_is_bit_for_bit() -> None:
    twin = Optimistic([Fold(lambda state, payload: (payload, [state]), 0.0)], LONG)
    twin.push([at(1, 0.0), at(3, 1.0)])
    tombstones, new = twin.push([at(2, -0.0)])
    assert [str(each) for each in said([*tombstones, *new])] == ["0.0", "0.0", "-0.0"]
    twin = Optimistic([LAG], LONG)
    twin.push([at(1, float("nan")), at(3, 1.0)])
    tombstones, new = twin.push([at(2, float("nan"))])
    assert (tombstones, [each.ts_us for each in new], twin.recomputed) == ([], [2], [0])
    assert bits(1) != bits(1.0) != bits(True)


def test_a_fold_may_change_its_state_in_place() -> None:
    def collect(state: list[int], payload: int) -> tuple[list[int], list[list[int]]]:
        state.append(payload)
        return state, [state]

    twin = Optimistic([Fold(collect, [])], LONG)
    twin.push([at(1, 1), at(3, 3)])
    twin.push([at(2, 2)])
    assert said(twin.standing) == [[1], [1, 2], [1, 2, 3]]


# The total order.


def test_ties_in_time_go_by_source_then_tick_then_order() -> None:
    twin = Optimistic([Group(9, "undo")], LONG)
    twin.push([at(1, "d", source=2), at(1, "c", source=1, order=2), at(1, "b", source=1, order=1)])
    twin.push([at(1, "late", source=1, order=0), at(1, "a", source=0)])
    assert said(twin.standing) == [("a", "b", "c", "late", "d")]
    assert [each.position for each in twin.accepted][3] == (1, 1, 1, 0, 0)


def test_equals_are_numbered_and_the_order_of_arrival_decides_nothing() -> None:
    rows = [at(1, "x"), at(1, "y"), at(1, "x"), at(1, "x", "other")]
    twins = [Optimistic([LAG], LONG), Optimistic([LAG], LONG)]
    twins[0].push(rows)
    twins[1].push(rows[::-1])
    assert twins[0].standing == twins[1].standing
    assert [(each.key, each.position[4], each.payload) for each in twins[0].accepted] == [
        ("k", 0, "x"),
        ("other", 0, "x"),
        ("k", 1, "x"),
        ("k", 2, "y"),
    ]


# Time: ticks, too late, the barrier.


def test_an_event_is_late_up_to_the_bound_and_too_late_beyond_it() -> None:
    twin = Optimistic([SUM], bound_us=10)
    twin.push([at(100, 1)])
    assert twin.punctuation_us == 89
    twin.push([at(90, 2), at(89, 4)])
    assert [(event.ts_us, reason) for event, reason in twin.late] == [(89, "too_late")]
    assert dated(twin.standing) == [(90, 2), (100, 3)]


def test_time_moves_between_ticks_and_not_inside_one() -> None:
    twin = Optimistic([SUM], bound_us=10)
    twin.push([at(100, 1, tick=1), at(50, 1, tick=1), at(51, 1, tick=2)])
    assert [event.ts_us for event, _ in twin.late] == [51]


def test_an_event_of_a_closed_tick_joins_the_next() -> None:
    twin = Optimistic([SUM], bound_us=10)
    twin.push([at(100, 1, tick=7)])
    twin.push([at(95, 1, tick=3), at(200, 1, tick=8), at(150, 1, tick=9)])
    assert [(each.ts_us, each.position[2]) for each in twin.accepted] == [(95, 8), (100, 7), (200, 8)]
    assert ([event.ts_us for event, _ in twin.late], twin.stamps_back) == ([150], 1)


def test_a_derived_item_is_never_too_late() -> None:
    twin = Optimistic([Map(lambda n: [n]), By(lambda n: n % 2), SUM], bound_us=10)
    twin.push([at(100, 1, tick=1), at(90, 3, tick=2), at(120, 5, tick=3), at(115, 7, tick=4)])
    assert dated(twin.standing) == [(90, 3), (100, 4), (115, 11), (120, 16)]


def test_the_barrier_releases_final_rows_once_and_in_order() -> None:
    twin = Optimistic([SUM], bound_us=10)
    twin.push([at(1, 1, "a"), at(3, 3, "b"), at(12, 5, "a")])
    assert dated(twin.barrier()) == [(1, 1)]
    twin.push([at(2, 2, "a"), at(14, 7, "b")])
    assert dated(twin.barrier()) == [(2, 3), (3, 3)]
    assert twin.barrier() == []
    assert dated(twin.finish()) == [(12, 8), (14, 10)]
    assert twin.released == twin.standing


# Retractions that users bring.


def test_a_retraction_voids_the_last_equal_item() -> None:
    twin = Optimistic([LAG], LONG)
    twin.push([at(1, "x"), at(1, "x")])
    twin.push([at(1, "x")])
    twin.push([void(at(1, "x"))])
    assert [each.position[2:5] for each in twin.accepted] == [(0, 0, 0), (0, 0, 1)]
    twin.push([void(at(1, "x"))])
    assert [each.position[2:5] for each in twin.accepted] == [(0, 0, 0)]


def test_a_retraction_waits_for_its_item() -> None:
    twin = Optimistic([SUM], LONG)
    assert twin.push([at(1, 1), void(at(2, 2))])[0] == []
    assert twin.push([at(2, 2), at(3, 3)])[0] == []
    assert (dated(twin.standing), twin.late) == ([(1, 1), (3, 4)], [])
    twin.push([at(2, 2)])
    assert dated(twin.standing) == [(1, 1), (2, 3), (3, 6)]


@pytest.mark.parametrize(
    "other",
    [
        at(2, 3),
        at(3, 2),
        at(2, 2, "other"),
        at(2, 2, source=1),
        at(2, 2, order=1),
        at(2, 2.0),
    ],
)
def test_a_retraction_voids_nothing_that_differs(other: Event) -> None:
    twin = Optimistic([LAG], LONG)
    twin.push([other])
    assert twin.push([void(at(2, 2))]) == ([], [])
    twin.finish()
    assert [reason for _, reason in twin.late] == ["unmatched"]


def test_a_retraction_is_unmatched_when_the_punctuation_passes_it() -> None:
    twin = Optimistic([SUM], bound_us=10)
    twin.push([void(at(5, 5))])
    twin.push([at(15, 1)])
    assert twin.late == []
    twin.push([at(16, 1)])
    assert [(event.payload, event.change, reason) for event, reason in twin.late] == [(5, -1, "unmatched")]


def test_a_retraction_of_what_is_final_is_too_late() -> None:
    twin = Optimistic([SUM], bound_us=10)
    twin.push([at(5, 5), at(16, 1)])
    twin.push([void(at(5, 5))])
    assert [(event.payload, event.change, reason) for event, reason in twin.late] == [(5, -1, "too_late")]
    assert dated(twin.standing) == [(5, 5), (16, 6)]


def test_a_retraction_moves_time_like_any_event() -> None:
    twin = Optimistic([SUM], bound_us=10)
    twin.push([void(at(100, 5))])
    assert twin.punctuation_us == 89


# Functions that raise.


def test_an_item_whose_fold_raises_is_skipped_until_a_late_one_cures_it() -> None:
    twin = Optimistic([BALANCE], LONG)
    twin.push([at(1, 10), at(3, -50), at(4, 5)])
    assert dated(twin.standing) == [(1, 10), (4, 15)]
    tombstones, new = twin.push([at(2, 60)])
    assert (dated(tombstones), dated(new)) == ([(4, 15)], [(2, 70), (3, 20), (4, 25)])
    twin.finish()
    assert (twin.quarantined, twin.recomputed) == ([], [2])


def test_an_item_that_nothing_cured_is_quarantined_once_it_is_final() -> None:
    twin = Optimistic([BALANCE], bound_us=10)
    twin.push([at(1, 10), at(3, -50)])
    assert twin.quarantined == []
    twin.push([at(14, 1)])
    assert [(each.step, each.item.payload, each.reason) for each in twin.quarantined] == [
        (1, -50, "ValueError('10 and -50')")
    ]
    twin.push([at(15, 1)])
    twin.finish()
    assert len(twin.quarantined) == 1


def test_a_fold_that_raises_half_way_leaves_no_trace() -> None:
    def half(state: list[int], payload: int) -> tuple[list[int], Any]:
        state.append(payload)
        return state, (12 // each for each in (len(state), payload))

    twin = Optimistic([Fold(half, [])], LONG)
    twin.push([at(1, 3), at(2, 0), at(3, 4)])
    assert dated(twin.standing) == [(1, 12), (1, 4), (3, 6), (3, 3)]


def test_a_map_or_a_key_that_raises_skips_its_item_in_its_step() -> None:
    twin = Optimistic([Map(lambda n: [12 // n]), By(lambda n: 12 // (n - 6)), SUM], LONG)
    twin.push([at(1, 0), at(2, 2), at(3, 3)])
    twin.finish()
    assert dated(twin.standing) == [(3, 4)]
    assert [(each.step, each.item.payload) for each in twin.quarantined] == [(1, 0), (2, 6)]


# Forgetting.


def test_an_item_so_long_after_its_predecessor_starts_anew() -> None:
    items = [item(ts_us, 1) for ts_us in (0, 9, 19, 28)]
    assert said(run_sorted([SUM], items, forget_after_us=10)) == [1, 2, 1, 2]
    assert said(run_sorted([Group(3)], items, forget_after_us=10)) == [(1,), (1, 1), (1,), (1, 1)]


def test_a_late_item_can_bridge_a_silence() -> None:
    twin = Optimistic([SUM], LONG, forget_after_us=10)
    twin.push([at(0, 1), at(12, 2), at(30, 4)])
    tombstones, new = twin.push([at(5, 8)])
    assert (dated(tombstones), dated(new)) == ([(12, 2)], [(5, 9), (12, 11)])
    assert twin.recomputed == [1]


def test_an_item_that_was_skipped_breaks_a_silence_too() -> None:
    items = [item(0, 10), item(6, -50), item(12, 1)]
    assert said(run_sorted([BALANCE], items, forget_after_us=10)) == [10, 11]


# Short groups.


def test_full_gives_no_short_group() -> None:
    assert said(run_sorted([Group(3, "full")], even_or_odd(range(1, 9)))) == EVEN_ODD[4:]


def test_undo_voids_a_short_group_when_its_key_has_a_next_item() -> None:
    twin = Optimistic([Group(3, "undo")], LONG)
    assert said(twin.push([at(1, "a")])[1]) == [("a",)]
    tombstones, new = twin.push([at(3, "c")])
    assert (said(tombstones), said(new)) == ([("a",)], [("a", "c")])
    tombstones, new = twin.push([at(2, "b")])
    assert (dated(tombstones), dated(new)) == ([(3, ("a", "c"))], [(3, ("a", "b", "c"))])
    tombstones, new = twin.push([void(at(3, "c"))])
    assert (dated(tombstones), dated(new)) == ([(3, ("a", "b", "c"))], [(2, ("a", "b"))])


def test_a_short_group_to_undo_is_final_at_the_end_only() -> None:
    twin = Optimistic([Group(2, "undo")], bound_us=0)
    twin.push([at(1, "a", "x"), at(2, "b", "y"), at(3, "c", "y"), at(9, "d", "y")])
    assert said(twin.barrier()) == [("b", "c")]
    assert said(twin.push([at(9, "e", "x")])[0]) == [("a",)]
    twin.push([at(9, "f", "z")])
    assert said(twin.finish()) == [("c", "d"), ("a", "e"), ("f",)]


def test_what_starts_anew_does_not_undo_the_short_group_before() -> None:
    twin = Optimistic([Group(3, "undo")], bound_us=0, forget_after_us=10)
    twin.push([at(1, "a"), at(2, "b")])
    assert twin.push([at(12, "c")])[0] == []
    assert said(twin.barrier()) == [("a", "b")]
    assert said(twin.standing) == [("a", "b"), ("c",)]


def test_undo_is_for_the_last_step_only() -> None:
    with pytest.raises(ValueError, match="must be the last step"):
        run_sorted([Group(2, "undo"), SUM], [])


# Chains.


def posting(count: int, row: tuple[str, str]) -> tuple[int, list[tuple[str, str, int]]]:
    """A word's place in its posting list."""
    return count + 1, [(*row, count + 1)]


def updates(places: int, row: tuple[str, str, int]) -> tuple[int, list[tuple[str, int]]]:
    """The sum of a document's places."""
    return places + row[2], [(row[1], places + row[2])]


INDEX: list[Step] = [Fold(posting, 0), By(lambda row: row[1]), Fold(updates, 0)]


def test_tombstones_go_through_a_second_step_by_another_key() -> None:
    twin = Optimistic(INDEX, LONG)
    twin.push([at(1, ("a", "d1"), "a"), at(3, ("a", "d2"), "a"), at(4, ("b", "d2"), "b")])
    assert dated(twin.standing) == [(1, ("d1", 1)), (3, ("d2", 2)), (4, ("d2", 3))]
    tombstones, new = twin.push([at(2, ("a", "d1"), "a")])
    assert dated(tombstones) == [(3, ("d2", 2)), (4, ("d2", 3))]
    assert dated(new) == [(2, ("d1", 3)), (3, ("d2", 3)), (4, ("d2", 4))]
    assert (twin.given, twin.voided, twin.recomputed) == (6, 2, [1, 0, 1])
    assert [each.position for each in new] == [(2, 0, 1, 0, 0, 0, 0), (3, 0, 0, 0, 0, 0, 0), (4, 0, 0, 0, 0, 0, 0)]


def test_a_change_that_a_step_swallows_goes_no_further() -> None:
    twin = Optimistic([SUM, Map(lambda n: [n >= 10]), LAG], LONG)
    twin.push([at(1, 20), at(3, 30)])
    tombstones, new = twin.push([at(2, 5)])
    assert (tombstones, dated(new)) == ([], [(2, (True, True))])
    assert twin.recomputed == [1, 0, 0]
