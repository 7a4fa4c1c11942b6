"""What becomes final with a punctuation: outputs of rows that nothing can come before any more, once, in order.

What was run in the micro-batch has its outputs; other stored rows are run again from the states before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import (
    Bools,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    order_by,
    take_rows,
    total_order,
    users_columns,
)
from latecomer.optimistic.arrangement import STATED
from latecomer.optimistic.history import Past
from latecomer.optimistic.repetition import GIVEN, check_given
from latecomer.windows.grouping import number_keys
from latecomer.windows.key_steps import NO_ROWS, KeyStep, Ran, Work, beside


class RunRows(NamedTuple):
    """Rows that were run, what came of them, which of them are meant, and whether the step adds to them."""

    rows: pa.RecordBatch
    ran: Ran
    chosen: Bools
    adds: bool

    @property
    def outputs(self) -> tuple[pa.RecordBatch, Int64s]:
        """The outputs of the rows that are meant, and the number of its row for each."""
        kept = np.flatnonzero(self.chosen[self.ran.owner])
        owner, made = self.ran.owner[kept], take_rows(self.ran.outputs, kept)
        return beside(take_rows(users_columns(self.rows), owner), made) if self.adds else made, owner

    @property
    def skipped(self) -> int:
        """How often a function of the user's raised for rows that are meant."""
        return int(self.chosen[self.ran.skipped].sum())


def run_stored(step: KeyStep, past: Past, meant: Bools, layout: Layout) -> RunRows:
    """Run stored rows of whole stretches again, of which some are meant: none that a new row came before.

    A key's first stored row has its state, and so have, as far as no new row has come before them, the rows after it.
    """
    states = step.state(users_columns(past.rows).schema, layout).names
    (key,), _, _ = number_keys([past.rows], layout.key)
    ranked = total_order(EventBatch(past.rows, layout))
    order = ranked[order_by(key[ranked])]
    rows, key = take_rows(past.rows, order), key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    before = take_rows(rows.select(states), starts)
    work = Work(users_columns(rows), np.append(starts, rows.num_rows), before, NO_ROWS, layout.time)
    ran = step.run(work, layout)
    check_given(step, rows, ran, layout)
    events = rows.select([name for name in rows.schema.names if name not in (*states, STATED, GIVEN)])
    return RunRows(events, ran, meant[order], step.adds)


def in_total_order(parts: Sequence[RunRows], layout: Layout) -> pa.RecordBatch | None:
    """The outputs of all parts, in the total order of their rows.

    Outputs of one row are equal in this order, and follow each other as they came, since the sort is stable.
    """
    found = [part.outputs for part in parts]
    if not sum(len(owner) for _, owner in found):
        return None
    events = [take_rows(part.rows, owner) for part, (_, owner) in zip(parts, found, strict=True)]
    ranked = total_order(EventBatch(concat_rows(events), layout))
    return take_rows(concat_rows([outputs for outputs, _ in found]), ranked)
