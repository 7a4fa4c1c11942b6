"""For people who ask for chains of steps: run the whole query without Spark, with any shards, cuts and crashes.

A question is the function that production calls too: from events to a result. `run_chain` runs it on rows in memory,
through all that runs on Spark but Spark itself; `check_chain` tries that nothing depends on shards, cuts and crashes,
and that what stands in the end is what the rows give when they come in order.

>>> import latecomer as lc
>>> def places(events):
...     counted = events.scan(lc.row_number().alias("place"))
...     return counted.by("document").scan(lc.running_sum("place")).optimistic("1 hour")
>>> words = [
...     {"at": 1, "word": "cat", "document": "one"},
...     {"at": 3, "word": "cat", "document": "two"},
...     {"at": 2, "word": "cat", "document": "one"},
... ]
>>> run = run_chain(places, words, time="at", key="word", shards=2, cuts=[2])
>>> sorted((row["change"], row["at"], row["place"]) for row in run.rows("changes", batch=1))
[(-1, 3, 2), (1, 2, 2), (1, 3, 3)]
>>> [(row["at"], row["running_sum_place"]) for row in run.standing()]
[(1, 1), (2, 3), (3, 3)]
>>> check_chain(places, words, time="at", key="word")
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Unpack

import numpy as np

from latecomer.errors import InputError, must
from latecomer.events import Int64s
from latecomer.gives import CHANGES
from latecomer.outputs import CHANGE, LATENESS, REVISION_COLUMNS
from latecomer.spark.counters import unaccounted
from latecomer.testing.chain_runs import ChainRun, Row, Spread, run_rows
from latecomer.testing.declared_rows import AnyRows, DeclaredRows, Question, Roled

_LATE, _QUARANTINE, _FINAL = "late", "quarantine", "final"
_SHOWN = 5  # rows of a difference


def run_chain(
    question: Question,
    rows: AnyRows,
    *,
    shards: int = 1,
    cuts: Sequence[int] = (),
    crashes: Sequence[int] = (),
    **declared: Unpack[Roled],
) -> ChainRun:
    """Run a question on rows in the order in which they come, to the end of the stream, without Spark.

    question: from events to a result, e.g. `lambda events: events.scan(...).by(...).scan(...).optimistic("1 hour")`.
    rows: a table of Arrow's, or dicts. cuts: the positions at which a new micro-batch begins. crashes: the numbers of
    micro-batches, from zero, that fail once and are run again. declared: time, key, source, arrival, order, change,
    progress, tick, max_ahead, earliest and latest, as in `lc.disordered`; without arrival every row comes in a tick of
    its own.
    """
    return run_rows(question, DeclaredRows.of(rows, declared), Spread(shards, tuple(cuts), tuple(crashes)))


def check_chain(question: Question, rows: AnyRows, *, runs: int = 8, seed: int = 0, **declared: Unpack[Roled]) -> None:
    """Try that a question's answers depend on nothing but the rows.

    With random shards, cuts and crashes, every lane of every micro-batch is what one shard gives, what is taken back
    was given before, every row has one door, and in the end the same stands, is final, late and in quarantine as in one
    micro-batch. What stands is also what the rows that were not late give when they come in order.
    An AssertionError names the shards, cuts and crashes, and the difference.
    """
    known = DeclaredRows.of(rows, declared)
    if (np.diff(known.stamp_us) < 0).any():
        raise InputError(must("rows", "be in the order of their arrival", "some that go back", "sort them by it"))
    whole = run_rows(question, known, Spread())
    _check_doors(whole, "in one micro-batch")
    _check_sorted(question, known, whole)
    for number in range(seed, seed + runs):
        spread = _random_spread(known, np.random.default_rng(number))
        where = f"seed {number}: shards={spread.shards}, cuts={list(spread.cuts)}, crashes={list(spread.crashes)}"
        run = run_rows(question, known, spread)
        _check_batches(run, run_rows(question, known, Spread(cuts=spread.cuts)), where)
        _check_doors(run, where)
        _check_voids(run, where)
        _check_cut(run, whole, f"{where}: other than in one micro-batch")


def _random_spread(rows: DeclaredRows, rng: np.random.Generator) -> Spread:
    """Some shards, and cuts between ticks."""
    places = np.flatnonzero(np.diff(rows.tick)) + 1
    cuts = np.sort(rng.choice(places, size=min(len(places), int(rng.integers(0, 7))), replace=False))
    crashes = np.flatnonzero(rng.random(len(cuts) + 1) < 0.3)
    return Spread(int(rng.integers(1, 5)), tuple(cuts.tolist()), tuple(crashes.tolist()))


def _check_batches(run: ChainRun, alone: ChainRun, where: str) -> None:
    """Every lane of every micro-batch is that of one shard."""
    for name in run.query.lanes.names:
        for batch in range(len(run.packed)):
            _same(run.rows(name, batch), alone.rows(name, batch), f"{where}: {name} of micro-batch {batch}")


def _check_doors(run: ChainRun, where: str) -> None:
    missing = unaccounted(run.counters)
    assert missing == 0, f"{where}: {missing} rows left through no door"


def _check_voids(run: ChainRun, where: str) -> None:
    """What is taken back was given before, as often; where changes are net, in an earlier micro-batch."""
    if CHANGES not in run.query.lanes.names:
        return
    stands: Counter[str] = Counter()
    for batch in range(len(run.packed)):
        void, new = (
            _texts((row for row in run.rows(CHANGES, batch) if row[CHANGE] == change), REVISION_COLUMNS)
            for change in (-1, 1)
        )
        never = void - (stands if run.query.stages[-1].gives.net else stands + new)
        assert not never, f"{where}: micro-batch {batch} takes back what was not given: {list(never)[:_SHOWN]}"
        stands = stands + new - void


def _check_cut(run: ChainRun, whole: ChainRun, where: str) -> None:
    """All is as in one micro-batch; where changes are net per micro-batch, what was given in between need not be."""
    net, views = run.query.stages[-1].gives.net, run.query.lanes.gives.all_views
    _check_end(run, whole, where)
    for name in (_LATE, *(() if net else views)):
        _same(run.rows(name), whole.rows(name), f"{where}: {name}", (LATENESS,))


def _check_end(run: ChainRun, other: ChainRun, where: str, lanes: Sequence[str] = (_QUARANTINE,)) -> None:
    """In the end the same stands, is in some lanes, and is final behind a barrier."""
    _same(run.standing(), other.standing(), f"{where}: what stands")
    for name in (*lanes, _FINAL):
        if name in run.query.lanes.names:
            _same(run.rows(name), other.rows(name), f"{where}: {name}")


def _check_sorted(question: Question, rows: DeclaredRows, whole: ChainRun) -> None:
    """What stands is what the rows that were not late give in order, where it can be told which were late."""
    late, gives = whole.rows(_LATE), [stage.gives for stage in whole.query.stages]
    first = whole.query.stages[0].name
    told = all(row.get("stage", first) == first for row in late) and not (late and rows.declared.roles.change)
    if not told or whole.counters["dropped"] or any(each.moves_times or each.in_part for each in gives):
        return
    ahead = whole.rows(_QUARANTINE) if rows.declared.timing.max_ahead_us is not None else []
    taken = rows.take(_not_left_out(rows, [*late, *ahead]))
    order = np.lexsort((taken.tick, taken.ts_us))
    in_order = taken.take(order)
    moved = np.append(True, (np.diff(in_order.ts_us) != 0) | (np.diff(in_order.tick) != 0))[: len(order)]
    ticks = np.cumsum(moved)
    run = run_rows(question, in_order.stamped(ticks), Spread())
    _check_end(whole, run, "other than in order", [] if ahead else [_QUARANTINE])


def _not_left_out(rows: DeclaredRows, left_out: Iterable[Row]) -> Int64s:
    """The positions of the rows but those that are late or ahead; of equal ones, the last are."""
    names = rows.rows.schema.names
    gone = Counter(repr([row[name] for name in names]) for row in left_out)
    left = []
    for position, row in reversed(list(enumerate(rows.rows.to_pylist()))):
        said = repr([row[name] for name in names])
        gone[said] -= 1
        if gone[said] < 0:
            left.append(position)
    return np.array(left[::-1], dtype=np.int64)


def _texts(rows: Iterable[Row], without: Sequence[str] = ()) -> Counter[str]:
    return Counter(repr({name: value for name, value in row.items() if name not in without}) for row in rows)


def _same(found: Iterable[Row], expected: Iterable[Row], what: str, without: Sequence[str] = ()) -> None:
    one, other = _texts(found, without), _texts(expected, without)
    more, less = list((one - other).elements()), list((other - one).elements())
    if more or less:
        text = f"{what}: {len(more)} rows too many {more[:_SHOWN]}, {len(less)} missing {less[:_SHOWN]}"
        raise AssertionError(text)
