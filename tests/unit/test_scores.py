"""Scores of a windowed query, by hand; and completeness against its definition."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.events import FOREVER_US
from latecomer.quality import MARK, ResultColumns, Stream, completeness, first_marks, score, snapped
from latecomer.quality.scores import Scores

SECOND = 1_000_000
SIZE = 10 * SECOND
COLUMNS = ResultColumns("window_start", ("key",))


def windows(*rows: tuple[Any, ...]) -> pa.Table:
    """Start in seconds, value, the mark in seconds (None: at the end), change."""
    filled = [(*row, *(None, 1)[len(row) - 2 :]) for row in rows]
    starts, values, marks, changes = zip(*filled, strict=True) if filled else ((), (), (), ())
    return pa.table(
        {
            "window_start": pa.array([start * SECOND for start in starts], pa.int64()),
            "key": pa.array([1] * len(filled), pa.int64()),
            "total": pa.array(values, pa.float64()),
            MARK: pa.array([FOREVER_US if mark is None else mark * SECOND for mark in marks], pa.int64()),
            "change": pa.array(changes, pa.int8()),
        }
    )


TRUTH = windows((0, 1.0), (10, 2.0), (20, 3.0)).drop([MARK, "change"])


def scored(*rows: tuple[Any, ...], marks: tuple[int, ...] = (15, 25, 35), late: tuple[Any, ...] = ()) -> Scores:
    """The scores of what was given; late events are (time, mark met) in seconds."""
    met = {"ts": [ts * SECOND for ts, _ in late], "key": [1] * len(late), MARK: [mark * SECOND for _, mark in late]}
    stream = Stream(np.array(marks) * SECOND, pa.table(met, schema=LATE), "ts")
    return score(windows(*rows), TRUTH, COLUMNS, SIZE, stream)


LATE = pa.schema([("ts", pa.int64()), ("key", pa.int64()), (MARK, pa.int64())])


def test_what_was_right_at_once_scores_full() -> None:
    """Every window is given once, in the micro-batch after its end."""
    found = scored((0, 1.0, 15), (10, 2.0, 25), (20, 3.0, 35))
    assert found.exact
    assert (found.right_share, found.revisions, found.completeness) == (1.0, 0.0, (1.0, 1.0, 1.0))
    assert found.first == found.right == (5.0, 5.0, 5.0, 5.0)


def test_a_wrong_answer_that_is_revised_counts_as_a_revision_and_is_right_later() -> None:
    found = scored((0, 9.0, 15), (10, 2.0, 25), (0, 9.0, 35, -1), (0, 1.0, 35), (20, 3.0, 35), late=((3, 25),))
    assert found.exact
    assert found.revisions == pytest.approx(1 / 3)
    assert found.completeness == (0.0, 0.5, 1.0)
    assert found.right == (5.0, 25.0, 25.0, 25.0)
    assert found.repaired == (10.0, 10.0, 10.0, 10.0)  # met 25, right from 35 on


def test_a_window_that_is_never_given_is_infinitely_late() -> None:
    found = scored((0, 1.0, 15), (10, 2.0, 25))
    assert not found.exact
    assert found.classes.omitted == 1
    assert found.right_share == pytest.approx(2 / 3)
    assert found.right[-1] == found.first[-1] == inf
    assert found.completeness == pytest.approx((1.0, 1.0, 2 / 3))


def test_a_result_at_the_end_of_the_stream_is_exact_but_came_never() -> None:
    found = scored((0, 1.0, 15), (10, 2.0, 25), (20, 3.0, None))
    assert found.exact
    assert found.right[-1] == inf


def test_results_where_the_sorted_run_has_none_lower_the_share() -> None:
    assert scored((0, 1.0, 15), (10, 2.0, 25), (20, 3.0, 35), (70, 1.0, 35)).right_share == 0.75


def test_sums_that_differ_by_rounding_are_equal_and_others_are_not() -> None:
    given = windows((0, 1.0 + 1e-12, 15), (10, 2.001, 25), (70, 5.0, 25))
    near = snapped(given, TRUTH, COLUMNS, {"total": np.full(3, 1e-9)})
    assert near["total"].to_pylist() == [1.0, 2.001, 5.0]


def test_nothing_given_scores_nothing() -> None:
    found = scored()
    assert (found.given, found.classes.omitted, found.completeness) == (0, 3, (0.0, 0.0, 0.0))


rows = st.tuples(
    st.integers(0, 3).map(lambda n: 10 * n),
    st.sampled_from([1.0, 2.0, 3.0]),
    st.integers(0, 6),
    st.sampled_from([1, 1, -1]),
)


@given(st.lists(rows, max_size=12), st.lists(st.integers(1, 6), max_size=4))
def test_completeness_is_what_its_definition_says(given_rows: list[Any], marks: list[int]) -> None:
    given_rows = sorted(((*row[:2], 10 * row[2] + 5, row[3]) for row in given_rows), key=lambda row: row[2])
    marks_us = np.array(sorted(10 * mark + 5 for mark in marks), dtype=np.int64) * SECOND
    found = completeness(windows(*given_rows), TRUTH, COLUMNS, SIZE, Stream(marks_us, LATE.empty_table(), "ts"))
    wanted = dict(zip((0, 10, 20), (1.0, 2.0, 3.0), strict=True))
    for mark_us, share in zip(marks_us, found, strict=True):
        standing: dict[int, float] = {}
        for start, value, mark, change in given_rows:
            if mark * SECOND <= mark_us:
                if change > 0:
                    standing[start] = value
                elif standing.get(start) == value:
                    del standing[start]
        ended = [start for start in wanted if (start + 10) * SECOND <= mark_us]
        right = sum(standing.get(start) == wanted[start] for start in ended)
        assert share == (right / len(ended) if ended else 1.0)


def test_a_micro_batch_that_does_not_move_the_mark_counts_by_itself() -> None:
    """Three micro-batches at one mark; the right answer comes in the last."""
    rows = windows((0, 9.0, 15), (0, 1.0, 15))
    stream = Stream(np.full(3, 15) * SECOND, LATE.empty_table(), "ts", cuts=np.array([1, 1, 2]))
    assert completeness(rows, TRUTH, COLUMNS, SIZE, stream).tolist() == [0.0, 0.0, 1.0]


def test_the_first_answer_counts_for_a_place_whatever_it_says() -> None:
    found = first_marks(windows((0, 7.0, 15), (0, 1.0, 25), (20, 3.0, 35)), TRUTH, COLUMNS)
    assert found.tolist() == [15 * SECOND, FOREVER_US, 35 * SECOND]
