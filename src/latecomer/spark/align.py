"""Windows before the sort: the start and the end of an event's window, computed by Spark from its time.

A window operator only sets times back to the start of their stretch, so it may run before the sort; rows of one
stretch then need no order among them. Windows begin at the offset and every `advance` from it, since 1970 (UTC; for
timestamp_ntz the wall clock) and are `size` long. A hopping window copies no rows: an event lies in the last window
that has begun and in those that began one advance earlier each, as long as they last.

Paper: Impatience (Chandramouli, Goldstein, Li), section IV-A2.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from latecomer.events import TIME, Stretches
from latecomer.windows import WINDOW_START


def window_end(kind: str, size_us: int) -> Column:
    """The start of the window and its size; null where that leaves the type's range."""
    if kind == "timestamp_ntz":
        return F.expr(f"try_add({WINDOW_START}, {size_us}L * INTERVAL '0.000001' SECOND)")
    start_us = WINDOW_START if kind == "bigint" else f"unix_micros({WINDOW_START})"
    end_us = f"try_add({start_us}, {size_us}L)"
    return F.expr(end_us if kind == "bigint" else f"timestamp_micros({end_us})")


def window_start(kind: str, steps: Stretches, time: str = TIME) -> Column:
    """A time, the carried one, set back to the start of the last window; null where that leaves the type's range.

    Whole microseconds throughout, no session time zone, and rounded down before 1970 too.
    """
    since_1970_us = _SINCE_1970_US[kind].format(time=time)
    # The two remainders are each below the advance, so that no offset makes a sum that leaves the range.
    beyond_us = f"pmod(pmod({since_1970_us}, {steps.length_us}L) - {steps.offset_us}L, {steps.length_us}L)"
    if kind == "timestamp_ntz":
        return F.expr(f"try_subtract({time}, {beyond_us} * INTERVAL '0.000001' SECOND)")
    start_us = f"try_subtract({since_1970_us}, {beyond_us})"
    return F.expr(start_us if kind == "bigint" else f"timestamp_micros({start_us})")


# Spark's unix_micros would read a timestamp_ntz in the session's time zone.
_SINCE_1970_US = {
    "bigint": "{time}",
    "timestamp": "unix_micros({time})",
    "timestamp_ntz": "CAST(1000000 * CAST(CAST({time} - TIMESTAMP_NTZ'1970-01-01' AS INTERVAL SECOND)"
    " AS DECIMAL(20, 6)) AS BIGINT)",
}
