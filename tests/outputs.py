"""What outputs say of their rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from latecomer.outputs import Output, changes_of, plain_results


def said(output: Output, name: str) -> Any:
    """The one value that all rows of an output have in a column; None where they have no such column."""
    if name not in output.rows.schema.names:
        return None
    (value,) = set(output.rows.column(name).to_pylist())
    return value


def changes(output: Output) -> list[int]:
    """The change of each row, 0 where it makes none."""
    found: list[int] = changes_of(output.rows).tolist()
    return found


def plain(output: Output) -> pa.RecordBatch:
    """The rows without the columns that say how they came about."""
    return plain_results(output.rows)
