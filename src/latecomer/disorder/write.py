"""Where made streams are written: one folder per experiment, Parquet or CSV, rows in order of arrival."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from latecomer.disorder.load import Loaded
from latecomer.disorder.source import Source
from latecomer.errors import InputError, must
from latecomer.events import Int64s

TIMESTAMP = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Destination:
    """The folder, the format, and the names of the columns that are added."""

    folder: Path
    format: Literal["parquet", "csv"] = "parquet"
    separator: str = ","
    arrival: str = "arrival"
    event_time: str = "event_time"

    def open(self, source: Source) -> None:
        """Make the folder, which must be new; the added columns must not be in the source."""
        taken = {name.lower() for name in source.names}
        for name in self.added(source):
            if name.lower() in taken:
                advice = "give another name for the added column"
                raise InputError(must("the source", f"not have a column {name!r}", list(source.names), advice))
        if self.format == "csv" and source.schema is not None:
            for column in source.schema:
                if pa.types.is_nested(column.type):
                    advice = "write Parquet, or leave the column out"
                    raise InputError(must(f"column {column.name!r}", "be flat for CSV", str(column.type), advice))
        self.make_folder()

    def make_folder(self) -> None:
        """The folder must be new or empty."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise InputError(must("--out", "name a new or an empty folder", str(self.folder), "name another"))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                must("--out", "be a folder that can be made", str(self.folder), str(error.strerror))
            ) from None

    def added(self, source: Source) -> tuple[str, ...]:
        """The columns that are added: arrival, and event time as a timestamp where the time field is none."""
        return (self.arrival,) if keeps_time(source) else (self.event_time, self.arrival)

    def write_quarantine(self, rows: pa.Table) -> None:
        """The bad rows, if there are any."""
        if len(rows):
            pq.write_table(rows, self.folder / "quarantine.parquet", compression="zstd")

    def write_report(self, report: dict[str, Any]) -> None:
        """What was asked and what came out."""
        (self.folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")


def keeps_time(source: Source) -> bool:
    """Whether the time field can be used as it is: a timestamp, or whole microseconds."""
    if source.schema is None:
        return False
    kind = source.schema.field(source.time).type
    return bool(pa.types.is_timestamp(kind) or (kind == pa.int64() and source.unit == "us"))


def write_rows(
    loaded: Loaded, arrival_us: Int64s, order: Int64s, destination: Destination, name: str, source: Source
) -> None:
    """One experiment's rows, in order of arrival."""
    added = {destination.event_time: loaded.ts_us, destination.arrival: arrival_us}
    kind = TIMESTAMP if destination.format == "parquet" else pa.int64()
    table = loaded.table
    for column in destination.added(source):
        table = table.append_column(column, pa.array(added[column]).cast(kind))
    write_table(table.take(pa.array(order)), destination, name)


def as_text(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Values as CSV shows them, the same whoever writes it; instants as whole microseconds."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    return column if pa.types.is_integer(column.type) else column.cast(pa.string())


def write_table(table: pa.Table, destination: Destination, name: str) -> None:
    """Rows as they are, in a folder of their own."""
    folder = destination.folder / name
    folder.mkdir()
    if destination.format == "parquet":
        pq.write_table(table, folder / "part-00000.parquet", compression="zstd")
    else:
        table = pa.table(
            {name: as_text(column) for name, column in zip(table.column_names, table.columns, strict=True)}
        )
        pacsv.write_csv(table, folder / "part-00000.csv", pacsv.WriteOptions(delimiter=destination.separator))
