"""What a machine gives: rows for a lane. Whether and how results change is told by ordinary columns of the rows.

`change` is +1 (a result) or -1 (that earlier result is void); null where a row is no change, but repeats what was given
before: a tier's answer that is the one of the tier before it. `pane` says when a result was given, `final` that it will
not change, `tier` of which tier it is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import pyarrow as pa

from latecomer.errors import must
from latecomer.events import FOREVER_US, Bools, EventBatch, Int8s, Int64s, users_columns
from latecomer.progress import Timeline

_ROW = "_lc_row"
LATENESS, REASON = "lateness_us", "reason"
ITEM = "item_json"  # in quarantine, what is no row of the user's
CHANGE, PANE, FINAL, TIER = "change", "pane", "final", "tier"
TOO_LATE, AFTER_END = "too_late", "after_end"


class Lane(IntEnum):
    """Where an output row goes."""

    RESULTS = 0
    LATE = 1
    QUARANTINE = 2


class Pane(StrEnum):
    """When a result was given, against the time it speaks of."""

    EARLY = "early"
    ON_TIME = "on_time"
    REVISED = "revised"


_PANES = pa.array([str(pane) for pane in Pane])
_PANE_CODES = {pane: code for code, pane in enumerate(Pane)}

# The columns of results that may change, in this order after the others.
REVISION_FIELDS = (
    pa.field(TIER, pa.int32()),
    pa.field(CHANGE, pa.int8()),
    pa.field(PANE, pa.string()),
    pa.field(FINAL, pa.bool_()),
)
REVISION_COLUMNS = tuple(field.name for field in REVISION_FIELDS)


@dataclass(frozen=True, slots=True)
class Output:
    """Rows for one lane."""

    lane: Lane
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def given(self) -> int:
        """How many rows are results, and not the voiding of one."""
        if CHANGE not in self.rows.schema.names:
            return len(self)
        return len(self) - int((changes_of(self.rows) < 0).sum())


def changes_of(rows: pa.RecordBatch) -> Int8s:
    """The change that each row of results makes: +1, -1, or 0 where it makes none."""
    if CHANGE not in rows.schema.names:
        return np.ones(rows.num_rows, dtype=np.int8)
    changes: Int8s = rows.column(CHANGE).fill_null(0).to_numpy()
    return changes


def plain_results(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Results without the columns that say how they change, and without what is carried for us."""
    own = users_columns(rows)
    return own.select([name for name in own.schema.names if name not in REVISION_COLUMNS])


def results_of(batch: EventBatch) -> Output:
    """Events as results, unchanged."""
    return Output(Lane.RESULTS, batch.rows)


def revisable(
    rows: pa.RecordBatch,
    change: pa.Array | int | None,
    pane: Pane | Int8s,
    final: bool | pa.Array,
    tier: int | None = None,
) -> Output:
    """Results that may change.

    change: of each row, or of all; None where they repeat what was given. pane: of all, or its code for each. final:
    of each row, or of all.
    """
    size = rows.num_rows
    codes = np.full(size, _PANE_CODES[pane], dtype=np.int8) if isinstance(pane, Pane) else pane
    columns = {
        TIER: None if tier is None else pa.array(np.full(size, tier, dtype=np.int32)),
        CHANGE: _changes(change, size),
        PANE: pa.DictionaryArray.from_arrays(pa.array(codes), _PANES),
        FINAL: final if isinstance(final, pa.Array) else pa.repeat(pa.scalar(final), size),
    }
    for name, column in columns.items():
        if column is not None:
            rows = rows.append_column(name, column)
    return Output(Lane.RESULTS, rows)


def _changes(change: pa.Array | int | None, size: int) -> pa.Array:
    if change is None:
        return pa.nulls(size, pa.int8())
    return pa.array(np.full(size, change, dtype=np.int8)) if isinstance(change, int) else change


def pane_code(pane: Pane) -> int:
    """The code of a pane."""
    return _PANE_CODES[pane]


def pane_codes(revised: Bools) -> Int8s:
    """For each row the code of the pane `revised`, or else of `on_time`."""
    codes: Int8s = np.where(revised, _PANE_CODES[Pane.REVISED], _PANE_CODES[Pane.ON_TIME]).astype(np.int8)
    return codes


def late(batch: EventBatch, lateness_us: Int64s, reason: str) -> Output:
    """Events that came too late, with how late and why."""
    rows = batch.user_rows
    reasons = pa.repeat(pa.scalar(reason, pa.string()), len(batch))
    rows = rows.append_column(LATENESS, pa.array(lateness_us)).append_column(REASON, reasons)
    return Output(Lane.LATE, rows)


def refused(batch: EventBatch, too_late: Bools, punctuation_us: Int64s, timeline: Timeline) -> Iterator[Output]:
    """The events that came too late, for the lane `late`: after the end of the stream, or just later than it waits."""
    ended = punctuation_us == FOREVER_US
    for chosen, reason in ((too_late & ~ended, TOO_LATE), (too_late & ended, AFTER_END)):
        if chosen.any():
            aside = batch.filter(chosen).sorted()
            lateness_us = np.maximum(timeline.mark_before(aside.tick) - aside.ts_us, 0)
            yield late(aside, lateness_us, reason)


def consolidate(outputs: Iterable[Output], how: Sequence[str] = ()) -> pa.Table | None:
    """Sum the changes of the lane `results`: the rows that stand in the end, in a canonical order.

    how: columns that say how a row was given (`Gives.how`), which are left out.
    """
    pieces = [_with_change(output, how) for output in outputs if output.lane is Lane.RESULTS and len(output)]
    if not pieces:
        return None
    table = pa.Table.from_batches(pieces)
    rows = table.drop_columns([CHANGE])
    compared = pa.table([_comparable(column) for column in rows.columns], names=rows.column_names)
    numbered = compared.append_column(CHANGE, table.column(CHANGE)).append_column(_ROW, pa.array(range(len(rows))))
    summed = numbered.group_by(rows.column_names).aggregate([(CHANGE, "sum"), (_ROW, "min")])
    summed = summed.sort_by([(name, "ascending") for name in rows.column_names])
    counts = summed.column(f"{CHANGE}_sum").to_numpy()
    if (counts < 0).any():
        raise ValueError(must("changes", "void only results that were given", counts.min(), "report it"))
    return rows.take(pa.array(np.repeat(summed.column(f"{_ROW}_min").to_numpy(), counts)))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values that Arrow can group and sort by."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([pa.array([repr(value) for value in column.to_pylist()])])


def _with_change(output: Output, how: Sequence[str]) -> pa.RecordBatch:
    """What results say, without when and how they were given, and the change that each makes."""
    rows = plain_results(output.rows)
    said = rows.select([name for name in rows.schema.names if name not in how])
    return said.append_column(CHANGE, pa.array(changes_of(output.rows)))
