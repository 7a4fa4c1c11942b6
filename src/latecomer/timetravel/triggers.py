"""When a late event makes its context be replayed, as users say it: at once, at the key's next event, or at a time.

Paper: TinTiN, section 6.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, Int64s, int64_view

EAGER, LAZY = "eager", "lazy"

Trigger = str | Callable[[pa.RecordBatch], Any]


def check_trigger(trigger: object) -> None:
    """Refuse what is no trigger."""
    if trigger not in (EAGER, LAZY) and not callable(trigger):
        rule = "be 'eager', 'lazy', or a function from late events to the times of their replay"
        raise InputError(must("trigger", rule, trigger, "e.g. trigger='lazy'"))


def times_wanted(trigger: Trigger, late: pa.RecordBatch) -> Int64s:
    """When the user's function wants late events to be replayed; FOREVER_US: not before the bound has passed."""
    if isinstance(trigger, str):
        return np.full(late.num_rows, FOREVER_US)
    wanted = _times_of(trigger(late))
    if isinstance(wanted, str) or len(wanted) != late.num_rows:
        rule, advice = "return one time per row", "e.g. pc.ceil_temporal(late['ts'], unit='day')"
        got = wanted if isinstance(wanted, str) else f"{len(wanted)} for {late.num_rows} rows"
        raise InputError(must("trigger", rule, got, advice))
    return np.minimum(int64_view(wanted.fill_null(FOREVER_US)), FOREVER_US)


def _times_of(given: Any) -> pa.Array | str:
    """Microseconds, or what was given instead of times."""
    try:
        column = given if isinstance(given, pa.Array | pa.ChunkedArray) else pa.array(given)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        return type(given).__name__
    kind = column.type
    if pa.types.is_timestamp(kind):
        whole = pc.CastOptions(target_type=pa.timestamp("us", kind.tz), allow_time_truncate=True)
        column = column.cast(options=whole).cast(pa.int64())
    elif pa.types.is_null(kind):
        column = column.cast(pa.int64())
    elif kind != pa.int64():
        return f"values of type {kind}"
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
