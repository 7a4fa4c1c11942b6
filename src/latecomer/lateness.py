"""When an event is too late: against its own time, or only when the answer that it belongs to has been given.

An event without a window is too late when the punctuation has passed its time. With one, its window's answer is given
when the punctuation has passed the window's end, and until then the event counts, however late it is.
"""

from __future__ import annotations

import numpy as np

from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, Bools, Int64s, Stretches

BY_WINDOW, BY_EVENT = "window", "event"


def check_lateness(lateness: str) -> None:
    """Refuse what is no rule."""
    if lateness not in (BY_WINDOW, BY_EVENT):
        advice = "leave it out, or write 'event' to split by each event's own lateness, as the paper does"
        raise InputError(must("lateness", f"be '{BY_WINDOW}' or '{BY_EVENT}'", lateness, advice))


def too_late(ts_us: Int64s, punctuation_us: Int64s, windows: Stretches | None, lateness: str) -> Bools:
    """Which events come too late, given the last punctuation before each; windows are looked at for late ones only."""
    found = np.asarray(ts_us <= punctuation_us)
    found[found] = due_times(ts_us[found], windows, lateness) <= punctuation_us[found]
    return found


def due_times(ts_us: Int64s, windows: Stretches | None, lateness: str) -> Int64s:
    """For each event the first punctuation that makes it too late: at its own time, or at the end of its window."""
    return ts_us if windows is None or lateness == BY_EVENT else np.minimum(windows.lasts(ts_us), FOREVER_US)
