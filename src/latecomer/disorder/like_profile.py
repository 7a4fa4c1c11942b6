"""A stream like the one of a profile: as many events, keys in turn, as many of them late, and as late.

What a profile does not know is made even: events lie equally apart, and each is late by itself, not in batches.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.disorder.delays import Empirical, Rows
from latecomer.disorder.measures import lateness
from latecomer.disorder.target import hit
from latecomer.durations import duration_text
from latecomer.errors import InputError, must
from latecomer.events import Int64s

MOST_EVENTS = 5_000_000
_TIMES = pa.timestamp("us", "UTC")


def like_profile(path: Path, seed: int = 0) -> pa.Table:
    """The stream as a table with the columns ts, arrival and key, in the order of arrival."""
    from latecomer.disorder.config import read_curve

    known = _read(path)
    events, keys = known["events"], known["keys"] or 1
    ts_us = np.linspace(known["first_ts_us"], known["last_ts_us"], events).astype(np.int64)
    arrival_us = ts_us
    if known["late"]:
        law = Empirical(0, known["lateness"]["max"], **read_curve(path))
        arrival_us = _delayed(law, ts_us, known["late"], seed)
    order = np.argsort(arrival_us, kind="stable")
    times = {"ts": ts_us, "arrival": arrival_us}
    columns = {name: pa.array(us[order]).view(_TIMES) for name, us in times.items()}
    return pa.table({**columns, "key": pa.array((np.arange(events) % keys)[order])})


def every_of_profile(path: Path) -> str | None:
    """How often each key reports, where the profile says it."""
    choice = json.loads(path.read_text()).get("hole_choice") or {}
    return None if choice.get("every_us") is None else duration_text(choice["every_us"])


def _delayed(law: Empirical, ts_us: Int64s, wanted: int, seed: int) -> Int64s:
    """When events come, so many of them late."""
    rows = Rows(np.arange(len(ts_us)), ts_us, None, int(ts_us[0]), int(ts_us[-1]))
    chance, delay_us = law.chosen(rows, seed), law.delays(rows, seed)

    def arrivals(share: float) -> Int64s:
        return ts_us + np.where(chance < share, delay_us, 0)

    def late(share: float) -> int:
        order = np.argsort(arrivals(share), kind="stable")
        return int(np.count_nonzero(lateness(ts_us[order])))

    return arrivals(hit(late, len(ts_us), wanted, 0).share)


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text())
        known = {name: known[name] for name in ("events", "keys", "late", "lateness", "first_ts_us", "last_ts_us")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        advice = "make one with latecomer profile --json"
        raise InputError(must("profile", "be a file of latecomer profile --json", str(path), advice)) from error
    if not 0 < known["events"] <= MOST_EVENTS:
        advice = "give the recording itself, or the profile of a part of it"
        raise InputError(must("profile", f"be of at most {MOST_EVENTS:,} events", known["events"], advice))
    return known
