"""Profile files that fit into memory, in a plain process."""

from __future__ import annotations

import pyarrow as pa

from latecomer.disorder.load import load
from latecomer.disorder.profile import Clock, Profile
from latecomer.disorder.profiler import Recorded, Unmeasured, profile_recorded
from latecomer.disorder.source import Source


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
    loaded = load(source, list(dict.fromkeys(roles.values())), as_text=True)
    values: dict[str, pa.Array] = {
        role: loaded.table[column].combine_chunks().cast(pa.string()) for role, column in roles.items()
    }
    recorded = Recorded(loaded.ts_us, loaded.arrival_us, values.get("key"), values.get("source"))
    unmeasured = Unmeasured(len(loaded.bad), loaded.cut)
    return profile_recorded(recorded, name=name, period_us=period_us, clock=clock, unmeasured=unmeasured)
