"""Which source the others wait for."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from latecomer.errors import LatecomerWarning
from latecomer.gives import Tally
from latecomer.headers import HeaderBuilder
from latecomer.progress import Measure, Progress
from latecomer.spark.counters import Counters
from latecomer.spark.source_counters import sources_in
from latecomer.spark.unseen_watch import PATIENCE, UnseenWatch
from latecomer.spark.waiting import WAITING, Waiting, WaitsFor, waiting_after, waiting_at, waiting_in

Rows = list[tuple[int, str | None, int]]  # tick, source, time


def after(*batches: Rows, measure: Measure, ran: int = 0, ends: tuple[tuple[int, str], ...] = ()) -> Waiting:
    """What is waited for after micro-batches, the last with ends; a further stage must say the same but the silence."""
    progress = Progress()
    for number, rows in enumerate(batches):
        builder = HeaderBuilder(measure.idle_ticks)
        ticks, names, times = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
        builder.add(np.array(times, dtype=np.int64), np.array(ticks, dtype=np.int64), pa.array(names, pa.string()))
        builder.hear(ran)
        if ends and number + 1 == len(batches):
            tick, name = zip(*ends, strict=True)
            builder.add_ends(np.array(tick), len(ends), pa.array(name))
        progress, timeline = Progress.from_bytes(progress.to_bytes()).advance([builder.build()], measure)
    found = waiting_at(progress, measure)
    assert timeline.sources is not None
    further = waiting_after(timeline.sources)
    assert further.unseen == found.unseen
    assert (further.waits_for or ())[:2] == (found.waits_for or ())[:2]
    assert waiting_in(found.counters()) == found
    return found


def measure(idle: int | None = None, **others: Any) -> Measure:
    return Measure(idle, merged=True, per_source=True, tick_us=100, **others)


BEGIN: Rows = [(1, "a", 1_000), (1, "b", 400)]


def test_the_source_furthest_behind_is_named_with_how_far_and_how_long_it_was_silent() -> None:
    assert after(BEGIN, [(9, "a", 2_000)], measure=measure()) == Waiting(WaitsFor("b", 1_600, 800))
    assert after(BEGIN, [(9, None, 100)], measure=measure()) == Waiting(WaitsFor(None, 900, 0))
    assert after(BEGIN, [(2, "b", 1_000)], measure=measure()) == Waiting(None)


def test_those_that_idle_or_have_ended_are_not_waited_for() -> None:
    assert after(BEGIN, [(9, "a", 2_000)], measure=measure(3)) == Waiting(None)
    assert after(BEGIN, [(9, "a", 2_000)], measure=measure(), ends=((9, "b"),)) == Waiting(None)
    assert after(BEGIN, [(9, "c", 500)], measure=measure(), ends=((9, "b"),)) == Waiting(WaitsFor("c", 500, 0))


def test_a_declared_source_that_never_came_is_waited_for_until_it_idles_and_said_to_be_unseen() -> None:
    declared: dict[str, Any] = {"declared": ("a", "y", "z")}
    assert after(BEGIN, [(9, "a", 2_000)], measure=measure(**declared)) == Waiting(WaitsFor("y", None, 800), ("y", "z"))
    idle = after(BEGIN, [(5, "b", 900)], measure=measure(3, **declared))
    assert idle == Waiting(WaitsFor("b", 100, 0), ("y", "z"))
    ended = after(BEGIN, [(9, "a", 2_000)], measure=measure(**declared), ends=((9, "y"),))
    assert ended == Waiting(WaitsFor("z", None, 800), ("y", "z"))


def test_without_stamps_silence_is_time_for_which_the_query_ran() -> None:
    unstamped = measure(stamped=False)
    assert after(BEGIN, [(2, "a", 1_500)], [(3, "a", 1_600)], measure=unstamped, ran=7).waits_for == ("b", 1_200, 700)


def test_sources_say_what_is_waited_for_without_being_counted() -> None:
    found = sources_in(Waiting(WaitsFor("b", 5, 6), ("z",)).counters())
    assert found is not None
    assert (found.waits_for, found.unseen, dict(found), found.hidden) == (("b", 5, 6), ("z",), {}, 0)
    assert sources_in({WAITING: ""}) is None


@pytest.mark.parametrize(("name", "wanted"), [(WAITING, "stage = 0"), ("two.source_waiting", "stage = 1")])
def test_each_stage_says_what_it_waits_for_and_the_query_what_its_first_does(name: str, wanted: str) -> None:
    counters = Counters({"one": {WAITING: Tally.TEXT}, "two": {WAITING: Tally.TEXT}})
    assert wanted in counters._aggregate(name, counters.tallies[name])
    assert waiting_in({"two.source_waiting": Waiting(None, ("z",)).counters()[WAITING]}, "two") == (None, ("z",))


def test_a_declared_source_that_never_comes_is_warned_of_once() -> None:
    unseen = after(BEGIN, measure=measure(declared=("a", "buss"))).counters()
    known = after(BEGIN, [(9, "a", 2_000)], measure=measure(declared=("a", "b"))).counters()
    watch = UnseenWatch([None])
    assert watch.counters == ("seen", WAITING)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2 * PATIENCE):
            watch.look({"seen": 2, **known})
            watch.look({"seen": 0, **unseen})
        for _ in range(PATIENCE - 1):
            watch.look({"seen": 2, **unseen})
    with pytest.warns(LatecomerWarning, match=r"^source 'buss' is declared and in 10 micro-batches never came, so the"):
        watch.look({"seen": 2, **unseen})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.look({"seen": 2, **unseen})


def test_a_stage_of_several_is_looked_at_by_its_name() -> None:
    watch = UnseenWatch(["first", "second"])
    assert watch.counters == ("seen", f"first.{WAITING}", f"second.{WAITING}")
    unseen = after(BEGIN, measure=measure(declared=("a", "x", "y"))).counters()
    counted = {"seen": 2, f"first.{WAITING}": "", f"second.{WAITING}": unseen[WAITING]}
    for _ in range(PATIENCE - 1):
        watch.look(counted)
    with pytest.warns(LatecomerWarning, match=r"^sources 'x', 'y' are declared and .* so the others wait for them"):
        watch.look(counted)
