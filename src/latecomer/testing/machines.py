"""For people who write a strategy: `check_machine(settings)` tries the five invariants of `latecomer.contract`.

It runs a machine on random streams and raises an AssertionError that names the invariant, the seed and the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import batch_to_bytes
from latecomer.contract import Settings
from latecomer.events import NEVER_US, Int64s, users_columns
from latecomer.gives import Gives
from latecomer.outputs import CHANGE, Lane, Output, consolidate
from latecomer.testing.machine_runs import Measured, Run, run_machine
from latecomer.testing.streams import LAYOUT, Stream, stream_for

_UNMEASURED: Measured = {"idle_ticks": None, "merged": False, "declared": ()}


def _random_measure(seed: int, rng: np.random.Generator) -> Measured:
    """With and without silence that counts; merged or not; with a declared source that may never speak, or none."""
    idle, merged, declared = *(rng.random(2) < 0.5), np.random.default_rng([seed, 3]).random() < 0.5
    return {"idle_ticks": 20 if idle else None, "merged": bool(merged), "declared": ("0", "1") if declared else ()}


def check_machine(settings: Settings, *, runs: int = 12, seed: int = 0, events: int = 200) -> None:
    """Try the five invariants of a machine on random streams."""
    for number in range(seed, seed + runs):
        stream = stream_for(settings, number, events)
        rng = np.random.default_rng([number, 1])
        measured = _random_measure(number, rng)
        whole = run_machine(settings, stream, **measured)
        for name, check in _CHECKS.items():
            try:
                check(settings, stream, whole, rng, measured)
            except AssertionError as error:
                raise AssertionError(f"{settings} breaks invariant '{name}' at seed {number}: {error}") from None


def _cuts_between_ticks(stream: Stream, rng: np.random.Generator) -> list[int]:
    places = np.flatnonzero(np.diff(stream.tick)) + 1
    count = min(len(places), int(rng.integers(0, 9)))
    return sorted(int(place) for place in rng.choice(places, size=count, replace=False))


def _same_for_all_shards_and_cuts(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: Measured
) -> None:
    cuts = _cuts_between_ticks(stream, rng)
    cut = run_machine(settings, stream, cuts=cuts, **measured)
    _assert_equal(whole.results(), cut.results(), f"results when cut at {cuts}")
    _assert_equal(whole.late_ids(), cut.late_ids(), f"late events when cut at {cuts}")
    once = cut if _gives(settings, stream).net else whole
    _assert_equal(_as_given([once]), _as_given([cut]), f"change, pane, final or tier of results when cut at {cuts}")
    shards = int(rng.integers(2, 5))
    parts = [
        run_machine(settings, stream, cuts=cuts, member=_member(shard, shards), **measured) for shard in range(shards)
    ]
    together = consolidate(output for part in parts for batch in part.outputs for output in batch)
    _assert_equal(whole.results(), together, f"results of {shards} shards")
    _assert_equal(whole.late_ids(), sorted(i for part in parts for i in part.late_ids()), "late in shards")
    _assert_equal(_as_given([once]), _as_given(parts), f"change, pane, final or tier of results of {shards} shards")


def _gives(settings: Settings, stream: Stream) -> Gives:
    """What a strategy gives for events of a stream."""
    return settings.gives(stream.batch(np.arange(0)).rows.schema, LAYOUT)


def _as_given(runs: Sequence[Run]) -> list[str]:
    """Every row of the results with all that it says of itself, in an order of their own."""
    outputs = [output for run in runs for batch in run.outputs for output in batch if output.lane is Lane.RESULTS]
    return sorted(repr(row) for output in outputs for row in users_columns(output.rows).to_pylist())


def _member(shard: int, shards: int) -> Callable[[Int64s], Int64s]:
    return lambda key: np.flatnonzero(key % shards == shard)


def _nobody(key: Int64s) -> Int64s:
    return np.arange(0)


def _every_event_has_one_door(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: Measured
) -> None:
    late = whole.late_ids()
    assert set(late) <= set(range(len(stream))), "a late event that never came"
    assert Counter(late) <= Counter(stream.ids.tolist()), "an event is late twice"
    left = _accepted(stream, late)
    accepted = (len(left) if stream.change is None else int((stream.change[left] > 0).sum())) - whole.dropped
    assert accepted >= 0, f"{len(stream)} events, but {len(late)} late and {whole.dropped} dropped"
    results = whole.given()
    own = stream.batch(np.arange(0)).user_rows.schema.names
    how = _gives(settings, stream).how
    if results is not None and set(results.schema.names) - {CHANGE, *how} == set(own):
        ids = results.column("id").to_pylist()
        assert len(ids) == accepted == len(set(ids)), f"{accepted} events accepted, {len(ids)} given"
        assert not set(ids) & set(late), "an event is both given and late"


def _equals_the_sorted_run(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: Measured
) -> None:
    gives = _gives(settings, stream)
    if whole.dropped or gives.moves_times:  # nobody knows which events were dropped; moved ones differ from the input
        return
    if gives.in_part:
        stream, measured = _within_the_bound(settings, stream), _UNMEASURED
    run = run_machine(settings, stream, cuts=_cuts_between_ticks(stream, rng), **measured)
    accepted = _accepted(stream, run.late_ids())
    order = np.lexsort((accepted, stream.tick[accepted], stream.source[accepted], stream.ts_us[accepted]))
    chosen = accepted[order]
    ts_us = stream.ts_us[chosen]
    ids = stream.ids[chosen]
    change = None if stream.change is None else stream.change[chosen]
    in_order = Stream(ts_us, ts_us, stream.key[chosen], stream.source[chosen], ids, change)
    sorted_run = run_machine(settings, in_order)
    _assert_equal(run.results(gives.how), sorted_run.results(gives.how), "results against sorted input")


def _accepted(stream: Stream, late: Sequence[int]) -> Int64s:
    """The positions that were not late: of an event and its retraction, one is late alone only if it is the latter."""
    gone, left = Counter(late), np.ones(len(stream), dtype=np.bool_)
    for position in range(len(stream) - 1, -1, -1):  # a retraction comes after its event
        number = int(stream.ids[position])
        if gone[number]:
            gone[number] -= 1
            left[position] = False
    return np.flatnonzero(left)


def _within_the_bound(settings: Settings, stream: Stream) -> Stream:
    """The events that were not passed yet when they came: the others may count in some results and not in others.

    Without those the stream may have been passed sooner, so it is asked again until all are left.
    """
    while True:
        starts = [0, *(np.flatnonzero(np.diff(stream.tick)) + 1).tolist()]
        run = run_machine(settings, stream, cuts=starts[1:], member=_nobody)  # how time moves is enough
        machine = settings.build(ChunkStore(), LAYOUT)
        passed_us = [NEVER_US, *(machine.punctuation(timeline) for timeline in run.timelines[:-1])]
        before_us = np.repeat(passed_us, np.diff(starts, append=len(stream)))
        left = np.flatnonzero(stream.ts_us > before_us)
        if len(left) == len(stream):
            return stream
        stream = stream.take(left)


def _restored_goes_on_alike(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: Measured
) -> None:
    cuts = sorted(int(place) for place in rng.integers(0, len(stream) + 1, size=rng.integers(0, 9)))
    kept = run_machine(settings, stream, cuts=cuts, **measured)
    restored = run_machine(settings, stream, cuts=cuts, **measured, snapshot=True)
    for number, (left, right) in enumerate(zip(kept.outputs, restored.outputs, strict=True)):
        _assert_equal([_bytes(o) for o in left], [_bytes(o) for o in right], f"batch {number}, cut at {cuts}")
    _assert_equal(kept.held, restored.held, "events held")


def _bytes(output: Output) -> tuple[Lane, bytes]:
    return output.lane, batch_to_bytes(output.rows)


def _holds_what_it_promises(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: Measured
) -> None:
    cuts = _cuts_between_ticks(stream, rng)
    run = run_machine(settings, stream, cuts=cuts, **measured)
    ends = [*cuts, len(stream)]
    for number, (end, held, timeline) in enumerate(zip(ends, run.held, run.timelines, strict=True)):
        accepted = _accepted(stream.take(np.arange(end)), run.late_ids(number + 1))
        most = settings.most_held(stream.ts_us[accepted], timeline)
        assert held <= most, f"{held} events held where at most {most} are promised"


_CHECKS: dict[str, Callable[[Settings, Stream, Run, np.random.Generator, Measured], None]] = {
    "same for all shards and cuts": _same_for_all_shards_and_cuts,
    "every event has one door": _every_event_has_one_door,
    "equals the sorted run": _equals_the_sorted_run,
    "restored goes on alike": _restored_goes_on_alike,
    "holds what it promises": _holds_what_it_promises,
}


def _assert_equal(left: object, right: object, what: str) -> None:
    same = left.equals(right) if isinstance(left, pa.Table) and right is not None else left == right
    assert same, f"{what} differ:\n{left}\n{right}"
