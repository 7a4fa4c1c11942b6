"""The logs of the Impatience paper: `Synthetic` follows its recipe, `CloudLog` and `AndroidLog` match Tables I and II.

The two real logs are not public. The made ones have the structure that section II describes, and at 20 million events
the paper's figures (checked for seeds 0, 1 and 2): distance and runs within 10 %, interleaved within 20 %, inversions
within a factor of 1.5, completeness (the share of events whose lateness is below a wait) within 2 points.

Invariants
1. Rows are numbered by time (`Synthetic` before the move, `CloudLog`) or by upload and then by time (`AndroidLog`).
2. Failures and uploads are few and are made anew for each block; what depends on rows takes memory for the block only.
3. The events of one server or phone arrive in order, so that `interleaved` is at most the number of sources
   (Proposition 3.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.disorder.chance import Floats, draws, hashes, normals
from latecomer.disorder.presets.model import START_US, TIMES, Preset, check_at_least, check_seed, timestamps
from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s

_TABLE_EVENTS = 20_000_000  # Table I
_SECOND_US, _MINUTE_US, _HOUR_US = 1_000_000, 60_000_000, 3_600_000_000

_STEP_US = 1_000  # Synthetic: one event per millisecond

_LENGTH_US = 6_400 * _SECOND_US  # CloudLog: from the first to the last of 20 million events
_FREQUENT = 0.8  # the share of events before their frequency drops
_DROP = 4  # how many times fewer events per second there are then
_SERVERS = 2_000
_FAR = 0.465  # the share of servers that are far away: alone, it gives FAR - FAR ** 2 / 2 = 0.36 runs per event
_NEAR_DELAY_US = 1_000
_FAR_DELAY_US = 200_000
_FAILURES = 12
_SHORTEST, _LONGEST = 0.004, 0.02  # failures last as long as this share of the events
_HIT, _HIT_WORST, _WORST = 0.14, 0.24, 9  # the share of servers hit; the failure of this rank by length hits more
_LOST_AT, _LOST_FOR, _LOST_ONE_IN = 0.05, 0.682, 1 << 16  # Region 2: a few events lie about for 13.6 of 20 million

_PHONES = 227  # AndroidLog: at 20 million events
_EVENING_US = 4 * _HOUR_US  # the phones are attached to their chargers in this time
_PERIOD_US = 5 * _MINUTE_US  # how often a phone on a charger uploads
_ATTACHED = 0.187  # the share of events that are recorded on a charger
_SHORTEST_US, _LONGEST_US = 1.5 * _HOUR_US, 46.0 * _HOUR_US  # away from a charger


@dataclass(frozen=True)
class _Log(Preset):
    """What the three have in common: one row per event."""

    events: int = _TABLE_EVENTS
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no size or no seed."""
        check_at_least("events", self.events, 1)
        check_seed(self.seed)

    @property
    def rows(self) -> int:
        """One per event."""
        return self.events


@dataclass(frozen=True)
class Synthetic(_Log):
    """The paper's synthetic data: `percent` of the events are moved back by |N(0, amount)| steps of a millisecond.

    Scales trivially: the disorder is the same at every size. Arrival is the time before the move.
    """

    events: int = 1_000_000
    percent: float = 30.0
    amount: float = 64.0

    def __post_init__(self) -> None:
        """Refuse what is no size, no seed, no share or no amount."""
        super().__post_init__()
        if not 0.0 <= self.percent <= 100.0:
            raise InputError(must("percent", "be from 0 to 100", self.percent, "use 30 as in the paper"))
        if not 0.0 <= self.amount < float("inf"):
            raise InputError(must("amount", "be a number of steps, 0 or more", self.amount, "use 64 as in the paper"))

    @property
    def schema(self) -> pa.Schema:
        """Times and four integers, `key` is one of 1,000."""
        return _schema("key", "code", "level", "value")

    def block(self, start: int, stop: int) -> pa.Table:
        """Rows start to stop - 1."""
        numbers = np.arange(start, stop, dtype=np.int64)
        arrival = START_US + _STEP_US * numbers
        moved = draws(self.seed, "moved", numbers) < self.percent / 100.0
        back = np.abs(normals(self.seed, "back", numbers)) * (self.amount * _STEP_US)
        ts = arrival - np.rint(np.where(moved, back, 0.0)).astype(np.int64)
        return _rows(self.schema, ts, arrival, _payload(self.seed, numbers, 1_000, 100, 10, 10_000))


class Failure(NamedTuple):
    """Servers fall silent at row `start`; from row `stop` on one after another sends what it kept, in a burst.

    `hit` servers from number `first` on are hit, and `pace` rows pass from one return to the next.
    """

    start: int
    stop: int
    first: int
    hit: int
    pace: float


@dataclass(frozen=True)
class CloudLog(_Log):
    """Servers that send their events at once: chaotic at fine granularity, well ordered at coarse granularity.

    Far servers are slower than near ones, which makes a run of 2.7 events; 12 failures make pronounced spikes; one
    server crashes and sends its last events 68 % of the log later; after 80 % the events become 4 times less frequent.
    The log takes 1.8 hours at 20 million events and more, and with the fourth root of the events below: shares (runs,
    distance, inversions per pair, completeness) stay, but for fewer runs and more inversions below 10,000 events. Up to
    2 million events there is a server per 1,000, at least 20; `interleaved` grows with the servers, and then slowly
    with the events (514 at 100 million). The real log is not public; at 20 million events Tables I and II are met.
    """

    @property
    def servers(self) -> int:
        """How many servers there are; one more, with the next number, crashes."""
        return min(_SERVERS, max(20, self.events // 1_000))

    @property
    def schema(self) -> pa.Schema:
        """Times and four integers, `server` is the source."""
        return _schema("server", "service", "status", "duration_ms")

    def block(self, start: int, stop: int) -> pa.Table:
        """Rows start to stop - 1."""
        numbers = np.arange(start, stop, dtype=np.int64)
        server = (hashes(self.seed, "server", numbers) % np.uint64(self.servers)).astype(np.int64)
        moment = numbers + draws(self.seed, "moment", numbers)
        sent = moment.copy()
        for failure in self.failures():
            self._hold(failure, moment, server, sent)
        self._lose(start, server, sent)
        arrival = self._time_us(sent) + self._delay_us(server, sent)
        payload = [server, *_payload(self.seed, numbers, 100, 5, 10_000)]
        return _rows(self.schema, self._time_us(moment), arrival, payload)

    def failures(self) -> list[Failure]:
        """The system failures: lengths are fixed, their order, places and servers are left to chance."""
        numbers = np.arange(_FAILURES, dtype=np.int64)
        ranks = _shuffled(self.seed, "failure", _FAILURES)
        lengths = self.events * _between(_SHORTEST, _LONGEST, ranks)
        places = self.events * (0.03 + 0.92 * (numbers + 0.6 * draws(self.seed, "place", numbers)) / _FAILURES)
        firsts = self.servers * draws(self.seed, "first", numbers)
        hits = self.servers * np.where(ranks == _WORST, _HIT_WORST, _HIT)
        found = []
        for place, length, first, hit in zip(places, lengths, firsts, hits, strict=True):
            rows, servers = max(1, int(length)), max(1, int(hit))
            found.append(Failure(int(place), int(place) + rows, int(first), servers, rows / (8 * servers)))
        return found

    def _hold(self, failure: Failure, moment: Floats, server: Int64s, sent: Floats) -> None:
        """Put off what the servers of a failure send until they are back."""
        end = failure.stop + failure.pace * (failure.hit + 1)
        low, high = np.searchsorted(moment, [failure.start, end])
        moments, servers = moment[low:high], server[low:high]
        rank = (servers - failure.first) % self.servers
        back = failure.stop + failure.pace * rank
        done = np.minimum((moments - failure.start) / (back - failure.start), 1.0)
        caught_up = np.maximum(moments, back + failure.pace * done)
        sent[low:high] = np.where(rank < failure.hit, caught_up, moments)

    def _lose(self, start: int, server: Int64s, sent: Floats) -> None:
        """Let one server crash with its last few events, which it sends when it is up again."""
        count = max(1, self.events // _LOST_ONE_IN)
        rows = int(_LOST_AT * self.events) + 8 * np.arange(count, dtype=np.int64) - start
        rows = rows[(rows >= 0) & (rows < len(sent))]
        server[rows] = self.servers
        sent[rows] = rows + (start + _LOST_FOR * self.events)

    @property
    def _step_us(self) -> float:
        """The time from one event to the next while they are frequent."""
        length_us = _LENGTH_US * math.sqrt(math.sqrt(min(1.0, self.events / _TABLE_EVENTS)))
        return length_us / (self.events * (_FREQUENT + _DROP * (1.0 - _FREQUENT)))

    def _time_us(self, moment: Floats) -> Int64s:
        """The time of a moment that is counted in events from the start."""
        after = np.maximum(moment - _FREQUENT * self.events, 0.0)
        time_us: Int64s = START_US + np.floor(self._step_us * (moment + (_DROP - 1) * after)).astype(np.int64)
        return time_us

    def _delay_us(self, server: Int64s, sent: Floats) -> Int64s:
        """How long the network takes: next to nothing for near servers, a time that swings slowly for far ones."""
        numbers = np.arange(self.servers + 1, dtype=np.int64)
        low = 0.25 + 0.5 * draws(self.seed, "low", numbers)
        swings = (10.0 + 30.0 * draws(self.seed, "swings", numbers)) / self.events
        turn = sent * swings[server] + draws(self.seed, "turn", numbers)[server]
        swing = np.abs(2.0 * (turn - np.floor(turn)) - 1.0)
        longest_us = min(0.9 * _SECOND_US, max(_FAR_DELAY_US, 10.0 * self._step_us))
        far_us = longest_us * (low[server] + 0.25 * swing)
        return np.where(server < _FAR * self.servers, far_us, _NEAR_DELAY_US).astype(np.int64)


class Uploads(NamedTuple):
    """One entry per upload, in the order of arrival; an upload's events lie evenly in the time since the last one."""

    phone: Int64s
    arrival_us: Floats
    since_us: Floats
    first_row: Int64s
    size: Int64s


@dataclass(frozen=True)
class AndroidLog(_Log):
    """Phones that upload when on a charger: well ordered at fine granularity, chaotic at coarse granularity.

    In the course of four hours the phones are attached to their chargers, each after 1.5 to 46 hours away from one.
    A phone then uploads at once all that it recorded (a spike), and every 5 minutes what it recorded since. Shares and
    times (completeness, distance, inversions per pair) are the same at every size; the number of phones, hence `runs`
    and `interleaved`, and the size of an upload grow with the square root of the events, from at least 10 phones.
    The real log is not public; at 20 million events Tables I and II are met.
    """

    @property
    def phones(self) -> int:
        """How many phones there are."""
        return max(10, round(_PHONES * math.sqrt(self.events / _TABLE_EVENTS)))

    @property
    def schema(self) -> pa.Schema:
        """Times and four integers, `phone` is the source."""
        return _schema("phone", "kind", "battery", "value")

    def block(self, start: int, stop: int) -> pa.Table:
        """Rows start to stop - 1; uploads follow one another, and one upload's events arrive together."""
        numbers = np.arange(start, stop, dtype=np.int64)
        uploads = self.uploads()
        at = np.searchsorted(uploads.first_row, numbers, side="right") - 1
        done = (numbers - uploads.first_row[at] + draws(self.seed, "moment", numbers)) / uploads.size[at]
        arrival = START_US + np.floor(uploads.arrival_us).astype(np.int64)[at]
        ts = arrival - np.ceil(uploads.since_us[at] * (1.0 - done)).astype(np.int64)
        return _rows(self.schema, ts, arrival, [uploads.phone[at], *_payload(self.seed, numbers, 40, 101, 10_000)])

    def uploads(self) -> Uploads:
        """All uploads; those that are too small to have an event are left out."""
        phones = np.arange(self.phones, dtype=np.int64)
        attached_us = _EVENING_US * (phones + draws(self.seed, "attached", phones)) / self.phones
        away_us = _between(_SHORTEST_US, _LONGEST_US, _shuffled(self.seed, "away", self.phones))
        counts = 1 + ((_EVENING_US - attached_us) / _PERIOD_US).astype(np.int64)
        phone = np.repeat(phones, counts)
        turn = np.arange(len(phone), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        arrival_us = attached_us[phone] + turn * float(_PERIOD_US)
        backlog = (turn == 0) & (phone > 0)  # the first phone is on its charger all the time and sets the mark
        since_us = np.where(backlog, away_us[phone], float(_PERIOD_US))
        order = np.argsort(arrival_us, kind="stable")
        last_row = np.rint(self.events * np.cumsum(self._shares(phone, backlog, since_us)[order])).astype(np.int64)
        size = np.diff(last_row, prepend=0)
        kept = order[size > 0]
        return Uploads(phone[kept], arrival_us[kept], since_us[kept], (last_row - size)[size > 0], size[size > 0])

    def _shares(self, phone: Int64s, backlog: Bools, since_us: Floats) -> Floats:
        """Which share of all events an upload has; a phone that is long away from a charger is used less."""
        busy = 0.75 + 0.5 * draws(self.seed, "busy", phone)
        away = np.where(backlog, busy * np.sqrt(since_us), 0.0)
        attached = np.where(backlog, 0.0, busy)
        shares: Floats = (1.0 - _ATTACHED) * away / away.sum() + _ATTACHED * attached / attached.sum()
        return shares


def _shuffled(seed: int, purpose: str, count: int) -> Int64s:
    """The numbers below count in an order left to chance."""
    return np.argsort(draws(seed, purpose, np.arange(count, dtype=np.int64)), kind="stable").astype(np.int64)


def _between(shortest: float, longest: float, ranks: Int64s) -> Floats:
    """Lengths at equal ratios from shortest to longest, one for each rank."""
    lengths: Floats = shortest * (longest / shortest) ** ((ranks + 0.5) / len(ranks))
    return lengths


def _schema(*payload: str) -> pa.Schema:
    """Event time, arrival and integers of 32 bits."""
    return pa.schema([*TIMES, *(pa.field(name, pa.int32()) for name in payload)])


def _payload(seed: int, numbers: Int64s, *below: int) -> list[Int64s]:
    """A column for each bound, with integers below it; up to four columns share a draw of 64 bits."""
    bits = hashes(seed, "payload", numbers)
    parts = [(bits >> np.uint64(16 * part)) & np.uint64(0xFFFF) for part in range(len(below))]
    return [(part % np.uint64(bound)).astype(np.int64) for part, bound in zip(parts, below, strict=True)]


def _rows(schema: pa.Schema, ts_us: Int64s, arrival_us: Int64s, payload: list[Int64s]) -> pa.Table:
    """Put columns together."""
    integers = [pa.array(column.astype(np.int32)) for column in payload]
    return pa.table([timestamps(ts_us), timestamps(arrival_us), *integers], schema=schema)
