"""The evaluation of time travel: readings by days, marks to the tick, scores by groups, delays, everything small."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.command import run as command
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.disorder.presets.meters import Meters
from latecomer.events import FOREVER_US, NEVER_US, Bools, int64_view
from latecomer.quality import MARK
from latecomer_lab.timetravel.application import HOUR_US, KEY, KNOWN, TIME
from latecomer_lab.timetravel.data_statistics import (
    REACH_HOURS,
    DataStatistics,
    holes_and_contexts,
    least_held,
    measure_readings,
)
from latecomer_lab.timetravel.experiments import Group
from latecomer_lab.timetravel.forms import DAY_US, REACH, TRIGGERS, in_order_form, plain_forms
from latecomer_lab.timetravel.machines import Follower, batch_of, is_replayed, pieces
from latecomer_lab.timetravel.memory import peak_memory, tree_megabytes
from latecomer_lab.timetravel.readings import days_arriving, days_sorted
from latecomer_lab.timetravel.scoring import Scores, delays_of, united_marks
from latecomer_lab.timetravel.targets import within

STREAM = Meters(30, 5, seed=5, faults=5.0, late=0.05)

Place = tuple[int, int]
Late = tuple[int, int, int]  # key, time, mark


@pytest.fixture(scope="module")
def statistics() -> DataStatistics:
    return measure_readings(STREAM)


def known(form: Any, readings: Any) -> pa.Table:
    follower = Follower(form, KNOWN)
    for batch in readings:
        follower.push(batch)
    return follower.finish().given


@pytest.fixture(scope="module")
def truth() -> pa.Table:
    return known(in_order_form(alerts_only=False), map(batch_of, days_sorted(STREAM)))


def test_days_put_together_are_the_whole_stream() -> None:
    for stream in (STREAM, Meters(25, 4, seed=1)):
        assert pa.concat_tables(days_arriving(stream)).combine_chunks() == stream.table().combine_chunks()
        ordered = pa.concat_tables(days_sorted(stream))
        assert ordered[TIME].equals(stream.table().sort_by(TIME)[TIME])
        assert ordered["arrival"] == ordered[TIME]


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_marks_do_not_depend_on_micro_batches(trigger: str) -> None:
    form, readings = plain_forms()[trigger], Meters(20, 4, seed=5, late=0.05).table()
    by_day, by_hour = (known(form, pieces(readings, each)) for each in (DAY_US, 2 * HOUR_US))
    order = [("meter", "ascending"), ("window_start", "ascending"), (MARK, "ascending"), ("hours", "ascending")]
    assert by_day.sort_by(order) == by_hour.sort_by(order)
    replays = by_day.filter(is_replayed(by_day))
    assert len(replays) > 100
    assert len(set(replays[MARK].to_pylist())) > 5


def test_holes_contexts_and_the_least_held_are_what_one_counts() -> None:
    random = np.random.default_rng(3)
    on_time: Bools = random.random((4, 120)) < 0.9
    on_time[3] = False
    holes = contexts = held = 0
    for row in on_time.tolist():
        spoke = [hour for hour, came in enumerate(row) if came]
        jumps = [after for before, after in pairwise(spoke) if after - before > 1]
        holes += len(jumps)
        contexts += sum(any(0 <= hour - jump < REACH_HOURS for jump in jumps) for hour in spoke)
        missing = [hour for hour in range(60, 120) if not row[hour] and spoke and spoke[0] < hour < spoke[-1]]
        near = (
            any(abs(hour - hole) < REACH_HOURS for hole in missing) or hour > spoke[-1] - REACH_HOURS for hour in spoke
        )
        held += sum(near)
    assert holes_and_contexts(on_time) == (holes, contexts)
    assert least_held(on_time, 60) == held


def test_late_readings_are_those_behind_the_mark(statistics: DataStatistics) -> None:
    readings, mark_us, late = STREAM.table(), NEVER_US, []
    ticks = int64_view(readings["arrival"].combine_chunks()) // 100_000
    ts_us = int64_view(readings[TIME].combine_chunks())
    for tick in np.unique(ticks).tolist():
        of_tick = ts_us[ticks == tick]
        late += [(each, mark_us) for each in of_tick.tolist() if each < mark_us]
        mark_us = max(mark_us, int(of_tick.max()))
    found = statistics.late_readings
    pairs = zip(int64_view(found[TIME].combine_chunks()).tolist(), found[MARK].to_pylist(), strict=True)
    assert sorted(pairs) == sorted(late)
    assert (statistics.late, statistics.readings, statistics.mark_us) == (len(late), len(readings), mark_us)


def test_scores_by_groups_of_meters_add_up(statistics: DataStatistics) -> None:
    def tell(text: str) -> None:
        pass

    whole, parts = Group(STREAM, 0, 30, statistics).run(tell), Scores()
    for first, stop in ((0, 11), (11, 30)):
        parts.add(Group(STREAM, first, stop, statistics).run(tell))
    assert parts.classes == whole.classes
    assert (parts.alerts, parts.touching_none, parts.unobserved) == (
        whole.alerts,
        whole.touching_none,
        whole.unobserved,
    )
    for name in TRIGGERS:
        classes = whole.classes[name]
        assert classes.exact == whole.alerts > 30
        assert (classes.omitted, classes.different_left, classes.spurious_left) == (0, 0, 0)
        for one, other in zip(parts.delays[name], whole.delays[name], strict=True):
            assert np.sort(one).tolist() == np.sort(other).tolist()
    assert whole.classes["eager"].duplicate > whole.classes["lazy"].duplicate
    assert whole.classes["discard"].omitted > 0
    assert whole.classes["wait"] == whole.classes["sorted"]


def _late(statistics: DataStatistics) -> list[Late]:
    rows = statistics.late_readings
    times = int64_view(rows[TIME].combine_chunks()).tolist()
    return list(zip(rows[KEY].to_pylist(), times, rows[MARK].to_pylist(), strict=True))


def slow_united(late: list[Late]) -> list[int]:
    """Wait until nothing of the key that has come and overlaps is incomplete."""
    found = []
    for key, ts_us, met_us in late:
        mark_us = max(met_us, ts_us + REACH.wait_us)
        while True:
            near = [other for other in late if other[0] == key and abs(other[1] - ts_us) < 2 * REACH.us]
            waits = [other[1] + REACH.wait_us for other in near if other[2] <= mark_us]
            if max(waits) <= mark_us:
                break
            mark_us = max(waits)
        found.append(mark_us)
    return found


def slow_delays(given: pa.Table, truth: pa.Table, late: list[Late], ready: list[int]) -> list[tuple[int, int, int]]:
    """The definitions, reading by reading and result by result."""
    names = ("too_large", "negative", "pattern", "hours", "consumption")
    wanted = {_place(row): tuple(row[name] for name in names) for row in truth.to_pylist()}
    rows: dict[Place, list[tuple[Any, int, bool]]] = {}
    for row in given.to_pylist():
        rows.setdefault(_place(row), []).append(
            (tuple(row[name] for name in names), row[MARK], row["pane"] == "revised")
        )
    found = []
    for (key, ts_us, met_us), ready_us in zip(late, ready, strict=True):
        first, exact_us, can_us = FOREVER_US, NEVER_US, ready_us
        for place in ((key, start) for start in range(ts_us // HOUR_US * HOUR_US, ts_us - REACH.us, -HOUR_US)):
            answers = [m for value, m, again in rows.get(place, []) if again or value == wanted.get(place)]
            first = min([first, *(m - met_us for m in answers if met_us <= m < FOREVER_US)])
            if place not in wanted:
                continue
            right_us = FOREVER_US
            for value, mark, _ in rows.get(place, []):
                right_us = FOREVER_US if value != wanted[place] else min(right_us, mark)
            others = [each for other, each in zip(late, ready, strict=True) if _touches(other, place)]
            exact_us, can_us = max(exact_us, right_us), max(can_us, place[1] + REACH.wait_us, *others)
        never = exact_us in (FOREVER_US, NEVER_US)
        after = [FOREVER_US if never else max(0, exact_us - since) for since in (met_us, can_us)]
        found.append((first, after[0], after[1]))
    return found


def _touches(late: Late, place: Place) -> bool:
    return late[0] == place[0] and late[1] - REACH.us < place[1] <= late[1]


def _place(row: dict[str, Any]) -> Place:
    return row["meter"], int(np.datetime64(row["window_start"].replace(tzinfo=None), "us").astype(np.int64))


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_delays_are_those_of_the_slow_twin(trigger: str, statistics: DataStatistics, truth: pa.Table) -> None:
    given = known(plain_forms()[trigger], map(batch_of, days_arriving(STREAM)))
    rows, late = statistics.late_readings, _late(statistics)
    marks = united_marks(rows)
    assert marks.tolist() == slow_united(late)
    expected = slow_delays(given, truth, late, marks.tolist())
    delays, touches = delays_of(given, truth, rows, marks)
    found = list(zip(*(each[touches].tolist() for each in delays), strict=True))
    assert found == [each for each, counts in zip(expected, touches.tolist(), strict=True) if counts]
    assert len(found) > 50
    assert len(np.unique(delays.exact_us[touches])) > 20


def test_a_share_counts_what_never_comes_and_is_rounded_down() -> None:
    assert within(np.array([0, HOUR_US, 3 * HOUR_US, FOREVER_US]), 2) == 50.0
    assert within(np.append(np.zeros(99_999, dtype=np.int64), FOREVER_US), 24) == 99.99
    assert within(np.zeros(0, dtype=np.int64), 2) == 100.0


def test_memory_is_that_of_the_process_and_those_it_started() -> None:
    with peak_memory() as peak:
        kept = np.ones(4_000_000)
    assert peak.megabytes > 30
    assert tree_megabytes(os.getpid()) > kept.nbytes / 2**20
    assert tree_megabytes(2**30) == 0.0


def test_the_evaluation_shows_and_writes_its_figures(tmp_path: Path) -> None:
    written = {name: tmp_path / f"found.{name}" for name in ("json", "html", "svg")}
    options = ["--json", str(written["json"]), "--html", str(written["html"]), "--picture", str(written["svg"])]
    sizes = ["--meters", "60", "--days", "5", "--runs", "1", "--seed", "4"]
    answer = CliRunner().invoke(app, ["reproduce", "timetravel", *sizes, *options], env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    assert max(len(line) for line in answer.stdout.splitlines() if str(tmp_path) not in line) <= 80
    report = json.loads(written["json"].read_text())
    forms = {row["form"] for row in report["results"] if row.get("figure") == "5a"}
    assert forms == {"sorted", "eager", "lazy", "discard", "wait", "fresh"}
    assert [row["form"] for row in report["results"] if row.get("table") == "3"] == [
        "sorted",
        "eager",
        "lazy",
        "discard",
        "wait",
    ]
    reached = {target["name"]: target for target in report["targets"]}
    assert len(reached) == 15
    assert set(report["targets"][0]) >= {"name", "value", "target", "met"}
    assert all(target["met"] for name, target in reached.items() if "held" not in name)
    page = written["html"].read_text()
    assert "<script" not in page
    assert page.count("<svg") == 10
    assert written["svg"].read_text().startswith("<svg")


def test_sizes_that_contradict_end_with_code_2_and_no_traceback() -> None:
    answer = command("reproduce", "timetravel", "--full", "--meters", "100")
    assert answer.returncode == 2
    assert "error: --meters must not be given with --full" in " ".join(answer.stderr.split())
    assert "Traceback" not in answer.stderr
