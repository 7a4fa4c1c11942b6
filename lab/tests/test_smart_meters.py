"""The smart-meter application against its slow twin, and what time travel makes of it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from latecomer.chunks import ChunkStore
from latecomer.disorder.presets import preset
from latecomer.disorder.presets.model import TIMESTAMP
from latecomer.events import FOREVER_US
from latecomer.quality import classify
from latecomer.tiers import Ordered
from latecomer.timetravel import Period, TimeTravel
from latecomer.windows import Clocks
from latecomer_lab.timetravel.application import ALERTS, HOUR_US, HOURS, application, count_before_last
from latecomer_lab.timetravel.machines import LAYOUT, RESULTS, batch_of, follow, in_order, pieces

START_US = 1_760_000_400_000_000  # a full hour

Alert = tuple[bool, bool, int]


def slow_alerts(readings: pa.Table) -> dict[tuple[int, int], Alert]:
    """By meter and hour what is wrong, looked up hour by hour."""
    of_meter: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for row in readings.select(["ts", "reading", "fuse", "meter"]).to_pylist():
        of_meter[row["meter"]].append((_us(row["ts"]), row["reading"], row["fuse"]))
    found = {}
    for meter, rows in of_meter.items():
        marks = _marks(sorted(rows))
        for start_us in sorted({hour - back * HOUR_US for hour in marks for back in range(HOURS)}):
            day = [marks.get(start_us + place * HOUR_US, "") for place in range(HOURS)]
            negatives = [place for place, mark in enumerate(day) if mark == "negative"]
            pattern = day[: negatives[-1]].count("large") if negatives else 0
            if day[0] or pattern:
                found[meter, start_us] = (day[0] == "large", day[0] == "negative", pattern)
    return found


def _us(moment: Any) -> int:
    return int(np.datetime64(moment.replace(tzinfo=None), "us").astype(np.int64))


def _marks(rows: list[tuple[int, int, int]]) -> dict[int, str]:
    """By hour what is wrong with the consumption from it to the next."""
    marks = {}
    for hour in {ts_us // HOUR_US * HOUR_US - back * HOUR_US for ts_us, _, _ in rows for back in (0, 1)}:
        inside = [(reading, fuse) for ts_us, reading, fuse in rows if hour <= ts_us < hour + 2 * HOUR_US]
        if len(inside) == 2:
            (first, fuse), (last, _) = inside
            if last < first or last - first > fuse:
                marks[hour] = "negative" if last < first else "large"
    return marks


def fast_alerts(readings: pa.Table, *, alerts_only: bool = True) -> dict[tuple[int, int], Alert]:
    """The same by the chain, all at once."""
    rows = batch_of(in_order(readings)).user_rows
    running = application(alerts_only=alerts_only).build(ChunkStore(), LAYOUT)
    given = running.push(rows, Clocks.both(FOREVER_US)).rows
    found = [] if given is None else given.to_pylist()
    return {
        (row["meter"], _us(row["window_start"])): (row["too_large"], row["negative"], row["pattern"]) for row in found
    }


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_application_is_its_slow_twin(seed: int) -> None:
    readings = preset("meters", meters=60, days=5, seed=seed, faults=5.0).table()
    expected = slow_alerts(readings)
    assert fast_alerts(readings) == expected
    assert len(expected) > 50
    assert {alert[:2] for alert in expected.values()} == {(False, False), (True, False), (False, True)}
    assert max(pattern for _, _, pattern in expected.values()) > 1


def _readings(steps: list[int], fuse: int = 10) -> pa.Table:
    """One meter's readings, an hour apart: how much each is more than the one before."""
    ts_us = START_US + np.arange(len(steps) + 1) * HOUR_US
    columns = [pa.array(ts_us).view(TIMESTAMP)] * 2 + [
        pa.array(np.zeros(len(ts_us), dtype=np.int32)),
        pa.array(1_000 + np.cumsum([0, *steps])),
        pa.array(np.full(len(ts_us), fuse, dtype=np.int32)),
    ]
    return pa.table(columns, names=["ts", "arrival", "meter", "reading", "fuse"])


def test_an_alert_tells_its_hour_and_the_large_values_before_the_last_negative_one() -> None:
    given = fast_alerts(_readings([1, 50, 1, 70, 1, -3, 90, 1, -4]))
    hours = {(ts_us - START_US) // HOUR_US: alert for (_, ts_us), alert in given.items()}
    assert hours[1] == (True, False, 3)
    assert hours[5] == (False, True, 1)
    assert hours[6] == (True, False, 1)
    assert hours[8] == (False, True, 0)
    assert hours[-15] == (False, False, 3)  # its day just has the last negative value
    assert hours[-16] == (False, False, 2)
    assert min(hours) == -18  # its day has the first negative value as its last


def test_an_hour_on_its_fuse_is_right_and_one_without_a_second_reading_is_unknown() -> None:
    assert fast_alerts(_readings([10, 0, 10])) == {}
    holed = _readings([1, 500, 500, 1])
    assert len(fast_alerts(holed)) == 2
    assert fast_alerts(holed.take(pa.array([0, 1, 3, 4]))) == {}


def test_what_is_known_of_every_hour_has_the_alerts_in_it() -> None:
    readings = preset("meters", meters=20, days=4, seed=3, faults=5.0).table()
    hours, alerts = fast_alerts(readings, alerts_only=False), fast_alerts(readings)
    assert {place: values for place, values in hours.items() if any(values)} == alerts
    assert application().output(batch_of(readings).rows.schema, LAYOUT) == ALERTS


def test_bits_are_counted_below_the_highest() -> None:
    large, negative = np.array([0b1011, 0b1011, 0b1011, 7]), np.array([0b100, 0, 0b1_0000, 1 << (HOURS - 1)])
    assert count_before_last(large, negative).tolist() == [2, 0, 3, 3]


@pytest.mark.parametrize("trigger", ["lazy", "eager"])
def test_time_travel_leaves_nothing_out_and_nothing_wrong(trigger: str) -> None:
    readings = preset("meters", meters=40, days=6, seed=5, faults=5.0, late=0.05).table()
    chain = application()
    discarding = Ordered(("1 microsecond",), chain)
    truth = follow(discarding, pieces(in_order(readings), 24 * HOUR_US))
    lost = classify(follow(discarding, pieces(readings, 24 * HOUR_US)).given, truth.given, RESULTS)
    assert lost.omitted + lost.different_left > 20
    found = follow(TimeTravel(chain, "40 days", Period("1 hour"), trigger), pieces(readings, 24 * HOUR_US))
    classes = classify(found.given, truth.given, RESULTS)
    assert classes.exact == len(truth.given) == len(slow_alerts(readings))
    assert (classes.omitted, classes.different_left, classes.spurious_left) == (0, 0, 0)
    assert found.refused == 0
    assert found.repeated > 0
    assert 0 < found.most_held < len(readings)
