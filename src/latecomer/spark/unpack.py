"""Unpack: the blobs of one lane become typed columns again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from latecomer.codec import rows_from_bytes
from latecomer.contract import CHANGE, FINAL, PANE

UNPACK_COLUMNS = ["pane", "final", "blob"]


def unpacker(
    columns: tuple[str, ...], *, changes: bool = False
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that `mapInArrow` runs over a lane's packed rows."""

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            panes, finals, blobs = (batch.column(name) for name in UNPACK_COLUMNS)
            for pane, final, blob in zip(panes, finals, blobs, strict=True):
                rows = rows_from_bytes(blob.as_buffer(), wide=False)
                if changes:
                    rows = _with_changes(rows, pane, final)
                yield rows.select([*columns, *((CHANGE, PANE, FINAL) if changes else ())])

    return unpack


def _with_changes(rows: pa.RecordBatch, pane: pa.Scalar, final: pa.Scalar) -> pa.RecordBatch:
    count = rows.num_rows
    if CHANGE not in rows.schema.names:
        rows = rows.append_column(CHANGE, pa.repeat(pa.scalar(1, pa.int8()), count))
    return rows.append_column(PANE, pa.repeat(pane, count)).append_column(FINAL, pa.repeat(final, count))
