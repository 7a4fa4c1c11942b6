"""Windows of rows that a strategy gives as they came: computed from their time when they leave it.

A window's start and end follow from the row's time, so they need not travel: a row is sorted and kept without them. The
time travels under the user's own name for it, or, where that was not selected, in the place of the window's start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.events import TIME
from latecomer.spark.align import window_end, window_start
from latecomer.spark.declare import Declared, quoted
from latecomer.windows import WINDOW_COLUMNS, WINDOW_START, Window


@dataclass(frozen=True)
class WindowsAfter:
    """What was declared, with windows; the columns that travel instead of those, and which of them is the time."""

    declared: Declared
    travelling: tuple[str, ...]
    time: str

    def schema(self, inner: T.StructType) -> T.StructType:
        """The columns of a lane, windows included, whose rows have travelled with these."""
        time = inner[self.time].dataType
        given = [T.StructField(name, time) if name in WINDOW_COLUMNS else inner[name] for name in self._names(inner)]
        return T.StructType(given)

    def rows(self, rows: DataFrame) -> DataFrame:
        """Rows of a lane with their windows."""
        declared, names = self.declared, self._names(rows.schema)
        assert isinstance(declared.window, Window)
        kind = declared.roles.types[declared.roles.time]
        start = window_start(kind, declared.window.steps, quoted(self.time))
        rows = rows.withColumn(WINDOW_START, start)
        computed = {name: window_end(kind, declared.window.size_us) for name in names if name in WINDOW_COLUMNS[1:]}
        return rows.withColumns(computed).select(*[quoted(name) for name in names])

    def _names(self, inner: T.StructType) -> list[str]:
        return [*self.declared.columns, *(name for name in inner.names if name not in self.travelling)]


def windows_after(declared: Declared) -> tuple[Declared, WindowsAfter | None]:
    """The stream without the windows that can be computed afterwards, if it has any."""
    here = [name for name in declared.columns if name.lower() in WINDOW_COLUMNS]  # Spark knows no case
    if not here or not isinstance(declared.window, Window) or not declared.intact.issuperset(here):
        return declared, None
    columns = tuple(name for name in declared.columns if name not in here)
    time, own = declared.roles.time, declared.intact.intersection(declared.columns)
    if time in own:
        bare = replace(declared, columns=columns, intact=declared.intact - set(here))
        return bare, WindowsAfter(declared, columns, time)
    columns = (*columns, WINDOW_START)
    df = declared.df.withColumn(WINDOW_START, F.col(TIME))
    bare = replace(
        declared, df=df, columns=columns, intact=declared.intact - set(here) | {WINDOW_START}, time_as=WINDOW_START
    )
    return bare, WindowsAfter(declared, columns, WINDOW_START)
