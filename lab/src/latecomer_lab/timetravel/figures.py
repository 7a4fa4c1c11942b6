"""Tables 2 and 3 and Figure 5 as rows for the report, the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from latecomer.events import FOREVER_US, Int64s, int64_view
from latecomer.quality import MARK, SHARES, percentiles
from latecomer_lab.timetravel.application import HOUR_US, TIME
from latecomer_lab.timetravel.forms import BOUND_US, DISCARD, SORTED, WAIT
from latecomer_lab.timetravel.paper import WAITING_HOLDS
from latecomer_lab.timetravel.scoring import Held

if TYPE_CHECKING:
    from latecomer_lab.timetravel.experiments import Measured

NEVER = "never"
FIRST, EXACT, AFTER = "first answer", "exact", "exact once ready"
LATENESS, LEAST = "lateness", "least by Lemma 5"
SHARE_NAMES = tuple(f"p{share}_h" for share in SHARES)

Row = dict[str, Any]


def rows_of(found: Measured) -> list[Row]:
    """All rows of one number of meters."""
    parts = (table_2(found), *table_3(found), *speeds(found), *latencies(found), *responses(found), *held(found))
    return [{"meters": found.meters, **row} for row in parts]


def table_2(found: Measured) -> Row:
    """Statistics of the readings."""
    data = found.statistics
    counts = {"readings": data.readings, "late": data.late, "holes": data.holes, "contexts": data.contexts}
    left_out = {"unobserved": found.scores.unobserved, "touching_none": found.scores.touching_none}
    return {"table": "2", **counts, **left_out, "run_s": round(found.seconds, 1), "peak_mb": round(found.peak_mb)}


def table_3(found: Measured) -> Iterator[Row]:
    """Classes of the alerts given, and how many readings were refused as too late or in no hole."""
    scores = found.scores
    for form, classes in scores.classes.items():
        yield {"table": "3", "form": form, **classes._asdict(), "refused": scores.refused[form]}


def speeds(found: Measured) -> Iterator[Row]:
    """Figures 5a and 5b: readings a second, and milliseconds of a micro-batch of an hour; means of all runs."""
    base_s = found.timed[DISCARD].latency_s
    for form, timed in found.timed.items():
        spread = f"{min(timed.rates):,.0f} to {max(timed.rates):,.0f}"
        means = {"readings_per_s": round(timed.rate), "day_s": round(timed.day_s, 3)}
        yield {"figure": "5a", "form": form, **means, "spread": spread}
    for form, timed in found.timed.items():
        slowest_ms = round(1_000 * max(timed.latencies_s), 1)
        means = {
            "batch_ms": round(1_000 * timed.latency_s, 1),
            "added_ms": round(1_000 * (timed.latency_s - base_s), 1),
        }
        yield {"figure": "5b", "form": form, **means, "slowest_run_ms": slowest_ms}


def latencies(found: Measured) -> Iterator[Row]:
    """Figure 5c: from an alert's time to the mark at which it was right; and how late the late readings are."""
    for form, latencies_us in found.scores.latencies_us.items():
        yield {"figure": "5c", "form": form, "count": len(latencies_us), **_hours(latencies_us)}
    lateness_us = _lateness(found)
    yield {"figure": "5c", "form": LATENESS, "count": len(lateness_us), **_hours(lateness_us)}


def responses(found: Measured) -> Iterator[Row]:
    """Figure 5d: from a late reading's arrival to its answers."""
    for form, delays in found.scores.delays.items():
        for what, delays_us in zip((FIRST, EXACT, AFTER), delays, strict=True):
            never = int(np.count_nonzero(delays_us == FOREVER_US))
            yield {
                "figure": "5d",
                "form": form,
                "to": what,
                "count": len(delays_us),
                "never": never,
                **_hours(delays_us),
            }
    waits_us = BOUND_US - _lateness(found)
    yield {"figure": "5d", "form": WAIT, "to": EXACT, "count": len(waits_us), "never": 0, **_hours(waits_us)}


def held(found: Measured) -> Iterator[Row]:
    """Figure 5e: readings held, the most and at the end; wait's as the paper counts them; the least there is."""
    counts = {form: count for form, count in found.scores.held.items() if form not in (SORTED, DISCARD, WAIT)}
    waiting, least = WAITING_HOLDS * found.meters, found.statistics.least_held
    counts |= {WAIT: Held(waiting, waiting), LEAST: Held(least, least)}
    for form, (most, at_end) in counts.items():
        less = {"less": round(waiting / most, 1), "less_at_end": round(waiting / at_end, 1)}
        per_meter = {"per_meter": round(most / found.meters, 1), "at_end_per_meter": round(at_end / found.meters, 1)}
        yield {"figure": "5e", "form": form, "held": most, "at_end": at_end, **per_meter, **less}


def _lateness(found: Measured) -> Int64s:
    late = found.statistics.late_readings
    met_us, ts_us = (int64_view(late[name].combine_chunks()) for name in (MARK, TIME))
    return met_us - ts_us


def _hours(values_us: Int64s) -> Row:
    """Percentiles in hours."""
    values = percentiles(values_us, HOUR_US)
    return {name: NEVER if value == inf else value for name, value in zip(SHARE_NAMES, values, strict=True)}
