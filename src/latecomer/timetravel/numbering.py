"""Keys as small numbers, the same in all the tables of a batch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from latecomer.events import Int64s, int64_view, take_rows
from latecomer.windows.grouping import group_rows

_NOTHING: Int64s = np.zeros(0, dtype=np.int64)


class Tables:
    """Tables by name, and for each of their rows a number that stands for its key; without a key, zero."""

    def __init__(self, tables: Mapping[str, pa.RecordBatch | None], key: tuple[str, ...]) -> None:
        self._tables = {name: table for name, table in tables.items() if table is not None and table.num_rows}
        sizes = [table.num_rows for table in self._tables.values()]
        if key and sizes:
            columns = [pa.concat_arrays([table.column(name) for table in self._tables.values()]) for name in key]
            groups = group_rows(columns)
            numbers, self.count = groups.spread(np.arange(len(groups))), len(groups)
            self.keys = take_rows(pa.RecordBatch.from_arrays(columns, names=list(key)), groups.firsts)
        else:
            numbers, self.count, self.keys = np.zeros(sum(sizes), dtype=np.int64), 1, None
        self._numbers = dict(zip(self._tables, np.split(numbers, np.cumsum(sizes)[:-1]), strict=False))

    def get(self, name: str) -> pa.RecordBatch | None:
        """A table; None where there is none."""
        return self._tables.get(name)

    def key(self, name: str) -> Int64s:
        """The numbers of the keys of its rows."""
        return self._numbers.get(name, _NOTHING)

    def column(self, name: str, column: str) -> Int64s:
        """A column of whole numbers or times."""
        table = self._tables.get(name)
        return _NOTHING if table is None else int64_view(table.column(column))

    def roles(self, name: str, column: str) -> Int64s:
        """A column of small numbers."""
        table = self._tables.get(name)
        return _NOTHING if table is None else table.column(column).to_numpy().astype(np.int64)

    def with_keys(self, key: Int64s, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """Rows with these keys and columns."""
        keys = [] if self.keys is None else take_rows(self.keys, key).columns
        names = [] if self.keys is None else self.keys.schema.names
        return pa.RecordBatch.from_arrays([*keys, *columns.values()], names=[*names, *columns])
