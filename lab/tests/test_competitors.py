"""The competitors of `latecomer bench sort` against numpy's stable argsort, and the harness that drives them."""

from __future__ import annotations

import numpy as np
import pytest

from latecomer.disorder.measures import lateness
from latecomer.errors import InputError, LatecomerError
from latecomer.events import Int64s
from latecomer_lab.sorting import cells
from latecomer_lab.sorting.buffers import Events, Records, pack
from latecomer_lab.sorting.cells import Cell, Limits, Trace, run_cell
from latecomer_lab.sorting.competitors import COMPETITORS, IMPATIENCE, PRODUCT, Competitor, Kind
from latecomer_lab.sorting.data import PAYLOAD, Stream, load
from latecomer_lab.sorting.figures import count_runs
from latecomer_lab.sorting.online import PATIENCE, QUICKSORT, TIMSORT, Offline, sort_keys
from latecomer_lab.sorting.operators import keep_columns, project, select, select_columns, sort_columns, window

LATENCY_US = 40
NAMES = {each.name: each for each in COMPETITORS}
ONLINE = [each.name for each in COMPETITORS if each.online]
FORMS = [(None, 700), (None, 90), (1, 50), (10, 40), (10, 33), (100, 700)]
CASES = [
    (name, every, step)
    for name, each in NAMES.items()
    for every, step in FORMS
    if (each.offline if every is None else each.online)
]


def made(seed: int, events: int) -> Stream:
    """Times with many ties, some of them late, none too late; the first field is the order of arrival."""
    rng = np.random.default_rng(seed)
    ts_us = np.arange(events) // 3 - np.where(rng.random(events) < 0.4, rng.integers(0, 60, events), 0)
    ts_us = ts_us[lateness(ts_us) < LATENCY_US]
    payload = np.zeros(len(ts_us), dtype=PAYLOAD)
    payload["first"], payload["fourth"] = np.arange(len(ts_us)), rng.integers(0, 10_000, len(ts_us))
    return Stream("small", ts_us, payload, LATENCY_US, 0)


def outputs(name: str, every: int | None, stream: Stream, step: int) -> list[Events]:
    """What leaves with each push, and at the end."""
    sorter = NAMES[name].make(stream.latency_us, every)
    starts = range(0, len(stream.ts_us), step)
    found = [sorter.push(stream.ts_us[at : at + step], stream.payload[at : at + step]) for at in starts]
    found.append(sorter.finish())
    return [Events(left.ts_us.copy(), _not_none(left.payload).copy()) for left in found]


def _not_none(payload: Records | None) -> Records:
    assert payload is not None
    return payload


def left_by(ts_us: Int64s, pushed: int, every: int) -> list[int]:
    """The twin: positions of what has left after so many events, in order."""
    held: list[int] = []
    left: list[int] = []
    for position in range(pushed):
        held.append(position)
        if (position + 1) % every == 0:
            punctuation_us = ts_us[: position + 1].max() - LATENCY_US
            left += sorted((at for at in held if ts_us[at] <= punctuation_us), key=lambda at: (ts_us[at], at))
            held = [at for at in held if ts_us[at] > punctuation_us]
    return left


@pytest.mark.parametrize(("name", "every", "step"), CASES)
def test_competitor_gives_what_a_stable_sort_gives(name: str, every: int | None, step: int) -> None:
    stream = made(seed=step, events=700)
    found = outputs(name, every, stream, step)
    order = np.argsort(stream.ts_us, kind="stable")
    np.testing.assert_array_equal(np.concatenate([left.ts_us for left in found]), stream.ts_us[order])
    np.testing.assert_array_equal(np.concatenate([left.payload for left in found]), stream.payload[order])


@pytest.mark.parametrize("name", ONLINE)
def test_competitor_gives_what_is_due_at_once(name: str) -> None:
    stream = made(seed=1, events=300)
    given: list[int] = []
    for number, left in enumerate(outputs(name, 10, stream, 25)[:-1], 1):
        given += left.payload["first"].tolist()
        assert given == left_by(stream.ts_us, min(25 * number, len(stream.ts_us)), 10)


@pytest.mark.parametrize("which", [QUICKSORT, TIMSORT, PATIENCE])
def test_scalar_sorts_sort_whatever_comes(which: int) -> None:
    rng = np.random.default_rng(which)
    for size in [*range(70), 100, 1_000, 5_000, 20_000]:
        late = np.arange(size) - np.where(rng.random(size) < 0.3, rng.integers(0, 40, size), 0)
        blocks = np.concatenate([np.arange(size // 2), np.arange(size - size // 2) - size // 4])
        for keys in (rng.permutation(size), rng.integers(0, size // 3 + 1, size), np.arange(size)[::-1], late, blocks):
            found = keys.astype(np.int64)
            sort_keys(found, which)
            np.testing.assert_array_equal(found, np.sort(keys))


def test_times_too_far_apart_are_not_packed() -> None:
    with pytest.raises(InputError, match="packed keys must fit into 63 bits"):
        pack(np.array([0, 2**62, 5]))


def test_cell_measures_all_competitors_and_finds_them_equal() -> None:
    cell = run_cell(made(seed=2, events=900), 100, Limits(cell_seconds=5.0, rounds=1), lambda _: None)
    assert list(cell.runs) == ONLINE
    assert all(run.whole and run.done == len(made(2, 900).ts_us) for runs in cell.runs.values() for run in runs)
    assert cell.lead(PRODUCT, [Kind.PAPER]) > 0


def test_cell_finds_out_who_gives_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsorted(ts_us: Int64s) -> tuple[Int64s, Int64s]:
        return ts_us, np.arange(len(ts_us))

    cheat = Competitor("cheat", Kind.PAPER, lambda _latency_us, _every: Offline(unsorted))
    monkeypatch.setattr(cells, "competing", lambda _: [NAMES[IMPATIENCE], cheat])
    with pytest.raises(LatecomerError, match="cheat and impatience give different events on small, offline"):
        run_cell(made(seed=3, events=300), None, Limits(rounds=1), lambda _: None)


def test_lead_compares_the_prefix_that_both_have_done() -> None:
    def trace(seconds: list[float], whole: bool) -> Trace:
        events = 1_000 * np.arange(1, len(seconds) + 1)
        return Trace(events, np.array(seconds), np.zeros(len(seconds), dtype=np.int64), whole)

    cell = Cell("small", 10, {PRODUCT: [trace([1.0, 2.0, 9.0], True)], "heap": [trace([3.0, 8.0], False)]})
    assert cell.ratio(PRODUCT, "heap") == 4.0
    assert cell.rate("heap") == 250.0


def test_stream_has_no_event_that_is_too_late() -> None:
    stream = load("androidlog", 20_000, 0)
    assert stream.removed > 0
    assert lateness(stream.ts_us).max() < stream.latency_us
    assert len(stream.payload) == len(stream.ts_us) == 20_000 - stream.removed


def test_operators_do_the_same_before_and_after_the_sort() -> None:
    stream = made(seed=4, events=200)
    events = Events(stream.ts_us, stream.payload)
    assert (select(events, 5_000).payload["fourth"] < 5_000).all()
    assert len(select(events, 5_000).ts_us) == np.count_nonzero(stream.payload["fourth"] < 5_000)
    assert project(events, 2).payload.dtype.names == ("first", "second")
    columns = Events(stream.ts_us, np.stack([stream.payload[field] for field in PAYLOAD.names or ()]))
    assert keep_columns(columns, 2).payload.shape == (2, len(stream.ts_us))
    assert (select_columns(columns, 5_000).ts_us == select(events, 5_000).ts_us).all()
    assert (select_columns(columns, 5_000).payload[0] == select(events, 5_000).payload["first"]).all()
    assert (window(events, 10).ts_us == stream.ts_us // 10 * 10).all()


def test_impatience_drops_runs_that_patience_keeps() -> None:
    held = count_runs(load("cloudlog", 100_000, 0))
    assert held.patience == sorted(held.patience)
    assert held.impatience[-1] < held.patience[-1]


@pytest.mark.parametrize("events", [0, 1, 700, 300_000])
def test_columns_are_sorted_as_records_are(events: int) -> None:
    """Enough events for more blocks and runs than there is room for at first."""
    stream = made(5, events)
    columns = np.stack([stream.payload[field] for field in PAYLOAD.names or ()])
    found, order = sort_columns(Events(stream.ts_us, columns)), np.argsort(stream.ts_us, kind="stable")
    assert (found.ts_us == stream.ts_us[order]).all()
    assert (found.payload == columns[:, order]).all()
