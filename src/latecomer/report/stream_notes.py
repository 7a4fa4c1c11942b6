"""What of a recorded stream, or of how it was cut, makes the figures of a comparison worse than they need be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from latecomer.disorder.ahead import count_ahead, unite_ahead
from latecomer.disorder.measures import lateness
from latecomer.report.advice import on_ahead
from latecomer.report.words import counted, duration, number

if TYPE_CHECKING:
    from latecomer.spark.comparing import RecordedStream

_USUAL, _FAR = 0.999, 20  # this share of the rows is usual; what is so many times later is strange


def stream_facts(stream: RecordedStream, where: str) -> str:
    """How many rows, and how they came."""
    rows = f"{number(len(stream.ts_us))} rows in {number(stream.batches)} micro-batches"
    every = "" if stream.batch_us is None else f", one every {duration(stream.batch_us)}"
    return f"{rows}{every}, {where}"


def stream_notes(stream: RecordedStream, deadline_us: int | None = None, max_ahead: str | None = None) -> Iterator[str]:
    """Sentences, if there is something to say."""
    if stream.left_out:
        yield (
            f"{counted(stream.left_out, 'row')} without a time left out: a query of ours puts such rows into "
            "`quarantine`, Spark's watermark drops them without a word."
        )
    if deadline_us is not None and stream.batch_us is not None and stream.batch_us > deadline_us:
        yield (
            f"A micro-batch every {duration(stream.batch_us)} cannot keep a deadline of {duration(deadline_us)}: say "
            "how often your query runs (--trigger '10 seconds')."
        )
    if max_ahead is None and stream.arrival_us is not None:
        ahead = unite_ahead([count_ahead(stream.ts_us, stream.arrival_us, 0)], len(stream.ts_us), None)
        if ahead.advised_aside:
            yield from on_ahead(ahead)
    yield from _on_strange(stream)


def _on_strange(stream: RecordedStream) -> Iterator[str]:
    """A few rows that are very much later than all others decide how long everything waits."""
    late_us = np.sort(lateness(stream.counted[1], stream.tick[~stream.aside]))
    usual_us = int(late_us[int(_USUAL * (len(late_us) - 1))])
    strange = int(np.count_nonzero(late_us > _FAR * max(usual_us, stream.tick_us)))
    if strange and len(late_us) >= 1 / (1 - _USUAL):
        yield (
            f"{counted(strange, 'row')} up to {duration(int(late_us[-1]))} late, all others at most "
            f"{duration(int(late_us[-strange - 1]))}: if their times are wrong, `earliest=` of lc.disordered sets them "
            "aside."
        )
