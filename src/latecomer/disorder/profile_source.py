"""Profile files that fit into memory, in a plain process."""

from __future__ import annotations

import pyarrow as pa

from latecomer.disorder.load import load
from latecomer.disorder.profile import Clock, Profile
from latecomer.disorder.profiler import Recorded, Unmeasured, profile_recorded
from latecomer.disorder.source import Source
from latecomer.events import Int64s, int64_view


def profile_source(
    source: Source,
    *,
    key: str | None = None,
    by_source: str | None = None,
    period_us: int | None = None,
    clock: Clock,
    name: str,
) -> Profile:
    """Measure the disorder of files; bad rows are an error unless the source quarantines them."""
    roles = {role: column for role, column in (("key", key), ("source", by_source)) if column is not None}
    others = [] if key is None else _may_count(source, {source.time, source.arrival, *roles.values()})
    loaded = load(source, [*dict.fromkeys(roles.values()), *others], as_text=True)
    values: dict[str, pa.Array] = {
        role: loaded.table[column].combine_chunks().cast(pa.string()) for role, column in roles.items()
    }
    recorded = Recorded(loaded.ts_us, loaded.arrival_us, values.get("key"), values.get("source"))
    unmeasured = Unmeasured(len(loaded.bad), loaded.cut)
    numbers = {column: _whole_numbers(loaded.table[column]) for column in others}
    found = {column: values for column, values in numbers.items() if values is not None}
    return profile_recorded(recorded, name=name, period_us=period_us, clock=clock, unmeasured=unmeasured, numbers=found)


def _may_count(source: Source, known: set[str | None]) -> list[str]:
    """The columns that may count the events of a key."""
    names = [name for name in source.names if name not in known]
    return [name for name in names if source.schema is None or pa.types.is_integer(source.schema.field(name).type)]


def _whole_numbers(column: pa.ChunkedArray) -> Int64s | None:
    """The values of a column that has a whole number in every row."""
    try:
        values = column.combine_chunks().cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return None if values.null_count else int64_view(values)
