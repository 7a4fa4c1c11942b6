"""EventBatch and the total order."""

import numpy as np
import pyarrow as pa
import pytest

from latecomer.events import TICK, EventBatch, Layout, concat_events, int64_view, take_rows, total_order, value_rank


def batch(layout: Layout, **columns: object) -> EventBatch:
    rows = pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})
    return EventBatch(rows, layout)


def test_times_are_views_over_arrow_buffers() -> None:
    column = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))
    view = int64_view(column)
    assert view.tolist() == [1, 2, 3]
    assert view.ctypes.data == column.buffers()[1].address
    assert not view.flags.writeable


def test_order_column_breaks_ties_after_source_and_tick() -> None:
    events = batch(
        Layout("ts", source="source", order=("offset",)),
        ts=[5, 5, 5, 5, 1],
        source=["b", "a", "a", "a", "z"],
        offset=[0, 9, 2, 1, 7],
        **{TICK: [1, 1, 2, 1, 3]},
    )
    assert total_order(events).tolist() == [4, 3, 1, 2, 0]


def test_without_order_the_rows_own_values_break_ties() -> None:
    rows = {"ts": [5, 5, 5], "name": ["b", None, "a"], "tags": [["x"], ["y"], ["z"]], TICK: [1, 1, 1]}
    layout = Layout("ts")
    one = batch(layout, **rows)
    other = one.take(np.array([2, 0, 1]))
    assert one.sorted().rows.equals(other.sorted().rows)


def test_nested_columns_break_ties_too() -> None:
    rows = {"ts": [5, 5], "tags": [[2], [1]], TICK: [1, 1]}
    one = batch(Layout("ts"), **rows)
    assert one.sorted().rows.equals(one.take(np.array([1, 0])).sorted().rows)


def test_minus_zero_and_zero_are_different_rows() -> None:
    one = batch(Layout("ts"), ts=[5, 5], value=[0.0, -0.0], **{TICK: [1, 1]})
    other = one.take(np.array([1, 0]))
    signs = [np.signbit(b.sorted().rows.column("value").to_numpy()).tolist() for b in (one, other)]
    assert signs[0] == signs[1]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floats_break_ties_in_their_own_order(kind: pa.DataType) -> None:
    values = pa.array([0.5, -1.0, None, -2.0, 3.0, -0.0, 0.0, float("-inf")], kind)
    ranked = [values[int(i)].as_py() for i in np.argsort(value_rank(values))]
    assert [str(value) for value in ranked] == ["-inf", "-2.0", "-1.0", "-0.0", "0.0", "0.5", "3.0", "None"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3]),
        pa.array(["a", None, "c"]),
        pa.array([b"a", b"", None]),
        pa.array([[1], None, []]),
        pa.array([{"a": 1}, None, {"a": None}]),
        pa.array([True, None, False]),
        pa.array([1.5, float("nan"), None]),
        pa.nulls(3),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    ],
)
def test_take_moves_every_kind_of_column(column: pa.Array) -> None:
    rows = pa.RecordBatch.from_arrays([column], names=["column"])
    taken = take_rows(rows, np.array([2, 0, 1]))
    assert taken.column(0).take(pa.array([1, 2, 0])).equals(column) or column.type == pa.float64()
    assert taken.schema == rows.schema
    assert str(taken.column(0)[0]) == str(column[2])


def test_concat_skips_empty_parts_and_keeps_the_schema() -> None:
    one = batch(Layout("ts"), ts=[1], **{TICK: [1]})
    assert len(concat_events([one.slice(0, 0), one])) == 1
    assert concat_events([one.slice(0, 0)]).rows.schema == one.rows.schema


def test_user_rows_leave_carried_columns_out() -> None:
    one = batch(Layout("_lc_ts"), name=["x"], **{"_lc_ts": [1], TICK: [1]})
    assert one.user_rows.schema.names == ["name"]
