"""What travels between the steps: frames from pack to hold, packed rows from hold to unpack.

A frame is (kind, n, blob) addressed to a shard; (task, part) number the frames of one task. A packed row is a piece
of a lane's output, or, in the lane `COUNTS`, the counters of one shard for one micro-batch.
"""

from __future__ import annotations

from enum import IntEnum

from latecomer.contract import Lane

# For flat rows Spark fills an Arrow batch by rows alone (its limit by bytes costs a measurement per row), so
# ARROW_ROWS blobs must stay below the 2 GB that a binary column can take.
BLOB_BYTES = 250_000
ARROW_ROWS = 8_192
GROUP_BYTES = 8_000_000
COUNTS_LANE = -1

FRAME_SCHEMA = "shard int, task bigint, part int, kind int, n bigint, blob binary"


class Kind(IntEnum):
    """What a frame brings: rows as blobs, progress as a header, or a bare count."""

    HEADER = 0
    EVENTS = 1
    QUARANTINE = 2
    SEEN = 3
    FILTERED = 4
    CONTROL = 5


SUMMED = (
    "seen",
    "control",
    "filtered",
    "quarantined",
    "late",
    "dropped",
    "accepted",
    "given",
    "held",
    "runs",
    "stamps_back",
)
LARGEST = ("mark_us", "punctuation_us")
COUNTERS = SUMMED + LARGEST

PACKED_SCHEMA = "lane int, n bigint, pane string, final boolean, tier int, blob binary, " + ", ".join(
    f"{name} bigint" for name in COUNTERS
)

LANES = {"results": Lane.RESULTS, "late": Lane.LATE, "quarantine": Lane.QUARANTINE}
ROWS_OF = {"results": "given", "late": "late", "quarantine": "quarantined"}  # the counter of each lane's rows
