"""What is read from the text of a plan, and which events results depend on."""

from __future__ import annotations

import numpy as np
import pytest

import latecomer as lc
from latecomer.spark.function_app import Reads, _reads
from latecomer.spark.function_plan import Planned, Side, check_plan, side_of, windows_in
from tests.naive_engine import random_query


def window_line(node: str, of: str, size: int, advance: int, offset: int = 0) -> str:
    """A window as Spark shows it."""
    at = f"precisetimestampconversion({of}, TimestampType, LongType)"
    rest = f"(({at} - {offset}) % {advance})"
    start = f"({at} - CASE WHEN ({rest} < cast(0 as bigint)) THEN ({rest} + {advance}) ELSE {rest} END) - 0)"
    ends = f"precisetimestampconversion({start}, LongType, TimestampType)), end, knownnullable("
    return f"+- {node} [named_struct(start, knownnullable({ends}precisetimestampconversion(({start} + {size}), LongType"


LAST = "precisetimestampconversion((precisetimestampconversion(w#9.end, TimestampType, LongType) - 1), LongType, "


def test_windows_are_read_from_the_first_to_the_last() -> None:
    lines = [
        "Aggregate [k#1, window#16], [k#1, window#16, max(s#4) AS m#11]",
        window_line("Expand", "hour#8", 86_400_000_000, 21_600_000_000),
        "   +- Project [k#1, window#10.start AS hour#8, s#4]",
        window_line("Project", "ts#0", 7_200_000_000, 3_600_000_000, -300_000_000),
    ]
    planned = windows_in("\n".join(lines), "ts", "function f")
    assert planned is not None
    shown = [window.shown() for window in planned.windows]
    assert shown == ["2 hours, every 1 hour, offset -5 minutes", "1 day, every 6 hours"]
    assert planned.sides == (Side.START,)
    joined = windows_in("\n".join(["Join Inner", *lines]), "ts", "function f")
    assert joined is not None
    assert joined.sides == (Side.ANY,)


def test_times_of_windows_are_known_by_their_names_and_aliases() -> None:
    text = f"Project [{LAST}TimestampType) AS window_time(w)#6, window_time(w)#6 AS at#5]\n"
    text += "Project [window#3 AS w#9, x#1 AS y#2, window#3.end AS until#4]"
    sides = {name: side_of(text, name) for name in ("at#5", "w#9.start", "w#9.end", "until#4", "y#2", "v#7.start")}
    assert list(sides.values()) == [Side.LAST, Side.START, Side.END, Side.END, Side.ANY, Side.ANY]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("Project [x AS session_window#3]", "must have windows of a known size"),
        ("GlobalLimit 3", "must have no limit"),
        (":  +- Sample 0.0, 0.5", "a replay would choose other rows"),
        ("Project [rand(5) AS x#3]", r"got 'rand\(\)'"),
    ],
)
def test_plans_that_cannot_be_replayed_are_refused(plan: str, message: str) -> None:
    with pytest.raises(lc.InputError, match=message):
        check_plan(plan, "function f")


def test_names_of_users_that_look_like_calls_are_not_refused() -> None:
    check_plan("Project [my_now(a#1) AS limit#2, b#3 AS current_timestamp#4]", "function f")


@pytest.mark.parametrize("seed", range(40))
def test_results_depend_on_no_other_events_than_the_reads_say(seed: int) -> None:
    query = random_query(np.random.default_rng(seed))
    described, side = query.described(), Side.START if query.by_start else Side.LAST
    reads = _reads(Planned(described.windows, (side,) * (len(query.windows) - 1)))
    assert reads == Reads(described.before_us, described.after_us)
    touched = [(at, start) for at in range(200, 260) for _, start, _, _ in query.results([(at, 0, 1)])]
    assert all(start - reads.before_us <= at < start + reads.after_us for at, start in touched)
    size = described.windows[-1].size_us
    for other, moved in ((Side.LAST, size - 1), (Side.END, size), (Side.ANY, size // 2)):
        before_us, after_us = reads.at(other, size)
        assert all(start + moved - before_us <= at < start + moved + after_us for at, start in touched)
