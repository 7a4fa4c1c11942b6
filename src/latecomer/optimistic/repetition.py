"""Rows of a user's function are run again from their stored states: it must give the same as before.

A 64-bit hash of the outputs of each row is stored with the row. Where the row is run again, to learn what it gave
before or what has become final, the outputs must have that hash.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.events import EventBatch, Int64s, Layout, int64_view, take_rows
from latecomer.optimistic.arrangement import Arrangement
from latecomer.windows.hashing import hash_lists
from latecomer.windows.key_steps import KeyStep, Ran, child_numbers

GIVEN = "_lc_given"  # of a stored row: a hash of its outputs
_FAILED = -1


def hash_given(ran: Ran, rows: int, layout: Layout) -> Int64s:
    """For each of the rows that were run, a hash of what it gave besides its key and time."""
    names = [name for name in ran.outputs.schema.names if name not in (*layout.key, layout.time)]
    columns = [ran.outputs.column(name) for name in names]
    child = child_numbers(ran.owner) if ran.child is None else ran.child
    hashes = hash_lists(columns, ran.owner, child, rows)
    hashes[ran.failed] = _FAILED
    return hashes


def given_by_row(arranged: Arrangement, ran: Ran) -> Int64s:
    """The hashes of all rows of an arrangement, of which those that were not run have none."""
    hashes = np.zeros(arranged.rows.num_rows, dtype=np.int64)
    places = arranged.run_places
    hashes[arranged.order[places]] = hash_given(ran, len(places), arranged.batch.layout)
    return hashes


def with_given(arranged: Arrangement, given: Int64s) -> Arrangement:
    """The same with the hash of each row beside it."""
    batch = arranged.batch
    rows = batch.rows.append_column(GIVEN, pa.array(given[arranged.stored :]))
    return replace(arranged, batch=EventBatch(rows, batch.layout))


def check_before(step: KeyStep, arranged: Arrangement, before: Ran) -> None:
    """Refuse what stored rows are now said to have given before, where it is something else."""
    layout = arranged.batch.layout
    if step.checked and arranged.past is not None:
        rows = arranged.past.rows.select([*dict.fromkeys((*layout.key, layout.time)), GIVEN])
        check_given(step, take_rows(rows, arranged.order[arranged.old_places]), before, layout)


def check_given(step: KeyStep, rows: pa.RecordBatch, ran: Ran, layout: Layout) -> None:
    """Refuse outputs of stored rows that are others than before."""
    if GIVEN not in rows.schema.names:
        return
    differs = int64_view(rows.column(GIVEN)) != hash_given(ran, rows.num_rows, layout)
    if differs.any():
        first = rows.slice(int(np.argmax(differs)), 1)
        key = ", ".join(str(first.column(name)[0]) for name in layout.key)
        got = f"others for key {key} at {first.column(layout.time)[0]}"
        advice = (
            "take out of its function what changes from run to run (clocks, random numbers, the order of a set), or, "
            "where the function is another one now, give it a new version= and another checkpoint"
        )
        rule = "give the same outputs for the same state and row"
        raise InputError(must(f"step {step.shown()}", rule, got, advice))
