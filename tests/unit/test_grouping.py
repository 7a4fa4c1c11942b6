"""Rows grouped by values of any type, and tables of partial results merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import Stretches
from latecomer.windows.aggregates import Count, Sum
from latecomer.windows.collected import TopK
from latecomer.windows.folding import FRESH, SLICE, Folding
from latecomer.windows.grouping import Groups, group_rows
from tests.unit.values import NAN, NESTED, VALUES, column, ints, letters, most_frequent, nested, same

KEYS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **VALUES,
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
    pa.large_string(): letters,
    NESTED: nested,
}


@settings(max_examples=150)
@given(kinds=st.lists(st.sampled_from(list(KEYS)), min_size=1, max_size=4), size=st.integers(0, 30), data=st.data())
def test_groups_are_those_of_a_dict(kinds: list[pa.DataType], size: int, data: st.DataObject) -> None:
    few = [data.draw(st.lists(KEYS[kind], min_size=1, max_size=4)) for kind in kinds]
    optional = [values + [None] * data.draw(st.integers(0, 1)) for values in few]
    columns = [data.draw(st.lists(st.sampled_from(values), min_size=size, max_size=size)) for values in optional]
    wanted: dict[str, list[int]] = {}
    for position, row in enumerate(zip(*columns, strict=True)):
        key = repr([value or 0.0 if isinstance(value, float) else value for value in row])
        wanted.setdefault(key, []).append(position)
    groups = group_rows([column(values, kind) for values, kind in zip(columns, kinds, strict=True)])
    found = [part.tolist() for part in np.split(groups.order, groups.starts[1:])] if size else []
    assert sorted(found) == sorted(wanted.values())
    assert groups.sizes.tolist() == [len(part) for part in found]
    assert [groups.firsts.tolist(), groups.lasts.tolist()] == [[part[place] for part in found] for place in (0, -1)]


@given(first=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3), min_size=1, max_size=30), data=st.data())
def test_groups_are_in_the_order_of_whole_numbers(first: list[int], data: st.DataObject) -> None:
    second = data.draw(st.lists(letters, min_size=len(first), max_size=len(first)))
    groups: Groups = group_rows([ints(first), pa.array(second)])
    ordered = ints(first)[groups.firsts].tolist()
    assert ordered == sorted(ordered)


def test_zeros_and_nans_inside_keys_are_one_key() -> None:
    kind = pa.struct([("a", pa.float64()), ("b", pa.list_(pa.float32()))])
    keys = [{"a": 0.0, "b": [-0.0]}, {"a": -0.0, "b": [0.0]}, {"a": NAN, "b": [-NAN]}, {"a": -NAN, "b": [NAN]}, None]
    groups = group_rows([pa.array(keys, kind)])
    assert sorted(part.tolist() for part in np.split(groups.order, groups.starts[1:])) == [[0, 1], [2, 3], [4]]
    rows = pa.RecordBatch.from_arrays([pa.array(ints([1, 2])), pa.array(keys[1::-1], kind)], names=["ts", "key"])
    table = Folding(("key",), (Count(),)).partials(rows, "ts", Stretches(10))[0][1]
    assert str(table.column("key").to_pylist()) == "[{'a': 0.0, 'b': [0.0]}]"
    flat = pa.RecordBatch.from_pydict({"ts": ints([1, 2]), "key": [-0.0, 0.0]})
    assert (
        str(Folding(("key",), (Count(),)).partials(flat, "ts", Stretches(10))[0][1].column("key").to_pylist())
        == "[0.0]"
    )


FOLDING = Folding(("key",), (Sum("value"), TopK("value", 2)))
TEXT, FLOATS = ["a", "b", None], [NAN, -0.0, 1.5]


def partial_results(keys: Sequence[Any], start_us: int, fresh: Sequence[int] = (1, 1, 1)) -> pa.RecordBatch:
    """A table of partial results: a row per key, with the values 1, 2 and 4."""
    rows = {"ts": ints([start_us] * 3), "key": pa.array(keys), "value": ints([1, 2, 4])}
    table = FOLDING.partials(pa.RecordBatch.from_pydict(rows), "ts", Stretches(10))[0][1]
    place, marks = table.schema.get_field_index(FRESH), pa.array(fresh, pa.int8())
    return table.set_column(place, table.schema.field(place), marks)


@pytest.mark.parametrize(
    ("keys", "others", "fresh", "fast"),
    [
        (TEXT, TEXT, (1, 1, 1), True),
        (TEXT, TEXT, (1, 0, 1), False),
        (TEXT, ["a", "c", "b"], (1, 1, 1), False),
        (TEXT, ["b", "a", None], (1, 1, 1), False),
        (FLOATS, [-NAN, 0.0, 1.5], (1, 1, 1), None),
        (FLOATS, [0.0, NAN, 1.5], (1, 1, 1), None),
    ],
)
def test_tables_with_the_same_keys_row_by_row_merge_as_any_others(
    keys: list[Any], others: list[Any], fresh: tuple[int, ...], fast: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those are merged without looking for equal keys; NaN may go either way."""
    tables = [partial_results(keys, 5), partial_results(others, 7, fresh)]
    looked: list[object] = []
    find = Folding.groups

    def counted(self: Folding, table: pa.RecordBatch, by: tuple[str, ...]) -> Groups:
        looked.append(by)
        return find(self, table, by)

    monkeypatch.setattr(Folding, "groups", counted)
    merged = FOLDING.merge_two(*tables)
    assert fast is None or fast == (not looked)
    wanted: dict[str, list[int]] = {}
    for table in tables:
        for key, mark, value in zip(*_key_columns(table), FOLDING.results(table)[0].to_pylist(), strict=True):
            wanted.setdefault(repr((same(key), mark)), []).append(value)
    sums, tops = (column.to_pylist() for column in FOLDING.results(merged))
    places = [repr((same(key), mark)) for key, mark in zip(*_key_columns(merged), strict=True)]
    assert dict(zip(places, sums, strict=True)) == {place: sum(values) for place, values in wanted.items()}
    assert dict(zip(places, tops, strict=True)) == {place: most_frequent(values) for place, values in wanted.items()}
    assert set(merged.column(SLICE).to_pylist()) == {0}


def _key_columns(table: pa.RecordBatch) -> tuple[list[Any], list[int]]:
    return table.column("key").to_pylist(), table.column(FRESH).to_pylist()
