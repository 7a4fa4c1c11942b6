"""What no function of the user's could take, once it is final: rows of the user as they came, all else as items.

The rows of a later step, and what `map` is given, are no rows of the user's: they are shown as JSON.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator
from datetime import date, time
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.events import take_rows, users_columns
from latecomer.optimistic.final_rows import RunRows
from latecomer.outputs import ITEM, REASON, Lane, Output


def quarantined(part: RunRows, *, derived: bool) -> Iterator[Output]:
    """The rows that are meant and were skipped, with the reason; derived: they are those of a later step."""
    ran, kept = part.ran, np.flatnonzero(part.chosen[part.ran.failed])
    if len(kept):
        rows = take_rows(users_columns(part.rows), ran.failed[kept])
        reasons = [ran.reasons[each] for each in kept]
        yield _items(rows, reasons) if derived else Output(Lane.QUARANTINE, _with_reasons(rows, reasons))
    for lost in ran.lost:
        kept = np.flatnonzero(part.chosen[lost.owner])
        if len(kept):
            yield _items(take_rows(lost.outputs, kept), [lost.reasons[each] for each in kept])


def _items(rows: pa.RecordBatch, reasons: list[str]) -> Output:
    shown = pa.array(as_json(rows), pa.string())
    return Output(Lane.QUARANTINE, _with_reasons(pa.RecordBatch.from_arrays([shown], names=[ITEM]), reasons))


def _with_reasons(rows: pa.RecordBatch, reasons: list[str]) -> pa.RecordBatch:
    return rows.append_column(REASON, pa.array(reasons, pa.string()))


def as_json(rows: pa.RecordBatch) -> list[str]:
    """Each row as a JSON object; what JSON has no word for is written as Spark's `to_json` writes it.

    >>> as_json(pa.RecordBatch.from_pydict({"place": ["even", None], "mean": [0.5, float("nan")]}))
    ['{"place": "even", "mean": 0.5}', '{"place": null, "mean": "NaN"}']
    """
    return [json.dumps(_plain(row), ensure_ascii=False) for row in rows.to_pylist()]


def _plain(value: Any) -> Any:
    """A value of JSON for a value of Arrow's."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, date | time):  # times with a date are dates
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    return value if isinstance(value, str | int | float | None) else str(value)
