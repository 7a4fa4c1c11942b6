"""Cells of the comparison: one stream, one frequency of punctuations, all competitors.

1. The clock runs inside `push` and `finish` only. After each slice it is read, so that every prefix has its time. It
   counts the processor's time, so that what others do on the machine disturbs less; no competitor sleeps or waits.
2. A competitor stops after `cell_seconds`, or after a sixth of that if the fastest one so far was ten times faster
   on the same prefix. Two that got differently far are compared on the prefix that both have done.
3. In the first round every output is summed up, in order, outside the clock: who gives other events, or the same in
   another order, is found out.
4. Rounds go round the competitors. Those three times slower than the fastest of their kind run only once.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer._jit import kernel
from latecomer.errors import LatecomerError
from latecomer.events import Int64s
from latecomer_lab.sorting.buffers import Records
from latecomer_lab.sorting.competitors import Competitor, Kind, Output, Sorter, competing
from latecomer_lab.sorting.data import Stream

SLICE = 10_000  # about so many events are pushed at once
_HOPELESS, _EARLY = 10.0, 6.0  # so many times slower than the fastest; then a cell ends after this part of its time
_REPEATED = 3.0

Floats = npt.NDArray[np.float64]
Tell = Callable[[str], None]


class Trace(NamedTuple):
    """How long each prefix took; sums say what had left by then. The last entry of a whole run includes `finish`."""

    events: Int64s
    seconds: Floats
    sums: Int64s
    whole: bool

    @property
    def done(self) -> int:
        """How many events were taken in."""
        return int(self.events[-1])

    def seconds_for(self, prefix: int) -> float:
        """The time for a prefix at least as long as this, without `finish` unless it is the whole stream."""
        return float(self.seconds[np.searchsorted(self.events, prefix)])


@dataclass(frozen=True)
class Limits:
    """When a run ends before its stream, and how many there are."""

    cell_seconds: float = 30.0
    rounds: int = 3


@dataclass
class Cell:
    """The runs of all competitors."""

    stream: str
    every: int | None
    runs: dict[str, list[Trace]] = field(default_factory=dict)

    def rate(self, name: str) -> float:
        """Events per second, the median over the rounds."""
        return statistics.median(self.rates(name))

    def rates(self, name: str) -> list[float]:
        """Events per second of each round."""
        return [float(run.done / run.seconds[-1]) for run in self.runs[name]]

    def ratio(self, ours: str, theirs: str) -> float:
        """How many times faster ours is, on the longest prefix that both have done."""
        both = [*self.runs[ours], *self.runs[theirs]]
        prefix = min(run.done for run in both)
        mine, other = (statistics.median(run.seconds_for(prefix) for run in self.runs[name]) for name in (ours, theirs))
        return other / mine

    def lead(self, ours: str, kinds: Iterable[Kind]) -> float:
        """How many times faster ours is than the best of some kinds."""
        chosen = set(kinds)
        others = [each.name for each in competing(self.every) if each.kind in chosen and each.name in self.runs]
        return min(self.ratio(ours, name) for name in others)


def run_cell(stream: Stream, every: int | None, limits: Limits, tell: Tell) -> Cell:
    """All rounds of all competitors."""
    cell = Cell(stream.name, every)
    chosen = competing(every)
    for number in range(limits.rounds):
        for each in chosen:
            tell(f"{stream.name}, {frequency(every)}, round {number + 1} of {limits.rounds}: {each.name}")
            run = _drive(each.make(stream.latency_us, every), stream, cell, limits, summed=number == 0)
            cell.runs.setdefault(each.name, []).append(run)
        if number == 0:
            _compare_sums(cell)
            chosen = [each for each in chosen if _worth_another(cell, each)]
    return cell


def frequency(every: int | None) -> str:
    """How often punctuations come, in words."""
    return "offline" if every is None else f"every {every:,}"


def _drive(sorter: Sorter, stream: Stream, cell: Cell, limits: Limits, *, summed: bool) -> Trace:
    """Push a stream slice by slice."""
    entries: list[tuple[int, float, int]] = []
    seconds, sum_so_far, stop = 0.0, 0, 0
    total = len(stream.ts_us)
    step = total if cell.every is None else cell.every * -(-SLICE // cell.every)
    fastest = [runs[0] for runs in cell.runs.values()]
    for start in range(0, total, step):
        stop = min(start + step, total)
        ts_us, payload = stream.ts_us[start:stop], stream.payload[start:stop]
        started = time.process_time()
        left = [sorter.push(ts_us, payload)]
        if stop == total:
            left.append(sorter.finish())
        seconds += time.process_time() - started
        sum_so_far = sum_up(left, sum_so_far) if summed else 0
        entries.append((stop, seconds, sum_so_far))
        if _too_slow(seconds, stop, fastest, limits):
            break
    events, times, sums = zip(*entries, strict=True)
    return Trace(np.array(events), np.array(times), np.array(sums), stop == total)


def _too_slow(seconds: float, prefix: int, fastest: list[Trace], limits: Limits) -> bool:
    if seconds < limits.cell_seconds / _EARLY:
        return False
    if seconds >= limits.cell_seconds:
        return True
    return any(run.done >= prefix and seconds > _HOPELESS * run.seconds_for(prefix) for run in fastest)


def _worth_another(cell: Cell, competitor: Competitor) -> bool:
    """Whether a competitor's first run was whole and near to the fastest of its kind; ours always is."""
    if competitor.kind is Kind.OURS:
        return True
    kin = [each.name for each in competing(cell.every) if each.kind is competitor.kind]
    near = cell.rate(competitor.name) * _REPEATED >= max(cell.rate(name) for name in kin)
    return near and cell.runs[competitor.name][0].whole


def _compare_sums(cell: Cell) -> None:
    """Stop where two competitors have not given the same."""
    first, *others = [(name, runs[0]) for name, runs in cell.runs.items()]
    for name, run in others:
        common = min(len(run.sums), len(first[1].sums))
        if not np.array_equal(run.sums[:common], first[1].sums[:common]):
            where = f"{cell.stream}, {frequency(cell.every)}"
            raise LatecomerError(f"{name} and {first[0]} give different events on {where}; the bench is void")


def sum_up(outputs: list[Output], so_far: int) -> int:
    """A sum over times and payloads that depends on their order."""
    for output in outputs:
        assert output.payload is not None
        words = np.ascontiguousarray(output.payload).view(np.int32)
        so_far = int(_sum_up(output.ts_us, words, so_far))
    return so_far


@kernel
def _sum_up(ts_us: Int64s, words: Records, so_far: int) -> int:
    """Multiply by an odd number and add, modulo 2 to the 64; each event has the same number of words."""
    each = len(words) // max(1, len(ts_us))
    for i in range(len(ts_us)):
        so_far = so_far * 6364136223846793005 + ts_us[i]
        for word in range(i * each, (i + 1) * each):
            so_far = (so_far ^ words[word]) * 31
    return so_far
