"""Profile a stream that fits into memory; `spark/profiling/` gives the same numbers for one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.codec import integers
from latecomer.disorder.ahead import count_ahead, too_far_ahead, unite_ahead
from latecomer.disorder.hole_choice import choose_holes
from latecomer.disorder.measures import lateness, measure
from latecomer.disorder.profile import (
    EACH_ALONE,
    QUANTILES,
    Ahead,
    Clock,
    Holes,
    Picture,
    Profile,
    SourceProfile,
    Wait,
    positions_needed,
    quantile,
    shortest_waits,
    waits,
)
from latecomer.events import Int64s

COLUMNS, ROWS = 240, 160


@dataclass(frozen=True)
class Recorded:
    """A recorded stream: event times in order of arrival, and what else is known of each event."""

    ts_us: Int64s
    arrival_us: Int64s | None = None
    key: pa.Array | None = None
    source: pa.Array | None = None

    def in_order_of_arrival(self) -> Recorded:
        """By arrival time; events that arrive together keep their order."""
        if self.arrival_us is None or bool(np.all(self.arrival_us[1:] >= self.arrival_us[:-1])):
            return self
        return self._taken(np.argsort(self.arrival_us, kind="stable"))

    def not_too_far_ahead(self, max_ahead_us: int | None) -> Recorded:
        """Without the events that are further ahead of their arrival."""
        if self.arrival_us is None or max_ahead_us is None:
            return self
        return self._taken(np.flatnonzero(~too_far_ahead(self.ts_us, self.arrival_us, max_ahead_us)))

    def _taken(self, positions: Int64s) -> Recorded:
        take = pa.array(positions)
        return Recorded(
            self.ts_us[positions],
            None if self.arrival_us is None else self.arrival_us[positions],
            None if self.key is None else self.key.take(take),
            None if self.source is None else self.source.take(take),
        )

    def ticks(self, tick_us: int | None) -> Int64s | None:
        """The tick in which each event arrives."""
        return None if self.arrival_us is None or tick_us is None else self.arrival_us // tick_us

    def ahead(self, set_aside: int, max_ahead_us: int | None) -> Ahead | None:
        """How many are ahead of their arrival."""
        if self.arrival_us is None:
            return None
        return unite_ahead([count_ahead(self.ts_us, self.arrival_us, set_aside)], len(self.ts_us), max_ahead_us)


@dataclass(frozen=True)
class Unmeasured:
    """Rows that could not be read, and times that were cut to microseconds."""

    quarantined: int = 0
    cut: int = 0


_ALL_MEASURED = Unmeasured()


def profile_recorded(
    recorded: Recorded,
    *,
    name: str = "stream",
    period_us: int | None = None,
    clock: Clock = EACH_ALONE,
    unmeasured: Unmeasured = _ALL_MEASURED,
    numbers: Mapping[str, Int64s] | None = None,
) -> Profile:
    """Measure everything there is to know about the disorder of a stream.

    numbers: columns of whole numbers, one of which may count the events of each key.
    """
    stream = recorded.not_too_far_ahead(clock.max_ahead_us).in_order_of_arrival()
    ts_us = stream.ts_us
    late_us = lateness(ts_us, stream.ticks(clock.tick_us))
    only_late = np.sort(late_us[late_us > 0])
    four = measure(ts_us)
    per_source = [] if stream.source is None else profile_sources(stream, late_us)
    holes = None if period_us is None else find_holes(ts_us, stream.key, period_us)
    return Profile(
        name=name,
        events=len(ts_us),
        keys=None if stream.key is None else count_distinct(stream.key),
        sources=None if stream.source is None else len(per_source),
        late=len(only_late),
        lateness=lateness_summary(only_late),
        runs=four.runs,
        interleaved=four.interleaved,
        inversions=four.inversions,
        distance=four.distance,
        completeness=completeness(only_late, len(ts_us)),
        needed=needed_waits(only_late, len(ts_us)),
        first_ts_us=int(ts_us.min()) if len(ts_us) else 0,
        last_ts_us=int(ts_us.max()) if len(ts_us) else 0,
        quarantined=unmeasured.quarantined,
        cut=unmeasured.cut,
        tick_us=None if stream.arrival_us is None else clock.tick_us,
        ahead=stream.ahead(len(recorded.ts_us) - len(ts_us), clock.max_ahead_us),
        per_source=per_source,
        holes=holes,
        picture=draw(stream),
        hole_choice=None
        if recorded.key is None
        else choose_holes(recorded.ts_us, encode(recorded.key)[1], numbers or {}),
    )


def lateness_summary(sorted_us: Int64s) -> dict[str, int]:
    """Quantiles and maximum over the late events."""
    found = {name: quantile(sorted_us, share) for name, share in QUANTILES.items()}
    return {**found, "max": int(sorted_us[-1]) if len(sorted_us) else 0}


def completeness(sorted_us: Int64s, events: int) -> list[Wait]:
    """The share of events that each wait keeps."""
    longest = int(sorted_us[-1]) if len(sorted_us) else 0
    steps = waits(longest)
    lost = len(sorted_us) - np.searchsorted(sorted_us, steps, side="left")
    return [Wait(wait, kept_share(int(late), events)) for wait, late in zip(steps, lost, strict=True)]


def needed_waits(sorted_us: Int64s, events: int) -> list[Wait]:
    """The shortest waits that keep half of the events, 90 %, ... and all."""
    values = [0 if place < 0 else int(sorted_us[place]) for place in positions_needed(events, len(sorted_us))]
    found = [(value, int(np.searchsorted(sorted_us, value, side="right"))) for value in values]
    return shortest_waits(found, events, len(sorted_us))


def kept_share(lost: int, events: int) -> float:
    """The share of events that are not lost; all of none."""
    return (events - lost) / events if events else 1.0


def count_distinct(values: pa.Array) -> int:
    """Different values, a null being one."""
    return int(pc.count_distinct(values, mode="all").as_py())


def encode(values: pa.Array) -> tuple[list[str | None], Int64s]:
    """Distinct values as text, and a code per row; a null is a value like others."""
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode("encode")
    names = [None if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    if encoded.indices.null_count:
        names.append(None)
        return names, integers(encoded.indices.fill_null(len(names) - 1))
    return names, integers(encoded.indices)


def profile_sources(stream: Recorded, late_us: Int64s) -> list[SourceProfile]:
    """Each source by itself, the one that lags most first."""
    if stream.source is None or len(stream.ts_us) == 0:
        return []
    names, codes = encode(stream.source)
    clock = stream.arrival_us if stream.arrival_us is not None else np.maximum.accumulate(stream.ts_us)
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    found = []
    for code, rows in zip(present, np.split(order, starts[1:]), strict=True):
        at, late = clock[rows], late_us[rows]
        found.append(
            SourceProfile(
                name=names[code],
                events=len(rows),
                late=int(np.count_nonzero(late)),
                mean_lateness_us=int(late.sum(dtype=object)) // len(rows),
                max_lateness_us=int(late.max()),
                longest_silence_us=int(np.diff(at).max()) if len(rows) > 1 else 0,
                silent_at_end_us=int(clock[-1] - at[-1]),
            )
        )
    return sorted(found, key=worst_first)


def worst_first(source: SourceProfile) -> tuple[int, int, str]:
    """The order in which sources are listed."""
    return -source.mean_lateness_us, -source.events, source.name or ""


@dataclass(frozen=True)
class KeyGaps:
    """Per key: how many readings are missing, in how many gaps, the longest gap, and how many came late."""

    missing: Int64s
    gaps: Int64s
    longest_us: Int64s
    filled: Int64s


def find_holes(ts_us: Int64s, key: pa.Array | None, period_us: int) -> Holes:
    """Where a key's readings, one every period, are missing."""
    codes = np.zeros(len(ts_us), dtype=np.int64) if key is None else encode(key)[1]
    found = key_gaps(ts_us, codes, period_us)
    worst = np.sort(found.missing)[::-1][: -(-len(found.missing) // 10)]
    return sum_holes(found, int(worst.sum()), period_us)


def sum_holes(found: KeyGaps, in_worst: int, period_us: int) -> Holes:
    """All keys together."""
    missing = int(found.missing.sum())
    return Holes(
        period_us=period_us,
        missing=missing,
        gaps=int(found.gaps.sum()),
        keys_with_gaps=int(np.count_nonzero(found.gaps)),
        longest_us=int(found.longest_us.max(initial=0)),
        filled_late=int(found.filled.sum()),
        in_worst_tenth=in_worst / missing if missing else 0.0,
    )


def key_gaps(ts_us: Int64s, codes: Int64s, period_us: int) -> KeyGaps:
    """The gaps of each key; events are in order of arrival."""
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    if len(present) == 0:
        none = np.zeros(0, dtype=np.int64)
        return KeyGaps(none, none, none, none)
    ts_sorted = np.lexsort((ts_us, codes))
    gap_us = np.diff(ts_us[ts_sorted], prepend=ts_us[ts_sorted[0]])
    gap_us[starts] = 0
    missing = np.maximum((gap_us + period_us // 2) // period_us - 1, 0)
    arrived = ts_us[order]
    steps_back = _behind_own_mark(arrived, starts)
    return KeyGaps(
        missing=np.add.reduceat(missing, starts),
        gaps=np.add.reduceat((missing > 0).astype(np.int64), starts),
        longest_us=np.maximum.reduceat(np.where(missing > 0, gap_us, 0), starts),
        filled=np.add.reduceat(steps_back, starts),
    )


def _behind_own_mark(ts_us: Int64s, starts: Int64s) -> Int64s:
    """1 for each event that comes after a later one of its key; keys stand one after the other."""
    behind = np.zeros(len(ts_us), dtype=np.int64)
    for start, stop in zip(starts, [*starts[1:], len(ts_us)], strict=True):
        piece = ts_us[start:stop]
        behind[start:stop] = piece < np.maximum.accumulate(piece)
    return behind


def draw(stream: Recorded) -> Picture:
    """The grid of event time against arrival."""
    ts_us, arrival_us = stream.ts_us, stream.arrival_us
    if len(ts_us) == 0:
        none = np.zeros(0, dtype=np.int64)
        return Picture(COLUMNS, ROWS, 0, 0, None, none, none, none)
    span = (int(ts_us.min()), int(ts_us.max()))
    wide = None if arrival_us is None else (int(arrival_us[0]), int(arrival_us[-1]))
    across = np.arange(len(ts_us)) if arrival_us is None else arrival_us
    cells = count_cells(ts_us, across, span, wide or (0, len(ts_us) - 1))
    return make_picture(cells, span, wide)


def count_cells(ts_us: Int64s, across: Int64s, span: tuple[int, int], wide: tuple[int, int]) -> Int64s:
    """How many events fall into each cell of the grid."""
    cell = place(across, wide, COLUMNS) * ROWS + place(ts_us, span, ROWS)
    return np.bincount(cell, minlength=COLUMNS * ROWS)


def place(values: Int64s, span: tuple[int, int], cells: int) -> Int64s:
    """Which of the equal cells of a span each value falls into."""
    coarse = 8 if span[1] - span[0] >= 2**54 else 0  # so that the product fits into 64 bits
    found: Int64s = ((values - span[0]) >> coarse) * cells // (((span[1] - span[0]) >> coarse) + 1)
    return found


def make_picture(cells: Int64s, span: tuple[int, int], wide: tuple[int, int] | None) -> Picture:
    """Keep the cells that are not empty."""
    filled = np.flatnonzero(cells)
    return Picture(COLUMNS, ROWS, *span, wide, filled // ROWS, filled % ROWS, cells[filled])
