"""Packed rows: what hold gives to unpack, pieces of a lane's output as blobs, and counters.

A packed row is a piece of a lane's output of a stage, or, in the lane `COUNTS_LANE`, the counters of one shard and
stage for one micro-batch. `views` has a bit for every view of the results that has rows in the output it is a piece
of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from latecomer.codec import cuts, rows_to_bytes
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, users_columns
from latecomer.gives import Tally, View
from latecomer.outputs import Lane, Output
from latecomer.spark.frames import BLOB_BYTES, FRAME_SCHEMA, Frame

GROUP_BYTES = 8_000_000
COUNTS_LANE = -1
LAST_BIT = 62  # further views share it

LANES = {"results": Lane.RESULTS, "late": Lane.LATE, "quarantine": Lane.QUARANTINE}
QUARANTINED_ITEMS = "quarantined_items"  # of stages that have such (`Gives.items`)
# which count each lane's rows
LANE_COUNTERS = {"results": ("given",), "late": ("late",), "quarantine": ("quarantined", QUARANTINED_ITEMS)}

# Every stage has these; its strategy may add some, which come after `held`.
_FLOWS = ("seen", "control", "filtered", "quarantined", "late", "dropped", "accepted", "given")
_PROGRESS = ("mark_us", "punctuation_us")


def counters_of(own: Mapping[str, Tally]) -> dict[str, Tally]:
    """The counters of a stage and how each is put together, in the order in which they are shown."""
    return {
        **dict.fromkeys(_FLOWS, Tally.SUM),
        "held": Tally.LEVEL,
        **own,
        **dict.fromkeys(("stamps_back", "behind_jump", "beyond_jump"), Tally.SUM),
        "jump_us": Tally.LARGEST,
        **dict.fromkeys(_PROGRESS, Tally.LARGEST),
    }


def check_counters(own: Mapping[str, Tally]) -> None:
    """Refuse counters of a strategy that have the names of others."""
    columns = packed_schema({}, framed=True).split(", ")
    taken = {*counters_of({}), QUARANTINED_ITEMS, *(column.split()[0] for column in columns if column)}
    for name in own:
        if name.lower() in taken or not name.isidentifier():
            rule = "have names of their own, of letters, digits and underscores"
            raise InputError(must("counters of a strategy", rule, name, "call it otherwise"))


def nothing_counted(tally: Tally) -> int | str:
    """What a counter has where nothing was counted."""
    return "" if tally is Tally.TEXT else {Tally.LARGEST: NEVER_US, Tally.LEAST: FOREVER_US}.get(tally, 0)


def packed_schema(counters: Mapping[str, Tally], *, framed: bool = False) -> str:
    """The columns of packed rows; `framed` where they go to a further stage."""
    columns = ", ".join(
        ["stage int, lane int, views bigint", *(f"{name} {_type(tally)}" for name, tally in counters.items())]
    )
    return f"{FRAME_SCHEMA}, {columns}" if framed else f"n bigint, blob binary, {columns}"


def _type(tally: Tally) -> str:
    return "string" if tally is Tally.TEXT else "bigint"


def view_bit(number: int) -> int:
    """The bit of a view, by its place."""
    return 1 << min(number, LAST_BIT)


@dataclass(frozen=True)
class Packer:
    """Makes packed rows of one stage.

    counters: of all stages. carried: results keep what is carried for us. frame: where what is finished goes on to a
    further stage, the frame that it goes in.
    """

    stage: int
    counters: Mapping[str, Tally]
    views: tuple[View, ...]
    carried: bool = False
    frame: Frame | None = None

    def output(self, output: Output) -> Iterator[pd.DataFrame]:
        """An output as packed rows, many small blobs to a frame."""
        rows, bits = output.rows, 0
        if output.lane is Lane.RESULTS:
            bits = self._bits(rows)
            rows = rows if self.carried else users_columns(rows)
        for start, stop in cuts(rows, GROUP_BYTES):
            group = rows.slice(start, stop - start)
            pieces = [group.slice(first, last - first) for first, last in cuts(group, BLOB_BYTES)]
            counts = [piece.num_rows for piece in pieces]
            yield self.pieces(output.lane, counts, [rows_to_bytes(piece) for piece in pieces], bits)

    def pieces(self, lane: int, counts: list[int], blobs: Sequence[bytes | None], bits: int = 0) -> pd.DataFrame:
        """Blobs of one lane."""
        return self._frame(lane, counts, blobs, bits, {})

    def counts(self, counts: Mapping[str, Any]) -> pd.DataFrame:
        """The counters of the stage."""
        return self._frame(COUNTS_LANE, [0], [None], 0, counts)

    def again(self, rows: pd.DataFrame) -> pd.DataFrame:
        """What an earlier stage has finished, on its way to a further stage or to the end."""
        if self.frame is not None:
            return rows.assign(shard=self.frame.shard, task=self.frame.task)
        return rows.drop(columns=["shard", "task", "part", "kind"])

    def _bits(self, rows: pa.RecordBatch) -> int:
        bits = 0
        for number, view in enumerate(self.views):
            if view.keep is None or view.keep(rows).any():
                bits |= view_bit(number)
        return bits

    def _frame(
        self, lane: int, counts: list[int], blobs: Sequence[bytes | None], bits: int, known: Mapping[str, Any]
    ) -> pd.DataFrame:
        columns: dict[str, Any] = {} if self.frame is None else self.frame._asdict()
        columns |= {"n": counts, "blob": blobs, "stage": self.stage, "lane": int(lane), "views": bits}
        columns |= {name: known.get(name, nothing_counted(tally)) for name, tally in self.counters.items()}
        return pd.DataFrame(columns)


def letters(frames: Sequence[Frame], counters: Mapping[str, Tally]) -> pd.DataFrame:
    """Frames for the next stage, in the shape of packed rows."""
    columns: dict[str, Any] = dict(zip(Frame._fields, zip(*frames, strict=True), strict=True))
    columns |= {"stage": 0, "lane": 0, "views": 0}
    columns |= {name: nothing_counted(tally) for name, tally in counters.items()}
    return pd.DataFrame({name: list(value) if isinstance(value, tuple) else value for name, value in columns.items()})
