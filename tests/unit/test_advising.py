"""Which way is recommended: by what the user wishes, and by what rehearsals show."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from latecomer import advising
from latecomer.advising import Advice, advise
from latecomer.disorder.presets.model import START_US
from latecomer.errors import InputError
from latecomer.report.advised import advice_report, show_advice


def readings(late: float = 0.05) -> pa.Table:
    """A reading a second of five meters, some of them up to half an hour late."""
    rng = np.random.default_rng(5)
    ts_us = START_US + np.arange(4_000) * 1_000_000
    late_us = np.where(rng.random(4_000) < late, rng.integers(0, 1_800_000_000, 4_000), 0)
    stamps = {"ts": ts_us, "arrival": ts_us + late_us}
    times = {name: pa.array(us).view(pa.timestamp("us", "UTC")) for name, us in stamps.items()}
    return pa.table({**times, "meter": pa.array(np.arange(4_000) % 5), "kwh": pa.array(rng.random(4_000))})


def advised(data: pa.Table | None = None, **wishes: Any) -> Advice:
    known = {"window": "1 minute", "key": "meter", "arrival": "arrival", "batches": 6}
    return advise(readings() if data is None else data, **{**known, **wishes})


def test_without_wishes_every_window_is_right_and_soon() -> None:
    found = advised()
    assert found.best.scores.exact
    assert not found.missed
    best = found.best.scores.right[1]
    assert all(best <= way.scores.right[1] for way in found.others if way.scores.exact)  # type: ignore[operator]


def test_a_sink_that_only_appends_gets_one_answer_per_window() -> None:
    found = advised(sink="append", complete=0.99)
    assert found.best.way.call.name == "tiers"
    assert len(found.best.way.call.arguments) == 1
    assert found.best.scores.revisions == 0
    assert found.best.scores.right_share >= 0.99


def test_little_memory_costs_completeness() -> None:
    much, little = advised(), advised(memory=100)
    assert little.best.held <= 100 < much.best.held
    assert little.best.scores.right_share < much.best.scores.right_share


def test_wishes_that_exclude_each_other_are_named() -> None:
    found = advised(sink="append", complete=1.0, deadline="1 second")
    assert found.missed


def test_what_is_in_use_today_is_judged_and_its_delay_tried() -> None:
    found = advised(today="df.withWatermark('ts', '2 minutes').groupBy(...)")
    assert found.today is not None
    assert found.today.way.text == "withWatermark('2 minutes')"
    assert found.today.doors.gone > 0
    assert any(way.way.text == "tiers('2 minutes')" for way in [found.best, *found.others])


def test_the_code_can_be_pasted() -> None:
    code = advised(aggregates=["max('kwh')"], max_ahead="1 hour").code
    assert code.splitlines()[0] == (
        "events = lc.disordered(df, time='ts', key='meter', arrival='arrival', max_ahead='1 hour')"
    )
    assert code.splitlines()[1].startswith("result = events.tumbling('1 minute').aggregate(lc.max('kwh')).")
    compile(code, "code", "exec")


def test_absurd_times_move_nothing_and_are_accounted_for() -> None:
    """One row a year ahead: with max_ahead it is set aside, and every row has a door."""
    table = readings()
    ahead = table.slice(100, 1)
    year = pa.array([ahead["ts"][0].value + 365 * 86_400_000_000]).view(table.schema.field("ts").type)
    with_one = pa.concat_tables([table, ahead.set_column(0, "ts", year)])
    guarded = advised(with_one, max_ahead="1 hour", today="withWatermark('2 minutes')")
    assert guarded.best.doors.quarantined == 1
    assert guarded.best.scores.exact
    doors = guarded.best.doors
    assert doors.answered + doors.late + doors.quarantined + doors.gone == with_one.num_rows
    assert guarded.today is not None
    assert guarded.today.doors.answered + guarded.today.doors.gone == with_one.num_rows


def test_a_tick_of_ones_own_is_in_the_code() -> None:
    assert "tick='1 second')" in advised(tick="1 second").code


def test_a_stream_in_order_needs_no_wait() -> None:
    found = advised(readings(late=0.0), sink="append")
    assert found.best.way.text == "tiers('100 ms')"
    assert found.best.scores.exact


def test_the_terminal_says_what_to_write_and_what_will_happen() -> None:
    found = advised(today="withWatermark('ts', '2 minutes')")
    console = Console(width=80, record=True, file=io.StringIO())
    show_advice(found, console)
    text = console.export_text()
    assert "loses" in text
    assert "100 % of the windows are right in the end, every row counted." in text
    assert found.code.splitlines()[1] in text
    report = advice_report(found, {}).to_dict()
    assert report["results"][0]["way"] == report["settings"]["recommended"] == found.best.way.text


@pytest.mark.parametrize("delay", ["0 seconds", "1 day", "36500 days"])
def test_any_watermark_may_be_in_use(delay: str) -> None:
    found = advised(today=f"df.withWatermark('ts', '{delay}', mode='update')")
    assert found.today is not None
    assert found.today.way.text == f"withWatermark('{delay}', mode='update')"


def test_finer_micro_batches_show_what_coarse_ones_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is late for a query that runs often, and in time for one that runs once an hour."""
    monkeypatch.setattr(advising, "_FIRST_BATCHES", 3)  # two rounds of candidates with fewer micro-batches
    wishes = {"deadline": "15 minutes", "today": "withWatermark('1 minute')"}
    often, seldom = advised(**wishes, trigger="5 minutes", batches=None), advised(**wishes, batches=3)
    assert often.asked.stream.batches > 6
    assert len(often.others) == 3
    assert often.today is not None
    assert seldom.today is not None
    assert often.today.doors.gone > seldom.today.doors.gone
    assert not often.missed
    assert seldom.missed == ("deadline",)


def said(found: Advice) -> str:
    console = Console(width=400, record=True, file=io.StringIO())
    show_advice(found, console)
    return console.export_text()


def test_a_micro_batch_longer_than_the_deadline_is_named() -> None:
    text = said(advised(deadline="10 seconds"))
    assert "cannot keep a deadline of 10 s: say how often your query runs" in text


def test_a_few_rows_with_strange_times_are_named() -> None:
    table = readings()
    old = table.slice(2_000, 1).set_column(0, "ts", pa.array([0]).view(table.schema.field("ts").type))
    text = said(advised(pa.concat_tables([table, old])))
    assert "1 row up to" in text
    assert "`earliest=` of lc.disordered" in text
    year = pa.array([table["ts"][0].value + 400 * 86_400_000_000]).view(table.schema.field("ts").type)
    assert "max_ahead=" in said(advised(pa.concat_tables([table, table.slice(9, 1).set_column(0, "ts", year)])))


def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    table = readings().rename_columns(["ts", "arrival", "meter", "kwh[/]"])
    assert "max_kwh[/]" in said(advised(table, aggregates=["max('kwh[/]')"]))


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"complete": 99.9}, "complete must be a share above 0, up to 1"),
        ({"memory": 0}, "memory must be at least one event"),
        ({"sink": "delta"}, "sink must be any or append"),
        ({"deadline": "soon"}, "deadline must be a duration"),
        ({"today": "groupBy('ts')"}, "today's query must have a call of withWatermark"),
        ({"today": "tiers('1 minute')"}, "today's query must have a call of withWatermark"),
        ({"today": "withWatermark('other', '1 minute')"}, "today's query must wait by the column 'ts'; got 'other'"),
        ({"arrvial": "came"}, "the stream must be declared with time, unit"),
        ({"key": "window_start"}, "name columns of the stream|be no column of times"),
        ({"key": "ts"}, "key must be no column of times"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(wishes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        advised(**wishes)


def test_a_deadline_that_no_way_keeps_costs_no_windows() -> None:
    """Where a micro-batch takes three hours, a wait of minutes hardly delays answers, and makes them right."""
    ts_us = START_US + np.arange(5_000) * 60_000_000
    late_us = np.where(np.arange(5_000) % 2 == 0, 45 * 60_000_000, 0)
    kind = pa.timestamp("us", "UTC")
    table = pa.table({"ts": pa.array(ts_us, kind), "came": pa.array(ts_us + late_us, kind)})
    asked: dict[str, Any] = {"window": "10 minutes", "arrival": "came", "sink": "append", "trigger": "3 hours"}
    found = advise(table, **asked, deadline="1 hour")
    assert found.missed == ("deadline",)
    assert found.best.scores.right_share == 1.0
    assert found.best.scores.right_share > min(way.scores.right_share for way in found.others)
